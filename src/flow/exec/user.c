/* The executor for a shared object with four functions. */
#include "flow/exec/user.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/arena.h"
#include "flow/ir/public.h"
#include "phalanx/flow_user.h"

struct user_executor {
    struct executor executor;
    const char *folder;
};

struct executable {
    const struct ir_function *function;
    void *object, *opened;
    int (*run)(void *function, const struct phx_user_call *call, const void *const *args,
               void *const *results, char *message, size_t len);
    void (*close)(void *function);
};

static void user_release(struct executable *executable)
{
    if (executable->opened)
        executable->close(executable->opened);
    if (executable->object)
        dlclose(executable->object);
    mem_free(executable);
}

static int user_open(struct executable *made, const char *path, struct error *error)
{
    made->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!made->object)
        return error_set(error, ERROR_NOT_FOUND, "loading %s: %s", path, dlerror());
    uint32_t (*abi)(void);
    int (*open)(const char *, const struct phx_flow_type *, uint32_t, const struct phx_flow_type *, uint32_t,
                void **, char *, size_t);
    *(void **)&abi = dlsym(made->object, "phx_user_abi");
    *(void **)&open = dlsym(made->object, "phx_user_open");
    *(void **)&made->run = dlsym(made->object, "phx_user_run");
    *(void **)&made->close = dlsym(made->object, "phx_user_close");
    if (!abi || !open || !made->run || !made->close || abi() != PHX_USER_ABI)
        return error_set(error, ERROR_UNSUPPORTED, "%s lacks a function of ABI %d", path, PHX_USER_ABI);
    const struct ir_function *function = made->function;
    struct phx_flow_type *types =
        mem_alloc((function->body.arg_count + function->result_count + 1) * sizeof *types);
    bool known = true;
    for (uint32_t i = 0; i < function->body.arg_count; i++)
        known = known && ir_type_to_public(&function->body.args[i].type, &types[i]);
    for (uint32_t i = 0; i < function->result_count; i++)
        known = known && ir_type_to_public(&function->results[i], &types[function->body.arg_count + i]);
    char name[256], message[248] = "";
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(function->name));
    int rc = 0;
    if (!known)
        rc = error_set(error, ERROR_UNSUPPORTED, "@%s: an element type that phalanx/flow.h lacks", name);
    else if (open(name, types, function->body.arg_count, types + function->body.arg_count,
                  function->result_count, &made->opened, message, sizeof message) != 0)
        rc = error_set(error, ERROR_UNSUPPORTED, "@%s of %s: %.247s", name, path, message);
    mem_free(types);
    return rc;
}

static int user_compile(const struct executor *executor, const struct ir_module *module,
                        const struct ir_function *function, struct executable **executable,
                        struct error *error)
{
    const struct user_executor *user = (const struct user_executor *)executor;
    char path[1024];
    if (!user->folder)
        return error_set(error, ERROR_DENIED, "this worker has no folder of functions (--functions)");
    if (memchr(module->file.data, '/', module->file.len) || module->file.len == 0)
        return error_set(error, ERROR_DENIED, "the name of a shared object has no slash");
    snprintf(path, sizeof path, "%s/" STR_FORMAT, user->folder, STR_ARG(module->file));
    struct executable *made = mem_alloc(sizeof *made);
    made->function = function;
    int rc = user_open(made, path, error);
    if (rc < 0) {
        user_release(made);
        return rc;
    }
    *executable = made;
    return 0;
}

struct user_meeting {
    struct phx_user_call call; /* the first field: the function gets its address */
    struct flow_gang *gang;
    struct error error;
};

static int user_all_gather(const struct phx_user_call *call, uint64_t key, const void *mine, size_t size,
                           void *all)
{
    struct user_meeting *meeting = (struct user_meeting *)call->context;
    uint32_t count = call->partitions;
    if (!meeting->gang) {
        mem_copy(all, mine, size);
        return 0;
    }
    uint32_t *group = mem_alloc(count * sizeof *group);
    for (uint32_t i = 0; i < count; i++)
        group[i] = i;
    int rc = meeting->gang->all_gather(meeting->gang, group, count, key, mine, size, all, &meeting->error);
    mem_free(group);
    return rc;
}

static void user_launch(struct executable *executable, const struct flow_launch *launch)
{
    const struct ir_function *function = executable->function;
    struct flow_gang *gang = launch->gang;
    struct user_meeting meeting = {.gang = gang};
    meeting.call.partition = gang ? gang->partition : 0;
    meeting.call.partitions = gang ? gang->partitions : 1;
    meeting.call.context = &meeting;
    meeting.call.all_gather = user_all_gather;
    const void **args = mem_alloc((function->body.arg_count + 1) * sizeof *args);
    void **data = mem_alloc((function->result_count + 1) * sizeof *data);
    struct tensor **results = mem_alloc((function->result_count + 1) * sizeof *results);
    struct flow_failure failure = {.island = UINT32_MAX, .device = UINT32_MAX, .incarnation = UINT32_MAX};
    char message[248] = "";
    bool made = true;
    for (uint32_t i = 0; i < function->body.arg_count; i++)
        args[i] = launch->args[i]->data;
    for (uint32_t i = 0; i < function->result_count; i++) {
        results[i] = tensor_new(&function->results[i]);
        made = made && results[i];
        data[i] = results[i] ? results[i]->data : NULL;
    }
    int rc = 0;
    if (!made)
        rc = error_set(&failure.error, ERROR_LIMIT, "no memory for results");
    else if (executable->run(executable->opened, &meeting.call, args, data, message, sizeof message) != 0) {
        rc = ERROR_INVALID;
        if (meeting.error.code != 0)
            failure.error = meeting.error;
        else
            error_set(&failure.error, ERROR_INVALID, "%.247s", message);
    }
    for (uint32_t i = 0; rc < 0 && i < function->result_count; i++)
        tensor_unref(results[i]);
    launch->done(launch->arg, results, rc < 0 ? 0 : function->result_count, rc < 0 ? &failure : NULL);
    mem_free(results);
    mem_free(data);
    mem_free(args);
}

static int64_t user_peak_bytes(const struct executable *executable)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < executable->function->result_count; i++)
        bytes += ir_type_bytes(&executable->function->results[i]);
    return bytes;
}

const struct executor *executor_user(const char *folder)
{
    static struct user_executor user = {.executor = {.name = "user",
                                                     .compile = user_compile,
                                                     .launch = user_launch,
                                                     .release = user_release,
                                                     .peak_bytes = user_peak_bytes}};
    user.folder = folder;
    return &user.executor;
}
