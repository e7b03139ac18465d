#include "core/sched/place.h"

#include <stdlib.h>

#include "base/check.h"

#define NO_DOMAIN UINT32_MAX

/* The machines with one value of the topology label. */
struct domain {
    uint32_t first, count; /* in domains.members */
    uint32_t pod;          /* pod of its first machine */
    obj_id holders[2];     /* jobs with tasks in it, the first two found; 0: none */
    obj_id owner;          /* the job that holds it exclusively; 0: none */
    bool claimed;          /* claimed by a job of this gang */
    uint64_t room[3];      /* places: without spares and avoided machines, with spares, with all machines */
    uint32_t votes;        /* tasks of the present job that were in the domain */
};
struct domains {
    struct domain *list;
    uint32_t count;
    uint32_t *domain_of; /* [machine_count] or NO_DOMAIN */
    machine_id *members; /* machines by domain, ascending within each */
    uint32_t target_pod; /* a pod with domains for all jobs of the shape, or UINT32_MAX */
};

static uint32_t domain_by_value(struct domains *domains, struct str_map *index, struct str value)
{
    struct domain *known = str_map_get(index, value);
    if (known)
        return (uint32_t)(known - domains->list);
    CHECK(domains->list[domains->count].count == 0); /* the next entry is unused */
    str_map_put(index, value, &domains->list[domains->count]);
    return domains->count++;
}

static void find_members(const struct placer *placer, struct str key, struct arena *arena,
                         struct domains *domains)
{
    const struct cluster *cluster = placer->cluster;
    struct str_map index = {0};
    struct str value, last = {0};
    uint32_t last_domain = NO_DOMAIN;
    domains->list = ARENA_ARRAY(arena, struct domain, cluster->machine_count);
    domains->domain_of = ARENA_ARRAY(arena, uint32_t, cluster->machine_count);
    domains->members = ARENA_ARRAY(arena, machine_id, cluster->machine_count);
    for (machine_id id = 0; id < cluster->machine_count; id++) {
        domains->domain_of[id] = NO_DOMAIN;
        if (!machine_label(&cluster->machines[id], key, &value))
            continue;
        if (last_domain == NO_DOMAIN || !str_equal(value, last)) /* neighbouring machines mostly share it */
            last_domain = domain_by_value(domains, &index, value);
        last = value;
        domains->domain_of[id] = last_domain;
        if (!domains->list[last_domain].count++)
            domains->list[last_domain].pod = cluster->machines[id].pod;
    }
    CHECK(domains->count <= cluster->machine_count);
    str_map_done(&index);
    uint32_t next = 0;
    for (uint32_t d = 0; d < domains->count; d++) {
        domains->list[d].first = next;
        next += domains->list[d].count;
        domains->list[d].count = 0;
    }
    CHECK(next <= cluster->machine_count);
    for (machine_id id = 0; id < cluster->machine_count; id++)
        if (domains->domain_of[id] != NO_DOMAIN) {
            struct domain *domain = &domains->list[domains->domain_of[id]];
            domains->members[domain->first + domain->count++] = id;
        }
}

static void note_holder(struct domain *domain, obj_id job)
{
    if (!job || domain->holders[0] == job || domain->holders[1] == job)
        return;
    if (!domain->holders[0])
        domain->holders[0] = job;
    else if (!domain->holders[1])
        domain->holders[1] = job;
}

/* Finds the jobs of other gangs in each domain, machine by machine. */
static void find_holders(const struct placer *placer, struct domains *domains)
{
    const struct cluster *cluster = placer->cluster;
    for (machine_id id = 0; id < cluster->machine_count; id++) {
        if (domains->domain_of[id] == NO_DOMAIN)
            continue;
        struct domain *domain = &domains->list[domains->domain_of[id]];
        domain->claimed |= placer->claimed[id] != 0;
        if (placer->ideal)
            continue;
        if (placer->request->domain_owner && placer->request->domain_owner[id])
            domain->owner = placer->request->domain_owner[id];
        if (!placer->occupant || !cluster->machines[id].task_count)
            continue;
        obj_id one = placer->occupant(placer->context, id, 0);
        note_holder(domain, one);
        if (one)
            note_holder(domain, placer->occupant(placer->context, id, one));
    }
}

/* Computes the places for the shape in each domain. Leaves the placer's pool empty. */
static void find_room(struct placer *placer, const struct shape *shape, struct domains *domains)
{
    place_pool(placer, shape->like, shape->tasks);
    for (size_t i = 0; i < placer->pool_len; i++) {
        machine_id id = placer->pool[i];
        CHECK(domains->domain_of[id] != NO_DOMAIN); /* place_fit refuses machines without the label */
        struct domain *domain = &domains->list[domains->domain_of[id]];
        uint8_t class = placer->class[id];
        for (int level = class >= CLASS_AVOID ? 2 : class >= CLASS_SPARE ? 1 : 0; level < 3; level++)
            domain->room[level] += placer->fits[id];
        placer->fits[id] = 0;
    }
    placer->pool_len = 0;
}

/* Returns whether a job that has no running task may use the domain. */
static bool open_to(const struct domain *domain, obj_id job)
{
    return !domain->claimed && !domain->holders[0] && (!domain->owner || domain->owner == job);
}

/* Chooses a pod with enough domains for the whole shape: the one with the most tasks of the gang, then the
 * one with the fewest such domains. */
static void find_target_pod(struct placer *placer, const struct shape *shape, struct domains *domains,
                            uint64_t most)
{
    uint32_t *usable = ARENA_ARRAY(&placer->arena, uint32_t, placer->cluster->pod_count);
    domains->target_pod = UINT32_MAX;
    for (uint32_t d = 0; d < domains->count; d++)
        usable[domains->list[d].pod] += open_to(&domains->list[d], 0) && domains->list[d].room[2] >= most;
    uint32_t best = UINT32_MAX;
    for (uint32_t p = 0; p < placer->cluster->pod_count; p++)
        if (usable[p] >= shape->job_count &&
            (best == UINT32_MAX || placer->pod_load[p] > placer->pod_load[best] ||
             (placer->pod_load[p] == placer->pod_load[best] && usable[p] < usable[best])))
            best = p;
    CHECK(best == UINT32_MAX || usable[best] >= shape->job_count);
    domains->target_pod = best;
}

static int level_of(const struct domain *domain, uint64_t tasks)
{
    return domain->room[0] >= tasks ? 0 : domain->room[1] >= tasks ? 1 : 2;
}

static bool better_domain(const struct placer *placer, const struct domains *domains, const struct domain *a,
                          const struct domain *b, uint64_t tasks)
{
    int a_level = level_of(a, tasks), b_level = level_of(b, tasks);
    bool a_target = a->pod == domains->target_pod, b_target = b->pod == domains->target_pod;
    if (a->votes != b->votes)
        return a->votes > b->votes;
    if (a_level != b_level)
        return a_level < b_level;
    if (a_target != b_target)
        return a_target;
    if (placer->pod_load[a->pod] != placer->pod_load[b->pod])
        return placer->pod_load[a->pod] > placer->pod_load[b->pod];
    return a->room[2] < b->room[2];
}

static void vote(const struct placer *placer, const struct place_job *job, struct domains *domains, bool keep)
{
    for (uint32_t d = 0; d < domains->count; d++)
        domains->list[d].votes = 0;
    for (uint32_t t = 0; keep && job->prefer && t < job->count; t++) {
        machine_id id = job->prefer[t];
        if (id < placer->cluster->machine_count && !placer->avoid[id] && domains->domain_of[id] != NO_DOMAIN)
            domains->list[domains->domain_of[id]].votes++;
    }
}

static bool holds(const struct domain *domain, obj_id job)
{
    return job && (domain->holders[0] == job || domain->holders[1] == job);
}

/* Returns whether the job has running tasks. They bind its other tasks to their domain, which other jobs may
 * use as well. */
static bool is_bound(const struct domains *domains, obj_id job)
{
    for (uint32_t d = 0; d < domains->count; d++)
        if (holds(&domains->list[d], job))
            return true;
    return false;
}

static struct domain *choose_domain(struct placer *placer, const struct place_job *job,
                                    struct domains *domains, bool keep)
{
    struct domain *best = NULL;
    bool bound = is_bound(domains, job->job);
    vote(placer, job, domains, keep);
    memset(&placer->domains, 0, sizeof placer->domains);
    for (uint32_t d = 0; d < domains->count; d++) {
        struct domain *domain = &domains->list[d];
        placer->domains.all++;
        if (bound ? !holds(domain, job->job) : !open_to(domain, job->job)) {
            placer->domains.occupied++;
            continue;
        }
        if (domain->room[2] > placer->domains.largest)
            placer->domains.largest = domain->room[2];
        if (domain->room[2] < job->count) {
            placer->domains.small++;
            continue;
        }
        if (!best || better_domain(placer, domains, domain, best, job->count))
            best = domain;
    }
    CHECK(!best || best->room[2] >= job->count);
    CHECK(placer->domains.occupied + placer->domains.small <= placer->domains.all);
    return best;
}

static void place_in_domain(struct placer *placer, uint32_t index, struct domains *domains,
                            struct domain *domain, bool keep)
{
    const struct place_job *job = &placer->request->jobs[index];
    enum refusal refusal;
    CHECK(domain >= domains->list && domain < domains->list + domains->count && domain->count > 0);
    domain->claimed = true;
    for (uint32_t i = 0; i < domain->count; i++)
        placer->claimed[domains->members[domain->first + i]] = index + 1;
    uint64_t tasks = job->count;
    if (keep)
        tasks -= place_keep(placer, index, domains->domain_of, (uint32_t)(domain - domains->list));
    CHECK(tasks <= job->count);
    placer->pool_len = 0;
    for (uint32_t i = 0; i < domain->count && tasks; i++) {
        machine_id id = domains->members[domain->first + i];
        placer->fits[id] = place_fit(placer, job, id, tasks, false, &refusal);
        if (!placer->fits[id])
            continue;
        placer->class[id] = place_class(placer, job, id);
        placer->pool[placer->pool_len++] = id;
    }
    place_fill(placer, job, tasks);
    place_hand_out(placer, &index, 1);
    for (size_t i = 0; i < placer->pool_len; i++)
        placer->fits[placer->pool[i]] = 0;
    placer->pool_len = 0;
}

/* Jobs that were placed before choose first, then large jobs: a domain for a large job also fits a small
 * one. */
struct waiting_job {
    uint32_t index, count;
    bool was_placed;
};
static int compare_waiting(const void *a_job, const void *b_job)
{
    const struct waiting_job *a = a_job, *b = b_job;
    if (a->was_placed != b->was_placed)
        return a->was_placed ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool was_placed(const struct place_job *job)
{
    for (uint32_t t = 0; job->prefer && t < job->count; t++)
        if (job->prefer[t] != MACHINE_NONE)
            return true;
    return false;
}

bool place_domains(struct placer *placer, const struct shape *shape, bool keep)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct domains domains = {0};
    struct waiting_job *jobs = ARENA_ARRAY(&arena, struct waiting_job, shape->job_count);
    uint64_t most = 0;
    for (size_t i = 0; i < shape->job_count; i++) {
        const struct place_job *job = &placer->request->jobs[shape->jobs[i]];
        jobs[i] = (struct waiting_job){shape->jobs[i], job->count, keep && was_placed(job)};
        most = job->count > most ? job->count : most;
    }
    CHECK(shape->job_count > 0 && shape->like->exclusive_topology.len > 0);
    qsort(jobs, shape->job_count, sizeof *jobs, compare_waiting);
    find_members(placer, shape->like->exclusive_topology, &arena, &domains);
    find_holders(placer, &domains);
    find_room(placer, shape, &domains);
    find_target_pod(placer, shape, &domains, most);
    for (size_t i = 0; i < shape->job_count; i++) {
        const struct place_job *job = &placer->request->jobs[jobs[i].index];
        if (!job->count)
            continue;
        struct domain *domain = choose_domain(placer, job, &domains, keep);
        if (!domain) {
            placer->failed = shape;
            placer->failed_tasks = job->count;
            return false;
        }
        place_in_domain(placer, jobs[i].index, &domains, domain, keep);
    }
    return true;
}
