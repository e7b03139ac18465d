#include "core/fabric/session.h"

#include "core/fabric/pattern.h"
#include "core/fabric/session_private.h"
#include "core/words/lifecycle.h"

const char *const fabric_session_state_names[FABRIC_SESSION_STATES] = {"Discover", "Load",  "Start", "Run",
                                                                       "Stop",     "Ended", "Failed"};
#define TO(state) LIFECYCLE_TO(FABRIC_SESSION_##state)
static const uint32_t session_moves[FABRIC_SESSION_STATES] = {
    [FABRIC_SESSION_DISCOVER] = TO(LOAD) | TO(ENDED) | TO(FAILED),
    [FABRIC_SESSION_LOAD] = TO(LOAD) | TO(START) | TO(STOP) | TO(FAILED),
    [FABRIC_SESSION_START] = TO(RUN) | TO(LOAD) | TO(STOP) | TO(FAILED),
    [FABRIC_SESSION_RUN] = TO(LOAD) | TO(STOP) | TO(FAILED),
    [FABRIC_SESSION_STOP] = TO(ENDED),
    [FABRIC_SESSION_FAILED] = TO(STOP),
};
static const struct lifecycle session_lifecycle = {"fabric session", FABRIC_SESSION_STATES,
                                                   fabric_session_state_names, session_moves};

/* Moves to a state in which each chip gets one order. */
static void session_move(struct fabric_session *session, enum fabric_session_state to)
{
    CHECK(session->answers <= session->torus.chips && session->sent <= session->torus.chips);
    lifecycle_move(&session_lifecycle, &session->state, (uint8_t)to);
    session->sent = session->answers = 0;
    for (uint32_t chip = 0; chip < session->torus.chips; chip++)
        session->chips[chip].done = false;
}

static void session_fail(struct fabric_session *session, const struct error *error)
{
    CHECK(error->code != ERROR_NONE && !session->failed);
    session->error = *error;
    session->failed = true;
    session_move(session, FABRIC_SESSION_FAILED);
}

static uint32_t session_number(const struct fabric_session *session)
{
    CHECK(session->summary.reroutes < FABRIC_REROUTES_MAX);
    return session->terms.number + session->summary.reroutes;
}

static int session_check_terms(const struct fabric_session_terms *terms, struct error *error)
{
    const struct cube_slice *slice = terms->slice;
    bool taken[POD_CUBES_MAX] = {false};
    if (slice_shape_check(&slice->shape, error) < 0)
        return ERROR_INVALID;
    if (slice->count != slice_shape_cubes(&slice->shape))
        return error_set(error, ERROR_INVALID, "a fabric session needs all cubes of its slice");
    for (int axis = 0; axis < AXES; axis++)
        if (terms->origin[axis] > 0 && terms->origin[axis] + slice->shape.extent[axis] > CUBE_SIDE)
            return error_set(error, ERROR_INVALID,
                             "a part of a cube that begins at %c %u: it has %u chips there", "xyz"[axis],
                             terms -> origin[axis], slice -> shape.extent[axis]);
    for (uint32_t place = 0; place < slice->count; place++) {
        if (slice->cube[place] >= POD_CUBES_MAX || taken[slice->cube[place]])
            return error_set(error, ERROR_INVALID,
                             "cube %u of a slice: expected different numbers from 0 to %d",
                             slice->cube[place], POD_CUBES_MAX - 1);
        taken[slice->cube[place]] = true;
    }
    if (terms->bytes_per_us == 0 || terms->bytes_per_us > FABRIC_BYTES_PER_US_MAX ||
        terms->packet_bytes == 0 || terms->packet_bytes > FABRIC_BYTES_PER_US_MAX)
        return error_set(error, ERROR_INVALID,
                         "a fabric session needs the rate of links and the size of packets");
    return 0;
}

static void session_label_chips(struct fabric_session *session)
{
    const struct torus *torus = &session->torus;
    for (uint32_t cube = 0; cube < POD_CUBES_MAX; cube++)
        session->place_of[cube] = SLICE_CUBES_MAX;
    for (uint32_t place = 0; place < session->slice.count; place++)
        session->place_of[session->slice.cube[place]] = (uint16_t)place;
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        uint32_t at[AXES], inside;
        for (int axis = 0; axis < AXES; axis++)
            at[axis] = session->terms.origin[axis] + torus->at[axis][chip];
        uint32_t place = slice_chip_place(&torus->shape, at, &inside);
        session->chips[chip].label = session->slice.cube[place] * CUBE_CHIPS + inside;
    }
}

int fabric_session_new(const struct fabric_session_terms *terms, struct fabric_session **ret_session,
                       struct error *error)
{
    if (session_check_terms(terms, error) < 0)
        return ERROR_INVALID;
    struct fabric_session *session = mem_alloc(sizeof *session);
    session->terms = *terms;
    session->slice = *terms->slice;
    session->terms.slice = &session->slice;
    torus_init(&session->torus, &session->slice.shape);
    session->chips = mem_alloc(session->torus.chips * sizeof *session->chips);
    session->queue = mem_alloc(session->torus.chips * sizeof *session->queue);
    session_label_chips(session);
    session->chips[0].asked = true;
    session->queued = 1;
    session->summary.chips = session->torus.chips;
    *ret_session = session;
    return 0;
}

void fabric_session_free(struct fabric_session *session)
{
    route_done(&session->route);
    torus_done(&session->torus);
    mem_free(session->chips);
    mem_free(session->queue);
    mem_free(session);
}

enum fabric_session_state fabric_session_state(const struct fabric_session *session)
{
    return session->state;
}

const char *fabric_session_error(const struct fabric_session *session)
{
    return session->failed ? session->error.text : "";
}

void fabric_session_summary(const struct fabric_session *session, struct fabric_session_summary *ret_summary)
{
    *ret_summary = session->summary;
}

/* --- orders ------------------------------------------------------------------------------------------ */

/* Returns the bytes that a link carries in one round trip, plus one packet. */
static uint32_t session_buffer(const struct fabric_session *session, uint32_t rtt_ns)
{
    CHECK(rtt_ns > 0 && rtt_ns <= FABRIC_RTT_NS_MAX);
    return (uint32_t)((uint64_t)session->terms.bytes_per_us * rtt_ns / 1000) + session->terms.packet_bytes;
}

static void session_fill_load(const struct fabric_session *session, uint16_t chip, struct fabric_order *order)
{
    const struct session_chip *at = &session->chips[chip];
    order->route = &session->route;
    order->parent = at->parent;
    order->children = at->children;
    order->wait_ns = session->summary.tree_ns - at->path_ns;
    CHECK(order->wait_ns >= 0 && session->route.chips == session->torus.chips);
    CHECK((at->parent == FABRIC_NO_PORT) == (chip == 0));
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        order->buffer_bytes[port] =
            torus_link_live(&session->torus, chip, port) ? session_buffer(session, at->rtt_ns[port]) : 0;
}

/* --- tables ----------------------------------------------------------------------------------------- */

/* Makes tables from one of the patterns, or builds them. They are proved in both cases. */
static int session_build(struct fabric_session *session, struct error *error)
{
    struct route route;
    struct proof *proof = &session->summary.proof;
    session->summary.from_pattern = false;
    session->summary.refused.code = ERROR_NONE;
    for (uint32_t i = 0; i < session->terms.pattern_count && !session->summary.from_pattern; i++)
        session->summary.from_pattern = pattern_routes(session->terms.patterns[i], &session->torus, &route,
                                                       proof, NULL, &session->summary.refused) == 0;
    if (!session->summary.from_pattern) {
        if (route_build(&session->torus, &route, error) < 0)
            return error->code;
        if (route_prove(&session->torus, &route, proof, NULL, error) < 0) {
            route_done(&route);
            return error->code;
        }
    }
    CHECK(route.chips == session->torus.chips && proof->pairs > 0);
    route_done(&session->route);
    session->route = route;
    return 0;
}

/* Makes tables for the live links and moves to LOAD, or fails the session. */
static void session_load(struct fabric_session *session)
{
    struct error error = {0};
    session->stale = false;
    if (session_build(session, &error) < 0) {
        session_fail(session, &error);
        return;
    }
    session_clock_tree(session);
    session->summary.buffer_bytes_max = session_buffer(session, session->summary.rtt_ns_max);
    session_move(session, FABRIC_SESSION_LOAD);
}

bool fabric_session_order(struct fabric_session *session, struct fabric_order *ret_order)
{
    static const enum fabric_order_kind kinds[] = {FABRIC_ASK, FABRIC_LOAD, FABRIC_START, FABRIC_START,
                                                   FABRIC_STOP};
    if (session->stale)
        session_load(session);
    uint32_t due = session->state == FABRIC_SESSION_DISCOVER ? session->queued
                   : session->state == FABRIC_SESSION_START  ? 1
                   : session->state == FABRIC_SESSION_LOAD || session->state == FABRIC_SESSION_STOP
                       ? session->torus.chips
                       : 0;
    if (session->sent >= due)
        return false;
    uint16_t chip =
        session->state == FABRIC_SESSION_DISCOVER ? session->queue[session->sent] : (uint16_t)session->sent;
    CHECK(session->state <= FABRIC_SESSION_STOP && chip < session->torus.chips);
    *ret_order = (struct fabric_order){.kind = kinds[session->state],
                                       .chip = session->chips[chip].label,
                                       .chip_number = chip,
                                       .number = session_number(session)};
    if (ret_order->kind == FABRIC_LOAD)
        session_fill_load(session, chip, ret_order);
    session->sent++;
    return true;
}

/* --- answers ----------------------------------------------------------------------------------------- */

bool fabric_session_neighbours(struct fabric_session *session, uint32_t chip,
                               const struct fabric_neighbour neighbours[CHIP_PORTS])
{
    struct error error = {0};
    uint16_t number;
    if (session->state != FABRIC_SESSION_DISCOVER || !session_chip_of(session, chip, &number) ||
        !session->chips[number].asked || session->chips[number].answered)
        return false;
    session_check_answer(session, number, neighbours);
    if (session->answers < session->queued)
        return true;
    if (session_check_end(session, &error) < 0)
        session_fail(session, &error);
    else
        session_load(session);
    return true;
}

bool fabric_session_done(struct fabric_session *session, uint32_t chip, enum fabric_order_kind kind,
                         uint32_t number)
{
    static const struct {
        enum fabric_order_kind kind;
        enum fabric_session_state next;
    } steps[FABRIC_SESSION_STATES] = {
        [FABRIC_SESSION_LOAD] = {FABRIC_LOAD, FABRIC_SESSION_START},
        [FABRIC_SESSION_START] = {FABRIC_START, FABRIC_SESSION_RUN},
        [FABRIC_SESSION_STOP] = {FABRIC_STOP, FABRIC_SESSION_ENDED},
    };
    uint16_t at;
    bool waits = session->state == FABRIC_SESSION_LOAD || session->state == FABRIC_SESSION_START ||
                 session->state == FABRIC_SESSION_STOP;
    if (!waits || session->stale || steps[session->state].kind != kind || number != session_number(session) ||
        session->sent == 0 || !session_chip_of(session, chip, &at) || session->chips[at].done)
        return false;
    if (session->state != FABRIC_SESSION_START && at >= session->sent)
        return false; /* the order was not given yet */
    session->chips[at].done = true;
    if (++session->answers == session->torus.chips)
        session_move(session, steps[session->state].next);
    return true;
}

bool fabric_session_link_down(struct fabric_session *session, uint32_t chip, uint32_t port)
{
    struct error error = {0};
    uint16_t at;
    bool up = session->state == FABRIC_SESSION_LOAD || session->state == FABRIC_SESSION_START ||
              session->state == FABRIC_SESSION_RUN;
    if (!up || port >= CHIP_PORTS || !session_chip_of(session, chip, &at) ||
        !torus_kill_link(&session->torus, at, port))
        return false;
    session->summary.dark++;
    if (!session->terms.route_around || session->summary.reroutes + 1 == FABRIC_REROUTES_MAX) {
        error_set(&error, ERROR_UNAVAILABLE, "cube %u chip %u lost its link at port %c%c", chip / CUBE_CHIPS,
                  chip % CUBE_CHIPS, "xyz"[port / 2], "+-"[port % 2]);
        session_fail(session, &error);
        return true;
    }
    if (!session->stale) {
        session->stale = true;
        session->summary.reroutes++;
        session_move(session, FABRIC_SESSION_LOAD);
    }
    return true;
}

bool fabric_session_stop(struct fabric_session *session)
{
    if (session->state == FABRIC_SESSION_STOP || session->state == FABRIC_SESSION_ENDED)
        return false;
    session->stale = false;
    session_move(session,
                 session->state == FABRIC_SESSION_DISCOVER ? FABRIC_SESSION_ENDED : FABRIC_SESSION_STOP);
    return true;
}
