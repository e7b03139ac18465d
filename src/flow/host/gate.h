/* gate.h - who may say HELLO to a head. A peer whose token is not the head's is told so and cut off; what it
 * says in between is not heard. Peers that say nothing are few and have an end, so that they keep nobody out.
 * Functions are called by the loop's thread alone. */
#ifndef PHX_FLOW_HOST_GATE_H
#define PHX_FLOW_HOST_GATE_H

#include "base/vec.h"
#include "flow/wire/loop.h"
#include "flow/wire/token.h"

enum {
    GATE_REFUSED_MAX = 1024,  /* that wait for their end, a second at most; more are cut off unheard */
    GATE_STRANGERS_MAX = 256, /* connections without a HELLO; one more ends the oldest of them */
    GATE_STRANGER_S = 10,     /* in which a HELLO has to come */
};

struct gate_stranger {
    uint64_t peer;
    int ticks; /* since it was connected */
};
struct gate {
    struct flow_token token;
    VEC(struct gate_stranger) strangers; /* the oldest first */
    VEC(uint64_t) refused; /* peers */
};

/* Reads the token of a head that listens at `listen` (flow_token_find without a place beside). ERROR_DENIED:
 * there is none, the address is not for this user alone, and the head is not told to be `insecure`. */
int gate_open(struct gate *gate, const char *listen, const char *token_file, bool insecure,
              struct error *error);
void gate_done(struct gate *gate);
/* A peer has connected, or has gone. */
void gate_opened(struct gate *gate, struct loop *loop, uint64_t peer);
void gate_closed(struct gate *gate, uint64_t peer);
/* Looks at a message before the head hears it, and takes the token off a HELLO. False: the head does not hear
 * it. */
bool gate_passes(struct gate *gate, struct loop *loop, uint64_t peer, struct flow_entry *entry,
                 struct str *tail);
/* Ends the connections that were refused, and those that have said no HELLO for too long; each second. */
void gate_tick(struct gate *gate, struct loop *loop);

#endif
