"""The platform's own: reads what the analysis left, prints rows. Under a hood as well, since the file is hostile."""
import json

for species, r in sorted(json.load(open('outputs/ratios.json')).items()):
    title = f'the petals of {species} are {r["mean"]:.2f} times as long as its sepals'
    print(json.dumps({'table': 'hypotheses', 'row': {'title': title, 'species': species, 'score': r['mean'] / r['sd']}}))
