/*
 * For the shared library only. libjansson.a is compiled for executables and refers to stdin as only these may; it does
 * so to compare a pointer with it, in a function that we do not call. This stdin is the library's own, and nobody
 * outside sees it (libfumehood.map): the C library's is untouched.
 */
extern void *stdin;
void *stdin;
