/* How a gang is started: its rank table goes once to each machine and connection, and is small. */
#include "host/controller/world.h"

#include "core/agent/codec.h"
#include "core/agent/rank_table.h"

#include <sys/resource.h>

enum { AGENTS_MAX = 1000, RANK_TABLE_BYTES_MAX = 1024 };

struct town;

/* An agent that only listens: what it is sent is all that is looked at. */
struct listener {
    struct town *town;
    struct wire_conn *conn;
    uint32_t number;
    uint64_t connection;
    struct buf rank_table; /* of this connection, as it came */
    uint64_t rank_table_number;
    size_t rank_tables, starts; /* on this connection */
};

struct town {
    struct world w;
    struct listener agents[AGENTS_MAX];
    size_t machines, ranks, welcomes, rank_tables, rank_table_bytes, starts;
    bool old_agents;
    bool *seen; /* [ranks]: its start came whole */
};

static void check_start(struct listener *agent, struct task_launch *launch)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = CODEC_ARENA_BYTES};
    struct town *town = agent->town;
    struct buf names BUF_CLEANUP = {0};
    struct gang_rank_table rank_table;
    struct error error;
    assert_int_equal(launch->rank_table_number == 0, town->old_agents);
    if (launch->rank_table_number != 0) {
        assert_true(launch->rank_table_number == agent->rank_table_number);
        assert_int_equal(codec_unpack_rank_table(&arena, buf_str(&agent->rank_table), &rank_table, &error),
                         0);
        rank_table_write_host_names(&names, &rank_table);
        rank_table_put_back(launch, &rank_table, buf_str(&names));
    }
    assert_int_equal(launch->rank_table.count, town->ranks);
    char machine[32], address[64];
    snprintf(machine, sizeof machine, "m-%u", agent->number);
    snprintf(address, sizeof address, "10.0.%u.%u", agent->number / 256, agent->number % 256);
    const struct rank_table_entry *own = &launch->rank_table.entries[launch->rank];
    assert_true(own->rank == launch->rank && own->chips == launch->chips);
    assert_true(str_is(own->machine, machine) && str_is(own->address, address));
    for (size_t i = 0; i < launch->env_count; i++)
        if (str_is(launch->env[i].name, "TPU_WORKER_HOSTNAMES"))
            assert_true(str_starts(launch->env[i].value, STR("g-w-0-0.g,g-w-0-1.g,")));
    town->seen[launch->rank] = true;
}

static void on_message(struct wire_conn *conn, const struct from_controller *message)
{
    struct listener *agent = wire_conn_context(conn);
    struct town *town = agent->town;
    if (message->kind == FROM_CONTROLLER_WELCOME)
        town->welcomes++;
    if (message->kind == FROM_CONTROLLER_RANK_TABLE) {
        agent->rank_table_number = message->rank_table.number;
        buf_clear(&agent->rank_table);
        buf_add_str(&agent->rank_table, message->rank_table.bytes);
        agent->rank_tables++;
        town->rank_tables++;
        town->rank_table_bytes += message->rank_table.bytes.len;
    }
    if (message->kind == FROM_CONTROLLER_START) {
        struct task_launch launch = message->start;
        agent->starts++;
        town->starts++;
        check_start(agent, &launch);
    }
}

static void on_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct listener *agent = wire_conn_context(conn);
    if (agent->conn == conn)
        agent->conn = NULL;
}

static const struct wire_handlers handlers = {.from_controller = on_message, .closed = on_closed};

static void dial(struct listener *agent)
{
    struct world *w = &agent->town->w;
    struct wire_target target = {
        .host = "127.0.0.1", .port = controller_agent_port(w->controller), .timeout_ms = PATIENCE_S * 1000};
    struct error error;
    assert_int_equal(wire_connect(w->wire, &target, &handlers, agent, &agent->conn, &error), 0);
    char name[32];
    snprintf(name, sizeof name, "m-%u", agent->number);
    struct from_agent message = {.kind = FROM_AGENT_HELLO,
                                 .hello = {.version = WIRE_VERSION,
                                           .machine = str_from(name),
                                           .incarnation = 1,
                                           .connection = ++agent->connection,
                                           .chips = 4,
                                           .software = STR("test"),
                                           .rank_tables = !agent->town->old_agents}};
    agent->rank_tables = agent->starts = 0;
    agent->rank_table_number = 0;
    wire_send_agent(agent->conn, &message);
}

static struct town *town_new(size_t machines, size_t ranks, bool old_agents)
{
    struct town *town = mem_alloc(sizeof *town);
    world_prepare(&town->w, PATIENT_LEASE_MS);
    snprintf(town->w.cluster, sizeof town->w.cluster,
             "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},"
             "\"spec\":{\"settings\":{\"lease\":\"%dms\",\"heartbeat\":\"1s\"},\"machineNames\":\"m-{n}\","
             "\"addresses\":\"10.0.0.1\",\"pods\":[{\"racks\":[{\"count\":%zu,\"machines\":50,"
             "\"chips\":4}]}]}}",
             PATIENT_LEASE_MS, machines / 50);
    town->w.options.cluster_json = str_from(town->w.cluster);
    world_start(&town->w);
    town->machines = machines;
    town->ranks = ranks;
    town->old_agents = old_agents;
    town->seen = mem_alloc(ranks * sizeof *town->seen);
    for (size_t i = 0; i < machines; i++) {
        town->agents[i] = (struct listener){.town = town, .number = (uint32_t)i + 1};
        dial(&town->agents[i]);
    }
    RUN_UNTIL(&town->w, town->welcomes == machines);
    return town;
}

static void create_gang(struct town *town)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(
        &text,
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"g\"},"
        "\"spec\":{\"replicatedJobs\":[{\"name\":\"w\",\"replicas\":1,\"template\":{\"spec\":{"
        "\"parallelism\":%zu,\"completions\":%zu,\"completionMode\":\"Indexed\",\"template\":{\"spec\":{"
        "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"true\"],"
        "\"resources\":{\"limits\":{\"google.com/tpu\":%zu}}}]}}}}}]}}",
        town->ranks, town->ranks, 4 * town->machines / town->ranks);
    assert_int_equal(world_http(&town->w, "POST", JOBSETS, text.data), 201);
}

static void check_all_started(struct town *town)
{
    for (size_t i = 0; i < town->ranks; i++)
        assert_true(town->seen[i]);
}

static void town_free(struct town *town)
{
    for (size_t i = 0; i < town->machines; i++)
        buf_done(&town->agents[i].rank_table);
    world_done(&town->w);
    mem_free(town->seen);
    mem_free(town);
}

static void room_for_connections(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * AGENTS_MAX + 64)
        skip();
}

/* A machine each, and some of them lose their connection in the middle: on the new one they get the rank
 * table again before what refers to it. */
static void test_a_thousand_machines(void **state)
{
    room_for_connections();
    struct town *town = town_new(1000, 1000, false);
    create_gang(town);
    RUN_UNTIL(&town->w, town->starts >= 1);
    size_t cut = 0;
    for (size_t i = 0; i < town->machines; i += 10, cut++) {
        if (town->agents[i].conn)
            wire_close(town->agents[i].conn);
        dial(&town->agents[i]);
    }
    RUN_UNTIL(&town->w, town->welcomes == town->machines + cut);
    for (size_t i = 0; i < town->machines; i++) {
        RUN_UNTIL(&town->w, town->agents[i].starts > 0);
        assert_int_equal(town->agents[i].rank_tables, 1);
    }
    check_all_started(town);
    assert_true(town->rank_tables <= town->machines + cut);
    assert_true(town->rank_table_bytes <= town->rank_tables * RANK_TABLE_BYTES_MAX);
    town_free(town);
}

static void test_ranks_share_their_machine_s_rank_table(void **state)
{
    struct town *town = town_new(50, 200, false);
    create_gang(town);
    RUN_UNTIL(&town->w, town->starts == town->ranks);
    check_all_started(town);
    assert_int_equal(town->rank_tables, town->machines);
    town_free(town);
}

/* An older agent, which does not know the message, finds the rank table in each start. */
static void test_older_agents(void **state)
{
    struct town *town = town_new(50, 200, true);
    create_gang(town);
    RUN_UNTIL(&town->w, town->starts == town->ranks);
    check_all_started(town);
    assert_int_equal(town->rank_tables, 0);
    town_free(town);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thousand_machines),
        cmocka_unit_test(test_ranks_share_their_machine_s_rank_table),
        cmocka_unit_test(test_older_agents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
