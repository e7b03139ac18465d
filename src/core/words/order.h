/* order.h - the vocabulary of errands: work that the controller orders an agent to do on its machine. Shared
 * by controller and agents (agent/message.h), and by errands and their owners (errand.h).
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

/* The kind of work, which determines the body, a JSON object (docs/errands.md). Part of the wire. */
enum errand_kind {
    ERRAND_HOOK = 1,     /* an operator's script of the agent's hooks directory */
    ERRAND_QUALIFY = 2,  /* `phalanx qualify`: the machine alone */
    ERRAND_PAIR = 3,     /* `phalanx qualify pair`: one end of two */
    ERRAND_DIAGNOSE = 4, /* flight records of a task */
    ERRAND_INJECT = 5,   /* `phalanx inject`: an injected fault */
};

_Static_assert(ERRAND_HOOK == 1 && ERRAND_INJECT == 5, "numbers of the wire");

/* The module that orders an errand and receives its end. Part of snapshots. */
enum errand_owner {
    ERRAND_OF_REPAIR = 1,
    ERRAND_OF_PREFLIGHT = 2,
    ERRAND_OF_HANG = 3,
    ERRAND_OF_INJECTION = 4,
};

_Static_assert(ERRAND_OF_REPAIR == 1 && ERRAND_OF_INJECTION == 4, "numbers of snapshots");

/* How an errand ended. An agent reports one of the first three. Part of the wire. */
enum errand_outcome {
    ERRAND_OK = 1,    /* ended with exit code 0 */
    ERRAND_FAILED,    /* any other end, or a failed start: `output` says why */
    ERRAND_TIMED_OUT, /* its agent killed it at the time-out */
    /* Unknown: the machine is lost or has left the cluster, or its agent does not understand errands or did
     * not report until well past the time-out. `output` has the reason. The errand may have had an effect. */
    ERRAND_LOST,
};

_Static_assert(ERRAND_OK == 1 && ERRAND_LOST == 4, "numbers of the wire");

/* An owner's order. */
struct errand_order {
    machine_id machine;
    enum errand_kind kind;
    enum errand_owner owner;
    obj_id about;       /* the owner's object */
    uint32_t tag;       /* for the owner's use */
    struct str body;    /* at most ERRAND_BODY_MAX bytes */
    int64_t timeout_ns; /* for its run on the machine; 1 to ERRAND_TIMEOUT_MAX_NS */
};

/* The message to the agent. An agent that already knows the errand does not start it again. */
struct errand_start {
    obj_id errand;
    enum errand_kind kind;
    struct str body;
    int64_t timeout_ns; /* what remains of the order's time-out */
};

/* The end of an errand. */
struct errand_end {
    obj_id errand;
    enum errand_outcome outcome;
    int32_t exit_code; /* FAILED: its exit code, 128 + signal, or -1: the start failed; otherwise 0 */
    struct str output; /* the errand's output, UTF-8; LOST: the reason */
};

#endif
