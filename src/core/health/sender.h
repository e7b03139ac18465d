/* sender.h - other systems that report faults over the API: their names, how many of their faults may be
 * open, and how fast they may report. MindCluster calls these public faults, and also limits them by a list
 * of senders, a total and a rate.
 *
 * A sender is the name in a report (spec.sender), or else the user who wrote it. The table's `public` part
 * (table.h) has the limits. They apply to the API only: an agent bounds its own reports. The rate limit is a
 * bucket (GCRA, ITU-T I.371), stored as one stamp: the time by which the accepted reports would have been
 * sent at the set rate. A report is accepted while that stamp is ahead of now by no more than the burst
 * allows.
 *
 * State of the core: snapshots keep each sender's stamp; everything else follows from the faults. At most
 * SENDERS_MAX are known; a new one replaces senders without faults whose bucket is empty.
 */
#ifndef PHX_CORE_HEALTH_SENDER_H
#define PHX_CORE_HEALTH_SENDER_H

#include "core/health/fault.h"

enum { SENDERS_MAX = 1024, SENDER_NAME_MAX = 128 };

struct sender {
    struct str name;       /* owned */
    uint32_t faults, open; /* number of faults that it was the first to report: in all, and open */
    int64_t busy_ns;       /* the stamp of its bucket, see above */
};

enum sender_verdict {
    SENDER_MAY,
    SENDER_UNKNOWN,    /* the sender is not on the table's list, or not for this user */
    SENDER_OTHER_CODE, /* the sender is on the list, but for other codes */
    SENDER_TOO_FAST,   /* *ret_wait_ns is the time until the next report is accepted */
    SENDER_TOO_MANY,   /* the sender's limit of open faults is reached */
    SENDERS_TOO_MANY,  /* the limit of all senders is reached, or too many senders are known */
};
/* Judges whether `sighting->sender` may make this report now. Changes nothing. */
enum sender_verdict sender_judge(const struct health *health, const struct sighting *sighting, int64_t now_ns,
                                 int64_t *ret_wait_ns);

/* Visits the senders in order of names, for snapshots. */
void sender_visit(const struct health *health, void (*visit)(void *context, const struct sender *sender),
                  void *context);
/* Restores a sender from a snapshot. Returns false if it was restored before, if its name is invalid, or if
 * there are too many. */
bool sender_restore(struct health *health, struct str name, int64_t busy_ns);

#endif
