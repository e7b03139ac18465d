/* gate.h - a place in a test where threads wait until it is opened: what happens meanwhile is certain to come
 * before what happens behind it.
 *
 *     struct gate gate = GATE_OPEN;
 *     gate_shut(&gate);
 *     ... a thread is started that comes to gate_pass(&gate) ...
 *     gate_wait(&gate, 1);                       // it waits there
 *     gate_open(&gate);
 */
#ifndef PHX_TESTS_HOST_STORE_GATE_H
#define PHX_TESTS_HOST_STORE_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut;
    uint32_t waiting; /* threads that wait now */
};
#define GATE_OPEN ((struct gate){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0})

static inline void gate_set(struct gate *gate, bool shut)
{
    pthread_mutex_lock(&gate->lock);
    gate->shut = shut;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static inline void gate_shut(struct gate *gate)
{
    gate_set(gate, true);
}

static inline void gate_open(struct gate *gate)
{
    gate_set(gate, false);
}

static inline void gate_pass(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    pthread_cond_broadcast(&gate->changed);
    while (gate->shut)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->waiting--;
    pthread_mutex_unlock(&gate->lock);
}

/* Returns when that many threads wait at the gate, which is shut. */
static inline void gate_wait(struct gate *gate, uint32_t waiting)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->waiting < waiting)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

#endif
