/* runs.c - the processes of one attempt of a job, which act together.
 *
 *     LAUNCHING ── all ranks run ──► LOADING ──► TRAINING ⇄ WRITING ──► ENDED
 *         └──────────────┴───── a rank is lost, or told to stop ─────┴──► STANDS
 *
 * Work is measured in nanoseconds of undisturbed training; a step is one second of it. A checkpoint counts
 * from the end of its write. A run that stands is frozen: its ranks wait in their collectives until the
 * controller stops them. */
#include "sim/capacity/internal.h"

#include <stdio.h>

#define STEP_NS NS_PER_SECOND

/* --- what ranks say ------------------------------------------------------------------------------- */

static void run_tell_steps(struct simulation_world *world, const struct run *run, int64_t work_ns)
{
    const struct sim_job *job = run->job;
    struct task_step step = {.step = work_ns / STEP_NS,
                             .total = job->work_ns / STEP_NS + 1,
                             .source = STEP_SAID,
                             .first_plus_1 = 1 + run->restored_ns / STEP_NS,
                             .attempt_plus_1 = (uint32_t)run->attempt + 1};
    struct from_agent message = {.kind = FROM_AGENT_STEPS, .heartbeat = {.steps = &step, .step_count = 1}};
    for (size_t i = 0; i < run->ranks.len; i++) {
        const struct rank *rank = run->ranks.items[i];
        if (rank->state != RANK_RUNS || !world->nodes[rank->machine].connected)
            continue;
        step.task = rank->task;
        world_say(world, rank->machine, &message);
    }
}

static void run_tell_saved(struct simulation_world *world, const struct run *run)
{
    struct task_report report = {.kind = REPORT_SHARD_SAVED,
                                 .step = run->work_ns / STEP_NS,
                                 .attempt_plus_1 = (uint32_t)run->attempt + 1};
    for (size_t i = 0; i < run->ranks.len; i++) {
        report.task = run->ranks.items[i]->task;
        fleet_report(world, run->ranks.items[i]->machine, &report, 1);
    }
}

static void rank_tell_started(struct simulation_world *world, const struct rank *rank)
{
    uint32_t attempt_plus_1 = (uint32_t)rank->run->attempt + 1;
    struct task_report reports[] = {
        {.kind = REPORT_STARTED,
         .task = rank->task,
         .pid = 1,
         .started_ns = world->now_ns,
         .attempt_plus_1 = attempt_plus_1},
        {.kind = REPORT_JOINED,
         .task = rank->task,
         .attempt_plus_1 = attempt_plus_1,
         .can_rejoin = world->scenario->workload.rejoins},
    };
    fleet_report(world, rank->machine, reports + rank->rejoins, 2 - rank->rejoins);
}

static void rank_tell_end(struct simulation_world *world, struct rank *rank, int exit_code, int signal)
{
    uint32_t machine = rank->machine;
    struct task_report report = {.kind = REPORT_EXITED,
                                 .task = rank->task,
                                 .exit_code = exit_code,
                                 .signal = signal,
                                 .finished_ns = world->now_ns};
    runs_forget(world, rank);
    fleet_report(world, machine, &report, 1);
}

/* --- training ------------------------------------------------------------------------------------- */

/* Returns the work done so far. */
static int64_t run_work(const struct simulation_world *world, const struct run *run)
{
    return run->work_ns + (run->phase == RUN_TRAINING ? world->now_ns - run->since_ns : 0);
}

/* Counts the time of a stretch of training. Called before the stretch ends. */
static void run_count_trained(const struct simulation_world *world, struct run *run)
{
    if (run->phase == RUN_TRAINING)
        run->job->trained_ns += world->now_ns - run->since_ns;
}

/* Returns the time of steps until a process of the job dies by itself; INT64_MAX if none does. */
static int64_t run_until_crash(const struct sim_job *job)
{
    if (!job->known || job->next_crash == job->known->crash_count)
        return INT64_MAX;
    int64_t left_ns = job->known->crashes_us[job->next_crash] * NS_PER_US - job->trained_ns;
    return left_ns > 0 ? left_ns : 0;
}

/* Returns the time of steps until the job notices that its results are wrong; INT64_MAX if it does not. */
static int64_t run_until_notice(const struct sim_job *job)
{
    if (!job->wrong_by || job->notice_ns == INT64_MAX)
        return INT64_MAX;
    return job->notice_ns > job->trained_ns ? job->notice_ns - job->trained_ns : 0;
}

void runs_look_again(struct simulation_world *world, struct run *run)
{
    if (run->phase != RUN_TRAINING)
        return;
    int64_t left_ns = run->job->work_ns - run->work_ns, interval_ns = run->job->interval_ns;
    int64_t crash_ns = run_until_crash(run->job), notice_ns = run_until_notice(run->job);
    left_ns = interval_ns && interval_ns < left_ns ? interval_ns : left_ns;
    left_ns = crash_ns < left_ns ? crash_ns : left_ns;
    left_ns = notice_ns < left_ns ? notice_ns : left_ns;
    due_set(world, &run->due, DUE_RUN, run->drains ? world->now_ns : run->since_ns + left_ns);
}

/* Begins to train at run->work_ns, which is 0, restored, or just saved. */
static void run_train(struct simulation_world *world, struct run *run)
{
    run->phase = RUN_TRAINING;
    run->since_ns = world->now_ns;
    runs_look_again(world, run);
}

static void run_note_best(struct run *run, int64_t work_ns)
{
    if (work_ns > run->job->best_ns)
        run->job->best_ns = work_ns;
}

static void run_write(struct simulation_world *world, struct run *run)
{
    run->work_ns = run_work(world, run);
    run_count_trained(world, run);
    run->phase = RUN_WRITING;
    run->since_ns = world->now_ns;
    run_note_best(run, run->work_ns);
    due_set(world, &run->due, DUE_RUN, world->now_ns + run->job->write_ns);
}

static void run_saved(struct simulation_world *world, struct run *run)
{
    run->drains = false;
    run->job->saved_ns = run->work_ns / STEP_NS * STEP_NS;
    run->job->written_ns += world->now_ns - run->since_ns;
    corruption_run_saved(run);
    run_tell_steps(world, run, run->work_ns);
    run_tell_saved(world, run);
    run_train(world, run);
}

static void run_leave_whole(struct simulation_world *world, struct run *run)
{
    if (!run->whole_ns)
        return;
    tally_advance(world);
    run->job->run_ns += world->now_ns - run->whole_ns;
    run->whole_ns = 0;
    world->whole_runs--;
}

static void run_end(struct simulation_world *world, struct run *run)
{
    struct sim_job *job = run->job;
    run_count_trained(world, run);
    run_note_best(run, job->work_ns);
    run_leave_whole(world, run);
    job->ended = true;
    corruption_job_ended(world, job);
    job->saved_ns = job->work_ns;
    if (job->plan == FATE_CANCELLED) {
        run->phase = RUN_STANDS;
        arrivals_cancel(world, job);
        return;
    }
    run->phase = RUN_ENDED;
    /* The last rank's end frees the run. */
    for (size_t left = run->ranks.len; left > 0; left--)
        rank_tell_end(world, run->ranks.items[left - 1], job->plan == FATE_FAILED, 0);
}

/* --- it stands ------------------------------------------------------------------------------------ */

static void run_stand(struct simulation_world *world, struct run *run, bool by_failure)
{
    struct sim_job *job = run->job;
    if (run->phase == RUN_STANDS || run->phase == RUN_ENDED)
        return;
    int64_t work_ns = run_work(world, run);
    run_count_trained(world, run);
    if (run->phase == RUN_TRAINING || run->phase == RUN_WRITING) {
        run_note_best(run, work_ns);
        if (job->known && job->known->keeps)
            job->saved_ns = work_ns;
        job->lost_ns += work_ns - job->saved_ns;
    }
    if (run->whole_ns) {
        job->interruptions += by_failure;
        job->preemptions += !by_failure;
    }
    run_leave_whole(world, run);
    run->work_ns = work_ns;
    run->phase = RUN_STANDS;
    due_drop(world, &run->due);
}

void runs_crash(struct simulation_world *world, struct rank *rank)
{
    struct run *run = rank->run;
    int64_t work_ns = run_work(world, run);
    /* Heartbeats report the newest step each second, so the controller knows it. */
    if (run->phase == RUN_TRAINING || run->phase == RUN_WRITING)
        run_tell_steps(world, run, work_ns);
    run_stand(world, run, true);
    if (rank->state == RANK_RUNS || rank->state == RANK_LAUNCHED || rank->state == RANK_STOPS)
        rank->state = RANK_CRASHED;
}

void runs_notice(struct simulation_world *world, const struct task_notice *notice)
{
    const struct rank *rank = u64_map_get(&world->ranks, notice->task);
    if (!rank || notice->kind != NOTICE_DRAIN || rank->run->drains || !rank->run->job ||
        !rank->run->job->interval_ns)
        return;
    rank->run->drains = true;
    if (rank->run->phase == RUN_TRAINING)
        due_set(world, &rank->run->due, DUE_RUN, world->now_ns);
}

/* --- launch and stop ------------------------------------------------------------------------------ */

/* Returns the newest run of the job, or a new one if the attempt is newer. */
static struct run *run_of(struct sim_job *job, int32_t attempt, uint32_t world, int64_t restore_step)
{
    if (job->run && job->run->attempt >= attempt)
        return job->run;
    struct run *run = mem_alloc(sizeof *run);
    run->job = job;
    run->attempt = attempt;
    run->world = world;
    run->restored_ns = restore_step > 0 ? restore_step * STEP_NS : 0;
    if (run->restored_ns > job->saved_ns)
        run->restored_ns = job->saved_ns; /* newer checkpoints are wrong */
    if (job->known && job->known->keeps)
        run->restored_ns = job->saved_ns;
    run->work_ns = run->restored_ns;
    job->run = run;
    return run;
}

static void rank_launch(struct simulation_world *world, struct rank *rank)
{
    tally_advance(world);
    rank->state = RANK_LAUNCHED;
    world->nodes[rank->machine].busy |= rank->chips;
    world->busy_chips += (uint32_t)__builtin_popcountll(rank->chips);
    due_set(world, &rank->run->due, DUE_RUN,
            world->now_ns + (rank->run->job ? rank->run->job->launch_ns : 0));
}

void runs_start(struct simulation_world *world, uint32_t machine, const struct task_launch *launch)
{
    struct str name = launch->name;
    int64_t number;
    CHECK(str_take_number(&name, "j", INT64_MAX, &number));
    struct sim_job *job = u64_map_get(&world->jobs_by_number, (uint64_t)number);
    if (!job || u64_map_get(&world->ranks, launch->task))
        return; /* a repeated order */
    struct run *run = run_of(job, launch->attempt, launch->world, launch->restore_step);
    struct rank *rank = mem_alloc(sizeof *rank);
    *rank = (struct rank){.task = launch->task,
                          .run = run,
                          .machine = machine,
                          .place = (uint32_t)run->ranks.len,
                          .state = RANK_WAITS,
                          .chips = launch->chips};
    vec_push(&run->ranks, rank);
    list_append(&world->nodes[machine].ranks, &rank->on_machine);
    u64_map_put(&world->ranks, rank->task, rank);
    world->outcome->tasks_started++;
    if ((world->nodes[machine].busy & rank->chips) == 0)
        rank_launch(world, rank);
}

static void run_launched(struct simulation_world *world, struct run *run)
{
    size_t runs = 0;
    for (size_t i = 0; i < run->ranks.len; i++) {
        struct rank *rank = run->ranks.items[i];
        if (rank->state == RANK_LAUNCHED) {
            rank->state = RANK_RUNS;
            rank_tell_started(world, rank);
            rank->rejoins = false;
        }
        runs += rank->state == RANK_RUNS;
    }
    if (run->phase != RUN_LAUNCHING || runs < run->world)
        return;
    tally_advance(world);
    run->phase = RUN_LOADING;
    run->whole_ns = world->now_ns;
    world->whole_runs++;
    run->job->starts++;
    if (!run->job->first_ns)
        run->job->first_ns = world->now_ns;
    due_set(world, &run->due, DUE_RUN, world->now_ns + run->job->load_ns);
}

void runs_fail(struct simulation_world *world, struct run *run, uint32_t machine)
{
    struct rank *rank = run->ranks.items[0];
    for (size_t i = 0; i < run->ranks.len; i++)
        if (run->ranks.items[i]->machine == machine)
            rank = run->ranks.items[i];
    runs_crash(world, rank);
    rank_tell_end(world, rank, -1, 6);
}

/* Makes a process of the run die by itself, which its agent sees at once. */
static void run_crash(struct simulation_world *world, struct run *run)
{
    run->job->next_crash++;
    runs_fail(world, run, run->ranks.items[0]->machine);
}

/* Handles a failed validation of the job's results, which names the machine that made the wrong ones. */
static void run_notices(struct simulation_world *world, struct run *run)
{
    uint32_t machine = run->job->wrong_by - 1;
    CHECK(corruption_hides(world, machine)); /* when it is found, its jobs' results are right again */
    world->outcome->failures[run->job->wrong_model].found_by_jobs++;
    fleet_notice(world, machine);
}

int64_t runs_work(const struct simulation_world *world, const struct sim_job *job)
{
    const struct run *run = job->run;
    bool works = run && (run->phase == RUN_TRAINING || run->phase == RUN_WRITING);
    return works ? run_work(world, run) : job->saved_ns;
}

void runs_due(struct simulation_world *world, struct run *run)
{
    switch (run->phase) {
    case RUN_LAUNCHING:
    case RUN_STANDS:
        run_launched(world, run);
        break;
    case RUN_LOADING:
        corruption_run_trains(world, run);
        run_tell_steps(world, run, run->restored_ns);
        run_train(world, run);
        break;
    case RUN_TRAINING:
        if (run_until_crash(run->job) <= world->now_ns - run->since_ns)
            run_crash(world, run);
        else if (run_until_notice(run->job) <= world->now_ns - run->since_ns)
            run_notices(world, run);
        else if (run_work(world, run) >= run->job->work_ns)
            run_end(world, run);
        else
            run_write(world, run);
        break;
    case RUN_WRITING:
        run_saved(world, run);
        break;
    case RUN_ENDED:
        CHECK_UNREACHABLE();
    }
}

void runs_stop(struct simulation_world *world, uint32_t machine, const struct task_stop *stop)
{
    struct rank *rank = u64_map_get(&world->ranks, stop->task);
    if (!rank || rank->state == RANK_CRASHED)
        return;
    CHECK(rank->machine == machine);
    struct run *run = rank->run;
    run_stand(world, run, false);
    rank->state = RANK_STOPS;
    int64_t takes_ns = run->job ? run->job->stop_ns : (int64_t)(world->scenario->workload.stop_s * 1e9);
    if (stop->grace_ns < takes_ns)
        takes_ns = stop->grace_ns;
    if (!heap_has(&run->stop.node))
        due_set(world, &run->stop, DUE_STOP, world->now_ns + takes_ns + NS_PER_MS);
}

void runs_stop_due(struct simulation_world *world, struct run *run)
{
    for (size_t left = run->ranks.len; left > 0; left--) {
        bool last = run->ranks.len == 1;
        if (run->ranks.items[left - 1]->state == RANK_STOPS) {
            rank_tell_end(world, run->ranks.items[left - 1], -1, 15);
            if (last)
                return; /* the run was freed */
        }
    }
}

/* --- ends ----------------------------------------------------------------------------------------- */

static void run_free(struct simulation_world *world, struct run *run)
{
    run_leave_whole(world, run);
    due_drop(world, &run->due);
    due_drop(world, &run->stop);
    if (run->job && run->job->run == run)
        run->job->run = NULL;
    vec_done(&run->ranks);
    mem_free(run);
}

/* Removes a rank from its run, which is freed with its last rank. */
static void rank_leave(struct simulation_world *world, struct rank *rank)
{
    struct run *run = rank->run;
    run->ranks.items[rank->place] = vec_last(&run->ranks);
    run->ranks.items[rank->place]->place = rank->place;
    run->ranks.len--;
    if (run->ranks.len == 0)
        run_free(world, run);
}

void runs_rejoin(struct simulation_world *world, const struct task_rejoin *order)
{
    struct rank *rank = u64_map_get(&world->ranks, order->task);
    bool lives = rank && (rank->state == RANK_RUNS || (rank->state == RANK_LAUNCHED && rank->rejoins));
    if (!lives || rank->run->attempt >= order->attempt || !rank->run->job)
        return;
    struct sim_job *job = rank->run->job;
    run_stand(world, rank->run, false);
    struct run *run = run_of(job, order->attempt, order->world, order->restore_step);
    rank_leave(world, rank);
    rank->run = run;
    rank->place = (uint32_t)run->ranks.len;
    rank->state = RANK_LAUNCHED;
    rank->rejoins = true;
    vec_push(&run->ranks, rank);
    due_set(world, &run->due, DUE_RUN, world->now_ns + job->launch_ns);
}

/* Starts processes that waited for chips of the machine. */
static void runs_take_chips(struct simulation_world *world, uint32_t machine)
{
    if (world->nodes[machine].dead)
        return;
    list_for_each(at, &world->nodes[machine].ranks)
    {
        struct rank *rank = container_of(at, struct rank, on_machine);
        if (rank->state == RANK_WAITS && (world->nodes[machine].busy & rank->chips) == 0)
            rank_launch(world, rank);
    }
}

void runs_forget(struct simulation_world *world, struct rank *rank)
{
    uint32_t machine = rank->machine;
    if (rank->state != RANK_WAITS && (world->nodes[machine].busy & rank->chips) == rank->chips) {
        tally_advance(world);
        world->nodes[machine].busy &= ~rank->chips;
        world->busy_chips -= (uint32_t)__builtin_popcountll(rank->chips);
    }
    list_remove(&rank->on_machine);
    u64_map_remove(&world->ranks, rank->task);
    rank_leave(world, rank);
    mem_free(rank);
    runs_take_chips(world, machine);
}

void runs_done(struct simulation_world *world)
{
    for (uint32_t machine = 0; machine < world->scenario->machines; machine++)
        list_for_each_safe(at, after, &world->nodes[machine].ranks)
            runs_forget(world, container_of(at, struct rank, on_machine));
}
