/* inject.h - shared by the parts of `phalanx inject`: the cluster, the objects that a selector means now,
 * injecting and undoing, and running a scenario. The cluster is one on this computer (`phalanx up --data`),
 * or one behind an API, whose agents are sent orders; if an agent has started this program to carry out such
 * an order, it is this machine.
 *
 *     struct ground ground;
 *     if (ground_open(&ground, data, job) == EXIT_OK) {
 *         targets = {0};
 *         ground_resolve(&ground, &selector, &targets);
 *         inject_do(&ground, action, &how, &targets, &done);
 *         ground_close(&ground);
 *     }
 *
 * Functions that return an exit code other than EXIT_OK have printed the reason on standard error. One
 * thread.
 */
#ifndef PHX_CMD_INJECT_H
#define PHX_CMD_INJECT_H

#include "cmd/client.h"

#include <limits.h>
#include "host/inject/inject.h"

enum { TARGET_NAME_MAX = 320 };

/* A single object that an injection hits. */
struct target {
    enum inject_kind kind;         /* never a rack: that is its machines */
    char name[TARGET_NAME_MAX];    /* of a machine or agent; "namespace/pod" of a rank's Pod */
    char machine[TARGET_NAME_MAX]; /* where it is; empty: nowhere, or not known */
    char job[TARGET_NAME_MAX];     /* "namespace/name" of ranks and checkpoints; empty: not known */
    char part[64];                 /* which chip, link or switch; name: its machine's */
    int64_t rank;                  /* -1: it is none, or not known */
};
typedef VEC(struct target) target_list;
typedef VEC(pid_t) pid_list;
typedef VEC(const char *) rack_list;

/* A Pod that has a machine and has not ended. */
struct ground_pod {
    char name[TARGET_NAME_MAX], machine[TARGET_NAME_MAX], job[TARGET_NAME_MAX]; /* "namespace/name" */
    int64_t rank;
};
struct ground_machine {
    char name[TARGET_NAME_MAX], rack[TARGET_NAME_MAX]; /* rack: or cube */
    bool injection; /* its agent takes orders to break things */
};
enum { ORDER_NAME_MAX = 64 };
/* An order in force in a cluster behind an API. */
struct remote_standing {
    char name[ORDER_NAME_MAX], machine[TARGET_NAME_MAX];
    enum inject_action action;
    const struct doc *fault; /* that tells of it, in the reply that it was read from */
};
typedef VEC(struct remote_standing) remote_list;
enum ground_kind {
    GROUND_UP,      /* `data` is the folder of `phalanx up` */
    GROUND_API,     /* `data` is empty */
    GROUND_MACHINE, /* `data` is the state directory of this machine's agent; `client` is not open */
};
struct ground {
    enum ground_kind where;
    char data[PATH_MAX];
    char memory[PATH_MAX];     /* GROUND_MACHINE: the tasks' folder in memory; empty: none */
    pid_t agent;               /* GROUND_MACHINE: the agent that has started this program */
    int mark;                  /* GROUND_MACHINE: mark of the order, locked (inject_order.c); -1: none */
    struct str order;          /* GROUND_MACHINE: name of the injection that is carried out */
    int64_t until_ns;          /* GROUND_MACHINE: when a lasting injection is undone, since 1970 */
    char job[TARGET_NAME_MAX]; /* "namespace/name" that selectors mean without one; empty: none */
    struct client client;
    struct rng rng;
    double max_share;  /* of all machines that one injection may hit without `sure` */
    bool sure, silent; /* silent: the controller is not told that it was on purpose */
    bool patient;      /* a controller that does not answer is asked again, for some seconds */
    VEC(struct ground_pod) pods;
    VEC(struct ground_machine) machines;
    remote_list standing; /* GROUND_API: orders of this process, for remote_heal_run */
    struct arena arena;
};

/* inject_ground.c: `job`, "name" or "namespace/name" or NULL, is the default of selectors. */
int ground_open(struct ground *ground, const char *data, const char *job);
int ground_open_api(struct ground *ground, const struct client_options *options, const char *job);
/* This machine; its agent's state directory is the working directory. */
int ground_open_machine(struct ground *ground, const char *memory);
/* The state directory of a machine's agent on this computer. */
void ground_state(const struct ground *ground, const char *machine, char ret_path[PATH_MAX]);
void ground_close(struct ground *ground);
/* Asks the API which machines and Pods there are. */
int ground_look(struct ground *ground);
/* Adds the objects that the selector means now; looks at the cluster again by itself. EXIT_NOT_FOUND: there
 * is none. A rack or cube is named by its label ("pod-1.rack-1") or its own name ("rack-1"); EXIT_USAGE:
 * several have that name. */
int ground_resolve(struct ground *ground, const struct inject_selector *selector, target_list *targets);
/* Prints that no object matches `selector` (the user wrote `text`); for racks and cubes also which there are.
 * For EXIT_NOT_FOUND of ground_resolve, which prints a message only for machines and agents of a name: an
 * object that a scenario waits for may still come. */
void ground_say_missing(const struct ground *ground, const struct inject_selector *selector,
                        const char *text);
/* How many different machines they are on. */
size_t ground_machines_hit(const target_list *targets);
/* The processes of a target that live; none of a checkpoint. A rank's are those of its Pod's task. */
void ground_processes(const struct ground *ground, const struct target *target, pid_list *ret_pids);
/* "machine/m-2", "pod/default/train-w-0-1", "chip/m-2/3": a selector that means the same one later. */
void target_text(const struct target *target, char ret_text[TARGET_NAME_MAX + 32]);
/* The machine's folder of checkpoints in memory, where it has one. */
bool ground_memory_of(const struct ground *ground, const char *machine, char ret_path[PATH_MAX]);

/* inject_act.c */
struct injected {
    size_t count;         /* processes (killed ones have ended), control groups, files or faults */
    const char *noun;     /* singular of the counted things: "process" */
    int64_t at_ns;        /* since 1970 */
    VEC(int64_t) records; /* numbers of lasting injections, for inject_heal */
};
/* Does it to all targets in one moment, after having told the controller that it is done on purpose. Refuses
 * when too many machines would be hit. `keeper`: slowing a CPU needs a process that does it; a child is made
 * for it, which ends with the heal. */
int inject_do(struct ground *ground, enum inject_action action, const struct inject_how *how,
              const target_list *targets, struct injected *ret);
void injected_done(struct injected *done);
/* Undoes the injection of this number; a second call does nothing. */
int inject_heal(struct ground *ground, int64_t record);
/* The numbers of all injections in force, in order. */
typedef VEC(int64_t) record_list;
void inject_standing(const struct ground *ground, record_list *ret_records);
struct standing {
    char name[ORDER_NAME_MAX]; /* of the order; empty: it was none */
    enum inject_action action;
    int64_t until_ns; /* since 1970; 0: for ever */
};
bool inject_standing_read(const struct ground *ground, int64_t number, struct standing *ret);
/* Prints what `out` has as JSON, or else the table, which has `count` rows below its heads; frees both. */
void inject_print_list(struct text_table *table, struct buf *out, bool json, size_t count);
/* Prints the standing injections, one record a line, or as JSON. */
void inject_print_standing(const struct ground *ground, bool json);

/* inject_kill.c */
void inject_processes(const struct ground *ground, const target_list *targets, pid_list *ret_pids);
/* Signals all of them, agents last. -1, after a message: some may not be signalled. */
int inject_signal(const pid_list *pids, int number);
/* Kills the targets' processes and waits for their end. EXIT_FAILED, after a message that names them: some
 * live on. */
int inject_kill(const struct ground *ground, const target_list *targets, struct injected *ret);

/* inject_harm.c: the actions other than signals. They count what they hit in *count and add to `paths` what
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
/* Tells the controller that the coming fault is on purpose. If the controller does not answer, only the note
 * is lost. */
void harm_note(struct ground *ground, enum inject_action action, const target_list *targets);
/* Stops and continues the target's processes in turns until SIGTERM; never returns. */
void harm_slow(const struct ground *ground, const struct target *target, uint32_t percent)
    __attribute__((noreturn));
/* Clears the memory of a machine whose power failed. */
void harm_memory(const struct ground *ground, const char *machine);

/* inject_remote.c: in a cluster that is reached by its API. */
int remote_do(struct ground *ground, enum inject_action action, const struct inject_how *how,
              const target_list *targets, struct injected *ret); /* inject_do, but for its guard */
int remote_heal(struct ground *ground, char **names, int count); /* or "all" */
int remote_heal_run(struct ground *ground); /* undoes the orders of this process that may still be in force */
int remote_print_standing(struct ground *ground, bool json);

/* Forks a silent process in a session of its own that outlives this one. Returns 0 in it and its pid here; -1
 * after a message. */
pid_t inject_keeper(void);

/* inject_order.c: the order for which an agent has started this program. */
struct order_options {
    const char *body;    /* the order: JSON, docs/inject.md */
    const char *machine; /* this one's name */
    const char *memory;  /* the tasks' folder in memory; "none" */
};
int inject_order(const struct order_options *options);

/* inject_run.c: `phalanx inject run`. */
struct run_options {
    const char *file;
    bool dry, json, has_seed;
    uint64_t seed;
};
int inject_run(struct ground *ground, const struct run_options *options);

#endif
