/* switches.h - the optical switches of a pod: reads them, and carries out changes on all of them at once.
 *
 *     switches_parse(text, &switches, error)          the list of switches
 *     switches_open(&switches, &terms, &crew, error)  a crew; sessions are opened when they are needed
 *     crew_read(crew, work)                           the cross-connects: all switches in parallel
 *     ... a plan: what each switch removes and adds
 *     crew_carry_out(crew, work)                      one batch a switch, verified by reading back
 *     crew_close(crew)
 *
 * The list is YAML:
 *
 *     switches:
 *     - {name: x0, driver: scpi, address: "10.0.0.1:5025"}
 *     - {name: x1, driver: tl1, address: "10.0.0.2:3082", user: admin, secretFile: /etc/phalanx/ocs}
 *     - {name: x2, driver: sai, address: "/usr/lib/libsai.so?ocs2"}
 *     - {name: x3, driver: /usr/lib/ocs.so, address: "whatever the library expects"}
 *
 * During a call each switch has its own thread, because drivers block. A session that breaks, times out or
 * returns garbage is opened again after a wait that doubles, until `attempts` sessions have failed. A new
 * session first lists the switch and retries only what is still missing. Refusals are not retried.
 *
 * Every change has a clear end, even if the switch fails half-way:
 *     APPLIED      the switch lists the requested state
 *     NOT_APPLIED  the switch lists the state before, or was never sent the change
 *     UNDONE       was applied and then reverted
 *     UNKNOWN      the switch was sent the change and no longer answers
 *
 * A crew has one owner. Its functions block until the slowest switch is finished, and print nothing.
 */
#ifndef PHX_HOST_FABRIC_SWITCHES_H
#define PHX_HOST_FABRIC_SWITCHES_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "core/fabric/wiring.h"
#include "core/words/switch.h"

enum {
    SWITCH_CHANGES_MAX = 2 * POD_CUBES_MAX,
    SWITCH_WORD_MAX = 256,
    SWITCH_SECRET_MAX = 64,
    SWITCH_WHY_MAX = 256
};

struct switch_entry {
    bool listed;
    char driver[SWITCH_WORD_MAX], address[SWITCH_WORD_MAX], user[64];
    char secret[SWITCH_SECRET_MAX];    /* the password; "": none, or in secret_file */
    char secret_file[SWITCH_WORD_MAX]; /* read for each new session instead of `secret`; "": none */
};
struct switches {
    struct switch_entry entry[POD_SWITCHES]; /* by pod_switch_number() */
    uint32_t listed;
};

/* Makes the entry of a switch from the fields of a cluster file. Texts that are too long are cut. `login` may
 * be NULL. */
struct switch_entry switch_entry_of(struct str driver, struct str address, const struct switch_login *login);

/* Reads the first line of a file, which must have 1 to 63 bytes. On failure returns ERROR_INVALID or the
 * error of the system call, and leaves *ret_secret untouched. The message names the path but never the file's
 * contents. */
int switch_secret_read(const char *path, char ret_secret[SWITCH_SECRET_MAX], struct error *error);

/* Reads the list and the password files that it names. Returns ERROR_INVALID, which names line and column. */
int switches_parse(struct str text, struct switches *ret_switches, struct error *error);

struct crew_terms {
    uint32_t cubes;      /* cubes of the pod, which determine the size of its switches; 0: any size */
    uint32_t timeout_ms; /* for a connection, for an answer, and for mirrors to settle */
    uint32_t attempts;   /* sessions that are tried, at least 1 */
    uint32_t backoff_ms; /* wait before the second one; doubles */
};
#define CREW_TERMS_DEFAULT ((struct crew_terms){.timeout_ms = 2000, .attempts = 3, .backoff_ms = 100})

enum change_end { CHANGE_WAITS, CHANGE_APPLIED, CHANGE_NOT_APPLIED, CHANGE_UNDONE, CHANGE_UNKNOWN };
struct switch_change {
    bool add;      /* else remove */
    uint32_t a, b; /* ports */
    bool already;  /* the requested state was in place before the call */
    enum change_end end;
};

/* The state of one switch, or its changes and their outcome. */
struct switch_work {
    struct switch_change changes[SWITCH_CHANGES_MAX]; /* removals first */
    uint32_t count;
    bool answers;                         /* the switch could be read at the end of the call */
    uint16_t peer[2 * POD_CUBES_MAX + 2]; /* peer of each port, 0: none; valid if `answers` */
    uint32_t tries;                       /* sessions that were opened or failed to open */
    int64_t took_ns;
    char why[SWITCH_WHY_MAX]; /* reason of the first failure; "": none */
};
struct crew;

/* Makes a crew and finds its drivers, without opening sessions. Copies `switches` and `terms`. Returns the
 * error of driver_find(). Free the crew with crew_close(). */
int switches_open(const struct switches *switches, const struct crew_terms *terms, struct crew **ret_crew,
                  struct error *error);
void crew_close(struct crew *crew);

/* Lists the cross-connects of every listed switch into work[POD_SWITCHES], indexed by switch number. Returns
 * the number of switches that do not answer. */
uint32_t crew_read(struct crew *crew, struct switch_work *work);
/* Carries out the changes of work[POD_SWITCHES] and fills in the other fields. Returns the number of switches
 * that did not reach the requested state. */
uint32_t crew_carry_out(struct crew *crew, struct switch_work *work);
/* Reverts what crew_carry_out() applied, on switches that answer; the ends of these changes become UNDONE.
 * Returns the number of switches that are not in their earlier state. */
uint32_t crew_undo(struct crew *crew, struct switch_work *work);

const char *change_end_name(enum change_end end); /* Returns a word such as "not-applied". */

#endif
