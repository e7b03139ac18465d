/* keep.c - derives from all repairs and windows how each machine is kept (machine.kept), and runs the
 * module's turn in a step. */
#include "core/repair/internal.h"

/* --- machine.kept --------------------------------------------------------------------------------------- */

static enum isolation kept_by(const struct repair *repair, int64_t now_ns)
{
    switch (repair->state) {
    case REPAIR_WAITING:
        return repair->now ? ISOLATION_QUARANTINED : ISOLATION_DRAINING;
    case REPAIR_RESETTING:
    case REPAIR_RETURNING:
        return ISOLATION_RESETTING;
    case REPAIR_PAUSED:
        return repair->testing ? ISOLATION_QUALIFYING : ISOLATION_RESETTING;
    case REPAIR_QUALIFYING:
        return ISOLATION_QUALIFYING;
    case REPAIR_TICKETED:
        return repair->asks ? ISOLATION_DRAINING : ISOLATION_TICKETED;
    case REPAIR_CLOSED:
        return repair->watch_ns > now_ns ? ISOLATION_RETURNED : ISOLATION_HEALTHY;
    case REPAIR_STATES:
        break;
    }
    CHECK_UNREACHABLE();
}

static void keep_more(uint8_t *kept, enum isolation asked)
{
    CHECK(*kept <= ISOLATION_RETURNED && asked <= ISOLATION_RETURNED);
    *kept = (uint8_t)isolation_join((enum isolation) * kept, asked);
}

static uint8_t *reckon(const struct step *step)
{
    const struct repairs *repairs = step->repairs;
    uint8_t *kept = mem_alloc(step->cluster->machine_count + 1);
    for (size_t i = 0; i < repairs->all.len; i++) {
        const struct machine *machine = cluster_find(step->cluster, repairs->all.items[i]->subject);
        if (machine)
            keep_more(&kept[machine->id], kept_by(repairs->all.items[i], step->now_ns));
    }
    for (size_t i = 0; i < repairs->windows.len; i++) {
        const struct maintenance *window = repairs->windows.items[i];
        enum isolation asked = window->phase == MAINTENANCE_ACTIVE     ? ISOLATION_QUARANTINED
                               : window->phase == MAINTENANCE_DRAINING ? ISOLATION_DRAINING
                                                                       : ISOLATION_HEALTHY;
        for (size_t k = 0; k < window->machines.len; k++) {
            CHECK(window->machines.items[k] < step->cluster->machine_count);
            keep_more(&kept[window->machines.items[k]], asked);
        }
    }
    return kept;
}

bool keep_machines(struct step *step)
{
    uint8_t *kept = reckon(step);
    bool any = false;
    for (size_t i = 0; i < step->cluster->machine_count; i++) {
        struct machine *machine = &step->cluster->machines[i];
        if (machine->kept == kept[i])
            continue;
        machine->kept = kept[i];
        health_kept(step, machine);
        book_watch(step->repairs, machine->id); /* an action that was prevented may be possible now */
        any = true;
    }
    mem_free(kept);
    return any;
}

bool repair_describe(const struct repairs *repairs, const struct machine *machine, struct buf *out)
{
    const struct repair *repair = book_open(repairs, machine->name);
    const struct maintenance *window = window_of(repairs, machine->id);
    if (repair) {
        CHECK(repair->history_count > 0);
        const struct repair_change *last = &repair->history[repair->history_count - 1];
        buf_printf(out, "repair: " STR_FORMAT, STR_ARG(last->why));
    } else if (window) {
        buf_printf(out, "maintenance: %s", maintenance_phase_names[window->phase]);
    } else if (machine->kept == ISOLATION_RETURNED) {
        buf_printf(out, "repaired");
    }
    return repair || window || machine->kept == ISOLATION_RETURNED;
}

/* --- watched machines ---------------------------------------------------------------------------------- */

void repairs_watch(struct step *step, const struct machine *machine)
{
    CHECK(machine->id < step->cluster->machine_count);
    book_watch(step->repairs, machine->id);
}

void repairs_machine_moved(struct step *step)
{
    step->repairs->stirred |= step->repairs->open.len > 0;
}

/* Whether the machine is out of service by its faults without a repair, or a repair waits for it. During a
 * window people work on the machine; when the window ends, machine.kept changes and the machine is checked
 * again. */
static bool is_awaited(const struct step *step, const struct machine *machine)
{
    const struct repair *repair = book_open(step->repairs, machine->name);
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    if (repair && repair->state == REPAIR_TICKETED) /* a question that a fault of a known code has answered */
        return repair->asks && machine->isolation == ISOLATION_QUARANTINED;
    if (repair)
        return repair->state == REPAIR_WAITING;
    return isolation_is_out(machine->isolation) && !window_of(step->repairs, machine->id) &&
           health_blocking(step->health, machine->name, faults) > 0;
}

static void look_at(struct step *step, const struct machine *machine)
{
    struct repair *repair = book_open(step->repairs, machine->name);
    struct buf reason BUF_CLEANUP = {0};
    if (!is_awaited(step, machine) || !repair_can_begin(machine))
        return;
    if (!repair) {
        fault_describe(fault_of_machine(step->health, machine->name), &reason);
        repair = ticket_open(step, machine->name, &(struct repair_wish){.origin = REPAIR_BY_FAULT},
                             buf_str(&reason));
    }
    if (!repair)
        return;
    repair_advance(step, repair);
    step->repairs->changed = true; /* the wait for its agent now has a limit */
}

static void look_at_watched(struct step *step)
{
    struct repairs *repairs = step->repairs;
    size_t kept = 0, count = repairs->watched.len;
    for (size_t i = 0; i < count; i++) {
        machine_id machine = repairs->watched.items[i];
        CHECK(machine < step->cluster->machine_count);
        CHECK(kept == 0 || repairs->watched.items[kept - 1] < machine);
        look_at(step, &step->cluster->machines[machine]);
        if (is_awaited(step, &step->cluster->machines[machine]))
            repairs->watched.items[kept++] = machine;
        CHECK(repairs->watched.len == count); /* no other machine is watched because of it */
    }
    repairs->watched.len = kept;
}

/* --- the turn in a step --------------------------------------------------------------------------------- */

/* Whether the repair is closed and no longer affects its machine, so that it may be dropped. */
static bool is_past(const struct repair *repair, int64_t now_ns)
{
    return repair->state == REPAIR_CLOSED && kept_by(repair, now_ns) == ISOLATION_HEALTHY;
}

/* Drops the oldest ended repairs beyond the number that is kept, except those of machines that are still
 * watched. */
static void forget_old(struct step *step)
{
    struct repairs *repairs = step->repairs;
    int64_t closed = 0;
    for (size_t i = 0; i < repairs->all.len; i++)
        closed += repairs->all.items[i]->state == REPAIR_CLOSED;
    for (size_t i = 0; closed > step->cluster->policy.repair.history_max && i < repairs->all.len;) {
        struct repair *repair = repairs->all.items[i];
        if (!is_past(repair, step->now_ns)) {
            i++;
            continue;
        }
        const struct object *object = repair_object(step, repair->uid);
        if (object)
            object_delete(step, object, PROPAGATION_BACKGROUND);
        book_drop(repairs, repair);
        closed--;
    }
    CHECK(closed >= 0 && (size_t)closed <= repairs->all.len);
}

static void follow_objects(struct step *step)
{
    struct repairs *repairs = step->repairs;
    if (repairs->window_version != object_kind_version(step->objects, OBJECT_MAINTENANCE)) {
        windows_sync(step);
        windows_advance(step);
    }
    if (repairs->object_version != object_kind_version(step->objects, OBJECT_REPAIR))
        tickets_sync(step);
    if (repairs->closings != health_closings(step->health))
        repairs->stirred = true;
}

static void find_due(struct step *step)
{
    struct repairs *repairs = step->repairs;
    repairs->due_ns = windows_due(repairs, step->now_ns);
    for (size_t i = 0; i < repairs->all.len; i++) {
        int64_t due_ns = repair_due(step, repairs->all.items[i]);
        repairs->due_ns = due_ns < repairs->due_ns ? due_ns : repairs->due_ns;
    }
}

static void remember_versions(struct step *step)
{
    struct repairs *repairs = step->repairs;
    repairs->object_version = object_kind_version(step->objects, OBJECT_REPAIR);
    repairs->window_version = object_kind_version(step->objects, OBJECT_MAINTENANCE);
    repairs->closings = health_closings(step->health);
}

bool repairs_act(struct step *step)
{
    struct repairs *repairs = step->repairs;
    bool kept = false, sent;
    uint64_t closings = health_closings(step->health);
    follow_objects(step);
    look_at_watched(step);
    bool due = step->now_ns >= repairs->due_ns;
    if (due)
        windows_advance(step);
    size_t count = repairs->all.len;
    for (size_t i = 0; (due || repairs->stirred) && i < count; i++)
        if (repairs->all.items[i]->state != REPAIR_CLOSED)
            repair_advance(step, repairs->all.items[i]);
    CHECK(repairs->all.len == count); /* repair_advance neither opens nor drops repairs */
    if (repairs->changed || repairs->stirred || due) {
        kept = keep_machines(step);
        forget_old(step);
        find_due(step);
    }
    sent = repairs->sent;
    repairs->changed = repairs->stirred = repairs->sent = false;
    remember_versions(step);
    return kept || sent || closings != health_closings(step->health);
}

void repairs_cluster(struct step *step)
{
    struct repairs *repairs = step->repairs;
    vec_clear(&repairs->watched);
    for (size_t i = 0; i < repairs->all.len; i++) {
        struct repair *repair = repairs->all.items[i];
        bool place = repair_is_of_place(repair);
        if (repair->state == REPAIR_CLOSED || (place ? place_is_known(step, repair->subject)
                                                     : cluster_find(step->cluster, repair->subject) != NULL))
            continue;
        if (repair->errand)
            errand_cancel(step, repair->errand);
        repair->errand = 0;
        repair_gone(step, repair);
    }
    windows_sync(step);
    windows_advance(step);
    for (size_t i = 0; i < step->cluster->machine_count; i++)
        book_watch(repairs, (machine_id)i);
    repairs->stirred = repairs->changed = true;
}

int64_t repairs_deadline(const struct repairs *repairs)
{
    return repairs->due_ns;
}

void repairs_restored(struct step *step)
{
    struct repairs *repairs = step->repairs;
    for (size_t i = 0; i < repairs->windows.len; i++)
        window_read(step, repairs->windows.items[i]);
    uint8_t *kept = reckon(step);
    for (size_t i = 0; i < step->cluster->machine_count; i++) {
        step->cluster->machines[i].kept = kept[i];
        if (is_awaited(step, &step->cluster->machines[i]))
            book_watch(repairs, (machine_id)i);
    }
    mem_free(kept);
    find_due(step);
    remember_versions(step);
}
