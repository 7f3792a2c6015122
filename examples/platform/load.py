"""Prints ../data/iris.csv as INSERTs for psql or sqlite3."""
import csv

with open('../data/iris.csv', newline='') as file:
    for row in csv.DictReader(file):
        print(f"INSERT INTO irises VALUES ('{row['species']}', {row['sepal_length']}, {row['petal_length']});")
