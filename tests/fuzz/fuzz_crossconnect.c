/* Lists of cubes, and plans of cross-connects for any state of a pod. The input is text, a line for a step:
 *
 *     p 8                 the pod has so many cubes; all ends are free
 *     x x5:3,9            joins the plus end of cube 3 with the minus end of cube 9 at a switch
 *     r 4x4x8:3,9         a slice that runs          j 4x4x4:7   one that has ended
 *     c 4                 a cube that is out         s x5        a switch that is out
 *     e x5:3,9            the plus end of cube 3 and the minus end of cube 9 are out
 *     n 2                 a slice may do without so many switches
 *     w 4x4x8:1,2         plans a slice, carries the plan out, and takes it back
 *
 * Properties: a list is read alike once it has been written; a plan touches no cube of a running slice, no
 * switch or end that is out, and no cross-connect of other cubes; after it the slice is joined, and the next
 * plan is empty; the plan that leads back does so; every state is a partial permutation. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "cmd/fabric_plan.c" /* a program is no part of any layer's library */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The parts of the program that print, read switches or draw are not called here. */
int fabric_refuse(const struct error *error)
{
    return error->code;
}
void fabric_report_plan(struct buf *out, uint32_t pod_cubes, const struct cube_slice *slice,
                        const struct crossconnect_plan *plan, bool json)
{
}
void fabric_draw_mirrors(struct buf *out, const struct crossconnects *before,
                         const struct crossconnects *after)
{
}
void output_write(struct buf *out)
{
}
int picture_write(const char *path, const char *option, const struct buf *picture)
{
    return 0;
}
bool fabric_switches_pod(const char *cluster, const char *in, uint32_t *ret_cubes)
{
    return false;
}
int fabric_live(const struct live_order *order)
{
    return 0;
}

struct pod {
    struct crossconnects now, before;
    struct crossconnect_limits limits;
    uint32_t slices;
    struct arena arena; /* of one step */
};

static bool same_state(const struct crossconnects *a, const struct crossconnects *b)
{
    return a->cubes == b->cubes && memcmp(a->next, b->next, sizeof a->next) == 0 &&
           memcmp(a->prior, b->prior, sizeof a->prior) == 0;
}

/* --- lists ------------------------------------------------------------------------------------------ */

static bool check_list(struct str text, uint16_t cubes[SLICE_CUBES_MAX], uint32_t *ret_count)
{
    uint16_t again[SLICE_CUBES_MAX];
    uint32_t count = 7777, again_count;
    struct buf written BUF_CLEANUP = {0};
    struct error error;
    if (fabric_cubes_parse(text, cubes, &count, &error) < 0) {
        CHECK(error.code == ERROR_INVALID && error.text[0] && count == 7777);
        return false;
    }
    CHECK(count >= 1 && count <= SLICE_CUBES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(cubes[i] < POD_CUBES_MAX);
        buf_printf(&written, "%s%u", i ? "," : "", cubes[i]);
    }
    CHECK(fabric_cubes_parse(buf_str(&written), again, &again_count, NULL) == 0 && again_count == count);
    CHECK(memcmp(again, cubes, count * sizeof *cubes) == 0);
    *ret_count = count;
    return true;
}

/* --- plans ------------------------------------------------------------------------------------------ */

static void mark_cubes(const struct cube_slice *slice, bool mine[POD_CUBES_MAX])
{
    memset(mine, 0, POD_CUBES_MAX);
    for (uint32_t place = 0; place < slice->count; place++) {
        CHECK(slice->cube[place] < POD_CUBES_MAX && !mine[slice->cube[place]]);
        mine[slice->cube[place]] = true;
    }
}

/* Limits of each change, and the order of a switch's changes. */
static void check_changes(const struct pod *pod, const struct crossconnect_plan *plan,
                          const bool mine[POD_CUBES_MAX])
{
    CHECK(plan->first[0] == 0 && plan->first[POD_SWITCHES] == plan->count);
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        CHECK(plan->first[number] <= plan->first[number + 1]);
        CHECK(!pod->limits.switch_out[number] || plan->first[number] == plan->first[number + 1]);
        for (uint32_t i = plan->first[number]; i < plan->first[number + 1]; i++) {
            const struct crossconnect_change *at = &plan->changes[i], *last = at - 1;
            CHECK(at->switch_number == number && at->plus < pod->now.cubes && at->minus < pod->now.cubes);
            CHECK(at->add ? mine[at->plus] && mine[at->minus] : mine[at->plus] || mine[at->minus]);
            CHECK(pod->limits.slice_of[at->plus] == 0 && pod->limits.slice_of[at->minus] == 0);
            CHECK(!at->add || (!pod->limits.end_out[number][POLARITY_PLUS][at->plus] &&
                               !pod->limits.end_out[number][POLARITY_MINUS][at->minus]));
            if (i > plan->first[number])
                CHECK(last->add < at->add || (last->add == at->add && last->plus < at->plus));
        }
    }
}

/* Cross-connects that are gone or new have an end of a cube of the slice, and none of a running one. */
static void check_others(const struct pod *pod, const struct crossconnects *after,
                         const bool mine[POD_CUBES_MAX])
{
    CHECK(crossconnects_valid(after));
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        for (uint32_t plus = 0; plus < after->cubes; plus++) {
            uint16_t old = pod->now.next[number][plus], fresh = after->next[number][plus];
            if (old == fresh)
                continue;
            CHECK(!pod->limits.switch_out[number] && pod->limits.slice_of[plus] == 0);
            CHECK(old == CUBE_NONE || ((mine[plus] || mine[old]) && pod->limits.slice_of[old] == 0));
            CHECK(fresh == CUBE_NONE || (mine[plus] && mine[fresh]));
        }
}

/* Each live switch joins the cubes of the slice and no others with them; a part of a cube is alone. */
static void check_joined(const struct pod *pod, const struct crossconnects *after,
                         const struct cube_slice *slice)
{
    bool whole = slice_shape_is_whole(&slice->shape);
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        for (uint32_t place = 0; place < slice->count && !pod->limits.switch_out[number]; place++) {
            uint16_t next =
                whole ? slice->cube[slice_next_place(&slice->shape, place, number / FACE_LINKS)] : CUBE_NONE;
            CHECK(after->next[number][slice->cube[place]] == next);
            CHECK(whole || after->prior[number][slice->cube[place]] == CUBE_NONE);
        }
}

/* The plan of a slice that has been formed is empty, also where its cubes are listed the other way round and
 * get their places anew. */
static void check_at_rest(struct pod *pod, const struct crossconnects *after, const struct cube_slice *slice,
                          const uint16_t *cubes, uint32_t joins)
{
    struct cube_slice again;
    struct crossconnect_plan plan;
    uint16_t turned[SLICE_CUBES_MAX];
    CHECK(crossconnect_plan(after, &pod->limits, slice, &pod->arena, &plan, NULL) == 0);
    CHECK(plan.count == 0 && plan.kept + plan.left_out == joins);
    if (plan.left_out > 0)
        return; /* the switches that are out may have another opinion of the places */
    for (uint32_t i = 0; i < slice->count; i++)
        turned[i] = cubes[slice->count - 1 - i];
    CHECK(crossconnect_arrange(after, &slice->shape, turned, slice->count, &again, NULL) == 0);
    CHECK(crossconnect_plan(after, &pod->limits, &again, &pod->arena, &plan, NULL) == 0 && plan.count == 0);
}

/* A plan does nothing to a state that it was not made for: here its last change has been made already. */
static void check_conflict(struct pod *pod, const struct crossconnect_plan *plan)
{
    struct error error;
    struct crossconnects state = pod->now;
    struct crossconnect_plan last = {.changes = &plan->changes[plan->count - 1], .count = 1};
    if (crossconnect_apply(&state, &last, NULL) < 0)
        return;
    pod->before = state;
    CHECK(crossconnect_apply(&state, plan, &error) == ERROR_CONFLICT && error.code == ERROR_CONFLICT);
    CHECK(same_state(&state, &pod->before));
}

static void check_undo(struct pod *pod, struct crossconnects *after, const struct crossconnect_plan *plan)
{
    struct crossconnect_plan back;
    if (plan->count > 0)
        check_conflict(pod, plan);
    crossconnect_undo(plan, &pod->arena, &back);
    CHECK(crossconnect_apply(after, &back, NULL) == 0 && same_state(after, &pod->now));
}

/* Plans to part the cubes from all, and from each other. */
static void clear_cubes(struct pod *pod, const struct cube_slice *slice)
{
    bool mine[POD_CUBES_MAX];
    struct crossconnect_plan plan;
    struct crossconnects after = pod->now;
    struct error error;
    int status = crossconnect_plan_clear(&pod->now, &pod->limits, slice->cube, slice->count, &pod->arena,
                                         &plan, &error);
    CHECK(status == 0 || (status == ERROR_CONFLICT && error.code == status && error.text[0]));
    if (status < 0)
        return;
    mark_cubes(slice, mine);
    check_changes(pod, &plan, mine);
    CHECK(crossconnect_apply(&after, &plan, NULL) == 0);
    check_others(pod, &after, mine);
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        for (uint32_t place = 0; place < slice->count && !pod->limits.switch_out[number]; place++)
            CHECK(after.next[number][slice->cube[place]] == CUBE_NONE &&
                  after.prior[number][slice->cube[place]] == CUBE_NONE);
    check_undo(pod, &after, &plan);
}

static void plan_slice(struct pod *pod, const struct cube_slice *slice, const uint16_t *cubes)
{
    bool mine[POD_CUBES_MAX];
    struct crossconnect_plan plan;
    struct crossconnects after = pod->now;
    struct error error;
    uint32_t joins = slice_shape_is_whole(&slice->shape) ? POD_SWITCHES * slice->count : 0, added = 0;
    int status = crossconnect_plan(&pod->now, &pod->limits, slice, &pod->arena, &plan, &error);
    CHECK(status == 0 || ((status == ERROR_CONFLICT || status == ERROR_UNAVAILABLE) && error.code == status &&
                          error.text[0]));
    if (status < 0)
        return;
    mark_cubes(slice, mine);
    check_changes(pod, &plan, mine);
    for (uint32_t i = 0; i < plan.count; i++)
        added += plan.changes[i].add;
    CHECK(plan.kept + plan.left_out + added == joins);
    CHECK(crossconnect_apply(&after, &plan, NULL) == 0);
    check_others(pod, &after, mine);
    check_joined(pod, &after, slice);
    check_at_rest(pod, &after, slice, cubes, joins);
    check_undo(pod, &after, &plan);
}

/* "4x4x8:1,2" */
static void want_slice(struct pod *pod, struct str text)
{
    struct slice_shape shape;
    struct cube_slice slice = {.count = 7777};
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    struct error error;
    struct str shape_text, list;
    if (!str_cut(text, ':', &shape_text, &list) || slice_shape_parse(shape_text, &shape, NULL) < 0 ||
        !check_list(list, cubes, &count))
        return;
    if (crossconnect_arrange(&pod->now, &shape, cubes, count, &slice, &error) < 0) {
        CHECK(error.code == ERROR_INVALID && error.text[0] && slice.count == 7777);
        return;
    }
    bool mine[POD_CUBES_MAX];
    mark_cubes(&slice, mine);
    CHECK(slice.count == count && slice.count == slice_shape_cubes(&shape));
    for (uint32_t i = 0; i < count; i++)
        CHECK(mine[cubes[i]]);
    plan_slice(pod, &slice, cubes);
    clear_cubes(pod, &slice);
}

/* --- steps ------------------------------------------------------------------------------------------ */

/* "x5:3,9" names a switch, the cube of a plus end and that of a minus end; both are cubes of the pod. */
static bool take_ends(const struct pod *pod, struct str text, uint32_t *ret_number, uint16_t ret_cubes[2])
{
    struct str name, list;
    struct pod_switch which;
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    if (!str_cut(text, ':', &name, &list) || pod_switch_parse(name, &which, NULL) < 0 ||
        !check_list(list, cubes, &count) || count != 2 || cubes[0] >= pod->now.cubes ||
        cubes[1] >= pod->now.cubes)
        return false;
    *ret_number = pod_switch_number(which);
    memcpy(ret_cubes, cubes, 2 * sizeof *ret_cubes);
    return true;
}

/* Joins a slice as `phalanx fabric plan` does with --running and --joined. */
static void join_word(struct pod *pod, struct str text, bool runs)
{
    struct error error = {0};
    pod->before = pod->now;
    if (join_slice(&pod->now, &pod->limits, arena_strdup(&pod->arena, text), runs ? ++pod->slices : 0,
                   &pod->arena, &error) < 0)
        CHECK(error.code != ERROR_NONE && error.text[0] && same_state(&pod->before, &pod->now));
}

static void do_step(struct pod *pod, char kind, struct str text)
{
    int64_t number;
    uint32_t at;
    uint16_t cubes[2];
    struct pod_switch which;
    if (kind == 'p' && str_to_i64(text, 1, POD_CUBES_MAX, &number)) {
        crossconnects_init(&pod->now, (uint32_t)number);
        memset(&pod->limits, 0, sizeof pod->limits);
    } else if (kind == 'x' && take_ends(pod, text, &at, cubes) && pod->now.next[at][cubes[0]] == CUBE_NONE &&
               pod->now.prior[at][cubes[1]] == CUBE_NONE) {
        pod->now.next[at][cubes[0]] = cubes[1];
        pod->now.prior[at][cubes[1]] = cubes[0];
    } else if (kind == 'r' || kind == 'j') {
        join_word(pod, text, kind == 'r');
    } else if (kind == 'c' && str_to_i64(text, 0, pod->now.cubes - 1, &number)) {
        pod->limits.cube_out[number] = true;
    } else if (kind == 's' && pod_switch_parse(text, &which, NULL) == 0) {
        pod->limits.switch_out[pod_switch_number(which)] = true;
    } else if (kind == 'e' && take_ends(pod, text, &at, cubes)) {
        pod->limits.end_out[at][POLARITY_PLUS][cubes[0]] = true;
        pod->limits.end_out[at][POLARITY_MINUS][cubes[1]] = true;
    } else if (kind == 'n' && str_to_i64(text, 0, POD_SWITCHES, &number)) {
        pod->limits.switches_out_max = (uint32_t)number;
    } else if (kind == 'w') {
        want_slice(pod, text);
    }
    CHECK(crossconnects_valid(&pod->now));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pod pod;
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    struct str rest = {(const char *)data, size < 4096 ? size : 4096}, line;
    check_list(rest, cubes, &count);
    pod = (struct pod){0};
    crossconnects_init(&pod.now, SMALL_POD_CUBES);
    for (bool more = true; more;) {
        more = str_cut(rest, '\n', &line, &rest);
        line = more ? line : rest;
        if (line.len > 2)
            do_step(&pod, line.data[0], (struct str){line.data + 2, line.len - 2});
        arena_done(&pod.arena);
    }
    return 0;
}
