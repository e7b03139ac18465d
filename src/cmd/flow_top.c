/* phalanx flow top: shows the tenants of a flow runtime with their shares, devices, programs and queues. */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/host/watch.h"

static const char flow_top_usage[] =
    "Usage: phalanx flow top ADDRESS [--once] [--interval TIME] [-o text|json] [--token-file FILE]\n"
    "\n"
    "Shows the tenants of the head at ADDRESS (all clients of one name) with their shares of the devices,\n"
    "the devices, and the programs that use them most. Rates and shares are those between two looks.\n"
    "On a terminal the tables are drawn again at every look, until SIGINT; otherwise they are printed once,\n"
    "after two looks.\n"
    "\n"
    "      --once             show it once\n"
    "      --interval TIME    time between two looks (default 1s; workers report once a second)\n"
    "  -o, --output json      print it once, as one JSON object: counters since the head began, and rates\n"
    "      --token-file FILE  the head's token (default: as for clients)\n"
    "      --help             this text\n";

struct flow_topping {
    const char *address, *token_file;
    int64_t interval_ns;
    bool once, json;
    int stop_fd;
};

/* Two successive states; rates are computed from the older one (`before`). */
struct flow_looks {
    struct flow_status before, now;
};

static double looks_seconds(const struct flow_looks *looks)
{
    int64_t ns = looks->now.now_ns - looks->before.now_ns;
    return ns > 0 ? (double)ns / 1e9 : 1e-9;
}

/* Returns the growth of a counter. A counter that has fallen, of a host in the place of another, counts from
 * 0. */
static uint64_t grown(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

static const struct flow_status_tenant *tenant_before(const struct flow_looks *looks, size_t i)
{
    static const struct flow_status_tenant none;
    return i < looks->before.tenants.len ? &looks->before.tenants.items[i]
                                         : &none; /* keeps the columns of the other rows */
}

static const struct flow_status_device *device_before(const struct flow_looks *looks, uint32_t number)
{
    static const struct flow_status_device none;
    for (size_t i = 0; i < looks->before.devices.len; i++)
        if (looks->before.devices.items[i].number == number)
            return &looks->before.devices.items[i];
    return &none;
}

static const struct flow_status_program *program_before(const struct flow_looks *looks,
                                                        const struct flow_status_program *program)
{
    static const struct flow_status_program none;
    for (size_t i = 0; i < looks->before.programs.len; i++)
        if (looks->before.programs.items[i].client == program->client &&
            looks->before.programs.items[i].number == program->number)
            return &looks->before.programs.items[i];
    return &none;
}

/* Returns the tenant's part of the device time that all tenants used between the two states, 0 to 1. */
static double tenant_share(const struct flow_looks *looks, size_t i)
{
    uint64_t all = 0;
    for (size_t k = 0; k < looks->now.tenants.len; k++)
        all += grown(tenant_before(looks, k)->device_ns, looks->now.tenants.items[k].device_ns);
    uint64_t mine = grown(tenant_before(looks, i)->device_ns, looks->now.tenants.items[i].device_ns);
    return all ? (double)mine / (double)all : 0;
}

/* Returns the part of the time between the two states in which the device ran functions, 0 to 1. */
static double device_use(const struct flow_looks *looks, const struct flow_status_device *device)
{
    uint64_t busy_ns = grown(device_before(looks, device->number)->busy_ns, device->busy_ns);
    double use = (double)busy_ns / 1e9 / looks_seconds(looks);
    return use > 1 ? 1 : use; /* the worker measures at slightly different times */
}

/* Returns the row of the host with that number; NULL if there is none. */
static const struct flow_status_host *host_of(const struct flow_status *status, uint32_t number)
{
    for (size_t i = 0; i < status->hosts.len; i++)
        if (status->hosts.items[i].number == number)
            return &status->hosts.items[i];
    return NULL;
}

/* --- text ----------------------------------------------------------------------------------------------- */

static void cell(struct text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void cell(struct text_table *table, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_add(table, arena_printf(&table->arena, "%s", text));
}

static void table_end(struct text_table *table, size_t left_out, const char *noun, struct buf *out)
{
    table_print(table, out, output_colors());
    if (left_out > 0) {
        buf_add_str(out, STR("not shown: "));
        put_count(out, (int64_t)left_out, noun);
        buf_add_char(out, '\n');
    }
    buf_add_char(out, '\n');
    table_done(table);
}

static void put_top_tenants(const struct flow_looks *looks, size_t rows, struct buf *out)
{
    static const char *const names[] = {"TENANT",  "CLIENTS",    "SHARE",    "DEVICE-S", "QUEUED",
                                        "RUNNING", "LAUNCHES/S", "LAUNCHES", "FAILED"};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    table_heads(&table, names);
    for (size_t i = 0; i < looks->now.tenants.len && i < rows; i++) {
        const struct flow_status_tenant *tenant = &looks->now.tenants.items[i];
        table_add(&table, str_from(tenant->name));
        if (tenant->suspended)
            cell(&table, "%u, %u suspended", tenant->clients, tenant->suspended);
        else
            cell(&table, "%u", tenant->clients);
        cell(&table, "%.1f%%", 100 * tenant_share(looks, i));
        cell(&table, "%.2f", (double)tenant->device_ns / 1e9);
        cell(&table, "%llu", (unsigned long long)tenant->queued);
        cell(&table, "%llu", (unsigned long long)tenant->running);
        cell(&table, "%.0f",
             (double)grown(tenant_before(looks, i)->launches, tenant->launches) / looks_seconds(looks));
        cell(&table, "%llu", (unsigned long long)tenant->launches);
        cell(&table, "%llu", (unsigned long long)tenant->failed);
    }
    table_end(&table, looks->now.tenants.len > rows ? looks->now.tenants.len - rows : 0, "tenant", out);
}

static void put_top_devices(const struct flow_looks *looks, size_t rows, struct buf *out)
{
    static const char *const names[] = {"DEVICE", "HOST", "ISLAND", "USE", "QUEUE", "VIRTUAL", "MEMORY"};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    table_heads(&table, names);
    for (size_t i = 0; i < looks->now.devices.len && i < rows; i++) {
        const struct flow_status_device *device = &looks->now.devices.items[i];
        const struct flow_status_host *host = host_of(&looks->now, device->host);
        char used[24], all[24];
        bytes_format(device->used_bytes > 0 ? (uint64_t)device->used_bytes : 0, used);
        bytes_format(host ? host->device_bytes : 0, all);
        cell(&table, "%u", device->number);
        cell(&table, "%u", device->host);
        table_add(&table, host ? str_from(looks->now.islands.items[host->island].name) : STR("-"));
        cell(&table, "%.0f%%", 100 * device_use(looks, device));
        cell(&table, "%u", device->queued);
        cell(&table, "%u", device->load);
        cell(&table, "%s/%s", used, all);
    }
    table_end(&table, looks->now.devices.len > rows ? looks->now.devices.len - rows : 0, "device", out);
}

static const char *program_tenant(const struct flow_status *status, uint32_t client)
{
    for (size_t i = 0; i < status->clients.len; i++)
        if (status->clients.items[i].id == client)
            return status->tenants.items[status->clients.items[i].tenant].name;
    return "-";
}

static void put_top_programs(const struct flow_looks *looks, size_t rows, struct buf *out)
{
    static const char *const names[] = {"PROGRAM",    "TENANT",   "CLIENT",   "CALLS",
                                        "LAUNCHES/S", "LAUNCHES", "DEVICE-S", "EACH"};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    table_heads(&table, names);
    for (size_t i = 0; i < looks->now.programs.len && i < rows; i++) {
        const struct flow_status_program *program = &looks->now.programs.items[i];
        char each[24];
        duration_format((int64_t)program->estimate_ns, each);
        cell(&table, "%s", program->name[0] ? program->name : "-");
        table_add(&table, str_from(program_tenant(&looks->now, program->client)));
        cell(&table, "%u", program->client);
        cell(&table, "%u", program->calls);
        cell(&table, "%.0f",
             (double)grown(program_before(looks, program)->launches, program->launches) /
                 looks_seconds(looks));
        cell(&table, "%llu", (unsigned long long)program->launches);
        cell(&table, "%.2f", (double)program->device_ns / 1e9);
        table_add(&table, arena_printf(&table.arena, "%s", each));
    }
    table_end(&table, looks->now.programs.len > rows ? looks->now.programs.len - rows : 0, "program", out);
}

static void put_top_memory(const struct flow_status *now, struct buf *out)
{
    uint64_t used = 0, all = 0, spilled = 0, host = 0;
    char text[4][24];
    for (size_t i = 0; i < now->devices.len; i++)
        used += now->devices.items[i].used_bytes > 0 ? (uint64_t)now->devices.items[i].used_bytes : 0;
    for (size_t i = 0; i < now->hosts.len; i++) {
        all += now->hosts.items[i].device_count * now->hosts.items[i].device_bytes;
        spilled += now->hosts.items[i].spilled_bytes;
        host += now->hosts.items[i].host_bytes;
    }
    bytes_format(used, text[0]);
    bytes_format(all, text[1]);
    bytes_format(spilled, text[2]);
    bytes_format(host, text[3]);
    buf_printf(out, "memory    %s/%s of devices, %s/%s of hosts; values spilled %llu, filled %llu\n", text[0],
               text[1], text[2], text[3], (unsigned long long)now->tally.spills,
               (unsigned long long)now->tally.fills);
}

static void put_top_summary(const struct flow_looks *looks, struct buf *out)
{
    const struct flow_status *now = &looks->now;
    double use = 0;
    char up[24];
    duration_format(now->now_ns - now->began_ns, up);
    for (size_t i = 0; i < now->devices.len; i++)
        use += device_use(looks, &now->devices.items[i]);
    buf_printf(out, "head      up %s, %zu hosts, %llu lost\n", up, now->hosts.len,
               (unsigned long long)now->tally.hosts_lost);
    buf_printf(out, "devices   %zu, %.0f%% in use\n", now->devices.len,
               now->devices.len ? 100 * use / (double)now->devices.len : 0.0);
    put_top_memory(now, out);
    buf_printf(out, "launches  %llu over, %llu failed, %.0f a second\n\n",
               (unsigned long long)now->tally.launches, (unsigned long long)now->tally.failed,
               (double)grown(looks->before.tally.launches, now->tally.launches) / looks_seconds(looks));
}

static void put_top_text(const struct flow_looks *looks, struct buf *out)
{
    int columns, lines;
    output_size(&columns, &lines);
    size_t room = lines == INT_MAX ? SIZE_MAX : lines > 25 ? (size_t)(lines - 16) / 3 : 3;
    put_top_summary(looks, out);
    put_top_tenants(looks, room, out);
    put_top_devices(looks, room, out);
    put_top_programs(looks, room, out);
}

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void json_top_tenants(struct json_writer *writer, const struct flow_looks *looks)
{
    json_key(writer, "tenants");
    json_begin_array(writer);
    for (size_t i = 0; i < looks->now.tenants.len; i++) {
        const struct flow_status_tenant *tenant = &looks->now.tenants.items[i];
        json_begin_object(writer);
        json_pair_text(writer, "name", tenant->name);
        json_pair_int(writer, "clients", tenant->clients);
        json_pair_int(writer, "suspended", tenant->suspended);
        json_pair_float(writer, "share", tenant_share(looks, i));
        json_pair_float(writer, "deviceSeconds", (double)tenant->device_ns / 1e9);
        json_pair_int(writer, "queued", (int64_t)tenant->queued);
        json_pair_int(writer, "running", (int64_t)tenant->running);
        json_pair_int(writer, "launches", (int64_t)tenant->launches);
        json_pair_int(writer, "failed", (int64_t)tenant->failed);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_top_devices(struct json_writer *writer, const struct flow_looks *looks)
{
    json_key(writer, "devices");
    json_begin_array(writer);
    for (size_t i = 0; i < looks->now.devices.len; i++) {
        const struct flow_status_device *device = &looks->now.devices.items[i];
        const struct flow_status_host *host = host_of(&looks->now, device->host);
        json_begin_object(writer);
        json_pair_int(writer, "device", device->number);
        json_pair_int(writer, "host", device->host);
        if (host)
            json_pair_text(writer, "island", looks->now.islands.items[host->island].name);
        json_pair_float(writer, "use", device_use(looks, device));
        json_pair_float(writer, "busySeconds", (double)device->busy_ns / 1e9);
        json_pair_int(writer, "queued", device->queued);
        json_pair_int(writer, "virtualDevices", device->load);
        json_pair_int(writer, "usedBytes", device->used_bytes);
        json_pair_int(writer, "bytes", host ? (int64_t)host->device_bytes : 0);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_top_programs(struct json_writer *writer, const struct flow_looks *looks)
{
    json_key(writer, "programs");
    json_begin_array(writer);
    for (size_t i = 0; i < looks->now.programs.len; i++) {
        const struct flow_status_program *program = &looks->now.programs.items[i];
        json_begin_object(writer);
        json_pair_text(writer, "function", program->name);
        json_pair_text(writer, "tenant", program_tenant(&looks->now, program->client));
        json_pair_int(writer, "client", program->client);
        json_pair_int(writer, "program", program->number);
        json_pair_int(writer, "calls", program->calls);
        json_pair_int(writer, "launches", (int64_t)program->launches);
        json_pair_float(writer, "deviceSeconds", (double)program->device_ns / 1e9);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_top_hosts(struct json_writer *writer, const struct flow_looks *looks)
{
    json_key(writer, "hostMemory");
    json_begin_array(writer);
    for (size_t i = 0; i < looks->now.hosts.len; i++) {
        const struct flow_status_host *host = &looks->now.hosts.items[i];
        json_begin_object(writer);
        json_pair_int(writer, "host", host->number);
        json_pair_int(writer, "usedBytes", (int64_t)host->spilled_bytes);
        json_pair_int(writer, "bytes", (int64_t)host->host_bytes);
        json_pair_int(writer, "spilledBytes", (int64_t)host->spilled_in_all);
        json_pair_int(writer, "filledBytes", (int64_t)host->filled_in_all);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void put_top_json(const struct flow_looks *looks, struct buf *out)
{
    struct json_writer writer = {.out = out};
    const struct flow_status *now = &looks->now;
    json_begin_object(&writer);
    json_pair_float(&writer, "upSeconds", (double)(now->now_ns - now->began_ns) / 1e9);
    json_pair_float(&writer, "intervalSeconds", looks_seconds(looks));
    json_pair_int(&writer, "launches", (int64_t)now->tally.launches);
    json_pair_int(&writer, "failed", (int64_t)now->tally.failed);
    json_pair_int(&writer, "spills", (int64_t)now->tally.spills);
    json_pair_int(&writer, "fills", (int64_t)now->tally.fills);
    json_pair_int(&writer, "hosts", (int64_t)now->hosts.len);
    json_pair_int(&writer, "hostsLost", (int64_t)now->tally.hosts_lost);
    json_key(&writer, "islands");
    json_begin_array(&writer);
    for (size_t i = 0; i < now->islands.len; i++) {
        json_begin_object(&writer);
        json_pair_text(&writer, "name", now->islands.items[i].name);
        json_pair_int(&writer, "tickets", (int64_t)now->islands.items[i].tickets);
        json_pair_int(&writer, "running", now->islands.items[i].running);
        json_pair_int(&writer, "window", now->islands.items[i].window);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_top_tenants(&writer, looks);
    json_top_devices(&writer, looks);
    json_top_hosts(&writer, looks);
    json_top_programs(&writer, looks);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

/* --- watching ------------------------------------------------------------------------------------------- */

/* Reads two states some time apart and shows them; on a terminal repeats that. Returns an exit code. */
static int flow_top_show(const struct flow_topping *topping, struct flow_watch *watch)
{
    bool live = output_is_terminal() && !topping->once && !topping->json;
    struct flow_looks looks = {0};
    struct buf out BUF_CLEANUP = {0};
    struct pollfd stop = {.fd = topping->stop_fd, .events = POLLIN};
    struct error error = {0};
    int rc = flow_watch_status(watch, topping->stop_fd, &looks.before, &error);
    while (rc == 0 && poll(&stop, 1, (int)(topping->interval_ns / NS_PER_MS)) == 0) {
        rc = flow_watch_status(watch, topping->stop_fd, &looks.now, &error);
        if (rc < 0)
            break;
        if (live)
            fputs("\033[H\033[J", stdout);
        if (topping->json)
            put_top_json(&looks, &out);
        else
            put_top_text(&looks, &out);
        output_write(&out);
        if (!live)
            break;
        flow_status_done(&looks.before);
        looks.before = looks.now;
        looks.now = (struct flow_status){0};
    }
    flow_status_done(&looks.before);
    flow_status_done(&looks.now);
    if (rc < 0 && rc != ERROR_TIMEOUT)
        say("%s", error.text);
    return rc < 0 && rc != ERROR_TIMEOUT ? EXIT_FAILED : EXIT_OK;
}

int flow_top(int argc, char **argv)
{
    static const struct option options[] = {
        {"once", no_argument, NULL, '1'},         {"interval", required_argument, NULL, 'i'},
        {"output", required_argument, NULL, 'o'}, {"token-file", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},         {0}};
    struct flow_topping topping = {.interval_ns = NS_PER_SECOND};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, "o:h", options, NULL)) != -1) {
        if (letter == 'h') {
            fputs(flow_top_usage, stdout);
            return EXIT_OK;
        }
        if (letter == '1')
            topping.once = true;
        else if (letter == 'o')
            usable = usage_json(optarg, &topping.json) && usable;
        else if (letter == 't')
            topping.token_file = optarg;
        else if (letter == 'i')
            usable = usage_value(duration_parse(str_from(optarg), &topping.interval_ns) &&
                                 topping.interval_ns >= NS_PER_MS &&
                                 topping.interval_ns <= 3600 * NS_PER_SECOND) &&
                     usable;
        else
            usable = false;
    }
    if (!usable || optind + 1 != argc)
        return usage_wrong(flow_top_usage,
                           usable ? optind == argc ? "ADDRESS is missing" : "too many arguments" : NULL);
    topping.address = argv[optind];
    struct flow_watch *watch;
    struct error error;
    if (flow_watch_open(topping.address, topping.token_file, &watch, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    topping.stop_fd = flow_stop_signals();
    int code = flow_top_show(&topping, watch);
    flow_watch_close(watch);
    return code;
}
