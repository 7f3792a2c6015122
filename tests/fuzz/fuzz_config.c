/* A user's configuration above a site's: whatever it says, the site's maximum, tables and role hold. */
#include "fuzz.h"

#include <string.h>

#include "config.h"

static const char site[] = "maximum: {memory: 4G, wall: 1h, pids: 100}\n"
			   "post_process: {tables: {scores: [value]}}\n"
			   "query: {role: reader}\n";

static void check_site(const struct config *c)
{
	const json_t *tables = json_object_get(c->post_process, "tables");

	PROMISE(c->maximum.value[LIMIT_MEMORY] <= 4ULL << 30);
	PROMISE(c->maximum.value[LIMIT_WALL] <= 3600 * NSEC_PER_SEC);
	PROMISE(c->maximum.value[LIMIT_PIDS] <= 100);
	PROMISE(json_object_size(tables) == 1 && json_object_get(tables, "scores"));
	PROMISE(strcmp(json_string_value(json_object_get(c->query, "role")), "reader") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_config_ struct config c = {0};
	_cleanup_free_ char *text = fuzz_text(data, size);
	struct error err = ERROR_INIT;

	if (config_parse(&c, text, size, "fuzz", false, &err) < 0)
		PROMISE(err.kind == ERROR_USAGE && strncmp(err.message, "fuzz:", 5) == 0);
	PROMISE(config_parse(&c, site, strlen(site), "site", true, NULL) == 0);
	PROMISE(config_finish(&c, NULL) == 0);
	check_site(&c);
	PROMISE(c.workspace_root[0] == '/');
	PROMISE(!strchr(c.workspace_prefix, '/') && c.workspace_prefix[0] && c.workspace_prefix[0] != '.');
	PROMISE(!c.defaults.id && !c.defaults.command && !c.defaults.again);
	return 0;
}
