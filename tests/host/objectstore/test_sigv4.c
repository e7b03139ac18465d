/* Signatures against the examples that Amazon has published: those of the S3 reference ("Examples: Signature
 * Calculations") and get-vanilla of the aws-sig-v4-test-suite. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/check.h"
#include "host/objectstore/sigv4.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct sigv4_request example = {
    .method = "GET",
    .path = STR("/"),
    .payload = EMPTY,
    .date = "20130524T000000Z",
    .region = "us-east-1",
    .service = "s3",
    .access_key = "AKIAIOSFODNN7EXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

static void check_signature(const struct sigv4_request *request, const char *names, const char *signature)
{
    struct buf header = {0}, wanted = {0};
    sigv4_authorization(&header, request);
    buf_printf(&wanted,
               "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request,SignedHeaders=%s,Signature=%s",
               request->access_key, request->date, request->region, request->service, names, signature);
    assert_string_equal(header.data, wanted.data);
    buf_done(&header);
    buf_done(&wanted);
}

static void test_get_a_part(void **unused)
{
    static const struct sigv4_pair headers[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                                {"range", "bytes=0-9"},
                                                {"x-amz-content-sha256", EMPTY},
                                                {"x-amz-date", "20130524T000000Z"}};
    struct sigv4_request request = example;
    request.path = STR("/test.txt");
    request.headers = headers;
    request.header_count = 4;
    check_signature(&request, "host;range;x-amz-content-sha256;x-amz-date",
                    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void test_put(void **unused)
{
    char hash[SIGV4_HEX_SIZE];
    struct buf path = {0};
    sigv4_hash(STR("Welcome to Amazon S3."), hash);
    assert_string_equal(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    const struct sigv4_pair headers[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                         {"host", "examplebucket.s3.amazonaws.com"},
                                         {"x-amz-content-sha256", hash},
                                         {"x-amz-date", "20130524T000000Z"},
                                         {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    struct sigv4_request request = example;
    sigv4_encode(&path, STR("/test$file.text"), true);
    request.method = "PUT";
    request.path = buf_str(&path);
    request.payload = hash;
    request.headers = headers;
    request.header_count = 5;
    check_signature(&request, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    buf_done(&path);
}

static void test_query(void **unused)
{
    static const struct sigv4_pair headers[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                                {"x-amz-content-sha256", EMPTY},
                                                {"x-amz-date", "20130524T000000Z"}};
    static const struct sigv4_pair lifecycle[] = {{"lifecycle", ""}},
                                   list[] = {{"max-keys", "2"}, {"prefix", "J"}};
    struct sigv4_request request = example;
    request.headers = headers;
    request.header_count = 3;
    request.query = lifecycle;
    request.query_count = 1;
    check_signature(&request, "host;x-amz-content-sha256;x-amz-date",
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    request.query = list;
    request.query_count = 2;
    check_signature(&request, "host;x-amz-content-sha256;x-amz-date",
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_vanilla(void **unused)
{
    static const struct sigv4_pair headers[] = {{"host", "example.amazonaws.com"},
                                                {"x-amz-date", "20150830T123600Z"}};
    struct sigv4_request request = example;
    request.date = "20150830T123600Z";
    request.service = "service";
    request.access_key = "AKIDEXAMPLE";
    request.secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    request.headers = headers;
    request.header_count = 2;
    check_signature(&request, "host;x-amz-date",
                    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

static void test_encoding(void **unused)
{
    struct buf out = {0};
    sigv4_encode(&out, STR("a/b c~d-e_f.g\xc3\xa9+"), true);
    assert_string_equal(out.data, "a/b%20c~d-e_f.g%C3%A9%2B");
    buf_clear(&out);
    static const struct sigv4_pair query[] = {{"prefix", "a/b&c="}, {"uploads", ""}};
    sigv4_query(&out, query, 2);
    assert_string_equal(out.data, "prefix=a%2Fb%26c%3D&uploads=");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get_a_part), cmocka_unit_test(test_put),      cmocka_unit_test(test_query),
        cmocka_unit_test(test_vanilla),    cmocka_unit_test(test_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
