/* inject.h - what the parts of `phalanx inject` share: the cluster on this computer that things are done to,
 * who is meant by a selector now, doing and undoing, and running a scenario.
 *
 *     struct ground ground;
 *     if (ground_open(&ground, data, job) == EXIT_OK) {
 *         targets = {0};
 *         ground_resolve(&ground, &selector, &targets);
 *         inject_do(&ground, action, &how, &targets, &done);
 *         ground_close(&ground);
 *     }
 * Functions that return an exit code other than EXIT_OK have said why on standard error. One thread.
 */
#ifndef PHX_CMD_INJECT_H
#define PHX_CMD_INJECT_H

#include "cmd/client.h"
#include "host/inject/inject.h"

enum { TARGET_NAME_MAX = 320 };

/* One thing that is hit. */
struct target {
    enum inject_kind kind;         /* never a rack: that is its machines */
    char name[TARGET_NAME_MAX];    /* of a machine or agent; "namespace/pod" of a rank's Pod */
    char machine[TARGET_NAME_MAX]; /* where it is; empty: nowhere, or not known */
    char job[TARGET_NAME_MAX];     /* "namespace/name" of ranks and checkpoints; empty: not known */
    int64_t rank;                  /* -1: it is none, or not known */
};
typedef VEC(struct target) target_list;
typedef VEC(pid_t) pid_list;

/* A Pod that has a machine and has not ended. */
struct ground_pod {
    char name[TARGET_NAME_MAX], machine[TARGET_NAME_MAX], job[TARGET_NAME_MAX]; /* "namespace/name" */
    int64_t rank;
};
struct ground_machine {
    char name[TARGET_NAME_MAX], rack[TARGET_NAME_MAX];
};
struct ground {
    char data[PATH_MAX];       /* folder of `phalanx up` */
    char job[TARGET_NAME_MAX]; /* "namespace/name" that selectors mean without one; empty: none */
    struct client client;
    struct rng rng;
    double max_share;  /* of all machines that one injection may hit without `sure` */
    bool sure, silent; /* silent: nobody is told that it was on purpose */
    bool patient;      /* a controller that does not answer is asked again, for some seconds */
    VEC(struct ground_pod) pods;
    VEC(struct ground_machine) machines;
};

/* inject_ground.c: `job`, "name" or "namespace/name" or NULL, is the default of selectors. */
int ground_open(struct ground *ground, const char *data, const char *job);
void ground_close(struct ground *ground);
/* Asks the API which machines and Pods there are. */
int ground_look(struct ground *ground);
/* Adds those that the selector means now; looks again by itself. EXIT_NOT_FOUND: there is none. */
int ground_resolve(struct ground *ground, const struct inject_selector *selector, target_list *targets);
/* How many different machines they are on. */
size_t ground_machines_hit(const target_list *targets);
/* The processes of a target that live; none of a checkpoint. A rank's are those of its Pod's task. */
void ground_processes(const struct ground *ground, const struct target *target, pid_list *ret_pids);
/* "machine/m-2", "pod/default/train-w-0-1": a selector that means the same one later. */
void target_text(const struct target *target, char ret_text[TARGET_NAME_MAX + 32]);
/* The machine's folder of checkpoints in memory, where it has one. */
bool ground_memory_of(const struct ground *ground, const char *machine, char ret_path[PATH_MAX]);

/* inject_act.c */
struct injected {
    size_t count;         /* processes, control groups, files or faults that were hit */
    const char *noun;     /* what was counted */
    int64_t at_ns;        /* since 1970 */
    VEC(int64_t) records; /* of what stands: numbers for inject_heal */
};
/* Does it to all targets in one moment, after having told the controller that it is done on purpose. Refuses
 * when too many machines would be hit. `keeper`: slowing a CPU needs a process that does it; a child is made
 * for it, which ends with the heal. */
int inject_do(struct ground *ground, enum inject_action action, const struct inject_how *how,
              const target_list *targets, struct injected *ret);
void injected_done(struct injected *done);
/* Undoes what stands under this number; twice is as once. */
int inject_heal(struct ground *ground, int64_t record);
/* The numbers of all that stands, in order. */
typedef VEC(int64_t) record_list;
void inject_standing(const struct ground *ground, record_list *ret_records);
/* One line a record, or JSON. */
void inject_print_standing(const struct ground *ground, bool json);

/* inject_harm.c: the actions that are no signals. They count what they hit in *count and add to `paths` what
 * undoing needs. */
typedef VEC(char *) path_list; /* on the heap */
void path_list_done(path_list *paths);
int harm_cut(const struct ground *ground, const struct target *target, const struct inject_how *how,
             path_list *paths, size_t *count);
int harm_corrupt(struct ground *ground, const struct target *target, enum inject_tier tier, size_t *count);
int harm_fill(const struct ground *ground, const struct target *target, path_list *paths, size_t *count);
int harm_oom(const struct ground *ground, const struct target *target, size_t *count);
/* A fault is reported (or with `recover` taken back); the code that was used in *code. */
int harm_report(struct ground *ground, enum inject_action action, const struct target *target,
                const struct inject_how *how, bool recover, size_t *count);
/* Tells the controller that what comes is on purpose. Nothing is lost where nobody answers but the note. */
void harm_note(struct ground *ground, enum inject_action action, const target_list *targets);
/* Stops and continues the target's processes in turns until SIGTERM; never returns. */
void harm_slow(const struct ground *ground, const struct target *target, uint32_t percent)
    __attribute__((noreturn));
/* A machine whose power failed has nothing in its memory. */
void harm_memory(const struct ground *ground, const char *machine);

/* inject_run.c: `phalanx inject run`. */
struct run_options {
    const char *file;
    bool dry, json, has_seed;
    uint64_t seed;
};
int inject_run(struct ground *ground, const struct run_options *options);

#endif
