/* Random sequences of events, under which the promises of the machine's brain must hold. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "core/agent/desk.h"

/* --- random sequences ----------------------------------------------------------------------------- */

enum { ROUNDS = 60, STEPS = 700, PROCS = 512 };

struct proc {
    obj_id uid;
    uint64_t chips;
    int32_t attempt;
    bool launched, started, alive, stopping, killed, known; /* known: the agent must still report it */
    bool asked_again; /* START or STOP came after its end: one more report is right */
    int ends_told;    /* on this connection */
};

struct game {
    struct desk desk;
    struct agent *twin; /* gets the same events: must stay equal */
    struct agent_effects twin_effects;
    struct rng rng;
    struct proc procs[PROCS];
    size_t count;
    bool connecting, connected;
    uint64_t epoch, last_number;
    int64_t last_heartbeat_ns;
    int32_t attempts[4];
};

static struct proc *proc_find(struct game *game, obj_id uid)
{
    for (size_t i = 0; i < game->count; i++)
        if (game->procs[i].uid == uid)
            return &game->procs[i];
    return NULL;
}

static void game_launch(struct game *game, const struct task_launch *launch)
{
    struct proc *proc = proc_find(game, launch->task);
    assert_true(proc && !proc->launched);
    assert_int_equal(proc->chips, launch->chips);
    assert_int_equal(launch->argc, 1);
    for (size_t i = 0; i < game->count; i++) /* no chip is held by two live tasks */
        assert_false(game->procs[i].alive && (game->procs[i].chips & launch->chips));
    assert_true(agent_fence(game->desk.agent) > game->desk.now_ns);
    proc->launched = proc->alive = proc->known = true;
}

static void game_report(struct game *game, const struct task_report *report, bool inventory)
{
    struct proc *proc = proc_find(game, report->task);
    if (report->kind != REPORT_EXITED && report->kind != REPORT_START_FAILED)
        return;
    if (!proc)
        return; /* asked to stop something unknown */
    assert_false(proc->alive);
    proc->ends_told++;
    assert_true(proc->ends_told == 1 || proc->asked_again || !proc->launched);
    (void)inventory;
}

static void game_hello(struct game *game, const struct hello *hello)
{
    for (size_t i = 0; i < game->count; i++)
        game->procs[i].ends_told = 0, game->procs[i].asked_again = false;
    for (size_t i = 0; i < hello->report_count; i++)
        game_report(game, &hello->reports[i], true);
    for (size_t i = 0; i < game->count; i++) { /* the whole inventory */
        const struct proc *proc = &game->procs[i];
        bool found = false;
        for (size_t k = 0; k < hello->report_count; k++)
            found = found || (hello->reports[k].task == proc->uid &&
                              (hello->reports[k].kind == REPORT_STARTED) == proc->alive);
        assert_true(found || !proc->known);
    }
    game->last_number = 0;
}

static void game_effects(struct game *game)
{
    for (size_t i = 0; i < game->desk.effects.list.len; i++) {
        const struct agent_effect *effect = &game->desk.effects.list.items[i];
        struct proc *proc;
        switch (effect->kind) {
        case AGENT_CONNECT:
            assert_false(game->connecting || game->connected);
            game->connecting = true;
            break;
        case AGENT_CLOSE:
            game->connecting = game->connected = false;
            break;
        case AGENT_LAUNCH:
            game_launch(game, effect->launch);
            break;
        case AGENT_STOP:
            proc = proc_find(game, effect->stop.task);
            assert_true(proc && proc->launched);
            proc->stopping = true;
            proc->killed = proc->killed || effect->stop.grace_ns == 0;
            break;
        case AGENT_FORGET:
            proc = proc_find(game, effect->task);
            assert_true(proc && !proc->alive);
            proc->known = false;
            break;
        case AGENT_SEND:
            assert_true(game->connected);
            if (effect->send.kind == FROM_AGENT_HELLO)
                game_hello(game, &effect->send.hello);
            if (effect->send.kind == FROM_AGENT_HEARTBEAT)
                game->last_heartbeat_ns = effect->send.heartbeat.sent_ns;
            if (effect->send.kind == FROM_AGENT_REPORTS) {
                assert_int_equal(effect->send.reports.number, ++game->last_number);
                for (size_t k = 0; k < effect->send.reports.count; k++)
                    game_report(game, &effect->send.reports.items[k], false);
            }
            break;
        default:
            break;
        }
    }
}

static void game_step(struct game *game, struct agent_event event)
{
    event.boot_ns = game->desk.now_ns;
    event.wall_ns = WALL_NS + game->desk.now_ns;
    agent_step(game->desk.agent, &event, &game->desk.effects);
    agent_step(game->twin, &event, &game->twin_effects);
    assert_int_equal(agent_digest(game->desk.agent), agent_digest(game->twin));
    agent_check_invariants(game->desk.agent);
    game_effects(game);
    int64_t fence_ns = agent_fence(game->desk.agent);
    for (size_t i = 0; fence_ns > 0 && game->desk.now_ns >= fence_ns && i < game->count; i++)
        assert_true(!game->procs[i].alive || game->procs[i].killed); /* no task survives the fence */
}

static void game_say(struct game *game, struct from_controller message)
{
    if (game->connected)
        game_step(game, (struct agent_event){.kind = AGENT_MESSAGE, .message = &message});
}

static obj_id any_uid(struct game *game)
{
    if (game->count == 0 || rng_chance(&game->rng, 20000))
        return 100000 + rng_below(&game->rng, 5);
    size_t back = rng_below(&game->rng, game->count < 12 ? game->count : 12);
    return game->procs[game->count - 1 - back].uid;
}

static void game_start(struct game *game)
{
    if (game->count == PROCS || !game->connected || !agent_is_welcome(game->desk.agent))
        return;
    size_t jobset = rng_below(&game->rng, 4);
    if (rng_chance(&game->rng, 300000))
        game->attempts[jobset]++;
    struct proc *proc = &game->procs[game->count++];
    *proc = (struct proc){.uid = game->count + 1000};
    proc->attempt = game->attempts[jobset] - (rng_chance(&game->rng, 100000) && game->attempts[jobset] > 0);
    proc->chips = 1 + rng_below(&game->rng, 15);
    struct rank_table_entry entry = {.hostname = STR("w-0"), .address = STR("127.0.0.1"), .rank = 0};
    struct task_launch launch = {.task = proc->uid,
                                 .jobset = jobset + 1,
                                 .attempt = proc->attempt,
                                 .name = STR("w-0-abcde"),
                                 .argv = one_arg,
                                 .argc = 1,
                                 .chips = proc->chips,
                                 .restore_step = -1,
                                 .world = 1};
    if (rng_chance(&game->rng, 500000))
        launch.rank_table = (struct gang_rank_table){STR("s"), STR("default"), &entry, 1};
    game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
}

static void game_again(struct game *game, bool stop)
{
    obj_id uid = any_uid(game);
    struct proc *proc = proc_find(game, uid);
    if (proc && !proc->alive &&
        (stop || proc->known)) /* START of what was forgotten does not happen: uids are new */
        proc->asked_again = true;
    if (stop) {
        int64_t grace_ns = (int64_t)rng_below(&game->rng, 3) * NS_PER_SECOND;
        game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {uid, grace_ns}});
    } else if (proc && proc->known) {
        struct task_launch launch = {.task = uid, .name = STR("w-0-abcde"), .argv = one_arg, .argc = 1};
        game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
    }
}

/* Orders to go on as another attempt: newer, older, said twice, for what is not there. */
static void game_rejoin(struct game *game)
{
    struct proc *proc = proc_find(game, any_uid(game));
    if (proc && rng_chance(&game->rng, 500000))
        proc->attempt++;
    if (proc && !proc->alive)
        proc->asked_again = true; /* it says what became of it */
    struct task_rejoin rejoin = {.task = proc ? proc->uid : 7,
                                 .attempt = proc ? proc->attempt : 1,
                                 .world = 2,
                                 .full_world = 2,
                                 .rendezvous = rng_chance(&game->rng, 500000) ? STR("h:1") : STR(""),
                                 .restore_step = rng_range(&game->rng, -1, 9)};
    game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_REJOIN, .rejoin = rejoin});
}

static void game_launcher(struct game *game)
{
    struct proc *proc = proc_find(game, any_uid(game));
    if (!proc || !proc->alive)
        return;
    if (!proc->started && rng_chance(&game->rng, 700000)) {
        proc->started = true;
        game_step(game, (struct agent_event){.kind = AGENT_TASK_STARTED, .started = {proc->uid, 5, WALL_NS}});
        return;
    }
    proc->alive = false;
    game_step(game, (struct agent_event){.kind = AGENT_TASK_EXITED,
                                         .exited = {.task = proc->uid,
                                                    .start_failed = !proc->started,
                                                    .exit_code = proc->killed ? -1 : 0,
                                                    .signal = proc->killed ? SIGKILL : 0}});
}

static void game_client(struct game *game)
{
    obj_id uid = any_uid(game);
    const struct proc *proc = proc_find(game, uid);
    struct agent_event event = {
        .kind = (enum agent_event_kind)rng_range(&game->rng, AGENT_CLIENT_JOIN, AGENT_CLIENT_LEFT)};
    event.client.client = uid;
    event.client.task = uid;
    event.client.attempt = proc ? proc->attempt + (int32_t)rng_range(&game->rng, -1, 1) : 0;
    event.client.can_rejoin = rng_chance(&game->rng, 700000);
    event.client.spare = rng_chance(&game->rng, 100000);
    event.client.step.step = (int64_t)rng_below(&game->rng, 100);
    event.client.saved_step = (int64_t)rng_below(&game->rng, 3);
    event.client.peer_rank = (uint32_t)rng_below(&game->rng, 3);
    game_step(game, event);
}

static void game_welcome(struct game *game)
{
    game->epoch += rng_chance(&game->rng, 100000);
    game_say(game, (struct from_controller){
                       .kind = FROM_CONTROLLER_WELCOME,
                       .welcome = {.epoch = game->epoch - (game->epoch > 0 && rng_chance(&game->rng, 50000)),
                                   .lease_ns = LEASE_NS,
                                   .heartbeat_ns = NS_PER_SECOND,
                                   .cluster = DESK_CLUSTER + (agent_cluster(game->desk.agent) != 0 &&
                                                              rng_chance(&game->rng, 50000)),
                                   .version = WIRE_VERSION}});
}

static void game_turn(struct game *game)
{
    struct agent_event event = {.kind = AGENT_TICK};
    switch (rng_below(&game->rng, 16)) {
    case 0:
    case 1:
        game->desk.now_ns += (int64_t)rng_below(&game->rng, 300) * NS_PER_MS;
        game_step(game, event);
        break;
    case 2: /* exactly when it asked */
        if (agent_deadline(game->desk.agent) != INT64_MAX &&
            agent_deadline(game->desk.agent) > game->desk.now_ns)
            game->desk.now_ns = agent_deadline(game->desk.agent);
        game_step(game, event);
        break;
    case 3:
    case 4:
        if (game->connecting) {
            game->connecting = false;
            game->connected = rng_chance(&game->rng, 700000);
            event.kind = game->connected ? AGENT_CONNECTED : AGENT_DISCONNECTED;
            game_step(game, event);
        } else if (game->connected && rng_chance(&game->rng, 100000)) {
            game->connected = false;
            event.kind = AGENT_DISCONNECTED;
            game_step(game, event);
        }
        break;
    case 5:
        game_welcome(game);
        break;
    case 6:
    case 7:
        game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                                .sent_ns = game->last_heartbeat_ns});
        break;
    case 8:
    case 9:
        game_start(game);
        break;
    case 10:
        if (rng_chance(&game->rng, 400000))
            game_rejoin(game);
        else
            game_again(game, rng_chance(&game->rng, 700000));
        break;
    case 11: {
        struct proc *proc = proc_find(game, any_uid(game));
        if (proc && proc->ends_told > 0)
            game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = proc->uid});
        game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK,
                                                .number = rng_below(&game->rng, game->last_number + 1)});
        break;
    }
    case 12:
    case 13:
    case 14:
        game_launcher(game);
        break;
    default:
        game_client(game);
    }
}

/* Whatever happened: with a controller that answers, everything ends, is told and forgotten. */
static void game_settle(struct game *game)
{
    for (int turn = 0; turn < 100 && !agent_is_welcome(game->desk.agent); turn++) {
        if (!game->connecting && !game->connected && agent_deadline(game->desk.agent) > game->desk.now_ns)
            game->desk.now_ns = agent_deadline(game->desk.agent);
        game_step(game, (struct agent_event){.kind = AGENT_TICK});
        if (game->connecting) {
            game->connecting = false;
            game->connected = true;
            game_step(game, (struct agent_event){.kind = AGENT_CONNECTED});
        }
        game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_WELCOME,
                                                .welcome = {.epoch = game->epoch,
                                                            .lease_ns = LEASE_NS,
                                                            .heartbeat_ns = NS_PER_SECOND,
                                                            .cluster = DESK_CLUSTER,
                                                            .version = WIRE_VERSION}});
    }
    assert_true(agent_is_welcome(game->desk.agent));
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < game->count; i++) {
            struct proc *proc = &game->procs[i];
            if (proc->known && proc->alive) {
                game_say(game,
                         (struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {proc->uid, 0}});
                proc->alive = false;
                game_step(game, (struct agent_event){.kind = AGENT_TASK_EXITED,
                                                     .exited = {.task = proc->uid, .signal = SIGKILL}});
            }
        }
    for (size_t i = 0; i < game->count; i++) {
        assert_true(!game->procs[i].known || game->procs[i].ends_told > 0);
        game_say(game, (struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = game->procs[i].uid});
    }
    assert_int_equal(agent_live_tasks(game->desk.agent), 0);
}

static uint64_t seed_now; /* of the round that runs */

static void print_seed(int signal_number)
{
    fprintf(stderr, "failed with seed %llu: PHX_SEED=%llu runs it alone\n", (unsigned long long)seed_now,
            (unsigned long long)seed_now);
}

static void test_random_sequences(void **state)
{
    const char *only = getenv("PHX_SEED");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    signal(SIGABRT, print_seed);
    for (uint64_t seed = seed_now = first; seed < first + (only ? 1 : ROUNDS); seed_now = ++seed) {
        static struct game game;
        game = (struct game){0};
        desk_init(&game.desk);
        struct agent_config config = {
            .machine = STR("m-1"), .software = STR("test"), .incarnation = 1, .chips = 4, .seed = 7};
        game.twin = agent_new(&config);
        game.epoch = 1;
        rng_seed(&game.rng, seed);
        game_step(&game, (struct agent_event){.kind = AGENT_BOOT});
        for (int i = 0; i < STEPS; i++)
            game_turn(&game);
        game_settle(&game);
        desk_done(&game.desk);
        agent_free(game.twin);
        agent_effects_done(&game.twin_effects);
    }
    seed_now = 0;
}

static int tell_seed(void **state)
{
    if (seed_now != 0)
        print_seed(0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, tell_seed);
}
