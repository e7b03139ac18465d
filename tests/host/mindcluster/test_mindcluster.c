/* MindCluster's objects: what theirs look like, what comes back of ours, and what is refused of theirs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "doc/json.h"
#include "base/rng.h"
#include "core/health/table.h"
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

/* MindCluster's device plugin reports one device. */
#define DEVICES(codes)                                                                                       \
    "{\"metadata\":{\"name\":\"mindx-dl-deviceinfo-m-1\"},\"data\":{\"DeviceInfoCfg\":\"{"                   \
    "\\\"DeviceInfo\\\":{"                                                                                   \
    "\\\"DeviceList\\\":{\\\"huawei.com/"                                                                    \
    "Ascend910-Fault\\\":\\\"[{\\\\\\\"npu_name\\\\\\\":\\\\\\\"Ascend910-1"                                 \
    "\\\\\\\",\\\\\\\"fault_code\\\\\\\":\\\\\\\"" codes "\\\\\\\"}]\\\"}}}\"}}"

static void refused(void **state)
{
    static const char *const bad[][2] = {
        {"{}", "expected a public-fault message"},
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
        {DEVICES("81078603,x/"), "\"x/\" is not a fault code"}, /* no name behind its family, and no family */
        {DEVICES("/79"), "\"/79\" is not a fault code"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct doc *faults;
        struct error error = {0};
        assert_true(mindcluster_import(&arena, text(bad[i][0]), &faults, &error) < 0);
        if (!strstr(error.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], error.text);
    }
}

/* --- reset.json in -------------------------------------------------------------------------------------- */

/* Faults as the API has them once they were made: open, with the level of their code; those that recover
 * close the one that they name. */
static struct doc *served(const struct doc *there, const struct doc *made)
{
    struct doc *all = doc_clone(&arena, there);
    struct fault_table *table = fault_table_new(NULL);
    for (size_t i = 0; i < doc_len(made); i++) {
        struct doc *fault = doc_clone(&arena, doc_at(made, i)), *status = doc_new(&arena, DOC_OBJECT);
        const struct doc *spec = doc_get(fault, "spec");
        if (is(doc_get(spec, "assertion"), "recover")) {
            for (size_t k = 0; k < doc_len(all); k++)
                if (doc_equal(doc_path(doc_at(all, k), "spec", "place", NULL), doc_get(spec, "place")))
                    doc_set(&arena, doc_get(doc_at(all, k), "status"), STR("state"),
                            doc_new_str(&arena, STR("Closed")));
            continue;
        }
        const struct fault_rule *rule =
            fault_table_rule(table, doc_str(doc_get(spec, "code"), STR("")), SEVERITY_NOTICE);
        doc_set(&arena, status, STR("state"), doc_new_str(&arena, STR("Open")));
        doc_set(&arena, status, STR("level"), doc_new_str(&arena, str_from(fault_level_names[rule->level])));
        doc_set(&arena, fault, STR("status"), status);
        doc_push(&arena, all, fault);
    }
    fault_table_free(table);
    return all;
}

static const struct doc *import_reset(const struct mindcluster_view *view, const struct doc *object)
{
    struct doc *faults = NULL;
    struct error error = {0};
    if (mindcluster_import_reset(&arena, view, STR("train"), object, &faults, &error) < 0)
        fail_msg("%s", error.text);
    return faults;
}

#define PODS_OF_FOUR                                                                                         \
    "[" POD(0, "m-1", "[0,1]", "Running") "," POD(1, "m-2", "[3,5]", "Running") "," POD(2, "m-3", "[]",      \
                                                                                        "Running") "]"

/* Whatever faults there are, the ranks and policies that go out are those that a cluster without any shows
 * after it took them in; what they said a second time makes nothing, and recovered ranks end it. */
static void resets_come_back(void **state)
{
    static const char *const machines[] = {"m-1", "m-2", "m-3"};
    struct rng rng;
    rng_seed(&rng, 4);
    for (int round = 0; round < 100; round++) {
        struct buf json BUF_CLEANUP = {0};
        buf_add_char(&json, '[');
        for (int i = 0; i < 4; i++)
            buf_printf(&json,
                       "%s{\"spec\":{\"machine\":\"%s\",\"code\":\"xid/%d\",\"chip\":%d},\"status\":{"
                       "\"state\":\"Open\",\"level\":\"%s\"}}",
                       i ? "," : "", machines[rng_below(&rng, 3)], i, (int)rng_below(&rng, 7) - 1,
                       fault_level_names[rng_below(&rng, LEVELS)]);
        buf_add_char(&json, ']');
        struct mindcluster_view view = {.faults = parse(arena_str(&arena, buf_str(&json))),
                                        .pods = text(PODS_OF_FOUR)};
        const struct doc *out = mindcluster_reset_config(&arena, &view, STR("train"));
        assert_true(str_is(mindcluster_job(out), "train") && mindcluster_kind(out) == MINDCLUSTER_RESET);
        assert_int_equal(doc_len(import_reset(&view, out)), 0); /* it is as it says already */
        view.faults = text("[]");
        const struct doc *made = import_reset(&view, out), *first = inside(out, "reset.json");
        assert_int_equal(doc_len(made), doc_len(doc_get(first, "RankList")));
        view.faults = served(view.faults, made);
        assert_int_equal(doc_len(import_reset(&view, first)), 0);
        const struct doc *again = inside(mindcluster_reset_config(&arena, &view, STR("train")), "reset.json");
        for (size_t i = 0; i < doc_len(doc_get(first, "RankList")); i++) {
            struct doc *was = doc_at(doc_get(first, "RankList"), i);
            const struct doc *now = doc_at(doc_get(again, "RankList"), i);
            assert_true(doc_equal(doc_get(was, "RankId"), doc_get(now, "RankId")) &&
                        doc_equal(doc_get(was, "Policy"), doc_get(now, "Policy")));
            doc_set(&arena, was, STR("Status"), doc_new_str(&arena, STR("recovered")));
        }
        assert_int_equal(doc_len(doc_get(first, "RankList")), doc_len(doc_get(again, "RankList")));
        view.faults = served(view.faults, import_reset(&view, first));
        again = inside(mindcluster_reset_config(&arena, &view, STR("train")), "reset.json");
        assert_int_equal(doc_len(doc_get(again, "RankList")), 0);
    }
}

#define RESET(more)       "{\"RankList\":[" more "]}"
#define ENTRY(id, policy) "{\"RankId\":" id ",\"Status\":\"unrecovered\",\"Policy\":\"" policy "\"}"

/* The Fault is at the chip of the rank's Pod, and stays one when the rank has moved since. */
static void reset_places(void **state)
{
    struct mindcluster_view view = {.pods = text(PODS_OF_FOUR)};
    const struct doc *object = text(RESET(
        ENTRY("3", "free_reset") "," ENTRY("4", "restart") "," ENTRY("0", "ignore") "," ENTRY("1", "empty")));
    const struct doc *made = import_reset(&view, object), *spec = doc_get(doc_at(made, 0), "spec");
    assert_int_equal(doc_len(made), 2);
    assert_true(is(doc_get(spec, "machine"), "m-2") && doc_int(doc_get(spec, "chip"), -1) == 5);
    assert_true(is(doc_get(spec, "code"), "reset/free-reset") &&
                is(doc_get(spec, "place"), "rank/default/train/3") &&
                is(doc_get(spec, "sender"), "clusterd"));
    assert_null(doc_path(doc_at(made, 1), "spec", "chip", NULL));
    view.faults = served(text("[]"), made);
    view.pods = text("[" POD(0, "m-4", "[0,1,2,3]", "Running") "," POD(1, "m-5", "[]", "Running") "]");
    assert_int_equal(doc_len(import_reset(&view, object)), 0);
}

static void resets_refused(void **state)
{
    static const char *const bad[][2] = {
        {"{\"RankList\":{}}", "RankList: a list"},
        {RESET("1"), "RankList[0]: an object"},
        {RESET(ENTRY("\"1\"", "reset")), "RankList[0].RankId"},
        {RESET(ENTRY("1", "reset") "," ENTRY("-1", "reset")), "RankList[1].RankId"},
        {RESET(ENTRY("1", "reset") "," ENTRY("1", "reset")), "RankList[1].RankId: the rank is listed twice"},
        {RESET(ENTRY("1", "reboot")), "RankList[0].Policy"},
        {RESET("{\"RankId\":1,\"Status\":\"bad\",\"Policy\":\"reset\"}"), "RankList[0].Status"},
        {RESET(ENTRY("1", "reset") "," ENTRY("5", "reset") "," ENTRY("77", "empty")), "5, 77"},
        {"{\"RankList\":[],\"FaultFlushing\":0}", "FaultFlushing"},
        {"{\"RankList\":[],\"UpdateTime\":\"now\"}", "UpdateTime"},
        {"{\"data\":{\"reset.json\":\"{\"}}", "data.reset.json: 1:"},
    };
    struct mindcluster_view view = {.pods = text(PODS_OF_FOUR)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct doc *faults;
        struct error error = {0};
        assert_true(mindcluster_import_reset(&arena, &view, STR("train"), text(bad[i][0]), &faults, &error) <
                    0);
        if (!strstr(error.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], error.text);
    }
}

/* --- hccl.json in --------------------------------------------------------------------------------------- */

static struct mindcluster_table read_table(const struct doc *object)
{
    struct mindcluster_table table;
    struct error error = {0};
    if (mindcluster_read_table(&arena, object, &table, &error) < 0)
        fail_msg("%s", error.text);
    return table;
}

/* A table agrees with the cluster that it was written of; a rank that moves is the one that is named. */
static void tables(void **state)
{
    struct buf lines BUF_CLEANUP = {0};
    struct mindcluster_view view = {.pods = text(PODS_OF_FOUR), .resource = "Ascend910"};
    struct mindcluster_table table = read_table(mindcluster_hccl(&arena, &view));
    assert_true(table.completed && table.count == 5);
    assert_int_equal(mindcluster_compare(&view, &table, &lines), 0);
    assert_int_equal(lines.len, 0);
    struct doc *pods = text("[" POD(0, "m-1", "[0,1]", "Running") "," POD(1, "m-2", "[3,6]", "Running") "]");
    for (size_t i = 0; i < doc_len(pods); i++) /* all have one address here: names alone decide */
        doc_unset(doc_get(doc_at(pods, i), "status"), "hostIP");
    view.pods = pods;
    assert_int_equal(mindcluster_compare(&view, &table, &lines), 2);
    assert_string_equal(lines.data,
                        "rank 3: in the table server m-2 device 5, in the cluster server m-2 device 6\n"
                        "rank 4: in the table server m-3 device 0, in the cluster nowhere\n");
}

static void job_of_a_table(void **state)
{
    struct mindcluster_view view = {.pods = text(PODS_OF_FOUR), .resource = "Ascend910"};
    struct mindcluster_table table = read_table(mindcluster_hccl(&arena, &view));
    static const char *const jobs[] = {"one", "one", "two"};
    struct doc *pods = doc_clone(&arena, view.pods);
    for (size_t i = 0; i < doc_len(pods); i++) {
        struct doc *labels =
            doc_need_object(&arena, doc_need_object(&arena, doc_at(pods, i), "metadata"), "labels");
        doc_set(&arena, labels, STR("jobset.sigs.k8s.io/jobset-name"),
                doc_new_str(&arena, str_from(jobs[i])));
    }
    assert_true(str_is(mindcluster_find_job(&table, pods), "one"));
    assert_int_equal(mindcluster_find_job(&table, text("[]")).len, 0);
}

#define DEVICE(id, rank) "{\"device_id\":\"" id "\",\"device_ip\":\"10.0.0.1\",\"rank_id\":\"" rank "\"}"
#define TABLE(count, version, devices)                                                                       \
    "{\"status\":\"completed\",\"server_count\":\"" count "\",\"version\":\"" version                        \
    "\",\"server_list\":[{\"server_id\":\"m-1\",\"device\":[" devices "]}]}"

static void tables_refused(void **state)
{
    static const char *const bad[][2] = {
        {TABLE("2", "1.0", DEVICE("0", "0")), "server_count: \"1\""},
        {TABLE("1", "1.2", DEVICE("0", "0")), "version"},
        {TABLE("1", "1.0", ""), "a completed table has devices"},
        {TABLE("1", "1.0", DEVICE("0", "0") "," DEVICE("1", "0")),
         "device[1].rank_id: rank 0 is listed twice"},
        {TABLE("1", "1.0", DEVICE("0", "0") "," DEVICE("1", "2")), "device[1].rank_id: 2, but"},
        {TABLE("1", "1.0", DEVICE("x", "0")), "server_list[0].device[0].device_id"},
        {TABLE("1", "1.0", "7"), "server_list[0].device[0].device_id"},
        {"{\"server_list\":[],\"server_count\":\"0\",\"version\":\"1.0\",\"status\":\"done\"}", "status"},
        {"{\"server_list\":[],\"server_count\":\"0\",\"version\":\"1.0\",\"status\":\"initializing\","
         "\"group_count\":\"2\"}",
         "group_count"},
        {"{\"group_list\":[]}", "group_list"},
        {"{\"data\":{\"hccl.json\":\"{\"}}", "data.hccl.json: 1:"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mindcluster_table table;
        struct error error = {0};
        const struct doc *object = text(bad[i][0]);
        assert_int_equal(mindcluster_kind(object), MINDCLUSTER_HCCL);
        assert_true(mindcluster_read_table(&arena, object, &table, &error) < 0);
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
        cmocka_unit_test(device_info),
        cmocka_unit_test(node_info),
        cmocka_unit_test(ranks),
        cmocka_unit_test(what_goes_out_comes_in),
        cmocka_unit_test(public_faults),
        cmocka_unit_test(refused),
        cmocka_unit_test(resets_come_back),
        cmocka_unit_test(reset_places),
        cmocka_unit_test(resets_refused),
        cmocka_unit_test(tables),
        cmocka_unit_test(job_of_a_table),
        cmocka_unit_test(tables_refused),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
