#include "picture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "fetch.h"
#include "picture_box.h"
#include "picture_decode.h"
#include "text.h"

enum { WAIT_S = 5, KEPT_BYTES_MAX = 2 * 1024 * 1024, KEPT_MAX = 256 };

/* What its parent sees beside enum picture_fault: outside of the room that it has. */
enum { FAULT_LATE = 1000, FAULT_KILLED };

/* ---- why there is none ---- */

static int refuse(int fault, const char *name, struct error *err)
{
	static const struct {
		int fault;
		const char *why;
	} reasons[] = {
		{PICTURE_UNKNOWN, "it is neither a PNG nor a JPEG inside"},
		{PICTURE_DAMAGED, "it is cut short or damaged"},
		{PICTURE_LARGE,
		 "it is too large: at most 16 MiB and 64 million pixels are decoded, 16 million of one that is interlaced or progressive"},
		{PICTURE_UNSAFE, "this kernel has no seccomp filter behind which it could be decoded safely"},
		{FAULT_LATE, "it was not decoded within 5 seconds"},
		{FAULT_KILLED, "its decoder did what it may not, and was killed"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].fault == fault)
			return error_set(err, ERROR_REFUSED,
					 "the picture '%s' is not shown, because %s; it can be saved",
					 SHOWN(128, name), reasons[i].why);
	return error_set(
		err, ERROR_REFUSED,
		"the picture '%s' is not shown, because its decoder failed (status %d); it can be saved",
		SHOWN(128, name), fault);
}

/* ---- the child, seen from outside ---- */

/* 0, or the fault; negative: it could not be asked. */
static int ask_child(int fd, uint32_t side, struct child_end *end, struct error *err)
{
	char word[16];
	const char *const argv[] = {"fumehood", "picture", word, NULL}, *const env[] = {NULL};
	const struct child_order order = {
		.path = "/proc/self/exe",
		.argv = argv,
		.env = env,
		.reads_fd = true,
		.input_fd = fd,
		.timeout_ns = WAIT_S * NSEC_PER_SEC,
		.output_max = PICTURE_HEAD + (size_t)side * side * PIXEL_SIZE,
	};

	snprintf(word, sizeof word, "%u", side);
	if (child_run(&order, end, err) < 0)
		return -EINVAL;
	if (end->is_late || end->status == 128 + SIGXCPU || end->status == 128 + SIGKILL)
		return FAULT_LATE;
	return end->status >= 128 ? FAULT_KILLED : end->status;
}

/* What came may be anybody's word by now: it is as large as it says and as was asked, or nothing. The pixels stay the child's. */
static int read_pixels(const struct child_end *end, uint32_t side, struct pixels *ret)
{
	uint32_t head[2];

	if (end->is_cut || end->out.size < PICTURE_HEAD)
		return PICTURE_DAMAGED;
	memcpy(head, end->out.data, PICTURE_HEAD);
	if (head[0] == 0 || head[1] == 0 || head[0] > side || head[1] > side ||
	    end->out.size != PICTURE_HEAD + (size_t)head[0] * head[1] * PIXEL_SIZE)
		return PICTURE_DAMAGED;
	*ret = (struct pixels){head[0], head[1], (uint8_t *)end->out.data + PICTURE_HEAD};
	return 0;
}

static int halve(const struct pixels *p, struct pixels *ret, struct error *err)
{
	struct scaler s;

	pixels_fit(p->width, p->height, (p->width > p->height ? p->width : p->height) / 2, ret);
	if (scaler_open(&s, p->width, p->height, ret) < 0)
		return error_memory(err);
	for (uint32_t y = 0; y < p->height; y++)
		scaler_row(&s, p->data + (size_t)y * p->width * PIXEL_SIZE);
	scaler_done(&s);
	return 0;
}

/* Noise does not become smaller by being encoded: then the picture does. */
static int encode(const struct pixels *p, struct buffer *png, struct error *err)
{
	_cleanup_pixels_ struct pixels smaller = {0};
	int r = pixels_encode(p, PICTURE_PNG_MAX, png, err);

	if (r <= 0)
		return r;
	if (halve(p, &smaller, err) < 0)
		return -EINVAL;
	return encode(&smaller, png, err);
}

/* 0, or the fault; negative: our own failure. */
static int make(int fd, uint32_t side, struct buffer *png, struct error *err)
{
	_cleanup_child_ struct child_end end = {0};
	struct pixels p;
	int fault = ask_child(fd, side, &end, err);

	if (fault == 0)
		fault = read_pixels(&end, side, &p);
	return fault ? fault : encode(&p, png, err);
}

int picture_of_file(int fd, const char *name, uint32_t side, struct buffer *png, struct error *err)
{
	int fault = make(fd, side, png, err);

	return fault > 0 ? refuse(fault, name, err) : fault;
}

/* ---- what is kept ---- */

struct kept {
	struct kept *next; /* the one that was asked for before */
	uint8_t sha256[DIGEST_SIZE];
	uint32_t side;
	int fault;
	struct buffer png;
};

struct pictures {
	struct kept *latest;
};

static void kept_free(struct kept *k)
{
	buffer_free(&k->png);
	free(k);
}

int pictures_open(struct pictures **ret, struct error *err)
{
	*ret = calloc(1, sizeof **ret);
	return *ret ? 0 : error_memory(err);
}

struct pictures *pictures_close(struct pictures *p)
{
	for (struct kept *next, *k = p ? p->latest : NULL; k; k = next) {
		next = k->next;
		kept_free(k);
	}
	free(p);
	return NULL;
}

static struct kept *find(struct pictures *p, const struct output *o, uint32_t side)
{
	for (struct kept **at = &p->latest, *k; (k = *at); at = &k->next)
		if (k->side == side && memcmp(k->sha256, o->sha256, DIGEST_SIZE) == 0) {
			*at = k->next;
			k->next = p->latest;
			return p->latest = k;
		}
	return NULL;
}

/* Those that nobody has asked for longest go. */
static void keep(struct pictures *p, struct kept *k)
{
	size_t bytes = 0, n = 0;

	k->next = p->latest;
	p->latest = k;
	for (struct kept **at = &p->latest; *at;) {
		struct kept *one = *at;

		bytes += one->png.size;
		if (++n > KEPT_MAX || bytes > KEPT_BYTES_MAX) {
			*at = one->next;
			bytes -= one->png.size;
			kept_free(one);
		} else {
			at = &one->next;
		}
	}
}

bool picture_is_likely(const struct output *o)
{
	return o->media_type &&
	       (strcmp(o->media_type, "image/png") == 0 || strcmp(o->media_type, "image/jpeg") == 0);
}

static int make_output(struct ledger *l, const struct output *o, uint32_t side, struct buffer *png,
		       struct error *err)
{
	_cleanup_close_ int fd = -1;

	if (o->size > PICTURE_BYTES_MAX)
		return PICTURE_LARGE;
	if (fetch_open(l, o, &fd, err) < 0)
		return -EINVAL;
	return make(fd, side, png, err);
}

static int answer(const struct kept *k, const struct output *o, struct buffer *png, struct error *err)
{
	if (k->fault)
		return refuse(k->fault, o->path, err);
	buffer_append(png, k->png.data, k->png.size);
	return buffer_check(png, err);
}

int picture_of_output(struct pictures *p, struct ledger *l, const struct output *o, uint32_t side,
		      struct buffer *png, struct error *err)
{
	struct kept *k = find(p, o, side);
	int r;

	if (k)
		return answer(k, o, png, err);
	k = calloc(1, sizeof *k);
	if (!k)
		return error_memory(err);
	k->side = side;
	memcpy(k->sha256, o->sha256, DIGEST_SIZE);
	k->fault = make_output(l, o, side, &k->png, err);
	if (k->fault < 0) {
		kept_free(k);
		return -EINVAL;
	}
	r = answer(k, o, png, err);
	keep(p, k);
	return r;
}
