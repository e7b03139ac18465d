#include "core/agent/agent_private.h"
#include "core/words/limits.h"

_Static_assert(AGENT_TASKS_MAX + AGENT_PENDING_MAX <= REPORTS_PER_EVENT_MAX,
               "all that an agent can have to say is one message");
enum { NOTE_TEXT_MAX = 1024 };
_Static_assert(METRIC_NAME_MAX > 1, "a metric's name ends with NUL");

/* --- reports -------------------------------------------------------------------------------------- */

static bool same_report(const struct task_report *a, const struct task_report *b)
{
    return a->kind == b->kind && a->task == b->task && a->step == b->step && a->peer_rank == b->peer_rank &&
           a->attempt_plus_1 == b->attempt_plus_1;
}

void agent_pend(struct agent *agent, const struct task_report *report)
{
    CHECK(report->kind >= REPORT_STARTED && report->kind <= REPORT_ROUTES);
    CHECK(report->task != 0); /* the controller refuses a report without a task */
    for (size_t i = 0; i < agent->pending.len; i++)
        if (same_report(&agent->pending.items[i].report, report)) {
            agent->pending.items[i].number = 0; /* it is sent again */
            if (report->kind == REPORT_JOINED)
                agent->pending.items[i].report = *report; /* that of the newest process */
            return;
        }
    if (agent->pending.len == AGENT_PENDING_MAX)
        agent_unpend(agent, 0);
    struct pending_report pending = {.report = *report};
    if (report->kind == REPORT_NOTE || report->kind == REPORT_RETRY) {
        size_t len = report->message.len < NOTE_TEXT_MAX ? report->message.len : NOTE_TEXT_MAX;
        pending.text = mem_alloc(len + 1);
        mem_copy(pending.text, report->message.data, len);
        pending.report.message = (struct str){pending.text, len};
    }
    vec_push(&agent->pending, pending);
    CHECK(agent->pending.len <= AGENT_PENDING_MAX);
}

void agent_unpend(struct agent *agent, size_t index)
{
    mem_free(agent->pending.items[index].text);
    vec_remove(&agent->pending, index);
}

void agent_reports_acked(struct agent *agent, uint64_t number)
{
    for (size_t i = agent->pending.len; i-- > 0;)
        if (agent->pending.items[i].number != 0 && agent->pending.items[i].number <= number)
            agent_unpend(agent, i);
    agent_signals_acked(agent, number);
    agent_errands_acked(agent, number);
}

static struct task_report report_of(const struct local_task *task, struct arena *arena)
{
    struct task_report report = {.kind = REPORT_STARTED,
                                 .task = task->uid,
                                 .started_ns = task->started_ns,
                                 .pid = task->pid,
                                 .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                 .routes = task->routes};
    if (task->container_count > 0) {
        agent_containers_report(task, arena, &report);
        if (!task->ran)
            report.kind = REPORT_PREPARING;
    }
    if (local_live(task))
        return report;
    report.kind = task->start_failed ? REPORT_START_FAILED : REPORT_EXITED;
    /* The report of a task that was refused as fenced names the attempt that was seen (agent_task.c). */
    if (!task->start_failed || !task->fenced)
        report.attempt_plus_1 = 0;
    report.exit_code = task->exit_code;
    report.signal = task->signal;
    report.oom = task->oom;
    report.fenced = task->fenced;
    report.finished_ns = task->finished_ns;
    report.message = str_from(task->message);
    report.signature_count = task->signature_count;
    report.signatures = ARENA_ARRAY(arena, struct signature, task->signature_count);
    mem_copy(report.signatures, task->signatures, task->signature_count * sizeof(*report.signatures));
    return report;
}

/* Lists the attempts seen. Attempt 0 is left out: no controller needs it, because no JobSet is older. */
static void list_seen(const struct agent *agent, struct arena *arena, struct hello *hello)
{
    hello->seen = ARENA_ARRAY(arena, struct attempt_seen, agent->seen.len);
    for (size_t i = 0; i < agent->seen.len; i++)
        if (agent->seen.items[i].attempt > 0)
            hello->seen[hello->seen_count++] = agent->seen.items[i];
}

void agent_send_hello(struct agent *agent, struct agent_effects *effects)
{
    CHECK(agent->link == LINK_HELLO && agent->connection > 0);
    struct hello hello = {.version = this_release.wire,
                          .machine = agent->config.machine,
                          .incarnation = agent->config.incarnation,
                          .connection = agent->connection,
                          .chips = agent->config.chips,
                          .cpu_milli = agent->config.cpu_milli,
                          .memory_bytes = agent->config.memory_bytes,
                          .software = agent->config.software,
                          .rank_tables = true,
                          .injection = agent->config.injection,
                          .cluster = agent->cluster,
                          .report_count = agent->tasks.len};
    hello.reports = ARENA_ARRAY(&effects->arena, struct task_report, agent->tasks.len);
    for (size_t i = 0; i < agent->tasks.len; i++) {
        hello.reports[i] = report_of(agent->tasks.items[i], &effects->arena);
        agent->tasks.items[i]->report_due = false;
    }
    agent_list_errands(agent, &effects->arena, &hello);
    list_seen(agent, &effects->arena, &hello);
    agent_effect_add(effects, AGENT_SEND)->send =
        (struct from_agent){.kind = FROM_AGENT_HELLO, .hello = hello};
}

static void take_states(struct agent *agent, bool live, struct arena *arena, struct reports *reports)
{
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (!task->report_due || local_live(task) != live)
            continue;
        reports->items[reports->count++] = report_of(task, arena);
        task->report_due = false;
    }
}

/* Sends reports in the order of a task's life: its start, events while it ran, its end. */
static void send_reports(struct agent *agent, struct agent_effects *effects)
{
    size_t most = 0;
    for (size_t i = 0; i < agent->tasks.len; i++)
        most += agent->tasks.items[i]->report_due;
    for (size_t i = 0; i < agent->pending.len; i++)
        most += agent->pending.items[i].number == 0;
    if (most == 0 && agent_signals_due(agent) == 0 && agent_errands_due(agent) == 0)
        return;
    struct reports reports = {.number = ++agent->report_number};
    reports.items = ARENA_ARRAY(&effects->arena, struct task_report, most);
    take_states(agent, true, &effects->arena, &reports);
    for (size_t i = 0; i < agent->pending.len; i++)
        if (agent->pending.items[i].number == 0) {
            reports.items[reports.count++] = agent->pending.items[i].report;
            agent->pending.items[i].number = reports.number;
        }
    take_states(agent, false, &effects->arena, &reports);
    CHECK(reports.count == most);
    agent_take_signals(agent, &effects->arena, &reports);
    agent_take_errands(agent, &effects->arena, &reports);
    agent_effect_add(effects, AGENT_SEND)->send =
        (struct from_agent){.kind = FROM_AGENT_REPORTS, .reports = reports};
}

void task_report_copy(struct arena *arena, const struct task_report *from, size_t text_max,
                      struct task_report *ret)
{
    CHECK(from != ret && from->container_count <= TASK_CONTAINERS_MAX);
    *ret = *from;
    ret->message = arena_str(arena, str_head_utf8(from->message, text_max));
    ret->reason = arena_str(arena, str_head_utf8(from->reason, text_max));
    ret->signatures = ARENA_ARRAY(arena, struct signature, from->signature_count);
    for (size_t i = 0; i < from->signature_count; i++)
        ret->signatures[i] =
            (struct signature){from->signatures[i].kind, arena_str(arena, from->signatures[i].line)};
    if (from->container_count == 0)
        return;
    ret->containers = ARENA_ARRAY(arena, struct container_status, from->container_count);
    for (size_t i = 0; i < from->container_count; i++) {
        struct container_status status = from->containers[i];
        status.name = str_head_utf8(status.name, text_max);
        status.reason = str_head_utf8(status.reason, text_max);
        status.message = str_head_utf8(status.message, text_max);
        status.end.message = str_head_utf8(status.end.message, text_max);
        container_status_copy(arena, &status, &ret->containers[i]);
    }
}

struct task_report *task_reports_copy(struct arena *arena, const struct task_report *from, size_t count,
                                      size_t text_max)
{
    struct task_report *copies = ARENA_ARRAY(arena, struct task_report, count);
    for (size_t i = 0; i < count; i++)
        task_report_copy(arena, &from[i], text_max, &copies[i]);
    return copies;
}

void reports_copy(struct arena *arena, const struct reports *from, size_t text_max, struct reports *ret)
{
    *ret = *from;
    ret->items = task_reports_copy(arena, from->items, from->count, text_max);
    ret->signals = ARENA_ARRAY(arena, struct signal, from->signal_count);
    for (size_t i = 0; i < from->signal_count; i++) {
        struct signal *copy = &ret->signals[i];
        *copy = from->signals[i];
        copy->code = arena_str(arena, copy->code);
        copy->place = arena_str(arena, copy->place);
        copy->evidence = arena_str(arena, copy->evidence);
    }
    ret->errands = ARENA_ARRAY(arena, struct errand_end, from->errand_count);
    for (size_t i = 0; i < from->errand_count; i++) {
        ret->errands[i] = from->errands[i];
        ret->errands[i].output = arena_str(arena, str_head_utf8(from->errands[i].output, ERRAND_OUTPUT_MAX));
    }
}

void hello_copy(struct arena *arena, const struct hello *from, size_t text_max, struct hello *ret)
{
    *ret = *from;
    ret->machine = arena_str(arena, from->machine);
    ret->software = arena_str(arena, str_head_utf8(from->software, text_max));
    ret->reports = task_reports_copy(arena, from->reports, from->report_count, text_max);
    ret->errand_ids = ARENA_ARRAY(arena, obj_id, from->errand_count);
    mem_copy(ret->errand_ids, from->errand_ids, from->errand_count * sizeof *ret->errand_ids);
    ret->seen = ARENA_ARRAY(arena, struct attempt_seen, from->seen_count);
    mem_copy(ret->seen, from->seen, from->seen_count * sizeof *ret->seen);
}

/* --- steps and heartbeats ------------------------------------------------------------------------- */

/* Returns the interval of STEPS of this machine: 100 ms, and longer in large gangs, so that a job's progress
 * costs the controller at most about 1,000 messages a second. If it exceeds the heartbeat's interval, only
 * heartbeats carry steps. */
static int64_t steps_interval(const struct agent *agent, const struct local_task *task)
{
    int64_t wait_ns = (int64_t)task->world * NS_PER_MS;
    return wait_ns < AGENT_STEPS_INTERVAL_NS ? AGENT_STEPS_INTERVAL_NS : wait_ns;
}

int64_t agent_steps_deadline(const struct agent *agent)
{
    if (agent->link != LINK_WELCOME)
        return INT64_MAX;
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < agent->tasks.len; i++) {
        const struct local_task *task = agent->tasks.items[i];
        if (!task->step_due)
            continue;
        if (task->step_urgent)
            return agent->boot_ns;
        int64_t interval_ns = steps_interval(agent, task);
        int64_t at_ns = agent->steps_sent_ns + interval_ns;
        if (interval_ns < agent->heartbeat_ns && at_ns < due_ns)
            due_ns = at_ns;
    }
    return due_ns;
}

static void fill_step(const struct local_task *task, struct task_step *ret)
{
    CHECK(task->has_step && task->metric_count <= METRICS_MAX);
    *ret = (struct task_step){
        .task = task->uid,
        .step = task->step,
        .total = task->total,
        .source = task->step_source,
        .first_plus_1 = task->first_plus_1,
        .metric_count = task->metric_count};
    for (size_t i = 0; i < task->metric_count; i++)
        ret->metrics[i] = (struct step_metric){str_from(task->metrics[i].name), task->metrics[i].micro};
    ret->pace = task->pace;
    ret->attempt_plus_1 = (uint32_t)task->attempt + 1;
}

/* Collects all changed steps, whichever of them was due. */
static void take_steps(struct agent *agent, struct arena *arena, struct heartbeat *heartbeat)
{
    size_t count = 0;
    for (size_t i = 0; i < agent->tasks.len; i++)
        count += agent->tasks.items[i]->step_due;
    if (count == 0)
        return;
    heartbeat->steps = ARENA_ARRAY(arena, struct task_step, count);
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (!task->step_due)
            continue;
        fill_step(task, &heartbeat->steps[heartbeat->step_count++]);
        task->step_due = task->step_urgent = false;
    }
    CHECK(heartbeat->step_count == count);
    agent->steps_sent_ns = agent->boot_ns;
}

static void send_heartbeat(struct agent *agent, enum from_agent_kind kind, struct agent_effects *effects)
{
    CHECK(kind == FROM_AGENT_HEARTBEAT || kind == FROM_AGENT_STEPS);
    struct from_agent message = {
        .kind = kind,
        .heartbeat = {.sent_ns = agent->boot_ns, .wall_ns = agent->wall_ns, .grant = agent->grant}};
    take_steps(agent, &effects->arena, &message.heartbeat);
    agent_effect_add(effects, AGENT_SEND)->send = message;
}

void agent_send_due(struct agent *agent, struct agent_effects *effects)
{
    CHECK(agent->link == LINK_WELCOME && agent->heartbeat_ns > 0);
    if (agent->boot_ns >= agent->next_heartbeat_ns) {
        send_heartbeat(agent, FROM_AGENT_HEARTBEAT, effects);
        agent->last_heartbeat_ns = agent->boot_ns;
        /* Keeps the phase, so that a cluster's heartbeats stay spread; heartbeats that are overdue are
         * skipped. */
        int64_t late_ns = agent->boot_ns - agent->next_heartbeat_ns;
        agent->next_heartbeat_ns += (late_ns / agent->heartbeat_ns + 1) * agent->heartbeat_ns;
        CHECK(agent->next_heartbeat_ns > agent->boot_ns);
    } else if (agent->boot_ns >= agent_steps_deadline(agent)) {
        send_heartbeat(agent, FROM_AGENT_STEPS, effects);
    }
    send_reports(agent, effects); /* last: a task's last step comes before its end */
}
