/* ucx_api.h - the functions of libucp; private to ucx*.c.
 *
 * The library is loaded when a hub is made, not linked: when it is loaded, libucs installs signal handlers
 * and parses its environment, which must not happen in processes that do not use UCX.
 */
#ifndef PHX_FLOW_WIRE_UCX_API_H
#define PHX_FLOW_WIRE_UCX_API_H

#include <ucp/api/ucp.h>

#include "base/error.h"

#define UCX_FUNCTIONS(F)                                                                                     \
    F(ucp_config_read)                                                                                       \
    F(ucp_config_release)                                                                                    \
    F(ucp_init_version)                                                                                      \
    F(ucp_cleanup)                                                                                           \
    F(ucp_worker_create)                                                                                     \
    F(ucp_worker_destroy)                                                                                    \
    F(ucp_worker_get_address)                                                                                \
    F(ucp_worker_release_address)                                                                            \
    F(ucp_worker_get_efd)                                                                                    \
    F(ucp_worker_arm)                                                                                        \
    F(ucp_worker_progress)                                                                                   \
    F(ucp_worker_set_am_recv_handler)                                                                        \
    F(ucp_ep_create)                                                                                         \
    F(ucp_ep_close_nbx)                                                                                      \
    F(ucp_am_send_nbx)                                                                                       \
    F(ucp_am_recv_data_nbx)                                                                                  \
    F(ucp_request_free)                                                                                      \
    F(ucs_status_string)

struct ucx_api {
#define UCX_MEMBER(name) __typeof__(name) *name;
    UCX_FUNCTIONS(UCX_MEMBER)
#undef UCX_MEMBER
};

extern struct ucx_api ucx_api;

/* Loads the library, which is never unloaded. Returns ERROR_UNSUPPORTED if it is missing or lacks a
 * function. */
int ucx_api_load(struct error *error);

#endif
