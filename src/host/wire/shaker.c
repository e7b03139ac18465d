/* shaker.c - a thread that does the TLS handshakes of accepted connections.
 *
 * A handshake costs a fraction of a millisecond, and strangers may request one as often as they like. So the
 * loop reads a peer's bytes, hands them to the thread with the connection's TLS, and gets both back with the
 * answer; nobody reads from the connection in between. One thread, of a lower priority than the loop's, does
 * the handshakes in the order of the connections.
 */
#include "host/wire/internal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { SHAKER_NICE = 5, SHAKEN_A_TURN = 64 };

struct shaker {
    struct wire *wire;
    uv_async_t async;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list_node given, done; /* under the mutex */
    bool stopping;                /* under the mutex too */
};

static struct wire_conn *shaker_first(struct list_node *list)
{
    if (list_empty(list))
        return NULL;
    struct wire_conn *conn = container_of(list->next, struct wire_conn, shaker_node);
    list_remove(&conn->shaker_node);
    return conn;
}

static void *shaker_run(void *context)
{
    struct shaker *shaker = context;
    (void)!nice(SHAKER_NICE); /* of this thread alone, on Linux */
    pthread_mutex_lock(&shaker->mutex);
    while (!shaker->stopping) {
        struct wire_conn *conn = shaker_first(&shaker->given);
        if (!conn) {
            pthread_cond_wait(&shaker->changed, &shaker->mutex);
            continue;
        }
        pthread_mutex_unlock(&shaker->mutex);
        conn->shake_rc = wire_tls_step(conn->tls, &conn->shake_error);
        pthread_mutex_lock(&shaker->mutex);
        list_append(&shaker->done, &conn->shaker_node);
        uv_async_send(&shaker->async);
    }
    pthread_mutex_unlock(&shaker->mutex);
    return NULL;
}

static void shaker_on_done(uv_async_t *async)
{
    struct shaker *shaker = async->data;
    struct wire_conn *conn = NULL;
    for (int i = 0; i < SHAKEN_A_TURN; i++) {
        pthread_mutex_lock(&shaker->mutex);
        conn = shaker_first(&shaker->done);
        pthread_mutex_unlock(&shaker->mutex);
        if (!conn)
            return;
        conn->beside = false;
        wire_conn_shaken(conn);
        if (shaker->wire->shut_down)
            return;
    }
    uv_async_send(async); /* the rest comes in the next turn */
}

struct shaker *shaker_new(struct wire *wire)
{
    struct shaker *shaker = mem_alloc(sizeof *shaker);
    sigset_t all, before;
    shaker->wire = wire;
    list_init(&shaker->given);
    list_init(&shaker->done);
    CHECK(uv_async_init(wire->loop, &shaker->async, shaker_on_done) == 0);
    shaker->async.data = shaker;
    uv_unref((uv_handle_t *)&shaker->async); /* it alone keeps no loop alive */
    wire->handles_open++;
    CHECK(pthread_mutex_init(&shaker->mutex, NULL) == 0 && pthread_cond_init(&shaker->changed, NULL) == 0);
    sigfillset(&all); /* signals are the loop's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    CHECK(pthread_create(&shaker->thread, NULL, shaker_run, shaker) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return shaker;
}

void shaker_give(struct shaker *shaker, struct wire_conn *conn)
{
    CHECK(!conn->beside);
    conn->beside = true;
    pthread_mutex_lock(&shaker->mutex);
    list_append(&shaker->given, &conn->shaker_node);
    pthread_cond_signal(&shaker->changed);
    pthread_mutex_unlock(&shaker->mutex);
}

static void shaker_closed(uv_handle_t *handle)
{
    struct shaker *shaker = handle->data;
    struct wire *wire = shaker->wire;
    pthread_cond_destroy(&shaker->changed);
    pthread_mutex_destroy(&shaker->mutex);
    mem_free(shaker);
    wire_release(wire);
}

static void shaker_give_back(struct list_node *list)
{
    struct wire_conn *conn;
    while ((conn = shaker_first(list))) {
        conn->beside = false;
        if (conn->orphan)
            wire_conn_free(conn);
    }
}

void shaker_close(struct shaker *shaker)
{
    pthread_mutex_lock(&shaker->mutex);
    shaker->stopping = true;
    pthread_cond_signal(&shaker->changed);
    pthread_mutex_unlock(&shaker->mutex);
    CHECK(pthread_join(shaker->thread, NULL) == 0);
    shaker_give_back(&shaker->given);
    shaker_give_back(&shaker->done);
    uv_close((uv_handle_t *)&shaker->async, shaker_closed);
}
