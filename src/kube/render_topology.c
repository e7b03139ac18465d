/* render_topology.c - the placement of a PodSet's tasks in Kueue's form (podSetAssignments[].
 * topologyAssignment). If the lowest level is the host name, it is the only level, as it implies the others.
 *
 *     v1beta1   levels: [...]; domains: one each, with a value for every level and a count
 *     v1beta2   levels: [...]; slices: one, with the common parts of a level's values taken out
 */
#include "core/gang/trial.h"
#include "kube/render.h"

/* Tasks of one PodSet that are in the same domain. */
struct domain {
    struct str *values; /* [level_count] */
    int64_t count;
};
struct domains {
    const struct str *levels;
    size_t level_count;
    VEC(struct domain) list;
};

static bool same_values(const struct domains *domains, const struct str *a, const struct str *b)
{
    bool same = true;
    for (size_t l = 0; same && l < domains->level_count; l++)
        same = str_equal(a[l], b[l]);
    return same;
}

static void count_domain(struct domains *domains, struct str *values)
{
    for (size_t i = 0; i < domains->list.len; i++) {
        if (same_values(domains, domains->list.items[i].values, values)) {
            domains->list.items[i].count++;
            return;
        }
    }
    struct domain domain = {values, 1};
    vec_push(&domains->list, domain);
}

static void collect_domains(struct render *render, const struct jobset *jobset, size_t rjob,
                            struct domains *domains)
{
    const struct cluster *cluster = core_cluster(render->core);
    for (uint32_t j = 0; j < jobset->job_count; j++) {
        const struct job *job = jobset->jobs[j];
        for (size_t t = 0; job && job->rjob_index == rjob && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (task->machine >= cluster->machine_count || !task->holds)
                continue;
            struct str *values = ARENA_ARRAY(render->scratch, struct str, domains->level_count);
            for (size_t l = 0; l < domains->level_count; l++)
                machine_label(&cluster->machines[task->machine], domains->levels[l], &values[l]);
            count_domain(domains, values);
        }
    }
}

/* --- v1beta1 ------------------------------------------------------------------------------------- */

static void put_domains(struct json_writer *out, const struct domains *domains)
{
    json_key(out, "domains");
    json_begin_array(out);
    for (size_t i = 0; i < domains->list.len; i++) {
        json_begin_object(out);
        json_key(out, "values");
        json_begin_array(out);
        for (size_t l = 0; l < domains->level_count; l++)
            json_put_str(out, domains->list.items[i].values[l]);
        json_end_array(out);
        json_pair_int(out, "count", domains->list.items[i].count);
        json_end_object(out);
    }
    json_end_array(out);
}

/* --- v1beta2 ------------------------------------------------------------------------------------- */

/* Finds the lengths of the common prefix and suffix of a level's values; the two do not overlap in the
 * shortest value. */
static void find_shared(const struct domains *domains, size_t level, size_t *ret_prefix, size_t *ret_suffix)
{
    struct str first = domains->list.items[0].values[level];
    size_t prefix = first.len, suffix = first.len, shortest = first.len;
    for (size_t i = 1; i < domains->list.len; i++) {
        struct str value = domains->list.items[i].values[level];
        size_t head = 0, tail = 0, most = value.len < first.len ? value.len : first.len;
        while (head < most && value.data[head] == first.data[head])
            head++;
        while (tail < most && value.data[value.len - 1 - tail] == first.data[first.len - 1 - tail])
            tail++;
        prefix = head < prefix ? head : prefix;
        suffix = tail < suffix ? tail : suffix;
        shortest = most < shortest ? most : shortest;
    }
    *ret_prefix = prefix + suffix > shortest ? shortest - suffix : prefix;
    *ret_suffix = suffix;
}

static bool all_equal(const struct domains *domains, size_t level)
{
    for (size_t i = 1; i < domains->list.len; i++)
        if (!str_equal(domains->list.items[i].values[level], domains->list.items[0].values[level]))
            return false;
    return true;
}

static void put_individual(struct json_writer *out, const struct domains *domains, size_t level)
{
    size_t prefix, suffix;
    struct str first = domains->list.items[0].values[level];
    find_shared(domains, level, &prefix, &suffix);
    json_key(out, "individual");
    json_begin_object(out);
    if (prefix)
        json_pair_str(out, "prefix", (struct str){first.data, prefix});
    if (suffix)
        json_pair_str(out, "suffix", (struct str){first.data + first.len - suffix, suffix});
    json_key(out, "roots");
    json_begin_array(out);
    for (size_t i = 0; i < domains->list.len; i++) {
        struct str value = domains->list.items[i].values[level];
        json_put_str(out, (struct str){value.data + prefix, value.len - prefix - suffix});
    }
    json_end_array(out);
    json_end_object(out);
}

static void put_counts(struct json_writer *out, const struct domains *domains)
{
    bool equal = true;
    for (size_t i = 1; i < domains->list.len; i++)
        equal &= domains->list.items[i].count == domains->list.items[0].count;
    json_key(out, "podCounts");
    json_begin_object(out);
    if (equal) {
        json_pair_int(out, "universal", domains->list.items[0].count);
    } else {
        json_key(out, "individual");
        json_begin_array(out);
        for (size_t i = 0; i < domains->list.len; i++)
            json_put_int(out, domains->list.items[i].count);
        json_end_array(out);
    }
    json_end_object(out);
}

static void put_slices(struct json_writer *out, const struct domains *domains)
{
    json_key(out, "slices");
    json_begin_array(out);
    json_begin_object(out);
    json_pair_int(out, "domainCount", (int64_t)domains->list.len);
    json_key(out, "valuesPerLevel");
    json_begin_array(out);
    for (size_t l = 0; l < domains->level_count; l++) {
        json_begin_object(out);
        if (all_equal(domains, l))
            json_pair_str(out, "universal", domains->list.items[0].values[l]);
        else
            put_individual(out, domains, l);
        json_end_object(out);
    }
    json_end_array(out);
    put_counts(out, domains);
    json_end_object(out);
    json_end_array(out);
}

/* --- both ---------------------------------------------------------------------------------------- */

void render_topology(struct render *render, const struct workload *const *all, size_t count, size_t rjob)
{
    struct json_writer *out = &render->out;
    const struct rjob_terms *terms = all[0]->jobset->grant.terms ? &all[0]->jobset->grant.terms[rjob] : NULL;
    if (!terms || !terms->level_count)
        return;
    struct domains domains = {.levels = terms->levels, .level_count = terms->level_count};
    if (str_is(terms->levels[terms->level_count - 1], "kubernetes.io/hostname")) {
        domains.levels = &terms->levels[terms->level_count - 1];
        domains.level_count = 1;
    }
    for (size_t i = 0; i < count; i++)
        if (all[i]->jobset->grant.terms)
            collect_domains(render, all[i]->jobset, rjob, &domains);
    if (domains.list.len > 0) {
        json_key(out, "topologyAssignment");
        json_begin_object(out);
        json_key(out, "levels");
        json_begin_array(out);
        for (size_t l = 0; l < domains.level_count; l++)
            json_put_str(out, domains.levels[l]);
        json_end_array(out);
        if (render->old_form)
            put_domains(out, &domains);
        else
            put_slices(out, &domains);
        json_end_object(out);
    }
    vec_done(&domains.list);
}
