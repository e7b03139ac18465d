/* watch.c - watches for events that end a session early: links that lose their light, lost writes, new tables
 * of the controller, and requests of other ranks that have seen such events. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "job/fabric/internal.h"

enum { WAIT_MS = 20, START_SECONDS_MAX = 60 };

/* --- what has arrived ---------------------------------------------------------------------------------- */

void fabric_forget_arrivals(struct phx_fabric *fabric)
{
    fabric->arrivals.operation[0] = fabric->arrivals.operation[1] = UINT64_MAX;
}

static void note_arrival(struct phx_fabric *fabric, const struct phx_chip_event *event)
{
    struct fabric_arrivals *arrivals = &fabric->arrivals;
    uint64_t operation = event->tag >> TAG_NUMBER_BITS, slot = operation & 1;
    uint32_t number = (uint32_t)(event->tag & ((1u << TAG_NUMBER_BITS) - 1));
    if (event->chip >= PHX_SLICE_CHIPS || number / 64 >= arrivals->words)
        return;
    if (arrivals->operation[slot] != operation) {
        if (arrivals->operation[slot] != UINT64_MAX && arrivals->operation[slot] > operation)
            return;
        arrivals->operation[slot] = operation;
        for (uint32_t chip = 0; chip < PHX_SLICE_CHIPS; chip++)
            memset(arrivals->bits[slot][chip], 0, arrivals->words * sizeof(uint64_t));
    }
    arrivals->bits[slot][event->chip][number / 64] |= UINT64_C(1) << number % 64;
}

bool fabric_arrived(const struct phx_fabric *fabric, uint64_t operation, uint32_t chip, uint32_t number)
{
    const struct fabric_arrivals *arrivals = &fabric->arrivals;
    CHECK(chip < PHX_SLICE_CHIPS && number / 64 < arrivals->words);
    return arrivals->operation[operation & 1] == operation &&
           (arrivals->bits[operation & 1][chip][number / 64] >> number % 64 & 1);
}

/* --- asking for a new generation ----------------------------------------------------------------------- */

int fabric_ask_again(struct phx_fabric *fabric, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX];
    fabric_key(fabric, "again", fabric->generation, -1, key);
    int status = phx_kv_put(fabric->ctx, key, "1", 1, error);
    return status == 0 ? FABRIC_AGAIN : status;
}

int fabric_is_asked(struct phx_fabric *fabric, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX], value;
    size_t len;
    fabric_key(fabric, "again", fabric->generation, -1, key);
    int status = phx_kv_get(fabric->ctx, key, &value, 1, &len, 0, error);
    return status == 0 ? FABRIC_AGAIN : status == PHX_ERROR_NONE ? 0 : status;
}

/* Returns true if a switch of `added` carries data now, according to the words of all ranks. */
static bool carries_data(const struct phx_fabric *fabric, uint64_t added)
{
    for (uint32_t rank = 0; rank < fabric->world; rank++)
        for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++) {
            const struct phx_chip_about *chip = &fabric->words[rank].chips[i];
            for (uint32_t port = 0; port < PHX_CHIP_PORTS; port++)
                if (chip->ports[port].light && (added & fabric_switch_bit(chip, port)))
                    return true;
        }
    return false;
}

/* Compares with the tables that the controller names now. Returns true if other links must be used, or a
 * switch has returned, which may have light again. Otherwise takes the number of the tables. */
static bool routes_change(struct phx_fabric *fabric)
{
    struct phx_slice slice;
    if (phx_slice_get(fabric->ctx, &slice) != 1 || slice.tables <= fabric->slice.tables)
        return false;
    if ((fabric->without & ~slice.without) != 0 || carries_data(fabric, slice.without & ~fabric->without))
        return true;
    fabric->slice.tables = slice.tables; /* the links of these switches had already lost their light */
    fabric->without = slice.without;
    phx_slice_loaded(fabric->ctx, slice.tables, slice.without);
    return false;
}

/* --- events -------------------------------------------------------------------------------------------- */

static int take_event(struct phx_fabric *fabric, const struct phx_chip_event *event, struct phx_error *error)
{
    if (event->session != fabric->session || event->chip >= PHX_SLICE_CHIPS || event->port >= PHX_CHIP_PORTS)
        return 0;
    switch (event->kind) {
    case PHX_CHIP_STARTED:
        fabric->started |= 1u << event->chip;
        return 0;
    case PHX_CHIP_ARRIVED:
        note_arrival(fabric, event);
        return 0;
    case PHX_CHIP_DARK:
        return fabric->live[event->chip] >> event->port & 1 ? fabric_ask_again(fabric, error) : 0;
    case PHX_CHIP_LOST:
        return fabric_ask_again(fabric, error);
    default:
        return 0;
    }
}

static void wait_a_little(struct phx_fabric *fabric)
{
    struct pollfd fds[2] = {{.fd = fabric->driver->fd(fabric->chips), .events = POLLIN},
                            {.fd = phx_failure_fd(fabric->ctx), .events = POLLIN}};
    poll(fds, 2, WAIT_MS); /* other ranks ask through a key, which has no descriptor */
}

static int take_events(struct phx_fabric *fabric, int *taken, struct phx_error *error)
{
    struct phx_chip_event event;
    int found, status = 0;
    for (; status == 0 && (found = fabric->driver->next(fabric->chips, &event, error)) != 0; ++*taken)
        status = found < 0 ? found : take_event(fabric, &event, error);
    return status;
}

int fabric_flush(struct phx_fabric *fabric, struct phx_error *error)
{
    return take_events(fabric, &(int){0}, error);
}

int fabric_watch(struct phx_fabric *fabric, bool wait, struct phx_error *error)
{
    int taken = 0, status = take_events(fabric, &taken, error);
    if (status == 0)
        status = fabric_is_asked(fabric, error);
    if (status == 0 && routes_change(fabric))
        status = fabric_ask_again(fabric, error);
    if (status == 0 && taken == 0 && wait)
        wait_a_little(fabric);
    return status;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int fabric_await_start(struct phx_fabric *fabric, struct phx_error *error)
{
    double deadline_s = now_s() + START_SECONDS_MAX;
    int status = 0;
    while (status == 0 && fabric->started != (1u << PHX_SLICE_CHIPS) - 1) {
        status = fabric_watch(fabric, true, error);
        if (status == 0 && now_s() > deadline_s)
            status = fabric_fail(error, PHX_ERROR_TIMEOUT,
                                 "the chips of this machine did not start within %d s", START_SECONDS_MAX);
    }
    return status;
}
