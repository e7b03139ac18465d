/* agent.h - the machine's side of drive: what every host does between an agent (core/agent/agent.h) and the
 * world. Pure as the rest of drive; real machines, simulated ones of `phalanx agent --machines` and those of
 * torture run it.
 *
 * The story of an event. machine_feed() stamps it, makes the step, and has its effects carried out in order:
 * connections and messages here, all others by the host (agent_ports.carry_out). An effect that failed comes
 * back as an event of its own, until there is none (agent_ports.next).
 *
 * Connections. Each AGENT_CONNECT makes two: the session, and a tether that every task started later holds
 * (health/evidence.h). The agent is told when both are open, so that no task is without a tether. The tether
 * of the last session that was welcome stays open until the next one is: in between the controller could take
 * closed connections for a dead machine, while an agent lives that was told to start tasks. The two end
 * together, whichever broke.
 *
 * Rank tables. A START of a large gang refers to a RANK_TABLE, the gang's rank table, which came before it on
 * the same session. Each machine keeps the bytes of its newest, which are few; what they say of thousands of
 * ranks is read once for all machines and starts of a process.
 *
 * One thread; calls from inside a port are those of agent_ports alone.
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
     * machine_closed(). False: it cannot even begin. */
    bool (*connect)(void *context);
    void (*close)(void *context); /* session and tether, as far as they are there */
    void (*send)(void *context, const struct from_agent *message); /* on the session, if it is there */
    /* The tether has opened: `message` is to be sent on it, tasks started from now on hold it, and the host
     * keeps it open beyond its session. */
    void (*tether)(void *context, const struct from_agent *message);
    /* The controller has welcomed the session of the newest tether: the one kept before may close. */
    void (*tether_welcome)(void *context);
    void (*welcome)(void *context); /* once a session; may be NULL */
    void (*note)(void *context, const char *text);
    /* Messages that concern no agent (EXEC_*), of a controller that is known as its own; may be NULL. */
    void (*message)(void *context, const struct from_controller *message);
    /* Every effect but CONNECT, CLOSE and SEND. */
    void (*carry_out)(void *context, const struct agent_effect *effect);
    /* Returns an event that the host must deliver before any other; it stays valid for that step. May be
     * NULL. */
    bool (*next)(void *context, struct agent_event *ret_event);
    void (*fed)(void *context); /* all is said: agent_deadline() may be another */
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
struct arena *machine_arena(struct machine_shared *shared); /* until the next step; for `send` */

struct machine_driver {
    struct agent *agent; /* the host's */
    struct agent_ports ports;
    struct machine_shared *shared;
    bool tethers;     /* it makes tethers; false: its tasks are only played */
    bool session_open, tether_open;
    bool next_tether; /* the newest tether's session was not welcome yet */
    bool welcome;     /* the session is */
    bool failed;      /* connecting failed within a step: said as DISCONNECTED after it */
    struct machine_rank_table rank_table;
};
void machine_driver_init(struct machine_driver *driver, struct agent *agent, const struct agent_ports *ports,
                         struct machine_shared *shared, bool tethers);
void machine_driver_done(struct machine_driver *driver);

/* The event's clocks are filled in. */
void machine_feed(struct machine_driver *driver, struct agent_event *event);
void machine_opened(struct machine_driver *driver, bool tether);
/* A connection of the machine, its session or its tether, broke or could not be made. */
void machine_closed(struct machine_driver *driver);
void machine_message(struct machine_driver *driver, bool tether, const struct from_controller *message);
void machine_drop(struct machine_driver *driver); /* closes both; the agent is told nothing */

/* --- rank tables (rank_tables.c) ------------------------------------------------------------------- */

void machine_rank_table_keep(struct machine_rank_table *rank_table, const struct packed_rank_table *packed);
void machine_rank_table_drop(struct machine_rank_table *rank_table); /* the session has ended */

/* The RANK_TABLE that was read last, for all machines of a process. */
struct rank_table_reader;
struct rank_table_reader *rank_table_reader_new(void);
void rank_table_reader_free(struct rank_table_reader *reader);
/* Makes a launch that refers to a RANK_TABLE whole again; it then points into `reader`, until the next call.
 * On failure the session is to be closed: on the next one the RANK_TABLE is sent again. */
int machine_rank_table_put_back(const struct machine_rank_table *rank_table, struct rank_table_reader *reader,
                                struct task_launch *launch, struct error *error);

#endif
