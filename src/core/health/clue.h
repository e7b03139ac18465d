/* clue.h - what the end of a task left behind: its last log lines and its exit status, as words of one
 * closed vocabulary. The agent reads the lines where they are (clues_read), the controller adds the clue
 * of the exit status and judges all of them together with the machines' faults (attribute.h).
 *
 * A clue is one of
 *   a root       something went wrong in this very process or on its machine
 *   a symptom    the process ended because another did: a peer closed, a collective timed out. Never a cause
 *   a teardown   the process was told to end and said so. Never a cause either
 *
 * The rules are a table (clue_rules.h; docs/faults.md shows it to people). The form of a line decides how
 * much it counts: the exception or abort that ended the process goes before a mere mention, such as an
 * error that the process caught, retried or warned of. Therefore a log has one root at most. The writer
 * controls its log: a program can lie about itself, and only about itself.
 *
 * Pure; cost linear in the text.
 */
#ifndef PHX_CORE_HEALTH_CLUE_H
#define PHX_CORE_HEALTH_CLUE_H

#include "core/health/table.h"

enum {
    CLUE_TAIL_BYTES = 64 * 1024, /* how much of a log's end is read */
    CLUES_MAX = 6,               /* of one task */
    CLUE_LINE_MAX = 200,         /* bytes of a clue's line */
};

/* The numbers are those of the wire and of the log: new kinds get new numbers. */
enum clue_kind {
    CLUE_NONE = 0,
    CLUE_EXIT = 1,        /* a nonzero status, and no other clue */
    CLUE_SIGNAL = 2,      /* a signal that the agent did not send */
    CLUE_OOM = 3,         /* the kernel killed it: its cgroup was out of memory */
    CLUE_MEMORY = 4,      /* an allocation of main memory failed */
    CLUE_CHIP_MEMORY = 5, /* an allocation of the chip's memory failed: the program asks for more than
                           * there is */
    CLUE_TRACEBACK = 6,   /* an uncaught exception */
    CLUE_CHIP = 7,        /* the chip's driver refused or lost the program's work */
    CLUE_CHIP_BROKEN = 8, /* the driver says that the chip itself is broken or gone */
    CLUE_DISK_FULL = 9,
    CLUE_DESCRIPTORS = 10, /* too many open files */
    CLUE_STORAGE = 11,     /* a file system failed: stale handle, I/O error, read-only */
    CLUE_KILLED = 12,      /* a part of the task was killed by signal 9 */
    CLUE_ABORT = 13,       /* an assertion, an uncaught C++ exception, a corrupted heap */
    CLUE_NETWORK = 14,     /* symptom: the network to a peer failed, or the peer did */
    CLUE_WATCHDOG = 15,    /* symptom: a collective did not end in time */
    CLUE_PEER = 16,        /* symptom: a peer closed the connection */
    CLUE_TEARDOWN = 17,    /* the process was told to end */
    CLUE_MACHINE_LOST = 18,
    CLUE_START_FAILED = 19,
    CLUE_CHIP_MISSING = 20,  /* all or some of the machine's chips are absent */
    CLUE_DRIVER = 21,        /* the chips' driver or fabric manager does not run, or has the wrong version */
    CLUE_SHARED_MEMORY = 22, /* /dev/shm is too small */
    CLUE_NAME = 23,          /* a host name could not be resolved */
    CLUE_SERVICE = 24,       /* a service outside of the job does not answer: an object store, a hub */
    CLUE_ADDRESS = 25,       /* another process has the network address */
    CLUE_NUMERIC = 26,       /* its loss was no number or infinite, and stayed so */
    CLUE_KINDS
};
enum clue_class { CLUE_IS_TEARDOWN, CLUE_IS_SYMPTOM, CLUE_IS_ROOT };

/* Returns the part behind "task/" of a cause's name: "python-traceback"; NULL: no such kind. */
const char *clue_name(uint32_t kind);
enum clue_class clue_class_of(enum clue_kind kind);
/* Appends the cause's name: "task/" and the clue's name, or "numeric/nan". */
void clue_cause(enum clue_kind kind, struct buf *out);
/* Returns the step that the line of a CLUE_NUMERIC names; INT64_MAX: none. */
int64_t clue_numeric_step(struct str line);
/* Returns the usual domain of the kind, by the taxonomy of arXiv 2410.21680; DOMAIN_UNKNOWN: there is
 * none. */
enum fault_domain clue_domain(enum clue_kind kind);
/* Returns the kind's weight: of two roots of one attempt, the one with the larger weight explains the
 * other. */
int clue_weight(enum clue_kind kind);

struct clue {
    enum clue_kind kind;
    struct str line; /* printable UTF-8, at most CLUE_LINE_MAX bytes; may be empty */
};

/* Reads the clues in the end of a log, strongest first and one of a kind; returns how many. `tail` may
 * begin in the middle of a line and hold any bytes. Lines are copied to `arena`. */
size_t clues_read(struct arena *arena, struct str tail, struct clue ret_clues[CLUES_MAX]);

/* How a task ended. `stopped`: it had been told to end. `explained`: its log has a root or a symptom. */
struct clue_exit {
    int32_t exit_code, signal; /* at most one is not 0 */
    bool oom, stopped, explained;
};
/* Returns the clue in the exit status itself; CLUE_NONE: none, or none that the log does not have. An
 * abort, a segmentation fault or a plain status only repeats the log; a SIGKILL came from outside. A
 * program exits with status 75 if it gave up because of a peer (docs/libphalanx.md). */
enum clue_kind clue_of_exit(const struct clue_exit *how);

/* Whether the kind is known and the line keeps to its limits. */
bool clue_is_valid(const struct clue *clue);
/* Copies the line in the form of a clue: at most CLUE_LINE_MAX bytes, with '?' for all but printable
 * UTF-8. */
struct str clue_line(struct arena *arena, struct str line);

#endif
