/* sender.h - other systems that report faults over the API: who they are, how many of their faults may be
 * open, how fast they may come. MindCluster calls these public faults and holds them likewise: a list of
 * senders, a cap in all, a rate.
 *
 * A sender is what a report names itself (spec.sender), else the user who wrote it. The table's `public` part
 * (table.h) has the limits. They hold for the API only: what a machine's agent says is bounded by the agent.
 * The rate is a bucket (GCRA, ITU-T I.371) kept as one time: until then what was sent would have taken at the
 * set rate; a report is let in while that is no further ahead than the burst takes.
 *
 * State of the core: snapshots keep each sender's time; everything else follows from the faults. At most
 * SENDERS_MAX are known; those without faults whose bucket is empty make room.
 */
#ifndef PHX_CORE_HEALTH_SENDER_H
#define PHX_CORE_HEALTH_SENDER_H

#include "core/health/fault.h"

enum { SENDERS_MAX = 1024, SENDER_NAME_MAX = 128 };

struct sender {
    struct str name;       /* owned */
    uint32_t faults, open; /* of the faults that it has reported first: in all, open */
    int64_t busy_ns;       /* stamp: see above */
};

enum sender_verdict {
    SENDER_MAY,
    SENDER_UNKNOWN,    /* not on the table's list, or of another user */
    SENDER_OTHER_CODE, /* on the list, for other codes */
    SENDER_TOO_FAST,   /* *ret_wait_ns: when it may come again */
    SENDER_TOO_MANY,   /* as many faults as one may have are open */
    SENDERS_TOO_MANY,  /* ... as all of them may have; or too many senders are known */
};
/* What becomes of a report of `sighting->sender` now; changes nothing. */
enum sender_verdict sender_judge(const struct health *health, const struct sighting *sighting, int64_t now_ns,
                                 int64_t *ret_wait_ns);

/* In order of names, for snapshots. */
void sender_visit(const struct health *health, void (*visit)(void *context, const struct sender *sender),
                  void *context);
/* False: it is there, or there are too many. */
bool sender_restore(struct health *health, struct str name, int64_t busy_ns);

#endif
