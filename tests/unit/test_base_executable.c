/* What a file that is to be executed says of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include "executable.h"
#include "macros.h"

static struct executable judged(const char *text)
{
	struct executable x;

	executable_judge(text, strlen(text), &x);
	return x;
}

static void test_a_script_names_its_interpreter_and_one_word(void **state UNUSED)
{
	struct executable x = judged("#!  /usr/bin/env\tpython3 -u\nprint(1)\n");

	assert_int_equal(x.kind, EXECUTABLE_SCRIPT);
	assert_string_equal(x.word[0], "/usr/bin/env");
	assert_string_equal(x.word[1], "python3");
	assert_false(x.has_return);
	x = judged("#!/bin/sh");
	assert_string_equal(x.word[0], "/bin/sh");
	assert_string_equal(x.word[1], "");
	assert_string_equal(judged("#!").word[0], "");
}

static void test_a_carriage_return_is_noted_and_no_part_of_the_word(void **state UNUSED)
{
	struct executable x = judged("#!/bin/sh\r\necho\r\n");

	assert_true(x.has_return);
	assert_string_equal(x.word[0], "/bin/sh");
	x = judged("echo\r\n");
	assert_int_equal(x.kind, EXECUTABLE_TEXT);
	assert_true(x.has_return);
}

static void test_what_is_no_script(void **state UNUSED)
{
	assert_int_equal(judged("").kind, EXECUTABLE_EMPTY);
	assert_int_equal(judged("print(1)\n").kind, EXECUTABLE_TEXT);
	assert_true(judged("\xef\xbb\xbf#!/bin/sh\n").has_mark);
	assert_int_equal(judged("MZ\x90").kind, EXECUTABLE_WINDOWS);
	assert_int_equal(judged("\xcf\xfa\xed\xfe").kind, EXECUTABLE_MACOS);
	assert_int_equal(judged("a\x01").kind, EXECUTABLE_OTHER);
	assert_int_equal(judged("\x7f"
				"ELF")
				 .kind,
			 EXECUTABLE_OTHER);
}

static void test_a_program_names_its_machine_and_loader(void **state UNUSED)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr part;
		char loader[16];
	} file = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			 .e_machine = EM_68K,
			 .e_phoff = sizeof file.head,
			 .e_phentsize = sizeof file.part,
			 .e_phnum = 1},
		.part = {.p_type = PT_INTERP,
			 .p_offset = offsetof(__typeof__(file), loader),
			 .p_filesz = sizeof "/lib/ld.so"},
		.loader = "/lib/ld.so",
	};
	struct executable x;

	executable_judge((char *)&file, sizeof file, &x);
	assert_int_equal(x.kind, EXECUTABLE_FOREIGN);
	assert_string_equal(x.word[0], "machine 4");
	file.head.e_machine = strcmp(executable_machine(), "aarch64") == 0 ? EM_AARCH64 : EM_X86_64;
	executable_judge((char *)&file, sizeof file, &x);
	assert_int_equal(x.kind, EXECUTABLE_PROGRAM);
	assert_string_equal(x.word[0], "/lib/ld.so");
	/* However the numbers lie. */
	file.part.p_filesz = UINT64_MAX;
	executable_judge((char *)&file, sizeof file, &x);
	assert_string_equal(x.word[0], "");
	file.head.e_phoff = UINT64_MAX - 8;
	executable_judge((char *)&file, sizeof file, &x);
	assert_string_equal(x.word[0], "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_script_names_its_interpreter_and_one_word),
		cmocka_unit_test(test_a_carriage_return_is_noted_and_no_part_of_the_word),
		cmocka_unit_test(test_what_is_no_script),
		cmocka_unit_test(test_a_program_names_its_machine_and_loader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
