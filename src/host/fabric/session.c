#include "host/fabric/session.h"

#include "host/fabric/batch.h"

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
    if (first < 1 || count > sw->a_ports + sw->b_ports || first > sw->a_ports + sw->b_ports + 1 - count)
        return switch_fail(error, PHX_SWITCH_INVALID, "%u ports from %u on: the switch has %u", count, first,
                           sw->a_ports + sw->b_ports);
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

/* Makes all changes that the switch accepts. Returns the status of the session: refused members are no
 * failure of it, and the first refusal stays in *refusal. */
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

static struct switch_size size_of(const struct phx_switch *sw)
{
    return (struct switch_size){sw->a_ports, sw->b_ports};
}

int session_add(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error)
{
    struct phx_crossconnect sent[PHX_SWITCH_PORTS_MAX], stolen[2 * PHX_SWITCH_PORTS_MAX];
    struct phx_switch_error refusal = {0};
    struct peers now, before;
    uint32_t sent_count = 0;
    if (batch_check_count(count, ret_statuses, error) < 0)
        return PHX_SWITCH_INVALID;
    int rc = read_peers(sw, &now, error);
    if (rc < 0)
        return batch_all_statuses(ret_statuses, count, rc);
    before = now;
    uint32_t stolen_count = batch_sort_out(size_of(sw), &now, pairs, count, mode, ret_statuses, stolen);
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
    batch_end_repeats(&before, pairs, count, ret_statuses);
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
    if (batch_check_count(count, ret_statuses, error) < 0)
        return PHX_SWITCH_INVALID;
    int rc = read_peers(sw, &now, error);
    if (rc < 0)
        return batch_all_statuses(ret_statuses, count, rc);
    batch_sort_out_removal(size_of(sw), &now, pairs, count, ret_statuses);
    for (uint32_t i = 0; i < count; i++)
        if (ret_statuses[i] == PHX_SWITCH_NOT_TRIED)
            sent[sent_count++] = pairs[i];
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
