/* store.c - the faults and their indexes. */
#include "core/health/internal.h"
#include "core/health/sender.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEY_BYTES_MAX = NAME_MAX_BYTES + SIGNAL_CODE_MAX + SIGNAL_PLACE_MAX + 3 };

struct health *health_new(void)
{
    struct health *health = mem_alloc(sizeof(*health));
    health->table = fault_table_new(NULL);
    return health;
}

static void free_fault(struct fault *fault)
{
    vec_done(&fault->recent);
    buf_done(&fault->evidence);
    arena_done(&fault->text);
    mem_free(fault);
}

void health_bury(struct health *health)
{
    for (size_t i = 0; i < health->dead.len; i++)
        free_fault(health->dead.items[i]);
    vec_clear(&health->dead);
}

void health_free(struct health *health)
{
    if (!health)
        return;
    while (health->sorted.len)
        store_remove(health, vec_last(&health->sorted));
    CHECK(health->by_key.len == 0 && !heap_min(&health->due) && !heap_min(&health->closed));
    health_bury(health);
    for (size_t i = 0; i < health->all_machines.len; i++) {
        mem_free((char *)health->all_machines.items[i]->machine.data);
        mem_free(health->all_machines.items[i]);
    }
    fault_table_free(health->table);
    vec_done(&health->sorted);
    str_map_done(&health->by_key);
    str_map_done(&health->by_machine);
    vec_done(&health->all_machines);
    str_map_done(&health->correlated);
    heap_done(&health->due);
    heap_done(&health->closed);
    vec_done(&health->marked);
    vec_done(&health->restarts);
    vec_done(&health->waiting);
    vec_done(&health->isolations);
    vec_done(&health->dead);
    senders_free(health);
    mem_free(health);
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static struct str copy_str(struct str text)
{
    char *bytes = mem_alloc(text.len + 1);
    mem_copy(bytes, text.data, text.len);
    return (struct str){bytes, text.len};
}

/* Makes the key: machine, code and place, separated by NULs, which none of them contains. */
static struct str make_key(char bytes[KEY_BYTES_MAX], struct str machine, struct str code, struct str place)
{
    CHECK(machine.len + code.len + place.len + 2 <= KEY_BYTES_MAX);
    const struct str parts[] = {machine, STR("\0"), code, STR("\0"), place};
    size_t len = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        mem_copy(bytes + len, parts[i].data, parts[i].len);
        len += parts[i].len;
    }
    return (struct str){bytes, len};
}

struct fault *store_find(const struct health *health, struct str machine, struct str code, struct str place)
{
    char bytes[KEY_BYTES_MAX];
    return machine.len > NAME_MAX_BYTES ? NULL
                                        : str_map_get(&health->by_key, make_key(bytes, machine, code, place));
}

/* Finds the index of the name, or where it would be inserted. */
static size_t name_place(const struct health *health, struct str name, bool *ret_found)
{
    size_t low = 0, high = health->sorted.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_compare(health->sorted.items[middle]->name, name);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = false;
    return low;
}

struct machine_faults *store_machine_faults(struct health *health, struct str machine)
{
    struct machine_faults *at_machine = str_map_get(&health->by_machine, machine);
    if (at_machine)
        return at_machine;
    at_machine = mem_alloc(sizeof(*at_machine));
    at_machine->machine = copy_str(machine);
    list_init(&at_machine->faults);
    str_map_put(&health->by_machine, at_machine->machine, at_machine);
    vec_push(&health->all_machines, at_machine);
    return at_machine;
}

/* --- correlated faults --------------------------------------------------------------------------- */

enum { CORRELATED_KEY_MAX = SIGNAL_CODE_MAX + 20 };

static struct str correlated_key(char bytes[CORRELATED_KEY_MAX], const struct fault *fault)
{
    int len =
        snprintf(bytes, CORRELATED_KEY_MAX, "%" PRIx64 " " STR_FORMAT, fault->job, STR_ARG(fault->code));
    CHECK(len > 0 && len < CORRELATED_KEY_MAX);
    return (struct str){bytes, (size_t)len};
}

const struct correlated_faults *store_correlated(const struct health *health, const struct fault *fault)
{
    char bytes[CORRELATED_KEY_MAX];
    return fault->job ? str_map_get(&health->correlated, correlated_key(bytes, fault)) : NULL;
}

static size_t correlated_place(const struct correlated_faults *correlated, const struct fault *fault)
{
    size_t low = 0, high = correlated->faults.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (correlated->faults.items[middle]->uid < fault->uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void leave_correlated(struct health *health, struct fault *fault)
{
    struct correlated_faults *correlated = (struct correlated_faults *)store_correlated(health, fault);
    if (!correlated)
        return;
    size_t place = correlated_place(correlated, fault);
    CHECK(place < correlated->faults.len && correlated->faults.items[place] == fault);
    vec_remove(&correlated->faults, place);
    if (correlated->faults.len)
        return;
    str_map_remove(&health->correlated, correlated->key);
    vec_done(&correlated->faults);
    mem_free((char *)correlated->key.data);
    mem_free(correlated);
}

static void join_correlated(struct health *health, struct fault *fault)
{
    if (!fault->job)
        return;
    struct correlated_faults *correlated = (struct correlated_faults *)store_correlated(health, fault);
    if (!correlated) {
        char bytes[CORRELATED_KEY_MAX];
        correlated = mem_alloc(sizeof(*correlated));
        correlated->key = copy_str(correlated_key(bytes, fault));
        str_map_put(&health->correlated, correlated->key, correlated);
    }
    size_t place = correlated_place(correlated, fault);
    CHECK(place == correlated->faults.len || correlated->faults.items[place] != fault);
    vec_push(&correlated->faults, fault);
    memmove(&correlated->faults.items[place + 1], &correlated->faults.items[place],
            (correlated->faults.len - 1 - place) * sizeof(fault));
    correlated->faults.items[place] = fault;
}

void store_set_job(struct health *health, struct fault *fault, obj_id job)
{
    if (fault->job == job)
        return;
    leave_correlated(health, fault);
    fault->job = job;
    join_correlated(health, fault);
}

/* --- adding and removing -------------------------------------------------------------------------------- */

static struct fault *copy_fault(const struct fault *from)
{
    struct fault *fault = mem_alloc(sizeof(*fault));
    fault->uid = from->uid;
    fault->name = arena_str(&fault->text, from->name);
    fault->code = arena_str(&fault->text, from->code);
    fault->place = arena_str(&fault->text, from->place);
    fault->user = arena_str(&fault->text, from->user);
    fault->sender = arena_str(&fault->text, from->sender);
    fault->job = from->job;
    char bytes[KEY_BYTES_MAX];
    fault->key = arena_str(&fault->text, make_key(bytes, from->machine, from->code, from->place));
    return fault;
}

struct fault *store_add(struct health *health, const struct fault *from)
{
    bool taken;
    size_t place = name_place(health, from->name, &taken);
    if (taken || store_find(health, from->machine, from->code, from->place))
        return NULL;
    struct sender *sender = NULL;
    if (from->sender.len && !(sender = sender_need(health, from->sender, from->created_ns)))
        return NULL;
    struct fault *fault = copy_fault(from);
    struct machine_faults *at_machine = fault->at_machine = store_machine_faults(health, from->machine);
    fault->machine = at_machine->machine;
    list_append(&at_machine->faults, &fault->on_machine);
    at_machine->count++;
    vec_push(&health->sorted, fault);
    memmove(&health->sorted.items[place + 1], &health->sorted.items[place],
            (health->sorted.len - 1 - place) * sizeof(fault));
    health->sorted.items[place] = fault;
    str_map_put(&health->by_key, fault->key, fault);
    CHECK(health->sorted.len == health->by_key.len);
    join_correlated(health, fault);
    fault->from = sender;
    if (sender)
        sender->faults++;
    return fault;
}

void store_remove(struct health *health, struct fault *fault)
{
    bool found;
    size_t place = name_place(health, fault->name, &found);
    CHECK(found && health->sorted.items[place] == fault);
    CHECK(fault->at_machine->count > 0);
    CHECK(!fault->from || (fault->from->faults > 0 && fault->from->open >= fault->open));
    vec_remove(&health->sorted, place);
    str_map_remove(&health->by_key, fault->key);
    leave_correlated(health, fault);
    list_remove(&fault->on_machine);
    fault->at_machine->count--;
    if (fault->from) {
        fault->from->faults--;
        fault->from->open -= fault->open;
        fault->from = NULL;
    }
    if (heap_has(&fault->due))
        heap_remove(&health->due, &fault->due);
    if (heap_has(&fault->closed))
        heap_remove(&health->closed, &fault->closed);
    vec_push(&health->dead, fault);
}

/* Returns the machine's closed fault that ended first; NULL: all are open. */
static struct fault *oldest_closed(const struct machine_faults *at_machine)
{
    struct fault *oldest = NULL;
    list_for_each(node, &at_machine->faults)
    {
        struct fault *fault = container_of(node, struct fault, on_machine);
        if (!fault->open && (!oldest || fault->closed_ns < oldest->closed_ns ||
                             (fault->closed_ns == oldest->closed_ns && fault->uid < oldest->uid)))
            oldest = fault;
    }
    return oldest;
}

bool store_make_room(struct step *step, struct str machine)
{
    struct health *health = step->health;
    const struct machine_faults *at_machine = store_machine_faults(health, machine);
    struct fault *oldest = NULL;
    if (at_machine->count >= FAULTS_PER_MACHINE_MAX) {
        oldest = oldest_closed(at_machine);
    } else if (health->sorted.len >= FAULTS_MAX) {
        struct heap_node *node = heap_min(&health->closed);
        oldest = node ? container_of(node, struct fault, closed) : NULL;
    } else {
        return true;
    }
    if (!oldest)
        return false;
    CHECK(!oldest->open);
    step_changed(step, CHANGE_DELETED, ref_fault(oldest));
    store_remove(health, oldest);
    CHECK(at_machine->count < FAULTS_PER_MACHINE_MAX && health->sorted.len < FAULTS_MAX);
    return true;
}

/* --- readers -------------------------------------------------------------------------------------------- */

const struct fault *fault_find(const struct health *health, struct str name)
{
    bool found;
    size_t place = name_place(health, name, &found);
    return found ? health->sorted.items[place] : NULL;
}

void fault_visit(const struct health *health, void (*visit)(void *context, const struct fault *fault),
                 void *context)
{
    for (size_t i = 0; i < health->sorted.len; i++)
        visit(context, health->sorted.items[i]);
}

void fault_describe(const struct fault *fault, struct buf *out)
{
    CHECK(fault->level < LEVELS);
    buf_printf(out, STR_FORMAT "%s" STR_FORMAT " (%s)", STR_ARG(fault->code), fault->place.len ? " at " : "",
               STR_ARG(fault->place), fault_level_names[fault->level]);
}

size_t fault_count(const struct health *health)
{
    return health->sorted.len;
}

uint64_t fault_dropped(const struct health *health)
{
    return health->dropped;
}

const struct fault_table *health_table(const struct health *health)
{
    return health->table;
}

const struct fault *fault_find_open(const struct health *health, struct str machine, struct str code)
{
    const struct fault *fault = store_find(health, machine, code, STR(""));
    return fault && fault->open ? fault : NULL;
}

const struct fault *fault_of_machine(const struct health *health, struct str machine)
{
    const struct machine_faults *at_machine = str_map_get(&health->by_machine, machine);
    const struct fault *worst = NULL;
    if (!at_machine)
        return NULL;
    list_for_each(node, &at_machine->faults)
    {
        const struct fault *fault = container_of(node, struct fault, on_machine);
        if (fault->open && (!worst || fault->level > worst->level ||
                            (fault->level == worst->level && fault->uid < worst->uid)))
            worst = fault;
    }
    return worst;
}

uint64_t health_closings(const struct health *health)
{
    return health->closings;
}

size_t health_blocking(const struct health *health, struct str machine, struct fault **ret)
{
    const struct machine_faults *at_machine = str_map_get(&health->by_machine, machine);
    size_t count = 0;
    if (!at_machine)
        return 0;
    list_for_each(node, &at_machine->faults)
    {
        struct fault *fault = container_of(node, struct fault, on_machine);
        if (!fault->open || fault->level < LEVEL_PRE_SEPARATE)
            continue;
        size_t place = count++;
        for (; place > 0 && ret[place - 1]->uid > fault->uid; place--)
            ret[place] = ret[place - 1];
        ret[place] = fault;
    }
    CHECK(count <= FAULTS_PER_MACHINE_MAX);
    return count;
}
