/* phalanx fabric plan, diff, apply, clear: plans the cross-connects of a slice, and carries them out on real
 * switches. */
#include "base/arena.h"
#include "cmd/client.h"
#include "cmd/fabric_asked.h"
#include "cmd/fabric_drawings.h"
#include "cmd/fabric_live.h"
#include "cmd/fabric_report.h"
#include "cmd/fabric_switches.h"
#include "cmd/picture.h"

int fabric_cubes_parse(struct str text, uint16_t *cubes, uint32_t *ret_count, struct error *error)
{
    uint32_t count = 0;
    bool more = true;
    for (struct str rest = text, part; more; count++) {
        int64_t cube;
        more = str_cut(rest, ',', &part, &rest);
        if (!more)
            part = rest;
        if (count == SLICE_CUBES_MAX || !str_to_i64(part, 0, POD_CUBES_MAX - 1, &cube))
            return error_set(error, ERROR_INVALID,
                             "cubes \"" STR_FORMAT "\": \"" STR_FORMAT
                             "\": expected at most %d numbers from 0 to %d",
                             STR_ARG(str_head_utf8(text, 64)), STR_ARG(str_head_utf8(part, 32)),
                             SLICE_CUBES_MAX, POD_CUBES_MAX - 1);
        cubes[count] = (uint16_t)cube;
    }
    *ret_count = count;
    return 0;
}

/* Joins the cubes of "SHAPE:LIST", which then belong to slice `owner`, or are free if it is 0. */
static int join_slice(struct crossconnects *now, struct crossconnect_limits *limits, const char *word,
                      uint32_t owner, struct arena *arena, struct error *error)
{
    struct str shape_text, list;
    struct slice_shape shape;
    struct cube_slice slice;
    struct crossconnect_plan plan;
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    if (!str_cut(str_from(word), ':', &shape_text, &list))
        return error_set(error, ERROR_INVALID, "\"%.64s\": expected SHAPE:CUBES, such as 4x4x8:3,9", word);
    if (slice_shape_parse(shape_text, &shape, error) < 0 ||
        fabric_cubes_parse(list, cubes, &count, error) < 0 ||
        crossconnect_arrange(now, &shape, cubes, count, &slice, error) < 0 ||
        crossconnect_plan(now, limits, &slice, arena, &plan, error) < 0 ||
        crossconnect_apply(now, &plan, error) < 0)
        return error_wrap(error, "%.64s", word);
    for (uint32_t i = 0; i < count; i++)
        limits->slice_of[cubes[i]] = owner;
    return 0;
}

static int take_limits(const struct fabric_asked *asked, struct crossconnects *now,
                       struct crossconnect_limits *limits, struct arena *arena, struct error *error)
{
    for (int i = 0; i < asked->joined.count; i++)
        if (join_slice(now, limits, asked->joined.items[i], 0, arena, error) < 0)
            return ERROR_INVALID;
    for (int i = 0; i < asked->running.count; i++)
        if (join_slice(now, limits, asked->running.items[i], (uint32_t)i + 1, arena, error) < 0)
            return ERROR_INVALID;
    for (int i = 0; i < asked->cubes_out.count; i++) {
        int64_t cube;
        if (!str_to_i64(str_from(asked->cubes_out.items[i]), 0, asked->pod - 1, &cube))
            return error_set(error, ERROR_INVALID, "--cube-out %.64s: the pod has cubes 0 to %lld",
                             asked->cubes_out.items[i], (long long)asked->pod - 1);
        limits->cube_out[cube] = true;
    }
    for (int i = 0; i < asked->switches.count; i++) {
        struct pod_switch which;
        if (pod_switch_parse(str_from(asked->switches.items[i]), &which, error) < 0)
            return ERROR_INVALID;
        limits->switch_out[pod_switch_number(which)] = true;
    }
    limits->switches_out_max = (uint32_t)asked->switches.count;
    return 0;
}

static int draw_plan(const struct fabric_asked *asked, const struct crossconnects *now,
                     const struct crossconnect_plan *plan)
{
    static struct crossconnects after;
    struct buf picture BUF_CLEANUP = {0};
    struct error error = {0};
    after = *now;
    if (crossconnect_apply(&after, plan, &error) < 0)
        return fabric_refuse(&error);
    fabric_draw_mirrors(&picture, now, &after);
    return picture_write(asked->svg, "--svg", &picture);
}

int fabric_run_plan(const struct fabric_asked *asked)
{
    static struct crossconnects now;
    static struct crossconnect_limits limits;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf out BUF_CLEANUP = {0};
    struct error error = {0};
    struct cube_slice slice;
    struct crossconnect_plan plan;
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    crossconnects_init(&now, (uint32_t)asked->pod);
    if (take_limits(asked, &now, &limits, &arena, &error) < 0 ||
        fabric_cubes_parse(str_from(asked->cubes), cubes, &count, &error) < 0 ||
        crossconnect_arrange(&now, &asked->shape, cubes, count, &slice, &error) < 0 ||
        crossconnect_plan(&now, &limits, &slice, &arena, &plan, &error) < 0)
        return fabric_refuse(&error);
    fabric_report_plan(&out, now.cubes, &slice, &plan, asked->json);
    output_write(&out);
    return asked->svg ? draw_plan(asked, &now, &plan) : EXIT_OK;
}

/* --- diff, apply, clear --------------------------------------------------------------------------- */

int fabric_run_live(const struct fabric_asked *asked)
{
    static struct crossconnects joined;
    static struct crossconnect_limits limits;
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count;
    uint32_t pod = (uint32_t)asked->pod;
    if (asked->cluster && !fabric_switches_pod(asked->cluster, asked->in, &pod))
        return EXIT_FAILED;
    struct fabric_asked of_pod = *asked;
    of_pod.pod = pod;
    crossconnects_init(&joined, pod);
    if (take_limits(&of_pod, &joined, &limits, &arena, &error) < 0 ||
        fabric_cubes_parse(str_from(asked->cubes), cubes, &count, &error) < 0)
        return fabric_refuse(&error);
    struct live_order order = {.action = asked->action == FABRIC_DIFF    ? LIVE_DIFF
                                         : asked->action == FABRIC_APPLY ? LIVE_APPLY
                                                                         : LIVE_CLEAR,
                               .list = asked->switch_list,
                               .cluster = asked->cluster,
                               .in = asked->in,
                               .shape = asked->shape,
                               .cubes = cubes,
                               .cube_count = count,
                               .pod = pod,
                               .limits = &limits,
                               .timeout_ms = asked->timeout_ns ? (uint32_t)(asked->timeout_ns / 1000000)
                                                               : CREW_TERMS_DEFAULT.timeout_ms,
                               .attempts = (uint32_t)asked->attempts,
                               .keep = asked->keep_partial,
                               .json = asked->json};
    return fabric_live(&order);
}
