/* order.h - the vocabulary of errands, between controller and agents (agent/message.h), and between
 * errands and their owners (errand.h).
 */
#ifndef PHX_CORE_WORDS_ORDER_H
#define PHX_CORE_WORDS_ORDER_H

#include "base/str.h"
#include "base/units.h"
#include "core/words/ids.h"

enum {
    ERRAND_BODY_MAX = 64 * 1024,   /* bytes of an errand's body */
    ERRAND_OUTPUT_MAX = 16 * 1024, /* bytes of an errand's output; the rest is cut off */
};
#define ERRAND_TIMEOUT_MAX_NS (24 * 3600 * NS_PER_SECOND)

/* The work. Each kind has a body of its own, a JSON object (docs/errands.md). Part of the wire. */
enum errand_kind {
    ERRAND_HOOK = 1,     /* an operator's script of the agent's hooks directory */
    ERRAND_QUALIFY = 2,  /* `phalanx qualify`: the machine alone */
    ERRAND_PAIR = 3,     /* `phalanx qualify pair`: one end of two */
    ERRAND_DIAGNOSE = 4, /* flight records of a task */
    ERRAND_INJECT = 5,   /* `phalanx inject`: a fault on purpose */
};

_Static_assert(ERRAND_HOOK == 1 && ERRAND_INJECT == 5, "numbers of the wire");

/* The module that began it and gets its end. Part of snapshots. */
enum errand_owner {
    ERRAND_OF_REPAIR = 1,
    ERRAND_OF_PREFLIGHT = 2,
    ERRAND_OF_HANG = 3,
    ERRAND_OF_INJECTION = 4,
};

_Static_assert(ERRAND_OF_REPAIR == 1 && ERRAND_OF_INJECTION == 4, "numbers of snapshots");

/* Part of the wire; an agent reports one of the first three. */
enum errand_outcome {
    ERRAND_OK = 1,    /* ended with exit code 0 */
    ERRAND_FAILED,    /* any other end, or a failed start: `output` says why */
    ERRAND_TIMED_OUT, /* its agent killed it at the time-out */
    /* Not known: the machine is lost or has left the cluster, its agent understands no errands, or has not
     * reported until well past the time-out. `output` says which. The errand may have had its effect. */
    ERRAND_LOST,
};

_Static_assert(ERRAND_OK == 1 && ERRAND_LOST == 4, "numbers of the wire");

/* An owner's order. */
struct errand_order {
    machine_id machine;
    enum errand_kind kind;
    enum errand_owner owner;
    obj_id about;       /* the owner's object */
    uint32_t tag;       /* the owner's own */
    struct str body;    /* at most ERRAND_BODY_MAX bytes */
    int64_t timeout_ns; /* for its run on the machine; 1 to ERRAND_TIMEOUT_MAX_NS */
};

/* The message to the agent. A repeated message is the same errand: a known one is not begun again. */
struct errand_start {
    obj_id errand;
    enum errand_kind kind;
    struct str body;
    int64_t timeout_ns; /* the rest of it */
};

/* How it ended. */
struct errand_end {
    obj_id errand;
    enum errand_outcome outcome;
    int32_t exit_code; /* FAILED: its exit code, 128 + signal, or -1: the start failed; otherwise 0 */
    struct str output; /* its output, UTF-8; LOST: the reason */
};

#endif
