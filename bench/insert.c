/*
 * Files into a table by prepared INSERTs, one transaction: what a platform writes without thinking twice.
 *
 *   insert CONNECTION DIRECTORY
 *
 * Every file of the directory becomes a row of public.inserted(path, sha256, size, content). Prints the seconds from the
 * first file that is opened to the end of the COMMIT.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char content[1 << 20];

static void check(PGconn *c, PGresult *r, ExecStatusType wanted)
{
	if (PQresultStatus(r) != wanted) {
		fprintf(stderr, "%s", PQerrorMessage(c));
		exit(1);
	}
	PQclear(r);
}

static void insert(PGconn *c, int directory, const char *name)
{
	unsigned char sha256[32];
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, content, sizeof content);
	uint64_t size = htobe64((uint64_t)n);
	const char *values[] = {name, (char *)sha256, (char *)&size, content};
	int lengths[] = {(int)strlen(name), sizeof sha256, sizeof size, (int)n}, formats[] = {1, 1, 1, 1};

	if (fd < 0 || n < 0)
		exit(1);
	close(fd);
	SHA256((unsigned char *)content, (size_t)n, sha256);
	check(c, PQexecPrepared(c, "row", 4, values, lengths, formats, 0), PGRES_COMMAND_OK);
}

int main(int argc, char **argv)
{
	PGconn *c = PQconnectdb(argc == 3 ? argv[1] : "");
	struct timespec a, b;
	struct dirent *e;
	DIR *d = argc == 3 ? opendir(argv[2]) : NULL;

	if (!d || PQstatus(c) != CONNECTION_OK) {
		fprintf(stderr, "insert CONNECTION DIRECTORY: %s\n", PQerrorMessage(c));
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	check(c, PQexec(c, "BEGIN"), PGRES_COMMAND_OK);
	check(c, PQprepare(c, "row", "INSERT INTO public.inserted VALUES ($1, $2, $3, $4)", 4, NULL),
	      PGRES_COMMAND_OK);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			insert(c, dirfd(d), e->d_name);
	check(c, PQexec(c, "COMMIT"), PGRES_COMMAND_OK);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.6f\n", (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
	closedir(d);
	PQfinish(c);
	return 0;
}
