#include "core/gang/request.h"

#include "core/health/fault.h"
#include "core/sched/capacity.h"

/* --- tasks ------------------------------------------------------------------------------------ */

static const struct rjob_terms *terms_of(const struct request *request, uint32_t rjob)
{
    const struct rjob_terms *terms = request->trial ? request->trial->terms : request->jobset->grant.terms;
    return terms ? &terms[request->first_podset + rjob] : NULL;
}

static const struct gang_rule *gang_rule(const struct jobset *jobset, uint32_t rjob)
{
    const struct gang_rule *rules = jobset->spec.gang_rules;
    return rules && rules[rjob].topology.mode ? &rules[rjob] : NULL;
}

/* Returns the topology of the replicated job's tasks, or NULL. The one in spec.scheduling, for the gang,
 * takes precedence over the one in the pod template. */
static const struct topology_rule *topology_of(const struct jobset *jobset, uint32_t rjob)
{
    const struct gang_rule *rule = gang_rule(jobset, rjob);
    const struct topology_rule *own = &jobset->spec.rjobs[rjob].job.pod.topology;
    return rule ? &rule->topology : own->mode ? own : NULL;
}

/* Returns the number of the Job's podset. Jobs with equal numbers are placed as one unit: those of a
 * replicated job, of a podset group, or of a gang. */
static uint64_t podset_of(const struct jobset *jobset, uint32_t rjob, uint32_t job_index)
{
    const struct topology_rule *own = &jobset->spec.rjobs[rjob].job.pod.topology;
    const struct gang_rule *rule = gang_rule(jobset, rjob);
    if (rule && rule->per_job)
        return 2 * ((uint64_t)rjob * TASKS_PER_JOBSET_MAX + job_index) + 1;
    for (uint32_t r = 0; r < rjob; r++) {
        const struct gang_rule *other = gang_rule(jobset, r);
        bool same = rule ? other && other->group == rule->group && !other->per_job
                         : !other && own->group.len &&
                               str_equal(jobset->spec.rjobs[r].job.pod.topology.group, own->group);
        if (same)
            return 2 * (uint64_t)r;
    }
    return 2 * (uint64_t)rjob;
}

/* Adds the node label and toleration of JobSet's other form of exclusive placement, in which the
 * administrator labels the nodes of each Job and keeps other pods away with a taint. */
static void add_job_selector(struct request *request, uint32_t rjob, uint32_t job, struct place_job *place)
{
    const struct jobset *jobset = request->jobset;
    size_t labels = place->more_labels ? place->more_labels->len : 0,
           tolerations = place->more_toleration_count;
    struct labels *list = ARENA_NEW(&request->arena, struct labels);
    *list = (struct labels){ARENA_ARRAY(&request->arena, struct label, labels + 1), labels + 1};
    struct toleration *all = ARENA_ARRAY(&request->arena, struct toleration, tolerations + 1);
    if (labels)
        mem_copy(list->items, place->more_labels->items, labels * sizeof(*list->items));
    if (tolerations)
        mem_copy(all, place->more_tolerations, tolerations * sizeof(*all));
    struct str name = job_name(&request->arena, jobset->name, jobset->spec.rjobs[rjob].name, (int32_t)job);
    list->items[labels] = (struct label){
        STR("alpha.jobset.sigs.k8s.io/namespaced-job"),
        arena_printf(&request->arena, STR_FORMAT "_" STR_FORMAT, STR_ARG(jobset->namespace_), STR_ARG(name))};
    all[tolerations] = (struct toleration){STR("alpha.jobset.sigs.k8s.io/no-schedule"), STR("Exists"),
                                           STR(""), STR("NoSchedule")};
    place->more_labels = list;
    place->more_tolerations = all;
    place->more_toleration_count = tolerations + 1;
}

static void add_job(struct request *request, uint32_t rjob_index, uint32_t job_index, obj_id uid,
                    uint32_t count)
{
    CHECK(rjob_index < request->jobset->spec.rjob_count && count > 0);
    const struct rjob_spec *rjob = &request->jobset->spec.rjobs[rjob_index];
    const struct pod_spec *pod = &rjob->job.pod;
    const struct rjob_terms *terms = terms_of(request, rjob_index);
    struct place_job place = {
        .count = count,
        .chips = pod->chips,
        .cpu_milli = pod->cpu_request_milli,
        .memory_bytes = pod->memory_request_bytes,
        .node_selector = &pod->node_selector,
        .node_name = pod->node_name,
        .tolerations = pod->tolerations,
        .toleration_count = pod->toleration_count,
        .exclusive_topology = rjob->exclusive_topology,
        .job = uid,
    };
    place.node_terms = pod->node_terms;
    place.node_term_count = pod->node_term_count;
    if (terms) {
        place.more_labels = &terms->node_labels;
        place.more_tolerations = terms->tolerations;
        place.more_toleration_count = terms->toleration_count;
    }
    if (rjob->node_selector_strategy)
        add_job_selector(request, rjob_index, job_index, &place);
    place.topology = topology_of(request->jobset, rjob_index);
    if (place.topology) {
        place.podset = podset_of(request->jobset, rjob_index, job_index);
        place.levels = terms ? terms->levels : NULL;
        place.level_count = terms ? terms->level_count : 0;
    }
    vec_push(&request->jobs, place);
    vec_push(&request->rjobs, rjob_index);
    vec_push(&request->indexes, job_index);
}

/* Adds a task to the place_job that was added last. `slot` is the task's index in the JobSet. */
static void add_task(struct request *request, uint32_t slot)
{
    CHECK(slot < request->jobset->slots.count);
    vec_push(&request->prefer, request->jobset->slots.last_machines[slot]);
    vec_push(&request->ordinals, slot);
    vec_push(&request->slots, slot);
}

/* Adds a spare. It is placed near its Job's ranks, on whose machines it may not be; its ordinal follows
 * theirs where tasks are counted in slices. */
static void add_spare(struct request *request, const struct task *task)
{
    CHECK(task_is_spare(task) && !request->closed);
    const struct job *job = task->job;
    const struct jobset *jobset = request->jobset;
    size_t count = request->cluster->machine_count;
    vec_push(&request->prefer,
             job->index_count ? jobset->slots.last_machines[job->first_slot] : MACHINE_NONE);
    vec_push(&request->ordinals, jobset->slots.count);
    request->closed = mem_alloc(count * sizeof(*request->closed));
    for (uint32_t i = 0; i < jobset->job_count; i++)
        for (size_t t = 0; jobset->jobs[i] && t < jobset->jobs[i]->tasks.len; t++) {
            const struct task *rank = jobset->jobs[i]->tasks.items[t];
            if (!task_ended(rank->state) && rank->machine != MACHINE_NONE)
                request->closed[rank->machine] = 1;
        }
}

/* Adds the first `count` tasks of the gang. Consecutive tasks of one Job become one place_job. */
static void add_tasks(struct request *request, const struct gang *gang, size_t count)
{
    const struct jobset *jobset = gang->jobset;
    CHECK(count > 0 && count <= gang->tasks.len);
    vec_reserve(&request->prefer, count);
    vec_reserve(&request->ordinals, count);
    vec_reserve(&request->slots, count);
    for (size_t t = 0; t < count; t++) {
        const struct task *task = gang->tasks.items[t];
        const struct job *job = task->job;
        if (task_is_spare(task)) {
            add_spare(request, task);
        } else {
            CHECK(job->first_slot + (uint32_t)task->index < jobset->slots.count);
            add_task(request, job->first_slot + (uint32_t)task->index);
        }
        if (request->jobs.len && vec_last(&request->jobs).job == job->uid)
            vec_last(&request->jobs).count++;
        else
            add_job(request, job->rjob_index, job->index, job->uid, 1);
    }
}

/* Returns the number of tasks in one Job of the replicated job. */
static int32_t task_count(const struct rjob_spec *rjob)
{
    const struct job_spec *job = &rjob->job;
    return job->completions >= 0 && job->completions < job->parallelism ? job->completions : job->parallelism;
}

int32_t rjob_task_count(const struct rjob_spec *rjob)
{
    CHECK((int64_t)rjob->replicas * task_count(rjob) <= INT32_MAX);
    return rjob->replicas * task_count(rjob);
}

/* Adds all tasks as gang_form would make them, in the order of the spec. */
static void add_all_tasks(struct request *request)
{
    const struct jobset *jobset = request->jobset;
    const int32_t *counts = request->trial->counts;
    uint32_t position = 0, slot = 0;
    for (uint32_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_spec *rjob = &jobset->spec.rjobs[r];
        int32_t left = counts ? counts[request->first_podset + r] : rjob_task_count(rjob);
        CHECK(left >= 0 && left <= rjob_task_count(rjob));
        for (int32_t i = 0; i < rjob->replicas; i++, position++, slot += jobset->widths[r]) {
            int32_t count = left < task_count(rjob) ? left : task_count(rjob);
            left -= count;
            for (int32_t t = 0; t < count; t++)
                add_task(request, slot + (uint32_t)t);
            if (count)
                add_job(request, r, (uint32_t)i, jobset->jobs[position] ? jobset->jobs[position]->uid : 0,
                        (uint32_t)count);
        }
    }
    CHECK(position == jobset->job_count && slot == jobset->slots.count);
}

static void bind_prefer(struct request *request)
{
    size_t first = 0;
    for (size_t j = 0; j < request->jobs.len; j++) {
        request->jobs.items[j].prefer = &request->prefer.items[first];
        request->jobs.items[j].ordinals = &request->ordinals.items[first];
        uint32_t slot = jobset_first_slot(request->jobset, request->rjobs.items[j], 0);
        for (uint32_t t = 0; t < request->jobs.items[j].count; t++)
            request->ordinals.items[first + t] -= slot;
        first += request->jobs.items[j].count;
    }
    for (size_t t = 0; request->trial && request->trial->with_count && t < first; t++)
        request->ordinals.items[t] = (uint32_t)t; /* Pods of a group have consecutive ordinals */
    CHECK(first == request->prefer.len);
}

/* --- placed tasks ----------------------------------------------------------------------------- */

/* Adds the placed tasks of the podset outside of the gang, which bind it to their domains. Tasks of other
 * replicated jobs of the group have no ordinal here: they are in no slice of this replicated job. */
static void find_others(struct request *request, const struct gang *gang, uint32_t rjob, uint32_t job_index)
{
    const struct jobset *jobset = request->jobset;
    for (uint32_t j = 0; j < jobset->job_count; j++) {
        const struct job *job = jobset->jobs[j];
        if (!job || !job->active || !topology_of(jobset, job->rjob_index) ||
            podset_of(jobset, job->rjob_index, job->index) != podset_of(jobset, rjob, job_index))
            continue;
        for (size_t t = 0; t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!task->holds || task->doomed || task->gang == gang)
                continue;
            uint32_t ordinal = job->first_slot + (uint32_t)task->index - jobset_first_slot(jobset, rjob, 0);
            struct placed_task other = {job->rjob_index == rjob ? ordinal : UINT32_MAX, task->machine};
            vec_push(&request->others, other);
        }
    }
}

static void bind_others(struct request *request, const struct gang *gang)
{
    struct span {
        uint64_t podset;
        uint32_t rjob;
        size_t first, end;
    } *spans = mem_alloc((request->jobs.len + 1) * sizeof(*spans));
    for (size_t j = 0; j < request->jobs.len; j++) {
        const struct place_job *job = &request->jobs.items[j];
        const struct span *before = j ? &spans[j - 1] : NULL;
        spans[j] = (struct span){job->podset, request->rjobs.items[j], request->others.len, 0};
        if (job->topology && before && before->podset == job->podset && before->rjob == spans[j].rjob)
            spans[j].first = before->first;
        else if (job->topology)
            find_others(request, gang, spans[j].rjob, request->indexes.items[j]);
        spans[j].end = request->others.len;
    }
    for (size_t j = 0; request->others.len && j < request->jobs.len; j++) {
        request->jobs.items[j].others = request->others.items + spans[j].first;
        request->jobs.items[j].other_count = spans[j].end - spans[j].first;
    }
    mem_free(spans);
}

/* --- resources that may be taken over --------------------------------------------------------- */

static void make_own(struct request *request)
{
    size_t count = request->cluster->machine_count;
    if (request->own_chips)
        return;
    request->own_chips = mem_alloc(count * sizeof(*request->own_chips));
    request->own_cpu_milli = mem_alloc(count * sizeof(*request->own_cpu_milli));
    request->own_memory_bytes = mem_alloc(count * sizeof(*request->own_memory_bytes));
}

static bool add_own_task(struct request *request, const struct task *task)
{
    if (!task->holds || !machine_schedulable(&request->cluster->machines[task->machine]))
        return false;
    make_own(request);
    request->own_chips[task->machine] |= task->chips;
    request->own_cpu_milli[task->machine] += task->cpu_milli;
    request->own_memory_bytes[task->machine] += task->memory_bytes;
    return true;
}

/* Adds the resources of this JobSet's own ending tasks, which the next attempt may take over. */
static void add_own(struct request *request)
{
    const struct jobset *jobset = request->jobset;
    for (size_t i = 0; i < jobset->old_jobs.len; i++) {
        const struct job *old = jobset->old_jobs.items[i];
        for (size_t t = 0; t < old->tasks.len; t++)
            add_own_task(request, old->tasks.items[t]);
        for (size_t s = 0; s < old->spares.len; s++)
            add_own_task(request, old->spares.items[s]);
    }
}

bool request_add_spares(struct request *request, const struct gang *gang)
{
    CHECK(gang->state == GANG_QUEUED);
    bool some = false;
    request->yields_to = gang;
    for (size_t i = 0; i < request->store->jobsets.len; i++) {
        const struct jobset *jobset = request->store->jobsets.items[i];
        for (uint32_t j = 0; j < jobset->job_count; j++)
            for (size_t s = 0; jobset->jobs[j] && s < jobset->jobs[j]->spares.len; s++) {
                const struct task *task = jobset->jobs[j]->spares.items[s];
                some |= spare_gives_way(task, gang) && add_own_task(request, task);
            }
    }
    request->place.own_chips = request->own_chips;
    request->place.own_cpu_milli = request->own_cpu_milli;
    request->place.own_memory_bytes = request->own_memory_bytes;
    return some;
}

/* Adds the resources that a trial's victims would free. */
static void add_may_free(struct request *request)
{
    const struct trial *trial = request->trial;
    if (!trial->may_free && !trial->may_free_cpu_milli && !trial->may_free_memory_bytes)
        return;
    make_own(request);
    for (size_t m = 0; m < request->cluster->machine_count; m++) {
        if (trial->may_free)
            request->own_chips[m] |= trial->may_free[m];
        if (trial->may_free_cpu_milli)
            request->own_cpu_milli[m] += trial->may_free_cpu_milli[m];
        if (trial->may_free_memory_bytes)
            request->own_memory_bytes[m] += trial->may_free_memory_bytes[m];
    }
}

static void reserve_room(struct request *request, const struct room *room)
{
    CHECK(room->machine < request->cluster->machine_count);
    request->reserved[room->machine] |= room->chips;
    request->reserved_cpu_milli[room->machine] += room->cpu_milli;
    request->reserved_memory_bytes[room->machine] += room->memory_bytes;
}

/* Subtracts the resources that the victim's tasks still hold, which would be counted twice because they are
 * reserved for the preemptor already. */
static void allow_for_promised(struct request *request, const struct jobset *victim)
{
    for (uint32_t j = 0; j < victim->job_count; j++) {
        const struct job *job = victim->jobs[j];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!task->holds)
                continue;
            request->reserved_cpu_milli[task->machine] -= task->cpu_milli;
            request->reserved_memory_bytes[task->machine] -= task->memory_bytes;
        }
    }
}

static void not_below_zero(int64_t *amount)
{
    *amount = *amount > 0 ? *amount : 0;
}

/* Adds the reservations of other gangs. */
static void add_reserved(struct request *request)
{
    size_t count = request->cluster->machine_count;
    if (request->store->reserving.len == (request->jobset->grant.reserved_count > 0))
        return;
    request->reserved = mem_alloc(count * sizeof(*request->reserved));
    request->reserved_cpu_milli = mem_alloc(count * sizeof(*request->reserved_cpu_milli));
    request->reserved_memory_bytes = mem_alloc(count * sizeof(*request->reserved_memory_bytes));
    for (size_t i = 0; i < request->store->jobsets.len; i++) {
        const struct jobset *other = request->store->jobsets.items[i];
        for (size_t r = 0; other != request->jobset && r < other->grant.reserved_count; r++)
            reserve_room(request, &other->grant.reserved[r]);
        if (other->grant.promised)
            allow_for_promised(request, other);
    }
    const uint64_t *may_free = request->trial ? request->trial->may_free : NULL;
    for (size_t m = 0; m < count; m++) {
        request->reserved[m] &= may_free ? ~may_free[m] : UINT64_MAX;
        not_below_zero(&request->reserved_cpu_milli[m]);
        not_below_zero(&request->reserved_memory_bytes[m]);
    }
}

/* --- exclusive domains ------------------------------------------------------------------------ */

/* Returns whether the task is a victim, or a spare that gives way, and ends before the tried gang starts. */
static bool would_be_gone(const struct request *request, const struct task *task)
{
    if (request->yields_to && task_is_spare(task) && spare_gives_way(task, request->yields_to))
        return true;
    const uint64_t *may_free = request->trial ? request->trial->may_free : NULL;
    return may_free && task->chips && (task->chips & ~may_free[task->machine]) == 0;
}

static void claim_domain(struct request *request, const struct job *job)
{
    const struct cluster *cluster = request->cluster;
    struct str value, other;
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        if (!task->holds || would_be_gone(request, task) ||
            !machine_label(&cluster->machines[task->machine], job->rjob->exclusive_topology, &value))
            continue;
        for (size_t m = 0; m < cluster->machine_count; m++)
            if (machine_label(&cluster->machines[m], job->rjob->exclusive_topology, &other) &&
                str_equal(value, other))
                request->domain_owner[m] = job->uid;
        return;
    }
}

static void add_domains(struct request *request)
{
    if (request->store->exclusive == 0)
        return;
    for (size_t i = 0; i < request->store->jobsets.len; i++) {
        const struct jobset *jobset = request->store->jobsets.items[i];
        for (uint32_t j = 0; jobset->entry.exclusive && j < jobset->job_count; j++) {
            const struct job *job = jobset->jobs[j];
            if (!job || !job->rjob->exclusive_topology.len || !job->active ||
                job_priority(request->store, request->cluster, job->rjob) != request->priority)
                continue;
            if (!request->domain_owner)
                request->domain_owner =
                    mem_alloc(request->cluster->machine_count * sizeof(*request->domain_owner));
            claim_domain(request, job);
        }
    }
}

static obj_id occupant(const void *context, machine_id machine, obj_id job)
{
    const struct request *request = context;
    list_for_each(node, &request->store->machine_tasks[machine])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        bool own_ending = task->doomed && task->job->jobset == request->jobset;
        if (task->job->uid != job && !own_ending && task->holds && !would_be_gone(request, task) &&
            job_priority(request->store, request->cluster, task->job->rjob) == request->priority)
            return task->job->uid;
    }
    return 0;
}

static const struct jobset *holding_jobset(const struct request *request, machine_id machine)
{
    list_for_each(node, &request->store->machine_tasks[machine])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->chips && !would_be_gone(request, task))
            return task->job->jobset;
    }
    return NULL;
}

static obj_id holder(const void *context, machine_id machine)
{
    const struct jobset *jobset = holding_jobset(context, machine);
    return jobset ? jobset->uid : 0;
}

static void holder_name(const void *context, machine_id machine, struct buf *out)
{
    const struct jobset *jobset = holding_jobset(context, machine);
    if (jobset)
        buf_add_str(out, jobset->key);
}

static void fault_name(const void *context, machine_id machine, struct buf *out)
{
    const struct request *request = context;
    const struct fault *fault =
        fault_of_machine(request->store->health, request->cluster->machines[machine].name);
    if (fault)
        buf_add_str(out, fault->code);
}

/* --- making a request ------------------------------------------------------------------------- */

/* Sets the priority within which topology domains are exclusive: that of the first Job that wants an
 * exclusive domain, else of the first Job. */
static void find_priority(struct request *request)
{
    const struct rjob_spec *rjobs = request->jobset->spec.rjobs;
    for (size_t j = request->jobs.len; j-- > 0;)
        request->priority = job_priority(request->store, request->cluster, &rjobs[request->rjobs.items[j]]);
    for (size_t j = request->jobs.len; j-- > 0;)
        if (request->jobs.items[j].exclusive_topology.len)
            request->priority =
                job_priority(request->store, request->cluster, &rjobs[request->rjobs.items[j]]);
}

static void bind(struct request *request, bool use_spares)
{
    const struct jobset *jobset = request->jobset;
    bind_prefer(request);
    find_priority(request);
    add_own(request);
    add_reserved(request);
    add_domains(request);
    struct slice_shape shape;
    if (jobset_wants_slice(jobset, &shape))
        request->found = ARENA_NEW(&request->arena, struct slice_place);
    request->place = (struct place_request){
        .jobs = request->jobs.items,
        .job_count = request->jobs.len,
        .use_spares = use_spares,
        .avoid = jobset->history.suspects,
        .avoid_count = jobset->history.suspect_count,
        .own_chips = request->own_chips,
        .own_cpu_milli = request->own_cpu_milli,
        .own_memory_bytes = request->own_memory_bytes,
        .reserved = request->reserved,
        .reserved_cpu_milli = request->reserved_cpu_milli,
        .reserved_memory_bytes = request->reserved_memory_bytes,
        .domain_owner = request->domain_owner,
        .closed = request->closed,
        .holder = holder,
        .holder_name = holder_name,
        .fault_name = fault_name,
        .capacity = request->store->capacity,
    };
}

void request_gang(struct request *request, const struct job_store *store, const struct cluster *cluster,
                  const struct gang *gang, size_t count)
{
    *request = (struct request){.store = store, .cluster = cluster, .jobset = gang->jobset};
    add_tasks(request, gang, count);
    CHECK(request->prefer.len == count);
    bind_others(request, gang);
    bind(request, gang->replaces);
}

static bool same_topology(const struct topology_rule *a, const struct topology_rule *b)
{
    bool same = a->mode == b->mode && str_equal(a->key, b->key) && a->slice_count == b->slice_count;
    for (size_t i = 0; same && i < a->slice_count; i++)
        same = str_equal(a->slices[i].key, b->slices[i].key) && a->slices[i].size == b->slices[i].size;
    return same;
}

/* Joins Pods that are tried together and request the same topology into one unit, in their order. */
static void join_topologies(struct request *request)
{
    for (size_t j = 0; j < request->jobs.len; j++) {
        struct place_job *job = &request->jobs.items[j];
        size_t first = 0;
        while (job->topology && first < j &&
               !(request->jobs.items[first].topology &&
                 same_topology(request->jobs.items[first].topology, job->topology)))
            first++;
        if (!job->topology)
            continue;
        job->topology = request->jobs.items[first].topology;
        job->podset = 2 * (uint64_t)first;
    }
}

void request_jobset(struct request *request, const struct job_store *store, const struct cluster *cluster,
                    const struct jobset *jobset, const struct trial *trial)
{
    *request = (struct request){.store = store, .cluster = cluster, .jobset = jobset, .trial = trial};
    add_all_tasks(request);
    for (size_t i = 1; i < trial->with_count; i++) {
        request->first_podset += (uint32_t)request->jobset->spec.rjob_count;
        request->jobset = trial->with[i];
        add_all_tasks(request);
    }
    request->jobset = jobset;
    if (trial->with_count)
        join_topologies(request);
    add_may_free(request);
    bind(request, trial->use_spares);
}

void request_drop(struct request *request)
{
    vec_done(&request->jobs);
    vec_done(&request->prefer);
    vec_done(&request->ordinals);
    vec_done(&request->slots);
    arena_done(&request->arena);
    vec_done(&request->others);
    vec_done(&request->rjobs);
    vec_done(&request->indexes);
    mem_free(request->own_chips);
    mem_free(request->reserved);
    mem_free(request->reserved_cpu_milli);
    mem_free(request->reserved_memory_bytes);
    mem_free(request->own_cpu_milli);
    mem_free(request->own_memory_bytes);
    mem_free(request->domain_owner);
    mem_free(request->closed);
}

/* Makes the part of a request that the capacity index needs to update a shape. */
static void request_kept(struct request *request, const struct job_store *store,
                         const struct cluster *cluster, const struct gang *gang)
{
    *request = (struct request){.store = store, .cluster = cluster, .jobset = gang->jobset};
    request->place.holder = holder;
    request->place.capacity = store->capacity;
}

bool request_lacks_room(const struct job_store *store, const struct cluster *cluster, const struct gang *gang)
{
    struct request request;
    request_kept(&request, store, cluster, gang);
    return gang->refused_shape &&
           capacity_lacks(cluster, &request.place, &request, gang->refused_shape, gang->tasks.len);
}

struct str request_known_why(const struct job_store *store, const struct cluster *cluster,
                             const struct gang *gang)
{
    struct request request;
    request_kept(&request, store, cluster, gang);
    if (!gang->refused_shape)
        return (struct str){0};
    return capacity_known_why(cluster, &request.place, &request, gang->refused_shape, gang->tasks.len);
}

bool request_place(const struct request *request, struct placement *ret_places, struct buf *why)
{
    struct slice_shape shape;
    if (request->found && jobset_wants_slice(request->jobset, &shape))
        return slice_request_place(request, &shape, ret_places, why);
    return sched_place(request->cluster, &request->place, occupant, request, ret_places, why);
}
