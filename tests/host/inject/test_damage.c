/* Bits that are flipped, and disks that are full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/inject/inject.h"

enum { SIZE = 4096, HEADER = 64 };

static void bits_flip_behind_the_header(void **state)
{
    char path[] = "/tmp/phalanx-damage-XXXXXX";
    static unsigned char before[SIZE], after[SIZE];
    struct rng rng;
    struct error error;
    rng_seed(&rng, 1);
    for (int i = 0; i < SIZE; i++)
        before[i] = (unsigned char)i;
    int fd = mkstemp(path), bits = 0;
    assert_int_equal(write(fd, before, SIZE), SIZE);
    assert_int_equal(inject_flip(path, HEADER, 5, &rng, &error), 0);
    assert_int_equal(pread(fd, after, SIZE, 0), SIZE);
    assert_memory_equal(before, after, HEADER);
    for (int i = 0; i < SIZE; i++)
        bits += __builtin_popcount(before[i] ^ after[i]);
    assert_int_equal(bits, 5);
    assert_true(inject_flip(path, SIZE, 1, &rng, &error) == ERROR_INVALID);
    close(fd);
    unlink(path);
    assert_true(inject_flip(path, 0, 1, &rng, &error) == ERROR_IO);
}

static void a_large_disk_is_left_alone(void **state)
{
    char folder[] = "/tmp/phalanx-fill-XXXXXX", path[64];
    struct error error;
    uint64_t bytes;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ballast", folder);
    assert_int_equal(inject_fill(path, 0, &bytes, &error), ERROR_LIMIT);
    assert_int_equal(access(path, F_OK), -1);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_flip_behind_the_header),
        cmocka_unit_test(a_large_disk_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
