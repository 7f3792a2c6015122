#include "executable.h"
#include "macros.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
enum { OUR_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OUR_MACHINE = EM_AARCH64 };
#else
enum { OUR_MACHINE = EM_NONE };
#endif

static const struct {
	uint16_t number;
	const char *name;
} machines[] = {
	{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},      {EM_ARM, "arm"},
	{EM_RISCV, "riscv"},   {EM_PPC64, "ppc64"},	{EM_S390, "s390x"},    {EM_MIPS, "mips"},
	{EM_PPC, "ppc"},       {EM_IA_64, "ia64"},	{EM_SPARCV9, "sparc"},
};

static const char *machine_name(uint16_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].number == number)
			return machines[i].name;
	return NULL;
}

const char *executable_machine(void)
{
	const char *name = machine_name(OUR_MACHINE);

	return name ? name : "another";
}

/* ---- ELF ---- */

/* The path in PT_INTERP, where both it and the table that names it are among the bytes. */
static void take_loader(const char *bytes, size_t size, struct executable *ret)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	memcpy(&head, bytes, sizeof head);
	for (size_t i = 0; i < head.e_phnum && i < 64; i++) {
		size_t at = i * sizeof part;

		if (head.e_phentsize != sizeof part || head.e_phoff > size ||
		    size - head.e_phoff < at + sizeof part)
			return;
		memcpy(&part, bytes + head.e_phoff + at, sizeof part);
		if (part.p_type != PT_INTERP)
			continue;
		if (part.p_offset > size || part.p_filesz > size - part.p_offset || part.p_filesz < 2 ||
		    part.p_filesz > sizeof ret->word[0] ||
		    memchr(bytes + part.p_offset, 0, part.p_filesz) !=
			    bytes + part.p_offset + part.p_filesz - 1)
			return;
		memcpy(ret->word[0], bytes + part.p_offset, part.p_filesz);
		return;
	}
}

static void judge_elf(const char *bytes, size_t size, struct executable *ret)
{
	bool is_little = size > EI_DATA && bytes[EI_DATA] == ELFDATA2LSB;
	uint16_t machine;
	const char *name;

	ret->kind = EXECUTABLE_OTHER;
	if (size < offsetof(Elf64_Ehdr, e_machine) + 2)
		return;
	machine = (uint16_t)((uint8_t)bytes[offsetof(Elf64_Ehdr, e_machine) + !is_little] |
			     (uint8_t)bytes[offsetof(Elf64_Ehdr, e_machine) + is_little] << 8);
	if (machine != OUR_MACHINE) {
		ret->kind = EXECUTABLE_FOREIGN;
		name = machine_name(machine);
		if (name)
			snprintf(ret->word[0], sizeof ret->word[0], "%s", name);
		else
			snprintf(ret->word[0], sizeof ret->word[0], "machine %u", machine);
		return;
	}
	ret->kind = EXECUTABLE_PROGRAM;
	if (bytes[EI_CLASS] == ELFCLASS64 && is_little && size >= sizeof(Elf64_Ehdr))
		take_loader(bytes, size, ret);
}

/* ---- scripts ---- */

static const char *take_word(const char *from, const char *end, char out[256])
{
	size_t n = 0;

	while (from < end && (*from == ' ' || *from == '\t'))
		from++;
	for (; from < end && *from != ' ' && *from != '\t'; from++)
		if (n < 255 && *from)
			out[n++] = *from;
	out[n] = 0;
	return from;
}

/* The kernel takes the carriage return for a part of the last word; here it is only noted. */
static void judge_script(const char *line, const char *end, struct executable *ret)
{
	ret->kind = EXECUTABLE_SCRIPT;
	take_word(take_word(line + 2, end, ret->word[0]), end, ret->word[1]);
}

static bool is_text(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((uint8_t)bytes[i] < ' ' && !strchr("\t\n\r\f", bytes[i]))
			return false;
	return !memchr(bytes, 0, size);
}

static bool begins(const char *bytes, size_t size, const char *with, size_t n)
{
	return size >= n && memcmp(bytes, with, n) == 0;
}

static bool is_macos(const char *bytes, size_t size)
{
	static const char marks[][4] = {{'\xcf', '\xfa', '\xed', '\xfe'},
					{'\xce', '\xfa', '\xed', '\xfe'},
					{'\xca', '\xfe', '\xba', '\xbe'}};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (begins(bytes, size, marks[i], sizeof marks[i]))
			return true;
	return false;
}

void executable_judge(const char *bytes, size_t size, struct executable *ret)
{
	const char *end;

	*ret = (struct executable){.kind = EXECUTABLE_EMPTY};
	if (size == 0)
		return;
	if (begins(bytes, size, ELFMAG, SELFMAG)) {
		judge_elf(bytes, size, ret);
		return;
	}
	ret->has_mark = begins(bytes, size, "\xef\xbb\xbf", 3);
	end = memchr(bytes, '\n', size);
	if (!end)
		end = bytes + size;
	ret->has_return = end > bytes && end[-1] == '\r';
	if (begins(bytes, size, "#!", 2))
		judge_script(bytes, end - ret->has_return, ret);
	else if (begins(bytes, size, "MZ", 2))
		ret->kind = EXECUTABLE_WINDOWS;
	else if (is_macos(bytes, size))
		ret->kind = EXECUTABLE_MACOS;
	else
		ret->kind = is_text(bytes, size) ? EXECUTABLE_TEXT : EXECUTABLE_OTHER;
}
