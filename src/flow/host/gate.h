/* gate.h - admission of peers to a head. A peer with a wrong token receives a refusal and is disconnected;
 * its further messages are ignored. Peers that send no HELLO are limited in number and time, so that they
 * cannot keep others out. All functions are called by the loop's thread. */
#ifndef PHX_FLOW_HOST_GATE_H
#define PHX_FLOW_HOST_GATE_H

#include "base/vec.h"
#include "flow/wire/loop.h"
#include "flow/wire/token.h"

enum {
    /* Refused peers that wait up to a second for their end; more are closed at once. */
    GATE_REFUSED_MAX = 1024,
    GATE_STRANGERS_MAX = 256, /* connections without a HELLO; one more ends the oldest of them */
    GATE_STRANGER_S = 10,     /* seconds within which a HELLO must arrive */
};

struct gate_stranger {
    uint64_t peer;
    int ticks; /* since the peer connected */
};
struct gate {
    struct flow_token token;
    VEC(struct gate_stranger) strangers; /* the oldest first */
    VEC(uint64_t) refused;               /* peers */
};

/* Finds the token of a head that listens at `listen` (flow_token_find without `beside`). Returns ERROR_DENIED
 * if there is no token, the address is not a unix socket, and `insecure` is false. */
int gate_open(struct gate *gate, const char *listen, const char *token_file, bool insecure,
              struct error *error);
void gate_done(struct gate *gate);
/* Record that a peer has connected, or disconnected. */
void gate_opened(struct gate *gate, struct loop *loop, uint64_t peer);
void gate_closed(struct gate *gate, uint64_t peer);
/* Checks a message before the head handles it, and removes the token from a HELLO. Returns false if the head
 * must ignore the message. */
bool gate_passes(struct gate *gate, struct loop *loop, uint64_t peer, struct flow_entry *entry,
                 struct str *tail);
/* Ends refused connections, and those without a HELLO for too long. Called once a second. */
void gate_tick(struct gate *gate, struct loop *loop);

#endif
