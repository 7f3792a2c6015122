/*
 * A picture out of an output, for a page of ours to show: a PNG that we have made, whatever the output is.
 */
#include "pages.h"

#include <errno.h>
#include <string.h>

#include "picture.h"
#include "text.h"

bool pages_is_image(const struct ask *a)
{
	return a->n_parts == 3 && strcmp(a->parts[0], "a") == 0 && strcmp(a->parts[2], "image") == 0;
}

static int side_of(const struct ask *a, uint32_t *ret, struct error *err)
{
	static const uint32_t sides[] = {PICTURE_SMALL, PICTURE_WIDE};
	const char *text = ask_param(a, "width");
	int n = PICTURE_SMALL;

	if (text && int_parse(text, 1, INT32_MAX, &n) < 0)
		n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
		if (sides[i] == (uint32_t)n) {
			*ret = sides[i];
			return 0;
		}
	return error_set(err, ERROR_USAGE, "width wants 320 or 1280, not '%s'", SHOWN(32, text));
}

/* Who names the digest gets this content, today and tomorrow. */
static bool names_digest(const struct ask *a, const struct output *o)
{
	const char *text = ask_param(a, "sha256");
	char digest[DIGEST_TEXT_SIZE];

	hex_encode(o->sha256, DIGEST_SIZE, digest);
	return text && strcmp(text, digest) == 0;
}

int page_image(struct hood *h, struct pictures *pictures, const struct ask *a, struct answer *ret,
	       struct error *err)
{
	_cleanup_attempt_ struct attempt attempt;
	const struct output *o;
	struct ledger *l;
	uint32_t side = 0;

	attempt_init(&attempt);
	if (side_of(a, &side, err) < 0 || output_find(h, a, &attempt, &l, &o, err) < 0 ||
	    picture_of_output(pictures, l, o, side, &ret->body, err) < 0)
		return -EINVAL;
	ret->type = "image/png";
	ret->is_constant = names_digest(a, o);
	return 0;
}
