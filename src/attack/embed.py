"""Prints an assembler file with the bytes of a program: embed.py FILE."""
import hashlib
import os
import sys

# The digest makes this text change when the program does, or the build would not assemble it anew.
print(f"""/* {hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()} */
	.section .rodata
	.global attacker_blob, attacker_blob_size
attacker_blob:
	.incbin "{os.path.abspath(sys.argv[1])}"
1:	.balign 8
attacker_blob_size:
	.quad 1b - attacker_blob
	.section .note.GNU-stack,"",@progbits""")
