/* The rows of the head's status. */
#include "flow/island/head.h"

#include <stdlib.h>

static void status_add_host(struct flow_status *status, const struct head_host *host, uint32_t number)
{
    struct flow_status_host row = {
        .number = number, .island = host->island, .incarnation = host->incarnation};
    row.first_device = host->first_device;
    row.device_count = host->device_count;
    row.device_bytes = (uint64_t)host->device_bytes;
    row.host_bytes = (uint64_t)host->host_bytes;
    row.spilled_bytes = (uint64_t)host->spilled_bytes;
    row.spilled_in_all = host->spilled_in_all;
    row.filled_in_all = host->filled_in_all;
    uint64_t *numbers[LOAD_NUMBERS] = {
        &row.runs,          &row.failed_runs, &row.sent_bytes, &row.received_bytes, &row.put_bytes,
        &row.fetched_bytes, &row.compiled,    &row.reused,     &row.values,         &row.cells};
    for (int i = 0; i < LOAD_NUMBERS; i++)
        *numbers[i] = host->load[i];
    struct str address = str_head_utf8(str_from(host->address), STATUS_NAME_MAX);
    mem_copy(row.address, address.data, address.len);
    vec_push(&status->hosts, row);
    for (uint32_t d = 0; d < host->device_count; d++) {
        const struct head_device *device = &host->devices[d];
        struct flow_status_device cells = {.host = number, .number = host->first_device + d};
        cells.load = device->load;
        cells.queued = device->queued;
        cells.used_bytes = device->used_bytes;
        cells.busy_ns = device->busy_ns;
        vec_push(&status->devices, cells);
    }
}

/* Sets the number of calls of a program, and the name of the function that its first call names. */
static void status_name_program(struct flow_status_program *row, const struct head_client *client,
                                const struct program *program)
{
    uint64_t function = 0;
    for (size_t n = 0; program && n < program->nodes.len; n++) {
        if (program->nodes.items[n].kind != PROGRAM_CALL)
            continue;
        if (row->calls++ == 0)
            function = program->nodes.items[n].function;
    }
    for (size_t i = 0; i < client->functions.len && row->calls > 0; i++) {
        struct str name, rest;
        if (client->functions.items[i].id != function ||
            !str_cut(buf_str(&client->functions.items[i].text), 0, &name, &rest))
            continue;
        name = str_head_utf8(name, STATUS_NAME_MAX);
        mem_copy(row->name, name.data, name.len);
        return;
    }
}

/* A program, for the selection of those that have used the most device time. */
struct status_choice {
    const struct head_client *client;
    const struct head_program *program;
};

static int status_compare(const void *left, const void *right)
{
    const struct status_choice *a = left, *b = right;
    if (a->program->device_ns != b->program->device_ns)
        return a->program->device_ns > b->program->device_ns ? -1 : 1;
    if (a->client->id != b->client->id)
        return a->client->id < b->client->id ? -1 : 1;
    return a->program->id < b->program->id ? -1 : a->program->id > b->program->id;
}

static void status_add_programs(struct flow_status *status, const struct head *head)
{
    VEC(struct status_choice) all = {0};
    for (size_t c = 0; c < head->clients.len; c++)
        for (size_t p = 0; p < head->clients.items[c]->program_list.len; p++)
            vec_push(&all, ((struct status_choice){head->clients.items[c],
                                                   head->clients.items[c]->program_list.items[p]}));
    if (all.len > 0)
        qsort(all.items, all.len, sizeof *all.items, status_compare);
    for (size_t i = 0; i < all.len && i < STATUS_PROGRAMS_MAX; i++) {
        const struct head_program *program = all.items[i].program;
        struct flow_status_program row = {.client = all.items[i].client->id, .number = program->id};
        row.launches = program->launches;
        row.device_ns = program->device_ns;
        row.estimate_ns = program->estimate_ns;
        status_name_program(&row, all.items[i].client, program->program);
        vec_push(&status->programs, row);
    }
    vec_done(&all);
}

static void status_add_client(struct flow_status *status, const struct head_client *client, uint32_t tenant)
{
    struct flow_status_client row = {.id = client->id, .weight = client->weight, .tenant = tenant};
    row.priority = client->priority;
    row.away = client->away;
    row.queued = client->queue.len - client->queue_first;
    row.running = client->running;
    row.launches = client->launches;
    row.values = client->object_list.len;
    row.programs = client->program_list.len;
    row.device_ns = client->device_ns;
    status->tenants.items[tenant].suspended += client->state == CLIENT_SUSPENDED;
    status->tenants.items[tenant].queued += row.queued;
    status->tenants.items[tenant].running += row.running;
    if (status->clients.len < STATUS_CLIENTS_MAX)
        vec_push(&status->clients, row);
}

void head_status(const struct head *head, struct flow_status *ret_status)
{
    ret_status->now_ns = head->now_ns;
    ret_status->began_ns = head->began_ns;
    ret_status->tally = head->tally;
    ret_status->waits = head->waits;
    ret_status->times = head->times;
    for (size_t i = 0; i < head->islands.len; i++) {
        const struct head_island *island = &head->islands.items[i];
        struct flow_status_island row = {.running = island->running, .window = head->options.window};
        memcpy(row.name, island->name, sizeof row.name);
        row.tickets = island->next_ticket - 1;
        vec_push(&ret_status->islands, row);
    }
    for (uint32_t h = 0; h < head->hosts.len; h++)
        if (head->hosts.items[h].alive)
            status_add_host(ret_status, &head->hosts.items[h], h);
    for (uint32_t t = 0; t < head->accounts.len; t++) {
        const struct head_account *account = head->accounts.items[t];
        struct flow_status_tenant row = {.clients = account->clients, .launches = account->launches};
        memcpy(row.name, account->name, sizeof row.name);
        row.failed = account->failed;
        row.device_ns = account->device_ns;
        vec_push(&ret_status->tenants, row);
        for (size_t c = 0; c < head->clients.len; c++)
            if (head->clients.items[c]->account == account)
                status_add_client(ret_status, head->clients.items[c], t);
    }
    status_add_programs(ret_status, head);
}
