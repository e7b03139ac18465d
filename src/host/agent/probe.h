/* probe.h - one probe or hook of a container while it runs (AGENT_ACT); private to probe*.c.
 *   probe.c       all of them: begin, time limit, end; commands and sleeps
 *   probe_net.c   TCP and HTTP
 */
#ifndef PHX_HOST_AGENT_PROBE_H
#define PHX_HOST_AGENT_PROBE_H

#include <gnutls/gnutls.h>

#include "host/agent/internal.h"

struct probe_run {
    struct live *live;
    struct list_node node; /* live->probes */
    obj_id task;
    uint32_t container, run;
    enum container_act act;
    struct arena arena;
    const struct container_action *action; /* in `arena` */
    bool gone;                             /* removed from the list; freed with its last handle */
    int handles;                           /* open libuv handles, and the look-up of a name */
    uv_timer_t timer;
    int64_t limit_ns; /* INT64_MAX: none */
    int fd;           /* output of the command, or the connection; -1: none */
    bool polled;
    uv_poll_t poll;
    struct buf in; /* received bytes: the command's output, or the answer */
    bool exited;   /* the command has exited */
    struct launch_exec *exec;
    /* probe_net.c */
    struct buf request;
    size_t sent;
    bool connected, shaken;
    gnutls_session_t tls;
    gnutls_certificate_credentials_t credentials;
    uv_getaddrinfo_t lookup;
};

/* Reports the result and releases the probe. `why` may be NULL if `ok`. */
void probe_done(struct probe_run *probe, bool ok, const char *why);
void probe_watch(struct probe_run *probe, int events, uv_poll_cb on_poll);
void probe_handle_gone(struct probe_run *probe); /* counts one of `handles` as closed */
/* Connects and, for HTTP, sends the request. The result is passed to probe_done(). Not from inside a step. */
void probe_net_begin(struct probe_run *probe);
void probe_net_end(struct probe_run *probe); /* frees the TLS session and other members of probe_net.c */

#endif
