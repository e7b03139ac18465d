/* Answers of chips to a fabric session, true and untrue, in any order: no crash, orders for chips of the
 * slice alone, and a session that runs has proved tables, which are a solved pattern's if one fits.
 *
 *     u8 terms     bits 0 and 1, or 3 to 5 if they are not 0: shape; 2: routes around dark links; 6: solved
 *                  patterns are given; 7: one of their bytes is wrong
 *     u8 origin    of a part of a cube: bits 0-1 x, 2-3 y, 4-5 z; else absent
 *     u16 place, u8 value      of the wrong byte; absent without bits 6 and 7
 *     deeds        0 to 127 carry out so many orders truly, 128 to 191 make one of the calls with arguments
 *                  from the bytes that follow, 192 and on carry out one order, without light at a port */
#include <stdint.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/pattern.h"
#include "core/fabric/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t left;
};

static uint32_t take_bytes(struct input *input, uint32_t count)
{
    uint32_t value = 0;
    for (; count > 0 && input->left > 0; count--, input->left--)
        value = value << 8 | *input->data++;
    return value;
}

enum { TERMS_ROUTE_AROUND = 4, TERMS_PATTERNS = 64, TERMS_WRONG_BYTE = 128, PATTERNS = 2 };
enum { WHOLE_BYTES_MAX = 256 }; /* each new route of a whole cube takes long to build and to prove */
static const struct slice_shape shapes[12] = {
    {{4, 4, 4}, false}, {{4, 4, 8}, false}, {{4, 4, 4}, false}, {{4, 4, 8}, true},  {{0}},
    {{2, 2, 1}, false}, {{2, 2, 4}, false}, {{4, 2, 2}, false}, {{4, 4, 2}, false}, {{8, 4, 4}, false},
    {{4, 8, 4}, false}, {{2, 4, 1}, false},
};

/* A slice, and the answers that its chips give while they tell the truth. */
struct truth {
    struct cube_slice slice;
    struct torus torus;
    uint8_t origin[AXES];
    struct buf bytes[PATTERNS];
    struct str patterns[PATTERNS];
};

/* Solved patterns of a shape: of all links, and of all but one. */
static const struct buf *solve(uint32_t shape)
{
    static struct buf solved[sizeof shapes / sizeof *shapes][PATTERNS];
    for (uint32_t i = 0; i < PATTERNS && !solved[shape][i].len; i++) {
        struct torus torus;
        struct route route;
        torus_init(&torus, &shapes[shape]);
        if (i > 0)
            torus_kill_link(&torus, 0, PORT_Y_PLUS);
        CHECK(route_build(&torus, &route, NULL) == 0);
        pattern_pack(&torus, &route, &solved[shape][i]);
        route_done(&route);
        torus_done(&torus);
    }
    return solved[shape];
}

static void make_truth(struct input *input, uint32_t terms, struct truth *ret_truth)
{
    uint32_t shape = terms >> 3 & 7 ? 4 + (terms >> 3 & 7) : terms & 3;
    ret_truth->slice = (struct cube_slice){
        .shape = shapes[shape], .count = slice_shape_cubes(&shapes[shape]), .cube = {1, 0}};
    torus_init(&ret_truth->torus, &shapes[shape]);
    uint32_t origin = slice_shape_is_whole(&shapes[shape]) ? 0 : take_bytes(input, 1);
    for (uint32_t axis = 0; axis < AXES; axis++)
        if (shapes[shape].extent[axis] < CUBE_SIDE)
            ret_truth->origin[axis] = (origin >> 2 * axis & 3) % (CUBE_SIDE + 1 - shapes[shape].extent[axis]);
    for (uint32_t i = 0; i < PATTERNS && terms & TERMS_PATTERNS; i++)
        buf_add_str(&ret_truth->bytes[i], buf_str(&solve(shape)[i]));
    if (terms & TERMS_PATTERNS && terms & TERMS_WRONG_BYTE) {
        uint32_t place = take_bytes(input, 2) % (uint32_t)ret_truth->bytes[0].len;
        ret_truth->bytes[0].data[place] = (char)take_bytes(input, 1);
    }
    for (uint32_t i = 0; i < PATTERNS; i++)
        ret_truth->patterns[i] = buf_str(&ret_truth->bytes[i]);
}

static void truth_done(struct truth *truth)
{
    for (uint32_t i = 0; i < PATTERNS; i++)
        buf_done(&truth->bytes[i]);
    torus_done(&truth->torus);
}

static uint32_t label_of(const struct truth *truth, uint16_t chip)
{
    uint32_t at[AXES], inside;
    for (uint32_t axis = 0; axis < AXES; axis++)
        at[axis] = truth->origin[axis] + truth->torus.at[axis][chip];
    uint32_t place = slice_chip_place(&truth->slice.shape, at, &inside);
    return truth->slice.cube[place] * CUBE_CHIPS + inside;
}

/* The neighbours that a chip of a slice sees whose only fault is a `dark` port (CHIP_PORTS: it has none); a
 * port that leads out of a part of a cube sees another slice's chip. */
static void answer_truly(struct fabric_session *session, const struct truth *truth,
                         const struct fabric_order *order, uint32_t dark)
{
    const struct torus *torus = &truth->torus;
    struct fabric_neighbour seen[CHIP_PORTS];
    CHECK(order->chip_number < torus->chips && label_of(truth, order->chip_number) == order->chip);
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint16_t to = torus->next[order->chip_number * CHIP_PORTS + port];
        seen[port] = (struct fabric_neighbour){port != dark, (uint8_t)(port ^ 1),
                                               to == TORUS_NONE ? 77 : label_of(truth, to), 40};
    }
    if (order->kind == FABRIC_ASK)
        fabric_session_neighbours(session, order->chip, seen);
    for (uint16_t each = 0; order->kind == FABRIC_START && each < torus->chips; each++)
        fabric_session_done(session, label_of(truth, each), FABRIC_START, order->number);
    if (order->kind == FABRIC_LOAD || order->kind == FABRIC_STOP)
        fabric_session_done(session, order->chip, order->kind, order->number);
}

static void call_with(struct fabric_session *session, struct input *input, uint32_t deed)
{
    struct fabric_neighbour seen[CHIP_PORTS] = {0};
    uint32_t chip = take_bytes(input, 2);
    switch (deed % 4) {
    case 0:
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            seen[port].light = take_bytes(input, 1) & 1;
            seen[port].port = (uint8_t)take_bytes(input, 1);
            seen[port].chip = take_bytes(input, 2);
            seen[port].rtt_ns = take_bytes(input, 3);
        }
        fabric_session_neighbours(session, chip, seen);
        return;
    case 1:
        fabric_session_done(session, chip, take_bytes(input, 1) % 4, take_bytes(input, 1));
        return;
    case 2:
        fabric_session_link_down(session, chip, take_bytes(input, 1));
        return;
    default:
        fabric_session_stop(session);
    }
}

static void check_state(const struct fabric_session *session, const struct truth *truth, uint32_t terms)
{
    struct fabric_session_summary summary;
    uint32_t chips = truth->torus.chips;
    fabric_session_summary(session, &summary);
    CHECK(!summary.from_pattern || terms & TERMS_PATTERNS);
    CHECK((fabric_session_state(session) != FABRIC_SESSION_FAILED) || fabric_session_error(session)[0]);
    if (fabric_session_state(session) != FABRIC_SESSION_RUN)
        return;
    CHECK(summary.proof.pairs == (uint64_t)chips * (chips - 1));
    CHECK(!summary.dark || terms & TERMS_ROUTE_AROUND);
    if ((terms & TERMS_PATTERNS) && !(terms & TERMS_WRONG_BYTE) && !summary.dark && !summary.reroutes)
        CHECK(summary.from_pattern && summary.refused.code == ERROR_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size < 2048 ? size : 2048};
    uint32_t chosen = take_bytes(&input, 1);
    struct truth truth = {0};
    make_truth(&input, chosen, &truth);
    if (slice_shape_is_whole(&truth.slice.shape) && input.left > WHOLE_BYTES_MAX)
        input.left = WHOLE_BYTES_MAX;
    struct fabric_session_terms terms = {.slice = &truth.slice,
                                         .number = 1,
                                         .bytes_per_us = 50000,
                                         .packet_bytes = 4096,
                                         .route_around = chosen & TERMS_ROUTE_AROUND,
                                         .patterns = truth.patterns,
                                         .pattern_count = chosen & TERMS_PATTERNS ? PATTERNS : 0};
    memcpy(terms.origin, truth.origin, sizeof terms.origin);
    struct fabric_session *session;
    struct fabric_order order;
    CHECK(fabric_session_new(&terms, &session, NULL) == 0);
    while (input.left > 0) {
        uint32_t deed = take_bytes(&input, 1);
        for (uint32_t i = 0; deed < 128 && i <= deed && fabric_session_order(session, &order); i++)
            answer_truly(session, &truth, &order, CHIP_PORTS);
        if (deed >= 192 && fabric_session_order(session, &order))
            answer_truly(session, &truth, &order, deed % CHIP_PORTS);
        else if (deed >= 128 && deed < 192)
            call_with(session, &input, deed);
        check_state(session, &truth, chosen);
    }
    fabric_session_free(session);
    truth_done(&truth);
    return 0;
}
