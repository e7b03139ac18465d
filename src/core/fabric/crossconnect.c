#include "core/fabric/crossconnect.h"

#include "base/check.h"

enum { CHANGES_MAX = POD_SWITCHES * POD_CUBES_MAX * 3 }; /* per plus end: two removals, one addition */

void crossconnects_init(struct crossconnects *connects, uint32_t cubes)
{
    CHECK(cubes > 0 && cubes <= POD_CUBES_MAX);
    connects->cubes = cubes;
    memset(connects->next, 0xff, sizeof connects->next);
    memset(connects->prior, 0xff, sizeof connects->prior);
    CHECK(connects->next[0][0] == CUBE_NONE);
}

bool crossconnects_valid(const struct crossconnects *connects)
{
    if (connects->cubes == 0 || connects->cubes > POD_CUBES_MAX)
        return false;
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        for (uint32_t cube = 0; cube < POD_CUBES_MAX; cube++) {
            uint16_t next = connects->next[number][cube], prior = connects->prior[number][cube];
            bool inside = cube < connects->cubes;
            if (next != CUBE_NONE &&
                (!inside || next >= connects->cubes || connects->prior[number][next] != cube))
                return false;
            if (prior != CUBE_NONE &&
                (!inside || prior >= connects->cubes || connects->next[number][prior] != cube))
                return false;
        }
    return true;
}

uint32_t slice_chip_place(const struct slice_shape *shape, const uint32_t at[AXES], uint32_t *ret_inside)
{
    uint32_t side_x = shape->extent[0] / CUBE_SIDE, side_y = shape->extent[1] / CUBE_SIDE;
    *ret_inside = at[0] % CUBE_SIDE + CUBE_SIDE * (at[1] % CUBE_SIDE + CUBE_SIDE * (at[2] % CUBE_SIDE));
    return at[0] / CUBE_SIDE + side_x * (at[1] / CUBE_SIDE + side_y * (at[2] / CUBE_SIDE));
}

uint32_t slice_next_place(const struct slice_shape *shape, uint32_t place, uint32_t axis)
{
    CHECK(axis < AXES && slice_shape_is_whole(shape) && place < slice_shape_cubes(shape));
    uint32_t extent[AXES], at[AXES];
    for (uint32_t i = 0, rest = place; i < AXES; i++) {
        extent[i] = shape->extent[i] / CUBE_SIDE;
        at[i] = rest % extent[i];
        rest /= extent[i];
    }
    at[axis] = (at[axis] + 1) % extent[axis];
    bool wrapped = at[axis] == 0;
    for (uint32_t other = axis + 1; other < AXES && wrapped && shape->twisted; other++)
        if (extent[axis] == extent[0] && extent[other] == 2 * extent[0])
            at[other] = (at[other] + extent[0]) % extent[other];
    return at[0] + extent[0] * (at[1] + extent[1] * at[2]);
}

/* --- places ------------------------------------------------------------------------------------- */

static int check_cubes(uint32_t pod_cubes, const struct slice_shape *shape, const uint16_t *cubes,
                       uint32_t count, struct error *error)
{
    char text[SHAPE_TEXT_MAX];
    bool seen[POD_CUBES_MAX] = {false};
    if (slice_shape_check(shape, error) < 0)
        return ERROR_INVALID;
    slice_shape_format(shape, text);
    if (count != slice_shape_cubes(shape))
        return error_set(error, ERROR_INVALID, "slice %s: %u cubes were given, it needs %u", text, count,
                         slice_shape_cubes(shape));
    for (uint32_t i = 0; i < count; i++) {
        if (cubes[i] >= pod_cubes)
            return error_set(error, ERROR_INVALID, "slice %s: cube %u: the pod has cubes 0 to %u", text,
                             cubes[i], pod_cubes - 1);
        if (seen[cubes[i]])
            return error_set(error, ERROR_INVALID, "slice %s: cube %u is given twice", text, cubes[i]);
        seen[cubes[i]] = true;
    }
    return 0;
}

struct arranger {
    const struct crossconnects *now;
    const struct slice_shape *shape;
    const uint16_t *cubes;
    uint32_t count;
    uint16_t next_place[AXES][SLICE_CUBES_MAX];
    uint16_t joined[AXES][POD_CUBES_MAX]; /* the cube with which most switches join each given cube now */
    uint16_t votes[AXES][POD_CUBES_MAX];  /* number of these switches */
    bool free[POD_CUBES_MAX];
    uint16_t queue[SLICE_CUBES_MAX];
};

/* Finds the cube with which most switches of an axis join `cube`. Switches may differ, and one that is out,
 * or was read long ago, must not decide. */
static void count_votes(struct arranger *arranger, uint32_t axis, uint16_t cube)
{
    uint16_t votes[POD_CUBES_MAX] = {0}, *most = &arranger->votes[axis][cube];
    arranger->joined[axis][cube] = CUBE_NONE;
    for (uint32_t index = 0; index < FACE_LINKS; index++) {
        uint16_t joined = arranger->now->next[axis * FACE_LINKS + index][cube];
        if (joined == CUBE_NONE || ++votes[joined] <= *most)
            continue;
        *most = votes[joined];
        arranger->joined[axis][cube] = joined;
    }
}

/* Puts `cube` at a place, and the cubes that are joined with it already at the places that follow. */
static void put_chain(struct arranger *arranger, struct cube_slice *slice, uint32_t place, uint16_t cube)
{
    uint32_t first = 0, last = 0;
    arranger->free[cube] = false;
    slice->cube[place] = cube;
    arranger->queue[last++] = (uint16_t)place;
    while (first < last) {
        uint16_t at = arranger->queue[first++];
        for (uint32_t axis = 0; axis < AXES; axis++) {
            uint16_t to = arranger->next_place[axis][at];
            uint16_t joined = arranger->joined[axis][slice->cube[at]];
            if (joined == CUBE_NONE || !arranger->free[joined] || slice->cube[to] != CUBE_NONE)
                continue;
            arranger->free[joined] = false;
            slice->cube[to] = joined;
            arranger->queue[last++] = to;
        }
    }
    CHECK(last <= arranger->count);
}

/* Arranges the cubes, beginning with cubes[origin] at place 0. Returns how many can stay of the
 * cross-connects on which most switches of an axis agree. */
static uint32_t arrange_from(struct arranger *arranger, uint32_t origin, struct cube_slice *slice)
{
    uint32_t kept = 0, lowest = 0;
    for (uint32_t i = 0; i < arranger->count; i++) {
        arranger->free[arranger->cubes[i]] = true;
        slice->cube[i] = CUBE_NONE;
    }
    put_chain(arranger, slice, 0, arranger->cubes[origin]);
    for (uint32_t place = 0; place < arranger->count; place++) {
        if (slice->cube[place] != CUBE_NONE)
            continue;
        while (!arranger->free[arranger->cubes[lowest]])
            lowest++;
        put_chain(arranger, slice, place, arranger->cubes[lowest]);
    }
    for (uint32_t place = 0; place < arranger->count; place++)
        for (uint32_t axis = 0; axis < AXES; axis++)
            if (arranger->joined[axis][slice->cube[place]] == slice->cube[arranger->next_place[axis][place]])
                kept += arranger->votes[axis][slice->cube[place]];
    return kept;
}

int crossconnect_arrange(const struct crossconnects *now, const struct slice_shape *shape,
                         const uint16_t *cubes, uint32_t count, struct cube_slice *ret_slice,
                         struct error *error)
{
    if (check_cubes(now->cubes, shape, cubes, count, error) < 0)
        return ERROR_INVALID;
    struct cube_slice best = {.shape = *shape, .count = count}, slice = best;
    if (!slice_shape_is_whole(shape)) {
        best.cube[0] = cubes[0];
        *ret_slice = best;
        return 0;
    }
    struct arranger arranger = {.now = now, .shape = shape, .cubes = cubes, .count = count};
    for (uint32_t axis = 0; axis < AXES; axis++)
        for (uint32_t place = 0; place < count; place++)
            arranger.next_place[axis][place] = (uint16_t)slice_next_place(shape, place, axis);
    uint32_t votes = 0;
    for (uint32_t axis = 0; axis < AXES; axis++)
        for (uint32_t i = 0; i < count; i++) {
            count_votes(&arranger, axis, cubes[i]);
            votes += arranger.votes[axis][cubes[i]];
        }
    uint32_t most = arrange_from(&arranger, 0, &best);
    for (uint32_t origin = 1; origin < count && most < votes; origin++) {
        uint32_t kept = arrange_from(&arranger, origin, &slice);
        if (kept > most) {
            most = kept;
            best = slice;
        }
    }
    *ret_slice = best;
    return 0;
}

/* --- plans --------------------------------------------------------------------------------------- */

struct planner {
    const struct crossconnects *now;
    const struct crossconnect_limits *limits;
    struct crossconnect_plan plan;
    bool mine[POD_CUBES_MAX];
};

static void add_change(struct planner *planner, uint32_t number, bool add, uint32_t plus, uint32_t minus)
{
    struct crossconnect_plan *plan = &planner->plan;
    CHECK(plan->count < CHANGES_MAX && plus < planner->now->cubes && minus < planner->now->cubes);
    plan->changes[plan->count++] =
        (struct crossconnect_change){(uint8_t)number, add, (uint16_t)plus, (uint16_t)minus};
}

static int check_cube(const struct planner *planner, uint16_t cube, struct error *error)
{
    if (planner->limits->slice_of[cube] != 0)
        return error_set(error, ERROR_CONFLICT, "cube %u belongs to running slice %u: take another cube",
                         cube, planner->limits->slice_of[cube]);
    if (planner->limits->cube_out[cube])
        return error_set(error, ERROR_UNAVAILABLE, "cube %u is out of service: take another cube", cube);
    return 0;
}

static int check_end(const struct planner *planner, uint32_t number, enum polarity polarity, uint16_t cube,
                     struct error *error)
{
    struct pod_switch which = pod_switch_at(number);
    if (!planner->limits->end_out[number][polarity][cube])
        return 0;
    struct link_end end = {cube, which.axis, which.index, (uint8_t)polarity};
    return error_set(error, ERROR_UNAVAILABLE,
                     "switch %s, port %u: the %s end of cube %u is out of service: take another cube",
                     pod_switch_name(which), link_end_port(planner->now->cubes, end),
                     polarity == POLARITY_PLUS ? "plus" : "minus", cube);
}

/* Plans to remove the cross-connect at the end of a chosen cube. Refuses if its other end belongs to a
 * running slice. */
static int free_end(struct planner *planner, uint32_t number, uint32_t plus, uint32_t minus,
                    struct error *error)
{
    uint32_t other = planner->mine[plus] ? minus : plus, owner = planner->limits->slice_of[other];
    if (owner != 0) {
        struct pod_switch which = pod_switch_at(number);
        struct link_end end = {(uint16_t)other, which.axis, which.index,
                               other == minus ? POLARITY_MINUS : POLARITY_PLUS};
        return error_set(
            error, ERROR_CONFLICT,
            "switch %s, port %u: cube %u of running slice %u is joined with a cube of this slice: read "
            "the switch again, or take another cube than %u",
            pod_switch_name(which), link_end_port(planner->now->cubes, end), other, owner,
            other == minus ? plus : minus);
    }
    add_change(planner, number, false, plus, minus);
    return 0;
}

/* Plans the removals of one switch, each once, in the order of plus ends. */
static int plan_removals(struct planner *planner, uint32_t number, const uint16_t *wanted,
                         struct error *error)
{
    for (uint32_t plus = 0; plus < planner->now->cubes; plus++) {
        uint16_t minus = planner->now->next[number][plus];
        if (minus == CUBE_NONE || wanted[plus] == minus || !(planner->mine[plus] || planner->mine[minus]))
            continue;
        if (free_end(planner, number, plus, minus, error) < 0)
            return error ? (int)error->code : ERROR_CONFLICT;
    }
    return 0;
}

static int plan_switch(struct planner *planner, uint32_t number, const struct cube_slice *slice,
                       struct error *error)
{
    uint16_t wanted[POD_CUBES_MAX];
    memset(wanted, 0xff, sizeof wanted);
    for (uint32_t place = 0; place < slice->count && slice_shape_is_whole(&slice->shape); place++) {
        uint16_t plus = slice->cube[place];
        uint16_t minus = slice->cube[slice_next_place(&slice->shape, place, number / FACE_LINKS)];
        int status = check_end(planner, number, POLARITY_PLUS, plus, error);
        if (status == 0)
            status = check_end(planner, number, POLARITY_MINUS, minus, error);
        if (status < 0)
            return status;
        wanted[plus] = minus;
    }
    int status = plan_removals(planner, number, wanted, error);
    for (uint32_t plus = 0; plus < planner->now->cubes && status == 0; plus++) {
        if (wanted[plus] == CUBE_NONE)
            continue;
        if (planner->now->next[number][plus] == wanted[plus])
            planner->plan.kept++;
        else
            add_change(planner, number, true, plus, wanted[plus]);
    }
    return status;
}

static void begin(struct planner *planner, const uint16_t *cubes, uint32_t count, struct arena *arena)
{
    CHECK(crossconnects_valid(planner->now));
    planner->plan.changes = ARENA_ARRAY(arena, struct crossconnect_change, 3 * (size_t)POD_SWITCHES * count);
    for (uint32_t i = 0; i < count; i++)
        planner->mine[cubes[i]] = true;
}

static int check_switches(const struct crossconnect_limits *limits, struct error *error)
{
    uint32_t out = 0;
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (limits->switch_out[number] && ++out > limits->switches_out_max)
            return error_set(
                error, ERROR_UNAVAILABLE,
                "switch %s is out of service, and the slice may do without %u switches: repair it, or "
                "allow routes around dead switches",
                pod_switch_name(pod_switch_at(number)), limits->switches_out_max);
    return 0;
}

int crossconnect_plan(const struct crossconnects *now, const struct crossconnect_limits *limits,
                      const struct cube_slice *slice, struct arena *arena, struct crossconnect_plan *ret_plan,
                      struct error *error)
{
    struct planner planner = {.now = now, .limits = limits};
    int status = check_cubes(now->cubes, &slice->shape, slice->cube, slice->count, error);
    for (uint32_t i = 0; i < slice->count && status == 0; i++)
        status = check_cube(&planner, slice->cube[i], error);
    bool whole = status == 0 && slice_shape_is_whole(&slice->shape);
    if (whole)
        status = check_switches(limits, error);
    if (status < 0)
        return status;
    begin(&planner, slice->cube, slice->count, arena);
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        planner.plan.first[number] = planner.plan.count;
        if (limits->switch_out[number])
            planner.plan.left_out += whole ? slice->count : 0;
        else if ((status = plan_switch(&planner, number, slice, error)) < 0)
            return status;
    }
    planner.plan.first[POD_SWITCHES] = planner.plan.count;
    *ret_plan = planner.plan;
    return 0;
}

int crossconnect_plan_clear(const struct crossconnects *now, const struct crossconnect_limits *limits,
                            const uint16_t *cubes, uint32_t count, struct arena *arena,
                            struct crossconnect_plan *ret_plan, struct error *error)
{
    struct planner planner = {.now = now, .limits = limits};
    uint16_t nothing[POD_CUBES_MAX];
    memset(nothing, 0xff, sizeof nothing);
    for (uint32_t i = 0; i < count; i++) {
        if (cubes[i] >= now->cubes)
            return error_set(error, ERROR_INVALID, "cube %u: the pod has cubes 0 to %u", cubes[i],
                             now->cubes - 1);
        if (limits->slice_of[cubes[i]] != 0)
            return check_cube(&planner, cubes[i], error);
    }
    begin(&planner, cubes, count, arena);
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        planner.plan.first[number] = planner.plan.count;
        int status = limits->switch_out[number] ? 0 : plan_removals(&planner, number, nothing, error);
        if (status < 0)
            return status;
    }
    planner.plan.first[POD_SWITCHES] = planner.plan.count;
    *ret_plan = planner.plan;
    return 0;
}

/* --- carrying out -------------------------------------------------------------------------------- */

static bool change(struct crossconnects *connects, const struct crossconnect_change *change)
{
    uint16_t *next = &connects->next[change->switch_number][change->plus];
    uint16_t *prior = &connects->prior[change->switch_number][change->minus];
    bool fits = change->add ? *next == CUBE_NONE && *prior == CUBE_NONE
                            : *next == change->minus && *prior == change->plus;
    if (fits) {
        *next = change->add ? change->minus : CUBE_NONE;
        *prior = change->add ? change->plus : CUBE_NONE;
    }
    return fits;
}

int crossconnect_apply(struct crossconnects *connects, const struct crossconnect_plan *plan,
                       struct error *error)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct crossconnect_change *failed = &plan->changes[i];
        CHECK(failed->switch_number < POD_SWITCHES);
        if (failed->plus < connects->cubes && failed->minus < connects->cubes && change(connects, failed))
            continue;
        for (uint32_t done = i; done-- > 0;) {
            struct crossconnect_change back = plan->changes[done];
            back.add = !back.add;
            CHECK(change(connects, &back));
        }
        return error_set(
            error, ERROR_CONFLICT,
            "switch %s: cannot %s cube %u plus with cube %u minus: the switch is in another state than "
            "planned for; read it again and plan anew",
            pod_switch_name(pod_switch_at(failed->switch_number)), failed->add ? "join" : "part",
            failed->plus, failed->minus);
    }
    return 0;
}

void crossconnect_undo(const struct crossconnect_plan *plan, struct arena *arena,
                       struct crossconnect_plan *ret_plan)
{
    struct crossconnect_plan back = {.changes = ARENA_ARRAY(arena, struct crossconnect_change, plan->count)};
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        back.first[number] = back.count;
        for (int add = 0; add < 2; add++)
            for (uint32_t i = plan->first[number]; i < plan->first[number + 1]; i++) {
                CHECK(plan->changes[i].switch_number == number);
                if (plan->changes[i].add == !add) {
                    back.changes[back.count] = plan->changes[i];
                    back.changes[back.count++].add = add;
                }
            }
    }
    back.first[POD_SWITCHES] = back.count;
    CHECK(back.count == plan->count);
    *ret_plan = back;
}
