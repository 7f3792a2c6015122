"""embed.py [FILE]: the attack suite's program as an assembler file; without FILE there is none, and its size is 0."""
import hashlib
import os
import sys

# The digest makes this text change when the program does, or the build would not assemble it anew.
digests = [hashlib.sha256(open(file, "rb").read()).hexdigest() for file in sys.argv[1:]]
bytes_of = [f'.incbin "{os.path.abspath(file)}"' for file in sys.argv[1:]]
print(f"""/* {" ".join(digests)} */
	.section .rodata
	.global attack_program, attack_program_size
attack_program:
	{" ".join(bytes_of)}
1:	.balign 8
attack_program_size:
	.quad 1b - attack_program
	.section .note.GNU-stack,"",@progbits""")
