#include "flow/host/compiled.h"

#include <pthread.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/map.h"
#include "flow/exec/user.h"
#include "flow/ir/user.h"

struct compiled_functions {
    pthread_mutex_t mutex;
    const struct executor *user, *pjrt;
    struct u64_map by_hash;
    struct list_node idle;
    uint32_t idle_count;
    size_t bytes;        /* of the tails of all shared functions */
    bool closing;        /* the owner has freed it: no function stays idle */
    uint64_t references; /* one for each compiled function, and the owner's */
};

/* --- compiling ------------------------------------------------------------------------------------------ */

static int compiled_by(const struct executor *executor, struct compiled *compiled, struct error *error)
{
    compiled->executor = executor;
    return executor->compile(executor, compiled->module, compiled->function, &compiled->executable, error);
}

static int compiled_load(const struct compiled_functions *all, struct str name, struct str text,
                         struct compiled *compiled, struct error *error)
{
    bool user = ir_is_user(text);
    int rc = user ? ir_parse_user(text, &compiled->module, error)
                  : ir_parse(text, "function", &compiled->module, error);
    if (rc < 0)
        return rc;
    if (!user && ir_verify(compiled->module, error) < 0)
        return ERROR_INVALID;
    compiled->function = ir_function(compiled->module, name);
    if (!compiled->function)
        return error_set(error, ERROR_NOT_FOUND, "the module has no function " STR_FORMAT, STR_ARG(name));
    if (user)
        return compiled_by(all->user, compiled, error);
    rc = all->pjrt ? compiled_by(all->pjrt, compiled, error) : ERROR_UNSUPPORTED;
    if (rc != ERROR_UNSUPPORTED)
        return rc;
    const struct executor *fast = executor_named("onednn"); /* NULL if the build has none */
    return compiled_by(fast ? fast : executor_named("interpreter"), compiled, error);
}

/* --- shared functions ----------------------------------------------------------------------------------- */

/* Functions with a parameter `all` are called with the mutex held; compiled_free is called without it. */

static void compiled_forget(struct compiled_functions *all, struct compiled *compiled)
{
    CHECK(compiled->references == 0 && compiled->tail.len > 0 && all->idle_count > 0);
    list_remove(&compiled->idle);
    all->idle_count--;
    all->bytes -= compiled->tail.len;
    u64_map_remove(&all->by_hash, compiled->hash);
}

static void compiled_free(struct compiled *compiled)
{
    compiled->executor->release(compiled->executable);
    ir_module_free(compiled->module);
    buf_done(&compiled->tail);
    mem_free(compiled);
}

static void compiled_functions_end(struct compiled_functions *all)
{
    CHECK(list_empty(&all->idle));
    u64_map_done(&all->by_hash);
    pthread_mutex_destroy(&all->mutex);
    mem_free(all);
}

/* Removes the functions that have been idle longest, until at most `idle` are left and the texts leave space
 * for `bytes`. Chains them in *ret_out, for the caller to free without the mutex. */
static void compiled_make_room(struct compiled_functions *all, uint32_t idle, size_t bytes,
                               struct list_node *ret_out)
{
    while (all->idle_count > idle || (all->idle_count > 0 && all->bytes + bytes > COMPILED_BYTES_MAX)) {
        struct compiled *oldest = container_of(all->idle.next, struct compiled, idle);
        compiled_forget(all, oldest);
        all->references--;
        list_append(ret_out, &oldest->idle);
    }
}

static void compiled_free_all(struct list_node *list)
{
    list_for_each_safe(node, after, list) compiled_free(container_of(node, struct compiled, idle));
}

static struct compiled *compiled_find(struct compiled_functions *all, struct str tail, uint64_t hash)
{
    struct compiled *compiled = u64_map_get(&all->by_hash, hash);
    if (!compiled || !str_equal(buf_str(&compiled->tail), tail))
        return NULL;
    if (compiled->references++ == 0) {
        list_remove(&compiled->idle);
        all->idle_count--;
    }
    return compiled;
}

/* Enters a new function into the table if there is space and no other function has its hash. */
static void compiled_share(struct compiled_functions *all, struct compiled *compiled, struct str tail,
                           struct list_node *ret_out)
{
    compiled_make_room(all, COMPILED_IDLE_MAX, tail.len, ret_out);
    if (all->bytes + tail.len > COMPILED_BYTES_MAX || u64_map_get(&all->by_hash, compiled->hash))
        return;
    buf_add_str(&compiled->tail, tail);
    all->bytes += tail.len;
    u64_map_put(&all->by_hash, compiled->hash, compiled);
}

/* --- contract ------------------------------------------------------------------------------------------- */

struct compiled_functions *compiled_functions_new(const char *functions, const struct executor *pjrt)
{
    struct compiled_functions *all = mem_alloc(sizeof *all);
    pthread_mutex_init(&all->mutex, NULL);
    all->user = executor_user(functions);
    all->pjrt = pjrt;
    all->references = 1;
    list_init(&all->idle);
    return all;
}

void compiled_functions_free(struct compiled_functions *all)
{
    struct list_node out;
    list_init(&out);
    pthread_mutex_lock(&all->mutex);
    all->closing = true;
    compiled_make_room(all, 0, 0, &out);
    bool last = --all->references == 0;
    pthread_mutex_unlock(&all->mutex);
    compiled_free_all(&out);
    if (last)
        compiled_functions_end(all);
}

int compiled_get(struct compiled_functions *all, struct str tail, struct compiled **ret_compiled,
                 bool *ret_reused, struct error *error)
{
    struct str name, text;
    struct list_node out;
    if (!str_cut(tail, 0, &name, &text))
        return error_set(error, ERROR_INVALID, "a function without a name");
    uint64_t hash = hash_words(0, tail.data, tail.len);
    pthread_mutex_lock(&all->mutex);
    struct compiled *compiled = compiled_find(all, tail, hash);
    pthread_mutex_unlock(&all->mutex);
    if (compiled) {
        *ret_compiled = compiled;
        *ret_reused = true;
        return 0;
    }
    compiled = mem_alloc(sizeof *compiled);
    int rc = compiled_load(all, name, text, compiled, error);
    if (rc < 0) {
        ir_module_free(compiled->module);
        mem_free(compiled);
        return rc;
    }
    compiled->all = all;
    compiled->references = 1;
    compiled->hash = hash;
    list_init(&compiled->idle);
    list_init(&out);
    pthread_mutex_lock(&all->mutex);
    all->references++;
    if (!ir_is_user(text))
        compiled_share(all, compiled, tail, &out);
    pthread_mutex_unlock(&all->mutex);
    compiled_free_all(&out);
    *ret_compiled = compiled;
    *ret_reused = false;
    return 0;
}

void compiled_drop(struct compiled *compiled)
{
    struct compiled_functions *all = compiled->all;
    struct list_node out;
    list_init(&out);
    pthread_mutex_lock(&all->mutex);
    CHECK(compiled->references > 0);
    if (--compiled->references == 0 && compiled->tail.len > 0) {
        list_append(&all->idle, &compiled->idle);
        all->idle_count++;
        compiled_make_room(all, all->closing ? 0 : COMPILED_IDLE_MAX, 0, &out);
    } else if (compiled->references == 0) {
        list_append(&out, &compiled->idle);
        all->references--;
    }
    bool last = all->references == 0;
    pthread_mutex_unlock(&all->mutex);
    compiled_free_all(&out);
    if (last)
        compiled_functions_end(all);
}
