/* faults.c - accepts reports of daemons about the machine: POST /v1/faults at a Unix socket in the state
 * directory (report.h describes the body). Every process that may write to the socket may report: its mode is
 * 0660, and its owner and group are the agent's.
 *
 * Signals are treated like those of probes: kept until the controller has them, and equal ones count as one.
 * A daemon may report SIGNALS_A_SECOND, with bursts of SIGNALS_AT_ONCE; beyond that it gets 429. */
#include "base/hash.h"
#include "host/http/door.h"
#include "host/agent/internal.h"
#include "host/agent/report.h"

enum { SIGNALS_A_SECOND = 100, SIGNALS_AT_ONCE = 1000 };
#define STEP_NS (NS_PER_SECOND / SIGNALS_A_SECOND)

struct fault_door {
    struct live *live;
    struct door *server;
    int64_t busy_ns; /* boot time at which the signals so far would end at the allowed rate */
};

static void refuse(struct door_answer *answer, int code, const char *why)
{
    answer->code = code;
    buf_printf(&answer->body, "%s\n", why);
}

/* Returns false, after an answer with the time to wait, if signals arrive too fast. */
static bool has_room(struct fault_door *door, size_t count, struct door_answer *answer)
{
    int64_t now_ns = local_boot_ns();
    int64_t from_ns = door->busy_ns > now_ns ? door->busy_ns : now_ns;
    int64_t late_ns = from_ns + (int64_t)count * STEP_NS - now_ns - SIGNALS_AT_ONCE * STEP_NS;
    if (late_ns > 0) {
        refuse(answer, 429, "too many signals: the agent takes 100 a second");
        answer->retry_after_s = (int)((late_ns + NS_PER_SECOND - 1) / NS_PER_SECOND);
        return false;
    }
    door->busy_ns = from_ns + (int64_t)count * STEP_NS;
    return true;
}

static void on_request(void *context, const struct door_request *request, struct door_answer *answer)
{
    struct fault_door *door = context;
    struct arena arena ARENA_CLEANUP = {0};
    struct signal *signals;
    size_t count;
    struct error error;
    if (!str_is(request->path, "/v1/faults")) {
        refuse(answer, 404, "there is /v1/faults");
        return;
    }
    if (!str_is(request->method, "POST")) {
        refuse(answer, 405, "faults are sent with POST");
        return;
    }
    int rc =
        report_parse(&arena, request->body, door->live->chips, local_wall_ns(), &signals, &count, &error);
    if (rc < 0) {
        refuse(answer, rc == ERROR_LIMIT ? 413 : 422, error.text);
        return;
    }
    if (!has_room(door, count, answer))
        return;
    for (size_t i = 0; i < count; i++)
        local_saw(door->live, &signals[i]);
    answer->code = 202;
    answer->type = "application/json";
    buf_printf(&answer->body, "{\"accepted\":%zu}\n", count);
}

/* A path in sun_path has 108 bytes. A longer one is replaced by a short one that depends on the state
 * directory alone, so that daemons find a restarted agent. */
void agent_socket_path(const char *directory, const char *name, char ret_path[AGENT_SOCKET_PATH_MAX + 1])
{
    struct buf path BUF_CLEANUP = {0};
    buf_printf(&path, "%s/%s", directory, name);
    if (path.len <= AGENT_SOCKET_PATH_MAX)
        snprintf(ret_path, AGENT_SOCKET_PATH_MAX + 1, "%s", path.data);
    else
        snprintf(ret_path, AGENT_SOCKET_PATH_MAX + 1, "/tmp/phalanx-%016llx.sock",
                 (unsigned long long)hash64(0, path.data, path.len));
}

int local_faults_listen(struct live *live, struct error *error)
{
    struct fault_door *door = mem_alloc(sizeof *door);
    char path[AGENT_SOCKET_PATH_MAX + 1];
    agent_socket_path(live->directory, "faults.sock", path);
    door->live = live;
    int rc = door_open_unix(live->machine->host->loop, path, 0660, on_request, door, &door->server, error);
    if (rc < 0) {
        mem_free(door);
        return rc;
    }
    local_state_mark(path, &live->faults_mark);
    live->fault_door = door;
    live->machine->host->open_parts++;
    return 0;
}

static void on_closed(void *context)
{
    struct fault_door *door = context;
    struct agent_host *host = door->live->machine->host;
    mem_free(door);
    local_part_closed(host);
}

void local_faults_close(struct live *live)
{
    struct fault_door *door = live->fault_door;
    live->fault_door = NULL;
    if (door)
        door_close(door->server, on_closed, door);
}
