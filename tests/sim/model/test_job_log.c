/* Logs of jobs and checks as CSV: what is read, and what is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/model/job_log.h"

#define HEAD "job,machines,start,end,state\n"

static void a_log_is_read(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct job_log log;
    struct error error = {0};
    const char *jobs = "note,state,\"job\",end,start,machines\r\n"
                       "\n"
                       "x,FAILED,\"a \"\"1\"\", b\",200.5,100,17\r\n"
                       ",NODE_FAIL,n,2026-03-01T00:00:10Z,2026-03-01T00:00:00Z,4\n"
                       ",CANCELLED by 0,n,300,250,4";
    assert_int_equal(job_log_read_jobs(&arena, str_from(jobs), &log, &error), 0);
    assert_int_equal(log.job_count, 3);
    assert_true(str_is(log.names[0], "a \"1\", b"));
    assert_int_equal(log.jobs[0].machines, 17);
    assert_int_equal(log.jobs[0].end, RATE_END_FAILED);
    assert_true(log.jobs[0].start_s == 100 && log.jobs[0].end_s == 200.5);
    assert_int_equal(log.jobs[1].end, RATE_END_NODE_FAIL);
    assert_true(log.jobs[1].end_s - log.jobs[1].start_s == 10);
    assert_int_equal(log.jobs[2].end, RATE_END_OTHER);
}

/* Slurm keeps the id of a job that is queued again: a check belongs to the life that ended nearest to it. */
static void a_check_belongs_to_the_nearest_life(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct job_log log;
    struct error error = {0};
    const char *jobs = HEAD "a,1,0,100,FAILED\na,1,100,1000,FAILED\nb,1,0,500,FAILED\na,1,1000,3000,FAILED\n";
    static const struct {
        const char *check;
        uint32_t job;
    } cases[] = {{"a,1", 0},    {"a,100", 0},  {"a,540", 0},  {"a,560", 1},
                 {"a,1900", 1}, {"a,2100", 3}, {"a,9000", 3}, {"b,9000", 2}};
    assert_int_equal(job_log_read_jobs(&arena, str_from(jobs), &log, &error), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str text = arena_printf(&arena, "job,time\n%s\n", cases[i].check);
        assert_int_equal(job_log_read_checks(&arena, text, &log, &error), 0);
        assert_int_equal(log.check_count, 1);
        assert_int_equal(log.checks[0].job, cases[i].job);
    }
}

static void bad_logs_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "1:1: the file is empty"},
        {"\n \n", "1:1: the file is empty"},
        {"job,machines,start,end\n", "1:1: the first line names no column \"state\""},
        {HEAD "a,1,0,9\n", "2:8: expected 5 fields, got 4"},
        {HEAD "a,1,0,9,FAILED,more\n", "2:16: expected 5 fields"},
        {HEAD "\na,0,0,9,FAILED\n", "3:3: machines \"0\": expected a number from 1 to 10000000"},
        {HEAD "a,1,soon,9,FAILED\n",
         "2:5: start \"soon\": expected a time such as 2026-03-01T04:00:00Z, or seconds"},
        {HEAD "a,1,10,9,FAILED\n", "2:8: end \"9\": expected a time from the start on"},
        {HEAD "a,1,0,inf,FAILED\n", "2:7: end \"inf\": expected a time from the start on"},
        {HEAD "a,1,0,9,NODEFAIL\n",
         "2:9: state \"NODEFAIL\": expected a state of Slurm, such as COMPLETED or NODE_FAIL"},
        {HEAD "\"a,1,0,9,FAILED\n", "2:1: a quote does not end, or text follows it"},
        {HEAD "\"a\"b,1,0,9,FAILED\n", "2:1: a quote does not end, or text follows it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena ARENA_CLEANUP arena = {0};
        struct job_log log = {.job_count = 77};
        struct error error = {0};
        assert_int_equal(job_log_read_jobs(&arena, str_from(cases[i].text), &log, &error), ERROR_INVALID);
        assert_string_equal(error.text, cases[i].why);
        assert_int_equal(log.job_count, 77);
    }
    struct arena ARENA_CLEANUP arena = {0};
    struct job_log log;
    struct error error = {0};
    assert_int_equal(job_log_read_jobs(&arena, STR(HEAD "a,1,0,9,FAILED\n"), &log, &error), 0);
    assert_int_equal(job_log_read_checks(&arena, STR("job,time\nb,3\n"), &log, &error), ERROR_INVALID);
    assert_string_equal(error.text, "2:1: job \"b\": expected a job of the log");
    assert_int_equal(job_log_read_checks(&arena, STR("time,job\n-3,a\n"), &log, &error), ERROR_INVALID);
    assert_string_equal(error.text,
                        "2:1: time \"-3\": expected a time such as 2026-03-01T04:00:00Z, or seconds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_is_read),
        cmocka_unit_test(a_check_belongs_to_the_nearest_life),
        cmocka_unit_test(bad_logs_are_refused_with_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
