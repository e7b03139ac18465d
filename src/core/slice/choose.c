/* choose.c - cubes for a shape, or the reason why there are none. */
#include "core/slice/internal.h"

enum { NAMED_MAX = 4 }; /* cubes whose trouble is named in a message */

uint32_t slice_machine_count(const struct slice_shape *shape)
{
    return slice_shape_chips(shape) / SLICE_MACHINE_CHIPS;
}

/* Returns the extents in machines of 2x2x1 chips. */
static void extents_of(const struct slice_shape *shape, uint32_t ret[AXES])
{
    ret[0] = shape->extent[0] / 2;
    ret[1] = shape->extent[1] / 2;
    ret[2] = shape->extent[2];
    CHECK(ret[0] > 0 && ret[1] > 0 && ret[2] > 0);
}

static const struct block *cube_of(const struct cluster *cluster, uint32_t pod, uint32_t cube)
{
    CHECK(pod < cluster->pod_count && cube < cluster->pods[pod].cube_count);
    return &cluster->blocks[cluster->pods[pod].first_block + cube];
}

machine_id slice_machine(const struct cluster *cluster, const struct slice_place *place, uint32_t rank)
{
    uint32_t extent[AXES], cubes[AXES], at[AXES];
    CHECK(rank < slice_machine_count(&place->cubes.shape));
    extents_of(&place->cubes.shape, extent);
    at[0] = rank % extent[0];
    at[1] = rank / extent[0] % extent[1];
    at[2] = rank / extent[0] / extent[1];
    uint32_t slot = 0;
    if (slice_shape_is_whole(&place->cubes.shape)) {
        for (uint32_t axis = 0; axis < AXES; axis++)
            cubes[axis] = place->cubes.shape.extent[axis] / CUBE_SIDE;
        slot = at[0] / 2 + cubes[0] * (at[1] / 2 + cubes[1] * (at[2] / 4));
        at[0] %= 2, at[1] %= 2, at[2] %= 4;
    } else {
        for (uint32_t axis = 0; axis < AXES; axis++)
            at[axis] += place->origin[axis];
    }
    CHECK(slot < place->cubes.count && at[0] < 2 && at[1] < 2 && at[2] < 4);
    return cube_of(cluster, place->pod, place->cubes.cube[slot])->first + at[0] + 2 * at[1] + 4 * at[2];
}

/* --- one cube ------------------------------------------------------------------------------------------- */

/* Reasons against taking a cube whole; a larger value is worse. */
enum trouble {
    TROUBLE_NONE,
    TROUBLE_LAST,
    TROUBLE_SLICE,
    TROUBLE_MACHINE_TAKEN,
    TROUBLE_MACHINE_OUT,
    TROUBLE_PORT,
    TROUBLE_DRAIN
};

struct verdict {
    enum trouble trouble;
    machine_id machine;        /* the machine that causes it */
    const struct slice *slice; /* the slice that causes it */
    uint32_t number;           /* number of the switch with the bad port */
};

/* Returns a slice of a JobSet other than `but` on the cube, or NULL. `whole` limits the search to slices of
 * whole cubes. */
static const struct slice *owner_of(const struct slices *slices, uint32_t pod, uint32_t cube, obj_id but,
                                    bool whole)
{
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        if (slice->jobset == but || slice->place.pod != pod ||
            (whole && !slice_shape_is_whole(&slice->place.cubes.shape)))
            continue;
        for (uint32_t c = 0; c < slice->place.cubes.count; c++)
            if (slice->place.cubes.cube[c] == cube)
                return slice;
    }
    return NULL;
}

static bool is_own(const struct slices *slices, uint32_t pod, uint32_t cube, obj_id jobset)
{
    const struct slice *slice = slice_find(slices, jobset);
    for (uint32_t c = 0; slice && slice->place.pod == pod && c < slice->place.cubes.count; c++)
        if (slice->place.cubes.cube[c] == cube)
            return true;
    return false;
}

static void judge_machine(const struct slice_want *want, machine_id machine, struct verdict *verdict)
{
    static const enum trouble troubles[] = {[MACHINE_FITS] = TROUBLE_NONE,
                                            [MACHINE_FITS_LAST] = TROUBLE_LAST,
                                            [MACHINE_IS_TAKEN] = TROUBLE_MACHINE_TAKEN,
                                            [MACHINE_IS_OUT] = TROUBLE_MACHINE_OUT};
    enum trouble trouble = troubles[want->fit(want->context, machine)];
    if (trouble > verdict->trouble)
        *verdict = (struct verdict){.trouble = trouble, .machine = machine};
}

static struct verdict judge_cube(const struct slices *slices, const struct cluster *cluster,
                                 const struct slice_want *want, uint32_t pod, uint32_t cube)
{
    const struct block *block = cube_of(cluster, pod, cube);
    const struct pod_now *now = slices->pods[pod];
    CHECK(now->switches && cube < now->cubes && block->count == CUBE_MACHINES);
    struct verdict verdict = {.trouble = TROUBLE_NONE};
    if (now->all_cubes[cube].drain)
        return (struct verdict){.trouble = TROUBLE_DRAIN};
    verdict.slice = owner_of(slices, pod, cube, want->jobset, false);
    if (verdict.slice)
        verdict.trouble = TROUBLE_SLICE;
    for (machine_id m = block->first; !verdict.slice && m < block->first + block->count; m++)
        judge_machine(want, m, &verdict);
    for (uint32_t number = 0; number < POD_SWITCHES && verdict.trouble < TROUBLE_SLICE; number++)
        if (now->switches[number].bad[cube])
            verdict = (struct verdict){.trouble = TROUBLE_PORT, .number = number};
    return verdict;
}

static void say_verdict(const struct cluster *cluster, uint32_t pod, uint32_t cube,
                        const struct verdict *verdict, struct buf *why)
{
    const struct block *block = cube_of(cluster, pod, cube);
    buf_add_str(why, block->name);
    switch (verdict->trouble) {
    case TROUBLE_SLICE:
        buf_printf(why, " is in another slice");
        break;
    case TROUBLE_MACHINE_TAKEN:
        buf_printf(why, " has machine " STR_FORMAT " at work",
                   STR_ARG(cluster->machines[verdict->machine].name));
        break;
    case TROUBLE_MACHINE_OUT:
        buf_printf(why, " has machine " STR_FORMAT " out of service",
                   STR_ARG(cluster->machines[verdict->machine].name));
        break;
    case TROUBLE_PORT:
        buf_printf(why, " has a bad port on switch %s", pod_switch_name(pod_switch_at(verdict->number)));
        break;
    case TROUBLE_DRAIN:
        buf_printf(why, " is drained");
        break;
    case TROUBLE_NONE:
    case TROUBLE_LAST:
        break;
    }
}

/* --- whole cubes ---------------------------------------------------------------------------------------- */

struct hunt {
    /* cubes to take: the JobSet's own, then those that fit, then those to take last */
    uint16_t cubes[POD_CUBES_MAX];
    uint32_t count;
    struct buf troubles;
    uint32_t named;
};

static void hunt_cubes(const struct slices *slices, const struct cluster *cluster,
                       const struct slice_want *want, uint32_t pod, struct hunt *ret)
{
    enum { GOOD, OWN, LAST, CLASSES };
    uint16_t found[CLASSES][POD_CUBES_MAX];
    uint32_t counts[CLASSES] = {0};
    uint32_t cubes = cluster->pods[pod].cube_count;
    CHECK(cubes <= POD_CUBES_MAX);
    *ret = (struct hunt){0};
    for (uint32_t cube = 0; cube < cubes && cube < POD_CUBES_MAX; cube++) {
        struct verdict verdict = judge_cube(slices, cluster, want, pod, cube);
        if (verdict.trouble <= TROUBLE_LAST) {
            int class = verdict.trouble == TROUBLE_LAST           ? LAST
                        : is_own(slices, pod, cube, want->jobset) ? OWN
                                                                  : GOOD;
            found[class][counts[class]++] = (uint16_t)cube;
        } else if (ret->named++ < NAMED_MAX) {
            buf_printf(&ret->troubles, ret->troubles.len ? ", " : "");
            say_verdict(cluster, pod, cube, &verdict, &ret->troubles);
        }
    }
    static const int order[CLASSES] = {OWN, GOOD, LAST};
    for (int i = 0; i < CLASSES; i++)
        for (uint32_t c = 0; c < counts[order[i]]; c++)
            ret->cubes[ret->count++] = found[order[i]][c];
    if (ret->named > NAMED_MAX)
        buf_printf(&ret->troubles, ", and %u more", ret->named - NAMED_MAX);
}

/* Counts the pod's switches that are out. `names` may be NULL. */
static uint32_t count_switches_out(const struct pod_now *pod, struct buf *names)
{
    uint32_t out = 0;
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        if (!switch_is_out(&pod->switches[number]))
            continue;
        if (names)
            buf_printf(names, "%s%s", out ? ", " : "", pod_switch_name(pod_switch_at(number)));
        out++;
    }
    return out;
}

static bool choose_in_pod(const struct slices *slices, const struct cluster *cluster,
                          const struct slice_want *want, uint32_t pod, struct slice_place *ret,
                          struct buf *why)
{
    struct str name = cluster->pods[pod].name;
    struct hunt hunt;
    struct buf names BUF_CLEANUP = {0};
    uint32_t needs = slice_shape_cubes(want->shape), out = count_switches_out(slices->pods[pod], &names);
    if (out > SLICE_OUT_MAX) {
        buf_printf(why,
                   "; " STR_FORMAT " has %u switches out of service (" STR_FORMAT "), and a slice can do "
                   "without %d",
                   STR_ARG(name), out, STR_ARG(buf_str(&names)), SLICE_OUT_MAX);
        return false;
    }
    hunt_cubes(slices, cluster, want, pod, &hunt);
    bool found = hunt.count >= needs;
    if (found) {
        struct error error = {0};
        *ret = (struct slice_place){.pod = pod};
        int rc = crossconnect_arrange(&slices->pods[pod]->connects, want->shape, hunt.cubes, needs,
                                      &ret->cubes, &error);
        CHECK(rc == 0); /* the shape was checked, and the cubes are different cubes of the pod */
    } else {
        buf_printf(why, "; " STR_FORMAT " has %u free%s" STR_FORMAT, STR_ARG(name), hunt.count,
                   hunt.troubles.len ? ": " : "", STR_ARG(buf_str(&hunt.troubles)));
    }
    buf_done(&hunt.troubles);
    return found;
}

/* Returns the i-th pod to try: the JobSet's current one first, then the others. */
static uint32_t pod_at(const struct slice *own, uint32_t i)
{
    return !own || i > own->place.pod ? i : i == 0 ? own->place.pod : i - 1;
}

/* Tries the pods one after another. For a slice that may not be rerouted, pods whose switches are all in
 * service come first. */
static bool choose_whole(const struct slices *slices, const struct cluster *cluster,
                         const struct slice_want *want, struct slice_place *ret, struct buf *why)
{
    char text[SHAPE_TEXT_MAX];
    uint32_t needs = slice_shape_cubes(want->shape);
    const struct slice *own = slice_find(slices, want->jobset);
    slice_shape_format(want->shape, text);
    buf_printf(why, "needs %u whole cube%s of one pod for %s", needs, needs == 1 ? "" : "s", text);
    for (int well = want->moves; well >= 0; well--)
        for (uint32_t i = 0; i < cluster->pod_count; i++) {
            uint32_t pod = pod_at(own, i);
            if (!slices->pods[pod]->switches ||
                (want->moves && (count_switches_out(slices->pods[pod], NULL) == 0) != (well == 1)))
                continue;
            if (choose_in_pod(slices, cluster, want, pod, ret, why))
                return true;
        }
    return false;
}

/* --- a part of a cube ----------------------------------------------------------------------------------- */

/* Returns whether another JobSet's sub-cube slice has the machine. */
static bool is_in_part(const struct slices *slices, const struct cluster *cluster, machine_id machine,
                       obj_id but)
{
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        uint32_t count = slice_machine_count(&slice->place.cubes.shape);
        if (slice->jobset == but || slice_shape_is_whole(&slice->place.cubes.shape))
            continue;
        for (uint32_t rank = 0; rank < count; rank++)
            if (slice_machine(cluster, &slice->place, rank) == machine)
                return true;
    }
    return false;
}

static bool part_fits(const struct slices *slices, const struct cluster *cluster,
                      const struct slice_want *want, const struct slice_place *place, bool *ret_last)
{
    *ret_last = false;
    for (uint32_t rank = 0; rank < slice_machine_count(want->shape); rank++) {
        machine_id machine = slice_machine(cluster, place, rank);
        enum machine_fit fit = want->fit(want->context, machine);
        if (fit > MACHINE_FITS_LAST || is_in_part(slices, cluster, machine, want->jobset))
            return false;
        *ret_last |= fit == MACHINE_FITS_LAST;
    }
    return true;
}

static uint32_t count_fitting(const struct cluster *cluster, const struct slice_want *want, uint32_t pod,
                              uint32_t cube)
{
    const struct block *block = cube_of(cluster, pod, cube);
    uint32_t count = 0;
    for (machine_id m = block->first; m < block->first + block->count; m++)
        count += want->fit(want->context, m) <= MACHINE_FITS_LAST;
    return count;
}

/* Finds the first aligned part of the cube whose machines all fit, preferably one without machines to take
 * last. */
static bool find_part(const struct slices *slices, const struct cluster *cluster,
                      const struct slice_want *want, uint32_t pod, uint32_t cube, struct slice_place *ret,
                      bool *ret_last)
{
    uint32_t extent[AXES];
    bool found = false;
    extents_of(want->shape, extent);
    struct slice_place place = {.pod = pod, .cubes = {.shape = *want->shape, .count = 1}};
    place.cubes.cube[0] = (uint16_t)cube;
    for (uint32_t z = 0; z < 4; z += extent[2])
        for (uint32_t y = 0; y < 2; y += extent[1])
            for (uint32_t x = 0; x < 2; x += extent[0]) {
                bool last;
                place.origin[0] = (uint8_t)x, place.origin[1] = (uint8_t)y, place.origin[2] = (uint8_t)z;
                if (!part_fits(slices, cluster, want, &place, &last) || (found && (last || !*ret_last)))
                    continue;
                *ret = place;
                *ret_last = last;
                found = true;
            }
    return found;
}

/* Chooses the fullest cube with a fitting part, so that other cubes stay whole. */
static bool choose_part(const struct slices *slices, const struct cluster *cluster,
                        const struct slice_want *want, struct slice_place *ret, struct buf *why)
{
    char text[SHAPE_TEXT_MAX];
    uint32_t best = UINT32_MAX, cubes = 0, most = 0;
    for (uint32_t pod = 0; pod < cluster->pod_count; pod++)
        for (uint32_t cube = 0; slices->pods[pod]->switches && cube < cluster->pods[pod].cube_count; cube++) {
            struct slice_place place;
            bool last = false;
            cubes++;
            if (owner_of(slices, pod, cube, want->jobset, true) || slices->pods[pod]->all_cubes[cube].drain)
                continue;
            uint32_t fitting = count_fitting(cluster, want, pod, cube);
            most = fitting > most ? fitting : most;
            if (!find_part(slices, cluster, want, pod, cube, &place, &last))
                continue;
            uint32_t rank = fitting + (last ? 2 * CUBE_MACHINES : 0);
            if (rank < best) {
                best = rank;
                *ret = place;
            }
        }
    slice_shape_format(want->shape, text);
    if (best == UINT32_MAX)
        buf_printf(
            why,
            "needs %u neighbouring machines of one cube for %s; none of %u cubes has them free: at most "
            "%u machines of a cube are",
            slice_machine_count(want->shape), text, cubes, most);
    return best != UINT32_MAX;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

bool slice_is_feasible(const struct cluster *cluster, const struct slice_shape *shape, struct buf *why)
{
    char text[SHAPE_TEXT_MAX];
    uint32_t most = 0;
    for (uint32_t pod = 0; pod < cluster->pod_count; pod++)
        if (cluster->pods[pod].first_switch != SWITCH_NONE && cluster->pods[pod].cube_count > most)
            most = cluster->pods[pod].cube_count;
    if (most >= slice_shape_cubes(shape))
        return true;
    slice_shape_format(shape, text);
    if (most == 0)
        buf_printf(why,
                   "asks for slice %s, and no pod of the cluster has optical switches (spec.pods[].fabric)",
                   text);
    else
        buf_printf(why, "needs %u whole cubes of one pod for %s; the largest pod has %u",
                   slice_shape_cubes(shape), text, most);
    return false;
}

/* Points to the defragmentation planner (fabric/defrag.h) if other slices hold parts of cubes. */
static void name_planner(const struct slices *slices, const struct slice_want *want, struct buf *why)
{
    bool parts = false;
    char text[SHAPE_TEXT_MAX];
    for (size_t i = 0; i < slices->list.len && !parts; i++)
        parts = slices->list.items[i]->jobset != want->jobset &&
                !slice_shape_is_whole(&slices->list.items[i]->place.cubes.shape);
    slice_shape_format(want->shape, text);
    if (parts)
        buf_printf(why, "; phalanx fabric defrag %s says whether small slices could make room", text);
}

bool slice_choose(const struct slices *slices, const struct cluster *cluster, const struct slice_want *want,
                  struct slice_place *ret_place, struct buf *why)
{
    CHECK(want->shape && want->fit && slices->pod_count == cluster->pod_count);
    if (!slice_is_feasible(cluster, want->shape, why))
        return false;
    struct buf said BUF_CLEANUP = {0};
    bool found = slice_shape_is_whole(want->shape) ? choose_whole(slices, cluster, want, ret_place, &said)
                                                   : choose_part(slices, cluster, want, ret_place, &said);
    if (!found) {
        buf_add_str(why, buf_str(&said));
        name_planner(slices, want, why);
    }
    return found;
}
