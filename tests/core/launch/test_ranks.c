/* Variables that a task finds in its environment: ranks, worlds, addresses, its own fields, and the user's
 * word over ours. */
#include "core/job/story.h"
#include "core/launch/launch.h"

#define TASKS(parallel, chips, container)                                                                    \
    "{name: w, replicas: 2, template: {metadata: {labels: {team: blue}, annotations: {note: 'a b'}}, "       \
    "spec: {parallelism: " parallel ", completions: " parallel ", backoffLimit: 0, template: {metadata: "    \
    "{labels: {color: red}, annotations: {hint: up}}, spec: {restartPolicy: Never, containers: [{name: "     \
    "main, "                                                                                                 \
    "image: none, " container ", resources: {limits: {google.com/tpu: " chips "}}}]}}}}}"

struct launched {
    struct arena arena;
    struct task_launch launch;
};

static struct launched launch(struct harness *h, const char *hostname)
{
    struct launched launched = {0};
    struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    task_launch_build(task, core_cluster(h->core), &launched.arena, &launched.launch);
    return launched;
}

static void assert_env(const struct launched *launched, const char *name, const char *value)
{
    int found = 0;
    for (size_t i = 0; i < launched->launch.env_count; i++) {
        const struct env_var *var = &launched->launch.env[i];
        if (!str_is(var->name, name))
            continue;
        found++;
        if (!str_is(var->value, value))
            fail_msg("%s is \"" STR_FORMAT "\", not \"%s\"", name, STR_ARG(var->value), value);
    }
    if (found != !!value)
        fail_msg("%s is there %d times", name, found);
}

static void ranks_follow_the_spec(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0); /* two tasks of two chips a machine */
    harness_create(&h, JOBSET("a", "", TASKS("2", "2", "command: [run]")));
    const char *const hosts[] = {"a-w-0-0", "a-w-0-1", "a-w-1-0", "a-w-1-1"};
    for (int rank = 0; rank < 4; rank++) {
        struct launched l = launch(&h, hosts[rank]);
        char number[2] = {(char)('0' + rank), 0}, local[2] = {(char)('0' + rank % 2), 0},
             node[2] = {(char)('0' + rank / 2), 0};
        char port[8], jax[64], rendezvous[64], rack[64];
        const struct cluster *cluster = core_cluster(h.core);
        const char *master = harness_task(&h, "a-w-0-0")->machine == 0 ? "127.0.1.1" : "127.0.1.2";
        uint16_t base = harness_task(&h, hosts[rank])->port;
        snprintf(port, sizeof(port), "%u", base);
        snprintf(rack, sizeof(rack), STR_FORMAT "/" STR_FORMAT, STR_ARG(cluster->pods[0].name),
                 STR_ARG(cluster->blocks[0].name));
        snprintf(jax, sizeof(jax), "%s:%u", master, base);
        snprintf(rendezvous, sizeof(rendezvous), "%s:%u", master, base + 1u);
        assert_env(&l, "RANK", number);
        assert_env(&l, "WORLD_SIZE", "4");
        assert_env(&l, "LOCAL_RANK", local);
        assert_env(&l, "LOCAL_WORLD_SIZE", "2");
        assert_env(&l, "NODE_RANK", node);
        assert_env(&l, "NNODES", "2");
        assert_env(&l, "JOB_COMPLETION_INDEX", local);
        assert_env(&l, "MASTER_ADDR", master);
        assert_env(&l, "MASTER_PORT", port);
        assert_env(&l, "JAX_PROCESS_ID", number);
        assert_env(&l, "JAX_NUM_PROCESSES", "4");
        assert_env(&l, "JAX_COORDINATOR_ADDRESS", jax);
        assert_env(&l, "TPU_WORKER_ID", number);
        assert_env(&l, "TPU_WORKER_HOSTNAMES", "a-w-0-0.a,a-w-0-1.a,a-w-1-0.a,a-w-1-1.a");
        assert_env(&l, "PHX_RENDEZVOUS", rendezvous);
        assert_env(&l, "PHX_ATTEMPT", "0");
        assert_env(&l, "TORCHELASTIC_RESTART_COUNT", "0");
        assert_env(&l, "PHX_RACK", rack);
        assert_env(&l, "PHX_CHIPS", rank % 2 ? "2,3" : "0,1");
        assert_env(&l, "TPU_VISIBLE_CHIPS", rank % 2 ? "2,3" : "0,1");
        assert_env(&l, "PHX_RESTORE_STEP", NULL);
        assert_int_equal((int)l.launch.rank_table.count, 4);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal((int)l.launch.rank_table.entries[i].rank, (int)i);
            assert_true(str_is(l.launch.rank_table.entries[i].hostname, hosts[i]));
        }
        assert_true(str_is(l.launch.rank_table.subdomain, "a"));
        assert_true(l.launch.chips == harness_task(&h, hosts[rank])->chips);
        arena_done(&l.arena);
    }
    harness_done(&h);
}

/* The number of committed checkpoints to keep is an annotation, which the library is told. */
static void kept_checkpoints(void **state)
{
#define KEEPING(keep)                                                                                        \
    JOBSET("a, annotations: {phalanx.dev/checkpoint-keep: \"" keep "\"}", "",                                \
           TASKS("1", "1", "command: [run]"))
    struct harness h;
    harness_init(&h, 2, 4, 0);
    static const char *const wrong[] = {KEEPING("last=0"), KEEPING("last=65"), KEEPING("3"),
                                        KEEPING(""),       KEEPING("last=1,"), KEEPING("last=1,last=2"),
                                        KEEPING("every=x")};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(harness_write(&h, WRITE_CREATE, "", wrong[i]), 422);
        assert_non_null(strstr(h.last_message, "metadata.annotations[phalanx.dev/checkpoint-keep]"));
    }
    harness_create(&h, KEEPING("last=3,every=1000"));
    struct launched l = launch(&h, "a-w-0-0");
    assert_env(&l, "PHX_CHECKPOINT_KEEP", "last=3,every=1000");
    arena_done(&l.arena);
    harness_done(&h);
#undef KEEPING
}

/* Each group is a world of its own, on its own ports. */
static void groups_are_worlds(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "",
                              RJOB("x", 1, "groupName: left, ", 2, "") "," RJOB("z", 1, "", 1, "") "," RJOB(
                                  "w", 1, "groupName: left, ", 1, "")));
    struct launched l = launch(&h, "a-w-0-0"), z = launch(&h, "a-z-0-0");
    assert_env(&l, "RANK", "2");
    assert_env(&l, "WORLD_SIZE", "3");
    assert_env(&l, "TPU_WORKER_HOSTNAMES", "a-x-0-0.a,a-x-0-1.a,a-w-0-0.a");
    assert_env(&z, "RANK", "0");
    assert_env(&z, "WORLD_SIZE", "1");
    assert_true(harness_task(&h, "a-w-0-0")->port == harness_task(&h, "a-x-0-1")->port);
    assert_true(harness_task(&h, "a-w-0-0")->port != harness_task(&h, "a-z-0-0")->port);
    arena_done(&l.arena);
    arena_done(&z.arena);
    harness_done(&h);
}

static void users_words(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(
        &h,
        JOBSET("a", "network: {subdomain: net}, ",
               TASKS("1", "1",
                     "command: [sh, '$(GREETING)', '$$(GREETING)', '$(NOBODY)', '$', 'x$(RANK'], args: "
                     "['--rank=$(RANK)'], "
                     "workingDir: /srv, env: ["
                     "{name: WHO, value: 'rank $(RANK)'},"
                     "{name: GREETING, value: 'hello $(WHO), $(LATER)'},"
                     "{name: LATER, value: l},"
                     "{name: MASTER_PORT, value: '29500'},"
                     "{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}},"
                     "{name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}},"
                     "{name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}},"
                     "{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}},"
                     "{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}},"
                     "{name: INDEX, valueFrom: {fieldRef: {fieldPath: "
                     "\"metadata.labels['jobset.sigs.k8s.io/job-index']\"}}},"
                     "{name: GLOBAL, valueFrom: {fieldRef: {fieldPath: "
                     "\"metadata.annotations['jobset.sigs.k8s.io/job-global-index']\"}}},"
                     "{name: COLOR, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['color']\"}}},"
                     "{name: HINT, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['hint']\"}}}]")));
    struct task *task = harness_task(&h, "a-w-1-0");
    struct launched l = launch(&h, "a-w-1-0");
    char name[64], uid[UID_TEXT_MAX];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(task->name));
    uid_text(task->uid, uid);
    assert_env(&l, "WHO", "rank 1");
    assert_env(&l, "GREETING", "hello rank 1, $(LATER)"); /* only what stands before it */
    assert_env(&l, "MASTER_PORT", "29500");
    assert_env(&l, "NAME", name);
    assert_env(&l, "NS", "default");
    assert_env(&l, "UID", uid);
    assert_env(&l, "NODE", core_cluster(h.core)->machines[task->machine].name.data);
    assert_env(&l, "IP", core_cluster(h.core)->machines[task->machine].address.data);
    assert_env(&l, "INDEX", "1");
    assert_env(&l, "GLOBAL", "1");
    assert_env(&l, "COLOR", "red");
    assert_env(&l, "HINT", "up");
    assert_env(&l, "TPU_WORKER_HOSTNAMES", "a-w-0-0.net,a-w-1-0.net");
    const char *const argv[] = {
        "sh", "hello rank 1, $(LATER)", "$(GREETING)", "$(NOBODY)", "$", "x$(RANK", "--rank=1"};
    assert_int_equal((int)l.launch.argc, 7);
    for (size_t i = 0; i < 7; i++)
        assert_true(str_is(l.launch.argv[i], argv[i]));
    assert_true(str_is(l.launch.working_dir, "/srv"));
    arena_done(&l.arena);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_follow_the_spec),
        cmocka_unit_test(kept_checkpoints),
        cmocka_unit_test(groups_are_worlds),
        cmocka_unit_test(users_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
