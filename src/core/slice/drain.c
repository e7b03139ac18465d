/* drain.c - planned maintenance: moves work off a switch or a cube before it counts as drained. */
#include "core/slice/internal.h"

static bool depends(const struct slice *slice, const struct pod_now *pod, uint32_t number)
{
    CHECK(number < POD_SWITCHES && pod->switches);
    return slice->place.pod == pod->index && slice->phase != SLICE_FAILED && !slice->lost &&
           slice_shape_is_whole(&slice->place.cubes.shape) && !(slice->left_out >> number & 1);
}

/* Returns the first slice that could not do without this switch, or NULL. */
static const struct slice *find_dependent(const struct slices *slices, const struct pod_now *pod,
                                          uint32_t number)
{
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        if (depends(slice, pod, number) && !slice_can_lack(slice, slice->left_out | UINT64_C(1) << number))
            return slice;
    }
    return NULL;
}

/* Starts one drain at a time, because a slice can do without few switches. */
void drains_settle(struct step *step, struct pod_now *pod)
{
    uint64_t left_out = 0;
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct switch_now *now = &pod->switches[number];
        if (!now->drain || now->leaving || left_out || find_dependent(step->slices, pod, number))
            continue;
        CHECK(now->shown.name.len > 0);
        now->leaving = true;
        now->leaving_ns = step->now_ns;
        now->verify = false;
        pod->recount = true;
        pod->stale = true;
        step->schedule = true;
        left_out |= UINT64_C(1) << number; /* slices are judged before the next drain */
        pod->dirty = true;
    }
}

/* --- the ranks' tables ---------------------------------------------------------------------------------- */

static bool is_late(const struct switch_now *now, int64_t now_ns)
{
    return now->users > 0 && !now->overdue && switch_answer_due_ns(now) <= now_ns;
}

bool pod_wants_count(const struct step *step, const struct pod_now *pod)
{
    for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++) {
        const struct switch_now *now = &pod->switches[number];
        CHECK(now->leaving || now->users == 0);
        if (now->leaving && (pod->recount || is_late(now, step->now_ns)))
            return true;
    }
    return false;
}

void pod_count_begin(struct pod_now *pod)
{
    CHECK(pod->switches);
    pod->recount = false;
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct switch_now *now = &pod->switches[number];
        now->users = now->user_rank = 0;
        now->user_jobset = 0;
    }
}

void pod_count_rank(struct pod_now *pod, obj_id jobset, uint32_t rank, uint64_t without)
{
    CHECK(jobset != 0);
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct switch_now *now = &pod->switches[number];
        if (!now->leaving || (without >> number & 1))
            continue;
        bool first = now->users++ == 0 || jobset < now->user_jobset ||
                     (jobset == now->user_jobset && rank < now->user_rank);
        if (!first)
            continue;
        now->user_jobset = jobset;
        now->user_rank = rank;
    }
}

uint64_t pod_count_end(struct step *step, struct pod_now *pod)
{
    uint64_t late = 0;
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct switch_now *now = &pod->switches[number];
        if (is_late(now, step->now_ns))
            late |= UINT64_C(1) << number;
        now->overdue = now->users > 0 && switch_answer_due_ns(now) <= step->now_ns;
    }
    pod->stale = true;
    return late;
}

static void say_users(const struct slices *slices, const struct switch_now *now, struct buf *why)
{
    const struct slice *slice = slice_find(slices, now->user_jobset);
    buf_printf(why, "rank %u", now->user_rank);
    if (slice)
        buf_printf(why, " of slice " STR_FORMAT "/" STR_FORMAT, STR_ARG(slice->shown.namespace_),
                   STR_ARG(slice->shown.name));
    else
        buf_add_str(why, STR(" of a slice that ends"));
    if (now->users > 1)
        buf_printf(why, " and %u more have", now->users - 1);
    else
        buf_add_str(why, STR(" has"));
    if (now->overdue)
        buf_printf(why, " not loaded tables without it within %d s",
                   (int)(SLICE_ANSWER_MAX_NS / NS_PER_SECOND));
    else
        buf_add_str(why, STR(" not loaded tables without it yet"));
}

bool switch_drain_waits(const struct slices *slices, const struct switch_now *now, struct buf *why)
{
    if (now->users > 0)
        say_users(slices, now, why);
    if (now->leaving)
        return now->users > 0;
    const struct slice *slice = now->drain ? find_dependent(slices, now->pod, now->number) : NULL;
    if (slice && slice->moves)
        buf_printf(why, "slice " STR_FORMAT "/" STR_FORMAT " may not be routed around it",
                   STR_ARG(slice->shown.namespace_), STR_ARG(slice->shown.name));
    else if (slice)
        buf_printf(
            why,
            "slice " STR_FORMAT "/" STR_FORMAT " does without %d other switch%s: it cannot spare this one",
            STR_ARG(slice->shown.namespace_), STR_ARG(slice->shown.name),
            __builtin_popcountll(slice->left_out), __builtin_popcountll(slice->left_out) == 1 ? "" : "es");
    return slice != NULL;
}

void switch_set_drain(struct step *step, struct switch_now *now, bool drain)
{
    CHECK(now->pod->index < step->slices->pod_count && step->slices->pods[now->pod->index] == now->pod);
    if (now->drain == drain)
        return;
    now->drain = drain;
    if (now->leaving) { /* maintenance may have changed its circuits: read them before it counts */
        now->leaving = now->overdue = false;
        now->leaving_ns = 0;
        now->users = now->user_rank = 0;
        now->user_jobset = 0;
        now->verify = true;
        now->failures = 0;
        now->retry_ns = 0;
        now->lies = false;
        if (now->health == SWITCH_DOWN)
            now->health = SWITCH_UNSEEN;
        forget_circuits(now->pod, now->number);
    }
    now->pod->dirty = now->pod->stale = true;
    step->schedule = true;
}

void cube_set_drain(struct step *step, struct cube_now *cube, bool drain)
{
    CHECK(cube->number < cube->pod->cubes);
    if (cube->drain == drain)
        return;
    cube->drain = drain;
    cube->pod->dirty = cube->pod->stale = true;
    step->schedule = true;
}

bool slice_on_drained_cube(const struct slices *slices, const struct slice *slice)
{
    const struct pod_now *pod = slices->pods[slice->place.pod];
    CHECK(pod->index == slice->place.pod && pod->all_cubes);
    for (uint32_t c = 0; c < slice->place.cubes.count; c++)
        if (pod->all_cubes[slice->place.cubes.cube[c]].drain)
            return true;
    return false;
}

bool slices_drain_machine(const struct slices *slices, const struct cluster *cluster, machine_id machine)
{
    const struct machine *one = &cluster->machines[machine];
    CHECK(machine < cluster->machine_count);
    if (one->pod >= slices->pod_count || !slices->pods[one->pod]->all_cubes)
        return false;
    const struct pod_now *pod = slices->pods[one->pod];
    uint32_t cube = one->block - cluster->pods[one->pod].first_block;
    return cube < pod->cubes && pod->all_cubes[cube].drain;
}
