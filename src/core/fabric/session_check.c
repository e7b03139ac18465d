/* Discovery: compares what chips see with the requested shape. */
#include <stdio.h>

#include "core/fabric/session_private.h"

enum { LABEL_TEXT_MAX = 64 };

static uint16_t expected_number(const struct fabric_session *session, uint16_t chip, uint32_t port)
{
    return session->torus.next[chip * CHIP_PORTS + port];
}

/* Writes and returns a name such as "cube 3 chip (3,0,1) port x+". */
static const char *name_of_port(uint32_t label, uint32_t port, char text[LABEL_TEXT_MAX])
{
    uint32_t chip = label % CUBE_CHIPS;
    snprintf(text, LABEL_TEXT_MAX, "cube %u chip (%u,%u,%u) port %c%c", label / CUBE_CHIPS, chip % 4,
             chip / 4 % 4, chip / 16, "xyz"[port / 2], "+-"[port % 2]);
    return text;
}

bool session_chip_of(const struct fabric_session *session, uint32_t label, uint16_t *ret_chip)
{
    const uint16_t *extent = session->slice.shape.extent;
    if (label / CUBE_CHIPS >= POD_CUBES_MAX || session->place_of[label / CUBE_CHIPS] == SLICE_CUBES_MAX)
        return false;
    uint32_t place = session->place_of[label / CUBE_CHIPS], inside = label % CUBE_CHIPS, at[AXES];
    uint32_t side_x = (extent[0] + CUBE_SIDE - 1u) / CUBE_SIDE,
             side_y = (extent[1] + CUBE_SIDE - 1u) / CUBE_SIDE;
    at[0] = 4 * (place % side_x) + inside % 4;
    at[1] = 4 * (place / side_x % side_y) + inside / 4 % 4;
    at[2] = 4 * (place / (side_x * side_y)) + inside / 16;
    for (int axis = 0; axis < AXES; axis++) {
        if (at[axis] < session->terms.origin[axis] || at[axis] - session->terms.origin[axis] >= extent[axis])
            return false; /* of another part of the cube */
        at[axis] -= session->terms.origin[axis];
    }
    *ret_chip = torus_chip(&session->torus, at[0], at[1], at[2]);
    CHECK(session->chips[*ret_chip].label == label);
    return true;
}

/* Counts a wrong wire, and keeps the message about the first. */
static void session_wrong(struct fabric_session *session, uint16_t chip, uint32_t port, const char *found)
{
    char here[LABEL_TEXT_MAX], there[LABEL_TEXT_MAX];
    session->wrong++;
    if (session->wrong > 1)
        return;
    uint32_t expected = session->chips[expected_number(session, chip, port)].label;
    error_set(&session->error, ERROR_CORRUPT, "wrong wire: %s: expected %s, found %s",
              name_of_port(session->chips[chip].label, port, here), name_of_port(expected, port ^ 1, there),
              found);
}

static void session_check_port(struct fabric_session *session, uint16_t chip, uint32_t port,
                               const struct fabric_neighbour *seen)
{
    char text[LABEL_TEXT_MAX];
    uint16_t expected = expected_number(session, chip, port);
    if (!seen->light || expected == TORUS_NONE)
        return;
    if (seen->port >= CHIP_PORTS || seen->chip >= POD_CUBES_MAX * CUBE_CHIPS) {
        session_wrong(session, chip, port, "an answer that names no chip of a pod");
    } else if (seen->chip != session->chips[expected].label || seen->port != (port ^ 1)) {
        session_wrong(session, chip, port, name_of_port(seen->chip, seen->port, text));
    } else if (seen->rtt_ns == 0 || seen->rtt_ns > FABRIC_RTT_NS_MAX) {
        session_wrong(session, chip, port, "a round-trip time that no link has");
    } else {
        session->chips[chip].light |= (uint8_t)(1u << port);
        session->chips[chip].rtt_ns[port] = seen->rtt_ns;
        if (!session->chips[expected].asked) {
            session->chips[expected].asked = true;
            session->queue[session->queued++] = expected;
        }
    }
}

void session_check_answer(struct fabric_session *session, uint16_t chip, const struct fabric_neighbour *seen)
{
    CHECK(session->state == FABRIC_SESSION_DISCOVER && !session->chips[chip].answered);
    session->chips[chip].answered = true;
    session->answers++;
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        session_check_port(session, chip, port, &seen[port]);
    CHECK(session->queued <= session->torus.chips);
}

/* Kills a link unless both ends see it. The round trip is the longer of the two that the ends measured. */
static void session_join_ends(struct fabric_session *session, uint16_t chip, uint32_t port)
{
    uint16_t next = expected_number(session, chip, port);
    CHECK(port % 2 == POLARITY_PLUS);
    if (next == TORUS_NONE)
        return;
    struct session_chip *here = &session->chips[chip], *there = &session->chips[next];
    session->summary.links++;
    if (!(here->light >> port & 1) || !(there->light >> (port ^ 1) & 1)) {
        session->summary.dark += torus_kill_link(&session->torus, chip, port);
        return;
    }
    uint32_t rtt_ns = here->rtt_ns[port];
    if (there->rtt_ns[port ^ 1] > rtt_ns)
        rtt_ns = there->rtt_ns[port ^ 1];
    here->rtt_ns[port] = there->rtt_ns[port ^ 1] = rtt_ns;
    if (rtt_ns > session->summary.rtt_ns_max)
        session->summary.rtt_ns_max = rtt_ns;
}

int session_check_end(struct fabric_session *session, struct error *error)
{
    const struct torus *torus = &session->torus;
    char here[LABEL_TEXT_MAX];
    CHECK(session->answers == session->queued && session->summary.links == 0);
    if (session->wrong > 1)
        error_wrap(&session->error, "%u wires are wrong; the first", session->wrong);
    if (session->wrong > 0) {
        *error = session->error;
        return ERROR_CORRUPT;
    }
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        if (!session->chips[chip].answered)
            return error_set(
                error, ERROR_UNAVAILABLE, "cube %u chip %u is not reached: no link to it has light",
                session->chips[chip].label / CUBE_CHIPS, session->chips[chip].label % CUBE_CHIPS);
    for (uint32_t link = 0; link < torus->chips * CHIP_PORTS; link += 2) {
        uint16_t chip = (uint16_t)(link / CHIP_PORTS);
        session_join_ends(session, chip, link % CHIP_PORTS);
        if (session->summary.dark > 0 && !session->terms.route_around)
            return error_set(error, ERROR_UNAVAILABLE, "no light: %s, or the other end of its link",
                             name_of_port(session->chips[chip].label, link % CHIP_PORTS, here));
    }
    return 0;
}
