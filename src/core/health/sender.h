/* sender.h - other systems that report faults over the API: their names, how many of their faults may be
 * open, and how fast they may report. MindCluster calls these public faults and limits them likewise: a
 * list of senders, a cap in all, a rate.
 *
 * A sender is the name in a report (spec.sender), else the user who wrote it. The table's `public` part
 * (table.h) has the limits. The limits hold for the API only: an agent bounds its own reports. The rate is
 * a bucket (GCRA, ITU-T I.371) that is kept as one time: the time by which the accepted reports would have
 * been sent at the set rate. A report is accepted while that time is at most the burst ahead.
 *
 * State of the core: snapshots keep each sender's time; everything else follows from the faults. At most
 * SENDERS_MAX are known; senders without faults whose bucket is empty make room.
 */
#ifndef PHX_CORE_HEALTH_SENDER_H
#define PHX_CORE_HEALTH_SENDER_H

#include "core/health/fault.h"

enum { SENDERS_MAX = 1024, SENDER_NAME_MAX = 128 };

struct sender {
    struct str name;       /* owned */
    uint32_t faults, open; /* faults that it was the first to report: in all, and open */
    int64_t busy_ns;       /* stamp: see above */
};

enum sender_verdict {
    SENDER_MAY,
    SENDER_UNKNOWN,    /* not on the table's list, or the report is another user's */
    SENDER_OTHER_CODE, /* on the list, for other codes */
    SENDER_TOO_FAST,   /* *ret_wait_ns: time until the next report is accepted */
    SENDER_TOO_MANY,   /* one sender's limit of open faults is reached */
    SENDERS_TOO_MANY,  /* all senders' limit is reached, or too many senders are known */
};
/* Judges a report of `sighting->sender` now; changes nothing. */
enum sender_verdict sender_judge(const struct health *health, const struct sighting *sighting, int64_t now_ns,
                                 int64_t *ret_wait_ns);

/* Visits the senders in order of names, for snapshots. */
void sender_visit(const struct health *health, void (*visit)(void *context, const struct sender *sender),
                  void *context);
/* Restores a sender from a snapshot; false: it exists already, or there are too many. */
bool sender_restore(struct health *health, struct str name, int64_t busy_ns);

#endif
