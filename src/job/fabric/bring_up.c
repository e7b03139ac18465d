/* bring_up.c - brings a session up, from what the ranks see to the start of all chips.
 *
 * Every rank runs a session (core/fabric/session.h) with the same input, so all ranks build the same tables
 * and reach the same result without a leader. */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "job/fabric/internal.h"

enum { WRONG_WIRE_MS = 30000 }; /* time for the controller to name tables that avoid it */

/* The cubes of the slice, from the labels of the ranks' chips. */
struct roll {
    struct cube_slice slice;
    uint8_t origin[AXES]; /* place of a slice that is part of a cube */
};

/* --- which rank has which chip -------------------------------------------------------------------------- */

/* Finds the coordinates of a rank's chip: ranks count machines of 2x2x1 along X, Y, Z (docs/fabric.md). */
static void chip_at(const struct phx_fabric *fabric, uint32_t rank, uint32_t index, uint32_t ret_at[AXES])
{
    uint32_t machines_x = fabric->shape.extent[0] / 2u, machines_y = fabric->shape.extent[1] / 2u;
    ret_at[0] = rank % machines_x * 2 + index % 2;
    ret_at[1] = rank / machines_x % machines_y * 2 + index / 2;
    ret_at[2] = rank / (machines_x * machines_y);
}

/* Returns the rank that has a chip, and its index in the machine: the inverse of chip_at(). */
static uint32_t owner_of(const struct phx_fabric *fabric, uint16_t chip, uint32_t *ret_index)
{
    const struct torus *torus = &fabric->torus;
    uint32_t x = torus->at[0][chip], y = torus->at[1][chip], z = torus->at[2][chip];
    uint32_t machines_x = fabric->shape.extent[0] / 2u, machines_y = fabric->shape.extent[1] / 2u;
    *ret_index = x % 2 + 2 * (y % 2);
    return x / 2 + machines_x * (y / 2 + machines_y * z);
}

/* Finds the origin: a slice that is part of a cube begins at the first rank's first chip. */
static void find_origin(const struct phx_fabric *fabric, struct roll *roll)
{
    uint32_t first = fabric->words[0].chips[0].label % CUBE_CHIPS;
    const uint32_t at[AXES] = {first % 4, first / 4 % 4, first / 16};
    for (int axis = 0; axis < AXES; axis++)
        roll->origin[axis] = slice_shape_is_whole(&fabric->shape) ? 0 : (uint8_t)at[axis];
}

static int call_chip(const struct phx_fabric *fabric, struct roll *roll, uint32_t rank, uint32_t index,
                     struct phx_error *error)
{
    uint32_t label = fabric->words[rank].chips[index].label, cube = label / CUBE_CHIPS;
    uint32_t at[AXES], in_cube[AXES], inside;
    chip_at(fabric, rank, index, at);
    for (int axis = 0; axis < AXES; axis++)
        in_cube[axis] = roll->origin[axis] + at[axis];
    uint32_t place = slice_chip_place(&fabric->shape, in_cube, &inside);
    if (label % CUBE_CHIPS != inside || cube >= POD_CUBES_MAX || place >= roll->slice.count ||
        (roll->slice.cube[place] != CUBE_NONE && roll->slice.cube[place] != cube))
        return fabric_fail(error, PHX_ERROR_INVALID,
                           "rank %u has chip %u of cube %u, which is not the one at (%u,%u,%u) of the slice",
                           rank, label % CUBE_CHIPS, cube, at[0], at[1], at[2]);
    roll->slice.cube[place] = (uint16_t)cube;
    return 0;
}

static int call_roll(const struct phx_fabric *fabric, struct roll *roll, struct phx_error *error)
{
    int status = 0;
    roll->slice = (struct cube_slice){.shape = fabric->shape, .count = slice_shape_cubes(&fabric->shape)};
    for (uint32_t place = 0; place < roll->slice.count; place++)
        roll->slice.cube[place] = CUBE_NONE;
    find_origin(fabric, roll);
    for (uint32_t rank = 0; rank < fabric->world && status == 0; rank++)
        for (uint32_t index = 0; index < PHX_SLICE_CHIPS && status == 0; index++)
            status = call_chip(fabric, roll, rank, index, error);
    return status;
}

uint64_t fabric_switch_bit(const struct phx_chip_about *chip, uint32_t port)
{
    struct link_end end;
    bool optical =
        cube_chip_optical((uint16_t)(chip->label / CUBE_CHIPS), chip->label % CUBE_CHIPS, port, &end);
    return optical ? UINT64_C(1) << (FACE_LINKS * end.axis + end.index) : 0;
}

/* Returns the switches over which a rank's chips see other chips than the slice requires. Switches that the
 * tables avoid are included: a wrong wire counts until it is seen to be right. */
static uint64_t find_wrong(const struct phx_fabric *fabric, uint32_t rank)
{
    const struct torus *torus = &fabric->torus;
    uint64_t wrong = 0;
    for (uint32_t index = 0; index < PHX_SLICE_CHIPS; index++) {
        const struct phx_chip_about *chip = &fabric->words[rank].chips[index];
        uint32_t at[AXES];
        chip_at(fabric, rank, index, at);
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            const struct phx_chip_port *seen = &chip->ports[port];
            uint16_t next = torus->next[torus_chip(torus, at[0], at[1], at[2]) * CHIP_PORTS + port];
            if (!seen->light || next == TORUS_NONE)
                continue;
            uint32_t far, owner = owner_of(fabric, next, &far);
            if (seen->chip != fabric->words[owner].chips[far].label || seen->port != (port ^ 1))
                wrong |= fabric_switch_bit(chip, port);
        }
    }
    return wrong;
}

/* --- the orders of a session ---------------------------------------------------------------------------- */

/* Fills in the neighbours that a chip sees, without those over switches that must be avoided. */
static void fill_neighbours(const struct phx_fabric *fabric, const struct phx_chip_about *chip,
                            struct fabric_neighbour ret_seen[CHIP_PORTS])
{
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        const struct phx_chip_port *at = &chip->ports[port];
        ret_seen[port] = (struct fabric_neighbour){0};
        if (at->light && !(fabric->without & fabric_switch_bit(chip, port)))
            ret_seen[port] = (struct fabric_neighbour){
                .light = true, .port = at->port, .chip = at->chip, .rtt_ns = at->rtt_ns};
    }
}

/* Loads a chip of this machine. */
static int load_chip(struct phx_fabric *fabric, const struct fabric_order *order, uint32_t index,
                     struct phx_error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    uint32_t chips = order->route->chips;
    uint8_t *tables = ARENA_ARRAY(&arena, uint8_t, 2 * (size_t)chips);
    struct phx_chip_load load = {.session = order->number,
                                 .number = order->chip_number,
                                 .chips = (uint16_t)chips,
                                 .transit = tables,
                                 .inject = tables + chips,
                                 .parent = order->parent,
                                 .children = order->children,
                                 .wait_ns = order->wait_ns};
    route_chip_table(order->route, order->chip_number, false, tables);
    route_chip_table(order->route, order->chip_number, true, tables + chips);
    memcpy(load.buffer_bytes, order->buffer_bytes, sizeof load.buffer_bytes);
    return fabric->driver->load(fabric->chips, index, &load, error);
}

/* Copies the torus without the links that have no light, as a session sees it. */
static void make_torus(const struct phx_fabric *fabric, struct torus *ret_torus)
{
    struct fabric_neighbour seen[CHIP_PORTS];
    torus_copy(ret_torus, &fabric->torus);
    for (uint32_t chip = 0; chip < ret_torus->chips; chip++) {
        uint32_t index, rank = owner_of(fabric, (uint16_t)chip, &index);
        fill_neighbours(fabric, &fabric->words[rank].chips[index], seen);
        for (uint32_t port = 0; port < CHIP_PORTS; port++)
            if (!seen[port].light)
                torus_kill_link(ret_torus, (uint16_t)chip, port);
    }
}

/* Checks, before the first chip is loaded, that all ranks have the same tables. Returns as
 * fabric_tables_agree(). */
static int judge_tables(struct phx_fabric *fabric, const struct fabric_session *session,
                        const struct route *route, struct phx_error *error)
{
    fabric_session_summary(session, &fabric->summary);
    struct error refused = fabric->summary.refused;
    if (refused.code != ERROR_NONE) {
        error_wrap(&refused, "%s", fabric->cache.folder);
        fabric_cache_note(fabric, &refused);
    }
    return fabric_tables_agree(fabric, fabric_tables_digest(route), error);
}

/* Carries out the orders of the session up to its start. Returns FABRIC_AGAIN if the ranks' tables differ.
 * *ret_route belongs to the session. */
static int prepare(struct phx_fabric *fabric, struct fabric_session *session, const struct route **ret_route,
                   struct phx_error *error)
{
    int status = 0;
    *ret_route = NULL;
    for (struct fabric_order order; status == 0 && fabric_session_order(session, &order);) {
        struct fabric_neighbour seen[CHIP_PORTS];
        uint32_t index, rank = owner_of(fabric, order.chip_number, &index);
        if (order.kind == FABRIC_ASK) {
            fill_neighbours(fabric, &fabric->words[rank].chips[index], seen);
            fabric_session_neighbours(session, order.chip, seen);
        } else if (order.kind == FABRIC_LOAD) {
            if (*ret_route == NULL)
                status = judge_tables(fabric, session, order.route, error);
            *ret_route = order.route;
            if (status == 0 && rank == fabric->rank)
                status = load_chip(fabric, &order, index, error);
            fabric_session_done(session, order.chip, FABRIC_LOAD, order.number);
        }
    }
    if (status == 0 && fabric_session_state(session) != FABRIC_SESSION_START)
        status =
            fabric_fail(error, PHX_ERROR_INVALID, "the slice's network: %s", fabric_session_error(session));
    return status;
}

/* --- a generation -------------------------------------------------------------------------------------- */

/* Takes the chips out of their session, so none of its packets arrives any longer, and forgets its
 * arrivals. */
static int leave_session(struct phx_fabric *fabric, struct phx_error *error)
{
    struct phx_chip_event event;
    int status = 0, found = 0;
    for (uint32_t index = 0; index < PHX_SLICE_CHIPS && status == 0; index++)
        status = fabric->driver->unload(fabric->chips, index, error);
    while (status == 0 && (found = fabric->driver->next(fabric->chips, &event, error)) != 0)
        status = found < 0 ? found : 0;
    fabric_forget_arrivals(fabric);
    fabric->started = 0;
    return status;
}

/* Derives from all ranks' words the values that all ranks use. */
static void agree(struct phx_fabric *fabric)
{
    uint64_t tables = 0, least = UINT64_MAX;
    uint32_t session = 0;
    fabric->memory_bytes = UINT32_MAX;
    for (uint32_t rank = 0; rank < fabric->world; rank++) {
        const struct fabric_word *word = &fabric->words[rank];
        if (word->tables >= tables) {
            tables = word->tables;
            fabric->without = word->without;
        }
        least = word->done < least ? word->done : least;
        for (uint32_t index = 0; index < PHX_SLICE_CHIPS; index++) {
            const struct phx_chip_about *chip = &word->chips[index];
            session = chip->session > session ? chip->session : session;
            if (chip->memory_bytes < fabric->memory_bytes)
                fabric->memory_bytes = chip->memory_bytes;
        }
    }
    fabric_cache_agree(fabric);
    fabric->slice.tables = tables;
    fabric->behind = fabric->done > least;
    fabric->session = session == UINT32_MAX ? 1 : session + 1;
}

static void note_live(struct phx_fabric *fabric)
{
    struct fabric_neighbour seen[CHIP_PORTS];
    for (uint32_t index = 0; index < PHX_SLICE_CHIPS; index++) {
        fill_neighbours(fabric, &fabric->words[fabric->rank].chips[index], seen);
        fabric->live[index] = 0;
        for (uint32_t port = 0; port < CHIP_PORTS; port++)
            fabric->live[index] |= (uint8_t)(seen[port].light << port);
    }
}

/* Finds the switches with wrong wires, and reports those that this rank sees to the controller. */
static void look_at_wires(struct phx_fabric *fabric)
{
    uint64_t own = 0;
    fabric->wrong = 0;
    for (uint32_t rank = 0; rank < fabric->world; rank++) {
        uint64_t wrong = find_wrong(fabric, rank);
        fabric->wrong |= wrong;
        if (rank == fabric->rank)
            own = wrong;
    }
    phx_slice_wrong(fabric->ctx, own);
}

/* Waits, after all ranks have reported wrong wires, for tables of the controller that avoid them. Returns
 * FABRIC_AGAIN with the tables, PHX_ERROR_INVALID with *error unchanged if there are none in time, or another
 * error. */
static int await_other_tables(struct phx_fabric *fabric, struct phx_error *error)
{
    struct phx_slice slice;
    struct phx_error late;
    int status = phx_slice_wait(fabric->ctx, fabric->slice.tables, WRONG_WIRE_MS, &slice, &late);
    if (status == PHX_ERROR_TIMEOUT)
        return PHX_ERROR_INVALID;
    if (status < 0 && error != NULL)
        *error = late;
    return status < 0 ? status : FABRIC_AGAIN;
}

/* Makes a session. `roll` and `pattern` must outlive it. */
static int new_session(struct phx_fabric *fabric, const struct roll *roll, const struct str *pattern,
                       struct fabric_session **ret_session, struct phx_error *error)
{
    struct error why = {0};
    struct fabric_session_terms terms = {.slice = &roll->slice,
                                         .number = fabric->session,
                                         .bytes_per_us = 50000,
                                         .packet_bytes = 4096,
                                         .route_around = !fabric->keeps_routes,
                                         .patterns = pattern,
                                         .pattern_count = pattern->len > 0};
    memcpy(terms.origin, roll->origin, sizeof terms.origin);
    if (fabric_session_new(&terms, ret_session, &why) < 0)
        return fabric_fail(error, PHX_ERROR_INVALID, "the slice's network: %s", why.text);
    return 0;
}

/* Loads and starts this machine's chips. On success they run with *ret_route, which belongs to the
 * session. */
static int load_and_start(struct phx_fabric *fabric, struct fabric_session *session,
                          const struct route **ret_route, struct phx_error *error)
{
    int status = prepare(fabric, session, ret_route, error);
    if (status == 0)
        fabric_session_summary(session, &fabric->summary);
    note_live(fabric);
    if (status == 0)
        phx_slice_loaded(fabric->ctx, fabric->slice.tables, fabric->without);
    if (status >= 0) { /* all chips are loaded, or some rank has asked for another generation */
        int met = phx_barrier(fabric->ctx, -1, error);
        status = met < 0 ? met : status;
    }
    if (status == 0 && fabric->rank == 0) /* rank 0 has chip 0, the root of the clock tree */
        status = fabric->driver->start(fabric->chips, 0, fabric->session, error);
    return status == 0 ? fabric_await_start(fabric, error) : status;
}

static int run_session(struct phx_fabric *fabric, struct phx_error *error)
{
    struct roll roll;
    struct torus torus;
    struct buf bytes BUF_CLEANUP = {0};
    struct fabric_session *session;
    const struct route *route;
    int status = call_roll(fabric, &roll, error); /* on success, all labels are of the slice's cubes */
    if (status < 0)
        return status;
    look_at_wires(fabric);
    make_torus(fabric, &torus);
    fabric_cache_find(fabric, &torus, &bytes);
    struct str pattern = buf_str(&bytes);
    status = new_session(fabric, &roll, &pattern, &session, error);
    if (status == 0) {
        status = load_and_start(fabric, session, &route, error);
        if (status == 0 && !fabric->summary.from_pattern)
            fabric_cache_keep(fabric, &torus, route);
        fabric_session_free(session);
    }
    if (status == PHX_ERROR_INVALID && (fabric->wrong & ~fabric->without))
        status = await_other_tables(fabric, error);
    torus_done(&torus);
    fabric->cache.distrusted &= status != 0;
    return status;
}

int fabric_bring_up(struct phx_fabric *fabric, struct phx_error *error)
{
    struct phx_slice slice;
    struct fabric_word word = {.done = fabric->done, .cache = fabric_cache_word(fabric)};
    fabric->generation++;
    int status = leave_session(fabric, error);
    if (phx_slice_get(fabric->ctx, &slice) == 1) {
        word.tables = slice.tables;
        word.without = slice.without;
    }
    for (uint32_t index = 0; index < PHX_SLICE_CHIPS && status == 0; index++)
        status = fabric->driver->look(fabric->chips, index, &word.chips[index], error);
    struct fabric_ranks ranks = {.ctx = fabric->ctx,
                                 .rank = fabric->rank,
                                 .world = fabric->world,
                                 .opened = fabric->opened,
                                 .generation = fabric->generation};
    if (status == 0)
        status = fabric_gather(&ranks, &word, fabric->words, error);
    if (status < 0)
        return status;
    agree(fabric);
    fabric->bring_ups++;
    return run_session(fabric, error);
}
