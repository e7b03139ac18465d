/* Clients that give up their devices for a while.
 *
 *     RUNS → DRAINS        on request of a watcher; the client is told to stop putting values, and confirms
 *     DRAINS → SAVES       its launches are over, its values are whole; hosts write the shards outside memory
 *     SAVES → SUSPENDED    every host has answered; devices and memory are free for other clients
 *     SUSPENDED → RUNS     on request of a watcher, if there is space for all that the client has
 *     DRAINS, SAVES → RUNS
 *                          the time has expired, a host cannot save, or a watcher resumes the client: saved
 *                          shards are loaded in their old places
 *
 * Launches stay queued meanwhile, and get no ticket. Handles stay valid. When the client runs again, its
 * meshes are on other devices, and the values on them have moved with them. Each shard counts as arriving, as
 * if it were being put. */
#include "flow/island/head.h"

static void head_suspend_state(struct head *head, struct head_client *client, enum head_client_state state)
{
    head->suspending -= client->state == CLIENT_DRAINS || client->state == CLIENT_SAVES;
    head->suspending += state == CLIENT_DRAINS || state == CLIENT_SAVES;
    client->state = state;
}

/* --- moving --------------------------------------------------------------------------------------------- */

/* MOVE entries under construction, one for each host. */
struct head_moves {
    struct buf *of_host;
    size_t host_count;
};

static struct head_moves head_moves_begin(const struct head *head)
{
    return (struct head_moves){mem_alloc(head->hosts.len * sizeof(struct buf) + 1), head->hosts.len};
}

/* Adds the moves of each shard of the value from its host in `from` to the host of its current place. */
static void head_moves_add(const struct head *head, struct head_moves *moves,
                           const struct head_object *object, const struct head_places *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        if (!head_place_alive(head, from->places[i]))
            continue;
        struct buf *tail = &moves->of_host[from->places[i].host];
        pack_u64(tail, object->handle);
        pack_u32(tail, i);
        pack_u32(tail, object->places->places[i].host);
    }
}

static void head_moves_send(const struct head *head, const struct head_client *client,
                            struct head_moves *moves, struct flow_effects *effects)
{
    for (size_t h = 0; h < moves->host_count; h++) {
        struct flow_entry entry = {.kind = ENTRY_MOVE, .client = client->id};
        if (moves->of_host[h].len > 0)
            buf_add_str(&flow_send(effects, head->hosts.items[h].peer, &entry)->tail,
                        buf_str(&moves->of_host[h]));
        buf_done(&moves->of_host[h]);
    }
    mem_free(moves->of_host);
}

static bool head_object_lives(const struct head *head, const struct head_object *object)
{
    for (uint32_t i = 0; i < object->places->count; i++)
        if (!head_place_alive(head, object->places->places[i]))
            return false;
    return true;
}

/* --- suspending ----------------------------------------------------------------------------------------- */

static void head_client_begin_drain(struct head *head, struct head_client *client, int64_t time_ns,
                                    struct flow_effects *effects)
{
    head_suspend_state(head, client, CLIENT_DRAINS);
    client->stopped = false;
    client->saved_bytes = 0;
    client->suspension++;
    client->suspend_until_ns = time_ns < INT64_MAX - head->now_ns ? head->now_ns + time_ns : INT64_MAX;
    struct flow_entry stop = {.kind = ENTRY_SUSPEND, .epoch = client->suspension};
    flow_send(effects, client->peer, &stop);
}

void head_suspend(struct head *head, struct head_watcher *watcher, const struct flow_event *event,
                  struct flow_effects *effects)
{
    struct head_account *account = head_account_find(head, event->tail);
    watcher->suspends = account;
    watcher->fault = (struct fault){0};
    bool some = false;
    int64_t time_ns = event->entry->args[0] <= INT64_MAX ? (int64_t)event->entry->args[0] : INT64_MAX;
    for (size_t c = 0; c < head->clients.len && account; c++) {
        struct head_client *client = head->clients.items[c];
        some = some || client->account == account;
        if (client->account == account && client->state == CLIENT_RUNS)
            head_client_begin_drain(head, client, time_ns, effects);
    }
    if (some)
        return;
    watcher->suspends = NULL;
    struct flow_entry answer = {.kind = ENTRY_SUSPEND, .flags = ENTRY_IS_FAILED};
    struct fault fault = fault_make(FAULT_CANCELLED, 0, 0, "no client has that name");
    fault_encode(&fault, &flow_send(effects, event->peer, &answer)->tail);
}

void head_client_stopped(struct head_client *client, const struct flow_entry *entry)
{
    if (client->state == CLIENT_DRAINS && entry->epoch == client->suspension)
        client->stopped = true;
}

/* Whether no launch, put or report of the client is in progress. */
static bool head_client_rests(const struct head *head, const struct head_client *client)
{
    if (!client->stopped || client->running > 0 || client->tells)
        return false;
    for (size_t m = 0; m < head->meshes.len; m++)
        if (head->meshes.items[m]->client == client->id && head_mesh_waits(head->meshes.items[m]))
            return false;
    for (size_t i = 0; i < client->object_list.len; i++)
        if (client->object_list.items[i]->missing > 0 || client->object_list.items[i]->births)
            return false;
    return true;
}

static void head_client_begin_save(struct head *head, struct head_client *client,
                                   struct flow_effects *effects)
{
    head_suspend_state(head, client, CLIENT_SAVES);
    struct flow_entry save = {.kind = ENTRY_SAVE, .client = client->id, .epoch = client->suspension};
    vec_clear(&client->savers);
    for (uint32_t h = 0; h < head->hosts.len; h++) {
        if (!head->hosts.items[h].alive)
            continue;
        vec_push(&client->savers, h);
        flow_send(effects, head->hosts.items[h].peer, &save);
    }
}

/* Frees the client's devices and memory for others, after all its values have been saved. */
static void head_client_park(struct head *head, struct head_client *client, struct flow_effects *effects)
{
    head_suspend_state(head, client, CLIENT_SUSPENDED);
    struct fault lost =
        fault_make(FAULT_DEVICE_LOST, 0, 0, "a device was lost before the client's suspension");
    for (size_t m = 0; m < head->meshes.len; m++)
        if (head->meshes.items[m]->client == client->id && !head->meshes.items[m]->parent)
            head_mesh_park(head, head->meshes.items[m]);
    for (size_t i = client->object_list.len; i-- > 0;) {
        struct head_object *object = client->object_list.items[i];
        if (!object->places) /* the result of a queued launch */
            continue;
        head_object_uncharge(head, object);
        object->spilled = false;
        if (object->fault)
            continue;
        if (head_object_lives(head, object)) {
            head_object_moves(object);
            object->parked = true;
        } else {
            head_object_fail(client, object, &lost, effects);
            head_object_try_release(head, client, object, effects);
        }
    }
}

/* Ends a suspension early: the client continues in its old places. */
static void head_suspend_revert(struct head *head, struct head_client *client, const struct fault *fault,
                                struct flow_effects *effects)
{
    struct head_moves moves = head_moves_begin(head);
    /* Sent first without a tail: a host may receive SAVE after values that the client puts when it runs
     * again. */
    for (size_t h = 0; h < head->hosts.len && client->state == CLIENT_SAVES; h++)
        if (head->hosts.items[h].alive)
            flow_send(effects, head->hosts.items[h].peer,
                      &(struct flow_entry){.kind = ENTRY_MOVE, .client = client->id});
    for (size_t i = 0; i < client->object_list.len && client->state == CLIENT_SAVES; i++) {
        struct head_object *object = client->object_list.items[i];
        if (!object->places)
            continue;
        head_moves_add(head, &moves, object, object->places);
        if (!object->fault && head_object_lives(head, object))
            head_object_moves(object);
    }
    head_moves_send(head, client, &moves, effects);
    for (size_t i = 0; i < client->object_list.len && client->state == CLIENT_SAVES; i++)
        if (client->object_list.items[i]->spilled) /* MOVE has cleared this on the hosts */
            head_object_tell_spilled(head, client->object_list.items[i], effects);
    head_suspend_state(head, client, CLIENT_RUNS);
    flow_send(effects, client->peer, &(struct flow_entry){.kind = ENTRY_RESUME});
    for (size_t i = 0; i < head->watchers.len; i++)
        if (head->watchers.items[i].suspends == client->account)
            head->watchers.items[i].fault = *fault;
}

void head_saved(struct head *head, uint32_t host, const struct flow_event *event,
                struct flow_effects *effects)
{
    struct head_client *client = head_client_of(head, event->entry->client);
    if (!client || client->state != CLIENT_SAVES || client->suspension != event->entry->epoch)
        return;
    for (size_t i = 0; i < client->savers.len; i++)
        if (client->savers.items[i] == host) {
            vec_remove(&client->savers, i);
            client->saved_bytes += event->entry->args[0];
            break;
        }
    if (!(event->entry->flags & ENTRY_IS_FAILED))
        return;
    struct fault fault;
    fault_decode(event->tail, &fault);
    head_suspend_revert(head, client, &fault, effects);
}

void head_suspend_host_lost(struct head *head, uint32_t host)
{
    for (size_t c = 0; c < head->clients.len; c++) {
        struct head_client *client = head->clients.items[c];
        for (size_t i = client->savers.len; i-- > 0;)
            if (client->savers.items[i] == host)
                vec_remove(&client->savers, i);
    }
}

void head_suspend_end(struct head *head, struct head_client *client)
{
    head_suspend_state(head, client, CLIENT_RUNS);
}

/* Answers a watcher once no client of the account is draining or saving. */
static void head_suspend_answer(const struct head *head, struct head_watcher *watcher,
                                struct flow_effects *effects)
{
    struct flow_entry answer = {.kind = ENTRY_SUSPEND};
    for (size_t c = 0; c < head->clients.len; c++) {
        const struct head_client *client = head->clients.items[c];
        if (client->account != watcher->suspends)
            continue;
        if (client->state == CLIENT_DRAINS || client->state == CLIENT_SAVES)
            return;
        answer.count = (uint16_t)(answer.count + (client->state == CLIENT_SUSPENDED));
        answer.args[0] += client->saved_bytes;
    }
    watcher->suspends = NULL;
    struct flow_effect *effect = flow_send(effects, watcher->peer, &answer);
    if (watcher->fault.reason == FAULT_NONE)
        return;
    effect->entry.flags = ENTRY_IS_FAILED;
    fault_encode(&watcher->fault, &effect->tail);
}

static void head_client_suspend_go(struct head *head, struct head_client *client,
                                   struct flow_effects *effects)
{
    if (client->state == CLIENT_DRAINS && head_client_rests(head, client))
        head_client_begin_save(head, client, effects);
    if (client->state == CLIENT_SAVES && client->savers.len == 0)
        head_client_park(head, client, effects);
    if ((client->state != CLIENT_DRAINS && client->state != CLIENT_SAVES) ||
        head->now_ns < client->suspend_until_ns)
        return;
    struct fault fault =
        client->state == CLIENT_SAVES
            ? fault_make(FAULT_CANCELLED, 0, 0, "saving the values of client %u takes too long", client->id)
            : fault_make(FAULT_CANCELLED, 0, 0, "client %u runs on: %u of its launches were not over in time",
                         client->id, client->running);
    if (client->state == CLIENT_DRAINS && client->running == 0)
        fault = fault_make(FAULT_CANCELLED, 0, 0, "client %u runs on: it did not stop putting values in time",
                           client->id);
    head_suspend_revert(head, client, &fault, effects);
}

void head_suspend_go(struct head *head, struct flow_effects *effects)
{
    for (size_t c = 0; c < head->clients.len && head->suspending > 0; c++)
        head_client_suspend_go(head, head->clients.items[c], effects);
    for (size_t i = 0; i < head->watchers.len; i++)
        if (head->watchers.items[i].suspends)
            head_suspend_answer(head, &head->watchers.items[i], effects);
}

/* --- resuming ------------------------------------------------------------------------------------------- */

/* Puts the client's meshes on devices that are available now. Returns false if one cannot be placed; *fault
 * names it. */
static bool head_client_place(struct head *head, const struct head_client *client, struct fault *fault)
{
    for (size_t m = 0; m < head->meshes.len; m++) { /* parents come before their slices */
        struct head_mesh *mesh = head->meshes.items[m];
        if (mesh->client != client->id || !(mesh->parent ? mesh->parent->before != NULL : mesh->parked))
            continue;
        mesh->before = head_places_ref(mesh->places);
        mesh->was_whole = mesh->whole;
        if (mesh->parent) {
            head_places_unref(mesh->places);
            mesh->places = head_places_new(mesh->before->count);
            head_slice_place(head, mesh);
        } else {
            mesh->whole = head_mesh_unpark(head, mesh);
        }
        if (mesh->whole || !mesh->was_whole)
            continue;
        *fault =
            fault_make(FAULT_CANCELLED, 0, 0, "island %s has no %u devices for mesh %u of client %u",
                       head->islands.items[mesh->island].name, mesh->places->count, mesh->id, client->id);
        return false;
    }
    return true;
}

/* Moves the values to the new places of their meshes, and charges their memory. */
static void head_client_charge(struct head *head, const struct head_client *client)
{
    for (size_t i = 0; i < client->object_list.len; i++) {
        struct head_object *object = client->object_list.items[i];
        if (!object->parked)
            continue;
        const struct head_mesh *mesh = head_mesh_of(head, client->id, object->value.sharding.mesh);
        if (mesh && mesh->before == object->places) {
            head_places_unref(object->places);
            object->places = head_places_ref(mesh->places);
        }
        struct fault full;
        if (!head_object_admit(head, object, &full)) /* head_memory_fits then reports it */
            head_object_charge(head, object);
    }
}

/* Whether no device is charged more than its memory. */
static bool head_memory_fits(const struct head *head, struct fault *fault)
{
    for (size_t h = 0; h < head->hosts.len; h++) {
        const struct head_host *host = &head->hosts.items[h];
        for (uint32_t d = 0; host->alive && d < host->device_count; d++) {
            if (host->devices[d].used_bytes <= host->device_bytes)
                continue;
            *fault = fault_make(FAULT_OUT_OF_MEMORY, 0, 0,
                                "device %u has no room: %lld bytes would be in use, of %lld",
                                host->first_device + d, (long long)host->devices[d].used_bytes,
                                (long long)host->device_bytes);
            return false;
        }
    }
    return true;
}

/* Reverts head_client_place and head_client_charge. */
static void head_client_unplace(struct head *head, const struct head_client *client)
{
    for (size_t i = 0; i < client->object_list.len; i++) {
        struct head_object *object = client->object_list.items[i];
        if (!object->parked)
            continue;
        head_object_uncharge(head, object);
        object->spilled = false;
        head_places_unref(object->places);
        object->places = head_places_ref(object->from);
    }
    for (size_t m = 0; m < head->meshes.len; m++) {
        struct head_mesh *mesh = head->meshes.items[m];
        if (mesh->client != client->id || !mesh->before)
            continue;
        if (!mesh->parent)
            head_mesh_park(head, mesh);
        head_places_unref(mesh->places);
        mesh->places = mesh->before;
        mesh->before = NULL;
        mesh->whole = mesh->was_whole;
    }
}

static void head_client_go_on(struct head *head, struct head_client *client, struct flow_effects *effects)
{
    head_suspend_state(head, client, CLIENT_RUNS);
    client->epoch++;
    for (size_t m = 0; m < head->meshes.len; m++) {
        struct head_mesh *mesh = head->meshes.items[m];
        if (mesh->client != client->id || !mesh->before)
            continue;
        head_places_unref(mesh->before);
        mesh->before = NULL;
        mesh->moved = client->epoch;
        head->tally.remaps++;
        head_mesh_tell(head, client, mesh, 0, effects)->entry.flags = ENTRY_IS_KEPT;
    }
    struct head_moves moves = head_moves_begin(head);
    for (size_t i = 0; i < client->object_list.len; i++) {
        struct head_object *object = client->object_list.items[i];
        if (!object->parked)
            continue;
        object->parked = false;
        head_moves_add(head, &moves, object, object->from);
    }
    head_moves_send(head, client, &moves, effects);
    for (size_t i = 0; i < client->object_list.len; i++)
        if (client->object_list.items[i]->spilled)
            head_object_tell_spilled(head, client->object_list.items[i], effects);
    head_client_comes_back(head, client);
    flow_send(effects, client->peer, &(struct flow_entry){.kind = ENTRY_RESUME});
}

/* Resumes a client. Returns false, and changes nothing, if there is no space; *fault says for what. */
static bool head_client_resume(struct head *head, struct head_client *client, struct fault *fault,
                               struct flow_effects *effects)
{
    bool fits = head_client_place(head, client, fault);
    if (fits) {
        head_client_charge(head, client);
        fits = head_memory_fits(head, fault);
    }
    if (fits)
        head_client_go_on(head, client, effects);
    else
        head_client_unplace(head, client);
    return fits;
}

void head_resume(struct head *head, const struct head_watcher *watcher, const struct flow_event *event,
                 struct flow_effects *effects)
{
    const struct head_account *account = head_account_find(head, event->tail);
    struct fault fault = {0}, asked = fault_make(FAULT_CANCELLED, 0, 0, "the client was resumed meanwhile");
    struct flow_entry answer = {.kind = ENTRY_RESUME};
    for (size_t c = 0; c < head->clients.len && account; c++) {
        struct head_client *client = head->clients.items[c];
        if (client->account != account || client->state == CLIENT_RUNS)
            continue;
        answer.count++;
        if (client->state != CLIENT_SUSPENDED)
            head_suspend_revert(head, client, &asked, effects);
        else if (!head_client_resume(head, client, &fault, effects))
            answer.flags = ENTRY_IS_FAILED;
    }
    if (answer.count == 0) {
        answer.flags = ENTRY_IS_FAILED;
        fault = fault_make(FAULT_CANCELLED, 0, 0, "no client of that name is suspended");
    }
    struct flow_effect *effect = flow_send(effects, watcher->peer, &answer);
    if (answer.flags)
        fault_encode(&fault, &effect->tail);
}
