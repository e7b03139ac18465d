/* The status of a head is read as it was written, and nothing else is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "flow/island/status.h"
#include "flow/island/trace.h"

static void fill(struct rng *rng, struct flow_status *status)
{
    size_t islands = rng_below(rng, 3), tenants = rng_below(rng, 4);
    status->now_ns = (int64_t)rng_below(rng, 1 << 30);
    status->tally.launches = rng_below(rng, 1000);
    flow_histogram_add(&status->times, (int64_t)rng_below(rng, 1 << 30));
    for (size_t i = 0; i < islands; i++) {
        struct flow_status_island island = {.tickets = rng_below(rng, 100), .window = 4};
        snprintf(island.name, sizeof island.name, "island-%zu", i);
        vec_push(&status->islands, island);
    }
    for (size_t i = 0; islands && i < rng_below(rng, 5); i++) {
        struct flow_status_host host = {.number = (uint32_t)i, .island = (uint32_t)rng_below(rng, islands)};
        host.compiled = rng_below(rng, 9);
        host.reused = rng_below(rng, 9);
        vec_push(&status->hosts, host);
        vec_push(&status->devices, ((struct flow_status_device){.host = (uint32_t)i, .used_bytes = -1}));
    }
    for (size_t i = 0; i < tenants; i++) {
        struct flow_status_tenant tenant = {.launches = rng_below(rng, 9), .device_ns = rng_next(rng)};
        tenant.suspended = (uint32_t)rng_below(rng, 3);
        snprintf(tenant.name, sizeof tenant.name, "team %zu", i);
        vec_push(&status->tenants, tenant);
        struct flow_status_client client = {
            .id = (uint32_t)i, .tenant = (uint32_t)i, .priority = -3, .away = i % 2};
        vec_push(&status->clients, client);
        vec_push(&status->programs, ((struct flow_status_program){.client = (uint32_t)i, .calls = 2}));
    }
}

static void read_as_written(void **state)
{
    struct rng rng;
    rng_seed(&rng, 1);
    for (int round = 0; round < 200; round++) {
        struct flow_status status = {0}, again = {0};
        struct buf bytes BUF_CLEANUP = {0}, same BUF_CLEANUP = {0};
        fill(&rng, &status);
        flow_status_encode(&status, &bytes);
        assert_int_equal(flow_status_decode(buf_str(&bytes), &again, NULL), 0);
        flow_status_encode(&again, &same);
        assert_true(str_equal(buf_str(&bytes), buf_str(&same)));
        for (size_t i = 0; i < again.hosts.len; i++) {
            assert_int_equal(again.hosts.items[i].compiled, status.hosts.items[i].compiled);
            assert_int_equal(again.hosts.items[i].reused, status.hosts.items[i].reused);
        }
        for (size_t i = 0; i < again.tenants.len; i++)
            assert_int_equal(again.tenants.items[i].suspended, status.tenants.items[i].suspended);
        if (again.clients.len)
            assert_int_equal(again.clients.items[0].priority, -3);
        flow_status_done(&again);
        for (size_t len = 0; len < bytes.len; len += 1 + rng_below(&rng, 7)) {
            assert_true(flow_status_decode((struct str){bytes.data, len}, &again, NULL) < 0);
            flow_status_done(&again);
        }
        buf_add_char(&bytes, 'x');
        assert_true(flow_status_decode(buf_str(&bytes), &again, NULL) < 0);
        flow_status_done(&again);
        flow_status_done(&status);
    }
}

static void places_that_name_nothing(void **state)
{
    struct flow_status status = {0}, again = {0};
    struct buf bytes BUF_CLEANUP = {0};
    struct error error;
    vec_push(&status.tenants, (struct flow_status_tenant){0});
    vec_push(&status.clients, ((struct flow_status_client){.tenant = 1}));
    flow_status_encode(&status, &bytes);
    assert_int_equal(flow_status_decode(buf_str(&bytes), &again, &error), ERROR_CORRUPT);
    flow_status_done(&again);
    vec_clear(&status.tenants);
    buf_clear(&bytes);
    flow_status_encode(&status, &bytes);
    assert_int_equal(flow_status_decode(buf_str(&bytes), &again, &error), ERROR_CORRUPT);
    flow_status_done(&again);
    bytes.data[4] = 1;
    assert_int_equal(flow_status_decode(buf_str(&bytes), &again, &error), ERROR_UNSUPPORTED);
    flow_status_done(&again);
    flow_status_done(&status);
}

static void times_in_buckets(void **state)
{
    struct flow_histogram histogram = {0};
    flow_histogram_add(&histogram, -5);
    flow_histogram_add(&histogram, flow_status_bounds[0]);
    flow_histogram_add(&histogram, flow_status_bounds[0] + 1);
    flow_histogram_add(&histogram, INT64_MAX / 2); /* above the last bound: counted, in no bucket */
    assert_int_equal(histogram.buckets[0], 2);
    assert_int_equal(histogram.buckets[1], 1);
    assert_int_equal(histogram.count, 4);
}

static void records_of_a_trace(void **state)
{
    struct trace_record records[3] = {{.kind = TRACE_RUN, .begin_ns = 5, .end_ns = 7},
                                      {.kind = TRACE_KINDS, .end_ns = 1},
                                      {.kind = TRACE_PUT, .begin_ns = 5, .end_ns = 4}},
                        read;
    struct str tail = {(const char *)records, sizeof records - 1};
    assert_int_equal(trace_count(tail), 2);
    tail.len = sizeof records;
    assert_int_equal(trace_count(tail), 3);
    assert_true(trace_at(tail, 0, &read) && read.end_ns == 7);
    assert_false(trace_at(tail, 1, &read) || trace_at(tail, 2, &read));
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0) { /* a seed of the corpus of tests/fuzz/fuzz_flow.c */
        struct flow_status status = {0};
        struct buf bytes BUF_CLEANUP = {0};
        struct rng rng;
        rng_seed(&rng, 7);
        fill(&rng, &status);
        buf_add_char(&bytes, 4);
        flow_status_encode(&status, &bytes);
        flow_status_done(&status);
        FILE *file = fopen(argv[2], "wb");
        return !file || fwrite(bytes.data, 1, bytes.len, file) != bytes.len || fclose(file) != 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_as_written),
        cmocka_unit_test(places_that_name_nothing),
        cmocka_unit_test(times_in_buckets),
        cmocka_unit_test(records_of_a_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
