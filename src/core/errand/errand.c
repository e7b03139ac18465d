#include "core/errand/errand.h"

#include "core/step.h"

struct ended {
    struct errand *errand;
    struct errand_end end; /* texts live in the errand's arena */
};

struct errands {
    VEC(struct errand *) list; /* by uid */
    struct heap due;
    VEC(struct ended) ended; /* ends that were not taken yet, oldest first; empty between steps */
    VEC(struct errand *) dead;
};

/* --- the store ------------------------------------------------------------------------------------------ */

struct errands *errands_new(void)
{
    return mem_alloc(sizeof(struct errands));
}

static void errand_free(struct errand *errand)
{
    arena_done(&errand->arena);
    mem_free(errand);
}

void errands_bury(struct errands *errands)
{
    CHECK(errands->ended.len == 0);
    for (size_t i = 0; i < errands->dead.len; i++)
        errand_free(errands->dead.items[i]);
    vec_clear(&errands->dead);
}

void errands_free(struct errands *errands)
{
    if (!errands)
        return;
    errands_bury(errands);
    heap_done(&errands->due); /* resets the heap's contents */
    for (size_t i = 0; i < errands->list.len; i++)
        errand_free(errands->list.items[i]);
    vec_done(&errands->list);
    vec_done(&errands->ended);
    vec_done(&errands->dead);
    mem_free(errands);
}

/* Returns the errand's index, or where it would be inserted. */
static size_t place_of(const struct errands *errands, obj_id uid)
{
    return sorted_place(errands->list.len, i, errands->list.items[i]->uid, uid);
}

static struct errand *find(const struct errands *errands, obj_id uid)
{
    size_t at = place_of(errands, uid);
    bool found = at < errands->list.len && errands->list.items[at]->uid == uid;
    return found ? errands->list.items[at] : NULL;
}

const struct errand *errand_find(const struct errands *errands, obj_id errand)
{
    return find(errands, errand);
}

static struct errand *add(struct errands *errands, const struct errand *from)
{
    CHECK(errands->list.len == 0 || vec_last(&errands->list)->uid < from->uid);
    struct errand *errand = mem_alloc(sizeof *errand);
    *errand = *from;
    errand->arena = (struct arena){0};
    errand->machine = arena_str(&errand->arena, from->machine);
    errand->body = arena_str(&errand->arena, from->body);
    errand->due =
        (struct heap_node){.key = from->begun_ns + from->timeout_ns + ERRAND_MARGIN_NS, .tie = from->uid};
    heap_insert(&errands->due, &errand->due);
    vec_push(&errands->list, errand);
    return errand;
}

static void take_out(struct errands *errands, struct errand *errand)
{
    size_t at = place_of(errands, errand->uid);
    CHECK(errands->list.items[at] == errand);
    vec_remove(&errands->list, at);
    heap_remove(&errands->due, &errand->due);
    vec_push(&errands->dead, errand);
}

/* --- begin and end -------------------------------------------------------------------------------------- */

static void end(struct errands *errands, struct errand *errand, const struct errand_end *how)
{
    CHECK(how->outcome >= ERRAND_OK && how->outcome <= ERRAND_LOST);
    struct ended ended = {.errand = errand, .end = *how};
    ended.end.errand = errand->uid;
    ended.end.output = arena_str(&errand->arena, str_head_utf8(how->output, ERRAND_OUTPUT_MAX));
    take_out(errands, errand);
    vec_push(&errands->ended, ended);
}

static void lose(struct errands *errands, struct errand *errand, struct str why)
{
    end(errands, errand, &(struct errand_end){.outcome = ERRAND_LOST, .output = why});
}

static void tell_start(struct step *step, const struct machine *machine, const struct errand *errand)
{
    int64_t left_ns = errand->begun_ns + errand->timeout_ns - step->now_ns;
    if (left_ns <= 0)
        return; /* the errand is about to count as lost */
    struct effect *effect = effect_add(step->effects, EFFECT_ERRAND_START);
    effect->errand_start.machine = machine->id;
    effect->errand_start.start = (struct errand_start){errand->uid, errand->kind, errand->body, left_ns};
}

static void tell_stop(struct step *step, const struct machine *machine, obj_id errand)
{
    struct effect *effect = effect_add(step->effects, EFFECT_ERRAND_STOP);
    effect->errand_stop.machine = machine->id;
    effect->errand_stop.errand = errand;
}

static bool is_there(const struct machine *machine)
{
    return machine->state == MACHINE_READY || machine->state == MACHINE_AWAY;
}

static const struct str too_old = {"its agent is too old for errands", 32};

obj_id errand_begin(struct step *step, const struct errand_order *order)
{
    struct errands *errands = step->errands;
    CHECK(order->machine < step->cluster->machine_count && order->body.len <= ERRAND_BODY_MAX);
    CHECK(order->timeout_ns > 0 && order->timeout_ns <= ERRAND_TIMEOUT_MAX_NS);
    CHECK(order->kind >= ERRAND_HOOK && order->kind <= ERRAND_INJECT);
    CHECK(order->owner >= ERRAND_OF_REPAIR && order->owner <= ERRAND_OF_INJECTION);
    const struct machine *machine = &step->cluster->machines[order->machine];
    bool full = errands->list.len >= ERRANDS_MAX;
    struct errand *errand = add(errands, &(struct errand){.uid = step_uid(step),
                                                          .machine = machine->name,
                                                          .kind = order->kind,
                                                          .owner = order->owner,
                                                          .about = order->about,
                                                          .tag = order->tag,
                                                          .body = order->body,
                                                          .timeout_ns = order->timeout_ns,
                                                          .begun_ns = step->now_ns});
    obj_id uid = errand->uid;
    if (full)
        lose(errands, errand, STR("too many errands are under way (ERRANDS_MAX)"));
    else if (!is_there(machine))
        lose(errands, errand, STR("its machine is not there"));
    else if (machine->state == MACHINE_READY && !machine->errands)
        lose(errands, errand, too_old);
    else if (machine->state == MACHINE_READY)
        tell_start(step, machine, errand); /* otherwise the errand is sent after the machine's Hello */
    return uid;
}

void errand_cancel(struct step *step, obj_id uid)
{
    struct errands *errands = step->errands;
    for (size_t i = 0; i < errands->ended.len; i++)
        if (errands->ended.items[i].errand->uid == uid) {
            vec_remove(&errands->ended, i);
            return;
        }
    struct errand *errand = find(errands, uid);
    if (!errand)
        return;
    const struct machine *machine = cluster_find(step->cluster, errand->machine);
    if (machine && machine->state == MACHINE_READY)
        tell_stop(step, machine, uid);
    take_out(errands, errand);
}

bool errands_next_end(struct errands *errands, const struct errand **ret_errand, struct errand_end *ret_end)
{
    if (errands->ended.len == 0)
        return false;
    *ret_errand = errands->ended.items[0].errand;
    *ret_end = errands->ended.items[0].end;
    vec_remove(&errands->ended, 0);
    return true;
}

/* --- what happens --------------------------------------------------------------------------------------- */

static bool lists(const struct hello *hello, obj_id errand)
{
    for (size_t i = 0; i < hello->errand_count; i++)
        if (hello->errand_ids[i] == errand)
            return true;
    return false;
}

void errands_hello(struct step *step, const struct machine *machine, const struct hello *hello)
{
    struct errands *errands = step->errands;
    CHECK(machine->state == MACHINE_READY && machine->errands == hello->errands);
    for (size_t i = 0; i < hello->errand_count; i++) {
        const struct errand *errand = find(errands, hello->errand_ids[i]);
        if (!errand || !str_equal(errand->machine, machine->name))
            tell_stop(step, machine, hello->errand_ids[i]);
    }
    for (size_t i = 0; i < errands->list.len;) {
        struct errand *errand = errands->list.items[i];
        bool here = str_equal(errand->machine, machine->name);
        if (here && !hello->errands) {
            lose(errands, errand, too_old);
            continue;
        }
        if (here && !lists(hello, errand->uid))
            tell_start(step, machine, errand);
        i++;
    }
}

void errands_reported(struct step *step, const struct machine *machine, const struct reports *reports)
{
    for (size_t i = 0; i < reports->errand_count; i++) {
        struct errand *errand = find(step->errands, reports->errands[i].errand);
        if (errand && str_equal(errand->machine, machine->name))
            end(step->errands, errand, &reports->errands[i]);
    }
}

void errands_machine_lost(struct step *step, const struct machine *machine, struct str evidence)
{
    struct errands *errands = step->errands;
    struct buf why BUF_CLEANUP = {0};
    buf_printf(&why, "its machine is lost: " STR_FORMAT, STR_ARG(evidence));
    for (size_t i = 0; i < errands->list.len;) {
        if (str_equal(errands->list.items[i]->machine, machine->name))
            lose(errands, errands->list.items[i], buf_str(&why));
        else
            i++;
    }
}

void errands_cluster(struct step *step)
{
    struct errands *errands = step->errands;
    for (size_t i = 0; i < errands->list.len;) {
        if (!cluster_find(step->cluster, errands->list.items[i]->machine))
            lose(errands, errands->list.items[i], STR("its machine is no longer in the cluster file"));
        else
            i++;
    }
}

void errands_tick(struct step *step)
{
    struct errands *errands = step->errands;
    struct heap_node *node;
    while ((node = heap_min(&errands->due)) && node->key <= step->now_ns) {
        struct errand *errand = container_of(node, struct errand, due);
        const struct machine *machine = cluster_find(step->cluster, errand->machine);
        if (machine && machine->state == MACHINE_READY)
            tell_stop(step, machine, errand->uid);
        lose(errands, errand, STR("nothing was heard of it until well past its time-out"));
    }
}

int64_t errands_deadline(const struct errands *errands)
{
    const struct heap_node *node = heap_min(&errands->due);
    return node ? node->key : INT64_MAX;
}

/* --- snapshots and audits ------------------------------------------------------------------------------- */

size_t errands_count(const struct errands *errands)
{
    return errands->list.len;
}

const struct errand *errands_at(const struct errands *errands, size_t index)
{
    CHECK(index < errands->list.len);
    return errands->list.items[index];
}

bool errands_restore(struct errands *errands, const struct errand *saved)
{
    if (saved->uid == 0 || (errands->list.len > 0 && vec_last(&errands->list)->uid >= saved->uid))
        return false;
    add(errands, saved);
    return true;
}

void errands_check(const struct errands *errands, const struct cluster *cluster)
{
    CHECK(errands->ended.len == 0 && errands->list.len <= ERRANDS_MAX);
    CHECK(errands->due.len == errands->list.len);
    for (size_t i = 0; i < errands->list.len; i++) {
        const struct errand *errand = errands->list.items[i];
        const struct machine *machine = cluster_find(cluster, errand->machine);
        CHECK(machine && is_there(machine));
        CHECK(machine->state != MACHINE_READY || machine->errands);
        CHECK(heap_has(&errand->due) && errand->body.len <= ERRAND_BODY_MAX);
        CHECK(i == 0 || errands->list.items[i - 1]->uid < errand->uid);
    }
}
