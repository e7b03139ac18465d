/* history_sum.c - sums over a history. */
#include "sim/trace/history.h"

#include "base/arena.h"

static void history_sum_seen(const struct history_job *job, struct history_seen_sum *sum)
{
    double chips = (double)job->ranks * job->chips;
    if (!job->is_seen)
        return;
    sum->jobs++;
    sum->completed += job->end == HISTORY_COMPLETED;
    sum->restarts += job->seen.restarts;
    sum->work_chip_s += (double)job->run_us / 1e6 * chips;
    sum->redone_chip_s += (double)job->seen.redone_us / 1e6 * chips;
    if (job->seen.wait_us < 0)
        return;
    sum->started++;
    sum->wait_s += (double)job->seen.wait_us / 1e6;
    sum->held_chip_s += (double)job->seen.held_us / 1e6 * chips;
    sum->lived_chip_s += (double)(job->seen.wait_us + job->seen.held_us) / 1e6 * chips;
}

static void history_sum_jobs(const struct history *history, struct history_facts *facts)
{
    for (size_t i = 0; i < history->jobs.len; i++) {
        const struct history_job *job = &history->jobs.items[i];
        facts->ends[job->end]++;
        history_sum_seen(job, &facts->seen);
        facts->crashes += job->crash_count;
        facts->never_ran += job->run_us == 0;
        facts->work_chip_s += (double)job->run_us / 1e6 * job->ranks * job->chips;
    }
}

/* Sums up the outages, which are sorted by their beginning. Time in which outages of a machine overlap counts
 * once. */
static void history_sum_outages(const struct history *history, struct history_facts *facts)
{
    int64_t *out_until_us = mem_alloc((history->machines.len + 1) * sizeof *out_until_us);
    for (size_t i = 0; i < history->outages.len; i++) {
        const struct history_outage *outage = &history->outages.items[i];
        int64_t until_us = outage->until_us < 0 ? history->end_us : outage->until_us;
        int64_t covered_us = out_until_us[outage->machine];
        int64_t from_us = outage->at_us > covered_us ? outage->at_us : covered_us;
        facts->outages += outage->code.len == 0 && outage->at_us > 0;
        facts->absent += outage->code.len == 0 && outage->at_us == 0;
        facts->faults += outage->code.len > 0;
        facts->open += outage->until_us < 0;
        facts->overlaps += outage->at_us < covered_us;
        if (until_us > from_us) {
            facts->out_s += (double)(until_us - from_us) / 1e6;
            out_until_us[outage->machine] = until_us;
        }
    }
    mem_free(out_until_us);
}

static void history_note_silence(struct history_facts *facts, int64_t *last_us, int64_t at_us)
{
    if (at_us - *last_us > facts->silence_us) {
        facts->silence_us = at_us - *last_us;
        facts->silence_at_us = *last_us;
    }
    *last_us = at_us > *last_us ? at_us : *last_us;
}

/* Finds the longest time without a submission or the beginning of an outage. */
static void history_sum_silence(const struct history *history, struct history_facts *facts)
{
    size_t job = 0, outage = 0;
    int64_t last_us = 0;
    while (job < history->jobs.len || outage < history->outages.len) {
        int64_t job_us = job < history->jobs.len ? history->jobs.items[job].submit_us : INT64_MAX;
        int64_t out_us = outage < history->outages.len ? history->outages.items[outage].at_us : INT64_MAX;
        history_note_silence(facts, &last_us, job_us < out_us ? job_us : out_us);
        job += job_us <= out_us;
        outage += out_us < job_us;
    }
    history_note_silence(facts, &last_us, history->end_us);
}

void history_sum(const struct history *history, struct history_facts *ret_facts)
{
    *ret_facts = (struct history_facts){0};
    for (size_t i = 0; i < history->machines.len; i++)
        ret_facts->chips += history->machines.items[i].chips;
    for (size_t i = 0; i < history->gaps.len; i++)
        ret_facts->gap_us += history->gaps.items[i].until_us - history->gaps.items[i].at_us;
    history_sum_jobs(history, ret_facts);
    history_sum_outages(history, ret_facts);
    history_sum_silence(history, ret_facts);
}
