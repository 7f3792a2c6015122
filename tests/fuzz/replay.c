/*
 * Gives every file named on the command line, or lying in a directory named there, to one fuzzer: how compilers
 * without libFuzzer run the corpora.
 */
#include "fuzz.h"

#include <errno.h>
#include <fts.h>
#include <string.h>

enum { FILE_MAX = 1 << 21 };

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(FILE_MAX);
	size_t size;

	if (!f || !data) {
		fprintf(stderr, "cannot read '%s': %s\n", path, strerror(errno));
		exit(1);
	}
	size = fread(data, 1, FILE_MAX, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	FTS *tree = argc > 1 ? fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	int count = 0;
	FTSENT *e;

	if (!tree) {
		fprintf(stderr, "usage: %s FILE_OR_DIRECTORY…\n", argv[0]);
		return 2;
	}
	while ((e = fts_read(tree)))
		if (e->fts_info == FTS_F)
			count += replay_file(e->fts_path);
	fts_close(tree);
	printf("%d inputs\n", count);
	return count > 0 ? 0 : 1; /* a corpus that is not there tests nothing */
}
