/* Folders for checkpoints in memory: told to tasks, kept while their JobSet is here, removed when it has
 * long been gone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/agent/bed.h"

enum { PATH_BYTES = 384 }; /* of a folder below the bed, with the longest name that an entry can have */

/* The agent's folder below its --memory-dir, "": none. */
static void upper_folder(const struct bed *bed, char *path, size_t size)
{
    char memory[96];
    path[0] = 0;
    snprintf(memory, sizeof memory, "%s/memory", bed->state);
    DIR *directory = opendir(memory);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            snprintf(path, size, "%s/%s", memory, entry->d_name);
    if (directory)
        closedir(directory);
}

static void start(struct bed *bed, uint64_t task, uint64_t jobset, const char *command)
{
    struct str argv[] = {STR("/bin/sh"), STR("-c"), str_from(command)};
    struct task_launch launch = {.task = task,
                                 .jobset = jobset,
                                 .name = STR("pod"),
                                 .namespace_ = STR("default"),
                                 .argv = argv,
                                 .argc = 3,
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .world = 1,
                                 .restore_step = -1};
    wire_send_controller(bed->fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
}

/* Makes the files of libphalanx, also in a folder of the agent; `old`: the JobSet was seen here last a day
 * ago. */
static void make_held(const char *upper, const char *jobset, bool old)
{
    char path[512];
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    snprintf(path, sizeof path, "%s/%s", upper, jobset);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/%s/rank-0.0", upper, jobset);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    if (old)
        times[0].tv_sec = times[1].tv_sec = time(NULL) - 86400, times[0].tv_nsec = times[1].tv_nsec = 0;
    snprintf(path, sizeof path, "%s/%s", upper, jobset);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_there(const char *upper, const char *jobset)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", upper, jobset);
    return access(path, F_OK) == 0;
}

static void tasks_are_told_their_folder(void **state)
{
    struct bed bed;
    char upper[PATH_BYTES], command[2 * PATH_BYTES + 160];
    bed_init(&bed);
    upper_folder(&bed, upper, sizeof upper);
    assert_true(upper[0]);
    snprintf(command, sizeof command,
             "test \"$PHX_MEMORY_DIR\" = '%s/77' && touch \"$PHX_MEMORY_DIR/x\" && "
             "test $(stat -c %%a \"$PHX_MEMORY_DIR\") = 700 && test $(stat -c %%a '%s') = 711",
             upper, upper);
    start(&bed, 21, 77, command);
    RUN_UNTIL(&bed.fake, told(&bed.fake, 21)->exited);
    assert_int_equal(told(&bed.fake, 21)->exit_code, 0);
    bed_done(&bed);
}

static void what_nobody_wants_is_removed(void **state)
{
    struct bed bed;
    char upper[PATH_BYTES];
    bed_init(&bed);
    upper_folder(&bed, upper, sizeof upper);
    start(&bed, 21, 5, "sleep 1000");
    RUN_UNTIL(&bed.fake, told(&bed.fake, 21)->started);
    make_held(upper, "5", true);  /* its task runs */
    make_held(upper, "6", true);  /* long gone */
    make_held(upper, "7", false); /* gone a moment ago: it may come back */
    make_held(upper, "no-number", true);
    assert_int_equal(agent_end(bed.agent, SIGKILL), -SIGKILL);
    begin_agent(&bed);
    RUN_UNTIL(&bed.fake, !is_there(upper, "6"));
    assert_true(is_there(upper, "5") && is_there(upper, "7") && is_there(upper, "no-number"));
    bed_done(&bed);
}

/* Nothing is left of an agent whose tasks held nothing. */
static void an_empty_folder_goes_with_the_agent(void **state)
{
    struct bed bed;
    char upper[PATH_BYTES];
    bed_init(&bed);
    assert_int_equal(agent_end(bed.agent, SIGTERM), 0);
    upper_folder(&bed, upper, sizeof upper);
    assert_string_equal(upper, "");
    bed_clear(&bed);
}

int main(int argc, char **argv)
{
    agent_process_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_told_their_folder),
        cmocka_unit_test(what_nobody_wants_is_removed),
        cmocka_unit_test(an_empty_folder_goes_with_the_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
