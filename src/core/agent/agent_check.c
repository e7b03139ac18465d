#include "base/hash.h"
#include "core/agent/agent_private.h"
#include "core/words/limits.h"

/* --- digest: every field that decides anything, in a fixed order, without padding or addresses ---- */

static void put(uint64_t *digest, uint64_t value)
{
    *digest = hash_mix(*digest ^ value) + UINT64_C(0x9e3779b97f4a7c15);
}

static void put_text(uint64_t *digest, const char *text)
{
    size_t len = strlen(text);
    put(digest, len);
    put(digest, hash64(1, text, len));
}

static void put_container(uint64_t *digest, const struct local_container *container)
{
    const bool flags[] = {container->posted,  container->started,         container->ready,
                          container->failing, container->hook_out,        container->pre_stopped,
                          container->has_end, container->stop_sent,       container->kill_sent,
                          container->end.oom, container->end.start_failed};
    uint64_t bits = container->state;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        bits = bits << 1 | flags[i];
    put(digest, bits);
    const struct container_end *end = &container->end;
    const int64_t numbers[] = {container->runs,       container->retry_ns,   container->delay_ns,
                               container->backoff_ns, container->begun_ns,   container->stop_by_ns,
                               container->pid,        container->started_ns, end->exit_code,
                               end->signal,           end->started_ns,       end->finished_ns};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put(digest, (uint64_t)numbers[i]);
    put_text(digest, container->end_message ? container->end_message : "");
    for (int i = 0; i < PROBE_KINDS; i++) {
        const struct local_probe *probe = &container->probes[i];
        put(digest,
            (uint64_t)probe->out << 63 | (uint64_t)(uint32_t)probe->good << 31 | (uint32_t)probe->bad);
        put(digest, (uint64_t)probe->next_ns);
    }
}

static void put_task(uint64_t *digest, const struct local_task *task)
{
    put(digest, task->uid);
    put(digest, task->jobset);
    put(digest, (uint64_t)task->attempt << 32 | task->rank);
    put(digest, (uint64_t)task->world << 8 | task->state);
    put(digest, (uint64_t)task->fenced << 9 | (uint64_t)task->killed << 8 | (uint64_t)task->launched << 7 |
                    (uint64_t)task->report_due << 6 | (uint64_t)task->start_failed << 5 |
                    (uint64_t)task->oom << 4 | (uint64_t)task->joined << 3 | (uint64_t)task->step_due << 2 |
                    (uint64_t)task->step_urgent << 1 | (uint64_t)task->has_step);
    put_text(digest, task->name);
    put_text(digest, task->hostname);
    put_text(digest, task->message);
    for (size_t i = 0; i < task->signature_count; i++) {
        put_text(digest, signature_name(task->signatures[i].kind));
        put_text(digest, task->signatures[i].line.data);
    }
    put(digest, task->chips);
    const int64_t numbers[] = {
        task->grace_ns,    task->pid,    task->started_ns,        task->finished_ns,
        task->exit_code,   task->signal, task->restore_step,      task->restore_attempt,
        task->step,        task->total,  task->drain_deadline_ns, (int64_t)task->client,
        task->first_plus_1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put(digest, (uint64_t)numbers[i]);
    put(digest, (uint64_t)task->step_source << 40 | (uint64_t)task->drain_reason << 35 |
                    (uint64_t)task->adopted << 34 | (uint64_t)task->can_rejoin << 33 |
                    (uint64_t)task->spare << 32 | (uint32_t)task->client_attempt);
    if (task->rejoin.task != 0) {
        put(digest, (uint64_t)task->rejoin.attempt << 32 | task->rejoin.rank);
        put(digest, (uint64_t)task->rejoin.world << 32 | task->rejoin.full_world);
        put(digest, (uint64_t)task->rejoin.flags << 32 | (uint32_t)task->rejoin.restore_attempt);
        put(digest, (uint64_t)task->rejoin.restore_step);
        put_text(digest, task->rejoin_text);
    }
    if (task->tables) {
        put(digest, (uint64_t)task->tables_number);
        put(digest, task->tables_session);
        put_text(digest, task->tables);
    }
    put(digest, hash_words(0, task->gang_key, sizeof task->gang_key));
    put(digest, task->container_count);
    for (size_t i = 0; i < task->container_count; i++)
        put_container(digest, &task->containers[i]);
    if (task->container_count > 0) {
        put(digest, (uint64_t)task->doubtful << 4 | (uint64_t)task->stop_seen << 3 |
                        (uint64_t)task->adopting << 2 | (uint64_t)task->ran << 1 | task->join_due);
        put(digest, (uint64_t)task->stop_by_ns);
        put(digest, (uint64_t)(uint32_t)task->culprit);
    }
    put(digest, task->metric_count);
    put_text(digest, task->not_finite);
    put(digest, (uint64_t)task->not_finite_step);
    for (size_t i = 0; i < task->metric_count; i++) {
        put_text(digest, task->metrics[i].name);
        put(digest, (uint64_t)task->metrics[i].micro);
    }
}

static void put_str(uint64_t *digest, struct str text)
{
    put(digest, text.len);
    put(digest, hash64(1, text.data, text.len));
}

static void put_signal(uint64_t *digest, const struct local_signal *waiting)
{
    const struct signal *signal = &waiting->signal;
    put(digest, waiting->number);
    put_str(digest, signal->code);
    put_str(digest, signal->place);
    put_str(digest, signal->evidence);
    put(digest, (uint64_t)signal->assertion << 8 | (uint64_t)signal->severity);
    put(digest, (uint64_t)(uint32_t)signal->chip << 32 | signal->count);
    put(digest, (uint64_t)signal->first_ns);
    put(digest, (uint64_t)signal->last_ns);
}

static void put_errand(uint64_t *digest, const struct local_errand *errand)
{
    put(digest, errand->uid);
    put(digest, errand->number << 8 | errand->state);
    put(digest, (uint64_t)errand->start.kind);
    put_str(digest, errand->start.body);
    put(digest, (uint64_t)errand->start.timeout_ns);
    put(digest, (uint64_t)errand->end.outcome << 32 | (uint32_t)errand->end.exit_code);
    put_str(digest, errand->end.output);
}

uint64_t agent_digest(const struct agent *agent)
{
    uint64_t digest = agent->link;
    put_text(&digest, agent->machine);
    const int64_t numbers[] = {agent->boot_ns,
                               agent->wall_ns,
                               agent->booted,
                               agent->link == LINK_DOWN ? agent->retry_ns : 0,
                               agent->retry_delay_ns,
                               agent->tries,
                               agent->hello_sent_ns,
                               agent->hello_deadline_ns,
                               (int64_t)agent->connection,
                               (int64_t)agent->epoch_seen,
                               (int64_t)agent->cluster,
                               agent->stranger_say_ns,
                               (int64_t)agent->report_number,
                               agent->lease_ns,
                               agent->heartbeat_ns,
                               agent->lease_end_ns,
                               (int64_t)agent->grant,
                               agent->fence_ns,
                               agent->fence_passed,
                               agent->next_heartbeat_ns,
                               agent->last_heartbeat_ns,
                               agent->steps_sent_ns};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put(&digest, (uint64_t)numbers[i]);
    for (int i = 0; i < 4; i++)
        put(&digest, agent->rng.state[i]);
    put(&digest, agent->tasks.len);
    for (size_t i = 0; i < agent->tasks.len; i++)
        put_task(&digest, agent->tasks.items[i]);
    for (size_t i = 0; i < agent->pending.len; i++) {
        const struct pending_report *pending = &agent->pending.items[i];
        put(&digest, pending->number);
        put(&digest, pending->report.task);
        put(&digest, (uint64_t)pending->report.kind << 32 | pending->report.peer_rank);
        put(&digest, (uint64_t)pending->report.step);
        put(&digest, (uint64_t)pending->report.attempt_plus_1 << 2 |
                         (uint64_t)pending->report.can_rejoin << 1 | pending->report.spare);
        put_text(&digest, pending->text ? pending->text : "");
    }
    for (size_t i = 0; i < agent->signals.len; i++)
        put_signal(&digest, &agent->signals.items[i]);
    put(&digest, agent->signals_number << 32 ^ agent->signals_given_up);
    for (size_t i = 0; i < agent->errands.len; i++)
        put_errand(&digest, agent->errands.items[i]);
    put(&digest, (uint64_t)agent->notes);
    for (size_t i = 0; i < agent->seen.len; i++) {
        put(&digest, agent->seen.items[i].jobset);
        put(&digest, (uint64_t)agent->seen.items[i].attempt);
        put(&digest, agent->seen.items[i].epoch);
    }
    return digest;
}

/* --- invariants ----------------------------------------------------------------------------------- */

static void check_containers(const struct agent *agent, const struct local_task *task)
{
    CHECK((task->containers != NULL) == (task->container_count > 0));
    CHECK(task->container_count == 0 || task->launch.container_count == task->container_count);
    bool held_up = false;
    for (size_t i = 0; i < task->container_count; i++) {
        uint32_t index = container_in_order(task, i);
        const struct local_container *container = &task->containers[index];
        bool live = run_live(container);
        CHECK(container->state < RUN_STATES && (!live || container->runs > 0));
        CHECK(!live || (local_live(task) && task->state != LOCAL_WAITING));
        CHECK(task->state != LOCAL_ENDED || container->state == RUN_ENDED || container->state == RUN_IDLE);
        CHECK(!container->ready || container->started);
        CHECK(!container->started || container->state == RUN_RUNNING || container->state == RUN_STOPPING);
        /* No container begins before the init containers in front of it are done. */
        CHECK(!held_up || container->runs == 0 || task->adopting || !agent->booted);
        held_up = held_up || (task->launch.containers[index].role == CONTAINER_INIT &&
                              (container->state != RUN_ENDED || !container->has_end));
        CHECK(!agent->fence_passed || !live || container->kill_sent);
    }
}

static void check_task(const struct agent *agent, const struct local_task *task)
{
    CHECK(task->uid != 0 && task->state < LOCAL_STATES && task->metric_count <= METRICS_MAX);
    CHECK(task->name && task->hostname && task->message);
    CHECK(task->client == 0 || (local_live(task) && task->state != LOCAL_WAITING));
    CHECK(task->client == 0 || task->joined == (task->client_attempt == task->attempt));
    CHECK(task->client_attempt <= task->attempt);
    CHECK((task->rejoin.task != 0) == (task->rejoin_text != NULL));
    CHECK(task->rejoin.task == 0 || task->rejoin.attempt <= task->attempt);
    CHECK((task->tables_number > 0) == (task->tables != NULL));
    CHECK(task->state == LOCAL_WAITING || task->state == LOCAL_ENDED || task->launched ||
          task->container_count > 0);
    CHECK(task->state != LOCAL_WAITING || (!task->launched && task->launch.task == task->uid));
    CHECK(agent->config.chips == 64 || !local_live(task) || task->chips >> agent->config.chips == 0);
    CHECK(!task->killed || task->state == LOCAL_STOPPING || task->state == LOCAL_ENDED);
    CHECK(task->state == LOCAL_ENDED || (!task->start_failed && !task->oom && task->finished_ns == 0));
    CHECK(task->state != LOCAL_WAITING || (task->pid == 0 && task->started_ns == 0));
    CHECK(task->state != LOCAL_ENDED || task->container_count > 0 ||
          !task->launch_arena.blocks); /* a record keeps no launch */
    check_containers(agent, task);
    CHECK(!task->step_due || task->has_step);
    /* After the fence no task waits, and every task with a process was killed at once. */
    if (agent->fence_passed && local_live(task))
        CHECK(task->state == LOCAL_STOPPING && task->killed && task->fenced);
}

static void check_link(const struct agent *agent)
{
    CHECK(agent->link < LINK_STATES);
    CHECK(agent->booted || (agent->link == LINK_DOWN && agent->connection == 0));
    CHECK(agent->link == LINK_DOWN || agent->connection > 0);
    CHECK(agent->link == LINK_WELCOME || agent->report_number == 0);
    CHECK(agent->hello_sent_ns <= agent->boot_ns && agent->last_heartbeat_ns <= agent->boot_ns);
    CHECK(agent->steps_sent_ns <= agent->boot_ns);
    if (agent->link != LINK_WELCOME)
        return;
    CHECK(!agent->fence_passed && agent->fence_ns > agent->boot_ns);
    CHECK(agent->lease_end_ns > agent->boot_ns && agent->fence_ns >= agent->lease_end_ns);
    CHECK(agent->lease_ns > 0 && agent->heartbeat_ns > 0);
    CHECK(agent->next_heartbeat_ns > agent->boot_ns); /* no due heartbeat was left out */
}

static void check_signals(const struct agent *agent)
{
    size_t lost = 0;
    for (size_t i = 0; i < agent->signals.len; i++) {
        const struct local_signal *waiting = &agent->signals.items[i];
        CHECK(waiting->number == 0 || waiting->number == agent->signals_number);
        CHECK(signal_is_valid(&waiting->signal));
        /* signals under way precede those that wait */
        CHECK(i == 0 || waiting->number == 0 || agent->signals.items[i - 1].number > 0);
        lost += agent_tells_lost(&waiting->signal);
    }
    CHECK(agent->signals.len <= AGENT_SIGNALS_MAX && lost <= 2);
    CHECK(agent->signals_number <= agent->report_number);
    CHECK(agent->link != LINK_WELCOME || agent->signals.len == 0 || agent->signals_number > 0);
}

static void check_errands(const struct agent *agent)
{
    size_t running = 0, waiting = 0;
    CHECK(agent->errands.len <= ERRANDS_PER_MACHINE_MAX);
    for (size_t i = 0; i < agent->errands.len; i++) {
        const struct local_errand *errand = agent->errands.items[i];
        CHECK(errand->uid != 0 && errand->state < ERRAND_STATES);
        CHECK(errand->number == 0 || errand->state == ERRAND_ENDED);
        CHECK(errand->number <= agent->report_number);
        CHECK(agent->link != LINK_WELCOME || errand->state != ERRAND_ENDED || errand->number > 0);
        running += errand->state == ERRAND_RUNS;
        waiting += errand->state == ERRAND_WAITS;
    }
    CHECK(running <= AGENT_ERRANDS_RUNNING_MAX);
    CHECK(waiting == 0 || running == AGENT_ERRANDS_RUNNING_MAX);
}

void agent_check_invariants(const struct agent *agent)
{
    uint64_t held = 0;
    for (size_t i = 0; i < agent->tasks.len; i++) {
        const struct local_task *task = agent->tasks.items[i];
        check_task(agent, task);
        for (size_t k = 0; k < i; k++)
            CHECK(agent->tasks.items[k]->uid != task->uid);
        if (!local_live(task) || task->state == LOCAL_WAITING)
            continue;
        CHECK((held & task->chips) == 0); /* no chip is held by two tasks that may have a process */
        held |= task->chips;
    }
    check_link(agent);
    check_errands(agent);
    CHECK(agent->fence_ns == 0 || agent->fence_passed == (agent->boot_ns >= agent->fence_ns) ||
          (agent->fence_passed && agent->link != LINK_WELCOME));
    CHECK(agent->pending.len <= AGENT_PENDING_MAX && agent->tasks.len <= AGENT_TASKS_MAX);
    CHECK(agent->seen.len <= ATTEMPTS_SEEN_MAX);
    CHECK(agent->config.machine.data == agent->machine && agent->config.software.data == agent->software);
    for (size_t i = 0; i < agent->pending.len; i++) {
        CHECK(agent->pending.items[i].number <= agent->report_number);
        CHECK(agent->pending.items[i].report.task != 0);
    }
    check_signals(agent);
    for (size_t i = 0; agent->link == LINK_WELCOME && i < agent->tasks.len; i++)
        CHECK(!agent->tasks.items[i]->report_due); /* reported in the step of the change */
}
