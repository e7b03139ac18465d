#include "job/link/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/link/error.h"
#include "job/checkpoint/pack.h"

#define JOIN_TIMEOUT_MS  120000
#define LEAVE_TIMEOUT_MS 10000

bool job_parse_number(const char *text, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* Reads the first of two variables that is set; `otherwise` if neither is. */
static int number(const char *name, const char *second, uint64_t max, uint64_t otherwise, uint64_t *ret_value,
                  struct phx_error *error)
{
    const char *text = variable(name);
    if (text == NULL && second != NULL) {
        name = second;
        text = variable(name);
    }
    if (text == NULL) {
        *ret_value = otherwise;
        return 0;
    }
    if (!job_parse_number(text, max, ret_value))
        return job_fail(error, PHX_ERROR_INVALID, "%s is \"%.60s\", not a number up to %llu", name, text,
                        (unsigned long long)max);
    return 0;
}

static int text(const char *what, const char *value, char *out, size_t cap, struct phx_error *error)
{
    size_t len = value == NULL ? 0 : strlen(value);
    if (len >= cap)
        return job_fail(error, PHX_ERROR_INVALID, "%s is longer than %zu bytes", what, cap - 1);
    memcpy(out, value == NULL ? "" : value, len + 1);
    return 0;
}

/* Reads "host:port" or "[v6 address]:port". */
static int split_rendezvous(struct job_settings *settings, const char *value, struct phx_error *error)
{
    const char *colon = strrchr(value, ':');
    uint64_t port;
    if (colon == NULL || colon == value || !job_parse_number(colon + 1, 65535, &port) || port == 0)
        return job_fail(error, PHX_ERROR_INVALID, "PHX_RENDEZVOUS is \"%.60s\", not host:port", value);
    const char *start = value;
    size_t len = (size_t)(colon - value);
    if (value[0] == '[' && len >= 2 && colon[-1] == ']') {
        start++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof settings->host)
        return job_fail(error, PHX_ERROR_INVALID, "PHX_RENDEZVOUS has no usable host");
    memcpy(settings->host, start, len);
    settings->host[len] = '\0';
    snprintf(settings->port, sizeof settings->port, "%u", (unsigned)port);
    return 0;
}

static int load_rendezvous(struct job_settings *settings, struct phx_error *error)
{
    const char *rendezvous = variable("PHX_RENDEZVOUS");
    if (rendezvous != NULL)
        return split_rendezvous(settings, rendezvous, error);
    const char *master = variable("MASTER_ADDR");
    uint64_t port;
    int status = number("MASTER_PORT", NULL, 65534, 0, &port, error);
    if (status != 0)
        return status;
    if (!settings->standalone || master == NULL || port == 0)
        return job_fail(
            error, PHX_ERROR_INVALID,
            "a world of %u ranks needs PHX_RENDEZVOUS (or, stand-alone, MASTER_ADDR and MASTER_PORT)",
            settings->world);
    snprintf(settings->port, sizeof settings->port, "%u", (unsigned)port + 1);
    return text("MASTER_ADDR", master, settings->host, sizeof settings->host, error);
}

static int load_identity(struct job_settings *settings, struct phx_error *error)
{
    uint64_t rank, world, full_world, attempt, worlds;
    int status = number("PHX_RANK", "RANK", JOB_WORLD_MAX - 1, 0, &rank, error);
    if (status == 0)
        status = number("PHX_WORLD_SIZE", "WORLD_SIZE", JOB_WORLD_MAX, 1, &world, error);
    if (status == 0)
        status = number("PHX_ATTEMPT", NULL, UINT32_MAX, 0, &attempt, error);
    if (status == 0)
        status = number("PHX_WORLDS", NULL, UINT32_MAX, 1, &worlds, error);
    if (status == 0)
        status = number("PHX_TASK_UID", NULL, UINT64_MAX, 0, &settings->task_uid, error);
    if (status == 0)
        status = number("PHX_FULL_WORLD_SIZE", NULL, JOB_WORLD_MAX, world, &full_world, error);
    if (status != 0)
        return status;
    if (settings->spare)
        rank = world = full_world = 0;
    else if (rank >= world)
        return job_fail(error, PHX_ERROR_INVALID, "rank %llu is outside a world of %llu",
                        (unsigned long long)rank, (unsigned long long)world);
    if (!settings->standalone && variable("PHX_TASK_UID") == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "PHX_AGENT_SOCKET is set, PHX_TASK_UID is not");
    settings->rank = (uint32_t)rank;
    settings->world = (uint32_t)world;
    settings->full_world = (uint32_t)(full_world > world ? full_world : world);
    settings->attempt = (uint32_t)attempt;
    settings->worlds = (uint32_t)worlds;
    return world > 1 ? load_rendezvous(settings, error) : 0;
}

/* Reads how checkpoints are written and which of them are kept. The agent's store takes precedence over a
 * directory that the program has not named itself. */
static int load_storage(struct job_settings *settings, bool dir_named, struct phx_error *error)
{
    const char *keep = variable("PHX_CHECKPOINT_KEEP");
    uint64_t verify;
    int status = number("PHX_CHECKPOINT_VERIFY", NULL, 1, 0, &verify, error);
    settings->verify_writes = status == 0 && verify == 1;
    settings->store = !settings->standalone && variable("PHX_CHECKPOINT_STORE") != NULL && !dir_named &&
                      settings->memory_dir[0] != '\0' && settings->worlds == 1;
    if (settings->store)
        settings->checkpoint_dir[0] = '\0';
    if (status == 0 && !retention_parse(keep, &settings->keep))
        status = job_fail(error, PHX_ERROR_INVALID,
                          "PHX_CHECKPOINT_KEEP is \"%.60s\", not last=N (1 to %d), every=N or both", keep,
                          RETENTION_LAST_MAX);
    return status;
}

int job_settings_move(struct job_settings *settings, const struct jobwire_rejoin *to, struct phx_error *error)
{
    struct job_settings next = *settings;
    next.rank = to->rank;
    next.world = to->world;
    next.full_world = to->full_world;
    next.spare = false;
    int status = to->world > 1 ? split_rendezvous(&next, to->rendezvous, error) : 0;
    if (status == 0)
        *settings = next;
    return status;
}

static void export_number(const char *name, uint64_t value)
{
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)value);
    setenv(name, number, 1);
}

void job_settings_export(const struct job_settings *settings, uint32_t attempt)
{
    char rendezvous[sizeof settings->host + sizeof settings->port + 4];
    uint64_t port;
    export_number("PHX_RANK", settings->rank);
    export_number("RANK", settings->rank);
    export_number("PHX_WORLD_SIZE", settings->world);
    export_number("WORLD_SIZE", settings->world);
    export_number("PHX_FULL_WORLD_SIZE", settings->full_world);
    export_number("PHX_ATTEMPT", attempt);
    export_number("TORCHELASTIC_RESTART_COUNT", attempt);
    if (!job_parse_number(settings->port, 65535, &port) || port < 2)
        return;
    bool v6 = strchr(settings->host, ':') != NULL;
    snprintf(rendezvous, sizeof rendezvous, v6 ? "[%s]:%s" : "%s:%s", settings->host, settings->port);
    setenv("PHX_RENDEZVOUS", rendezvous, 1);
    setenv("MASTER_ADDR", settings->host, 1);
    export_number("MASTER_PORT", port - 1);
}

/* Copies the caller's options. Fields that the caller's version of the struct lacks are zero. */
static int take_options(const struct phx_options *options, struct phx_options *ret, struct phx_error *error)
{
    *ret = (struct phx_options){.size = sizeof *ret};
    if (options == NULL)
        return 0;
    if (options->size < offsetof(struct phx_options, rejoins))
        return job_fail(error, PHX_ERROR_INVALID, "phx_options.size is %zu, not sizeof(struct phx_options)",
                        options->size);
    memcpy(ret, options, options->size < sizeof *ret ? options->size : sizeof *ret);
    return 0;
}

/* Reads the ranks' key, stand-alone: the digest of a file that their launcher has given to all of them. */
static int load_key(struct job_settings *settings, struct phx_error *error)
{
    const char *path = variable("PHX_KEY_FILE");
    uint8_t bytes[4096];
    if (path == NULL)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (len < 0)
        return job_fail_errno(error, reason, "read PHX_KEY_FILE %.120s", path);
    if (len < SEAL_KEY_SIZE)
        return job_fail(error, PHX_ERROR_INVALID,
                        "PHX_KEY_FILE %.120s has %zd bytes: %d random ones are needed", path, len,
                        SEAL_KEY_SIZE);
    sha256(bytes, (size_t)len, settings->key);
    return 0;
}

/* Reads the settings that do not come from the environment alone. */
static int load_options(const struct phx_options *options, struct job_settings *settings,
                        struct phx_error *error)
{
    const char *dir =
        options->checkpoint_dir != NULL ? options->checkpoint_dir : variable("PHX_CHECKPOINT_DIR");
    settings->join_timeout_ms = options->join_timeout_ms != 0 ? options->join_timeout_ms : JOIN_TIMEOUT_MS;
    settings->leave_timeout_ms =
        options->leave_timeout_ms != 0 ? options->leave_timeout_ms : LEAVE_TIMEOUT_MS;
    settings->rejoins = options->rejoins != 0;
    int status = text("the checkpoint directory", dir, settings->checkpoint_dir,
                      sizeof settings->checkpoint_dir, error);
    if (status == 0)
        status = text("the address", options->address, settings->address, sizeof settings->address, error);
    const char *machine = variable("PHX_ADDRESS");
    if (status == 0 && machine != NULL && strlen(machine) < sizeof settings->machine_address)
        memcpy(settings->machine_address, machine, strlen(machine) + 1);
    return status == 0 && settings->standalone ? load_key(settings, error) : status;
}

/* Reads the settings of copies on other machines. */
static int load_peer(struct job_settings *settings, struct phx_error *error)
{
    const char *spread = variable("PHX_PEER_SPREAD"), *library = variable("PHX_ZSTD_LIBRARY");
    uint64_t delta, prove;
    int status = number("PHX_PEER_EVERY", NULL, UINT32_MAX, 0, &settings->peer_every, error);
    if (status == 0)
        status = number("PHX_PEER_RATE", NULL, UINT64_MAX, 0, &settings->peer_rate, error);
    if (status == 0)
        status = number("PHX_FETCH_RATE", NULL, UINT64_MAX, 0, &settings->fetch_rate, error);
    if (status == 0)
        status = number("PHX_PEER_DELTA", NULL, 1, 0, &delta, error);
    settings->peer_delta = status == 0 && delta == 1;
    if (status == 0)
        status = number("PHX_PEER_PROVE", NULL, 1, 0, &prove, error);
    settings->peer_prove = status == 0 && prove == 1;
    if (status == 0)
        status = number("PHX_PEER_QUOTA", NULL, UINT64_MAX, 0, &settings->peer_quota, error);
    if (status == 0)
        status = number("PHX_PEER_ZSTD", NULL, PACK_LEVEL_MAX, 0, &settings->peer_zstd, error);
    if (status == 0)
        status = text("PHX_ZSTD_LIBRARY", library != NULL ? library : PACK_LIBRARY, settings->zstd_library,
                      sizeof settings->zstd_library, error);
    settings->spread_racks = spread != NULL && strcmp(spread, "rack") == 0;
    if (status == 0 && spread != NULL && !settings->spread_racks && strcmp(spread, "machine") != 0)
        status = job_fail(error, PHX_ERROR_INVALID, "PHX_PEER_SPREAD is \"%.60s\", neither machine nor rack",
                          spread);
    return status;
}

/* Reads the settings that decide the checkpoint interval when the program sets none. */
static int load_interval(struct job_settings *settings, struct phx_error *error)
{
    const char *interval = variable("PHX_CHECKPOINT_INTERVAL");
    int status = number("PHX_MTTF_S", NULL, UINT32_MAX, 0, &settings->mttf_s, error);
    if (status == 0 && interval != NULL && strcmp(interval, "auto") != 0 &&
        (!job_parse_number(interval, INT64_MAX / 16, &settings->interval) || settings->interval == 0))
        status =
            job_fail(error, PHX_ERROR_INVALID,
                     "PHX_CHECKPOINT_INTERVAL is \"%.60s\", neither auto nor a number of steps", interval);
    return status;
}

int job_settings_load(const struct phx_options *given, struct job_settings *ret_settings,
                      struct phx_error *error)
{
    struct phx_options options;
    struct job_settings settings = {0};
    const char *agent = variable("PHX_AGENT_SOCKET");
    const char *spare = variable("PHX_SPARE");
    settings.standalone = agent == NULL;
    settings.spare = spare != NULL && strcmp(spare, "1") == 0 && variable("PHX_RANK") == NULL;
    if (settings.spare && settings.standalone)
        return job_fail(error, PHX_ERROR_INVALID, "PHX_SPARE is set, PHX_AGENT_SOCKET is not");
    int status = take_options(given, &options, error);
    if (status != 0)
        return status;
    if (gethostname(settings.name, sizeof settings.name - 1) != 0)
        settings.name[0] = '\0';
    status = text("PHX_AGENT_SOCKET", agent, settings.agent_socket, sizeof settings.agent_socket, error);
    if (status == 0)
        status = text("PHX_JOBSET", variable("PHX_JOBSET"), settings.jobset, sizeof settings.jobset, error);
    if (status == 0)
        status = load_options(&options, &settings, error);
    if (status == 0)
        status = text("PHX_MEMORY_DIR", variable("PHX_MEMORY_DIR"), settings.memory_dir,
                      sizeof settings.memory_dir, error);
    if (status == 0)
        status = text("PHX_FLIGHT_PREFIX", variable("PHX_FLIGHT_PREFIX"), settings.flight_prefix,
                      sizeof settings.flight_prefix, error);
    if (status == 0)
        status = load_peer(&settings, error);
    if (status == 0)
        status = load_interval(&settings, error);
    if (status == 0)
        status = load_identity(&settings, error);
    if (status == 0)
        status = load_storage(&settings, options.checkpoint_dir != NULL, error);
    if (status == 0)
        *ret_settings = settings;
    return status;
}
