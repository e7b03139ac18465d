/* Loss as the factory measured it. SAI has an object for each possible pair, with a list for each quantity.
 * The objects of a switch are found once in a session, because there may be a hundred thousand. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "host/fabric/line.h"
#include "host/fabric/sai_session.h"

enum { POINTS_MAX = 64 }; /* measurements of a pair */

static const char call_factory[] = "get_ocs_cross_connect_factory_data_attribute";

/* Reads the pair of an object. The caller leaves out pairs that are not of two sides, or not of this
 * switch. */
static int read_factory_pair(struct phx_switch *sw, sai_id id, struct sai_factory *ret_factory,
                             struct phx_switch_error *error)
{
    char words[2][SAI_WORD_MAX];
    struct sai_factory factory = {.id = id};
    for (uint32_t i = 0; i < 2; i++) {
        char side;
        uint32_t number;
        int rc = sai_read_name(sw, sw->device->ocs->get_factory_data, call_factory, id, SAI_FACTORY_A + i,
                               words[i], error);
        if (rc < 0)
            return rc;
        if (!sai_parse_name(words[i], &side, &number))
            return sai_garbled(error, sw->device, call_factory, "a port is called \"%s\": expected 1A to %dB",
                               words[i], PHX_SWITCH_PORTS_MAX);
        if (side == 'A')
            factory.a = number;
        else
            factory.b = sw->size.a_ports + number;
    }
    *ret_factory = factory;
    return PHX_SWITCH_OK;
}

static int read_factory(struct phx_switch *sw, struct phx_switch_error *error)
{
    sai_id *ids;
    uint32_t count, found = 0, ports = sw->size.a_ports + sw->size.b_ports;
    int rc = sai_list_objects(sw, SAI_OBJECT_FACTORY_DATA, ports * ports / 2, &ids, &count, error);
    if (rc < 0)
        return rc;
    struct sai_factory *factory = mem_alloc((count + 1) * sizeof *factory);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++) {
        rc = read_factory_pair(sw, ids[i], &factory[found], error);
        if (rc == PHX_SWITCH_OK &&
            batch_pair_is_possible(sw->size, (struct phx_crossconnect){factory[found].a, factory[found].b}))
            found++;
    }
    mem_free(ids);
    if (rc < 0) {
        mem_free(factory);
        return rc;
    }
    sw->factory = factory;
    sw->factory_count = found;
    return PHX_SWITCH_OK;
}

static int read_list(struct phx_switch *sw, sai_id id, uint32_t number, int32_t values[POINTS_MAX],
                     uint32_t *ret_count, struct phx_switch_error *error)
{
    struct sai_attribute attribute = {.number = number};
    attribute.list.count = POINTS_MAX;
    attribute.list.at = values;
    sai_status status = sw->device->ocs->get_factory_data(id, 1, &attribute);
    if (status != SAI_OK)
        return sai_fail(error, sw->device, call_factory, "", status);
    if (attribute.list.count > POINTS_MAX)
        return sai_garbled(error, sw->device, call_factory, "a list has %u values: expected at most %d",
                           attribute.list.count, POINTS_MAX);
    *ret_count = attribute.list.count;
    return PHX_SWITCH_OK;
}

/* Converts a value with two decimals to thousandths. Returns false if it is out of range. */
static bool in_thousandths(int32_t hundredths, int32_t *ret_value)
{
    return !__builtin_mul_overflow(hundredths, 10, ret_value);
}

static int read_loss(struct phx_switch *sw, const struct sai_factory *factory, uint32_t frequency_ghz,
                     struct phx_switch_loss *ret_loss, struct phx_switch_error *error)
{
    static const uint32_t numbers[4] = {SAI_FACTORY_GHZ, SAI_FACTORY_CDEG, SAI_FACTORY_LOSS,
                                        SAI_FACTORY_ACCURACY};
    int32_t values[4][POINTS_MAX] = {{0}}; /* a library may count values that it did not write */
    uint32_t counts[4], best = 0;
    for (int i = 0; i < 4; i++) {
        int rc = read_list(sw, factory->id, numbers[i], values[i], &counts[i], error);
        if (rc < 0)
            return rc;
        if (!counts[i] || counts[i] != counts[0])
            return sai_garbled(error, sw->device, call_factory,
                               "lists of a pair have %u and %u values: expected as many of each, at least 1",
                               counts[0], counts[i]);
    }
    for (uint32_t i = 1; i < counts[0]; i++) {
        int64_t off = (int64_t)values[0][i] - frequency_ghz,
                best_off = (int64_t)values[0][best] - frequency_ghz;
        if ((off < 0 ? -off : off) < (best_off < 0 ? -best_off : best_off))
            best = i;
    }
    struct phx_switch_loss loss = {
        .a = factory->a, .b = factory->b, .frequency_ghz = (uint32_t)values[0][best]};
    if (values[0][best] < 0 || !in_thousandths(values[1][best], &loss.temperature_mc) ||
        !in_thousandths(values[2][best], &loss.loss_mdb) ||
        !in_thousandths(values[3][best], &loss.accuracy_mdb))
        return sai_garbled(error, sw->device, call_factory, "a value is out of range");
    *ret_loss = loss;
    return PHX_SWITCH_OK;
}

static int find_losses(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                       uint32_t frequency_ghz, struct phx_switch_loss *losses, struct phx_switch_error *error)
{
    char word[SAI_WORD_MAX];
    int rc = sw->factory ? PHX_SWITCH_OK : read_factory(sw, error);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++) {
        uint32_t at = 0;
        while (at < sw->factory_count && (sw->factory[at].a != pairs[i].a || sw->factory[at].b != pairs[i].b))
            at++;
        sai_pair_word(sw, pairs[i], word);
        rc = at < sw->factory_count ? read_loss(sw, &sw->factory[at], frequency_ghz, &losses[i], error)
                                    : switch_fail(error, PHX_SWITCH_UNSUPPORTED,
                                                  "%.60s: %s: the factory gives no data of the pair",
                                                  sai_file(sw->device), word);
    }
    return rc;
}

int sai_loss(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
             uint32_t frequency_ghz, struct phx_switch_loss *ret_losses, struct phx_switch_error *error)
{
    if (!sw->device->ocs->get_factory_data)
        return switch_fail(error, PHX_SWITCH_UNSUPPORTED, "%.60s: the library has no factory data",
                           sai_file(sw->device));
    for (uint32_t i = 0; i < count; i++)
        if (!batch_pair_is_possible(sw->size, pairs[i]))
            return switch_fail(error, PHX_SWITCH_INVALID, "%u-%u: expected a port of each side", pairs[i].a,
                               pairs[i].b);
    struct phx_switch_loss *losses = mem_alloc((count + 1) * sizeof *losses);
    int rc = sai_begin(sw, error);
    if (rc == PHX_SWITCH_OK)
        rc = find_losses(sw, pairs, count, frequency_ghz, losses, error);
    sai_end(sw);
    if (rc == PHX_SWITCH_OK)
        memcpy(ret_losses, losses, count * sizeof *losses);
    mem_free(losses);
    return rc;
}
