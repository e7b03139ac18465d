/* Tokens: where they are found, which files are refused, and which HELLOs they let pass. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow/wire/token.h"

#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

static char folder[] = "/tmp/phalanx-token-XXXXXX";
static char path[64], socket_address[64];

static void write_file(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void files_are_read_if_they_are_private(void **state)
{
    struct flow_token token = {0};
    struct error error;
    write_file(DIGITS "\n", 0600);
    assert_int_equal(flow_token_find(path, NULL, &token, &error), 0);
    assert_true(token.set && token.bytes[1] == 0x11 && token.bytes[31] == 0xff);
    static const struct {
        const char *text;
        mode_t mode;
    } bad[] = {{DIGITS, 0604},     {DIGITS, 0602},     {"", 0600},
               {DIGITS "0", 0600}, {"x" DIGITS, 0600}, {DIGITS " " DIGITS, 0600}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(bad[i].text, bad[i].mode);
        assert_int_equal(flow_token_find(path, NULL, &token, &error), ERROR_INVALID);
    }
    assert_int_equal(flow_token_find("/dev/zero", NULL, &token, &error), ERROR_INVALID);
    assert_int_equal(flow_token_find("/tmp/phalanx-no-token", NULL, &token, &error), ERROR_IO);
    unlink(path);
}

static void the_nearest_is_taken(void **state)
{
    struct flow_token token = {.set = true};
    struct error error;
    assert_int_equal(flow_token_find(NULL, socket_address, &token, &error), 0);
    assert_false(token.set);
    setenv("PHX_FLOW_TOKEN", "ff112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF", 1);
    assert_int_equal(flow_token_find(NULL, socket_address, &token, &error), 0);
    assert_true(token.set && token.bytes[0] == 0xff);
    assert_int_equal(flow_token_make(path, &error), 0);
    struct stat info;
    assert_true(stat(path, &info) == 0 && (info.st_mode & 07777) == 0600);
    struct flow_token beside;
    assert_int_equal(flow_token_find(NULL, socket_address, &beside, &error), 0);
    assert_memory_not_equal(beside.bytes, token.bytes, FLOW_TOKEN_BYTES);
    assert_int_equal(flow_token_find(NULL, "localhost:1", &beside, &error), 0);
    assert_memory_equal(beside.bytes, token.bytes, FLOW_TOKEN_BYTES);
    setenv("PHX_FLOW_TOKEN", "short", 1);
    assert_int_equal(flow_token_find(NULL, NULL, &token, &error), ERROR_INVALID);
    unsetenv("PHX_FLOW_TOKEN");
    setenv("PHX_FLOW_TOKEN_FILE", path, 1);
    assert_int_equal(flow_token_find(NULL, NULL, &token, &error), 0);
    assert_true(token.set);
    unsetenv("PHX_FLOW_TOKEN_FILE");
    unlink(path);
}

/* Takes a HELLO with the tail "name" and what `from` adds; returns whether `at` lets it pass. */
static bool passes(const struct flow_token *at, const struct flow_token *from)
{
    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT};
    struct buf tail BUF_CLEANUP = {0};
    buf_add_str(&tail, STR("name"));
    flow_token_sign(from, &hello, &tail);
    hello.tail_bytes = (uint32_t)tail.len;
    struct str heard = buf_str(&tail);
    if (!flow_token_take(at, &hello, &heard))
        return false;
    assert_true(str_is(heard, "name") && hello.tail_bytes == 4 && hello.flags == 0);
    return true;
}

static void only_the_head_s_token_passes(void **state)
{
    struct flow_token none = {0}, own = {.set = true, .bytes = {1}}, other = {.set = true, .bytes = {1}};
    other.bytes[31] = 1;
    assert_true(passes(&own, &own) && passes(&none, &none) && passes(&none, &own));
    assert_false(passes(&own, &other) || passes(&own, &none));
    struct flow_entry hello = {.kind = ENTRY_HELLO_CLIENT, .flags = ENTRY_HAS_TOKEN};
    struct str tail = STR("shorter than a token");
    assert_false(flow_token_take(&own, &hello, &tail));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_if_they_are_private),
        cmocka_unit_test(the_nearest_is_taken),
        cmocka_unit_test(only_the_head_s_token_passes),
    };
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/%s", folder, FLOW_TOKEN_FILE);
    snprintf(socket_address, sizeof socket_address, "unix:%s/head.sock", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
