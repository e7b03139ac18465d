#include "core/sched/place.h"

#include <stdlib.h>

#include "base/check.h"

#define LABEL_HOSTNAME STR("kubernetes.io/hostname")
#define LABEL_POD      STR("phalanx.dev/pod")
#define LABEL_CUBE     STR("phalanx.dev/cube")
#define LABEL_RACK     STR("phalanx.dev/rack")

/* --- which levels ------------------------------------------------------------------------------------- */

static bool is_own_key(struct str key)
{
    return str_equal(key, LABEL_POD) || str_equal(key, LABEL_CUBE) || str_equal(key, LABEL_RACK) ||
           str_equal(key, LABEL_HOSTNAME);
}

static uint32_t find_key(const struct place_tree *tree, struct str key)
{
    for (uint32_t l = 0; l < tree->level_count; l++)
        if (str_equal(tree->levels[l].key, key) && key.len)
            return l;
    return PLACE_NO_LEVEL;
}

static void add_key(struct place_tree *tree, struct str key)
{
    if (find_key(tree, key) == PLACE_NO_LEVEL && tree->level_count < PLACE_LEVELS_MAX)
        tree->levels[tree->level_count++].key = key;
}

static bool names(const struct topology_rule *rule, struct str key)
{
    bool named = str_equal(rule->key, key);
    for (size_t i = 0; i < rule->slice_count; i++)
        named |= str_equal(rule->slices[i].key, key);
    return named;
}

/* Adds the cluster file's own levels down to the rule's keys. A rule with another key gets its keys alone. */
static void own_levels(const struct topology_rule *rule, struct place_tree *tree)
{
    bool own = !rule->key.len || is_own_key(rule->key);
    for (size_t i = 0; i < rule->slice_count; i++)
        own &= is_own_key(rule->slices[i].key);
    if (!own) {
        if (rule->key.len)
            add_key(tree, rule->key);
        for (size_t i = 0; i < rule->slice_count; i++)
            add_key(tree, rule->slices[i].key);
        return;
    }
    bool cube = names(rule, LABEL_CUBE), rack = names(rule, LABEL_RACK), host = names(rule, LABEL_HOSTNAME);
    if (cube || rack || host || names(rule, LABEL_POD))
        add_key(tree, LABEL_POD);
    if (cube)
        add_key(tree, LABEL_CUBE);
    if (rack)
        add_key(tree, LABEL_RACK);
    if (host && !cube && !rack)
        tree->levels[tree->level_count++].by_block = true;
    if (host)
        add_key(tree, LABEL_HOSTNAME);
}

/* --- the domains of each level ------------------------------------------------------------------------ */

struct level_index {
    struct str_map *by_value; /* [domains of the next wider level] */
    struct str last;
    uint32_t last_parent, last_domain;
    struct u64_map by_block;
};

static uint32_t new_domain(struct place_level *level, uint32_t parent, machine_id first)
{
    level->parent[level->count] = parent;
    level->first[level->count] = first;
    return level->count++;
}

static uint32_t domain_by_block(struct place_level *level, struct level_index *index, uint32_t parent,
                                const struct machine *machine)
{
    uint64_t key = ((uint64_t)parent << 32) + machine->block + 1;
    uintptr_t known = (uintptr_t)u64_map_get(&index->by_block, key);
    if (known)
        return (uint32_t)(known - 1);
    uint32_t domain = new_domain(level, parent, machine->id);
    u64_map_put(&index->by_block, key, (void *)(uintptr_t)(domain + 1));
    return domain;
}

static uint32_t domain_by_label(struct place_level *level, struct level_index *index, uint32_t parent,
                                const struct machine *machine)
{
    struct str value;
    if (!machine_label(machine, level->key, &value))
        return PLACE_NO_DOMAIN;
    if (index->last_domain != PLACE_NO_DOMAIN && index->last_parent == parent &&
        str_equal(index->last, value)) /* neighbouring machines mostly share it */
        return index->last_domain;
    uintptr_t known = (uintptr_t)str_map_get(&index->by_value[parent], value);
    uint32_t domain = known ? (uint32_t)(known - 1) : new_domain(level, parent, machine->id);
    if (!known)
        str_map_put(&index->by_value[parent], value, (void *)(uintptr_t)(domain + 1));
    index->last = value;
    index->last_parent = parent;
    index->last_domain = domain;
    return domain;
}

/* Finds the domains of a level. A domain is one value of the label within one domain of the next wider level,
 * so its name is the whole path. */
static void find_level(const struct cluster *cluster, struct arena *arena, struct place_tree *tree,
                       uint32_t at)
{
    struct place_level *level = &tree->levels[at];
    const struct place_level *wider = at ? &tree->levels[at - 1] : NULL;
    uint32_t parents = wider ? wider->count : 1;
    /* Unique for each machine, so no look-up is needed. */
    bool hosts = str_equal(level->key, LABEL_HOSTNAME);
    struct level_index index = {.last_domain = PLACE_NO_DOMAIN};
    index.by_value = ARENA_ARRAY(arena, struct str_map, parents);
    level->domain_of = ARENA_ARRAY(arena, uint32_t, cluster->machine_count);
    level->parent = ARENA_ARRAY(arena, uint32_t, cluster->machine_count);
    level->first = ARENA_ARRAY(arena, machine_id, cluster->machine_count);
    for (machine_id id = 0; id < cluster->machine_count; id++) {
        uint32_t parent = wider ? wider->domain_of[id] : 0;
        level->domain_of[id] = PLACE_NO_DOMAIN;
        if (parent == PLACE_NO_DOMAIN)
            continue;
        const struct machine *machine = &cluster->machines[id];
        level->domain_of[id] = hosts             ? new_domain(level, parent, id)
                               : level->by_block ? domain_by_block(level, &index, parent, machine)
                                                 : domain_by_label(level, &index, parent, machine);
    }
    for (uint32_t p = 0; p < parents; p++)
        str_map_done(&index.by_value[p]);
    u64_map_done(&index.by_block);
    level->room = ARENA_ARRAY(arena, uint64_t, level->count);
    level->loose = ARENA_ARRAY(arena, uint64_t, level->count);
}

/* Groups items: those of group g are ret_items[first[g]] up to first[g + 1], ascending. */
static void group_items(struct arena *arena, const uint32_t *group_of, uint32_t items, uint32_t groups,
                        uint32_t **ret_first, uint32_t **ret_items)
{
    uint32_t *first = ARENA_ARRAY(arena, uint32_t, groups + 2), *list = ARENA_ARRAY(arena, uint32_t, items);
    for (uint32_t i = 0; i < items; i++)
        if (group_of[i] != PLACE_NO_DOMAIN)
            first[group_of[i] + 2]++;
    for (uint32_t g = 0; g < groups; g++)
        first[g + 2] += first[g + 1];
    for (uint32_t i = 0; i < items; i++)
        if (group_of[i] != PLACE_NO_DOMAIN)
            list[first[group_of[i] + 1]++] = i;
    *ret_first = first;
    *ret_items = list;
}

static void find_slices(const struct topology_rule *rule, struct place_tree *tree)
{
    for (size_t i = 0; i < rule->slice_count; i++) {
        tree->slice_level[i] = find_key(tree, rule->slices[i].key);
        if (tree->slice_level[i] == PLACE_NO_LEVEL && !tree->unknown.len)
            tree->unknown = rule->slices[i].key;
    }
}

void place_tree_build(const struct cluster *cluster, const struct place_job *job, struct arena *arena,
                      struct place_tree *tree)
{
    const struct topology_rule *rule = job->topology;
    *tree = (struct place_tree){.key_level = PLACE_NO_LEVEL};
    tree->levels = ARENA_ARRAY(arena, struct place_level, PLACE_LEVELS_MAX);
    for (size_t i = 0; i < job->level_count; i++)
        add_key(tree, job->levels[i]);
    if (!job->level_count)
        own_levels(rule, tree);
    if (rule->mode == TOPOLOGY_REQUIRED || rule->mode == TOPOLOGY_PREFERRED) {
        tree->key_level = find_key(tree, rule->key);
        if (tree->key_level == PLACE_NO_LEVEL)
            tree->unknown = rule->key;
    }
    find_slices(rule, tree);
    for (uint32_t l = 0; l < tree->level_count; l++)
        find_level(cluster, arena, tree, l);
    for (uint32_t l = 0; l < tree->level_count; l++) {
        const struct place_level *next = l + 1 < tree->level_count ? &tree->levels[l + 1] : NULL;
        struct place_level *level = &tree->levels[l];
        group_items(arena, next ? next->parent : level->domain_of,
                    next ? next->count : (uint32_t)cluster->machine_count, level->count, &level->first_child,
                    &level->children);
    }
    tree->top = ARENA_ARRAY(arena, uint32_t, tree->level_count ? tree->levels[0].count : 0);
    for (uint32_t d = 0; tree->level_count && d < tree->levels[0].count; d++)
        tree->top[d] = d;
    tree->fits = ARENA_ARRAY(arena, uint32_t, cluster->machine_count);
}

/* --- room --------------------------------------------------------------------------------------------- */

uint64_t place_tree_whole(const struct place_tree *tree, const struct place_job *job, uint32_t level,
                          uint64_t tasks)
{
    const struct topology_rule *rule = job->topology;
    uint64_t whole = 1;
    for (size_t i = 0; i < rule->slice_count; i++)
        if (tree->slice_level[i] != PLACE_NO_LEVEL && level <= tree->slice_level[i] &&
            (uint64_t)rule->slices[i].size > whole)
            whole = (uint64_t)rule->slices[i].size;
    return whole < tasks ? whole : tasks;
}

void place_tree_room(struct placer *placer, struct place_tree *tree, const struct place_job *job,
                     uint64_t tasks, uint8_t most_class)
{
    place_pool(placer, job, job->chips ? UINT32_MAX : tasks); /* counts all of its room, for best fit */
    memset(tree->fits, 0, placer->cluster->machine_count * sizeof *tree->fits);
    for (uint32_t l = 0; l < tree->level_count; l++) {
        memset(tree->levels[l].room, 0, tree->levels[l].count * sizeof *tree->levels[l].room);
        memset(tree->levels[l].loose, 0, tree->levels[l].count * sizeof *tree->levels[l].loose);
    }
    const struct place_level *leaf = tree->level_count ? &tree->levels[tree->level_count - 1] : NULL;
    tree->room = 0;
    tree->worst_class = 0;
    for (size_t i = 0; i < placer->pool_len; i++) {
        machine_id id = placer->pool[i];
        uint32_t fits = placer->fits[id];
        placer->fits[id] = 0;
        if (placer->class[id] > tree -> worst_class)
            tree->worst_class = placer->class[id];
        if (placer->class[id] > most_class || (leaf && leaf->domain_of[id] == PLACE_NO_DOMAIN))
            continue;
        tree->fits[id] = fits;
        if (leaf) {
            leaf->room[leaf->domain_of[id]] += fits;
            leaf->loose[leaf->domain_of[id]] += fits;
        } else
            tree->room += fits;
    }
    placer->pool_len = 0;
    for (uint32_t l = tree->level_count; l-- > 0;) {
        struct place_level *level = &tree->levels[l];
        uint64_t whole = level->whole = place_tree_whole(tree, job, l, tasks);
        for (uint32_t d = 0; d < level->count; d++) {
            level->room[d] -= whole > 1 ? level->room[d] % whole : 0;
            if (l)
                tree->levels[l - 1].loose[level->parent[d]] += level->loose[d];
            if (l)
                tree->levels[l - 1].room[level->parent[d]] += level->room[d];
            else
                tree->room += level->room[d];
        }
    }
}

/* --- choosing domains --------------------------------------------------------------------------------- */

struct branch {
    uint32_t domain;
    uint64_t room, loose, take;
};

static int compare_room(const void *a_branch, const void *b_branch)
{
    const struct branch *a = a_branch, *b = b_branch;
    if (a->room != b->room)
        return a->room > b->room ? -1 : 1;
    if (a->loose != b->loose) /* among equals, the one with the fewest remaining places outside of whole
                               * slices */
        return a->loose < b->loose ? -1 : 1;
    return a->domain < b->domain ? -1 : a->domain > b->domain;
}

static int compare_domain(const void *a_branch, const void *b_branch)
{
    const struct branch *a = a_branch, *b = b_branch;
    return a->domain < b->domain ? -1 : a->domain > b->domain;
}

/* Moves the domain with the incomplete slice, which has the last ranks, to the end, so each other domain
 * begins with a whole slice. */
static void put_remainder_last(struct branch *list, size_t count, uint64_t whole)
{
    size_t kept = 0;
    struct branch rest = {0};
    for (size_t i = 0; i < count; i++) {
        if (whole > 1 && list[i].take % whole && !rest.take)
            rest = list[i];
        else
            list[kept++] = list[i];
    }
    if (rest.take)
        list[kept] = rest;
}

/* Chooses branches for the tasks: the largest first, to use few; the remaining tasks go where they fit best.
 * Returns how many are used. They come first in the list, in tree order, with an incomplete slice last. */
static size_t choose(struct branch *list, size_t count, uint64_t tasks, uint64_t whole)
{
    qsort(list, count, sizeof *list, compare_room);
    size_t used = 0;
    for (; tasks; used++) {
        CHECK(used < count && list[used].room);
        size_t best = used;
        while (list[used].room >= tasks && best + 1 < count && list[best + 1].room >= tasks)
            best++;
        while (best > used && list[best - 1].room == list[best].room) /* among equals, the first */
            best--;
        struct branch chosen = list[best];
        list[best] = list[used];
        chosen.take = chosen.room < tasks ? chosen.room : tasks;
        list[used] = chosen;
        tasks -= chosen.take;
    }
    qsort(list, used, sizeof *list, compare_domain);
    put_remainder_last(list, used, whole);
    return used;
}

void place_tree_descend(struct placer *placer, const struct place_tree *tree, uint32_t level, uint32_t domain,
                        uint64_t tasks, place_leaf_fn *leaf, void *context)
{
    bool root = level == PLACE_NO_LEVEL;
    if (tree->level_count == 0 || (!root && level + 1 == tree->level_count)) {
        leaf(context, root ? PLACE_NO_DOMAIN : domain, tasks);
        return;
    }
    uint32_t next = root ? 0 : level + 1;
    const struct place_level *at = root ? NULL : &tree->levels[level];
    const uint32_t *children = root ? tree->top : at->children + at->first_child[domain];
    uint32_t child_count =
        root ? tree->levels[0].count : at->first_child[domain + 1] - at->first_child[domain];
    struct branch *list = ARENA_ARRAY(&placer->arena, struct branch, child_count);
    size_t count = 0;
    for (uint32_t i = 0; i < child_count; i++)
        if (tree->levels[next].room[children[i]])
            list[count++] = (struct branch){children[i], tree->levels[next].room[children[i]],
                                            tree->levels[next].loose[children[i]], 0};
    size_t used = choose(list, count, tasks, tree->levels[next].whole);
    for (size_t i = 0; i < used; i++)
        place_tree_descend(placer, tree, next, list[i].domain, list[i].take, leaf, context);
}
