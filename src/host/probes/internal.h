/* internal.h - what the probes share; private to host/probes.
 *
 *   probes.c   the table, the schedule, costs        settings.c  the document
 *   emit.c     conditions, events, counters          child.c     forked looks and external commands
 *   files.h    reading below the root                match.c     patterns of log lines
 *   kmsg.c, edac.c ...                               one probe each
 *   kmsg_rules.c kmsg_nvidia.c kmsg_accelerator.c kmsg_mce.c   what lines of the kernel log mean
 *
 * A probe has either `run`, which reads and judges in the owner's thread, or `look`, which reads in a child
 * and says facts (lines of place, name, value), and `judge`, which gets them in the owner's thread.
 */
#ifndef PHX_HOST_PROBES_INTERNAL_H
#define PHX_HOST_PROBES_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "host/probes/probes.h"

enum {
    FACTS_BYTES_MAX = 4 * 1024 * 1024, /* that a child may say */
    CONDITIONS_MAX = 4096,
    COUNTERS_MAX = 65536,
    CHILDREN_MAX = 128,
};

struct probe;

/* --- the table (probes.c) ------------------------------------------------------------------------- */

struct probe_kind {
    const char *name;
    int64_t period_ns;
    int64_t cost_ns;    /* bound of the processor time of one run, children and all */
    int64_t timeout_ns; /* of a look */
    const char *keys;   /* its settings besides enabled, period, timeout, cost: " key other " */
    /* Reads settings, makes state; 0 or an error. NULL: nothing to do. */
    int (*start)(struct probe *probe, struct error *error);
    void (*run)(struct probe *probe);
    void (*look)(const struct probe *probe, const char *key, struct buf *facts);
    void (*judge)(struct probe *probe, const char *key, struct str facts);
    /* Called after a look without an answer: it timed out (`hung`) or crashed; `facts` are its output until
     * then. May be NULL. */
    void (*failed)(struct probe *probe, const char *key, bool hung, struct str facts);
    void (*paused)(struct probe *probe); /* it will not run for a while */
    /* closes descriptors of `state`; `state` itself is freed afterwards */
    void (*stop)(struct probe *probe);
    bool always;                         /* run in every round */
};
extern const struct probe_kind probe_kmsg, probe_edac, probe_pcie, probe_infiniband, probe_ethernet,
    probe_mounts, probe_disk, probe_smart, probe_thermal, probe_clock, probe_memory, probe_files,
    probe_processes, probe_tcp, probe_nvml, probe_external;

struct probe {
    const struct probe_kind *kind;
    struct probes *all;
    const struct doc *settings; /* its member of "probes"; NULL */
    bool enabled, running;      /* running: begun and not all answered */
    int64_t period_ns, timeout_ns, cost_max_ns;
    int64_t due_ns, off_until_ns, begun_ns, wait_until_ns;
    int64_t cost_ns; /* of the run so far */
    struct probes_standing standing;
    char note[96];
    void *state;
};

struct condition;
struct queued;
struct recent;
struct counter;
struct child;

struct probes {
    struct arena arena; /* settings, also as probes have read them */
    char *root;
    struct probes_options options;
    const struct doc *manifest; /* NULL */
    struct probe *list;
    size_t count;
    int64_t now_ns, wall_ns; /* of the round */
    bool in_round, hurry;
    const char *speaking; /* the probe whose signal is handed over */
    int epoll_fd;
    bool log_works;             /* the kernel log is read, so other probes need not report its contents */
    VEC(struct queued *) queue; /* found in this round */
    VEC(struct condition *) conditions;
    struct str_map condition_map;
    VEC(struct recent *) recents;
    struct str_map recent_map;
    VEC(struct counter *) counters;
    struct str_map counter_map;
    VEC(struct child *) children;
    char **gpus; /* PCI addresses in the order of the chips */
    size_t gpu_count;
};

/* Reads which GPUs there are, in the order of the chips: the manifest's, else the driver's. */
void probes_find_gpus(struct probes *all);
/* A child of the probe, or its own run, has ended; it used that much processor time beyond the time of
 * judge. */
void probe_ended(struct probe *probe, int64_t child_cost_ns, bool late);
/* Judges the answer of a child, and measures that. */
void probe_answered(struct probe *probe, const char *key, struct str facts);
void probe_failed(struct probe *probe, const char *key, bool hung, struct str facts);

/* --- settings.c ----------------------------------------------------------------------------------- */

/* Checks the document and hands each probe its part. */
int settings_read(struct probes *all, struct error *error);
/* A duration ("30s" or seconds), or the fallback; error when it is something else. */
int settings_duration(const struct doc *node, const char *what, int64_t fallback_ns, int64_t *ret_ns,
                      struct error *error);
/* An integer setting of the probe within min..max. */
int probe_setting(const struct probe *probe, const char *key, int64_t min, int64_t max, int64_t fallback,
                  int64_t *ret_value, struct error *error);
/* The list `key` of the manifest: an array, or NULL. */
const struct doc *probe_manifest(const struct probe *probe, const char *key);
/* Does the list `key` of the probe's settings have that string? A star at an entry's end stands for any
 * rest. */
bool probe_listed(const struct probe *probe, const char *key, struct str name);

/* --- emit.c --------------------------------------------------------------------------------------- */

/* From "%s" pieces: "port/" and so on; cut and cleaned as places must be. */
struct probe_place {
    char text[SIGNAL_PLACE_MAX + 1];
};
struct probe_place place_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The condition is so or not. Evidence is copied. */
void probe_condition(struct probe *probe, const char *code, const char *place, bool on,
                     enum signal_severity severity, const char *evidence, ...)
    __attribute__((format(printf, 6, 7)));
bool probe_is_on(const struct probe *probe, const char *code, const char *place);
/* Everything of this probe that lasts is over unless probe_condition or probe_keep says otherwise before
 * probe_sweep_end. */
void probe_sweep_begin(struct probe *probe);
void probe_keep(struct probe *probe, const char *code,
                const char *place); /* not known this time: as it was */
void probe_sweep_end(struct probe *probe);

/* Reports an event that happened `count` times, the last at wall time `at_ns`. */
void probe_once(struct probe *probe, const char *code, const char *place, enum signal_severity severity,
                int64_t at_ns, uint64_t count, struct str evidence);
void probe_oncef(struct probe *probe, const char *code, const char *place, enum signal_severity severity,
                 uint64_t count, const char *evidence, ...) __attribute__((format(printf, 6, 7)));

/* How much a counter has grown since the last look; 0 at the first and after it went back. */
uint64_t probe_delta(struct probe *probe, const char *place, const char *name, uint64_t value);
/* Adds to the count of a window, which begins with the first event. Returns the sum, and begins a new window,
 * once it reaches `threshold`; otherwise 0. */
uint64_t probe_window(struct probe *probe, const char *place, const char *name, uint64_t add,
                      uint64_t threshold, int64_t window_ns);
/* Was seen before (and is from now on). For "it was right once". */
bool probe_seen(struct probe *probe, const char *place, const char *name);
void probe_see(struct probe *probe, const char *place, const char *name);
void probe_unsee(struct probe *probe, const char *place, const char *name);

void emit_flush(struct probes *all, probes_sink *sink, void *context);
void emit_done(struct probes *all);
/* The chip of a place: its position in `gpus`; -1. */
int32_t emit_chip(struct probes *all, const char *place);

/* --- child.c -------------------------------------------------------------------------------------- */

/* Starts the probe's look in a child. False: one with that key lives, or none could be made. `resident`: it
 * says blocks that end with a line "." for as long as it lives; the time limit is that between blocks. */
bool child_look(struct probe *probe, const char *key, int64_t timeout_ns, bool resident);
/* Starts a command in a process group of its own; its output is the facts, "status\n" of its exit (-1: by a
 * signal) before them. */
bool child_command(struct probe *probe, const char *key, char *const *argv, int64_t timeout_ns);
/* A child of that key is not reaped yet (it may have been killed). */
bool child_lives(const struct probe *probe, const char *key);
/* Has a child of the probe time left? A resident child counts until its first block. */
bool child_running(const struct probe *probe);
void child_round(struct probes *all); /* takes answers, kills late children, reaps */
int64_t child_next_ns(const struct probes *all);
/* All have that much more time. */
void child_excuse(struct probes *all, int64_t late_ns);
void child_done(struct probes *all);
/* In a resident child: writes a block; ends the process when no reader is left. */
void child_say_block(struct buf *facts);
/* In any child: writes the facts so far, which are judged even if it hangs now. */
void child_say_part(struct buf *facts);

/* --- facts ---------------------------------------------------------------------------------------- */

struct fact {
    struct str place, name, value;
};
/* In a look: one line; tabs and control bytes of the value become blanks. */
void fact_put(struct buf *facts, const char *place, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Takes the next one off `rest`; false at the end. Lines that are no facts are passed over. */
bool fact_next(struct str *rest, struct fact *ret_fact);
bool str_to_u64(struct str text, uint64_t *ret_value); /* decimal, nothing else */

/* --- files.c -------------------------------------------------------------------------------------- */

struct text { /* the beginning of a small file, with a NUL */
    char data[4096];
    size_t len;
};
/* Root and path as one; false when too long. */
bool file_path(const struct probes *all, char *ret_path, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* White space at the end is cut. False: absent or refused (errno). */
bool file_read(const struct probes *all, struct text *ret_text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool file_u64(const struct probes *all, uint64_t *ret_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The whole of a file of up to `max` bytes. */
bool file_read_all(const struct probes *all, struct buf *ret_text, size_t max, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Names in a folder that begin with `prefix`, sorted, without those of one dot; none when it is absent. */
struct names {
    VEC(char *) list;
};
void file_list(const struct probes *all, struct names *ret_names, const char *prefix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void names_done(struct names *names);
#define NAMES_CLEANUP __attribute__((cleanup(names_done)))

/* --- match.c -------------------------------------------------------------------------------------- */

enum { CAPTURES_MAX = 4 };
/* Finds `pattern` anywhere in `text`. In a pattern '*' is any run of bytes (the shortest that does), '%' one
 * decimal number, '@' one word (no blank, comma, semicolon, quote or bracket; a colon, dot or star at its end
 * is not part of it) and '&' a name of any bytes, up to the literal that follows; these three are captured
 * in order. '~' is the end of the text. All else is
 * itself. A literal must come first, or '@' and then a literal: the word before it. */
bool match(const char *pattern, struct str text, struct str captures[CAPTURES_MAX]);

/* --- kmsg_text.c ---------------------------------------------------------------------------------- */

bool kmsg_has(struct str text, const char *part);
/* The hexadecimal number behind `before`. */
bool kmsg_hex(struct str text, const char *before, uint64_t *ret_value);
/* "PCI:0000:9b:00", "0000:9B:00.0": as sysfs writes it, "0000:9b:00.0", below `kind`. */
struct probe_place kmsg_pci_place(const char *kind, struct str address);

/* --- kmsg_nvidia.c, kmsg_accelerator.c, kmsg_mce.c ------------------------------------------------ */

/* Each judges one line of the kernel; false: it is another's. */
bool kmsg_xid(struct probe *probe, struct str line, int64_t at_ns);
bool kmsg_sxid(struct probe *probe, struct str line, int64_t at_ns);
bool kmsg_accelerator(struct probe *probe, struct str line, int64_t at_ns); /* AMD, Gaudi, Ascend */
bool kmsg_machine_check(struct probe *probe, struct str line, int64_t at_ns);

/* --- kmsg_rules.c --------------------------------------------------------------------------------- */

/* Returns the severity that NVIDIA's catalogue gives an XID. */
enum signal_severity xid_severity(uint64_t number);
/* Judges a line of the kernel log. `kernel`: the kernel itself wrote it, as far as can be told. */
void kmsg_judge(struct probe *probe, struct str line, int64_t at_ns, bool kernel);

/* --- nvml_look.c ---------------------------------------------------------------------------------- */

/* Runs the child that holds NVML. Returns only if it could not begin, after it has reported why. */
void nvml_live(const struct probe *probe, const char *library, int64_t period_ns, struct buf *facts);

/* --- clock.c -------------------------------------------------------------------------------------- */

void clock_offset(struct probe *probe, int64_t offset_ns, int64_t error_ns);
/* --- kmsg.c --------------------------------------------------------------------------------------- */

void kmsg_position(const struct probe *probe, char ret_text[PROBES_POSITION_MAX]);

#endif
