/* fabric_faults.c - faults of a pod's switches and optical links, from their state in slice/.
 *
 *     fabric/switch-down    does not answer, or reports that it is out of service; closes when it was read
 *     fabric/switch-lies    has other circuits than it reports; closes when it was read
 *     fabric/switch-alarm   the alarm in the switch's text; closes with the alarm
 *     fabric/wrong-wire     ranks see other chips over it than its circuits join; closes when none does
 *     fabric/link-bad       an end has no light, or does not join; closes when both ends are well
 *
 * A fault follows the state: it is open while the state holds, and closes when the opposite was verified. If
 * a person closes a fault whose state still holds, it is opened again in the same step.
 */
#include "core/react/react.h"

struct wanted {
    const char *code;
    bool holds;
    bool verified; /* if the state does not hold: the fault may be closed */
    struct str evidence;
};

/* Opens or closes the fault as wanted, and then sets *changed. Returns whether it is open now. */
static bool settle_fault(struct step *step, struct str subject, const struct wanted *wanted, bool *changed)
{
    CHECK(subject.len > 0 && subject.len <= NAME_MAX_BYTES);
    const struct fault *open = fault_find_open(step->health, subject, str_from(wanted->code));
    bool ends = open && !wanted->holds && wanted->verified;
    if ((open != NULL) == wanted->holds || (open && !ends))
        return open != NULL;
    struct str evidence = str_head_utf8(wanted->evidence, SIGNAL_EVIDENCE_MAX);
    if (!str_is_utf8(evidence)) /* the words of a switch, or of its driver */
        evidence = STR("its words are no UTF-8");
    struct signal signal = signal_now(str_from(wanted->code), wanted->holds ? SIGNAL_OCCUR : SIGNAL_RECOVER,
                                      SEVERITY_MAJOR, evidence, step->now_ns);
    struct sighting sighting = {.machine = subject, .signal = &signal};
    const struct fault *fault = health_signal(step, &sighting);
    *changed |= fault != NULL;
    return fault && fault->open;
}

static bool end_is_bad(const struct switch_now *now, uint32_t cube, uint8_t bit)
{
    CHECK(cube < now->pod->cubes);
    return now->bad[cube] & bit;
}

/* Returns whether the end that the switch joins with this one is well; true if it joins none. */
static bool peer_is_well(const struct switch_now *now, uint32_t cube, bool plus)
{
    const struct crossconnects *connects = &now->pod->connects;
    CHECK(cube < now->pod->cubes);
    uint16_t peer = plus ? connects->next[now->number][cube] : connects->prior[now->number][cube];
    return peer == CUBE_NONE || !end_is_bad(now, peer, plus ? LINK_BAD_MINUS : LINK_BAD_PLUS);
}

/* Settles the faults of both ends of a cube ("link/pod-1.cube-3.x5-plus"). Returns whether one is open. */
static bool settle_links(struct step *step, const struct switch_now *now, uint32_t cube, bool *changed)
{
    bool some = false;
    for (int end = 0; end < 2; end++) {
        struct buf subject BUF_CLEANUP = {0}, evidence BUF_CLEANUP = {0};
        bool plus = end == 0, bad = end_is_bad(now, cube, plus ? LINK_BAD_PLUS : LINK_BAD_MINUS);
        struct pod_switch which = pod_switch_at(now->number);
        struct link_end place = {(uint16_t)cube, which.axis, which.index,
                                 plus ? POLARITY_PLUS : POLARITY_MINUS};
        if (!bad && !now->faulty)
            continue;
        buf_printf(&subject, "link/" STR_FORMAT ".%s-%s", STR_ARG(now->pod->all_cubes[cube].shown.name),
                   pod_switch_name(which), plus ? "plus" : "minus");
        buf_printf(&evidence, "port %u of " STR_FORMAT " has too little light, or will not join",
                   link_end_port(now->pod->cubes, place), STR_ARG(now->shown.name));
        struct wanted wanted = {"fabric/link-bad", bad, peer_is_well(now, cube, plus), buf_str(&evidence)};
        some |= settle_fault(step, buf_str(&subject), &wanted, changed);
    }
    return some;
}

/* Settles the faults of a switch and its links. `wrong`: ranks see other chips than its circuits join. */
static void settle_switch(struct step *step, struct switch_now *now, bool wrong, bool *changed)
{
    struct buf subject BUF_CLEANUP = {0};
    CHECK(now->number < POD_SWITCHES && now->shown.name.len > 0);
    bool down = now->health == SWITCH_DOWN && !now->leaving, some = false;
    if (!down && !now->lies && !now->alarms.len && !now->faulty && !wrong) {
        for (uint32_t cube = 0; cube < now->pod->cubes; cube++)
            some |= now->bad[cube] && settle_links(step, now, cube, changed);
        now->faulty = some;
        return;
    }
    struct str why = now->reason.len ? buf_str(&now->reason) : STR("it says that it is out of service");
    struct wanted wanted[] = {
        {"fabric/switch-down", down, now->known, why},
        {"fabric/switch-lies", now->lies, now->known, why},
        {"fabric/switch-alarm", now->alarms.len > 0, true, buf_str(&now->alarms)},
        {"fabric/wrong-wire", wrong, true,
         STR("the ranks of a slice see other chips over it than its circuits join: fibres may be swapped")},
    };
    buf_printf(&subject, "switch/" STR_FORMAT, STR_ARG(now->shown.name));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        some |= settle_fault(step, buf_str(&subject), &wanted[i], changed);
    for (uint32_t cube = 0; cube < now->pod->cubes; cube++)
        some |= settle_links(step, now, cube, changed);
    now->faulty = some;
}

bool core_fabric_faults(struct step *step)
{
    bool changed = false, closed = step->slices->closings_seen != health_closings(step->health);
    for (size_t p = 0; p < step->slices->pod_count; p++) {
        struct pod_now *pod = step->slices->pods[p];
        uint64_t wrong = pod->stale || closed ? pod_wrong(step->slices, pod) : 0;
        for (uint32_t number = 0; (pod->stale || closed) && pod->switches && number < POD_SWITCHES; number++)
            settle_switch(step, &pod->switches[number], wrong >> number & 1, &changed);
    }
    step->slices->closings_seen = health_closings(step->health);
    return changed;
}
