"""Prints a file as a C array: embed.py FILE NAME."""
import sys

data = open(sys.argv[1], "rb").read()
name = sys.argv[2]
print('#include <stddef.h>\n#include "embedded.h"\n')
print(f"const unsigned char {name}[] = {{")
for i in range(0, len(data), 16):
    print("\t" + " ".join(f"{b}," for b in data[i : i + 16]))
print(f"}};\nconst size_t {name}_size = {len(data)};")
