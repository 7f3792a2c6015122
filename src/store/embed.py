"""embed.py FILE NAME: a text file as a C string of that name."""
import sys

text = open(sys.argv[1], encoding='utf-8').read()
print(f'#include "sql.h"\n\nconst char {sys.argv[2]}[] =')
for line in text.splitlines():
    escaped = line.replace('\\', '\\\\').replace('"', '\\"').replace('\t', '\\t')
    print(f'\t"{escaped}\\n"')
print('\t"";')
