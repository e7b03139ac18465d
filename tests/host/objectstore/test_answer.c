/* Answers of servers, addresses of stores, files of credentials. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/units.h"
#include "host/objectstore/answer.h"
#include "host/objectstore/secrets.h"

static void test_list(void **unused)
{
    struct arena arena = {0};
    struct object_list list = {0};
    struct answer_page page;
    assert_true(answer_list(
        STR("<?xml version=\"1.0\"?>\n<s3:ListBucketResult xmlns:s3='x'><IsTruncated>true</IsTruncated>"
            "<NextContinuationToken>a&amp;b</NextContinuationToken><Prefix>p</Prefix>"
            "<Contents><Key>p/&lt;1&gt;&#x20AC;&#65;</Key><Size>12</Size><Owner><ID>z</ID></Owner></Contents>"
            "<Contents>\n<Key>p/2</Key><ETag/></Contents></s3:ListBucketResult>"),
        &arena, &list, &page));
    assert_true(page.truncated && str_is(page.next_token, "a&b"));
    assert_int_equal(list.entries.len, 2);
    assert_true(str_is(list.entries.items[0].key, "p/<1>\xe2\x82\xac"
                                                  "A"));
    assert_int_equal(list.entries.items[0].bytes, 12);
    assert_true(str_is(list.entries.items[1].key, "p/2"));
    vec_clear(&list.entries);
    assert_true(answer_list(STR("<R><Upload><Key>k</Key><UploadId>u+1</UploadId>"
                                "<Initiated>2020-01-02T00:00:00.000Z</Initiated></Upload>"
                                "<NextKeyMarker>k</NextKeyMarker></R>"),
                            &arena, &list, &page));
    assert_true(str_is(list.entries.items[0].upload, "u+1") && list.entries.items[0].begun_ns > 0);
    assert_true(str_is(page.next_key, "k") && !page.truncated);
    vec_done(&list.entries);
    arena_done(&arena);
}

static void test_damaged(void **unused)
{
    static const char *const wrong[] = {"<a>",
                                        "<a></b>",
                                        "</a>",
                                        "<a><b></a></b>",
                                        "<a>&nothing;</a>",
                                        "<a>&#0;</a>",
                                        "<a>&#x110000;</a>",
                                        "<a>& </a>",
                                        "<a><",
                                        "<>",
                                        "<R><Contents><Size>1</Size></Contents></R>",
                                        "<R><Contents><Key>k</Key><Size>-1</Size></Contents></R>",
                                        "<1><2><3><4><5><6><7><8><9><a><b><c><d><e><f><g><h>"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct arena arena = {0};
        struct object_list list = {0};
        struct answer_page page;
        if (answer_list(str_from(wrong[i]), &arena, &list, &page))
            fail_msg("taken: %s", wrong[i]);
        vec_done(&list.entries);
        arena_done(&arena);
    }
}

static void test_errors(void **unused)
{
    struct answer_error error;
    char id[STORE_ID_MAX];
    answer_error(STR("<Error><Code>SlowDown</Code><Message>a\nb</Message></Error>"), &error);
    assert_string_equal(error.code, "SlowDown");
    assert_string_equal(error.message, "a?b");
    answer_error(STR("<html>busy"), &error);
    assert_true(error.code[0] == 0 && error.message[0] == 0);
    assert_true(answer_upload_id(STR("<I><Bucket>b</Bucket><UploadId>x/1</UploadId></I>"), id));
    assert_string_equal(id, "x/1");
    assert_false(answer_upload_id(STR("<I><UploadId></UploadId></I>"), id));
}

static void test_places(void **unused)
{
    struct store_place place;
    struct error error;
    assert_int_equal(store_place_parse("s3://my-bucket/a/b/", &place, &error), 0);
    assert_string_equal(place.bucket, "my-bucket");
    assert_string_equal(place.prefix, "a/b/");
    assert_true(!place.in_path && !place.folder && place.part_bytes == 16 << 20 && place.parallel == 4);
    assert_int_equal(
        store_place_parse("s3://bbb?endpoint=http%3A%2F%2Fhost%3A9000/&region=r&part=64Mi&rate=1G&"
                          "parallel=8&patience=10s&style=host&credentials=/etc/x",
                          &place, &error),
        0);
    assert_string_equal(place.endpoint, "http://host:9000");
    assert_true(!place.in_path && place.part_bytes == 64 << 20 && place.rate_bytes == 1000000000 &&
                place.parallel == 8 && place.patience_ns == 10 * NS_PER_SECOND && place.prefix[0] == 0);
    assert_int_equal(store_place_parse("file:///mnt/a%20b", &place, &error), 0);
    assert_true(place.folder);
    assert_string_equal(place.bucket, "/mnt/a b");
    static const char *const wrong[] = {"/plain",
                                        "s3://",
                                        "s3://A",
                                        "s3://bbb?x=1",
                                        "s3://bbb?part=1",
                                        "s3://bbb?parallel=0",
                                        "s3://bbb?endpoint=host",
                                        "s3://bbb?endpoint=http://user@host",
                                        "s3://bbb?rate",
                                        "file://relative",
                                        "s3://bbb/%zz",
                                        "s3://bbb/%00",
                                        "s3://bbb?endpoint=http://h/path"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (store_place_parse(wrong[i], &place, &error) == 0)
            fail_msg("taken: %s", wrong[i]);
}

static void test_secrets(void **unused)
{
    struct store_secrets secrets;
    struct str text = STR("# mine\n[default]\naws_access_key_id = AK\r\naws_secret_access_key=S/K+=\n\n"
                          "[other]\naws_access_key_id=AK2\naws_secret_access_key=SK2\naws_session_token=T\n"
                          "region = x\n[half]\naws_access_key_id=AK3\n");
    assert_true(secrets_read(text, "default", &secrets));
    assert_string_equal(secrets.access_key, "AK");
    assert_string_equal(secrets.secret_key, "S/K+=");
    assert_true(secrets.token[0] == 0);
    assert_true(secrets_read(text, "other", &secrets));
    assert_string_equal(secrets.token, "T");
    assert_false(secrets_read(text, "half", &secrets));
    assert_false(secrets_read(text, "none", &secrets));
    assert_false(secrets_read(STR("[default]\naws_access_key_id=a b\naws_secret_access_key=c\n"), "default",
                              &secrets));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),   cmocka_unit_test(test_damaged), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_places), cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
