/* book.c - repairs and their indexes. */
#include "core/repair/internal.h"

const char *const repair_origin_names[REPAIR_ORIGINS] = {"Fault", "Person", "Maintenance"};
const char *const repair_outcome_names[REPAIR_OUTCOMES] = {
    [REPAIR_RUNS] = "Running",       [REPAIR_OK] = "Succeeded", [REPAIR_FAILED] = "Failed",
    [REPAIR_TIMED_OUT] = "TimedOut", [REPAIR_LOST] = "Lost",    [REPAIR_MISSING] = "Missing",
    [REPAIR_STOPPED] = "Stopped"};

static const char *const state_names[REPAIR_STATES] = {
    [REPAIR_WAITING] = "Waiting", [REPAIR_RESETTING] = "Resetting",   [REPAIR_RETURNING] = "Returning",
    [REPAIR_PAUSED] = "Paused",   [REPAIR_QUALIFYING] = "Qualifying", [REPAIR_TICKETED] = "Ticketed",
    [REPAIR_CLOSED] = "Closed"};
/* A person may end a repair in any state, and a machine may leave the cluster in any. A ticket may lead to
 * another ticket, if a person requests an action without a hook. */
#define ENDS  (LIFECYCLE_TO(REPAIR_QUALIFYING) | LIFECYCLE_TO(REPAIR_TICKETED) | LIFECYCLE_TO(REPAIR_CLOSED))
#define TRIES (LIFECYCLE_TO(REPAIR_RESETTING) | LIFECYCLE_TO(REPAIR_PAUSED))
static const uint32_t state_next[REPAIR_STATES] = {
    [REPAIR_WAITING] = TRIES | ENDS,
    [REPAIR_RESETTING] = TRIES | LIFECYCLE_TO(REPAIR_RETURNING) | ENDS,
    [REPAIR_RETURNING] = TRIES | ENDS,
    [REPAIR_PAUSED] = TRIES | ENDS,
    [REPAIR_QUALIFYING] = TRIES | ENDS,
    [REPAIR_TICKETED] = TRIES | ENDS,
    [REPAIR_CLOSED] = 0,
};
const struct lifecycle repair_lifecycle = {"repair", REPAIR_STATES, state_names, state_next};
_Static_assert(REPAIR_WAITING == 0, "a new repair is WAITING");
_Static_assert(REPAIR_RUNS == 0, "a new attempt runs");

struct repairs *repairs_new(void)
{
    struct repairs *repairs = mem_alloc(sizeof(*repairs));
    repairs->due_ns = INT64_MAX;
    return repairs;
}

static void free_repair(struct repair *repair)
{
    arena_done(&repair->text);
    mem_free(repair);
}

void repairs_free(struct repairs *repairs)
{
    if (!repairs)
        return;
    for (size_t i = 0; i < repairs->all.len; i++)
        free_repair(repairs->all.items[i]);
    windows_free(repairs);
    vec_done(&repairs->all);
    vec_done(&repairs->watched);
    str_map_done(&repairs->open);
    mem_free(repairs);
}

/* Returns the index of the uid, or where it would be inserted. */
static size_t place_of(const struct repairs *repairs, obj_id uid)
{
    return sorted_place(repairs->all.len, i, repairs->all.items[i]->uid, uid);
}

struct repair *book_new(struct repairs *repairs, obj_id uid, struct str subject)
{
    size_t place = place_of(repairs, uid);
    CHECK(uid && (place == repairs->all.len || repairs->all.items[place]->uid != uid));
    struct repair *repair = mem_alloc(sizeof(*repair));
    repair->uid = uid;
    repair->subject = arena_str(&repair->text, subject);
    vec_push(&repairs->all, repair);
    memmove(&repairs->all.items[place + 1], &repairs->all.items[place],
            (repairs->all.len - 1 - place) * sizeof(repair));
    repairs->all.items[place] = repair;
    if (!str_map_get(&repairs->open, repair->subject))
        str_map_put(&repairs->open, repair->subject, repair);
    return repair;
}

struct repair *book_open(const struct repairs *repairs, struct str subject)
{
    struct repair *repair = str_map_get(&repairs->open, subject);
    CHECK(!repair || repair->state != REPAIR_CLOSED);
    return repair;
}

void book_shut(struct repairs *repairs, struct repair *repair)
{
    if (str_map_get(&repairs->open, repair->subject) == repair)
        str_map_remove(&repairs->open, repair->subject);
}

void book_drop(struct repairs *repairs, struct repair *repair)
{
    size_t place = place_of(repairs, repair->uid);
    CHECK(place < repairs->all.len && repairs->all.items[place] == repair);
    CHECK(!repair->errand); /* an errand finds its repair by uid */
    book_shut(repairs, repair);
    vec_remove(&repairs->all, place);
    free_repair(repair);
}

void book_watch(struct repairs *repairs, machine_id machine)
{
    CHECK(machine != MACHINE_NONE);
    size_t place = repairs->watched.len;
    while (place > 0 && repairs->watched.items[place - 1] > machine)
        place--;
    if (place > 0 && repairs->watched.items[place - 1] == machine)
        return;
    vec_push(&repairs->watched, machine);
    memmove(&repairs->watched.items[place + 1], &repairs->watched.items[place],
            (repairs->watched.len - 1 - place) * sizeof(machine));
    repairs->watched.items[place] = machine;
}

struct repair_attempt *book_attempt(struct repair *repair, const struct repair_attempt *attempt)
{
    CHECK(repair->attempt_count <= REPAIR_ATTEMPTS_MAX);
    CHECK(!repair->attempt_count || repair->attempts[repair->attempt_count - 1].outcome != REPAIR_RUNS);
    if (repair->attempt_count == REPAIR_ATTEMPTS_MAX)
        memmove(&repair->attempts[0], &repair->attempts[1], --repair->attempt_count * sizeof(*attempt));
    repair->attempts[repair->attempt_count] = *attempt;
    return &repair->attempts[repair->attempt_count++];
}

void book_change(struct repair *repair, const struct repair_change *change)
{
    CHECK(repair->history_count <= REPAIR_HISTORY_MAX && change->state < REPAIR_STATES);
    if (repair->history_count == REPAIR_HISTORY_MAX)
        memmove(&repair->history[0], &repair->history[1], --repair->history_count * sizeof(*change));
    repair->history[repair->history_count++] = *change;
}

/* --- readers -------------------------------------------------------------------------------------------- */

const struct repair *repair_find(const struct repairs *repairs, obj_id uid)
{
    size_t place = place_of(repairs, uid);
    return place < repairs->all.len && repairs->all.items[place]->uid == uid ? repairs->all.items[place]
                                                                             : NULL;
}

const struct repair *repair_of_machine(const struct repairs *repairs, struct str machine)
{
    return book_open(repairs, machine);
}

size_t repairs_count(const struct repairs *repairs)
{
    return repairs->all.len;
}

const struct repair *repairs_at(const struct repairs *repairs, size_t index)
{
    CHECK(index < repairs->all.len);
    return repairs->all.items[index];
}

const struct repair_totals *repairs_totals(const struct repairs *repairs)
{
    return &repairs->totals;
}

/* --- snapshots ------------------------------------------------------------------------------------------ */

static bool fits(const struct step *step, const struct repair *saved)
{
    const struct repairs *repairs = step->repairs;
    bool follows = repairs->all.len == 0 || vec_last(&repairs->all)->uid < saved->uid;
    bool closed = saved->state == REPAIR_CLOSED;
    if (!follows || !saved->uid || saved->subject.len > NAME_MAX_BYTES || saved->state >= REPAIR_STATES ||
        saved->origin >= REPAIR_ORIGINS || closed != (saved->closed_ns != 0))
        return false;
    if (closed)
        return true;
    if (repair_is_of_place(saved))
        return saved->state == REPAIR_TICKETED && !saved->asks && !book_open(repairs, saved->subject);
    return cluster_find(step->cluster, saved->subject) && !book_open(repairs, saved->subject);
}

static void copy_lists(struct repair *repair, const struct repair *saved)
{
    CHECK(saved->code_count <= REPAIR_CODES_MAX && saved->attempt_count <= REPAIR_ATTEMPTS_MAX);
    CHECK(saved->history_count <= REPAIR_HISTORY_MAX);
    struct arena *text = &repair->text;
    for (size_t i = 0; i < saved->code_count; i++)
        repair->codes[i] = arena_str(text, saved->codes[i]);
    repair->code_count = saved->code_count;
    for (size_t i = 0; i < saved->attempt_count; i++) {
        struct repair_attempt attempt = saved->attempts[i];
        attempt.action = arena_str(text, attempt.action);
        attempt.output = arena_str(text, attempt.output);
        book_attempt(repair, &attempt);
    }
    for (size_t i = 0; i < saved->history_count; i++) {
        struct repair_change change = saved->history[i];
        change.why = arena_str(text, change.why);
        book_change(repair, &change);
    }
}

bool repair_restore(struct step *step, const struct repair *saved)
{
    if (!fits(step, saved))
        return false;
    struct repair *repair = book_new(step->repairs, saved->uid, saved->subject);
    repair->state = saved->state;
    repair->origin = saved->origin;
    repair->now = saved->now;
    repair->asked = saved->asked;
    repair->tested = saved->tested;
    repair->testing = saved->testing;
    repair->heals = saved->heals;
    repair->asks = saved->asks;
    repair->heard = saved->heard;
    repair->action = arena_str(&repair->text, saved->action);
    repair->tries = saved->tries;
    repair->tag = saved->tag;
    repair->errand = saved->errand;
    repair->due_ns = saved->due_ns;
    repair->opened_ns = saved->opened_ns;
    repair->changed_ns = saved->changed_ns;
    repair->closed_ns = saved->closed_ns;
    repair->watch_ns = saved->watch_ns;
    copy_lists(repair, saved);
    if (repair->state == REPAIR_CLOSED)
        book_shut(step->repairs, repair);
    return true;
}

void repairs_restore_totals(struct repairs *repairs, const struct repair_totals *totals)
{
    repairs->totals = *totals;
}

/* --- invariants ----------------------------------------------------------------------------------------- */

static void check_repair(const struct repairs *repairs, const struct repair *repair)
{
    bool open = book_open(repairs, repair->subject) == repair;
    CHECK(open == (repair->state != REPAIR_CLOSED) && open == (repair->closed_ns == 0));
    CHECK((repair->errand != 0) == (repair->state == REPAIR_RESETTING || repair->state == REPAIR_QUALIFYING));
    CHECK(repair->history_count > 0 && repair->history_count <= REPAIR_HISTORY_MAX);
    CHECK(repair->code_count <= REPAIR_CODES_MAX && repair->attempt_count <= REPAIR_ATTEMPTS_MAX);
    CHECK(!repair->watch_ns || repair->state == REPAIR_CLOSED);
    CHECK(!open || !repair_is_of_place(repair) || (repair->state == REPAIR_TICKETED && !repair->asks));
    for (size_t i = 0; i + 1 < repair->attempt_count; i++)
        CHECK(repair->attempts[i].outcome != REPAIR_RUNS);
    bool runs = repair->attempt_count && repair->attempts[repair->attempt_count - 1].outcome == REPAIR_RUNS;
    CHECK(runs == (repair->errand != 0 || repair->state == REPAIR_RETURNING));
}

/* Checks that a machine under repair is out of service, and idle from the first attempt on. */
static void check_machine(const struct repairs *repairs, const struct machine *machine)
{
    const struct repair *repair = book_open(repairs, machine->name);
    if (!repair)
        return;
    CHECK(isolation_is_out(machine->isolation));
    CHECK(repair->state == REPAIR_WAITING || machine->task_count == 0);
}

void repairs_check(const struct repairs *repairs, const struct cluster *cluster)
{
    size_t open = 0;
    for (size_t i = 0; i < repairs->all.len; i++) {
        CHECK(i == 0 || repairs->all.items[i - 1]->uid < repairs->all.items[i]->uid);
        check_repair(repairs, repairs->all.items[i]);
        open += repairs->all.items[i]->state != REPAIR_CLOSED;
    }
    CHECK(open == repairs->open.len && !repairs->stirred && !repairs->changed);
    for (size_t i = 0; i < cluster->machine_count; i++)
        check_machine(repairs, &cluster->machines[i]);
}
