/* corruption.c - machines whose results are wrong without any error.
 *
 * A corruption begins at a strike (fleet.c) and stays hidden until a test of the machine, another mechanism,
 * or a job's validation of its own results finds it. Each job that trains on the machine meanwhile has wrong
 * results from then on, even if it moves: a checkpoint that it writes later is wrong too. When the corruption
 * is found, these jobs stop and return to their newest checkpoint from before; their work since then is lost
 * to the corruption. A job that has ended by then keeps its wrong results. */
#include "sim/capacity/internal.h"

bool corruption_hides(const struct simulation_world *world, uint32_t machine)
{
    const struct sim_node *node = &world->nodes[machine];
    return node->condition == MACHINE_HIDDEN &&
           world->scenario->failures[node->model].kind == FAILURE_CORRUPTION;
}

/* Draws the time until a test finds the corruption. Tests run at fixed times, so the first one is a part of
 * the interval away. */
static double until_test_s(struct simulation_world *world, const struct corruption_tests *tests)
{
    double wait_s = tests->interval_s * rng_unit(&world->times);
    while (rng_unit(&world->times) >= tests->coverage)
        wait_s += tests->interval_s;
    return wait_s;
}

int64_t corruption_found_ns(struct simulation_world *world, const struct failure_model *failure)
{
    int64_t found_ns = INT64_MAX;
    if (failure->tests.detects)
        found_ns = draw_ns(&failure->detection, &world->times);
    double test_s = failure->tests.interval_s > 0 ? until_test_s(world, &failure->tests) : DRAW_SECONDS_MAX;
    if (test_s < DRAW_SECONDS_MAX && (int64_t)(test_s * 1e9) < found_ns)
        found_ns = (int64_t)(test_s * 1e9);
    return found_ns;
}

/* Notes that the job's results are wrong from `work_ns` on. */
static void job_goes_wrong(struct simulation_world *world, struct sim_job *job, uint32_t machine,
                           int64_t work_ns)
{
    const struct failure_model *failure = &world->scenario->failures[world->nodes[machine].model];
    if (job->wrong_by && job->wrong_from_ns <= work_ns)
        return;
    job->wrong_by = machine + 1;
    job->wrong_model = world->nodes[machine].model;
    job->wrong_from_ns = work_ns;
    job->right_ns = job->saved_ns;
    job->notice_ns = INT64_MAX;
    if (failure->tests.validates)
        job->notice_ns = job->trained_ns + draw_ns(&failure->tests.validation, &world->times);
}

void corruption_begins(struct simulation_world *world, uint32_t machine)
{
    list_for_each(at, &world->nodes[machine].ranks)
    {
        struct run *run = container_of(at, struct rank, on_machine)->run;
        if (run->phase != RUN_TRAINING && run->phase != RUN_WRITING)
            continue;
        int64_t stretch_ns = run->phase == RUN_TRAINING ? world->now_ns - run->since_ns : 0;
        job_goes_wrong(world, run->job, machine, run->work_ns + stretch_ns);
        if (run->job->notice_ns < INT64_MAX)
            run->job->notice_ns += stretch_ns; /* trained_ns does not include this stretch yet */
        runs_look_again(world, run);
    }
}

void corruption_run_trains(struct simulation_world *world, struct run *run)
{
    struct sim_job *job = run->job;
    if (job->wrong_by && run->restored_ns <= job->right_ns) {
        job->wrong_by = 0; /* the wrong work is lost anyway */
        job->notice_ns = INT64_MAX;
    }
    for (size_t i = 0; i < run->ranks.len; i++)
        if (corruption_hides(world, run->ranks.items[i]->machine))
            job_goes_wrong(world, job, run->ranks.items[i]->machine, run->restored_ns);
}

void corruption_run_saved(struct run *run)
{
    if (run->job->wrong_by && run->work_ns <= run->job->wrong_from_ns)
        run->job->right_ns = run->job->saved_ns; /* its write began before the corruption */
}

/* Stops the job, if it runs, so that it continues from its newest right checkpoint. */
static void job_goes_back(struct simulation_world *world, struct sim_job *job)
{
    struct simulation_failure *count = &world->outcome->failures[job->wrong_model];
    int64_t work_ns = runs_work(world, job), saved_ns = job->saved_ns;
    if (job->run && job->run->phase != RUN_STANDS)
        runs_fail(world, job->run, job->wrong_by - 1);
    CHECK(job->right_ns <= saved_ns && saved_ns <= work_ns);
    job->lost_ns += saved_ns - job->right_ns;
    job->saved_ns = job->right_ns;
    count->rollbacks++;
    count->lost_s += (double)(work_ns - job->right_ns) / 1e9;
    count->chip_lost_s += (double)(work_ns - job->right_ns) / 1e9 * job->chips;
    job->wrong_by = 0;
    job->notice_ns = INT64_MAX;
}

void corruption_found(struct simulation_world *world, uint32_t machine)
{
    const struct sim_node *node = &world->nodes[machine];
    struct simulation_failure *count = &world->outcome->failures[node->model];
    count->found++;
    count->hidden_s += (double)(world->now_ns - node->failed_ns) / 1e9;
    for (size_t i = 0; i < world->live.len; i++)
        if (world->live.items[i]->wrong_by == machine + 1 && !world->live.items[i]->ended)
            job_goes_back(world, world->live.items[i]);
}

void corruption_job_ended(struct simulation_world *world, const struct sim_job *job)
{
    if (!job->wrong_by)
        return;
    struct simulation_failure *count = &world->outcome->failures[job->wrong_model];
    count->wrong_jobs++;
    count->wrong_chip_s += (double)(job->work_ns - job->wrong_from_ns) / 1e9 * job->chips;
}
