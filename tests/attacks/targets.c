#include "targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char **targets_slot(struct targets *t, const char *key)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->pair[i].key, key))
			return &t->pair[i].value;
	if (t->count == TARGETS_MAX || strlen(key) >= sizeof(t->pair[0].key))
		return NULL;
	strcpy(t->pair[t->count].key, key);
	t->pair[t->count].value = NULL;
	return &t->pair[t->count++].value;
}

int targets_set(struct targets *t, const char *key, const char *format, ...)
{
	char **slot = targets_slot(t, key), *value;
	if (!slot)
		return -ENOSPC;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&value, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	free(*slot);
	*slot = value;
	return 0;
}

const char *targets_text(const struct targets *t, const char *key)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->pair[i].key, key))
			return t->pair[i].value;
	return "";
}

long targets_number(const struct targets *t, const char *key)
{
	return strtol(targets_text(t, key), NULL, 0);
}

int targets_save(const struct targets *t, const char *path)
{
	FILE *f = fopen(path, "we");
	if (!f)
		return -errno;
	for (size_t i = 0; i < t->count; i++)
		fprintf(f, "%s=%s\n", t->pair[i].key, t->pair[i].value);
	return fclose(f) ? -errno : 0;
}

int targets_load(struct targets *t, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : targets_read(t, fd);
}

int targets_read(struct targets *t, int fd)
{
	FILE *f = fdopen(fd, "r");
	if (!f)
		return -errno;
	char *line = NULL;
	size_t room = 0;
	while (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		char *equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		targets_set(t, line, "%s", equals + 1);
	}
	free(line);
	fclose(f);
	return 0;
}

void targets_done(struct targets *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->pair[i].value);
	t->count = 0;
}
