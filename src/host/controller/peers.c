/* peers.c - the driver's network: connections of agents, from their first byte to their end.
 *
 * A connection must introduce itself in its first message, within STRANGER_NS. With TLS it may speak only for
 * the machine of its certificate, and only while the certificate is valid. A connection that violates this is
 * refused and closed, which proves nothing about its machine.
 */
#include "host/controller/internal.h"

#include <stdio.h>

#define STRANGER_NS    (10 * NS_PER_SECOND)
#define REFUSAL_LOG_NS NS_PER_SECOND
#define ENDS_NS        (60 * NS_PER_SECOND)
enum { CHECKS_A_TURN = 16 }; /* they take some milliseconds */

static void peer_free(struct peer *peer)
{
    list_remove(&peer->node);
    mem_free(peer);
}

static void peer_close(struct peer *peer)
{
    struct wire_conn *conn = peer->conn;
    peer_free(peer);
    wire_close(conn);
}

static void audit_refusal(struct controller *controller, const char *address, const char *why)
{
    static struct str groups[] = {STR(ACCESS_UNAUTHENTICATED)};
    static const struct access_user user = {
        .name = STR(ACCESS_ANONYMOUS), .groups = groups, .group_count = 1};
    int64_t now_ns = driver_stamp_ns(controller->driver);
    if (!controller->access)
        return;
    access_audit(controller->access,
                 &(struct access_record){.user = &user,
                                         .what = {.verb = STR("connect"), .path = STR("/agents")},
                                         .uri = STR("/agents"),
                                         .source = str_from(address),
                                         .received_ns = now_ns,
                                         .answered_ns = now_ns,
                                         .code = 403,
                                         .stage = "ResponseComplete",
                                         .decision = STR("forbid"),
                                         .reason = str_from(why)});
}

/* Writes an audit line, and prints a warning now and then: a refused agent retries again and again. */
static void log_refusal(struct controller *controller, const char *address, const char *why)
{
    int64_t now_ns = controller_mono_ns();
    audit_refusal(controller, address, why);
    if (now_ns - controller->refusal_logged_ns < REFUSAL_LOG_NS)
        return;
    fprintf(stderr, "warning: the agent at %s was refused: %s\n", address, why);
    controller->refusal_logged_ns = now_ns;
}

static void peer_log_refusal(const struct peer *peer, const char *why)
{
    char address[WIRE_ADDRESS_MAX];
    wire_conn_peer(peer->conn, address);
    log_refusal(peer->controller, address, why);
}

static void peer_refuse(struct peer *peer, const char *why)
{
    struct from_controller message = {.kind = FROM_CONTROLLER_REFUSED, .text = str_from(why)};
    peer_log_refusal(peer, why);
    wire_send_controller(peer->conn, &message);
    peer_close(peer);
}

/* --- the driver's port ------------------------------------------------------------------------ */

static struct peer *peer_of(drive_session session)
{
    return (struct peer *)(uintptr_t)session;
}

static drive_session session_of(const struct peer *peer)
{
    return (uintptr_t)peer;
}

static void port_send(void *context, drive_session session, const struct from_controller *message)
{
    const struct peer *peer = peer_of(session);
    /* An agent without acknowledgements looks for the controller that leads. */
    if (message->kind == FROM_CONTROLLER_HEARTBEAT_ACK && !controller_leads(peer->controller))
        return;
    wire_send_controller(peer->conn, message);
}

static void port_close(void *context, drive_session session, const char *refused)
{
    if (refused)
        peer_log_refusal(peer_of(session), refused);
    peer_close(peer_of(session));
}

struct net_port net_port(struct controller *controller)
{
    return (struct net_port){controller, port_send, port_close};
}

bool peers_send(struct controller *controller, machine_id machine, const struct from_controller *message)
{
    drive_session session = driver_session(controller->driver, machine);
    bool lent = lease_take(controller);
    if (session)
        port_send(controller, session, message);
    if (lent)
        lease_lend(controller);
    return session != 0;
}

/* --- connections ------------------------------------------------------------------------------ */

static void opened(struct wire_conn *conn)
{
    struct peer *peer = mem_alloc(sizeof(*peer));
    peer->controller = wire_conn_context(conn);
    peer->conn = conn;
    peer->opened_ns = controller_mono_ns();
    peer->round = peer->controller->peers_round;
    list_append(&peer->controller->strangers, &peer->node);
    wire_conn_set_context(conn, peer);
}

/* Returns whether the machine in the hello is that of the connection's certificate. Always true without
 * TLS. */
static bool is_who_it_says(const struct peer *peer, const struct hello *hello)
{
    struct str name = str_from(wire_conn_peer_name(peer->conn)), prefix = STR(ACCESS_NODE_PREFIX);
    if (!peer->controller->wire_tls)
        return true;
    return str_starts(name, prefix) &&
           str_equal((struct str){name.data + prefix.len, name.len - prefix.len}, hello->machine);
}

/* Moves a peer to the introduced ones. Returns false if it was refused. */
static bool introduce(struct peer *peer, const struct from_agent *message)
{
    struct controller *controller = peer->controller;
    peer->introduced = true;
    list_remove(&peer->node);
    bool looked_at = peer->round == controller->peers_round; /* see check_revoked */
    list_append(looked_at ? &controller->peers : controller->peers.next, &peer->node);
    bool hello = message->kind == FROM_AGENT_HELLO || message->kind == FROM_AGENT_TETHER;
    if (!hello || is_who_it_says(peer, &message->hello))
        return true;
    peer_refuse(peer, "its certificate is another machine's");
    return false;
}

static void from_agent(struct wire_conn *conn, const struct from_agent *message)
{
    struct peer *peer = wire_conn_context(conn);
    if (peer->introduced || introduce(peer, message))
        driver_message(peer->controller->driver, session_of(peer), message);
}

/* Called on the stand-in's thread (lease.c). */
static bool stand_in(const struct wire_conn *conn, const struct from_agent *message,
                     struct from_controller *ret_answer)
{
    const struct peer *peer = wire_conn_context(conn);
    return controller_leads(peer->controller) &&
           driver_stand_in(peer->controller->driver, session_of(peer), message, ret_answer);
}

static bool proves_death(enum wire_reason reason)
{
    return reason == WIRE_EOF || reason == WIRE_RESET;
}

static void closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct peer *peer = wire_conn_context(conn);
    bool proves = proves_death(reason);
    driver_closed(peer->controller->driver, session_of(peer), proves,
                  proves ? wire_reason_name(reason) : why);
    if (reason == WIRE_PEER_TLS)
        peer_log_refusal(peer, "it speaks TLS; start it without --tls-ca, --tls-cert and --tls-key, or the "
                               "controller with --tls-cert, --tls-key and --client-ca");
    peer_free(peer);
}

static void check_strangers(struct controller *controller)
{
    int64_t now_ns = controller_mono_ns();
    list_for_each_safe(node, after, &controller->strangers)
    {
        struct peer *peer = container_of(node, struct peer, node);
        if (peer->opened_ns + STRANGER_NS > now_ns)
            return; /* the list is in order of age */
        peer_close(peer);
    }
}

/* Expels a peer whose certificate is no longer accepted. The end of its session proves nothing about its
 * machine, whose lease then runs out. */
static void expel(struct peer *peer, const char *why)
{
    driver_closed(peer->controller->driver, session_of(peer), false, why);
    peer_refuse(peer, why);
}

bool peers_left(const struct controller *controller)
{
    const struct list_node *first = controller->peers.next;
    return first != &controller->peers &&
           container_of(first, struct peer, node)->round != controller->peers_round;
}

/* Checks some of the certificates that were not checked since the files were read again. Their peers come
 * first in the list: checked and new peers are appended. */
static void check_revoked(struct controller *controller)
{
    for (int i = 0; i < CHECKS_A_TURN && peers_left(controller); i++) {
        struct peer *peer = container_of(controller->peers.next, struct peer, node);
        struct error error;
        peer->round = controller->peers_round;
        list_remove(&peer->node);
        list_append(&controller->peers, &peer->node);
        if (wire_conn_check_peer(peer->conn, &error) < 0)
            expel(peer, error.text);
    }
}

static void check_ends(struct controller *controller)
{
    int64_t now_ns = controller_mono_ns(), now_s = driver_stamp_ns(controller->driver) / NS_PER_SECOND;
    if (!controller->wire_tls || now_ns - controller->peers_checked_ns < ENDS_NS)
        return;
    controller->peers_checked_ns = now_ns;
    list_for_each_safe(node, after, &controller->peers)
    {
        struct peer *peer = container_of(node, struct peer, node);
        if (wire_conn_peer_ends_s(peer->conn) < now_s)
            expel(peer, "its certificate has ended");
    }
}

void peers_check(struct controller *controller)
{
    check_strangers(controller);
    check_ends(controller);
    check_revoked(controller);
}

/* Called when an agent is refused in the TLS handshake. */
static void refused(void *context, const char *address, const char *why)
{
    log_refusal(context, address, why);
}

int peers_listen(struct controller *controller, struct error *error)
{
    static const struct wire_handlers handlers = {.opened = opened,
                                                  .from_agent = from_agent,
                                                  .closed = closed,
                                                  .refused = refused,
                                                  .stand_in = stand_in};
    const struct controller_options *options = &controller->options;
    if (options->tls_cert && options->access.client_ca) {
        struct wire_tls_options tls = {options->access.client_ca, options->tls_cert, options->tls_key};
        int rc = wire_tls_new(&tls, &controller->wire_tls, error);
        if (rc < 0)
            return rc;
    }
    const char *address = controller->options.agent_address ? controller->options.agent_address : "127.0.0.1";
    int rc = wire_listen(controller->wire, address, controller->options.agent_port, &handlers, controller,
                         &controller->listener, &controller->agent_port, error);
    if (rc == 0)
        wire_listener_set_tls(controller->listener, controller->wire_tls);
    return rc;
}

/* Call it after wire_shutdown(): no callback follows. */
void peers_done(struct controller *controller)
{
    list_for_each_safe(node, after, &controller->strangers) peer_free(container_of(node, struct peer, node));
    list_for_each_safe(other, next, &controller->peers) peer_free(container_of(other, struct peer, node));
    wire_tls_free(controller->wire_tls);
}
