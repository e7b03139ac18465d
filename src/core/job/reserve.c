/* reserve.c - the room that admission keeps on machines for a JobSet. */
#include "core/job/trial.h"

#include <stdlib.h>

#include "core/job/internal.h"

void jobset_keep_reserved(struct job_store *store, struct jobset *jobset, const struct room *rooms,
                          size_t count)
{
    CHECK((count == 0 || rooms) && store->reserving >= (jobset->grant.reserved_count > 0));
    store->reserving -= jobset->grant.reserved_count > 0;
    mem_free(jobset->grant.reserved);
    jobset->grant.reserved = NULL;
    if (count) {
        jobset->grant.reserved = mem_alloc(count * sizeof(*jobset->grant.reserved));
        mem_copy(jobset->grant.reserved, rooms, count * sizeof(*rooms));
    }
    jobset->grant.reserved_count = count;
    store->reserving += count > 0;
}

/* Whether the present reservation has room that `rooms` has not. */
static bool gives_back(const struct jobset *jobset, const struct room *rooms)
{
    for (size_t r = 0; r < jobset->grant.reserved_count; r++) {
        const struct room *old = &jobset->grant.reserved[r];
        struct room new = rooms ? rooms[old->machine] : (struct room){0};
        if (old->chips & ~new.chips || old->cpu_milli > new.cpu_milli || old->memory_bytes > new.memory_bytes)
            return true;
    }
    return false;
}

void jobset_replace_reserved(struct step *step, struct jobset *jobset, const struct room *rooms)
{
    VEC(struct room) list = {0};
    if (!rooms && !jobset->grant.reserved_count)
        return;
    CHECK(!rooms || (!jobset_finished(jobset) && !jobset->deleted_ns));
    for (machine_id id = 0; rooms && id < step->cluster->machine_count; id++) {
        const struct machine *machine = &step->cluster->machines[id];
        /* Resources that the machine does not count need not be kept. */
        struct room room = {id, rooms[id].chips & machine_all_chips(machine),
                            machine->cpu_milli ? rooms[id].cpu_milli : 0,
                            machine->memory_bytes ? rooms[id].memory_bytes : 0};
        if (room.chips || room.cpu_milli || room.memory_bytes)
            vec_push(&list, room);
    }
    step->schedule |= jobset->grant.reserved_count > 0; /* other gangs may have what it gives back */
    jobset_keep_reserved(step->jobs, jobset, list.items, list.len);
    vec_done(&list);
}

void jobset_reserve(struct step *step, struct jobset *jobset, const struct room *rooms)
{
    step->room |= gives_back(jobset, rooms);
    jobset_replace_reserved(step, jobset, rooms);
}

static int compare_rooms(const void *a, const void *b)
{
    machine_id x = ((const struct room *)a)->machine, y = ((const struct room *)b)->machine;
    return x < y ? -1 : x > y;
}

void jobset_remap_reserved(struct job_store *store, struct jobset *jobset, const machine_id *map)
{
    size_t kept = 0;
    for (size_t i = 0; i < jobset->grant.reserved_count; i++) {
        struct room room = jobset->grant.reserved[i];
        room.machine = map[room.machine];
        if (room.machine != MACHINE_NONE)
            jobset->grant.reserved[kept++] = room;
    }
    if (kept)
        qsort(jobset->grant.reserved, kept, sizeof(*jobset->grant.reserved), compare_rooms);
    if (kept)
        jobset->grant.reserved_count = kept;
    else
        jobset_keep_reserved(store, jobset, NULL, 0);
}
