/* The ports of a switch of a SAI library: found by name, or created, which SAI leaves to its user. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "host/fabric/line.h"
#include "host/fabric/sai_session.h"

void sai_port_word(const struct phx_switch *sw, uint32_t port, char word[SAI_WORD_MAX])
{
    bool is_a = port <= sw->size.a_ports;
    snprintf(word, SAI_WORD_MAX, "%u%c", is_a ? port : port - sw->size.a_ports, is_a ? 'A' : 'B');
}

void sai_pair_word(const struct phx_switch *sw, struct phx_crossconnect pair, char word[SAI_WORD_MAX])
{
    char a[SAI_WORD_MAX], b[SAI_WORD_MAX];
    sai_port_word(sw, pair.a, a);
    sai_port_word(sw, pair.b, b);
    snprintf(word, SAI_WORD_MAX, "%.14s-%.14s", a, b);
}

bool sai_parse_name(const char *word, char *ret_side, uint32_t *ret_number)
{
    uint32_t number = 0;
    const char *at = word;
    for (; *at >= '0' && *at <= '9' && number <= PHX_SWITCH_PORTS_MAX; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    if (word[0] == '0' || at == word || number > PHX_SWITCH_PORTS_MAX || (*at != 'A' && *at != 'B') || at[1])
        return false;
    *ret_side = *at;
    *ret_number = number;
    return true;
}

int sai_read_name(struct phx_switch *sw, sai_get_fn *get, const char *call, sai_id id, uint32_t number,
                  char word[SAI_WORD_MAX], struct phx_switch_error *error)
{
    struct sai_attribute attribute = {.number = number};
    char text[SAI_WORD_MAX] = "";
    attribute.list.count = SAI_WORD_MAX - 1;
    attribute.list.at = text;
    sai_status status = get(id, 1, &attribute);
    if (status != SAI_OK)
        return sai_fail(error, sw->device, call, "the name of a port", status);
    if (attribute.list.count >= SAI_WORD_MAX)
        return sai_garbled(error, sw->device, call, "the name of a port has %u bytes", attribute.list.count);
    text[attribute.list.count] = 0;
    for (char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    memcpy(word, text, SAI_WORD_MAX);
    return PHX_SWITCH_OK;
}

int sai_list_objects(struct phx_switch *sw, enum sai_object_kind kind, uint32_t max, sai_id **ret_ids,
                     uint32_t *ret_count, struct phx_switch_error *error)
{
    union sai_key *keys = mem_alloc((max + 1) * sizeof *keys);
    uint32_t count = max;
    sai_status status = sw->device->keys(sw->device->id, kind, &count, keys);
    int rc = PHX_SWITCH_OK;
    if (status == SAI_BUFFER_OVERFLOW || (status == SAI_OK && count > max))
        rc = sai_garbled(error, sw->device, "sai_get_object_key",
                         "the library lists %u objects of type %#x: expected at most %u", count,
                         (unsigned)kind, max);
    else if (status != SAI_OK && status != SAI_NOT_FOUND)
        rc = sai_fail(error, sw->device, "sai_get_object_key", "", status);
    if (rc == PHX_SWITCH_OK) {
        count = status == SAI_NOT_FOUND ? 0 : count;
        sai_id *ids = mem_alloc((max + 1) * sizeof *ids);
        for (uint32_t i = 0; i < count; i++)
            ids[i] = keys[i].id;
        *ret_ids = ids;
        *ret_count = count;
    }
    mem_free(keys);
    return rc;
}

/* --- discovery -------------------------------------------------------------------------------------- */

struct port_names {
    sai_id of[2][PHX_SWITCH_PORTS_MAX + 1]; /* by side and number */
    uint32_t count[2], highest[2];
};

static int enter_port(struct phx_switch *sw, struct port_names *names, sai_id id,
                      struct phx_switch_error *error)
{
    static const char call[] = "get_ocs_port_attribute";
    char word[SAI_WORD_MAX], side;
    uint32_t number;
    int rc = sai_read_name(sw, sw->device->ocs->get_port, call, id, SAI_PORT_NAME, word, error);
    if (rc < 0)
        return rc;
    if (!sai_parse_name(word, &side, &number))
        return sai_garbled(error, sw->device, call, "a port is called \"%s\": expected 1A to %dB", word,
                           PHX_SWITCH_PORTS_MAX);
    int which = side == 'B';
    if (names->of[which][number])
        return sai_garbled(error, sw->device, call, "two ports are called %s", word);
    names->of[which][number] = id;
    names->count[which]++;
    if (number > names->highest[which])
        names->highest[which] = number;
    return PHX_SWITCH_OK;
}

static int read_names(struct phx_switch *sw, struct port_names *names, struct phx_switch_error *error)
{
    sai_id *ids;
    uint32_t count;
    int rc = sai_list_objects(sw, SAI_OBJECT_PORT, PHX_SWITCH_PORTS_MAX, &ids, &count, error);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        rc = enter_port(sw, names, ids[i], error);
    mem_free(ids);
    return rc;
}

static int create_port(struct phx_switch *sw, struct port_names *names, int which, uint32_t number,
                       struct phx_switch_error *error)
{
    char word[SAI_WORD_MAX];
    struct sai_attribute attributes[2] = {{.number = SAI_PORT_NAME}, {.number = SAI_PORT_OVERRIDE}};
    sai_id id = 0;
    snprintf(word, sizeof word, "%u%c", number, "AB"[which]);
    attributes[0].list.count = (uint32_t)strlen(word);
    attributes[0].list.at = word;
    attributes[1].s32 = SAI_OVERRIDE_NORMAL;
    if (!sw->device->ocs->create_port)
        return switch_fail(error, PHX_SWITCH_INVALID,
                           "%.60s: there is no port %s, and the library makes none", sai_file(sw->device),
                           word);
    sai_status status = sw->device->ocs->create_port(&id, sw->device->id, 2, attributes);
    if (status != SAI_OK)
        return sai_fail(error, sw->device, "create_ocs_port", word, status);
    if (!id)
        return sai_garbled(error, sw->device, "create_ocs_port", "%s: the library returned no port", word);
    names->of[which][number] = id;
    names->count[which]++;
    if (number > names->highest[which])
        names->highest[which] = number;
    return PHX_SWITCH_OK;
}

/* Checks that ports are numbered without gaps and fit the configuration. */
static int check_names(struct phx_switch *sw, const struct port_names *names,
                       const struct phx_switch_config *config, struct phx_switch_error *error)
{
    uint32_t a = names->highest[0], b = names->highest[1];
    if (!a || !b)
        return switch_fail(error, PHX_SWITCH_INVALID,
                           "%.60s: the switch has %u A ports and %u B ports, and how many to create is not "
                           "known: set the number of cubes",
                           sai_file(sw->device), a, b);
    for (uint32_t side = 0; side < 2; side++)
        if (names->count[side] != names->highest[side])
            return sai_garbled(error, sw->device, "get_ocs_port_attribute",
                               "%u ports are called 1%c to %u%c: expected one for each number",
                               names->count[side], "AB"[side], names -> highest[side], "AB"[side]);
    if ((config->a_ports && config->a_ports != a) || (config->b_ports && config->b_ports != b))
        return switch_fail(error, PHX_SWITCH_INVALID,
                           "%.60s: the switch has %u and %u ports: expected %u and %u", sai_file(sw->device),
                           a, b, config->a_ports, config->b_ports);
    if (a + b > PHX_SWITCH_PORTS_MAX)
        return switch_fail(error, PHX_SWITCH_UNSUPPORTED,
                           "%.60s: the switch has %u ports: expected at most %d", sai_file(sw->device), a + b,
                           PHX_SWITCH_PORTS_MAX);
    return PHX_SWITCH_OK;
}

static int find_or_create(struct phx_switch *sw, struct port_names *names,
                          const struct phx_switch_config *config, struct phx_switch_error *error)
{
    const uint32_t wanted[2] = {config->a_ports, config->b_ports};
    if (wanted[0] > PHX_SWITCH_PORTS_MAX || wanted[1] > PHX_SWITCH_PORTS_MAX)
        return switch_fail(error, PHX_SWITCH_INVALID, "%u and %u ports: expected at most %d", wanted[0],
                           wanted[1], PHX_SWITCH_PORTS_MAX);
    int rc = read_names(sw, names, error);
    for (int side = 0; side < 2; side++)
        for (uint32_t number = 1; rc == PHX_SWITCH_OK && number <= wanted[side]; number++)
            if (!names->of[side][number])
                rc = create_port(sw, names, side, number, error);
    return rc == PHX_SWITCH_OK ? check_names(sw, names, config, error) : rc;
}

int sai_find_ports(struct phx_switch *sw, const struct phx_switch_config *config,
                   struct phx_switch_error *error)
{
    struct port_names *names = mem_alloc(sizeof *names);
    int rc = find_or_create(sw, names, config, error);
    if (rc == PHX_SWITCH_OK) {
        sw->size = (struct switch_size){names->highest[0], names->highest[1]};
        memcpy(&sw->ports[1], &names->of[0][1], sw->size.a_ports * sizeof(sai_id));
        memcpy(&sw->ports[1 + sw->size.a_ports], &names->of[1][1], sw->size.b_ports * sizeof(sai_id));
    }
    mem_free(names);
    return rc;
}
