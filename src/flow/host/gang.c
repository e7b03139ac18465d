/* Collectives among the devices of one host and between hosts.
 *
 * A single one of the waiting members watches the board: it sleeps on the board's bell, and takes the parts
 * of other hosts from it. The others wait for the condition variable. A member that stops watching wakes
 * them, so that another one takes over.
 *
 * The tail of GATHER: u32 members, u32 bytes of one, then u32 position and bytes for each. */
#include "flow/host/gang.h"

#include <pthread.h>
#include <stdio.h>

#include "base/list.h"
#include "base/map.h"
#include "base/units.h"
#include "flow/ir/pack.h"

enum { GANG_PARTS_MAX = 1 << 16, GANG_SPARE_MAX = 256, GANG_HOSTS_MAX = 65536 };
#define GANG_SLOW_NS (1 * NS_PER_MS)

/* An all_gather of one group. */
struct exchange {
    struct list_node node;
    uint64_t key, round;
    uint32_t leader; /* the group's first member */
    uint32_t count, have, local, local_have, readers;
    uint32_t remote, remote_have; /* other hosts of the group; how many of them have sent their parts */
    uint32_t size;
    size_t room; /* bytes allocated at `all`; `has` follows them */
    uint8_t *all;
    bool *has;
};

struct gang_run {
    struct list_node node;
    uint32_t program_node;
    bool aborted;
    struct fault fault;
    struct list_node exchanges;
};

struct gang_launch {
    struct list_node node;
    uint32_t client;
    uint64_t launch, head;
    struct list_node runs;
    struct u64_map by_node; /* program_node + 1 → run */
};

struct gang_table {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    struct board *board; /* NULL: parts go through the loops */
    bool watched;        /* a waiting member watches the board */
    VEC(int) seats;      /* by host; -1: not on the board */
    VEC(struct exchange *) waited, spare;
    VEC(uint32_t) others; /* hosts of a group, while parts are sent to them */
    struct buf parts;     /* the parts being sent */
    VEC(struct gang_run *) spare_runs;
    void (*slow)(void *context);
    struct list_node launches;
    uint32_t host;
    bool closing;
    void (*send)(void *context, uint32_t host, const struct flow_entry *entry, struct str tail);
    void *context;
};

struct gang_round {
    uint64_t key;
    uint32_t leader;
    uint64_t round;
};
struct gang_member {
    struct flow_gang gang; /* the first field: functions get its address */
    struct gang_table *table;
    struct gang_run *found; /* its run, once it has taken part in a collective */
    struct run_id run;
    const uint32_t *hosts;
    VEC(struct gang_round) rounds;
};

struct gang_table *gang_table_new(void (*send)(void *context, uint32_t host, const struct flow_entry *entry,
                                               struct str tail),
                                  void *context)
{
    struct gang_table *table = mem_alloc(sizeof *table);
    pthread_mutex_init(&table->mutex, NULL);
    pthread_cond_init(&table->moved, NULL);
    list_init(&table->launches);
    table->send = send;
    table->context = context;
    return table;
}

void gang_table_set_host(struct gang_table *table, uint32_t host)
{
    table->host = host;
}

void gang_table_use(struct gang_table *table, struct board *board, void (*slow)(void *context))
{
    table->board = board;
    table->slow = slow;
}

void gang_table_meet(struct gang_table *table, uint32_t host, uint64_t place)
{
    pthread_mutex_lock(&table->mutex);
    while (table->board && host < GANG_HOSTS_MAX && table->seats.len <= host)
        vec_push(&table->seats, -1);
    if (host < table->seats.len)
        table->seats.items[host] = board_seat(table->board, place);
    pthread_mutex_unlock(&table->mutex);
}

static void exchange_free(struct exchange *exchange)
{
    mem_free(exchange->all);
    mem_free(exchange);
}

/* Ends an exchange; small ones are kept for reuse. Caller holds the mutex. */
static void gang_end_exchange(struct gang_table *table, struct exchange *exchange)
{
    list_remove(&exchange->node);
    if (table->spare.len < GANG_SPARE_MAX && exchange->room <= BOARD_MESSAGE_MAX)
        vec_push(&table->spare, exchange);
    else
        exchange_free(exchange);
}

static void gang_launch_free(struct gang_table *table, struct gang_launch *launch)
{
    struct list_node *runs = &launch->runs;
    list_for_each_safe(node, after, runs)
    {
        struct gang_run *run = container_of(node, struct gang_run, node);
        struct list_node *exchanges = &run->exchanges;
        list_for_each_safe(one, next, exchanges)
        {
            gang_end_exchange(table, container_of(one, struct exchange, node));
        }
        if (table->spare_runs.len < GANG_SPARE_MAX)
            vec_push(&table->spare_runs, run);
        else
            mem_free(run);
    }
    list_remove(&launch->node);
    u64_map_done(&launch->by_node);
    mem_free(launch);
}

void gang_table_free(struct gang_table *table)
{
    if (!table)
        return;
    struct list_node *launches = &table->launches;
    list_for_each_safe(node, after, launches)
    {
        gang_launch_free(table, container_of(node, struct gang_launch, node));
    }
    for (size_t i = 0; i < table->spare.len; i++)
        exchange_free(table->spare.items[i]);
    for (size_t i = 0; i < table->spare_runs.len; i++)
        mem_free(table->spare_runs.items[i]);
    vec_done(&table->spare_runs);
    vec_done(&table->spare);
    vec_done(&table->others);
    buf_done(&table->parts);
    vec_done(&table->waited);
    vec_done(&table->seats);
    pthread_cond_destroy(&table->moved);
    pthread_mutex_destroy(&table->mutex);
    mem_free(table);
}

/* Caller holds the mutex. */
static struct gang_launch *gang_find_launch(struct gang_table *table, const struct run_id *id)
{
    struct list_node *launches = &table->launches;
    list_for_each(node, launches)
    {
        struct gang_launch *launch = container_of(node, struct gang_launch, node);
        if (launch->client == id->client && launch->launch == id->launch && launch->head == id->head)
            return launch;
    }
    return NULL;
}

/* Caller holds the mutex. A run of a launch that was aborted as a whole is aborted from its start. */
static struct gang_run *gang_find_run(struct gang_table *table, const struct run_id *id)
{
    struct gang_launch *launch = gang_find_launch(table, id);
    if (!launch) {
        launch = mem_alloc(sizeof *launch);
        launch->client = id->client;
        launch->launch = id->launch;
        launch->head = id->head;
        list_init(&launch->runs);
        list_append(&table->launches, &launch->node);
    }
    struct gang_run *run = u64_map_get(&launch->by_node, (uint64_t)id->node + 1);
    if (run)
        return run;
    const struct gang_run *all = u64_map_get(&launch->by_node, (uint64_t)UINT32_MAX + 1);
    if (table->spare_runs.len > 0)
        run = vec_pop(&table->spare_runs);
    else
        run = mem_alloc(sizeof *run);
    run->aborted = false;
    run->program_node = id->node;
    list_init(&run->exchanges);
    if (all || table->closing) {
        run->aborted = true;
        run->fault = all ? all->fault : fault_make(FAULT_CANCELLED, id->launch, id->node, "the worker ends");
    }
    list_append(&launch->runs, &run->node);
    u64_map_put(&launch->by_node, (uint64_t)id->node + 1, run);
    return run;
}

static struct exchange *gang_find_exchange(struct gang_run *run, uint64_t key, uint32_t leader,
                                           uint64_t round)
{
    struct list_node *exchanges = &run->exchanges;
    list_for_each(node, exchanges)
    {
        struct exchange *exchange = container_of(node, struct exchange, node);
        if (exchange->key == key && exchange->leader == leader && exchange->round == round)
            return exchange;
    }
    return NULL;
}

/* Returns an exchange with space for the parts, all of them missing. Caller holds the mutex. */
static struct exchange *gang_new_exchange(struct gang_table *table, size_t room)
{
    struct exchange *exchange = NULL;
    if (table->spare.len > 0) {
        exchange = vec_last(&table->spare);
        table->spare.len--;
        if (exchange->room >= room) {
            uint8_t *all = exchange->all;
            room = exchange->room;
            memset(all, 0, room);
            *exchange = (struct exchange){.all = all, .room = room};
            return exchange;
        }
        exchange_free(exchange);
    }
    exchange = mem_alloc(sizeof *exchange);
    exchange->all = mem_alloc(room);
    exchange->room = room;
    return exchange;
}

static struct exchange *gang_make_exchange(struct gang_table *table, struct gang_run *run, uint64_t key,
                                           uint32_t leader, uint64_t round, uint32_t count, uint32_t size)
{
    struct exchange *exchange = gang_find_exchange(run, key, leader, round);
    if (exchange)
        return exchange;
    exchange = gang_new_exchange(table, (size_t)count * size + count + 1);
    exchange->key = key;
    exchange->leader = leader;
    exchange->round = round;
    exchange->count = count;
    exchange->size = size;
    exchange->has = (bool *)exchange->all + (size_t)count * size;
    list_append(&run->exchanges, &exchange->node);
    return exchange;
}

static bool exchange_add(struct exchange *exchange, uint32_t position, const void *bytes)
{
    if (position >= exchange->count || exchange->has[position])
        return false;
    exchange->has[position] = true;
    exchange->have++;
    mem_copy(exchange->all + (size_t)position * exchange->size, bytes, exchange->size);
    return true;
}

/* Wakes members that wait. Caller holds the mutex. */
static void gang_move(struct gang_table *table)
{
    pthread_cond_broadcast(&table->moved);
    if (table->watched)
        board_ring(table->board);
}

static void gang_abort_run(struct gang_table *table, struct gang_run *run, const struct fault *fault)
{
    if (run->aborted)
        return;
    run->aborted = true;
    run->fault = *fault;
    gang_move(table);
}

static void gang_disagree(struct gang_table *table, struct gang_run *run, uint64_t launch)
{
    struct fault fault = fault_make(FAULT_FUNCTION_FAILED, launch, run->program_node,
                                    "members of a collective disagree on its size or group");
    gang_abort_run(table, run, &fault);
}

/* Enters parts of another host. Returns whether this completes an exchange. Caller holds the mutex. */
static bool gang_enter(struct gang_table *table, const struct flow_entry *entry, struct str tail)
{
    struct unpack in = {tail.data, tail.len, false};
    uint32_t count = unpack_u32(&in, GANG_PARTS_MAX), size = unpack_u32(&in, UINT32_MAX);
    uint32_t parts = unpack_u32(&in, GANG_PARTS_MAX);
    if (in.bad || count == 0 || (uint64_t)count * size > ENTRY_TAIL_MAX)
        return false;
    struct run_id id = {.client = entry->client, .launch = entry->launch, .node = entry->node};
    id.head = entry->ticket;
    struct gang_run *run = gang_find_run(table, &id);
    struct exchange *exchange =
        gang_make_exchange(table, run, entry->handle, (uint32_t)entry->args[0], entry->args[1], count, size);
    bool good = exchange->count == count && exchange->size == size;
    exchange->remote_have++;
    for (uint32_t i = 0; i < parts && good; i++) {
        uint32_t position = unpack_u32(&in, count - 1);
        const void *bytes = unpack_bytes(&in, size);
        good = bytes && exchange_add(exchange, position, bytes);
    }
    if (!good)
        gang_disagree(table, run, entry->launch);
    return exchange->have == exchange->count;
}

void gang_take(struct gang_table *table, const struct flow_entry *entry, struct str tail)
{
    pthread_mutex_lock(&table->mutex);
    if (gang_enter(table, entry, tail))
        gang_move(table);
    pthread_mutex_unlock(&table->mutex);
}

/* Enters the messages on the board. Returns whether there were any. Caller holds the mutex. */
static bool gang_drain(struct gang_table *table)
{
    struct flow_entry entry;
    struct str tail;
    bool some = false, complete = false;
    while (board_take(table->board, &entry, &tail)) {
        some = true;
        if (entry.kind == ENTRY_GATHER && gang_enter(table, &entry, tail))
            complete = true;
    }
    if (complete)
        pthread_cond_broadcast(&table->moved);
    return some;
}

/* Returns the least number of messages that could complete an exchange with waiting members; 0 if none needs
 * any. */
static uint32_t gang_missing(const struct gang_table *table)
{
    uint32_t fewest = 0;
    for (size_t i = 0; i < table->waited.len; i++) {
        const struct exchange *exchange = table->waited.items[i];
        uint32_t missing =
            exchange->remote > exchange->remote_have ? exchange->remote - exchange->remote_have : 0;
        if (missing > 0 && (fewest == 0 || missing < fewest))
            fewest = missing;
    }
    return fewest;
}

/* Polls for messages between yields of the core. Returns false if none arrived and the bell did not ring.
 * Caller holds the mutex, which is released meanwhile. */
static bool gang_look(struct gang_table *table, uint32_t bell)
{
    int64_t since_ns = 0;
    for (;;) {
        pthread_mutex_unlock(&table->mutex);
        bool yielded = board_yield(table->board, &since_ns);
        pthread_mutex_lock(&table->mutex);
        if (!yielded)
            return false;
        if (gang_drain(table) || board_bell(table->board) != bell)
            return true;
    }
}

/* Sleeps until messages arrive on the board, or the bell is rung for a change here. *told: the wait has been
 * reported as slow. Caller holds the mutex, which is released meanwhile. */
static void gang_sleep(struct gang_table *table, uint32_t bell, bool *told)
{
    board_expect(table->board, gang_missing(table));
    if (!gang_drain(table)) {
        pthread_mutex_unlock(&table->mutex);
        if (!board_sleep(table->board, bell, *told ? -1 : GANG_SLOW_NS)) {
            *told = true;
            table->slow(table->context);
        }
        pthread_mutex_lock(&table->mutex);
    }
    board_expect(table->board, 0);
}

/* Waits for messages on the board, or for a change here. Caller holds the mutex, which is released
 * meanwhile. */
static void gang_watch(struct gang_table *table, bool *told)
{
    if (gang_drain(table))
        return;
    table->watched = true;
    uint32_t bell = board_bell(table->board);
    if (!gang_look(table, bell))
        gang_sleep(table, bell, told);
    table->watched = false;
}

static void gang_wait(struct gang_table *table, struct exchange *exchange, const struct gang_run *run)
{
    bool told = false;
    if (exchange->have == exchange->count || run->aborted)
        return;
    bool counted = false;
    for (size_t i = 0; i < table->waited.len && !counted; i++)
        counted = table->waited.items[i] == exchange;
    if (table->watched && !counted)
        board_ring(table->board); /* the watcher has not counted this exchange's messages yet */
    vec_push(&table->waited, exchange);
    while (exchange->have < exchange->count && !run->aborted) {
        if (table->board && !table->watched)
            gang_watch(table, &told);
        else
            pthread_cond_wait(&table->moved, &table->mutex);
    }
    for (size_t i = 0; i < table->waited.len; i++)
        if (table->waited.items[i] == exchange) {
            vec_remove(&table->waited, i);
            break;
        }
    if (table->waited.len > 0 && !table->watched)
        pthread_cond_broadcast(&table->moved); /* another member takes over the watch */
}

void gang_abort(struct gang_table *table, const struct run_id *id, const struct fault *fault)
{
    pthread_mutex_lock(&table->mutex);
    gang_abort_run(table, gang_find_run(table, id), fault);
    if (id->node == UINT32_MAX) {
        struct list_node *runs = &gang_find_launch(table, id)->runs;
        list_for_each(node, runs)
        {
            gang_abort_run(table, container_of(node, struct gang_run, node), fault);
        }
    }
    pthread_mutex_unlock(&table->mutex);
}

void gang_abort_all(struct gang_table *table)
{
    struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "the worker ends");
    pthread_mutex_lock(&table->mutex);
    table->closing = true;
    struct list_node *launches = &table->launches;
    list_for_each(node, launches)
    {
        struct list_node *runs = &container_of(node, struct gang_launch, node)->runs;
        list_for_each(one, runs)
        {
            gang_abort_run(table, container_of(one, struct gang_run, node), &fault);
        }
    }
    pthread_mutex_unlock(&table->mutex);
}

void gang_forget(struct gang_table *table, const struct run_id *run)
{
    pthread_mutex_lock(&table->mutex);
    struct gang_launch *launch = gang_find_launch(table, run);
    if (launch)
        gang_launch_free(table, launch);
    pthread_mutex_unlock(&table->mutex);
}

void gang_sweep(struct gang_table *table,
                bool (*expects)(void *context, uint32_t client, uint64_t launch, uint64_t head))
{
    pthread_mutex_lock(&table->mutex);
    struct list_node *launches = &table->launches;
    if (table->board && !table->watched)
        gang_drain(table);
    list_for_each_safe(node, after, launches)
    {
        struct gang_launch *launch = container_of(node, struct gang_launch, node);
        if (!expects(table->context, launch->client, launch->launch, launch->head))
            gang_launch_free(table, launch);
    }
    pthread_mutex_unlock(&table->mutex);
}

static uint64_t gang_next_round(struct gang_member *member, uint64_t key, uint32_t leader)
{
    for (size_t i = 0; i < member->rounds.len; i++) {
        struct gang_round *round = &member->rounds.items[i];
        if (round->key == key && round->leader == leader)
            return ++round->round;
    }
    vec_push(&member->rounds, ((struct gang_round){key, leader, 0}));
    return 0;
}

/* Packs the parts of this host's members. Caller holds the mutex. */
static void gang_pack_parts(const struct gang_member *member, const struct exchange *exchange,
                            const uint32_t *group, struct buf *out)
{
    buf_clear(out);
    pack_u32(out, exchange->count);
    pack_u32(out, exchange->size);
    pack_u32(out, exchange->local);
    for (uint32_t i = 0; i < exchange->count; i++) {
        if (member->hosts[group[i]] != member->table->host)
            continue;
        pack_u32(out, i);
        buf_add(out, exchange->all + (size_t)i * exchange->size, exchange->size);
    }
}

/* Lists the other hosts of a group. Caller holds the mutex. */
static void gang_find_others(const struct gang_member *member, const uint32_t *group, uint32_t count)
{
    struct gang_table *table = member->table;
    table->others.len = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t host = member->hosts[group[i]];
        bool first = host != table->host;
        for (size_t k = table->others.len; k-- > 0 && first;)
            first = table->others.items[k] != host;
        if (first)
            vec_push(&table->others, host);
    }
}

/* Posts the packed parts on the board, and leaves in `others` the hosts that need them by another way. Caller
 * holds the mutex. */
static void gang_post_parts(struct gang_table *table, const struct flow_entry *entry)
{
    if (!table->board || !board_compose(table->board, entry, buf_str(&table->parts)))
        return;
    size_t left = 0;
    for (size_t i = 0; i < table->others.len; i++) {
        uint32_t host = table->others.items[i];
        int seat = host < table->seats.len ? table->seats.items[host] : -1;
        if (seat < 0 || !board_post(table->board, seat))
            table->others.items[left++] = host;
    }
    board_flush(table->board);
    table->others.len = left;
}

/* Sends the packed parts to `others` through the loop. Caller holds the mutex, which is released
 * meanwhile. */
static void gang_send_parts(struct gang_table *table, const struct flow_entry *entry)
{
    struct buf parts = table->parts;
    VEC(uint32_t) hosts = {0};
    table->parts = (struct buf){0}; /* other members use `parts` and `others` in the meantime */
    for (size_t i = 0; i < table->others.len; i++)
        vec_push(&hosts, table->others.items[i]);
    pthread_mutex_unlock(&table->mutex);
    for (size_t i = 0; i < hosts.len; i++)
        table->send(table->context, hosts.items[i], entry, buf_str(&parts));
    pthread_mutex_lock(&table->mutex);
    vec_done(&hosts);
    buf_done(&parts);
}

/* Sends the parts of this host's members to the other hosts of the group. Caller holds the mutex. */
static void gang_give_parts(const struct gang_member *member, const struct exchange *exchange,
                            const uint32_t *group)
{
    struct gang_table *table = member->table;
    struct flow_entry entry = {.kind = ENTRY_GATHER, .client = member->run.client, .handle = exchange->key};
    entry.launch = member->run.launch;
    entry.ticket = member->run.head;
    entry.node = member->run.node;
    entry.args[0] = exchange->leader;
    entry.args[1] = exchange->round;
    gang_pack_parts(member, exchange, group, &table->parts);
    gang_post_parts(table, &entry);
    if (table->others.len > 0)
        gang_send_parts(table, &entry);
}

/* Finds this member's position in the group, and the number of members on this host. ERROR_INVALID: no
 * member. */
static int gang_find_self(const struct gang_member *member, const uint32_t *group, uint32_t count,
                          uint32_t *ret_position, uint32_t *ret_local, struct error *error)
{
    bool found = false;
    *ret_local = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (group[i] >= member->gang.partitions)
            return error_set(error, ERROR_INVALID, "a group names member %u of %u", group[i],
                             member->gang.partitions);
        if (group[i] == member->run.partition) {
            *ret_position = i;
            found = true;
        }
        *ret_local += member->hosts[group[i]] == member->table->host;
    }
    return found ? 0 : error_set(error, ERROR_INVALID, "a member takes part in a group without it");
}

/* Returns the run of a member, valid until its launch is forgotten. Caller holds the mutex. */
static struct gang_run *gang_member_run(struct gang_member *member)
{
    if (!member->found)
        member->found = gang_find_run(member->table, &member->run);
    return member->found;
}

static int gang_all_gather(struct flow_gang *gang, const uint32_t *group, uint32_t count, uint64_t key,
                           const void *mine, size_t size, void *all, struct error *error)
{
    struct gang_member *member = (struct gang_member *)gang;
    struct gang_table *table = member->table;
    uint32_t position = 0, local;
    int rc = gang_find_self(member, group, count, &position, &local, error);
    if (rc < 0)
        return rc;
    if (size * (uint64_t)count > ENTRY_TAIL_MAX / 2)
        return error_set(error, ERROR_LIMIT, "a collective of %zu bytes a member", size);
    uint64_t round = gang_next_round(member, key, group[0]);
    pthread_mutex_lock(&table->mutex);
    struct gang_run *run = gang_member_run(member);
    struct exchange *exchange = gang_make_exchange(table, run, key, group[0], round, count, (uint32_t)size);
    if (exchange->count != count || exchange->size != size || !exchange_add(exchange, position, mine))
        gang_disagree(table, run, member->run.launch);
    gang_find_others(member, group, count);
    exchange->local = local;
    exchange->remote = (uint32_t)table->others.len;
    if (exchange->have == count)
        gang_move(table);
    if (++exchange->local_have == local && exchange->remote > 0 && !run->aborted)
        gang_give_parts(member, exchange, group);
    gang_wait(table, exchange, run);
    if (run->aborted)
        rc = error_set(error, ERROR_UNAVAILABLE, "%.240s", run->fault.text);
    else
        mem_copy(all, exchange->all, size * count);
    if (++exchange->readers == local && !run->aborted)
        gang_end_exchange(table, exchange);
    pthread_mutex_unlock(&table->mutex);
    return rc;
}

struct gang_member *gang_member_new(struct gang_table *table, const struct run_id *run, const uint32_t *hosts,
                                    uint32_t count)
{
    struct gang_member *member = mem_alloc(sizeof *member);
    member->gang = (struct flow_gang){0, run->partition, 1, count, gang_all_gather};
    member->table = table;
    member->run = *run;
    member->hosts = hosts;
    return member;
}

struct flow_gang *gang_member_gang(struct gang_member *member)
{
    return &member->gang;
}

bool gang_member_fault(struct gang_member *member, struct fault *ret)
{
    pthread_mutex_lock(&member->table->mutex);
    struct gang_launch *launch = gang_find_launch(member->table, &member->run);
    bool aborted = false;
    struct list_node *runs = launch ? &launch->runs : NULL;
    for (struct list_node *node = runs ? runs->next : NULL; node && node != runs; node = node->next) {
        const struct gang_run *run = container_of(node, struct gang_run, node);
        if (run->program_node != member->run.node || !run->aborted)
            continue;
        *ret = run->fault;
        aborted = true;
    }
    pthread_mutex_unlock(&member->table->mutex);
    return aborted;
}

void gang_member_free(struct gang_member *member)
{
    vec_done(&member->rounds);
    mem_free(member);
}
