/* phalanx fabric check, session, availability: shows what a shape consists of, brings it up on emulated
 * chips, and computes how often a pod has the cubes for it. */
#include <string.h>

#include "cmd/client.h"
#include "cmd/fabric_asked.h"
#include "cmd/fabric_drawings.h"
#include "cmd/fabric_report.h"
#include "cmd/fabric_session.h"
#include "cmd/picture.h"

/* Reads "SWITCH:A,B". */
static int cross_wires(const char *word, struct session_order *order, struct error *error)
{
    struct str name, list, first, second;
    int64_t a, b;
    if (!str_cut(str_from(word), ':', &name, &list) || !str_cut(list, ',', &first, &second) ||
        !str_to_i64(first, 0, POD_CUBES_MAX - 1, &a) || !str_to_i64(second, 0, POD_CUBES_MAX - 1, &b))
        return error_set(error, ERROR_INVALID, "--cross %.64s: expected SWITCH:A,B, such as z6:0,1", word);
    for (int i = 0; i < 2; i++) {
        int64_t cube = i ? b : a;
        bool there = false;
        for (uint32_t place = 0; place < order->slice.count; place++)
            there |= order->slice.cube[place] == cube;
        if (!there || a == b)
            return error_set(error, ERROR_INVALID, "--cross %.64s: expected two cubes of the slice", word);
    }
    order->crossed = true;
    order->crossed_cubes[0] = (uint16_t)a;
    order->crossed_cubes[1] = (uint16_t)b;
    return pod_switch_parse(name, &order->crossed_at, error);
}

int fabric_run_session(const struct fabric_asked *asked)
{
    struct session_order order = {.slice.shape = asked->shape, .json = asked->json};
    struct error error = {0};
    struct pod_switch out;
    order.slice.count = slice_shape_cubes(&asked->shape);
    for (uint16_t i = 0; i < order.slice.count; i++)
        order.slice.cube[i] = i;
    if (asked->cubes &&
        fabric_cubes_parse(str_from(asked->cubes), order.slice.cube, &order.slice.count, &error) < 0)
        return fabric_refuse(&error);
    if (asked->crossed && cross_wires(asked->crossed, &order, &error) < 0)
        return fabric_refuse(&error);
    for (int i = 0; i < asked->switches.count; i++) {
        if (pod_switch_parse(str_from(asked->switches.items[i]), &out, &error) < 0)
            return fabric_refuse(&error);
        order.switch_out[pod_switch_number(out)] = true;
    }
    return fabric_session_emulate(&order);
}

int fabric_run_availability(const struct fabric_asked *asked)
{
    struct availability_order order = {.host_count = (uint32_t)asked->host_count,
                                       .cubes = (uint32_t)asked->pod,
                                       .whole = (uint32_t)asked->whole,
                                       .confidence = asked->confidence,
                                       .switch_up = asked->switch_up,
                                       .trials = (uint32_t)asked->trials,
                                       .seed = (uint64_t)asked->seed,
                                       .plot = asked->plot,
                                       .json = asked->json};
    memcpy(order.hosts, asked->hosts, sizeof order.hosts);
    return fabric_availability(&order);
}

/* Fills in the cubes at their places: the given ones, or 0, 1, 2 and so on. */
static int check_cubes(const struct fabric_asked *asked, struct cube_slice *ret_slice, struct error *error)
{
    static struct crossconnects none;
    struct cube_slice slice = {.shape = asked->shape, .count = slice_shape_cubes(&asked->shape)}, unused;
    for (uint16_t i = 0; i < slice.count; i++)
        slice.cube[i] = i;
    crossconnects_init(&none, POD_CUBES_MAX);
    if (asked->cubes &&
        (fabric_cubes_parse(str_from(asked->cubes), slice.cube, &slice.count, error) < 0 ||
         crossconnect_arrange(&none, &asked->shape, slice.cube, slice.count, &unused, error) < 0))
        return ERROR_INVALID;
    if (asked->svg && !slice_shape_is_whole(&asked->shape))
        return error_set(error, ERROR_INVALID, "--svg: expected a slice of whole cubes, such as 4x4x8");
    *ret_slice = slice;
    return 0;
}

int fabric_run_check(const struct fabric_asked *asked)
{
    struct buf out BUF_CLEANUP = {0}, picture BUF_CLEANUP = {0};
    struct error error = {0};
    struct cube_slice slice;
    struct torus torus;
    if (check_cubes(asked, &slice, &error) < 0)
        return fabric_refuse(&error);
    torus_init(&torus, &asked->shape);
    fabric_report_shape(&out, &torus, asked->json);
    output_write(&out);
    torus_done(&torus);
    if (!asked->svg)
        return EXIT_OK;
    fabric_draw_slice(&picture, &slice, !asked->cubes);
    return picture_write(asked->svg, "--svg", &picture);
}
