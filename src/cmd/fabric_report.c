#include "cmd/fabric_report.h"

#include "base/arena.h"
#include "doc/json.h"

static const char axis_name[] = "xyz";

static double bound_of(const struct torus *torus)
{
    struct load_bound bound = torus_load_bound(torus);
    return (double)bound.units / (double)bound.links;
}

static uint32_t diameter_of(const struct torus *torus)
{
    uint16_t *steps = mem_alloc(2 * torus->chips * sizeof *steps);
    uint32_t most = 0;
    /* The chips of a torus are alike; in a mesh the corner has the longest path. */
    torus_distances(torus, 0, steps + torus->chips, steps);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        most = steps[chip] > most ? steps[chip] : most;
    mem_free(steps);
    return most;
}

void fabric_report_shape(struct buf *out, const struct torus *torus, bool json)
{
    char text[SHAPE_TEXT_MAX];
    const struct slice_shape *shape = &torus->shape;
    bool whole = slice_shape_is_whole(shape);
    const char *network = !whole ? "mesh" : shape->twisted ? "twisted torus" : "torus";
    uint32_t cubes = slice_shape_cubes(shape);
    slice_shape_format(shape, text);
    if (!json) {
        buf_printf(out, "%s: %u chips on %u machines, %s; a %s\n", text, torus->chips, torus->chips / 4,
                   whole ? (cubes == 1 ? "1 cube" : "whole cubes") : "part of a cube", network);
        if (cubes > 1)
            buf_printf(out, "cubes             %u\n", cubes);
        buf_printf(out, "cross-connects    %u\n", whole ? POD_SWITCHES * cubes : 0);
        buf_printf(out, "longest way       %u hops\n", diameter_of(torus));
        buf_printf(out, "all-to-all bound  %.2f units on the busiest link, at least\n", bound_of(torus));
        return;
    }
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_text(&writer, "shape", text);
    json_pair_text(&writer, "network", network);
    json_pair_int(&writer, "chips", torus->chips);
    json_pair_int(&writer, "machines", torus->chips / 4);
    json_pair_int(&writer, "cubes", cubes);
    json_pair_int(&writer, "crossConnects", whole ? POD_SWITCHES * cubes : 0);
    json_pair_int(&writer, "diameter", diameter_of(torus));
    json_pair_float(&writer, "bound", bound_of(torus));
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

/* --- plans --------------------------------------------------------------------------------------- */

static bool same_changes(const struct crossconnect_plan *plan, uint32_t a, uint32_t b)
{
    uint32_t count = plan->first[a + 1] - plan->first[a];
    if (count != plan->first[b + 1] - plan->first[b])
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct crossconnect_change *of_a = &plan->changes[plan->first[a] + i];
        const struct crossconnect_change *of_b = &plan->changes[plan->first[b] + i];
        if (of_a->add != of_b->add || of_a->plus != of_b->plus || of_a->minus != of_b->minus)
            return false;
    }
    return true;
}

static void put_plan_text(struct buf *out, const struct cube_slice *slice,
                          const struct crossconnect_plan *plan)
{
    char text[SHAPE_TEXT_MAX];
    slice_shape_format(&slice->shape, text);
    buf_printf(out, "%s: %u changes, %u cross-connects kept", text, plan->count, plan->kept);
    if (plan->left_out)
        buf_printf(out, ", %u left out on switches that are out", plan->left_out);
    buf_printf(out, "\ncubes by place:");
    for (uint32_t place = 0; place < slice->count; place++)
        buf_printf(out, " %u", slice->cube[place]);
    buf_add_char(out, '\n');
    for (uint32_t first = 0, next; first < POD_SWITCHES; first = next) {
        for (next = first + 1;
             next < POD_SWITCHES && next % FACE_LINKS != 0 && same_changes(plan, first, next);)
            next++;
        if (plan->first[first] == plan->first[first + 1])
            continue;
        buf_printf(out, "%s", pod_switch_name(pod_switch_at(first)));
        if (next > first + 1)
            buf_printf(out, " to %s", pod_switch_name(pod_switch_at(next - 1)));
        for (uint32_t i = plan->first[first]; i < plan->first[first + 1]; i++) {
            bool begins = i == plan->first[first] || plan->changes[i].add != plan->changes[i - 1].add;
            buf_printf(out, "%s%u-%u",
                       !begins                ? ", "
                       : plan->changes[i].add ? "  add "
                                              : "  remove ",
                       plan->changes[i].plus, plan->changes[i].minus);
        }
        buf_add_char(out, '\n');
    }
}

static void put_pairs(struct json_writer *writer, uint32_t pod_cubes, const struct crossconnect_plan *plan,
                      uint32_t number, bool add)
{
    struct pod_switch which = pod_switch_at(number);
    json_key(writer, add ? "add" : "remove");
    json_begin_array(writer);
    for (uint32_t i = plan->first[number]; i < plan->first[number + 1]; i++) {
        const struct crossconnect_change *change = &plan->changes[i];
        if (change->add != add)
            continue;
        struct link_end plus = {change->plus, which.axis, which.index, POLARITY_PLUS};
        struct link_end minus = {change->minus, which.axis, which.index, POLARITY_MINUS};
        json_begin_array(writer);
        json_put_int(writer, link_end_port(pod_cubes, plus));
        json_put_int(writer, link_end_port(pod_cubes, minus));
        json_end_array(writer);
    }
    json_end_array(writer);
}

static void put_plan_json(struct buf *out, uint32_t pod_cubes, const struct cube_slice *slice,
                          const struct crossconnect_plan *plan)
{
    char text[SHAPE_TEXT_MAX];
    struct json_writer writer = {.out = out};
    slice_shape_format(&slice->shape, text);
    json_begin_object(&writer);
    json_pair_text(&writer, "shape", text);
    json_key(&writer, "cubes");
    json_begin_array(&writer);
    for (uint32_t place = 0; place < slice->count; place++)
        json_put_int(&writer, slice->cube[place]);
    json_end_array(&writer);
    json_pair_int(&writer, "changes", plan->count);
    json_pair_int(&writer, "kept", plan->kept);
    json_pair_int(&writer, "leftOut", plan->left_out);
    json_key(&writer, "switches");
    json_begin_array(&writer);
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        if (plan->first[number] == plan->first[number + 1])
            continue;
        json_begin_object(&writer);
        json_pair_text(&writer, "name", pod_switch_name(pod_switch_at(number)));
        put_pairs(&writer, pod_cubes, plan, number, false);
        put_pairs(&writer, pod_cubes, plan, number, true);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

void fabric_report_plan(struct buf *out, uint32_t pod_cubes, const struct cube_slice *slice,
                        const struct crossconnect_plan *plan, bool json)
{
    if (json)
        put_plan_json(out, pod_cubes, slice, plan);
    else
        put_plan_text(out, slice, plan);
}

/* --- routes -------------------------------------------------------------------------------------- */

void fabric_report_route(struct buf *out, const struct torus *torus, const struct route *route,
                         const struct proof *proof, const uint32_t *load, const char *source, bool json)
{
    char text[SHAPE_TEXT_MAX], order[AXES + 1] = {0};
    double bound = bound_of(torus), average = (double)proof->hops_sum / (double)proof->pairs;
    uint32_t dead = torus->dead[0] + torus->dead[1] + torus->dead[2], most[AXES] = {0};
    slice_shape_format(&torus->shape, text);
    for (int i = 0; i < AXES; i++)
        order[i] = axis_name[route->order[i]];
    for (uint32_t link = 0; link < torus->chips * CHIP_PORTS; link++)
        if (load[link] > most[link % CHIP_PORTS / 2])
            most[link % CHIP_PORTS / 2] = load[link];
    if (!json) {
        buf_printf(out, "%s: %u chips, %u dead links, axes in the order %s\n", text, torus->chips, dead,
                   order);
        buf_printf(out, "proved       %llu pairs arrive, no dead link, no loop, no circle of channels\n",
                   (unsigned long long)proof->pairs);
        buf_printf(out, "tables       %u for each chip, %u virtual channels; %s\n", proof->tables, proof->vcs,
                   source);
        buf_printf(out, "ways         %.3f hops on average, %u at most; %llu begin with a detour\n", average,
                   proof->hops_max, (unsigned long long)proof->detours);
        buf_printf(out, "all-to-all   busiest link %u units, bound %.2f: %.4f x (x %u, y %u, z %u)\n",
                   proof->load_max, bound, proof->load_max / bound, most[0], most[1], most[2]);
        return;
    }
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_text(&writer, "shape", text);
    json_pair_int(&writer, "chips", torus->chips);
    json_pair_int(&writer, "deadLinks", dead);
    json_pair_text(&writer, "order", order);
    json_pair_bool(&writer, "proved", true);
    json_pair_int(&writer, "pairs", (int64_t)proof->pairs);
    json_pair_text(&writer, "source", source);
    json_pair_int(&writer, "tables", proof->tables);
    json_pair_int(&writer, "virtualChannels", proof->vcs);
    json_pair_int(&writer, "hopsMax", proof->hops_max);
    json_pair_float(&writer, "hopsAverage", average);
    json_pair_int(&writer, "detours", (int64_t)proof->detours);
    json_pair_int(&writer, "loadMax", proof->load_max);
    json_pair_float(&writer, "bound", bound);
    json_key(&writer, "loadMaxByAxis");
    json_begin_array(&writer);
    for (int axis = 0; axis < AXES; axis++)
        json_put_int(&writer, most[axis]);
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}
