/* ocs_script.h - a script of actions on emulated switches, with their times.
 *
 * A script is a YAML list. Each entry has a time (`at`, since the start; default 0s), a switch (`switch`: a
 * name such as x5, a number from 0, or all, the default), and an action:
 *
 *     - {do: join, pairs: [1-65, 2-70]}                        initial state: ports that are in use
 *     - {at: 1s, switch: x5, do: swap, pairs: [65-66]}         the fibres in two ports of a side are swapped
 *     - {at: 2s, switch: x5, do: stick, ports: [3]}            a mirror no longer moves; free: it moves again
 *     - {at: 2s, switch: x5, do: darken, ports: [3]}           no light enters; light: it enters again
 *     - {at: 3s, switch: y0, do: drop}                         all sessions end
 *     - {at: 3s, switch: y0, do: silence} commands are read, not answered; answer ends it
 *     - {at: 4s, switch: z1, do: restart, for: 500ms, forget: true}   away, then without its cross-connects
 *     - {switch: z2, do: die, after: 10}                       dead for good after 10 more cross-connects, or
 *                                                              at once
 *     - {do: slow, tuning: 400ms}                              mirrors take this long from now on
 *
 * Pure functions. The script is untrusted: ERROR_INVALID names line, field, and what was expected.
 */
#ifndef PHX_SIM_FABRIC_OCS_SCRIPT_H
#define PHX_SIM_FABRIC_OCS_SCRIPT_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "sim/fabric/ocs.h"

enum ocs_act_kind {
    OCS_ACT_JOIN,
    OCS_ACT_SWAP,
    OCS_ACT_STICK,
    OCS_ACT_FREE,
    OCS_ACT_DARKEN,
    OCS_ACT_LIGHT,
    OCS_ACT_DROP,
    OCS_ACT_SILENCE,
    OCS_ACT_ANSWER,
    OCS_ACT_RESTART,
    OCS_ACT_DIE,
    OCS_ACT_SLOW,
};
enum { OCS_ALL_SWITCHES = -1 };

struct ocs_act {
    int64_t at_ns;
    int32_t which; /* number of the switch, or OCS_ALL_SWITCHES */
    enum ocs_act_kind kind;
    uint32_t a, b; /* one port, or one pair: an entry with several becomes several acts */
    int64_t span_ns, after;
    bool forget;
};
struct ocs_script {
    VEC(struct ocs_act) acts; /* sorted by time */
};

int ocs_script_parse(struct str text, struct ocs_script *ret_script, struct error *error);
void ocs_script_done(struct ocs_script *script);

/* Applies an action to one switch. The caller handles sessions and the time away (DROP, SILENCE, ANSWER,
 * RESTART). */
void ocs_act_apply(const struct ocs_act *act, struct ocs *ocs, int64_t now_ns);

#endif
