/* socket.h - the carrier over sockets, for carriers that begin on one; private to src/flow/wire. */
#ifndef PHX_FLOW_WIRE_SOCKET_H
#define PHX_FLOW_WIRE_SOCKET_H

#include "flow/wire/wire.h"

/* Connects as flow_wire_connect does, without an offer of shared memory. */
int wire_socket_connect(const char *address, struct wire **ret_wire, struct error *error);
/* The read and write of struct wire_ops for sockets. */
ssize_t wire_socket_read(struct wire *wire, void *data, size_t len);
ssize_t wire_socket_write(struct wire *wire, const void *data, size_t len);

#endif
