/* Where main() is: looked up in the program's own symbol table. */
#include "tracee.h"
#include "file.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t symbol_find(const char *image, const Elf64_Shdr *sections, const Elf64_Shdr *table)
{
	const Elf64_Sym *symbols = (const void *)(image + table->sh_offset);
	const char *names = image + sections[table->sh_link].sh_offset;

	for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++)
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
		    strcmp(names + symbols[i].st_name, "main") == 0)
			return symbols[i].st_value;
	return 0;
}

uint64_t program_main(const char *path, uint64_t *ret_entry)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	uint64_t found = 0;
	struct stat st;
	char *image;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		return 0;
	header = (const void *)image;
	sections = (const void *)(image + header->e_shoff);
	*ret_entry = header->e_entry;
	for (int i = 0; i < header->e_shnum && !found; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			found = symbol_find(image, sections, &sections[i]);
	munmap(image, (size_t)st.st_size);
	return found;
}
