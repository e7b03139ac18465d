#include <signal.h>

#include "core/agent/agent_private.h"

static const char *const local_names[] = {"waiting", "launching", "running", "stopping", "ended"};
static const uint32_t local_next[] = {
    [LOCAL_WAITING] = LIFECYCLE_TO(LOCAL_LAUNCHING) | LIFECYCLE_TO(LOCAL_ENDED),
    [LOCAL_LAUNCHING] =
        LIFECYCLE_TO(LOCAL_RUNNING) | LIFECYCLE_TO(LOCAL_STOPPING) | LIFECYCLE_TO(LOCAL_ENDED),
    [LOCAL_RUNNING] = LIFECYCLE_TO(LOCAL_STOPPING) | LIFECYCLE_TO(LOCAL_ENDED),
    [LOCAL_STOPPING] = LIFECYCLE_TO(LOCAL_ENDED),
    [LOCAL_ENDED] = 0,
};
_Static_assert(sizeof local_names / sizeof *local_names == LOCAL_STATES &&
                   sizeof local_next / sizeof *local_next == LOCAL_STATES,
               "a row for each state");
const struct lifecycle local_lifecycle = {"task of an agent", LOCAL_STATES, local_names, local_next};

/* --- records -------------------------------------------------------------------------------------- */

static char *text_copy(struct str s)
{
    char *copy = mem_alloc(s.len + 1);
    if (s.len)
        memcpy(copy, s.data, s.len);
    return copy;
}

void agent_task_free(struct local_task *task)
{
    arena_done(&task->launch_arena);
    agent_containers_free(task);
    mem_free(task->name);
    mem_free(task->hostname);
    mem_free(task->message);
    mem_free(task->rejoin_text);
    mem_free(task->tables);
    arena_done(&task->signature_arena);
    mem_free(task);
}

struct local_task *agent_task_find(const struct agent *agent, obj_id uid)
{
    for (size_t i = 0; i < agent->tasks.len; i++)
        if (agent->tasks.items[i]->uid == uid)
            return agent->tasks.items[i];
    return NULL;
}

static struct local_task *task_add(struct agent *agent, obj_id uid, struct str name, struct str hostname)
{
    CHECK(uid != 0 && !agent_task_find(agent, uid));
    struct local_task *task = mem_alloc(sizeof *task);
    task->uid = uid;
    task->name = text_copy(name);
    task->hostname = text_copy(hostname);
    task->message = text_copy((struct str){0});
    task->restore_step = -1;
    vec_push(&agent->tasks, task);
    return task;
}

static void task_set_message(struct local_task *task, struct str message)
{
    mem_free(task->message);
    task->message = text_copy(message);
}

static struct str own_hostname(const struct task_launch *launch)
{
    const struct gang_rank_table *rank_table = &launch->rank_table;
    if (launch->rank < rank_table->count && rank_table->entries[launch->rank].rank == launch->rank)
        return rank_table->entries[launch->rank].hostname;
    for (size_t i = 0; i < rank_table->count; i++)
        if (rank_table->entries[i].rank == launch->rank)
            return rank_table->entries[i].hostname;
    return (struct str){0};
}

static void task_take_launch(struct local_task *task, const struct task_launch *launch)
{
    task->jobset = launch->jobset;
    task->attempt = launch->attempt;
    task->rank = launch->rank;
    task->world = launch->world;
    task->chips = launch->chips;
    task->grace_ns = launch->grace_ns;
    task->restore_step = launch->restore_step;
    task->restore_attempt = launch->restore_attempt;
    memcpy(task->gang_key, launch->gang_key, GANG_KEY_BYTES);
}

void agent_task_end(struct local_task *task)
{
    lifecycle_move(&local_lifecycle, &task->state, LOCAL_ENDED);
    task->client = 0;
    task->step_urgent = task->step_due;
    task->report_due = true;
    if (task->container_count > 0)
        return; /* the names are reported with the end */
    arena_done(&task->launch_arena);
    task->launch = (struct task_launch){0};
}

size_t agent_live_tasks(const struct agent *agent)
{
    size_t live = 0;
    for (size_t i = 0; i < agent->tasks.len; i++)
        live += local_live(agent->tasks.items[i]);
    return live;
}

uint64_t agent_busy_chips(const struct agent *agent)
{
    uint64_t chips = 0;
    for (size_t i = 0; i < agent->tasks.len; i++) {
        const struct local_task *task = agent->tasks.items[i];
        if (!local_live(task) || task->state == LOCAL_WAITING)
            continue;
        CHECK((chips & task->chips) == 0); /* a chip has one holder */
        chips |= task->chips;
    }
    return chips;
}

bool agent_task_known(const struct agent *agent, obj_id uid)
{
    return agent_task_find(agent, uid) != NULL;
}

bool agent_task_live(const struct agent *agent, obj_id uid)
{
    const struct local_task *task = agent_task_find(agent, uid);
    return task && local_live(task);
}

/* --- attempts ------------------------------------------------------------------------------------- */

int32_t agent_seen_attempt(const struct agent *agent, obj_id jobset)
{
    for (size_t i = 0; i < agent->seen.len; i++)
        if (agent->seen.items[i].jobset == jobset)
            return agent->seen.items[i].attempt;
    return -1;
}

void agent_attempt_seen(struct agent *agent, obj_id jobset, int32_t attempt, uint64_t epoch)
{
    struct attempt_seen seen = {jobset, attempt, epoch};
    if (jobset == 0)
        return;
    for (size_t i = 0; i < agent->seen.len; i++) {
        struct attempt_seen *before = &agent->seen.items[i];
        if (before->jobset != jobset)
            continue;
        if (attempt > before->attempt || (attempt == before->attempt && epoch > before->epoch))
            *before = seen;
        return;
    }
    if (agent->seen.len == ATTEMPTS_SEEN_MAX)
        vec_remove(&agent->seen, 0);
    vec_push(&agent->seen, seen);
    CHECK(agent->seen.len <= ATTEMPTS_SEEN_MAX);
}

/* --- start ---------------------------------------------------------------------------------------- */

static bool same_host(const struct local_task *a, const struct local_task *b)
{
    return a->jobset == b->jobset && a->hostname[0] != 0 &&
           str_equal(str_from(a->hostname), str_from(b->hostname));
}

/* Returns the first live task before `task` that holds its chips or its host name; NULL: it may start. */
static struct local_task *find_holder(const struct agent *agent, const struct local_task *task)
{
    for (size_t i = 0; i < agent->tasks.len && agent->tasks.items[i] != task; i++) {
        struct local_task *other = agent->tasks.items[i];
        if (local_live(other) && ((other->chips & task->chips) != 0 || same_host(other, task)))
            return other;
    }
    return NULL;
}

static void start_failed(struct local_task *task, struct str message)
{
    CHECK(task->state == LOCAL_WAITING && !task->launched); /* it never had a process */
    task->start_failed = true;
    task_set_message(task, message);
    agent_task_end(task);
}

static void task_launch_now(struct agent *agent, struct local_task *task, const struct task_launch *launch,
                            struct agent_effects *effects)
{
    CHECK(launch->task == task->uid && (launch->argc > 0 || task->container_count > 0));
    CHECK(!task->launched); /* a task is launched once */
    lifecycle_move(&local_lifecycle, &task->state, LOCAL_LAUNCHING);
    if (task->container_count > 0) {
        task->report_due = true;
        agent_containers_advance(agent, task, effects);
        return;
    }
    task->launched = true;
    agent_effect_add(effects, AGENT_LAUNCH)->launch = launch;
}

void agent_task_stop_now(struct agent *agent, struct local_task *task, int64_t grace_ns,
                         struct agent_effects *effects)
{
    CHECK(task->state != LOCAL_WAITING && grace_ns >= 0);
    if (task->container_count > 0) {
        agent_containers_stop(agent, task, grace_ns, effects);
        return;
    }
    if (task->state != LOCAL_STOPPING)
        lifecycle_move(&local_lifecycle, &task->state, LOCAL_STOPPING);
    task->killed = task->killed || grace_ns == 0;
    agent_effect_add(effects, AGENT_STOP)->stop = (struct task_stop){task->uid, grace_ns};
}

static void end_waiting(struct agent *agent, struct local_task *task, int signal_number)
{
    CHECK(task->state == LOCAL_WAITING && !task->launched);
    task->exit_code = -1;
    task->signal = signal_number;
    task->finished_ns = agent->wall_ns;
    agent_task_end(task);
}

/* Fences an older attempt at the START of a newer one, whether or not the controller's STOP has arrived. */
static void stop_older(struct agent *agent, struct local_task *holder, const struct local_task *task,
                       struct agent_effects *effects)
{
    CHECK(holder != task && local_live(holder));
    if (holder->jobset != task->jobset || holder->attempt >= task->attempt)
        return;
    if (holder->state == LOCAL_WAITING)
        end_waiting(agent, holder, SIGTERM);
    else if (holder->state == LOCAL_LAUNCHING || holder->state == LOCAL_RUNNING)
        agent_task_stop_now(agent, holder, holder->grace_ns, effects);
}

/* Returns why the task cannot be accepted at all; empty: it can. */
static struct str refusal(const struct agent *agent, const struct local_task *task,
                          const struct task_launch *launch, struct agent_effects *effects)
{
    int32_t seen = launch->jobset ? agent_seen_attempt(agent, launch->jobset) : -1;
    if (launch->attempt < seen)
        return arena_printf(&effects->arena, "fenced: attempt %d was started after attempt %d", seen,
                            launch->attempt);
    uint32_t chips = agent->config.chips;
    if (chips < 64 && launch->chips >> chips != 0)
        return arena_printf(&effects->arena, "this machine has %u chips, the task needs mask 0x%llx", chips,
                            (unsigned long long)launch->chips);
    if (launch->argc == 0 && launch->container_count == 0)
        return STR("no command");
    for (size_t i = 0; i < launch->container_count; i++)
        if (launch->containers[i].argc == 0)
            return arena_printf(&effects->arena, "container " STR_FORMAT ": no command",
                                STR_ARG(launch->containers[i].name));
    if (launch->container_count > 0 && launch->task >= AGENT_CONTAINER_TASKS_MAX)
        return STR("this machine cannot keep containers of a task with so high a number");
    return (struct str){0};
}

/* Refuses the task. The report names the newest attempt seen, so that the controller continues after that
 * one. */
static void refuse(const struct agent *agent, struct local_task *task, const struct task_launch *launch,
                   struct str why)
{
    int32_t seen = launch->jobset ? agent_seen_attempt(agent, launch->jobset) : -1;
    task->fenced = launch->attempt < seen;
    if (task->fenced)
        task->attempt = seen;
    start_failed(task, why);
}

static void task_admit(struct agent *agent, struct local_task *task, const struct task_launch *launch,
                       struct agent_effects *effects)
{
    CHECK(task->state == LOCAL_WAITING && task->uid == launch->task);
    struct local_task *holder = NULL;
    for (size_t i = 0; i < agent->tasks.len && agent->tasks.items[i] != task; i++) {
        struct local_task *other = agent->tasks.items[i];
        if (!local_live(other) || ((other->chips & task->chips) == 0 && !same_host(other, task)))
            continue;
        stop_older(agent, other, task, effects);
        if (!local_live(other))
            continue;
        if (other->state != LOCAL_STOPPING) {
            start_failed(task,
                         arena_printf(&effects->arena, "%s, which was not told to stop, holds its %s",
                                      other->name, (other->chips & task->chips) ? "chips" : "host name"));
            return;
        }
        holder = other;
    }
    CHECK(!holder || holder->state == LOCAL_STOPPING); /* its end will start the task */
    if (!holder) {
        task_launch_now(agent, task, launch, effects);
        return;
    }
    if (task->container_count == 0)
        task_launch_copy(&task->launch_arena, launch, &task->launch);
}

void agent_task_start(struct agent *agent, const struct task_launch *launch, struct agent_effects *effects)
{
    struct local_task *task = agent_task_find(agent, launch->task);
    if (task) { /* a repeated START: reports its state again */
        if (task->state != LOCAL_WAITING && task->state != LOCAL_LAUNCHING)
            task->report_due = true;
        return;
    }
    if (agent->tasks.len >= AGENT_TASKS_MAX) {
        struct task_report report = {.kind = REPORT_START_FAILED,
                                     .task = launch->task,
                                     .exit_code = -1,
                                     .message = STR("too many tasks on this machine (AGENT_TASKS_MAX)")};
        agent_pend(agent, &report);
        return;
    }
    task = task_add(agent, launch->task, launch->name, own_hostname(launch));
    task_take_launch(task, launch);
    struct str why = refusal(agent, task, launch, effects);
    if (why.len > 0) {
        refuse(agent, task, launch, why);
        return;
    }
    agent_attempt_seen(agent, launch->jobset, launch->attempt, agent->epoch_seen);
    if (launch->container_count > 0)
        agent_containers_init(task, launch);
    task_admit(agent, task, launch, effects);
}

/* --- stop ----------------------------------------------------------------------------------------- */

/* Starts WAITING tasks whose holders have ended, in order of arrival. This requires an accepted connection:
 * the controller must have received the tether that the tasks will hold (health/evidence.h). */
void agent_task_start_waiting(struct agent *agent, struct agent_effects *effects)
{
    if (agent->link != LINK_WELCOME)
        return;
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (task->state == LOCAL_WAITING && !find_holder(agent, task))
            task_launch_now(agent, task, &task->launch, effects);
    }
}

void agent_task_stop(struct agent *agent, const struct task_stop *stop, struct agent_effects *effects)
{
    struct local_task *task = agent_task_find(agent, stop->task);
    if (!task) { /* the controller waits for an end, so the task is reported as ended */
        struct task_report report = {.kind = REPORT_EXITED,
                                     .task = stop->task,
                                     .exit_code = -1,
                                     .signal = SIGKILL,
                                     .message = STR("this machine does not know the task")};
        if (stop->task != 0)
            agent_pend(agent, &report);
        return;
    }
    switch ((enum local_state)task->state) {
    case LOCAL_WAITING:
        end_waiting(agent, task, SIGTERM);
        agent_task_start_waiting(agent, effects);
        break;
    case LOCAL_LAUNCHING:
    case LOCAL_RUNNING:
    case LOCAL_STOPPING:
        agent_task_stop_now(agent, task, stop->grace_ns, effects);
        break;
    case LOCAL_ENDED:
        task->report_due = true;
        break;
    case LOCAL_STATES:
        CHECK_UNREACHABLE();
    }
}

size_t agent_kill_all(struct agent *agent, struct agent_effects *effects)
{
    size_t killed = 0;
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (!local_live(task))
            continue;
        killed++;
        task->fenced = true;
        if (task->state == LOCAL_WAITING)
            end_waiting(agent, task, SIGKILL);
        else
            agent_task_stop_now(agent, task, 0, effects);
    }
    return killed;
}

/* --- reports of the launcher ----------------------------------------------------------------------- */

void agent_task_adopted(struct agent *agent, const struct agent_event *event)
{
    if (agent_task_find(agent, event->adopted.task))
        return;
    const struct task_launch *launch = event->adopted.launch;
    struct local_task *task = task_add(agent, event->adopted.task, event->adopted.name,
                                       launch ? own_hostname(launch) : (struct str){0});
    task->attempt = event->adopted.attempt;
    task->adopted = true;
    if (launch) {
        uint64_t held = agent_busy_chips(agent); /* data read back from a disk may be invalid */
        task_take_launch(task, launch);
        task->chips &=
            ~held & (agent->config.chips < 64 ? (UINT64_C(1) << agent->config.chips) - 1 : UINT64_MAX);
        agent_attempt_seen(agent, launch->jobset, launch->attempt, 0);
    }
    lifecycle_move(&local_lifecycle, &task->state, LOCAL_LAUNCHING);
    task->report_due = true;
    if (launch && launch->container_count > 0) {
        agent_containers_init(task, launch);
        task->adopting = !agent->booted;
        task->doubtful = true;
        return;
    }
    task->launched = true;
    task->pid = event->adopted.pid;
    task->started_ns = event->adopted.started_ns;
    lifecycle_move(&local_lifecycle, &task->state, LOCAL_RUNNING);
}

void agent_task_started(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    struct local_task *task = agent_task_find(agent, event->started.task);
    if (!task || !local_live(task) || task->state == LOCAL_WAITING)
        return;
    if (task->container_count > 0) {
        agent_container_started(agent, task, event, effects);
        return;
    }
    task->pid = event->started.pid;
    task->started_ns = event->started.started_ns;
    if (task->state == LOCAL_LAUNCHING)
        lifecycle_move(&local_lifecycle, &task->state, LOCAL_RUNNING);
    task->report_due = true;
    arena_done(&task->launch_arena);
    task->launch = (struct task_launch){0};
}

void agent_task_take_signatures(struct local_task *task, const struct agent_exit *exited)
{
    CHECK(exited->signature_count <= SIGNATURES_MAX);
    arena_done(&task->signature_arena);
    task->signature_count = exited->signature_count;
    for (size_t i = 0; i < exited->signature_count; i++) {
        CHECK(signature_is_valid(&exited->signatures[i]));
        task->signatures[i] = (struct signature){
            exited->signatures[i].kind, arena_str(&task->signature_arena, exited->signatures[i].line)};
    }
    if (!task->not_finite[0])
        return;
    struct buf text BUF_CLEANUP = {0}; /* steps that it reported take precedence over those in its log */
    buf_printf(&text, "step %lld: %s is not finite", (long long)task->not_finite_step, task->not_finite);
    size_t place = 0;
    while (place < task->signature_count && task->signatures[place].kind != SIGNATURE_NUMERIC)
        place++;
    place = place == SIGNATURES_MAX ? SIGNATURES_MAX - 1 : place;
    task->signature_count = place == task->signature_count ? place + 1 : task->signature_count;
    task->signatures[place] =
        (struct signature){SIGNATURE_NUMERIC, signature_line(&task->signature_arena, buf_str(&text))};
}

void agent_task_exited(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    const struct agent_exit *exited = &event->exited;
    struct local_task *task = agent_task_find(agent, exited->task);
    if (task && task->container_count > 0) {
        agent_container_exited(agent, task, event, effects);
        return;
    }
    if (!task) { /* it had ended under an earlier agent */
        task = task_add(agent, exited->task, (struct str){0}, (struct str){0});
        task->launched = true;
        lifecycle_move(&local_lifecycle, &task->state, LOCAL_LAUNCHING);
    }
    if (!local_live(task) || task->state == LOCAL_WAITING)
        return;
    task->start_failed = exited->start_failed;
    task->oom = exited->oom;
    task->fenced = task->fenced || exited->fenced;
    task->exit_code = exited->exit_code;
    task->signal = exited->signal;
    task->pid = exited->pid ? exited->pid : task->pid;
    task->started_ns = exited->started_ns ? exited->started_ns : task->started_ns;
    task->finished_ns = exited->finished_ns ? exited->finished_ns : agent->wall_ns;
    task_set_message(task, exited->message);
    agent_task_take_signatures(task, exited);
    agent_task_end(task);
    agent_task_start_waiting(agent, effects);
}

/* --- the end of the record ------------------------------------------------------------------------ */

void agent_task_forget(struct agent *agent, obj_id uid, struct agent_effects *effects)
{
    for (size_t i = agent->pending.len; i-- > 0;)
        if (agent->pending.items[i].report.task == uid &&
            agent->pending.items[i].report.kind == REPORT_EXITED)
            agent_unpend(agent, i);
    for (size_t i = 0; i < agent->tasks.len; i++) {
        struct local_task *task = agent->tasks.items[i];
        if (task->uid != uid || local_live(task))
            continue;
        CHECK(task->client == 0 && task->state == LOCAL_ENDED);
        if (task->launched) {
            struct agent_effect *effect = agent_effect_add(effects, AGENT_FORGET);
            effect->task = uid;
            effect->container = task->container_count > 0 ? (uint32_t)task->container_count : 1;
        }
        agent_task_free(task);
        vec_remove(&agent->tasks, i);
        return;
    }
}

/* --- copies --------------------------------------------------------------------------------------- */

void task_launch_copy(struct arena *arena, const struct task_launch *from, struct task_launch *ret)
{
    CHECK(from != ret);
    CHECK((from->argv || from->argc == 0) && (from->env || from->env_count == 0));
    CHECK(from->rank_table.entries || from->rank_table.count == 0);
    *ret = *from;
    ret->name = arena_str(arena, from->name);
    ret->namespace_ = arena_str(arena, from->namespace_);
    ret->checkpoint_folder = arena_str(arena, from->checkpoint_folder);
    ret->checkpoint_dir = arena_str(arena, from->checkpoint_dir);
    ret->working_dir = arena_str(arena, from->working_dir);
    ret->step_pattern = arena_str(arena, from->step_pattern);
    ret->work_pattern = arena_str(arena, from->work_pattern);
    ret->argv = ARENA_ARRAY(arena, struct str, from->argc);
    for (size_t i = 0; i < from->argc; i++)
        ret->argv[i] = arena_str(arena, from->argv[i]);
    ret->env = ARENA_ARRAY(arena, struct env_var, from->env_count);
    for (size_t i = 0; i < from->env_count; i++) {
        ret->env[i] = from->env[i];
        ret->env[i].name = arena_str(arena, from->env[i].name);
        ret->env[i].value = arena_str(arena, from->env[i].value);
    }
    ret->containers = ARENA_ARRAY(arena, struct container_launch, from->container_count);
    for (size_t i = 0; i < from->container_count; i++)
        container_launch_copy(arena, &from->containers[i], &ret->containers[i]);
    ret->volumes = ARENA_ARRAY(arena, struct volume_launch, from->volume_count);
    for (size_t i = 0; i < from->volume_count; i++)
        volume_launch_copy(arena, &from->volumes[i], &ret->volumes[i]);
    struct gang_rank_table *rank_table = &ret->rank_table;
    rank_table->subdomain = arena_str(arena, from->rank_table.subdomain);
    rank_table->namespace_ = arena_str(arena, from->rank_table.namespace_);
    rank_table->entries = ARENA_ARRAY(arena, struct rank_table_entry, from->rank_table.count);
    for (size_t i = 0; i < from->rank_table.count; i++) {
        rank_table->entries[i] = from->rank_table.entries[i];
        rank_table->entries[i].hostname = arena_str(arena, from->rank_table.entries[i].hostname);
        rank_table->entries[i].address = arena_str(arena, from->rank_table.entries[i].address);
        rank_table->entries[i].machine = arena_str(arena, from->rank_table.entries[i].machine);
    }
}
