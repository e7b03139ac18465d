/* invariants.c - the invariants of every state between two steps. Linear in objects, except for the names
 * within one JobSet. */
#include "core/gang/gang.h"
#include "core/internal.h"

#include "core/admit/admit.h"
#include "core/life/life.h"
#include "core/gang/trial.h"
#include "core/object/life.h"
#include "core/sched/capacity.h"

struct audit {
    const struct core *core;
    uint64_t *held;    /* [machine_count] chips held by tasks there */
    uint32_t *holders; /* [machine_count] number of tasks with resources there */
    uint32_t *living;  /* [machine_count] number of tasks that live there */
    int64_t *cpu_milli, *memory_bytes;
    int64_t owned[LEDGER_OWNERS], exposed[LEDGER_SIZES];
    int64_t booked_us[LEDGER_OWNERS]; /* sums over the accounts of all gangs */
    size_t queued, spares, naming, due_whys;
};

/* --- tasks ------------------------------------------------------------------------------------ */

static void audit_place(struct audit *audit, const struct task *task)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    CHECK(task->machine < audit->core->cluster.machine_count);
    CHECK(task->state == TASK_STOPPING || /* the spec may have changed since its start */
          (uint32_t)__builtin_popcountll(task->chips) == pod->chips);
    CHECK(task->state == TASK_STOPPING ||
          (task->cpu_milli == pod->cpu_request_milli && task->memory_bytes == pod->memory_request_bytes));
    CHECK((audit->held[task->machine] & task->chips) == 0); /* no chip has two holders */
    audit->held[task->machine] |= task->chips;
    audit->holders[task->machine]++;
    audit->cpu_milli[task->machine] += task->cpu_milli;
    audit->memory_bytes[task->machine] += task->memory_bytes;
}

static void audit_task(struct audit *audit, const struct job *job, const struct task *task)
{
    const struct core *core = audit->core;
    bool lives = !task_ended(task->state), placed = lives && task->state != TASK_PENDING;
    CHECK(task->job == job && task->uid && task->state < TASK_STATES);
    CHECK(task->index < (int64_t)job->index_count);
    CHECK(u64_map_get(&core->jobs.tasks, task->uid) == task);
    CHECK(jobs_find_pod(&core->jobs, job->jobset->namespace_, task->name) == task);
    CHECK(task->holds || !task->chips);
    CHECK(placed || !task->holds);
    /* Only an ending task gives up its chips before its end. */
    CHECK(task->holds || !placed || task->doomed);
    CHECK(placed == !list_empty(&task->on_machine));
    CHECK(!lives || task->gang);
    CHECK(!task->ready || task->state == TASK_RUNNING || task->state == TASK_STOPPING);
    CHECK(lives == (task->end == END_NONE));
    CHECK(task->state != TASK_PENDING || (task->machine == MACHINE_NONE && task->gang->state == GANG_QUEUED));
    CHECK(!placed || task->gang->state == GANG_PLACED || task->gang->state == GANG_RUNNING);
    if (task->holds)
        audit_place(audit, task);
    if (placed) {
        uint8_t state = core->cluster.machines[task->machine].state;
        CHECK(state == MACHINE_READY || state == MACHINE_AWAY); /* no task lives on a lost machine */
        audit->living[task->machine]++;
    }
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void audit_indexes(const struct job *job)
{
    uint32_t decided = 0, failed = 0;
    for (uint32_t i = 0; i < job->index_count; i++) {
        const struct job_index *slot = &job->indexes[i];
        uint32_t living = 0, succeeded = 0;
        for (size_t t = 0; t < job->tasks.len; t++) {
            if ((uint32_t)job->tasks.items[t]->index != i)
                continue;
            living += !task_ended(job->tasks.items[t]->state);
            succeeded += job->tasks.items[t]->state == TASK_SUCCEEDED;
            CHECK(slot->task || slot->made > 0); /* the newest may be gone, because it was stopped */
        }
        CHECK(living <= 1);                                    /* one process for each name */
        CHECK(!living || (!slot->succeeded && !slot->failed)); /* a decided index has no further task */
        decided += slot->succeeded;
        failed += slot->failed;
        CHECK(!slot->task || ((uint32_t)slot->task->index == i && slot->task->job == job));
        CHECK(!living || !task_ended(slot->task->state));
        CHECK(!slot->succeeded || succeeded > 0);
    }
    CHECK(job->succeeded == decided && job->failed_indexes == failed);
}

/* Audits spares: each waits in a separate gang, and is counted nowhere. A spare may share a machine with a
 * rank only for a moment. */
static size_t audit_spares(struct audit *audit, const struct job *job)
{
    for (size_t s = 0; s < job->spares.len; s++) {
        const struct task *task = job->spares.items[s];
        audit_task(audit, job, task);
        CHECK(task_is_spare(task) && task->index >= -SPARES_PER_JOB_MAX && !task_ended(task->state));
        CHECK(gang_is_spare(task->gang) && task->gang->account.owner == OWNER_SPARE);
        CHECK(task->keep == KEEP_NO && !task->parked && task->was_spare && task->saved_step < 0);
        CHECK(!job->doomed || task->doomed);
        for (size_t other = 0; other < s; other++)
            CHECK(job->spares.items[other]->index != task->index);
    }
    return job->spares.len;
}

static void audit_job(struct audit *audit, const struct jobset *jobset, const struct job *job)
{
    uint32_t active = 0, ready = 0, succeeded = 0;
    CHECK(job->jobset == jobset && job->uid && job->state < JOB_STATES);
    CHECK(job->rjob == &jobset->spec.rjobs[job->rjob_index]);
    CHECK(job->first_slot + job->index_count <= jobset->slots.count);
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        audit_task(audit, job, task);
        CHECK(!task_is_spare(task));
        active += !task_ended(task->state);
        ready += task->ready;
        succeeded += task->state == TASK_SUCCEEDED;
        CHECK(!job->doomed || task_ended(task->state) || task->doomed);
    }
    CHECK(job->active == active && job->ready == ready && job->succeeded == succeeded);
    CHECK((job->state != JOB_COMPLETE && job->state != JOB_FAILED) || active == 0);
    CHECK((job->state == JOB_FAILING || job->state == JOB_FAILED) == (job->reason != NULL));
    audit_indexes(job);
    audit->spares += audit_spares(audit, job);
}

static bool told(const struct task *task)
{
    return task->state == TASK_STARTING || task->state == TASK_RUNNING || task->state == TASK_STOPPING;
}

/* Checks that two tasks of one name live only on the same machine, whose agent keeps their order. */
static void audit_names(const struct jobset *jobset, const struct job *old)
{
    for (uint32_t i = 0; i <= jobset->old_jobs.len; i++) {
        const struct job *other =
            i < jobset->old_jobs.len ? jobset->old_jobs.items[i] : jobset->jobs[old->global_index];
        if (!other || other == old || other->global_index != old->global_index)
            continue;
        for (size_t a = 0; a < old->tasks.len; a++)
            for (size_t b = 0; b < other->tasks.len; b++) {
                const struct task *first = old->tasks.items[a], *second = other->tasks.items[b];
                CHECK(first->index != second->index || !told(first) || !told(second) ||
                      first->machine == second->machine);
            }
    }
}

/* --- gangs: whole or absent ------------------------------------------------------------------- */

/* Checks that the owner of a gang's chips fits its state. */
static void audit_phase(const struct gang *gang)
{
    enum ledger_owner owner = gang->account.owner;
    CHECK(!ledger_owner_is_free(owner) && owner != OWNER_KEPT && owner != OWNER_REDONE);
    CHECK(owner != OWNER_FAILED && owner != OWNER_STALLED); /* time is moved there later */
    CHECK(gang->state == GANG_QUEUED ? owner == OWNER_QUEUED || owner == OWNER_AWAITING ||
                                           owner == OWNER_DEGRADED || owner == OWNER_SPARE
                                     : owner != OWNER_QUEUED);
    CHECK((owner != OWNER_PLACING && owner != OWNER_WIRING) || (!gang->told && !gang->preflight));
    CHECK(owner != OWNER_PREFLIGHT || gang->preflight);
    CHECK((owner != OWNER_STARTING && owner != OWNER_RESTARTING && owner != OWNER_UNKEPT) || gang->told);
    CHECK(owner != OWNER_DEGRADED || gang_is_away(gang));
}

/* Adds the time that an account has booked. The cluster's book has the same for owners whose chips are all
 * held. */
static void audit_account(struct audit *audit, const struct ledger_account *account)
{
    struct ledger_account now = ledger_account_at(account, audit->core->now_ns / NS_PER_US);
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        audit->booked_us[owner] += now.chip_us[owner];
}

static void audit_gang(struct audit *audit, const struct jobset *jobset, const struct gang *gang)
{
    uint32_t alive = 0, waiting = 0;
    int64_t wanted = 0, held = 0;
    CHECK(gang->jobset == jobset && gang->attempt <= jobset->attempt);
    CHECK(gang->tasks.len > 0 && gang->state != GANG_ENDED);
    CHECK(gang->min_count <= gang->tasks.len); /* a snapshot with more is refused */
    for (size_t t = 0; t < gang->tasks.len; t++) {
        const struct task *task = gang->tasks.items[t];
        CHECK(task->gang == gang);
        CHECK((gang->state == GANG_QUEUED) == (task->state == TASK_PENDING));
        alive += !task_ended(task->state);
        waiting += !task->counted;
        wanted += task->job->rjob->job.pod.chips;
        held += __builtin_popcountll(task->chips);
    }
    CHECK(gang->alive == alive && gang->waiting == waiting && alive > 0);
    CHECK(gang->state != GANG_RUNNING || waiting == 0);
    CHECK(ledger_account_balanced(&gang->account));
    CHECK(gang->account.chips == (gang->state == GANG_QUEUED ? wanted : held));
    CHECK(gang->account.held == (gang->state != GANG_QUEUED) && gang->account.size < LEDGER_SIZES);
    CHECK((gang->account.owner == OWNER_SPARE) == gang_is_spare(gang));
    audit_phase(gang);
    audit_account(audit, &gang->account);
    CHECK(heap_has(&gang->queued.node) == (gang->state == GANG_QUEUED));
    CHECK(!gang->why_due || gang->state == GANG_QUEUED);
    audit->due_whys += gang->why_due;
    if (gang->state == GANG_QUEUED)
        audit->queued++;
    else
        audit->owned[gang->account.owner] += held;
    if (gang->account.held && gang->account.owner != OWNER_SPARE)
        audit->exposed[gang->account.size] += held;
}

/* --- JobSets ---------------------------------------------------------------------------------- */

static void audit_jobset(struct audit *audit, const struct jobset *jobset)
{
    const struct job_store *store = &audit->core->jobs;
    CHECK(!jobset_is_seen(jobset) || str_map_get(&store->by_name, jobset->key) == jobset);
    CHECK(!jobset->hidden || (jobset->form != FORM_POD && jobset->made + jobset->old_jobs.len > 0));
    CHECK(!jobset->entry.dirty && jobset->work.loose_tasks == 0);
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i], *seen = jobset_seen_job(jobset, i);
        CHECK(!seen || jobset->form == FORM_POD || job_is_hidden(seen) ||
              jobs_find_job(store, jobset->namespace_, seen->name) == seen);
        if (!job)
            continue;
        CHECK(!job->doomed && job->global_index == i);
        CHECK(!jobset_finished(jobset) || (job->state != JOB_ACTIVE && job->state != JOB_SUSPENDED));
        audit_job(audit, jobset, job);
    }
    for (size_t i = 0; i < jobset->old_jobs.len; i++) {
        CHECK(jobset->old_jobs.items[i]->doomed &&
              jobset->old_jobs.items[i]->active + jobset->old_jobs.items[i]->spares.len > 0);
        audit_job(audit, jobset, jobset->old_jobs.items[i]);
        audit_names(jobset, jobset->old_jobs.items[i]);
    }
    for (size_t g = 0; g < jobset->gangs.len; g++)
        audit_gang(audit, jobset, jobset->gangs.items[g]);
    bool names_machine = false;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        names_machine |= jobset->spec.rjobs[r].job.pod.node_name.len > 0;
    CHECK(jobset->entry.names_machine == names_machine);
    audit->naming += names_machine;
    CHECK(ledger_account_balanced(&jobset->usage.closed) && jobset->usage.closed.chips == 0);
    audit_account(audit, &jobset->usage.closed);
    shrink_check(jobset);
    CHECK(jobset->first_attempt >= 0);
    CHECK(jobset->attempt == jobset->first_attempt + jobset->restarts + jobset->recovery.in_place_restarts +
                                 jobset_parks(jobset));
    CHECK(jobset->restarts_counted + jobset->recovery.in_place_counted <=
          jobset->attempt + (int32_t)jobset->history.record_count);
    CHECK(jobset->checkpoint.committed_step < 0 || jobset->checkpoint.committed_attempt <= jobset->attempt);
    CHECK(jobset->checkpoint.fallback_step == -1 ||
          (jobset->checkpoint.fallback_step >= 0 &&
           jobset->checkpoint.fallback_step < jobset->checkpoint.committed_step));
    CHECK(!jobset_finished(jobset) || jobset->finished_ns > 0);
    CHECK(jobset->recovery.ladder.rung < RUNGS && jobset->recovery.ladder.best_step >= -1 &&
          jobset->recovery.ladder.stalled >= 0);
    CHECK(jobset->recovery.ladder.uses.len <= LADDER_USES_MAX);
    CHECK(recovery_state_fits(jobset->recovery.state, jobset->recovery.path));
    CHECK(jobset->recovery.move.state < MOVE_STATES && jobset->recovery.seen_attempt == 0);
    CHECK(jobset->recovery.state != RECOVERY_DUMPING || jobset->recovery.absence.replicas.len == 0);
}

static void audit_queue(const struct audit *audit)
{
    const struct sched_queue *queue = &audit->core->jobs.queue;
    CHECK(queue->gangs.len == audit->queued); /* every queued gang has that state */
    CHECK(audit->core->jobs.whys.len == audit->due_whys);
    for (size_t i = 1; i < queue->gangs.len; i++) {
        const struct queued_gang *a = queue->gangs.items[i - 1], *b = queue->gangs.items[i];
        CHECK(a->priority != b->priority           ? a->priority > b->priority
              : a->submitted_ns != b->submitted_ns ? a->submitted_ns < b->submitted_ns
                                                   : a->id < b->id);
    }
}

/* --- machines and the ledger ------------------------------------------------------------------ */

static void audit_machines(struct audit *audit)
{
    const struct cluster *cluster = &audit->core->cluster;
    for (size_t m = 0; m < cluster->machine_count; m++) {
        const struct machine *machine = &cluster->machines[m];
        uint32_t listed = 0;
        CHECK(machine->id == m && cluster_find(cluster, machine->name) == machine);
        CHECK(machine->free_mask == (machine_all_chips(machine) & ~audit->held[m]));
        CHECK(machine->task_count == audit->holders[m]);
        CHECK(machine->cpu_used_milli == audit->cpu_milli[m] &&
              machine->memory_used_bytes == audit->memory_bytes[m]);
        list_for_each(node, &audit->core->jobs.machine_tasks[m])
        {
            const struct task *task = container_of(node, struct task, on_machine);
            CHECK(task->machine == m && u64_map_get(&audit->core->jobs.tasks, task->uid) == task);
            listed++;
        }
        CHECK(listed == audit->living[m]);
        CHECK(audit->core->jobs.reserved_anew.len || /* a test has changed reservations between steps */
              machine->reserved_mask == jobs_reserved_chips(&audit->core->jobs, (machine_id)m));
        CHECK(booked_equal(machine->booked, machine_to_book(machine)));
        audit->owned[machine->booked.owner] += machine->booked.chips;
        audit->owned[OWNER_RESERVED] += machine->booked.reserved;
    }
}

/* Returns whether some of the owner's chips may be wanted and not held. The cluster's book has held chips
 * only. */
static bool is_wanted_too(enum ledger_owner owner)
{
    return owner == OWNER_QUEUED || owner == OWNER_AWAITING || owner == OWNER_SPARE ||
           owner == OWNER_DEGRADED;
}

/* Checks that both books agree on every chip-second that a job held, of living and of deleted JobSets. */
static void audit_books(const struct audit *audit)
{
    const struct ledger now = ledger_at(&audit->core->ledger, audit->core->now_ns / NS_PER_US);
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        int64_t booked_us = audit->booked_us[owner] + now.gone_chip_us[owner];
        CHECK(is_wanted_too((enum ledger_owner)owner)          ? now.chip_us[owner] <= booked_us
              : ledger_owner_is_free((enum ledger_owner)owner) ? booked_us == 0
                                                               : now.chip_us[owner] == booked_us);
    }
}

static void audit_ledger(const struct audit *audit)
{
    const struct ledger *ledger = &audit->core->ledger;
    int64_t chips = 0;
    CHECK(ledger_balanced(ledger));
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        CHECK(ledger->chips[owner] == audit->owned[owner]);
        chips += ledger->chips[owner];
    }
    CHECK(chips == (int64_t)audit->core->cluster.chip_count);
    for (int size = 0; size < LEDGER_SIZES; size++)
        CHECK(ledger->sizes[size].chips == audit->exposed[size]);
    audit_books(audit);
}

void core_check_invariants(const struct core *core)
{
    objects_check(core->objects);
    admit_check(core->admit);
    core_check_objects(core);
    health_check(core->health, &core->cluster);
    lemon_check(core->lemons);
    errands_check(core->errands, &core->cluster);
    hangs_check(core->hangs, core->errands);
    repairs_check(core->repairs, &core->cluster);
    slices_check(core->slices, &core->cluster);
    receipts_check(core->receipts);
    preflight_check(&core->jobs, &core->cluster, core->errands);
    CHECK(lease_hold_fits(&core->hold) && core->hold.until_ns == repairs_hold_until(core->repairs));
    struct arena arena ARENA_CLEANUP = {0};
    size_t machines = core->cluster.machine_count;
    struct audit audit = {
        .core = core,
        .held = ARENA_ARRAY(&arena, uint64_t, machines),
        .holders = ARENA_ARRAY(&arena, uint32_t, machines),
        .living = ARENA_ARRAY(&arena, uint32_t, machines),
        .cpu_milli = ARENA_ARRAY(&arena, int64_t, machines),
        .memory_bytes = ARENA_ARRAY(&arena, int64_t, machines),
    };
    CHECK(core->jobs.dirty.len == 0);
    CHECK(core->jobs.timers.len <= core->jobs.jobsets.len);
    CHECK(core->jobs.machine_count == machines);
    for (size_t i = 0; i < core->jobs.jobsets.len; i++)
        audit_jobset(&audit, core->jobs.jobsets.items[i]);
    CHECK(audit.spares == core->jobs.spares && audit.naming == core->jobs.naming);
    jobs_check_timers(&core->jobs);
    audit_queue(&audit);
    audit_machines(&audit);
    audit_ledger(&audit);
    capacity_check(core->jobs.capacity, &core->cluster);
}
