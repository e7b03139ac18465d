/* seek.c - finds another leading controller while ours is silent.
 *
 * A leader that is stopped, or whose computer has died, closes no connection. The agent would notice only
 * when its lease ends, and its tasks end with the lease. Only a leading controller accepts connections of
 * agents. So the second heartbeat without an answer, and each further one, begins a round of tries at the
 * addresses of the other controllers. The agent leaves the silent controller and connects to the first one
 * that accepts a connection.
 *
 * While no other controller accepts connections, the agent stays with the silent one: a leader may be slow,
 * and one whose log refuses records answers heartbeats, but no Hello. */
#include "host/agent/internal.h"

enum { BEATS_UNHEARD = 2 };

static void seek_next(struct local_machine *machine);

static void on_opened(struct wire_conn *conn)
{
    struct local_machine *machine = wire_conn_context(conn);
    machine->seek.conn = NULL;
    wire_close(conn);
    machine->place += machine->seek.tried - 1; /* `place` is the one after ours */
    local_note(machine, STR("the controller does not answer, and another one takes agents: asking that one"));
    machine_closed(&machine->driver);
}

/* A try sends nothing, so there is no answer to handle. */
static void on_message(struct wire_conn *conn, const struct from_controller *message)
{
}

static void on_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct local_machine *machine = wire_conn_context(conn);
    machine->seek.conn = NULL;
    seek_next(machine);
}

/* Tries the next address; that of our controller is left out. */
static void seek_next(struct local_machine *machine)
{
    static const struct wire_handlers handlers = {
        .opened = on_opened, .from_controller = on_message, .closed = on_closed};
    struct local_seek *seek = &machine->seek;
    while (!seek->conn && ++seek->tried < machine->host->place_count) {
        struct error error;
        char source[32];
        struct wire_target target = local_machine_target(machine, machine->place + seek->tried - 1, source);
        if (wire_connect(machine->host->wire, &target, &handlers, machine, &seek->conn, &error) < 0)
            seek->conn = NULL;
    }
}

void local_seek_beat(struct local_machine *machine)
{
    struct local_seek *seek = &machine->seek;
    if (++seek->unheard < BEATS_UNHEARD || seek->conn)
        return;
    seek->tried = 0;
    seek_next(machine);
}

void local_seek_end(struct local_machine *machine)
{
    struct wire_conn *conn = machine->seek.conn;
    machine->seek = (struct local_seek){0};
    if (conn)
        wire_close(conn);
}
