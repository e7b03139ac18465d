/* fuzz_cluster.c - any bytes as a cluster file: an error or a whole cluster, in bounded memory.
 *
 * What loads must be consistent (each machine is found by its name, in its block, with a mask that matches
 * its chips), and a gang must be placeable or refused with a reason.
 */
#include <stddef.h>
#include <stdint.h>

#include "doc/yaml.h"
#include "core/sched/sched.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cluster(struct cluster *cluster)
{
    CHECK(cluster->machine_count > 0 && cluster->machine_count <= MACHINES_MAX);
    for (size_t i = 0; i < cluster->machine_count; i++) {
        struct machine *machine = &cluster->machines[i];
        const struct block *block = &cluster->blocks[machine->block];
        CHECK(machine->id == i && cluster_find(cluster, machine->name) == machine);
        CHECK(i >= block->first && i < block->first + block->count && machine->pod == block->pod);
        CHECK((uint32_t)__builtin_popcountll(machine->free_mask) == machine->chip_count);
        CHECK(machine->address.len >= 7 && machine->labels.len <= LABELS_MAX);
        machine_set_state(machine, MACHINE_READY, 0, 0);
    }
}

static void place_some(const struct cluster *cluster)
{
    struct placement places[8];
    struct place_job jobs[2] = {{.count = 4, .chips = 4, .job = 1}, {.count = 4, .chips = 1, .job = 2}};
    jobs[0].exclusive_topology = STR("phalanx.dev/pod");
    struct place_request request = {.jobs = jobs, .job_count = 2};
    struct buf why BUF_CLEANUP = {0};
    bool placed = sched_place(cluster, &request, NULL, NULL, places, &why);
    CHECK(placed == !why.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 << 20};
    struct arena messages ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &messages};
    struct buf out BUF_CLEANUP = {0};
    struct doc_list docs;
    struct cluster cluster;
    if (yaml_parse_all(&arena, (struct str){(const char *)data, size}, &docs, NULL) < 0)
        return 0;
    for (size_t i = 0; i < docs.len && i < 2; i++) {
        if (cluster_load(docs.items[i], &cluster, &errors)) {
            check_cluster(&cluster);
            place_some(&cluster);
            cluster_describe(&cluster, &out);
            cluster_done(&cluster);
        } else {
            CHECK(errors.list.len + errors.dropped > 0);
            field_errors_print(&errors, &out);
        }
    }
    CHECK(str_is_utf8(buf_str(&out)));
    field_errors_done(&errors);
    return 0;
}
