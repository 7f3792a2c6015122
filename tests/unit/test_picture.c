/*
 * Pictures of strangers. This program is its own child, as the command is: with words on its line it is the one in the box, or a decoder that was
 * taken over and tries what it must not.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "file.h"
#include "picture.h"
#include "picture_box.h"
#include "picture_decode.h"
#include "picture_turn.h"
#include "sample.h"

/* ---- what comes out ---- */

static enum picture_fault decode(const struct buffer *b, uint32_t side, struct pixels *ret)
{
	/* A copy of just its size, so that a sanitizer sees a read beyond it. */
	_cleanup_free_ uint8_t *data = malloc(b->size ? b->size : 1);

	*ret = (struct pixels){0};
	if (b->size)
		memcpy(data, b->data, b->size);
	return picture_decode(data, b->size, side, PICTURE_PIXELS_MAX, ret);
}

static void assert_pixel(const struct pixels *p, uint32_t x, uint32_t y, int red, int green, int blue,
			 int opacity)
{
	const uint8_t *at = p->data + ((size_t)y * p->width + x) * PIXEL_SIZE;

	/* A JPEG is near enough. */
	assert_in_range(at[0] + 8, red, red + 16);
	assert_in_range(at[1] + 8, green, green + 16);
	assert_in_range(at[2] + 8, blue, blue + 16);
	assert_int_equal(at[3], opacity);
}

static void assert_size(const struct pixels *p, uint32_t width, uint32_t height)
{
	assert_int_equal(p->width, width);
	assert_int_equal(p->height, height);
}

static void test_every_kind_of_png(void **state)
{
	static const struct {
		int depth, type;
	} kinds[] = {{8, PNG_COLOR_TYPE_RGB},	  {16, PNG_COLOR_TYPE_RGB},    {8, PNG_COLOR_TYPE_RGBA},
		     {16, PNG_COLOR_TYPE_RGBA},	  {1, PNG_COLOR_TYPE_PALETTE}, {2, PNG_COLOR_TYPE_PALETTE},
		     {4, PNG_COLOR_TYPE_PALETTE}, {8, PNG_COLOR_TYPE_PALETTE}, {1, PNG_COLOR_TYPE_GRAY},
		     {2, PNG_COLOR_TYPE_GRAY},	  {4, PNG_COLOR_TYPE_GRAY},    {8, PNG_COLOR_TYPE_GRAY},
		     {16, PNG_COLOR_TYPE_GRAY}};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
		struct png_shape s = {400, 100, kinds[i / 2].depth, kinds[i / 2].type,
				      i % 2 ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE};
		_cleanup_buffer_ struct buffer b = {0};
		_cleanup_pixels_ struct pixels p = {0};
		bool gray = s.type == PNG_COLOR_TYPE_GRAY;

		sample_png(&s, &b);
		assert_int_equal(decode(&b, 320, &p), PICTURE_FINE);
		assert_size(&p, 320, 80);
		assert_pixel(&p, 10, 40, gray ? 0 : 255, 0, 0, 255);
		if (s.type == PNG_COLOR_TYPE_RGBA)
			assert_int_equal(p.data[(40 * 320 + 310) * PIXEL_SIZE + 3], 0);
		else
			assert_pixel(&p, 310, 40, gray ? 255 : 0, gray ? 255 : 0, 255, 255);
	}
}

static void test_every_kind_of_jpeg(void **state)
{
	static const J_COLOR_SPACE spaces[] = {JCS_RGB, JCS_GRAYSCALE, JCS_CMYK};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(spaces); i++) {
		J_COLOR_SPACE space = spaces[i / 2];
		_cleanup_buffer_ struct buffer b = {0};
		_cleanup_pixels_ struct pixels p = {0};
		bool gray = space == JCS_GRAYSCALE;

		sample_jpeg(100, 4000, space, i % 2, NULL, &b);
		assert_int_equal(decode(&b, 320, &p), PICTURE_FINE);
		assert_size(&p, 8, 320);
		assert_pixel(&p, 1, 100, gray ? 0 : 255, 0, 0, 255);
		assert_pixel(&p, 6, 100, gray ? 255 : 0, gray ? 255 : 0, 255, 255);
	}
}

/* The red half was on the left: where it is seen, for each way to hold a camera. */
static void test_a_picture_is_turned_as_its_camera_says(void **state)
{
	static const struct {
		bool stands, is_second; /* red is below, or on the right */
	} seen[] = {{0},	   {false, false}, {false, true}, {false, true}, {false, false},
		    {true, false}, {true, false},  {true, true},  {true, true},	 {0}};

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(seen); i++) {
		_cleanup_buffer_ struct buffer exif = {0}, b = {0};
		_cleanup_pixels_ struct pixels p = {0};
		bool stands = seen[i / 2].stands;
		uint32_t at;

		sample_exif(i % 2, i / 2, &exif);
		sample_jpeg(400, 100, JCS_RGB, false, &exif, &b);
		assert_int_equal(decode(&b, 320, &p), PICTURE_FINE);
		assert_size(&p, stands ? 80 : 320, stands ? 320 : 80);
		at = seen[i / 2].is_second ? 310 : 10;
		assert_pixel(&p, stands ? 40 : at, stands ? at : 40, 255, 0, 0, 255);
		assert_pixel(&p, stands ? 40 : 320 - at, stands ? 320 - at : 40, 0, 0, 255, 255);
	}
}

/* No corner goes elsewhere than the others: 1 2 above 3 4, as EXIF's table has them. */
static void test_every_turn_moves_every_pixel(void **state)
{
	static const char *const turned[] = {"1234", "2143", "4321", "3412", "1324", "3142", "4231", "2413"};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(turned); i++) {
		_cleanup_pixels_ struct pixels p = {2, 2, calloc(4, PIXEL_SIZE)};

		for (unsigned k = 0; k < 4; k++)
			p.data[k * PIXEL_SIZE] = (uint8_t)('1' + k);
		assert_int_equal(pixels_turn(&p, i + 1), 0);
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(p.data[k * PIXEL_SIZE], turned[i][k]);
	}
}

static void test_what_a_camera_says_may_be_nonsense(void **state)
{
	_cleanup_buffer_ struct buffer exif = {0};

	(void)state;
	sample_exif(true, 6, &exif);
	assert_int_equal(picture_orientation((const uint8_t *)exif.data, exif.size), 6);
	for (size_t size = 0; size < exif.size; size++) {
		_cleanup_free_ uint8_t *cut = malloc(size ? size : 1);

		memcpy(cut, exif.data, size);
		assert_int_equal(picture_orientation(cut, size), size < 26 ? 1 : 6);
	}
	for (size_t at = 0; at < 28; at++)
		for (unsigned value = 0; value < 256; value++) {
			_cleanup_free_ uint8_t *wrong = malloc(exif.size);

			memcpy(wrong, exif.data, exif.size);
			wrong[at] = (uint8_t)value;
			assert_in_range(picture_orientation(wrong, exif.size), 1, 8);
		}
}

static void test_what_is_small_stays_as_it_is(void **state)
{
	struct png_shape s = {2, 1, 8, PNG_COLOR_TYPE_RGB, 0};
	_cleanup_buffer_ struct buffer b = {0};
	_cleanup_pixels_ struct pixels p = {0};

	(void)state;
	sample_png(&s, &b);
	assert_int_equal(decode(&b, 320, &p), PICTURE_FINE);
	assert_size(&p, 2, 1);
	assert_memory_equal(p.data, "\xff\0\0\xff\0\0\xff\xff", 8);
}

/* A line of black and white becomes gray, by area; what cannot be seen has no colour to give. */
static void test_a_pixel_is_the_mean_of_what_lies_under_it(void **state)
{
	static const uint8_t row[] = {0, 0, 0, 255, 255, 255, 255, 255, 90, 90, 90, 255, 200, 7, 7, 0};
	_cleanup_pixels_ struct pixels p = {.width = 2, .height = 1};
	struct scaler s;

	(void)state;
	assert_int_equal(scaler_open(&s, 4, 2, &p), 0);
	scaler_row(&s, row);
	scaler_row(&s, row);
	scaler_done(&s);
	assert_memory_equal(p.data, "\x80\x80\x80\xff\x5a\x5a\x5a\x80", 8);
}

/* Red and blue meet in the middle of a pixel when 3 become 2. */
static void test_a_pixel_may_lie_under_two(void **state)
{
	static const uint8_t row[] = {0, 0, 0, 255, 90, 90, 90, 255, 255, 255, 255, 255};
	_cleanup_pixels_ struct pixels p = {.width = 2, .height = 1};
	struct scaler s;

	(void)state;
	assert_int_equal(scaler_open(&s, 3, 1, &p), 0);
	scaler_row(&s, row);
	scaler_done(&s);
	assert_memory_equal(p.data, "\x1e\x1e\x1e\xff\xc8\xc8\xc8\xff", 8);
}

static void test_no_shape_becomes_nothing(void **state)
{
	static const uint32_t sizes[][4] = {{1, 1, 1, 1},	  {65500, 1, 320, 1},	{1, 65500, 1, 320},
					    {320, 320, 320, 320}, {321, 320, 320, 319}, {640, 480, 320, 240}};
	struct pixels p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pixels_fit(sizes[i][0], sizes[i][1], 320, &p);
		assert_size(&p, sizes[i][2], sizes[i][3]);
	}
}

/* ---- what is no picture ---- */

static void test_cut_short_anywhere_is_no_picture(void **state)
{
	struct png_shape s = {64, 64, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_ADAM7};
	struct buffer samples[3] = {0};

	(void)state;
	sample_png(&s, &samples[0]);
	sample_jpeg(64, 64, JCS_RGB, false, NULL, &samples[1]);
	sample_jpeg(64, 64, JCS_RGB, true, NULL, &samples[2]);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		for (size_t size = 0; size < samples[i].size; size++) {
			struct buffer cut = {.data = samples[i].data, .size = size};
			struct pixels p;

			assert_int_not_equal(decode(&cut, 320, &p), PICTURE_FINE);
			assert_null(p.data);
		}
		buffer_free(&samples[i]);
	}
}

static void test_a_wrong_byte_in_a_png_is_seen(void **state)
{
	struct png_shape s = {64, 64, 8, PNG_COLOR_TYPE_RGB, 0};
	_cleanup_buffer_ struct buffer b = {0};

	(void)state;
	sample_png(&s, &b);
	for (size_t i = 0; i < b.size; i++) {
		struct pixels p;

		b.data[i] ^= 0x10;
		assert_int_not_equal(decode(&b, 320, &p), PICTURE_FINE);
		b.data[i] ^= 0x10;
	}
}

/* Whatever it says: no memory is taken for it, and no time. */
static void test_bombs_are_too_large(void **state)
{
	static const uint32_t sizes[][2] = {
		{60000, 60000}, {65500, 1100}, {0x7fffffff, 1}, {1, 0x7fffffff}, {8193, 8192}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_buffer_ struct buffer b = {0};
		struct pixels p;

		sample_bomb(sizes[i][0], sizes[i][1], 1000, &b);
		assert_int_equal(decode(&b, 320, &p), PICTURE_LARGE);
	}
}

/* A JPEG's size is two bytes each: a small one that says it is 60000 by 60000. */
static void test_a_jpeg_bomb_is_too_large(void **state)
{
	_cleanup_buffer_ struct buffer b = {0};
	struct pixels p;
	char *at;

	(void)state;
	sample_jpeg(64, 64, JCS_RGB, false, NULL, &b);
	at = memmem(b.data, b.size, "\xff\xc0\x00\x11\x08", 5);
	assert_non_null(at);
	memcpy(at + 5, "\xea\x60\xea\x60", 4);
	assert_int_equal(decode(&b, 320, &p), PICTURE_LARGE);
}

static void test_neither_png_nor_jpeg_is_not_even_tried(void **state)
{
	static const char *const others[] = {"",
					     "P",
					     "GIF89a",
					     "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
					     "\x89PNG\r\n\x1a",
					     "\xff\xd8",
					     "RIFF....WEBP"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct buffer b = {.data = (char *)others[i], .size = strlen(others[i])};
		struct pixels p;

		assert_int_equal(decode(&b, 320, &p), PICTURE_UNKNOWN);
	}
}

/* ---- the child, and what a browser gets ---- */

static int shown(const struct buffer *b, uint32_t side, struct buffer *png, struct error *err)
{
	_cleanup_close_ int fd = file_in_memory("picture", b->data ? b->data : "", b->size, false, err);

	assert_true(fd >= 0);
	return picture_of_file(fd, "p.png", side, png, err);
}

static void test_what_is_shown_is_a_png_with_nothing_but_pixels(void **state)
{
	_cleanup_buffer_ struct buffer b = {0}, png = {0}, exif = {0};
	_cleanup_pixels_ struct pixels p = {0};
	struct error err = ERROR_INIT;

	(void)state;
	sample_exif(true, 1, &exif);
	sample_jpeg(3000, 1000, JCS_RGB, false, &exif, &b);
	assert_non_null(memmem(b.data, b.size, "secret", 6));
	assert_int_equal(shown(&b, 1280, &png, &err), 0);
	assert_null(memmem(png.data, png.size, "secret", 6));
	assert_memory_equal(png.data, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
	assert_int_equal(decode(&png, 1280, &p), PICTURE_FINE);
	assert_size(&p, 1280, 427);
	assert_pixel(&p, 10, 10, 255, 0, 0, 255);
}

static void test_noise_is_made_smaller_until_it_is_small_enough(void **state)
{
	_cleanup_buffer_ struct buffer b = {0}, png = {0};
	_cleanup_pixels_ struct pixels p = {.width = 1280, .height = 1280}, back = {0};
	struct error err = ERROR_INIT;
	uint32_t random = 1;

	(void)state;
	p.data = malloc((size_t)1280 * 1280 * PIXEL_SIZE);
	for (size_t i = 0; i < (size_t)1280 * 1280 * PIXEL_SIZE; i++) {
		random = random * 1664525 + 1013904223;
		p.data[i] = (uint8_t)(random >> 24);
	}
	assert_int_equal(pixels_encode(&p, SIZE_MAX, &b, &err), 0);
	assert_true(b.size > PICTURE_PNG_MAX);
	assert_int_equal(shown(&b, 1280, &png, &err), 0);
	assert_true(png.size <= PICTURE_PNG_MAX);
	assert_int_equal(decode(&png, 1280, &back), PICTURE_FINE);
	assert_size(&back, 640, 640);
}

static void test_why_it_is_not_shown(void **state)
{
	_cleanup_buffer_ struct buffer bomb = {0}, png = {0};
	struct buffer text = {.data = (char *)"text", .size = 4},
		      cut = {.data = (char *)"\xff\xd8\xff\xe0", .size = 4};
	struct error err = ERROR_INIT;

	(void)state;
	sample_bomb(60000, 60000, 1000, &bomb);
	assert_true(shown(&bomb, 320, &png, &err) < 0 && err.kind == ERROR_REFUSED);
	assert_non_null(strstr(err.message, "too large"));
	assert_true(shown(&text, 320, &png, &err) < 0 && err.kind == ERROR_REFUSED);
	assert_non_null(strstr(err.message, "neither"));
	assert_true(shown(&cut, 320, &png, &err) < 0 && err.kind == ERROR_REFUSED);
	assert_non_null(strstr(err.message, "damaged"));
	assert_int_equal(png.size, 0);
}

/* ---- the walls ---- */

static int try_open(void)
{
	return open("/etc/passwd", O_RDONLY);
}

static int try_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int try_write_to_its_input(void)
{
	return write(STDIN_FILENO, "x", 1) == 1 ? 0 : -1;
}

static int try_write_elsewhere(void)
{
	return write(STDERR_FILENO, "x", 1) == 1 ? 0 : -1;
}

static int try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? -1
		       : 0;
}

static int try_to_make_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static int try_to_map_its_input(void)
{
	return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0) == MAP_FAILED ? -1 : 0;
}

static int try_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static int try_signal(void)
{
	return kill(getpid(), 0);
}

static int try_prctl(void)
{
	return prctl(PR_SET_NAME, "x", 0, 0, 0);
}

static const struct trick {
	const char *name;
	int (*try)(void); /* negative: it did not work */
} tricks[] = {
	{"open", try_open},
	{"socket", try_socket},
	{"write-to-its-input", try_write_to_its_input},
	{"write-elsewhere", try_write_elsewhere},
	{"code", try_code},
	{"make-code", try_to_make_code},
	{"map-its-input", try_to_map_its_input},
	{"process", try_process},
	{"signal", try_signal},
	{"prctl", try_prctl},
};

static int status_of(const char *walls, const char *name)
{
	const char *const argv[] = {"test_picture", walls, name, NULL}, *const env[] = {NULL};
	_cleanup_close_ int fd = memfd_create("input", MFD_CLOEXEC);
	_cleanup_child_ struct child_end end = {0};
	const struct child_order o = {.path = "/proc/self/exe",
				      .argv = argv,
				      .env = env,
				      .reads_fd = true,
				      .input_fd = fd,
				      .timeout_ns = 60 * NSEC_PER_SEC,
				      .output_max = 1000};
	struct error err = ERROR_INIT;

	assert_int_equal(child_run(&o, &end, &err), 0);
	assert_false(end.is_late);
	return end.status;
}

/* Each works without the walls, so that it is them who end it. */
static void test_a_decoder_that_was_taken_over_is_killed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tricks); i++) {
		assert_int_equal(status_of("free", tricks[i].name), 0);
		assert_int_equal(status_of("walled", tricks[i].name), 128 + SIGSYS);
	}
}

/* A host that refuses system calls: one of them, or only with that first argument. */
static int refuse_call(int number, uint32_t first, bool any, uint32_t how)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 0, any ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, how),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* Not a byte is looked at: what is no picture would be said to be none. */
static void test_without_walls_nothing_is_decoded(void **state)
{
	(void)state;
	assert_int_equal(status_of("no-seccomp", "320"), PICTURE_UNSAFE);
	assert_int_equal(status_of("picture", "320"), PICTURE_UNKNOWN);
}

/* systemd's @system-service has prctl(2), and has not seccomp(2). */
static void test_the_walls_can_be_had_in_a_unit_of_systemd(void **state)
{
	(void)state;
	assert_int_equal(status_of("in-a-unit", "320"), PICTURE_UNKNOWN);
}

static int be_taken_over(bool walled, const char *name)
{
	if (walled && picture_walls() < 0)
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(tricks); i++)
		if (strcmp(tricks[i].name, name) == 0)
			_exit(tricks[i].try() < 0 ? 1 : 0);
	return 3;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_of_png),
		cmocka_unit_test(test_every_kind_of_jpeg),
		cmocka_unit_test(test_a_picture_is_turned_as_its_camera_says),
		cmocka_unit_test(test_every_turn_moves_every_pixel),
		cmocka_unit_test(test_what_a_camera_says_may_be_nonsense),
		cmocka_unit_test(test_what_is_small_stays_as_it_is),
		cmocka_unit_test(test_a_pixel_is_the_mean_of_what_lies_under_it),
		cmocka_unit_test(test_a_pixel_may_lie_under_two),
		cmocka_unit_test(test_no_shape_becomes_nothing),
		cmocka_unit_test(test_cut_short_anywhere_is_no_picture),
		cmocka_unit_test(test_a_wrong_byte_in_a_png_is_seen),
		cmocka_unit_test(test_bombs_are_too_large),
		cmocka_unit_test(test_a_jpeg_bomb_is_too_large),
		cmocka_unit_test(test_neither_png_nor_jpeg_is_not_even_tried),
		cmocka_unit_test(test_what_is_shown_is_a_png_with_nothing_but_pixels),
		cmocka_unit_test(test_noise_is_made_smaller_until_it_is_small_enough),
		cmocka_unit_test(test_why_it_is_not_shown),
		cmocka_unit_test(test_without_walls_nothing_is_decoded),
		cmocka_unit_test(test_the_walls_can_be_had_in_a_unit_of_systemd),
		cmocka_unit_test(test_a_decoder_that_was_taken_over_is_killed),
	};

	if (argc == 3 && strcmp(argv[1], "no-seccomp") == 0 &&
	    (refuse_call(SYS_seccomp, 0, true, SECCOMP_RET_ERRNO | ENOSYS) < 0 ||
	     refuse_call(SYS_prctl, PR_SET_SECCOMP, false, SECCOMP_RET_ERRNO | EINVAL) < 0))
		return 4;
	if (argc == 3 && strcmp(argv[1], "in-a-unit") == 0 &&
	    refuse_call(SYS_seccomp, 0, true, SECCOMP_RET_KILL_PROCESS) < 0)
		return 4;
	if (argc == 3 && strcmp(argv[1], "free") != 0 && strcmp(argv[1], "walled") != 0)
		picture_box((uint32_t)atoi(argv[2]));
	if (argc == 3)
		return be_taken_over(strcmp(argv[1], "walled") == 0, argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
