/* inject.h - shared by the parts of `phalanx inject`: the cluster, the objects that a selector currently
 * means, injecting and undoing, and running a scenario. The cluster runs on this computer (`phalanx up
 * --data`), or is reached by its API, through which its agents receive orders. In a program that an agent has
 * started to carry out such an order, the cluster is this machine alone.
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
    enum inject_kind kind;         /* never a rack, whose machines are targets of their own */
    char name[TARGET_NAME_MAX];    /* of a machine or agent; "namespace/pod" of a rank's Pod */
    char machine[TARGET_NAME_MAX]; /* the machine that the object is on; empty: none, or not known */
    char job[TARGET_NAME_MAX];     /* "namespace/name" of ranks and checkpoints; empty: not known */
    char part[64];                 /* which chip, link or switch of the machine `name` */
    int64_t rank;                  /* -1: not a rank, or not known */
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
    bool injection;                                    /* its agent accepts orders to inject faults */
};
enum { ORDER_NAME_MAX = 64 };
/* An order in force in a cluster behind an API. */
struct remote_standing {
    char name[ORDER_NAME_MAX], machine[TARGET_NAME_MAX];
    enum inject_action action;
    const struct doc *fault; /* that reports the order, in the reply that it was read from */
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
    struct str order;          /* GROUND_MACHINE: name of the injection that is being carried out */
    int64_t until_ns;          /* GROUND_MACHINE: when a lasting injection is undone, since 1970 */
    char job[TARGET_NAME_MAX]; /* "namespace/name", the default of selectors; empty: none */
    struct client client;
    struct rng rng;
    double max_share;  /* share of all machines that one injection may hit without `sure` */
    bool sure, silent; /* no limit applies; the controller does not learn that faults are on purpose */
    bool patient;      /* asks a controller that does not answer again, for some seconds */
    VEC(struct ground_pod) pods;
    VEC(struct ground_machine) machines;
    remote_list standing; /* GROUND_API: orders of this process, for remote_heal_run */
    struct arena arena;
};

/* inject_ground.c: opens the cluster of `phalanx up` in the folder `data`, or one by its API. `job` is
 * "name", "namespace/name" or NULL: the default of selectors. */
int ground_open(struct ground *ground, const char *data, const char *job);
int ground_open_api(struct ground *ground, const struct client_options *options, const char *job);
/* Opens this machine, whose agent's state directory is the working directory. */
int ground_open_machine(struct ground *ground, const char *memory);
/* Writes the path of the state directory of a machine's agent on this computer. */
void ground_state(const struct ground *ground, const char *machine, char ret_path[PATH_MAX]);
void ground_close(struct ground *ground);
/* Reads the machines and Pods from the API. */
int ground_look(struct ground *ground);
/* Adds the objects that the selector currently means, after reading the cluster again. Returns EXIT_NOT_FOUND
 * if there are none. A rack or cube is named by its label ("pod-1.rack-1") or its own name ("rack-1");
 * EXIT_USAGE if several have that name. */
int ground_resolve(struct ground *ground, const struct inject_selector *selector, target_list *targets);
/* Prints that no object matches `selector` (the user wrote `text`), and for racks and cubes the existing
 * ones. For EXIT_NOT_FOUND of ground_resolve, which prints a message only for named machines and agents: an
 * object that a scenario waits for may still appear. */
void ground_say_missing(const struct ground *ground, const struct inject_selector *selector,
                        const char *text);
/* Returns the number of different machines that an injection into the targets hits. */
size_t ground_machines_hit(const target_list *targets);
/* Adds the living processes of a target; a checkpoint has none. A rank's are those of its Pod's task. */
void ground_processes(const struct ground *ground, const struct target *target, pid_list *ret_pids);
/* Writes a selector that means the same object later: "machine/m-2", "pod/default/train-w-0-1",
 * "chip/m-2/3". */
void target_text(const struct target *target, char ret_text[TARGET_NAME_MAX + 32]);
/* Finds the machine's folder of checkpoints in memory. Returns false if it has none. */
bool ground_memory_of(const struct ground *ground, const char *machine, char ret_path[PATH_MAX]);

/* inject_act.c */
struct injected {
    size_t count;         /* processes (killed ones have ended), control groups, files or faults */
    const char *noun;     /* singular of the counted things: "process" */
    int64_t at_ns;        /* since 1970 */
    VEC(int64_t) records; /* numbers of lasting injections, for inject_heal */
};
/* Injects into all targets at the same moment, after telling the controller that it is done on purpose.
 * Refuses if too many machines would be hit. Slowing a CPU forks a child that does it until the heal. */
int inject_do(struct ground *ground, enum inject_action action, const struct inject_how *how,
              const target_list *targets, struct injected *ret);
void injected_done(struct injected *done);
/* Undoes the injection of this number; a second call does nothing. */
int inject_heal(struct ground *ground, int64_t record);
/* Adds the numbers of all injections in force, in order. */
typedef VEC(int64_t) record_list;
void inject_standing(const struct ground *ground, record_list *ret_records);
struct standing {
    char name[ORDER_NAME_MAX]; /* of the order; empty: the injection was not ordered */
    enum inject_action action;
    int64_t until_ns; /* since 1970; 0: no end */
};
/* Reads the injection of this number. Returns false if there is no valid record of it. */
bool inject_standing_read(const struct ground *ground, int64_t number, struct standing *ret);
/* Prints `out`, which is JSON, or else the table, which has `count` rows below its heads; frees both. */
void inject_print_list(struct text_table *table, struct buf *out, bool json, size_t count);
/* Prints the injections in force, one a line, or as JSON. */
void inject_print_standing(const struct ground *ground, bool json);

/* inject_kill.c: adds the processes of all targets. */
void inject_processes(const struct ground *ground, const target_list *targets, pid_list *ret_pids);
/* Signals all processes, agents last. Returns -1, after a message, if some may not be signalled. */
int inject_signal(const pid_list *pids, int number);
/* Kills the targets' processes and waits for their end. Returns EXIT_FAILED, after a message that names them,
 * if some survive. */
int inject_kill(const struct ground *ground, const target_list *targets, struct injected *ret);

/* inject_harm.c: the actions other than signals. Functions add the number of things that they hit to *count,
 * and to `paths` what undoing needs. */
typedef VEC(char *) path_list; /* on the heap */
void path_list_done(path_list *paths);
int harm_cut(const struct ground *ground, const struct target *target, const struct inject_how *how,
             path_list *paths, size_t *count);
int harm_corrupt(struct ground *ground, const struct target *target, enum inject_tier tier, size_t *count);
int harm_fill(const struct ground *ground, const struct target *target, path_list *paths, size_t *count);
int harm_oom(const struct ground *ground, const struct target *target, size_t *count);
/* Reports a fault of the target to its agent or, with `recover`, its end. */
int harm_report(struct ground *ground, enum inject_action action, const struct target *target,
                const struct inject_how *how, bool recover, size_t *count);
/* Tells the controller that the next fault is injected on purpose. Ignores a controller that does not
 * answer. */
void harm_note(struct ground *ground, enum inject_action action, const target_list *targets);
/* Stops and continues the target's processes in turns until SIGTERM; never returns. */
void harm_slow(const struct ground *ground, const struct target *target, uint32_t percent)
    __attribute__((noreturn));
/* Clears the memory of a machine whose power failed. */
void harm_memory(const struct ground *ground, const char *machine);

/* inject_remote.c: in a cluster that is reached by its API. */
int remote_do(struct ground *ground, enum inject_action action, const struct inject_how *how,
              /* inject_do, without its limit of machines */
              const target_list *targets, struct injected *ret);
int remote_heal(struct ground *ground, char **names, int count); /* names of injections, or "all" */
int remote_heal_run(struct ground *ground); /* undoes the orders of this process that may still be in force */
int remote_print_standing(struct ground *ground, bool json);

/* Forks a process without output, in its own session, that outlives this one. Returns 0 in the child, the
 * child's pid in the parent, or -1 after a message. */
pid_t inject_keeper(void);

/* inject_order.c: carries out the order for which an agent has started this program. */
struct order_options {
    const char *body;    /* the order: JSON, docs/inject.md */
    const char *machine; /* name of this machine */
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
