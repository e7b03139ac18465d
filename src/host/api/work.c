#include "host/api/work.h"

#include <malloc.h>
#include <unistd.h>

#include "base/hash.h"
#include "host/api/seats.h"
#include "host/api/write.h"

/* The work of one request, on a thread of the pool or in a turn of the loop. */
struct work {
    struct seat_ticket ticket; /* must be first */
    struct worker *worker;
    struct api_request *request; /* NULL: the API has closed, or the turn has ended */
    void (*compute)(struct api_request *request);
    void (*go_on)(struct api_request *request);
    uv_work_t job;
    struct list_node node; /* in worker->works */
    bool started, on_loop;
};

/* The API's work. Lives until libuv has returned all work that was started, also after the API has closed. */
struct worker {
    struct seats seats, turns; /* seats of the pool; of the loop */
    struct work *turn;         /* has the loop's seat until the loop's next turn; NULL: none */
    struct list_node works;
    uv_mutex_t mutex; /* for `computing` */
    uv_cond_t idle;
    uint32_t computing;
    bool closed;
};

bool work_pays(const struct api_request *request, size_t bytes)
{
    return request->api->loop && !request->api->closing && bytes >= WORK_BYTES_MIN;
}

static struct worker *worker_of(struct api *api)
{
    if (api->worker)
        return api->worker;
    /* A request is allocated by one thread and freed by another. With a heap arena per thread, each arena
     * would keep the memory of the largest request. */
    (void)mallopt(M_ARENA_MAX, 1);
    struct worker *worker = mem_alloc(sizeof *worker);
    seats_init(&worker->seats, &seats_of_pool);
    seats_init(&worker->turns, &seats_of_loop);
    list_init(&worker->works);
    CHECK(uv_mutex_init(&worker->mutex) == 0 && uv_cond_init(&worker->idle) == 0);
    api->worker = worker;
    return worker;
}

static void free_closed(struct worker *worker)
{
    if (!worker->closed || !list_empty(&worker->works))
        return;
    uv_cond_destroy(&worker->idle);
    uv_mutex_destroy(&worker->mutex);
    mem_free(worker);
}

static void free_work(struct work *work)
{
    list_remove(&work->node);
    mem_free(work);
}

/* Gives the loop priority where processors are few. On Linux nice(2) acts on the thread. */
static void yield_to_loop(void)
{
    static _Thread_local bool yields;
    if (!yields)
        (void)!nice(WORK_NICE);
    yields = true;
}

/* Called on a thread of the pool. */
static void on_work(uv_work_t *job)
{
    yield_to_loop();
    struct work *work = job->data;
    struct worker *worker = work->worker;
    uv_mutex_lock(&worker->mutex);
    struct api_request *request = work->request;
    uv_mutex_unlock(&worker->mutex);
    if (request)
        work->compute(request);
    uv_mutex_lock(&worker->mutex);
    if (--worker->computing == 0)
        uv_cond_signal(&worker->idle);
    uv_mutex_unlock(&worker->mutex);
}

static void start(struct work *work);

static void on_worked(uv_work_t *job, int status)
{
    struct work *work = job->data;
    struct worker *worker = work->worker;
    struct api_request *request = work->request;
    CHECK(status == 0);
    struct seat_ticket *next = seats_leave(&worker->seats, &work->ticket);
    if (next)
        start(container_of(next, struct work, ticket));
    void (*go_on)(struct api_request * request) = work->go_on;
    free_work(work);
    if (!request) {
        free_closed(worker);
        return;
    }
    struct api *api = request->api;
    const struct api_hooks *hooks = &api->hooks;
    if (hooks->begins)
        hooks->begins(hooks->context);
    request->work = NULL;
    request->outcome = OUTCOME_READY;
    go_on(request);
    if (!request_is_pending(request))
        request_finish(request);
    if (hooks->ends)
        hooks->ends(hooks->context);
    request_retry_soon(api); /* the loop has to run to send it */
}

static void start(struct work *work)
{
    struct worker *worker = work->worker;
    uv_mutex_lock(&worker->mutex);
    worker->computing++;
    uv_mutex_unlock(&worker->mutex);
    work->started = true;
    work->job.data = work;
    CHECK(uv_queue_work(work->request->api->loop, &work->job, on_work, on_worked) == 0);
}

static uint64_t user_hash(const struct api_request *request)
{
    struct str name = request->user ? request->user->name : STR("");
    return hash64(0, name.data, name.len);
}

static struct work *work_new(struct api_request *request, void (*compute)(struct api_request *request),
                             void (*go_on)(struct api_request *request))
{
    struct work *work = mem_alloc(sizeof *work);
    CHECK(!request->work);
    work->worker = worker_of(request->api);
    work->request = request;
    work->compute = compute;
    work->go_on = go_on;
    list_append(&work->worker->works, &work->node);
    return work;
}

/* Returns the seats that the work needs. */
static struct seats *seats_of(struct work *work)
{
    return work->on_loop ? &work->worker->turns : &work->worker->seats;
}

/* Asks for a seat. Returns true if the work has one. Otherwise it waits, or the request was answered and the
 * work freed. */
static bool sits_down(struct work *work, enum seat_class of, uint32_t weight)
{
    struct api_request *request = work->request;
    enum seat seat = seats_ask(seats_of(work), user_hash(request), of, weight, &work->ticket);
    if (seat == SEAT_REFUSED) {
        free_work(work);
        request->retry_after_s = WRITE_RETRY_AFTER_S;
        answer_status(request, 429, "TooManyRequests",
                      "too many large requests of this user are being worked on: try again in a second");
        return false;
    }
    request->work = work;
    request->outcome = OUTCOME_PENDING;
    return seat == SEAT_TAKEN;
}

void work_start(struct api_request *request, void (*compute)(struct api_request *request),
                void (*go_on)(struct api_request *request))
{
    struct work *work = work_new(request, compute, go_on);
    if (sits_down(work, request->review_version ? SEAT_OF_ANYBODY : SEAT_OF_ROLE, 1))
        start(work);
}

/* --- turns of the loop ------------------------------------------------------------------------- */

/* Gives back the loop's seat. Returns the work that now has it. */
static struct work *end_turn(struct work *work)
{
    struct seat_ticket *next = seats_leave(&work->worker->turns, &work->ticket);
    free_work(work);
    return next ? container_of(next, struct work, ticket) : NULL;
}

/* Does the work. Returns true if it was much, so that nothing else follows in this turn of the loop. */
static bool take_turn(struct work *work)
{
    struct api_request *request = work->request;
    work->request = NULL;
    request->work = NULL;
    request->outcome = OUTCOME_READY;
    work->compute(request);
    work->go_on(request);
    size_t bytes = request->body.len + (request->write ? request->write->live_bytes : 0);
    if (bytes < WORK_BYTES_MIN)
        return false;
    work->worker->turn = work;
    request_retry_soon(request->api);
    return true;
}

void work_in_turn(struct api_request *request, void (*compute)(struct api_request *request),
                  void (*go_on)(struct api_request *request))
{
    if (!request->api->loop || request->api->closing) {
        compute(request);
        go_on(request);
        return;
    }
    struct work *work = work_new(request, compute, go_on);
    size_t bytes = request->arena.used_bytes + 1;
    work->on_loop = true;
    if (sits_down(work, SEAT_OF_ROLE, bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX) && !take_turn(work))
        CHECK(!end_turn(work)); /* work waits only after a turn that was much */
}

void work_next_turn(struct api *api)
{
    struct worker *worker = api->worker;
    struct work *work = worker ? worker->turn : NULL;
    if (!work)
        return;
    worker->turn = NULL;
    while ((work = end_turn(work))) {
        struct api_request *request = work->request;
        bool much = take_turn(work);
        if (!request_is_pending(request))
            request_finish(request);
        if (much)
            return;
    }
}

bool work_turn_is_over(const struct api *api)
{
    return !api->worker || !api->worker->turn;
}

void work_close(struct api *api)
{
    struct worker *worker = api->worker;
    if (!worker)
        return;
    api->worker = NULL;
    uv_mutex_lock(&worker->mutex);
    worker->closed = true;
    list_for_each_safe(node, after, &worker->works)
    {
        struct work *work = container_of(node, struct work, node);
        if (work->request)
            work->request->work = NULL;
        if (work->started || work == worker->turn)
            continue;
        seats_drop(seats_of(work), &work->ticket);
        free_work(work);
    }
    if (worker->turn)
        CHECK(!end_turn(worker->turn));
    while (worker->computing)
        uv_cond_wait(&worker->idle, &worker->mutex);
    list_for_each(node, &worker->works) container_of(node, struct work, node)->request = NULL;
    uv_mutex_unlock(&worker->mutex);
    free_closed(worker);
}
