/* Clients with TLS of a controller that does not lead: their requests reach the leader in their names and in
 * nobody else's, nothing else of theirs reaches it, and where the leader or the certificate is not good for
 * that, sessions are the leader's. The test plays the leader: api_tls and relay are the real ones. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/check.h"
#include "host/access/folder.h"
#include "host/api/relay.h"
#include "host/patience.h"
#include "host/standby/internal.h"
#include "os/file.h"

enum { CONNECTIONS_MAX = 8, PATH_BYTES = 320 };

static char folder[] = "/tmp/phalanx-secure-XXXXXX";

/* "NAME.crt" in the folder; four results are good at once. */
static const char *at(const char *name, const char *ending)
{
    static char paths[4][PATH_BYTES];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_BYTES, "%s/%s%s", folder, name, ending);
    return path;
}

/* --- the leader ---------------------------------------------------------------------------------------- */

struct leader {
    int listener, fds[CONNECTIONS_MAX], count;
    bool forwards[CONNECTIONS_MAX];
    unsigned chain[CONNECTIONS_MAX];
    struct buf in[CONNECTIONS_MAX];
    const char *accepts; /* the status of its answers to trials */
    struct sockaddr_storage place;
    struct api_tls *tls;
    struct relay *relay;
};

static void on_ready(void *context, struct relay_client *client)
{
    struct leader *leader = context;
    assert_true(leader->count < CONNECTIONS_MAX);
    leader->forwards[leader->count] = client->forwards;
    leader->chain[leader->count] = client->chain.count;
    leader->fds[leader->count++] = client->fd;
}

static void on_gone(void *context, const struct sockaddr_storage *address)
{
}

/* `takes`: it takes requests that controllers pass on. */
static void leader_open(struct leader *leader, uv_loop_t *loop, bool takes)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof leader->place;
    struct error error;
    *leader = (struct leader){.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                              .accepts = "200 OK"};
    assert_int_equal(bind(leader->listener, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(leader->listener, 8), 0);
    assert_int_equal(getsockname(leader->listener, (struct sockaddr *)&leader->place, &len), 0);
    const struct relay_hooks hooks = {leader, on_ready, on_gone, NULL};
    static char cert[PATH_BYTES], key[PATH_BYTES];
    snprintf(cert, sizeof cert, "%s", at("server", ".crt"));
    snprintf(key, sizeof key, "%s", at("server", ".key"));
    assert_int_equal(api_tls_new(cert, key, true, &leader->tls, &error), 0);
    if (takes)
        api_tls_take_forwards(leader->tls);
    assert_int_equal(relay_new(loop, leader->tls, &hooks, &(struct relay_limits){0}, &leader->relay, &error),
                     0);
}

/* Answers a trial, whose connection is none of those that a test sees. */
static bool leader_is_tried(struct leader *leader, int i)
{
    static const char asks[] = "GET /livez HTTP/1.1\r\nHost: controller\r\nConnection: close\r\n\r\n";
    char answer[80];
    if (!str_is(buf_str(&leader->in[i]), asks))
        return false;
    int len = snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", leader->accepts);
    assert_true(leader->forwards[i]);
    assert_int_equal(send(leader->fds[i], answer, (size_t)len, MSG_NOSIGNAL), len);
    close(leader->fds[i]);
    buf_done(&leader->in[i]);
    for (leader->count--; i < leader->count; i++) {
        leader->fds[i] = leader->fds[i + 1];
        leader->forwards[i] = leader->forwards[i + 1];
        leader->chain[i] = leader->chain[i + 1];
        leader->in[i] = leader->in[i + 1];
    }
    leader->in[leader->count] = (struct buf){0};
    return true;
}

/* Takes what has come; the loop has to be run. */
static void leader_turn(struct leader *leader)
{
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    char chunk[8192];
    int fd =
        leader->listener < 0 ? -1 : accept4(leader->listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK);
    if (fd >= 0)
        assert_true(relay_take(leader->relay, fd, (struct sockaddr *)&from, len));
    for (int i = 0; i < leader->count; i++) {
        ssize_t count = leader->fds[i] >= 0 ? recv(leader->fds[i], chunk, sizeof chunk, MSG_DONTWAIT) : -1;
        if (count > 0)
            buf_add(&leader->in[i], chunk, (size_t)count);
        if (leader_is_tried(leader, i))
            return;
    }
}

/* Whether connection `i` has brought exactly this, with a line "Phalanx-Resent: NUMBER" where it has %R. */
static bool leader_has(struct leader *leader, int i, const char *text)
{
    leader_turn(leader);
    if (i >= leader->count)
        return false;
    struct str in = buf_str(&leader->in[i]);
    const char *mark = strstr(text, "%R");
    if (!mark)
        return str_is(in, text);
    struct str before = {text, (size_t)(mark - text)}, after = str_from(mark + 2),
               label = STR("Phalanx-Resent: ");
    if (in.len < before.len + label.len + after.len || !str_starts(in, before))
        return false;
    struct str rest = {in.data + before.len, in.len - before.len}, number = rest;
    if (!str_starts(rest, label))
        return false;
    number = (struct str){rest.data + label.len, rest.len - label.len - after.len};
    int64_t ms;
    return memcmp(number.data + number.len, after.data, after.len) == 0 &&
           str_to_i64(number, 0, INT64_MAX, &ms);
}

static void leader_says(struct leader *leader, int i, const char *text)
{
    buf_clear(&leader->in[i]);
    assert_int_equal(send(leader->fds[i], text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void leader_ends(struct leader *leader, int i)
{
    close(leader->fds[i]);
    leader->fds[i] = -1;
}

static void leader_deaf(struct leader *leader)
{
    close(leader->listener);
    leader->listener = -1;
}

static void leader_close(struct leader *leader)
{
    if (leader->listener >= 0)
        leader_deaf(leader);
    relay_close(leader->relay, NULL, NULL);
    api_tls_free(leader->tls);
    for (int i = 0; i < leader->count; i++) {
        if (leader->fds[i] >= 0)
            close(leader->fds[i]);
        buf_done(&leader->in[i]);
    }
}

/* --- the forwarder -------------------------------------------------------------------------------------- */

struct bed {
    uv_loop_t loop;
    struct patience patience;
    struct forward *forward;
    struct forward_tls tls;
    char cert[PATH_BYTES], key[PATH_BYTES], ca[PATH_BYTES];
};

static void bed_open(struct bed *bed, const char *name)
{
    struct error error;
    *bed = (struct bed){0};
    snprintf(bed->cert, sizeof bed->cert, "%s", at(name, ".crt"));
    snprintf(bed->key, sizeof bed->key, "%s", at(name, ".key"));
    snprintf(bed->ca, sizeof bed->ca, "%s", at("ca", ".crt"));
    bed->tls = (struct forward_tls){.cert = bed->cert, .key = bed->key, .client_ca = bed->ca};
    assert_int_equal(uv_loop_init(&bed->loop), 0);
    patience_init(&bed->patience, &bed->loop);
    if (forward_new(&bed->loop, "127.0.0.1", 0, 0, &bed->tls, &bed->forward, &error) < 0)
        fail_msg("%s", error.text);
}

static void bed_close(struct bed *bed)
{
    forward_close(bed->forward);
    patience_done(&bed->patience);
    uv_run(&bed->loop, UV_RUN_DEFAULT);
    forward_free(bed->forward);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
}

/* --- clients -------------------------------------------------------------------------------------------- */

struct client {
    struct bed *bed;
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    struct buf in;
    bool shaken, closed;
};

/* Begins a session on a connected socket. `user` NULL: without a certificate. */
static void client_begin(struct client *client, struct bed *bed, int fd, const char *user, bool forwards)
{
    static unsigned char name[] = API_TLS_FORWARDS;
    const gnutls_datum_t protocol = {name, sizeof name - 1};
    *client = (struct client){.bed = bed, .fd = fd};
    CHECK(gnutls_certificate_allocate_credentials(&client->credentials) == 0);
    CHECK(gnutls_certificate_set_x509_trust_file(client->credentials, at("ca", ".crt"),
                                                 GNUTLS_X509_FMT_PEM) == 1);
    if (user)
        CHECK(gnutls_certificate_set_x509_key_file(client->credentials, at(user, ".crt"), at(user, ".key"),
                                                   GNUTLS_X509_FMT_PEM) == 0);
    CHECK(gnutls_init(&client->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK) == 0);
    CHECK(gnutls_set_default_priority(client->session) == 0);
    CHECK(gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials) == 0);
    gnutls_session_set_verify_cert(client->session, "127.0.0.1", 0);
    if (forwards)
        CHECK(gnutls_alpn_set_protocols(client->session, &protocol, 1, 0) == 0);
    gnutls_transport_set_int(client->session, fd);
}

static void client_open_as(struct client *client, struct bed *bed, const char *user, bool forwards)
{
    struct sockaddr_in there = {.sin_family = AF_INET,
                                .sin_port = htons(forward_port(bed->forward)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof there), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    client_begin(client, bed, fd, user, forwards);
}

static void client_open(struct client *client, struct bed *bed, const char *user)
{
    client_open_as(client, bed, user, false);
}

/* Moves on; whether exactly this has come (NULL: nothing is compared). */
static bool client_has(struct client *client, const char *text)
{
    char chunk[8192];
    ssize_t count = 1;
    while (client->shaken && !client->closed && count > 0) {
        count = gnutls_record_recv(client->session, chunk, sizeof chunk);
        if (count > 0)
            buf_add(&client->in, chunk, (size_t)count);
        client->closed = count == 0 || (count < 0 && gnutls_error_is_fatal((int)count));
    }
    bool has = text && str_is(buf_str(&client->in), text);
    if (has)
        buf_clear(&client->in);
    return has;
}

static bool client_shakes(struct client *client, struct leader *leader)
{
    if (leader)
        leader_turn(leader);
    int rc = client->shaken ? 0 : gnutls_handshake(client->session);
    if (rc < 0 && gnutls_error_is_fatal(rc))
        fail_msg("the handshake: %s", gnutls_strerror(rc));
    client->shaken = rc == 0;
    return client->shaken;
}

static void client_says(struct client *client, struct leader *leader, const char *text)
{
    PATIENT_UNTIL(&client->bed->patience, client_shakes(client, leader));
    assert_int_equal(gnutls_record_send(client->session, text, strlen(text)), strlen(text));
}

static void client_close(struct client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->credentials);
    close(client->fd);
    buf_done(&client->in);
}

#define LEADER_GETS(bed, leader, i, text) PATIENT_UNTIL(&(bed)->patience, leader_has(leader, i, text))
#define CLIENT_GETS(client, text)         PATIENT_UNTIL(&(client)->bed->patience, client_has(client, text))
#define CLIENT_BEGINS(client, text)                                                                          \
    PATIENT_UNTIL(&(client)->bed->patience,                                                                  \
                  (client_has(client, NULL), str_starts(buf_str(&(client)->in), STR(text))))
#define CLIENT_CLOSED(client)                                                                                \
    PATIENT_UNTIL(&(client)->bed->patience, (client_has(client, NULL), (client)->closed))

#define OK      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define MAP     "/api/v1/namespaces/default/configmaps/m"
#define PUT     "PUT " MAP " HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n"
#define GET     "GET / HTTP/1.1\r\nHost: a\r\n"
#define ADDRESS "X-Forwarded-For: 127.0.0.1\r\n"

/* "Client-Cert: :...:" of a user, with the line's end; two results are good at once. */
static const char *named(const char *user)
{
    static char lines[2][4096];
    static int next;
    char *line = lines[next++ % 2];
    struct buf pem BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    gnutls_datum_t der;
    struct error error;
    assert_int_equal(os_file_read(at(user, ".crt"), 1 << 20, &pem, &error), 0);
    const gnutls_datum_t in = {(unsigned char *)pem.data, (unsigned)pem.len};
    assert_int_equal(gnutls_pem_base64_decode2("CERTIFICATE", &in, &der), 0);
    base64_encode((struct str){(const char *)der.data, der.size}, &text);
    gnutls_free(der.data);
    snprintf(line, sizeof lines[0], "Client-Cert: :" STR_FORMAT ":\r\n", STR_ARG(buf_str(&text)));
    return line;
}

/* Joins up to four parts; four results are good at once. */
static const char *join(const char *a, const char *b, const char *c, const char *d)
{
    static char texts[4][16384];
    static int next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%s%s%s%s", a, b, c, d);
    return text;
}

/* --- cases ---------------------------------------------------------------------------------------------- */

static void requests_name_their_clients(void **state)
{
    struct bed bed;
    struct leader leader;
    struct client alice, nobody;
    bed_open(&bed, "server");
    leader_open(&leader, &bed.loop, true);
    forward_to(bed.forward, &leader.place);
    client_open(&alice, &bed, "alice");
    client_says(&alice, &leader, join(PUT, "\r\n", "body", ""));
    LEADER_GETS(&bed, &leader, 0, join(PUT, named("alice"), ADDRESS, "\r\nbody"));
    assert_true(leader.forwards[0]);
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&alice, OK);
    /* Other credentials pass; lines that only controllers may say do not, however they are written. */
    client_says(&alice, &leader,
                join(GET "client-CERT:", named("admin") + strlen("Client-Cert:"),
                     "Client-Cert-Chain: :AAAA:\r\nX-FORWARDED-FOR: 10.9.9.9\r\nClient-Cert: :AAAA:\r\n",
                     "Authorization: Bearer t\r\nImpersonate-User: bob\r\n\r\n"));
    LEADER_GETS(
        &bed, &leader, 0,
        join(GET "Authorization: Bearer t\r\nImpersonate-User: bob\r\n", named("alice"), ADDRESS, "\r\n"));
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&alice, OK);
    client_open(&nobody, &bed, NULL);
    client_says(&nobody, &leader, join(GET, named("alice"), "\r\n", ""));
    LEADER_GETS(&bed, &leader, 1, join(GET, ADDRESS, "\r\n", ""));
    leader_says(&leader, 1, OK);
    CLIENT_GETS(&nobody, OK);
    client_close(&alice);
    client_close(&nobody);
    leader_close(&leader);
    bed_close(&bed);
}

static void a_write_is_sent_again(void **state)
{
    struct bed bed;
    struct leader first, second;
    struct client alice;
    bed_open(&bed, "server");
    leader_open(&first, &bed.loop, true);
    leader_open(&second, &bed.loop, true);
    forward_repeats(bed.forward, true);
    forward_to(bed.forward, &first.place);
    client_open(&alice, &bed, "alice");
    client_says(&alice, &first, join(PUT, "\r\n", "bo", ""));
    LEADER_GETS(&bed, &first, 0, join(PUT, named("alice"), ADDRESS, "\r\nbo"));
    leader_deaf(&first);
    leader_ends(&first, 0); /* it may have been applied */
    forward_to(bed.forward, &second.place);
    LEADER_GETS(&bed, &second, 0, join(PUT "%R\r\n", named("alice"), ADDRESS, "\r\nbo"));
    client_says(&alice, &second, "dy");
    LEADER_GETS(&bed, &second, 0, join(PUT "%R\r\n", named("alice"), ADDRESS, "\r\nbody"));
    leader_says(&second, 0, OK);
    CLIENT_GETS(&alice, OK);
    client_close(&alice);
    leader_close(&first);
    leader_close(&second);
    bed_close(&bed);
}

/* In a session that shows a controller's certificate any byte could be another one's request. */
static void what_is_no_request_goes_no_further(void **state)
{
    static const char *const texts[] = {
        "\x16\x03\x01", "GET / HTTP/1.1\r\nHost: a\r\nClient-Cert : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n Client-Cert: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"};
    struct bed bed;
    struct leader leader;
    struct client alice;
    bed_open(&bed, "server");
    leader_open(&leader, &bed.loop, true);
    forward_to(bed.forward, &leader.place);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        client_open(&alice, &bed, "alice");
        client_says(&alice, &leader, join(texts[i], GET, "\r\n\r\n", "")); /* and a request behind it */
        PATIENT_UNTIL(&bed.patience, (leader_turn(&leader), client_has(&alice, NULL), alice.closed));
        if (!str_starts(buf_str(&alice.in), STR("HTTP/1.1 400 ")))
            fail_msg("%s: " STR_FORMAT, texts[i], STR_ARG(buf_str(&alice.in)));
        client_close(&alice);
    }
    assert_int_equal(leader.count, 0); /* nothing was said in any session with it */
    leader_close(&leader);
    bed_close(&bed);
}

static void controllers_pass_their_clients_on(void **state)
{
    struct bed bed;
    struct leader leader;
    struct client other;
    bed_open(&bed, "server");
    leader_open(&leader, &bed.loop, true);
    forward_to(bed.forward, &leader.place);
    const char *request = join(GET, named("alice"), "X-Forwarded-For: 10.0.0.7\r\n", "\r\n");
    client_open_as(&other, &bed, "server", true);
    client_says(&other, &leader, request);
    LEADER_GETS(&bed, &leader, 0, request);
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&other, OK);
    client_close(&other);
    client_open_as(&other, &bed, "server", false); /* it does not pass requests on: they are its own */
    client_says(&other, &leader, request);
    LEADER_GETS(&bed, &leader, 1, join(GET, named("server"), ADDRESS, "\r\n"));
    client_close(&other);
    client_open_as(&other, &bed, "admin", true); /* no controller */
    client_says(&other, &leader, request);
    CLIENT_BEGINS(&other, "HTTP/1.1 421 ");
    CLIENT_CLOSED(&other);
    assert_int_equal(leader.count, 2);
    client_close(&other);
    leader_close(&leader);
    bed_close(&bed);
}

/* Behind an answer with 101 there are no more requests, and bytes pass as they are. */
static void upgrades_pass_bytes(void **state)
{
    static const char upgrade[] = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n";
    static const char switched[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nhello";
    struct bed bed;
    struct leader leader;
    struct client alice;
    bed_open(&bed, "server");
    leader_open(&leader, &bed.loop, true);
    forward_to(bed.forward, &leader.place);
    client_open(&alice, &bed, "alice");
    client_says(&alice, &leader, join(upgrade, "\r\n", "", ""));
    LEADER_GETS(&bed, &leader, 0, join(upgrade, named("alice"), ADDRESS, "\r\n"));
    leader_says(&leader, 0, switched);
    CLIENT_GETS(&alice, switched);
    client_says(&alice, &leader, "bytes");
    LEADER_GETS(&bed, &leader, 0, "bytes");
    leader_says(&leader, 0, "more");
    CLIENT_GETS(&alice, "more");
    leader_ends(&leader, 0);
    CLIENT_CLOSED(&alice);
    client_close(&alice);
    leader_close(&leader);
    bed_close(&bed);
}

/* A client that says no more still gets its answer. */
static void a_client_may_end_its_half(void **state)
{
    static const char last[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    struct bed bed;
    struct leader leader;
    struct client alice;
    bed_open(&bed, "server");
    leader_open(&leader, &bed.loop, true);
    forward_to(bed.forward, &leader.place);
    client_open(&alice, &bed, "alice");
    client_says(&alice, &leader, join(PUT, "\r\n", "body", ""));
    LEADER_GETS(&bed, &leader, 0, join(PUT, named("alice"), ADDRESS, "\r\nbody"));
    assert_int_equal(gnutls_bye(alice.session, GNUTLS_SHUT_WR), 0);
    for (int i = 0; i < 50; i++) /* it is seen */
        uv_run(&bed.loop, UV_RUN_ONCE);
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&alice, last);
    CLIENT_CLOSED(&alice);
    client_close(&alice);
    leader_close(&leader);
    bed_close(&bed);
}

static struct {
    int fd, count;
    struct api_tls_chain chain;
} here;

static int here_connect(void *context, int client, const struct relay_client *tls)
{
    int ends[2];
    assert_non_null(tls);
    here.chain = api_tls_chain_copy(&tls->chain);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    here.fd = ends[1];
    here.count++;
    return ends[0];
}

static uint64_t here_version(void *context)
{
    return 0;
}

static void here_look(void *context)
{
}

static void reads_are_answered_here(void **state)
{
    static const char read[] = "GET /api/v1/pods?resourceVersion=0 HTTP/1.1\r\nHost: a\r\n\r\n";
    struct bed bed;
    struct client alice;
    char got[256];
    ssize_t count = -1;
    here.count = 0;
    bed_open(&bed, "server"); /* nobody leads, and nobody has */
    forward_reads(bed.forward, &(struct forward_reads){NULL, here_connect, here_version, here_look});
    client_open(&alice, &bed, "alice");
    client_says(&alice, NULL, read);
    PATIENT_UNTIL(&bed.patience,
                  here.count == 1 && (count = recv(here.fd, got, sizeof got, MSG_DONTWAIT)) > 0);
    assert_true(str_is((struct str){got, (size_t)count}, read));
    assert_int_equal(here.chain.count, 1);
    struct buf text BUF_CLEANUP = {0};
    base64_encode(buf_str(&here.chain.certs[0]), &text);
    buf_add_char(&text, 0);
    assert_non_null(strstr(named("alice"), text.data));
    assert_int_equal(send(here.fd, OK, sizeof OK - 1, 0), sizeof OK - 1);
    CLIENT_GETS(&alice, OK);
    client_close(&alice);
    close(here.fd);
    api_tls_chain_done(&here.chain);
    bed_close(&bed);
}

/* The leader is of an earlier release, our own certificate is no controller's, or the leader does not accept
 * it: the client's session is with the leader, which sees its certificate, and all that it says. */
static void sessions_are_the_leaders(void **state)
{
    for (int why = 0; why < 3; why++) {
        struct bed bed;
        struct leader leader;
        struct client alice;
        bed_open(&bed, why == 1 ? "plain" : "server");
        forward_reads(bed.forward, &(struct forward_reads){NULL, here_connect, here_version, here_look});
        leader_open(&leader, &bed.loop, why > 0);
        leader.accepts = "421 Misdirected Request";
        forward_to(bed.forward, &leader.place);
        client_open(&alice, &bed, "alice"); /* before it is known */
        const char *request =
            join("GET /api/v1/pods?resourceVersion=0 HTTP/1.1\r\n", named("admin"), "\r\n", "");
        client_says(&alice, &leader, request);
        LEADER_GETS(&bed, &leader, 0, request);
        assert_false(leader.forwards[0]);
        assert_int_equal(leader.chain[0], 1);
        leader_says(&leader, 0, OK);
        CLIENT_GETS(&alice, OK);
        client_close(&alice);
        leader_close(&leader);
        bed_close(&bed);
    }
}

/* A leader that has taken our certificate for a controller's takes it no more. */
static void a_leader_may_change_its_mind(void **state)
{
    struct bed bed;
    struct leader leader;
    struct client alice;
    bed_open(&bed, "server");
    leader_open(&leader, &bed.loop, true);
    forward_to(bed.forward, &leader.place);
    client_open(&alice, &bed, "alice");
    client_says(&alice, &leader, join(PUT, "\r\n", "body", ""));
    LEADER_GETS(&bed, &leader, 0, join(PUT, named("alice"), ADDRESS, "\r\nbody"));
    leader_says(&leader, 0, "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 2\r\n\r\nno");
    CLIENT_BEGINS(&alice, "HTTP/1.1 503 ");
    CLIENT_CLOSED(&alice);
    assert_non_null(strstr(alice.in.data, "nothing was done"));
    client_close(&alice);
    client_open(&alice, &bed, "alice");
    client_says(&alice, &leader, join(PUT, "\r\n", "body", ""));
    LEADER_GETS(&bed, &leader, 1, join(PUT, "\r\n", "body", ""));
    assert_false(leader.forwards[1]);
    client_close(&alice);
    leader_close(&leader);
    bed_close(&bed);
}

/* Another server of this process has handed over: a client that has asked it something, and one that has not,
 * keep their sessions. */
static void sessions_are_taken_over(void **state)
{
    struct bed bed;
    struct leader before, next;
    struct client asked, silent;
    int ends[2][2];
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    bed_open(&bed, "server");
    leader_open(&before, &bed.loop, true);
    leader_open(&next, &bed.loop, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends[i]), 0);
        assert_true(relay_take(before.relay, ends[i][0], (struct sockaddr *)&from, sizeof from));
        client_begin(i == 0 ? &asked : &silent, &bed, ends[i][1], "alice", false);
    }
    client_says(&asked, &before, join(GET, "\r\n", "", ""));
    LEADER_GETS(&bed, &before, 0, join(GET, "\r\n", "", ""));
    leader_says(&before, 0, OK);
    CLIENT_GETS(&asked, OK);
    PATIENT_UNTIL(&bed.patience, client_shakes(&silent, &before));
    struct relay_client known = {.fd = before.fds[0], .chain = {.count = 0}};
    mem_copy(&known.address, &from, sizeof from);
    assert_true(forward_adopt(bed.forward, before.relay, before.tls));
    forward_take(bed.forward, before.fds[0], STR("GET / HT"), &known);
    leader_deaf(&before);
    buf_done(&before.in[0]);
    forward_to(bed.forward, &next.place);
    client_says(&asked, &next, "TP/1.1\r\nHost: a\r\n\r\n");
    LEADER_GETS(&bed, &next, 0, join(GET, ADDRESS, "\r\n", ""));
    leader_says(&next, 0, OK);
    CLIENT_GETS(&asked, OK);
    client_says(&silent, &next, join(GET, "\r\n", "", ""));
    LEADER_GETS(&bed, &next, 1, join(GET, named("alice"), ADDRESS, "\r\n"));
    leader_says(&next, 1, OK);
    CLIENT_GETS(&silent, OK);
    client_close(&asked);
    client_close(&silent);
    leader_close(&next);
    bed_close(&bed);
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static int make_folder(void **state)
{
    static const char *const hosts[] = {"127.0.0.1"};
    struct error error;
    const struct pki_request plain = {
        .name = "phalanx-controller", .hosts = hosts, .host_count = 1, .days = 9};
    if (!mkdtemp(folder) || folder_init(folder, hosts, 1, &error) < 0 ||
        folder_client(folder, "alice", NULL, 0, 0, &error) < 0 ||
        pki_issue(at("ca", ".crt"), at("ca", ".key"), &plain, at("plain", ".crt"), at("plain", ".key"),
                  &error) < 0)
        return -1;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    return remove(path);
}

static int remove_folder(void **state)
{
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_name_their_clients),
        cmocka_unit_test(a_write_is_sent_again),
        cmocka_unit_test(what_is_no_request_goes_no_further),
        cmocka_unit_test(controllers_pass_their_clients_on),
        cmocka_unit_test(upgrades_pass_bytes),
        cmocka_unit_test(a_client_may_end_its_half),
        cmocka_unit_test(reads_are_answered_here),
        cmocka_unit_test(sessions_are_the_leaders),
        cmocka_unit_test(a_leader_may_change_its_mind),
        cmocka_unit_test(sessions_are_taken_over),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
