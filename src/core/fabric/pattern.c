#include "core/fabric/pattern.h"

#include <stdio.h>

#include "base/crc32c.h"
#include "base/hash.h"
#include "core/fabric/internal.h"

enum { HEADER = 24, SUMMED_FROM = 16, VERSION = 2 };
_Static_assert(ROUTE_NONE == 254 && ROUTE_SELF == 255, "marks of the format");
static const char magic[8] = {'P', 'H', 'X', 'R', 'O', 'U', 'T', 'E'};

static void put_number(uint8_t *at, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t take_number(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Writes the live ports that distinguish patterns: those of the first cube's chips of the canonical torus, or
 * of all chips. Returns their number. */
static uint32_t live_ports(const struct torus *torus, const struct solved *solved, uint8_t *ret_live)
{
    uint16_t shift = route_shift(torus, solved);
    for (uint32_t i = 0; i < solved->count; i++)
        ret_live[i] = torus->live[torus_add(torus, solved->destinations[i], shift)];
    return solved->count;
}

/* Writes the part of the bytes that identifies the pattern: shape, repetition and live ports. Returns its
 * length. */
static uint32_t describe(const struct torus *torus, const struct solved *solved, uint8_t *ret_bytes)
{
    memcpy(ret_bytes, magic, sizeof magic);
    put_number(ret_bytes + 8, VERSION, 4);
    put_number(ret_bytes + 12, 0, 4);
    for (uint32_t axis = 0; axis < AXES; axis++)
        put_number(ret_bytes + 16 + 2 * axis, torus->shape.extent[axis], 2);
    ret_bytes[22] = torus->shape.twisted;
    ret_bytes[23] = solved->repeats;
    return HEADER + live_ports(torus, solved, ret_bytes + HEADER);
}

void pattern_key(const struct torus *torus, char key[PATTERN_KEY_MAX])
{
    char shape[SHAPE_TEXT_MAX];
    struct solved *solved = mem_alloc(sizeof *solved);
    uint8_t *bytes = mem_alloc(HEADER + torus->chips);
    route_solved(torus, solved);
    uint32_t len = describe(torus, solved, bytes);
    slice_shape_format(&torus->shape, shape);
    int written =
        snprintf(key, PATTERN_KEY_MAX, "%s-%016llx", shape, (unsigned long long)hash64(VERSION, bytes, len));
    CHECK(written > 0 && written < PATTERN_KEY_MAX);
    mem_free(bytes);
    mem_free(solved);
}

/* Returns whether a chip uses the up-down order, because no first hop leads to a chip with a working
 * dimension order. A detour may use the same port, but leads to such a chip. */
static bool follows_updown(const struct torus *torus, const struct route *route, size_t row, uint32_t chip)
{
    uint8_t hop = route->inject[row + chip];
    if (hop >= ROUTE_NONE || hop != route->transit[row + chip] || route_vc(hop) != ROUTE_VC_DETOUR)
        return false;
    uint8_t next = route->transit[row + torus->next[chip * CHIP_PORTS + route_port(hop)]];
    return next < ROUTE_NONE && route_vc(next) == ROUTE_VC_DETOUR;
}

void pattern_pack(const struct torus *torus, const struct route *route, struct buf *out)
{
    struct solved *solved = mem_alloc(sizeof *solved);
    uint32_t rows = route_solved(torus, solved);
    uint16_t shift = route_shift(torus, solved);
    size_t begin = out->len;
    CHECK(route->chips == torus->chips && (route->inject || rows == 0));
    buf_reserve(out, HEADER + torus->chips + (size_t)rows * torus->chips);
    uint8_t *bytes = (uint8_t *)out->data + begin;
    uint32_t at = describe(torus, solved, bytes);
    for (uint32_t i = 0; i < rows; i++) {
        size_t row = (size_t)torus_add(torus, solved->destinations[i], shift) * route->chips;
        for (uint32_t from = 0; from < route->chips; from++) {
            uint16_t chip = torus_add(torus, (uint16_t)from, shift);
            uint8_t hop = route->inject[row + chip];
            bytes[at++] = follows_updown(torus, route, row, chip) ? ROUTE_NONE
                          : hop < ROUTE_NONE                      ? (uint8_t)route_port(hop)
                                                                  : hop;
        }
    }
    put_number(bytes + 12, crc32c(0, bytes + SUMMED_FROM, at - SUMMED_FROM), 4);
    CHECK(at <= pattern_size_max(torus));
    out->len = begin + at;
    out->data[out->len] = 0;
    mem_free(solved);
}

size_t pattern_size_max(const struct torus *torus)
{
    return HEADER + torus->chips + (size_t)torus->chips * torus->chips;
}

/* Checks the bytes. Returns the first hops in them, or NULL after an error. */
static const uint8_t *check_bytes(struct str text, const struct torus *torus, const struct solved *solved,
                                  uint32_t rows, uint8_t *scratch, struct error *error)
{
    const uint8_t *bytes = (const uint8_t *)text.data;
    uint32_t described = describe(torus, solved, scratch);
    CHECK(described <= pattern_size_max(torus) && rows <= solved->count);
    if (text.len < HEADER || memcmp(bytes, magic, sizeof magic) != 0) {
        error_set(error, ERROR_CORRUPT, "route pattern: not one");
        return NULL;
    }
    if (take_number(bytes + 8) != VERSION) {
        error_set(error, ERROR_CORRUPT, "route pattern: version %u, expected %d", take_number(bytes + 8),
                  VERSION);
        return NULL;
    }
    if (take_number(bytes + 12) != crc32c(0, bytes + SUMMED_FROM, text.len - SUMMED_FROM)) {
        error_set(error, ERROR_CORRUPT, "route pattern: the checksum does not match its %zu bytes", text.len);
        return NULL;
    }
    if (text.len < described ||
        memcmp(bytes + SUMMED_FROM, scratch + SUMMED_FROM, described - SUMMED_FROM) != 0) {
        error_set(error, ERROR_NOT_FOUND, "route pattern: of another shape or other dead links");
        return NULL;
    }
    if (text.len != described + (size_t)rows * torus->chips) {
        error_set(error, ERROR_CORRUPT, "route pattern: %zu bytes, expected %zu", text.len,
                  described + (size_t)rows * torus->chips);
        return NULL;
    }
    for (size_t i = described; i < text.len; i++)
        if (bytes[i] >= CHIP_PORTS && bytes[i] < ROUTE_NONE) {
            error_set(error, ERROR_CORRUPT, "route pattern: byte %zu is %u: expected a port, 254 or 255", i,
                      bytes[i]);
            return NULL;
        }
    return bytes + described;
}

int pattern_routes(struct str bytes, const struct torus *torus, struct route *ret_route,
                   struct proof *ret_proof, uint32_t *ret_load, struct error *error)
{
    struct solved *solved = mem_alloc(sizeof *solved);
    uint8_t *scratch = mem_alloc(HEADER + torus->chips);
    struct route route;
    struct error why = {0};
    uint32_t rows = route_solved(torus, solved);
    const uint8_t *hops = check_bytes(bytes, torus, solved, rows, scratch, &why);
    int status = hops ? route_build_with(torus, hops, &route, &why) : (int)why.code;
    if (status == 0 && (status = route_prove(torus, &route, ret_proof, ret_load, &why)) < 0) {
        route_done(&route);
        error_wrap(&why, "route pattern");
    }
    if (status == 0)
        *ret_route = route;
    else if (error)
        *error = why;
    mem_free(scratch);
    mem_free(solved);
    return status;
}
