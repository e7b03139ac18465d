/* Tokens of ServiceAccounts: what is signed comes back, and nothing else does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/rng.h"
#include "host/access/accounts.h"
#include "host/access/pki.h"

static char folder[] = "/tmp/phalanx-accounts-XXXXXX";

static struct account_key *open_key(const char *name)
{
    struct account_key *key;
    struct error error;
    char path[100];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (account_key_open(path, &key, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    return key;
}

static struct str audiences[] = {STR("phalanx"), STR("a \"quoted\" one")};
static const struct account_claims sample = {.namespace_ = STR("team-a"),
                                             .name = STR("robot"),
                                             .uid = 0x12345600001,
                                             .bound_kind = STR("Pod"),
                                             .bound_name = STR("train-0"),
                                             .bound_uid = 0x12345700002,
                                             .id = STR("once"),
                                             .audiences = audiences,
                                             .audience_count = 2,
                                             .from_s = 1700000000,
                                             .until_s = 1700003600};

static void what_is_signed_comes_back(void **state)
{
    struct account_key *key = open_key("a.key"), *again = open_key("a.key"), *other = open_key("b.key");
    struct arena arena ARENA_CLEANUP = {0};
    struct buf token BUF_CLEANUP = {0};
    struct account_claims back;
    struct error error;
    account_token_write(key, &sample, &token);
    assert_true(account_token_is_like(buf_str(&token)));
    assert_int_equal(account_token_read(again, &arena, buf_str(&token), &back, &error),
                     0); /* the file is kept */
    assert_true(str_equal(back.namespace_, sample.namespace_) && str_equal(back.name, sample.name) &&
                back.uid == sample.uid);
    assert_true(str_is(back.bound_kind, "Pod") && str_is(back.bound_name, "train-0") &&
                back.bound_uid == sample.bound_uid);
    assert_true(back.from_s == sample.from_s && back.until_s == sample.until_s && str_is(back.id, "once"));
    assert_int_equal(back.audience_count, 2);
    assert_true(str_equal(back.audiences[1], audiences[1]));
    assert_int_equal(account_token_read(other, &arena, buf_str(&token), &back, &error), ERROR_DENIED);
    account_key_free(key);
    account_key_free(again);
    account_key_free(other);
}

/* Any other character anywhere makes it another token. */
static void nothing_else_does(void **state)
{
    struct account_key *key = open_key("a.key");
    struct arena arena ARENA_CLEANUP = {0};
    struct buf token BUF_CLEANUP = {0};
    struct account_claims back;
    struct error error;
    account_token_write(key, &sample, &token);
    for (size_t i = 0; i < token.len; i++) {
        char was = token.data[i];
        token.data[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(account_token_read(key, &arena, buf_str(&token), &back, &error), ERROR_DENIED);
        token.data[i] = was;
        assert_int_equal(account_token_read(key, &arena, (struct str){token.data, i}, &back, &error),
                         ERROR_DENIED);
    }
    account_key_free(key);
}

/* "none" and other algorithms, and claims of others, even with a right signature over them. */
static void foreign_claims(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "not json",
        "{\"iss\":\"phalanx\"}",
        "{\"iss\":\"else\",\"aud\":[\"phalanx\"],\"exp\":9,\"nbf\":1,\"jti\":\"x\",\"kubernetes.io\":{"
        "\"namespace\":\"n\","
        "\"serviceaccount\":{\"name\":\"x\",\"uid\":\"00000000-0000-4000-8000-000000000001\"}}}",
        "{\"iss\":\"phalanx\",\"aud\":[],\"exp\":9,\"nbf\":1,\"jti\":\"x\",\"kubernetes.io\":{\"namespace\":"
        "\"n\","
        "\"serviceaccount\":{\"name\":\"x\",\"uid\":\"00000000-0000-4000-8000-000000000001\"}}}",
        "{\"iss\":\"phalanx\",\"aud\":[\"phalanx\"],\"kubernetes.io\":{\"namespace\":\"n\","
        "\"serviceaccount\":"
        "{\"name\":\"x\",\"uid\":\"1\"}}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct buf token BUF_CLEANUP = {0};
        struct account_claims claims;
        struct error error;
        base64url_encode(STR("{\"alg\":\"EdDSA\"}"), &token);
        buf_add_char(&token, '.');
        base64url_encode(str_from(bad[i]), &token);
        buf_add_str(&token, STR(".AAAA"));
        assert_int_equal(account_token_read(NULL, &arena, buf_str(&token), &claims, &error), ERROR_DENIED);
    }
    static const char *const none[] = {"", ".", "..", "a.b", "a.b.c.d", "secret-token-1"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(account_token_is_like(str_from(none[i])));
}

/* A key of another kind is refused by its file's name. */
static void another_key(void **state)
{
    char cert[100], path[100];
    struct account_key *key;
    struct error error;
    snprintf(cert, sizeof cert, "%s/ca.crt", folder);
    snprintf(path, sizeof path, "%s/ca.key", folder);
    assert_int_equal(pki_authority("x", cert, path, &error), 0);
    assert_int_equal(account_key_open(path, &key, &error), ERROR_INVALID);
    assert_non_null(strstr(error.text, "ca.key"));
    assert_int_equal(account_key_open(cert, &key, &error), ERROR_INVALID);
}

static pthread_barrier_t beginning;

static void *open_shared(void *context)
{
    struct account_key **key = context;
    struct error error;
    char path[100];
    snprintf(path, sizeof path, "%s/a.key", folder);
    pthread_barrier_wait(&beginning);
    if (account_key_open(path, key, &error) < 0)
        *key = NULL;
    return NULL;
}

/* Controllers that share a folder begin at the same time: one makes the key, and all have it. */
static void one_key_for_all_who_begin(void **state)
{
    enum { OPENERS = 4, ROUNDS = 50 };
    char path[100];
    snprintf(path, sizeof path, "%s/a.key", folder);
    for (int round = 0; round < ROUNDS; round++) {
        struct account_key *keys[OPENERS];
        pthread_t threads[OPENERS];
        unlink(path);
        assert_int_equal(pthread_barrier_init(&beginning, NULL, OPENERS), 0);
        for (int i = 0; i < OPENERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, open_shared, &keys[i]), 0);
        for (int i = 0; i < OPENERS; i++) {
            pthread_join(threads[i], NULL);
            assert_non_null(keys[i]);
            account_key_free(keys[i]);
        }
        pthread_barrier_destroy(&beginning);
    }
}

static int set_up(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"a.key", "b.key", "ca.crt", "ca.key"};
    char path[100];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_signed_comes_back),
        cmocka_unit_test(nothing_else_does),
        cmocka_unit_test(foreign_claims),
        cmocka_unit_test(another_key),
        cmocka_unit_test(one_key_for_all_who_begin),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
