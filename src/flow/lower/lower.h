/* lower.h - lowers a program to physical devices: one resident instruction list, a plan, for each host.
 *
 * Lowering takes a verified program and, for each mesh, the places of its virtual devices. A plan defines the
 * work of one host at each launch; the launch itself is a record of 64 bytes that names the plan.
 *
 *     struct lower_map map = {.mesh = 1, .count = 4, .places = places};
 *     struct plan **plans;
 *     lower_program(program, &map, 1, hosts, &plans, &error);    // plans[h]: NULL where host h has no part
 *     plan_encode(plans[0], &bytes); ...
 *     lower_free(plans, hosts);
 *
 * A plan works on slots. A slot is the shard of one value on one device. It is written by `writers` steps (or
 * by the launch, for an argument), read by `uses` readers, and dropped after the last one. Steps:
 *
 *     RUN    a function on one device: in slots → out slots; the device runs them in the plan's order
 *     COPY   a box of the in slot to the out slots of this host; `whole`: the out slots share the in slot
 *     SEND   a box of the in slot to host `peer`, under `tag`
 *     RECV   the box that `peer` sends under `tag`, to the out slots
 *
 * COPY, SEND and RECV execute as soon as their slots allow. A reshard moves the fewest bytes: a box is sent
 * to a host once, and only if no device of that host has it.
 *
 * Static memory: peak_bytes[d] bounds the bytes that the slots of device d hold at once, without arguments,
 * and result_bytes[d] is the part of it that outlives the launch. Slots that are not written by a RUN count
 * from the start, because they are posted ahead. Results of a RUN count from that RUN. Both count until their
 * last reader.
 *
 * Plans are immutable. Pure: no I/O, no threads.
 */
#ifndef PHX_FLOW_LOWER_LOWER_H
#define PHX_FLOW_LOWER_LOWER_H

#include "flow/ir/program.h"

enum {
    PLAN_DEVICES_MAX = 256, /* of one host */
    PLAN_HOSTS_MAX = 65536,
    PLAN_SLOTS_MAX = 1 << 22,
    PLAN_STEPS_MAX = 1 << 22,
};

struct lower_place {
    uint32_t host, device; /* device: number on its host */
};
struct lower_map {
    uint32_t mesh, count;
    const struct lower_place *places; /* one for each virtual device, row-major */
};

enum plan_op { PLAN_RUN, PLAN_COPY, PLAN_SEND, PLAN_RECV, PLAN_OPS };
struct plan_step {
    enum plan_op op;
    uint32_t node;      /* of the program */
    uint32_t device;    /* RUN */
    uint32_t gang;      /* RUN: index in gangs */
    uint32_t partition; /* RUN: this device's number in the gang */
    uint64_t function;  /* RUN */
    uint32_t peer, tag; /* SEND, RECV */
    bool whole;         /* COPY: the in slot itself, not a copy */
    uint32_t *in, *out; /* slots */
    uint32_t in_count, out_count;
    /* The box that moves; the boxes of the in and out slots in the whole value. */
    struct flow_box box, from, to;
};
struct plan_slot {
    uint32_t device;
    uint32_t writers, uses;
    struct ir_type type;
};
/* Connects a shard of an argument, or of a result, to a slot. */
struct plan_port {
    uint32_t slot, index, shard;
};
/* The devices that execute one call together, as the host of each. */
struct plan_gang {
    uint32_t count;
    uint32_t *hosts;
};

struct plan {
    struct arena arena;
    VEC(struct plan_slot) slots;
    VEC(struct plan_step) steps;
    VEC(struct plan_port) args;
    VEC(struct plan_port) results;
    VEC(struct plan_gang) gangs;
    uint32_t devices; /* 1 + the highest device used */
    int64_t peak_bytes[PLAN_DEVICES_MAX], result_bytes[PLAN_DEVICES_MAX];
};

/* Lowers a program. `maps` has an entry for every mesh of the program, with as many places as the mesh has
 * devices, all on hosts below `hosts`. *ret_plans gets `hosts` entries, NULL for hosts without a part.
 * Returns ERROR_LIMIT if a plan would have too many slots or steps, or ERROR_INVALID if a mesh has no map. */
int lower_program(const struct program *program, const struct lower_map *maps, size_t map_count,
                  uint32_t hosts, struct plan ***ret_plans, struct error *error);
void lower_free(struct plan **plans, uint32_t hosts); /* NULL allowed */

/* Appends the binary form of the plan. */
void plan_encode(const struct plan *plan, struct buf *out);
/* Reads the binary form, and checks that every index and box is within bounds. The caller frees *ret_plan.
 * Returns ERROR_CORRUPT for anything else. */
int plan_decode(struct str bytes, struct plan **ret_plan, struct error *error);
void plan_free(struct plan *plan); /* NULL allowed */
void plan_print(const struct plan *plan, struct buf *out);

#endif
