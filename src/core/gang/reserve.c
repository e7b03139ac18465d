/* reserve.c - the capacity that admission reserves on machines for a JobSet.
 *
 * machine.reserved_mask is the union of all reservations of the machine's chips, which the ledger books as
 * reserved while they are free. Reservations may overlap. A change of a reservation marks its machines, whose
 * masks are updated before the step ends. A reservation that is made and dropped in one step therefore costs
 * no booking. */
#include "core/gang/trial.h"

#include <stdlib.h>

#include "core/gang/internal.h"

/* --- reserved chips of a machine --------------------------------------------------------------- */

static void look_at_rooms(struct job_store *store, const struct jobset *jobset)
{
    for (size_t r = 0; r < jobset->grant.reserved_count; r++)
        if (jobset->grant.reserved[r].chips)
            vec_push(&store->reserved_anew, jobset->grant.reserved[r].machine);
}

uint64_t jobs_reserved_chips(const struct job_store *store, machine_id machine)
{
    uint64_t chips = 0;
    for (size_t i = 0; i < store->reserving.len; i++) {
        const struct jobset_grant *grant = &store->reserving.items[i]->grant;
        size_t at = sorted_place(grant->reserved_count, r, grant->reserved[r].machine, machine);
        if (at < grant->reserved_count && grant->reserved[at].machine == machine)
            chips |= grant->reserved[at].chips;
    }
    return chips;
}

void jobs_book_reserved(struct step *step)
{
    struct job_store *store = step->jobs;
    for (size_t i = 0; i < store->reserved_anew.len; i++) {
        CHECK(store->reserved_anew.items[i] < step->cluster->machine_count);
        struct machine *machine = &step->cluster->machines[store->reserved_anew.items[i]];
        machine->reserved_mask = jobs_reserved_chips(store, machine->id);
        machine_book_free(step, machine);
    }
    vec_clear(&store->reserved_anew);
}

void jobs_restore_reserved(struct job_store *store, struct cluster *cluster)
{
    for (size_t i = 0; i < store->reserved_anew.len; i++) {
        machine_id id = store->reserved_anew.items[i];
        CHECK(id < cluster->machine_count);
        cluster->machines[id].reserved_mask = jobs_reserved_chips(store, id);
    }
    vec_clear(&store->reserved_anew);
}

/* --- reservations ------------------------------------------------------------------------------ */

/* Removes the JobSet from those with a reservation, and frees its rooms. */
static void stop_reserving(struct job_store *store, struct jobset *jobset)
{
    if (!jobset->grant.reserved_count)
        return;
    size_t at = 0;
    while (store->reserving.items[at] != jobset) {
        at++;
        CHECK(at < store->reserving.len);
    }
    vec_remove(&store->reserving, at);
    look_at_rooms(store, jobset);
    mem_free(jobset->grant.reserved);
    jobset->grant.reserved = NULL;
    jobset->grant.reserved_count = 0;
}

void jobset_keep_reserved(struct job_store *store, struct jobset *jobset, const struct room *rooms,
                          size_t count)
{
    CHECK(count == 0 || rooms);
    stop_reserving(store, jobset);
    if (!count)
        return;
    jobset->grant.reserved = mem_alloc(count * sizeof(*jobset->grant.reserved));
    mem_copy(jobset->grant.reserved, rooms, count * sizeof(*rooms));
    jobset->grant.reserved_count = count;
    vec_push(&store->reserving, jobset);
    look_at_rooms(store, jobset);
}

/* Returns whether the present reservation holds capacity that `rooms` does not. */
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
    step->schedule |= jobset->grant.reserved_count > 0; /* other gangs may use what is given back */
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
    VEC(struct room) kept = {0};
    for (size_t i = 0; i < jobset->grant.reserved_count; i++) {
        struct room room = jobset->grant.reserved[i];
        room.machine = map[room.machine];
        if (room.machine != MACHINE_NONE)
            vec_push(&kept, room);
    }
    if (kept.len)
        qsort(kept.items, kept.len, sizeof(*kept.items), compare_rooms);
    jobset_keep_reserved(store, jobset, kept.items, kept.len);
    vec_done(&kept);
}

void jobs_look_at_reserved(struct job_store *store)
{
    vec_clear(&store->reserved_anew); /* drops machine ids of the old inventory */
    for (size_t i = 0; i < store->reserving.len; i++)
        look_at_rooms(store, store->reserving.items[i]);
}
