/* Messages survive the wire whatever is in them; damaged bytes never do harm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/agent/codec.h"
#include "core/agent/codec_pb.h"
#include "core/words/limits.h"

enum { ROUNDS = 400 };

static struct str random_text(struct rng *rng, struct arena *arena, size_t min)
{
    size_t len = min + rng_below(rng, 12);
    char *text = arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + rng_below(rng, 26));
    return (struct str){text, len};
}

static struct container_status *random_statuses(struct rng *rng, struct arena *arena, size_t count)
{
    struct container_status *statuses = ARENA_ARRAY(arena, struct container_status, count);
    for (size_t i = 0; i < count; i++)
        statuses[i] = (struct container_status){
            .name = random_text(rng, arena, 1),
            .role = (enum container_role)rng_below(rng, CONTAINER_ROLES),
            .phase = (enum container_phase)rng_below(rng, CONTAINER_PHASES),
            .ready = rng_chance(rng, 500000),
            .started = rng_chance(rng, 500000),
            .restarts = (uint32_t)rng_below(rng, 3),
            .reason = random_text(rng, arena, 0),
            .message = random_text(rng, arena, 0),
            .started_ns = (int64_t)rng_below(rng, 1000),
            .end = {.exit_code = (int32_t)rng_range(rng, -1, 255), .message = random_text(rng, arena, 0)}};
    return statuses;
}

static struct task_report random_report(struct rng *rng, struct arena *arena)
{
    size_t containers = rng_below(rng, 4);
    return (struct task_report){.kind = (enum report_kind)rng_range(rng, REPORT_STARTED, REPORT_NOTE),
                                .not_ready = rng_chance(rng, 500000),
                                .containers = random_statuses(rng, arena, containers),
                                .container_count = containers,
                                .reason = random_text(rng, arena, 0),
                                .warning = rng_chance(rng, 500000),
                                .task = 1 + rng_below(rng, UINT64_C(1) << 62),
                                .exit_code = (int32_t)rng_range(rng, -1, 255),
                                .signal = (int32_t)rng_below(rng, 65),
                                .oom = rng_chance(rng, 500000),
                                .fenced = rng_chance(rng, 500000),
                                .started_ns = (int64_t)(rng_next(rng) >> 1),
                                .finished_ns = (int64_t)(rng_next(rng) >> 1),
                                .step = (int64_t)rng_below(rng, 1000),
                                .peer_rank = (uint32_t)rng_next(rng),
                                .pid = (int64_t)rng_below(rng, 100000),
                                .message = random_text(rng, arena, 0),
                                .attempt_plus_1 = (uint32_t)rng_below(rng, 1000),
                                .can_rejoin = rng_chance(rng, 500000),
                                .spare = rng_chance(rng, 500000)};
}

static void random_hello(struct rng *rng, struct arena *arena, struct hello *hello)
{
    *hello = (struct hello){.version = WIRE_VERSION,
                            .machine = random_text(rng, arena, 1),
                            .incarnation = rng_next(rng),
                            .connection = rng_next(rng),
                            .chips = (uint32_t)rng_below(rng, 65),
                            .cpu_milli = (int64_t)rng_below(rng, 1000000),
                            .memory_bytes = (int64_t)(rng_next(rng) >> 1),
                            .software = random_text(rng, arena, 0),
                            .report_count = rng_below(rng, 5),
                            .errands = rng_chance(rng, 500000),
                            .errand_count = rng_below(rng, 4)};
    hello->reports = ARENA_ARRAY(arena, struct task_report, hello->report_count);
    for (size_t i = 0; i < hello->report_count; i++)
        hello->reports[i] = random_report(rng, arena);
    hello->errand_ids = ARENA_ARRAY(arena, obj_id, hello->errand_count);
    for (size_t i = 0; i < hello->errand_count; i++)
        hello->errand_ids[i] = 1 + rng_next(rng) / 2;
    hello->cluster = rng_next(rng);
    hello->seen_count = rng_below(rng, 4);
    hello->seen = ARENA_ARRAY(arena, struct attempt_seen, hello->seen_count);
    for (size_t i = 0; i < hello->seen_count; i++)
        hello->seen[i] =
            (struct attempt_seen){rng_next(rng), (int32_t)rng_below(rng, INT32_MAX), rng_next(rng)};
}

static void random_ends(struct rng *rng, struct arena *arena, struct reports *reports)
{
    reports->errand_count = rng_below(rng, 4);
    reports->errands = ARENA_ARRAY(arena, struct errand_end, reports->errand_count);
    for (size_t i = 0; i < reports->errand_count; i++)
        reports->errands[i] = (struct errand_end){
            1 + rng_next(rng) / 2, (enum errand_outcome)rng_range(rng, ERRAND_OK, ERRAND_TIMED_OUT),
            (int32_t)rng_range(rng, -1, 255), random_text(rng, arena, 0)};
}

static void random_usage(struct rng *rng, struct arena *arena, struct usage *usage)
{
    *usage = (struct usage){.window_ns = (int64_t)(1 + rng_below(rng, 1000000)),
                            .cpu_nano = (int64_t)(rng_next(rng) >> 1),
                            .memory_bytes = (int64_t)(rng_next(rng) >> 1),
                            .item_count = rng_below(rng, 4)};
    usage->items = ARENA_ARRAY(arena, struct container_usage, usage->item_count);
    for (size_t i = 0; i < usage->item_count; i++)
        usage->items[i] = (struct container_usage){.task = 1 + rng_next(rng) / 2,
                                                   .container = (uint32_t)rng_below(rng, 8),
                                                   .cpu_nano = (int64_t)rng_below(rng, 1000000),
                                                   .memory_bytes = (int64_t)rng_below(rng, 1000000)};
}

static void random_heartbeat(struct rng *rng, struct arena *arena, struct heartbeat *heartbeat)
{
    *heartbeat = (struct heartbeat){.sent_ns = (int64_t)(rng_next(rng) >> 1),
                                    .wall_ns = (int64_t)(rng_next(rng) >> 1),
                                    .grant = rng_below(rng, 1000),
                                    .step_count = rng_below(rng, 4)};
    heartbeat->steps = ARENA_ARRAY(arena, struct task_step, heartbeat->step_count);
    for (size_t i = 0; i < heartbeat->step_count; i++) {
        struct task_step *step = &heartbeat->steps[i];
        step->task = 1 + rng_next(rng) / 2;
        step->step = (int64_t)rng_below(rng, 1000000);
        step->total = (int64_t)rng_below(rng, 1000000);
        step->metric_count = rng_below(rng, METRICS_MAX + 1);
        for (size_t k = 0; k < step->metric_count; k++)
            step->metrics[k] = (struct step_metric){random_text(rng, arena, 1), (int64_t)rng_next(rng)};
    }
    if (rng_chance(rng, 500000))
        random_usage(rng, arena, &heartbeat->usage);
}

static struct exec_data random_exec_data(struct rng *rng, struct arena *arena)
{
    return (struct exec_data){.stream = rng_next(rng),
                              .channel = (uint32_t)rng_range(rng, EXEC_STDIN, EXEC_STDERR),
                              .bytes = random_text(rng, arena, 0),
                              .end = rng_chance(rng, 500000),
                              .credit = rng_below(rng, UINT64_C(1) << 40)};
}

static struct exec_open random_exec_open(struct rng *rng, struct arena *arena)
{
    struct exec_open open = {.stream = rng_next(rng),
                             .task = 1 + rng_next(rng) / 2,
                             .container = random_text(rng, arena, 0),
                             .argc = 1 + rng_below(rng, 4),
                             .tty = rng_chance(rng, 500000),
                             .input = rng_chance(rng, 500000),
                             .credit = rng_below(rng, UINT64_C(1) << 40)};
    open.argv = ARENA_ARRAY(arena, struct str, open.argc);
    for (size_t i = 0; i < open.argc; i++)
        open.argv[i] = random_text(rng, arena, 0);
    return open;
}

static struct from_agent random_agent(struct rng *rng, struct arena *arena)
{
    struct from_agent message = {
        .kind = (enum from_agent_kind)rng_range(rng, FROM_AGENT_HELLO, FROM_AGENT_EXEC_END)};
    switch (message.kind) {
    case FROM_AGENT_HELLO:
    case FROM_AGENT_TETHER:
        random_hello(rng, arena, &message.hello);
        break;
    case FROM_AGENT_HEARTBEAT:
    case FROM_AGENT_STEPS:
        random_heartbeat(rng, arena, &message.heartbeat);
        break;
    case FROM_AGENT_REPORTS:
        message.reports.number = rng_next(rng);
        message.reports.count = rng_below(rng, 5);
        message.reports.items = ARENA_ARRAY(arena, struct task_report, message.reports.count);
        for (size_t i = 0; i < message.reports.count; i++)
            message.reports.items[i] = random_report(rng, arena);
        random_ends(rng, arena, &message.reports);
        break;
    case FROM_AGENT_LOG_DATA:
        message.log_data = (struct log_data){.stream = rng_next(rng),
                                             .bytes = random_text(rng, arena, 0),
                                             .end = rng_chance(rng, 500000),
                                             .error = random_text(rng, arena, 0)};
        break;
    case FROM_AGENT_EXEC_DATA:
        message.exec_data = random_exec_data(rng, arena);
        break;
    case FROM_AGENT_EXEC_END:
        message.exec_end =
            (struct exec_end){rng_next(rng), (int32_t)rng_range(rng, -1, 255), random_text(rng, arena, 0)};
        break;
    }
    return message;
}

static struct container_action random_action(struct rng *rng, struct arena *arena)
{
    static struct str argv[] = {{"probe", 5}};
    return (struct container_action){.kind = (enum action_kind)rng_below(rng, ACTION_KINDS),
                                     .argv = argv,
                                     .argc = 1,
                                     .tls = rng_chance(rng, 500000),
                                     .host = random_text(rng, arena, 0),
                                     .path = random_text(rng, arena, 0),
                                     .port = (uint16_t)rng_next(rng),
                                     .sleep_ns = (int64_t)rng_below(rng, 1000)};
}

static void random_container(struct rng *rng, struct arena *arena, struct container_launch *container)
{
    static int32_t codes[] = {1, 2};
    static struct container_rule rules[] = {{true, codes, 2}};
    *container = (struct container_launch){.name = random_text(rng, arena, 1),
                                           .restart = (enum container_restart)rng_below(rng, 3),
                                           .ends_joined = rng_below(rng, 2) > 0,
                                           .rules = rules,
                                           .rule_count = rng_below(rng, 2),
                                           .working_dir = random_text(rng, arena, 0),
                                           .run_as_user = -1,
                                           .run_as_group = 5,
                                           .post_start = random_action(rng, arena),
                                           .mount_count = 1};
    for (int i = 0; i < PROBE_KINDS; i++)
        container->probes[i] = (struct container_probe){
            random_action(rng, arena), 0, NS_PER_SECOND, NS_PER_SECOND, 1, 3, rng_range(rng, -1, 5)};
    container->mounts = ARENA_NEW(arena, struct container_mount);
    *container->mounts = (struct container_mount){random_text(rng, arena, 1), random_text(rng, arena, 1),
                                                  random_text(rng, arena, 0), rng_chance(rng, 500000)};
}

static void random_pod(struct rng *rng, struct arena *arena, struct task_launch *launch)
{
    launch->container_count = rng_below(rng, 4);
    launch->containers = ARENA_ARRAY(arena, struct container_launch, launch->container_count);
    for (size_t i = 0; i < launch->container_count; i++) {
        random_container(rng, arena, &launch->containers[i]);
        launch->containers[i].role = i == 0 ? CONTAINER_MAIN : CONTAINER_SIDECAR;
    }
    launch->volume_count = launch->container_count > 0 ? rng_below(rng, 3) : 0;
    launch->volumes = ARENA_ARRAY(arena, struct volume_launch, launch->volume_count);
    for (size_t i = 0; i < launch->volume_count; i++) {
        struct volume_launch *volume = &launch->volumes[i];
        *volume = (struct volume_launch){.name = random_text(rng, arena, 1),
                                         .kind = (enum volume_kind)rng_below(rng, VOLUME_KINDS),
                                         .source = random_text(rng, arena, 0),
                                         .file_count = 1,
                                         .files = ARENA_NEW(arena, struct volume_file)};
        *volume->files = (struct volume_file){random_text(rng, arena, 1), STR("\0\1bytes"), 0440};
    }
}

static void random_launch(struct rng *rng, struct arena *arena, struct task_launch *launch)
{
    *launch = (struct task_launch){.task = 1 + rng_next(rng) / 2,
                                   .jobset = rng_next(rng),
                                   .attempt = (int32_t)rng_below(rng, 100),
                                   .name = random_text(rng, arena, 1),
                                   .namespace_ = random_text(rng, arena, 1),
                                   .checkpoint_folder = random_text(rng, arena, 1),
                                   .argc = rng_below(rng, 4),
                                   .env_count = rng_below(rng, 4),
                                   .working_dir = random_text(rng, arena, 0),
                                   .run_as_user = rng_range(rng, -1, 70000),
                                   .run_as_group = rng_range(rng, -1, 70000),
                                   .chips = rng_next(rng),
                                   .cpu_milli = (int64_t)rng_below(rng, 9000),
                                   .memory_bytes = (int64_t)(rng_next(rng) >> 1),
                                   .grace_ns = (int64_t)(rng_next(rng) >> 1),
                                   .rank = (uint32_t)rng_next(rng),
                                   .world = (uint32_t)rng_next(rng),
                                   .restore_step = rng_range(rng, -1, 1000),
                                   .restore_attempt = (int32_t)rng_below(rng, 10)};
    launch->argv = ARENA_ARRAY(arena, struct str, launch->argc);
    for (size_t i = 0; i < launch->argc; i++)
        launch->argv[i] = random_text(rng, arena, 0);
    launch->env = ARENA_ARRAY(arena, struct env_var, launch->env_count);
    for (size_t i = 0; i < launch->env_count; i++)
        launch->env[i] =
            (struct env_var){random_text(rng, arena, 1), random_text(rng, arena, 0), rng_chance(rng, 500000)};
    struct gang_rank_table *rank_table = &launch->rank_table;
    *rank_table = (struct gang_rank_table){random_text(rng, arena, 0), random_text(rng, arena, 1), NULL,
                                           rng_below(rng, 5)};
    rank_table->entries = ARENA_ARRAY(arena, struct rank_table_entry, rank_table->count);
    for (size_t i = 0; i < rank_table->count; i++)
        rank_table->entries[i] =
            (struct rank_table_entry){random_text(rng, arena, 1), random_text(rng, arena, 1),
                                      random_text(rng, arena, 1), rng_next(rng), (uint32_t)i};
}

static enum from_controller_kind random_controller_kind(struct rng *rng)
{
    if (!rng_chance(rng, 100000))
        return (enum from_controller_kind)rng_range(rng, FROM_CONTROLLER_WELCOME, FROM_CONTROLLER_RANK_TABLE);
    return rng_chance(rng, 300000)   ? FROM_CONTROLLER_REJOIN
           : rng_chance(rng, 500000) ? FROM_CONTROLLER_ERRAND_START
           : rng_chance(rng, 500000) ? FROM_CONTROLLER_ERRAND_STOP
                                     : FROM_CONTROLLER_SAY_AGAIN;
}

static struct task_rejoin random_rejoin(struct rng *rng)
{
    return (struct task_rejoin){.task = 1 + rng_next(rng) / 2,
                                .attempt = (int32_t)rng_below(rng, 1000),
                                .rank = (uint32_t)rng_below(rng, 8),
                                .world = 8 + (uint32_t)rng_below(rng, 8),
                                .full_world = 16,
                                .flags = (uint32_t)rng_next(rng),
                                .rendezvous = STR("10.0.0.1:20001"),
                                .restore_step = rng_range(rng, -1, 50),
                                .restore_attempt = (int32_t)rng_below(rng, 9)};
}

static struct log_open random_log_open(struct arena *arena, struct rng *rng)
{
    return (struct log_open){.stream = rng_next(rng),
                             .task = rng_next(rng),
                             .follow = rng_chance(rng, 500000),
                             .previous = rng_chance(rng, 500000),
                             .tail_lines = rng_range(rng, -1, 50),
                             .since_ns = (int64_t)(rng_next(rng) >> 1),
                             .limit_bytes = (int64_t)(rng_next(rng) >> 1),
                             .container = random_text(rng, arena, 0),
                             .timestamps = rng_chance(rng, 500000),
                             .earlier = random_text(rng, arena, 0),
                             .attempt = (int32_t)rng_range(rng, -1, 50),
                             .after = rng_next(rng)};
}

static struct lease_grant random_grant(struct rng *rng)
{
    if (rng_chance(rng, 300000))
        return (struct lease_grant){0};
    return (struct lease_grant){rng_range(rng, 1, 1000), rng_range(rng, 0, LEASE_HOLD_MAX_NS)};
}

static struct task_notice random_notice(struct rng *rng)
{
    if (rng_below(rng, 2))
        return (struct task_notice){
            .kind = NOTICE_TABLES, .task = 3, .step = 9, .tables = STR("8x8x16-twisted without z12")};
    return (struct task_notice){.kind = NOTICE_DRAIN,
                                .task = rng_next(rng),
                                .step = 7,
                                .deadline_ns = 8,
                                .reason = 1 + rng_below(rng, 4)};
}

static struct from_controller random_controller(struct rng *rng, struct arena *arena)
{
    struct from_controller message = {.kind = random_controller_kind(rng)};
    switch (message.kind) {
    case FROM_CONTROLLER_SAY_AGAIN: /* nothing but its kind */
        break;
    case FROM_CONTROLLER_WELCOME:
        message.welcome = (struct welcome){rng_next(rng),
                                           rng_range(rng, 1, 3600 * NS_PER_SECOND),
                                           rng_range(rng, 1, NS_PER_SECOND),
                                           (uint32_t)rng_next(rng),
                                           random_grant(rng),
                                           rng_next(rng) | 1,
                                           (uint32_t)rng_next(rng)};
        break;
    case FROM_CONTROLLER_REFUSED:
        message.text = random_text(rng, arena, 0);
        message.cluster = rng_next(rng);
        break;
    case FROM_CONTROLLER_HEARTBEAT_ACK:
        message.sent_ns = (int64_t)rng_next(rng);
        message.clock_ns = (int64_t)rng_next(rng);
        message.grant = random_grant(rng);
        break;
    case FROM_CONTROLLER_REPORTS_ACK:
    case FROM_CONTROLLER_LOG_CLOSE:
    case FROM_CONTROLLER_EXEC_CLOSE:
    case FROM_CONTROLLER_ERRAND_STOP:
        message.number = rng_next(rng);
        break;
    case FROM_CONTROLLER_RANK_TABLE:
        message.rank_table = (struct packed_rank_table){rng_next(rng), random_text(rng, arena, 1)};
        break;
    case FROM_CONTROLLER_ERRAND_START:
        message.errand_start =
            (struct errand_start){1 + rng_next(rng) / 2, ERRAND_HOOK, random_text(rng, arena, 0),
                                  rng_range(rng, 1, ERRAND_TIMEOUT_MAX_NS)};
        break;
    case FROM_CONTROLLER_START:
        random_launch(rng, arena, &message.start);
        random_pod(rng, arena, &message.start);
        break;
    case FROM_CONTROLLER_STOP:
        message.stop = (struct task_stop){rng_next(rng), (int64_t)(rng_next(rng) >> 1)};
        break;
    case FROM_CONTROLLER_NOTICE:
        message.notice = random_notice(rng);
        break;
    case FROM_CONTROLLER_REJOIN:
        message.rejoin = random_rejoin(rng);
        break;
    case FROM_CONTROLLER_FORGET:
        message.task = rng_next(rng);
        break;
    case FROM_CONTROLLER_LOG_OPEN:
        message.log_open = random_log_open(arena, rng);
        break;
    case FROM_CONTROLLER_EXEC_OPEN:
        message.exec_open = random_exec_open(rng, arena);
        break;
    case FROM_CONTROLLER_EXEC_INPUT:
        message.exec_data = random_exec_data(rng, arena);
        break;
    case FROM_CONTROLLER_EXEC_RESIZE:
        message.exec_resize =
            (struct exec_resize){rng_next(rng), (uint16_t)rng_next(rng), (uint16_t)rng_next(rng)};
        break;
    }
    return message;
}

/* The bytes of the one frame in `buf`. */
static struct str only_frame(const struct buf *buf)
{
    struct str bytes = {0};
    size_t used = 0;
    assert_int_equal(codec_frame(buf->data, buf->len, &bytes, &used, NULL), 1);
    assert_int_equal(used, buf->len);
    return bytes;
}

/* Encoding is a function of the content (no padding, no address), so equal bytes mean equal messages. */
static void test_agent_round_trip(void **state)
{
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < ROUNDS; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf first = {0}, second = {0};
        struct from_agent message = random_agent(&rng, &arena), back;
        struct error error;
        assert_int_equal(codec_put_agent(&first, &message, &error), 0);
        assert_int_equal(codec_get_agent(&arena, only_frame(&first), &back, &error), 0);
        assert_int_equal(back.kind, message.kind);
        assert_int_equal(codec_put_agent(&second, &back, &error), 0);
        assert_true(str_equal(buf_str(&first), buf_str(&second)));
    }
}

static void test_controller_round_trip(void **state)
{
    struct rng rng;
    rng_seed(&rng, 2);
    for (int i = 0; i < ROUNDS; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf first = {0}, second = {0};
        struct from_controller message = random_controller(&rng, &arena), back;
        struct error error;
        assert_int_equal(codec_put_controller(&first, &message, &error), 0);
        assert_int_equal(codec_get_controller(&arena, only_frame(&first), &back, &error), 0);
        assert_int_equal(back.kind, message.kind);
        assert_int_equal(codec_put_controller(&second, &back, &error), 0);
        assert_true(str_equal(buf_str(&first), buf_str(&second)));
    }
}

/* --- packed rank tables -------------------------------------------------------------------------------- */

static void check_packed(const struct gang_rank_table *rank_table, size_t max_bytes)
{
    ARENA_CLEANUP struct arena arena = {.limit_bytes = CODEC_ARENA_BYTES};
    BUF_CLEANUP struct buf bytes = {0};
    struct gang_rank_table back;
    codec_pack_rank_table(&bytes, rank_table);
    assert_true(bytes.len <= max_bytes);
    assert_int_equal(codec_unpack_rank_table(&arena, buf_str(&bytes), &back, NULL), 0);
    assert_true(str_equal(back.subdomain, rank_table->subdomain) &&
                str_equal(back.namespace_, rank_table->namespace_));
    assert_int_equal(back.count, rank_table->count);
    for (size_t i = 0; i < rank_table->count; i++) {
        const struct rank_table_entry *a = &rank_table->entries[i], *b = &back.entries[i];
        assert_true(str_equal(a->hostname, b->hostname) && str_equal(a->machine, b->machine));
        assert_true(str_equal(a->address, b->address) && a->chips == b->chips && a->rank == b->rank);
    }
}

/* Ranks 0 ... count - 1, `per` on each machine; names are made of `number` + the machine's place. */
static struct gang_rank_table numbered_rank_table(struct arena *arena, size_t count, uint32_t per,
                                                  uint64_t number, const char *machines)
{
    struct gang_rank_table rank_table = {STR("train"), STR("default"),
                                         ARENA_ARRAY(arena, struct rank_table_entry, count), count};
    for (size_t i = 0; i < count; i++) {
        unsigned long long machine = number + i / per;
        rank_table.entries[i] = (struct rank_table_entry){
            arena_printf(arena, "train-w-0-%zu", i),
            arena_printf(arena, "10.0.%llu.%llu", machine / 256, machine % 256),
            arena_printf(arena, machines, machine), UINT64_C(1) << i % per, (uint32_t)i};
    }
    return rank_table;
}

static void test_regular_rank_tables_are_small(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct gang_rank_table rank_table = numbered_rank_table(&arena, 4096, 8, 1, "m-%llu");
    check_packed(&rank_table, 512);
    rank_table = numbered_rank_table(&arena, 65536, 1, 98, "rack%04llu"); /* a run for each 256 addresses */
    check_packed(&rank_table, 257 * 80);
    rank_table = numbered_rank_table(&arena, 300, 4, 999999990, "node%llux");
    check_packed(&rank_table, SIZE_MAX);
    rank_table =
        numbered_rank_table(&arena, 40, 2, UINT64_C(99999999990), "m%llu"); /* more digits than are counted */
    check_packed(&rank_table, SIZE_MAX);
}

static void test_any_rank_table_comes_back(void **state)
{
    struct rng rng;
    rng_seed(&rng, 7);
    for (int round = 0; round < ROUNDS; round++) {
        ARENA_CLEANUP struct arena arena = {0};
        struct gang_rank_table rank_table =
            numbered_rank_table(&arena, 1 + rng_below(&rng, 60), 1 + (uint32_t)rng_below(&rng, 8),
                                rng_below(&rng, 300), "m-%llu");
        for (uint64_t changes = rng_below(&rng, 4); changes > 0; changes--) {
            struct rank_table_entry *entry = &rank_table.entries[rng_below(&rng, rank_table.count)];
            const struct rank_table_entry *other = &rank_table.entries[rng_below(&rng, rank_table.count)];
            switch (rng_below(&rng, 5)) {
            case 0:
                entry->hostname = random_text(&rng, &arena, 0);
                break;
            case 1:
                entry->machine = other->machine;
                break;
            case 2:
                entry->address = other->address;
                break;
            case 3:
                entry->chips = rng_next(&rng);
                break;
            default:
                entry->rank = (uint32_t)rng_next(&rng);
            }
        }
        check_packed(&rank_table, SIZE_MAX);
    }
}

static void test_endless_runs_are_refused(void **state)
{
    static const char too_many[] = "\x22\x0a\x0a\x00\x10\xff\xff\xff\xff\x07\x18\x01";
    static const char empty[] = "\x22\x06\x0a\x00\x10\x00\x18\x01";
    static const char nobody[] = "\x22\x04\x10\x01\x18\x01";
    static const char no_place[] = "\x22\x04\x0a\x00\x10\x02";
    ARENA_CLEANUP struct arena arena = {.limit_bytes = CODEC_ARENA_BYTES};
    struct gang_rank_table rank_table;
    assert_int_equal(
        codec_unpack_rank_table(&arena, (struct str){too_many, sizeof too_many - 1}, &rank_table, NULL),
        ERROR_LIMIT);
    assert_int_equal(
        codec_unpack_rank_table(&arena, (struct str){empty, sizeof empty - 1}, &rank_table, NULL),
        ERROR_INVALID);
    assert_int_equal(
        codec_unpack_rank_table(&arena, (struct str){nobody, sizeof nobody - 1}, &rank_table, NULL),
        ERROR_INVALID);
    assert_int_equal(
        codec_unpack_rank_table(&arena, (struct str){no_place, sizeof no_place - 1}, &rank_table, NULL),
        ERROR_INVALID);
}

static void test_fields_arrive(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct rng rng;
    rng_seed(&rng, 3);
    struct from_controller message = {.kind = FROM_CONTROLLER_START}, back = {0};
    random_launch(&rng, &arena, &message.start);
    random_pod(&rng, &arena, &message.start);
    message.start.restore_step = -1;
    message.start.run_as_user = -1;
    BUF_CLEANUP struct buf buf = {0};
    assert_int_equal(codec_put_controller(&buf, &message, NULL), 0);
    assert_int_equal(codec_get_controller(&arena, only_frame(&buf), &back, NULL), 0);
    const struct task_launch *a = &message.start, *b = &back.start;
    assert_int_equal(a->task, b->task);
    assert_int_equal(a->chips, b->chips);
    assert_int_equal(b->restore_step, -1);
    assert_int_equal(b->run_as_user, -1);
    assert_true(str_equal(a->name, b->name) && str_equal(a->namespace_, b->namespace_));
    assert_int_equal(a->argc, b->argc);
    assert_int_equal(a->rank_table.count, b->rank_table.count);
    for (size_t i = 0; i < a->rank_table.count; i++)
        assert_true(str_equal(a->rank_table.entries[i].address, b->rank_table.entries[i].address));
}

/* Equal bytes on the second way would also come of a field that neither way knows. */
static void test_stream_fields_arrive(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf opened = {0}, logged = {0}, resized = {0}, sent = {0};
    struct str argv[] = {STR("sh"), STR("-c"), STR("")};
    struct from_controller back;
    struct from_agent from;
    struct from_controller open = {.kind = FROM_CONTROLLER_EXEC_OPEN,
                                   .exec_open = {7, 8, STR("side"), argv, 3, true, true, UINT64_C(1) << 40}};
    assert_int_equal(codec_put_controller(&opened, &open, NULL), 0);
    assert_int_equal(codec_get_controller(&arena, only_frame(&opened), &back, NULL), 0);
    assert_int_equal(back.exec_open.stream, 7);
    assert_int_equal(back.exec_open.task, 8);
    assert_true(str_is(back.exec_open.container, "side"));
    assert_int_equal(back.exec_open.argc, 3);
    assert_true(str_is(back.exec_open.argv[1], "-c"));
    assert_int_equal(back.exec_open.argv[2].len, 0);
    assert_true(back.exec_open.tty && back.exec_open.input);
    assert_int_equal(back.exec_open.credit, UINT64_C(1) << 40);

    struct from_controller logs = {.kind = FROM_CONTROLLER_LOG_OPEN,
                                   .log_open = {.stream = 9,
                                                .task = 8,
                                                .tail_lines = -1,
                                                .container = STR("init"),
                                                .timestamps = true,
                                                .previous = true}};
    assert_int_equal(codec_put_controller(&logged, &logs, NULL), 0);
    assert_int_equal(codec_get_controller(&arena, only_frame(&logged), &back, NULL), 0);
    assert_true(str_is(back.log_open.container, "init"));
    assert_true(back.log_open.timestamps && back.log_open.previous && !back.log_open.follow);
    assert_int_equal(back.log_open.tail_lines, -1);

    struct from_controller resize = {.kind = FROM_CONTROLLER_EXEC_RESIZE, .exec_resize = {9, 65535, 1}};
    assert_int_equal(codec_put_controller(&resized, &resize, NULL), 0);
    assert_int_equal(codec_get_controller(&arena, only_frame(&resized), &back, NULL), 0);
    assert_int_equal(back.exec_resize.width, 65535);
    assert_int_equal(back.exec_resize.height, 1);

    struct from_agent data = {.kind = FROM_AGENT_EXEC_DATA,
                              .exec_data = {5, EXEC_STDERR, STR("a\0\xff"), true, 6}};
    assert_int_equal(codec_put_agent(&sent, &data, NULL), 0);
    assert_int_equal(codec_get_agent(&arena, only_frame(&sent), &from, NULL), 0);
    assert_int_equal(from.exec_data.stream, 5);
    assert_int_equal(from.exec_data.channel, EXEC_STDERR);
    assert_true(str_equal(from.exec_data.bytes, STR("a\0\xff")) && from.exec_data.end);
    assert_int_equal(from.exec_data.credit, 6);
    buf_clear(&sent);
    struct from_agent end = {.kind = FROM_AGENT_EXEC_END, .exec_end = {5, -1, STR("why")}};
    assert_int_equal(codec_put_agent(&sent, &end, NULL), 0);
    assert_int_equal(codec_get_agent(&arena, only_frame(&sent), &from, NULL), 0);
    assert_int_equal(from.exec_end.exit_code, -1);
    assert_true(str_is(from.exec_end.error, "why"));
}

static void test_frames(void **state)
{
    BUF_CLEANUP struct buf buf = {0};
    struct from_agent message = {.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = 5, .wall_ns = 6}};
    assert_int_equal(codec_put_agent(&buf, &message, NULL), 0);
    struct str bytes;
    size_t used;
    for (size_t len = 0; len < buf.len; len++) {
        assert_int_equal(codec_frame(buf.data, len, &bytes, &used, NULL), 0);
        assert_int_equal(used, len < FRAME_HEADER_BYTES ? FRAME_HEADER_BYTES : buf.len);
    }
    for (size_t i = 4; i < buf.len; i++) { /* one wrong bit anywhere behind the length is seen */
        buf.data[i] ^= 0x10;
        struct error error;
        assert_int_equal(codec_frame(buf.data, buf.len, &bytes, &used, &error), ERROR_CORRUPT);
        buf.data[i] ^= 0x10;
    }
    const char huge[8] = {0, 0, 0, 127}, empty[8] = {0};
    assert_int_equal(codec_frame(huge, sizeof huge, &bytes, &used, NULL), ERROR_CORRUPT);
    assert_int_equal(codec_frame(empty, sizeof empty, &bytes, &used, NULL), ERROR_CORRUPT);
}

static void test_refusals(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct from_agent agent;
    struct from_controller controller;
    struct error error;
    assert_int_equal(codec_get_agent(&arena, STR("\xba\x06\x00"), &agent, &error),
                     ERROR_UNSUPPORTED); /* field 103 */
    assert_int_equal(codec_get_controller(&arena, STR("\xba\x06\x00"), &controller, &error),
                     ERROR_UNSUPPORTED);
    assert_int_equal(codec_get_agent(&arena, STR("\xff\xff\xff"), &agent, &error), ERROR_CORRUPT);
    assert_int_equal(codec_get_agent(&arena, STR("\x0a\x00"), &agent, &error),
                     ERROR_INVALID); /* nameless hello */
    /* Reports {number 3, items [{kind 99, task 1}, {kind 2, task 1}]}: the unknown kind is left out. */
    struct str mixed = STR("\x22\x0e\x08\x03\x12\x04\x08\x63\x10\x01\x12\x04\x08\x02\x10\x01");
    assert_int_equal(codec_get_agent(&arena, mixed, &agent, &error), 0);
    assert_int_equal(agent.reports.count, 1);
    assert_int_equal(agent.reports.items[0].kind, REPORT_EXITED);
    assert_int_equal(agent.reports.number, 3);
    /* Heartbeat {steps [{task 1, source 99}, {task 2}]} likewise. */
    struct str steps = STR("\x1a\x0a\x1a\x04\x08\x01\x38\x63\x1a\x02\x08\x02");
    assert_int_equal(codec_get_agent(&arena, steps, &agent, &error), 0);
    assert_int_equal(agent.heartbeat.step_count, 1);
    assert_true(agent.heartbeat.steps[0].task == 2);
}

/* Appends a message within a oneof, as a later release would send it: with a number in field 100, a text in
 * field 101, and both again inside. */
static void put_later(struct buf *out, uint8_t kind, struct str inner)
{
    static const char unknown[] = "\xa0\x06\x07\xaa\x06\x03new";
    assert_true(inner.len + sizeof unknown - 1 < 128); /* a length of one byte */
    buf_add(out, unknown, sizeof unknown - 1);
    buf_printf(out, "%c%c", kind << 3 | 2, (int)(inner.len + sizeof unknown - 1));
    buf_add(out, unknown, sizeof unknown - 1);
    buf_add_str(out, inner);
}

/* Fields of the next release are ignored, wherever they are. */
static void test_later_fields(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf hello = {0}, welcome = {0};
    struct from_agent agent;
    struct from_controller controller;
    struct error error;
    put_later(&hello, FROM_AGENT_HELLO, STR("\x08\x02\x12\x03m-1")); /* version 2, machine m-1 */
    assert_int_equal(codec_get_agent(&arena, buf_str(&hello), &agent, &error), 0);
    assert_int_equal(agent.kind, FROM_AGENT_HELLO);
    assert_int_equal(agent.hello.version, 2);
    assert_true(str_is(agent.hello.machine, "m-1"));
    put_later(&welcome, FROM_CONTROLLER_WELCOME,
              STR("\x08\x05\x10\x02\x18\x04\x31\7\0\0\0\0\0\0\0\x38\x02")); /* cluster 7, version 2 */
    assert_int_equal(codec_get_controller(&arena, buf_str(&welcome), &controller, &error), 0);
    assert_int_equal(controller.kind, FROM_CONTROLLER_WELCOME);
    assert_true(controller.welcome.epoch == 5 && controller.welcome.version == 2);
    assert_int_equal(controller.welcome.cluster, 7);
    assert_true(controller.welcome.lease_ns == 1 && controller.welcome.heartbeat_ns == 2);
}

/* Times that a clock's reading could not be added to. */
static void test_times_fit(void **state)
{
    const struct from_controller messages[] = {
        {.kind = FROM_CONTROLLER_WELCOME,
         .welcome = {.lease_ns = NS_PER_SECOND, .heartbeat_ns = INT64_MAX, .cluster = 1}},
        {.kind = FROM_CONTROLLER_WELCOME,
         .welcome = {.lease_ns = INT64_MAX, .heartbeat_ns = 1, .cluster = 1}},
        {.kind = FROM_CONTROLLER_WELCOME,
         .welcome = {.lease_ns = 1, .heartbeat_ns = 1, .grant = {1, LEASE_HOLD_MAX_NS + 1}, .cluster = 1}},
        {.kind = FROM_CONTROLLER_HEARTBEAT_ACK, .grant = {1, LEASE_HOLD_MAX_NS + 1}},
        {.kind = FROM_CONTROLLER_NOTICE,
         .notice = {.kind = NOTICE_DRAIN, .task = 1, .deadline_ns = INT64_MAX}},
        {.kind = FROM_CONTROLLER_NOTICE,
         .notice = {.kind = NOTICE_TABLES, .task = 1, .step = 0, .tables = STR("4x4x4")}},
    };
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf buf = {0};
        struct from_controller back;
        assert_int_equal(codec_put_controller(&buf, &messages[i], NULL), 0);
        assert_int_equal(codec_get_controller(&arena, only_frame(&buf), &back, NULL), ERROR_INVALID);
    }
}

/* Orders that an agent cannot carry out. */
static void test_rejoins_are_checked(void **state)
{
    static char long_host[RENDEZVOUS_MAX + 2];
    memset(long_host, 'a', sizeof long_host - 1);
    struct {
        int32_t attempt;
        uint32_t rank, world, full_world;
        int64_t restore_step;
        const char *rendezvous;
        int rc;
    } const cases[] = {
        {1, 0, 2, 2, -1, "h:1", 0},
        {1, 0, 2, 2, -1, "", 0},
        {-1, 0, 2, 2, -1, "h:1", ERROR_INVALID},
        {1, 2, 2, 2, -1, "h:1", ERROR_INVALID},
        {1, 0, 2, 1, -1, "h:1", ERROR_INVALID},
        {1, 0, 2, 2, -2, "h:1", ERROR_INVALID},
        {1, 0, 2, 2, -1, "a b:1", ERROR_INVALID},
        {1, 0, 2, 2, -1, long_host, ERROR_LIMIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Wire__TaskRejoin pb = WIRE__TASK_REJOIN__INIT;
        struct task_rejoin back;
        pb.task = 7;
        pb.attempt = cases[i].attempt;
        pb.rank = cases[i].rank;
        pb.world = cases[i].world;
        pb.full_world = cases[i].full_world;
        pb.restore_step = cases[i].restore_step;
        pb.rendezvous = (char *)(uintptr_t)cases[i].rendezvous;
        assert_int_equal(codec_read_rejoin(&pb, &back, NULL), cases[i].rc);
    }
}

static void test_memory_is_bounded(void **state)
{
    ARENA_CLEANUP struct arena source = {0};
    struct from_agent message = {.kind = FROM_AGENT_REPORTS, .reports = {.number = 1, .count = 4000}}, back;
    message.reports.items = ARENA_ARRAY(&source, struct task_report, 4000);
    for (size_t i = 0; i < 4000; i++)
        message.reports.items[i] = (struct task_report){.kind = REPORT_STARTED, .task = i + 1};
    BUF_CLEANUP struct buf buf = {0};
    assert_int_equal(codec_put_agent(&buf, &message, NULL), 0);
    ARENA_CLEANUP struct arena arena = {.limit_bytes = 100000};
    assert_int_equal(codec_get_agent(&arena, only_frame(&buf), &back, NULL), ERROR_LIMIT);
    assert_true(arena.used_bytes <= arena.limit_bytes);
}

static int hello_with(const struct attempt_seen *seen, size_t count)
{
    ARENA_CLEANUP struct arena arena = {0};
    Wire__AttemptSeen *items = ARENA_ARRAY(&arena, Wire__AttemptSeen, count), **list;
    list = ARENA_ARRAY(&arena, Wire__AttemptSeen *, count);
    for (size_t i = 0; i < count; i++) {
        wire__attempt_seen__init(&items[i]);
        items[i].jobset = seen->jobset;
        items[i].attempt = seen->attempt;
        list[i] = &items[i];
    }
    Wire__Hello pb;
    wire__hello__init(&pb);
    pb.machine = (char *)(uintptr_t) "m-1";
    pb.n_seen = count;
    pb.seen = list;
    struct hello back;
    return codec_read_hello(&arena, &pb, &back, NULL);
}

static void test_attempts_of_a_hello_are_bounded(void **state)
{
    assert_int_equal(hello_with(&(struct attempt_seen){7, 1, 0}, ATTEMPTS_SEEN_MAX), 0);
    assert_int_equal(hello_with(&(struct attempt_seen){7, 1, 0}, ATTEMPTS_SEEN_MAX + 1), ERROR_LIMIT);
    assert_int_equal(hello_with(&(struct attempt_seen){7, -1, 0}, 1), ERROR_INVALID);
    assert_int_equal(hello_with(&(struct attempt_seen){7, INT32_MAX, 0}, 1), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_round_trip),
        cmocka_unit_test(test_controller_round_trip),
        cmocka_unit_test(test_fields_arrive),
        cmocka_unit_test(test_regular_rank_tables_are_small),
        cmocka_unit_test(test_any_rank_table_comes_back),
        cmocka_unit_test(test_endless_runs_are_refused),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_later_fields),
        cmocka_unit_test(test_times_fit),
        cmocka_unit_test(test_rejoins_are_checked),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_attempts_of_a_hello_are_bounded),
        cmocka_unit_test(test_stream_fields_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
