/* switch.h - the core's requests to an optical switch, and the switch's answers.
 *
 * A switch joins ports in pairs. A circuit is one such pair: the port of a cube's plus end and the port of a
 * cube's minus end (fabric/wiring.h has the numbers, from 1). A request breaks some circuits, then makes
 * others, and ends with one report:
 *
 *     EFFECT_SWITCH_APPLY  { switch, operation, breaks, makes }         core -> host
 *     EVENT_SWITCH_REPORT  { switch, operation, outcome, results, present }    host -> core
 *     EVENT_SWITCH_HEALTH  { switch, state, alarms, bad ports }                host -> core, on each change
 *
 * Rules for the host:
 *   - A request changes only the circuits that it names. A circuit that is already broken, or already made,
 *     is CIRCUIT_APPLIED without a change, so a request may be carried out twice.
 *   - A port that another circuit uses is never taken: the requested circuit is CIRCUIT_NOT_APPLIED.
 *   - The host reads the switch after the change and reports the circuits that it read as `present`. A
 *     request without circuits asks for this reading alone.
 *   - The host answers each operation at least once. If the switch does not answer, the outcome is
 *     SWITCH_UNREACHABLE. The core ignores answers to operations that it no longer waits for.
 *   - Requests to one switch are carried out in the order of their operations.
 *
 * Values; strings and arrays belong to the event or effect that holds them.
 */
#ifndef PHX_CORE_WORDS_SWITCH_H
#define PHX_CORE_WORDS_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/words/place.h"

enum {
    SWITCH_CIRCUITS_MAX = 150,                    /* of one switch: one for each cube of the largest pod */
    SWITCH_RESULTS_MAX = 2 * SWITCH_CIRCUITS_MAX, /* of one request: breaks and makes */
    SWITCH_PORTS_MAX = 1024,                      /* numbers of ports are 1 .. this */
    SWITCH_ALARMS_MAX = 32,                       /* in one report of health */
    SWITCH_TEXT_MAX = 256,                        /* bytes of a reason or an alarm; longer ones are cut */
};

struct circuit {
    uint16_t plus, minus; /* ports of the switch */
};
static inline bool circuit_equal(struct circuit a, struct circuit b)
{
    return a.plus == b.plus && a.minus == b.minus;
}

/* How a session with a switch logs in. The host reads the password from a file whenever it opens a session;
 * the core and its log have only the path. */
struct switch_login {
    struct str user;        /* never empty */
    struct str secret_file; /* absolute path; the first line is the password; empty: none is sent */
};

struct switch_apply {
    struct place place;                   /* PLACE_SWITCH, and its index in the cluster */
    struct str name;                      /* unique in the cluster: "pod-1-x5" */
    struct str protocol;                  /* name of the driver: "scpi", "tl1", "sai", a library's path */
    struct str address;                   /* "10.0.0.7:5025", or what the driver takes */
    const struct switch_login *login;     /* NULL: none */
    uint32_t cubes;                       /* of the pod: how many ports its wiring has on each side */
    uint64_t operation;                   /* larger than that of every earlier request; never 0 */
    const struct circuit *breaks, *makes; /* by ports */
    size_t break_count, make_count;       /* both 0: read only */
    int64_t timeout_ns;                   /* after which the host reports SWITCH_UNREACHABLE */
};

enum switch_outcome {
    SWITCH_DONE = 0,        /* the whole request was carried out, and read back */
    SWITCH_REFUSED = 1,     /* nothing was changed: a port is busy, out of range, or out of service */
    SWITCH_PARTLY = 2,      /* a part was carried out; `results` has the status of each circuit */
    SWITCH_UNREACHABLE = 3, /* the switch did not answer, or its session broke: the effect is unknown */
    SWITCH_OUTCOMES
};
enum circuit_status {
    CIRCUIT_APPLIED = 0,     /* made or broken as requested, and read back */
    CIRCUIT_NOT_APPLIED = 1, /* left as it was */
    CIRCUIT_UNDONE = 2,      /* carried out, then undone because another circuit failed */
    CIRCUIT_UNKNOWN = 3,     /* the switch stopped answering before its state was read */
    CIRCUIT_STATUSES
};
struct circuit_result {
    struct circuit circuit;
    bool make; /* false: break */
    enum circuit_status status;
};

struct switch_report {
    struct str name; /* of the switch */
    uint64_t operation;
    enum switch_outcome outcome;
    struct circuit_result *results; /* one for each circuit of the request, in its order: breaks, makes */
    size_t result_count;
    bool read;               /* `present` was read from the switch after the change */
    struct circuit *present; /* all circuits of the switch, by plus port */
    size_t present_count;
    struct str reason; /* for people: "port 17 is busy"; empty when DONE */
};

enum switch_state {
    SWITCH_UNSEEN = 0, /* not contacted yet since the controller's start */
    SWITCH_UP = 1,
    SWITCH_DEGRADED = 2, /* answers, and has alarms or bad ports; its other circuits can be used */
    SWITCH_DOWN = 3,     /* does not answer, or reports that it is out of service */
    SWITCH_STATES
};
struct switch_health {
    struct str name; /* of the switch */
    enum switch_state state;
    struct str *alarms; /* as the switch words them */
    size_t alarm_count;
    uint16_t *bad_ports; /* ascending; without light, with a stuck mirror, or shut */
    size_t bad_port_count;
    struct str reason; /* of the state, for people; may be empty */
};

const char *switch_outcome_name(enum switch_outcome outcome); /* "done" */
const char *switch_state_name(enum switch_state state);       /* "Up", as the API shows it */

#endif
