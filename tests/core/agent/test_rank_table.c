/* Hosts file and rank table of a gang. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "doc/json.h"
#include "core/agent/rank_table.h"

static struct rank_table_entry entries[] = {
    {STR("work-0"), STR("127.0.0.11"), STR("m-0"), 0x3, 0},
    {STR("work-1"), STR("127.0.0.12"), STR("m-1"), 0x1, 1},
    {STR("work-2"), STR("127.0.0.11"), STR("m-0"), 0x8, 2},
    {STR("evil\n1.2.3.4 x"), STR("127.0.0.13"), STR("m-2"), 0x1, 3},
};
static const struct gang_rank_table rank_table = {STR("train"), STR("default"), entries, 4};

static void test_hosts(void **state)
{
    BUF_CLEANUP struct buf out = {0};
    rank_table_write_hosts(&out, &rank_table);
    assert_string_equal(out.data, "127.0.0.1 localhost\n"
                                  "::1 localhost ip6-localhost ip6-loopback\n"
                                  "127.0.0.11 work-0.train.default.svc.cluster.local work-0.train work-0\n"
                                  "127.0.0.12 work-1.train.default.svc.cluster.local work-1.train work-1\n"
                                  "127.0.0.11 work-2.train.default.svc.cluster.local work-2.train work-2\n");
}

static void test_rank_table(void **state)
{
    BUF_CLEANUP struct buf out = {0};
    rank_table_write_json(&out, &rank_table);
    ARENA_CLEANUP struct arena arena = {0};
    struct doc *root = NULL;
    struct error error;
    assert_int_equal(json_parse(&arena, buf_str(&out), &root, &error), 0);
    assert_true(str_is(doc_str(doc_get(root, "status"), STR("")), "completed"));
    assert_true(str_is(doc_str(doc_get(root, "version"), STR("")), "1.0"));
    assert_true(str_is(doc_str(doc_get(root, "server_count"), STR("")), "2"));
    struct doc *servers = doc_get(root, "server_list");
    assert_int_equal(doc_len(servers), 2);
    struct doc *devices = doc_get(doc_at(servers, 0), "device");
    assert_true(str_is(doc_str(doc_get(doc_at(servers, 0), "server_id"), STR("")), "127.0.0.11"));
    assert_int_equal(doc_len(devices), 3);
    const char *const ids[] = {"0", "1", "3"}, *const ranks[] = {"0", "1", "3"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(str_is(doc_str(doc_get(doc_at(devices, i), "device_id"), STR("")), ids[i]));
        assert_true(str_is(doc_str(doc_get(doc_at(devices, i), "rank_id"), STR("")), ranks[i]));
    }
    devices = doc_get(doc_at(servers, 1), "device");
    assert_true(str_is(doc_str(doc_get(doc_at(devices, 0), "rank_id"), STR("")), "2"));
}

static void test_empty(void **state)
{
    BUF_CLEANUP struct buf out = {0};
    struct gang_rank_table none = {0};
    rank_table_write_json(&out, &none);
    assert_string_equal(
        out.data, "{\"status\":\"completed\",\"version\":\"1.0\",\"server_count\":\"0\",\"server_list\":[]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_rank_table),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
