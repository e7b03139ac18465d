/* switches.h - the optical switches of a pod, and carrying changes out on all of them at once.
 *
 *     switches_parse(text, &switches, error)          the list of switches
 *     switches_open(&switches, terms, &crew)          a session of each, made when it is needed
 *     crew_read(crew)                                 what is joined: all switches in parallel
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
 * Each switch has a thread of its own while work is done, because drivers block. A session that breaks, times
 * out or garbles is opened again after a wait that doubles, at most `attempts` times; then the switch is
 * listed, and only what is still missing is tried again. Refusals are not tried again.
 *
 * Every change has a clear end, even if the switch dies half-way:
 *     APPLIED      the switch lists what was asked for
 *     NOT_APPLIED  the switch lists the state before, or was never sent the change
 *     UNDONE       was applied and taken back
 *     UNKNOWN      the switch was sent the change and no longer answers
 *
 * One owner; functions block for as long as the slowest switch. Nothing is printed.
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
    char secret_file[SWITCH_WORD_MAX]; /* read for each new session in place of `secret`; "": none */
};
struct switches {
    struct switch_entry entry[POD_SWITCHES]; /* by pod_switch_number() */
    uint32_t listed;
};

/* The entry of a switch as a cluster file has it; texts that are too long are cut. `login` NULL: none. */
struct switch_entry switch_entry_of(struct str driver, struct str address, const struct switch_login *login);

/* Reads the first line of a file, which must have 1 to 63 bytes. ERROR_IO, ERROR_INVALID: the message names
 * the path, and never tells what is in the file; *ret_secret is untouched. */
int switch_secret_read(const char *path, char ret_secret[SWITCH_SECRET_MAX], struct error *error);

/* Reads the list, and at once the files with passwords that it names. ERROR_INVALID names line and field. */
int switches_parse(struct str text, struct switches *ret_switches, struct error *error);

struct crew_terms {
    uint32_t cubes;      /* of the pod: decides the size of its switches; 0: any size */
    uint32_t timeout_ms; /* of a connection, and of an answer; mirrors settle within it */
    uint32_t attempts;   /* to open a session, at least 1 */
    uint32_t backoff_ms; /* before the second one; doubles */
};
#define CREW_TERMS_DEFAULT ((struct crew_terms){.timeout_ms = 2000, .attempts = 3, .backoff_ms = 100})

enum change_end { CHANGE_WAITS, CHANGE_APPLIED, CHANGE_NOT_APPLIED, CHANGE_UNDONE, CHANGE_UNKNOWN };
struct switch_change {
    bool add;      /* else remove */
    uint32_t a, b; /* ports */
    bool already;  /* the state was as asked for before the work */
    enum change_end end;
};

/* The state of one switch, or the work for it and how it went. */
struct switch_work {
    struct switch_change changes[SWITCH_CHANGES_MAX]; /* removals first */
    uint32_t count;
    bool answers;                         /* the switch could be read at the end */
    uint16_t peer[2 * POD_CUBES_MAX + 2]; /* by port: the port it is joined with, 0: none; if `answers` */
    uint32_t tries;                       /* sessions that were opened or tried */
    int64_t took_ns;
    char why[SWITCH_WHY_MAX]; /* the reason of the first failure; "" */
};
struct crew;

/* Finds the drivers; opens nothing yet. */
int switches_open(const struct switches *switches, const struct crew_terms *terms, struct crew **ret_crew,
                  struct error *error);
void crew_close(struct crew *crew);

/* Lists the cross-connects of every listed switch: work[POD_SWITCHES], by switch number. Returns how many do
 * not answer. */
uint32_t crew_read(struct crew *crew, struct switch_work *work);
/* Carries out the changes of work[POD_SWITCHES] and fills the rest in. Returns how many switches did not
 * reach what was asked for. */
uint32_t crew_carry_out(struct crew *crew, struct switch_work *work);
/* Takes back what crew_carry_out() applied, where a switch answers; ends become UNDONE. Returns how many
 * switches are not as they were. */
uint32_t crew_undo(struct crew *crew, struct switch_work *work);

const char *change_end_name(enum change_end end); /* "not-applied" */

#endif
