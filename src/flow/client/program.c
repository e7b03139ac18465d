/* Functions, programs, launches. */
#include "flow/client/client.h"

#include <stdio.h>

#include "flow/ir/user.h"

int phx_flow_function(phx_flow *flow, const char *text, size_t len, const char *name, uint64_t *ret_function,
                      struct phx_error *error)
{
    struct str whole = {text, len};
    struct client_function function = {0};
    struct error why;
    int rc = ir_is_user(whole) ? ir_parse_user(whole, &function.module, &why)
                               : ir_parse(whole, "function", &function.module, &why);
    if (rc == 0 && !ir_is_user(whole))
        rc = ir_verify(function.module, &why);
    if (rc < 0) {
        ir_module_free(function.module);
        return client_error_of(error, &why);
    }
    function.function = ir_function(function.module, str_from(name));
    if (!function.function || len > ENTRY_TAIL_MAX / 2) {
        ir_module_free(function.module);
        return client_error(error, PHX_ERROR_INVALID, "the module has no function %.100s, or is too large",
                            name);
    }
    struct buf tail = {0};
    buf_add(&tail, name, strlen(name) + 1);
    buf_add(&tail, text, len);
    pthread_mutex_lock(&flow->mutex);
    function.id = ++flow->next_function;
    buf_add_str(&function.text, buf_str(&tail));
    vec_push(&flow->functions, function);
    struct flow_entry entry = {.kind = ENTRY_FUNCTION, .handle = function.id};
    client_send_entry(flow, &flow->head, &entry, buf_str(&tail), true);
    pthread_mutex_unlock(&flow->mutex);
    buf_done(&tail);
    *ret_function = function.id;
    return 0;
}

void client_functions_free(phx_flow *flow)
{
    for (size_t i = 0; i < flow->functions.len; i++) {
        ir_module_free(flow->functions.items[i].module);
        buf_done(&flow->functions.items[i].text);
    }
    vec_done(&flow->functions);
}

/* Functions are numbered from 1 and never removed. */
static const struct ir_function *client_function(phx_flow *flow, uint64_t id)
{
    pthread_mutex_lock(&flow->mutex);
    const struct ir_function *function =
        id >= 1 && id <= flow->functions.len ? flow->functions.items[id - 1].function : NULL;
    pthread_mutex_unlock(&flow->mutex);
    return function;
}

phx_flow_program *phx_flow_program_new(phx_flow *flow)
{
    phx_flow_program *program = mem_alloc(sizeof *program);
    program->flow = flow;
    program->program = program_new();
    return program;
}

/* Records the first failure only. */
static void client_program_wrong(phx_flow_program *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void client_program_wrong(phx_flow_program *program, const char *format, ...)
{
    if (program->wrong.code != ERROR_NONE)
        return;
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(&program->wrong, ERROR_INVALID, "%s", text);
}

/* Returns the mesh after adding it to the program, or NULL with the failure recorded. */
static const struct flow_mesh *client_program_mesh(phx_flow_program *program, uint32_t id)
{
    pthread_mutex_lock(&program->flow->mutex);
    const struct client_mesh *mesh = client_mesh(program->flow, id);
    if (mesh)
        program_add_mesh(program->program, &mesh->places->shape);
    pthread_mutex_unlock(&program->flow->mutex);
    if (!mesh)
        client_program_wrong(program, "no mesh %u", id);
    return mesh ? program_mesh(program->program, id) : NULL;
}

uint32_t phx_flow_program_arg(phx_flow_program *program, const struct phx_flow_type *type,
                              const struct phx_flow_sharding *sharding)
{
    struct ir_type inner = {0};
    struct flow_sharding cut = flow_sharding_of_public(sharding);
    if (program->finished)
        client_program_wrong(program, "the program is finished");
    else if (!ir_type_of_public(type, &inner))
        client_program_wrong(program, "argument %u has no such type", program->program->arg_count);
    else if (client_program_mesh(program, sharding->mesh))
        return program_arg(program->program, &inner, &cut);
    return UINT32_MAX;
}

/* Checks the arguments of a call against the function's parameters. */
static void client_check_call(phx_flow_program *program, const struct ir_function *function,
                              const struct flow_mesh *mesh, const uint32_t *args, uint32_t arg_count)
{
    if (arg_count != function->body.arg_count) {
        client_program_wrong(program, "@" STR_FORMAT " takes %u arguments, not %u", STR_ARG(function->name),
                             function->body.arg_count, arg_count);
        return;
    }
    for (uint32_t i = 0; i < arg_count; i++) {
        if (args[i] >= program->program->values.len) {
            client_program_wrong(program, "argument %u of @" STR_FORMAT " is no value", i,
                                 STR_ARG(function->name));
            return;
        }
        const struct program_value *value = &program->program->values.items[args[i]];
        struct error why;
        if (value->sharding.mesh != mesh->id ||
            flow_sharding_verify(&value->type, &value->sharding, mesh, &why) < 0) {
            client_program_wrong(program, "argument %u of @" STR_FORMAT " does not lie on mesh %u", i,
                                 STR_ARG(function->name), mesh->id);
            return;
        }
        struct ir_type shard = flow_shard_type(&value->type, &value->sharding, mesh);
        char a[IR_TYPE_TEXT_MAX], b[IR_TYPE_TEXT_MAX];
        if (!ir_type_equal(&shard, &function->body.args[i].type))
            client_program_wrong(program, "a shard of argument %u is %.90s, @" STR_FORMAT " takes %.90s", i,
                                 ir_type_text(&shard, a), STR_ARG(function->name),
                                 ir_type_text(&function->body.args[i].type, b));
    }
}

int phx_flow_program_call(phx_flow_program *program, uint64_t number, uint32_t mesh_id, const uint32_t *args,
                          uint32_t arg_count, const struct phx_flow_sharding *result_shardings,
                          uint32_t *ret_results, uint32_t result_count, struct phx_error *error)
{
    const struct ir_function *function = client_function(program->flow, number);
    const struct flow_mesh *mesh = client_program_mesh(program, mesh_id);
    if (program->finished)
        client_program_wrong(program, "the program is finished");
    else if (!function)
        client_program_wrong(program, "no function %llu", (unsigned long long)number);
    else if (result_count != function->result_count)
        client_program_wrong(program, "@" STR_FORMAT " gives %u results, not %u", STR_ARG(function->name),
                             function->result_count, result_count);
    else if (mesh)
        client_check_call(program, function, mesh, args, arg_count);
    if (program->wrong.code != ERROR_NONE)
        return client_error_of(error, &program->wrong);
    struct program_value *results = mem_alloc((result_count + 1) * sizeof *results);
    for (uint32_t i = 0; i < result_count; i++) {
        results[i] =
            (struct program_value){function->results[i], flow_sharding_of_public(&result_shardings[i])};
        for (int32_t d = 0; d < results[i].type.rank; d++)
            results[i].type.dims[d] *= flow_sharding_parts(&results[i].sharding, mesh, d);
    }
    uint32_t first = program_call(program->program, number, mesh_id, args, arg_count, results, result_count);
    mem_free(results);
    for (uint32_t i = 0; i < result_count; i++)
        ret_results[i] = first + i;
    return 0;
}

uint32_t phx_flow_program_reshard(phx_flow_program *program, uint32_t value,
                                  const struct phx_flow_sharding *sharding)
{
    struct flow_sharding cut = flow_sharding_of_public(sharding);
    if (program->finished)
        client_program_wrong(program, "the program is finished");
    else if (value >= program->program->values.len)
        client_program_wrong(program, "a reshard of no value");
    else if (client_program_mesh(program, sharding->mesh))
        return program_reshard(program->program, value, &cut);
    return UINT32_MAX;
}

void phx_flow_program_result(phx_flow_program *program, uint32_t value)
{
    if (program->finished || value >= program->program->values.len)
        client_program_wrong(program, "a result that is no value, or of a finished program");
    else
        program_result(program->program, value);
}

int phx_flow_program_finish(phx_flow_program *program, struct phx_error *error)
{
    if (program->wrong.code == ERROR_NONE && !program->finished)
        program_verify(program->program, &program->wrong);
    if (program->wrong.code != ERROR_NONE)
        return client_error_of(error, &program->wrong);
    if (program->finished)
        return 0;
    phx_flow *flow = program->flow;
    struct buf tail = {0};
    program_encode(program->program, &tail);
    pthread_mutex_lock(&flow->mutex);
    program->id = ++flow->next_program;
    program->finished = true;
    vec_push(&flow->programs, program);
    struct flow_entry entry = {.kind = ENTRY_PROGRAM, .program = program->id};
    client_send_entry(flow, &flow->head, &entry, buf_str(&tail), true);
    pthread_mutex_unlock(&flow->mutex);
    buf_done(&tail);
    return 0;
}

void client_program_rest(phx_flow_program *program)
{
    if (!program->freed || program->launches > 0)
        return;
    struct flow_entry entry = {.kind = ENTRY_PROGRAM_FREE, .program = program->id};
    phx_flow *flow = program->flow;
    for (size_t i = 0; i < flow->programs.len; i++)
        if (flow->programs.items[i] == program) {
            vec_remove(&flow->programs, i);
            break;
        }
    if (program->finished)
        client_send_entry(flow, &flow->head, &entry, (struct str){0}, false);
    program_free(program->program);
    mem_free(program);
}

void phx_flow_program_free(phx_flow_program *program)
{
    if (!program)
        return;
    phx_flow *flow = program->flow;
    pthread_mutex_lock(&flow->mutex);
    program->freed = true;
    client_program_rest(program);
    pthread_mutex_unlock(&flow->mutex);
}

/* Puts the arguments into the entry if they fit, or into `tail`. */
static void client_launch_args(struct flow_entry *entry, const uint64_t *args, struct buf *tail)
{
    bool range = entry->count > ENTRY_ARGS_INLINE;
    for (uint32_t i = 1; i < entry->count && range; i++)
        range = args[i] == args[0] + i;
    if (range) {
        entry->flags = ENTRY_IS_RANGE;
        entry->args[0] = args[0];
    } else if (entry->count <= ENTRY_ARGS_INLINE) {
        mem_copy(entry->args, args, entry->count * sizeof *args);
    } else {
        buf_add(tail, args, entry->count * sizeof *args);
    }
}

void client_launch_send(phx_flow *flow, const phx_flow_program *program, const uint64_t *args,
                        uint32_t arg_count, struct flow_entry *entry)
{
    struct buf tail = {0};
    if (flow->launched - flow->finished >= CLIENT_WINDOW)
        client_flush(flow);
    while (flow->launched - flow->finished >= CLIENT_WINDOW && client_wait(flow, INT64_MAX))
        ;
    client_wait_for_head(flow);
    entry->kind = ENTRY_LAUNCH;
    entry->program = program->id;
    entry->count = (uint16_t)arg_count;
    entry->client = flow->id;
    entry->epoch = flow->epoch;
    entry->launch = ++flow->launched;
    entry->handle = (uint64_t)flow->id << HANDLE_CLIENT_SHIFT | (flow->next_value + 1);
    flow->next_value += entry->node;
    client_launch_args(entry, args, &tail);
    client_send_entry(flow, &flow->head, entry, buf_str(&tail), false);
    buf_done(&tail);
}

int phx_flow_launch(phx_flow *flow, phx_flow_program *program, const uint64_t *args, uint32_t arg_count,
                    uint64_t *ret_results, uint32_t result_count, struct phx_error *error)
{
    if (!program->finished)
        return client_error(error, PHX_ERROR_INVALID, "the program is not finished");
    if (arg_count != program->program->arg_count || result_count != program->program->result_count)
        return client_error(error, PHX_ERROR_INVALID, "the program takes %u arguments and gives %u results",
                            program->program->arg_count, program->program->result_count);
    struct flow_entry entry = {.kind = ENTRY_LAUNCH, .program = program->id, .count = (uint16_t)arg_count};
    struct buf tail = {0};
    uint64_t *today = flow->rerun_launches ? client_args_today(flow, args, arg_count) : NULL;
    client_launch_args(&entry, today ? today : args, &tail);
    mem_free(today);
    pthread_mutex_lock(&flow->mutex);
    if (flow->launched - flow->finished >= CLIENT_WINDOW)
        client_flush(flow);
    while (flow->launched - flow->finished >= CLIENT_WINDOW && client_wait(flow, INT64_MAX))
        ;
    client_wait_for_head(flow);
    int rc = flow->broken ? client_error(error, PHX_ERROR_IO, "the connection to the head is lost") : 0;
    entry.client = flow->id;
    entry.epoch = flow->epoch;
    entry.launch = flow->launched + 1;
    entry.node = result_count;
    entry.handle = (uint64_t)flow->id << HANDLE_CLIENT_SHIFT | (flow->next_value + 1);
    uint32_t index = 0;
    for (size_t n = 0; n < program->program->nodes.len && rc == 0; n++) {
        if (program->program->nodes.items[n].kind != PROGRAM_RESULT)
            continue;
        const struct program_value *value =
            &program->program->values.items[program->program->nodes.items[n].operands[0]];
        const struct client_mesh *mesh = client_mesh(flow, value->sharding.mesh);
        if (!mesh) {
            rc = client_error(error, PHX_ERROR_INVALID, "mesh %u has been freed", value->sharding.mesh);
            break;
        }
        client_value_new(flow, entry.handle + index++, value, mesh->places)->launch = entry.launch;
    }
    for (uint32_t i = 0; i < index && rc < 0; i++)
        client_value_free(flow, u64_map_get(&flow->values, entry.handle + i));
    if (rc == 0) {
        for (uint32_t i = 0; i < result_count; i++)
            ret_results[i] = entry.handle + i;
        flow->next_value += result_count;
        flow->launched++;
        client_send_entry(flow, &flow->head, &entry, buf_str(&tail), false);
        if (flow->rerun_launches)
            client_lineage_add(flow, program, args, arg_count, &entry);
    }
    pthread_mutex_unlock(&flow->mutex);
    buf_done(&tail);
    return rc;
}
