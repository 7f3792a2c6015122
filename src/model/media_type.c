#include "manifest.h"

#include <string.h>
#include <strings.h>

static const char unknown[] = "application/octet-stream";

/* What analyses write, by the last ending of the name. */
static const struct {
	const char *ending, *type;
} types[] = {
	{".csv", "text/csv"},
	{".tsv", "text/tab-separated-values"},
	{".txt", "text/plain"},
	{".log", "text/plain"},
	{".md", "text/markdown"},
	{".html", "text/html"},
	{".htm", "text/html"},
	{".css", "text/css"},
	{".js", "text/javascript"},
	{".py", "text/x-python"},
	{".r", "text/x-r"},
	{".tex", "text/x-tex"},
	{".bib", "text/x-bibtex"},
	{".yaml", "application/yaml"},
	{".yml", "application/yaml"},
	{".json", "application/json"},
	{".jsonl", "application/jsonl"},
	{".ndjson", "application/x-ndjson"},
	{".geojson", "application/geo+json"},
	{".ipynb", "application/x-ipynb+json"},
	{".xml", "application/xml"},
	{".pdf", "application/pdf"},
	{".ps", "application/postscript"},
	{".png", "image/png"},
	{".jpg", "image/jpeg"},
	{".jpeg", "image/jpeg"},
	{".gif", "image/gif"},
	{".webp", "image/webp"},
	{".tif", "image/tiff"},
	{".tiff", "image/tiff"},
	{".svg", "image/svg+xml"},
	{".mp4", "video/mp4"},
	{".wav", "audio/wav"},
	{".zip", "application/zip"},
	{".tar", "application/x-tar"},
	{".gz", "application/gzip"},
	{".tgz", "application/gzip"},
	{".bz2", "application/x-bzip2"},
	{".xz", "application/x-xz"},
	{".zst", "application/zstd"},
	{".parquet", "application/vnd.apache.parquet"},
	{".feather", "application/vnd.apache.arrow.file"},
	{".arrow", "application/vnd.apache.arrow.file"},
	{".h5", "application/x-hdf5"},
	{".hdf5", "application/x-hdf5"},
	{".h5ad", "application/x-hdf5"},
	{".nc", "application/x-netcdf"},
	{".npy", "application/x-npy"},
	{".npz", "application/x-npz"},
	{".sqlite", "application/vnd.sqlite3"},
	{".db", "application/vnd.sqlite3"},
	{".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
};

const char *media_type_of(const char *path)
{
	const char *name = strrchr(path, '/');
	const char *ending = strrchr(name ? name : path, '.');

	for (size_t i = 0; ending && i < sizeof types / sizeof types[0]; i++)
		if (strcasecmp(types[i].ending, ending) == 0)
			return types[i].type;
	return unknown;
}

const char *media_type_known(const char *text)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(types[i].type, text) == 0)
			return types[i].type;
	return unknown;
}

const char *reject_reason_known(const char *text)
{
	static const char *const reasons[] = {
		REJECT_SYMLINK, REJECT_HARD_LINK, REJECT_FIFO,	     REJECT_SOCKET, REJECT_DEVICE,
		REJECT_SET_ID,	REJECT_OWNER,	  REJECT_UNREADABLE, REJECT_SPARSE, REJECT_BYTES,
		REJECT_FILES,	REJECT_DEPTH,	  REJECT_CHANGED,    REJECT_NAMES,  REJECT_LARGE,
	};

	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (strcmp(reasons[i], text) == 0)
			return reasons[i];
	return REJECT_OTHER;
}
