/*
 * A JPEG's pixels.
 */
#include "picture_decode.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "picture_turn.h"

/* A file of some kilobytes may ask for the whole picture to be gone over thousands of times. */
enum { SCANS_MAX = 64 };

struct reading {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	uint8_t *row, *pixels;
	struct scaler scaler;
	struct pixels *to;
	enum picture_fault fault;
};

static _Noreturn void give_up(struct reading *r, enum picture_fault fault)
{
	r->fault = fault;
	longjmp(r->back, 1);
}

static _Noreturn void on_error(j_common_ptr jpeg)
{
	int code = jpeg->err->msg_code;

	give_up(jpeg->client_data, code == JERR_OUT_OF_MEMORY || code == JERR_NO_BACKING_STORE
					   ? PICTURE_LARGE
					   : PICTURE_DAMAGED);
}

/* A warning is data that are wrong, which libjpeg would make up. Some cameras leave bytes between the parts. */
static void on_message(j_common_ptr jpeg, int level)
{
	if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA)
		give_up(jpeg->client_data, PICTURE_DAMAGED);
}

static void on_output(j_common_ptr jpeg UNUSED)
{
}

static void on_progress(j_common_ptr jpeg)
{
	const struct reading *r = jpeg->client_data;

	if (r->jpeg.input_scan_number > SCANS_MAX)
		give_up(jpeg->client_data, PICTURE_LARGE);
}

static bool has_four_inks(const struct reading *r)
{
	return r->jpeg.jpeg_color_space == JCS_CMYK || r->jpeg.jpeg_color_space == JCS_YCCK;
}

/* libjpeg can leave out most of the work where the picture is made much smaller. */
static void choose_scale(struct reading *r)
{
	r->jpeg.scale_denom = 8;
	for (r->jpeg.scale_num = 1; r->jpeg.scale_num < 8; r->jpeg.scale_num *= 2)
		if ((uint64_t)r->jpeg.image_width * r->jpeg.scale_num / 8 >= r->to->width &&
		    (uint64_t)r->jpeg.image_height * r->jpeg.scale_num / 8 >= r->to->height)
			return;
}

/* Cyan, magenta, yellow and black as they look on a screen. Adobe writes what is not covered by ink instead, and so does everybody since. */
static void from_inks(const struct reading *r, const uint8_t *inks, uint8_t *out)
{
	uint8_t turn = r->jpeg.saw_Adobe_marker ? 0 : 0xff;

	for (uint32_t x = 0; x < r->jpeg.output_width; x++, inks += 4, out += PIXEL_SIZE) {
		for (int i = 0; i < 3; i++)
			out[i] = (uint8_t)((inks[i] ^ turn) * (inks[3] ^ turn) / 255);
		out[3] = 0xff;
	}
}

static void read_rows(struct reading *r)
{
	while (r->jpeg.output_scanline < r->jpeg.output_height) {
		JSAMPROW row = r->row;

		if (jpeg_read_scanlines(&r->jpeg, &row, 1) != 1)
			give_up(r, PICTURE_DAMAGED);
		if (has_four_inks(r))
			from_inks(r, r->row, r->pixels);
		scaler_row(&r->scaler, has_four_inks(r) ? r->pixels : r->row);
	}
}

static unsigned orientation(const struct reading *r)
{
	unsigned found = 1;

	for (const struct jpeg_marker_struct *m = r->jpeg.marker_list; m && found == 1; m = m->next)
		found = picture_orientation(m->data, m->data_length);
	return found;
}

static void read_jpeg(struct reading *r, const struct picture_order *o)
{
	jpeg_mem_src(&r->jpeg, o->data, o->size);
	jpeg_save_markers(&r->jpeg, JPEG_APP0 + 1, 0xffff);
	jpeg_read_header(&r->jpeg, TRUE);
	if (r->jpeg.image_width > PICTURE_SIDE_MAX || r->jpeg.image_height > PICTURE_SIDE_MAX ||
	    (uint64_t)r->jpeg.image_width * r->jpeg.image_height > o->pixels_max)
		give_up(r, PICTURE_LARGE);
	pixels_fit(r->jpeg.image_width, r->jpeg.image_height, o->side, r->to);
	choose_scale(r);
	r->jpeg.out_color_space = has_four_inks(r) ? JCS_CMYK : JCS_EXT_RGBA;
	jpeg_start_decompress(&r->jpeg);
	r->row = calloc(r->jpeg.output_width, PIXEL_SIZE);
	r->pixels = calloc(r->jpeg.output_width, PIXEL_SIZE);
	if (!r->row || !r->pixels ||
	    scaler_open(&r->scaler, r->jpeg.output_width, r->jpeg.output_height, r->to) < 0)
		give_up(r, PICTURE_LARGE);
	read_rows(r);
	if (pixels_turn(r->to, orientation(r)) < 0)
		give_up(r, PICTURE_LARGE);
	jpeg_finish_decompress(&r->jpeg);
}

/* libjpeg comes back here when it cannot go on, so that nothing is declared in between. */
static enum picture_fault try_to_read(struct reading *r, const struct picture_order *o)
{
	if (setjmp(r->back))
		return r->fault;
	jpeg_create_decompress(&r->jpeg);
	r->jpeg.progress = &r->progress;
	r->jpeg.mem->max_memory_to_use = (long)PICTURE_WHOLE_MAX * 8;
	read_jpeg(r, o);
	return PICTURE_FINE;
}

enum picture_fault picture_decode_jpeg(const struct picture_order *o, struct pixels *ret)
{
	struct reading r = {.to = ret, .fault = PICTURE_DAMAGED};
	enum picture_fault fault;

	r.jpeg.err = jpeg_std_error(&r.errors);
	r.errors.error_exit = on_error;
	r.errors.emit_message = on_message;
	r.errors.output_message = on_output;
	r.progress.progress_monitor = on_progress;
	r.jpeg.client_data = &r;
	fault = try_to_read(&r, o);
	jpeg_destroy_decompress(&r.jpeg);
	scaler_done(&r.scaler);
	free(r.row);
	free(r.pixels);
	return fault;
}
