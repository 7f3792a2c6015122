/*
 * What the platform plants outside its own directory, in what the whole host shares: System V and POSIX objects, and
 * names in the directories that everybody lists.
 */
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "file.h"
#include "platform.h"

static void plant_shared(struct platform *p)
{
	const struct targets *t = &p->targets;
	key_t key = (key_t)targets_number(t, "ipc.key");
	int shm = shmget(key, 4096, IPC_CREAT | 0666), sem = semget(key, 1, IPC_CREAT | 0666),
	    msg = msgget(key, IPC_CREAT | 0666);
	char *page = shm < 0 ? (void *)-1 : shmat(shm, NULL, 0);
	if (page != (void *)-1) {
		strcpy(page, p->nonce);
		shmdt(page);
	}
	if (sem >= 0)
		semctl(sem, 0, SETVAL, 30000);
	struct {
		long type;
		char text[64];
	} message = {.type = 1};
	strcpy(message.text, p->nonce);
	struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 64};
	mqd_t queue = mq_open(targets_text(t, "queue"), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666,
			      &attributes);
	for (int i = 0; i < 4; i++) {
		if (msg >= 0)
			msgsnd(msg, &message, sizeof(message.text), IPC_NOWAIT);
		if (queue >= 0)
			mq_send(queue, message.text, sizeof(message.text), 0);
	}
	if (queue >= 0)
		mq_close(queue);
}

static void drop_shared(struct platform *p)
{
	const struct targets *t = &p->targets;
	key_t key = (key_t)targets_number(t, "ipc.key");
	for (int i = 0; i < 3; i++, key++) { /* the others are those of the analyses beside */
		int shm = shmget(key, 0, 0), sem = semget(key, 0, 0), msg = msgget(key, 0);
		if (shm >= 0)
			shmctl(shm, IPC_RMID, NULL);
		if (sem >= 0)
			semctl(sem, 0, IPC_RMID);
		if (msg >= 0)
			msgctl(msg, IPC_RMID, NULL);
	}
	mq_unlink(targets_text(t, "queue"));
	char queue[128];
	snprintf(queue, sizeof(queue), "/fumehood-attack-%s-beside-plain", p->tag);
	mq_unlink(queue);
}

/* Names that tell the secret, in the directories that everybody lists. */
static const char *const listed[] = {"/tmp", "/var/tmp", "/dev/shm"};

static void plant_names(struct platform *p)
{
	char path[400];
	for (size_t i = 0; i < ARRAY_SIZE(listed); i++) {
		snprintf(path, sizeof(path), "%s/.fumehood-attack-%s", listed[i], p->nonce);
		fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	}
	snprintf(path, sizeof(path), "%s/home/.hidden-%s", p->root, p->nonce);
	mkdir(path, 0755);
	_cleanup_close_ int fd =
		open(targets_text(&p->targets, "shm.file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0)
		file_write_all(fd, p->nonce, strlen(p->nonce));
	mkdir(p->other, 0755);
	snprintf(path, sizeof(path), "%s/secret", p->other);
	_cleanup_close_ int other = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (other >= 0)
		file_write_all(other, p->nonce, strlen(p->nonce));
}

static void drop_names(struct platform *p)
{
	char path[400];
	for (size_t i = 0; i < ARRAY_SIZE(listed); i++) {
		snprintf(path, sizeof(path), "%s/.fumehood-attack-%s", listed[i], p->nonce);
		unlink(path);
	}
	static const char *const modes[] = {"plain", "hood"}; /* of the analyses beside */
	for (size_t i = 0; i < ARRAY_SIZE(modes) * ARRAY_SIZE(listed); i++) {
		snprintf(path, sizeof(path), "%s/fumehood-attack-%s-beside-%s", listed[i / 2], p->tag,
			 modes[i % 2]);
		unlink(path);
	}
	unlink(targets_text(&p->targets, "shm.file"));
	snprintf(path, sizeof(path), "%s/secret", p->other);
	unlink(path);
	rmdir(p->other);
}

void plant(struct platform *p)
{
	plant_shared(p);
	plant_names(p);
}

void unplant(struct platform *p)
{
	drop_shared(p);
	drop_names(p);
}
