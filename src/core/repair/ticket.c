/* ticket.c - Repair objects of the API: writes their status, and processes what people wrote. */
#include "core/repair/internal.h"

#include <inttypes.h>

/* --- status --------------------------------------------------------------------------------------------- */

struct doc *doc_time(struct arena *arena, int64_t at_ns)
{
    char text[32];
    time_format(at_ns, text);
    return doc_new_str(arena, str_from(text));
}

static void put(struct arena *arena, struct doc *object, const char *key, struct str value)
{
    if (value.len)
        doc_set(arena, object, str_from(key), doc_new_str(arena, value));
}

static void put_time(struct arena *arena, struct doc *object, const char *key, int64_t at_ns)
{
    if (at_ns)
        doc_set(arena, object, str_from(key), doc_time(arena, at_ns));
}

static struct doc *need_array(struct arena *arena, struct doc *object, const char *key)
{
    struct doc *array = doc_new(arena, DOC_ARRAY);
    doc_set(arena, object, str_from(key), array);
    return array;
}

static void put_attempts(struct arena *arena, struct doc *status, const struct repair *repair)
{
    struct doc *list = need_array(arena, status, "attempts");
    for (size_t i = 0; i < repair->attempt_count; i++) {
        const struct repair_attempt *attempt = &repair->attempts[i];
        CHECK(attempt->outcome < REPAIR_OUTCOMES);
        struct doc *item = doc_new(arena, DOC_OBJECT);
        put(arena, item, "action", attempt->action);
        put(arena, item, "outcome", str_from(repair_outcome_names[attempt->outcome]));
        if (attempt->exit_code)
            doc_set(arena, item, STR("exitCode"), doc_new_int(arena, attempt->exit_code));
        put_time(arena, item, "startedAt", attempt->began_ns);
        put_time(arena, item, "endedAt", attempt->ended_ns);
        put(arena, item, "output", attempt->output);
        doc_push(arena, list, item);
    }
}

static void put_history(struct arena *arena, struct doc *status, const struct repair *repair)
{
    struct doc *list = need_array(arena, status, "history");
    for (size_t i = 0; i < repair->history_count; i++) {
        const struct repair_change *change = &repair->history[i];
        CHECK(change->state < REPAIR_STATES);
        struct doc *item = doc_new(arena, DOC_OBJECT);
        put_time(arena, item, "time", change->at_ns);
        put(arena, item, "state", str_from(repair_lifecycle.names[change->state]));
        put(arena, item, "message", change->why);
        doc_push(arena, list, item);
    }
}

/* Returns the field of spec and status that names the subject of the repair. */
static const char *subject_key(struct str subject)
{
    return subject_is_place(subject) ? "place" : "machine";
}

static struct doc *make_status(struct arena *arena, const struct repair *repair)
{
    struct doc *status = doc_new(arena, DOC_OBJECT), *codes;
    put(arena, status, "state", str_from(repair_lifecycle.names[repair->state]));
    put(arena, status, subject_key(repair->subject), repair->subject);
    put(arena, status, "origin", str_from(repair_origin_names[repair->origin]));
    put(arena, status, "action", repair->action);
    if (repair->history_count)
        put(arena, status, "message", repair->history[repair->history_count - 1].why);
    codes = need_array(arena, status, "faults");
    for (size_t i = 0; i < repair->code_count; i++)
        doc_push(arena, codes, doc_new_str(arena, repair->codes[i]));
    put_time(arena, status, "openedAt", repair->opened_ns);
    put_time(arena, status, "closedAt", repair->closed_ns);
    put_time(arena, status, "watchedUntil", repair->watch_ns);
    put_attempts(arena, status, repair);
    put_history(arena, status, repair);
    return status;
}

const struct object *repair_object(const struct step *step, obj_id uid)
{
    return object_find_uid(step->objects, uid);
}

void ticket_show(struct step *step, const struct repair *repair)
{
    struct arena arena ARENA_CLEANUP = {0};
    const struct object *object = repair_object(step, repair->uid);
    if (object)
        object_set_status(step, object, make_status(&arena, repair));
}

/* --- new tickets ---------------------------------------------------------------------------------------- */

/* Makes the name "<machine>.<suffix>", or "<switch>.<suffix>". If that is taken or too long, makes one from
 * the log's position. */
static struct str make_name(const struct step *step, struct arena *arena, struct str subject)
{
    const struct machine *machine = cluster_find(step->cluster, subject);
    uint64_t number = machine ? machine->id : step->cluster->machine_count + step->repairs->open.len;
    char suffix[SUFFIX_TEXT_MAX];
    struct str kind, base = subject;
    if (!machine)
        CHECK(str_cut(subject, '/', &kind, &base));
    uid_suffix(step_first_uid(step) + number + 1, suffix);
    struct str name = arena_printf(arena, STR_FORMAT ".%s", STR_ARG(base), suffix);
    if (name.len <= NAME_MAX_BYTES && !object_find(step->objects, OBJECT_REPAIR, STR(""), name))
        return name;
    return arena_printf(arena, "repair.%" PRIx64 ".%" PRIx64, step->seq, number);
}

struct repair *ticket_open(struct step *step, struct str subject, const struct repair_wish *wish,
                           struct str reason)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_new(&arena, DOC_OBJECT);
    struct doc *metadata = doc_need_object(&arena, document, "metadata");
    struct doc *spec = doc_need_object(&arena, document, "spec");
    const struct object *object = NULL;
    put(&arena, document, "apiVersion", STR("phalanx.dev/v1"));
    put(&arena, document, "kind", STR("Repair"));
    put(&arena, metadata, "name", make_name(step, &arena, subject));
    put(&arena, spec, subject_key(subject), subject);
    put(&arena, spec, "action", wish->action);
    put(&arena, spec, "reason", str_head_utf8(reason, REPAIR_OUTPUT_MAX));
    if (wish->untested)
        doc_set(&arena, spec, STR("qualify"), doc_new_bool(&arena, false));
    if (object_put(step, OBJECT_REPAIR, document, &object, NULL) < 0)
        return NULL;
    struct repair *repair = repair_begin(step, object->uid, subject, wish);
    repair->heard = object->generation;
    return repair;
}

/* --- what people wrote ---------------------------------------------------------------------------------- */

static struct str spec_text(const struct object *object, const char *key)
{
    return doc_str(doc_path(object->document, "spec", key, NULL), STR(""));
}

static bool spec_flag(const struct object *object, const char *key, bool fallback)
{
    return doc_bool(doc_path(object->document, "spec", key, NULL), fallback);
}

/* Returns spec.machine or spec.place, of which exactly one is set (spec/validate_repair.c). */
static struct str spec_subject(const struct object *object)
{
    struct str machine = spec_text(object, "machine");
    return machine.len ? machine : spec_text(object, "place");
}

/* Closes a repair that cannot begin, with the reason. */
static void refuse(struct step *step, const struct object *object, const char *why)
{
    struct repair *repair = book_new(step->repairs, object->uid, spec_subject(object));
    book_shut(step->repairs, repair);
    repair->origin = REPAIR_BY_PERSON;
    repair->state = REPAIR_CLOSED;
    repair->opened_ns = repair->changed_ns = repair->closed_ns = step->now_ns;
    repair->heard = object->generation;
    book_change(repair, &(struct repair_change){REPAIR_CLOSED, step->now_ns,
                                                arena_str(&repair->text, str_from(why))});
    ticket_show(step, repair);
}

static void adopt(struct step *step, const struct object *object)
{
    struct str subject = spec_subject(object);
    const struct machine *machine = cluster_find(step->cluster, subject);
    bool place = subject_is_place(subject);
    struct arena arena ARENA_CLEANUP = {0};
    struct repair_wish wish = {
        .origin = REPAIR_BY_PERSON,
        .action = arena_str(&arena, spec_text(object, "action")),
        .now = spec_flag(object, "now", false),
        .untested = !spec_flag(object, "qualify", true),
    };
    if (place ? !place_is_known(step, subject) : !machine) {
        refuse(step, object, place ? "the cluster has no such switch" : "the cluster has no such machine");
        return;
    }
    if (book_open(step->repairs, subject)) {
        refuse(step, object,
               place ? "another repair of it is open" : "another repair of the machine is open");
        return;
    }
    struct repair *repair = repair_begin(step, object->uid, subject, &wish);
    repair->heard = object->generation;
    if (place)
        place_ask(step, repair);
    else
        book_watch(step->repairs, machine->id);
}

static void listen(struct step *step, struct repair *repair, const struct object *object)
{
    CHECK(repair->uid == object->uid);
    if (repair->heard == object->generation)
        return;
    repair->heard = object->generation;
    struct str action = spec_text(object, "action");
    repair->tested = spec_flag(object, "qualify", true);
    repair->now = spec_flag(object, "now", false);
    step->repairs->changed = true;
    if (repair->state == REPAIR_CLOSED)
        return;
    if (spec_flag(object, "done", false))
        repair_done(step, repair);
    else if (repair->state == REPAIR_TICKETED && action.len && !str_equal(action, repair->action))
        repair_ask(step, repair, action);
}

/* Handles the deletion of a Repair object, by which a person reports it as done. */
static void bereave(struct step *step, struct repair *repair)
{
    struct repairs *repairs = step->repairs;
    const struct machine *machine = cluster_find(step->cluster, repair->subject);
    bool open = repair->state != REPAIR_CLOSED, begun = open && repair->state != REPAIR_WAITING;
    CHECK(!repair_object(step, repair->uid));
    struct repair_wish wish = {.origin = REPAIR_BY_PERSON, .untested = !repair->tested};
    if (repair->errand)
        errand_cancel(step, repair->errand);
    repair->errand = 0;
    if (open && repair_is_of_place(repair))
        place_done(step, repair);
    book_drop(repairs, repair);
    repairs->changed = true;
    if (machine && open)
        book_watch(repairs, machine->id);
    if (!machine || !begun)
        return;
    repair = ticket_open(step, machine->name, &wish, STR("its ticket was deleted: test it and take it back"));
    if (repair)
        repair_done(step, repair);
}

struct sync {
    struct step *step;
    VEC(const struct object *) fresh, known;
};

static void sort_object(void *context, const struct object *object)
{
    struct sync *sync = context;
    if (repair_find(sync->step->repairs, object->uid))
        vec_push(&sync->known, object);
    else if (!object->deleted_ns && !doc_get(object->document, "status"))
        vec_push(&sync->fresh, object);
}

void tickets_sync(struct step *step)
{
    struct sync sync = {.step = step};
    VEC(struct repair *) gone = {0};
    for (size_t i = 0; i < step->repairs->all.len; i++)
        if (!repair_object(step, step->repairs->all.items[i]->uid))
            vec_push(&gone, step->repairs->all.items[i]);
    object_visit(step->objects, OBJECT_REPAIR, STR(""), sort_object, &sync);
    /* By uid of objects, and names, so that every replay has the same order. */
    for (size_t i = 0; i < gone.len; i++)
        bereave(step, gone.items[i]);
    for (size_t i = 0; i < sync.known.len; i++) {
        obj_id uid = sync.known.items[i]->uid;
        listen(step, (struct repair *)repair_find(step->repairs, uid), sync.known.items[i]);
    }
    for (size_t i = 0; i < sync.fresh.len; i++)
        adopt(step, sync.fresh.items[i]);
    vec_done(&gone);
    vec_done(&sync.known);
    vec_done(&sync.fresh);
}
