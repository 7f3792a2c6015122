"""install_dir.py PREFIX: where below PREFIX the distribution's Python looks for modules, relative to it."""
import os
import sys

prefix = os.path.normpath(sys.argv[1])
version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
debian = os.path.isdir("/usr/lib/python3/dist-packages")
if not debian:
    print(f"lib/{version}/site-packages")
elif prefix == "/usr/local":  # Debian's Python looks there, and not in python3
    print(f"lib/{version}/dist-packages")
else:
    print("lib/python3/dist-packages")
