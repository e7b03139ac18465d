#include "sim/capacity/torus3d.h"

#include <stdio.h>

#include "base/check.h"

static const char *const axis_names[AXES] = {"x", "y", "z"};

/* --- boxes ---------------------------------------------------------------------------------------------- */

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns the number of anchors along an axis: round the torus in steps of the spacing, until the first one
 * recurs. */
static uint32_t anchors_along(const struct torus3d *torus, const struct torus3d_placement *placement,
                              int axis)
{
    return torus->dims[axis] / gcd(torus->dims[axis], placement->spacing[axis]);
}

void torus3d_box(const struct torus3d *torus, const struct torus3d_placement *placement, uint32_t anchor,
                 uint32_t *ret_cells)
{
    CHECK(anchor < placement->anchors);
    uint32_t at[AXES], step[AXES];
    for (int axis = 0; axis < AXES; axis++)
        step[axis] = anchors_along(torus, placement, axis);
    const uint32_t number[AXES] = {anchor % step[0], anchor / step[0] % step[1], anchor / step[0] / step[1]};
    for (int axis = 0; axis < AXES; axis++)
        at[axis] = (placement->seed[axis] + number[axis] * placement->spacing[axis]) % torus->dims[axis];
    uint32_t count = 0;
    for (uint32_t z = 0; z < placement->dims[2]; z++)
        for (uint32_t y = 0; y < placement->dims[1]; y++)
            for (uint32_t x = 0; x < placement->dims[0]; x++)
                ret_cells[count++] = (at[0] + x) % torus->dims[0] +
                                     torus->dims[0] * ((at[1] + y) % torus->dims[1] +
                                                       torus->dims[1] * ((at[2] + z) % torus->dims[2]));
    CHECK(count == placement->size);
}

static bool box_is_free(const struct torus3d *torus, const uint8_t *is_free, const uint32_t *cells,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!is_free[cells[i]] || torus->nodes[cells[i]].len == 0)
            return false;
    return true;
}

/* Lists the anchors of a placement whose boxes are free, and returns their number: 0 if the placement is
 * NULL. */
static uint32_t list_free(const struct torus3d *torus, const uint8_t *is_free,
                          const struct torus3d_placement *placement, uint32_t *cells, uint32_t *ret_anchors)
{
    uint32_t count = 0;
    for (uint32_t anchor = 0; placement && anchor < placement->anchors; anchor++) {
        torus3d_box(torus, placement, anchor, cells);
        if (box_is_free(torus, is_free, cells, placement->size))
            ret_anchors[count++] = anchor;
    }
    return count;
}

/* Returns how many of these boxes share a cell with the marked ones. */
static uint32_t count_spoiled(const struct torus3d *torus, const struct torus3d_placement *placement,
                              const uint32_t *anchors, uint32_t count, const uint8_t *marked, uint32_t *cells)
{
    uint32_t spoiled = 0;
    for (uint32_t k = 0; k < count; k++) {
        bool shares = false;
        torus3d_box(torus, placement, anchors[k], cells);
        for (uint32_t i = 0; i < placement->size && !shares; i++)
            shares = marked[cells[i]];
        spoiled += shares;
    }
    return spoiled;
}

struct candidate {
    bool found;
    const struct torus3d_placement *placement;
    uint32_t torus, spoiled, idle;
};

static bool is_better(const struct candidate *one, const struct candidate *best)
{
    if (!best->found)
        return true;
    if (one->placement == best->placement && one->spoiled != best->spoiled)
        return one->spoiled < best->spoiled;
    return one->idle < best->idle;
}

static void try_placement(const struct torus3d_file *file, struct candidate one, const uint8_t *is_free,
                          struct candidate *best, uint32_t *ret_cells)
{
    const struct torus3d *torus = &file->toruses[one.torus];
    const struct torus3d_placement *placement = one.placement, *next = NULL;
    for (const struct torus3d_placement *p = placement + 1;
         p < torus->placements + torus->placement_count && !next; p++)
        next = p->size > placement->size ? p : NULL;
    uint32_t *cells = mem_alloc(4 * torus->cells * sizeof *cells), *scratch = cells + torus->cells,
             *own = scratch + torus->cells, *larger = own + torus->cells;
    uint8_t *marked = mem_alloc(torus->cells);
    uint32_t own_count = list_free(torus, is_free, placement, cells, own),
             larger_count = own_count > 0 ? list_free(torus, is_free, next, cells, larger) : 0;
    for (uint32_t k = 0; k < own_count; k++) {
        torus3d_box(torus, placement, own[k], cells);
        for (uint32_t i = 0; i < placement->size; i++)
            marked[cells[i]] = 1;
        one.found = true;
        one.spoiled = count_spoiled(torus, next, larger, larger_count, marked, scratch);
        if (is_better(&one, best)) {
            *best = one;
            mem_copy(ret_cells, cells, placement->size * sizeof *cells);
        }
        for (uint32_t i = 0; i < placement->size; i++)
            marked[cells[i]] = 0;
    }
    mem_free(cells);
    mem_free(marked);
}

bool torus3d_place(const struct torus3d_file *file, const uint8_t *const *is_free, uint32_t nodes,
                   uint32_t *ret_torus, uint32_t *ret_cells)
{
    struct candidate best = {0};
    for (uint32_t t = 0; t < file->count; t++) {
        const struct torus3d *torus = &file->toruses[t];
        struct candidate one = {.torus = t};
        for (uint32_t cell = 0; cell < torus->cells; cell++)
            one.idle += is_free[t][cell] && torus->nodes[cell].len > 0;
        for (uint32_t p = 0; p < torus->placement_count && one.idle >= nodes; p++) {
            one.placement = &torus->placements[p];
            if (one.placement->size == nodes)
                try_placement(file, one, is_free[t], &best, ret_cells);
        }
    }
    if (best.found)
        *ret_torus = best.torus;
    return best.found;
}

/* --- names ---------------------------------------------------------------------------------------------- */

struct names {
    struct arena *arena;
    struct str *items;
    uint32_t count, max;
};

static int add_name(struct names *names, struct str prefix, struct str number, struct str suffix,
                    struct error *error)
{
    if (names->count == names->max)
        return error_set(error, ERROR_LIMIT, "more than %u nodes for as many cells", names->max);
    struct buf text BUF_CLEANUP = {0};
    buf_add_str(&text, prefix);
    buf_add_str(&text, number);
    buf_add_str(&text, suffix);
    if (text.len == 0)
        return error_set(error, ERROR_INVALID, "a node without a name");
    names->items[names->count++] = arena_str(names->arena, buf_str(&text));
    return 0;
}

/* Adds the names of a range such as "01-12" or "7". Every number is as wide as the first one is written. */
static int add_range(struct names *names, struct str prefix, struct str range, struct str suffix,
                     struct error *error)
{
    struct str first = range, last = range;
    int64_t low, high;
    str_cut(range, '-', &first, &last);
    if (!str_to_i64(first, 0, UINT32_MAX, &low) || !str_to_i64(last, 0, UINT32_MAX, &high) || high < low)
        return error_set(error, ERROR_INVALID,
                         "node range \"" STR_FORMAT "\": expected a number, or low-high", STR_ARG(range));
    for (int64_t number = low; number <= high; number++) {
        char digits[24];
        int len = snprintf(digits, sizeof digits, "%0*lld", (int)(first.len < 20 ? first.len : 20),
                           (long long)number);
        int rc = add_name(names, prefix, (struct str){digits, (size_t)len}, suffix, error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Adds the names of one entry of a list, which has no comma outside brackets. */
static int add_entry(struct names *names, struct str entry, struct error *error)
{
    struct str prefix, rest, ranges, suffix, range;
    if (!str_cut(entry, '[', &prefix, &rest))
        return add_name(names, entry, STR(""), STR(""), error);
    if (!str_cut(rest, ']', &ranges, &suffix) || memchr(suffix.data, '[', suffix.len) || ranges.len == 0)
        return error_set(error, ERROR_INVALID, "nodes \"" STR_FORMAT "\": expected one range in brackets",
                         STR_ARG(entry));
    for (bool more = true; more;) {
        more = str_cut(ranges, ',', &range, &rest);
        int rc = add_range(names, prefix, more ? range : ranges, suffix, error);
        if (rc < 0)
            return rc;
        ranges = rest;
    }
    return 0;
}

int torus3d_names(struct arena *arena, struct str list, struct str *ret_names, uint32_t max,
                  struct error *error)
{
    struct names names = {.arena = arena, .items = ret_names, .max = max};
    size_t begin = 0;
    bool inside = false;
    for (size_t i = 0; i <= list.len; i++) {
        char byte = i < list.len ? list.data[i] : ',';
        inside = byte == '[' ? true : byte == ']' ? false : inside;
        if (byte != ',' || (inside && i < list.len))
            continue;
        int rc = add_entry(&names, (struct str){list.data + begin, i - begin}, error);
        if (rc < 0)
            return rc;
        begin = i + 1;
    }
    return (int)names.count;
}

/* --- the file ------------------------------------------------------------------------------------------- */

static int refuse(const struct doc *node, struct error *error, const char *field, const char *expected)
{
    return error_set(error, ERROR_INVALID, "line %u: %s: expected %s", node ? node->line : 0, field,
                     expected);
}

/* Checks that the node is an object whose keys are all in the list, which ends with NULL. */
static int check_keys(const struct doc *object, const char *field, const char *const *keys,
                      struct error *error)
{
    if (!object || object->kind != DOC_OBJECT)
        return refuse(object, error, field, "an object");
    for (size_t i = 0; i < object->object.len; i++) {
        const struct doc_member *member = &object->object.members[i];
        bool known = false;
        for (const char *const *key = keys; *key && !known; key++)
            known = str_equal(member->key, str_from(*key));
        if (!known)
            return error_set(error, ERROR_INVALID, "line %u: %s: unknown field " STR_FORMAT, member->line,
                             field, STR_ARG(member->key));
    }
    return 0;
}

/* Reads {x, y, z}, whose numbers are at least `low` and less than `below` has for the axis. If `below` is
 * NULL, any extent is valid. An absent point leaves `ret` as it is. */
static int take_point(const struct doc *object, const char *key, int64_t low, const uint16_t *below,
                      uint16_t ret[AXES], struct error *error)
{
    static const char *const keys[] = {"x", "y", "z", "true", NULL};
    const struct doc *point = doc_get(object, key);
    int rc = point ? check_keys(point, key, keys, error) : 0;
    for (int axis = 0; axis < AXES && point && rc == 0; axis++) {
        const struct doc *number = doc_get(point, axis_names[axis]);
        if (!number && axis == 1)
            number = doc_get(point, "true"); /* YAML 1.1 reads a plain y as this word */
        int64_t limit = below ? below[axis] : TORUS3D_EXTENT_MAX + 1, value = doc_int(number, -1);
        if (!number || number->kind != DOC_INT || value < low || value >= limit)
            return error_set(error, ERROR_INVALID, "line %u: %s.%s: expected a number from %lld to %lld",
                             point->line, key, axis_names[axis], (long long)low, (long long)limit - 1);
        ret[axis] = (uint16_t)value;
    }
    return rc;
}

/* Computes the limits of values that may equal the torus's extents. */
static void extents_above(const struct torus3d *torus, uint16_t ret[AXES])
{
    for (int axis = 0; axis < AXES; axis++)
        ret[axis] = (uint16_t)(torus->dims[axis] + 1);
}

/* Reads the names of a torus's nodes. `names` has space for the torus's cells. */
static int take_nodes(struct arena *arena, struct torus3d *torus, struct str *names, const struct doc *owner,
                      const uint16_t anchor[AXES], const uint16_t dims[AXES], struct error *error)
{
    const struct doc *list = doc_get(owner, "nodes");
    uint32_t cells = (uint32_t)dims[0] * dims[1] * dims[2];
    if (!list || list->kind != DOC_STRING)
        return refuse(owner, error, "nodes", "a list such as \"m-[01-32]\"");
    int count = torus3d_names(arena, list->text, names, cells, error);
    if (count < 0)
        return error_wrap(error, "line %u: nodes", list->line);
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        uint32_t x = anchor[0] + i % dims[0], y = anchor[1] + i / dims[0] % dims[1],
                 z = anchor[2] + i / dims[0] / dims[1];
        struct str *cell = &torus->nodes[x + torus->dims[0] * (y + (uint32_t)torus->dims[1] * z)];
        if (cell->len > 0)
            return error_set(error, ERROR_INVALID,
                             "line %u: regions: cell %u,%u,%u belongs to another region already", list->line,
                             x, y, z);
        *cell = names[i];
    }
    return 0;
}

static int take_regions(struct arena *arena, struct torus3d *torus, struct str *names,
                        const struct doc *regions, struct error *error)
{
    static const char *const keys[] = {"anchor", "dims", "nodes", NULL};
    if (regions->kind != DOC_ARRAY)
        return refuse(regions, error, "regions", "a list");
    for (size_t i = 0; i < doc_len(regions); i++) {
        const struct doc *region = doc_at(regions, i);
        uint16_t anchor[AXES] = {0}, dims[AXES] = {0}, above[AXES];
        extents_above(torus, above);
        int rc = check_keys(region, "regions", keys, error);
        if (rc == 0 && !doc_get(region, "dims"))
            return refuse(region, error, "regions", "dims");
        if (rc < 0 || (rc = take_point(region, "anchor", 0, torus->dims, anchor, error)) < 0 ||
            (rc = take_point(region, "dims", 1, above, dims, error)) < 0)
            return rc;
        for (int axis = 0; axis < AXES; axis++)
            if (anchor[axis] + dims[axis] > torus->dims[axis])
                return refuse(region, error, "regions", "a region within the torus");
        if ((rc = take_nodes(arena, torus, names, region, anchor, dims, error)) < 0)
            return rc;
    }
    return 0;
}

static int take_placement(struct torus3d *torus, const struct doc *node, struct error *error)
{
    static const char *const keys[] = {"dims", "anchor_seed", "anchor_spacing", NULL};
    struct torus3d_placement *placement = &torus->placements[torus->placement_count];
    uint16_t above[AXES];
    extents_above(torus, above);
    int rc = check_keys(node, "placements", keys, error);
    if (rc == 0 && !doc_get(node, "dims"))
        return refuse(node, error, "placements", "dims");
    if (rc < 0 || (rc = take_point(node, "dims", 1, above, placement->dims, error)) < 0 ||
        (rc = take_point(node, "anchor_seed", 0, torus->dims, placement->seed, error)) < 0)
        return rc;
    for (int axis = 0; axis < AXES; axis++)
        placement->spacing[axis] = placement->dims[axis];
    if ((rc = take_point(node, "anchor_spacing", 1, above, placement->spacing, error)) < 0)
        return rc;
    placement->size = (uint32_t)placement->dims[0] * placement->dims[1] * placement->dims[2];
    placement->anchors = 1;
    for (int axis = 0; axis < AXES; axis++)
        placement->anchors *= anchors_along(torus, placement, axis);
    torus->placement_count++;
    return 0;
}

static int take_placements(struct arena *arena, struct torus3d *torus, const struct doc *node,
                           struct error *error)
{
    if (!node)
        return 0;
    if (node->kind != DOC_ARRAY || doc_len(node) > TORUS3D_PLACEMENTS_MAX)
        return refuse(node, error, "placements", "a list of at most 128");
    torus->placements = ARENA_ARRAY(arena, struct torus3d_placement, doc_len(node) + 1);
    for (size_t i = 0; i < doc_len(node); i++) {
        int rc = take_placement(torus, doc_at(node, i), error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Reads a torus. `room` is the number of cells that the file may still use. */
static int take_torus(struct arena *arena, struct torus3d *torus, const struct doc *node, uint32_t room,
                      struct error *error)
{
    static const char *const keys[] = {"name", "dims", "nodes", "regions", "placements", NULL};
    static const uint16_t origin[AXES];
    int rc = check_keys(node, "toruses", keys, error);
    if (rc < 0)
        return rc;
    torus->name = doc_str(doc_get(node, "name"), STR(""));
    if (torus->name.len == 0)
        return refuse(node, error, "toruses", "a name");
    if (!doc_get(node, "dims"))
        return refuse(node, error, "toruses", "dims");
    if ((rc = take_point(node, "dims", 1, NULL, torus->dims, error)) < 0)
        return rc;
    uint64_t cells = (uint64_t)torus->dims[0] * torus->dims[1] * torus->dims[2];
    if (cells > room)
        return error_set(error, ERROR_LIMIT,
                         "line %u: dims: %llu cells, and all toruses together can have %d", node->line,
                         (unsigned long long)cells, TORUS3D_CELLS_MAX);
    torus->cells = (uint32_t)cells;
    torus->nodes = ARENA_ARRAY(arena, struct str, torus->cells);
    const struct doc *regions = doc_get(node, "regions");
    if (regions && doc_get(node, "nodes"))
        return refuse(regions, error, "regions", "no regions beside nodes");
    struct str *names = ARENA_ARRAY(arena, struct str, torus->cells);
    rc = regions ? take_regions(arena, torus, names, regions, error)
                 : take_nodes(arena, torus, names, node, origin, torus->dims, error);
    return rc < 0 ? rc : take_placements(arena, torus, doc_get(node, "placements"), error);
}

static int take_topology(struct arena *arena, struct torus3d_file *file, const struct doc *topology,
                         uint32_t *room, struct error *error)
{
    static const char *const keys[] = {"toruses", NULL};
    const struct doc *node = doc_get(topology, "torus3d"), *toruses = doc_get(node, "toruses");
    if (!node)
        return topology && topology->kind == DOC_OBJECT ? 0
                                                        : refuse(topology, error, "topology", "an object");
    int rc = check_keys(node, "torus3d", keys, error);
    if (rc < 0)
        return rc;
    if (!toruses || toruses->kind != DOC_ARRAY)
        return refuse(node, error, "toruses", "a list");
    for (size_t i = 0; i < doc_len(toruses); i++) {
        if (file->count == TORUS3D_TORUSES_MAX)
            return error_set(error, ERROR_LIMIT, "line %u: toruses: at most %d are possible", toruses->line,
                             TORUS3D_TORUSES_MAX);
        struct torus3d *torus = &file->toruses[file->count];
        if ((rc = take_torus(arena, torus, doc_at(toruses, i), *room, error)) < 0)
            return rc;
        *room -= torus->cells;
        file->count++;
    }
    return 0;
}

int torus3d_read(struct arena *arena, const struct doc *document, struct torus3d_file *ret_file,
                 struct error *error)
{
    struct torus3d_file file = {.toruses = ARENA_ARRAY(arena, struct torus3d, TORUS3D_TORUSES_MAX)};
    uint32_t room = TORUS3D_CELLS_MAX;
    if (!document || document->kind != DOC_ARRAY)
        return refuse(document, error, "topology", "a list of topologies");
    for (size_t i = 0; i < doc_len(document); i++) {
        int rc = take_topology(arena, &file, doc_at(document, i), &room, error);
        if (rc < 0)
            return rc;
    }
    if (file.count == 0)
        return refuse(document, error, "topology", "one with torus3d");
    *ret_file = file;
    return 0;
}
