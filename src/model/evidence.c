#include "verdict.h"

#include "member.h"

static const struct member evidence_members[] = {
	MEMBER(struct evidence, started, MEMBER_BOOL),
	MEMBER(struct evidence, exec_errno, MEMBER_INT),
	MEMBER(struct evidence, exit_code, MEMBER_INT),
	MEMBER(struct evidence, signal, MEMBER_INT),
	MEMBER(struct evidence, cancel_signal, MEMBER_INT),
	MEMBER(struct evidence, wall_reached, MEMBER_BOOL),
	MEMBER(struct evidence, cpu_reached, MEMBER_BOOL),
	MEMBER(struct evidence, disk_killed, MEMBER_BOOL),
	MEMBER(struct evidence, oom_kills, MEMBER_COUNT),
	MEMBER(struct evidence, pids_hits, MEMBER_COUNT),
	MEMBER(struct evidence, disk_hits, MEMBER_COUNT),
	MEMBER(struct evidence, output_missing, MEMBER_BOOL),
	MEMBER(struct evidence, post_process_failed, MEMBER_BOOL),
	MEMBER(struct evidence, unwatched, MEMBER_BOOL),
	MEMBER(struct evidence, by_manager, MEMBER_BOOL),
};

json_t *evidence_to_json(const struct evidence *e)
{
	return members_to_json(evidence_members, ARRAY_SIZE(evidence_members), e);
}

int evidence_from_json(struct evidence *e, const json_t *json, struct error *err)
{
	struct evidence read = {.exit_code = -1, .oom_kills = -1, .pids_hits = -1, .disk_hits = -1};
	int r = members_read(&read, evidence_members, ARRAY_SIZE(evidence_members), json, "evidence", err);

	if (r == 0)
		*e = read;
	return r;
}
