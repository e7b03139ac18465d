/* peers.c - connections of agents: from strangers to a machine's connection or tether, and their ends.
 *
 * A connection says what it is in its first message, soon, and once. One that breaks this is refused and
 * closed, which proves nothing about its machine.
 */
#include "host/controller/internal.h"

#include <stdio.h>

#define STRANGER_NS    (10 * NS_PER_SECOND)
#define REFUSAL_LOG_NS NS_PER_SECOND
#define ENDS_NS        (60 * NS_PER_SECOND)
enum { CHECKS_A_TURN = 16 }; /* some milliseconds */

static void peer_free(struct peer *peer)
{
    list_remove(&peer->node);
    mem_free(peer);
}

void peers_close(struct wire_conn *conn)
{
    peer_free(wire_conn_context(conn));
    wire_close(conn);
}

void peers_refuse(struct wire_conn *conn, const char *why)
{
    struct peer *peer = wire_conn_context(conn);
    struct controller *controller = peer->controller;
    struct from_controller message = {.kind = FROM_CONTROLLER_REFUSED, .text = str_from(why)};
    int64_t now_ns = controller_mono_ns();
    if (now_ns - controller->refusal_logged_ns >= REFUSAL_LOG_NS) { /* it will come again and again */
        char address[WIRE_ADDRESS_MAX];
        wire_conn_peer(conn, address);
        fprintf(stderr, "warning: the agent at %s was refused: %s\n", address, why);
        controller->refusal_logged_ns = now_ns;
    }
    wire_send_controller(conn, &message);
    peers_close(conn);
}

static void opened(struct wire_conn *conn)
{
    struct peer *peer = mem_alloc(sizeof(*peer));
    peer->controller = wire_conn_context(conn);
    peer->conn = conn;
    peer->machine = MACHINE_NONE;
    peer->opened_ns = controller_mono_ns();
    peer->round = peer->controller->peers_round;
    list_append(&peer->controller->strangers, &peer->node);
    wire_conn_set_context(conn, peer);
}

/* With TLS a connection speaks for the machine of its certificate, and for no other. */
static bool is_who_it_says(const struct peer *peer, const struct hello *hello)
{
    struct str name = str_from(wire_conn_peer_name(peer->conn)), prefix = STR(ACCESS_NODE_PREFIX);
    if (!peer->controller->wire_tls)
        return true;
    return str_starts(name, prefix) &&
           str_equal((struct str){name.data + prefix.len, name.len - prefix.len}, hello->machine);
}

static void introduce(struct peer *peer, const struct from_agent *message)
{
    struct controller *controller = peer->controller;
    list_remove(&peer->node);
    bool looked_at = peer->round == controller->peers_round; /* see check_revoked */
    list_append(looked_at ? &controller->peers : controller->peers.next, &peer->node);
    bool hello = message->kind == FROM_AGENT_HELLO || message->kind == FROM_AGENT_TETHER;
    if (hello && !is_who_it_says(peer, &message->hello))
        peers_refuse(peer->conn, "its certificate is another machine's");
    else if (message->kind == FROM_AGENT_HELLO)
        machines_hello(controller, peer->conn, &message->hello);
    else if (message->kind == FROM_AGENT_TETHER)
        machines_tether(controller, peer->conn, &message->hello);
    else
        peers_refuse(peer->conn, "say hello first");
}

static void from_agent(struct wire_conn *conn, const struct from_agent *message)
{
    struct peer *peer = wire_conn_context(conn);
    bool again = message->kind == FROM_AGENT_HELLO || message->kind == FROM_AGENT_TETHER;
    if (peer->machine == MACHINE_NONE) {
        introduce(peer, message);
    } else if (again || peer->tether) {
        const char *why = peer->tether ? "a tether says nothing" : "one hello a connection";
        machines_closed(peer->controller, peer, WIRE_PROTOCOL, why);
        peers_refuse(conn, why);
    } else {
        machines_message(peer->controller, peer->machine, message);
    }
}

static void closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct peer *peer = wire_conn_context(conn);
    if (peer->machine != MACHINE_NONE)
        machines_closed(peer->controller, peer, reason, why);
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
        peers_close(peer->conn);
    }
}

/* Its certificate is not good any more: that it goes proves nothing about its machine, whose lease runs
 * out. */
static void expel(struct peer *peer, const char *why)
{
    if (peer->machine != MACHINE_NONE)
        machines_closed(peer->controller, peer, WIRE_PROTOCOL, why);
    peers_refuse(peer->conn, why);
}

bool peers_left(const struct controller *controller)
{
    const struct list_node *first = controller->peers.next;
    return first != &controller->peers &&
           container_of(first, struct peer, node)->round != controller->peers_round;
}

/* A slice of those whose certificate has not been looked at since the files were read again. They stand
 * first: who was looked at goes to the end, and so do new ones. */
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
    int64_t now_ns = controller_mono_ns(), now_s = controller_stamp_ns(controller) / NS_PER_SECOND;
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

/* In the TLS handshake. Strangers may come as often as they like; they are told of now and then. */
static void refused(void *context, const char *address, const char *why)
{
    struct controller *controller = context;
    int64_t now_ns = controller_mono_ns();
    if (now_ns - controller->refusal_logged_ns < REFUSAL_LOG_NS)
        return;
    fprintf(stderr, "warning: the agent at %s was refused: %s\n", address, why);
    controller->refusal_logged_ns = now_ns;
}

int peers_listen(struct controller *controller, struct error *error)
{
    static const struct wire_handlers handlers = {
        .opened = opened, .from_agent = from_agent, .closed = closed, .refused = refused};
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

/* After wire_shutdown: no callback comes any more. */
void peers_done(struct controller *controller)
{
    list_for_each_safe(node, after, &controller->strangers) peer_free(container_of(node, struct peer, node));
    list_for_each_safe(other, next, &controller->peers) peer_free(container_of(other, struct peer, node));
    wire_tls_free(controller->wire_tls);
}
