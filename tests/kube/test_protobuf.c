/* Bodies as kubectl 1.32 sends them, and what is no such body. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "doc/json.h"
#include "kube/protobuf.h"

/* --- an encoder, to write bodies by hand ------------------------------------------------------- */

static void put_varint(struct buf *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        buf_add_char(out, (char)(value | 0x80));
    buf_add_char(out, (char)value);
}

static void put_number(struct buf *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_bytes(struct buf *out, unsigned field, struct str bytes)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len);
    buf_add_str(out, bytes);
}

/* Closes `child` into `out`. */
static void put_child(struct buf *out, unsigned field, struct buf *child)
{
    put_bytes(out, field, buf_str(child));
    buf_done(child);
}

static void put_pair(struct buf *out, unsigned field, const char *key, const char *value)
{
    struct buf entry = {0};
    put_bytes(&entry, 1, str_from(key));
    put_bytes(&entry, 2, str_from(value));
    put_child(out, field, &entry);
}

static void put_metadata(struct buf *out, const char *name)
{
    struct buf metadata = {0}, time = {0};
    put_bytes(&metadata, 1, str_from(name));
    put_bytes(&metadata, 2, STR(""));
    put_bytes(&metadata, 3, STR("ns"));
    put_number(&metadata, 7, 0);
    put_child(&metadata, 8, &time);
    put_pair(&metadata, 11, "team", "a");
    put_child(out, 1, &metadata);
}

static struct buf envelope(const char *version, const char *kind, struct buf *raw)
{
    struct buf body = {0}, type = {0};
    buf_add(&body, "k8s\0", 4);
    put_bytes(&type, 1, str_from(version));
    put_bytes(&type, 2, str_from(kind));
    put_child(&body, 1, &type);
    put_child(&body, 2, raw);
    put_bytes(&body, 3, STR(""));
    put_bytes(&body, 4, STR(""));
    return body;
}

static void expect(struct buf *body, bool options, const char *wanted)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *found, *doc;
    struct buf text BUF_CLEANUP = {0};
    assert_int_equal(protobuf_read(&arena, buf_str(body), options, &found, &error), 0);
    assert_int_equal(json_parse(&arena, str_from(wanted), &doc, &error), 0);
    json_write(&text, found);
    if (!doc_equal(found, doc))
        fail_msg("%s\nwanted %s", text.data, wanted);
    /* Every shorter body is another object or none; it must only not break anything. */
    for (size_t len = 0; len < body->len; len++)
        (void)protobuf_read(&arena, (struct str){body->data, len}, options, &doc, &error);
    buf_done(body);
}

static void test_measured_namespace(void **state)
{
    /* As captured from kubectl 1.32 `create namespace teamx`. */
    static const char body[] =
        "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1d\x0a\x15\x0a\x05teamx\x12\0\x1a\0\"\0*"
        "\0002\0008\0B\0\x12\0\x1a\x02\x0a\0\x1a\0\"\0";
    struct buf copy = {0};
    buf_add(&copy, body, sizeof body - 1);
    expect(&copy, false, "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"teamx\"}}");
}

static void test_config(void **state)
{
    struct buf raw = {0};
    put_metadata(&raw, "c");
    put_pair(&raw, 2, "a", "x");
    put_pair(&raw, 2, "b", "");
    put_pair(&raw, 3, "bin", "\xff\x01");
    struct buf body = envelope("v1", "ConfigMap", &raw);
    expect(
        &body, false,
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\","
        "\"labels\":{\"team\":\"a\"}},\"data\":{\"a\":\"x\",\"b\":\"\"},\"binaryData\":{\"bin\":\"/wE=\"}}");
    put_metadata(&raw, "s");
    put_pair(&raw, 2, "key", "secret");
    put_bytes(&raw, 3, STR("Opaque"));
    body = envelope("v1", "Secret", &raw);
    expect(&body, false,
           "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"namespace\":\"ns\","
           "\"labels\":{\"team\":\"a\"}},\"data\":{\"key\":\"c2VjcmV0\"},\"type\":\"Opaque\"}");
}

static void test_job(void **state)
{
    struct buf raw = {0}, spec = {0}, template = {0}, pod = {0}, container = {0}, resources = {0},
               limit = {0}, quantity = {0};
    put_metadata(&raw, "j");
    put_bytes(&container, 1, STR("c"));
    put_bytes(&container, 2, STR("busybox"));
    put_bytes(&container, 3, STR("sleep"));
    put_bytes(&container, 3, STR("10"));
    put_bytes(&container, 5, STR(""));
    put_bytes(&quantity, 1, STR("4"));
    put_bytes(&limit, 1, STR("google.com/tpu"));
    put_child(&limit, 2, &quantity);
    put_child(&resources, 1, &limit);
    put_child(&container, 8, &resources);
    put_number(&container, 16, 0);
    put_child(&pod, 2, &container);
    put_bytes(&pod, 3, STR("Never"));
    put_number(&pod, 11, 0);
    put_bytes(&template, 1, STR(""));
    put_child(&template, 2, &pod);
    put_number(&spec, 1, 3);
    put_child(&spec, 6, &template);
    put_number(&spec, 7, 0);
    put_child(&raw, 2, &spec);
    struct buf body = envelope("batch/v1", "Job", &raw);
    expect(&body, false,
           "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\","
           "\"labels\":{\"team\":\"a\"}},\"spec\":{\"parallelism\":3,\"template\":{\"spec\":{\"containers\":["
           "{\"name\":\"c\",\"image\":\"busybox\",\"command\":[\"sleep\",\"10\"],\"resources\":{\"limits\":{"
           "\"google.com/tpu\":\"4\"}}}],\"restartPolicy\":\"Never\"}},\"backoffLimit\":0}}");
}

static void test_service(void **state)
{
    struct buf raw = {0}, spec = {0}, port = {0}, target = {0};
    put_metadata(&raw, "s");
    put_number(&port, 3, 80);
    put_number(&target, 1, 1);
    put_number(&target, 2, 0);
    put_bytes(&target, 3, STR("http"));
    put_child(&port, 4, &target);
    put_child(&spec, 1, &port);
    put_bytes(&spec, 3, STR("None"));
    put_child(&raw, 2, &spec);
    struct buf body = envelope("v1", "Service", &raw);
    expect(&body, false,
           "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"s\",\"namespace\":\"ns\","
           "\"labels\":{\"team\":\"a\"}},\"spec\":{\"ports\":[{\"port\":80,\"targetPort\":\"http\"}],"
           "\"clusterIP\":\"None\"}}");
}

static void test_options(void **state)
{
    struct buf raw = {0}, conditions = {0};
    put_number(&raw, 1, 0);
    put_bytes(&conditions, 1, STR("u"));
    put_child(&raw, 2, &conditions);
    put_bytes(&raw, 4, STR("Background"));
    put_bytes(&raw, 5, STR("All"));
    struct buf body = envelope("policy/v1", "DeleteOptions", &raw);
    expect(&body, true,
           "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"gracePeriodSeconds\":0,\"preconditions\":{"
           "\"uid\":\"u\"},\"propagationPolicy\":\"Background\",\"dryRun\":[\"All\"]}");
}

static void test_refused(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *doc;
    struct buf raw = {0};
    put_metadata(&raw, "x");
    struct buf body = envelope("example.com/v1", "Thing", &raw);
    assert_int_equal(protobuf_read(&arena, buf_str(&body), false, &doc, &error), ERROR_UNSUPPORTED);
    buf_done(&body);
    put_metadata(&raw, "x");
    put_pair(&raw, 2, "a", "1");
    put_pair(&raw, 2, "a", "2");
    body = envelope("v1", "ConfigMap", &raw);
    assert_int_equal(protobuf_read(&arena, buf_str(&body), false, &doc, &error), ERROR_INVALID);
    buf_done(&body);
    put_metadata(&raw, "\xff");
    body = envelope("v1", "ConfigMap", &raw);
    assert_int_equal(protobuf_read(&arena, buf_str(&body), false, &doc, &error), ERROR_INVALID);
    buf_done(&body);
    assert_int_equal(protobuf_read(&arena, STR("{}"), false, &doc, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_namespace),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_job),
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
