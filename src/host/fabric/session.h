/* session.h - shared by the SCPI and TL1 drivers: a session, and the statuses of a batch.
 *
 * A protocol answers a whole command with one verdict, and does not say what a refused command has changed.
 * The status of each member therefore comes from the cross-connects that the switch lists before and after. A
 * refused command is split in halves, until each member that the switch refuses was sent alone.
 */
#ifndef PHX_HOST_FABRIC_SESSION_H
#define PHX_HOST_FABRIC_SESSION_H

#include "base/arena.h"
#include "host/fabric/line.h"
#include "host/fabric/scpi.h"

struct dialect {
    int (*list)(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t *ret_count,
                struct phx_switch_error *error); /* `ret_pairs` has PHX_SWITCH_PORTS_MAX elements */
    /* Sends one command and waits until the mirrors have settled. Returns FAILED or DENIED if the switch
     * refuses. */
    int (*change)(struct phx_switch *sw, bool add, const struct phx_crossconnect *pairs, uint32_t count,
                  struct phx_switch_error *error);
};

struct phx_switch {
    const struct dialect *dialect;
    struct line line;
    uint32_t a_ports, b_ports;
    uint32_t ctag;   /* tag of the last TL1 command */
    char refusal[5]; /* code of the last TL1 refusal; "": the refusal had none */
    struct phx_switch_identity identity;
};

/* The functions of the driver's table that both dialects share. */
void session_close(struct phx_switch *sw);
int session_list(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t capacity,
                 uint32_t *ret_count, struct phx_switch_error *error);
int session_identify(struct phx_switch *sw, struct phx_switch_identity *ret_identity,
                     struct phx_switch_error *error);
int session_add(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error);
int session_remove(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                   int *ret_statuses, struct phx_switch_error *error);
/* Fills in states and peers from the listed cross-connects. Power is unknown, and shutters are open. */
int session_ports(struct phx_switch *sw, uint32_t first, uint32_t count, struct phx_switch_port *ret_ports,
                  struct phx_switch_error *error);

/* Returns INVALID if the switch has another size than the configuration expects. */
int session_check_size(const struct phx_switch *sw, const struct phx_switch_config *config,
                       struct phx_switch_error *error);

#endif
