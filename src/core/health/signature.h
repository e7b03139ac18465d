/* signature.h - failure signatures: what a task's last log lines and its exit status say about its end, in
 * one closed vocabulary. The agent reads the lines on the machine (signatures_read). The controller adds the
 * signature of the exit status, and judges all of them together with the machines' faults (attribute.h).
 *
 * A signature is one of
 *   a root       something went wrong in this very process or on its machine
 *   a symptom    the process ended because another did: a peer closed, a collective timed out. Never a cause
 *   a teardown   the process was told to end and logged it. Never a cause either
 *
 * The rules are a table (signature_rules.h; docs/faults.md shows it to users). The form of a line decides how
 * much it counts: the exception or abort that ended the process outweighs a mere mention, such as an error
 * that the process caught, retried or warned of. Of the roots in a log, at most one is kept. A program
 * controls its own log, so it can lie about itself, but not about others.
 *
 * Pure; cost linear in the text.
 */
#ifndef PHX_CORE_HEALTH_SIGNATURE_H
#define PHX_CORE_HEALTH_SIGNATURE_H

#include "core/health/table.h"

enum {
    SIGNATURE_TAIL_BYTES = 64 * 1024, /* bytes of a log's end that are read */
    SIGNATURES_MAX = 6,               /* signatures of one task */
    SIGNATURE_LINE_MAX = 200,         /* bytes of a signature's line */
};

/* The numbers are those of the wire and of the log: new kinds get new numbers. */
enum signature_kind {
    SIGNATURE_NONE = 0,
    SIGNATURE_EXIT = 1,   /* a nonzero status, and no other signature */
    SIGNATURE_SIGNAL = 2, /* ended by a signal that the agent did not send */
    SIGNATURE_OOM = 3,    /* killed by the kernel: its cgroup was out of memory */
    SIGNATURE_MEMORY = 4, /* an allocation of main memory failed */
    SIGNATURE_CHIP_MEMORY =
        5, /* an allocation of the chip's memory failed: the program needs more than the chip
                                * has */
    SIGNATURE_TRACEBACK = 6,   /* an uncaught exception */
    SIGNATURE_CHIP = 7,        /* the chip's driver refused or lost the program's work */
    SIGNATURE_CHIP_BROKEN = 8, /* the driver says that the chip itself is broken or gone */
    SIGNATURE_DISK_FULL = 9,
    SIGNATURE_DESCRIPTORS = 10, /* too many open files */
    SIGNATURE_STORAGE = 11,     /* a file system failed: stale handle, I/O error, read-only */
    SIGNATURE_KILLED = 12,      /* a part of the task was killed by signal 9 */
    SIGNATURE_ABORT = 13,       /* an assertion, an uncaught C++ exception, a corrupted heap */
    SIGNATURE_NETWORK = 14,     /* symptom: the network to a peer failed, or the peer did */
    SIGNATURE_WATCHDOG = 15,    /* symptom: a collective did not end in time */
    SIGNATURE_PEER = 16,        /* symptom: a peer closed the connection */
    SIGNATURE_TEARDOWN = 17,    /* the process was told to end */
    SIGNATURE_MACHINE_LOST = 18,
    SIGNATURE_START_FAILED = 19,
    SIGNATURE_CHIP_MISSING = 20, /* all or some of the machine's chips are absent */
    SIGNATURE_DRIVER = 21, /* the chips' driver or fabric manager does not run, or has the wrong version */
    SIGNATURE_SHARED_MEMORY = 22, /* /dev/shm is too small */
    SIGNATURE_NAME = 23,          /* a host name could not be resolved */
    SIGNATURE_SERVICE = 24,       /* a service outside of the job does not answer: an object store, a hub */
    SIGNATURE_ADDRESS = 25,       /* another process has the network address */
    SIGNATURE_NUMERIC = 26,       /* its loss became NaN or infinite, and stayed so */
    SIGNATURE_KINDS
};
enum signature_class { SIGNATURE_IS_TEARDOWN, SIGNATURE_IS_SYMPTOM, SIGNATURE_IS_ROOT };

/* Returns the part of a cause's name after "task/" or "numeric/": "traceback"; NULL: the kind has none. */
const char *signature_name(uint32_t kind);
enum signature_class signature_class_of(enum signature_kind kind);
/* Appends the cause's name: "task/" and the signature's name, or "numeric/nan". */
void signature_cause(enum signature_kind kind, struct buf *out);
/* Returns the step that the line of a SIGNATURE_NUMERIC names; INT64_MAX: it names none. */
int64_t signature_numeric_step(struct str line);
/* Returns the usual domain of the kind by the taxonomy of arXiv 2410.21680, or DOMAIN_UNKNOWN. */
enum fault_domain signature_domain(enum signature_kind kind);
/* Returns the kind's weight: of two roots of one attempt, the heavier explains the other. */
int signature_weight(enum signature_kind kind);

struct signature {
    enum signature_kind kind;
    struct str line; /* printable UTF-8, at most SIGNATURE_LINE_MAX bytes; may be empty */
};

/* Reads the signatures in the end of a log, heaviest first and one of each kind. Returns their number. `tail`
 * may begin in the middle of a line and contain any bytes. Lines are copied to `arena`. */
size_t signatures_read(struct arena *arena, struct str tail, struct signature ret_signatures[SIGNATURES_MAX]);

/* The exit of a task. `stopped`: it had been told to end. `explained`: its log has a root or a symptom. */
struct signature_exit {
    int32_t exit_code, signal; /* at most one is not 0 */
    bool oom, stopped, explained;
};
/* Returns the signature in the exit status itself, or SIGNATURE_NONE if it adds nothing to the log. An abort,
 * a segmentation fault or a plain status only repeats an explained log; a SIGKILL came from outside. Status
 * 75 means that the program gave up because of a peer (docs/libphalanx.md). */
enum signature_kind signature_of_exit(const struct signature_exit *how);

/* Whether the kind is known, and the line is printable UTF-8 of at most SIGNATURE_LINE_MAX bytes. */
bool signature_is_valid(const struct signature *signature);
/* Copies the line to `arena` in the form of a signature: trimmed, at most SIGNATURE_LINE_MAX bytes, with '?'
 * for everything but printable UTF-8. */
struct str signature_line(struct arena *arena, struct str line);

#endif
