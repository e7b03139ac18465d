#include "core/agent/rank_table.h"

#include <stdio.h>

#include "base/check.h"
#include "doc/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/words/limits.h"

_Static_assert(CHIPS_PER_MACHINE_MAX == 64, "a machine's chips are one 64-bit mask");

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.data[i] <= ' ' || s.data[i] == 127)
            return false;
    return s.len > 0;
}

static bool entry_valid(const struct rank_table_entry *entry)
{
    return is_word(entry->hostname) && is_word(entry->address);
}

void rank_table_write_hosts(struct buf *out, const struct gang_rank_table *rank_table)
{
    CHECK(rank_table->entries || rank_table->count == 0);
    buf_add_str(out, STR("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"));
    bool has_domain = is_word(rank_table->subdomain) && is_word(rank_table->namespace_);
    for (size_t i = 0; i < rank_table->count; i++) {
        const struct rank_table_entry *entry = &rank_table->entries[i];
        if (!entry_valid(entry))
            continue;
        buf_add_str(out, entry->address);
        buf_add_char(out, ' ');
        if (has_domain) {
            buf_add_str(out, entry->hostname);
            buf_add_char(out, '.');
            buf_add_str(out, rank_table->subdomain);
            buf_add_char(out, '.');
            buf_add_str(out, rank_table->namespace_);
            buf_add_str(out, STR(".svc.cluster.local "));
            buf_add_str(out, entry->hostname);
            buf_add_char(out, '.');
            buf_add_str(out, rank_table->subdomain);
            buf_add_char(out, ' ');
        }
        buf_add_str(out, entry->hostname);
        buf_add_char(out, '\n');
    }
}

/* --- rank table ----------------------------------------------------------------------------------- */

struct server {
    struct str machine, address;
    struct buf devices; /* a JSON array that is not closed yet */
};

static void put_number(struct json_writer *writer, const char *key, uint64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    CHECK(len > 0 && (size_t)len < sizeof text);
    json_pair_text(writer, key, text);
}

static void add_devices(struct server *server, uint64_t chips, struct str address, uint64_t *rank_id)
{
    uint64_t first = *rank_id;
    for (uint32_t chip = 0; chip < 64; chip++) {
        if (!(chips >> chip & 1))
            continue;
        buf_add_char(&server->devices, server->devices.len > 0 ? ',' : '[');
        struct json_writer writer = {.out = &server->devices};
        json_begin_object(&writer);
        put_number(&writer, "device_id", chip);
        json_pair_str(&writer, "device_ip", address);
        put_number(&writer, "rank_id", (*rank_id)++);
        json_end_object(&writer);
    }
    CHECK(*rank_id - first == (uint64_t)__builtin_popcountll(chips));
}

static void put_server(struct json_writer *writer, struct server *server)
{
    if (server->devices.len == 0)
        buf_add_char(&server->devices, '[');
    buf_add_char(&server->devices, ']');
    json_begin_object(writer);
    json_key(writer, "device");
    json_put_raw(writer, buf_str(&server->devices));
    json_pair_str(writer, "server_id", server->address);
    json_pair_str(writer, "host_name", server->machine);
    json_pair_str(writer, "host_ip", server->address);
    json_pair_str(writer, "container_ip", server->address);
    json_end_object(writer);
}

void rank_table_write_json(struct buf *out, const struct gang_rank_table *rank_table)
{
    CHECK(rank_table->entries || rank_table->count == 0);
    struct str_map by_machine = {0};
    VEC(struct server *) servers = {0};
    uint64_t rank_id = 0;
    for (size_t i = 0; i < rank_table->count; i++) {
        const struct rank_table_entry *entry = &rank_table->entries[i];
        if (!entry_valid(entry))
            continue;
        struct str key = entry->machine.len > 0 ? entry->machine : entry->address;
        struct server *server = str_map_get(&by_machine, key);
        if (!server) {
            server = mem_alloc(sizeof *server);
            server->machine = entry->machine;
            server->address = entry->address;
            str_map_put(&by_machine, key, server);
            vec_push(&servers, server);
        }
        add_devices(server, entry->chips, entry->address, &rank_id);
    }
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_text(&writer, "status", "completed");
    json_pair_text(&writer, "version", "1.0");
    put_number(&writer, "server_count", servers.len);
    json_key(&writer, "server_list");
    json_begin_array(&writer);
    for (size_t i = 0; i < servers.len; i++) {
        put_server(&writer, servers.items[i]);
        buf_done(&servers.items[i]->devices);
        mem_free(servers.items[i]);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    vec_done(&servers);
    str_map_done(&by_machine);
}

/* --- host names ----------------------------------------------------------------------------------------- */

void rank_table_write_host_names(struct buf *out, const struct gang_rank_table *rank_table)
{
    for (size_t i = 0; i < rank_table->count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        buf_add_str(out, rank_table->entries[i].hostname);
        buf_add_char(out, '.');
        buf_add_str(out, rank_table->subdomain);
    }
}

static void set_values(struct env_var *env, size_t count, struct str host_names, bool taken_out)
{
    for (size_t i = 0; i < count; i++) {
        if (!env[i].host_names)
            continue;
        env[i].value = host_names;
        env[i].host_names = taken_out;
    }
}

static void set_all_values(struct task_launch *launch, struct str host_names, bool taken_out)
{
    set_values(launch->env, launch->env_count, host_names, taken_out);
    for (size_t i = 0; i < launch->container_count; i++)
        set_values(launch->containers[i].env, launch->containers[i].env_count, host_names, taken_out);
}

void rank_table_take_out(struct task_launch *launch, uint64_t number)
{
    CHECK(number != 0);
    launch->rank_table = (struct gang_rank_table){0};
    launch->rank_table_number = number;
    set_all_values(launch, STR(""), true);
}

void rank_table_put_back(struct task_launch *launch, const struct gang_rank_table *rank_table,
                         struct str host_names)
{
    CHECK(launch->rank_table_number != 0);
    launch->rank_table = *rank_table;
    launch->rank_table_number = 0;
    set_all_values(launch, host_names, false);
}
