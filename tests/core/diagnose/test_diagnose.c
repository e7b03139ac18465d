/* Hangs made by hand, one of each kind; forms that dumps have; the watchdog's lines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "doc/json.h"
#include "doc/pickle.h"
#include "core/diagnose/diagnose.h"

/* A job of up to 16 ranks: entries as JSON, rank by rank. Groups: "0" all, "1" the lower half, "2" the upper.
 */
struct job {
    uint32_t ranks, record;
    bool left_out[16];
    struct buf entries[16], status;
};

static void call(struct job *job, uint32_t rank, uint32_t group, const char *name, int seq, const char *state,
                 const char *sizes, const char *type)
{
    struct buf *out = &job->entries[rank];
    bool p2p = strncmp(name, "send", 4) == 0 || strncmp(name, "recv", 4) == 0;
    buf_printf(out, "%s{\"record_id\":%u,\"pg_id\":%u,\"process_group\":[\"%u\",\"g%u\"],",
               out->len ? "," : "", job->record++, group, group, group);
    buf_printf(out, "\"collective_seq_id\":%d,\"p2p_seq_id\":%d,\"profiling_name\":\"nccl:%s\",",
               p2p ? 0 : seq, p2p ? seq : 0, name);
    buf_printf(
        out, "\"time_created_ns\":%u,\"is_p2p\":%s,\"state\":\"%s\",\"input_sizes\":%s,\"output_sizes\":%s,",
        1000 + job->record, p2p ? "true" : "false", state, sizes, sizes);
    buf_printf(out, "\"input_dtypes\":[\"%s\"],\"output_dtypes\":[\"%s\"]}", type, type);
}

/* An all_reduce of 8 floats. */
static void reduce(struct job *job, uint32_t rank, uint32_t group, int seq, const char *state)
{
    call(job, rank, group, "all_reduce", seq, state, "[[8]]", "Float");
}

/* All members of a group. */
static void reduce_all(struct job *job, uint32_t group, int seq, const char *state)
{
    uint32_t half = job->ranks / 2;
    for (uint32_t r = group == 2 ? half : 0; r < (group == 1 ? half : job->ranks); r++)
        reduce(job, r, group, seq, state);
}

static void config(struct buf *out, uint32_t rank, uint32_t ranks)
{
    buf_printf(out, "{\"0\":{\"name\":\"0\",\"desc\":\"all\",\"ranks\":\"[");
    for (uint32_t r = 0; r < ranks; r++)
        buf_printf(out, r ? ", %u" : "%u", r);
    uint32_t group = rank < ranks / 2 ? 1 : 2, from = group == 1 ? 0 : ranks / 2;
    buf_printf(out, "]\"},\"%u\":{\"name\":\"%u\",\"desc\":\"half\",\"ranks\":\"[", group, group);
    for (uint32_t r = from; r < from + ranks / 2; r++)
        buf_printf(out, r > from ? ", %u" : "%u", r);
    buf_printf(out, "]\"}}");
}

static int add_text(struct flight *flight, uint32_t rank, const char *text, struct error *error)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *doc = NULL;
    if (json_parse(&arena, str_from(text), &doc, error) < 0)
        fail_msg("%s in %s", error->text, text);
    return flight_add_dump(flight, rank, doc, error);
}

static struct flight *fly(struct job *job)
{
    struct flight *flight = flight_new();
    struct error error = {0};
    for (uint32_t r = 0; r < job->ranks; r++) {
        struct buf BUF_CLEANUP text = {0};
        buf_printf(&text, "{\"version\":\"2.9\",\"pg_config\":");
        config(&text, r, job->ranks);
        buf_printf(&text, ",\"entries\":[%s]}", job->entries[r].data ? job->entries[r].data : "");
        if (!job->left_out[r] && add_text(flight, r, text.data, &error) < 0)
            fail_msg("%s", error.text);
        buf_done(&job->entries[r]);
    }
    return flight;
}

static void judge(struct job *job, struct diagnosis *ret_diagnosis)
{
    struct flight *flight = fly(job);
    flight_judge(flight, ret_diagnosis);
    flight_free(flight);
}

static void print(const struct diagnosis *diagnosis)
{
    struct buf BUF_CLEANUP out = {0};
    diagnosis_write_json(&out, diagnosis);
    print_message("%s\n", out.data);
}

/* One finding of this kind about these ranks; `culprits`: they are to blame, and nobody else. */
static void expect(struct diagnosis *diagnosis, enum finding_kind kind, const char *ranks, bool culprits)
{
    struct buf BUF_CLEANUP found = {0}, blamed = {0};
    bool good = diagnosis->hang && diagnosis->findings.len > 0;
    for (size_t i = 0; i < diagnosis->findings.len; i++) {
        const struct finding *finding = &diagnosis->findings.items[i];
        good = good && finding->kind == kind && finding->evidence.len && finding->advice.len;
        if (i)
            buf_printf(&found, ", ");
        ranks_describe(&found, finding->ranks, finding->rank_count, 100);
    }
    ranks_describe(&blamed, diagnosis->culprits.items, diagnosis->culprits.len, 100);
    good = good && str_is(buf_str(&found), ranks) && str_is(buf_str(&blamed), culprits ? ranks : "");
    if (!good) {
        print(diagnosis);
        fail_msg("%s of ranks %s was expected", finding_kind_name(kind), ranks);
    }
    diagnosis_done(diagnosis);
}

static void healthy(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 8};
    reduce_all(&job, 0, 1, "completed");
    job.left_out[3] = true; /* nothing is open, so nobody is missed */
    judge(&job, &diagnosis);
    assert_false(diagnosis.hang);
    assert_int_equal(diagnosis.findings.len, 0);
    assert_int_equal(diagnosis.silent.len, 1);
    diagnosis_done(&diagnosis);
    struct job nothing = {.ranks = 8};
    judge(&nothing, &diagnosis);
    assert_false(diagnosis.hang);
    diagnosis_done(&diagnosis);
}

/* `silent` in turn for each rank, the first one included: no rank is the measure of the others. */
static void one_is_missing(void **state)
{
    for (uint32_t culprit = 0; culprit < 8; culprit++) {
        for (int silent = 0; silent < 2; silent++) {
            struct diagnosis diagnosis;
            struct job job = {.ranks = 8};
            char ranks[8];
            reduce_all(&job, 0, 1, "completed");
            for (uint32_t r = 0; r < 8; r++)
                if (r != culprit)
                    reduce(&job, r, r < 4 ? 1 : 2, 1, (r < 4) == (culprit < 4) ? "scheduled" : "completed");
            for (uint32_t r = 0; r < 8; r++)
                if ((r < 4) != (culprit < 4))
                    reduce(&job, r, 0, 2, "scheduled");
            job.left_out[culprit] = silent;
            snprintf(ranks, sizeof ranks, "%u", culprit);
            judge(&job, &diagnosis);
            assert_int_equal(diagnosis.findings.items[0].waiting, 7);
            assert_int_equal(diagnosis.findings.items[0].waiting_all, 7);
            assert_true(diagnosis.findings.items[0].first_ns > 0);
            expect(&diagnosis, silent ? FINDING_SILENT : FINDING_ABSENT, ranks, true);
        }
    }
}

static void stuck_stream(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 8};
    for (uint32_t r = 0; r < 8; r++)
        reduce(&job, r, 0, 1, r == 5 ? "scheduled" : "completed");
    reduce_all(&job, 0, 2, "scheduled");
    judge(&job, &diagnosis);
    assert_int_equal(diagnosis.findings.items[0].action, ACTION_REPLACE);
    expect(&diagnosis, FINDING_STUCK, "5", true);
    struct job two = {.ranks = 8}; /* two of one group */
    for (uint32_t r = 0; r < 8; r++)
        reduce(&two, r, 0, 1, r == 5 || r == 2 ? "scheduled" : "completed");
    judge(&two, &diagnosis);
    expect(&diagnosis, FINDING_STUCK, "2, 5", true);
    struct job begun = {.ranks = 8};
    for (uint32_t r = 0; r < 8; r++)
        reduce(&begun, r, 0, 1, r == 6 ? "scheduled" : "started");
    judge(&begun, &diagnosis);
    expect(&diagnosis, FINDING_STUCK, "6", true);
}

static void network(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 8};
    reduce_all(&job, 2, 1, "scheduled");
    reduce_all(&job, 1, 1, "completed");
    for (uint32_t r = 0; r < 4; r++)
        reduce(&job, r, 0, 1, "scheduled"); /* these wait for the others */
    judge(&job, &diagnosis);
    assert_int_equal(diagnosis.findings.items[0].action, ACTION_CHECK_NETWORK);
    expect(&diagnosis, FINDING_NETWORK, "4-7", false);
    struct job half = {.ranks = 8}; /* it got through to a few only */
    for (uint32_t r = 0; r < 8; r++)
        reduce(&half, r, 0, 1, r < 3 ? "completed" : "started");
    judge(&half, &diagnosis);
    expect(&diagnosis, FINDING_NETWORK, "0-7", false);
}

static void mismatches(void **state)
{
    struct diagnosis diagnosis;
    for (uint32_t odd = 0; odd < 8; odd++) { /* rank 0 too: the majority counts, not the first */
        char ranks[8];
        struct job order = {.ranks = 8}, type = {.ranks = 8}, size = {.ranks = 8}, element = {.ranks = 8};
        snprintf(ranks, sizeof ranks, "%u", odd);
        for (uint32_t r = 0; r < 8; r++) {
            call(&order, r, 0, r == odd ? "_all_gather_base" : "all_reduce", 1, "scheduled", "[[8]]",
                 "Float");
            call(&order, r, 0, r == odd ? "all_reduce" : "_all_gather_base", 2, "scheduled", "[[8]]",
                 "Float");
            call(&type, r, 0, r == odd ? "broadcast" : "all_reduce", 1, "scheduled", "[[8]]", "Float");
            call(&size, r, 0, "all_reduce", 1, "scheduled", r == odd ? "[[4, 4]]" : "[[8]]", "Float");
            call(&element, r, 0, "all_reduce", 1, "scheduled", "[[8]]", r == odd ? "BFloat16" : "Float");
        }
        judge(&order, &diagnosis);
        assert_int_equal(diagnosis.findings.items[0].action, ACTION_FIX_PROGRAM);
        expect(&diagnosis, FINDING_ORDER, ranks, false);
        judge(&type, &diagnosis);
        expect(&diagnosis, FINDING_TYPE, ranks, false);
        judge(&size, &diagnosis);
        expect(&diagnosis, FINDING_SIZE, ranks, false);
        judge(&element, &diagnosis);
        expect(&diagnosis, FINDING_DTYPE, ranks, false);
    }
    struct job shape = {.ranks = 8}; /* other shapes of one size are no mistake */
    for (uint32_t r = 0; r < 8; r++)
        call(&shape, r, 0, "all_reduce", 1, "scheduled", r == 3 ? "[[4, 2]]" : "[[8]]", "Float");
    judge(&shape, &diagnosis);
    expect(&diagnosis, FINDING_NETWORK, "0-7", false);
    struct job even = {.ranks = 8}; /* no majority: all of them */
    for (uint32_t r = 0; r < 8; r++)
        call(&even, r, 0, "all_reduce", 1, "scheduled", r < 4 ? "[[4, 4]]" : "[[8]]", "Float");
    judge(&even, &diagnosis);
    expect(&diagnosis, FINDING_SIZE, "0-7", false);
}

/* Parts of a coalesced call are compared one by one, as in an all-gather of uneven tensors. */
static void coalesced_sizes(void **state)
{
    struct diagnosis diagnosis;
    for (uint32_t odd = 0; odd < 4; odd++) {
        char ranks[8];
        struct job uneven = {.ranks = 4}, even = {.ranks = 4};
        snprintf(ranks, sizeof ranks, "%u", odd);
        for (uint32_t r = 0; r < 4; r++) {
            for (int part = 0; part < 3; part++) {
                call(&uneven, r, 0, "_broadcast_oop", 1, "scheduled",
                     part == 2 && r == odd ? "[[7]]" : "[[8]]", "Float");
                call(&even, r, 0, "_broadcast_oop", 1, "scheduled", part == 2 ? "[[7]]" : "[[8]]", "Float");
            }
            call(&uneven, r, 0, "coalesced", 1, "scheduled", "[]", "Float");
            call(&even, r, 0, "coalesced", 1, "scheduled", "[]", "Float");
        }
        judge(&uneven, &diagnosis);
        assert_int_equal(diagnosis.findings.items[0].action, ACTION_FIX_PROGRAM);
        expect(&diagnosis, FINDING_SIZE, ranks, false);
        judge(&even, &diagnosis);
        expect(&diagnosis, FINDING_NETWORK, "0-3", false);
    }
}

/* In an exchange sizes differ from rank to rank, but what is sent is what is received. */
static void exchanges(void **state)
{
    struct diagnosis diagnosis;
    for (int wrong = 0; wrong < 2; wrong++) {
        struct flight *flight = flight_new();
        struct error error = {0};
        for (uint32_t r = 0; r < 3; r++) {
            struct buf BUF_CLEANUP text = {0};
            buf_printf(
                &text,
                "{\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"\",\"ranks\":[0,1,2]}},\"entries\":[{"
                "\"process_group\":[\"0\",\"\"],\"collective_seq_id\":1,\"profiling_name\":\"nccl:all_to_"
                "all\","
                "\"state\":\"scheduled\",\"input_sizes\":[[%u]],\"output_sizes\":[[%u]]}]}",
                8 + r, 10 - r + (wrong && r == 2));
            assert_int_equal(add_text(flight, r, text.data, &error), 0);
        }
        flight_judge(flight, &diagnosis);
        flight_free(flight);
        expect(&diagnosis, wrong ? FINDING_SIZE : FINDING_NETWORK, "0-2", false);
    }
}

static void circle(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 4}; /* rank 0 calls its half first, rank 1 the whole */
    reduce(&job, 0, 1, 1, "scheduled");
    reduce(&job, 1, 0, 1, "scheduled");
    reduce(&job, 2, 0, 1, "scheduled");
    reduce(&job, 3, 0, 1, "scheduled");
    judge(&job, &diagnosis);
    expect(&diagnosis, FINDING_DEADLOCK, "0, 1", false);
}

/* Ranks 0 to 3 are a pipeline by sends within their half; rank 2 does not take what rank 1 sends. */
static void pipeline(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 8};
    call(&job, 0, 1, "send 0->1", 7, "scheduled", "[[8]]", "Float");
    call(&job, 1, 1, "recv 1<-0", 12, "completed", "[[8]]", "Float");
    call(&job, 1, 1, "send 1->2", 13, "scheduled", "[[8]]", "Float");
    call(&job, 3, 1, "recv 3<-2", 4, "scheduled", "[[8]]", "Float");
    call(&job, 2, 1, "recv 2<-1", 9, "completed", "[[8]]", "Float");
    reduce_all(&job, 2, 1, "completed");
    for (uint32_t r = 4; r < 8; r++)
        reduce(&job, r, 0, 1, "scheduled");
    judge(&job, &diagnosis);
    expect(&diagnosis, FINDING_ABSENT, "2", true);
    struct job sizes = {.ranks = 4};
    call(&sizes, 0, 1, "send 0->1", 7, "scheduled", "[[8]]", "Float");
    call(&sizes, 1, 1, "recv 1<-0", 7, "scheduled", "[[9]]", "Float");
    judge(&sizes, &diagnosis);
    expect(&diagnosis, FINDING_SIZE, "0, 1", false);
}

/* Parts of a batch have no state of their own: the entry behind them has it. */
static void batches(void **state)
{
    for (int open = 0; open < 2; open++) {
        struct diagnosis diagnosis;
        struct job job = {.ranks = 8};
        for (uint32_t r = 0; r < 2; r++) {
            call(&job, r, 1, r ? "recv 1<-0" : "send 0->1", 3, "scheduled", "[[8]]", "Float");
            call(&job, r, 1, r ? "send 1->2" : "recv 0<-3", 3, "scheduled", "[[8]]", "Float");
            struct buf *out = &job.entries[r];
            buf_printf(
                out,
                ",{\"record_id\":%u,\"process_group\":[\"1\",\"\"],\"p2p_seq_id\":3,\"collective_seq_id\":0,"
                "\"profiling_name\":\"nccl:coalesced\",\"is_p2p\":true,\"state\":\"%s\"}",
                job.record++, open && r == 1 ? "started" : "completed");
        }
        judge(&job, &diagnosis);
        assert_int_equal(diagnosis.hang, open);
        if (open)
            expect(&diagnosis, FINDING_ABSENT, "0, 2", true); /* rank 0 has nothing open; 2 takes nothing */
        else
            diagnosis_done(&diagnosis);
    }
}

/* A part of a batch that both ends have called is no network's fault while another part waits. */
static void batch_waits_as_a_whole(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 8};
    for (uint32_t r = 0; r < 4; r++) {
        char send[16], receive[16];
        if (r == 2)
            continue;
        snprintf(send, sizeof send, "send %u->%u", r, (r + 1) % 4);
        snprintf(receive, sizeof receive, "recv %u<-%u", r, (r + 3) % 4);
        call(&job, r, 1, send, 3, "scheduled", "[[8]]", "Float");
        call(&job, r, 1, receive, 3, "scheduled", "[[8]]", "Float");
        buf_printf(
            &job.entries[r],
            ",{\"record_id\":%u,\"process_group\":[\"1\",\"\"],\"p2p_seq_id\":3,\"collective_seq_id\":0,"
            "\"profiling_name\":\"nccl:coalesced\",\"is_p2p\":true,\"state\":\"started\"}",
            job.record++);
    }
    judge(&job, &diagnosis);
    assert_int_equal(diagnosis.findings.items[0].waiting_all, 3);
    expect(&diagnosis, FINDING_ABSENT, "2", true);
}

static void two_culprits(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 16};
    reduce_all(&job, 0, 1, "completed");
    for (uint32_t r = 0; r < 16; r++)
        if (r != 3 && r != 12)
            reduce(&job, r, r < 8 ? 1 : 2, 1, "scheduled");
    job.left_out[12] = true;
    struct flight *flight = fly(&job);
    flight_judge(flight, &diagnosis);
    flight_free(flight);
    assert_int_equal(diagnosis.culprits.len, 2);
    assert_int_equal(diagnosis.culprits.items[0], 3);
    assert_int_equal(diagnosis.culprits.items[1], 12);
    assert_int_equal(diagnosis.findings.items[0].kind, FINDING_ABSENT);
    assert_int_equal(diagnosis.findings.items[1].kind, FINDING_SILENT);
    diagnosis_done(&diagnosis);
}

/* Where somebody is seen to be missing, those who left nothing are not blamed beside it. */
static void silent_and_innocent(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 8};
    reduce_all(&job, 0, 1, "completed");
    for (uint32_t r = 0; r < 8; r++)
        if (r != 2)
            reduce(&job, r, 0, 2, "scheduled");
    job.left_out[6] = true;
    judge(&job, &diagnosis);
    assert_int_equal(diagnosis.silent.len, 1);
    expect(&diagnosis, FINDING_ABSENT, "2", true);
}

static void refusals(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"[]", "rank 3: a value of type array where an object is expected"},
        {"{\"entries\":{}}", "rank 3: entries: a value of type object where a list is expected"},
        {"{\"entries\":[7]}", "rank 3: entries[0]: a value of type integer where an object is expected"},
        {"{\"pg_config\":[]}", "rank 3: pg_config: a value of type array where an object is expected"},
        {"{\"pg_config\":{\"0\":{\"ranks\":\"[0, 1]\"}}}",
         "rank 3: pg_config.0.ranks: the rank itself is not among them"},
        {"{\"entries\":[{\"process_group\":7}]}", "rank 3: entries[0].process_group: a value of type integer "
                                                  "where a pair of name and description is expected"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct flight *flight = flight_new();
        struct diagnosis diagnosis;
        struct error error = {0};
        assert_true(add_text(flight, 3, bad[i].text, &error) < 0);
        assert_string_equal(error.text, bad[i].why);
        flight_judge(flight, &diagnosis);
        assert_false(diagnosis.hang);
        assert_int_equal(diagnosis.dumped, 0);
        diagnosis_done(&diagnosis);
        assert_int_equal(add_text(flight, 3, "{}", &error), 0); /* the same rank, once more */
        assert_int_equal(add_text(flight, 3, "{}", &error), ERROR_EXISTS);
        assert_int_equal(add_text(flight, FLIGHT_RANKS_MAX, "{}", &error), ERROR_LIMIT);
        flight_free(flight);
    }
}

/* One field of another form is passed over and said. The rest of the dump holds: the rank is seen to wait,
 * and the culprit is found. */
static void odd_fields(void **state)
{
    static const struct {
        const char *member, *why;
    } odd[] = {
        {"\"input_dtypes\":\"float32\"", ""}, /* one type alone is one */
        {"\"input_dtypes\":7", "entries[0].input_dtypes: a value of type integer where a list of strings"},
        {"\"output_dtypes\":[7]", "entries[0].output_dtypes: a value of type array where a list of strings"},
        {"\"input_sizes\":[7]", "entries[0].input_sizes: a value of type array where a list of lists"},
        {"\"output_sizes\":\"x\"", "entries[0].output_sizes: a value of type string where a list of lists"},
        {"\"time_created_ns\":\"soon\"",
         "entries[0].time_created_ns: a value of type string where an integer"},
        {"\"time_discovered_started_ns\":{}",
         "entries[0].time_discovered_started_ns: a value of type object"},
        {"\"record_id\":true", "entries[0].record_id: a value of type boolean where an integer"},
        {"\"p2p_seq_id\":[]", "entries[0].p2p_seq_id: a value of type array where an integer"},
        {"\"is_p2p\":7", "entries[0].is_p2p: a value of type integer where a boolean"},
        {"\"profiling_name\":7", "entries[0].profiling_name: a value of type integer where a string"},
        {"\"state\":\"lost\"", "entries[0].state: \"lost\" is not scheduled, started or completed"},
        {"\"pg_id\":[]", "entries[0].pg_id: a value of type array where an integer"},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct flight *flight = flight_new();
        struct diagnosis diagnosis;
        for (uint32_t r = 0; r < 4; r++) {
            struct buf BUF_CLEANUP text = {0};
            struct error error = {0};
            buf_printf(&text,
                       "{\"pg_config\":{\"0\":{\"name\":\"0\",\"ranks\":\"[0, 1, 2, 3]\"}},\"entries\":[{");
            if (r == 1)
                buf_printf(&text, "%s,", odd[i].member);
            buf_printf(&text, "\"process_group\":[\"0\",\"\"],\"collective_seq_id\":%s}]}",
                       r == 2 ? "1,\"state\":\"completed\"" : "2");
            assert_int_equal(add_text(flight, r, text.data, &error), 0);
            if (r == 1 && !strstr(error.text, odd[i].why))
                fail_msg("\"%s\" does not say \"%s\"", error.text, odd[i].why);
        }
        flight_judge(flight, &diagnosis);
        flight_free(flight);
        assert_int_equal(diagnosis.dumped, 4);
        expect(&diagnosis, FINDING_ABSENT, "2", true);
    }
}

/* Dumps with hardly anything in them, and numbers as strings. */
static void sparse_dumps(void **state)
{
    struct flight *flight = flight_new();
    struct diagnosis diagnosis;
    struct error error = {0};
    static const char *const dumps[] = {
        "{\"entries\":[{\"pg_id\":0,\"collective_seq_id\":\"7\",\"profiling_name\":\"nccl:all_reduce\","
        "\"state\":\"started\",\"time_discovered_completed_ns\":0}]}",
        "{\"entries\":[{\"pg_id\":0,\"collective_seq_id\":7}]}",
        "{\"entries\":[{\"pg_id\":0,\"collective_seq_id\":6,\"state\":\"completed\"}],"
        "\"pg_status\":{\"0\":{\"last_enqueued_collective\":\"6\",\"last_completed_collective\":\"6\"}}}",
        "{\"entries\":[{\"pg_id\":0}],\"pg_status\":7}",
    };
    for (uint32_t r = 0; r < 4; r++)
        if (add_text(flight, r, dumps[r], &error) < 0)
            fail_msg("%s", error.text);
    flight_judge(flight, &diagnosis);
    flight_free(flight);
    expect(&diagnosis, FINDING_ABSENT, "2", true);
}

static void watchdog_lines(void **state)
{
    struct flight *flight = flight_new();
    struct diagnosis diagnosis;
    static const char log[] =
        "step 7 loss 0.3\n"
        "[rank0]:[E1 ProcessGroupNCCL.cpp:607] [PG ID 0 PG GUID 0(default_pg) Rank 0] Watchdog caught "
        "collective "
        "operation timeout: WorkNCCL(SeqNum=10, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=1800000) ran\n"
        "[rank0]:[E1] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence "
        "id: 10 "
        "PG status: last enqueued work: 12, last completed work: 9\n"
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=10, OpType=ALLREDUCE, "
        "NumelIn=1)\n"
        "[PG ID 0 PG GUID 0 Rank 2] PG status: last enqueued work: 9, last completed work: 9\n"
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=11, OpType=BROADCAST)\r\n"
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=10, OpType=ALLREDUCE)\n"
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=, OpType=\n"
        "[Rank 99999999999] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=X";
    assert_int_equal(flight_add_log(flight, str_from(log)), 6);
    flight_judge(flight, &diagnosis);
    assert_int_equal(diagnosis.logged, 4);
    expect(&diagnosis, FINDING_ABSENT, "2", true);
    flight_free(flight);
    /* With the number of ranks known, who said nothing is the one that is missing. */
    flight = flight_new();
    assert_int_equal(flight_expect(flight, 5, NULL), 0);
    for (int r = 0; r < 5; r++) {
        char line[128];
        snprintf(line, sizeof line,
                 "[Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
                 "OpType=ALLREDUCE)\n",
                 r);
        assert_int_equal(flight_add_log(flight, str_from(r == 4 ? "" : line)), r != 4);
    }
    flight_judge(flight, &diagnosis);
    flight_free(flight);
    expect(&diagnosis, FINDING_SILENT, "4", true);
}

/* A line stands in for a dump that is missing: rank 1 waits, so rank 2 is the one. */
static void log_beside_dumps(void **state)
{
    struct diagnosis diagnosis;
    struct job job = {.ranks = 4};
    reduce_all(&job, 0, 1, "completed");
    reduce(&job, 0, 0, 2, "scheduled");
    reduce(&job, 3, 0, 2, "scheduled");
    job.left_out[1] = job.left_out[2] = true;
    struct flight *flight = fly(&job);
    flight_judge(flight, &diagnosis);
    struct buf summary BUF_CLEANUP = {0};
    diagnosis_summary(&summary, &diagnosis);
    assert_string_equal(summary.data,
                        "The rank that made the job hang is one of 1 and 2: the records do not say which.");
    expect(&diagnosis, FINDING_UNDECIDED, "1, 2", false); /* each may wait for the other */
    assert_int_equal(
        flight_add_log(flight, str_from("[rank1]: [PG ID 0 PG GUID 0(all) Rank 1] Watchdog caught "
                                        "collective operation timeout: WorkNCCL(SeqNum=2, OpType=X)")),
        1);
    assert_int_equal(flight_add_log(flight, str_from("[Rank 0] Watchdog caught collective operation timeout: "
                                                     "WorkNCCL(SeqNum=1, OpType=X)")),
                     0); /* it left a dump */
    flight_judge(flight, &diagnosis);
    flight_free(flight);
    expect(&diagnosis, FINDING_SILENT, "2", true);
}

static void words(void **state)
{
    struct buf BUF_CLEANUP out = {0};
    static const uint32_t ranks[] = {0, 1, 2, 3, 9, 11, 12, 40};
    ranks_describe(&out, ranks, 8, 16);
    assert_string_equal(out.data, "0-3, 9, 11, 12, 40");
    buf_clear(&out);
    ranks_describe(&out, ranks, 8, 2);
    assert_string_equal(out.data, "0-3, 9 and 3 more");
}

/* Real dumps: in each scenario a fault was injected into ranks 9 and 14. Bits of `without` say whose dumps
 * are left out. NULL: the dumps are not here. */
static struct flight *fly_real(const char *folder, uint32_t without)
{
    struct flight *flight = flight_new();
    for (uint32_t r = 0; r < 16; r++) {
        char path[256];
        static char bytes[1 << 20];
        struct arena ARENA_CLEANUP arena = {0};
        struct error error = {0};
        struct doc *doc = NULL;
        snprintf(path, sizeof path, "../shared/data/flight-recorder/%s/_dump_%u", folder, r);
        FILE *file = without >> r & 1 ? NULL : fopen(path, "re");
        if (without >> r & 1)
            continue;
        if (!file) {
            print_message("skipped: the real dumps are not here (%s)\n", path);
            flight_free(flight);
            return NULL;
        }
        size_t len = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        if (pickle_parse(&arena, (struct str){bytes, len}, &doc, &error) < 0 ||
            flight_add_dump(flight, r, doc, &error) < 0)
            fail_msg("%s: %s", path, error.text);
    }
    return flight;
}

static const struct {
    const char *folder;
    enum finding_kind kind;
} real_scenarios[] = {{"gpu_error_2nd", FINDING_STUCK}, {"lock_gil_1st", FINDING_ABSENT}};
enum { REAL_CULPRITS = 1 << 9 | 1 << 14 };

static void real_dumps(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct flight *flight = fly_real(real_scenarios[i].folder, 0);
        struct diagnosis diagnosis;
        if (!flight)
            skip();
        flight_judge(flight, &diagnosis);
        flight_free(flight);
        assert_int_equal(diagnosis.findings.items[0].waiting_all, 13);
        expect(&diagnosis, real_scenarios[i].kind, "9, 14", true);
    }
}

/* Whichever innocent ranks leave no dump: nobody but the culprits is blamed, and both are where one is
 * missing. */
static void real_dumps_missing(void **state)
{
    size_t judged = 0, both = 0;
    for (size_t i = 0; i < 2; i++)
        for (uint32_t without = 1; without < 1 << 16; without++) {
            int count = __builtin_popcount(without);
            if (without & REAL_CULPRITS || (count > 1 && (count != 4 || without % 7)))
                continue;
            struct flight *flight = fly_real(real_scenarios[i].folder, without);
            struct diagnosis diagnosis;
            if (!flight)
                skip();
            flight_judge(flight, &diagnosis);
            flight_free(flight);
            bool innocent = false;
            for (size_t k = 0; k < diagnosis.culprits.len; k++)
                innocent = innocent || !(REAL_CULPRITS >> diagnosis.culprits.items[k] & 1);
            if (innocent || (count == 1 && diagnosis.culprits.len != 2)) {
                print(&diagnosis);
                fail_msg("%s without %#x", real_scenarios[i].folder, without);
            }
            judged++;
            both += diagnosis.culprits.len == 2;
            diagnosis_done(&diagnosis);
        }
    print_message("both culprits were named in %zu of %zu\n", both, judged);
    assert_true(both * 10 > judged * 9);
}

static void expect_text(struct flight *flight, const char *json, int code)
{
    struct error error = {0};
    assert_int_equal(flight_add_answer(flight, str_from(json), &error), code);
}

/* Agents' reports about processes explain what records do not. */
static void answers(void **state)
{
    struct diagnosis diagnosis;
    struct flight *flight = flight_new();
    expect_text(
        flight,
        "{\"ranks\":[{\"rank\":0,\"state\":\"S\",\"step\":7},{\"rank\":1,\"state\":\"R\",\"step\":7}]}", 2);
    expect_text(flight, "{\"ranks\":[{\"rank\":2,\"state\":\"D\",\"waitsIn\":\"nfs_wait\",\"step\":7}]}", 1);
    expect_text(flight, "{\"ranks\":[{\"rank\":2}]}", ERROR_EXISTS);
    expect_text(flight, "{\"ranks\":[{\"rank\":-1}]}", ERROR_INVALID);
    expect_text(flight, "{\"ranks\":[{\"rank\":3,\"state\":\"no\"}]}", ERROR_INVALID);
    expect_text(flight, "{\"ranks\":{}}", ERROR_INVALID);
    expect_text(flight, "{", ERROR_INVALID);
    flight_judge(flight, &diagnosis);
    expect(&diagnosis, FINDING_STOPPED, "2", true);
    flight_free(flight);
    flight = flight_new(); /* one of three has not made the step; of one nothing is heard */
    expect_text(flight,
                "{\"ranks\":[{\"rank\":0,\"state\":\"S\",\"step\":7,\"stepAgeMs\":9000},{\"rank\":1,"
                "\"state\":\"R\",\"step\":6,\"stepAgeMs\":9900}]}",
                2);
    expect_text(flight, "{\"ranks\":[{\"rank\":2,\"state\":\"S\",\"step\":7,\"stepAgeMs\":8000}]}", 1);
    flight_judge(flight, &diagnosis);
    expect(&diagnosis, FINDING_BEHIND, "1", true);
    flight_expect(flight, 4, NULL);
    flight_judge(flight, &diagnosis);
    expect(&diagnosis, FINDING_SILENT, "3", true);
    flight_free(flight);
}

static void ranges(void **state)
{
    static const uint32_t ranks[] = {0, 1, 2, 3, 9, 16, 24, 32, 40, 41};
    struct buf BUF_CLEANUP out = {0};
    flight_write_ranks(&out, ranks, 10);
    assert_string_equal(out.data, "[0-3, 9, 16-40/8, 41]");
    flight_write_ranks(&out, ranks, 0);
    static const char *const bad[] = {"0-", "3-1", "0-9/0", "0-9/", "0-131072", "1--2", "0-131071, 0-131071"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct flight *flight = flight_new();
        struct error error = {0};
        struct arena ARENA_CLEANUP arena = {0};
        struct doc *doc = NULL;
        struct buf BUF_CLEANUP text = {0};
        buf_printf(&text, "{\"pg_config\":{\"0\":{\"ranks\":\"[%s]\"}}}", bad[i]);
        assert_int_equal(json_parse(&arena, buf_str(&text), &doc, &error), 0);
        int code = flight_add_dump(flight, 1, doc, &error); /* 0: its members are not known, then */
        assert_true(code == 0 || code == ERROR_LIMIT);
        assert_true(str_starts(str_from(error.text), STR("rank 1: pg_config.0.ranks: ")));
        flight_free(flight);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),
        cmocka_unit_test(one_is_missing),
        cmocka_unit_test(stuck_stream),
        cmocka_unit_test(network),
        cmocka_unit_test(mismatches),
        cmocka_unit_test(exchanges),
        cmocka_unit_test(circle),
        cmocka_unit_test(pipeline),
        cmocka_unit_test(batches),
        cmocka_unit_test(batch_waits_as_a_whole),
        cmocka_unit_test(two_culprits),
        cmocka_unit_test(silent_and_innocent),
        cmocka_unit_test(refusals),
        cmocka_unit_test(sparse_dumps),
        cmocka_unit_test(odd_fields),
        cmocka_unit_test(coalesced_sizes),
        cmocka_unit_test(watchdog_lines),
        cmocka_unit_test(log_beside_dumps),
        cmocka_unit_test(words),
        cmocka_unit_test(real_dumps),
        cmocka_unit_test(real_dumps_missing),
        cmocka_unit_test(answers),
        cmocka_unit_test(ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
