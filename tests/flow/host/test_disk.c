/* Tensors of suspended clients in a file: what is saved is loaded again, and room is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/exec/executor.h"
#include "flow/host/disk.h"

enum { TENSORS = 50 };

struct stand {
    struct loop *loop;
    struct disk *disk;
    int rounds; /* left */
    bool stops_early; /* once all loads are ordered */
    size_t saved_count, loaded_count;
    void *saved[TENSORS];
    struct fault fault; /* of the last event that has one */
};

static struct tensor *tensor_of(int64_t elements, float first)
{
    struct ir_type type = {IR_F32, 1, {elements}};
    struct tensor *tensor = tensor_new(&type);
    for (int64_t i = 0; i < elements; i++)
        ((float *)tensor->data)[i] = first + (float)i;
    return tensor;
}

static void save(struct disk *disk, uint64_t number, struct tensor *tensor)
{
    struct flow_effect effect = {.kind = FLOW_SAVE, .handle = number, .payload = tensor};
    disk_save(disk, &effect);
    assert_null(effect.payload);
}

/* A round: all tensors are saved, then loaded from the last one to the first. */
static void begin_round(struct stand *stand)
{
    stand->saved_count = stand->loaded_count = 0;
    for (uint64_t i = 0; i < TENSORS; i++)
        save(stand->disk, i, tensor_of((int64_t)(i * i), (float)i));
}

static void take_saved(struct stand *stand, const struct flow_event *event)
{
    assert_int_equal(event->handle, stand->saved_count);
    stand->saved[stand->saved_count++] = event->executable;
    if (stand->saved_count < TENSORS)
        return;
    if (stand->stops_early)
        loop_stop(stand->loop);
    for (uint64_t i = TENSORS; i-- > 0;)
        disk_load(stand->disk, &(struct flow_effect){.handle = i, .executable = stand->saved[i]});
}

static void take_loaded(struct stand *stand, const struct flow_event *event)
{
    uint64_t i = TENSORS - ++stand->loaded_count;
    struct tensor *want = tensor_of((int64_t)(i * i), (float)i), *loaded = event->results[0];
    assert_int_equal(event->handle, i);
    assert_true(ir_type_equal(&loaded->type, &want->type));
    assert_memory_equal(loaded->data, want->data, (size_t)(i * i) * sizeof(float));
    tensor_unref(want);
    tensor_unref(loaded);
    disk_scrap(stand->disk, stand->saved[i]);
    if (i == 0 && --stand->rounds > 0)
        begin_round(stand);
}

static void take_events(void *context)
{
    struct stand *stand = context;
    struct flow_event event;
    while (!(stand->stops_early && stand->saved_count == TENSORS) && disk_next(stand->disk, &event)) {
        if (event.fault) {
            stand->fault = *event.fault;
            stand->rounds = 0;
        } else if (event.kind == FLOW_SAVED) {
            take_saved(stand, &event);
        } else {
            take_loaded(stand, &event);
        }
    }
    if (stand->rounds == 0 && !stand->stops_early)
        loop_stop(stand->loop);
}

static void none_ticks(void *context)
{
}

static void stand_begin(struct stand *stand, const char *folder)
{
    *stand = (struct stand){0};
    struct loop_handler handler = {.context = stand, .woken = take_events, .tick = none_ticks};
    assert_int_equal(loop_new(&handler, &stand->loop, NULL), 0);
    stand->disk = disk_new(folder, stand->loop);
}

static void stand_end(struct stand *stand)
{
    disk_stop(stand->disk);
    disk_free(stand->disk);
    loop_free(stand->loop);
    assert_int_equal(tensor_bytes(), 0);
}

static void loaded_as_saved(void **state)
{
    struct stand stand;
    stand_begin(&stand, "/tmp");
    stand.rounds = 3;
    begin_round(&stand);
    loop_run(stand.loop);
    assert_int_equal(stand.fault.reason, FAULT_NONE);
    stand_end(&stand);
}

/* Answers that nobody has taken go with the disk, in the order in which a worker ends. */
static void ends_with_work_left(void **state)
{
    struct stand stand;
    stand_begin(&stand, "/tmp");
    begin_round(&stand);
    stand_end(&stand);
    stand_begin(&stand, "/tmp");
    stand.stops_early = true;
    begin_round(&stand);
    loop_run(stand.loop);
    disk_stop(stand.disk);
    for (int i = 0; i < TENSORS; i++) /* some of which were about to be loaded */
        disk_scrap(stand.disk, stand.saved[i]);
    stand_end(&stand);
    stand_begin(&stand, "/tmp");
    stand_end(&stand);
}

static void no_folder(void **state)
{
    struct stand stand;
    stand_begin(&stand, "/nowhere/at/all");
    stand.rounds = 1;
    save(stand.disk, 7, tensor_of(10, 0));
    loop_run(stand.loop);
    assert_non_null(strstr(stand.fault.text, "saving 40 bytes in /nowhere/at/all: "));
    stand_end(&stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded_as_saved),
        cmocka_unit_test(ends_with_work_left),
        cmocka_unit_test(no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
