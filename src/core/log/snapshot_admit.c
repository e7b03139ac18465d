/* snapshot_admit.c - Workloads, and the shown status of queue objects, in snapshots. */
#include "doc/json.h"
#include "core/admit/admit.h"
#include "core/agent/codec_pb.h"
#include "core/log/snapshot.h"

static void write_podsets(struct arena *arena, const struct workload *workload, Snapshot__Workload *pb)
{
    CHECK(workload->podsets || workload->jobset->spec.rjob_count == 0);
    pb->n_podsets = workload->jobset->spec.rjob_count;
    pb->podsets = ARENA_ARRAY(arena, Snapshot__Podset *, pb->n_podsets);
    for (size_t r = 0; r < pb->n_podsets; r++) {
        const struct podset *podset = &workload->podsets[r];
        Snapshot__Podset *item = pb->podsets[r] = ARENA_NEW(arena, Snapshot__Podset);
        snapshot__podset__init(item);
        item->admitted = podset->admitted;
        item->done = podset->done;
        item->resources = ARENA_ARRAY(arena, Snapshot__PodsetResource *, podset->resource_count);
        for (size_t i = 0; i < podset->resource_count; i++) {
            if (!podset->resources[i].flavor.len)
                continue;
            Snapshot__PodsetResource *resource = ARENA_NEW(arena, Snapshot__PodsetResource);
            snapshot__podset_resource__init(resource);
            resource->name = codec_text(arena, podset->resources[i].name);
            resource->flavor = codec_text(arena, podset->resources[i].flavor);
            item->resources[item->n_resources++] = resource;
        }
    }
}

static void write_conditions(struct arena *arena, const struct workload *workload, Snapshot__Workload *pb)
{
    pb->n_conditions = WORKLOAD_CONDITIONS;
    pb->conditions = ARENA_ARRAY(arena, Snapshot__Condition *, WORKLOAD_CONDITIONS);
    for (int kind = 0; kind < WORKLOAD_CONDITIONS; kind++) {
        const struct workload_condition *condition = &workload->conditions[kind];
        Snapshot__Condition *item = pb->conditions[kind] = ARENA_NEW(arena, Snapshot__Condition);
        snapshot__condition__init(item);
        item->present = condition->present;
        item->status = condition->status;
        item->reason = codec_text(arena, str_from(condition->reason));
        item->message = codec_text(arena, buf_str(&condition->message));
        item->changed_ns = condition->changed_ns;
    }
}

static void write_evictions(struct arena *arena, const struct workload *workload, Snapshot__Workload *pb)
{
    pb->n_evictions = workload->evictions.len;
    pb->evictions = ARENA_ARRAY(arena, Snapshot__Eviction *, workload->evictions.len);
    for (size_t i = 0; i < workload->evictions.len; i++) {
        Snapshot__Eviction *item = pb->evictions[i] = ARENA_NEW(arena, Snapshot__Eviction);
        snapshot__eviction__init(item);
        item->reason = codec_text(arena, str_from(workload->evictions.items[i].reason));
        item->count = workload->evictions.items[i].count;
    }
}

static void write_checks(struct arena *arena, const struct workload *workload, Snapshot__Workload *pb)
{
    pb->n_checks = workload->checks.len;
    pb->checks = ARENA_ARRAY(arena, Snapshot__Check *, workload->checks.len);
    for (size_t i = 0; i < workload->checks.len; i++) {
        const struct workload_check *check = &workload->checks.items[i];
        CHECK(check->state < CHECK_STATES);
        Snapshot__Check *item = pb->checks[i] = ARENA_NEW(arena, Snapshot__Check);
        struct buf updates BUF_CLEANUP = {0};
        snapshot__check__init(item);
        if (check->updates)
            json_write(&updates, check->updates);
        item->name = codec_text(arena, check->name);
        item->state = check->state;
        item->message = codec_text(arena, buf_str(&check->message));
        item->changed_ns = check->changed_ns;
        item->requeue_after_s = check->requeue_after_s;
        item->retries = check->retries;
        item->updates = codec_text(arena, buf_str(&updates));
    }
}

static void write_times(const struct workload *workload, Snapshot__Workload *pb)
{
    pb->created_ns = workload->created_ns;
    pb->queued_ns = workload->queued_ns;
    pb->reserved_ns = workload->reserved_ns;
    pb->admitted_ns = workload->admitted_ns;
    pb->ready_ns = workload->ready_ns;
    pb->unready_ns = workload->unready_ns;
    pb->ran_ns = workload->ran_ns;
    pb->leave_ns = workload->leave_ns;
    pb->noticed_ns = workload->noticed_ns;
    pb->requeue_ns = workload->requeue_ns;
    pb->retry_ns = workload->retry_ns;
}

struct writing_workloads {
    const struct admit *admit;
    void (*put)(void *context, Snapshot__Record *record);
    void *context;
};

static void write_one_workload(void *context, const struct workload *workload)
{
    CHECK(workload->uid && workload->state < WORKLOAD_STATES);
    struct writing_workloads *writing = context;
    struct arena arena ARENA_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Workload pb = SNAPSHOT__WORKLOAD__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_WORKLOAD;
    record.workload = &pb;
    pb.uid = workload->uid;
    pb.jobset = workload->jobset->uid;
    pb.own = workload->own ? workload->own->uid : 0;
    pb.state = workload->state;
    pb.active = workload->active;
    pb.parked = workload->parked;
    pb.given = workload->given;
    pb.reserved_in = codec_text(&arena, workload->reserved_in);
    pb.generation = workload->generation;
    pb.changed_seq = workload->changed_seq;
    pb.ticket = workload->ticket;
    pb.requeues = workload->requeues;
    pb.preempted = workload->preempted;
    pb.full = workload->full;
    pb.preemptor = workload->preemptor;
    pb.holding = workload_hold_place(writing->admit, workload);
    pb.leader = pb.holding && workload->leader ? workload->leader->uid : 0;
    pb.group_uid = workload->group_uid;
    pb.group_created_ns = workload->group_created_ns;
    write_conditions(&arena, workload, &pb);
    write_evictions(&arena, workload, &pb);
    write_checks(&arena, workload, &pb);
    write_podsets(&arena, workload, &pb);
    write_times(workload, &pb);
    writing->put(writing->context, &record);
}

void snapshot_write_admit(const struct admit *admit, void (*put)(void *context, Snapshot__Record *record),
                          void *context)
{
    struct writing_workloads writing = {admit, put, context};
    workload_visit(admit, write_one_workload, &writing);
    size_t count;
    const struct queue_shown *shown = queue_shown_all(admit, &count);
    CHECK(shown || count == 0);
    for (size_t i = 0; i < count; i++) {
        Snapshot__Record record = SNAPSHOT__RECORD__INIT;
        Snapshot__QueueShown pb = SNAPSHOT__QUEUE_SHOWN__INIT;
        record.kind_case = SNAPSHOT__RECORD__KIND_QUEUE_SHOWN;
        record.queue_shown = &pb;
        pb.uid = shown[i].uid;
        pb.active = shown[i].active;
        pb.changed_ns = shown[i].changed_ns;
        put(context, &record);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool read_podsets(struct workload *workload, const Snapshot__Workload *pb)
{
    CHECK(pb->n_podsets == workload->jobset->spec.rjob_count);
    for (size_t r = 0; r < pb->n_podsets; r++) {
        struct podset *podset = &workload->podsets[r];
        const Snapshot__Podset *item = pb->podsets[r];
        /* A job that was made smaller after its admission has quota for more tasks than it has. */
        int32_t most = pb->state == WORKLOAD_HOLDING ? podset->count : TASKS_PER_JOBSET_MAX;
        if (item->admitted < 0 || item->admitted > most || item->done < 0 || item->done > item->admitted)
            return false;
        podset->admitted = item->admitted;
        podset->done = item->done;
        for (size_t k = 0; k < item->n_resources; k++)
            for (size_t i = 0; i < podset->resource_count; i++)
                if (str_is(podset->resources[i].name, item->resources[k]->name))
                    podset->resources[i].flavor =
                        arena_str(&workload->assigned, str_from(item->resources[k]->flavor));
    }
    return true;
}

static void read_conditions(struct workload *workload, const Snapshot__Workload *pb)
{
    for (size_t kind = 0; kind < pb->n_conditions && kind < WORKLOAD_CONDITIONS; kind++) {
        struct workload_condition *condition = &workload->conditions[kind];
        const Snapshot__Condition *item = pb->conditions[kind];
        condition->present = item->present;
        condition->status = item->status;
        condition->reason = item->present ? workload_reason(str_from(item->reason)) : NULL;
        buf_add_str(&condition->message, str_from(item->message));
        condition->changed_ns = item->changed_ns;
    }
}

static bool read_checks(struct workload *workload, const Snapshot__Workload *pb)
{
    for (size_t i = 0; i < pb->n_checks; i++) {
        const Snapshot__Check *item = pb->checks[i];
        if (item->state >= CHECK_STATES || item->requeue_after_s < 0 || item->requeue_after_s > INT32_MAX ||
            item->retries < 0)
            return false;
        struct workload_check *check = check_add(workload, str_from(item->name));
        struct doc *updates = NULL;
        check->state = (uint8_t)item->state;
        buf_add_str(&check->message, str_from(item->message));
        check->changed_ns = item->changed_ns;
        check->requeue_after_s = item->requeue_after_s;
        check->retries = item->retries;
        if (item->updates[0] && json_parse(&check->arena, str_from(item->updates), &updates, NULL) < 0)
            return false;
        check->updates = updates;
    }
    return true;
}

static void read_times(struct workload *workload, const Snapshot__Workload *pb)
{
    workload->created_ns = pb->created_ns;
    workload->queued_ns = pb->queued_ns;
    workload->reserved_ns = pb->reserved_ns;
    workload->admitted_ns = pb->admitted_ns;
    workload->ready_ns = pb->ready_ns;
    workload->unready_ns = pb->unready_ns;
    workload->ran_ns = pb->ran_ns;
    workload->leave_ns = pb->leave_ns;
    workload->noticed_ns = pb->noticed_ns;
    workload->requeue_ns = pb->requeue_ns;
    workload->retry_ns = pb->retry_ns;
}

static void fill(struct workload *workload, const Snapshot__Workload *pb)
{
    CHECK(pb->state < WORKLOAD_STATES);
    workload->state = (uint8_t)pb->state;
    workload->active = pb->active;
    workload->parked = pb->parked;
    workload->given = pb->given;
    workload->reserved_in = arena_str(&workload->assigned, str_from(pb->reserved_in));
    workload->generation = pb->generation;
    workload->changed_seq = pb->changed_seq;
    workload->ticket = pb->ticket;
    workload->requeues = pb->requeues;
    for (size_t i = 0; i < pb->n_evictions; i++) {
        struct workload_eviction eviction = {workload_reason(str_from(pb->evictions[i]->reason)),
                                             pb->evictions[i]->count};
        vec_push(&workload->evictions, eviction);
    }
    workload->preempted = pb->preempted;
    workload->preemptor = pb->preemptor;
    read_conditions(workload, pb);
    read_times(workload, pb);
}

/* Whether the record belongs to its JobSets: the Workload was made for `jobset`, or a user made it (`own`),
 * and `jobset` may have taken it over. */
static bool has_its_job(const Snapshot__Workload *pb, const struct jobset *jobset, const struct jobset *own)
{
    if (!jobset || pb->n_podsets != jobset->spec.rjob_count)
        return false;
    if (!pb->own)
        return jobset->form != FORM_WORKLOAD;
    return own && own->form == FORM_WORKLOAD && own->spec.rjob_count == jobset->spec.rjob_count &&
           (jobset == own || jobset->form != FORM_WORKLOAD) &&
           str_equal(own->namespace_, jobset->namespace_) && !pb->group_uid;
}

static bool has_condition(const Snapshot__Workload *pb, enum workload_condition_kind kind)
{
    return pb->n_conditions > (size_t)kind && pb->conditions[kind]->present;
}

/* Whether the record is consistent with its state. A Workload that is LEAVING has a reason, and is not bare,
 * because a bare one has no tasks to wait for. Only the quota of a LEAVING or FINISHED Workload can be marked
 * as given to a preemptor. */
static bool fits_state(const Snapshot__Workload *pb, const struct jobset *jobset, const struct jobset *own)
{
    bool leaves = pb->state == WORKLOAD_LEAVING, finished = pb->state == WORKLOAD_FINISHED;
    return pb->state < WORKLOAD_STATES &&
           (!leaves || (jobset != own && has_condition(pb, WORKLOAD_EVICTED))) &&
           (!finished || has_condition(pb, WORKLOAD_IS_FINISHED)) && (!pb->given || leaves || finished) &&
           (!pb->parked || pb->state == WORKLOAD_PENDING) &&
           (pb->state == WORKLOAD_HOLDING) == (pb->holding > 0) && (!pb->leader || pb->holding);
}

static bool is_count(int32_t count)
{
    return count >= 0 && count < INT32_MAX / 2; /* counting further does not overflow */
}

static bool is_counted(const Snapshot__Workload *pb)
{
    bool counted = is_count(pb->requeues) && is_count(pb->preempted) && pb->full >= 0 &&
                   pb->full <= TASKS_PER_JOBSET_MAX;
    for (size_t i = 0; i < pb->n_evictions; i++)
        counted &= is_count(pb->evictions[i]->count);
    return counted;
}

static bool is_sane(const Snapshot__Workload *pb, const struct jobset *jobset, const struct jobset *own,
                    int64_t now_ns)
{
    return has_its_job(pb, jobset, own) && fits_state(pb, jobset, own) && is_counted(pb) && pb->uid &&
           pb->created_ns <= now_ns && pb->group_created_ns <= now_ns && pb->admitted_ns <= now_ns &&
           pb->admitted_ns >= 0 && pb->ran_ns >= 0;
}

bool snapshot_read_workload(struct admit *admit, const struct job_store *jobs, int64_t now_ns,
                            const Snapshot__Workload *pb)
{
    struct jobset *jobset = jobs_find_uid(jobs, pb->jobset);
    struct jobset *own = pb->own ? jobs_find_uid(jobs, pb->own) : NULL;
    if (!is_sane(pb, jobset, own, now_ns))
        return false;
    struct workload *workload =
        workload_restore(admit, jobset, own, pb->uid, pb->full, pb->group_uid, pb->group_created_ns);
    if (!workload)
        return false;
    fill(workload, pb);
    return (!pb->holding || workload_restore_hold(admit, workload, pb->holding, pb->leader)) &&
           read_podsets(workload, pb) && read_checks(workload, pb);
}

bool snapshot_read_shown(struct admit *admit, int64_t now_ns, const Snapshot__QueueShown *pb)
{
    return pb->changed_ns <= now_ns && queue_shown_restore(admit, pb->uid, pb->active, pb->changed_ns);
}
