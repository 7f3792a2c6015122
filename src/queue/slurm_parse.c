#include "slurm_parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "macros.h"
#include "text.h"

static const struct {
	const char *name;
	enum slurm_phase phase;
} states[] = {
	{"PENDING", SLURM_PENDING},	 {"REQUEUED", SLURM_PENDING},	{"REQUEUE_FED", SLURM_PENDING},
	{"REQUEUE_HOLD", SLURM_PENDING}, {"COMPLETED", SLURM_DONE},	{"FAILED", SLURM_DONE},
	{"SPECIAL_EXIT", SLURM_DONE},	 {"TIMEOUT", SLURM_TIMEOUT},	{"OUT_OF_MEMORY", SLURM_OOM},
	{"CANCELLED", SLURM_CANCELLED},	 {"NODE_FAIL", SLURM_LOST},	{"BOOT_FAIL", SLURM_LOST},
	{"PREEMPTED", SLURM_LOST},	 {"DEADLINE", SLURM_LOST},	{"REVOKED", SLURM_LOST},
	{"LAUNCH_FAILED", SLURM_LOST},	 {"RECONFIG_FAIL", SLURM_LOST},
};

static enum slurm_phase phase_of(const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (strcmp(states[i].name, state) == 0)
			return states[i].phase;
	return SLURM_ACTIVE;
}

/* Digits only, and not too many. */
static int number(const char *text, size_t size, int *ret)
{
	char room[12];

	if (size == 0 || size >= sizeof room || strspn(text, "0123456789") < size)
		return -EINVAL;
	memcpy(room, text, size);
	room[size] = 0;
	return int_parse(room, 0, INT32_MAX, ret);
}

/* "123_4", "123". A range of tasks ("123_[4-9]") is none: it was asked for one line each. */
static int job_split(const char *job, int *ret_index)
{
	const char *mark = strchr(job, '_');
	int ignored;

	*ret_index = 0;
	if (number(job, mark ? (size_t)(mark - job) : strlen(job), &ignored) < 0)
		return -EINVAL;
	return mark ? number(mark + 1, strlen(mark + 1), ret_index) : 0;
}

/* The text up to the next '|' into out, without what could be no word of Slurm's. */
static int field_take(const char **at, const char *end, char *out, size_t room)
{
	const char *bar = memchr(*at, '|', (size_t)(end - *at));
	size_t size = bar ? (size_t)(bar - *at) : 0;

	if (!bar || size >= room)
		return -EINVAL;
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)(*at)[i] < ' ' || (unsigned char)(*at)[i] >= 127)
			return -EINVAL;
	memcpy(out, *at, size);
	out[size] = 0;
	*at = bar + 1;
	return 0;
}

/* The same for what people read, which Slurm, its plugins and the names of nodes make as long as they like: cut, and without what is no
 * plain letter. A line that is ours must not be overlooked for it. */
static int field_take_words(const char **at, const char *end, char *out, size_t room)
{
	const char *bar = memchr(*at, '|', (size_t)(end - *at));
	size_t size = bar ? (size_t)(bar - *at) : 0;

	if (!bar)
		return -EINVAL;
	if (size >= room)
		size = room - 1;
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)(*at)[i];

		out[i] = c < ' ' || c >= 127 ? '?' : (char)c;
	}
	out[size] = 0;
	*at = bar + 1;
	return 0;
}

static void forget_none(char *text)
{
	if (strcmp(text, "None") == 0 || strcmp(text, "(null)") == 0 || strcmp(text, "N/A") == 0)
		*text = 0;
}

static int status_of(int wait_status)
{
	return (wait_status & 0x7f) ? 128 + (wait_status & 0x7f) : wait_status >> 8 & 0xff;
}

int slurm_seen_parse(const char *line, size_t size, struct slurm_seen *ret)
{
	const char *at = line, *end = line + size;
	struct slurm_seen s = {0};
	char status[16];
	int code = 0;

	if (field_take(&at, end, s.job, sizeof s.job) < 0 || job_split(s.job, &s.index) < 0 ||
	    field_take(&at, end, s.state, sizeof s.state) < 0 || !*s.state ||
	    field_take_words(&at, end, s.reason, sizeof s.reason) < 0 ||
	    field_take_words(&at, end, s.node, sizeof s.node) < 0 ||
	    field_take(&at, end, status, sizeof status) < 0 || number(status, strlen(status), &code) < 0 ||
	    field_take(&at, end, s.name, sizeof s.name) < 0 || at != end)
		return -EINVAL;
	forget_none(s.reason);
	forget_none(s.node);
	s.phase = phase_of(s.state);
	s.status = status_of(code);
	*ret = s;
	return 0;
}

int slurm_job_parse(const char *text, char out[SLURM_JOB_ROOM])
{
	size_t size = strcspn(text, ";\n");
	int ignored;

	if (size >= SLURM_JOB_ROOM || number(text, size, &ignored) < 0)
		return -EINVAL;
	/* What a wrapper of the site's prints after it is no id. */
	if (text[size] == '\n' && text[size + 1])
		return -EINVAL;
	memcpy(out, text, size);
	out[size] = 0;
	return 0;
}

int slurm_setting_parse(const char *text, const char *key, char *out, size_t room)
{
	size_t length = strlen(key);

	for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		const char *value = at + length;
		size_t size;

		if (strncmp(at, key, length) != 0)
			continue;
		value += strspn(value, " \t");
		if (*value != '=')
			continue;
		value += 1 + strspn(value + 1, " \t");
		size = strcspn(value, "\n");
		while (size && (value[size - 1] == ' ' || value[size - 1] == '\t'))
			size--;
		if (size == 0 || size >= room)
			return -EINVAL;
		memcpy(out, value, size);
		out[size] = 0;
		return 0;
	}
	return -ENOENT;
}

/* Slurm has numbers for these, and its commands print only the words (slurm_errno.c). What stands in neither list is
 * tried again, and shown meanwhile; an analysis must not come to its end by a word that we do not know, nor must others wait for it. */
static const char *const passing[] = {
	"Unable to contact slurm controller",
	"Required partition not available",
	"Requested partition configuration not available now",
	"Invalid authentication credential",
	"Invalid job credential",
	"Invalid user id",
};
static const char *const refused[] = {
	"Invalid ",
	"invalid ",
	"Requested ",
	"Memory specification can not be satisfied",
	"Memory required by task is not available",
	"CPU count per node can not be satisfied",
	"CPU count specification invalid",
	"Node count specification invalid",
	"Use of the resource is not permitted",
	"User's group not permitted",
	"Job has invalid",
	"Pathname of a file, directory or other parameter too long",
	"Job violates accounting/QOS policy",
	"More processors requested than permitted",
	"Unspecified or invalid account",
	"Unable to allocate resources: Invalid",
	"Unable to allocate resources: Requested",
};

static bool starts_with_one(const char *text, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(text, list[i], strlen(list[i])) == 0)
			return true;
	return false;
}

/* What stands in front is no part of the reason. */
static const char *sentence_of(const char *line, size_t *size)
{
	static const char *const fronts[] = {"sbatch: ",
					     "squeue: ",
					     "scancel: ",
					     "scontrol: ",
					     "error: ",
					     "fatal: ",
					     "Batch job submission failed: ",
					     "slurm_load_jobs error: ",
					     "slurm_load_ctl_conf error: "};

	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
		size_t length = strlen(fronts[i]);

		if (*size < length || memcmp(line, fronts[i], length) != 0)
			continue;
		line += length;
		*size -= length;
	}
	return line;
}

/* The last line has what Slurm came to, and the first is often nearer to the reason. */
static void put_sentence(const char *text, char *out, size_t room, const char **ret_last)
{
	const char *first = NULL, *last = "";
	size_t first_size = 0, last_size = 0;
	_cleanup_buffer_ struct buffer b = {0};

	for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		size_t size = strcspn(at, "\n");
		const char *sentence = sentence_of(at, &size);

		if (size == 0 || strncmp(at, "Try \"", 5) == 0)
			continue;
		if (!first) {
			first = sentence;
			first_size = size;
		}
		last = sentence;
		last_size = size;
	}
	*ret_last = last;
	buffer_append(&b, last, last_size);
	if (first && first != last) {
		buffer_puts(&b, " (");
		buffer_append(&b, first, first_size);
		buffer_puts(&b, ")");
	}
	text_escape_into(out, room, b.data ? b.data : "", b.size);
}

enum slurm_failure slurm_failure_parse(const char *text, char *out, size_t room)
{
	const char *last;

	put_sentence(text, out, room, &last);
	if (strstr(text, "unrecognized option") || strstr(text, "option requires an argument") ||
	    strstr(text, "unrecognized argument"))
		return SLURM_MISUSED;
	/* "AssocMaxSubmitJobLimit": there is room again when others have ended, and perhaps there is for fewer now. */
	if (strstr(text, "SubmitJob") || strstr(text, "Slurm temporarily unable to accept job"))
		return SLURM_FULL;
	if (starts_with_one(last, passing, ARRAY_SIZE(passing)))
		return SLURM_PASSING;
	return starts_with_one(last, refused, ARRAY_SIZE(refused)) ? SLURM_REFUSED : SLURM_STRANGE;
}
