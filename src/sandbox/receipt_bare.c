#include "receipt_bare.h"
#include "macros.h"

#define SEEN "/proc is the host's: processes and their command lines, mounts, names of sockets and keys, "

void receipt_add_bare(struct receipt *receipt, uid_t uid)
{
	static const struct {
		const char *name;
		bool held;
		const char *detail, *to_root; /* for uid 0, if that is another */
	} lines[] = {
		{"mount namespace", false, "none: Landlock alone decides which files can be opened"},
		{"pid, ipc and uts namespaces", false,
		 "none: the command is watched by who inherits its orphans"},
		{"network namespace", false, "none: no socket can be made"},
		{"seccomp", true,
		 "an allow-list; no sockets but stream pairs, no chmod, chown, times, extended attributes, flock, leases, "
		 "System V IPC"},
		{"sockets", true, "none but stream and sequence pairs: neither paths nor abstract names"},
		{"leases", true, "refused"},
		{"visible names", false, "whether a path exists, its size, owner and times can be asked"},
		{"times of access", false, "who reads an input is seen in it"},
		{"locks", false, "a read lock on a range of an input (fcntl) makes who writes it wait"},
		{"fifos", false, "a FIFO that lies below an input can be read"},
		{"devices", false, "the host's own nodes: a lock on one is felt outside"},
		{"visible processes", false, SEEN "as any user sees them",
		 SEEN
		 "as root sees them, with what is for root alone to read: of the kernel (slabinfo, timer_list), and settings "
		 "with their secrets (/proc/sys)"},
		{"end of all processes", false,
		 "by init, who inherits orphans; if somebody else kills init, only a cgroup finds the rest"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		receipt_add(receipt, lines[i].name, lines[i].held, "%s",
			    uid == 0 && lines[i].to_root ? lines[i].to_root : lines[i].detail);
}
