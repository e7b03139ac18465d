/* internal.h - what the probes share; private to host/probes.
 *
 *   probes.c   the table, the schedule, costs        settings.c  the document
 *   emit.c     conditions, events, counters          child.c     forked looks and external commands
 *   files.c    reading below the root                match.c     patterns of log lines
 *   kmsg.c, edac.c ...                               one probe each
 *   kmsg_rules.c kmsg_nvidia.c kmsg_accelerator.c kmsg_mce.c   what lines of the kernel log mean
 *
 * A probe has either `run`, which reads and judges in the owner's thread, or `look`, which reads in a child
 * and writes facts (lines of place, name, value), and `judge`, which gets these in the owner's thread.
 */
#ifndef PHX_HOST_PROBES_INTERNAL_H
#define PHX_HOST_PROBES_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "host/probes/probes.h"

enum {
    FACTS_BYTES_MAX = 4 * 1024 * 1024, /* output of one child */
    CONDITIONS_MAX = 4096,
    COUNTERS_MAX = 65536,
    CHILDREN_MAX = 128,
};

struct probe;

/* --- the table (probes.c) ------------------------------------------------------------------------- */

struct probe_kind {
    const char *name;
    int64_t period_ns;
    int64_t cost_ns;    /* limit of the processor time of one run, children included */
    int64_t timeout_ns; /* of a look */
    const char *keys;   /* its settings besides enabled, period, timeout, cost: " key other " */
    /* Reads settings and makes `state`. Returns 0 or an error. May be NULL. */
    int (*start)(struct probe *probe, struct error *error);
    void (*run)(struct probe *probe);
    void (*look)(const struct probe *probe, const char *key, struct buf *facts);
    void (*judge)(struct probe *probe, const char *key, struct str facts);
    /* Called after a look without an answer: it timed out (`hung`) or crashed. `facts` are its output until
     * then. May be NULL. */
    void (*failed)(struct probe *probe, const char *key, bool hung, struct str facts);
    void (*paused)(struct probe *probe); /* the probe will not run for a while */
    /* Closes descriptors of `state`, which is freed afterwards. */
    void (*stop)(struct probe *probe);
    bool always;                         /* run in every round */
};
extern const struct probe_kind probe_kmsg, probe_edac, probe_pcie, probe_infiniband, probe_ethernet,
    probe_mounts, probe_disk, probe_smart, probe_thermal, probe_clock, probe_memory, probe_files,
    probe_processes, probe_tcp, probe_nvml, probe_external;

struct probe {
    const struct probe_kind *kind;
    struct probes *all;
    const struct doc *settings; /* its member of "probes"; may be NULL */
    bool enabled, running;      /* running: begun, and a child has not answered */
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
    struct arena arena; /* settings, also as parsed by probes */
    char *root;
    struct probes_options options;
    const struct doc *manifest; /* NULL */
    struct probe *list;
    size_t count;
    int64_t now_ns, wall_ns; /* of the round */
    bool in_round, hurry;
    const char *speaking; /* the probe whose signal is passed to a sink */
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

/* Lists the GPUs in the order of the chips: the manifest's, else the driver's. */
void probes_find_gpus(struct probes *all);
/* Accounts for a child of the probe, or its own run, that has ended. `child_cost_ns` is its processor time
 * without that of judge. `late`: the child was killed, and the run does not count. */
void probe_ended(struct probe *probe, int64_t child_cost_ns, bool late);
/* Judges the answer of a child, and measures the processor time of that. */
void probe_answered(struct probe *probe, const char *key, struct str facts);
void probe_failed(struct probe *probe, const char *key, bool hung, struct str facts);

/* --- settings.c ----------------------------------------------------------------------------------- */

/* Checks the settings document and gives each probe its part. */
int settings_read(struct probes *all, struct error *error);
/* Reads a duration ("30s" or seconds); `node` NULL: the fallback. ERROR_INVALID: anything else. */
int settings_duration(const struct doc *node, const char *what, int64_t fallback_ns, int64_t *ret_ns,
                      struct error *error);
/* Reads an integer setting of the probe within min..max; absent: the fallback. ERROR_INVALID. */
int probe_setting(const struct probe *probe, const char *key, int64_t min, int64_t max, int64_t fallback,
                  int64_t *ret_value, struct error *error);
/* Returns the list `key` of the manifest: an array, or NULL. */
const struct doc *probe_manifest(const struct probe *probe, const char *key);
/* Returns whether the list `key` of the probe's settings contains the string. A star at an entry's end
 * matches any rest. */
bool probe_listed(const struct probe *probe, const char *key, struct str name);

/* --- emit.c --------------------------------------------------------------------------------------- */

/* Formats a place, such as "port/..."; cut and cleaned as places must be. */
struct probe_place {
    char text[SIGNAL_PLACE_MAX + 1];
};
struct probe_place place_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets a condition on or off; a change is reported. Evidence is copied. */
void probe_condition(struct probe *probe, const char *code, const char *place, bool on,
                     enum signal_severity severity, const char *evidence, ...)
    __attribute__((format(printf, 6, 7)));
bool probe_is_on(const struct probe *probe, const char *code, const char *place);
/* Begins a sweep: probe_sweep_end() ends every condition of this probe that neither probe_condition nor
 * probe_keep has named in between. */
void probe_sweep_begin(struct probe *probe);
/* Leaves a condition as it was, for a round in which its state is not known. */
void probe_keep(struct probe *probe, const char *code, const char *place);
void probe_sweep_end(struct probe *probe);

/* Reports an event that happened `count` times, the last at wall time `at_ns`. */
void probe_once(struct probe *probe, const char *code, const char *place, enum signal_severity severity,
                int64_t at_ns, uint64_t count, struct str evidence);
void probe_oncef(struct probe *probe, const char *code, const char *place, enum signal_severity severity,
                 uint64_t count, const char *evidence, ...) __attribute__((format(printf, 6, 7)));

/* Returns how much a counter has grown since the last look; 0 at the first look and if it went back. */
uint64_t probe_delta(struct probe *probe, const char *place, const char *name, uint64_t value);
/* Adds to the count of a window, which begins with its first event. Returns the sum and ends the window once
 * the sum reaches `threshold`; otherwise 0. */
uint64_t probe_window(struct probe *probe, const char *place, const char *name, uint64_t add,
                      uint64_t threshold, int64_t window_ns);
/* Returns whether probe_see was called for this place and name, and no probe_unsee since; for states that
 * were good once. */
bool probe_seen(struct probe *probe, const char *place, const char *name);
void probe_see(struct probe *probe, const char *place, const char *name);
void probe_unsee(struct probe *probe, const char *place, const char *name);

void emit_flush(struct probes *all, probes_sink *sink, void *context);
void emit_done(struct probes *all);
/* Returns the chip of a place, its index in `gpus`, or -1. */
int32_t emit_chip(struct probes *all, const char *place);

/* --- child.c -------------------------------------------------------------------------------------- */

/* Starts the probe's look in a child. Returns false if a child with that key lives or none could be made. A
 * `resident` child keeps writing blocks that end with a line "."; the time limit then applies between
 * blocks. */
bool child_look(struct probe *probe, const char *key, int64_t timeout_ns, bool resident);
/* Starts a command in its own process group. The facts are its exit status and "
 * " (-1: killed by a signal), then its output. Returns false as child_look. */
bool child_command(struct probe *probe, const char *key, char *const *argv, int64_t timeout_ns);
/* Returns whether a child of that key is not reaped yet; it may have been killed. */
bool child_lives(const struct probe *probe, const char *key);
/* Returns whether a child of the probe is within its time limit. A resident child counts until its first
 * block. */
bool child_running(const struct probe *probe);
void child_round(struct probes *all); /* takes answers, kills late children, reaps */
int64_t child_next_ns(const struct probes *all);
/* Gives all children that much more time. */
void child_excuse(struct probes *all, int64_t late_ns);
void child_done(struct probes *all);
/* In a resident child: writes a block. Ends the process if no reader is left. */
void child_say_block(struct buf *facts);
/* In any child: writes the facts so far, which are kept even if the child hangs later. */
void child_say_part(struct buf *facts);

/* --- facts ---------------------------------------------------------------------------------------- */

struct fact {
    struct str place, name, value;
};
/* Adds one line of facts, in a look. Tabs and control bytes of the value become blanks. */
void fact_put(struct buf *facts, const char *place, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Takes the next fact off `rest`. Returns false at the end. Lines that are no facts are skipped. */
bool fact_next(struct str *rest, struct fact *ret_fact);
bool str_to_u64(struct str text, uint64_t *ret_value); /* decimal, nothing else */

/* --- files.c -------------------------------------------------------------------------------------- */

struct text { /* the beginning of a small file, NUL-terminated */
    char data[4096];
    size_t len;
};
/* Joins the root and a path. Returns false if the result is too long. */
bool file_path(const struct probes *all, char *ret_path, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads the beginning of a file, without white space at its end. Returns false with errno if the file is
 * absent or refused. */
bool file_read(const struct probes *all, struct text *ret_text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool file_u64(const struct probes *all, uint64_t *ret_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads a file up to about `max` bytes. Returns false on any error. */
bool file_read_all(const struct probes *all, struct buf *ret_text, size_t max, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Lists the names in a folder that begin with `prefix`, sorted, without those that begin with a dot; none if
 * it is absent. */
struct names {
    VEC(char *) list;
};
void file_list(const struct probes *all, struct names *ret_names, const char *prefix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void names_done(struct names *names);
#define NAMES_CLEANUP __attribute__((cleanup(names_done)))

/* --- match.c -------------------------------------------------------------------------------------- */

enum { CAPTURES_MAX = 4 };
/* Finds `pattern` anywhere in `text`. In a pattern '*' matches any bytes up to the first place of the literal
 * that follows, '%' one decimal number, '@' one word (no blank, comma, semicolon, quote or bracket; a colon,
 * dot or star at its end is not part of it) and '&' a name of any bytes up to the literal that follows; these
 * three are captured in order. '~' matches the end of the text. All other bytes match themselves. A pattern
 * begins with a literal, or with '@' and a literal: the word before that literal. */
bool match(const char *pattern, struct str text, struct str captures[CAPTURES_MAX]);

/* --- kmsg_text.c ---------------------------------------------------------------------------------- */

bool kmsg_has(struct str text, const char *part);
/* Reads the hexadecimal number after `before`. Returns false if there is none. */
bool kmsg_hex(struct str text, const char *before, uint64_t *ret_value);
/* Converts a PCI address, "PCI:0000:9b:00" or "0000:9B:00.0", to the place KIND/0000:9b:00.0, as sysfs writes
 * it. */
struct probe_place kmsg_pci_place(const char *kind, struct str address);

/* --- kmsg_nvidia.c, kmsg_accelerator.c, kmsg_mce.c ------------------------------------------------ */

/* Each judges one line of the kernel log. Returns false if the line is not of its kind. */
bool kmsg_xid(struct probe *probe, struct str line, int64_t at_ns);
bool kmsg_sxid(struct probe *probe, struct str line, int64_t at_ns);
bool kmsg_accelerator(struct probe *probe, struct str line, int64_t at_ns); /* AMD, Gaudi, Ascend */
bool kmsg_machine_check(struct probe *probe, struct str line, int64_t at_ns);

/* --- kmsg_rules.c --------------------------------------------------------------------------------- */

/* Returns the severity that NVIDIA's catalogue gives an XID. */
enum signal_severity xid_severity(uint64_t number);
/* Judges a line of the kernel log. `kernel`: the kernel itself wrote it, as far as is known. */
void kmsg_judge(struct probe *probe, struct str line, int64_t at_ns, bool kernel);

/* --- nvml_look.c ---------------------------------------------------------------------------------- */

/* Runs the child that uses NVML. Returns only if it could not begin, with the reason in `facts`. */
void nvml_live(const struct probe *probe, const char *library, int64_t period_ns, struct buf *facts);

/* --- clock.c -------------------------------------------------------------------------------------- */

void clock_offset(struct probe *probe, int64_t offset_ns, int64_t error_ns);
/* --- kmsg.c --------------------------------------------------------------------------------------- */

void kmsg_position(const struct probe *probe, char ret_text[PROBES_POSITION_MAX]);

#endif
