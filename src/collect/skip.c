#include "skip.h"
#include "macros.h"

#include <string.h>

enum place {
	DIRECTORY,	/* a directory of this name, anywhere */
	HOME_DIRECTORY, /* a directory at this path of the workspace, which is the analysis's HOME */
	FILE_NAME,	/* a file of this name, anywhere */
	FILE_END,	/* a file whose name ends so, anywhere */
};

static const struct {
	enum place place;
	const char *text;
} skips[] = {
	{DIRECTORY, "__pycache__"},		  /* Python */
	{FILE_END, ".pyc"},			  /* Python */
	{DIRECTORY, ".ipynb_checkpoints"},	  /* Jupyter */
	{HOME_DIRECTORY, ".ipython"},		  /* Jupyter */
	{HOME_DIRECTORY, ".jupyter"},		  /* Jupyter */
	{HOME_DIRECTORY, ".local/share/jupyter"}, /* Jupyter */
	{HOME_DIRECTORY, ".cache"},		  /* XDG: fontconfig, matplotlib, pip, … */
	{HOME_DIRECTORY, ".config/matplotlib"},	  /* matplotlib */
	{HOME_DIRECTORY, ".matplotlib"},	  /* matplotlib, as MPLCONFIGDIR of old */
	{HOME_DIRECTORY, ".fontconfig"},	  /* fontconfig without XDG */
	{HOME_DIRECTORY, ".nv"},		  /* the compute cache of NVIDIA's driver */
	{FILE_NAME, ".Rhistory"},		  /* R; .RData is a result */
	{FILE_NAME, ".python_history"},		  /* Python */
	{FILE_NAME, "core"},			  /* a core dump; core.1234 below */
	{FILE_END, "~"},			  /* editors */
};

/* "core.1234" */
static bool is_numbered_core(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strncmp(name, "core.", 5) == 0 && strspn(name + 5, "0123456789") == n - 5;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

bool skip_by_default(const char *path, bool is_directory)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(skips); i++) {
		const char *text = skips[i].text;

		switch (skips[i].place) {
		case DIRECTORY:
			if (is_directory && strcmp(name, text) == 0)
				return true;
			break;
		case HOME_DIRECTORY:
			if (is_directory && strcmp(path, text) == 0)
				return true;
			break;
		case FILE_NAME:
			if (!is_directory && strcmp(name, text) == 0)
				return true;
			break;
		case FILE_END:
			if (!is_directory && ends_in(name, text))
				return true;
			break;
		}
	}
	return !is_directory && is_numbered_core(name);
}
