/* Histories of clusters: they round-trip, get other names, are summed, and say where a mistake is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/trace/history.h"

#define HEAD "phalanx-trace 1\nbegin 2026-03-01T12:00:00.000000Z\nend 1000\n"

static const char whole[] = HEAD
    "policy settings.backfillWindow 1m\n"
    "machine m-1 chips=8 rack=pod-1/rack-1\n"
    "machine m%202 chips=4 rack=pod-1/rack-1 spare=1\n"
    "gap 500 until=560.000001\n"
    "down 0 m%202 until=12.5\n"
    "fault 900.25 m-1 until=- code=xid/79 kills=1\n"
    "job 12.5 default/train ranks=2 chips=4 run=850 end=running launch=0.5 load=2 stop=3 save=60 write=1.25 "
    "crashes=1.5,1.5,700 queue=team priority=-5 recovery=requeue wait=0.1 held=900 restarts=2 redone=7\n"
    "job 13 default/train ranks=1 chips=0 run=0 end=cancelled keeps=1 wait=- held=0 restarts=0 redone=0\n";

static void history_good(struct history *ret, const char *text)
{
    struct error error = {0};
    if (history_read(ret, str_from(text), "t", &error) < 0)
        fail_msg("%s", error.text);
}

static void history_refuse(const char *text, const char *why)
{
    struct history history = {.end_us = 77};
    struct error error = {0};
    assert_int_equal(history_read(&history, str_from(text), "t", &error), ERROR_INVALID);
    assert_string_equal(error.text, why);
    assert_int_equal(history.end_us, 77);
}

static void written_as_read(void **state)
{
    struct history history;
    struct buf out BUF_CLEANUP = {0};
    assert_true(history_is(str_from(whole)) && !history_is(STR("cluster:\n")));
    history_good(&history, whole);
    assert_true(history.end_us == 1000000000 && history.machines.items[1].spare);
    assert_string_equal(history.machines.items[1].name.data, "m 2");
    assert_true(history.outages.items[1].until_us == -1 && history.outages.items[1].kills);
    const struct history_job *job = &history.jobs.items[0];
    assert_true(job->crash_count == 3 && job->crashes_us[1] == 1500000 && job->priority == -5);
    assert_true(job->is_seen && job->seen.wait_us == 100000 && job->seen.restarts == 2);
    assert_true(history.jobs.items[1].seen.wait_us == -1 && history.jobs.items[1].save_us == -1);
    history_write(&history, &out);
    assert_string_equal(out.data, whole);
    history_done(&history);
}

/* Lines in any order, comments, and ends of lines of another system. */
static void sorted_by_time(void **state)
{
    struct history history;
    history_good(&history,
                 HEAD "# a comment\r\n\nmachine a chips=1\nmachine b chips=1\n"
                      "down 30 a until=40\ndown 20 b until=30\ndown 30 b until=31\ndown 10 a until=-\n"
                      "job 5 x ranks=1 chips=1 run=1 end=failed\njob 4 y ranks=1 chips=1 run=1 end=failed\n");
    static const int64_t at_s[] = {10, 20, 30, 30};
    for (int i = 0; i < 4; i++)
        assert_int_equal(history.outages.items[i].at_us, at_s[i] * 1000000);
    assert_true(history.outages.items[2].machine == 0 &&
                history.outages.items[3].machine == 1); /* as in the file */
    assert_string_equal(history.jobs.items[0].name.data, "y");
    history_done(&history);
}

static void summed(void **state)
{
    struct history history;
    struct history_facts facts;
    history_good(&history, whole);
    history_sum(&history, &facts);
    assert_true(facts.chips == 12 && facts.absent == 1 && facts.outages == 0 && facts.faults == 1);
    assert_true(facts.open == 1 && facts.overlaps == 0 && facts.never_ran == 1 && facts.crashes == 3);
    assert_true(facts.gap_us == 60000001 && facts.out_s == 12.5 + 99.75);
    assert_true(facts.silence_us == 887250000 && facts.silence_at_us == 13000000);
    assert_true(facts.seen.jobs == 2 && facts.seen.started == 1 && facts.seen.restarts == 2);
    assert_true(facts.seen.work_chip_s == 850 * 8 && facts.seen.held_chip_s == 900 * 8);
    history_done(&history);
    history_good(&history, HEAD "machine a chips=1\ndown 10 a until=20\nfault 15 a until=30 code=x/1\n"
                                "down 18 a until=19\ndown 30 a until=40\n");
    history_sum(&history, &facts);
    assert_true(facts.overlaps == 2 && facts.out_s == 30); /* 10 to 40, once */
    history_done(&history);
}

static void other_names(void **state)
{
    struct history history;
    struct buf out BUF_CLEANUP = {0};
    history_good(&history, whole);
    history_anonymise(&history);
    history_write(&history, &out);
    assert_null(strstr(out.data, "train"));
    assert_null(strstr(out.data, "pod-1"));
    assert_null(strstr(out.data, "team"));
    assert_non_null(strstr(out.data, "begin 1970-01-01T00:00:00.000000Z\n"));
    assert_non_null(strstr(out.data, "machine m-2 chips=4 rack=rack-1 spare=1\n"));
    assert_non_null(strstr(out.data, "down 0 m-2 until=12.5\n"));
    assert_non_null(strstr(out.data, "job 13 job-1 ")); /* the same name as the first one's */
    history_done(&history);
}

static void mistakes_have_a_place(void **state)
{
    history_refuse("phalanx-trace 2\n",
                   "t:1:1: first line: expected \"phalanx-trace 1\", got \"phalanx-trace 2\"");
    history_refuse("", "t:1:1: first line: expected \"phalanx-trace 1\", got \"\"");
    history_refuse("phalanx-trace 1\nend 5\n", "t:3:1: expected a line \"begin\", got the end");
    history_refuse(HEAD "end 6\n", "t:4:1: end: expected one end, got \"end 6\"");
    history_refuse(HEAD "host a\n",
                   "t:4:1: line: expected begin, end, policy, machine, down, fault, gap or job at "
                   "its beginning, got \"host\"");
    history_refuse(HEAD "machine a chips=65\n", "t:4:17: chips: expected a number from 1 to 64, got \"65\"");
    history_refuse(HEAD "machine a  chips=6\n",
                   "t:4:11: machine: expected KEY=VALUE, after one blank, got \"\"");
    history_refuse(HEAD "machine a rack=b\n", "t:4:17: chips: expected a value, got \"\"");
    history_refuse(HEAD "machine a chips=1 chips=1\n",
                   "t:4:19: machine: expected each key once, got \"chips\"");
    history_refuse(HEAD "machine a chips=1\nmachine a chips=1\n",
                   "t:5:9: machine: expected a name of its own, got \"a\"");
    history_refuse(HEAD "down 1 a until=2\n",
                   "t:4:8: machine: expected the name of a machine of an earlier line, got \"a\"");
    history_refuse(HEAD "gap 5 until=4\n",
                   "t:4:13: until: expected a time that is not before the beginning, got \"4\"");
    history_refuse(HEAD "gap 5.1234567 until=6\n",
                   "t:4:5: time: expected seconds with at most six decimals, got \"5.1234567\"");
    history_refuse(HEAD "job 1 a ranks=1 chips=1 run=1 end=over\n",
                   "t:4:35: end: expected completed, failed, cancelled or running, got \"over\"");
    history_refuse(HEAD "job 1 a ranks=1 chips=1 run=1 end=failed crashes=5,4\n",
                   "t:4:52: crashes: expected times that never fall, got \"4\"");
    history_refuse(HEAD "job 1 a ranks=1 chips=1 run=1 end=failed held=5\n",
                   "t:4:47: held: expected wait beside it, got \"5\"");
    history_refuse(HEAD "machine a%2 chips=1\n",
                   "t:4:10: machine: expected two hexadecimal digits behind %, got \"%2\"");
    history_refuse(HEAD "gap 5 until=1000.5\n", "t:4:1: end: expected a time that no line passes, got "
                                                "1000.000000 before 1000.500000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_read), cmocka_unit_test(sorted_by_time),        cmocka_unit_test(summed),
        cmocka_unit_test(other_names),     cmocka_unit_test(mistakes_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
