/* probes.h - the machine's own health: kernel log, sysfs, mounts, clocks, NVML, external checks, as signals
 * (core/words/signal.h).
 *
 *     struct probes *probes = probes_new(&options, &error);
 *     for (;;) {                                                 // or: uv_poll on probes_fd, a timer at next
 *         probes_round(probes, mono_ns(), on_signal, context);
 *         poll(&(struct pollfd){probes_fd(probes), POLLIN}, 1, until(probes_next_ns(probes)));
 *     }
 *     probes_free(probes);
 *
 * Changes only. A condition is reported when it begins (SIGNAL_OCCUR) and when it is over (SIGNAL_RECOVER);
 * in between only when its severity rises. An event without an end is SIGNAL_ONCE: equal code and place
 * within PROBES_SAME_NS of the first are the same event and are not reported again. Counters are judged by
 * their growth after the first look. A state that was never right is not reported, unless the manifest of the
 * settings expects it: a port that never was up is not down.
 *
 * Never blocks. Work that could hang or take long is done in a forked child, which has a time limit, is
 * killed and is reaped later, if ever: one that SIGKILL cannot end is counted, and there is at most one of
 * those for each mount and each probe. The caller's thread reads only the kernel log, /proc files of a few
 * lines and the clock. If the caller itself stood still, its children are not blamed for it. A probe that
 * uses more processor time than its bound is off for PROBES_OFF_NS and "os/probe-cost" reports it.
 *
 * One owner thread; any number of objects. Children close every file they inherit (a tether must not live
 * on in them) and die with the thread that made them.
 */
#ifndef PHX_HOST_PROBES_PROBES_H
#define PHX_HOST_PROBES_PROBES_H

#include "doc/doc.h"
#include "base/error.h"
#include "base/units.h"
#include "core/words/signal.h"

#define PROBES_SAME_NS (5 * NS_PER_SECOND)   /* equal events this close are one */
#define PROBES_OFF_NS  (600 * NS_PER_SECOND) /* how long a probe that costs too much stays off */

struct probes;

/* The state of the kernel's clock (adjtimex). */
struct probes_clock {
    bool synced;
    int64_t max_error_ns;
};

/* All may be zero. Strings and the document need to live during probes_new only. */
struct probes_options {
    const char *root;           /* put before every path, for tests; NULL or "": this machine */
    const struct doc *settings; /* docs/probes.md; NULL: the defaults */
    const char *only;           /* comma-separated names of the probes to run; NULL: all that are enabled */
    bool log_from_start;        /* the kernel log from its oldest record; else from now */
    /* the result of an earlier probes_position; ignored if it is of another boot */
    const char *resume;
    int64_t (*wall_ns)(void *context); /* time of the signals; NULL: the system's */
    int64_t (*cost_ns)(void *context); /* processor time used by this thread; NULL: the system's */
    bool (*clock)(void *context, struct probes_clock *ret_clock); /* NULL: adjtimex, none below a root */
    void *context;
};

/* Reads the settings and opens the kernel log; starts nothing. NULL with a message when the settings break a
 * rule: unknown probe or setting, wrong type. */
struct probes *probes_new(const struct probes_options *options, struct error *error);
/* Kills and reaps its children; does not wait for one that cannot be killed. */
void probes_free(struct probes *probes);

typedef void probes_sink(void *context, const struct signal *signal);

/* Runs the probes that are due, takes the answers of children, and hands the signals to `sink` in the order
 * in which they were found; a signal is valid during the call of `sink`. `now_ns` is any clock that does not
 * go back. */
void probes_round(struct probes *probes, int64_t now_ns, probes_sink *sink, void *context);
/* When a round is due at the latest, on the clock of `now_ns`; 0 before the first. */
int64_t probes_next_ns(const struct probes *probes);
/* An epoll descriptor, owned by `probes`: readable when a round is due at once (kernel log, a child). */
int probes_fd(const struct probes *probes);
/* Makes every enabled probe due in the next round. */
void probes_hurry(struct probes *probes);
/* A child that still has time is at work: its signals are yet to come. One that stays counts until it has
 * first spoken. */
bool probes_busy(const struct probes *probes);

/* The offset of this clock against the controller's, as measured by messages, and how far off that may be:
 * "clock/skew" begins above the limit (500 ms) for certain, and the next round, due at once then, says so.
 * To be called as often as it is measured, between rounds. */
void probes_clock_offset(struct probes *probes, int64_t offset_ns, int64_t error_ns);

/* The position in the kernel log, for probes_options.resume of the next process. */
enum { PROBES_POSITION_MAX = 96 };
void probes_position(const struct probes *probes, char ret_text[PROBES_POSITION_MAX]);

/* The state of one probe. */
struct probes_standing {
    const char *name;
    bool enabled, off; /* off: too costly, for now */
    int64_t period_ns, cost_max_ns;
    uint64_t runs;                              /* that were finished */
    int64_t cost_ns, cost_sum_ns, cost_most_ns; /* processor time with that of children: newest, sum, most */
    int64_t wall_ns;                            /* of the newest: from its begin to its last answer */
    uint32_t conditions;                        /* that last now */
    uint32_t hung;                              /* children that were killed and do not die */
    uint64_t timeouts;
    uint64_t said, unsaid; /* signals; equal events that were swallowed */
    const char *note;      /* why it sees nothing: "no /dev/kmsg"; "" */
};
size_t probes_count(void);
void probes_standing(const struct probes *probes, size_t index, struct probes_standing *ret_standing);
/* Calls `sink` with each condition that lasts, as OCCUR with its first time. */
void probes_conditions(struct probes *probes, probes_sink *sink, void *context);
/* Returns, while a sink is called, the name of the probe whose signal it is. */
const char *probes_speaking(const struct probes *probes);

#endif
