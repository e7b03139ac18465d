#include "core/agent/agent_private.h"

static struct local_task *find_by_client(const struct agent *agent, uint64_t client)
{
    for (size_t i = 0; i < agent->tasks.len && client != 0; i++)
        if (agent->tasks.items[i]->client == client)
            return agent->tasks.items[i];
    return NULL;
}

static void send_drain(const struct agent *agent, const struct local_task *task,
                       struct agent_effects *effects)
{
    CHECK(task->client != 0 && local_live(task));
    int64_t left_ns = task->drain_deadline_ns - agent->boot_ns;
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_DRAIN);
    effect->client.client = task->client;
    effect->client.deadline_ns = left_ns > 0 ? left_ns : 0;
    effect->client.reason = task->drain_reason;
}

static void send_tables(const struct local_task *task, struct agent_effects *effects)
{
    CHECK(task->client != 0 && task->tables);
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_TABLES);
    effect->tables.client = task->client;
    effect->tables.number = task->tables_number;
    effect->tables.name = str_from(task->tables);
    effect->tables.session = task->tables_session;
}

/* Takes a notice of routing tables. A late notice of older tables is ignored, except that it may answer the
 * opening of a session. */
static void take_tables(struct local_task *task, const struct task_notice *notice,
                        struct agent_effects *effects)
{
    CHECK(notice->step > 0 && notice->tables.len <= SLICE_TABLES_MAX); /* codec.c refuses others */
    bool newer = notice->step > task->tables_number, answers = notice->session > task->tables_session;
    if (newer) {
        mem_free(task->tables);
        task->tables = mem_alloc(notice->tables.len + 1);
        mem_copy(task->tables, notice->tables.data, notice->tables.len);
        task->tables_number = notice->step;
    }
    if (answers)
        task->tables_session = notice->session;
    if ((newer || answers) && task->client != 0)
        send_tables(task, effects);
}

void agent_pend_joined(struct agent *agent, const struct local_task *task)
{
    struct task_report report = {.kind = REPORT_JOINED,
                                 .task = task->uid,
                                 .pid = task->pid,
                                 .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                 .can_rejoin = task->can_rejoin,
                                 .spare = task->spare};
    agent_pend(agent, &report);
}

/* Reports the tables that a process uses. A pending older report of the process is dropped. */
static void take_routes(struct agent *agent, struct local_task *task, const struct rank_routes *routes)
{
    CHECK(task->client != 0);
    for (size_t i = agent->pending.len; i-- > 0;) {
        const struct task_report *older = &agent->pending.items[i].report;
        if (older->kind == REPORT_ROUTES && older->task == task->uid)
            agent_unpend(agent, i);
    }
    task->routes = *routes;
    struct task_report report = {.kind = REPORT_ROUTES,
                                 .task = task->uid,
                                 .attempt_plus_1 = (uint32_t)task->attempt + 1,
                                 .routes = *routes};
    agent_pend(agent, &report);
}

static void send_rejoin(const struct local_task *task, struct agent_effects *effects)
{
    CHECK(task->client != 0 && task->rejoin.attempt == task->attempt);
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_REJOIN);
    effect->rejoin.client = task->client;
    effect->rejoin.order = &task->rejoin;
}

/* Takes over an attempt newer than this agent's record of an adopted task: an earlier agent received the
 * order, and the record is older than that. */
static void raise_adopted(struct local_task *task, const struct agent_event *event)
{
    if (!task->adopted || !event->client.can_rejoin || event->client.attempt <= task->attempt)
        return;
    task->attempt = event->client.attempt;
    task->joined = false;
    memset(task->gang_key, 0, GANG_KEY_BYTES); /* the process has the newer one, from its order */
}

/* Whether the process has not received the present rejoin order, which then follows its welcome. */
static bool is_behind(const struct local_task *task, const struct agent_event *event)
{
    return event->client.can_rejoin && event->client.attempt < task->attempt && task->rejoin.task != 0 &&
           !task->joined;
}

static void refuse(const struct agent *agent, const struct local_task *task, uint64_t client,
                   struct agent_effects *effects)
{
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_FENCED);
    effect->client.client = client;
    int32_t seen = task && task->jobset ? agent_seen_attempt(agent, task->jobset) : -1;
    effect->client.attempt = seen > 0 ? seen : 0;
}

static void welcome(const struct local_task *task, struct agent_effects *effects)
{
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_WELCOME);
    effect->client.client = task->client;
    effect->client.attempt = task->client_attempt;
    effect->client.restore_step = task->restore_step;
    effect->client.restore_attempt = task->restore_attempt;
    if (task->client_attempt == task->attempt)
        memcpy(effect->client.gang_key, task->gang_key, GANG_KEY_BYTES);
}

static void join_counts(struct agent *agent, struct local_task *task, bool early)
{
    task->step_urgent = true;
    if (early)
        task->join_due = true; /* reported after the report that the task runs */
    else if (!task->joined)
        agent_pend_joined(agent, task);
    task->joined = true;
}

static void on_join(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    CHECK(event->client.client != 0);
    struct local_task *task = agent_task_find(agent, event->client.task);
    bool known = task && local_live(task) && task->state != LOCAL_WAITING && !task->fenced;
    if (known)
        raise_adopted(task, event);
    if (!known || (task->attempt != event->client.attempt && !is_behind(task, event))) {
        refuse(agent, task, event->client.client, effects);
        return;
    }
    bool early = task->container_count > 0 && !task->ran;
    if (task->state == LOCAL_LAUNCHING && !early) { /* it runs, but the launcher's report has not arrived */
        lifecycle_move(&local_lifecycle, &task->state, LOCAL_RUNNING);
        task->started_ns = agent->wall_ns;
        task->report_due = true;
    }
    CHECK(early || task->state == LOCAL_RUNNING || task->state == LOCAL_STOPPING);
    task->client = event->client.client; /* an older connection of the task no longer counts */
    task->client_attempt = event->client.attempt;
    if (task->can_rejoin != event->client.can_rejoin || task->spare != event->client.spare)
        task->joined =
            false; /* a new run of the process differs from the one before: its join is reported again */
    task->can_rejoin = event->client.can_rejoin;
    task->spare = event->client.spare;
    bool behind = task->client_attempt != task->attempt;
    if (!behind)
        join_counts(agent, task, early);
    welcome(task, effects);
    if (behind)
        send_rejoin(task, effects);
    if (task->drain_deadline_ns != 0)
        send_drain(agent, task, effects);
    if (task->tables)
        send_tables(task, effects);
}

static void note_loss(struct local_task *task, const struct task_step *step)
{
    struct str name = step->not_finite;
    if (name.len == 0 && step->finite_loss)
        task->not_finite[0] = 0; /* it has recovered */
    if (name.len == 0 || task->not_finite[0])
        return;
    size_t len = name.len < METRIC_NAME_MAX - 1 ? name.len : METRIC_NAME_MAX - 1;
    memcpy(task->not_finite, name.data, len);
    task->not_finite[len] = 0;
    task->not_finite_step = step->not_finite_step;
}

static void on_step(struct local_task *task, const struct task_step *step)
{
    CHECK(step->metric_count <= METRICS_MAX);
    task->has_step = task->step_due = true;
    task->step = step->step;
    task->total = step->total;
    task->step_source = step->source;
    task->first_plus_1 = step->first_plus_1;
    task->pace = step->pace;
    note_loss(task, step);
    task->metric_count = step->metric_count;
    for (size_t i = 0; i < step->metric_count; i++) {
        struct str name = step->metrics[i].name;
        size_t len = name.len < METRIC_NAME_MAX - 1 ? name.len : METRIC_NAME_MAX - 1;
        memcpy(task->metrics[i].name, name.data, len);
        task->metrics[i].name[len] = 0;
        task->metrics[i].micro = step->metrics[i].micro;
    }
}

void agent_task_paced(struct agent *agent, const struct agent_event *event)
{
    struct local_task *task = agent_task_find(agent, event->paced.task);
    /* A joined process reports its own steps. */
    if (!task || !local_live(task) || task->joined || task->client)
        return;
    on_step(task, &event->paced.step);
}

void agent_client_event(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    if (event->kind == AGENT_CLIENT_JOIN) {
        on_join(agent, event, effects);
        return;
    }
    struct local_task *task = find_by_client(agent, event->client.client);
    if (!task)
        return;              /* not joined, or replaced by a newer connection */
    CHECK(local_live(task)); /* a connection does not outlive its task */
    if (task->client_attempt != task->attempt && event->kind != AGENT_CLIENT_LEFT)
        return; /* the client's attempt is over */
    struct task_report report = {.task = task->uid, .attempt_plus_1 = (uint32_t)task->attempt + 1};
    switch (event->kind) {
    case AGENT_CLIENT_STEP:
        on_step(task, &event->client.step);
        break;
    case AGENT_CLIENT_SHARD_SAVED:
        report.kind = REPORT_SHARD_SAVED;
        report.step = event->client.saved_step;
        agent_pend(agent, &report);
        break;
    case AGENT_CLIENT_PEER_GONE:
        report.kind = REPORT_PEER_GONE;
        report.peer_rank = event->client.peer_rank;
        agent_pend(agent, &report);
        break;
    case AGENT_CLIENT_RETRY:
        report.kind = REPORT_RETRY;
        report.message = event->client.reason;
        agent_pend(agent, &report);
        break;
    case AGENT_CLIENT_ROUTES:
        take_routes(agent, task, &event->client.routes);
        break;
    case AGENT_CLIENT_LEFT:
        task->client = 0;
        task->step_urgent = task->step_due; /* its last step is reported at once */
        break;
    default:
        CHECK_UNREACHABLE();
    }
}

void agent_client_notice(struct agent *agent, const struct task_notice *notice, struct agent_effects *effects)
{
    struct local_task *task = agent_task_find(agent, notice->task);
    if (!task || !local_live(task))
        return;
    if (notice->kind == NOTICE_DRAIN) {
        task->drain_deadline_ns = agent->boot_ns + notice->deadline_ns;
        task->drain_reason = notice->reason;
        if (task->client != 0)
            send_drain(agent, task, effects);
        return;
    }
    if (notice->kind == NOTICE_TABLES) {
        take_tables(task, notice, effects);
        return;
    }
    CHECK(notice->kind == NOTICE_CHECKPOINT_COMMITTED); /* codec.c refuses others */
    /* Ignores a late notice of an older commit of this attempt. A step below that of an earlier attempt is
     * valid: a gang that found a checkpoint damaged restored an older one. */
    if (task->restore_attempt == task->attempt && notice->step < task->restore_step)
        return;
    task->restore_step = notice->step;
    task->restore_attempt = task->attempt;
    if (task->client == 0)
        return;
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_COMMITTED);
    effect->client.client = task->client;
    effect->client.step = notice->step;
    effect->client.attempt = task->attempt;
}

/* Drops the task's unacknowledged reports of older attempts. */
static void drop_older(struct agent *agent, const struct local_task *task)
{
    for (size_t i = agent->pending.len; i-- > 0;) {
        const struct task_report *report = &agent->pending.items[i].report;
        if (report->task == task->uid && report->attempt_plus_1 != 0 &&
            report->attempt_plus_1 <= (uint32_t)task->attempt)
            agent_unpend(agent, i);
    }
}

static void keep_order(struct local_task *task, const struct task_rejoin *rejoin)
{
    CHECK(rejoin->rendezvous.len <= RENDEZVOUS_MAX); /* codec.c refuses others */
    mem_free(task->rejoin_text);
    task->rejoin_text = mem_alloc(rejoin->rendezvous.len + 1);
    memcpy(task->rejoin_text, rejoin->rendezvous.data, rejoin->rendezvous.len);
    task->rejoin = *rejoin;
    task->rejoin.rendezvous = str_from(task->rejoin_text);
}

void agent_task_rejoin(struct agent *agent, const struct task_rejoin *rejoin, struct agent_effects *effects)
{
    struct local_task *task = agent_task_find(agent, rejoin->task);
    if (!task || rejoin->attempt < task->attempt || task->state == LOCAL_WAITING)
        return;
    if (!local_live(task)) { /* a repeated START: reports its state again */
        task->report_due = true;
        return;
    }
    if (rejoin->attempt > task->attempt) {
        task->attempt = rejoin->attempt;
        task->joined = task->join_due = false;
        task->step_due = task->step_urgent = task->has_step = false;
        if (task->drain_reason != DRAIN_MAINTENANCE)
            task->drain_deadline_ns = 0; /* the new attempt is the announced stop */
        drop_older(agent, task);
    }
    agent_attempt_seen(agent, task->jobset, rejoin->attempt, agent->epoch_seen);
    task->rank = rejoin->rank;
    task->world = rejoin->world;
    task->restore_step = rejoin->restore_step;
    task->restore_attempt = rejoin->restore_attempt;
    memcpy(task->gang_key, rejoin->gang_key, GANG_KEY_BYTES);
    keep_order(task, rejoin);
    if (task->client != 0 && task->client_attempt < task->attempt && task->can_rejoin)
        send_rejoin(task, effects);
}
