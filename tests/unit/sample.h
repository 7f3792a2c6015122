/*
 * Pictures to be decoded, made as others would make them: by libpng and libjpeg, and by hand where no encoder would do it.
 */
#ifndef TESTS_SAMPLE_H
#define TESTS_SAMPLE_H

#include <png.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <jpeglib.h> /* wants size_t and FILE */

#include "buffer.h"

/* Left half red, right half blue; a type with opacity is wholly transparent on the right. */
struct png_shape {
	uint32_t width, height;
	int depth, type, interlace;
};

static void sample_append(png_structp png, png_bytep data, size_t size)
{
	buffer_append(png_get_io_ptr(png), data, size);
}

static void sample_flush(png_structp png UNUSED)
{
}

/* One pixel's samples, in the order of the type. */
static int sample_pixel(const struct png_shape *s, bool is_left, unsigned out[4])
{
	unsigned most = (1U << s->depth) - 1;

	switch (s->type) {
	case PNG_COLOR_TYPE_PALETTE:
		out[0] = is_left ? 0 : 1;
		return 1;
	case PNG_COLOR_TYPE_GRAY:
		out[0] = is_left ? 0 : most;
		return 1;
	default:
		out[0] = is_left ? most : 0;
		out[1] = 0;
		out[2] = is_left ? 0 : most;
		out[3] = is_left ? most : 0;
		return s->type == PNG_COLOR_TYPE_RGBA ? 4 : 3;
	}
}

static void sample_row(const struct png_shape *s, uint8_t *row)
{
	size_t bit = 0;

	memset(row, 0, (size_t)s->width * 8 + 8);
	for (uint32_t x = 0; x < s->width; x++) {
		unsigned samples[4];
		int n = sample_pixel(s, x < s->width / 2, samples);

		for (int i = 0; i < n; i++, bit += (size_t)s->depth)
			if (s->depth == 16)
				row[bit / 8] = row[bit / 8 + 1] = samples[i] ? 0xff : 0;
			else
				row[bit / 8] |= (uint8_t)(samples[i] << (8 - (size_t)s->depth - bit % 8));
	}
}

static void sample_png(const struct png_shape *s, struct buffer *out)
{
	static const png_color palette[] = {{255, 0, 0}, {0, 0, 255}};
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	uint8_t *row = malloc((size_t)s->width * 8 + 8);
	int passes;

	png_set_write_fn(png, out, sample_append, sample_flush);
	png_set_IHDR(png, info, s->width, s->height, s->depth, s->type, s->interlace,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	if (s->type == PNG_COLOR_TYPE_PALETTE)
		png_set_PLTE(png, info, palette, 2);
	png_write_info(png, info);
	sample_row(s, row);
	passes = png_set_interlace_handling(png);
	for (uint32_t y = 0; y < s->height * (uint32_t)passes; y++)
		png_write_row(png, row);
	png_write_end(png, NULL);
	png_destroy_write_struct(&png, &info);
	free(row);
}

/* A chunk with a right CRC, whatever is in it. */
static void sample_chunk(struct buffer *out, const char *name, const void *data, uint32_t size)
{
	uint32_t crc = (uint32_t)crc32(0, (const uint8_t *)name, 4);
	uint8_t number[4];

	if (size)
		crc = (uint32_t)crc32(crc, data, size);
	png_save_uint_32(number, size);
	buffer_append(out, number, 4);
	buffer_append(out, name, 4);
	buffer_append(out, data, size);
	png_save_uint_32(number, crc);
	buffer_append(out, number, 4);
}

/* Black, and says that it is so large: zeros that deflate to next to nothing, as many bytes as wanted. */
static void sample_bomb(uint32_t width, uint32_t height, size_t zeros, struct buffer *out)
{
	uint8_t head[13] = {0}, *plain = calloc(zeros ? zeros : 1, 1), *packed;
	uLongf size = compressBound(zeros);

	packed = malloc(size);
	compress2(packed, &size, plain, zeros, 9);
	png_save_uint_32(head, width);
	png_save_uint_32(head + 4, height);
	head[8] = 8;
	buffer_append(out, "\x89PNG\r\n\x1a\n", 8);
	sample_chunk(out, "IHDR", head, sizeof head);
	sample_chunk(out, "IDAT", packed, (uint32_t)size);
	sample_chunk(out, "IEND", NULL, 0);
	free(plain);
	free(packed);
}

/* What a camera says of itself: one entry in either order of bytes, with a place behind it. */
static void sample_exif(bool is_little, unsigned orientation, struct buffer *out)
{
	static const uint8_t big[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0",
			     little[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0";

	buffer_append(out, is_little ? little : big, sizeof big - 1);
	out->data[is_little ? 24 : 25] = (char)orientation;
	buffer_puts(out, "secret place");
}

/* The same halves as a JPEG; four inks as Adobe has them; exif: what a camera says of itself, or NULL. */
static void sample_jpeg(uint32_t width, uint32_t height, J_COLOR_SPACE space, bool progressive,
			const struct buffer *exif, struct buffer *out)
{
	static const uint8_t colours[][2][4] = {
		{{255, 0, 0}, {0, 0, 255}}, {{255, 0, 0, 255}, {0, 0, 255, 255}}, {{0}, {255}}};
	int kind = space == JCS_CMYK	    ? 1
		   : space == JCS_GRAYSCALE ? 2
					    : 0,
	    n = kind == 1   ? 4
		: kind == 2 ? 1
			    : 3;
	struct jpeg_compress_struct jpeg = {0};
	struct jpeg_error_mgr errors;
	unsigned char *data = NULL;
	unsigned long size = 0;
	uint8_t *row = malloc((size_t)width * 4);
	JSAMPROW rows[] = {row};

	for (uint32_t x = 0; x < width; x++)
		memcpy(row + x * (uint32_t)n, colours[kind][x < width / 2 ? 0 : 1], (size_t)n);
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_compress(&jpeg);
	jpeg_mem_dest(&jpeg, &data, &size);
	jpeg.image_width = width;
	jpeg.image_height = height;
	jpeg.input_components = n;
	jpeg.in_color_space = space;
	jpeg_set_defaults(&jpeg);
	jpeg_set_quality(&jpeg, 95, TRUE);
	if (progressive)
		jpeg_simple_progression(&jpeg);
	jpeg_start_compress(&jpeg, TRUE);
	if (exif)
		jpeg_write_marker(&jpeg, JPEG_APP0 + 1, (const JOCTET *)exif->data, (unsigned)exif->size);
	while (jpeg.next_scanline < height)
		jpeg_write_scanlines(&jpeg, rows, 1);
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	buffer_append(out, data, size);
	free(data);
	free(row);
}

#endif
