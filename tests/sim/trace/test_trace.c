/* Readers of workload traces: what a job becomes, what is left out, where a mistake is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/trace/trace.h"

static const struct trace_terms terms = {.processors_per_chip = 4, .chips_per_node = 8};

static void read_good(struct trace *ret, enum trace_format format, const char *text)
{
    struct error error = {0};
    if (trace_read(ret, format, str_from(text), "t", &terms, &error) < 0)
        fail_msg("%s", error.text);
}

/* Tags by their names, in the order of enum trace_tag. */
static void expect_tags(const struct trace *trace, size_t job, const char *const *wanted)
{
    for (int tag = 0; tag < TRACE_TAGS; tag++) {
        struct str name = trace->names.items[trace->jobs.items[job].tags[tag]];
        if (!str_is(name, wanted[tag]))
            fail_msg("job %zu, %s: wanted \"%s\", got \"" STR_FORMAT "\"", job, trace_tag_names[tag],
                     wanted[tag], STR_ARG(name));
    }
}

static void refuse(enum trace_format format, const char *text, const char *why)
{
    struct trace trace = {.left_out = 77};
    struct error error = {0};
    assert_int_equal(trace_read(&trace, format, str_from(text), "t", &terms, &error), ERROR_INVALID);
    assert_string_equal(error.text, why);
    assert_int_equal(trace.left_out, 77);
}

static void swf(void **state)
{
    struct trace trace;
    read_good(&trace, TRACE_SWF,
              "; Version: 2.2\n"
              "\n"
              "1 100 5 3600 8 -1 -1 8 7200 -1 1 3 7 -1 2 9 -1 -1\r\n"
              "2   40 5 60.5 3 -1 -1 -1 7200 -1 0 3 1 -1 -1 -1 -1 -1\n"
              "3 300 5 -1 8 -1 -1 8 7200 -1 1 3 1 -1 -1 -1 -1 -1\n" /* never ran */
              "4 300 5 10 8 -1 -1 8 7200 -1 3 3 1 -1 -1 -1 -1 -1\n" /* a part of a job */
              "5 300 5 10 8 -1 -1 8 7200 -1 5 3 1 -1 -1 -1 -1 -1"); /* no end of line */
    assert_int_equal(trace.jobs.len, 3);
    assert_int_equal(trace.left_out, 2);
    const struct trace_job *jobs = trace.jobs.items;
    assert_true(jobs[0].submit_s == 0 && jobs[0].runtime_s == 60.5 && jobs[0].chips == 1);
    assert_int_equal(jobs[0].end, TRACE_FAILED);
    assert_true(jobs[1].submit_s == 60 && jobs[1].runtime_s == 3600 && jobs[1].chips == 2);
    assert_int_equal(jobs[1].end, TRACE_COMPLETED);
    expect_tags(&trace, 1, (const char *const[]){"2", "9", "", "3", "7"});
    expect_tags(&trace, 0, (const char *const[]){"", "", "", "3", "1"});
    assert_true(jobs[2].submit_s == 260);
    assert_int_equal(jobs[2].end, TRACE_CANCELLED);
    trace_done(&trace);
}

static void swf_mistakes(void **state)
{
    refuse(TRACE_SWF, "; c\n1 100 5 x 8 -1 -1 8 7200 -1 1 3 1 -1 -1 -1 -1 -1\n",
           "t:2:9: run time: expected a number, got \"x\"");
    refuse(TRACE_SWF, "1 100 5\n", "t:1:8: run time: expected a number, got \"\"");
    refuse(TRACE_SWF, "1 100 5 10 8 -1 -1 8 7200 -1 9 3 1 -1 -1 -1 -1 -1\n",
           "t:1:30: status: expected a number from -1 to 5, got \"9\"");
    refuse(TRACE_SWF, "1 -7 5 10 8 -1 -1 8 7200 -1 1 3 1 -1 -1 -1 -1 -1\n",
           "t:1:3: submit time: expected a number from 0, got \"-7\"");
    refuse(TRACE_SWF, "1 7 5 10 8 -1 -1 99999999999 7200 -1 1 3 1 -1 -1 -1 -1 -1\n",
           "t:1:18: processors: expected at most 16777216, got \"99999999999\"");
    refuse(TRACE_SWF, "1 1234567890123456 5 10 8 -1 -1 8 7200 -1 1 3 1 -1 -1 -1 -1 -1\n",
           "t:1:3: submit time: expected a number, got \"1234567890123456\"");
}

static void sacct(void **state)
{
    struct trace trace;
    read_good(&trace, TRACE_SACCT,
              "User|JobID|Submit|ElapsedRaw|State|AllocTRES|NNodes\n"
              "a|7|2025-03-01T12:00:10|3600|COMPLETED|billing=8,gres/gpu:a100=16,gres/gpu=16,node=2|2\n"
              "a|7.batch|2025-03-01T12:00:10|3600|COMPLETED|cpu=4|1\n"
              "a|8|2025-03-01T12:00:00|60|CANCELLED by 1000|gres/gpu:h100=4|1\n"
              "a|9|2025-03-01T13:00:00|60|NODE_FAIL||3\n"
              "a|10|2025-03-01T13:00:00|0|PENDING||1\n"
              "a|11|2025-03-01T13:00:01|60|OUT_OF_MEMORY|gres/gpu=1|1\n");
    assert_int_equal(trace.jobs.len, 4);
    assert_int_equal(trace.left_out, 2);
    const struct trace_job *jobs = trace.jobs.items;
    assert_true(jobs[0].submit_s == 0 && jobs[0].chips == 4 && jobs[0].end == TRACE_CANCELLED);
    assert_true(jobs[1].submit_s == 10 && jobs[1].chips == 16 && jobs[1].runtime_s == 3600);
    assert_true(jobs[2].submit_s == 3600 && jobs[2].chips == 24 && jobs[2].end == TRACE_COMPLETED);
    assert_true(jobs[3].chips == 1 && jobs[3].end == TRACE_FAILED);
    trace_done(&trace);
}

static void sacct_tags(void **state)
{
    const char *text = "JobID|Submit|ElapsedRaw|State|NNodes|Partition|QOS|User|Account|Priority\n"
                       "7|2025-03-01T12:00:00|60|COMPLETED|1|gpu,debug|high|ann|ml|4000\n"
                       "8|2025-03-01T12:00:01|60|COMPLETED|1|gpu||bob||-3\n";
    struct trace trace;
    read_good(&trace, TRACE_SACCT, text);
    expect_tags(&trace, 0, (const char *const[]){"gpu", "gpu", "high", "ann", "ml"});
    expect_tags(&trace, 1, (const char *const[]){"gpu", "gpu", "", "bob", ""});
    assert_int_equal(trace.names.len, 6);
    assert_int_equal(trace.jobs.items[0].priority, 0);
    trace_done(&trace);
    struct trace_terms prior = {.processors_per_chip = 1, .chips_per_node = 8, .priorities = true};
    struct error error = {0};
    assert_int_equal(trace_read(&trace, TRACE_SACCT, str_from(text), "t", &prior, &error), 0);
    assert_true(trace.jobs.items[0].priority == 4000 && trace.jobs.items[1].priority == -3);
    trace_done(&trace);
    assert_int_equal(trace_read(&trace, TRACE_SACCT,
                                STR("JobID|Submit|ElapsedRaw|State|NNodes|Priority\n"
                                    "7|2025-03-01T12:00:00|60|COMPLETED|1|4294967295\n"),
                                "t", &prior, &error),
                     ERROR_INVALID);
    assert_string_equal(error.text,
                        "t:2:38: Priority: expected a whole number up to 1000000000, got \"4294967295\"");
}

static void sacct_mistakes(void **state)
{
    refuse(TRACE_SACCT, "", "t:1:1: expected the names of columns, got nothing");
    refuse(TRACE_SACCT, "JobID|Submit|State|AllocTRES\n",
           "t:1:1: ElapsedRaw: expected a column of this name in the first line, got "
           "\"JobID|Submit|State|AllocTRES\"");
    refuse(TRACE_SACCT, "JobID|Submit|ElapsedRaw|State\n",
           "t:1:1: AllocTRES: expected a column of this name, or NNodes, got "
           "\"JobID|Submit|ElapsedRaw|State\"");
    refuse(TRACE_SACCT, "JobID|Submit|ElapsedRaw|State|NNodes\n1|2025-03-01 12:00:10|5|COMPLETED|1\n",
           "t:2:3: Submit: expected a time such as 2025-03-01T12:00:00, got \"2025-03-01 12:00:10\"");
    refuse(TRACE_SACCT, "JobID|Submit|ElapsedRaw|State|NNodes\n1|2025-03-01T12:00:10|5|COMPLETED\n",
           "t:2:1: line: expected as many columns as the first line has, got "
           "\"1|2025-03-01T12:00:10|5|COMPLETED\"");
    refuse(TRACE_SACCT, "JobID|Submit|ElapsedRaw|State|AllocTRES\n1|2025-03-01T12:00:10|5|F|gres/gpu=x\n",
           "t:2:27: AllocTRES: expected gres/gpu=N, got \"gres/gpu=x\"");
}

static void helios(void **state)
{
    struct trace trace;
    read_good(
        &trace, TRACE_HELIOS,
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "1,uX,vcA,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
        "2,uV,\"vc,B\",4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
        "3,uq,vcA,0,8,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n");
    assert_true(trace.jobs.len == 2 && trace.left_out == 1);
    const struct trace_job *jobs = trace.jobs.items;
    assert_true(jobs[0].submit_s == 0 && jobs[0].runtime_s == 36848 && jobs[0].chips == 1);
    assert_true(jobs[1].submit_s == 26 && jobs[1].chips == 4 && jobs[1].end == TRACE_FAILED);
    expect_tags(&trace, 0, (const char *const[]){"vcA", "", "", "uX", ""});
    expect_tags(&trace, 1, (const char *const[]){"vc,B", "", "", "uV", ""});
    trace_done(&trace);
}

/* Seren's times have an offset, and Kalos' more columns. */
static void acme(void **state)
{
    struct trace trace;
    read_good(
        &trace, TRACE_ACME,
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,fail_time,duration,"
        "queue,gpu_time\n"
        "a,u5,1,8,128,Pretrain,FAILED,2023-03-01 00:18:22+08:00,x,y,,117,32,936.0\n"
        "b,u5,1,8,128,Other,COMPLETED,2023-02-28 16:18:23+00:00,x,y,,2693,13,21544.0\n"
        "c,u5,1,8,128,Other,CANCELLED,2023-02-28 16:18:24+00:00,x,y,,,13,0\n");
    assert_true(trace.jobs.len == 2 && trace.left_out == 1);
    assert_true(trace.jobs.items[0].submit_s == 0 && trace.jobs.items[1].submit_s == 1);
    expect_tags(&trace, 0, (const char *const[]){"Pretrain", "", "", "u5", ""});
    trace_done(&trace);
}

static void alibaba(void **state)
{
    struct trace trace;
    read_good(
        &trace, TRACE_ALIBABA,
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
        "239255,13,A10,20,1,1,0,2764799,HP\n"
        "437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot\n"
        "437261,57,A10,15,0.5,3,9589664,60,Spot\n");
    assert_true(trace.jobs.len == 3 && trace.left_out == 0);
    assert_true(trace.jobs.items[1].chips == 16 && trace.jobs.items[1].submit_s == 9589663);
    assert_int_equal(trace.jobs.items[2].chips, 2);
    expect_tags(&trace, 1, (const char *const[]){"57", "A100-SXM4-80GB", "Spot", "", ""});
    trace_done(&trace);
}

static void csv_mistakes(void **state)
{
#define COLUMNS "gpu_num,vc,user,state,submit_time,duration\n"
    refuse(TRACE_HELIOS, "", "t:1:1: expected the names of columns, got nothing");
    refuse(TRACE_HELIOS, "gpu_num,vc,user,state,submit_time\n",
           "t:1:1: duration: expected a column of this name in the first line, got "
           "\"gpu_num,vc,user,state,submit_time\"");
    refuse(TRACE_HELIOS, COLUMNS "1,a,u,FAILED,2020-06-09 18:41:01,1m\n",
           "t:2:34: duration: expected a number, got \"1m\"");
    refuse(TRACE_HELIOS, COLUMNS "1,a,u,FAILED,June 9,60\n",
           "t:2:14: submit_time: expected seconds, or a time such as 2025-03-01 12:00:00, got \"June 9\"");
    refuse(TRACE_HELIOS, COLUMNS "1,a,u,FAILED,2020-06-09 18:41:01+8,60\n",
           "t:2:14: submit_time: expected seconds, or a time such as 2025-03-01 12:00:00, got "
           "\"2020-06-09 18:41:01+8\"");
    refuse(TRACE_HELIOS, COLUMNS "1,a,u,FAILED,60\n",
           "t:2:1: line: expected as many columns as the first line has, got \"1,a,u,FAILED,60\"");
}

#define PHILLY_JOB(status, end)                                                                              \
    "{\"status\": \"" status                                                                                 \
    "\", \"vc\": \"ee\", \"user\": \"ce\", \"submitted_time\": \"2017-10-07 01:11:39\",\n"                   \
    " \"attempts\": [{\"start_time\": \"2017-10-07 01:12:00\", \"end_time\": \"2017-10-07 01:13:00\", "      \
    "\"detail\": "                                                                                           \
    "[{\"ip\": \"m1\", \"gpus\": [\"gpu0\"]}]}, {\"start_time\": \"2017-10-07 02:00:00\", "                  \
    "\"end_time\": " end ", \"detail\": [{\"ip\": \"m1\", \"gpus\": [\"gpu0\", \"gpu1\"]}, {\"ip\": "        \
    "\"m2\", \"gpus\": [\"gpu0\"]}]}]}"

/* Times of all attempts count, and the size of the last. */
static void philly(void **state)
{
    struct trace trace;
    read_good(&trace, TRACE_PHILLY,
              "[" PHILLY_JOB("Killed", "\"2017-10-07 03:00:00\"") ",\n" PHILLY_JOB(
                  "Pass", "null") ",\n"
                                  "{\"status\": \"Failed\", \"attempts\": []}]\n");
    assert_true(trace.jobs.len == 2 && trace.left_out == 1);
    const struct trace_job *jobs = trace.jobs.items;
    assert_true(jobs[0].runtime_s == 3660 && jobs[0].chips == 3 && jobs[0].end == TRACE_CANCELLED);
    assert_true(jobs[1].runtime_s == 60 && jobs[1].end == TRACE_COMPLETED);
    expect_tags(&trace, 0, (const char *const[]){"ee", "", "", "ce", ""});
    trace_done(&trace);
    refuse(TRACE_PHILLY, "[\n" PHILLY_JOB("Lost", "null") "]",
           "t:2:12: status: expected Pass, Killed or Failed, got \"Lost\"");
    refuse(TRACE_PHILLY, "[\n" PHILLY_JOB("Pass", "7") "]",
           "t:3:183: end_time: expected a time such as 2017-10-07 01:12:09, got 7");
    refuse(TRACE_PHILLY, "[{]", "t:1:3: a key in double quotes is expected here");
    refuse(TRACE_PHILLY, "{\"a\": 1}", "t:1:1: the document: expected a list of jobs, got {\"a\":1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swf),        cmocka_unit_test(swf_mistakes),   cmocka_unit_test(sacct),
        cmocka_unit_test(sacct_tags), cmocka_unit_test(sacct_mistakes), cmocka_unit_test(helios),
        cmocka_unit_test(acme),       cmocka_unit_test(alibaba),        cmocka_unit_test(csv_mistakes),
        cmocka_unit_test(philly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
