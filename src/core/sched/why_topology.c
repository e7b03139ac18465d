#include "core/sched/place.h"

#include "base/check.h"

enum { MACHINES_SHOWN = 4 };

/* Returns "rack" for phalanx.dev/rack, "machine" for the host name, and any other key as it is. */
static struct str level_name(struct str key)
{
    struct str own = STR("phalanx.dev/");
    if (str_starts(key, own))
        return (struct str){key.data + own.len, key.len - own.len};
    if (str_is(key, "kubernetes.io/hostname"))
        return STR("machine");
    return key;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Returns whether the rule puts several tasks on one machine, so there are fewer machines than tasks. */
static bool share_machines(const struct topology_rule *rule, struct str key)
{
    bool share = str_equal(level_name(key), STR("machine"));
    for (size_t i = 0; i < rule->slice_count; i++)
        share |= str_equal(level_name(rule->slices[i].key), STR("machine"));
    return share;
}

static void put_need(const struct placer *placer, const struct place_job *job, struct str key,
                     struct buf *why)
{
    unsigned long long tasks = placer->failed_tasks;
    const char *state = placer->ideal ? "" : "free ";
    bool whole = !share_machines(job->topology, key);
    for (machine_id id = 0; id < placer->cluster->machine_count; id++)
        whole &= job->chips && placer->cluster->machines[id].chip_count < 2 * job->chips;
    if (whole)
        buf_printf(why, "needs %llu machine%s with %u %s" STR_FORMAT " chip%s", tasks, plural(tasks),
                   job->chips, state, STR_ARG(placer->cluster->chip_resource), plural(job->chips));
    else if (job->chips)
        buf_printf(why, "needs room for %llu task%s of %u %s" STR_FORMAT " chip%s", tasks, plural(tasks),
                   job->chips, state, STR_ARG(placer->cluster->chip_resource), plural(job->chips));
    else
        buf_printf(why, "needs room for %llu task%s", tasks, plural(tasks));
    const struct topology_rule *rule = job->topology;
    for (size_t i = 0; i < rule->slice_count; i++)
        buf_printf(why, " in slices of %d in one " STR_FORMAT, (int)rule->slices[i].size,
                   STR_ARG(level_name(rule->slices[i].key)));
    if (key.len)
        buf_printf(why, " in one " STR_FORMAT, STR_ARG(level_name(key)));
}

/* Appends the domain as a path of names, because rack names need not be unique. */
static void put_domain(const struct placer *placer, const struct place_tree *tree, struct buf *why)
{
    const struct place_level *level = &tree->levels[placer->nearest.level];
    const struct machine *machine = &placer->cluster->machines[level->first[placer->nearest.domain]];
    struct str name = {0}, value;
    machine_label(machine, level->key, &name);
    for (uint32_t l = 0; l < placer->nearest.level; l++)
        if (!tree->levels[l].by_block && tree->levels[l].count > 1 &&
            machine_label(machine, tree->levels[l].key, &value) && !str_starts(name, value))
            buf_printf(why, STR_FORMAT "/", STR_ARG(value));
    buf_add_str(why, name);
}

static void put_machine(const struct placer *placer, machine_id id, enum refusal refusal, struct buf *why)
{
    buf_printf(why, STR_FORMAT " ", STR_ARG(placer->cluster->machines[id].name));
    place_why_cause(refusal, why);
    place_why_behind(placer, refusal, id, why);
}

/* Appends the reason of each machine of the domain that can take no task. */
static void put_machines(const struct placer *placer, const struct place_tree *tree, struct buf *why)
{
    const struct place_level *level = &tree->levels[placer->nearest.level];
    const struct place_job *job = placer->failed->like;
    uint32_t told = 0, more = 0;
    for (machine_id id = 0; id < placer->cluster->machine_count; id++) {
        enum refusal refusal;
        if (level->domain_of[id] != placer->nearest.domain ||
            place_fit(placer, job, id, placer->failed_tasks, false, &refusal))
            continue;
        if (told == MACHINES_SHOWN) {
            more++;
            continue;
        }
        buf_add_str(why, told++ ? STR(", ") : STR(": "));
        put_machine(placer, id, refusal, why);
    }
    if (more)
        buf_printf(why, " and %u more", more);
    if (!told)
        buf_add_str(why, STR(", and no more machines"));
}

bool place_why_topology(const struct placer *placer, struct buf *why)
{
    const struct place_job *job = placer->failed->like;
    const struct place_tree *tree = placer->failed->tree;
    if (!job->topology || job->exclusive_topology.len || !tree)
        return false;
    if (tree->unknown.len) {
        buf_printf(why, "no topology level is called " STR_FORMAT, STR_ARG(tree->unknown));
        return true;
    }
    if (placer->nearest.room == UINT64_MAX || placer->nearest.level == PLACE_NO_LEVEL)
        return false;
    struct str key = tree->levels[placer->nearest.level].key;
    put_need(placer, job, key, why);
    if (placer->nearest.domain == PLACE_NO_DOMAIN) {
        buf_printf(why, "; no machine has the label " STR_FORMAT, STR_ARG(key));
        return true;
    }
    buf_add_str(why, STR("; "));
    put_domain(placer, tree, why);
    buf_printf(why, " has %llu", (unsigned long long)placer->nearest.room);
    put_machines(placer, tree, why);
    return true;
}

bool place_why_slices(const struct placer *placer, struct buf *why)
{
    const struct place_job *job = placer->failed->like;
    if (!job->topology || job->exclusive_topology.len || !placer->failed->tree ||
        placer->nearest.room == UINT64_MAX || placer->nearest.level != PLACE_NO_LEVEL)
        return false;
    CHECK(placer->nearest.room < placer->failed_tasks);
    put_need(placer, job, (struct str){0}, why);
    buf_printf(why, "; there is room for %llu in whole slices", (unsigned long long)placer->nearest.room);
    return true;
}
