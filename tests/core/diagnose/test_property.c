/* Faults at random places of random jobs: the blame falls on exactly the rank that has it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/diagnose/sim.h"

static struct sim *sim_random(uint64_t seed)
{
    static const uint32_t widths[] = {1, 2, 4};
    struct sim *sim = mem_alloc(sizeof *sim);
    rng_seed(&sim->rng, seed);
    uint32_t tp = widths[rng_below(&sim->rng, 3)], pp = widths[rng_below(&sim->rng, 3)], dp = 1;
    while (tp * pp * dp < 4)
        dp *= 2;
    if (tp * pp * dp <= 16)
        dp *= widths[rng_below(&sim->rng, 3)];
    sim->sends_overtake = rng_chance(&sim->rng, 300000);
    sim->timing = rng_chance(&sim->rng, 500000);
    sim->status = rng_chance(&sim->rng, 700000);
    /* Where pg_status is absent, only finished operations say that something was finished. */
    sim->only_open = rng_chance(&sim->rng, 500000) && sim->status;
    sim->wide_pipeline = rng_chance(&sim->rng, 300000);
    sim->batched = rng_chance(&sim->rng, 300000);
    sim->kept = sim->status ? 1 + rng_below(&sim->rng, 100) : SIM_OPS_MAX;
    sim_schedule(sim, tp, pp, dp, 2 + (uint32_t)rng_below(&sim->rng, 3));
    sim_programs(sim);
    return sim;
}

/* A rank with operations, and one of them. */
static uint32_t give_fault(struct sim *sim, enum sim_fault fault)
{
    for (;;) {
        struct sim_rank *rank = &sim->rank[rng_below(&sim->rng, sim->ranks)];
        if (!rank->calls.len || rank->fault != SIM_WELL)
            continue;
        rank->at = rng_below(&sim->rng, rank->calls.len);
        if (rank->at > 0 && rank->calls.items[rank->at].batch &&
            rank->calls.items[rank->at].batch == rank->calls.items[rank->at - 1].batch)
            rank->at--; /* parts of a batch are called together */
        rank->fault = fault;
        return (uint32_t)(rank - sim->rank);
    }
}

static void judge(struct sim *sim, struct diagnosis *ret_diagnosis)
{
    struct flight *flight = flight_new();
    struct buf BUF_CLEANUP text = {0};
    struct error error = {0};
    for (uint32_t i = 0; i < sim->ranks; i++) {
        uint32_t r = (i * 7 + 3) % sim->ranks; /* in some other order */
        if (sim->ranks % 7 == 0)
            r = i;
        struct arena ARENA_CLEANUP arena = {0};
        struct doc *doc = NULL;
        if (sim->rank[r].fault == SIM_DIES && sim_manifest(sim, r))
            continue;
        sim_dump(sim, &text, r);
        if (json_parse(&arena, buf_str(&text), &doc, &error) < 0 ||
            flight_add_dump(flight, r, doc, &error) < 0)
            fail_msg("%s in %s", error.text, text.data);
    }
    flight_judge(flight, ret_diagnosis);
    flight_free(flight);
}

/* The same from summaries of at most so many bytes, as agents send them. */
static void judge_summaries(struct sim *sim, size_t bytes_max, struct diagnosis *ret_diagnosis)
{
    struct flight *flight = flight_new();
    struct buf BUF_CLEANUP text = {0}, answer = {0};
    struct error error = {0};
    for (uint32_t r = 0; r < sim->ranks; r++) {
        if (sim->rank[r].fault == SIM_DIES && sim_manifest(sim, r))
            continue;
        struct arena ARENA_CLEANUP arena = {0};
        struct flight *own = flight_new();
        struct doc *doc = NULL;
        sim_dump(sim, &text, r);
        assert_int_equal(json_parse(&arena, buf_str(&text), &doc, &error), 0);
        assert_int_equal(flight_add_dump(own, r, doc, &error), 0);
        buf_clear(&answer);
        buf_printf(&answer, "{\"ranks\":[{\"rank\":%u,\"state\":\"S\",\"flight\":", r);
        size_t len = flight_summarise(own, r, bytes_max, &answer);
        assert_true(len <= bytes_max);
        buf_printf(&answer, "}]}");
        if (flight_add_answer(flight, buf_str(&answer), &error) != 1)
            fail_msg("%s in %s", error.text, answer.data);
        flight_free(own);
    }
    flight_expect(flight, sim->ranks, NULL);
    flight_judge(flight, ret_diagnosis);
    flight_free(flight);
}

static void print_sim(const struct sim *sim, uint64_t seed)
{
    print_message(
        "seed %llu: %u ranks, sends overtake %d, timing %d, status %d, only open %d, wide %d, batched %d\n",
        (unsigned long long)seed, sim->ranks, sim->sends_overtake, sim->timing, sim->status, sim->only_open,
        sim->wide_pipeline, sim->batched);
    for (uint32_t r = 0; r < sim->ranks; r++)
        if (sim->rank[r].fault)
            print_message("  rank %u: fault %d at %zu of %zu, called %zu, manifest %d\n", r,
                          sim->rank[r].fault, sim->rank[r].at, sim->rank[r].calls.len, sim->rank[r].called,
                          sim_manifest(sim, r));
}

static void show(const struct sim *sim, uint64_t seed, const struct diagnosis *diagnosis)
{
    struct buf BUF_CLEANUP out = {0};
    print_sim(sim, seed);
    diagnosis_summary(&out, diagnosis);
    for (size_t i = 0; i < diagnosis->findings.len; i++)
        buf_printf(&out, "\n  %s: " STR_FORMAT, finding_kind_name(diagnosis->findings.items[i].kind),
                   STR_ARG(diagnosis->findings.items[i].evidence));
    print_message("%s\n", out.data);
}

/* A device that hangs where all others are at the same operation shows only if the dumps say who has begun
 * it. */
static bool visible(struct sim *sim, uint32_t rank, enum sim_fault fault)
{
    if (fault != SIM_DEVICE_HANGS)
        return true;
    const struct sim_rank *at = &sim->rank[rank];
    const struct sim_op *op = &sim->ops[at->calls.items[at->at].op];
    bool all = true;
    for (uint32_t r = 0; r < sim->ranks; r++)
        all = all && (r == rank || !sim_member(sim, op, r) || sim_at(sim, r, at->calls.items[at->at].op));
    return !all || sim->timing;
}

static bool names(const struct diagnosis *diagnosis, uint32_t rank)
{
    for (size_t i = 0; i < diagnosis->findings.len; i++)
        for (size_t k = 0; k < diagnosis->findings.items[i].rank_count; k++)
            if (diagnosis->findings.items[i].ranks[k] == rank)
                return true;
    return false;
}

static bool names_only(const struct diagnosis *diagnosis, uint32_t rank)
{
    return diagnosis->culprits.len == 1 && diagnosis->culprits.items[0] == rank;
}

static void one_culprit(void **state)
{
    enum { ROUNDS = 640 };
    static const enum finding_kind kinds[] = {0, FINDING_ABSENT, FINDING_SILENT, FINDING_STUCK,
                                              FINDING_STUCK};
    size_t seen[5] = {0}, exact = 0, judged = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct sim *sim = sim_random(seed);
        enum sim_fault fault = (enum sim_fault)(1 + seed % 4);
        struct diagnosis diagnosis;
        uint32_t rank = give_fault(sim, fault);
        sim_run(sim);
        assert_true(sim_manifest(sim, rank)); /* whoever is alone cannot be held up before */
        judge(sim, &diagnosis);
        if (!visible(sim, rank, fault)) {
            sim_free(sim);
            diagnosis_done(&diagnosis);
            continue;
        }
        seen[fault]++;
        judged += diagnosis.hang;
        bool good = diagnosis.culprits.len == 1 && diagnosis.culprits.items[0] == rank;
        good = good && diagnosis.findings.len == 1 && diagnosis.findings.items[0].kind == kinds[fault];
        /* Sends in groups of more than two cannot be told apart by number, and parts of a batch show as open
         * until all of it is finished: the rank is at least among those named, and nobody else is blamed.
         * Where both come together only the latter holds. */
        bool vague = sim->wide_pipeline || (sim->batched && fault == SIM_DEVICE_ERROR);
        if (!good && vague && (diagnosis.culprits.len == 0 || names_only(&diagnosis, rank)))
            good = diagnosis.findings.len > 0 &&
                   ((sim->wide_pipeline && sim->batched) || names(&diagnosis, rank));
        exact += good && diagnosis.culprits.len == 1;
        /* No rank may need an operation that a process did not call, or that its last one left open. */
        if (!diagnosis.hang)
            good = fault != SIM_DEVICE_ERROR && fault != SIM_DEVICE_HANGS;
        if (!good) {
            show(sim, seed, &diagnosis);
            fail();
        }
        diagnosis_done(&diagnosis);
        sim_free(sim);
    }
    print_message("the one culprit was named alone in %zu of %zu hangs\n", exact, judged);
    assert_true(exact * 100 > judged * 95);
    for (int i = 1; i < 5; i++)
        assert_true(seen[i] > ROUNDS / 16);
}

/* The first of several faults may hide the others, but no innocent rank is ever blamed. */
static void several_culprits(void **state)
{
    size_t all = 0, rounds = 0;
    for (uint64_t seed = 100001; seed <= 100320; seed++) {
        struct sim *sim = sim_random(seed);
        struct diagnosis diagnosis;
        size_t count = 2 + seed % 2, manifest = 0;
        for (size_t i = 0; i < count; i++)
            give_fault(sim, i == 0 ? SIM_PROCESS_STOPS : (enum sim_fault)(1 + rng_below(&sim->rng, 3)));
        sim_run(sim);
        judge(sim, &diagnosis);
        bool good = diagnosis.findings.len > 0 || !diagnosis.hang;
        for (size_t i = 0; i < diagnosis.culprits.len; i++)
            good = good && sim_manifest(sim, diagnosis.culprits.items[i]);
        for (size_t i = 0; i < diagnosis.findings.len; i++)
            good = good &&
                   (diagnosis.findings.items[i].kind <= FINDING_SILENT ||
                    diagnosis.findings.items[i].kind == FINDING_UNDECIDED || sim->wide_pipeline ||
                    sim->batched);
        if (!good) {
            show(sim, seed, &diagnosis);
            fail();
        }
        for (uint32_t r = 0; r < sim->ranks; r++)
            manifest += sim_manifest(sim, r);
        rounds++;
        all += diagnosis.culprits.len == manifest;
        diagnosis_done(&diagnosis);
        sim_free(sim);
    }
    print_message("all of several culprits were named in %zu of %zu\n", all, rounds);
    assert_true(all > rounds / 2);
}

static void healthy(void **state)
{
    for (uint64_t seed = 1; seed <= 80; seed++) {
        struct sim *sim = sim_random(seed);
        struct diagnosis diagnosis;
        sim_run(sim);
        assert_true(sim_done(sim));
        judge(sim, &diagnosis);
        if (diagnosis.hang || diagnosis.findings.len) {
            show(sim, seed, &diagnosis);
            fail();
        }
        diagnosis_done(&diagnosis);
        sim_free(sim);
    }
}

/* A case that was judged once can be judged again, and records can be added: nothing depends on what was
 * found before. */
static void again(void **state)
{
    for (uint64_t seed = 1; seed <= 80; seed++) {
        struct sim *sim = sim_random(seed);
        struct flight *flight = flight_new();
        struct buf BUF_CLEANUP text = {0}, first = {0}, second = {0};
        struct diagnosis diagnosis;
        give_fault(sim, SIM_PROCESS_STOPS);
        sim_run(sim);
        for (uint32_t r = 0; r < sim->ranks; r++) {
            struct arena ARENA_CLEANUP arena = {0};
            struct doc *doc = NULL;
            sim_dump(sim, &text, r);
            assert_int_equal(json_parse(&arena, buf_str(&text), &doc, NULL), 0);
            assert_int_equal(flight_add_dump(flight, r, doc, NULL), 0);
            flight_judge(flight, &diagnosis);
            buf_clear(&first);
            diagnosis_write_json(&first, &diagnosis);
            diagnosis_done(&diagnosis);
        }
        flight_judge(flight, &diagnosis);
        diagnosis_write_json(&second, &diagnosis);
        diagnosis_done(&diagnosis);
        assert_string_equal(first.data, second.data);
        judge(sim, &diagnosis);
        buf_clear(&second);
        diagnosis_write_json(&second, &diagnosis);
        diagnosis_done(&diagnosis);
        assert_string_equal(first.data, second.data);
        flight_free(flight);
        sim_free(sim);
    }
}

static void summaries_say_the_same(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sim *sim = sim_random(seed);
        struct diagnosis whole, brief;
        give_fault(sim, (enum sim_fault)(1 + seed % 4));
        sim_run(sim);
        judge(sim, &whole);
        judge_summaries(sim, 16 * 1024, &brief);
        bool same = whole.culprits.len == brief.culprits.len && whole.findings.len == brief.findings.len;
        for (size_t i = 0; same && i < whole.culprits.len; i++)
            same = whole.culprits.items[i] == brief.culprits.items[i];
        if (!same) {
            show(sim, seed, &whole);
            show(sim, seed, &brief);
            fail();
        }
        diagnosis_done(&whole);
        diagnosis_done(&brief);
        sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),     cmocka_unit_test(summaries_say_the_same),
        cmocka_unit_test(one_culprit), cmocka_unit_test(several_culprits),
        cmocka_unit_test(again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
