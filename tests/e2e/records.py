"""The record of a workspace: each line is one, and the last counts."""
import json


def read(path):
    return json.loads(path.read_text().strip().split('\n')[-1])
