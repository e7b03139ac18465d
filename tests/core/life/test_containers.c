/* Pods of several containers, as the controller sees them: what their agent is told, ConfigMaps and Secrets
 * they wait for, readiness, restarts that count. Each story is replayed and restored from a snapshot. */
#include "core/job/story.h"
#include "core/launch/launch.h"

static int write_kind(struct harness *h, enum object_kind kind, const char *yaml)
{
    struct arena arena = {0};
    struct buf json = {0};
    struct doc_list docs = {0};
    struct error error = {0};
    if (yaml_parse_all(&arena, str_from(yaml), &docs, &error) < 0)
        fail_msg("%s", error.text);
    json_write(&json, docs.items[0]);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_CREATE,
                                       .object = kind,
                                       .namespace_ = STR("default"),
                                       .name = STR(""),
                                       .body = buf_str(&json),
                                       .grace_s = -1};
    harness_step(h, &event);
    buf_done(&json);
    arena_done(&arena);
    core_check_invariants(h->core);
    return h->last_code;
}

static struct task *only_task(struct harness *h, const char *job)
{
    struct job *found = jobs_find_job(core_jobs(h->core), STR("default"), str_from(job));
    assert_non_null(found);
    assert_true(found->tasks.len > 0);
    return found->tasks.items[0];
}

static void build(struct harness *h, const struct task *task, struct arena *arena, struct task_launch *launch)
{
    struct launch_common common = {.arena = arena, .objects = core_objects(h->core)};
    task_launch_build_next(&common, task, core_cluster(h->core), arena, launch);
}

static struct str env_of(const struct container_launch *container, const char *name)
{
    for (size_t i = 0; i < container->env_count; i++)
        if (str_is(container->env[i].name, name))
            return container->env[i].value;
    return STR("(none)");
}

#define WORK                                                                                                 \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: work}\nspec: {backoffLimit: 3, template: {spec: {"    \
    "restartPolicy: OnFailure, volumes: [{name: conf, configMap: {name: conf, defaultMode: 256}}], "         \
    "initContainers: [{name: first, image: x, command: [init]}, "                                            \
    "{name: side, image: x, command: [side], restartPolicy: Always}], "                                      \
    "containers: [{name: main, image: x, command: [run, $(WHO)], "                                           \
    "volumeMounts: [{name: conf, mountPath: /etc/conf}], "                                                   \
    "resources: {limits: {cpu: 1500m}}, envFrom: [{prefix: C_, configMapRef: {name: conf}}], "               \
    "env: [{name: WHO, valueFrom: {secretKeyRef: {name: keys, key: user}}}, "                                \
    "{name: NOT, valueFrom: {secretKeyRef: {name: keys, key: none, optional: true}}}, "                      \
    "{name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}], "                                  \
    "readinessProbe: {httpGet: {port: web, path: /r}, periodSeconds: 2}, "                                   \
    "ports: [{name: web, containerPort: 8080}]}]}}}\n"
#define CONF "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: alpha, b: beta}\n"
#define KEYS "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\ndata: {user: cm9vdA==}\n"

static void a_pod_waits_for_its_configuration(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(write_kind(&h, OBJECT_JOB, WORK), 201);
    struct task *task = only_task(&h, "work");
    assert_int_equal(task->state, TASK_PLACED);
    assert_int_equal(task->container_count, 3);
    assert_true(str_is(task->containers[0].reason, "CreateContainerConfigError"));
    assert_true(str_is(task->containers[0].message, "configmap \"conf\" not found"));
    assert_int_equal(write_kind(&h, OBJECT_CONFIG_MAP, CONF), 201);
    assert_int_equal(task->state, TASK_PLACED);
    assert_true(str_is(task->containers[0].message, "secret \"keys\" not found"));
    harness_check_replay(&h);
    assert_int_equal(write_kind(&h, OBJECT_SECRET, KEYS), 201);
    assert_int_equal(task->state, TASK_STARTING);
    harness_done(&h);
}

static void its_agent_is_told_everything(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    write_kind(&h, OBJECT_CONFIG_MAP, CONF);
    write_kind(&h, OBJECT_SECRET, KEYS);
    assert_int_equal(write_kind(&h, OBJECT_JOB, WORK), 201);
    struct arena arena = {0};
    struct task_launch launch;
    build(&h, only_task(&h, "work"), &arena, &launch);
    assert_int_equal(launch.container_count, 3);
    const struct container_launch *container = &launch.containers[0];
    assert_true(str_is(container->name, "main") && container->role == CONTAINER_MAIN);
    assert_int_equal(container->restart, RERUN_ON_FAILURE);
    assert_true(str_is(container->argv[1], "root")); /* $(WHO), from the Secret */
    assert_true(str_is(env_of(container, "C_a"), "alpha") && str_is(env_of(container, "CPU"), "2"));
    assert_true(str_is(env_of(container, "NOT"), "(none)"));
    assert_int_equal(container->probes[PROBE_READINESS].action.port, 8080);
    assert_int_equal(container->probes[PROBE_READINESS].period_ns, 2 * NS_PER_SECOND);
    assert_int_equal(launch.containers[1].role, CONTAINER_INIT);
    assert_int_equal(launch.containers[2].role, CONTAINER_SIDECAR);
    assert_int_equal(launch.volume_count, 1);
    assert_int_equal(launch.volumes[0].file_count, 2);
    assert_true(str_is(launch.volumes[0].files[1].data, "beta"));
    assert_int_equal(launch.volumes[0].files[1].mode, 0400);
    arena_done(&arena);
    harness_done(&h);
}

static void report_main(struct harness *h, struct task *task, enum report_kind kind, bool ready,
                        uint32_t restarts)
{
    struct container_status statuses[] = {
        {.name = STR("main"), .phase = CONTAINER_RUNNING, .ready = ready, .restarts = restarts},
        {.name = STR("first"), .role = CONTAINER_INIT, .phase = CONTAINER_TERMINATED},
        {.name = STR("side"), .role = CONTAINER_SIDECAR, .phase = CONTAINER_RUNNING, .restarts = 99}};
    struct task_report report = {
        .kind = kind, .task = task->uid, .not_ready = !ready, .containers = statuses, .container_count = 3};
    harness_report(h, &report, task->machine);
    core_check_invariants(h->core);
}

static void readiness_comes_and_goes(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    write_kind(&h, OBJECT_CONFIG_MAP, CONF);
    write_kind(&h, OBJECT_SECRET, KEYS);
    write_kind(&h, OBJECT_JOB, WORK);
    struct task *task = only_task(&h, "work");
    report_main(&h, task, REPORT_PREPARING, false, 0);
    assert_int_equal(task->state, TASK_STARTING);
    report_main(&h, task, REPORT_STARTED, false, 0);
    assert_true(task->state == TASK_RUNNING && !task->ready && task->job->ready == 0);
    report_main(&h, task, REPORT_STARTED, true, 0);
    assert_true(task->ready && task->job->ready == 1);
    harness_check_replay(&h);
    report_main(&h, task, REPORT_STARTED, false, 0);
    assert_true(!task->ready && task->job->ready == 0);
    harness_exit(&h, task, 0);
    assert_int_equal(task->state, TASK_SUCCEEDED);
    harness_done(&h);
}

static void restarts_reach_the_backoff_limit(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    write_kind(&h, OBJECT_CONFIG_MAP, CONF);
    write_kind(&h, OBJECT_SECRET, KEYS);
    write_kind(&h, OBJECT_JOB, WORK);
    struct task *task = only_task(&h, "work");
    struct job *job = task->job;
    report_main(&h, task, REPORT_STARTED, true, 2); /* a sidecar's do not count */
    assert_int_equal(job->state, JOB_ACTIVE);
    report_main(&h, task, REPORT_STARTED, true, 3);
    assert_int_equal(job->state, JOB_FAILING);
    assert_string_equal(job->reason, "BackoffLimitExceeded");
    assert_int_equal(task->state, TASK_STOPPING);
    harness_done(&h);
}

static void a_plain_rank_stays_plain(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "", RJOB("w", 1, "", 2, "")));
    struct arena arena = {0};
    struct task_launch launch;
    build(&h, harness_task(&h, "a-w-0-1"), &arena, &launch);
    assert_int_equal(launch.container_count, 0);
    assert_true(launch.argc > 0 && launch.env_count > 0);
    arena_done(&arena);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_waits_for_its_configuration),
        cmocka_unit_test(its_agent_is_told_everything),
        cmocka_unit_test(readiness_comes_and_goes),
        cmocka_unit_test(restarts_reach_the_backoff_limit),
        cmocka_unit_test(a_plain_rank_stays_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
