/* metrics.c - /metrics: the core's numbers in Prometheus' text format, version 0.0.4. Each request makes one
 * pass over JobSets and tasks; nothing is stored. The counters of JobSets have upstream's names. */
#include "base/units.h"
#include "core/health/fault.h"
#include "core/lemon/lemon.h"
#include "core/repair/repair.h"
#include "kube/render.h"
#include "host/api/request.h"

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_one(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    put_head(out, name, type, help);
    buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void put_of(struct buf *out, const char *name, const char *label, const char *value, int64_t count)
{
    buf_printf(out, "%s{%s=\"%s\"} %lld\n", name, label, value, (long long)count);
}

static void put_jobsets(struct buf *out, const struct job_store *store)
{
    static const char *const states[] = {"Queued",    "Starting",    "Running",   "Restarting",
                                         "Suspended", "Terminating", "Completed", "Failed"};
    enum { STATES = sizeof states / sizeof *states };
    int64_t counts[STATES] = {0};
    uint64_t restarts = 0;
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        if (!jobset_is_seen(jobset))
            continue;
        restarts += jobset->history.record_count;
        for (size_t s = 0; s < STATES; s++)
            counts[s] += str_is(str_from(render_jobset_state(jobset)), states[s]);
    }
    put_head(out, "phalanx_jobsets", "gauge", "JobSets by state.");
    for (size_t s = 0; s < STATES; s++)
        put_of(out, "phalanx_jobsets", "state", states[s], counts[s]);
    put_one(out, "phalanx_jobset_restarts", "gauge", "Restarts of the JobSets that are there.", restarts);
}

/* Writes upstream's counter with its labels: 1 for each existing JobSet that has ended in this way, and,
 * without a name, the number of deleted ones, so that the sum is the number of all. */
static void put_ended(struct buf *out, const struct job_store *store, const char *name, const char *help,
                      enum terminal_state state, uint64_t total)
{
    uint64_t shown = 0;
    put_head(out, name, "counter", help);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        if (!jobset_is_seen(jobset) || jobset->terminal_state != state)
            continue;
        shown++;
        buf_printf(out, "%s{jobset_name=\"" STR_FORMAT "\",namespace=\"" STR_FORMAT "\"} 1\n", name,
                   STR_ARG(jobset->name), STR_ARG(jobset->namespace_));
    }
    buf_printf(out, "%s{jobset_name=\"\",namespace=\"\"} %llu\n", name,
               (unsigned long long)(total > shown ? total - shown : 0));
}

static void count_task(void *context, const struct task *task)
{
    int64_t *counts = context;
    counts[task->state]++;
}

static void put_pods(struct buf *out, const struct job_store *store)
{
    int64_t counts[TASK_STATES] = {0};
    jobs_visit_tasks(store, count_task, counts);
    put_head(out, "phalanx_pods", "gauge", "Pods by phase.");
    put_of(out, "phalanx_pods", "phase", "Pending",
           counts[TASK_PENDING] + counts[TASK_PLACED] + counts[TASK_STARTING]);
    put_of(out, "phalanx_pods", "phase", "Running", counts[TASK_RUNNING] + counts[TASK_STOPPING]);
    put_of(out, "phalanx_pods", "phase", "Succeeded", counts[TASK_SUCCEEDED]);
    put_of(out, "phalanx_pods", "phase", "Failed", counts[TASK_FAILED]);
}

static void put_machines(struct buf *out, const struct cluster *cluster)
{
    static const char *const names[MACHINE_STATES] = {"unseen", "ready", "away", "lost"};
    int64_t counts[MACHINE_STATES] = {0};
    for (size_t i = 0; i < cluster->machine_count; i++)
        counts[cluster->machines[i].state]++;
    put_head(out, "phalanx_machines", "gauge", "Machines by state.");
    for (int s = 0; s < MACHINE_STATES; s++)
        put_of(out, "phalanx_machines", "state", names[s], counts[s]);
}

static void put_chips(struct buf *out, const struct ledger *ledger)
{
    put_head(out, "phalanx_chips", "gauge", "Chips by owner.");
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        if (owner != OWNER_QUEUED)
            put_of(out, "phalanx_chips", "owner", ledger_owner_name(owner), ledger->chips[owner]);
    put_head(out, "phalanx_chip_seconds", "gauge", "Chip-seconds by owner.");
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        int64_t us = ledger->chip_us[owner];
        if (owner != OWNER_QUEUED)
            buf_printf(out, "phalanx_chip_seconds{owner=\"%s\"} %lld.%06lld\n", ledger_owner_name(owner),
                       (long long)(us / 1000000), (long long)(us % 1000000));
    }
}

static void put_bytes_of(void *context, struct str namespace_, uint64_t bytes)
{
    struct buf *out = context;
    buf_printf(out, "phalanx_stored_bytes{namespace=\"" STR_FORMAT "\"} %llu\n", STR_ARG(namespace_),
               (unsigned long long)bytes);
}

static void put_stored_bytes(struct buf *out, const struct core *core)
{
    const struct stored_bytes_settings *most = &core_cluster(core)->policy.stored_bytes;
    put_head(out, "phalanx_stored_bytes", "gauge",
             "Bytes charged for the documents of a namespace; without a name, of cluster-wide kinds.");
    objects_visit_bytes(core_objects(core), put_bytes_of, out);
    put_head(out, "phalanx_stored_bytes_limit", "gauge", "Budgets of stored bytes, in force for new writes.");
    put_of(out, "phalanx_stored_bytes_limit", "budget", "namespace", most->namespace_max);
    put_of(out, "phalanx_stored_bytes_limit", "budget", "cluster", most->cluster_max);
}

/* --- faults --------------------------------------------------------------------------------------------- */

struct fault_counts {
    uint64_t open[LEVELS], closed;
};

static void count_fault(void *context, const struct fault *fault)
{
    struct fault_counts *counts = context;
    if (fault->open)
        counts->open[fault->level]++;
    else
        counts->closed++;
}

static void put_faults(struct buf *out, const struct health *health)
{
    struct fault_counts counts = {0};
    fault_visit(health, count_fault, &counts);
    put_head(out, "phalanx_faults_open", "gauge", "Open faults by level.");
    for (int level = 0; level < LEVELS; level++)
        put_of(out, "phalanx_faults_open", "level", fault_level_names[level], counts.open[level]);
    put_one(out, "phalanx_faults_closed", "gauge", "Closed faults that are kept as history.", counts.closed);
    put_one(out, "phalanx_signals_dropped_total", "counter", "Signals for which there was no room.",
            fault_dropped(health));
}

static void put_isolation(struct buf *out, const struct cluster *cluster)
{
    uint64_t counts[ISOLATIONS] = {0};
    for (size_t i = 0; cluster && i < cluster->machine_count; i++)
        counts[cluster->machines[i].isolation]++;
    put_head(out, "phalanx_machines_isolated", "gauge", "Machines by what their faults make of them.");
    for (int i = 0; i < ISOLATIONS; i++)
        put_of(out, "phalanx_machines_isolated", "isolation", isolation_lifecycle.names[i], counts[i]);
}

static void put_lemons(struct buf *out, const struct core *core)
{
    const struct cluster *cluster = core_cluster(core);
    uint64_t count = 0;
    for (size_t i = 0; i < cluster->machine_count; i++) {
        const struct lemon *lemon = lemon_find(core_lemons(core), cluster->machines[i].name);
        count += lemon && lemon->is_lemon;
    }
    put_one(out, "phalanx_lemons", "gauge", "Machines that fail again and again.", count);
}

static void put_repairs(struct buf *out, const struct repairs *repairs)
{
    uint64_t counts[REPAIR_STATES] = {0};
    const struct repair_totals *totals = repairs_totals(repairs);
    for (size_t i = 0; i < repairs_count(repairs); i++)
        counts[repairs_at(repairs, i)->state]++;
    put_head(out, "phalanx_repairs", "gauge", "Repairs by state; Ticketed ones wait for a person.");
    for (int state = 0; state < REPAIR_STATES; state++)
        put_of(out, "phalanx_repairs", "state", repair_lifecycle.names[state], counts[state]);
    put_head(out, "phalanx_repair_attempts_total", "counter", "Hooks and tests of repairs by outcome.");
    for (int outcome = REPAIR_RUNS + 1; outcome < REPAIR_OUTCOMES; outcome++)
        put_of(out, "phalanx_repair_attempts_total", "outcome", repair_outcome_names[outcome],
               totals->attempts[outcome]);
    put_one(out, "phalanx_repair_tickets_total", "counter", "Times that a repair needed a person.",
            totals->tickets);
    put_one(out, "phalanx_repairs_returned_total", "counter", "Machines that came back from a repair.",
            totals->returned);
}

/* --- the loop ------------------------------------------------------------------------------------------- */

static const int64_t turn_limits_ns[TURN_BUCKETS] = {
    50 * NS_PER_US,   100 * NS_PER_US, 250 * NS_PER_US, 500 * NS_PER_US, 1 * NS_PER_MS,
    2500 * NS_PER_US, 5 * NS_PER_MS,   10 * NS_PER_MS,  25 * NS_PER_MS,  50 * NS_PER_MS,
    100 * NS_PER_MS,  250 * NS_PER_MS, 1000 * NS_PER_MS};

void api_turn(struct api *api, int64_t busy_ns)
{
    struct api_turns *turns = &api->turns;
    int bucket = 0;
    while (bucket < TURN_BUCKETS && busy_ns > turn_limits_ns[bucket])
        bucket++;
    turns->buckets[bucket]++;
    turns->count++;
    turns->sum_ns += busy_ns;
    if (busy_ns > turns->longest_ns)
        turns->longest_ns = busy_ns;
}

static void put_turns(struct buf *out, const struct api_turns *turns)
{
    uint64_t below = 0;
    put_head(out, "phalanx_loop_turn_seconds", "histogram", "How long the loop was busy in one turn.");
    for (int i = 0; i < TURN_BUCKETS; i++) {
        below += turns->buckets[i];
        buf_printf(out, "phalanx_loop_turn_seconds_bucket{le=\"%lld.%06lld\"} %llu\n",
                   (long long)(turn_limits_ns[i] / NS_PER_SECOND),
                   (long long)(turn_limits_ns[i] % NS_PER_SECOND / NS_PER_US), (unsigned long long)below);
    }
    buf_printf(out, "phalanx_loop_turn_seconds_bucket{le=\"+Inf\"} %llu\n", (unsigned long long)turns->count);
    buf_printf(out, "phalanx_loop_turn_seconds_sum %lld.%09lld\n", (long long)(turns->sum_ns / NS_PER_SECOND),
               (long long)(turns->sum_ns % NS_PER_SECOND));
    buf_printf(out, "phalanx_loop_turn_seconds_count %llu\n", (unsigned long long)turns->count);
    put_head(out, "phalanx_loop_turn_longest_seconds", "gauge", "The longest of these turns.");
    buf_printf(out, "phalanx_loop_turn_longest_seconds %lld.%09lld\n",
               (long long)(turns->longest_ns / NS_PER_SECOND),
               (long long)(turns->longest_ns % NS_PER_SECOND));
}

void handle_metrics(struct api_request *request)
{
    const struct core *core = request_core(request);
    const struct job_store *store = core_jobs(core);
    struct json_writer writer = answer_begin(request, 200);
    struct buf *out = writer.out;
    request->answer_type = "text/plain; version=0.0.4; charset=utf-8";
    put_ended(out, store, "jobset_completed_total", "JobSets that have completed.", TERMINAL_COMPLETED,
              store->completed_total);
    put_ended(out, store, "jobset_failed_total", "JobSets that have failed.", TERMINAL_FAILED,
              store->failed_total);
    put_jobsets(out, store);
    put_pods(out, store);
    put_machines(out, core_cluster(core));
    put_chips(out, core_ledger(core));
    put_isolation(out, core_cluster(core));
    put_faults(out, core_health(core));
    put_lemons(out, core);
    put_repairs(out, core_repairs(core));
    put_stored_bytes(out, core);
    put_turns(out, &request->api->turns);
    if (request->api->access)
        put_one(out, "phalanx_audit_dropped_total", "counter",
                "Lines of the audit log that were lost because its disk was too slow.",
                access_audit_dropped(request->api->access));
    put_one(out, "phalanx_api_connections_refused_total", "counter",
            "Connections that were closed because their address had half of all.",
            request->api->stats.refused_connections);
    put_one(out, "phalanx_api_accept_pauses_total", "counter",
            "Times that no connection could be accepted for want of descriptors or memory.",
            request->api->stats.accept_pauses);
    put_one(out, "phalanx_log_writable", "gauge", "1 if the log takes records, 0 if writes are refused.",
            request->api->log_refuses[0] == 0);
    put_one(out, "phalanx_log_position", "counter", "Position in the log.", core_seq(core));
}
