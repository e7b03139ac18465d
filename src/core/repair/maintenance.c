/* maintenance.c - planned windows: their machines, their times, and the actions at begin and end. */
#include "core/repair/internal.h"

const char *const maintenance_phase_names[MAINTENANCE_PHASES] = {"Pending", "Draining", "Active", "Done"};
_Static_assert(MAINTENANCE_PENDING == 0, "a new window is PENDING");

static void empty(struct maintenance *window)
{
    vec_clear(&window->machines);
    arena_done(&window->text);
    window->hook = STR("");
}

static void free_window(struct maintenance *window)
{
    empty(window);
    vec_done(&window->machines);
    mem_free(window);
}

void windows_free(struct repairs *repairs)
{
    for (size_t i = 0; i < repairs->windows.len; i++)
        free_window(repairs->windows.items[i]);
    vec_done(&repairs->windows);
}

static size_t place_of(const struct repairs *repairs, obj_id uid)
{
    size_t place = 0;
    while (place < repairs->windows.len && repairs->windows.items[place]->uid < uid)
        place++;
    return place;
}

static struct maintenance *find_window(const struct repairs *repairs, obj_id uid)
{
    size_t place = place_of(repairs, uid);
    bool found = place < repairs->windows.len && repairs->windows.items[place]->uid == uid;
    return found ? repairs->windows.items[place] : NULL;
}

static struct maintenance *add_window(struct repairs *repairs, obj_id uid)
{
    size_t place = place_of(repairs, uid);
    CHECK(place == repairs->windows.len || repairs->windows.items[place]->uid != uid);
    struct maintenance *window = mem_alloc(sizeof(*window));
    window->uid = uid;
    vec_push(&repairs->windows, window);
    memmove(&repairs->windows.items[place + 1], &repairs->windows.items[place],
            (repairs->windows.len - 1 - place) * sizeof(window));
    repairs->windows.items[place] = window;
    return window;
}

/* --- reading the object ------------------------------------------------------------------------------- */

static void take_machine(struct maintenance *window, machine_id machine)
{
    for (size_t i = 0; i < window->machines.len; i++)
        if (window->machines.items[i] == machine)
            return;
    size_t place = window->machines.len;
    vec_push(&window->machines, machine);
    for (; place > 0 && window->machines.items[place - 1] > machine; place--)
        window->machines.items[place] = window->machines.items[place - 1];
    window->machines.items[place] = machine;
    CHECK(place + 1 == window->machines.len || window->machines.items[place + 1] > machine);
}

static struct doc *labels_of(struct arena *arena, const struct machine *machine)
{
    struct doc *map = doc_new(arena, DOC_OBJECT);
    const struct labels *both[] = {&machine->labels, &machine->user_labels};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < both[i]->len; k++)
            doc_set(arena, map, both[i]->items[k].key, doc_new_str(arena, both[i]->items[k].value));
    return map;
}

static void select_machines(const struct step *step, const struct doc *spec, struct maintenance *window)
{
    const struct doc *names = doc_get(spec, "machines"), *selector = doc_get(spec, "selector");
    for (size_t i = 0; i < doc_len(names); i++) {
        const struct machine *machine = cluster_find(step->cluster, doc_str(doc_at(names, i), STR("")));
        if (machine)
            take_machine(window, machine->id);
    }
    for (size_t i = 0; selector && i < step->cluster->machine_count; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        if (selector_matches(selector, labels_of(&arena, &step->cluster->machines[i])))
            take_machine(window, (machine_id)i);
    }
}

/* Reads a time, whose form validate_health.c has checked; 0: absent. */
static int64_t time_of(const struct doc *spec, const char *key)
{
    int64_t at_ns = 0;
    (void)time_parse(doc_str(doc_get(spec, key), STR("")), &at_ns);
    return at_ns;
}

/* Reads the controller's own window, which begins with the creation of its object, on the log's clock. */
static void read_hold(const struct object *object, struct maintenance *window)
{
    int64_t held_ns = 0;
    (void)duration_parse(doc_str(doc_path(object->document, "spec", "controller", NULL), STR("")), &held_ns);
    window->start_ns = object->created_ns;
    window->end_ns = object->created_ns + held_ns;
}

void window_read(const struct step *step, struct maintenance *window)
{
    const struct object *object = object_find_uid(step->objects, window->uid);
    CHECK(object && object->kind == OBJECT_MAINTENANCE); /* windows_sync drops a window with its object */
    const struct doc *spec = doc_get(object->document, "spec");
    struct str action = doc_str(doc_get(spec, "action"), STR("drain"));
    empty(window);
    window->start_ns = time_of(spec, "start");
    window->end_ns = time_of(spec, "end");
    window->notice_ns = 0;
    window->holds = doc_get(spec, "controller") != NULL;
    if (window->holds)
        read_hold(object, window);
    (void)duration_parse(doc_str(doc_get(spec, "notice"), STR("0s")), &window->notice_ns);
    window->qualify = doc_bool(doc_get(spec, "qualify"), false);
    window->hook = str_is(action, "drain") ? STR("") : arena_str(&window->text, action);
    select_machines(step, spec, window);
}

/* --- phases --------------------------------------------------------------------------------------------- */

static enum maintenance_phase phase_at(const struct maintenance *window, int64_t now_ns)
{
    if (now_ns >= window->end_ns)
        return MAINTENANCE_DONE;
    if (now_ns >= window->start_ns)
        return MAINTENANCE_ACTIVE;
    return now_ns >= window->start_ns - window->notice_ns ? MAINTENANCE_DRAINING : MAINTENANCE_PENDING;
}

static void show(struct step *step, const struct maintenance *window)
{
    struct arena arena ARENA_CLEANUP = {0};
    const struct object *object = object_find_uid(step->objects, window->uid);
    struct doc *status = doc_new(&arena, DOC_OBJECT);
    struct str phase = str_from(maintenance_phase_names[window->phase]);
    doc_set(&arena, status, STR("phase"), doc_new_str(&arena, phase));
    doc_set(&arena, status, STR("machines"), doc_new_int(&arena, (int64_t)window->machines.len));
    if (window->holds) {
        char until[32];
        time_format(window->end_ns, until);
        doc_set(&arena, status, STR("until"), doc_new_str(&arena, str_from(until)));
    }
    if (!doc_get(object->document, "status") || !doc_equal(doc_get(object->document, "status"), status))
        object_set_status(step, object, status);
}

/* Begins a repair of each of the window's machines that is not already under repair. */
static void begin_repairs(struct step *step, const struct maintenance *window, struct str hook)
{
    struct arena arena ARENA_CLEANUP = {0};
    const struct object *object = object_find_uid(step->objects, window->uid);
    struct str reason = arena_printf(&arena, "maintenance " STR_FORMAT, STR_ARG(object->name));
    struct repair_wish wish = {.origin = REPAIR_BY_MAINTENANCE, .action = hook, .untested = !window->qualify};
    for (size_t i = 0; i < window->machines.len; i++) {
        CHECK(window->machines.items[i] < step->cluster->machine_count);
        const struct machine *machine = &step->cluster->machines[window->machines.items[i]];
        if (book_open(step->repairs, machine->name))
            continue;
        if (ticket_open(step, machine->name, &wish, reason))
            book_watch(step->repairs, machine->id);
    }
}

static void enter(struct step *step, struct maintenance *window, enum maintenance_phase phase)
{
    CHECK(phase < MAINTENANCE_PHASES && phase != window->phase);
    static const char *const reasons[MAINTENANCE_PHASES] = {"MaintenancePending", "MaintenanceNotice",
                                                            "MaintenanceStarted", "MaintenanceEnded"};
    const struct object *object = object_find_uid(step->objects, window->uid);
    /* The window had ended before the controller could act on it. */
    bool late = phase == MAINTENANCE_DONE && window->phase == MAINTENANCE_PENDING;
    window->phase = phase;
    step->repairs->changed = true;
    if (window->holds)
        step_note(step, false, reasons[phase], ref_object(object), "of the controller: leases are %s",
                  phase == MAINTENANCE_ACTIVE ? "held" : "held no more");
    else
        step_note(step, false, reasons[phase], ref_object(object), "%zu machines", window->machines.len);
    if (phase == MAINTENANCE_ACTIVE && window->hook.len)
        begin_repairs(step, window, window->hook);
    else if (phase == MAINTENANCE_DONE && window->qualify && !window->hook.len && !late)
        begin_repairs(step, window, STR(""));
    show(step, window);
}

void windows_advance(struct step *step)
{
    for (size_t i = 0; i < step->repairs->windows.len; i++) {
        struct maintenance *window = step->repairs->windows.items[i];
        enum maintenance_phase phase = phase_at(window, step->now_ns);
        if (phase != window->phase)
            enter(step, window, phase);
    }
}

int64_t repairs_hold_until(const struct repairs *repairs)
{
    int64_t until_ns = 0;
    for (size_t i = 0; i < repairs->windows.len; i++) {
        const struct maintenance *window = repairs->windows.items[i];
        if (window->holds && window->phase == MAINTENANCE_ACTIVE && window->end_ns > until_ns)
            until_ns = window->end_ns;
    }
    return until_ns;
}

int64_t windows_due(const struct repairs *repairs, int64_t now_ns)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < repairs->windows.len; i++) {
        const struct maintenance *window = repairs->windows.items[i];
        const int64_t edges[] = {window->start_ns - window->notice_ns, window->start_ns, window->end_ns};
        for (size_t k = 0; k < 3; k++)
            if (edges[k] > now_ns && edges[k] < due_ns)
                due_ns = edges[k];
    }
    CHECK(due_ns > now_ns);
    return due_ns;
}

/* --- following the objects ------------------------------------------------------------------------------ */

struct listing {
    struct step *step;
    VEC(obj_id) fresh;
};

static void list_fresh(void *context, const struct object *object)
{
    struct listing *listing = context;
    if (!find_window(listing->step->repairs, object->uid))
        vec_push(&listing->fresh, object->uid);
}

void windows_sync(struct step *step)
{
    struct repairs *repairs = step->repairs;
    struct listing listing = {.step = step};
    for (size_t i = repairs->windows.len; i-- > 0;) {
        if (object_find_uid(step->objects, repairs->windows.items[i]->uid))
            continue;
        free_window(repairs->windows.items[i]);
        vec_remove(&repairs->windows, i);
    }
    object_visit(step->objects, OBJECT_MAINTENANCE, STR(""), list_fresh, &listing);
    for (size_t i = 0; i < listing.fresh.len; i++)
        add_window(repairs, listing.fresh.items[i]);
    vec_done(&listing.fresh);
    for (size_t i = 0; i < repairs->windows.len; i++) {
        window_read(step, repairs->windows.items[i]);
        show(step, repairs->windows.items[i]);
    }
    repairs->changed = true;
}

static bool has_machine(const struct maintenance *window, machine_id machine)
{
    size_t at = sorted_place(window->machines.len, i, window->machines.items[i], machine);
    return at < window->machines.len && window->machines.items[at] == machine;
}

const struct maintenance *window_of(const struct repairs *repairs, machine_id machine)
{
    const struct maintenance *found = NULL;
    for (size_t i = 0; i < repairs->windows.len; i++) {
        const struct maintenance *window = repairs->windows.items[i];
        bool keeps = window->phase == MAINTENANCE_DRAINING || window->phase == MAINTENANCE_ACTIVE;
        if (keeps && has_machine(window, machine) && (!found || window->phase > found->phase))
            found = window;
    }
    return found;
}

/* --- snapshots ------------------------------------------------------------------------------------------ */

size_t maintenance_count(const struct repairs *repairs)
{
    return repairs->windows.len;
}

struct maintenance_saved maintenance_at(const struct repairs *repairs, size_t index)
{
    CHECK(index < repairs->windows.len);
    return (struct maintenance_saved){repairs->windows.items[index]->uid,
                                      repairs->windows.items[index]->phase};
}

bool maintenance_restore(struct step *step, const struct maintenance_saved *saved)
{
    const struct object *object = object_find_uid(step->objects, saved->uid);
    if (!object || object->kind != OBJECT_MAINTENANCE || saved->phase >= MAINTENANCE_PHASES ||
        find_window(step->repairs, saved->uid))
        return false;
    add_window(step->repairs, saved->uid)->phase = saved->phase;
    return true;
}
