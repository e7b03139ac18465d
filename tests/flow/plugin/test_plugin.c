/* libphalanx_pjrt through its table of functions, as any host of PJRT calls it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/pjrt/abi.h"

static const struct pjrt_api *api;
static struct pjrt_client *client;
static struct pjrt_device *device;

/* Calls a function that must go well. */
static void call(enum pjrt_slot slot, void *args)
{
    assert_non_null(api->slots[slot]);
    struct pjrt_error *error = api->slots[slot](args);
    if (!error)
        return;
    struct pjrt_about_text message = {.size = sizeof message, .object = error};
    api->slots[PJRT_ERROR_MESSAGE](&message);
    fail_msg("%d: %.*s", (int)slot, (int)message.len, message.text);
}

/* Calls a function that must fail with this code and words. */
static void fails(enum pjrt_slot slot, void *args, enum pjrt_code wanted, const char *words)
{
    struct pjrt_error *error = api->slots[slot](args);
    assert_non_null(error);
    struct pjrt_about_text message = {.size = sizeof message, .object = error};
    struct pjrt_about_int code = {.size = sizeof code, .object = error};
    api->slots[PJRT_ERROR_MESSAGE](&message);
    call(PJRT_ERROR_CODE, &code);
    if (code.answer != (int)wanted || !strstr(message.text, words))
        fail_msg("%d %.*s", code.answer, (int)message.len, message.text);
    assert_int_equal(message.len, strlen(message.text));
    api->slots[PJRT_ERROR_DESTROY](&(struct pjrt_about){.size = sizeof(struct pjrt_about), .object = error});
}

static void destroy(enum pjrt_slot slot, void *object)
{
    call(slot, &(struct pjrt_about){.size = sizeof(struct pjrt_about), .object = object});
}

static int begin(void **state)
{
    char path[4096];
    const char *build = getenv("PHX_BUILD");
    pjrt_entry *entry;
    snprintf(path, sizeof path, "%s/libphalanx_pjrt.so", build ? build : "build");
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    *(void **)&entry = dlsym(library, PJRT_ENTRY);
    api = entry();
    setenv("PHX_PJRT_DEVICES", "3", 1);
    struct pjrt_client_create create = {.size = sizeof create};
    call(PJRT_PLUGIN_INITIALIZE, &(struct pjrt_about){.size = 2 * sizeof(size_t)});
    call(PJRT_CLIENT_CREATE, &create);
    client = create.client;
    struct pjrt_about_list devices = {.size = sizeof devices, .object = client};
    call(PJRT_CLIENT_ADDRESSABLE_DEVICES, &devices);
    assert_int_equal(devices.count, 3);
    device = devices.items[0];
    return 0;
}

static int end(void **state)
{
    destroy(PJRT_CLIENT_DESTROY, client);
    return 0;
}

static struct pjrt_buffer *put(const float *data, const int64_t *dims, size_t rank)
{
    struct pjrt_buffer_from_host send = {.size = sizeof send,
                                         .client = client,
                                         .data = data,
                                         .type = PJRT_TYPE_F32,
                                         .dims = dims,
                                         .dim_count = rank,
                                         .device = device};
    call(PJRT_CLIENT_BUFFER_FROM_HOST, &send);
    struct pjrt_about_bool ready = {.size = sizeof ready, .object = send.done_with_host};
    call(PJRT_EVENT_IS_READY, &ready);
    assert_true(ready.answer);
    destroy(PJRT_EVENT_AWAIT, send.done_with_host);
    destroy(PJRT_EVENT_DESTROY, send.done_with_host);
    return send.buffer;
}

static void devices_say_who_they_are(void **state)
{
    struct pjrt_about_object description = {.size = sizeof description, .object = device};
    struct pjrt_about_text text = {.size = sizeof text};
    struct pjrt_about_int number = {.size = sizeof number};
    struct pjrt_about_object memory = {.size = sizeof memory, .object = device};
    call(PJRT_DEVICE_DESCRIPTION, &description);
    text.object = number.object = description.answer;
    call(PJRT_DESCRIPTION_TO_STRING, &text);
    assert_int_equal(text.len, strlen("phalanx:0"));
    assert_memory_equal(text.text, "phalanx:0", text.len);
    call(PJRT_DESCRIPTION_ID, &number);
    assert_int_equal(number.answer, 0);
    text.object = client;
    call(PJRT_CLIENT_PLATFORM_NAME, &text);
    assert_memory_equal(text.text, "phalanx", text.len);
    call(PJRT_DEVICE_DEFAULT_MEMORY, &memory);
    text.object = memory.answer;
    call(PJRT_MEMORY_KIND, &text);
    assert_memory_equal(text.text, "device", text.len);
}

static void a_buffer_keeps_what_it_was_given(void **state)
{
    const int64_t dims[] = {2, 3};
    float data[] = {1, 2, 3, 4, 5, 6}, back[6];
    struct pjrt_buffer *buffer = put(data, dims, 2);
    data[0] = 9;
    struct pjrt_about_size size = {.size = sizeof size, .object = buffer};
    struct pjrt_about_list shape = {.size = sizeof shape, .object = buffer};
    struct pjrt_about_bool deleted = {.size = sizeof deleted, .object = buffer};
    struct pjrt_buffer_to_host fetch = {.size = sizeof fetch, .buffer = buffer};
    call(PJRT_BUFFER_SIZE, &size);
    call(PJRT_BUFFER_DIMENSIONS, &shape);
    assert_true(size.answer == sizeof data && shape.count == 2 && ((const int64_t *)shape.items)[1] == 3);
    call(PJRT_BUFFER_TO_HOST, &fetch); /* how many bytes? */
    assert_int_equal(fetch.to_len, sizeof data);
    fetch.to = back;
    fetch.to_len = sizeof back - 1;
    fails(PJRT_BUFFER_TO_HOST, &fetch, PJRT_CODE_INVALID_ARGUMENT, "24 bytes do not fit into 23");
    fetch.to_len = sizeof back;
    call(PJRT_BUFFER_TO_HOST, &fetch);
    destroy(PJRT_EVENT_DESTROY, fetch.event);
    assert_true(back[0] == 1 && back[5] == 6);
    destroy(PJRT_BUFFER_DELETE, buffer);
    call(PJRT_BUFFER_IS_DELETED, &deleted);
    assert_true(deleted.answer);
    fails(PJRT_BUFFER_TO_HOST, &fetch, PJRT_CODE_INVALID_ARGUMENT, "was deleted");
    destroy(PJRT_BUFFER_DESTROY, buffer);
}

static void odd_buffers_are_refused(void **state)
{
    const int64_t dims[] = {2, 3}, across[] = {4, 8}, along[] = {12, 4}, negative[] = {-1},
                  huge[] = {INT64_MAX, 9};
    const float data[6] = {0};
    struct pjrt_buffer_from_host send = {.size = sizeof send,
                                         .client = client,
                                         .data = data,
                                         .type = PJRT_TYPE_F32,
                                         .dims = dims,
                                         .dim_count = 2,
                                         .byte_strides = across,
                                         .byte_stride_count = 2,
                                         .device = device};
    fails(PJRT_CLIENT_BUFFER_FROM_HOST, &send, PJRT_CODE_UNIMPLEMENTED, "not dense");
    send.byte_strides = along;
    call(PJRT_CLIENT_BUFFER_FROM_HOST, &send);
    destroy(PJRT_EVENT_DESTROY, send.done_with_host);
    destroy(PJRT_BUFFER_DESTROY, send.buffer);
    send.byte_strides = NULL;
    send.type = 99;
    fails(PJRT_CLIENT_BUFFER_FROM_HOST, &send, PJRT_CODE_UNIMPLEMENTED, "elements of type 99");
    send.type = PJRT_TYPE_F32;
    send.dim_count = 17;
    fails(PJRT_CLIENT_BUFFER_FROM_HOST, &send, PJRT_CODE_UNIMPLEMENTED, "17 dimensions");
    send.dims = negative;
    send.dim_count = 1;
    fails(PJRT_CLIENT_BUFFER_FROM_HOST, &send, PJRT_CODE_INVALID_ARGUMENT, "-1 elements");
    send.dims = huge;
    send.dim_count = 2;
    fails(PJRT_CLIENT_BUFFER_FROM_HOST, &send, PJRT_CODE_INVALID_ARGUMENT, "elements");
    send.dims = dims;
    send.device = NULL;
    fails(PJRT_CLIENT_BUFFER_FROM_HOST, &send, PJRT_CODE_INVALID_ARGUMENT, "neither a device");
    send.size = 40;
    fails(PJRT_CLIENT_BUFFER_FROM_HOST, &send, PJRT_CODE_INVALID_ARGUMENT, "smaller than expected");
}

static struct pjrt_error *compile(const char *format, const char *text, struct pjrt_loaded **ret_loaded)
{
    struct pjrt_program program = {.size = sizeof program,
                                   .code = text,
                                   .code_len = strlen(text),
                                   .format = format,
                                   .format_len = strlen(format)};
    struct pjrt_client_compile order = {.size = sizeof order, .client = client, .program = &program};
    struct pjrt_error *error = api->slots[PJRT_CLIENT_COMPILE](&order);
    *ret_loaded = order.loaded;
    return error;
}

static void wrong_programs_are_refused(void **state)
{
    static const char *const rows[][3] = {
        {"hlo", "", "format hlo: expected mlir"},
        {"mlir", "ML\xefR and so on", "bytecode"},
        {"mlir", "func.func @main(", "program:1:"},
        {"mlir", "func.func @other() {\nreturn\n}", "no function @main"},
        {"mlir", "module attributes {mhlo.num_partitions = 2 : i32} {\nfunc.func @main() {\nreturn\n}\n}",
         "1 replicas, 2 partitions"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pjrt_loaded *loaded;
        struct pjrt_error *error = compile(rows[i][0], rows[i][1], &loaded);
        assert_true(error && !loaded);
        struct pjrt_about_text message = {.size = sizeof message, .object = error};
        api->slots[PJRT_ERROR_MESSAGE](&message);
        if (!strstr(message.text, rows[i][2]))
            fail_msg("%s", message.text);
        api->slots[PJRT_ERROR_DESTROY](
            &(struct pjrt_about){.size = sizeof(struct pjrt_about), .object = error});
    }
}

static void on_ready(struct pjrt_error *error, void *arg)
{
    assert_null(error);
    ++*(int *)arg;
}

static void a_program_runs_with_fitting_arguments(void **state)
{
    const int64_t dims[] = {2}, other[] = {3};
    struct pjrt_loaded *loaded;
    assert_null(compile("mlir",
                        "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n%0 = stablehlo.add %a, %a : "
                        "tensor<2xf32>\nreturn %0 : tensor<2xf32>\n}",
                        &loaded));
    struct pjrt_about_object executable = {.size = sizeof executable, .object = loaded};
    struct pjrt_about_size outputs = {.size = sizeof outputs};
    struct pjrt_memory_stats stats = {.size = sizeof stats};
    call(PJRT_LOADED_EXECUTABLE, &executable);
    outputs.object = stats.executable = executable.answer;
    call(PJRT_EXECUTABLE_OUTPUTS, &outputs);
    call(PJRT_EXECUTABLE_MEMORY_STATS, &stats);
    assert_true(outputs.answer == 1 && stats.arguments == 8 && stats.outputs == 8);
    destroy(PJRT_EXECUTABLE_DESTROY, executable.answer); /* `loaded` lives on */
    struct pjrt_buffer *right = put((float[]){3, 4}, dims, 1), *wrong = put((float[]){3, 4, 5}, other, 1),
                       *result;
    struct pjrt_execute_options options = {.size = sizeof options};
    struct pjrt_event *complete;
    struct pjrt_buffer *list[] = {wrong};
    struct pjrt_buffer *const *const arguments[] = {list};
    struct pjrt_buffer **const results[] = {&result};
    struct pjrt_execute order = {.size = sizeof order,
                                 .loaded = loaded,
                                 .options = &options,
                                 .arguments = arguments,
                                 .device_count = 1,
                                 .argument_count = 1,
                                 .outputs = results,
                                 .complete = &complete};
    fails(PJRT_LOADED_EXECUTE, &order, PJRT_CODE_INVALID_ARGUMENT,
          "argument 0 is tensor<3xf32>: expected tensor<2xf32>");
    order.argument_count = 0;
    fails(PJRT_LOADED_EXECUTE, &order, PJRT_CODE_INVALID_ARGUMENT, "0 arguments: expected 1");
    order.argument_count = 1;
    order.device_count = 2;
    fails(PJRT_LOADED_EXECUTE, &order, PJRT_CODE_UNIMPLEMENTED, "2 devices");
    order.device_count = 1;
    list[0] = right;
    call(PJRT_LOADED_EXECUTE, &order);
    int calls = 0;
    call(PJRT_EVENT_ON_READY, &(struct pjrt_event_on_ready){.size = sizeof(struct pjrt_event_on_ready),
                                                            .event = complete,
                                                            .callback = on_ready,
                                                            .arg = &calls});
    assert_int_equal(calls, 1);
    float sums[2];
    struct pjrt_buffer_to_host fetch = {
        .size = sizeof fetch, .buffer = result, .to = sums, .to_len = sizeof sums};
    call(PJRT_BUFFER_TO_HOST, &fetch);
    assert_true(sums[0] == 6 && sums[1] == 8);
    destroy(PJRT_LOADED_DELETE, loaded);
    fails(PJRT_LOADED_EXECUTE, &order, PJRT_CODE_INVALID_ARGUMENT, "was deleted");
    destroy(PJRT_EVENT_DESTROY, fetch.event);
    destroy(PJRT_EVENT_DESTROY, complete);
    destroy(PJRT_BUFFER_DESTROY, result);
    destroy(PJRT_BUFFER_DESTROY, right);
    destroy(PJRT_BUFFER_DESTROY, wrong);
    destroy(PJRT_LOADED_DESTROY, loaded);
}

static void wrong_settings_are_named(void **state)
{
    struct pjrt_client_create create = {.size = sizeof create};
    setenv("PHX_PJRT_DEVICES", "many", 1);
    fails(PJRT_CLIENT_CREATE, &create, PJRT_CODE_INVALID_ARGUMENT,
          "PHX_PJRT_DEVICES: expected 1 to 64, got many");
    setenv("PHX_PJRT_DEVICES", "1", 1);
    setenv("PHX_PJRT_EXECUTOR", "magic", 1);
    fails(PJRT_CLIENT_CREATE, &create, PJRT_CODE_NOT_FOUND, "no executor is named magic");
    unsetenv("PHX_PJRT_EXECUTOR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_say_who_they_are),
        cmocka_unit_test(a_buffer_keeps_what_it_was_given),
        cmocka_unit_test(odd_buffers_are_refused),
        cmocka_unit_test(wrong_programs_are_refused),
        cmocka_unit_test(a_program_runs_with_fitting_arguments),
        cmocka_unit_test(wrong_settings_are_named),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
