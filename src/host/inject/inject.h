/* inject.h - faults on purpose: selectors and scenario files, and the means that need the kernel: cutting the
 * network of control groups, damaging a file, filling a disk. The command (src/cmd/inject.h) resolves
 * selectors, signals processes, and waits for the events of a scenario.
 *
 * Readers of outside bytes never crash and name the wrong place. One thread; no function keeps state between
 * calls.
 */
#ifndef PHX_HOST_INJECT_INJECT_H
#define PHX_HOST_INJECT_INJECT_H

#include "doc/doc.h"
#include "base/error.h"
#include "base/rng.h"

/* --- what is to break ----------------------------------------------------------------------------------- */

enum inject_kind {
    INJECT_CONTROLLER,
    INJECT_MACHINE,
    INJECT_AGENT,
    INJECT_RACK,
    INJECT_RANK,
    INJECT_CHECKPOINT,
    INJECT_CHIP, /* this and the following: parts of machines */
    INJECT_LINK,
    INJECT_SWITCH,
    INJECT_KINDS
};
extern const char *const inject_kind_names[INJECT_KINDS]; /* "controller", "machine", ... */
enum inject_choice {
    CHOICE_NAME,   /* by name */
    CHOICE_RANK,   /* by the number of a rank */
    CHOICE_RANDOM, /* any */
    CHOICE_ALL,    /* all ranks */
};
/*     controller   machine/m-2   agent/m-2   rack/NAME   pod/NAME   rank 3   rank 3 of jobset/train
 *     jobset/train (all ranks of it)
 *     machine of rank 3   agent of random rank   rack of rank 0 of jobset/train   checkpoint of rank 2
 *     random machine   random rank
 *     cube/NAME (as rack/NAME)   chip/m-2/3   link/m-2/0   switch/m-2/0   switch/NAME (of a rack or cube)
 * A bare word that is none of these is a machine's name. */
struct inject_selector {
    enum inject_kind kind;
    enum inject_choice choice;
    bool by_pod;     /* `name` is a Pod's */
    struct str name; /* CHOICE_NAME; of a part: its machine's, or that of a rack or cube (`part` empty) */
    struct str part; /* which chip, link or switch of the machine */
    int64_t rank;    /* CHOICE_RANK */
    bool by_rank;    /* selects objects that belong to ranks: one, any or all of them */
    struct str job;  /* "train" or "team/train"; empty: the one that the caller has as its default */
};
/* `text` must live as long as the selector. ERROR_INVALID says why the text is wrong. */
int inject_selector_parse(struct str text, struct inject_selector *ret, struct error *error);

enum inject_action {
    ACTION_KILL,
    ACTION_STOP,
    ACTION_CONTINUE,
    ACTION_PARTITION,
    ACTION_SLOW,
    ACTION_CORRUPT,
    ACTION_CHIP,
    ACTION_LINK,
    ACTION_SWITCH,
    ACTION_LIE,
    ACTION_FILL,
    ACTION_OOM,
    INJECT_ACTIONS
};
extern const char *const inject_action_names[INJECT_ACTIONS]; /* "kill", "stop", ..., "fill-disk", "oom" */
bool inject_action_find(struct str name, enum inject_action *ret);
/* Why the action does not apply to this kind of object; NULL: it does. */
const char *inject_action_refuses(enum inject_action action, enum inject_kind kind);
struct inject_how;
/* Chooses the action that all of these objects can undergo: a part of a machine cannot be killed or slowed,
 * so the fault is reported that its driver or a probe would report. Returns NULL, or why the object
 * *ret_which cannot undergo it. */
const char *inject_settle(const struct inject_selector *objects, size_t count, enum inject_action *action,
                          struct inject_how *how, size_t *ret_which);

enum inject_direction { DIRECTION_IN = 1, DIRECTION_OUT = 2, DIRECTION_BOTH = 3 };
enum inject_tier { TIER_MEMORY, TIER_STORAGE };

/* The parameters of an injection, beyond action and object; zeroed: the defaults. */
struct inject_how {
    enum inject_direction direction; /* of a partition; 0: both */
    int64_t for_ns;                  /* it undoes itself after this; 0: it stays */
    /* slow: the share of the time for which it is stopped; 0: its CPU is left alone */
    uint32_t cpu_percent;
    uint32_t loss_ppm;               /* slow: of its packets are lost; 0: its network is left alone */
    enum inject_tier tier;           /* corrupt */
    struct str code, place;          /* of a fault; empty: the action's own */
    int64_t chip;                    /* -1: none */
};
struct inject_how inject_how_default(void);
/* Takes one option by its name ("direction", "for", "cpu", "loss", "tier", "code", "place", "chip") from the
 * command line or a scenario; the texts must live as long as `how`. ERROR_NOT_FOUND: there is no such
 * option. */
int inject_how_set(struct inject_how *how, struct str name, struct str value, struct error *error);
/* The options that are not the defaults, as texts that inject_how_set takes, into the object `spec`. */
void inject_how_write(const struct inject_how *how, struct arena *arena, struct doc *spec);
/* Whether something is left to undo after the action. */
bool inject_stands(enum inject_action action);

/* --- scenario files ------------------------------------------------------------------------------------- */

enum {
    SCENARIO_STEPS_MAX = 256,
    SCENARIO_OBJECTS_MAX = 64,
    SCENARIO_EXPECT_MAX = 64,
    SCENARIO_REPEAT_MAX = 10000,
};
enum scenario_moment { MOMENT_AT, MOMENT_STEP, MOMENT_AFTER, MOMENT_CONDITION };
struct scenario_step {
    struct str name;
    enum scenario_moment moment;
    int64_t at_ns;        /* MOMENT_AT: since the start; MOMENT_AFTER: since the step before was done */
    int64_t step;         /* MOMENT_STEP: the job has made it */
    struct str condition; /* MOMENT_CONDITION: of the job, "Completed" */
    struct str job;       /* of the moment; empty: the scenario's */
    enum inject_action action;
    struct inject_selector *objects; /* all at once */
    struct doc **object_nodes;       /* where they stand, for messages */
    size_t object_count;
    size_t pick; /* this many of the objects, chosen at random; 0: all */
    struct inject_how how;
    uint32_t repeat;             /* 1: once */
    int64_t every_ns, jitter_ns; /* between repetitions; the jitter is added, evenly from 0 to this */
    uint32_t line, column;
};
enum scenario_expectation {
    EXPECT_COMPLETES,  /* within `ns` */
    EXPECT_FILE,       /* the text of `path`, trimmed, is `text`, or that of the file `same_as` */
    EXPECT_RECOVERED,  /* each fault that ended an attempt: next step of every rank within `ns` */
    EXPECT_SURVIVORS,  /* processes that no step hit were not started again */
    EXPECT_RUNG,       /* `text` was used */
    EXPECT_RESTARTS,   /* from `low` to `high` */
    EXPECT_STEPS_LOST, /* at most `high` at each restart */
};
struct scenario_expect {
    enum scenario_expectation what;
    struct str path, text, same_as;
    int64_t ns, low, high;
    uint32_t line, column;
};
struct scenario {
    struct str name, job; /* job: "train" or "team/train" */
    bool has_seed;
    uint64_t seed;
    int64_t timeout_ns; /* for all of it */
    struct scenario_step *steps;
    size_t step_count;
    struct scenario_expect *expects;
    size_t expect_count;
};
/* Reads the one document of a scenario file into `arena`. ERROR_INVALID / ERROR_LIMIT with "LINE:COLUMN:
 * why"; the caller puts the file's name before it. */
int scenario_read(struct arena *arena, struct str text, struct scenario *ret, struct error *error);

/* --- the kernel's part ---------------------------------------------------------------------------------- */

enum { INJECT_PATH_MAX = 4096 };

/* The control group (v2) of a process as a path of the file system; false: it has none that can be seen. */
bool inject_cgroup_of(int pid, char ret_path[INJECT_PATH_MAX]);
/* From now on drops packets of all processes whose sockets were made in this group, `loss_ppm` of them
 * (1,000,000: all). Needs CAP_BPF and CAP_NET_ADMIN. A second call changes nothing. */
int inject_cut(const char *cgroup, enum inject_direction direction, uint32_t loss_ppm, struct error *error);
/* Undoes inject_cut in each direction; *ret_count: how many programs it removed. */
int inject_cut_heal(const char *cgroup, size_t *ret_count, struct error *error);

/* Flips one bit in each of `flips` places of a file, chosen by `rng` behind its first `keep` bytes. */
int inject_flip(const char *path, uint64_t keep, uint32_t flips, struct rng *rng, struct error *error);
/* Makes a file `path` that takes the free space of its file system; ERROR_LIMIT if more than limit_bytes are
 * free, because others need such a disk. */
int inject_fill(const char *path, uint64_t limit_bytes, uint64_t *ret_bytes, struct error *error);

#endif
