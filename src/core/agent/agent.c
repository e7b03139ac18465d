#include "core/agent/agent_private.h"

#include <stdarg.h>

/* Back-off. While tasks live, waits must be short: the agent must reach a restarted controller before the
 * lease ends. Each delay is drawn from its upper half, so that the machines of a cluster do not all connect
 * at one instant.
 */
#define RETRY_NEXT_NS     (4 * NS_PER_MS) /* until the next controller is tried */
#define RETRY_FIRST_NS    (20 * NS_PER_MS)
#define RETRY_BUSY_MAX_NS (500 * NS_PER_MS)
#define RETRY_IDLE_MAX_NS (2 * NS_PER_SECOND)
#define RETRY_REFUSED_NS  (5 * NS_PER_SECOND)
#define HELLO_TIMEOUT_NS  (10 * NS_PER_SECOND)
#define LEASE_OF_HELLO    4 /* the agent waits for the answer to Hello for this fraction of the lease */
/* Intervals of reports about controllers of another cluster: until the second report, and between later
 * ones. */
#define STRANGER_AGAIN_NS (10 * NS_PER_SECOND)
#define STRANGER_LATER_NS (60 * NS_PER_SECOND)

_Static_assert(RETRY_FIRST_NS <= RETRY_BUSY_MAX_NS && RETRY_BUSY_MAX_NS <= RETRY_IDLE_MAX_NS,
               "patience grows with what there is to lose");

static const char *const link_names[] = {"down", "connecting", "hello", "welcome"};
static const uint32_t link_next[] = {
    [LINK_DOWN] = LIFECYCLE_TO(LINK_CONNECTING),
    [LINK_CONNECTING] = LIFECYCLE_TO(LINK_HELLO) | LIFECYCLE_TO(LINK_DOWN),
    [LINK_HELLO] = LIFECYCLE_TO(LINK_WELCOME) | LIFECYCLE_TO(LINK_DOWN),
    [LINK_WELCOME] = LIFECYCLE_TO(LINK_DOWN),
};
_Static_assert(sizeof link_names / sizeof *link_names == LINK_STATES &&
                   sizeof link_next / sizeof *link_next == LINK_STATES,
               "a row for each state");
_Static_assert(LINK_DOWN == 0 && LOCAL_WAITING == 0, "zeroed memory stands in the first state");
const struct lifecycle link_lifecycle = {"link", LINK_STATES, link_names, link_next};

struct agent_effect *agent_effect_add(struct agent_effects *effects, enum agent_effect_kind kind)
{
    CHECK(kind >= AGENT_CONNECT && kind <= AGENT_STRANGER);
    struct agent_effect effect = {.kind = kind};
    vec_push(&effects->list, effect);
    return &vec_last(&effects->list);
}

void agent_note(struct agent_effects *effects, const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    agent_effect_add(effects, AGENT_NOTE)->note = arena_str(&effects->arena, buf_str(&text));
    buf_done(&text);
}

void agent_effects_done(struct agent_effects *effects)
{
    vec_done(&effects->list);
    arena_done(&effects->arena);
}

/* --- start and end -------------------------------------------------------------------------------- */

static char *text_copy(struct str s)
{
    char *copy = mem_alloc(s.len + 1);
    if (s.len)
        memcpy(copy, s.data, s.len);
    return copy;
}

struct agent *agent_new(const struct agent_config *config)
{
    CHECK(config->machine.len > 0 && config->chips <= 64);
    struct agent *agent = mem_alloc(sizeof *agent);
    agent->config = *config;
    agent->machine = text_copy(config->machine);
    agent->software = text_copy(config->software);
    agent->config.machine.data = agent->machine;
    agent->config.software.data = agent->software;
    agent->cluster = config->cluster;
    rng_seed(&agent->rng, config->seed);
    return agent;
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    for (size_t i = 0; i < agent->tasks.len; i++)
        agent_task_free(agent->tasks.items[i]);
    vec_done(&agent->tasks);
    while (agent->pending.len > 0)
        agent_unpend(agent, agent->pending.len - 1);
    vec_done(&agent->pending);
    while (agent->signals.len > 0)
        agent_drop_signal(agent, agent->signals.len - 1);
    vec_done(&agent->signals);
    while (agent->errands.len > 0)
        agent_errand_drop(agent, agent->errands.len - 1);
    vec_done(&agent->errands);
    vec_done(&agent->seen);
    mem_free(agent->machine);
    mem_free(agent->software);
    mem_free(agent);
}

/* --- the connection ------------------------------------------------------------------------------- */

static void plan_retry(struct agent *agent, int64_t delay_ns)
{
    CHECK(delay_ns >= 0 && agent->retry_delay_ns <= RETRY_IDLE_MAX_NS);
    if (delay_ns == 0 && ++agent->tries < agent->config.controllers) {
        delay_ns = RETRY_NEXT_NS;
    } else if (delay_ns == 0) {
        agent->tries = 0;
        int64_t max_ns = agent_live_tasks(agent) > 0 ? RETRY_BUSY_MAX_NS : RETRY_IDLE_MAX_NS;
        delay_ns = agent->retry_delay_ns ? agent->retry_delay_ns * 2 : RETRY_FIRST_NS;
        delay_ns = delay_ns > max_ns ? max_ns : delay_ns;
        agent->retry_delay_ns = delay_ns;
    }
    agent->retry_ns = agent->boot_ns + rng_range(&agent->rng, delay_ns / 2, delay_ns);
    CHECK(agent->retry_ns >= agent->boot_ns);
}

static void link_lost(struct agent *agent, int64_t delay_ns)
{
    lifecycle_move(&link_lifecycle, &agent->link, LINK_DOWN);
    agent->report_number = 0;
    for (size_t i = 0; i < agent->pending.len; i++)
        agent->pending.items[i].number = 0;
    agent_signals_unsent(agent);
    agent_errands_unsaid(agent);
    plan_retry(agent, delay_ns);
}

void agent_disconnect(struct agent *agent, struct agent_effects *effects, int64_t delay_ns)
{
    agent_effect_add(effects, AGENT_CLOSE);
    link_lost(agent, delay_ns);
}

/* Returns how long the agent waits for the answer to Hello. Tasks end with the lease, so the agent must try
 * the other controllers, one of which may lead, well before that. */
static int64_t hello_patience(const struct agent *agent)
{
    if (agent->config.controllers < 2 || agent->lease_ns == 0)
        return HELLO_TIMEOUT_NS;
    int64_t share_ns = agent->lease_ns / LEASE_OF_HELLO;
    return share_ns < HELLO_TIMEOUT_NS ? share_ns : HELLO_TIMEOUT_NS;
}

static void link_tick(struct agent *agent, struct agent_effects *effects)
{
    if (!agent->booted)
        return;
    if (agent->link == LINK_DOWN && agent->boot_ns >= agent->retry_ns) {
        lifecycle_move(&link_lifecycle, &agent->link, LINK_CONNECTING);
        agent->connection++;
        CHECK(agent->connection != 0); /* 0 means that there was none */
        agent_effect_add(effects, AGENT_CONNECT);
    } else if (agent->link == LINK_HELLO && agent->boot_ns >= agent->hello_deadline_ns) {
        agent_note(effects, "the controller does not answer");
        agent_disconnect(agent, effects, 0);
    }
}

/* --- the lease ------------------------------------------------------------------------------------ */

static int64_t kill_allowance(int64_t lease_ns)
{
    return lease_ns / 4 < AGENT_KILL_ALLOWANCE_NS ? lease_ns / 4 : AGENT_KILL_ALLOWANCE_NS;
}

/* Returns the end of the lease that a message sent at `sent_ns` renews, less the time that the kill takes. */
static int64_t lease_end_of(const struct agent *agent, int64_t sent_ns)
{
    CHECK(agent->lease_ns > 0);
    return sent_ns + agent->lease_ns - kill_allowance(agent->lease_ns);
}

static void tell_grant(const struct agent *agent, const struct lease_grant *grant,
                       struct agent_effects *effects)
{
    if (grant->left_ns > 0)
        agent_note(effects, "leases are held: tasks outlive the controller's absence for %lld s",
                   (long long)(grant->left_ns / NS_PER_SECOND));
    else if (agent->fence_ns > agent->lease_end_ns)
        agent_note(effects, "leases are held no more");
}

/* Renews the lease and its grant, which both run from `sent_ns`, and moves the fence. The fence moves
 * backwards only if a new grant replaces earlier ones. */
static void lease_renew(struct agent *agent, int64_t sent_ns, const struct lease_grant *grant,
                        struct agent_effects *effects)
{
    int64_t lease_end_ns = lease_end_of(agent, sent_ns);
    CHECK(grant->left_ns >= 0);
    bool anew = grant->number != agent->grant;
    if (lease_end_ns > agent->lease_end_ns)
        agent->lease_end_ns = lease_end_ns;
    int64_t fence_ns = agent->lease_end_ns + grant->left_ns;
    if (anew)
        tell_grant(agent, grant, effects);
    agent->grant = grant->number;
    if (fence_ns <= agent->fence_ns && !anew)
        return;
    agent->fence_ns = fence_ns;
    agent_effect_add(effects, AGENT_FENCE)->fence_ns = fence_ns;
}

/* Runs first in a step, so that the fence takes effect before the event. */
static void fence_tick(struct agent *agent, struct agent_effects *effects)
{
    if (agent->fence_ns > 0 && !agent->fence_passed && agent->boot_ns >= agent->fence_ns) {
        agent->fence_passed = true;
        size_t killed = agent_kill_all(agent, effects);
        if (killed > 0)
            agent_note(effects, "the lease ran out: %zu tasks killed", killed);
    }
    if (agent->link == LINK_WELCOME && agent->boot_ns >= agent->lease_end_ns) {
        agent_note(effects, "no acknowledgement from the controller for a lease: connecting again");
        agent_disconnect(agent, effects, 0);
    }
}

/* Compares the machine's clock with the controller's. The controller read its clock between the sending of
 * the heartbeat and now: the middle is assumed, with an error of half that time. */
static void compare_clocks(const struct agent *agent, const struct from_controller *ack,
                           struct agent_effects *effects)
{
    int64_t half_ns = (agent->boot_ns - ack->sent_ns) / 2, ahead_ns;
    CHECK(half_ns >= 0);
    if (ack->clock_ns <= 0 || __builtin_sub_overflow(agent->wall_ns - half_ns, ack->clock_ns, &ahead_ns))
        return;
    struct agent_effect *effect = agent_effect_add(effects, AGENT_CLOCK);
    effect->clock.ahead_ns = ahead_ns;
    effect->clock.error_ns = half_ns;
}

/* --- the cluster ---------------------------------------------------------------------------------- */

/* Whether the cluster is another than the machine's. 0: the controller did not name its cluster. */
static bool is_stranger(const struct agent *agent, uint64_t cluster)
{
    return cluster != 0 && agent->cluster != 0 && cluster != agent->cluster;
}

/* Ends the connection to a controller of another cluster. While tasks live, the agent looks for their own
 * controller as quickly as after any other failure. */
static void refuse_stranger(struct agent *agent, uint64_t cluster, struct agent_effects *effects)
{
    CHECK(is_stranger(agent, cluster));
    if (agent->boot_ns >= agent->stranger_say_ns) {
        agent->stranger_say_ns =
            agent->boot_ns + (agent->stranger_say_ns == 0 ? STRANGER_AGAIN_NS : STRANGER_LATER_NS);
        agent_effect_add(effects, AGENT_STRANGER)->cluster = cluster;
    }
    agent_disconnect(agent, effects, agent_live_tasks(agent) > 0 ? 0 : RETRY_REFUSED_NS);
}

static void learn_cluster(struct agent *agent, uint64_t cluster, struct agent_effects *effects)
{
    CHECK(agent->cluster == 0 || agent->cluster == cluster);
    agent->stranger_say_ns = 0;
    if (agent->cluster == cluster)
        return;
    agent->cluster = cluster;
    agent_effect_add(effects, AGENT_KEEP_CLUSTER)->cluster = cluster;
}

/* --- messages ------------------------------------------------------------------------------------- */

static void on_welcome(struct agent *agent, const struct welcome *welcome, struct agent_effects *effects)
{
    if (agent->link != LINK_HELLO)
        return;
    if (is_stranger(agent, welcome->cluster)) {
        refuse_stranger(agent, welcome->cluster, effects);
        return;
    }
    if (welcome->epoch < agent->epoch_seen) {
        agent_note(effects, "controller of epoch %llu, but one of epoch %llu was seen: not ours",
                   (unsigned long long)welcome->epoch, (unsigned long long)agent->epoch_seen);
        agent_disconnect(agent, effects, RETRY_IDLE_MAX_NS);
        return;
    }
    if (!release_speaks(welcome->version)) {
        agent_note(
            effects,
            "the controller speaks version %u of the wire, this agent version %u: their releases are not "
            "neighbours",
            welcome->version, this_release.wire);
        agent_disconnect(agent, effects, RETRY_REFUSED_NS);
        return;
    }
    /* codec.c refuses others */
    CHECK(welcome->lease_ns > 0 && welcome->heartbeat_ns > 0 && welcome->cluster != 0);
    agent->epoch_seen = welcome->epoch;
    agent->lease_ns = welcome->lease_ns;
    agent->heartbeat_ns = welcome->heartbeat_ns;
    /* An answer that took longer than the lease renews nothing. Its grant is what was left of the hold when
     * the controller wrote it: counted from our Hello, it may end before the hold does (lease_hold.h). */
    if (lease_end_of(agent, agent->hello_sent_ns) <= agent->boot_ns) {
        agent_disconnect(agent, effects, 0);
        return;
    }
    learn_cluster(agent, welcome->cluster, effects);
    lease_renew(agent, agent->hello_sent_ns, &welcome->grant, effects);
    lifecycle_move(&link_lifecycle, &agent->link, LINK_WELCOME);
    if (welcome->chips_plus_1 && welcome->chips_plus_1 - 1 != agent->config.chips)
        agent_note(
            effects,
            "%u chips here (--chips), but the cluster file says %u: until one of them is corrected, no "
            "new work is placed on this machine",
            agent->config.chips, welcome->chips_plus_1 - 1);
    agent->fence_passed = false;
    agent->retry_delay_ns = 0;
    agent->tries = 0;
    agent->last_heartbeat_ns = agent->hello_sent_ns;
    /* A random phase spreads the heartbeats of a cluster that connected in one instant. */
    agent->next_heartbeat_ns = agent->boot_ns + rng_range(&agent->rng, 1, agent->heartbeat_ns);
    agent->steps_sent_ns = agent->boot_ns;
    CHECK(agent->fence_ns > agent->boot_ns && agent->next_heartbeat_ns > agent->boot_ns);
    agent_task_start_waiting(agent, effects);
    agent_containers_tick(agent, effects); /* starts that waited for the tether */
}

/* The refusal may arrive on the tether before the session is open. */
static void on_refused(struct agent *agent, const struct from_controller *message,
                       struct agent_effects *effects)
{
    if (agent->link == LINK_DOWN)
        return;
    if (is_stranger(agent, message->cluster)) {
        refuse_stranger(agent, message->cluster, effects);
        return;
    }
    agent_note(effects, "the controller refuses this machine: " STR_FORMAT, STR_ARG(message->text));
    agent_disconnect(agent, effects, RETRY_REFUSED_NS);
}

static void on_message(struct agent *agent, const struct from_controller *message,
                       struct agent_effects *effects)
{
    if (message->kind == FROM_CONTROLLER_WELCOME) {
        on_welcome(agent, &message->welcome, effects);
        return;
    }
    if (message->kind == FROM_CONTROLLER_REFUSED) {
        on_refused(agent, message, effects);
        return;
    }
    if (agent->link != LINK_WELCOME)
        return; /* the message is of a connection that was given up */
    switch (message->kind) {
    case FROM_CONTROLLER_HEARTBEAT_ACK:
        if (message->sent_ns >= agent->hello_sent_ns && message->sent_ns <= agent->last_heartbeat_ns) {
            lease_renew(agent, message->sent_ns, &message->grant, effects);
            compare_clocks(agent, message, effects);
            agent_containers_confirmed(agent, effects);
        }
        break;
    case FROM_CONTROLLER_REPORTS_ACK:
        agent_reports_acked(agent, message->number);
        break;
    case FROM_CONTROLLER_START:
        agent_task_start(agent, &message->start, effects);
        break;
    case FROM_CONTROLLER_STOP:
        agent_task_stop(agent, &message->stop, effects);
        break;
    case FROM_CONTROLLER_NOTICE:
        agent_client_notice(agent, &message->notice, effects);
        break;
    case FROM_CONTROLLER_REJOIN:
        agent_task_rejoin(agent, &message->rejoin, effects);
        break;
    case FROM_CONTROLLER_FORGET:
        agent_task_forget(agent, message->task, effects);
        break;
    case FROM_CONTROLLER_LOG_OPEN:
        agent_effect_add(effects, AGENT_LOG_OPEN)->log_open = message->log_open;
        break;
    case FROM_CONTROLLER_ERRAND_START:
        agent_errand_start(agent, &message->errand_start, effects);
        break;
    case FROM_CONTROLLER_SAY_AGAIN:
        agent_effect_add(effects, AGENT_SAY_AGAIN);
        break;
    case FROM_CONTROLLER_ERRAND_STOP:
        agent_errand_stop(agent, message->number, effects);
        break;
    case FROM_CONTROLLER_EXEC_OPEN: /* these are for the host and change no state */
    case FROM_CONTROLLER_EXEC_INPUT:
    case FROM_CONTROLLER_EXEC_RESIZE:
    case FROM_CONTROLLER_EXEC_CLOSE:
    case FROM_CONTROLLER_RANK_TABLE:
        break;
    case FROM_CONTROLLER_LOG_CLOSE:
        agent_effect_add(effects, AGENT_LOG_CLOSE)->stream = message->number;
        break;
    case FROM_CONTROLLER_WELCOME:
    case FROM_CONTROLLER_REFUSED:
        break;
    }
}

/* --- the step ------------------------------------------------------------------------------------- */

static void on_connected(struct agent *agent, struct agent_effects *effects)
{
    if (agent->link != LINK_CONNECTING)
        return;
    lifecycle_move(&link_lifecycle, &agent->link, LINK_HELLO);
    agent->hello_sent_ns = agent->boot_ns;
    agent->hello_deadline_ns = agent->boot_ns + hello_patience(agent);
    CHECK(agent->report_number == 0); /* reports count from 1 on each connection */
    agent_send_hello(agent, effects);
}

static void dispatch(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    switch (event->kind) {
    case AGENT_ADOPTED:
        agent_task_adopted(agent, event);
        break;
    case AGENT_BOOT:
        agent->booted = true;
        agent_containers_boot(agent, effects);
        break;
    case AGENT_TICK:
        break;
    case AGENT_CONNECTED:
        on_connected(agent, effects);
        break;
    case AGENT_DISCONNECTED:
        if (agent->link != LINK_DOWN)
            link_lost(agent, 0);
        break;
    case AGENT_MESSAGE:
        on_message(agent, event->message, effects);
        break;
    case AGENT_TASK_STARTED:
        agent_task_started(agent, event, effects);
        break;
    case AGENT_TASK_EXITED:
        agent_task_exited(agent, event, effects);
        break;
    case AGENT_CLIENT_JOIN:
    case AGENT_CLIENT_STEP:
    case AGENT_CLIENT_SHARD_SAVED:
    case AGENT_CLIENT_PEER_GONE:
    case AGENT_CLIENT_RETRY:
    case AGENT_CLIENT_ROUTES:
    case AGENT_CLIENT_LEFT:
        agent_client_event(agent, event, effects);
        break;
    case AGENT_ACTED:
        agent_acted(agent, event, effects);
        break;
    case AGENT_TASK_PACED:
        agent_task_paced(agent, event);
        break;
    case AGENT_SAW:
        agent_saw(agent, event->saw);
        break;
    case AGENT_ERRAND_ENDED:
        agent_errand_ended(agent, event->errand_ended, effects);
        break;
    }
}

void agent_step(struct agent *agent, const struct agent_event *event, struct agent_effects *effects)
{
    CHECK(event->boot_ns >= agent->boot_ns);
    CHECK(event->kind >= AGENT_ADOPTED && event->kind <= AGENT_TASK_PACED);
    CHECK(event->kind != AGENT_MESSAGE || event->message);
    int64_t fence_ns = agent->fence_ns;
    uint64_t grant = agent->grant;
    vec_clear(&effects->list);
    arena_done(&effects->arena);
    agent->boot_ns = event->boot_ns;
    agent->wall_ns = event->wall_ns;
    fence_tick(agent, effects);
    dispatch(agent, event, effects);
    link_tick(agent, effects);
    if (agent->boot_ns >= agent_containers_deadline(agent))
        agent_containers_tick(agent, effects);
    if (agent->link == LINK_WELCOME)
        agent_send_due(agent, effects);
    CHECK(agent->fence_ns >= fence_ns || agent->grant != grant); /* moves backwards only with a new grant */
    CHECK(!agent->fence_passed || agent->link != LINK_WELCOME);
    CHECK(agent->pending.len <= AGENT_PENDING_MAX && agent->seen.len <= ATTEMPTS_SEEN_MAX);
}

int64_t agent_deadline(const struct agent *agent)
{
    if (!agent->booted)
        return INT64_MAX;
    int64_t due_ns = INT64_MAX;
    if (agent->link == LINK_DOWN)
        due_ns = agent->retry_ns;
    else if (agent->link == LINK_HELLO)
        due_ns = agent->hello_deadline_ns;
    else if (agent->link == LINK_WELCOME)
        due_ns =
            agent->next_heartbeat_ns < agent->lease_end_ns ? agent->next_heartbeat_ns : agent->lease_end_ns;
    int64_t steps_ns = agent_steps_deadline(agent), containers_ns = agent_containers_deadline(agent);
    due_ns = steps_ns < due_ns ? steps_ns : due_ns;
    due_ns = containers_ns < due_ns ? containers_ns : due_ns;
    bool fence_counts = agent->fence_ns > 0 && !agent->fence_passed;
    return fence_counts && agent->fence_ns < due_ns ? agent->fence_ns : due_ns;
}

uint64_t agent_connection(const struct agent *agent)
{
    return agent->connection;
}

struct str agent_machine(const struct agent *agent)
{
    return agent->config.machine;
}

uint64_t agent_incarnation(const struct agent *agent)
{
    return agent->config.incarnation;
}

uint64_t agent_cluster(const struct agent *agent)
{
    return agent->cluster;
}

bool agent_is_welcome(const struct agent *agent)
{
    return agent->link == LINK_WELCOME;
}

int64_t agent_fence(const struct agent *agent)
{
    return agent->fence_ns;
}
