#include <string.h>

#include "macros.h"
#include "mechanism.h"

const struct attack_family *const attack_families[] = {
	&inputs_change,	     &inputs_lock,	&inputs_read,	   &inputs_mount,   &services_unix,
	&services_net,	     &services_fifo,	&processes_victim, &processes_leak, &processes_terminal,
	&processes_survive,  &processes_init,	&kernel_calls,	   &kernel_ioctl,   &kernel_surface,
	&collection_outputs, &collection_state, &strangers,	   &limits_sums,
};
const size_t attack_family_count = ARRAY_SIZE(attack_families);

const struct attack *attack_find(const char *name)
{
	for (size_t i = 0; i < attack_family_count; i++)
		for (size_t j = 0; j < attack_families[i]->count; j++)
			if (!strcmp(attack_families[i]->attacks[j].name, name))
				return &attack_families[i]->attacks[j];
	return NULL;
}
