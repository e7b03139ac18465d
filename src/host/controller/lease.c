/* lease.c - the stand-in: a thread that answers agents' heartbeats while the loop is busy.
 *
 * No request, patch or handshake of a client, no slow disk and no long step of the core may cost an agent its
 * lease. The loop's thread therefore lends the wire whenever it begins work that touches no agent's
 * connection (the API's requests, appends to the log, steps of the core, snapshots), and takes it back
 * afterwards. Once the loop has been busy for a while without polling its sockets, the stand-in takes the
 * lent wire for one short round now and then (drive/stand_in.h): it reads agents' messages, and answers
 * heartbeats as driver_stand_in() allows. The driver gets the frames that the stand-in has read in order,
 * before it checks leases.
 *
 *     HELD ── lend ──► LENT ── a round is due ──► TAKEN
 *      ▲  ◄── take ──── │  ◄──── round over ─────── │
 *      └────────────────┘
 * The loop's thread waits for the end of a round, and for a round that is due.
 *
 * Why this is safe: only the loop's thread declares a machine lost, while it holds the wire, and after it has
 * gathered everything that was read. The machine's session ends with that, and without a session nothing is
 * answered. An answer grants nothing beyond the lease. A dead loop does not keep tasks alive for ever: after
 * a limit without a turn of the loop, no heartbeat is answered, and leases run out. If the loop resumes after
 * that, driver_turn() detects that its host stood still. */
#include "host/controller/internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "drive/stand_in.h"

enum wire_state { WIRE_HELD, WIRE_LENT, WIRE_TAKEN };

struct stand_in {
    struct controller *controller;
    pthread_t thread;
    bool lent; /* used by the loop's thread only: it has lent the wire, and has not taken it back */
    /* All members below are protected by the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum wire_state wire;
    bool wanted; /* a round is due: the loop's thread waits for it */
    bool stopping;
    struct stand_in_clock clock;
    struct wire_attendant *attendant;
};

/* --- the thread ------------------------------------------------------------------------------- */

static void wait_for_change(struct stand_in *stand_in, int64_t until_ns)
{
    struct timespec until = {until_ns / NS_PER_SECOND, until_ns % NS_PER_SECOND};
    int rc = pthread_cond_timedwait(&stand_in->changed, &stand_in->mutex, &until);
    CHECK(rc == 0 || rc == ETIMEDOUT);
}

/* Attends the connections for one round. The mutex is held before and after, but not during the round. */
static void attend(struct stand_in *stand_in)
{
    stand_in->wire = WIRE_TAKEN;
    pthread_mutex_unlock(&stand_in->mutex);
    wire_attend(stand_in->controller->wire, stand_in->attendant);
    pthread_mutex_lock(&stand_in->mutex);
    stand_in_round(&stand_in->clock, controller_mono_ns());
    stand_in->wire = WIRE_LENT;
    stand_in->wanted = false;
    pthread_cond_broadcast(&stand_in->changed);
}

static void *run_stand_in(void *context)
{
    struct stand_in *stand_in = context;
    pthread_mutex_lock(&stand_in->mutex);
    while (!stand_in->stopping) {
        int64_t now_ns = controller_mono_ns();
        bool due = stand_in_due(&stand_in->clock, now_ns);
        if (stand_in->wanted && !due)
            pthread_cond_broadcast(&stand_in->changed);
        stand_in->wanted = due;
        if (due && stand_in->wire == WIRE_LENT)
            attend(stand_in);
        else
            wait_for_change(stand_in, now_ns + STAND_IN_PERIOD_NS);
    }
    pthread_mutex_unlock(&stand_in->mutex);
    return NULL;
}

/* --- the loop's thread ------------------------------------------------------------------------ */

void lease_lend(struct controller *controller)
{
    struct stand_in *stand_in = controller->stand_in;
    if (!stand_in || stand_in->lent)
        return;
    stand_in->lent = true;
    pthread_mutex_lock(&stand_in->mutex);
    CHECK(stand_in->wire == WIRE_HELD);
    stand_in->wire = WIRE_LENT;
    stand_in_busy(&stand_in->clock, controller_mono_ns());
    if (stand_in->wanted)
        pthread_cond_signal(&stand_in->changed);
    pthread_mutex_unlock(&stand_in->mutex);
}

bool lease_take(struct controller *controller)
{
    struct stand_in *stand_in = controller->stand_in;
    if (!stand_in || !stand_in->lent)
        return false;
    stand_in->lent = false;
    pthread_mutex_lock(&stand_in->mutex);
    while (stand_in->wire == WIRE_TAKEN || (stand_in->wanted && !stand_in->stopping))
        pthread_cond_wait(&stand_in->changed, &stand_in->mutex);
    stand_in->wire = WIRE_HELD;
    pthread_mutex_unlock(&stand_in->mutex);
    return true;
}

void lease_turn(struct controller *controller)
{
    struct stand_in *stand_in = controller->stand_in;
    if (!stand_in)
        return;
    pthread_mutex_lock(&stand_in->mutex);
    int64_t attended_ns = stand_in_turn(&stand_in->clock);
    stand_in->wanted = false;
    pthread_mutex_unlock(&stand_in->mutex);
    driver_attended(controller->driver, attended_ns);
}

int lease_start(struct controller *controller, struct error *error)
{
    struct stand_in *stand_in = mem_alloc(sizeof(*stand_in));
    pthread_condattr_t monotonic;
    sigset_t all, before;
    stand_in->controller = controller;
    stand_in->clock.limit_ns = controller->options.stand_in_ns;
    stand_in->attendant = wire_attendant_new();
    CHECK(pthread_mutex_init(&stand_in->mutex, NULL) == 0 && pthread_condattr_init(&monotonic) == 0 &&
          pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
          pthread_cond_init(&stand_in->changed, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* the loop's thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&stand_in->thread, NULL, run_stand_in, stand_in);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        wire_attendant_free(stand_in->attendant);
        mem_free(stand_in);
        return error_set_errno(error, rc, "starting the thread that answers heartbeats");
    }
    controller->stand_in = stand_in;
    return 0;
}

void lease_stop(struct controller *controller)
{
    struct stand_in *stand_in = controller->stand_in;
    if (!stand_in)
        return;
    (void)lease_take(controller);
    pthread_mutex_lock(&stand_in->mutex);
    stand_in->stopping = true;
    pthread_cond_broadcast(&stand_in->changed);
    pthread_mutex_unlock(&stand_in->mutex);
    CHECK(pthread_join(stand_in->thread, NULL) == 0);
    controller->stand_in = NULL;
    pthread_cond_destroy(&stand_in->changed);
    pthread_mutex_destroy(&stand_in->mutex);
    wire_attendant_free(stand_in->attendant);
    mem_free(stand_in);
}
