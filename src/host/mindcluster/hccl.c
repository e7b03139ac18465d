/* hccl.c - reads a given rank table, and compares it with the places of the ranks. */
#include "host/mindcluster/internal.h"

enum { TABLE_MEMORY_MAX = 64 << 20 };

enum mindcluster_kind mindcluster_kind(const struct doc *object)
{
    const struct doc *data = doc_get(object, "data");
    if (doc_get(object, "RankList") || doc_get(data, "reset.json"))
        return MINDCLUSTER_RESET;
    if (doc_get(object, "server_list") || doc_get(object, "group_list") || doc_get(object, "rank_list") ||
        doc_get(data, "hccl.json"))
        return MINDCLUSTER_HCCL;
    return MINDCLUSTER_OF_FAULTS;
}

struct str mindcluster_job(const struct doc *object)
{
    static const char *const prefixes[] = {"reset-config-", "rings-config-", "job-summary-"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (name_behind(object, prefixes[i]).len)
            return name_behind(object, prefixes[i]);
    return (struct str){0};
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct reader {
    struct arena *arena;
    struct mindcluster_table *table;
    bool *seen; /* by rank */
    struct error *error;
};

/* Reads a number in a string, as MindCluster writes numbers. */
static bool read_number(const struct doc *object, const char *key, int64_t max, int64_t *ret_number)
{
    const struct doc *member = doc_get(object, key);
    return member && member->kind == DOC_STRING && str_to_i64(member->text, 0, max, ret_number);
}

/* Reads a text. Returns false if the member is not a string, or if it is absent or empty although needed. */
static bool read_text(const struct doc *object, const char *key, bool needed, struct str *ret_text)
{
    const struct doc *member = doc_get(object, key);
    *ret_text = doc_str(member, STR(""));
    return (!member || member->kind == DOC_STRING) && (ret_text->len || !needed);
}

static int read_device(struct reader *reader, const char *path, const struct doc *device,
                       struct mindcluster_rank rank)
{
    struct mindcluster_table *table = reader->table;
    struct str address;
    int64_t number;
    if (!read_number(device, "device_id", INT32_MAX, &rank.device_id))
        return error_set(reader->error, ERROR_INVALID, "%s.device_id: a number in a text is needed", path);
    if (!read_text(device, "device_ip", false, &address))
        return error_set(reader->error, ERROR_INVALID, "%s.device_ip: a text is needed", path);
    if (!read_number(device, "rank_id", INT32_MAX, &number))
        return error_set(reader->error, ERROR_INVALID, "%s.rank_id: a number in a text is needed", path);
    if (number >= (int64_t)reader->table->count)
        return error_set(reader->error, ERROR_INVALID,
                         "%s.rank_id: %lld, but a table of %zu devices has "
                         "ranks 0 to %zu",
                         path, (long long)number, reader->table->count, reader->table->count - 1);
    if (reader->seen[number])
        return error_set(reader->error, ERROR_INVALID, "%s.rank_id: rank %lld is listed twice", path,
                         (long long)number);
    reader->seen[number] = true;
    table->ranks[number] = rank;
    return 0;
}

static int read_server(struct reader *reader, size_t index, const struct doc *server)
{
    const struct doc *devices = doc_get(server, "device");
    struct mindcluster_rank rank = {0};
    struct str hardware;
    const struct {
        const char *key;
        bool needed;
        struct str *text;
    } texts[] = {{"server_id", true, &rank.server_id},
                 {"host_ip", false, &rank.host_ip},
                 {"container_ip", false, &rank.container_ip},
                 {"hardware_type", false, &hardware}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!read_text(server, texts[i].key, texts[i].needed, texts[i].text))
            return error_set(reader->error, ERROR_INVALID, "server_list[%zu].%s: a text is needed", index,
                             texts[i].key);
    if (!devices || devices->kind != DOC_ARRAY || doc_len(devices) == 0)
        return error_set(reader->error, ERROR_INVALID, "server_list[%zu].device: a list of devices is needed",
                         index);
    for (size_t i = 0; i < doc_len(devices); i++) {
        struct str path = arena_printf(reader->arena, "server_list[%zu].device[%zu]", index, i);
        int rc = read_device(reader, path.data, doc_at(devices, i), rank);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Reads the members of the table besides its servers. */
static int read_head(struct reader *reader, const struct doc *object)
{
    const struct doc *servers = doc_get(object, "server_list");
    struct str version, status = doc_str(doc_get(object, "status"), STR(""));
    int64_t count;
    if (doc_get(object, "group_list"))
        return error_set(reader->error, ERROR_UNSUPPORTED,
                         "group_list: a table of groups is older than 1.0, the version that is read");
    if (!read_text(object, "version", true, &version))
        return error_set(reader->error, ERROR_INVALID, "version: a text is needed");
    if (!str_is(version, "1.0"))
        return error_set(reader->error, ERROR_UNSUPPORTED, "version: \"1.0\" is read");
    if (!str_is(status, "initializing") && !str_is(status, "completed"))
        return error_set(reader->error, ERROR_INVALID, "status: initializing or completed is needed");
    if (!servers || servers->kind != DOC_ARRAY)
        return error_set(reader->error, ERROR_INVALID, "server_list: a list of servers is needed");
    if (!read_number(object, "server_count", INT32_MAX, &count) || (size_t)count != doc_len(servers))
        return error_set(reader->error, ERROR_INVALID,
                         "server_count: \"%zu\", as many as there are in "
                         "server_list, is needed",
                         doc_len(servers));
    if (doc_get(object, "group_count") &&
        (!read_number(object, "group_count", INT32_MAX, &count) || count != 1))
        return error_set(reader->error, ERROR_INVALID, "group_count: \"1\" is needed where it is given");
    for (size_t i = 0; i < doc_len(servers); i++)
        reader->table->count += doc_len(doc_get(doc_at(servers, i), "device"));
    if (reader->table->count > MINDCLUSTER_RANKS_MAX)
        return error_set(reader->error, ERROR_LIMIT, "server_list: more than %d devices",
                         MINDCLUSTER_RANKS_MAX);
    reader->table->completed = str_is(status, "completed");
    if (reader->table->completed && reader->table->count == 0)
        return error_set(reader->error, ERROR_INVALID, "server_list: a completed table has devices");
    return 0;
}

int mindcluster_read_table(struct arena *arena, const struct doc *object, struct mindcluster_table *ret_table,
                           struct error *error)
{
    struct mindcluster_table table = {0};
    struct reader reader = {.arena = arena, .table = &table, .error = error};
    size_t limit_bytes = arena->limit_bytes;
    arena->limit_bytes = arena->used_bytes + TABLE_MEMORY_MAX;
    if (doc_path(object, "data", "hccl.json", NULL))
        object = data_inner(arena, doc_get(object, "data"), "hccl.json", error);
    arena->limit_bytes = limit_bytes;
    int rc = object ? read_head(&reader, object) : ERROR_INVALID;
    if (rc < 0)
        return rc;
    const struct doc *servers = doc_get(object, "server_list");
    table.ranks = ARENA_ARRAY(arena, struct mindcluster_rank, table.count);
    reader.seen = ARENA_ARRAY(arena, bool, table.count);
    for (size_t i = 0; rc == 0 && i < doc_len(servers); i++)
        rc = read_server(&reader, i, doc_at(servers, i));
    /* Ranks below the number of devices, each once: none can be missing. */
    if (rc == 0)
        *ret_table = table;
    return rc;
}

/* --- comparing ------------------------------------------------------------------------------------------ */

static bool same_server(const struct mindcluster_rank *rank, const struct doc *pod)
{
    struct str address = text_at(pod, "status", "hostIP"), own = text_at(pod, "status", "podIP");
    return str_equal(rank->server_id, text_at(pod, "spec", "nodeName")) ||
           (address.len && (str_equal(rank->server_id, address) || str_equal(rank->host_ip, address))) ||
           (own.len && str_equal(rank->container_ip, own) && !str_equal(own, address));
}

static bool same_device(const struct mindcluster_rank *rank, const struct seat *seat)
{
    return rank->device_id == (seat->chip < 0 ? 0 : seat->chip); /* as export writes it */
}

struct candidate {
    struct str job;
    size_t count;
};

/* Returns whether any rank of the table is at this seat, whatever its number. */
static bool is_listed(const struct mindcluster_table *table, const struct seat *seat)
{
    for (size_t i = 0; i < table->count; i++)
        if (same_device(&table->ranks[i], seat) && same_server(&table->ranks[i], seat->pod))
            return true;
    return false;
}

struct str mindcluster_find_job(const struct mindcluster_table *table, const struct doc *pods)
{
    struct mindcluster_view view = {.pods = pods};
    VEC(struct candidate) jobs = {0};
    seat_list seats = {0};
    struct candidate best = {0};
    bool alone = true;
    seats_of(&view, &seats);
    for (size_t i = 0; i < seats.len; i++) {
        struct str job = doc_str(
            doc_path(seats.items[i].pod, "metadata", "labels", "jobset.sigs.k8s.io/jobset-name", NULL),
            STR(""));
        size_t at = 0;
        if (!job.len || !is_listed(table, &seats.items[i]))
            continue;
        while (at < jobs.len && !str_equal(jobs.items[at].job, job))
            at++;
        if (at == jobs.len)
            vec_push(&jobs, ((struct candidate){.job = job}));
        jobs.items[at].count++;
    }
    for (size_t i = 0; i < jobs.len; i++) {
        alone = jobs.items[i].count > best.count || (alone && jobs.items[i].count < best.count);
        best = jobs.items[i].count > best.count ? jobs.items[i] : best;
    }
    vec_done(&jobs);
    vec_done(&seats);
    return alone ? best.job : (struct str){0};
}

static void describe(struct buf *line, const char *where, struct str server, int64_t device)
{
    if (server.len)
        buf_printf(line, "%s server " STR_FORMAT " device %lld", where, STR_ARG(server), (long long)device);
    else
        buf_printf(line, "%s nowhere", where);
}

size_t mindcluster_compare(const struct mindcluster_view *view, const struct mindcluster_table *table,
                           struct buf *lines)
{
    seat_list seats = {0};
    size_t differences = 0;
    seats_of(view, &seats);
    for (size_t i = 0; i < table->count || i < seats.len; i++) {
        const struct mindcluster_rank *rank = i < table->count ? &table->ranks[i] : NULL;
        const struct seat *seat = i < seats.len && seats.items[i].machine.len ? &seats.items[i] : NULL;
        if (rank ? seat && same_server(rank, seat->pod) && same_device(rank, seat) : !seat)
            continue;
        buf_printf(lines, "rank %zu: ", i);
        describe(lines, "in the table", rank ? rank->server_id : STR(""), rank ? rank->device_id : 0);
        describe(lines, ", in the cluster", seat ? seat->machine : STR(""),
                 seat && seat->chip > 0 ? seat->chip : 0);
        buf_add_char(lines, '\n');
        differences++;
    }
    vec_done(&seats);
    return differences;
}
