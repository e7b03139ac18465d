/* Threads that run and compile functions. */
#include "flow/host/runner.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "flow/host/compiled.h"
#include "flow/wire/clock.h"

struct finished {
    struct flow_event event;
    struct fault fault;
};

struct compile_order {
    uint64_t number;
    struct buf text;
};

struct runner {
    struct runners *runners;
    pthread_t thread;
    pthread_cond_t wanted;
    uint32_t device;
    bool has;
    struct flow_effect effect;
};

struct runners {
    pthread_mutex_t mutex;
    struct runner *devices;
    uint32_t device_count;
    pthread_t compiler;
    pthread_cond_t to_compile;
    VEC(struct compile_order) orders;
    VEC(struct finished) finished;
    struct finished last; /* the one that runners_next returned last */
    struct compiled_functions *compiled;
    uint64_t work_limit;
    const struct executor *pjrt; /* NULL: none */
    struct gang_table *gangs;
    struct loop *loop;
    runner_ran *ran;
    void *context;
    bool stop;
};

static void runners_finish(struct runners *runners, const struct finished *finished)
{
    pthread_mutex_lock(&runners->mutex);
    bool first = runners->finished.len == 0;
    vec_push(&runners->finished, *finished);
    pthread_mutex_unlock(&runners->mutex);
    if (first)
        loop_wake(runners->loop);
}

bool runners_next(struct runners *runners, struct flow_event *ret_event)
{
    pthread_mutex_lock(&runners->mutex);
    bool some = runners->finished.len > 0;
    if (some) {
        runners->last = runners->finished.items[0];
        vec_remove(&runners->finished, 0);
    }
    pthread_mutex_unlock(&runners->mutex);
    if (!some)
        return false;
    *ret_event = runners->last.event;
    ret_event->fault = runners->last.fault.reason ? &runners->last.fault : NULL;
    return true;
}

struct run_outcome {
    struct tensor **results;
    uint32_t count;
    struct fault fault;
};

static void runner_done(void *arg, struct tensor **results, uint32_t count,
                        const struct flow_failure *failure)
{
    struct run_outcome *outcome = arg;
    if (failure) {
        outcome->fault = fault_make(FAULT_FUNCTION_FAILED, 0, 0, "%.240s", failure->error.text);
        return;
    }
    outcome->count = count;
    outcome->results = mem_alloc((count + 1) * sizeof *outcome->results);
    mem_copy(outcome->results, results, count * sizeof *results);
}

/* Whether the arguments have the types of the function's parameters. */
static bool runner_args_fit(const struct compiled *compiled, const struct flow_effect *effect,
                            struct fault *ret)
{
    const struct ir_block *body = &compiled->function->body;
    if (body->arg_count != effect->arg_count) {
        *ret = fault_make(FAULT_FUNCTION_FAILED, 0, 0, "the function takes %u arguments, the call has %u",
                          body->arg_count, effect->arg_count);
        return false;
    }
    for (uint32_t i = 0; i < body->arg_count; i++) {
        char a[IR_TYPE_TEXT_MAX], b[IR_TYPE_TEXT_MAX];
        if (ir_type_equal(&body->args[i].type, &effect->args[i]->type))
            continue;
        *ret = fault_make(FAULT_FUNCTION_FAILED, 0, 0, "argument %u is %.80s, the function takes %.80s", i,
                          ir_type_text(&effect->args[i]->type, a), ir_type_text(&body->args[i].type, b));
        return false;
    }
    return true;
}

/* Runs one function. Returns true with the device's next run in *effect, or false if there is none now. The
 * executors of this build call `done` before launch returns. */
static bool runner_run(struct runners *runners, struct flow_effect *effect)
{
    struct compiled *compiled = effect->executable;
    struct run_outcome outcome = {0};
    int64_t start_ns = flow_now_ns();
    struct gang_member *member =
        gang_member_new(runners->gangs, &effect->run, effect->gang_hosts, effect->gang_count);
    if (runner_args_fit(compiled, effect, &outcome.fault)) {
        struct flow_launch launch = {
            .args = effect->args, .gang = gang_member_gang(member), .done = runner_done, .arg = &outcome};
        launch.work_limit = runners->work_limit;
        compiled->executor->launch(compiled->executable, &launch);
        CHECK(outcome.results || outcome.fault.reason);
        struct fault abort;
        if (outcome.fault.reason && gang_member_fault(member, &abort))
            outcome.fault = abort;
    }
    gang_member_free(member);
    if (outcome.fault.reason && outcome.fault.launch == 0) {
        outcome.fault.launch = effect->run.launch;
        outcome.fault.node = effect->run.node;
    }
    for (uint32_t i = 0; i < effect->arg_count; i++)
        tensor_unref(effect->args[i]);
    mem_free(effect->args);
    mem_free(effect->gang_hosts);
    struct flow_event event = {.kind = FLOW_RAN, .device = effect->device, .run = effect->run};
    event.results = outcome.results;
    event.result_count = outcome.count;
    event.now_ns = flow_now_ns();
    event.device_ns = event.now_ns - start_ns;
    event.fault = outcome.fault.reason ? &outcome.fault : NULL;
    compiled->last_ns = event.device_ns > 0 ? event.device_ns : 1;
    bool next = runners->ran(runners->context, &event, effect);
    mem_free(outcome.results);
    return next;
}

int64_t runners_last_ns(const void *executable)
{
    int64_t last_ns = ((const struct compiled *)executable)->last_ns;
    return last_ns > 0 ? last_ns : INT64_MAX;
}

static void *runner_main(void *arg)
{
    struct runner *runner = arg;
    struct runners *runners = runner->runners;
    for (;;) {
        pthread_mutex_lock(&runners->mutex);
        while (!runner->has && !runners->stop)
            pthread_cond_wait(&runner->wanted, &runners->mutex);
        bool has = runner->has;
        struct flow_effect effect = runner->effect;
        runner->has = false;
        pthread_mutex_unlock(&runners->mutex);
        if (!has)
            return NULL;
        while (runner_run(runners, &effect))
            ;
    }
}

void runners_run(struct runners *runners, struct flow_effect *effect)
{
    struct runner *runner = &runners->devices[effect->device];
    pthread_mutex_lock(&runners->mutex);
    CHECK(!runner->has);
    runner->has = true;
    runner->effect = *effect;
    pthread_cond_signal(&runner->wanted);
    pthread_mutex_unlock(&runners->mutex);
    effect->args = NULL;
    effect->arg_count = 0;
    effect->gang_hosts = NULL;
}

void runners_evict(const struct runners *runners, struct tensor *tensor)
{
    if (runners->pjrt && runners->pjrt->evict)
        runners->pjrt->evict(tensor);
}

void runners_drop(void *executable)
{
    compiled_drop(executable);
}

static void runners_compile_one(struct runners *runners, struct compile_order *order)
{
    struct compiled *compiled;
    struct error error = {0};
    struct finished finished = {.event = {.kind = FLOW_COMPILED, .handle = order->number}};
    if (compiled_get(runners->compiled, buf_str(&order->text), &compiled, &finished.event.reused, &error) < 0)
        finished.fault = fault_make(FAULT_FUNCTION_FAILED, 0, 0, "%.240s", error.text);
    else
        finished.event.executable = compiled;
    buf_done(&order->text);
    runners_finish(runners, &finished);
}

static void *runners_compiler(void *arg)
{
    struct runners *runners = arg;
    for (;;) {
        pthread_mutex_lock(&runners->mutex);
        while (runners->orders.len == 0 && !runners->stop)
            pthread_cond_wait(&runners->to_compile, &runners->mutex);
        bool stop = runners->stop;
        struct compile_order order = {0};
        if (!stop) {
            order = runners->orders.items[0];
            vec_remove(&runners->orders, 0);
        }
        pthread_mutex_unlock(&runners->mutex);
        if (stop)
            return NULL;
        runners_compile_one(runners, &order);
    }
}

void runners_compile(struct runners *runners, uint64_t number, struct str tail)
{
    struct compile_order order = {.number = number};
    buf_add_str(&order.text, tail);
    pthread_mutex_lock(&runners->mutex);
    vec_push(&runners->orders, order);
    pthread_cond_signal(&runners->to_compile);
    pthread_mutex_unlock(&runners->mutex);
}

struct runners *runners_new(const struct runners_options *options)
{
    uint32_t devices = options->devices;
    struct runners *runners = mem_alloc(sizeof *runners);
    pthread_mutex_init(&runners->mutex, NULL);
    pthread_cond_init(&runners->to_compile, NULL);
    runners->compiled = compiled_functions_new(options->functions, options->pjrt);
    runners->work_limit = options->work_limit;
    runners->pjrt = options->pjrt;
    runners->gangs = options->gangs;
    runners->loop = options->loop;
    runners->ran = options->ran;
    runners->context = options->context;
    runners->device_count = devices;
    runners->devices = mem_alloc(devices * sizeof *runners->devices);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    CHECK(pthread_create(&runners->compiler, NULL, runners_compiler, runners) == 0);
    for (uint32_t d = 0; d < devices; d++) {
        struct runner *runner = &runners->devices[d];
        runner->runners = runners;
        runner->device = d;
        pthread_cond_init(&runner->wanted, NULL);
        CHECK(pthread_create(&runner->thread, NULL, runner_main, runner) == 0);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return runners;
}

void runners_free(struct runners *runners)
{
    if (!runners)
        return;
    pthread_mutex_lock(&runners->mutex);
    runners->stop = true;
    pthread_cond_signal(&runners->to_compile);
    for (uint32_t d = 0; d < runners->device_count; d++)
        pthread_cond_signal(&runners->devices[d].wanted);
    pthread_mutex_unlock(&runners->mutex);
    pthread_join(runners->compiler, NULL);
    for (uint32_t d = 0; d < runners->device_count; d++) {
        pthread_join(runners->devices[d].thread, NULL);
        pthread_cond_destroy(&runners->devices[d].wanted);
    }
    struct flow_event event;
    while (runners_next(runners, &event))
        if (event.executable)
            runners_drop(event.executable);
    for (size_t i = 0; i < runners->orders.len; i++)
        buf_done(&runners->orders.items[i].text);
    compiled_functions_free(runners->compiled);
    vec_done(&runners->orders);
    vec_done(&runners->finished);
    pthread_cond_destroy(&runners->to_compile);
    pthread_mutex_destroy(&runners->mutex);
    mem_free(runners->devices);
    mem_free(runners);
}
