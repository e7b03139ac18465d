/* agent.h - the machine's side of drive: the part between an agent (core/agent/agent.h) and the world that
 * all hosts share. Pure, like the rest of drive; real machines, the simulated ones of `phalanx agent
 * --machines` and those of torture run it.
 *
 * The story of an event. machine_feed() stamps it, makes the step, and carries out its effects in order:
 * connections and messages itself, all others through the host (agent_ports.carry_out). Each failed effect
 * then becomes an event, until there are no more (agent_ports.next).
 *
 * Connections. Each AGENT_CONNECT makes two: the session, and a tether that every task started later holds
 * (health/evidence.h). The agent gets AGENT_CONNECTED when both are open, so no task is without a tether. The
 * tether of the last welcome session stays open until the next session is welcome. Otherwise the controller
 * could take the closed connections for a dead machine, although an agent lives that was told to start tasks.
 * When one of the two connections breaks, both end.
 *
 * Rank tables. A START of a large gang refers to a RANK_TABLE, the gang's rank table, which came before it on
 * the same session. Each machine keeps the packed bytes of its newest one, which are few; the unpacked table
 * of thousands of ranks exists once for all machines and starts of a process.
 *
 * An agent belongs to one thread. No port may call a function of this header, except machine_arena().
 */
#ifndef PHX_DRIVE_AGENT_H
#define PHX_DRIVE_AGENT_H

#include "base/error.h"
#include "core/agent/agent.h"

/* --- ports ------------------------------------------------------------------------------------ */

struct agent_ports {
    void *context;
    int64_t (*boot_ns)(void *context);
    int64_t (*wall_ns)(void *context);
    /* Begins to make a session and a tether. The host then calls machine_opened() for each, or
     * machine_closed(). Returns false if it cannot even begin. */
    bool (*connect)(void *context);
    void (*close)(void *context); /* closes session and tether, as far as they are open */
    void (*send)(void *context, const struct from_agent *message); /* on the session, if it is open */
    /* The tether has opened: the host sends `message` on it, lets tasks started from now on hold it, and
     * keeps it open beyond its session. */
    void (*tether)(void *context, const struct from_agent *message);
    /* The controller has welcomed the session of the newest tether: the host may close the previous one. */
    void (*tether_welcome)(void *context);
    void (*welcome)(void *context); /* once per session; may be NULL */
    void (*note)(void *context, const char *text);
    /* Messages that do not concern the agent (EXEC_*), from the controller that welcomed it. May be NULL. */
    void (*message)(void *context, const struct from_controller *message);
    /* Carries out every effect but CONNECT, CLOSE and SEND. */
    void (*carry_out)(void *context, const struct agent_effect *effect);
    /* Returns an event that the host must deliver before any other; it stays valid for that step. May be
     * NULL. */
    bool (*next)(void *context, struct agent_event *ret_event);
    void (*fed)(void *context); /* the event is done: agent_deadline() may have changed */
};

/* --- a machine -------------------------------------------------------------------------------- */

/* The newest RANK_TABLE of a machine's session. Zeroed: none. */
struct machine_rank_table {
    uint64_t number;
    struct buf bytes;
};

/* Memory that the machines of a process share. */
struct machine_shared;
struct machine_shared *machine_shared_new(void);
void machine_shared_free(struct machine_shared *shared);
struct arena *machine_arena(struct machine_shared *shared); /* for `send`; emptied by the next step */

struct machine_driver {
    struct agent *agent; /* owned by the host */
    struct agent_ports ports;
    struct machine_shared *shared;
    bool tethers; /* connections have tethers; false: tasks are only simulated */
    bool session_open, tether_open;
    bool next_tether; /* the newest tether's session is not welcome yet */
    bool welcome;     /* the session is welcome */
    bool failed;      /* connecting failed within a step: fed as DISCONNECTED after it */
    struct machine_rank_table rank_table;
};
/* Makes the driver of a machine. `agent` and `shared` are the host's and must outlive it; `ports` is
 * copied. */
void machine_driver_init(struct machine_driver *driver, struct agent *agent, const struct agent_ports *ports,
                         struct machine_shared *shared, bool tethers);
void machine_driver_done(struct machine_driver *driver);

/* Makes a step of the event, and of the failures that its effects bring. Fills in the clocks of `event`,
 * which is overwritten. Not from inside a step. */
void machine_feed(struct machine_driver *driver, struct agent_event *event);
/* The session or (`tether`) the tether of the machine has opened. */
void machine_opened(struct machine_driver *driver, bool tether);
/* A connection of the machine, its session or its tether, broke or could not be made. */
void machine_closed(struct machine_driver *driver);
/* A message has arrived on the machine's session or (`tether`) its tether. */
void machine_message(struct machine_driver *driver, bool tether, const struct from_controller *message);
/* Closes session and tether, without an event for the agent. */
void machine_drop(struct machine_driver *driver);

/* --- rank tables (rank_tables.c) ------------------------------------------------------------------- */

void machine_rank_table_keep(struct machine_rank_table *rank_table, const struct packed_rank_table *packed);
void machine_rank_table_drop(struct machine_rank_table *rank_table); /* when the session has ended */

/* Holds the RANK_TABLE that was unpacked last, for all machines of a process. */
struct rank_table_reader;
struct rank_table_reader *rank_table_reader_new(void);
void rank_table_reader_free(struct rank_table_reader *reader);
/* Puts the rank table back into a launch that refers to a RANK_TABLE; the launch then points into `reader`,
 * until the next call. On failure the caller closes the session: on the next one the controller sends the
 * RANK_TABLE again. */
int machine_rank_table_put_back(const struct machine_rank_table *rank_table, struct rank_table_reader *reader,
                                struct task_launch *launch, struct error *error);

#endif
