#include "host/fabric/session.h"

#include "base/check.h"

/* The peer of each port, 0: none. */
struct peers {
    uint16_t of[PHX_SWITCH_PORTS_MAX + 1];
};

static int read_peers(struct phx_switch *sw, struct peers *ret_peers, struct phx_switch_error *error)
{
    struct phx_crossconnect pairs[PHX_SWITCH_PORTS_MAX];
    uint32_t count;
    int rc = sw->dialect->list(sw, pairs, &count, error);
    if (rc < 0)
        return rc;
    memset(ret_peers, 0, sizeof *ret_peers);
    for (uint32_t i = 0; i < count; i++) {
        ret_peers->of[pairs[i].a] = (uint16_t)pairs[i].b;
        ret_peers->of[pairs[i].b] = (uint16_t)pairs[i].a;
    }
    return PHX_SWITCH_OK;
}

void session_close(struct phx_switch *sw)
{
    line_close(&sw->line);
    mem_free(sw);
}

int session_check_size(const struct phx_switch *sw, const struct phx_switch_config *config,
                       struct phx_switch_error *error)
{
    if ((config->a_ports && config->a_ports != sw->a_ports) ||
        (config->b_ports && config->b_ports != sw->b_ports))
        return switch_fail(error, PHX_SWITCH_INVALID, "the switch has %u and %u ports: expected %u and %u",
                           sw->a_ports, sw->b_ports, config->a_ports, config->b_ports);
    return PHX_SWITCH_OK;
}

int session_identify(struct phx_switch *sw, struct phx_switch_identity *ret_identity,
                     struct phx_switch_error *error)
{
    (void)error;
    *ret_identity = sw->identity;
    ret_identity->a_ports = sw->a_ports;
    ret_identity->b_ports = sw->b_ports;
    return PHX_SWITCH_OK;
}

int session_list(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t capacity,
                 uint32_t *ret_count, struct phx_switch_error *error)
{
    struct phx_crossconnect pairs[PHX_SWITCH_PORTS_MAX];
    uint32_t count;
    int rc = sw->dialect->list(sw, pairs, &count, error);
    if (rc < 0)
        return rc;
    if (count > capacity)
        return switch_fail(error, PHX_SWITCH_INVALID, "the switch has %u cross-connects: expected at most %u",
                           count, capacity);
    memcpy(ret_pairs, pairs, count * sizeof *pairs);
    *ret_count = count;
    return PHX_SWITCH_OK;
}

int session_ports(struct phx_switch *sw, uint32_t first, uint32_t count, struct phx_switch_port *ret_ports,
                  struct phx_switch_error *error)
{
    struct peers now;
    if (first < 1 || count > sw->a_ports + sw->b_ports || first + count - 1 > sw->a_ports + sw->b_ports)
        return switch_fail(error, PHX_SWITCH_INVALID, "ports %u to %u: the switch has %u", first,
                           first + count - 1, sw->a_ports + sw->b_ports);
    int rc = read_peers(sw, &now, error);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++)
        ret_ports[i] = (struct phx_switch_port){
            .port = first + i,
            .state = now.of[first + i] ? PHX_PORT_TUNED : PHX_PORT_BLOCKED,
            .peer = now.of[first + i],
            .power_mdbm = PHX_POWER_UNKNOWN,
        };
    return PHX_SWITCH_OK;
}

/* --- batches -------------------------------------------------------------------------------------- */

static bool session_is_over(int status)
{
    return status == PHX_SWITCH_LOST || status == PHX_SWITCH_TIMEOUT || status == PHX_SWITCH_GARBLED;
}

/* Changes what can be changed. The result is that of the session: refusals of members are no failure of it,
 * and the first one stays in *refusal. */
static int change_range(struct phx_switch *sw, bool add, const struct phx_crossconnect *pairs, uint32_t count,
                        struct phx_switch_error *refusal)
{
    struct phx_switch_error error = {0};
    if (!count)
        return PHX_SWITCH_OK;
    int rc = sw->dialect->change(sw, add, pairs, count, &error);
    if (rc == PHX_SWITCH_OK)
        return rc;
    if (session_is_over(rc) || refusal->status == PHX_SWITCH_OK)
        *refusal = error;
    if (session_is_over(rc))
        return rc;
    if (count == 1)
        return PHX_SWITCH_OK;
    rc = change_range(sw, add, pairs, count / 2, refusal);
    return rc < 0 ? rc : change_range(sw, add, pairs + count / 2, count - count / 2, refusal);
}

static bool pair_is_possible(const struct phx_switch *sw, struct phx_crossconnect pair)
{
    return pair.a >= 1 && pair.a <= sw->a_ports && pair.b > sw->a_ports &&
           pair.b <= sw->a_ports + sw->b_ports;
}

static int all_statuses(int *statuses, uint32_t count, int status)
{
    for (uint32_t i = 0; i < count; i++)
        statuses[i] = status;
    return status;
}

/* Decides which members of a batch are sent: NOT_TRIED ones. `stolen` gets what STEAL removes first. */
static uint32_t sort_out(const struct phx_switch *sw, struct peers *now, const struct phx_crossconnect *pairs,
                         uint32_t count, enum phx_batch_mode mode, int *statuses,
                         struct phx_crossconnect *stolen)
{
    uint32_t stolen_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct phx_crossconnect pair = pairs[i];
        statuses[i] = PHX_SWITCH_NOT_TRIED;
        if (!pair_is_possible(sw, pair)) {
            statuses[i] = PHX_SWITCH_INVALID;
        } else if (now->of[pair.a] == pair.b) {
            statuses[i] = PHX_SWITCH_OK;
        } else if (mode == PHX_SWITCH_SAFE && (now->of[pair.a] || now->of[pair.b])) {
            statuses[i] = PHX_SWITCH_BUSY;
        } else {
            uint16_t b = now->of[pair.a], a = now->of[pair.b];
            if (b)
                stolen[stolen_count++] = (struct phx_crossconnect){pair.a, b};
            if (a)
                stolen[stolen_count++] = (struct phx_crossconnect){a, pair.b};
            now->of[b] = now->of[a] = 0;
            now->of[pair.a] = (uint16_t)pair.b;
            now->of[pair.b] = (uint16_t)pair.a;
        }
    }
    return stolen_count;
}

int session_add(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error)
{
    struct phx_crossconnect sent[PHX_SWITCH_PORTS_MAX], stolen[PHX_SWITCH_PORTS_MAX];
    struct phx_switch_error refusal = {0};
    struct peers now;
    uint32_t sent_count = 0;
    if (count > PHX_SWITCH_PORTS_MAX)
        return switch_fail(error, PHX_SWITCH_INVALID, "%u cross-connects: expected at most %d", count,
                           PHX_SWITCH_PORTS_MAX);
    int rc = read_peers(sw, &now, error);
    if (rc < 0)
        return all_statuses(ret_statuses, count, rc);
    uint32_t stolen_count = sort_out(sw, &now, pairs, count, mode, ret_statuses, stolen);
    for (uint32_t i = 0; i < count; i++)
        if (ret_statuses[i] == PHX_SWITCH_NOT_TRIED)
            sent[sent_count++] = pairs[i];
    if (!sent_count)
        return PHX_SWITCH_OK;
    rc = change_range(sw, false, stolen, stolen_count, &refusal);
    if (rc == PHX_SWITCH_OK)
        rc = change_range(sw, true, sent, sent_count, &refusal);
    if (rc == PHX_SWITCH_OK)
        rc = read_peers(sw, &now, &refusal);
    for (uint32_t i = 0; i < count; i++)
        if (ret_statuses[i] == PHX_SWITCH_NOT_TRIED)
            ret_statuses[i] = rc < 0                             ? rc
                              : now.of[pairs[i].a] == pairs[i].b ? PHX_SWITCH_OK
                                                                 : PHX_SWITCH_FAILED;
    if (error)
        *error = refusal;
    return rc;
}

int session_remove(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                   int *ret_statuses, struct phx_switch_error *error)
{
    struct phx_crossconnect sent[PHX_SWITCH_PORTS_MAX];
    struct phx_switch_error refusal = {0};
    struct peers now;
    uint32_t sent_count = 0;
    if (count > PHX_SWITCH_PORTS_MAX)
        return switch_fail(error, PHX_SWITCH_INVALID, "%u cross-connects: expected at most %d", count,
                           PHX_SWITCH_PORTS_MAX);
    int rc = read_peers(sw, &now, error);
    if (rc < 0)
        return all_statuses(ret_statuses, count, rc);
    for (uint32_t i = 0; i < count; i++) {
        bool possible = pair_is_possible(sw, pairs[i]);
        bool joined = possible && now.of[pairs[i].a] == pairs[i].b;
        ret_statuses[i] = joined ? PHX_SWITCH_NOT_TRIED : possible ? PHX_SWITCH_ABSENT : PHX_SWITCH_INVALID;
        if (joined)
            sent[sent_count++] = pairs[i];
    }
    if (!sent_count)
        return PHX_SWITCH_OK;
    rc = change_range(sw, false, sent, sent_count, &refusal);
    if (rc == PHX_SWITCH_OK)
        rc = read_peers(sw, &now, &refusal);
    for (uint32_t i = 0; i < count; i++)
        if (ret_statuses[i] == PHX_SWITCH_NOT_TRIED)
            ret_statuses[i] = rc < 0                             ? rc
                              : now.of[pairs[i].a] == pairs[i].b ? PHX_SWITCH_FAILED
                                                                 : PHX_SWITCH_OK;
    if (error)
        *error = refusal;
    return rc;
}
