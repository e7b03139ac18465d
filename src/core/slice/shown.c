/* shown.c - API views of Cubes, Switches, Slices and FabricSessions: names, conditions, and which have
 * changed. */
#include "base/hash.h"
#include "core/slice/internal.h"

/* --- finding -------------------------------------------------------------------------------------------- */

struct switch_now *switch_find(const struct slices *slices, struct str name)
{
    for (size_t p = 0; p < slices->pod_count; p++)
        for (uint32_t number = 0; slices->pods[p]->switches && number < POD_SWITCHES; number++)
            if (str_equal(slices->pods[p]->switches[number].shown.name, name))
                return &slices->pods[p]->switches[number];
    return NULL;
}

struct cube_now *cube_find(const struct slices *slices, struct str name)
{
    for (size_t p = 0; p < slices->pod_count; p++)
        for (uint32_t cube = 0; slices->pods[p]->all_cubes && cube < slices->pods[p]->cubes; cube++)
            if (str_equal(slices->pods[p]->all_cubes[cube].shown.name, name))
                return &slices->pods[p]->all_cubes[cube];
    return NULL;
}

const struct slice *slice_named(const struct slices *slices, struct str namespace_, struct str name)
{
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct shown *shown = &slices->list.items[i]->shown;
        if (str_equal(shown->name, name) && str_equal(shown->namespace_, namespace_))
            return slices->list.items[i];
    }
    return NULL;
}

const struct block *cube_block(const struct cluster *cluster, const struct cube_now *cube)
{
    const struct pod *pod = &cluster->pods[cube->pod->index];
    CHECK(cube->pod->index < cluster->pod_count && cube->number < pod->cube_count);
    return &cluster->blocks[pod->first_block + cube->number];
}

const struct optical_switch *switch_config(const struct cluster *cluster, const struct switch_now *now)
{
    CHECK(now->pod->index < cluster->pod_count && now->number < POD_SWITCHES);
    uint32_t first = cluster->pods[now->pod->index].first_switch;
    CHECK(first != SWITCH_NONE);
    return &cluster->switches[first + now->number];
}

const struct slice *slice_on_cube(const struct slices *slices, const struct cube_now *cube, size_t *at)
{
    while (*at < slices->list.len) {
        const struct slice *slice = slices->list.items[(*at)++];
        for (uint32_t c = 0; slice->place.pod == cube->pod->index && c < slice->place.cubes.count; c++)
            if (slice->place.cubes.cube[c] == cube->number)
                return slice;
    }
    return NULL;
}

const char *slice_word(const struct slice *slice)
{
    return slice->leave_ns ? "Moving" : slice->lost ? "Lost" : slice_lifecycle.names[slice->phase];
}

uint32_t cube_ready_machines(const struct cluster *cluster, const struct cube_now *cube, uint32_t *ret_busy)
{
    const struct block *block = cube_block(cluster, cube);
    uint32_t ready = 0;
    *ret_busy = 0;
    for (machine_id m = block->first; m < block->first + block->count; m++) {
        const struct machine *machine = &cluster->machines[m];
        CHECK(machine->pod == cube->pod->index);
        ready += machine_schedulable(machine);
        *ret_busy += machine->chip_count - (uint32_t)__builtin_popcountll(machine->free_mask);
    }
    return ready;
}

/* --- conditions ----------------------------------------------------------------------------------------- */

static enum shown_truth truth(bool holds)
{
    return holds ? SHOWN_TRUE : SHOWN_FALSE;
}

static void set_condition(uint8_t *condition, int64_t *since_ns, enum shown_truth now, int64_t now_ns)
{
    if (*condition == now && *since_ns)
        return;
    *condition = (uint8_t)now;
    *since_ns = now_ns;
}

static enum shown_truth switch_ready(const struct switch_now *now)
{
    if (now->health == SWITCH_UNSEEN && !now->known && !now->drain && !now->verify && !now->lies)
        return SHOWN_UNKNOWN;
    return truth(now->health != SWITCH_DOWN && !now->drain && !now->verify && !now->lies);
}

static bool cube_is_drained(const struct slices *slices, const struct cube_now *cube)
{
    size_t at = 0;
    return cube->drain && !slice_on_cube(slices, cube, &at);
}

static bool cube_is_ready(const struct cluster *cluster, const struct cube_now *cube)
{
    uint32_t busy;
    bool ready = !cube->drain && cube_ready_machines(cluster, cube, &busy) == CUBE_MACHINES;
    for (uint32_t number = 0; ready && number < POD_SWITCHES; number++)
        ready = !cube->pod->switches[number].bad[cube->number];
    return ready;
}

/* --- sums ----------------------------------------------------------------------------------------------- */

static uint64_t add(uint64_t sum, uint64_t value)
{
    return hash_mix(sum ^ hash_mix(value + 1));
}

static uint64_t add_text(uint64_t sum, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        sum = add(sum, (uint8_t)text.data[i]);
    return add(sum, text.len);
}

static uint64_t add_shown(uint64_t sum, const struct shown *shown)
{
    return add(add_text(sum, shown->name), shown->ready << 8 | shown->drained);
}

static uint64_t sum_of_switch(const struct switch_now *now)
{
    const uint16_t *next = now->pod->connects.next[now->number];
    uint64_t sum = add_shown(1, &now->shown);
    sum = add(sum, (uint64_t)now->health << 8 | now->known << 4 | now->lies << 3 | now->drain << 2 |
                       now->leaving << 1 | now->verify);
    sum = add(sum, now->overdue);
    for (uint32_t cube = 0; cube < now->pod->cubes; cube++)
        sum = add(sum, (uint64_t)next[cube] << 2 | now->bad[cube]);
    return add_text(add_text(sum, buf_str(&now->reason)), buf_str(&now->alarms));
}

static uint64_t sum_of_cube(const struct step *step, const struct cube_now *cube)
{
    uint32_t busy, ready = cube_ready_machines(step->cluster, cube, &busy);
    uint64_t sum = add_shown(2, &cube->shown);
    sum = add(add(sum, cube->drain), (uint64_t)ready << 32 | busy);
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        sum = add(sum, cube->pod->switches[number].bad[cube->number]);
    const struct slice *slice;
    for (size_t at = 0; (slice = slice_on_cube(step->slices, cube, &at));)
        sum = add(sum, slice->jobset);
    return sum;
}

static uint64_t sum_of_slice(const struct slice *slice)
{
    uint64_t sum = add_shown(3, &slice->shown);
    sum = add(sum, (uint64_t)slice->phase << 2 | slice->lost << 1 | (slice->leave_ns != 0));
    return add(add(sum, slice->connected), slice->left_out);
}

static uint64_t sum_of_session(const struct slice *slice)
{
    return add(add(add_shown(4, &slice->session), slice->tables), slice->tables_out);
}

/* --- telling -------------------------------------------------------------------------------------------- */

static void tell(struct step *step, struct shown *shown, uint64_t sum, enum object_kind kind,
                 const void *thing)
{
    bool is_new = shown->uid == 0;
    CHECK(shown->name.len > 0 && thing);
    if (!is_new && shown->sum == sum)
        return;
    shown->sum = sum;
    if (is_new) {
        shown->uid = step_uid(step);
        shown->created_ns = step->now_ns;
    }
    step_changed(step, is_new ? CHANGE_ADDED : CHANGE_MODIFIED, ref_fabric(kind, thing));
}

static void show_slice(struct step *step, struct slice *slice)
{
    struct shown *shown = &slice->shown, *session = &slice->session;
    bool ready = slice->phase == SLICE_CONNECTED && !slice->lost;
    CHECK(slice->tables > 0 || slice->session.uid == 0);
    set_condition(&shown->ready, &shown->ready_ns, truth(ready), step->now_ns);
    tell(step, shown, sum_of_slice(slice), OBJECT_SLICE, slice);
    if (slice->tables == 0)
        return;
    bool fits = !slice_shape_is_whole(&slice->place.cubes.shape) || !(slice->left_out & ~slice->tables_out);
    set_condition(&session->ready, &session->ready_ns, truth(ready && fits), step->now_ns);
    tell(step, session, sum_of_session(slice), OBJECT_FABRIC_SESSION, slice);
}

static void show_pod(struct step *step, struct pod_now *pod)
{
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct switch_now *now = &pod->switches[number];
        struct shown *shown = &now->shown;
        set_condition(&shown->ready, &shown->ready_ns, switch_ready(now), step->now_ns);
        set_condition(&shown->drained, &shown->drained_ns, truth(switch_is_drained(now)), step->now_ns);
        tell(step, shown, sum_of_switch(now), OBJECT_SWITCH, now);
    }
    for (uint32_t number = 0; number < pod->cubes; number++) {
        struct cube_now *cube = &pod->all_cubes[number];
        struct shown *shown = &cube->shown;
        set_condition(&shown->ready, &shown->ready_ns, truth(cube_is_ready(step->cluster, cube)),
                      step->now_ns);
        set_condition(&shown->drained, &shown->drained_ns, truth(cube_is_drained(step->slices, cube)),
                      step->now_ns);
        tell(step, shown, sum_of_cube(step, cube), OBJECT_CUBE, cube);
    }
    for (size_t i = 0; i < step->slices->list.len; i++)
        if (step->slices->list.items[i]->place.pod == pod->index)
            show_slice(step, step->slices->list.items[i]);
}

static void mark_pod(const struct slices *slices, uint32_t pod)
{
    if (pod < slices->pod_count && slices->pods[pod]->switches)
        slices->pods[pod]->stale = true;
}

void slices_machines_changed(struct slices *slices, const struct cluster *cluster)
{
    const struct machine_changes *changes = cluster->changes;
    uint64_t next = cluster_next_change(cluster), seen = slices->machines_seen;
    if (!changes || cluster->switch_count == 0 || seen == next)
        return;
    bool whole = seen < changes->first || seen > next;
    CHECK(changes->first + changes->ids.len == next);
    for (uint32_t pod = 0; whole && pod < cluster->pod_count; pod++)
        mark_pod(slices, pod);
    for (size_t i = whole ? changes->ids.len : (size_t)(seen - changes->first); i < changes->ids.len; i++)
        mark_pod(slices, cluster->machines[changes->ids.items[i]].pod);
    slices->machines_seen = next;
}

void slices_show(struct step *step)
{
    for (size_t p = 0; p < step->slices->pod_count; p++) {
        struct pod_now *pod = step->slices->pods[p];
        if (pod->stale && pod->switches)
            show_pod(step, pod);
        pod->stale = false;
    }
}
