/*
 * A PNG's pixels. Its size is looked at before libpng is asked for anything, and of all that is not pixels libpng reads nothing but what is
 * transparent.
 */
#include "picture_decode.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_END = 24 }; /* the mark, a chunk's length and name, width and height */

struct reading {
	const uint8_t *at;
	size_t left;
	png_structp png;
	png_infop info;
	uint8_t *rows; /* one, or all of an interlaced one */
	struct scaler scaler;
	struct pixels *to;
	enum picture_fault fault;
};

/* Known to libpng, and of no use here. */
static const char left_out[] =
	"bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0sTER\0tEXt\0tIME\0zTXt";

static _Noreturn void on_error(png_structp png, png_const_charp why UNUSED)
{
	png_longjmp(png, 1);
}

static void on_warning(png_structp png UNUSED, png_const_charp why UNUSED)
{
}

static void on_read(png_structp png, png_bytep to, size_t size)
{
	struct reading *r = png_get_io_ptr(png);

	if (size > r->left)
		png_error(png, "cut short");
	memcpy(to, r->at, size);
	r->at += size;
	r->left -= size;
}

/* Whatever it is, as eight bits of red, green, blue and opacity. */
static int ask_for_pixels(png_structp png)
{
	png_set_expand(png);
	png_set_scale_16(png);
	png_set_gray_to_rgb(png);
	png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
	return png_set_interlace_handling(png);
}

static _Noreturn void give_up(struct reading *r, enum picture_fault fault)
{
	r->fault = fault;
	png_longjmp(r->png, 1);
}

static void read_interlaced(struct reading *r, int passes, uint32_t height, size_t stride)
{
	for (int pass = 0; pass < passes; pass++)
		for (uint32_t y = 0; y < height; y++)
			png_read_row(r->png, r->rows + y * stride, NULL);
	for (uint32_t y = 0; y < height; y++)
		scaler_row(&r->scaler, r->rows + y * stride);
}

static void read_rows(struct reading *r, uint32_t height)
{
	for (uint32_t y = 0; y < height; y++) {
		png_read_row(r->png, r->rows, NULL);
		scaler_row(&r->scaler, r->rows);
	}
}

static void read_png(struct reading *r)
{
	uint32_t width, height;
	size_t stride;
	int passes;

	png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep)left_out,
				    sizeof left_out / 5);
	png_set_user_limits(r->png, PICTURE_SIDE_MAX, PICTURE_SIDE_MAX);
	png_read_info(r->png, r->info);
	width = png_get_image_width(r->png, r->info);
	height = png_get_image_height(r->png, r->info);
	passes = ask_for_pixels(r->png);
	png_read_update_info(r->png, r->info);
	stride = (size_t)width * PIXEL_SIZE;
	if (png_get_rowbytes(r->png, r->info) != stride)
		give_up(r, PICTURE_DAMAGED);
	if (passes > 1 && (uint64_t)width * height > PICTURE_WHOLE_MAX)
		give_up(r, PICTURE_LARGE);
	r->rows = calloc(passes > 1 ? height : 1, stride);
	if (!r->rows || scaler_open(&r->scaler, width, height, r->to) < 0)
		give_up(r, PICTURE_LARGE);
	if (passes > 1)
		read_interlaced(r, passes, height, stride);
	else
		read_rows(r, height);
	png_read_end(r->png, NULL);
}

/* libpng comes back here when it cannot go on, so that nothing is declared in between. */
static enum picture_fault try_to_read(struct reading *r)
{
	if (setjmp(png_jmpbuf(r->png)))
		return r->fault;
	read_png(r);
	return PICTURE_FINE;
}

static uint32_t number(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static enum picture_fault judge_size(const struct picture_order *o, struct pixels *to)
{
	uint32_t width, height;

	if (o->size < HEADER_END || memcmp(o->data + 12, "IHDR", 4) != 0)
		return PICTURE_DAMAGED;
	width = number(o->data + 16);
	height = number(o->data + 20);
	if (width == 0 || height == 0)
		return PICTURE_DAMAGED;
	if (width > PICTURE_SIDE_MAX || height > PICTURE_SIDE_MAX || (uint64_t)width * height > o->pixels_max)
		return PICTURE_LARGE;
	pixels_fit(width, height, o->side, to);
	return PICTURE_FINE;
}

enum picture_fault picture_decode_png(const struct picture_order *o, struct pixels *ret)
{
	struct reading r = {.at = o->data, .left = o->size, .to = ret, .fault = PICTURE_DAMAGED};
	enum picture_fault fault = judge_size(o, ret);

	if (fault != PICTURE_FINE)
		return fault;
	r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
	r.info = r.png ? png_create_info_struct(r.png) : NULL;
	fault = PICTURE_LARGE;
	if (r.info) {
		png_set_read_fn(r.png, &r, on_read);
		fault = try_to_read(&r);
	}
	png_destroy_read_struct(&r.png, &r.info, NULL);
	scaler_done(&r.scaler);
	free(r.rows);
	return fault;
}
