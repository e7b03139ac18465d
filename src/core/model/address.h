/* address.h - private to model/: IPv4 addresses, and sources that hand them out in order.
 *
 * A source is a first address and a step ("127.0.1.1" upward), or a list. With a prefix ("10.0.0.1/24") the
 * first and last address of every such subnet are left out, because they name the subnet and its broadcast:
 * 10.0.0.254 is followed by 10.0.1.1. Without a prefix all addresses are used: 10.0.0.255 is followed by
 * 10.0.1.0.
 */
#ifndef PHX_CORE_MODEL_ADDRESS_H
#define PHX_CORE_MODEL_ADDRESS_H

#include "base/arena.h"

/* Reads the dotted address of a host, 1.0.0.0 to 223.255.255.255. Returns false if the text is anything else,
 * such as a number with leading zeros. */
bool address_parse(struct str text, uint32_t *ret_address);
struct str address_text(struct arena *arena, uint32_t address);

struct address_source {
    const uint32_t *list; /* NULL: a range */
    size_t list_len, used;
    uint64_t next, step;
    int prefix;      /* 8..30; 0: none */
    const void *doc; /* the source's place in the document (struct doc), for errors */
    struct str path;
};
/* Reads "A.B.C.D" or "A.B.C.D/PREFIX", with step 1. Returns false if the text is malformed. */
bool address_source_parse(struct str text, struct address_source *ret_source);
/* Takes the next address. Returns false if the list or the range is used up. */
bool address_next(struct address_source *source, uint32_t *ret_address);

#endif
