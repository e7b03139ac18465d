/* program.c - compiles a function to a plugin's executable, and launches it. */
#include "flow/pjrt/internal.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/check.h"

struct executable {
    const struct pjrt_plugin *plugin;
    struct pjrt_loaded *loaded;
    uint32_t arg_count, result_count;
    struct ir_type *types; /* of the parameters, then of the results */
    int64_t peak_bytes;
};

/* --- what the plugin cannot run ------------------------------------------------------------------------- */

static bool op_meets_others(enum ir_op_kind kind)
{
    switch (kind) {
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_PARTITION_ID:
    case IR_OP_REDUCE_SCATTER:
    case IR_OP_REPLICA_ID:
    case IR_OP_RUN_PARALLEL:
        return true;
    default:
        return false;
    }
}

static int program_check_block(const struct ir_module *module, const struct ir_block *block,
                               struct error *error)
{
    int rc = 0;
    for (const struct ir_op *op = block->first; op && rc == 0; op = op->next) {
        if (op_meets_others(op->kind))
            rc = error_set(error, ERROR_UNSUPPORTED,
                           STR_FORMAT ":%u:%u: %s: a PJRT plugin sees the devices of one process alone",
                           STR_ARG(module->file), op->place.line, op->place.column, ir_op_name(op->kind));
        for (uint32_t i = 0; i < op->region_count && rc == 0; i++)
            rc = program_check_block(module, &op->regions[i], error);
    }
    return rc;
}

static int program_check_type(const struct ir_function *function, const struct ir_type *type,
                              struct error *error)
{
    char text[IR_TYPE_TEXT_MAX];
    if (pjrt_type_of(type->element) != PJRT_TYPE_INVALID)
        return 0;
    return error_set(error, ERROR_UNSUPPORTED, "@" STR_FORMAT ": %s cannot be given to a PJRT plugin",
                     STR_ARG(function->name), ir_type_text(type, text));
}

static int program_check_module(const struct ir_module *module, const struct ir_function *function,
                                struct error *error)
{
    int rc = 0;
    for (const struct ir_function *each = module->functions; each && rc == 0; each = each->next)
        rc = program_check_block(module, &each->body, error);
    for (uint32_t i = 0; i < function->body.arg_count && rc == 0; i++)
        rc = program_check_type(function, &function->body.args[i].type, error);
    for (uint32_t i = 0; i < function->result_count && rc == 0; i++)
        rc = program_check_type(function, &function->results[i], error);
    return rc;
}

/* --- text ----------------------------------------------------------------------------------------------- */

static void text_add_types(struct buf *out, const struct ir_type *types, uint32_t count, const char *before)
{
    char text[IR_TYPE_TEXT_MAX];
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i ? STR(", ") : STR(""));
        if (*before)
            buf_printf(out, "%s%u: ", before, i);
        buf_add_str(out, str_from(ir_type_text(&types[i], text)));
    }
}

/* Adds a function @main that calls the compiled function, because plugins run @main. */
static void text_add_main(struct buf *out, const struct executable *made, const struct ir_function *function)
{
    const struct ir_type *results = made->types + made->arg_count;
    buf_add_str(out, STR("  func.func @main("));
    text_add_types(out, made->types, made->arg_count, "%a");
    buf_add_str(out, STR(") -> ("));
    text_add_types(out, results, made->result_count, "");
    buf_add_str(out, STR(") {\n    "));
    for (uint32_t i = 0; i < made->result_count; i++)
        buf_printf(out, "%s%%r%u", i ? ", " : "", i);
    buf_printf(out, "%s\"func.call\"(", made->result_count ? " = " : "");
    for (uint32_t i = 0; i < made->arg_count; i++)
        buf_printf(out, "%s%%a%u", i ? ", " : "", i);
    buf_printf(out, ") <{callee = @\"" STR_FORMAT "\"}> : (", STR_ARG(function->name));
    text_add_types(out, made->types, made->arg_count, "");
    buf_add_str(out, STR(") -> ("));
    text_add_types(out, results, made->result_count, "");
    buf_add_str(out, STR(")\n    \"func.return\"("));
    for (uint32_t i = 0; i < made->result_count; i++)
        buf_printf(out, "%s%%r%u", i ? ", " : "", i);
    buf_add_str(out, STR(") : ("));
    text_add_types(out, results, made->result_count, "");
    buf_add_str(out, STR(") -> ()\n  }\n"));
}

static int text_of_module(struct buf *out, const struct executable *made, const struct ir_module *module,
                          const struct ir_function *function, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct str text = str_trim(ir_print(module, &arena));
    bool other = !str_is(function->name, "main");
    if (other && ir_function(module, STR("main")))
        return error_set(error, ERROR_UNSUPPORTED,
                         "@" STR_FORMAT ": a PJRT plugin runs @main, and the module has another one",
                         STR_ARG(function->name));
    CHECK(text.len > 0 && text.data[text.len - 1] == '}');
    text.len--;
    buf_add_str(out, text);
    if (other)
        text_add_main(out, made, function);
    buf_add_str(out, STR("}\n"));
    return 0;
}

/* --- compiling ------------------------------------------------------------------------------------------ */

/* Checks that the plugin's executable has the declared results. */
static int program_check_outputs(const struct executable *made, struct pjrt_executable *theirs,
                                 struct error *error)
{
    const struct pjrt_plugin *plugin = made->plugin;
    struct pjrt_about_size outputs = {.size = sizeof outputs, .object = theirs};
    struct pjrt_output_types types = {.size = sizeof types, .executable = theirs};
    struct pjrt_output_dimensions dimensions = {.size = sizeof dimensions, .executable = theirs};
    int rc = plugin_call(plugin, PJRT_EXECUTABLE_OUTPUTS, &outputs, error);
    if (rc == 0)
        rc = plugin_call(plugin, PJRT_EXECUTABLE_OUTPUT_TYPES, &types, error);
    if (rc == 0)
        rc = plugin_call(plugin, PJRT_EXECUTABLE_OUTPUT_DIMENSIONS, &dimensions, error);
    if (rc < 0)
        return rc;
    bool fits = outputs.answer == made->result_count && types.count == made->result_count &&
                dimensions.count == made->result_count;
    for (uint32_t i = 0, at = 0; fits && i < made->result_count; i++) {
        const struct ir_type *type = &made->types[made->arg_count + i];
        fits = types.types[i] == (int)pjrt_type_of(type->element) &&
               dimensions.dim_counts[i] == (size_t)type->rank;
        for (int32_t d = 0; fits && d < type->rank; d++)
            fits = dimensions.dims[at++] == type->dims[d];
    }
    return fits ? 0
                : error_set(error, ERROR_INVALID,
                            "%.200s: what it compiled has other results than the function", plugin->path);
}

static int64_t program_peak_reported(const struct executable *made, struct pjrt_executable *theirs)
{
    struct pjrt_memory_stats stats = {.size = sizeof stats, .executable = theirs};
    struct error error;
    int64_t results = 0;
    for (uint32_t i = 0; i < made->result_count; i++)
        results += ir_type_bytes(&made->types[made->arg_count + i]);
    if (!plugin_has(made->plugin->api, PJRT_EXECUTABLE_MEMORY_STATS) ||
        plugin_call(made->plugin, PJRT_EXECUTABLE_MEMORY_STATS, &stats, &error) < 0 || stats.temporary < 0 ||
        stats.temporary > INT64_MAX - results)
        return results;
    return results + stats.temporary;
}

static int program_compile_text(struct executable *made, struct str text, struct error *error)
{
    /* CompileOptionsProto: executable_build_options (3) of device_ordinal (1) -1, num_replicas (4) 1 and
     * num_partitions (5) 1. */
    static const char OPTIONS[] = "\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01";
    struct pjrt_program program = {
        .size = sizeof program, .code = text.data, .code_len = text.len, .format = "mlir", .format_len = 4};
    struct pjrt_client_compile compile = {.size = sizeof compile,
                                          .client = made->plugin->client,
                                          .program = &program,
                                          .options = OPTIONS,
                                          .options_len = sizeof OPTIONS - 1};
    int rc = plugin_call(made->plugin, PJRT_CLIENT_COMPILE, &compile, error);
    if (rc < 0)
        return rc;
    made->loaded = compile.loaded;
    struct pjrt_about_object executable = {.size = sizeof executable, .object = made->loaded};
    rc = plugin_call(made->plugin, PJRT_LOADED_EXECUTABLE, &executable, error);
    if (rc < 0)
        return rc;
    rc = program_check_outputs(made, executable.answer, error);
    made->peak_bytes = rc == 0 ? program_peak_reported(made, executable.answer) : 0;
    plugin_destroy(made->plugin, PJRT_EXECUTABLE_DESTROY, executable.answer);
    return rc;
}

int program_compile(const struct executor *executor, const struct ir_module *module,
                    const struct ir_function *function, struct executable **executable, struct error *error)
{
    int rc = program_check_module(module, function, error);
    if (rc < 0)
        return rc;
    struct buf text BUF_CLEANUP = {0};
    struct executable *made = mem_alloc(sizeof *made);
    made->plugin = (const struct pjrt_plugin *)executor;
    made->arg_count = function->body.arg_count;
    made->result_count = function->result_count;
    made->types = mem_alloc((made->arg_count + made->result_count + 1) * sizeof *made->types);
    for (uint32_t i = 0; i < made->arg_count; i++)
        made->types[i] = function->body.args[i].type;
    for (uint32_t i = 0; i < made->result_count; i++)
        made->types[made->arg_count + i] = function->results[i];
    rc = text_of_module(&text, made, module, function, error);
    if (rc == 0)
        rc = program_compile_text(made, buf_str(&text), error);
    if (rc < 0)
        program_release(made);
    else
        *executable = made;
    return rc;
}

void program_release(struct executable *executable)
{
    plugin_destroy(executable->plugin, PJRT_LOADED_DESTROY, executable->loaded);
    mem_free(executable->types);
    mem_free(executable);
}

int64_t program_peak_bytes(const struct executable *executable)
{
    return executable->peak_bytes;
}

/* --- launches ------------------------------------------------------------------------------------------- */

/* The copy of a value in the device's memory. */
struct resident {
    struct tensor_copy copy; /* the first field */
    const struct pjrt_plugin *plugin;
    struct pjrt_buffer *buffer;
};

static void resident_free(struct tensor_copy *copy)
{
    struct resident *resident = (struct resident *)copy;
    plugin_destroy(resident->plugin, PJRT_BUFFER_DESTROY, resident->buffer);
    mem_free(resident);
}

/* Takes over the buffer, and returns a copy with one reference. */
static struct resident *resident_new(const struct pjrt_plugin *plugin, struct pjrt_buffer *buffer)
{
    struct resident *resident = mem_alloc(sizeof *resident);
    resident->copy = (struct tensor_copy){1, plugin, resident_free};
    resident->plugin = plugin;
    resident->buffer = buffer;
    return resident;
}

void program_evict(struct tensor *tensor)
{
    tensor_copy_set(tensor, NULL);
}

struct run {
    const struct executable *executable;
    struct resident **args;     /* one reference each */
    struct pjrt_buffer **given; /* the buffers of the arguments */
    struct pjrt_buffer **outputs;
    bool *brought;            /* for each argument: copied to the device by this launch */
    struct pjrt_event **sent; /* ready when the plugin has read the argument; NULL: no wait is needed */
    struct tensor **results;
    struct error *error;
};

static int run_send_one(struct run *run, uint32_t i, struct tensor *arg)
{
    const struct pjrt_plugin *plugin = run->executable->plugin;
    struct pjrt_buffer_from_host send = {.size = sizeof send,
                                         .client = plugin->client,
                                         .data = arg->data,
                                         .type = (int)pjrt_type_of(arg->type.element),
                                         .dims = arg->type.dims,
                                         .dim_count = (size_t)arg->type.rank,
                                         .semantics = PJRT_HOST_UNTIL_TRANSFER_COMPLETES,
                                         .device = plugin->device};
    int rc = plugin_call(plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &send, run->error);
    if (rc < 0)
        return rc;
    run->args[i] = resident_new(plugin, send.buffer);
    run->sent[i] = send.done_with_host;
    run->brought[i] = true;
    return 0;
}

/* Copies the arguments to the device that it does not have. */
static int run_send(struct run *run, struct tensor *const *args)
{
    int rc = 0;
    for (uint32_t i = 0; i < run->executable->arg_count && rc == 0; i++) {
        run->args[i] = (struct resident *)tensor_copy_take(args[i], run->executable->plugin);
        if (!run->args[i])
            rc = run_send_one(run, i, args[i]);
        run->given[i] = run->args[i] ? run->args[i]->buffer : NULL;
    }
    return rc;
}

static int run_execute(struct run *run)
{
    const struct pjrt_plugin *plugin = run->executable->plugin;
    uint32_t arg_count = run->executable->arg_count;
    int64_t *all = mem_alloc((arg_count + 1) * sizeof *all);
    for (uint32_t i = 0; i < arg_count; i++)
        all[i] = i; /* other launches read the arguments too: none may be reused for a result */
    struct pjrt_execute_options options = {
        .size = sizeof options, .not_donatable = all, .not_donatable_count = arg_count};
    struct pjrt_event *complete = NULL;
    struct pjrt_buffer *const *const arguments[] = {run->given};
    struct pjrt_buffer **const outputs[] = {run->outputs};
    struct pjrt_execute execute = {.size = sizeof execute,
                                   .loaded = run->executable->loaded,
                                   .options = &options,
                                   .arguments = arguments,
                                   .device_count = 1,
                                   .argument_count = arg_count,
                                   .outputs = outputs,
                                   .complete = &complete};
    int rc = plugin_call(plugin, PJRT_LOADED_EXECUTE, &execute, run->error);
    mem_free(all);
    return rc < 0 ? rc : plugin_await(plugin, complete, run->error);
}

static int run_fetch(struct run *run)
{
    const struct executable *executable = run->executable;
    int rc = 0;
    for (uint32_t i = 0; i < executable->result_count && rc == 0; i++) {
        const struct ir_type *type = &executable->types[executable->arg_count + i];
        run->results[i] = tensor_new(type);
        if (!run->results[i])
            return error_set(run->error, ERROR_LIMIT, "no memory for results");
        struct pjrt_buffer_to_host fetch = {.size = sizeof fetch,
                                            .buffer = run->outputs[i],
                                            .to = run->results[i]->data,
                                            .to_len = (size_t)ir_type_bytes(type)};
        rc = plugin_call(executable->plugin, PJRT_BUFFER_TO_HOST, &fetch, run->error);
        if (rc == 0)
            rc = plugin_await(executable->plugin, fetch.event, run->error);
    }
    return rc;
}

/* Ends the run. Buffers stay on the device as the tensors' copies. Waits for the events of the arguments,
 * which the plugin may still be reading even if the run has failed. */
static void run_end(struct run *run, struct tensor *const *args, bool failed)
{
    const struct executable *executable = run->executable;
    struct error ignored;
    for (uint32_t i = 0; i < executable->arg_count; i++) {
        bool came = plugin_await(executable->plugin, run->sent[i], &ignored) == 0 && run->brought[i];
        if (came && !failed)
            tensor_copy_set(args[i], &run->args[i]->copy);
        else if (run->args[i])
            tensor_copy_unref(&run->args[i]->copy);
    }
    for (uint32_t i = 0; i < executable->result_count; i++)
        if (failed)
            plugin_destroy(executable->plugin, PJRT_BUFFER_DESTROY, run->outputs[i]);
        else
            tensor_copy_set(run->results[i], &resident_new(executable->plugin, run->outputs[i])->copy);
    mem_free(run->args);
    mem_free(run->given);
    mem_free(run->brought);
    mem_free(run->sent);
    mem_free(run->outputs);
}

void program_launch(struct executable *executable, const struct flow_launch *launch)
{
    struct flow_failure failure = {.island = UINT32_MAX, .device = UINT32_MAX, .incarnation = UINT32_MAX};
    struct run run = {.executable = executable,
                      .args = mem_alloc((executable->arg_count + 1) * sizeof *run.args),
                      .given = mem_alloc((executable->arg_count + 1) * sizeof *run.given),
                      .brought = mem_alloc(executable->arg_count + 1),
                      .sent = mem_alloc((executable->arg_count + 1) * sizeof *run.sent),
                      .outputs = mem_alloc((executable->result_count + 1) * sizeof *run.outputs),
                      .results = mem_alloc((executable->result_count + 1) * sizeof *run.results),
                      .error = &failure.error};
    int rc = run_send(&run, launch->args);
    if (rc == 0)
        rc = run_execute(&run);
    if (rc == 0)
        rc = run_fetch(&run);
    run_end(&run, launch->args, rc < 0);
    for (uint32_t i = 0; i < executable->result_count && rc < 0; i++)
        tensor_unref(run.results[i]);
    launch->done(launch->arg, run.results, rc < 0 ? 0 : executable->result_count, rc < 0 ? &failure : NULL);
    mem_free(run.results);
}
