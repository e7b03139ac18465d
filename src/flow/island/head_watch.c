/* Watchers of the head: accounts by name, the status, and traces from hosts to watchers.
 *
 * A watcher that ends its trace still receives what was recorded before. The head sends the next epoch to
 * every host, and each host answers with its last records. The watcher receives the end of the trace once all
 * hosts have answered or are lost. */
#include "flow/island/head.h"

enum { WATCHERS_MAX = 16 };

/* --- accounts ------------------------------------------------------------------------------------------- */

struct head_account *head_account_find(const struct head *head, struct str name)
{
    for (size_t i = 0; i < head->accounts.len; i++)
        if (str_is(name, head->accounts.items[i]->name))
            return head->accounts.items[i];
    return NULL;
}

static struct head_account *head_account_of(struct head *head, struct str name)
{
    struct head_account *found = head_account_find(head, name);
    if (found)
        return found;
    if (head->accounts.len == STATUS_TENANTS_MAX)
        return vec_last(&head->accounts);
    if (head->accounts.len == STATUS_TENANTS_MAX - 1)
        name = STR("(others)");
    struct head_account *account = mem_alloc(sizeof *account);
    mem_copy(account->name, name.data, name.len);
    vec_push(&head->accounts, account);
    return account;
}

static void head_watch_name(const struct head *head, uint32_t client, uint64_t handle, struct str name,
                            struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_NAME, .client = client, .handle = handle};
    for (size_t i = 0; i < head->watchers.len; i++)
        if (head->watchers.items[i].traces)
            buf_add_str(&flow_send(effects, head->watchers.items[i].peer, &entry)->tail, name);
}

void head_account_open(struct head *head, struct head_client *client, struct str name,
                       struct flow_effects *effects)
{
    name = str_is_utf8(name) ? str_head_utf8(name, STATUS_NAME_MAX) : STR("(no name)");
    if (name.len == 0 || memchr(name.data, 0, name.len))
        name = STR("(no name)");
    client->account = head_account_of(head, name);
    client->account->clients++;
    head_watch_name(head, client->id, 0, str_from(client->account->name), effects);
}

void head_account_close(struct head_client *client)
{
    if (client->account)
        client->account->clients--;
}

/* --- traces --------------------------------------------------------------------------------------------- */

static bool head_traces(const struct head *head)
{
    for (size_t i = 0; i < head->watchers.len; i++)
        if (head->watchers.items[i].traces)
            return true;
    return false;
}

static void head_trace_forward(const struct head *head, uint32_t host, int64_t day_ns, struct str tail,
                               struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_TRACE, .node = host, .args = {(uint64_t)day_ns}};
    for (size_t i = 0; i < head->watchers.len && tail.len > 0; i++)
        if (head->watchers.items[i].traces || head->watchers.items[i].ends)
            buf_add_str(&flow_send(effects, head->watchers.items[i].peer, &entry)->tail, tail);
}

static void head_trace_flush(struct head *head, struct flow_effects *effects)
{
    struct str tail = {(const char *)head->traced.records.items,
                       head->traced.records.len * sizeof(struct trace_record)};
    head_trace_forward(head, UINT32_MAX, head->options.day_ns, tail, effects);
    vec_clear(&head->traced.records);
}

static void head_trace_add(struct head *head, const struct trace_record *record, struct flow_effects *effects)
{
    vec_push(&head->traced.records, *record);
    if (head->traced.records.len == TRACE_BATCH)
        head_trace_flush(head, effects);
}

void head_account_launch(struct head *head, const struct head_launch *launch, bool failed,
                         struct flow_effects *effects)
{
    struct head_client *client = launch->client;
    bool stamped = launch->islands.len > 0;
    int64_t got_ns = stamped ? launch->stamped_ns : head->now_ns;
    head->tally.launches++;
    head->tally.failed += failed;
    client->launches++;
    client->device_ns += launch->device_ns;
    if (client->account) {
        client->account->launches++;
        client->account->failed += failed;
        client->account->device_ns += launch->device_ns;
    }
    if (launch->program) {
        launch->program->launches++;
        launch->program->device_ns += launch->device_ns;
    }
    if (stamped) {
        flow_histogram_add(&head->waits, launch->stamped_ns - launch->arrived_ns);
        flow_histogram_add(&head->times, head->now_ns - launch->arrived_ns);
    }
    if (!head_traces(head))
        return;
    struct trace_record record = {.kind = TRACE_WAIT, .client = client->id, .launch = launch->entry.launch};
    record.program = launch->entry.program;
    record.failed = failed && !stamped;
    record.begin_ns = launch->arrived_ns;
    record.end_ns = got_ns;
    head_trace_add(head, &record, effects);
    if (!stamped)
        return;
    record.kind = TRACE_LAUNCH;
    record.failed = failed;
    record.handle = launch->entry.ticket;
    record.begin_ns = got_ns;
    record.end_ns = head->now_ns;
    record.bytes = launch->device_ns;
    head_trace_add(head, &record, effects);
}

/* Ends the traces that no longer wait for a host. */
static void head_trace_settle(struct head *head, struct flow_effects *effects)
{
    for (size_t i = 0; i < head->watchers.len; i++) {
        struct head_watcher *watcher = &head->watchers.items[i];
        bool waits = !watcher->ends;
        for (size_t h = 0; h < head->hosts.len && !waits; h++)
            waits = head->hosts.items[h].alive && head->hosts.items[h].trace_epoch < watcher->epoch;
        if (waits)
            continue;
        watcher->ends = false;
        struct flow_entry over = {.kind = ENTRY_TRACE, .flags = ENTRY_IS_DOWN, .node = UINT32_MAX};
        flow_send(effects, watcher->peer, &over);
    }
}

static void head_trace_tell(const struct head *head, uint32_t host, struct flow_effects *effects)
{
    struct flow_entry entry = {.kind = ENTRY_TRACE, .count = head_traces(head), .epoch = head->trace_epoch};
    if (head->hosts.items[host].alive)
        flow_send(effects, head->hosts.items[host].peer, &entry);
}

void head_trace(struct head *head, uint32_t host, const struct flow_event *event,
                struct flow_effects *effects)
{
    if (event->entry->epoch > head->trace_epoch) /* a worker's claim is not trusted */
        return;
    head_trace_forward(head, host, (int64_t)event->entry->args[0], event->tail, effects);
    if (event->entry->epoch > head->hosts.items[host].trace_epoch)
        head->hosts.items[host].trace_epoch = event->entry->epoch;
    head_trace_settle(head, effects);
}

void head_load(struct head *head, uint32_t host, const struct flow_entry *entry, struct str tail)
{
    struct unpack in = {tail.data, tail.len, false};
    struct head_host *to = &head->hosts.items[host];
    if (entry->count != to->device_count || tail.len != 8 * (LOAD_NUMBERS + 2 * (size_t)entry->count))
        return;
    for (int i = 0; i < LOAD_NUMBERS; i++)
        to->load[i] = unpack_u64(&in, UINT64_MAX);
    for (uint32_t d = 0; d < to->device_count; d++) {
        to->devices[d].busy_ns = unpack_u64(&in, UINT64_MAX);
        uint64_t queued = unpack_u64(&in, UINT64_MAX);
        to->devices[d].queued = queued < UINT32_MAX ? (uint32_t)queued : UINT32_MAX;
    }
}

void head_watch_host(struct head *head, uint32_t host, struct flow_effects *effects)
{
    for (size_t i = 0; i < head->watchers.len; i++)
        if (head->watchers.items[i].traces)
            head_tell_host(head, host, head->watchers.items[i].peer, effects);
    if (head->trace_epoch > 0)
        head_trace_tell(head, host, effects);
    head_trace_settle(head, effects);
}

/* --- watchers ------------------------------------------------------------------------------------------- */

void head_watch_hello(struct head *head, uint64_t peer, struct flow_effects *effects)
{
    u64_map_remove(&head->tokens, peer);
    if (head->watchers.len == WATCHERS_MAX) {
        flow_add(effects, FLOW_CLOSE)->peer = peer;
        return;
    }
    vec_push(&head->watchers, ((struct head_watcher){.peer = peer}));
    flow_send(effects, peer, &(struct flow_entry){.kind = ENTRY_WELCOME});
}

static struct str head_function_name(const struct head_function *function)
{
    struct str text = buf_str(&function->text), name, rest;
    return str_cut(text, 0, &name, &rest) ? str_head_utf8(name, STATUS_NAME_MAX) : STR("");
}

void head_watch_function(const struct head *head, const struct head_client *client,
                         const struct head_function *function, struct flow_effects *effects)
{
    head_watch_name(head, client->id, function->id, head_function_name(function), effects);
}

static void head_trace_begin(struct head *head, struct head_watcher *watcher, struct flow_effects *effects)
{
    watcher->traces = true;
    for (uint32_t h = 0; h < head->hosts.len; h++)
        if (head->hosts.items[h].alive)
            head_tell_host(head, h, watcher->peer, effects);
    for (size_t c = 0; c < head->clients.len; c++) {
        const struct head_client *client = head->clients.items[c];
        struct flow_entry entry = {.kind = ENTRY_NAME, .client = client->id};
        if (!client->account)
            continue;
        buf_add_str(&flow_send(effects, watcher->peer, &entry)->tail, str_from(client->account->name));
        for (size_t i = 0; i < client->functions.len; i++) {
            entry.handle = client->functions.items[i].id;
            buf_add_str(&flow_send(effects, watcher->peer, &entry)->tail,
                        head_function_name(&client->functions.items[i]));
        }
    }
}

/* TRACE of a watcher: begins or ends its trace. */
static void head_watch_trace(struct head *head, struct head_watcher *watcher, bool begins,
                             struct flow_effects *effects)
{
    if (watcher->traces == begins)
        return;
    if (begins)
        head_trace_begin(head, watcher, effects);
    else
        head_trace_flush(head, effects);
    watcher->traces = begins;
    watcher->ends = !begins;
    watcher->epoch = ++head->trace_epoch;
    for (uint32_t h = 0; h < head->hosts.len; h++)
        head_trace_tell(head, h, effects);
    head_trace_settle(head, effects);
}

bool head_watch_entry(struct head *head, const struct flow_event *event, struct flow_effects *effects)
{
    struct head_watcher *watcher = NULL;
    for (size_t i = 0; i < head->watchers.len && !watcher; i++)
        if (head->watchers.items[i].peer == event->peer)
            watcher = &head->watchers.items[i];
    if (!watcher)
        return false;
    if (event->entry->kind == ENTRY_STATUS) {
        struct flow_status status = {0};
        head_status(head, &status);
        flow_status_encode(
            &status, &flow_send(effects, event->peer, &(struct flow_entry){.kind = ENTRY_STATUS})->tail);
        flow_status_done(&status);
    } else if (event->entry->kind == ENTRY_TRACE) {
        head_watch_trace(head, watcher, event->entry->count != 0, effects);
    } else if (event->entry->kind == ENTRY_SUSPEND) {
        head_suspend(head, watcher, event, effects);
    } else if (event->entry->kind == ENTRY_RESUME) {
        head_resume(head, watcher, event, effects);
    } else {
        flow_add(effects, FLOW_CLOSE)->peer = event->peer;
    }
    return true;
}

void head_watch_closed(struct head *head, uint64_t peer, struct flow_effects *effects)
{
    for (size_t i = 0; i < head->watchers.len; i++) {
        if (head->watchers.items[i].peer != peer)
            continue;
        head_watch_trace(head, &head->watchers.items[i], false, effects);
        vec_remove(&head->watchers, i);
        return;
    }
}

void head_watch_tick(struct head *head, struct flow_effects *effects)
{
    head_trace_flush(head, effects);
}

void head_watch_free(struct head *head)
{
    for (size_t i = 0; i < head->accounts.len; i++)
        mem_free(head->accounts.items[i]);
    vec_done(&head->accounts);
    vec_done(&head->watchers);
    vec_done(&head->traced.records);
}
