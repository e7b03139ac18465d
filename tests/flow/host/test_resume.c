/* A worker and its disk: what a resumed client has saved comes back within a window, so that memory does not
 * have to hold all that leaves for other hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "flow/exec/executor.h"
#include "flow/host/disk.h"

enum { CLIENT = 5, HERE = 0, THERE = 3, SHARDS = 48, SHARD_BYTES = 1 << 20, WINDOW = 4 * SHARD_BYTES };

struct stand {
    struct loop *loop;
    struct disk *disk;
    struct worker *worker;
    uint32_t to;                     /* host that the shards go to */
    uint32_t loading, most_loading;  /* loads under way */
    uint32_t saved, come;            /* shards that are on disk; that have come where they go */
    VEC(struct tensor *) on_the_way; /* to the other host */
    VEC(struct flow_entry) told;     /* of them */
};

static uint64_t handle_of(uint64_t number)
{
    return (uint64_t)CLIENT << HANDLE_CLIENT_SHIFT | HANDLE_PUT | number;
}

static void feed(struct stand *stand, const struct flow_event *event);

/* Carries out what a worker's process would, but what goes to the other host stays on its way. */
static void carry_out(struct stand *stand, struct flow_effect *effect)
{
    switch (effect->kind) {
    case FLOW_SAVE:
        disk_save(stand->disk, effect);
        break;
    case FLOW_LOAD:
        stand->loading++;
        stand->most_loading = stand->loading > stand->most_loading ? stand->loading : stand->most_loading;
        disk_load(stand->disk, effect);
        break;
    case FLOW_SCRAP:
        disk_scrap(stand->disk, effect->executable);
        break;
    case FLOW_SEND:
        if (effect->peer == peer_host(THERE) && effect->entry.kind == ENTRY_MOVED) {
            assert_non_null(effect->payload);
            vec_push(&stand->on_the_way, tensor_ref(effect->payload));
            vec_push(&stand->told, effect->entry);
        }
        stand->come += stand->saved && effect->peer == PEER_HEAD && effect->entry.kind == ENTRY_PUT_DONE;
        break;
    default:
        break;
    }
}

static void feed(struct stand *stand, const struct flow_event *event)
{
    struct flow_effects effects = {0};
    worker_step(stand->worker, event, &effects);
    for (size_t i = 0; i < effects.list.len; i++)
        carry_out(stand, &effects.list.items[i]);
    flow_effects_done(&effects);
}

static void say(struct stand *stand, uint64_t peer, struct flow_entry entry, struct str tail)
{
    entry.tail_bytes = (uint32_t)tail.len;
    feed(stand, &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = &entry, .tail = tail});
}

static void put_all(struct stand *stand)
{
    struct ir_type type = {IR_I32, 1, {SHARD_BYTES / 4}};
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct buf tail = {0};
        pack_type(&tail, &type);
        buf_reserve(&tail, SHARD_BYTES);
        memset(tail.data + tail.len, (int)i, SHARD_BYTES);
        tail.len += SHARD_BYTES;
        say(stand, peer_client(CLIENT), (struct flow_entry){.kind = ENTRY_PUT, .handle = handle_of(i)},
            buf_str(&tail));
        buf_done(&tail);
    }
}

static void move_all(struct stand *stand)
{
    struct buf tail = {0};
    for (uint32_t i = 0; i < SHARDS; i++) {
        pack_u64(&tail, handle_of(i));
        pack_u32(&tail, 0);
        pack_u32(&tail, stand->to);
    }
    assert_int_equal(tensor_bytes(), 0);
    tensor_bytes_mark();
    say(stand, PEER_HEAD, (struct flow_entry){.kind = ENTRY_MOVE, .client = CLIENT}, buf_str(&tail));
    buf_done(&tail);
}

/* The oldest shard on the way comes to the other host, which says so. */
static void come_there(struct stand *stand)
{
    struct tensor *tensor = stand->on_the_way.items[0];
    struct flow_entry told = stand->told.items[0];
    uint64_t number = told.handle & ~handle_of(0);
    vec_remove(&stand->on_the_way, 0);
    vec_remove(&stand->told, 0);
    const uint8_t *bytes = tensor->data;
    assert_true(bytes[0] == number && bytes[SHARD_BYTES - 1] == number);
    tensor_unref(tensor);
    told.flags = ENTRY_IS_QUIET;
    stand->come++;
    say(stand, peer_host(THERE), told, (struct str){0});
}

static void take_events(void *context)
{
    struct stand *stand = context;
    struct flow_event event;
    while (disk_next(stand->disk, &event)) {
        assert_null(event.fault);
        stand->loading -= event.kind == FLOW_LOADED;
        stand->saved += event.kind == FLOW_SAVED;
        feed(stand, &event);
        if (event.kind == FLOW_SAVED && stand->saved == SHARDS)
            move_all(stand);
    }
    while (stand->loading == 0 && stand->on_the_way.len > 0) /* the network is slower than the disk */
        come_there(stand);
    if (stand->come == SHARDS)
        loop_stop(stand->loop);
}

static void none_ticks(void *context)
{
}

static void save_and_resume(struct stand *stand, uint32_t to)
{
    *stand = (struct stand){.to = to, .worker = worker_new("main", "address", 1, SHARDS * SHARD_BYTES)};
    struct loop_handler handler = {.context = stand, .woken = take_events, .tick = none_ticks};
    assert_int_equal(loop_new(&handler, &stand->loop, NULL), 0);
    stand->disk = disk_new("/tmp", stand->loop);
    worker_set_window(stand->worker, WINDOW);
    feed(stand, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD});
    say(stand, PEER_HEAD, (struct flow_entry){.kind = ENTRY_WELCOME, .node = HERE, .args = {7, 8}},
        (struct str){0});
    say(stand, PEER_HEAD, (struct flow_entry){.kind = ENTRY_CLIENT, .client = CLIENT, .args = {9}},
        (struct str){0});
    put_all(stand);
    say(stand, PEER_HEAD, (struct flow_entry){.kind = ENTRY_SAVE, .client = CLIENT, .epoch = 1},
        (struct str){0});
    loop_run(stand->loop);
    assert_int_equal(stand->come, SHARDS);
    assert_int_equal(worker_count(stand->worker).moving_bytes, 0);
}

static void stand_end(struct stand *stand)
{
    struct flow_effects effects = {0};
    disk_stop(stand->disk);
    worker_free(stand->worker, &effects);
    for (size_t i = 0; i < effects.list.len; i++)
        if (effects.list.items[i].kind == FLOW_SCRAP)
            disk_scrap(stand->disk, effects.list.items[i].executable);
    flow_effects_done(&effects);
    disk_free(stand->disk);
    loop_free(stand->loop);
    vec_done(&stand->on_the_way);
    vec_done(&stand->told);
    assert_int_equal(tensor_bytes(), 0);
}

static void what_leaves_stays_within_the_window(void **state)
{
    struct stand stand;
    save_and_resume(&stand, THERE);
    printf("# %d bytes of shards went by way of %lld bytes of memory\n", SHARDS * SHARD_BYTES,
           (long long)tensor_bytes_peak());
    assert_true(tensor_bytes_peak() <= WINDOW);
    assert_true(stand.most_loading > 1); /* the window is used */
    assert_int_equal(worker_count(stand.worker).objects, 0);
    stand_end(&stand);
}

static void what_stays_is_loaded_in_turn(void **state)
{
    struct stand stand;
    save_and_resume(&stand, HERE);
    assert_true(stand.most_loading > 1 && stand.most_loading <= WINDOW / SHARD_BYTES);
    assert_int_equal(tensor_bytes(), SHARDS * SHARD_BYTES);
    assert_int_equal(worker_count(stand.worker).objects, SHARDS);
    stand_end(&stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leaves_stays_within_the_window),
        cmocka_unit_test(what_stays_is_loaded_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
