/* inject.h - fault injection: selectors, scenario files, and the actions that need the kernel: cutting the
 * network of control groups, damaging a file, filling a disk. The command (src/cmd/inject.h) resolves
 * selectors, signals processes, and waits for the events of a scenario.
 *
 * Functions that parse outside bytes never crash, and their errors name the place of the mistake. One thread;
 * no function keeps state between calls.
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
    struct str name; /* CHOICE_NAME; of a part: its machine, or a rack or cube (`part` empty) */
    struct str part; /* which chip, link or switch of the machine */
    int64_t rank;    /* CHOICE_RANK */
    bool by_rank;    /* selects objects that belong to ranks: one, any or all */
    struct str job;  /* "train" or "team/train"; empty: the caller's default */
};
/* Parses a selector. `text` must live as long as the selector. ERROR_INVALID says why the text is wrong. */
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
/* Returns why the action does not apply to this kind of object, or NULL if it does. */
const char *inject_action_refuses(enum inject_action action, enum inject_kind kind);
struct inject_how;
/* Chooses the action that applies to all these objects. A part of a machine cannot be killed or slowed;
 * instead *action becomes one that reports the fault as its driver or a probe would, and `how` gets its code.
 * Returns NULL, or why the action does not apply to the object *ret_which. */
const char *inject_settle(const struct inject_selector *objects, size_t count, enum inject_action *action,
                          struct inject_how *how, size_t *ret_which);

enum inject_direction { DIRECTION_IN = 1, DIRECTION_OUT = 2, DIRECTION_BOTH = 3 };
enum inject_tier { TIER_MEMORY, TIER_STORAGE };

/* The parameters of an injection, beyond action and object; zeroed: the defaults. */
struct inject_how {
    enum inject_direction direction; /* of a partition; 0: both */
    int64_t for_ns;                  /* undone after this time; 0: not undone */
    /* Slow: the share of time for which the object is stopped; 0: its CPU is not slowed. */
    uint32_t cpu_percent;
    uint32_t loss_ppm;               /* slow: packets lost; 0: its network is not slowed */
    enum inject_tier tier;           /* corrupt */
    struct str code, place;          /* of a fault; empty: the action's own */
    int64_t chip;                    /* -1: none */
};
struct inject_how inject_how_default(void);
/* Sets one option by its name ("direction", "for", "cpu", "loss", "tier", "code", "place", "chip"), from the
 * command line or a scenario. The texts must live as long as `how`. ERROR_NOT_FOUND: there is no such option.
 * ERROR_INVALID: the value is wrong. */
int inject_how_set(struct inject_how *how, struct str name, struct str value, struct error *error);
/* Writes the options that are not the defaults into the object `spec`, as texts that inject_how_set
 * accepts. */
void inject_how_write(const struct inject_how *how, struct arena *arena, struct doc *spec);
/* Returns whether the action stays in force until it is undone. */
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
    int64_t at_ns;        /* MOMENT_AT: since the start; MOMENT_AFTER: since the previous step was done */
    int64_t step;         /* MOMENT_STEP: the step that the job must have made */
    struct str condition; /* MOMENT_CONDITION: of the job, "Completed" */
    struct str job;       /* the job of the moment; empty: the scenario's */
    enum inject_action action;
    struct inject_selector *objects; /* all are hit at once */
    struct doc **object_nodes;       /* their places in the file, for messages */
    size_t object_count;
    size_t pick; /* number of objects to choose at random; 0: all */
    struct inject_how how;
    uint32_t repeat;             /* 1: once */
    int64_t every_ns, jitter_ns; /* between repetitions; the added jitter is uniform from 0 to jitter_ns */
    uint32_t line, column;
};
enum scenario_expectation {
    EXPECT_COMPLETES, /* within `ns` */
    EXPECT_FILE,      /* the trimmed text of `path` equals `text`, or that of the file `same_as` */
    /* After each fault that ended an attempt, every rank makes its next step within `ns`. */
    EXPECT_RECOVERED,
    EXPECT_SURVIVORS,  /* processes that no step hit were not restarted */
    EXPECT_RUNG,       /* the recovery rung `text` was used */
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
/* Reads the one document of a scenario file into `arena`. The message of ERROR_INVALID and ERROR_LIMIT is
 * "LINE:COLUMN: why"; the caller puts the file's name before it. */
int scenario_read(struct arena *arena, struct str text, struct scenario *ret, struct error *error);

/* --- the kernel's part ---------------------------------------------------------------------------------- */

enum { INJECT_PATH_MAX = 4096 };

/* Stores the control group (v2) of a process as a path of the file system. Returns false if the process has
 * no visible group. */
bool inject_cgroup_of(int pid, char ret_path[INJECT_PATH_MAX]);
/* Drops `loss_ppm` of the packets (1,000,000: all) of every socket made in this control group, from now on. A
 * second call replaces the first. Needs CAP_BPF and CAP_NET_ADMIN. ERROR_IO: the kernel refuses. */
int inject_cut(const char *cgroup, enum inject_direction direction, uint32_t loss_ppm, struct error *error);
/* Undoes inject_cut in both directions and stores how many programs it removed. */
int inject_cut_heal(const char *cgroup, size_t *ret_count, struct error *error);

/* Flips one bit at each of `flips` places of a file, chosen by `rng` after its first `keep` bytes.
 * ERROR_INVALID: the file is not longer than that. */
int inject_flip(const char *path, uint64_t keep, uint32_t flips, struct rng *rng, struct error *error);
/* Makes a file `path` that takes all free space of its file system, and stores its size. The caller removes
 * it. ERROR_LIMIT if more than limit_bytes are free, because other programs need such a disk. */
int inject_fill(const char *path, uint64_t limit_bytes, uint64_t *ret_bytes, struct error *error);

#endif
