/* entry.h - decides whether a new connection speaks TLS. For api and host/standby. No state; any thread.
 *
 * Where both protocols are served, the first byte distinguishes TLS (22, a handshake record) from HTTP. Only
 * clients on this machine may speak plain HTTP: every other connection goes to the relay (relay.h), whatever
 * it sends.
 */
#ifndef PHX_HOST_API_ENTRY_H
#define PHX_HOST_API_ENTRY_H

#include <stdbool.h>
#include <sys/socket.h>

/* Returns whether a connected socket is to be treated as TLS. Peeks at the first byte of a loopback client; a
 * socket that has received none yet, and any other client, counts as TLS. */
bool entry_begins_tls(int fd, const struct sockaddr_storage *address);

#endif
