/* attempt.c - the end of one attempt and the beginning of the next: JobSet's failure policy. */
#include "core/recover/internal.h"

#include <stdio.h>

static bool contains(const struct str *list, size_t count, struct str wanted)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(list[i], wanted))
            return true;
    return false;
}

static bool rule_matches(const struct failure_rule *rule, const struct job *job)
{
    CHECK(job_failed(job));
    if (rule->targets && !rule->targets[job->rjob_index])
        return false;
    if (rule->reason_count && !contains(rule->reasons, rule->reason_count, str_from(job->reason)))
        return false;
    if (!rule->pattern_count)
        return true;
    for (size_t i = 0; i < rule->pattern_count; i++) {
        bool matched = false;
        if (pattern_search(rule->patterns[i], job->message, &matched, NULL) == 0 && matched)
            return true; /* a malformed pattern matches nothing, as upstream */
    }
    return false;
}

/* Returns the Job that failed first among those that the rule matches, or among all if `rule` is NULL. */
static struct job *first_failed(const struct jobset *jobset, const struct failure_rule *rule)
{
    struct job *first = NULL;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        if (!job || !job_has_failed(job) || (rule && !rule_matches(rule, job)))
            continue;
        if (!first || job->finished_ns < first->finished_ns)
            first = job;
    }
    return first;
}

static const char *action_name(enum failure_action action)
{
    static const char *const names[] = {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts",
                                        "RestartJob", "RestartJobAndIgnoreMaxRestarts"};
    _Static_assert(sizeof names / sizeof *names == FAILURE_RESTART_JOB_IGNORE_MAX + 1, "a name for each");
    CHECK((unsigned)action < sizeof names / sizeof *names);
    return names[action];
}

static void note_action(struct step *step, struct jobset *jobset, enum failure_action action,
                        const struct job *failed)
{
    char reason[64];
    snprintf(reason, sizeof(reason), "%sFailurePolicyAction", action_name(action));
    step_note(step, true, reason, ref_jobset(jobset),
              "applying %s failure policy action (first failed job: " STR_FORMAT ")", action_name(action),
              STR_ARG(failed->name));
}

static void note_wait(struct step *step, struct jobset *jobset)
{
    int64_t wait_ns = attempt_due(jobset) - step->now_ns;
    if (wait_ns > 0 && jobset->recovery.ladder.wait_ns > step->now_ns)
        step_note(step, true, "CrashLoopBackOff", ref_jobset(jobset),
                  "%d attempts in a row ended without a new step: the next attempt begins in %d s",
                  jobset->recovery.ladder.stalled, (int)((wait_ns + NS_PER_SECOND - 1) / NS_PER_SECOND));
    else if (wait_ns > 0 && jobset->recovery.crashes.due_ns > step->now_ns)
        step_note(step, true, "CrashLoopBackOff", ref_jobset(jobset),
                  "%d crashes in a row without a new step: the next attempt begins in %d s",
                  jobset->recovery.crashes.count, (int)((wait_ns + NS_PER_SECOND - 1) / NS_PER_SECOND));
    else if (wait_ns > 0)
        step_note(step, true, "CrashLoopBackOff", ref_jobset(jobset),
                  "%d restarts in less than %d s: the next attempt begins in %d s", RESTART_RECORDS_MAX,
                  (int)(RESTART_WINDOW_NS / NS_PER_SECOND),
                  (int)((wait_ns + NS_PER_SECOND - 1) / NS_PER_SECOND));
}

/* Begins the ladder's last rung, which is announced and recorded like the others. */
static void begin_requeue(struct step *step, struct jobset *jobset, const struct job *failed,
                          const struct recovery *recovery, bool same)
{
    CHECK(job_failed(failed) && failed->jobset == jobset);
    struct arena arena ARENA_CLEANUP = {0};
    if (!recovery->holds)
        return;
    recovery_begin(step, jobset, recovery, same);
    step_note(step, true, "RecoveryDecided", ref_jobset(jobset), "%s as attempt %d: " STR_FORMAT STR_FORMAT,
              rung_name(recovery->rung), jobset->attempt + 1, STR_ARG(failed->name),
              STR_ARG(recovery_passed(recovery, &arena)));
}

/* Returns whether the JobSet is not charged for the failure, because infrastructure caused it, and the ladder
 * applies to the JobSet. */
static bool is_forgiven(const struct jobset *jobset, const struct recovery *recovery)
{
    return jobset->form == FORM_JOBSET && recovery->holds && loss_is_infrastructure(recovery->incident.cause);
}

static void restart_all(struct step *step, struct jobset *jobset, const struct failure_rule *rule,
                        struct job *failed, const struct recovery *recovery)
{
    CHECK(failed->jobset == jobset && (!rule || rule->action != FAILURE_FAIL_JOBSET));
    CHECK(jobset->attempt < INT32_MAX);
    char reason[160];
    if (rule)
        snprintf(reason, sizeof(reason), "FailurePolicy_" STR_FORMAT, STR_ARG(rule->name));
    else
        snprintf(reason, sizeof(reason), "DefaultFailurePolicy");
    note_action(step, jobset, rule ? rule->action : FAILURE_RESTART_JOBSET, failed);
    bool same = restart_is_same_incident(step, jobset, failed->culprit);
    bool counted = same || is_forgiven(jobset, recovery), saved = jobset->recovery.state == RECOVERY_SAVED;
    restart_begin(step, jobset, jobset->attempt + 1, failed->reason, failed->culprit);
    if (!saved) /* otherwise the ladder has answered already */
        begin_requeue(step, jobset, failed, recovery, same);
    if (!recovery->holds)
        backoff_begin(step, jobset, failed->culprit);
    note_wait(step, jobset);
    jobset->restarts++;
    attempt_raise(step, jobset, jobset->attempt + 1);
    jobset->executions++;
    if (!counted && (!rule || rule->action == FAILURE_RESTART_JOBSET))
        jobset->restarts_counted++;
    condition_set(step, jobset, CONDITION_RESTARTING, true, reason,
                  "applying RestartJobSet failure policy action (first failed job: " STR_FORMAT ")",
                  STR_ARG(failed->name));
    attempt_doom_jobs(step, jobset, 0, jobset->job_count);
    shrink_forget(jobset);
    CHECK(jobset->made == 0 && jobset->attempt >= jobset->restarts);
}

static void restart_one(struct step *step, struct jobset *jobset, const struct failure_rule *rule,
                        struct job *failed, const struct recovery *recovery)
{
    CHECK(job_failed(failed) && jobset->job_count > failed->global_index);
    CHECK(rule && jobset->jobs[failed->global_index] == failed);
    note_action(step, jobset, rule->action, failed);
    bool same = restart_is_same_incident(step, jobset, failed->culprit);
    bool counted = same || is_forgiven(jobset, recovery);
    restart_begin(step, jobset, jobset->attempt, failed->reason, failed->culprit);
    begin_requeue(step, jobset, failed, recovery, same);
    if (!recovery->holds)
        backoff_begin(step, jobset, failed->culprit);
    note_wait(step, jobset);
    jobset->job_attempts[failed->global_index]++;
    if (!counted && rule->action == FAILURE_RESTART_JOB)
        jobset->job_attempts_counted[failed->global_index]++;
    attempt_doom_jobs(step, jobset, failed->global_index, failed->global_index + 1);
}

bool attempt_failure_policy(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_finished(jobset) && !jobset->deleted_ns);
    int32_t count = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        count += jobset->rjob_status[r].failed;
    struct job *failed = count > 0 ? first_failed(jobset, NULL) : NULL;
    if (!failed)
        return false;
    struct recovery recovery =
        recovery_ask(step, jobset, (struct trouble){TROUBLE_FAILED_JOB, .failed = failed});
    if (recovery.no_progress) {
        struct arena arena ARENA_CLEANUP = {0};
        jobset_finish(step, jobset, CONDITION_FAILED, NO_PROGRESS, STR_FORMAT,
                      STR_ARG(recovery_give_up_text(jobset, &recovery, &arena)));
        return true;
    }
    if (!jobset->spec.has_failure_policy && !is_forgiven(jobset, &recovery)) {
        jobset_finish(step, jobset, CONDITION_FAILED, "FailedJobs",
                      "jobset failed due to one or more job failures (first failed job: " STR_FORMAT ")",
                      STR_ARG(failed->name));
        return true;
    }
    const struct failure_rule *rule = NULL;
    for (size_t i = 0; i < jobset->spec.rule_count && !rule; i++) {
        struct job *match = first_failed(jobset, &jobset->spec.rules[i]);
        if (match) {
            rule = &jobset->spec.rules[i];
            failed = match;
        }
    }
    recovery = recovery_ask(step, jobset, (struct trouble){TROUBLE_FAILED_JOB, .failed = failed});
    enum failure_action action = rule ? rule->action : FAILURE_RESTART_JOBSET;
    bool counts = action == FAILURE_RESTART_JOBSET || action == FAILURE_RESTART_JOB;
    if (action == FAILURE_FAIL_JOBSET)
        jobset_finish(step, jobset, CONDITION_FAILED, "FailJobSetFailurePolicyAction",
                      "applying FailJobSet failure policy action (first failed job: " STR_FORMAT ")",
                      STR_ARG(failed->name));
    else if (counts && !attempt_within_max(jobset) && !is_forgiven(jobset, &recovery) &&
             !restart_is_same_incident(step, jobset, failed->culprit))
        jobset_finish(step, jobset, CONDITION_FAILED, "ReachedMaxRestarts",
                      "jobset failed due to reaching max number of restarts (first failed job: " STR_FORMAT
                      ")",
                      STR_ARG(failed->name));
    else if ((action == FAILURE_RESTART_JOB || action == FAILURE_RESTART_JOB_IGNORE_MAX) &&
             !inplace_left_some(jobset) && jobset->recovery.state != RECOVERY_DUMPING &&
             jobset->recovery.state != RECOVERY_SAVED && jobset->recovery.state != RECOVERY_REFUSED)
        restart_one(step, jobset, rule, failed, &recovery);
    else
        restart_all(step, jobset, rule, failed, &recovery);
    return true;
}
