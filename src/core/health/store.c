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
    health_bury(health);
    for (size_t i = 0; i < health->all_wards.len; i++) {
        mem_free((char *)health->all_wards.items[i]->machine.data);
        mem_free(health->all_wards.items[i]);
    }
    fault_table_free(health->table);
    vec_done(&health->sorted);
    str_map_done(&health->by_key);
    str_map_done(&health->wards);
    vec_done(&health->all_wards);
    str_map_done(&health->kindred);
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

/* Machine, code and place with a NUL between them: none of them holds one. */
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

/* Where the name stands, or would stand. */
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

struct ward *store_ward(struct health *health, struct str machine)
{
    struct ward *ward = str_map_get(&health->wards, machine);
    if (ward)
        return ward;
    ward = mem_alloc(sizeof(*ward));
    ward->machine = copy_str(machine);
    list_init(&ward->faults);
    str_map_put(&health->wards, ward->machine, ward);
    vec_push(&health->all_wards, ward);
    return ward;
}

/* --- kindred -------------------------------------------------------------------------------------------- */

enum { KINDRED_BYTES_MAX = SIGNAL_CODE_MAX + 20 };

static struct str kindred_key(char bytes[KINDRED_BYTES_MAX], const struct fault *fault)
{
    int len = snprintf(bytes, KINDRED_BYTES_MAX, "%" PRIx64 " " STR_FORMAT, fault->job, STR_ARG(fault->code));
    CHECK(len > 0 && len < KINDRED_BYTES_MAX);
    return (struct str){bytes, (size_t)len};
}

const struct kindred *store_kindred(const struct health *health, const struct fault *fault)
{
    char bytes[KINDRED_BYTES_MAX];
    return fault->job ? str_map_get(&health->kindred, kindred_key(bytes, fault)) : NULL;
}

static size_t kindred_place(const struct kindred *kindred, const struct fault *fault)
{
    size_t low = 0, high = kindred->faults.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (kindred->faults.items[middle]->uid < fault->uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void leave_kindred(struct health *health, struct fault *fault)
{
    struct kindred *kindred = (struct kindred *)store_kindred(health, fault);
    if (!kindred)
        return;
    size_t place = kindred_place(kindred, fault);
    CHECK(place < kindred->faults.len && kindred->faults.items[place] == fault);
    vec_remove(&kindred->faults, place);
    if (kindred->faults.len)
        return;
    str_map_remove(&health->kindred, kindred->key);
    vec_done(&kindred->faults);
    mem_free((char *)kindred->key.data);
    mem_free(kindred);
}

static void join_kindred(struct health *health, struct fault *fault)
{
    if (!fault->job)
        return;
    struct kindred *kindred = (struct kindred *)store_kindred(health, fault);
    if (!kindred) {
        char bytes[KINDRED_BYTES_MAX];
        kindred = mem_alloc(sizeof(*kindred));
        kindred->key = copy_str(kindred_key(bytes, fault));
        str_map_put(&health->kindred, kindred->key, kindred);
    }
    size_t place = kindred_place(kindred, fault);
    vec_push(&kindred->faults, fault);
    memmove(&kindred->faults.items[place + 1], &kindred->faults.items[place],
            (kindred->faults.len - 1 - place) * sizeof(fault));
    kindred->faults.items[place] = fault;
}

void store_set_job(struct health *health, struct fault *fault, obj_id job)
{
    if (fault->job == job)
        return;
    leave_kindred(health, fault);
    fault->job = job;
    join_kindred(health, fault);
}

/* --- coming and going ----------------------------------------------------------------------------------- */

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
    struct ward *ward = fault->ward = store_ward(health, from->machine);
    fault->machine = ward->machine;
    list_append(&ward->faults, &fault->on_machine);
    ward->count++;
    vec_push(&health->sorted, fault);
    memmove(&health->sorted.items[place + 1], &health->sorted.items[place],
            (health->sorted.len - 1 - place) * sizeof(fault));
    health->sorted.items[place] = fault;
    str_map_put(&health->by_key, fault->key, fault);
    join_kindred(health, fault);
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
    vec_remove(&health->sorted, place);
    str_map_remove(&health->by_key, fault->key);
    leave_kindred(health, fault);
    list_remove(&fault->on_machine);
    fault->ward->count--;
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

/* The closed fault of the ward that ended first, NULL: all are open. */
static struct fault *oldest_closed(const struct ward *ward)
{
    struct fault *oldest = NULL;
    list_for_each(node, &ward->faults)
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
    const struct ward *ward = store_ward(health, machine);
    struct fault *oldest = NULL;
    if (ward->count >= FAULTS_PER_MACHINE_MAX) {
        oldest = oldest_closed(ward);
    } else if (health->sorted.len >= FAULTS_MAX) {
        struct heap_node *node = heap_min(&health->closed);
        oldest = node ? container_of(node, struct fault, closed) : NULL;
    } else {
        return true;
    }
    if (!oldest)
        return false;
    step_changed(step, CHANGE_DELETED, ref_fault(oldest));
    store_remove(health, oldest);
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
    const struct ward *ward = str_map_get(&health->wards, machine);
    const struct fault *worst = NULL;
    if (!ward)
        return NULL;
    list_for_each(node, &ward->faults)
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
    const struct ward *ward = str_map_get(&health->wards, machine);
    size_t count = 0;
    if (!ward)
        return 0;
    list_for_each(node, &ward->faults)
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
