/* Answers of chips to a fabric session, true and untrue, in any order: no crash, orders for chips of the
 * slice alone, and a session that runs has proved tables.
 *
 * The first byte picks shape and terms. Then each byte is a deed: 0 to 127 carry out so many orders truly,
 * 128 and on make one of the calls with arguments from the bytes that follow. */
#include <stdint.h>

#include "base/arena.h"
#include "base/check.h"
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

static uint32_t label_of(const struct cube_slice *slice, uint16_t chip)
{
    return slice->cube[chip / CUBE_CHIPS] * CUBE_CHIPS + chip % CUBE_CHIPS;
}

/* The neighbours that a chip of a slice without faults sees. Cubes lie along Z alone. */
static void answer_truly(struct fabric_session *session, const struct cube_slice *slice,
                         const struct torus *torus, const struct fabric_order *order)
{
    struct fabric_neighbour seen[CHIP_PORTS];
    uint16_t chip = 0;
    while (label_of(slice, chip) != order->chip)
        chip++;
    CHECK(chip < torus->chips);
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        seen[port] = (struct fabric_neighbour){true, (uint8_t)(port ^ 1),
                                               label_of(slice, torus->next[chip * CHIP_PORTS + port]), 40};
    if (order->kind == FABRIC_ASK)
        fabric_session_neighbours(session, order->chip, seen);
    for (uint16_t each = 0; order->kind == FABRIC_START && each < torus->chips; each++)
        fabric_session_done(session, label_of(slice, each), FABRIC_START, order->number);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size < 2048 ? size : 2048};
    uint32_t first = take_bytes(&input, 1);
    struct cube_slice slice = {.shape = {{4, 4, first & 1 ? 8 : 4}, first & 1 && first & 2},
                               .count = first & 1 ? 2 : 1,
                               .cube = {1, 0}};
    struct fabric_session_terms terms = {
        .slice = &slice, .number = 1, .bytes_per_us = 50000, .packet_bytes = 4096, .route_around = first & 4};
    struct fabric_session_summary summary;
    struct fabric_session *session;
    struct fabric_order order;
    struct torus torus;
    CHECK(fabric_session_new(&terms, &session, NULL) == 0);
    torus_init(&torus, &slice.shape);
    while (input.left > 0) {
        uint32_t deed = take_bytes(&input, 1);
        for (uint32_t i = 0; deed < 128 && i <= deed && fabric_session_order(session, &order); i++)
            answer_truly(session, &slice, &torus, &order);
        if (deed >= 128)
            call_with(session, &input, deed);
        fabric_session_summary(session, &summary);
        if (fabric_session_state(session) == FABRIC_SESSION_RUN)
            CHECK(summary.proof.pairs == (uint64_t)torus.chips * (torus.chips - 1));
        CHECK((fabric_session_state(session) != FABRIC_SESSION_FAILED) || fabric_session_error(session)[0]);
    }
    fabric_session_free(session);
    torus_done(&torus);
    return 0;
}
