/* sai_session.h - what the parts of the driver `sai` share: a session with one switch of a SAI library, its
 * ports by number, and what it joins.
 *
 * SAI names ports by text, "1A" to "NA" and "1B" to "MB"; port numbers of driver.h are 1 to N for the A side
 * and N + 1 to N + M for the B side.
 */
#ifndef PHX_HOST_FABRIC_SAI_SESSION_H
#define PHX_HOST_FABRIC_SAI_SESSION_H

#include "host/fabric/batch.h"
#include "host/fabric/sai_library.h"

struct sai_factory {
    uint32_t a, b;
    sai_id id;
};

struct phx_switch {
    struct sai_device *device;
    bool inside; /* the library has been entered, and no other thread calls it */
    uint32_t timeout_ms;
    struct switch_size size;
    sai_id ports[PHX_SWITCH_PORTS_MAX + 1]; /* by port number */
    struct sai_factory *factory;            /* NULL: not read yet */
    uint32_t factory_count;
};

enum { SAI_WORD_MAX = 32 };
/* Writes the name of a port, such as "65A"; and of a pair, "1A-2B". */
void sai_port_word(const struct phx_switch *sw, uint32_t port, char word[SAI_WORD_MAX]);
void sai_pair_word(const struct phx_switch *sw, struct phx_crossconnect pair, char word[SAI_WORD_MAX]);

/* The cross-connects of the switch. */
struct sai_joined {
    struct peers peers;
    sai_id cross_connects[PHX_SWITCH_PORTS_MAX + 1]; /* by A port */
};

/* Begins and ends what a function of the driver does in the library; sai_end() also after a failure. */
int sai_begin(struct phx_switch *sw, struct phx_switch_error *error);
void sai_end(struct phx_switch *sw);

/* The functions below expect that the caller is inside. */

/* Lists the objects of one kind into *ret_ids, to be freed with mem_free(). GARBLED if there are more than
 * `max`. */
int sai_list_objects(struct phx_switch *sw, enum sai_object_kind kind, uint32_t max, sai_id **ret_ids,
                     uint32_t *ret_count, struct phx_switch_error *error);
int sai_read_joined(struct phx_switch *sw, struct sai_joined *ret_joined, struct phx_switch_error *error);
/* SAI_PORT_BLOCKED ... SAI_PORT_FAILED, or another number that the library answers; `closed`: by a shutter. A
 * library without overrides has no shutters. */
struct sai_port_view {
    int32_t status;
    bool closed;
};
int sai_read_port(struct phx_switch *sw, uint32_t port, struct sai_port_view *ret_view,
                  struct phx_switch_error *error);

/* Finds the ports of the switch by their names, and creates those of config's size that are missing. */
int sai_find_ports(struct phx_switch *sw, const struct phx_switch_config *config,
                   struct phx_switch_error *error);

/* Reads a name into `word`, with a NUL, through a function that gets attributes. */
int sai_read_name(struct phx_switch *sw, sai_get_fn *get, const char *call, sai_id id, uint32_t number,
                  char word[SAI_WORD_MAX], struct phx_switch_error *error);
/* Reads "12A"; false if the word is no such name, or its number is beyond PHX_SWITCH_PORTS_MAX. */
bool sai_parse_name(const char *word, char *ret_side, uint32_t *ret_number);

/* Functions of the driver's table: they enter the library themselves. */
int sai_add(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
            enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error);
int sai_remove(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count, int *ret_statuses,
               struct phx_switch_error *error);
int sai_loss(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
             uint32_t frequency_ghz, struct phx_switch_loss *ret_losses, struct phx_switch_error *error);

#endif
