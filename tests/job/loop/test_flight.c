/* Flight records of a gang in which one rank does not come to a barrier. */
#include "job/gang.h"

#define WORLD  4
#define ABSENT 2

/* One barrier together; then one rank stays away until the agent gives notice. */
static int come_or_not(void *unused)
{
    struct phx_error error = {0};
    struct phx_options options = {.size = sizeof options, .join_timeout_ms = GANG_PATIENCE_MS};
    phx_context *ctx = NULL;
    if (phx_join(&options, &ctx, &error) != 0 || phx_barrier(ctx, -1, &error) != 0)
        return 1;
    if (phx_step(ctx, 7, NULL, 0, &error) != 0)
        return 2;
    if (phx_rank(ctx) == ABSENT) {
        while (phx_notice(ctx, NULL) == 0)
            poll(NULL, 0, 1);
        while (access(getenv("PHX_TEST_FILE"), R_OK) != 0) /* the library's thread writes it */
            poll(NULL, 0, 1);
        for (int i = 0; i < 2; i++)
            if (phx_barrier(ctx, -1, &error) != 0)
                return 3;
    } else {
        if (phx_barrier(ctx, 50, &error) != PHX_ERROR_TIMEOUT) /* writes it */
            return 4;
        if (phx_barrier(ctx, -1, &error) != 0 || phx_barrier(ctx, -1, &error) != 0)
            return 5;
    }
    return phx_leave(ctx, &error) == 0 ? 0 : 6;
}

static char *record_of(const struct gang *gang, uint32_t rank, char *path, size_t size)
{
    snprintf(path, size, "%s/record-%u", gang->dir, rank);
    return path;
}

static bool exists(const struct gang *gang, uint32_t rank)
{
    char path[128];
    return access(record_of(gang, rank, path, sizeof path), R_OK) == 0;
}

static void read_record(const struct gang *gang, uint32_t rank, char *text, size_t size)
{
    char path[128];
    FILE *file = fopen(record_of(gang, rank, path, sizeof path), "re");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

static void test_records(void **unused)
{
    struct gang gang;
    char text[4096], path[128];
    gang_init(&gang, WORLD);
    gang_setenv("PHX_FLIGHT_PREFIX", "%s/record-", gang.dir);
    gang_setenv("PHX_TEST_FILE", "%s", record_of(&gang, ABSENT, path, sizeof path));
    gang_fork_all(&gang, come_or_not, NULL);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        if (rank != ABSENT)
            gang_until(&gang, exists(&gang, rank));
    assert_false(exists(&gang, ABSENT));
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        if (rank == ABSENT)
            continue;
        read_record(&gang, rank, text, sizeof text);
        assert_non_null(strstr(text, "\"ranks\":\"[0-3]\""));
        assert_non_null(strstr(text, "\"last_enqueued_collective\":2,\"last_started_collective\":2,"
                                     "\"last_completed_collective\":1"));
        assert_non_null(strstr(text, "\"collective_seq_id\":1,"));
        assert_non_null(strstr(text, "\"state\":\"completed\""));
        assert_non_null(strstr(text, "\"collective_seq_id\":2,"));
        assert_non_null(strstr(text, "\"state\":\"started\""));
        assert_non_null(strstr(text, "\"step\":7,"));
    }
    struct jobwire_message notice = {.type = JOBWIRE_DRAIN};
    notice.drain.deadline_ms = GANG_PATIENCE_MS;
    notice.drain.reason = PHX_DRAIN_FAULT;
    gang_send_all(&gang, &notice);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < WORLD; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    read_record(&gang, ABSENT, text, sizeof text);
    assert_non_null(strstr(text, "\"last_enqueued_collective\":1,"));
    assert_null(strstr(text, "\"state\":\"started\""));
    gang_done(&gang);
    unsetenv("PHX_FLIGHT_PREFIX");
}

/* Rank 0 gives a barrier up for a moment, in which the other rank completes it. */
static int late_to_a_barrier(void *unused)
{
    struct phx_error error = {0};
    struct phx_options options = {.size = sizeof options, .join_timeout_ms = GANG_PATIENCE_MS};
    phx_context *ctx = NULL;
    char value[8];
    size_t len;
    if (phx_join(&options, &ctx, &error) != 0)
        return 1;
    bool first = phx_rank(ctx) == 0;
    if (first && phx_barrier(ctx, 10, &error) != PHX_ERROR_TIMEOUT)
        return 2;
    if (first && phx_kv_put(ctx, "tried", "1", 1, &error) != 0)
        return 3;
    if (phx_kv_get(ctx, first ? "passed" : "tried", value, sizeof value, &len, GANG_PATIENCE_MS, &error) != 0)
        return 4;
    if (phx_barrier(ctx, first ? 0 : GANG_PATIENCE_MS, &error) !=
        0) /* complete by now: rank 0 need not wait */
        return 5;
    if (!first && phx_kv_put(ctx, "passed", "1", 1, &error) != 0)
        return 6;
    for (int i = 0; i < 3; i++)
        if (phx_barrier(ctx, GANG_PATIENCE_MS, &error) != 0)
            return 7 + i;
    return phx_leave(ctx, &error) == 0 ? 0 : 10;
}

static void test_late_barrier(void **unused)
{
    struct gang gang;
    gang_init(&gang, 2);
    gang_fork_all(&gang, late_to_a_barrier, NULL);
    gang_until(&gang, gang_ended(&gang));
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(gang_exit(&gang, rank), 0);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records), cmocka_unit_test(test_late_barrier)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
