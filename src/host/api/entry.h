/* entry.h - does a new connection speak TLS? For api and host/standby. No state; any thread.
 *
 * Where both are served, the first byte tells TLS (22, a handshake's record) from HTTP. Plain HTTP is for
 * clients on this computer alone: any other connection is the relay's (relay.h), whatever it says.
 */
#ifndef PHX_HOST_API_ENTRY_H
#define PHX_HOST_API_ENTRY_H

#include <stdbool.h>
#include <sys/socket.h>

/* Looks at the first byte of a connected socket, and leaves it there. One without any yet speaks TLS. */
bool entry_begins_tls(int fd, const struct sockaddr_storage *address);

#endif
