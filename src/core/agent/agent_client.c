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
}

static void on_join(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    CHECK(event->client.client != 0);
    struct local_task *task = agent_task_find(agent, event->client.task);
    bool known = task && local_live(task) && task->state != LOCAL_WAITING && !task->fenced;
    if (!known || task->attempt != event->client.attempt) {
        struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_FENCED);
        effect->client.client = event->client.client;
        int32_t seen = task && task->jobset ? agent_seen_attempt(agent, task->jobset) : -1;
        effect->client.attempt = seen > 0 ? seen : 0;
        return;
    }
    bool early = task->container_count > 0 && !task->ran;
    if (task->state == LOCAL_LAUNCHING && !early) { /* it runs; the launcher's word is still on its way */
        lifecycle_move(&local_lifecycle, &task->state, LOCAL_RUNNING);
        task->started_ns = agent->wall_ns;
        task->report_due = true;
    }
    CHECK(early || task->state == LOCAL_RUNNING || task->state == LOCAL_STOPPING);
    task->client = event->client.client; /* an older connection of it has no say any more */
    task->step_urgent = true;
    if (early) {
        task->join_due = true; /* said once the controller has heard that it runs */
    } else if (!task->joined) {
        struct task_report report = {.kind = REPORT_JOINED, .task = task->uid, .pid = task->pid};
        agent_pend(agent, &report);
    }
    task->joined = true;
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLIENT_WELCOME);
    effect->client.client = task->client;
    effect->client.attempt = task->attempt;
    effect->client.restore_step = task->restore_step;
    effect->client.restore_attempt = task->restore_attempt;
    if (task->drain_deadline_ns != 0)
        send_drain(agent, task, effects);
}

static void on_step(struct local_task *task, const struct task_step *step)
{
    CHECK(step->metric_count <= METRICS_MAX);
    task->has_step = task->step_due = true;
    task->step = step->step;
    task->total = step->total;
    task->pace = step->pace;
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
    if (!task || !local_live(task) || task->joined) /* one that joined speaks for itself */
        return;
    const struct task_step step = {.step = event->paced.pace.steps, .pace = event->paced.pace};
    on_step(task, &step);
}

void agent_client_event(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    if (event->kind == AGENT_CLIENT_JOIN) {
        on_join(agent, event, effects);
        return;
    }
    struct local_task *task = find_by_client(agent, event->client.client);
    if (!task)
        return;                              /* not joined, or replaced by a newer connection */
    CHECK(local_live(task) && task->joined); /* the end of a task ends its connection's say */
    struct task_report report = {.task = task->uid};
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
    case AGENT_CLIENT_LEFT:
        task->client = 0;
        task->step_urgent = task->step_due; /* its last step is news */
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
        if (task->client != 0)
            send_drain(agent, task, effects);
        return;
    }
    CHECK(notice->kind == NOTICE_CHECKPOINT_COMMITTED); /* codec.c refuses others */
    /* An older commit of this attempt that comes late. One below the step of an attempt before is news: a
     * gang that found that checkpoint damaged went back further. */
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
