/* The user who speaks by a connection: a client by its own certificate, or one whose request a controller
 * passes on and names in the head; and the lines by which it does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <ftw.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "host/access/folder.h"
#include "host/api/forwarded.h"
#include "host/api/identity.h"
#include "host/http/head.h"
#include "os/file.h"

enum { PATH_BYTES = 320 };

static char folder[] = "/tmp/phalanx-identity-XXXXXX", ca[PATH_BYTES];
static struct access *access_;
static struct identity_controllers controllers;

static void add_cert(struct api_tls_chain *chain, const char *user)
{
    char path[PATH_BYTES];
    struct buf pem BUF_CLEANUP = {0};
    gnutls_datum_t der;
    snprintf(path, sizeof path, "%s/%s.crt", folder, user);
    assert_int_equal(os_file_read(path, 1 << 20, &pem, NULL), 0);
    const gnutls_datum_t in = {(unsigned char *)pem.data, (unsigned)pem.len};
    assert_int_equal(gnutls_pem_base64_decode2("CERTIFICATE", &in, &der), 0);
    buf_add(&chain->certs[chain->count++], der.data, der.size);
    gnutls_free(der.data);
}

/* A connection of whoever has this certificate; NULL: of nobody's. */
static struct identity connected(const char *user, bool forwards)
{
    struct api_tls_chain chain = {0};
    struct identity identity = {.forwards = forwards, .controllers = &controllers, .address = "10.0.0.1"};
    if (user)
        add_cert(&chain, user);
    identity.tls = api_tls_peer_new(&chain);
    return identity;
}

/* A head with these lines, and behind them those of a client with this certificate. */
static void put_head(struct buf *out, const char *lines, const char *user)
{
    struct api_tls_chain chain = {0};
    struct sockaddr_storage from = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&from;
    struct buf head BUF_CLEANUP = {0};
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(0x0a000007);
    if (user)
        add_cert(&chain, user);
    buf_printf(&head, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines);
    forwarded_put(out, buf_str(&head), &chain, &from);
    api_tls_chain_done(&chain);
}

struct seen {
    int refusal;
    bool bad;
    struct str user, source; /* user empty: nobody */
    struct guard_headers headers;
};

static struct seen read_as(struct identity *identity, struct str text, struct arena *arena)
{
    struct seen seen = {0};
    struct http_head *head = ARENA_NEW(arena, struct http_head);
    size_t len;
    assert_int_equal(http_head_parse(text, 0, 1 << 20, head, &len), 1);
    seen.refusal = identity_read(identity, access_, 1, head, arena, &seen.headers);
    const struct access_user *user = identity_certificate(identity, access_, 1, &seen.bad);
    seen.user = user ? arena_str(arena, user->name) : (struct str){0};
    seen.source = seen.headers.source;
    return seen;
}

static void a_controller_names_the_client(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct identity controller = connected("server", true);
    put_head(&text, "Impersonate-User: bob\r\nAuthorization: x\r\n", "alice");
    struct seen seen = read_as(&controller, buf_str(&text), &arena);
    assert_true(seen.refusal == 0 && !seen.bad && str_is(seen.user, "alice") &&
                str_is(seen.source, "10.0.0.7"));
    assert_true(str_is(seen.headers.as_user, "bob") && str_is(seen.headers.authorization, "x"));
    seen = read_as(&controller, buf_str(&text), &arena); /* the same one again */
    assert_true(str_is(seen.user, "alice"));
    buf_clear(&text);
    put_head(&text, "", "admin"); /* and another one */
    assert_true(str_is(read_as(&controller, buf_str(&text), &arena).user, "admin"));
    buf_clear(&text);
    put_head(&text, "", NULL); /* and one without a certificate: nobody, not the controller */
    seen = read_as(&controller, buf_str(&text), &arena);
    assert_true(seen.refusal == 0 && !seen.bad && seen.user.len == 0);
    buf_clear(&text);
    put_head(&text, "", "evil/alice"); /* of another authority: as if it had come with the connection */
    seen = read_as(&controller, buf_str(&text), &arena);
    assert_true(seen.refusal == 0 && seen.bad && seen.user.len == 0);
    identity_done(&controller);
}

static void nobody_else_names_one(void **state)
{
    static const char *const others[] = {"admin", "alice", "evil/server", NULL};
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    put_head(&text, "", "admin");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct identity other = connected(others[i], true);
        struct seen seen = read_as(&other, buf_str(&text), &arena);
        assert_true(seen.refusal == 421 && seen.user.len == 0 && str_is(seen.source, "10.0.0.1"));
        identity_done(&other);
    }
    struct identity alice = connected("alice", false), controller = connected("server", false);
    struct seen seen = read_as(&alice, buf_str(&text), &arena);
    assert_true(seen.refusal == 0 && str_is(seen.user, "alice") && str_is(seen.source, "10.0.0.1"));
    seen = read_as(&controller, buf_str(&text), &arena); /* it passes nothing on */
    assert_true(seen.refusal == 0 && str_is(seen.user, "phalanx-controller"));
    identity_done(&alice);
    identity_done(&controller);
}

static void malformed_names_are_refused(void **state)
{
    static const char *const lines[] = {
        "Client-Cert: AAAA\r\n",
        "Client-Cert: ::\r\n",
        "Client-Cert: :A:\r\n",
        "Client-Cert: :AAAA:\r\nClient-Cert: :AAAA:\r\n",
        "Client-Cert-Chain: :AAAA:\r\n",
        "Client-Cert: :AAAA:\r\nClient-Cert-Chain: :AAAA:,\r\n",
        "Client-Cert: :AAAA:\r\nClient-Cert-Chain: :AAAA:, :AAAA:, :AAAA:, :AAAA:, :AAAA:, :AAAA:, :AAAA:, "
        ":AAAA:\r\n",
    };
    struct arena arena ARENA_CLEANUP = {0};
    struct identity controller = connected("server", true);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf text BUF_CLEANUP = {0};
        buf_printf(&text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines[i]);
        if (read_as(&controller, buf_str(&text), &arena).refusal != 400)
            fail_msg("%s", lines[i]);
    }
    identity_done(&controller);
}

static void heads_are_rewritten(void **state)
{
    struct buf out BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    struct http_head *head = mem_alloc(sizeof *head);
    struct api_tls_chain chain = {0}, got;
    struct sockaddr_storage from = {0};
    size_t len;
    ((struct sockaddr_in6 *)&from)->sin6_family = AF_INET6;
    ((struct sockaddr_in6 *)&from)->sin6_addr = in6addr_loopback;
    for (int i = 0; i < 3; i++)
        buf_printf(&chain.certs[chain.count++], "certificate %d", i);
    forwarded_put(
        &out,
        STR("\r\nGET /client-cert:x HTTP/1.1\r\nCLIENT-cert: :AAAA:\r\nHost: a\r\nclient-cert-chain: x\r\n"
            "x-forwarded-for:1\r\nClient-Certs: stay\r\n\r\n"),
        &chain, &from);
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            buf_add_str(&text, i == 0 ? STR("Client-Cert: :") : STR("Client-Cert-Chain: :"));
        else
            buf_add_str(&text, STR(", :"));
        base64_encode(buf_str(&chain.certs[i]), &text);
        buf_add_str(&text, i == 1 ? STR(":") : STR(":\r\n"));
    }
    struct buf expected BUF_CLEANUP = {0};
    buf_printf(&expected,
               "\r\nGET /client-cert:x HTTP/1.1\r\nHost: a\r\nClient-Certs: stay\r\n" STR_FORMAT
               "X-Forwarded-For: ::1\r\n\r\n",
               STR_ARG(buf_str(&text)));
    assert_true(str_equal(buf_str(&out), buf_str(&expected)));
    assert_int_equal(http_head_parse(buf_str(&out), 0, 1 << 20, head, &len), 1);
    assert_true(forwarded_chain(head, &got) && api_tls_chain_equal(&got, &chain));
    assert_true(str_is(forwarded_address(head), "::1"));
    api_tls_chain_done(&got);
    api_tls_chain_done(&chain);
    assert_int_equal(
        http_head_parse(STR("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1, 10.0.0.2\r\n\r\n"), 0,
                        1 << 20, head, &len),
        1);
    assert_int_equal(forwarded_address(head).len, 0);
    mem_free(head);
}

static int set_up(void **state)
{
    static const char *const hosts[] = {"localhost"};
    char evil[PATH_BYTES];
    struct error error;
    if (!mkdtemp(folder))
        return -1;
    snprintf(ca, sizeof ca, "%s/ca.crt", folder);
    snprintf(evil, sizeof evil, "%s/evil", folder);
    const struct access_options options = {.client_ca = ca};
    if (folder_init(folder, hosts, 1, &error) < 0 || folder_client(folder, "alice", NULL, 0, 0, &error) < 0 ||
        folder_init(evil, hosts, 1, &error) < 0 || folder_client(evil, "alice", NULL, 0, 0, &error) < 0 ||
        access_new(&options, &access_, &error) < 0)
        fail_msg("%s", error.text);
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    return remove(path);
}

static int tear_down(void **state)
{
    identity_controllers_done(&controllers);
    access_free(access_);
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_controller_names_the_client),
        cmocka_unit_test(nobody_else_names_one),
        cmocka_unit_test(malformed_names_are_refused),
        cmocka_unit_test(heads_are_rewritten),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
