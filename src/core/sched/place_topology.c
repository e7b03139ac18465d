#include "core/sched/place.h"

#include <stdlib.h>

#include "base/check.h"

/* A task of the unit: to be placed, kept on its machine, or running and not part of this request. */
struct member {
    uint32_t ordinal;
    uint32_t job, task; /* indexes in the request; job UINT32_MAX: it runs already */
    machine_id machine; /* MACHINE_NONE: to be placed */
};
/* All tasks of the unit with one shape. */
struct side {
    struct shape *shape;
    struct place_tree *tree;
    struct member *members; /* by ordinal */
    size_t count, missing, fixed;
};
struct unit {
    struct placer *placer;
    struct side *sides;
    size_t side_count;
    const struct topology_rule *rule; /* rule of the first side: all have its mode and key */
};
/* A domain, or all machines. */
struct scope {
    uint32_t level, domain;
};
static const struct scope everywhere = {PLACE_NO_LEVEL, PLACE_NO_DOMAIN};

/* Less suitable machines come last: spares, then machines that caused restarts. */
static const uint8_t class_steps[] = {CLASS_PREFER_NO, CLASS_SPARE | CLASS_PREFER_NO, CLASSES - 1};
enum { CLASS_STEPS = sizeof class_steps };

/* --- the unit ----------------------------------------------------------------------------------------- */

static int compare_members(const void *a_member, const void *b_member)
{
    const struct member *a = a_member, *b = b_member;
    if (a->ordinal != b->ordinal)
        return a->ordinal < b->ordinal ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

static void find_members(struct placer *placer, struct side *side)
{
    const struct shape *shape = side->shape;
    const struct place_job *like = shape->like;
    side->members = ARENA_ARRAY(&placer->arena, struct member, shape->tasks + like->other_count);
    side->count = side->missing = 0;
    bool sorted = true;
    for (size_t i = 0; i < like->other_count; i++)
        side->members[side->count++] =
            (struct member){like->others[i].ordinal, UINT32_MAX, 0, like->others[i].machine};
    side->fixed = side->count;
    uint32_t next = 0;
    for (size_t i = 0; i < shape->job_count; i++) {
        const struct place_job *job = &placer->request->jobs[shape->jobs[i]];
        for (uint32_t t = 0; t < job->count; t++) {
            machine_id machine = placer->places[placer->offsets[shape->jobs[i]] + t].machine;
            uint32_t ordinal = job->ordinals ? job->ordinals[t] : next++;
            sorted &= !side->count || side->members[side->count - 1].ordinal <= ordinal;
            side->members[side->count++] = (struct member){ordinal, shape->jobs[i], t, machine};
            side->missing += machine == MACHINE_NONE;
        }
    }
    CHECK(side->count == shape->tasks + like->other_count && side->missing <= side->count - side->fixed);
    if (!sorted)
        qsort(side->members, side->count, sizeof *side->members, compare_members);
}

static void find_sides(struct placer *placer, const struct shape *shape, struct unit *unit)
{
    unit->placer = placer;
    unit->rule = shape->like->topology;
    unit->sides = ARENA_ARRAY(&placer->arena, struct side, placer->shape_count);
    for (size_t s = 0; s < placer->shape_count; s++) {
        struct shape *other = &placer->shapes[s];
        if (!other->like->topology || other->like->exclusive_topology.len ||
            other->like->podset != shape->like->podset)
            continue;
        if (!other->tree) {
            other->tree = ARENA_NEW(&placer->arena, struct place_tree);
            place_tree_build(placer->cluster, other->like, &placer->arena, other->tree);
        }
        struct side *side = &unit->sides[unit->side_count++];
        side->shape = other;
        side->tree = other->tree;
        find_members(placer, side);
    }
}

static void put_back(struct unit *unit, struct side *side, bool kept_too)
{
    struct placer *placer = unit->placer;
    for (size_t i = 0; i < side->count; i++) {
        struct member *member = &side->members[i];
        if (member->job == UINT32_MAX || (member->machine != MACHINE_NONE && !kept_too))
            continue;
        size_t task = placer->offsets[member->job] + member->task;
        if (placer->places[task].machine != MACHINE_NONE)
            place_unassign(placer, &placer->request->jobs[member->job], task);
        side->missing += kept_too && member->machine != MACHINE_NONE;
        member->machine = MACHINE_NONE;
    }
    CHECK(side->missing <= side->count - side->fixed); /* tasks that run already stay */
}

/* --- tasks into the machines of a scope --------------------------------------------------------------- */

struct filling {
    struct placer *placer;
    const struct side *side;
    size_t next, end; /* range of the members to be placed */
};

static void hand_out(struct filling *filling)
{
    struct placer *placer = filling->placer;
    for (size_t i = 0; i < placer->pool_len; i++) {
        machine_id id = placer->pool[i];
        for (; placer->take[id]; placer->take[id]--) {
            const struct member *members = filling->side->members;
            size_t task;
            for (;; filling->next++) {
                CHECK(filling->next < filling->end);
                const struct member *member = &members[filling->next];
                if (member->job == UINT32_MAX)
                    continue;
                task = placer->offsets[member->job] + member->task;
                if (placer->places[task].machine == MACHINE_NONE)
                    break;
            }
            place_assign(placer, &placer->request->jobs[members[filling->next].job], task, id, false);
        }
        placer->fits[id] = 0;
    }
    placer->pool_len = 0;
}

static void add_to_pool(struct placer *placer, const struct place_tree *tree, machine_id id)
{
    if (!tree->fits[id])
        return;
    placer->fits[id] = tree->fits[id];
    placer->pool[placer->pool_len++] = id;
}

static void fill_leaf(void *context, uint32_t domain, uint64_t tasks)
{
    struct filling *filling = context;
    struct placer *placer = filling->placer;
    const struct place_tree *tree = filling->side->tree;
    const struct place_job *like = filling->side->shape->like;
    if (domain == PLACE_NO_DOMAIN) {
        for (machine_id id = 0; id < placer->cluster->machine_count; id++)
            add_to_pool(placer, tree, id);
    } else {
        const struct place_level *leaf = &tree->levels[tree->level_count - 1];
        CHECK(domain < leaf->count);
        for (uint32_t i = leaf->first_child[domain]; i < leaf->first_child[domain + 1]; i++)
            add_to_pool(placer, tree, leaf->children[i]);
    }
    if (placer->pool_len == 1) {
        CHECK(placer->fits[placer->pool[0]] >= tasks);
        placer->take[placer->pool[0]] = (uint32_t)tasks;
    } else {
        place_fill(placer, like, tasks);
    }
    hand_out(filling);
}

/* Finds the best domain of the level with places for the tasks: the one with the fewest places, then with the
 * fewest places outside of whole slices, then with the most of the gang in its pod. */
static bool best_domain(const struct placer *placer, const struct place_level *level, const uint32_t *domains,
                        uint32_t count, uint64_t tasks, uint32_t *ret_domain)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = domains ? domains[i] : i;
        if (level->room[d] < tasks)
            continue;
        const struct machine *at = &placer->cluster->machines[level->first[d]];
        const struct machine *best = found ? &placer->cluster->machines[level->first[*ret_domain]] : at;
        bool better = !found || level->room[d] < level->room[*ret_domain];
        if (found && level->room[d] == level->room[*ret_domain])
            better = level->loose[d] != level->loose[*ret_domain]
                         ? level->loose[d] < level->loose[*ret_domain]
                         : placer->pod_load[at->pod] > placer->pod_load[best->pod];
        if (better)
            *ret_domain = d;
        found = true;
    }
    return found;
}

static uint64_t room_of(const struct place_tree *tree, struct scope scope)
{
    CHECK(scope.level == PLACE_NO_LEVEL || scope.level < tree->level_count);
    return scope.level == PLACE_NO_LEVEL ? tree->room : tree->levels[scope.level].room[scope.domain];
}

static uint64_t count_missing(const struct side *side, size_t first, size_t end)
{
    CHECK(first <= end && end <= side->count);
    uint64_t tasks = 0;
    for (size_t i = first; i < end; i++)
        tasks += side->members[i].machine == MACHINE_NONE;
    return tasks;
}

/* Places the missing members first .. end in the scope, regardless of the levels below it. Returns false if
 * they do not fit. */
static bool fill_scope(struct unit *unit, struct side *side, size_t first, size_t end, struct scope scope)
{
    uint64_t tasks = count_missing(side, first, end);
    if (!tasks)
        return true;
    if (scope.level != PLACE_NO_LEVEL &&
        (scope.level >= side->tree->level_count || scope.domain >= side->tree->levels[scope.level].count))
        return false; /* the rules of the unit's sides name different levels */
    for (int step = 0; step < CLASS_STEPS; step++) {
        place_tree_room(unit->placer, side->tree, side->shape->like, tasks, class_steps[step]);
        if (room_of(side->tree, scope) < tasks)
            continue;
        struct filling filling = {unit->placer, side, first, end};
        place_tree_descend(unit->placer, side->tree, scope.level, scope.domain, tasks, fill_leaf, &filling);
        return true;
    }
    return false;
}

/* --- beside tasks that stay --------------------------------------------------------------------------- */

/* Finds the domain of the level that contains all placed members first .. end. Returns false if they are in
 * several domains or in none. *ret_any: whether a member is placed. */
static bool common_domain(const struct side *side, size_t first, size_t end, uint32_t level,
                          uint32_t *ret_domain, bool *ret_any)
{
    CHECK(level < side->tree->level_count && end <= side->count);
    bool any = false;
    uint32_t domain = PLACE_NO_DOMAIN;
    for (size_t i = first; i < end; i++) {
        if (side->members[i].machine == MACHINE_NONE)
            continue;
        uint32_t at = side->tree->levels[level].domain_of[side->members[i].machine];
        if (at == PLACE_NO_DOMAIN || (any && at != domain))
            return false;
        domain = at;
        any = true;
    }
    *ret_domain = domain;
    *ret_any = any;
    return true;
}

/* Fills slice by slice: completes a slice with remaining tasks in their domain, and places a lost slice in a
 * new domain. */
static bool fill_slices(struct unit *unit, struct side *side, size_t first, size_t end, size_t layer,
                        struct scope scope)
{
    const struct topology_rule *rule = side->shape->like->topology;
    while (layer < rule->slice_count && side->tree->slice_level[layer] == PLACE_NO_LEVEL)
        layer++;
    if (layer >= rule->slice_count)
        return fill_scope(unit, side, first, end, scope);
    uint32_t size = (uint32_t)rule->slices[layer].size, level = side->tree->slice_level[layer];
    for (size_t at = first, next; at < end; at = next) {
        for (next = at; next < end && side->members[next].ordinal / size == side->members[at].ordinal / size;)
            next++;
        struct scope own = {level, PLACE_NO_DOMAIN};
        bool any;
        if (!count_missing(side, at, next))
            continue;
        if (!common_domain(side, at, next, level, &own.domain, &any))
            return false;
        if (!(any ? fill_slices(unit, side, at, next, layer + 1, own)
                  : fill_scope(unit, side, at, next, scope))) /* the next layer counts in whole slices */
            return false;
    }
    return true;
}

/* Does the same as common_domain for the whole unit. */
static bool common_of_unit(const struct unit *unit, uint32_t level, uint32_t *ret_domain, bool *ret_any)
{
    *ret_any = false;
    *ret_domain = PLACE_NO_DOMAIN;
    for (size_t s = 0; s < unit->side_count; s++) {
        const struct side *side = &unit->sides[s];
        uint32_t domain;
        bool any;
        if (level >= side->tree->level_count || !common_domain(side, 0, side->count, level, &domain, &any) ||
            (any && *ret_any && domain != *ret_domain))
            return false;
        if (any)
            *ret_domain = domain;
        *ret_any |= any;
    }
    return true;
}

static bool fill_sides(struct unit *unit, struct scope scope)
{
    for (size_t s = 0; s < unit->side_count; s++)
        if (!fill_slices(unit, &unit->sides[s], 0, unit->sides[s].count, 0, scope))
            return false;
    return true;
}

/* Places the missing tasks of a unit when others stay: in the domain of those or, if the rule only prefers
 * it, as near as possible. */
static bool repair(struct unit *unit)
{
    struct scope scope = everywhere;
    bool any = false;
    if (unit->rule->mode == TOPOLOGY_UNCONSTRAINED)
        return fill_sides(unit, everywhere);
    scope.level = unit->sides[0].tree->key_level;
    if (unit->rule->mode == TOPOLOGY_REQUIRED)
        return common_of_unit(unit, scope.level, &scope.domain, &any) && any && fill_sides(unit, scope);
    for (uint32_t levels = scope.level + 1; levels > 0; levels--) {
        scope.level = levels - 1;
        if (common_of_unit(unit, scope.level, &scope.domain, &any) && any && fill_sides(unit, scope))
            return true;
        for (size_t s = 0; s < unit->side_count; s++)
            put_back(unit, &unit->sides[s], false);
    }
    return fill_sides(unit, everywhere);
}

static bool some_stay(const struct unit *unit)
{
    for (size_t s = 0; s < unit->side_count; s++)
        if (unit->sides[s].missing < unit->sides[s].count)
            return true;
    return false;
}

/* --- from scratch ------------------------------------------------------------------------------------- */

/* Places all sides in the scope. Returns false, with nothing placed, if they do not fit. */
static bool fill_all(struct unit *unit, struct scope scope)
{
    for (size_t s = 0; s < unit->side_count; s++) {
        if (fill_scope(unit, &unit->sides[s], 0, unit->sides[s].count, scope))
            continue;
        for (size_t undo = 0; undo <= s; undo++)
            put_back(unit, &unit->sides[undo], false);
        return false;
    }
    return true;
}

/* Returns how many tasks each domain could take if it were empty. */
static uint64_t *find_sizes(const struct unit *unit, const struct place_level *level)
{
    const struct placer *placer = unit->placer;
    const struct place_job *job = unit->sides[0].shape->like;
    uint64_t *sizes = ARENA_ARRAY(&unit->placer->arena, uint64_t, level->count);
    for (machine_id id = 0; id < placer->cluster->machine_count; id++)
        if (level->domain_of[id] != PLACE_NO_DOMAIN &&
            place_usable(placer->cluster, job, id, placer->request->use_spares))
            sizes[level->domain_of[id]] +=
                job->chips ? placer->cluster->machines[id].chip_count / job->chips : UINT32_MAX;
    return sizes;
}

/* Notes, for `why`, the domain with the most places. Domains that would be large enough if empty go first. */
static void note_nearest(struct unit *unit, uint32_t level)
{
    struct placer *placer = unit->placer;
    const struct place_level *at = &unit->sides[0].tree->levels[level];
    const uint64_t *sizes = find_sizes(unit, at);
    uint64_t tasks = unit->sides[0].missing;
    uint32_t best = PLACE_NO_DOMAIN;
    for (uint32_t d = 0; d < at->count; d++) {
        bool large = sizes[d] >= tasks, best_large = best != PLACE_NO_DOMAIN && sizes[best] >= tasks;
        if (best == PLACE_NO_DOMAIN || (large != best_large ? large : at->room[d] > at->room[best]))
            best = d;
    }
    placer->nearest.level = level;
    placer->nearest.domain = best;
    placer->nearest.room = best == PLACE_NO_DOMAIN ? 0 : at->room[best];
}

/* Places the whole unit in one domain of the level. For a single shape the count of places is exact. For
 * several shapes, domains are tried in the order in which they fit the first shape. */
static bool one_domain(struct unit *unit, uint32_t level)
{
    struct placer *placer = unit->placer;
    struct side *side = &unit->sides[0];
    struct place_level *at = &side->tree->levels[level];
    for (int step = 0; step < CLASS_STEPS; step++) {
        if (step && unit->side_count == 1 && side->tree->worst_class <= class_steps[step - 1])
            break; /* there is no other domain */
        place_tree_room(placer, side->tree, side->shape->like, side->missing, class_steps[step]);
        uint64_t *room = ARENA_ARRAY(&placer->arena, uint64_t, at->count);
        memcpy(room, at->room, at->count * sizeof *room);
        uint32_t domain = PLACE_NO_DOMAIN;
        while (best_domain(placer, at, NULL, at->count, side->missing, &domain)) {
            if (fill_all(unit, (struct scope){level, domain}))
                return true;
            room[domain] = 0;
            /* The attempts above have changed the counts. */
            memcpy(at->room, room, at->count * sizeof *room);
        }
    }
    return false;
}

/* Notes, for `why`, the number of places in whole slices if it is too small. */
static void note_slices(struct unit *unit)
{
    const struct side *side = &unit->sides[0];
    CHECK(unit->side_count > 0 && side->missing > 0);
    if (!unit->rule->slice_count || side->tree->room >= side->missing)
        return;
    unit->placer->nearest.level = PLACE_NO_LEVEL;
    unit->placer->nearest.room = side->tree->room;
}

static bool place_fresh(struct unit *unit)
{
    uint32_t level = unit->sides[0].tree->key_level;
    if (unit->rule->mode == TOPOLOGY_REQUIRED) {
        if (one_domain(unit, level))
            return true;
        note_nearest(unit, level);
        return false;
    }
    if (unit->rule->mode == TOPOLOGY_PREFERRED)
        for (uint32_t l = level + 1; l-- > 0;)
            if (one_domain(unit, l))
                return true;
    unit->placer->nearest.room = UINT64_MAX;
    if (fill_all(unit, everywhere))
        return true;
    note_slices(unit);
    return false;
}

static uint64_t missing(const struct unit *unit, bool *ret_known)
{
    uint64_t tasks = 0;
    *ret_known = true;
    for (size_t s = 0; s < unit->side_count; s++) {
        tasks += unit->sides[s].missing;
        *ret_known &= !unit->sides[s].tree->unknown.len;
    }
    return tasks;
}

/* Notes, for `why`, the domain of running tasks, to which the others are bound. */
static void note_fixed(struct unit *unit)
{
    struct side *side = &unit->sides[0];
    uint32_t level = side->tree->key_level, domain;
    bool any;
    if (!common_of_unit(unit, level, &domain, &any) || !any)
        return;
    place_tree_room(unit->placer, side->tree, side->shape->like, side->missing, CLASSES - 1);
    unit->placer->nearest.level = level;
    unit->placer->nearest.domain = domain;
    unit->placer->nearest.room = side->tree->levels[level].room[domain];
}

bool place_topology(struct placer *placer, const struct shape *shape)
{
    struct unit unit = {0};
    bool known;
    find_sides(placer, shape, &unit);
    CHECK(unit.side_count > 0);
    uint64_t tasks = missing(&unit, &known);
    if (shape->like != unit.sides[0].shape->like) /* placed with the first of its shapes */
        return tasks == 0;
    placer->nearest.room = UINT64_MAX;
    bool stay = some_stay(&unit), fixed = false, placed = false;
    if (known && stay) {
        placed = repair(&unit);
        for (size_t s = 0; s < unit.side_count && !placed; s++) {
            put_back(&unit, &unit.sides[s], true);
            fixed |= unit.sides[s].fixed > 0;
        }
    }
    if (known && !placed && !fixed)
        placed = place_fresh(&unit);
    if (!placed) {
        if (known && fixed && unit.rule->mode == TOPOLOGY_REQUIRED)
            note_fixed(&unit);
        placer->failed = shape;
        placer->failed_tasks = missing(&unit, &known);
        CHECK(placer->failed_tasks > 0);
    }
    return placed;
}
