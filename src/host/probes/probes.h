/* probes.h - reports the machine's own health as signals (core/words/signal.h): kernel log, sysfs, mounts,
 * clocks, NVML, external checks.
 *
 *     struct probes *probes = probes_new(&options, &error);
 *     for (;;) {                                                 // or: uv_poll on probes_fd, a timer at next
 *         probes_round(probes, mono_ns(), on_signal, context);
 *         poll(&(struct pollfd){probes_fd(probes), POLLIN}, 1, until(probes_next_ns(probes)));
 *     }
 *     probes_free(probes);
 *
 * Only changes are reported. A condition is reported when it begins (SIGNAL_OCCUR) and when it ends
 * (SIGNAL_RECOVER); in between only if its severity rises. An event without an end is SIGNAL_ONCE; events of
 * equal code and place within PROBES_SAME_NS of the first count as one and are not reported again. Counters
 * are judged by their growth after the first reading. A state that was never good is not reported, unless the
 * manifest of the settings expects it: a port that was never up is not down.
 *
 * No function blocks, except probes_free for a moment. Work that could hang or take long is done in a forked
 * child with a time limit. A late child is killed and reaped later, if ever: one that SIGKILL cannot end is
 * counted, and each mount and each probe has at most one of these. The caller's thread reads only the kernel
 * log, /proc files of a few lines and the clock. If the caller itself was stopped, its children get that much
 * more time. A probe that uses more processor time than its limit is off for PROBES_OFF_NS, and
 * "os/probe-cost" reports it.
 *
 * A probes object belongs to one thread; there may be any number of objects. Children close every file they
 * inherit (a tether must not stay open in them) and die with the thread that made them.
 */
#ifndef PHX_HOST_PROBES_PROBES_H
#define PHX_HOST_PROBES_PROBES_H

#include "doc/doc.h"
#include "base/error.h"
#include "base/units.h"
#include "core/words/signal.h"

#define PROBES_SAME_NS (5 * NS_PER_SECOND)   /* equal events this close count as one */
#define PROBES_OFF_NS  (600 * NS_PER_SECOND) /* how long a probe that costs too much stays off */

struct probes;

/* The state of the kernel's clock (adjtimex). */
struct probes_clock {
    bool synced;
    int64_t max_error_ns;
};

/* All members may be zero. Strings and the document need to live during probes_new only. */
struct probes_options {
    const char *root;           /* prefix of every path, for tests; NULL or "": none */
    const struct doc *settings; /* docs/probes.md; NULL: the defaults */
    const char *only;           /* comma-separated names of the probes to run; NULL: all that are enabled */
    bool log_from_start;        /* read the kernel log from its oldest record, else from now on */
    /* The result of an earlier probes_position; ignored if it is of another boot. */
    const char *resume;
    int64_t (*wall_ns)(void *context); /* time of the signals; NULL: the system's */
    int64_t (*cost_ns)(void *context); /* processor time used by this thread; NULL: the system's */
    bool (*clock)(void *context, struct probes_clock *ret_clock); /* NULL: adjtimex, none below a root */
    void *context;
};

/* Reads the settings and opens the kernel log; starts no probe. Returns NULL with a message if the settings
 * break a rule: unknown probe or setting, wrong type. */
struct probes *probes_new(const struct probes_options *options, struct error *error);
/* Kills and reaps the children, and frees the probes. Does not wait for a child that cannot be killed. */
void probes_free(struct probes *probes);

typedef void probes_sink(void *context, const struct signal *signal);

/* Runs the probes that are due, takes the answers of children, and passes the signals to `sink` in the order
 * in which they were found. A signal is valid during the call of `sink`. `now_ns` is any clock that does not
 * go back. */
void probes_round(struct probes *probes, int64_t now_ns, probes_sink *sink, void *context);
/* Returns when the next round is due, on the clock of `now_ns`; 0 before the first. */
int64_t probes_next_ns(const struct probes *probes);
/* Returns an epoll descriptor, owned by `probes`, that is readable when a round is due at once (kernel log, a
 * child). */
int probes_fd(const struct probes *probes);
/* Makes every enabled probe due in the next round. */
void probes_hurry(struct probes *probes);
/* Returns whether signals of a requested round or of a child within its time limit are yet to come. A
 * resident child counts until its first block. */
bool probes_busy(const struct probes *probes);

/* Takes a measurement of this clock's offset from the controller's, and its error. "clock/skew" begins once
 * the offset is above the limit (500 ms) for certain; the next round, which is then due at once, reports it.
 * Call it after each measurement, between rounds. */
void probes_clock_offset(struct probes *probes, int64_t offset_ns, int64_t error_ns);

/* Writes the position in the kernel log, for probes_options.resume of the next process. */
enum { PROBES_POSITION_MAX = 96 };
void probes_position(const struct probes *probes, char ret_text[PROBES_POSITION_MAX]);

/* The state of one probe. */
struct probes_standing {
    const char *name;
    bool enabled, off; /* off: switched off for a while, as too costly */
    int64_t period_ns, cost_max_ns;
    uint64_t runs; /* finished runs */
    /* Processor time including children: of the newest run, of all, the most. */
    int64_t cost_ns, cost_sum_ns, cost_most_ns;
    int64_t wall_ns;     /* of the newest run: from its start to its last answer */
    uint32_t conditions; /* lasting now */
    uint32_t hung;       /* children that were killed and have not died */
    uint64_t timeouts;
    uint64_t said, unsaid; /* signals reported; equal events suppressed */
    const char *note;      /* why it sees nothing: "no /dev/kmsg"; else "" */
};
size_t probes_count(void);
void probes_standing(const struct probes *probes, size_t index, struct probes_standing *ret_standing);
/* Calls `sink` with each lasting condition, as SIGNAL_OCCUR with its first time. */
void probes_conditions(struct probes *probes, probes_sink *sink, void *context);
/* Returns, from inside a sink, the name of the probe whose signal is passed. */
const char *probes_speaking(const struct probes *probes);

#endif
