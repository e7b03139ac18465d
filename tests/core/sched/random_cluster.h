/* random_cluster.h - small clusters in random states for property tests. */
#ifndef PHX_TESTS_CORE_SCHED_RANDOM_CLUSTER_H
#define PHX_TESTS_CORE_SCHED_RANDOM_CLUSTER_H

#include "base/rng.h"
#include "doc/yaml.h"
#include "core/model/model.h"

/* Loads a cluster file's text, which must be valid. */
static inline void load_text(const char *text, struct cluster *ret_cluster)
{
    struct arena arena = {.limit_bytes = 64 << 20};
    struct field_errors errors = {.arena = &arena};
    struct doc_list docs;
    CHECK(yaml_parse_all(&arena, str_from(text), &docs, NULL) == 0 && docs.len == 1);
    if (!cluster_load(docs.items[0], ret_cluster, &errors)) {
        struct buf out BUF_CLEANUP = {0};
        field_errors_print(&errors, &out);
        fail_msg("%s\n%s", text, out.data);
    }
    field_errors_done(&errors);
    arena_done(&arena);
}

static inline void make_ready(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->machine_count; i++)
        machine_set_state(&cluster->machines[i], MACHINE_READY, 0, 0);
}

/* One to three pods of one to four racks; all machines ready and empty. */
static inline void random_cluster(struct rng *rng, struct cluster *ret_cluster)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: r}\nspec:\n"
                      "  addresses: 10.0.0.1\n");
    if (rng_below(rng, 2))
        buf_printf(&text, "  cpu: 4\n  memory: 1000\n");
    buf_printf(&text, "  pods:\n");
    uint64_t pods = 1 + rng_below(rng, 3);
    static const int chips[] = {0, 1, 2, 4, 4, 8, 3, 64};
    for (uint64_t p = 0; p < pods; p++) {
        uint64_t racks = 1 + rng_below(rng, 4);
        buf_printf(&text, "  - racks:\n");
        for (uint64_t r = 0; r < racks; r++) {
            uint64_t machines = 1 + rng_below(rng, 6);
            buf_printf(&text, "    - {machines: %d, chips: %d, spares: %d, labels: {zone: z%d}}\n",
                       (int)machines, chips[rng_below(rng, 8)], (int)rng_below(rng, 3) == 0 ? 1 : 0,
                       (int)rng_below(rng, 2));
        }
    }
    load_text(text.data, ret_cluster);
    make_ready(ret_cluster);
}

/* Some machines away, lost, cordoned, tainted, or with chips and capacity taken. `taints` has two. */
static inline void disturb(struct rng *rng, struct cluster *cluster, struct taint *taints)
{
    for (size_t i = 0; i < cluster->machine_count; i++) {
        struct machine *machine = &cluster->machines[i];
        uint64_t what = rng_below(rng, 12);
        if (what < 2)
            machine_set_state(machine, what ? MACHINE_AWAY : MACHINE_LOST, 0, 0);
        machine->cordoned = what == 2;
        if (what == 3 || what == 4) {
            machine->taints = &taints[what - 3];
            machine->taint_count = 1;
        }
        if (what >= 7)
            machine_take(machine, rng_next(rng) & machine->free_mask, (int64_t)rng_below(rng, 3) * 1000,
                         (int64_t)rng_below(rng, 500));
    }
}

#endif
