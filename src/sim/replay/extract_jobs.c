/* extract_jobs.c - the jobs of a history: shapes, run times, their own crashes, and their fates in the
 * log. */
#include "sim/replay/internal.h"

#include "base/units.h"

static char extract_over; /* marks a job in extract.jobs that has ended */

static struct extract_job *extract_job_find(const struct extract *extract, obj_id jobset)
{
    void *found = u64_map_get(&extract->jobs, jobset);
    return found == &extract_over ? NULL : found;
}

/* --- work ----------------------------------------------------------------------------------------- */

static int64_t extract_per_chip(const struct extract_job *job, int64_t chip_us)
{
    return job->chips > 0 ? chip_us / job->chips : 0;
}

/* Returns the time in which the job's steps ran, kept or not. */
static int64_t extract_stepped(const struct extract_job *job, const struct ledger_account *account)
{
    return extract_per_chip(job, account->chip_us[OWNER_KEPT] + account->chip_us[OWNER_UNKEPT] +
                                     account->chip_us[OWNER_REDONE] + account->chip_us[OWNER_FAILED]);
}

/* --- a new job ------------------------------------------------------------------------------------ */

/* Sets the shape: as many ranks of the widest kind as have all the chips. Replicated jobs of several widths
 * become one. */
static void extract_shape(const struct jobset_spec *spec, struct history_job *line, int64_t *ret_chips)
{
    int64_t tasks = 0, all = 0, widest = 0;
    for (size_t i = 0; i < spec->rjob_count; i++) {
        const struct job_spec *job = &spec->rjobs[i].job;
        bool fewer = job->completions >= 0 && job->completions < job->parallelism;
        int64_t count = (int64_t)spec->rjobs[i].replicas * (fewer ? job->completions : job->parallelism);
        tasks += count;
        all += count * job->pod.chips;
        widest = count > 0 && job->pod.chips > widest ? job->pod.chips : widest;
    }
    int64_t ranks = widest > 0 ? (all + widest - 1) / widest : tasks;
    ranks = ranks < 1 ? 1 : ranks < HISTORY_RANKS_MAX ? ranks : HISTORY_RANKS_MAX;
    line->ranks = (uint32_t)ranks;
    line->chips = (uint32_t)(widest < HISTORY_CHIPS_MAX ? widest : HISTORY_CHIPS_MAX);
    *ret_chips = all;
}

static struct extract_job *extract_job_new(struct extract *extract, const struct jobset *jobset)
{
    struct extract_job *job = mem_alloc(sizeof *job);
    struct history_job line = {.submit_us = extract_time(extract, jobset->created_ns),
                               .name = extract_text(extract, jobset->key),
                               .launch_us = -1,
                               .load_us = -1,
                               .stop_us = -1,
                               .save_us = -1};
    struct str queue = labels_get(&jobset->spec.labels, STR("kueue.x-k8s.io/queue-name"), STR(""));
    struct str recovery = labels_get(&jobset->spec.annotations, STR("phalanx.dev/recovery"), STR(""));
    line.queue = queue.len ? extract_text(extract, queue) : (struct str){0};
    line.recovery = recovery.len ? extract_text(extract, recovery) : (struct str){0};
    extract_shape(&jobset->spec, &line, &job->chips);
    job->uid = jobset->uid;
    job->line = extract->history.jobs.len;
    job->crash_attempt = job->hit_attempt = -1;
    vec_push(&extract->history.jobs, line);
    u64_map_put(&extract->jobs, jobset->uid, job);
    vec_push(&extract->live, job);
    return job;
}

/* --- changes -------------------------------------------------------------------------------------- */

/* Records when all ranks first ran, and how long that took from the first order to start. */
static void extract_first_run(struct extract *extract, struct extract_job *job, const struct jobset *jobset)
{
    int64_t running_ns = 0, ordered_ns = INT64_MAX;
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        const struct gang *gang = jobset->gangs.items[i];
        if (gang_is_spare(gang))
            continue;
        if (gang->state != GANG_RUNNING)
            return;
        running_ns = gang->running_ns > running_ns ? gang->running_ns : running_ns;
        for (size_t t = 0; t < gang->tasks.len; t++) {
            int64_t sent_ns = gang->tasks.items[t]->start_sent_ns;
            ordered_ns = sent_ns > 0 && sent_ns < ordered_ns ? sent_ns : ordered_ns;
        }
    }
    if (running_ns == 0)
        return;
    struct history_job *line = &extract->history.jobs.items[job->line];
    job->first_ns = running_ns;
    if (ordered_ns < running_ns)
        line->launch_us = (running_ns - ordered_ns) / NS_PER_US;
}

static void extract_progress(struct extract *extract, struct extract_job *job, const struct jobset *jobset)
{
    if (!job->first_ns)
        extract_first_run(extract, job, jobset);
    if (job->first_ns && !job->stepped_ns && jobset->progress.step >= 0) {
        job->stepped_ns = extract->now_ns;
        extract->history.jobs.items[job->line].load_us = (job->stepped_ns - job->first_ns) / NS_PER_US;
    }
    if (jobset->checkpoint.count > job->saves) {
        struct ledger_account account = jobset_account(jobset, extract->now_ns);
        job->saves = jobset->checkpoint.count;
        job->saved_us = extract_stepped(job, &account);
    }
}

/* --- ends ----------------------------------------------------------------------------------------- */

static void extract_job_leave(struct extract *extract, struct extract_job *job)
{
    for (size_t i = extract->running.len; i-- > 0;)
        if (extract->running.items[i].job == job)
            extract->running.items[i].job = NULL;
    u64_map_put(&extract->jobs, job->uid, &extract_over);
    for (size_t i = 0; i < extract->live.len; i++)
        if (extract->live.items[i] == job) {
            vec_remove(&extract->live, i);
            break;
        }
    vec_done(&job->crashes_us);
    mem_free(job);
}

static void extract_saw(const struct extract *extract, const struct extract_job *job,
                        const struct jobset *jobset, const struct ledger_account *account,
                        struct history_job *line)
{
    int32_t restarts = jobset->attempt - jobset->first_attempt;
    line->is_seen = true;
    line->seen = (struct history_seen){.wait_us = -1,
                                       .restarts = restarts > 0 ? restarts : 0,
                                       .redone_us = extract_per_chip(job, account->chip_us[OWNER_REDONE])};
    if (!job->first_ns)
        return;
    int64_t wait_us = extract_time(extract, job->first_ns) - line->submit_us;
    line->seen.wait_us = wait_us > 0 ? wait_us : 0;
    line->seen.held_us = extract_time(extract, extract->now_ns) - extract_time(extract, job->first_ns);
}

static void extract_close(struct extract *extract, struct extract_job *job, const struct jobset *jobset,
                          enum history_end end)
{
    struct history_job *line = &extract->history.jobs.items[job->line];
    struct ledger_account account = jobset_account(jobset, extract->now_ns);
    int64_t work = account.chip_us[OWNER_KEPT] + account.chip_us[OWNER_UNKEPT];
    line->end = end;
    line->run_us = extract_per_chip(job, work + (end == HISTORY_FAILED ? account.chip_us[OWNER_FAILED] : 0));
    if (job->chips == 0 && job->first_ns)
        line->run_us = (extract->now_ns - job->first_ns) / NS_PER_US;
    if (job->first_ns && !job->stepped_ns) { /* its steps are not reported, so running counts as work */
        line->load_us = 0;
        line->keeps = true;
    }
    if (job->stops)
        line->stop_us = job->stop_ns / job->stops / NS_PER_US;
    if (job->saves && job->saved_us > 0) {
        line->save_us = job->saved_us / (int64_t)job->saves;
        line->save_us = line->save_us ? line->save_us : 1;
        line->write_us = extract_per_chip(job, account.chip_us[OWNER_STALLED]) / (int64_t)job->saves;
    }
    if (end == HISTORY_FAILED && job->crash_attempt == jobset->attempt && job->crashes_us.len)
        job->crashes_us.len--; /* this crash is the job's end */
    if (job->crashes_us.len > HISTORY_CRASHES_MAX)
        job->crashes_us.len = HISTORY_CRASHES_MAX;
    line->crash_count = (uint32_t)job->crashes_us.len;
    line->crashes_us = ARENA_ARRAY(&extract->history.arena, int64_t, job->crashes_us.len);
    mem_copy(line->crashes_us, job->crashes_us.items, job->crashes_us.len * sizeof *line->crashes_us);
    extract_saw(extract, job, jobset, &account, line);
    extract_job_leave(extract, job);
}

void extract_jobset(struct extract *extract, const struct jobset *jobset, bool gone)
{
    void *known = u64_map_get(&extract->jobs, jobset->uid);
    if (known == &extract_over || jobset->form == FORM_WORKLOAD || jobset->spec.managed_by.len > 0)
        return;
    struct extract_job *job = known;
    if (!job) {
        if (gone || jobset->deleted_ns || jobset_finished(jobset)) {
            u64_map_put(&extract->jobs, jobset->uid, &extract_over);
            return;
        }
        job = extract_job_new(extract, jobset);
    }
    extract_progress(extract, job, jobset);
    if (jobset_finished(jobset))
        extract_close(extract, job, jobset,
                      jobset->terminal_state == TERMINAL_FAILED ? HISTORY_FAILED : HISTORY_COMPLETED);
    else if (gone || jobset->deleted_ns)
        extract_close(extract, job, jobset, HISTORY_CANCELLED);
}

void extract_jobs_end(struct extract *extract, const struct core *core)
{
    const struct job_store *jobs = core_jobs(core);
    while (extract->live.len > 0) {
        struct extract_job *job = vec_last(&extract->live);
        struct jobset *jobset = jobs_find_uid(jobs, job->uid);
        CHECK(jobset); /* a job whose JobSet was removed is closed */
        extract_close(extract, job, jobset, HISTORY_RUNNING);
    }
}

/* --- processes ------------------------------------------------------------------------------------ */

void extract_jobs_start(struct extract *extract, const struct core *core, const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    struct extract_job *job = extract_job_find(extract, jobset->uid);
    if (!job || task->machine == MACHINE_NONE || task_is_spare(task) || task_ended(task->state) ||
        task->state < TASK_STARTING || u64_map_get(&extract->tasks, task->uid))
        return;
    uint32_t machine = extract_machine_of(extract, core_cluster(core)->machines[task->machine].name);
    struct extract_task started = {task->uid, job, machine, task->attempt, task->stopping_since_ns};
    if (machine == MACHINE_NONE)
        return;
    extract->history.jobs.items[job->line].priority = task->priority;
    vec_push(&extract->running, started);
    u64_map_put(&extract->tasks, task->uid, (void *)(uintptr_t)extract->running.len);
}

static struct extract_task *extract_task_find(const struct extract *extract, obj_id uid)
{
    uintptr_t place = (uintptr_t)u64_map_get(&extract->tasks, uid);
    return place ? &extract->running.items[place - 1] : NULL;
}

static void extract_task_leave(struct extract *extract, struct extract_task *task)
{
    u64_map_remove(&extract->tasks, task->uid);
    struct extract_task last = vec_last(&extract->running);
    extract->running.len--;
    if (last.uid == task->uid)
        return;
    *task = last;
    u64_map_put(&extract->tasks, last.uid, (void *)(uintptr_t)(task - extract->running.items + 1));
}

void extract_jobs_stop(struct extract *extract, obj_id task)
{
    struct extract_task *stopped = extract_task_find(extract, task);
    if (stopped && !stopped->stop_ns)
        stopped->stop_ns = extract->now_ns;
}

static void extract_crashed(struct extract *extract, const struct core *core, const struct extract_task *task)
{
    struct extract_job *job = task->job;
    const struct jobset *jobset = jobs_find_uid(core_jobs(core), job->uid);
    if (!jobset || job->crash_attempt == task->attempt || job->hit_attempt == task->attempt)
        return; /* peers end after the first one */
    if (extract_is_faulty(extract, core, task->machine)) {
        job->hit_attempt = task->attempt;
        return;
    }
    struct ledger_account account = jobset_account(jobset, extract->now_ns);
    vec_push(&job->crashes_us, extract_stepped(job, &account));
    job->crash_attempt = task->attempt;
    vec_push(&extract->crashes,
             ((struct extract_crash){job->uid, task->machine, task->attempt, extract->now_ns}));
}

void extract_jobs_reports(struct extract *extract, const struct core *core, const struct reports *reports)
{
    for (size_t i = 0; i < reports->count; i++) {
        const struct task_report *report = &reports->items[i];
        bool ended = report->kind == REPORT_EXITED || report->kind == REPORT_START_FAILED;
        struct extract_task *task = ended ? extract_task_find(extract, report->task) : NULL;
        if (!task)
            continue;
        bool failed = report->exit_code != 0 || report->signal != 0;
        if (task->job && task->stop_ns) {
            task->job->stop_ns += extract->now_ns - task->stop_ns;
            task->job->stops++;
        } else if (task->job && report->kind == REPORT_EXITED && failed) {
            extract_crashed(extract, core, task);
        }
        extract_task_leave(extract, task);
    }
}

/* --- what machines did ---------------------------------------------------------------------------- */

/* Removes the newest crash of the attempt, which the job did not cause. */
static void extract_uncrash(struct extract_job *job, int32_t attempt)
{
    if (job->crash_attempt == attempt) {
        CHECK(job->crashes_us.len > 0);
        job->crashes_us.len--;
        job->crash_attempt = -1;
    }
    job->hit_attempt = attempt > job->hit_attempt ? attempt : job->hit_attempt;
}

void extract_jobs_lose(struct extract *extract, uint32_t machine)
{
    for (size_t i = extract->running.len; i-- > 0;) {
        struct extract_task *task = &extract->running.items[i];
        if (task->machine != machine)
            continue;
        if (task->job)
            extract_uncrash(task->job, task->attempt);
        extract_task_leave(extract, task);
    }
}

bool extract_jobs_killed(struct extract *extract, uint32_t machine, int64_t within_ns)
{
    bool killed = false;
    for (size_t i = extract->crashes.len; i-- > 0;) {
        const struct extract_crash *crash = &extract->crashes.items[i];
        if (extract->now_ns - crash->at_ns > within_ns)
            break;
        if (crash->machine != machine)
            continue;
        struct extract_job *job = extract_job_find(extract, crash->job);
        if (job && job->crash_attempt == crash->attempt)
            extract_uncrash(job, crash->attempt);
        killed = true;
    }
    return killed;
}

void extract_jobs_done(struct extract *extract)
{
    for (size_t i = 0; i < extract->live.len; i++) {
        vec_done(&extract->live.items[i]->crashes_us);
        mem_free(extract->live.items[i]);
    }
    vec_done(&extract->live);
    vec_done(&extract->running);
    vec_done(&extract->crashes);
    u64_map_done(&extract->jobs);
    u64_map_done(&extract->tasks);
}
