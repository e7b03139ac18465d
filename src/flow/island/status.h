/* status.h - the state that a head reports to its watchers: the tail of STATUS (entry.h).
 *
 *     struct flow_status status = {0};
 *     if (flow_status_decode(tail, &status, &error) < 0) ...
 *     for (size_t i = 0; i < status.tenants.len; i++) ...
 *     flow_status_done(&status);
 *
 * Counters start at 0 with the head and never fall; a rate is the difference of two statuses divided by the
 * difference of their `now_ns`. A tenant is all clients of one name, including those that have ended, so its
 * device time suits accounting. The size of a status is bounded: the first STATUS_TENANTS_MAX - 1 names (all
 * further names share the last tenant, "(others)"), STATUS_CLIENTS_MAX clients, and the STATUS_PROGRAMS_MAX
 * programs that have used the most device time.
 *
 * Binary form, valid if and only if flow_status_decode accepts it: "PHXT" u32 version=4, then the fields of
 * struct flow_status in their order, numbers little-endian, lists and texts preceded by their u32 length.
 */
#ifndef PHX_FLOW_ISLAND_STATUS_H
#define PHX_FLOW_ISLAND_STATUS_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

enum {
    STATUS_NAME_MAX = 63, /* bytes of a name */
    STATUS_TENANTS_MAX = 256,
    STATUS_CLIENTS_MAX = 1024,
    STATUS_PROGRAMS_MAX = 256,
    STATUS_BUCKETS = 12,
};

/* The upper bounds of the buckets, in nanoseconds: 20 us to 10 s. */
extern const int64_t flow_status_bounds[STATUS_BUCKETS];

/* Counts times by their length. buckets[i] counts the times of at most flow_status_bounds[i] and above the
 * bound before. Times above the last bound are in `count` and `sum_ns` only. */
struct flow_histogram {
    uint64_t buckets[STATUS_BUCKETS], count, sum_ns;
};
/* Counts one time. A negative one counts as 0. */
void flow_histogram_add(struct flow_histogram *histogram, int64_t time_ns);

struct flow_status_island {
    char name[STATUS_NAME_MAX + 1];
    uint64_t tickets; /* stamped so far */
    uint32_t running, window;
};
/* A live host. The counts of its worker are from the worker's last LOAD, at most about a second old. */
struct flow_status_host {
    uint32_t number, island, incarnation, first_device, device_count;
    uint64_t device_bytes;
    uint64_t host_bytes, spilled_bytes;     /* memory for spilled shards; bytes used of it */
    uint64_t spilled_in_all, filled_in_all; /* bytes moved from its devices to host memory, and back */
    uint64_t runs, failed_runs;             /* calls of functions on its devices */
    uint64_t sent_bytes, received_bytes;    /* shards to and from other hosts */
    uint64_t put_bytes, fetched_bytes;      /* shards from and to clients */
    uint64_t compiled, reused;              /* functions: compiled, and found compiled for the same text */
    uint64_t values, cells;                 /* values with shards here; shards held or expected */
    char address[STATUS_NAME_MAX + 1];      /* the first bytes of the address */
};
struct flow_status_device {
    uint32_t host, number; /* number: over all hosts */
    uint32_t load;         /* virtual devices on it */
    uint32_t queued;       /* runs that wait for the device or execute on it */
    int64_t used_bytes;    /* by values, and reserved by launches */
    uint64_t busy_ns;      /* time spent executing functions */
};
struct flow_status_tenant {
    char name[STATUS_NAME_MAX + 1];
    uint32_t clients, suspended; /* connected clients; how many of them are suspended */
    uint64_t launches, failed, queued, running;
    uint64_t device_ns; /* of all devices together */
};
struct flow_status_client {
    uint32_t id, weight, tenant; /* tenant: index in the list of tenants */
    int32_t priority;
    bool away; /* reported by a worker, but not yet connected to this head */
    uint64_t queued, running, launches, values, programs, device_ns;
};
struct flow_status_program {
    uint32_t client, number, calls;
    char name[STATUS_NAME_MAX + 1]; /* of the first function that the program calls */
    uint64_t launches, device_ns, estimate_ns;
};
/* Totals since the head began. */
struct flow_status_tally {
    uint64_t hosts_came, hosts_lost, hosts_back; /* back: known to an earlier head */
    uint64_t clients_came, clients_gone, clients_back;
    uint64_t breaks;            /* broken connections between two live parties */
    uint64_t lowerings, remaps; /* programs lowered; meshes that got other devices */
    uint64_t spills, fills;     /* values moved from devices to host memory, and back */
    uint64_t launches, failed;  /* ended launches; failed: got no ticket, or lost a member of the gang */
};

struct flow_status {
    int64_t now_ns, began_ns; /* of the head's clock */
    struct flow_status_tally tally;
    struct flow_histogram waits, times; /* of launches, from arrival to the ticket, and to the last DONE */
    VEC(struct flow_status_island) islands;
    VEC(struct flow_status_host) hosts;
    VEC(struct flow_status_device) devices;
    VEC(struct flow_status_tenant) tenants;
    VEC(struct flow_status_client) clients;
    VEC(struct flow_status_program) programs;
};

/* Appends the binary form to `out`. */
void flow_status_encode(const struct flow_status *status, struct buf *out);
/* Reads the binary form into an empty status. The caller frees the status with flow_status_done, also after a
 * failure. Returns 0, ERROR_CORRUPT if the bytes are not a status or contain an index out of range, or
 * ERROR_UNSUPPORTED if they have another version. */
int flow_status_decode(struct str bytes, struct flow_status *ret_status, struct error *error);
/* Frees the lists and leaves them empty. */
void flow_status_done(struct flow_status *status);

#endif
