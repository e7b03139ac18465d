/* slice.c - gangs that ask for a slice (annotation phalanx.dev/slice): their machines, and the wait for their
 * cross-connects. life/slice.c has the consequences of the switches' answers. */
#include "core/slice/slice.h"

#include "core/gang/internal.h"
#include "core/gang/request.h"

bool jobset_wants_slice(const struct jobset *jobset, struct slice_shape *ret_shape)
{
    struct error error;
    struct str text = labels_get(&jobset->spec.annotations, STR(SLICE_KEY), STR(""));
    return text.len > 0 && slice_shape_parse(text, ret_shape, &error) == 0;
}

static bool jobset_slice_moves(const struct jobset *jobset)
{
    return str_is(labels_get(&jobset->spec.annotations, STR(SLICE_ON_LOSS_KEY), STR("")), "Move");
}

/* --- places --------------------------------------------------------------------------------------------- */

static bool is_avoided(const struct request *request, machine_id machine)
{
    for (size_t i = 0; i < request->place.avoid_count; i++)
        if (request->place.avoid[i] == machine)
            return true;
    return false;
}

static bool has_room(const struct request *request, const struct machine *machine)
{
    const struct place_request *place = &request->place;
    machine_id m = machine->id;
    uint64_t own = place->own_chips ? place->own_chips[m] : 0,
             reserved = place->reserved ? place->reserved[m] : 0;
    uint64_t all = machine_all_chips(machine);
    if (((machine->free_mask | own) & ~reserved & all) != all)
        return false;
    CHECK(place->job_count > 0);
    const struct place_job *job = &place->jobs[0];
    int64_t cpu = machine->cpu_used_milli + job->cpu_milli -
                  (place->own_cpu_milli ? place->own_cpu_milli[m] : 0) +
                  (place->reserved_cpu_milli ? place->reserved_cpu_milli[m] : 0);
    int64_t memory = machine->memory_used_bytes + job->memory_bytes -
                     (place->own_memory_bytes ? place->own_memory_bytes[m] : 0) +
                     (place->reserved_memory_bytes ? place->reserved_memory_bytes[m] : 0);
    return (machine->cpu_milli == 0 || cpu <= machine->cpu_milli) &&
           (machine->memory_bytes == 0 || memory <= machine->memory_bytes);
}

static enum machine_fit fit(const void *context, machine_id id)
{
    const struct request *request = context;
    CHECK(id < request->cluster->machine_count);
    const struct machine *machine = &request->cluster->machines[id];
    const struct place_request *place = &request->place;
    if (!machine_schedulable(machine) || slices_drain_machine(request->store->slices, request->cluster, id) ||
        machine->chip_count != SLICE_MACHINE_CHIPS)
        return MACHINE_IS_OUT;
    for (size_t j = 0; j < place->job_count; j++)
        if (!sched_matches(&place->jobs[j], machine) || sched_repels(&place->jobs[j], machine))
            return MACHINE_IS_OUT;
    if (!has_room(request, machine) || (place->domain_owner && place->domain_owner[id]))
        return MACHINE_IS_TAKEN;
    return is_avoided(request, id) || (machine->spare && !place->use_spares) ? MACHINE_FITS_LAST
                                                                             : MACHINE_FITS;
}

/* Places tasks that replace some ranks of a slice on these ranks' own machines, while the others keep theirs.
 * No task is placed in a lost slice: after the last task has left it, the JobSet takes other cubes. */
static bool place_rest(const struct request *request, const struct slice *slice, struct placement *ret_places,
                       struct buf *why)
{
    CHECK(request->slots.len == request->prefer.len);
    if (slice->lost) {
        buf_add_str(why, STR("waits until all tasks have left the slice, which is lost"));
        return false;
    }
    for (size_t t = 0; t < request->slots.len; t++) {
        machine_id id = slice_machine(request->cluster, &slice->place, request->slots.items[t]);
        const struct machine *machine = &request->cluster->machines[id];
        if (fit(request, id) > MACHINE_FITS_LAST) {
            buf_printf(why,
                       "needs machine " STR_FORMAT " of its slice, which is %s: it waits for it, or for a "
                       "restart of the whole",
                       STR_ARG(machine->name), machine_schedulable(machine) ? "taken" : "out of service");
            return false;
        }
        ret_places[t] = (struct placement){id, machine_all_chips(machine)};
    }
    return true;
}

/* Returns whether every task has a machine in the slice: its index in the JobSet is its rank there. */
static bool ranks_fit(const struct request *request, uint32_t machines, struct buf *why)
{
    for (size_t t = 0; t < request->slots.len; t++)
        if (request->slots.items[t] >= machines) {
            buf_printf(why, "has a task with index %u, and its slice %u machines", request->slots.items[t],
                       machines);
            return false;
        }
    return true;
}

bool slice_request_place(const struct request *request, const struct slice_shape *shape,
                         struct placement *ret_places, struct buf *why)
{
    uint32_t machines = slice_machine_count(shape);
    struct slice_want want = {.shape = shape,
                              .jobset = request->jobset->uid,
                              .fit = fit,
                              .context = request,
                              .moves = jobset_slice_moves(request->jobset)};
    const struct slice *slice = slice_find(request->store->slices, request->jobset->uid);
    if (request->slots.len < request->prefer.len) { /* a task that is no rank, for a move from a machine */
        buf_printf(why, "is a spare, and a slice has no room for one");
        return false;
    }
    if (!ranks_fit(request, machines, why))
        return false;
    if (slice && request->slots.len < machines)
        return place_rest(request, slice, ret_places, why);
    if (!slice_choose(request->store->slices, request->cluster, &want, request->found, why))
        return false;
    for (size_t t = 0; t < request->slots.len; t++) {
        machine_id id = slice_machine(request->cluster, request->found, request->slots.items[t]);
        ret_places[t] = (struct placement){id, machine_all_chips(&request->cluster->machines[id])};
    }
    return true;
}

void slice_gang_placed(struct step *step, struct gang *gang, const struct slice_place *place)
{
    CHECK(gang->state == GANG_PLACED);
    struct slice_shape shape;
    if (!jobset_wants_slice(gang->jobset, &shape) || place->cubes.count == 0)
        return;
    char text[SHAPE_TEXT_MAX];
    slice_shape_format(&shape, text);
    struct slice_owner owner = {.jobset = gang->jobset->uid,
                                .namespace_ = gang->jobset->namespace_,
                                .name = gang->jobset->name,
                                .moves = jobset_slice_moves(gang->jobset)};
    slice_begin(step, &owner, place);
    step_note(step, false, "CrossConnecting", ref_jobset(gang->jobset),
              "slice %s has %u cube%s of pod " STR_FORMAT ": its cross-connects are being made", text,
              place->cubes.count, place->cubes.count == 1 ? "" : "s",
              STR_ARG(step->cluster->pods[place->pod].name));
}

bool slice_start_waits(const struct step *step, const struct task *task)
{
    const struct slice *slice =
        step->slices->list.len ? slice_find(step->slices, task->job->jobset->uid) : NULL;
    return slice && (slice->phase != SLICE_CONNECTED || slice->unread);
}
