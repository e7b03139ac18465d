/* Bytes through shared memory: every one arrives once and in order, sleepers are woken, and a peer that
 * writes nonsense does no harm. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "net/ring.h"

static void *memory_new(size_t capacity)
{
    size_t size = (ring_size(capacity) + RING_LINE - 1) / RING_LINE * RING_LINE;
    void *memory = aligned_alloc(RING_LINE, size);
    assert_non_null(memory);
    memset(memory, 0, size);
    return memory;
}

static void test_moves_what_fits(void **state)
{
    void *memory = memory_new(4096);
    struct ring writer, reader;
    unsigned char data[5000], back[5000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    ring_attach(&writer, memory, 4096);
    ring_attach(&reader, memory, 4096);
    assert_true(ring_is_empty(&reader));
    assert_int_equal(ring_read(&reader, back, 1), 0);
    assert_int_equal(ring_write(&writer, data, sizeof data), 4096);
    assert_int_equal(ring_write(&writer, data, 1), 0);
    assert_int_equal(ring_read(&reader, back, 1000), 1000);
    assert_int_equal(ring_write(&writer, data + 4096, sizeof data - 4096),
                     sizeof data - 4096); /* around its end */
    assert_int_equal(ring_read(&reader, back + 1000, sizeof back), sizeof back - 1000);
    assert_memory_equal(data, back, sizeof data);
    assert_true(ring_is_empty(&reader));
    free(memory);
}

static void test_a_look_takes_nothing(void **state)
{
    void *memory = memory_new(4096);
    struct ring writer, reader;
    unsigned char data[4096], back[4096];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    ring_attach(&writer, memory, 4096);
    ring_attach(&reader, memory, 4096);
    assert_false(ring_peek(&reader, 0, back, 1));
    ring_write(&writer, data, 4000);
    ring_read(&reader, back, 4000);
    ring_write(&writer, data, 300); /* around its end */
    assert_true(ring_peek(&reader, 50, back, 250));
    assert_memory_equal(back, data + 50, 250);
    assert_false(ring_peek(&reader, 51, back, 250));
    assert_true(ring_peek(&reader, 0, back, 300));
    assert_memory_equal(back, data, 300);
    ring_drop(&reader, 299);
    assert_int_equal(ring_read(&reader, back, sizeof back), 1);
    assert_int_equal(back[0], data[299]);
    assert_int_equal(ring_write(&writer, data, sizeof data), sizeof data); /* all of it is free again */
    free(memory);
}

static void test_sleepers_are_woken(void **state)
{
    void *memory = memory_new(4096);
    struct ring writer, reader;
    unsigned char data[4096] = {0};
    ring_attach(&writer, memory, 4096);
    ring_attach(&reader, memory, 4096);
    assert_true(ring_sleep_reader(&reader));
    assert_false(ring_wake_writer(&reader));
    ring_write(&writer, data, 1);
    assert_true(ring_wake_reader(&writer));
    assert_false(ring_wake_reader(&writer));  /* once */
    assert_false(ring_sleep_reader(&reader)); /* something is there */
    ring_write(&writer, data, sizeof data);
    assert_true(ring_sleep_writer(&writer));
    ring_read(&reader, data, 1);
    assert_true(ring_wake_writer(&reader));
    assert_false(ring_sleep_writer(&writer));
    free(memory);
}

/* Whatever positions the other process writes: nothing outside of the ring is touched (ASan), and the ring is
 * broken or goes on. */
static void test_nonsense_breaks_it(void **state)
{
    struct rng rng;
    rng_seed(&rng, 7);
    for (int round = 0; round < 10000; round++) {
        void *memory = memory_new(4096);
        struct ring_shared *shared = memory;
        struct ring ring;
        unsigned char data[8192] = {0};
        ring_attach(&ring, memory, 4096);
        uint64_t position = rng_chance(&rng, 500000) ? rng_next(&rng) : (uint64_t)rng_range(&rng, 0, 9000);
        if (round & 1) {
            shared->written = position;
            size_t got = ring_read(&ring, data, sizeof data);
            assert_true(position > 4096 ? ring_is_broken(&ring) && got == 0 : got == position);
        } else {
            ring_write(&ring, data, 4096);
            shared->read = position;
            size_t sent = ring_write(&ring, data, sizeof data);
            assert_true(position > 4096 ? ring_is_broken(&ring) && sent == 0 : sent == position);
        }
        free(memory);
    }
}

/* --- two threads, with a pipe as the bell of each direction */

enum { STREAM_BYTES = 32 << 20 };

struct stream {
    void *memory;
    int to_reader[2], to_writer[2];
};

static unsigned char byte_at(size_t at)
{
    return (unsigned char)(at * 2654435761u >> 13);
}

static void ring_bell(int fd)
{
    assert_int_equal(write(fd, "", 1), 1);
}

static void wait_bell(int fd)
{
    char byte;
    assert_int_equal(read(fd, &byte, 1), 1);
}

static void *write_stream(void *arg)
{
    struct stream *stream = arg;
    struct ring ring;
    struct rng rng;
    unsigned char data[3000];
    rng_seed(&rng, 1);
    ring_attach(&ring, stream->memory, 4096);
    for (size_t sent = 0; sent < STREAM_BYTES;) {
        size_t len = (size_t)rng_range(&rng, 1, sizeof data);
        len = len < STREAM_BYTES - sent ? len : STREAM_BYTES - sent;
        for (size_t i = 0; i < len; i++)
            data[i] = byte_at(sent + i);
        size_t moved = ring_write(&ring, data, len);
        if (moved && ring_wake_reader(&ring))
            ring_bell(stream->to_reader[1]);
        else if (!moved && ring_sleep_writer(&ring))
            wait_bell(stream->to_writer[0]);
        sent += moved;
    }
    return NULL;
}

static void test_a_stream_arrives_whole(void **state)
{
    struct stream stream = {.memory = memory_new(4096)};
    struct ring ring;
    struct rng rng;
    pthread_t thread;
    unsigned char data[3000];
    rng_seed(&rng, 2);
    assert_int_equal(pipe(stream.to_reader) | pipe(stream.to_writer), 0);
    ring_attach(&ring, stream.memory, 4096);
    assert_int_equal(pthread_create(&thread, NULL, write_stream, &stream), 0);
    for (size_t got = 0; got < STREAM_BYTES;) {
        size_t moved = ring_read(&ring, data, (size_t)rng_range(&rng, 1, sizeof data));
        for (size_t i = 0; i < moved; i++)
            if (data[i] != byte_at(got + i))
                fail_msg("byte %zu differs", got + i);
        if (moved && ring_wake_writer(&ring))
            ring_bell(stream.to_writer[1]);
        else if (!moved && ring_sleep_reader(&ring))
            wait_bell(stream.to_reader[0]);
        got += moved;
    }
    pthread_join(thread, NULL);
    assert_false(ring_is_broken(&ring));
    for (int i = 0; i < 2; i++) {
        close(stream.to_reader[i]);
        close(stream.to_writer[i]);
    }
    free(stream.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_what_fits),        cmocka_unit_test(test_a_look_takes_nothing),
        cmocka_unit_test(test_sleepers_are_woken),     cmocka_unit_test(test_nonsense_breaks_it),
        cmocka_unit_test(test_a_stream_arrives_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
