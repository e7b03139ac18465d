#include "job/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/error.h"

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

/* The first of two variables that is set; `otherwise` when neither is. */
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

/* "host:port", "[v6 address]:port". */
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
    uint64_t rank, world, attempt, worlds;
    int status = number("PHX_RANK", "RANK", JOB_WORLD_MAX - 1, 0, &rank, error);
    if (status == 0)
        status = number("PHX_WORLD_SIZE", "WORLD_SIZE", JOB_WORLD_MAX, 1, &world, error);
    if (status == 0)
        status = number("PHX_ATTEMPT", NULL, UINT32_MAX, 0, &attempt, error);
    if (status == 0)
        status = number("PHX_WORLDS", NULL, UINT32_MAX, 1, &worlds, error);
    if (status == 0)
        status = number("PHX_TASK_UID", NULL, UINT64_MAX, 0, &settings->task_uid, error);
    if (status != 0)
        return status;
    if (rank >= world)
        return job_fail(error, PHX_ERROR_INVALID, "rank %llu is outside a world of %llu",
                        (unsigned long long)rank, (unsigned long long)world);
    if (!settings->standalone && variable("PHX_TASK_UID") == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "PHX_AGENT_SOCKET is set, PHX_TASK_UID is not");
    settings->rank = (uint32_t)rank;
    settings->world = (uint32_t)world;
    settings->attempt = (uint32_t)attempt;
    settings->worlds = (uint32_t)worlds;
    return world > 1 ? load_rendezvous(settings, error) : 0;
}

int job_settings_load(const struct phx_options *options, struct job_settings *ret_settings,
                      struct phx_error *error)
{
    static const struct phx_options none = {.size = sizeof none};
    if (options == NULL)
        options = &none;
    if (options->size < sizeof none)
        return job_fail(error, PHX_ERROR_INVALID, "phx_options.size is %zu, not sizeof(struct phx_options)",
                        options->size);
    struct job_settings settings = {0};
    const char *agent = variable("PHX_AGENT_SOCKET");
    const char *dir =
        options->checkpoint_dir != NULL ? options->checkpoint_dir : variable("PHX_CHECKPOINT_DIR");
    settings.standalone = agent == NULL;
    settings.join_timeout_ms = options->join_timeout_ms != 0 ? options->join_timeout_ms : JOIN_TIMEOUT_MS;
    settings.leave_timeout_ms = options->leave_timeout_ms != 0 ? options->leave_timeout_ms : LEAVE_TIMEOUT_MS;
    if (gethostname(settings.name, sizeof settings.name - 1) != 0)
        settings.name[0] = '\0';
    int status = text("PHX_AGENT_SOCKET", agent, settings.agent_socket, sizeof settings.agent_socket, error);
    if (status == 0)
        status = text("PHX_JOBSET", variable("PHX_JOBSET"), settings.jobset, sizeof settings.jobset, error);
    if (status == 0)
        status = text("the checkpoint directory", dir, settings.checkpoint_dir,
                      sizeof settings.checkpoint_dir, error);
    if (status == 0)
        status = text("PHX_MEMORY_DIR", variable("PHX_MEMORY_DIR"), settings.memory_dir,
                      sizeof settings.memory_dir, error);
    if (status == 0)
        status = text("PHX_FLIGHT_PREFIX", variable("PHX_FLIGHT_PREFIX"), settings.flight_prefix,
                      sizeof settings.flight_prefix, error);
    if (status == 0)
        status = text("the address", options->address, settings.address, sizeof settings.address, error);
    if (status == 0)
        status = load_identity(&settings, error);
    if (status == 0)
        *ret_settings = settings;
    return status;
}
