/* keeper.c - three threads: one renews the lease, however busy the loop is; one waits for changes in etcd;
 * one queries an etcd that has not answered, until it does. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "host/standby/internal.h"
#include "base/arena.h"
#include "base/check.h"

#define SEEK_NS NS_PER_SECOND /* of one query */

struct keeper_thread {
    struct etcd_options options; /* for queries */
    struct etcd_lease *lease;
    struct etcd_watch *watch;
    uv_async_t *news;
    pthread_t renewer, watcher, seeker;
    pthread_mutex_t mutex; /* for `stopping` and `seeks`, with their condition */
    pthread_cond_t changed;
    atomic_bool stopping, seeks;
};

static int64_t keeper_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Waits for `pause_ns`, or until the keeper stops. */
static void keeper_pause(struct keeper_thread *keeper, int64_t pause_ns)
{
    int64_t until_ns = keeper_now_ns() + pause_ns;
    struct timespec until = {until_ns / NS_PER_SECOND, until_ns % NS_PER_SECOND};
    pthread_mutex_lock(&keeper->mutex);
    while (!atomic_load(&keeper->stopping) &&
           pthread_cond_timedwait(&keeper->changed, &keeper->mutex, &until) == 0)
        ;
    pthread_mutex_unlock(&keeper->mutex);
}

static void *keep_lease(void *context)
{
    struct keeper_thread *keeper = context;
    while (!atomic_load(&keeper->stopping)) {
        struct error error;
        int rc = etcd_lease_renew(keeper->lease, &error);
        if (rc == ERROR_FENCED) {
            uv_async_send(keeper->news);
            break;
        }
        if (rc < 0 && keeper_now_ns() >= etcd_lease_until_ns(keeper->lease))
            uv_async_send(keeper->news);
        if (rc != ERROR_UNAVAILABLE) /* that call has waited already */
            keeper_pause(keeper, etcd_lease_length_ns(keeper->lease) / 4);
    }
    return NULL;
}

static void *keep_watch(void *context)
{
    struct keeper_thread *keeper = context;
    while (!atomic_load(&keeper->stopping))
        if (etcd_watch_wait(keeper->watch, keeper_now_ns() + NS_PER_SECOND) > 0)
            uv_async_send(keeper->news);
    return NULL;
}

/* Waits until there is something to seek. Returns false if the keeper stops. */
static bool keeper_waits_to_seek(struct keeper_thread *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    while (!atomic_load(&keeper->stopping) && !atomic_load(&keeper->seeks))
        pthread_cond_wait(&keeper->changed, &keeper->mutex);
    pthread_mutex_unlock(&keeper->mutex);
    return !atomic_load(&keeper->stopping);
}

static void *seek(void *context)
{
    struct keeper_thread *keeper = context;
    while (keeper_waits_to_seek(keeper)) {
        struct etcd_log *log;
        struct error error;
        int rc = etcd_log_open(&keeper->options, &log, &error);
        if (rc == ERROR_UNAVAILABLE)
            continue;
        if (rc == 0)
            etcd_log_close(log);
        atomic_store(&keeper->seeks, false);
        uv_async_send(keeper->news);
    }
    return NULL;
}

void keeper_seek(struct keeper_thread *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    atomic_store(&keeper->seeks, true);
    pthread_cond_broadcast(&keeper->changed);
    pthread_mutex_unlock(&keeper->mutex);
}

bool keeper_seeks(struct keeper_thread *keeper)
{
    return atomic_load(&keeper->seeks);
}

int keeper_begin(const struct etcd_options *options, uv_async_t *news, struct keeper_thread **ret_keeper,
                 struct error *error)
{
    struct keeper_thread *keeper = mem_alloc(sizeof *keeper);
    pthread_condattr_t monotonic;
    sigset_t all, before;
    keeper->news = news;
    keeper->options = *options;
    keeper->options.patience_ns = SEEK_NS;
    int rc = etcd_lease_new(options, &keeper->lease, error);
    if (rc == 0)
        rc = etcd_log_watch(options, &keeper->watch, error);
    if (rc < 0) {
        etcd_lease_end(keeper->lease);
        mem_free(keeper);
        return rc;
    }
    CHECK(pthread_mutex_init(&keeper->mutex, NULL) == 0 && pthread_condattr_init(&monotonic) == 0 &&
          pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
          pthread_cond_init(&keeper->changed, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* the loop's thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    CHECK(pthread_create(&keeper->renewer, NULL, keep_lease, keeper) == 0);
    CHECK(pthread_create(&keeper->watcher, NULL, keep_watch, keeper) == 0);
    CHECK(pthread_create(&keeper->seeker, NULL, seek, keeper) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *ret_keeper = keeper;
    return 0;
}

struct etcd_lease *keeper_lease(struct keeper_thread *keeper)
{
    return keeper->lease;
}

void keeper_finish(struct keeper_thread *keeper)
{
    if (!keeper)
        return;
    pthread_mutex_lock(&keeper->mutex);
    atomic_store(&keeper->stopping, true);
    pthread_cond_broadcast(&keeper->changed);
    pthread_mutex_unlock(&keeper->mutex);
    etcd_watch_wake(keeper->watch);
    CHECK(pthread_join(keeper->renewer, NULL) == 0 && pthread_join(keeper->watcher, NULL) == 0 &&
          pthread_join(keeper->seeker, NULL) == 0);
    etcd_watch_free(keeper->watch);
    etcd_lease_end(keeper->lease);
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->mutex);
    mem_free(keeper);
}
