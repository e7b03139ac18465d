/* status.h - what a head says of itself to those who watch it: the tail of STATUS (entry.h).
 *
 *     struct flow_status status = {0};
 *     if (flow_status_decode(tail, &status, &error) < 0) ...
 *     for (size_t i = 0; i < status.tenants.len; i++) ...
 *     flow_status_done(&status);
 *
 * Counters begin with the head and never fall; a rate is the difference of two statuses over that of their
 * `now_ns`. A tenant is all clients of one name, those that have gone included, so its device time is what an
 * account is made of. The size of a status is bounded: the first STATUS_TENANTS_MAX names (the others
 * together are the last tenant, "(others)"), STATUS_CLIENTS_MAX clients, and the STATUS_PROGRAMS_MAX programs
 * that have used the most device time.
 *
 * Binary form, valid if and only if flow_status_decode accepts it: "PHXT" u32 version=4, then the fields of
 * struct flow_status in their order, numbers little-endian, lists and texts behind their u32 length.
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

/* Times by how long they were. buckets[i] counts those of at most flow_status_bounds[i] and above the bound
 * before. */
struct flow_histogram {
    uint64_t buckets[STATUS_BUCKETS], count, sum_ns;
};
/* Counts a time; one below 0 counts as 0. */
void flow_histogram_add(struct flow_histogram *histogram, int64_t time_ns);

struct flow_status_island {
    char name[STATUS_NAME_MAX + 1];
    uint64_t tickets; /* stamped so far */
    uint32_t running, window;
};
/* A host that is there. The counts of its worker are as of the worker's last message, at most a second
 * old. */
struct flow_status_host {
    uint32_t number, island, incarnation, first_device, device_count;
    uint64_t device_bytes;
    uint64_t host_bytes, spilled_bytes;     /* its memory for spilled shards; their bytes */
    uint64_t spilled_in_all, filled_in_all; /* bytes that have left its devices, and come back */
    uint64_t runs, failed_runs;          /* calls of functions on its devices */
    uint64_t sent_bytes, received_bytes; /* shards to and from other hosts */
    uint64_t put_bytes, fetched_bytes;   /* shards from and to clients */
    uint64_t compiled, reused;           /* functions: compiled, and found compiled for the same text */
    uint64_t values, cells;              /* values of which it holds shards; shards held or to come */
    char address[STATUS_NAME_MAX + 1];   /* its beginning */
};
struct flow_status_device {
    uint32_t host, number; /* number: over all hosts */
    uint32_t load;         /* virtual devices on it */
    uint32_t queued;       /* runs that wait for it or are in it */
    int64_t used_bytes;    /* by values, and reserved by launches */
    uint64_t busy_ns;      /* it has run functions */
};
struct flow_status_tenant {
    char name[STATUS_NAME_MAX + 1];
    uint32_t clients, suspended; /* connected; of them those that have left their devices */
    uint64_t launches, failed, queued, running;
    uint64_t device_ns; /* of all devices together */
};
struct flow_status_client {
    uint32_t id, weight, tenant; /* tenant: its place in the list */
    int32_t priority;
    bool away; /* a worker has told of it, and it has yet to come to this head */
    uint64_t queued, running, launches, values, programs, device_ns;
};
struct flow_status_program {
    uint32_t client, number, calls;
    char name[STATUS_NAME_MAX + 1]; /* of the first function that it calls */
    uint64_t launches, device_ns, estimate_ns;
};
/* Since the head began. */
struct flow_status_tally {
    uint64_t hosts_came, hosts_lost, hosts_back; /* back: known to a head before */
    uint64_t clients_came, clients_gone, clients_back;
    uint64_t breaks;            /* of connections between two that live */
    uint64_t lowerings, remaps; /* programs lowered, meshes moved */
    uint64_t spills, fills;     /* values that left devices for host memory, and came back */
    uint64_t launches, failed;  /* over; failed: without a ticket, or with a member of the gang lost */
};

struct flow_status {
    int64_t now_ns, began_ns; /* of the head's clock */
    struct flow_status_tally tally;
    struct flow_histogram waits, times; /* of launches: until the ticket, until all hosts are through */
    VEC(struct flow_status_island) islands;
    VEC(struct flow_status_host) hosts;
    VEC(struct flow_status_device) devices;
    VEC(struct flow_status_tenant) tenants;
    VEC(struct flow_status_client) clients;
    VEC(struct flow_status_program) programs;
};

void flow_status_encode(const struct flow_status *status, struct buf *out);
/* Reads into an empty status, which the caller frees with flow_status_done also after a failure.
 * ERROR_CORRUPT: the bytes are none, or an index in them names nothing; ERROR_UNSUPPORTED: another
 * version. */
int flow_status_decode(struct str bytes, struct flow_status *ret_status, struct error *error);
/* Frees the lists; the status is empty afterwards. */
void flow_status_done(struct flow_status *status);

#endif
