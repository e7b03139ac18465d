/* compile.c - programs, their executables, and execution. */
#include "flow/plugin/plugin.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

/* An executable is loaded for the client's first device. Both are one object, with a count of holders. */
struct pjrt_executable {
    struct pjrt_client *client;
    struct ir_module *module;
    const struct ir_function *function;
    struct executable *executable;
    char name[128];
    int *types;
    int64_t *dims;
    size_t *dim_counts;
};
struct pjrt_loaded {
    struct pjrt_executable program;
    _Atomic unsigned holders;
    bool is_deleted;
};

static struct pjrt_loaded *loaded_of(struct pjrt_executable *executable)
{
    return (struct pjrt_loaded *)executable; /* its first member */
}

static void loaded_release(struct pjrt_loaded *loaded)
{
    struct pjrt_executable *program = &loaded->program;
    if (atomic_fetch_sub(&loaded->holders, 1) > 1)
        return;
    if (program->executable)
        program->client->executor->release(program->executable);
    ir_module_free(program->module);
    mem_free(program->types);
    mem_free(program->dims);
    mem_free(program->dim_counts);
    mem_free(loaded);
}

/* --- compiling ------------------------------------------------------------------------------------------ */

static int executable_list_outputs(struct pjrt_executable *program, struct error *error)
{
    const struct ir_function *function = program->function;
    uint32_t count = function->result_count, dim = 0;
    program->types = mem_alloc((count + 1) * sizeof *program->types);
    program->dims = mem_alloc(((size_t)count * IR_RANK_MAX + 1) * sizeof *program->dims);
    program->dim_counts = mem_alloc((count + 1) * sizeof *program->dim_counts);
    for (uint32_t i = 0; i < count; i++) {
        const struct ir_type *type = &function->results[i];
        program->types[i] = (int)pjrt_type_of(type->element);
        program->dim_counts[i] = (size_t)type->rank;
        for (int32_t d = 0; d < type->rank; d++)
            program->dims[dim++] = type->dims[d];
        if (program->types[i] == PJRT_TYPE_INVALID)
            return error_set(error, ERROR_UNSUPPORTED, "result %u has elements that PJRT lacks", i);
    }
    return 0;
}

static int executable_make(struct pjrt_executable *program, struct str text, struct error *error)
{
    int rc = ir_parse(text, "program", &program->module, error);
    if (rc == 0)
        rc = ir_verify(program->module, error);
    if (rc < 0)
        return rc;
    program->function = ir_function(program->module, STR("main"));
    if (!program->function)
        return error_set(error, ERROR_INVALID, "the module has no function @main");
    if (program->module->replicas > 1 || program->module->partitions > 1)
        return error_set(error, ERROR_UNSUPPORTED, "%u replicas, %u partitions: one of each is supported",
                         program->module->replicas, program->module->partitions);
    struct str name = program->module->name.len ? program->module->name : STR("main");
    snprintf(program->name, sizeof program->name, STR_FORMAT, STR_ARG(name));
    rc = executable_list_outputs(program, error);
    const struct executor *executor = program->client->executor;
    return rc < 0
               ? rc
               : executor->compile(executor, program->module, program->function, &program->executable, error);
}

struct pjrt_error *plugin_compile(void *args)
{
    struct pjrt_client_compile *order = args;
    if (!PLUGIN_KNOWS(order, loaded) || !PLUGIN_KNOWS(order->program, format_len))
        return plugin_too_small();
    const struct pjrt_program *given = order->program;
    struct error error = {0};
    if (!str_is((struct str){given->format, given->format_len}, "mlir"))
        return plugin_error(PJRT_CODE_UNIMPLEMENTED, "programs in format %.*s: expected mlir",
                            (int)(given->format_len < 40 ? given->format_len : 40), given->format);
    if (given->code_len >= 4 && memcmp(given->code, "ML\xefR", 4) == 0)
        return plugin_error(PJRT_CODE_UNIMPLEMENTED, "bytecode of MLIR: expected text");
    struct pjrt_loaded *loaded = mem_alloc(sizeof *loaded);
    loaded->holders = 1;
    loaded->program.client = order->client;
    if (executable_make(&loaded->program, (struct str){given->code, given->code_len}, &error) < 0) {
        loaded_release(loaded);
        return plugin_error_of(&error);
    }
    order->loaded = loaded;
    return NULL;
}

/* --- properties ----------------------------------------------------------------------------------------- */

struct pjrt_error *plugin_loaded_destroy(void *args)
{
    loaded_release(((struct pjrt_about *)args)->object);
    return NULL;
}

struct pjrt_error *plugin_executable_destroy(void *args)
{
    loaded_release(loaded_of(((struct pjrt_about *)args)->object));
    return NULL;
}

struct pjrt_error *plugin_loaded_executable(void *args)
{
    struct pjrt_about_object *about = args;
    struct pjrt_loaded *loaded = about->object;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    atomic_fetch_add(&loaded->holders, 1);
    about->answer = &loaded->program;
    return NULL;
}

struct pjrt_error *plugin_loaded_devices(void *args)
{
    struct pjrt_about_list *about = args;
    if (!PLUGIN_KNOWS(about, count))
        return plugin_too_small();
    about->items = (void **)((struct pjrt_loaded *)about->object)->program.client->device_list;
    about->count = 1;
    return NULL;
}

struct pjrt_error *plugin_loaded_delete(void *args)
{
    ((struct pjrt_loaded *)((struct pjrt_about *)args)->object)->is_deleted = true;
    return NULL;
}

struct pjrt_error *plugin_loaded_is_deleted(void *args)
{
    struct pjrt_about_bool *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = ((const struct pjrt_loaded *)about->object)->is_deleted;
    return NULL;
}

struct pjrt_error *plugin_executable_name(void *args)
{
    struct pjrt_about_text *about = args;
    if (!PLUGIN_KNOWS(about, len))
        return plugin_too_small();
    about->text = ((const struct pjrt_executable *)about->object)->name;
    about->len = strlen(about->text);
    return NULL;
}

struct pjrt_error *plugin_executable_one(void *args)
{
    struct pjrt_about_size *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = 1;
    return NULL;
}

struct pjrt_error *plugin_executable_outputs(void *args)
{
    struct pjrt_about_size *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = ((const struct pjrt_executable *)about->object)->function->result_count;
    return NULL;
}

struct pjrt_error *plugin_executable_output_types(void *args)
{
    struct pjrt_output_types *about = args;
    if (!PLUGIN_KNOWS(about, count))
        return plugin_too_small();
    about->types = about->executable->types;
    about->count = about->executable->function->result_count;
    return NULL;
}

struct pjrt_error *plugin_executable_output_dimensions(void *args)
{
    struct pjrt_output_dimensions *about = args;
    if (!PLUGIN_KNOWS(about, dim_counts))
        return plugin_too_small();
    about->count = about->executable->function->result_count;
    about->dims = about->executable->dims;
    about->dim_counts = about->executable->dim_counts;
    return NULL;
}

struct pjrt_error *plugin_executable_memory_stats(void *args)
{
    struct pjrt_memory_stats *stats = args;
    if (!PLUGIN_KNOWS(stats, temporary))
        return plugin_too_small();
    const struct ir_function *function = stats->executable->function;
    int64_t peak = stats->executable->client->executor->peak_bytes(stats->executable->executable);
    stats->code = stats->arguments = stats->outputs = stats->alias = 0;
    for (uint32_t i = 0; i < function->body.arg_count; i++)
        stats->arguments += ir_type_bytes(&function->body.args[i].type);
    for (uint32_t i = 0; i < function->result_count; i++)
        stats->outputs += ir_type_bytes(&function->results[i]);
    stats->temporary = peak > stats->outputs ? peak - stats->outputs : 0;
    return NULL;
}

/* --- execution ------------------------------------------------------------------------------------------ */

struct ended {
    struct pjrt_buffer **outputs;
    struct pjrt_device *device;
    struct error error;
};

static void execute_done(void *arg, struct tensor **results, uint32_t count,
                         const struct flow_failure *failure)
{
    struct ended *ended = arg;
    if (failure)
        ended->error = failure->error;
    for (uint32_t i = 0; i < count; i++) {
        ended->outputs[i] = mem_alloc(sizeof *ended->outputs[i]);
        *ended->outputs[i] = (struct pjrt_buffer){.tensor = results[i], .device = ended->device};
    }
}

static struct pjrt_error *execute_check(const struct pjrt_execute *order)
{
    const struct ir_function *function = order->loaded->program.function;
    if (order->loaded->is_deleted)
        return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "the executable was deleted");
    if (order->device_count != 1)
        return plugin_error(PJRT_CODE_UNIMPLEMENTED, "%zu devices: one is supported", order->device_count);
    if (order->argument_count != function->body.arg_count)
        return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "%zu arguments: expected %u", order->argument_count,
                            function->body.arg_count);
    for (size_t i = 0; i < order->argument_count; i++) {
        const struct tensor *tensor = order->arguments[0][i]->tensor;
        char is[IR_TYPE_TEXT_MAX], wanted[IR_TYPE_TEXT_MAX];
        const struct ir_type *type = &function->body.args[i].type;
        if (!tensor)
            return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "argument %zu was deleted", i);
        if (!ir_type_equal(&tensor->type, type))
            return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "argument %zu is %s: expected %s", i,
                                ir_type_text(&tensor->type, is), ir_type_text(type, wanted));
    }
    return NULL;
}

struct pjrt_error *plugin_execute(void *args)
{
    struct pjrt_execute *order = args;
    if (!PLUGIN_KNOWS(order, complete))
        return plugin_too_small();
    struct pjrt_error *refused = execute_check(order);
    if (refused)
        return refused;
    struct pjrt_executable *program = &order->loaded->program;
    struct tensor **arguments = mem_alloc((order->argument_count + 1) * sizeof *arguments);
    for (size_t i = 0; i < order->argument_count; i++)
        arguments[i] = order->arguments[0][i]->tensor;
    struct ended ended = {.outputs = order->outputs[0], .device = program->client->device_list[0]};
    program->client->executor->launch(
        program->executable, &(struct flow_launch){.args = arguments, .done = execute_done, .arg = &ended});
    mem_free(arguments);
    if (ended.error.code < 0)
        return plugin_error_of(&ended.error);
    if (order->complete)
        order->complete[0] = plugin_event(NULL);
    return NULL;
}
