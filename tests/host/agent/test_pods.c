/* Pods of several containers on a real machine: order, volumes, probes, restarts; and that an agent's death
 * or a passed fence means for each of them what it means for a single task. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/bed.h"
#include "os/folder.h"
#include "os/namespace.h"

/* --- pods ----------------------------------------------------------------------------------------- */

enum { MAX = 4 };

struct pod {
    struct container_launch containers[MAX];
    struct str argv[MAX][3];
    size_t count;
    struct volume_launch volumes[MAX];
    size_t volume_count;
    uint32_t fs_group;
};

static struct container_launch *add(struct pod *pod, const char *name, enum container_role role,
                                    enum container_restart restart, const char *command)
{
    struct str *argv = pod->argv[pod->count];
    struct container_launch *container = &pod->containers[pod->count++];
    argv[0] = STR("/bin/sh");
    argv[1] = STR("-c");
    argv[2] = str_from(command);
    *container = (struct container_launch){.name = str_from(name),
                                           .role = role,
                                           .restart = restart,
                                           .argv = argv,
                                           .argc = 3,
                                           .run_as_user = -1,
                                           .run_as_group = -1};
    return container;
}

static void start(struct bed *bed, struct pod *pod, uint64_t task)
{
    struct task_launch launch = {.task = task,
                                 .jobset = 1,
                                 .name = STR("pod"),
                                 .namespace_ = STR("default"),
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .chips = 1,
                                 .grace_ns = 2 * NS_PER_SECOND,
                                 .world = 1,
                                 .restore_step = -1,
                                 .containers = pod->containers,
                                 .container_count = pod->count,
                                 .volumes = pod->volumes,
                                 .volume_count = pod->volume_count,
                                 .fs_group = pod->fs_group};
    wire_send_controller(bed->fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
}

static const char *read_log(struct bed *bed, uint64_t task, const char *container)
{
    struct log_open open = {.stream = 1, .task = task, .container = str_from(container), .tail_lines = -1};
    buf_clear(&bed->fake.log);
    bed->fake.log_ended = false;
    wire_send_controller(bed->fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_LOG_OPEN, .log_open = open});
    RUN_UNTIL(&bed->fake, bed->fake.log_ended);
    buf_reserve(&bed->fake.log, 1);
    bed->fake.log.data[bed->fake.log.len] = 0;
    return bed->fake.log.data;
}

static bool exists(const struct bed *bed, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", bed->state, name);
    return access(path, F_OK) == 0;
}

static void touch(const struct bed *bed, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", bed->state, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
}

/* --- tests ---------------------------------------------------------------------------------------- */

static void a_pod_outlives_its_agent(void **state)
{
    struct bed bed;
    struct pod pod = {.count = 0};
    char command[256], side_command[256];
    bed_init(&bed);
    snprintf(command, sizeof command, "echo main; until [ -e %s/go ]; do sleep 0.05; done; exit 5",
             bed.state);
    add(&pod, "main", CONTAINER_MAIN, RERUN_NEVER, command);
    add(&pod, "init", CONTAINER_INIT, RERUN_NEVER, "echo init");
    snprintf(side_command, sizeof side_command,
             "trap 'echo stopped; exit 0' TERM; echo side; : >%s/up; while :; do sleep 0.05; done",
             bed.state);
    add(&pod, "side", CONTAINER_SIDECAR, RERUN_ALWAYS, side_command);
    start(&bed, &pod, 21);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 21)->started);
    assert_true(told(&bed.fake, 21)->preparing > 0);
    assert_int_equal(agent_end(bed.agent, SIGKILL), -SIGKILL);
    begin_agent(&bed);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 21)->phases[2] == CONTAINER_RUNNING &&
                             told(&bed.fake, 21)->phases[1] == CONTAINER_TERMINATED);
    RUN_UNTIL(&bed.fake, exists(&bed, "up")); /* from here on it hears a SIGTERM */
    assert_int_equal(told(&bed.fake, 21)->exited, 0);
    touch(&bed, "go");
    RUN_UNTIL(&bed.fake, told(&bed.fake, 21)->exited);
    assert_int_equal(told(&bed.fake, 21)->exit_code, 5);
    assert_string_equal(read_log(&bed, 21, "init"), "init\n"); /* it ran once */
    assert_string_equal(read_log(&bed, 21, "main"), "main\n");
    const char *side = read_log(&bed, 21, "side");
    assert_memory_equal(side, "side\n", 5);
    assert_non_null(strstr(side, "stopped\n"));
    bed_done(&bed);
}

static void the_fence_ends_every_container(void **state)
{
    struct bed bed;
    struct pod pod = {.count = 0};
    bed_prepare(&bed);
    bed.fake.lease_ns = 3 * NS_PER_SECOND;
    begin_agent(&bed);
    add(&pod, "main", CONTAINER_MAIN, RERUN_ALWAYS, "sleep 1000");
    add(&pod, "side", CONTAINER_SIDECAR, RERUN_ALWAYS, "sleep 1000");
    start(&bed, &pod, 22);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 22)->started || told(&bed.fake, 22)->exited);
    bed.fake.silent = true;
    RUN_UNTIL(&bed.fake, told(&bed.fake, 22)->exited);
    assert_true(told(&bed.fake, 22)->fenced);
    assert_int_equal(told(&bed.fake, 22)->restarts, 0); /* whatever its policy */
    bed.fake.silent = false;
    bed_done(&bed);
}

static void a_failing_container_runs_again_and_a_probe_kills(void **state)
{
    struct bed bed;
    struct pod pod = {.count = 0};
    char command[256], check[256];
    struct str argv[] = {STR("/bin/sh"), STR("-c"), {0}};
    bed_init(&bed);
    touch(&bed, "healthy");
    snprintf(command, sizeof command, "echo run; sleep 1000");
    snprintf(check, sizeof check, "test -e %s/healthy", bed.state);
    argv[2] = str_from(check);
    struct container_launch *main_one = add(&pod, "main", CONTAINER_MAIN, RERUN_ALWAYS, command);
    for (int kind = PROBE_READINESS; kind <= PROBE_LIVENESS; kind++)
        main_one->probes[kind] = (struct container_probe){
            {.kind = ACTION_EXEC, .argv = argv, .argc = 3}, 0, 50 * NS_PER_MS, 5 * NS_PER_SECOND, 1, 2, 0};
    start(&bed, &pod, 23);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 23)->started && !told(&bed.fake, 23)->not_ready);
    char path[256];
    snprintf(path, sizeof path, "%s/healthy", bed.state);
    unlink(path);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 23)->restarts >= 1 && told(&bed.fake, 23)->not_ready);
    touch(&bed, "healthy");
    RUN_UNTIL(&bed.fake, !told(&bed.fake, 23)->not_ready);
    assert_true(told(&bed.fake, 23)->notes >= 2); /* Unhealthy, Killing */
    wire_send_controller(bed.fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {23, 0}});
    RUN_UNTIL(&bed.fake, told(&bed.fake, 23)->exited);
    bed_done(&bed);
}

static void volumes_are_seen_by_containers_alone(void **state)
{
    if (geteuid() != 0)
        skip();
    struct bed bed;
    struct pod pod = {.count = 0};
    struct volume_file files[] = {{STR("deep/secret"), STR("hush"), 0400}};
    struct container_mount mounts[] = {{STR("scratch"), STR("/mnt"), STR(""), false},
                                       {STR("keys"), STR("/mnt/keys"), STR(""), false},
                                       {STR("scratch"), STR("/mnt/again"), STR("inner"), true}};
    bed_init(&bed);
    pod.volumes[pod.volume_count++] = (struct volume_launch){.name = STR("scratch"), .kind = VOLUME_EMPTY};
    pod.volumes[pod.volume_count++] =
        (struct volume_launch){.name = STR("keys"), .kind = VOLUME_FILES, .files = files, .file_count = 1};
    struct container_launch *container = add(
        &pod, "main", CONTAINER_MAIN, RERUN_NEVER,
        "cat /mnt/keys/deep/secret; cat /mnt/from-init; touch /mnt/again/x 2>/dev/null || echo ' read-only'");
    container->mounts = mounts;
    container->mount_count = 3;
    container = add(&pod, "init", CONTAINER_INIT, RERUN_NEVER, "echo -n ' handed over' > /mnt/from-init");
    container->mounts = mounts;
    container->mount_count = 1;
    start(&bed, &pod, 24);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 24)->exited);
    assert_string_equal(read_log(&bed, 24, "main"), "hush handed over read-only\n");
    assert_true(access("/mnt/keys", F_OK) < 0 && exists(&bed, "volumes/24"));
    wire_send_controller(bed.fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = 24});
    (void)read_log(&bed, 24, "main"); /* behind FORGET */
    assert_false(exists(&bed, "volumes/24"));
    bed_done(&bed);
}

/* A Secret's file that only its owner may read is the group's too, as on Kubernetes. */
static void files_of_volumes_belong_to_the_fs_group(void **state)
{
    if (geteuid() != 0)
        skip();
    struct bed bed;
    struct pod pod = {.count = 0, .fs_group = 200007};
    struct volume_file files[] = {{STR("deep/secret"), STR("hush"), 0400}, {STR("all"), STR("x"), 0644}};
    struct container_mount mount = {STR("keys"), STR("/mnt"), STR(""), false};
    bed_init(&bed);
    pod.volumes[pod.volume_count++] =
        (struct volume_launch){.name = STR("keys"), .kind = VOLUME_FILES, .files = files, .file_count = 2};
    struct container_launch *container =
        add(&pod, "main", CONTAINER_MAIN, RERUN_NEVER, "stat -c '%a %g' /mnt/deep/secret /mnt/all");
    container->mounts = &mount;
    container->mount_count = 1;
    start(&bed, &pod, 29);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 29)->exited);
    assert_string_equal(read_log(&bed, 29, "main"), "440 200007\n644 200007\n");
    bed_done(&bed);
}

static void a_volume_that_is_not_there_is_named(void **state)
{
    struct bed bed;
    struct pod pod = {.count = 0};
    struct container_mount mount = {STR("data"), STR("/mnt"), STR(""), false};
    bed_init(&bed);
    pod.volumes[pod.volume_count++] = (struct volume_launch){
        .name = STR("data"), .kind = VOLUME_HOST, .source = STR("/no/such/place"), .type = STR("Directory")};
    struct container_launch *container = add(&pod, "main", CONTAINER_MAIN, RERUN_NEVER, "true");
    container->mounts = &mount;
    container->mount_count = 1;
    start(&bed, &pod, 25);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 25)->start_failed);
    assert_non_null(strstr(told(&bed.fake, 25)->message, "volume data: hostPath.path /no/such/place"));
    pod.volumes[0] = (struct volume_launch){
        .name = STR("data"), .kind = VOLUME_CLAIM, .source = STR("claim")}; /* no --volumes-dir */
    start(&bed, &pod, 26);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 26)->start_failed);
    assert_non_null(strstr(told(&bed.fake, 26)->message, "--volumes-dir"));
    bed_done(&bed);
}

/* The machine's /tmp stays as it was, but for the folder that the command names: the bed's own. */
static void each_run_of_a_container_has_its_own_tmp(void **state)
{
    if (geteuid() != 0)
        skip();
    struct bed bed;
    struct pod pod = {.count = 0};
    char command[1024];
    const char *uses = "for d in /tmp /var/tmp; do ls $d/phalanx-tmp-test 2>/dev/null; "
                       "touch $d/phalanx-tmp-test || echo fails; done; stat -c %a /tmp; pwd; ";
    bed_init(&bed);
    snprintf(command, sizeof command, "%s[ -e %s/second ] && exit 0; touch %s/second; exit 1", uses,
             bed.state, bed.state);
    add(&pod, "main", CONTAINER_MAIN, RERUN_ON_FAILURE, command);
    add(&pod, "init", CONTAINER_INIT, RERUN_NEVER, uses);
    start(&bed, &pod, 27);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 27)->exited);
    assert_int_equal(told(&bed.fake, 27)->exit_code, 0);
    assert_int_equal(told(&bed.fake, 27)->restarts, 1);
    char init_log[256], main_log[256];
    snprintf(init_log, sizeof init_log, "%s", read_log(&bed, 27, "init"));
    snprintf(main_log, sizeof main_log, "%s", read_log(&bed, 27, "main"));
    assert_memory_equal(init_log, "1777\n/", 6);
    assert_memory_equal(main_log, "1777\n/", 6);
    assert_string_not_equal(init_log, main_log); /* their working directories */
    assert_true(access("/tmp/phalanx-tmp-test", F_OK) < 0 && access("/var/tmp/phalanx-tmp-test", F_OK) < 0);
    assert_true(exists(&bed, "volumes/27/.tmp-0-1/tmp/phalanx-tmp-test"));
    assert_false(exists(&bed, "volumes/27/.tmp-0-0"));
    wire_send_controller(bed.fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = 27});
    (void)read_log(&bed, 27, "main"); /* behind FORGET */
    assert_false(exists(&bed, "volumes/27"));
    bed_done(&bed);
}

/* Each run of a container finds the system's files as they are, and changes them for itself. A folder that
 * its command names is the machine's. */
static void each_run_of_a_container_has_its_own_root(void **state)
{
    struct bed bed;
    struct pod pod = {.count = 0};
    char command[1024], named[] = "/var/lib/phx-root-XXXXXX", old[64], second[64];
    setenv(AGENT_ISOLATES, "1", 1);
    bed_init(&bed);
    unsetenv(AGENT_ISOLATES);
    if (geteuid() != 0 || os_root_refused(bed.state)) {
        bed_done(&bed);
        skip();
    }
    assert_non_null(mkdtemp(named));
    snprintf(second, sizeof second, "%s/second", named);
    snprintf(old, sizeof old, "/etc/%s", strrchr(named, '/') + 1);
    close(open(old, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    snprintf(command, sizeof command,
             "for f in /phx-root-test /etc/phx-root-test; do [ ! -e $f ] && touch $f || echo seen $f; done; "
             "echo changed >> %s; cat %s; mkdir /var/lib/phx-root-test; ls -d /.phalanx-machine 2>/dev/null; "
             "cd %s; [ -e second ] && exit 0; touch second; exit 1",
             old, old, named);
    add(&pod, "main", CONTAINER_MAIN, RERUN_ON_FAILURE, command);
    start(&bed, &pod, 31);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 31)->exited);
    assert_string_equal(read_log(&bed, 31, "main"), "changed\n");
    assert_int_equal(told(&bed.fake, 31)->exit_code, 0);
    assert_int_equal(told(&bed.fake, 31)->restarts, 1);
    assert_true(access("/phx-root-test", F_OK) < 0 && access("/etc/phx-root-test", F_OK) < 0 &&
                access("/var/lib/phx-root-test", F_OK) < 0);
    struct stat info;
    assert_int_equal(stat(old, &info), 0);
    assert_int_equal(info.st_size, 0);
    assert_int_equal(unlink(old), 0);
    assert_int_equal(access(second, F_OK), 0);
    wire_send_controller(bed.fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = 31});
    (void)read_log(&bed, 31, "main"); /* behind FORGET */
    assert_false(exists(&bed, "volumes/31"));
    os_folder_remove(AT_FDCWD, named);
    bed_done(&bed);
}

/* A volume at /tmp takes its place; hostPath /tmp is the machine's own. */
static void a_volume_at_tmp_takes_its_place(void **state)
{
    if (geteuid() != 0)
        skip();
    struct bed bed;
    struct pod pod = {.count = 0};
    struct container_mount mounts[] = {{STR("scratch"), STR("/tmp/"), STR(""), false},
                                       {STR("machine"), STR("/mnt/tmp"), STR(""), false}};
    bed_init(&bed);
    pod.volumes[pod.volume_count++] = (struct volume_launch){.name = STR("scratch"), .kind = VOLUME_EMPTY};
    pod.volumes[pod.volume_count++] = (struct volume_launch){
        .name = STR("machine"), .kind = VOLUME_HOST, .source = STR("/tmp"), .type = STR("Directory")};
    char command[256];
    snprintf(command, sizeof command, "touch /tmp/mine; [ -e /mnt%s/up ] || echo hidden; touch /mnt%s/up",
             bed.state, bed.state);
    struct container_launch *container = add(&pod, "main", CONTAINER_MAIN, RERUN_NEVER, command);
    container->mounts = mounts;
    container->mount_count = 2;
    start(&bed, &pod, 28);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 28)->exited);
    assert_int_equal(told(&bed.fake, 28)->exit_code, 0);
    assert_true(exists(&bed, "volumes/28/scratch/mine") && exists(&bed, "up"));
    bed_done(&bed);
}

int main(int argc, char **argv)
{
    agent_process_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_outlives_its_agent),
        cmocka_unit_test(the_fence_ends_every_container),
        cmocka_unit_test(a_failing_container_runs_again_and_a_probe_kills),
        cmocka_unit_test(volumes_are_seen_by_containers_alone),
        cmocka_unit_test(files_of_volumes_belong_to_the_fs_group),
        cmocka_unit_test(a_volume_that_is_not_there_is_named),
        cmocka_unit_test(each_run_of_a_container_has_its_own_tmp),
        cmocka_unit_test(each_run_of_a_container_has_its_own_root),
        cmocka_unit_test(a_volume_at_tmp_takes_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
