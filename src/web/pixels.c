#include "pixels.h"

#include <errno.h>
#include <png.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void pixels_done(struct pixels *p)
{
	free(p->data);
	*p = (struct pixels){0};
}

static uint32_t scaled(uint32_t length, uint32_t side, uint32_t longest)
{
	uint64_t n = ((uint64_t)length * side + longest / 2) / longest;

	return n ? (uint32_t)n : 1;
}

void pixels_fit(uint32_t width, uint32_t height, uint32_t side, struct pixels *ret)
{
	uint32_t longest = width > height ? width : height;

	ret->width = longest <= side ? width : scaled(width, side, longest);
	ret->height = longest <= side ? height : scaled(height, side, longest);
}

/* ---- scaling ---- */

/*
 * Lengths are whole numbers: a pixel that comes in is as wide as what goes out has pixels, one that goes out as wide as what comes in has.
 * A sum is at most 255 * 255 * 65535 * 65535.
 */
int scaler_open(struct scaler *s, uint32_t width, uint32_t height, struct pixels *to)
{
	*s = (struct scaler){.width = width, .height = height, .to = to, .missing = height};
	s->across = calloc(to->width, PIXEL_SIZE * sizeof *s->across);
	s->sum = calloc(to->width, PIXEL_SIZE * sizeof *s->sum);
	to->data = calloc((size_t)to->width * to->height, PIXEL_SIZE);
	if (s->across && s->sum && to->data)
		return 0;
	scaler_done(s);
	pixels_done(to);
	return -ENOMEM;
}

void scaler_done(struct scaler *s)
{
	free(s->across);
	free(s->sum);
	s->across = s->sum = NULL;
}

static void spread_across(struct scaler *s, const uint8_t *in)
{
	uint64_t *out = s->across;
	uint32_t missing = s->width;

	memset(s->across, 0, s->to->width * PIXEL_SIZE * sizeof *s->across);
	for (uint32_t x = 0; x < s->width; x++, in += PIXEL_SIZE)
		for (uint32_t rest = s->to->width, part; rest; rest -= part) {
			uint64_t opacity;

			part = rest < missing ? rest : missing;
			opacity = (uint64_t)in[3] * part;
			out[0] += in[0] * opacity;
			out[1] += in[1] * opacity;
			out[2] += in[2] * opacity;
			out[3] += opacity;
			missing -= part;
			if (!missing) {
				out += PIXEL_SIZE;
				missing = s->width;
			}
		}
}

static void finish_row(struct scaler *s)
{
	uint64_t area = (uint64_t)s->width * s->height;
	uint8_t *out = s->to->data + (size_t)s->made * s->to->width * PIXEL_SIZE;
	const uint64_t *sum = s->sum;

	for (uint32_t x = 0; x < s->to->width; x++, sum += PIXEL_SIZE, out += PIXEL_SIZE) {
		uint64_t opacity = sum[3];

		for (int i = 0; opacity && i < 3; i++)
			out[i] = (uint8_t)((sum[i] + opacity / 2) / opacity);
		out[3] = (uint8_t)((opacity + area / 2) / area);
	}
	memset(s->sum, 0, s->to->width * PIXEL_SIZE * sizeof *s->sum);
	s->made++;
	s->missing = s->height;
}

void scaler_row(struct scaler *s, const uint8_t *row)
{
	spread_across(s, row);
	for (uint32_t rest = s->to->height, part; rest && s->made < s->to->height; rest -= part) {
		part = rest < s->missing ? rest : s->missing;
		for (size_t i = 0; i < (size_t)s->to->width * PIXEL_SIZE; i++)
			s->sum[i] += s->across[i] * part;
		s->missing -= part;
		if (!s->missing)
			finish_row(s);
	}
}

/* ---- as a PNG ---- */

struct writing {
	struct buffer out;
	size_t max;
	bool is_over;
};

static void on_write(png_structp png, png_bytep data, size_t size)
{
	struct writing *w = png_get_io_ptr(png);

	w->is_over = size > w->max - w->out.size;
	if (w->is_over)
		png_error(png, "too much");
	buffer_append(&w->out, data, size);
}

static void on_flush(png_structp png UNUSED)
{
}

static _Noreturn void on_error(png_structp png, png_const_charp why UNUSED)
{
	png_longjmp(png, 1);
}

static void on_warning(png_structp png UNUSED, png_const_charp why UNUSED)
{
}

static bool is_opaque(const struct pixels *p)
{
	for (size_t i = 0; i < (size_t)p->width * p->height; i++)
		if (p->data[i * PIXEL_SIZE + 3] != 255)
			return false;
	return true;
}

static void write_png(png_structp png, png_infop info, const struct pixels *p)
{
	bool opaque = is_opaque(p);

	png_set_IHDR(png, info, p->width, p->height, 8, opaque ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_RGBA,
		     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(png, info);
	if (opaque)
		png_set_filler(png, 0, PNG_FILLER_AFTER);
	for (uint32_t y = 0; y < p->height; y++)
		png_write_row(png, p->data + (size_t)y * p->width * PIXEL_SIZE);
	png_write_end(png, NULL);
}

/* libpng comes back here when it cannot go on, so that nothing is declared in between. */
static int try_to_write(png_structp png, png_infop info, const struct pixels *p)
{
	if (setjmp(png_jmpbuf(png)))
		return -1;
	write_png(png, info, p);
	return 0;
}

int pixels_encode(const struct pixels *p, size_t max, struct buffer *ret, struct error *err)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	struct writing w = {.max = max};
	int r = -1;

	if (info) {
		png_set_write_fn(png, &w, on_write, on_flush);
		r = try_to_write(png, info, p);
	}
	png_destroy_write_struct(&png, &info);
	if (r == 0 && buffer_check(&w.out, err) == 0) {
		buffer_append(ret, w.out.data, w.out.size);
		r = buffer_check(ret, err);
	} else {
		r = w.is_over ? 1 : error_memory(err);
	}
	buffer_free(&w.out);
	return r;
}
