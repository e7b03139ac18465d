/* sai_session.h - shared by the parts of the driver `sai`: a session with one switch of a SAI library, its
 * ports by number, and its cross-connects.
 *
 * SAI names ports by text, "1A" to "NA" and "1B" to "MB". In driver.h, the same ports have the numbers 1 to N
 * on the A side and N + 1 to N + M on the B side.
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
    bool inside; /* between sai_begin() and sai_end(): no other thread calls the library */
    uint32_t timeout_ms;
    struct switch_size size;
    sai_id ports[PHX_SWITCH_PORTS_MAX + 1]; /* by port number */
    struct sai_factory *factory;            /* NULL: not read yet */
    uint32_t factory_count;
};

enum { SAI_WORD_MAX = 32 };
/* Write the name of a port, such as "65A", or of a pair, such as "1A-2B". */
void sai_port_word(const struct phx_switch *sw, uint32_t port, char word[SAI_WORD_MAX]);
void sai_pair_word(const struct phx_switch *sw, struct phx_crossconnect pair, char word[SAI_WORD_MAX]);

/* The cross-connects of the switch. */
struct sai_joined {
    struct peers peers;
    sai_id cross_connects[PHX_SWITCH_PORTS_MAX + 1]; /* by A port */
};

/* Begin and end the calls of one driver function to the library. sai_end() is allowed, and does nothing, if
 * sai_begin() failed. */
int sai_begin(struct phx_switch *sw, struct phx_switch_error *error);
void sai_end(struct phx_switch *sw);

/* The functions below require an open sai_begin(). */

/* Lists the objects of one kind into *ret_ids; the caller frees it with mem_free(). Returns GARBLED if there
 * are more than `max`. */
int sai_list_objects(struct phx_switch *sw, enum sai_object_kind kind, uint32_t max, sai_id **ret_ids,
                     uint32_t *ret_count, struct phx_switch_error *error);
int sai_read_joined(struct phx_switch *sw, struct sai_joined *ret_joined, struct phx_switch_error *error);
/* The state of a port. `status` is SAI_PORT_BLOCKED to SAI_PORT_FAILED, or another number that the library
 * returned. `closed` means by a shutter; a library without overrides has no shutters. */
struct sai_port_view {
    int32_t status;
    bool closed;
};
int sai_read_port(struct phx_switch *sw, uint32_t port, struct sai_port_view *ret_view,
                  struct phx_switch_error *error);

/* Finds the ports of the switch by their names, and creates missing ones up to the size in `config`. */
int sai_find_ports(struct phx_switch *sw, const struct phx_switch_config *config,
                   struct phx_switch_error *error);

/* Reads the name of an object into `word`, with a NUL. `get` is the function that reads its attributes,
 * `call` that function's name for errors, and `number` the attribute. */
int sai_read_name(struct phx_switch *sw, sai_get_fn *get, const char *call, sai_id id, uint32_t number,
                  char word[SAI_WORD_MAX], struct phx_switch_error *error);
/* Reads a port name such as "12A". Returns false if the word has another form, or a number above
 * PHX_SWITCH_PORTS_MAX. */
bool sai_parse_name(const char *word, char *ret_side, uint32_t *ret_number);

/* Functions of the driver's table. They call sai_begin() and sai_end() themselves. */
int sai_add(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
            enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error);
int sai_remove(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count, int *ret_statuses,
               struct phx_switch_error *error);
int sai_loss(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
             uint32_t frequency_ghz, struct phx_switch_loss *ret_losses, struct phx_switch_error *error);

#endif
