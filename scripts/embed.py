"""embed.py NAME [FILE]: a file as an assembler file: NAME are its bytes and a NUL, NAME_size counts them; without FILE there are none."""
import hashlib
import os
import sys

name, files = sys.argv[1], sys.argv[2:]
# The digest makes this text change when the file does, or the build would not assemble it anew.
digests = [hashlib.sha256(open(file, "rb").read()).hexdigest() for file in files]
bytes_of = [f'.incbin "{os.path.abspath(file)}"' for file in files]
print(f"""/* {" ".join(digests)} */
	.section .rodata
	.global {name}, {name}_size
	.type {name}, @object
	.type {name}_size, @object
	.balign 16
{name}:
	{" ".join(bytes_of)}
1:	.byte 0
	.size {name}, . - {name}
	.balign 8
{name}_size:
	.quad 1b - {name}
	.size {name}_size, 8
	.section .note.GNU-stack,"",@progbits""")
