/* scpi.h - the SCPI dialect of Polatis optical switches: writes commands and reads answers, as text.
 *
 * A command is one line. Several commands may be sent before the first answer is read. An answer is one line.
 *
 *     *IDN?                                  Polatis,<model>,<serial>,<firmware>
 *     :oxc:swit:size?                        64,64
 *     :oxc:swit:conn:add (@1,2),(@65,66)     no answer; other cross-connects stay
 *     :oxc:swit:conn:sub (@1),(@65)          no answer
 *     :oxc:swit:conn:stat?                   (@1,2),(@65,66), or (@1),(@65);(@2),(@66)
 *     *OPC?                                  1, once all mirrors have settled
 *     :syst:err?                             -221,"Settings conflict", or 0,"No error"
 *
 * `conn:only` and `disc:all` change cross-connects of other slices and are never sent.
 *
 * Pure functions. Answers are untrusted: readers return ERROR_CORRUPT for an answer that does not follow the
 * grammar.
 */
#ifndef PHX_HOST_FABRIC_SCPI_H
#define PHX_HOST_FABRIC_SCPI_H

#include "base/error.h"
#include "base/str.h"
#include "phalanx/driver.h"

/* Appends ":oxc:swit:conn:VERB (@...),(@...)" and a newline; `verb` is "add" or "sub". */
void scpi_put_pairs(struct buf *out, const char *verb, const struct phx_crossconnect *pairs, uint32_t count);

int scpi_read_size(struct str line, uint32_t *ret_a_ports, uint32_t *ret_b_ports, struct error *error);
int scpi_read_identity(struct str line, struct phx_switch_identity *ret_identity, struct error *error);
/* Reads the cross-connects of a switch, sorted by their A ports. Each must have a port of each side, no port
 * may occur twice, and there may be at most `capacity`. */
int scpi_read_pairs(struct str line, uint32_t a_ports, uint32_t b_ports, struct phx_crossconnect *ret_pairs,
                    uint32_t capacity, uint32_t *ret_count, struct error *error);
/* Reads `CODE,"TEXT"`. *ret_code is 0 for no error, and *ret_text points into the line. */
int scpi_read_verdict(struct str line, int64_t *ret_code, struct str *ret_text, struct error *error);

/* Sorts cross-connects by their A ports. Returns ERROR_CORRUPT if a port occurs twice or is on the wrong
 * side. */
int fabric_pairs_check(struct phx_crossconnect *pairs, uint32_t count, uint32_t a_ports, uint32_t b_ports,
                       struct error *error);

#endif
