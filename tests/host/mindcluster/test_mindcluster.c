/* MindCluster's objects: what theirs look like, what comes back of ours, and what is refused of theirs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/rng.h"
#include "host/mindcluster/mindcluster.h"

static struct arena arena;

static struct doc *parse(struct str text)
{
    struct doc *document;
    struct error error = {0};
    if (json_parse(&arena, text, &document, &error) < 0)
        fail_msg("%s: " STR_FORMAT, error.text, STR_ARG(text));
    return document;
}

static struct doc *text(const char *json)
{
    return parse(str_from(json));
}

/* The JSON in a text of a ConfigMap's data. */
static struct doc *inside(const struct doc *map, const char *key)
{
    return parse(doc_str(doc_path(map, "data", key, NULL), STR("null")));
}

static bool is(const struct doc *node, const char *wanted)
{
    return str_is(doc_str(node, STR("")), wanted);
}

#define NODE(chips)                                                                                          \
    "{\"metadata\":{\"name\":\"m-1\"},\"status\":{\"phalanx\":{\"chips\":" #chips                            \
    ",\"isolation\":\"Quarantined\"}}}"
#define FAULT(code, chip, level)                                                                             \
    "{\"metadata\":{\"name\":\"f\",\"uid\":\"0f0e0d0c-0000-4000-8000-000000000001\"},\"spec\":{\"machine\":" \
    "\"m-1\",\"code\":\"" code "\"" chip "},\"status\":{\"state\":\"Open\",\"level\":\"" level               \
    "\",\"firstSeen\":\"2026-01-31T12:00:00.000000Z\",\"evidence\":\"raw\"}}"
#define CHIP(n) ",\"chip\":" #n

static const char faults_json[] =
    "[" FAULT("xid/79", CHIP(1), "Separate") "," FAULT("xid/63", CHIP(1), "FreeReset") "," FAULT(
        "ib/port-down", CHIP(2),
        "PreSeparate") "," FAULT("public/220001001", CHIP(0),
                                 "SubHealth") "," FAULT("ascend/81078603", CHIP(3),
                                                        "ManuallySeparate") "," FAULT("disk/failed", "",
                                                                                      "Separate") "]";

static void device_info(void **state)
{
    struct mindcluster_view view = {
        .faults = text(faults_json), .resource = "Ascend910", .now_s = 1700000000};
    const struct doc *map = mindcluster_device_info(&arena, &view, text(NODE(4)));
    assert_true(is(doc_path(map, "metadata", "name", NULL), "mindx-dl-deviceinfo-m-1"));
    assert_true(is(doc_path(map, "metadata", "namespace", NULL), "kube-system"));
    const struct doc *cfg = inside(map, "DeviceInfoCfg"),
                     *list = doc_path(cfg, "DeviceInfo", "DeviceList", NULL);
    assert_true(is(doc_get(list, "huawei.com/Ascend910"), "Ascend910-0"));
    assert_true(is(doc_get(list, "huawei.com/Ascend910-Unhealthy"), "Ascend910-1,Ascend910-3"));
    assert_true(is(doc_get(list, "huawei.com/Ascend910-NetworkUnhealthy"), "Ascend910-2"));
    assert_true(is(doc_get(list, "huawei.com/Ascend910-Recovering"), ""));
    assert_true(is(doc_path(map, "data", "ManuallySeparateNPU", NULL), "Ascend910-3"));
    assert_int_equal(doc_int(doc_path(cfg, "DeviceInfo", "UpdateTime", NULL), 0), 1700000000);
    const struct doc *entries = parse(doc_str(doc_get(list, "huawei.com/Ascend910-Fault"), STR("")));
    assert_int_equal(doc_len(entries), 4);
    const struct doc *entry = doc_at(entries, 1); /* of device 1, both codes */
    assert_true(is(doc_get(entry, "npu_name"), "Ascend910-1") &&
                is(doc_get(entry, "fault_type"), "CardUnhealthy"));
    assert_true(is(doc_get(entry, "fault_code"), "xid/79,xid/63"));
    assert_true(is(doc_get(entry, "fault_level"), "SeparateNPU"));
    const struct doc *times = doc_get(entry, "fault_time_and_level_map");
    assert_true(is(doc_path(times, "xid/63", "fault_level", NULL), "FreeRestartNPU"));
    assert_int_equal(doc_int(doc_path(times, "xid/79", "fault_time", NULL), 0), 1769860800);
    assert_true(is(doc_get(doc_at(entries, 0), "fault_type"), "PublicFault"));
    assert_true(is(doc_get(doc_at(entries, 0), "fault_code"), "220001001"));
    assert_true(is(doc_get(doc_at(entries, 2), "fault_type"), "CardNetworkUnhealthy"));
    assert_true(is(doc_get(doc_at(entries, 3), "fault_code"), "81078603"));
    /* The check code is over the text as it stands. */
    struct buf info BUF_CLEANUP = {0};
    uint8_t digest[32];
    char hex[65];
    json_write(&info, doc_get(cfg, "DeviceInfo"));
    sha256(info.data, info.len, digest);
    hex_encode(digest, sizeof digest, hex);
    assert_true(is(doc_get(cfg, "CheckCode"), hex));
}

static void node_info(void **state)
{
    struct mindcluster_view view = {
        .faults = text(faults_json), .resource = "Ascend910", .now_s = 1700000000};
    const struct doc *map = mindcluster_node_info(&arena, &view, text(NODE(4)));
    const struct doc *info = doc_get(inside(map, "NodeInfo"), "NodeInfo"),
                     *devices = doc_get(info, "FaultDevList");
    assert_true(is(doc_get(info, "NodeStatus"), "UnHealthy"));
    assert_int_equal(doc_len(devices), 1);
    assert_true(is(doc_get(doc_at(devices, 0), "DeviceType"), "Disk"));
    assert_true(is(doc_at(doc_get(doc_at(devices, 0), "FaultCode"), 0), "disk/failed"));
    assert_true(is(doc_get(doc_at(devices, 0), "FaultLevel"), "SeparateFault"));
}

#define POD(rank, node, chips, phase)                                                                        \
    "{\"spec\":{\"nodeName\":\"" node "\"},\"status\":{\"phase\":\"" phase                                   \
    "\",\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.0.0.1\",\"phalanx\":{\"rank\":" #rank ",\"chips\":" chips     \
    "}}}"

static void ranks(void **state)
{
    struct mindcluster_view view = {
        .faults = text(faults_json),
        .pods = text("[" POD(1, "m-1", "[1,2]", "Running") "," POD(0, "m-2", "[0,1]", "Running") "]"),
        .resource = "Ascend910",
        .now_s = 1700000000};
    const struct doc *table = mindcluster_hccl(&arena, &view);
    assert_true(is(doc_get(table, "status"), "completed") && is(doc_get(table, "server_count"), "2"));
    const struct doc *second = doc_at(doc_get(table, "server_list"), 1);
    assert_true(is(doc_get(second, "server_id"), "m-1"));
    assert_true(is(doc_path(doc_at(doc_get(second, "device"), 1), "rank_id", NULL), "3"));
    assert_true(is(doc_path(doc_at(doc_get(second, "device"), 1), "device_id", NULL), "2"));
    const struct doc *map = mindcluster_reset_config(&arena, &view, STR("train"));
    assert_true(is(doc_path(map, "metadata", "name", NULL), "reset-config-train"));
    const struct doc *list = doc_get(inside(map, "reset.json"), "RankList");
    assert_int_equal(doc_len(list), 2); /* ranks 2 and 3: the disk is of the whole machine */
    assert_int_equal(doc_int(doc_get(doc_at(list, 0), "RankId"), -1), 2);
    assert_true(is(doc_get(doc_at(list, 0), "Policy"), "isolate"));
    assert_true(is(doc_get(doc_at(list, 0), "ErrorCodeHex"), "4F,3F,0"));
    view.pods = text("[" POD(0, "m-3", "[]", "Pending") "]");
    assert_true(is(doc_get(mindcluster_hccl(&arena, &view), "status"), "initializing"));
    assert_int_equal(
        doc_len(doc_get(inside(mindcluster_reset_config(&arena, &view, STR("x")), "reset.json"), "RankList")),
        0);
}

static const struct doc *import(const struct doc *object)
{
    struct doc *faults = NULL;
    struct error error = {0};
    if (mindcluster_import(&arena, object, &faults, &error) < 0)
        fail_msg("%s", error.text);
    return faults;
}

/* Whatever faults a machine has, the same codes at the same devices come back. */
static void what_goes_out_comes_in(void **state)
{
    static const char *const codes[] = {"xid/79", "xid/63", "ib/port-down", "ascend/81078603", "pcie/fatal"};
    static const char *const levels[] = {"NotHandle", "SubHealth", "PreSeparate", "Separate",
                                         "ManuallySeparate"};
    struct rng rng;
    rng_seed(&rng, 11);
    for (int round = 0; round < 50; round++) {
        struct buf json BUF_CLEANUP = {0};
        bool has[5][4] = {{false}};
        buf_add_char(&json, '[');
        for (int i = 0; i < 6; i++) {
            int code = (int)rng_below(&rng, 5), chip = (int)rng_below(&rng, 4);
            has[code][chip] = true;
            buf_printf(&json,
                       "%s{\"spec\":{\"machine\":\"m-1\",\"code\":\"%s\",\"chip\":%d},\"status\":{\"state\":"
                       "\"Open\","
                       "\"level\":\"%s\",\"firstSeen\":\"2026-01-31T12:00:00Z\"}}",
                       i ? "," : "", codes[code], chip, levels[rng_below(&rng, 5)]);
        }
        buf_add_char(&json, ']');
        struct mindcluster_view view = {
            .faults = parse(arena_str(&arena, buf_str(&json))), .resource = "Ascend910B", .now_s = 1};
        const struct doc *back = import(mindcluster_device_info(&arena, &view, text(NODE(4))));
        bool came[5][4] = {{false}};
        for (size_t i = 0; i < doc_len(back); i++) {
            const struct doc *spec = doc_get(doc_at(back, i), "spec");
            assert_true(is(doc_get(spec, "machine"), "m-1") &&
                        is(doc_get(spec, "time"), "2026-01-31T12:00:00Z"));
            for (int code = 0; code < 5; code++)
                if (is(doc_get(spec, "code"), codes[code]))
                    came[code][doc_int(doc_get(spec, "chip"), 0)] = true;
        }
        assert_memory_equal(has, came, sizeof has);
    }
}

#define MESSAGE(resource, faults)                                                                            \
    "{\"id\":\"message-1\",\"timestamp\":1769860800000,\"version\":\"1.0\",\"resource\":\"" resource         \
    "\",\"faults\":[" faults "]}"
#define PUBLIC(more)                                                                                         \
    "{\"faultId\":\"fault-0001\",\"faultType\":\"NPU\",\"faultCode\":\"220001001\",\"faultTime\":"           \
    "1769860800000,"                                                                                         \
    "\"assertion\":\"occur\",\"faultLocation\":{}" more "}"
#define AT_NODE                                                                                              \
    ",\"influence\":[{\"nodeName\":\"m-1\",\"deviceIds\":[0,3]},{\"nodeName\":\"m-2\",\"deviceIds\":[]}]"

static void public_faults(void **state)
{
    const struct doc *faults =
        import(text(MESSAGE("CCAE", PUBLIC(AT_NODE ",\"description\":\"port lost\""))));
    assert_int_equal(doc_len(faults), 3);
    const struct doc *spec = doc_get(doc_at(faults, 1), "spec");
    assert_true(is(doc_get(spec, "machine"), "m-1") && is(doc_get(spec, "code"), "public/220001001"));
    assert_true(is(doc_get(spec, "place"), "fault-0001/3") && doc_int(doc_get(spec, "chip"), -1) == 3);
    assert_true(is(doc_get(spec, "sender"), "CCAE") && is(doc_get(spec, "evidence"), "port lost"));
    assert_true(is(doc_get(spec, "time"), "2026-01-31T12:00:00Z") && is(doc_get(spec, "assertion"), "occur"));
    assert_null(doc_path(doc_at(faults, 2), "spec", "chip", NULL));
    struct mindcluster_view view = {.faults = text(faults_json), .resource = "x", .now_s = 1769860800};
    assert_int_equal(doc_len(import(mindcluster_public_faults(&arena, &view))), 1);
}

static void refused(void **state)
{
    static const char *const bad[][2] = {
        {"{}", "is wanted"},
        {MESSAGE("", PUBLIC(AT_NODE)), "resource"},
        {"{\"id\":\"message-1\",\"version\":\"2.0\",\"resource\":\"a\",\"faults\":[{}]}", "version"},
        {"{\"id\":\"m\",\"version\":\"1.0\",\"resource\":\"a\",\"faults\":[{}]}", "id:"},
        {MESSAGE("CCAE", "{}"), "faults[0].faultId"},
        {MESSAGE("CCAE", PUBLIC("")), "faults[0].influence"},
        {MESSAGE("CCAE", PUBLIC(",\"influence\":[{\"nodeSN\":\"s\"}]")), "serial numbers"},
        {MESSAGE("CCAE", PUBLIC(",\"influence\":[{\"nodeName\":\"m\",\"deviceIds\":[-1]}]")), "deviceId"},
        {MESSAGE("CCAE", ""), "faults: 1 to 100"},
        {"{\"data\":{\"PublicFault\":\"{\"}}", "data.PublicFault: 1:"},
        {"{\"data\":{\"DeviceInfoCfg\":\"{}\"},\"metadata\":{\"name\":\"mindx-dl-deviceinfo-m\"}}",
         "DeviceList"},
        {"{\"data\":{\"NodeInfo\":\"{}\"},\"metadata\":{\"name\":\"other\"}}", "mindx-dl-nodeinfo-NODE"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct doc *faults;
        struct error error = {0};
        assert_true(mindcluster_import(&arena, text(bad[i][0]), &faults, &error) < 0);
        if (!strstr(error.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], error.text);
    }
}

static int tear_down(void **state)
{
    arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_info),   cmocka_unit_test(node_info),
        cmocka_unit_test(ranks),         cmocka_unit_test(what_goes_out_comes_in),
        cmocka_unit_test(public_faults), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
