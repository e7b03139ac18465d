#include "core/sched/place.h"

#include "base/check.h"

static bool one_tolerates(const struct toleration *tolerations, size_t count, const struct taint *taint)
{
    for (size_t i = 0; i < count; i++) {
        const struct toleration *toleration = &tolerations[i];
        bool exists = str_is(toleration->op, "Exists");
        if (toleration->effect.len && !str_equal(toleration->effect, taint->effect))
            continue;
        if (toleration->key.len ? !str_equal(toleration->key, taint->key) : !exists)
            continue;
        if (exists || str_equal(toleration->value, taint->value))
            return true;
    }
    return false;
}

static bool tolerates(const struct place_job *job, const struct taint *taint)
{
    return one_tolerates(job->tolerations, job->toleration_count, taint) ||
           one_tolerates(job->more_tolerations, job->more_toleration_count, taint);
}

/* Returns whether the taint repels the job. NoSchedule does not apply to jobs that name their machine,
 * because the scheduler does not choose it. */
static bool repels(const struct place_job *job, const struct taint *taint)
{
    return !(job->node_name.len && str_is(taint->effect, "NoSchedule")) && !tolerates(job, taint);
}

/* Returns whether the machine has a taint that repels the job: a PreferNoSchedule one if `soft`, otherwise
 * one with another effect. */
static bool repelled(const struct place_job *job, const struct machine *machine, bool soft)
{
    for (size_t i = 0; i < machine->taint_count; i++)
        if (str_is(machine->taints[i].effect, "PreferNoSchedule") == soft &&
            repels(job, &machine->taints[i]))
            return true;
    return false;
}

static bool has_labels(const struct machine *machine, const struct labels *labels)
{
    for (size_t i = 0; labels && i < labels->len; i++) {
        const struct label *wanted = &labels->items[i];
        struct str value;
        if (!machine_label(machine, wanted->key, &value) || !str_equal(value, wanted->value))
            return false;
    }
    return true;
}

static bool is_value(const struct node_rule *rule, struct str value)
{
    for (size_t i = 0; i < rule->value_count; i++)
        if (str_equal(rule->values[i], value))
            return true;
    return false;
}

static bool meets(const struct machine *machine, const struct node_rule *rule)
{
    struct str value = machine->name;
    bool has = !rule->key.len || machine_label(machine, rule->key, &value);
    int64_t number, bound;
    switch (rule->op) {
    case NODE_IN:
        return has && is_value(rule, value);
    case NODE_NOT_IN:
        return !has || !is_value(rule, value);
    case NODE_EXISTS:
        return has;
    case NODE_DOES_NOT_EXIST:
        return !has;
    case NODE_GT:
    case NODE_LT:
        break;
    }
    CHECK(rule->op == NODE_GT || rule->op == NODE_LT);
    if (!has || rule->value_count != 1 || !str_to_i64(value, INT64_MIN, INT64_MAX, &number) ||
        !str_to_i64(rule->values[0], INT64_MIN, INT64_MAX, &bound))
        return false;
    return rule->op == NODE_GT ? number > bound : number < bound;
}

/* Returns whether the machine satisfies all rules of one of the job's terms, or the job has no terms. */
static bool has_affinity(const struct machine *machine, const struct place_job *job)
{
    for (size_t t = 0; t < job->node_term_count; t++) {
        const struct node_term *term = &job->node_terms[t];
        bool all = term->rule_count > 0;
        for (size_t r = 0; all && r < term->rule_count; r++)
            all = meets(machine, &term->rules[r]);
        if (all)
            return true;
    }
    return job->node_term_count == 0;
}

bool sched_matches(const struct place_job *job, const struct machine *machine)
{
    return has_labels(machine, job->node_selector) && has_labels(machine, job->more_labels) &&
           has_affinity(machine, job);
}

bool sched_repels(const struct place_job *job, const struct machine *machine)
{
    return repelled(job, machine, false);
}

/* Judges the machine by the inventory alone: its chips, labels and role. */
static enum refusal judge_inventory(const struct place_job *job, const struct machine *machine,
                                    bool use_spares)
{
    struct str domain;
    if (job->exclusive_topology.len && !machine_label(machine, job->exclusive_topology, &domain))
        return REFUSED_LABEL;
    if (job->node_name.len && !str_equal(machine->name, job->node_name))
        return REFUSED_NAME;
    if (!sched_matches(job, machine))
        return REFUSED_SELECTOR;
    if (machine->chip_count < job->chips)
        return REFUSED_SMALL;
    if (machine->spare && !use_spares && !job->node_name.len)
        return REFUSED_SPARE;
    return FITS;
}

static enum refusal judge_state(const struct place_job *job, const struct machine *machine)
{
    if (machine->state != MACHINE_READY)
        return machine->state == MACHINE_LOST   ? REFUSED_LOST
               : machine->state == MACHINE_AWAY ? REFUSED_AWAY
                                                : REFUSED_UNSEEN;
    if (!machine_schedulable(machine) && !job->node_name.len)
        return machine->isolation == ISOLATION_DRAINING  ? REFUSED_DRAINING
               : isolation_is_out(machine->isolation) ? REFUSED_QUARANTINED
               : machine->task_count > 0                 ? REFUSED_CORDONED
                                                         : REFUSED_DRAINED;
    return repelled(job, machine, false) ? REFUSED_TAINT : FITS;
}

/* Judges exclusive domains for jobs that are not exclusive. place_domain.c judges them for exclusive jobs,
 * because the jobs of a shape use different domains. */
static enum refusal judge_domain(const struct placer *placer, const struct place_job *job, machine_id id)
{
    if (job->exclusive_topology.len)
        return FITS;
    if (placer->claimed[id])
        return REFUSED_GANG;
    if (!placer->ideal && placer->request->domain_owner && placer->request->domain_owner[id])
        return REFUSED_OWNED;
    return FITS;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns how many tasks fit into the free part of a capacity. A capacity of 0 is unknown and no limit. */
static uint64_t room(int64_t capacity, int64_t used, int64_t taken, int64_t each, uint64_t most)
{
    CHECK(capacity >= 0 && taken >= 0 && each >= 0);
    if (!capacity || !each)
        return most;
    int64_t left = capacity - used - taken;
    return left < each ? 0 : least(most, (uint64_t)(left / each));
}

/* Returns how many tasks the machine's cpu allows. `kept`: resources reserved for others count as used. */
static uint64_t room_cpu(const struct placer *placer, const struct place_job *job,
                         const struct machine *machine, uint64_t most, bool kept)
{
    const int64_t *own = placer->request->own_cpu_milli, *others = placer->request->reserved_cpu_milli;
    int64_t used = placer->ideal ? 0 : machine->cpu_used_milli - (own ? own[machine->id] : 0);
    used += kept && others && !placer->ideal ? others[machine->id] : 0;
    return room(machine->cpu_milli, used, placer->cpu_milli[machine->id], job->cpu_milli, most);
}

static uint64_t room_memory(const struct placer *placer, const struct place_job *job,
                            const struct machine *machine, uint64_t most, bool kept)
{
    const int64_t *own = placer->request->own_memory_bytes, *others = placer->request->reserved_memory_bytes;
    int64_t used = placer->ideal ? 0 : machine->memory_used_bytes - (own ? own[machine->id] : 0);
    used += kept && others && !placer->ideal ? others[machine->id] : 0;
    return room(machine->memory_bytes, used, placer->memory_bytes[machine->id], job->memory_bytes, most);
}

static enum refusal judge_rest(const struct placer *placer, const struct place_job *job,
                               const struct machine *machine, uint64_t *ret_most)
{
    uint64_t wanted = *ret_most;
    *ret_most = room_cpu(placer, job, machine, wanted, true);
    if (!*ret_most)
        return room_cpu(placer, job, machine, wanted, false) ? REFUSED_RESERVED : REFUSED_CPU;
    wanted = *ret_most;
    *ret_most = room_memory(placer, job, machine, wanted, true);
    if (!*ret_most)
        return room_memory(placer, job, machine, wanted, false) ? REFUSED_RESERVED : REFUSED_MEMORY;
    return FITS;
}

static enum refusal judge_chips(const struct placer *placer, const struct place_job *job,
                                const struct machine *machine, uint64_t *ret_most)
{
    if (!job->chips)
        return FITS;
    uint32_t free = (uint32_t)__builtin_popcountll(placer->free[machine->id]);
    if (free >= job->chips) {
        *ret_most = least(*ret_most, job->chips == 1 ? free : free / job->chips);
        return FITS;
    }
    if (placer->load[machine->id])
        return REFUSED_GANG;
    const uint64_t *reserved = placer->ideal ? NULL : placer->request->reserved;
    uint64_t kept = reserved ? reserved[machine->id] & machine->free_mask : 0;
    bool reserved_only = (uint32_t)__builtin_popcountll(placer->free[machine->id] | kept) >= job->chips;
    return reserved_only ? REFUSED_RESERVED : REFUSED_TAKEN;
}

uint32_t place_fit(const struct placer *placer, const struct place_job *job, machine_id id, uint64_t most,
                   bool stays, enum refusal *ret_refusal)
{
    CHECK(id < placer->cluster->machine_count);
    const struct machine *machine = &placer->cluster->machines[id];
    enum refusal refusal = judge_inventory(job, machine, stays || placer->request->use_spares);
    uint64_t wanted = most;
    if (refusal == FITS && !placer->ideal)
        refusal = judge_state(job, machine);
    if (refusal == FITS && placer->request->closed && placer->request->closed[id])
        refusal = REFUSED_CLOSED;
    if (refusal == FITS)
        refusal = judge_domain(placer, job, id);
    if (refusal == FITS)
        refusal = judge_chips(placer, job, machine, &most);
    if (refusal == FITS && (machine->cpu_milli || machine->memory_bytes))
        refusal = judge_rest(placer, job, machine, &most);
    CHECK(refusal < REFUSALS && (refusal != FITS || most <= wanted));
    *ret_refusal = refusal;
    return refusal == FITS ? (uint32_t)least(most, UINT32_MAX) : 0;
}

uint8_t place_class(const struct placer *placer, const struct place_job *job, machine_id id)
{
    CHECK(id < placer->cluster->machine_count);
    const struct machine *machine = &placer->cluster->machines[id];
    uint8_t class = machine->spare ? CLASS_SPARE : 0;
    if (placer->avoid && placer->avoid[id])
        class |= CLASS_AVOID;
    if (!placer->ideal && machine->taint_count && repelled(job, machine, true))
        class |= CLASS_PREFER_NO;
    CHECK(class < CLASSES);
    return class;
}

bool place_usable(const struct cluster *cluster, const struct place_job *job, machine_id id, bool use_spares)
{
    CHECK(id < cluster->machine_count);
    const struct machine *machine = &cluster->machines[id];
    return judge_inventory(job, machine, use_spares) == FITS &&
           (!machine->cpu_milli || machine->cpu_milli >= job->cpu_milli) &&
           (!machine->memory_bytes || machine->memory_bytes >= job->memory_bytes);
}
