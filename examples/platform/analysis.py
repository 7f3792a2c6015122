"""Untrusted: reads what was asked of the knowledge base, writes a file. It has no database, and needs none."""
import csv
import json
from statistics import fmean, stdev

ratios = {}
with open('irises.csv', newline='') as file:
    for row in csv.DictReader(file):
        ratios.setdefault(row['species'], []).append(float(row['petal_length']) / float(row['sepal_length']))
with open('ratios.json', 'w') as file:
    json.dump({name: {'mean': fmean(r), 'sd': stdev(r), 'n': len(r)} for name, r in ratios.items()}, file)
