/* store.c - slices and switches: life cycles, reports, health and timers. */
#include "base/backoff.h"
#include "core/slice/internal.h"

static const char *const slice_names[SLICE_PHASES] = {"Connecting", "Connected", "Failed"};
static const uint32_t slice_next[SLICE_PHASES] = {
    [SLICE_CONNECTING] = LIFECYCLE_TO(SLICE_CONNECTED) | LIFECYCLE_TO(SLICE_FAILED),
};
const struct lifecycle slice_lifecycle = {"slice", SLICE_PHASES, slice_names, slice_next};

struct slices *slices_new(void)
{
    return mem_alloc(sizeof(struct slices));
}

void shown_done(struct shown *shown)
{
    mem_free((char *)shown->namespace_.data);
    mem_free((char *)shown->name.data);
}

static struct str copy_text(struct str text)
{
    char *bytes = mem_alloc(text.len + 1);
    mem_copy(bytes, text.data, text.len);
    return (struct str){bytes, text.len};
}

void shown_name(struct shown *shown, struct str namespace_, struct str name)
{
    CHECK(name.len > 0 && shown->name.len == 0);
    shown->namespace_ = copy_text(namespace_);
    shown->name = copy_text(name);
}

/* Cubes are named "<pod>.<cube>", which is unique because neither part has a dot. */
static void name_cubes(struct pod_now *now, const struct cluster *cluster)
{
    const struct pod *pod = &cluster->pods[now->index];
    for (uint32_t number = 0; number < now->cubes; number++) {
        struct cube_now *cube = &now->all_cubes[number];
        struct buf name BUF_CLEANUP = {0};
        cube->pod = now;
        cube->number = number;
        shown_done(&cube->shown);
        cube->shown.name = cube->shown.namespace_ = (struct str){0};
        buf_printf(&name, STR_FORMAT "." STR_FORMAT, STR_ARG(now->name),
                   STR_ARG(cluster->blocks[pod->first_block + number].name));
        shown_name(&cube->shown, STR(""), buf_str(&name));
    }
}

struct pod_now *pod_now_new(const struct cluster *cluster, uint32_t pod)
{
    const struct pod *from = &cluster->pods[pod];
    struct pod_now *now = mem_alloc(sizeof *now);
    CHECK(pod < cluster->pod_count && from->cube_count <= from->block_count);
    now->name = copy_text(from->name);
    now->index = pod;
    now->cubes = from->cube_count;
    if (from->first_switch == SWITCH_NONE || from->cube_count == 0)
        return now;
    crossconnects_init(&now->connects, from->cube_count);
    now->switches = mem_alloc(POD_SWITCHES * sizeof *now->switches);
    now->all_cubes = mem_alloc(now->cubes * sizeof *now->all_cubes);
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        now->switches[number].pod = now;
        now->switches[number].number = number;
        shown_name(&now->switches[number].shown, STR(""),
                   cluster->switches[from->first_switch + number].name);
    }
    name_cubes(now, cluster);
    return now;
}

void pod_now_free(struct pod_now *pod)
{
    for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++) {
        vec_done(&pod->switches[number].breaks);
        vec_done(&pod->switches[number].makes);
        buf_done(&pod->switches[number].reason);
        buf_done(&pod->switches[number].alarms);
        shown_done(&pod->switches[number].shown);
    }
    for (uint32_t cube = 0; pod->all_cubes && cube < pod->cubes; cube++)
        shown_done(&pod->all_cubes[cube].shown);
    mem_free(pod->all_cubes);
    mem_free(pod->switches);
    mem_free((char *)pod->name.data);
    mem_free(pod);
}

static void slice_free(struct slice *slice)
{
    shown_done(&slice->shown);
    shown_done(&slice->session);
    buf_done(&slice->tables_name);
    mem_free(slice);
}

void slices_bury(struct slices *slices)
{
    for (size_t i = 0; i < slices->dead.len; i++)
        slice_free(slices->dead.items[i]);
    vec_clear(&slices->dead);
    for (size_t i = 0; i < slices->dead_pods.len; i++)
        pod_now_free(slices->dead_pods.items[i]);
    vec_clear(&slices->dead_pods);
}

void slices_free(struct slices *slices)
{
    if (!slices)
        return;
    for (size_t i = 0; i < slices->pod_count; i++)
        pod_now_free(slices->pods[i]);
    for (size_t i = 0; i < slices->list.len; i++)
        slice_free(slices->list.items[i]);
    slices_bury(slices);
    mem_free(slices->pods);
    vec_done(&slices->list);
    vec_done(&slices->dead);
    vec_done(&slices->dead_pods);
    mem_free(slices);
}

/* --- slices --------------------------------------------------------------------------------------------- */

struct slice *slice_find(const struct slices *slices, obj_id jobset)
{
    for (size_t i = 0; i < slices->list.len; i++)
        if (slices->list.items[i]->jobset == jobset)
            return slices->list.items[i];
    return NULL;
}

/* Takes the slice out of the API. The slice itself is freed in the next step, because effects of this step
 * point to it. */
static void bury_slice(struct step *step, struct slice *slice)
{
    if (slice->session.uid)
        step_changed(step, CHANGE_DELETED, ref_fabric(OBJECT_FABRIC_SESSION, slice));
    if (slice->shown.uid)
        step_changed(step, CHANGE_DELETED, ref_fabric(OBJECT_SLICE, slice));
    if (slice->place.pod < step->slices->pod_count)
        step->slices->pods[slice->place.pod]->dirty = step->slices->pods[slice->place.pod]->stale = true;
    vec_push(&step->slices->dead, slice);
}

void slice_end(struct step *step, obj_id jobset)
{
    struct slices *slices = step->slices;
    CHECK(jobset != 0);
    for (size_t i = 0; i < slices->list.len; i++)
        if (slices->list.items[i]->jobset == jobset) {
            bury_slice(step, slices->list.items[i]);
            vec_remove(&slices->list, i);
            step->schedule = true; /* its cubes are free for others */
            return;
        }
}

void slice_begin(struct step *step, const struct slice_owner *owner, const struct slice_place *place)
{
    struct slices *slices = step->slices;
    CHECK(place->pod < slices->pod_count && slices->pods[place->pod]->switches && place->cubes.count > 0);
    slice_end(step, owner->jobset);
    struct slice *slice = mem_alloc(sizeof *slice);
    *slice = (struct slice){
        .jobset = owner->jobset, .place = *place, .begun_ns = step->now_ns, .moves = owner->moves};
    if (slice_shape_is_whole(&place->cubes.shape))
        slice->reads_from = slices->operations + 1;
    shown_name(&slice->shown, owner->namespace_, owner->name);
    shown_name(&slice->session, owner->namespace_, owner->name);
    size_t at = slices->list.len;
    vec_push(&slices->list, slice);
    for (; at > 0 && slices->list.items[at - 1]->jobset > owner->jobset; at--)
        slices->list.items[at] = slices->list.items[at - 1];
    slices->list.items[at] = slice;
    slices->pods[place->pod]->dirty = slices->pods[place->pod]->stale = true;
}

bool slice_restore(struct slices *slices, const struct cluster *cluster, const struct slice *saved)
{
    const struct cube_slice *cubes = &saved->place.cubes;
    if (saved->jobset == 0 || (slices->list.len > 0 && vec_last(&slices->list)->jobset >= saved->jobset) ||
        saved->place.pod >= slices->pod_count || !slices->pods[saved->place.pod]->switches ||
        cubes->count != slice_shape_cubes(&cubes->shape) || (saved->connected & saved->left_out) ||
        ((saved->connected | saved->left_out | saved->wrong | saved->tables_out) & ~ALL_SWITCHES) ||
        saved->reads_from > slices->operations + 1 || saved->shown.name.len == 0 ||
        saved->tables_number > slices->tables_number || (saved->tables > 0) != (saved->tables_number > 0) ||
        ((saved->lost || saved->unread) && saved->phase != SLICE_CONNECTED))
        return false;
    for (uint32_t c = 0; c < cubes->count; c++)
        if (cubes->cube[c] >= cluster->pods[saved->place.pod].cube_count)
            return false;
    static const uint8_t sides[AXES] = {2, 2, 4};
    for (uint32_t axis = 0; axis < AXES && !slice_shape_is_whole(&cubes->shape); axis++)
        if (saved->place.origin[axis] +
                (axis < 2 ? cubes->shape.extent[axis] / 2 : cubes->shape.extent[axis]) >
            sides[axis])
            return false;
    struct slice *slice = mem_alloc(sizeof *slice);
    *slice = *saved;
    slice->shown.name = slice->shown.namespace_ = slice->session.name = slice->session.namespace_ =
        (struct str){0};
    shown_name(&slice->shown, saved->shown.namespace_, saved->shown.name);
    shown_name(&slice->session, saved->shown.namespace_, saved->shown.name);
    if (slice->tables)
        slice_name_tables(slice);
    vec_push(&slices->list, slice);
    return true;
}

uint64_t pod_wrong(const struct slices *slices, const struct pod_now *pod)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < slices->list.len; i++)
        if (slices->list.items[i]->place.pod == pod->index)
            wrong |= slices->list.items[i]->wrong;
    return wrong;
}

/* --- switches ------------------------------------------------------------------------------------------- */

static struct pod_now *find_switch(const struct step *step, struct str name, struct switch_now **ret_switch)
{
    for (size_t i = 0; i < step->cluster->switch_count; i++) {
        const struct optical_switch *one = &step->cluster->switches[i];
        struct pod_now *pod = step->slices->pods[one->pod];
        if (!str_equal(one->name, name) || !pod->switches)
            continue;
        *ret_switch = &pod->switches[one->number];
        return pod;
    }
    return NULL;
}

static void keep_reason(struct switch_now *now, struct str reason)
{
    buf_clear(&now->reason);
    buf_add_str(&now->reason, reason);
}

void switch_failed(struct step *step, struct pod_now *pod, struct switch_now *now, struct str reason)
{
    CHECK(now->failures < UINT32_MAX && now->operation <= step->slices->operations);
    now->operation = 0;
    now->failures++;
    now->retry_ns = step->now_ns + backoff_wait(SWITCH_BACKOFF_NS, SWITCH_BACKOFF_MAX_NS, now->failures - 1);
    keep_reason(now, reason);
    if (now->failures >= SWITCH_TRIES_MAX && !now->known)
        now->health = SWITCH_DOWN;
    pod->dirty = pod->stale = true;
}

void forget_circuits(struct pod_now *pod, uint32_t number)
{
    CHECK(pod->switches && number < POD_SWITCHES);
    memset(pod->connects.next[number], 0xff, sizeof pod->connects.next[number]);
    memset(pod->connects.prior[number], 0xff, sizeof pod->connects.prior[number]);
    pod->switches[number].known = false;
    pod->switches[number].read = 0;
}

/* Takes over the reported circuits. Returns false, with the circuits unknown, if no switch can hold them.
 * Circuits between two ports without a cube are ignored. */
static bool take_present(struct pod_now *pod, uint32_t number, const struct switch_report *report)
{
    struct pod_switch which = pod_switch_at(number);
    uint16_t *next = pod->connects.next[number], *prior = pod->connects.prior[number];
    forget_circuits(pod, number);
    for (size_t i = 0; i < report->present_count; i++) {
        struct link_end plus, minus;
        bool a = switch_port_end(pod->cubes, which, report->present[i].plus, &plus);
        bool b = switch_port_end(pod->cubes, which, report->present[i].minus, &minus);
        if (!a && !b)
            continue;
        if (!a || !b || plus.polarity != POLARITY_PLUS || minus.polarity != POLARITY_MINUS ||
            next[plus.cube] != CUBE_NONE || prior[minus.cube] != CUBE_NONE) {
            forget_circuits(pod, number);
            return false;
        }
        next[plus.cube] = minus.cube;
        prior[minus.cube] = plus.cube;
    }
    pod->switches[number].known = true;
    pod->switches[number].read = report->operation;
    return true;
}

static bool holds(const struct pod_now *pod, uint32_t number, struct circuit circuit)
{
    struct pod_switch which = pod_switch_at(number);
    struct link_end plus, minus;
    return switch_port_end(pod->cubes, which, circuit.plus, &plus) &&
           switch_port_end(pod->cubes, which, circuit.minus, &minus) &&
           pod->connects.next[number][plus.cube] == minus.cube;
}

static void mark_bad(struct switch_now *now, struct link_end end)
{
    now->bad[end.cube] |= end.polarity == POLARITY_PLUS ? LINK_BAD_PLUS : LINK_BAD_MINUS;
}

/* Returns whether the switch made and broke all circuits of the request. If a circuit failed SWITCH_TRIES_MAX
 * times in a row, marks the ends of both its cubes as bad at this switch. */
static bool request_holds(struct pod_now *pod, uint32_t number)
{
    struct switch_now *now = &pod->switches[number];
    bool all = true;
    for (size_t i = 0; i < now->breaks.len + now->makes.len; i++) {
        bool make = i >= now->breaks.len;
        struct circuit circuit = make ? now->makes.items[i - now->breaks.len] : now->breaks.items[i];
        struct link_end plus, minus;
        if (holds(pod, number, circuit) == make)
            continue;
        all = false;
        if (now->failures + 1 < SWITCH_TRIES_MAX)
            continue;
        if (switch_port_end(pod->cubes, pod_switch_at(number), circuit.plus, &plus) &&
            switch_port_end(pod->cubes, pod_switch_at(number), circuit.minus, &minus))
            mark_bad(now, plus), mark_bad(now, minus);
    }
    return all;
}

void slices_report(struct step *step, const struct switch_report *report)
{
    struct switch_now *now;
    struct pod_now *pod = find_switch(step, report->name, &now);
    if (!pod || now->operation == 0 || report->operation != now->operation)
        return; /* late, twice, or for another request */
    uint32_t number = now->number;
    pod->dirty = pod->stale = true;
    if (!report->read || report->outcome == SWITCH_UNREACHABLE) {
        forget_circuits(pod, number);
        switch_failed(step, pod, now, report->reason.len ? report->reason : STR("it does not answer"));
    } else if (!take_present(pod, number, report)) {
        now->lies = true;
        switch_failed(step, pod, now, STR("it reports circuits that no switch can hold"));
    } else if (!request_holds(pod, number)) {
        switch_failed(step, pod, now,
                      report->reason.len ? report->reason
                                         : STR("its circuits are not those that it was given"));
    } else {
        now->operation = 0;
        now->failures = 0;
        now->retry_ns = 0;
        now->lies = now->verify = false;
        if (now->health != SWITCH_DEGRADED)
            now->health = SWITCH_UP;
        buf_clear(&now->reason);
    }
}

void slices_health(struct step *step, const struct switch_health *health)
{
    struct switch_now *now;
    struct pod_now *pod = find_switch(step, health->name, &now);
    if (!pod)
        return;
    struct pod_switch which = pod_switch_at((uint32_t)(now - pod->switches));
    if (now->health == SWITCH_DOWN && health->state != SWITCH_DOWN) {
        now->failures = 0; /* circuits must be read again after an outage */
        now->retry_ns = 0;
        forget_circuits(pod, (uint32_t)(now - pod->switches));
        step->schedule = true;
        now->verify = !now->leaving; /* read before the fault closes, even if no slice needs it */
    }
    now->health = (uint8_t)health->state;
    uint8_t bad_before[sizeof now->bad];
    memcpy(bad_before, now->bad, sizeof bad_before);
    memset(now->bad, 0, sizeof now->bad);
    for (size_t i = 0; i < health->bad_port_count; i++) {
        struct link_end end;
        if (switch_port_end(pod->cubes, which, health->bad_ports[i], &end))
            mark_bad(now, end);
    }
    if (memcmp(bad_before, now->bad, sizeof bad_before) != 0)
        step->schedule = true; /* a slice may take cubes whose ports are well again */
    keep_reason(now, health->reason);
    buf_clear(&now->alarms);
    for (size_t i = 0; i < health->alarm_count; i++)
        buf_printf(&now->alarms, "%s" STR_FORMAT, i ? "\n" : "", STR_ARG(health->alarms[i]));
    pod->dirty = pod->stale = true;
}

/* --- boot, timers, cluster ------------------------------------------------------------------------------ */

void slices_tick(struct step *step)
{
    for (size_t p = 0; p < step->slices->pod_count; p++) {
        struct pod_now *pod = step->slices->pods[p];
        for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++) {
            struct switch_now *now = &pod->switches[number];
            if (now->operation && now->due_ns <= step->now_ns) {
                forget_circuits(pod, number);
                switch_failed(step, pod, now, STR("its driver does not answer"));
            } else if (!now->operation && now->retry_ns && now->retry_ns <= step->now_ns) {
                now->retry_ns = 0;
                pod->dirty = pod->stale = true;
                if (now->health == SWITCH_DOWN && now->failures >= SWITCH_TRIES_MAX) {
                    now->health = SWITCH_UNSEEN; /* one more try: the next failure makes it DOWN again */
                    now->verify = !now->leaving;
                    step->schedule = true;
                }
            }
        }
    }
}

int64_t slices_deadline(const struct slices *slices)
{
    int64_t due_ns = INT64_MAX;
    for (size_t p = 0; p < slices->pod_count; p++)
        for (uint32_t number = 0; slices->pods[p]->switches && number < POD_SWITCHES; number++) {
            const struct switch_now *now = &slices->pods[p]->switches[number];
            int64_t at_ns = now->operation ? now->due_ns : now->retry_ns ? now->retry_ns : INT64_MAX;
            due_ns = at_ns < due_ns ? at_ns : due_ns;
            int64_t answer_ns = switch_answer_due_ns(now);
            if (now->users > 0 && !now->overdue && answer_ns < due_ns)
                due_ns = answer_ns;
        }
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        if (slice->leave_ns && !slice->lost && slice->leave_ns < due_ns)
            due_ns = slice->leave_ns;
    }
    return due_ns;
}

static struct pod_now *take_pod(struct slices *slices, const struct cluster *cluster, uint32_t pod,
                                uint32_t *ret_old)
{
    const struct pod *new = &cluster->pods[pod];
    bool managed = new->first_switch != SWITCH_NONE &&new->cube_count > 0;
    for (uint32_t i = 0; i < slices->pod_count; i++) {
        struct pod_now *old = slices->pods[i];
        if (!old || !str_equal(old->name, new->name) || old->cubes != new->cube_count ||
            (old->switches != NULL) != managed)
            continue;
        slices->pods[i] = NULL;
        *ret_old = i;
        return old;
    }
    *ret_old = UINT32_MAX;
    return pod_now_new(cluster, pod);
}

static void tell_gone(struct step *step, const struct pod_now *pod)
{
    for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++)
        if (pod->switches[number].shown.uid)
            step_changed(step, CHANGE_DELETED, ref_fabric(OBJECT_SWITCH, &pod->switches[number]));
    for (uint32_t cube = 0; pod->all_cubes && cube < pod->cubes; cube++)
        if (pod->all_cubes[cube].shown.uid)
            step_changed(step, CHANGE_DELETED, ref_fabric(OBJECT_CUBE, &pod->all_cubes[cube]));
}

void slices_cluster(struct step *step, struct slices *slices, const struct cluster *cluster)
{
    struct pod_now **pods = mem_alloc((cluster->pod_count + 1) * sizeof *pods);
    uint32_t *map = mem_alloc((slices->pod_count + 1) * sizeof *map);
    memset(map, 0xff, (slices->pod_count + 1) * sizeof *map);
    for (uint32_t pod = 0; pod < cluster->pod_count; pod++) {
        uint32_t old;
        pods[pod] = take_pod(slices, cluster, pod, &old);
        pods[pod]->stale = step != NULL;
        if (old != UINT32_MAX) {
            map[old] = pod;
            pods[pod]->index = pod;
            if (pods[pod]->switches)
                name_cubes(pods[pod], cluster);
            pods[pod]->dirty = pods[pod]->stale = true;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < slices->list.len; i++) {
        struct slice *slice = slices->list.items[i];
        slice->place.pod = map[slice->place.pod];
        CHECK(step || slice->place.pod != UINT32_MAX);
        if (slice->place.pod == UINT32_MAX)
            bury_slice(step, slice); /* its job continues, but no managed pod has its cubes */
        else
            slices->list.items[kept++] = slice;
    }
    slices->list.len = kept;
    for (size_t i = 0; i < slices->pod_count; i++) {
        if (!slices->pods[i])
            continue;
        CHECK(step); /* effects of this step may point to the pod */
        tell_gone(step, slices->pods[i]);
        vec_push(&slices->dead_pods, slices->pods[i]);
    }
    mem_free(slices->pods);
    mem_free(map);
    slices->pods = pods;
    slices->pod_count = cluster->pod_count;
}
