/* Requests that a web page of another site has a browser send are refused. */
#include "host/api/client.h"
#include "host/api/origin.h"

struct row {
    const char *host, *origin, *site;
    int code;
};

static struct str text(const char *from)
{
    return from ? str_from(from) : (struct str){0};
}

static int checked(const struct row *row, const struct origin_server *server)
{
    struct error error = {0};
    struct origin_headers headers = {
        .host = text(row->host), .origin = text(row->origin), .fetch_site = text(row->site)};
    int code = origin_check(&headers, server, &error);
    assert_true((code != 0) == (error.text[0] != 0));
    return code;
}

static void test_names(void **state)
{
    static const char *const names[] = {"api.example"};
    static const struct row rows[] = {
        {"localhost:7070", NULL, NULL, 0},
        {"LOCALHOST", NULL, NULL, 0},
        {"127.0.0.1:7070", NULL, NULL, 0},
        {"127.8.9.10", NULL, NULL, 0},
        {"[::1]:7070", NULL, NULL, 0},
        {"[::1]", NULL, NULL, 0},
        {"10.1.2.3:7070", NULL, NULL, 0},
        {"[::ffff:10.1.2.3]", NULL, NULL, 0},
        {"api.example:7070", NULL, NULL, 0},
        {NULL, NULL, NULL, 0}, /* HTTP/1.0 */
        {"evil.example", NULL, NULL, 403},
        {"evil.example:7070", NULL, NULL, 403},
        {"10.1.2.4", NULL, NULL, 403},
        {"0.0.0.0:7070", NULL, NULL, 403},
        {"localhost.evil.example", NULL, NULL, 403},
        {"127.0.0.1.evil.example", NULL, NULL, 403},
        {"127.0.0.1@evil.example", NULL, NULL, 403},
        {"127.1", NULL, NULL, 403},
        {"[::2]", NULL, NULL, 403},
        {"", NULL, NULL, 400},
        {":7070", NULL, NULL, 400},
        {"[::1", NULL, NULL, 400},
        {"[::1]x:1", NULL, NULL, 400},
        {"localhost:port", NULL, NULL, 400},
        {"localhost:70700", NULL, NULL, 400},
    };
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010203)};
    struct origin_server server = {
        .address = (const struct sockaddr *)&here, .names = names, .name_count = 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (checked(&rows[i], &server) != rows[i].code)
            fail_msg("Host: %s: %d", rows[i].host, checked(&rows[i], &server));
    server.tls = true; /* the certificate proves the name */
    assert_int_equal(checked(&(struct row){"any.example", NULL, NULL, 0}, &server), 0);
}

static void test_origins(void **state)
{
    static const char *const names[] = {"api.example"};
    static const struct row rows[] = {
        {"localhost:7070", "http://localhost:7070", "same-origin", 0},
        {"localhost", "http://localhost:80", NULL, 0},
        {"[::1]:7070", "http://[::1]:7070", NULL, 0},
        {"localhost:7070", NULL, "none", 0},
        {"api.example", "https://api.example", NULL, 0}, /* behind a proxy with TLS */
        {"localhost:7070", "http://localhost:8000", NULL, 403},
        {"localhost:7070", "http://127.0.0.1:7070", NULL, 403},
        {"localhost:7070", "https://localhost:7070", NULL, 403},
        {"localhost:7070", "http://evil.example", NULL, 403},
        {"localhost:7070", "http://evil.example:7070", NULL, 403},
        {"localhost:7070", "http://localhost:7070.evil.example", NULL, 403},
        {"localhost:7070", "http://localhost:7070@evil.example", NULL, 403},
        {"localhost:7070", "null", NULL, 403},
        {"localhost:7070", "", NULL, 403},
        {"localhost:7070", "file://", NULL, 403},
        {NULL, "http://localhost:7070", NULL, 403},
        {"localhost:7070", NULL, "cross-site", 403},
        {"localhost:7070", NULL, "same-site", 403},
        {"localhost:7070", NULL, "", 403},
        {"localhost:7070", "http://localhost:7070", "cross-site", 403},
    };
    struct origin_server server = {.names = names, .name_count = 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (checked(&rows[i], &server) != rows[i].code)
            fail_msg("Host: %s, Origin: %s, Sec-Fetch-Site: %s: %d", rows[i].host, rows[i].origin,
                     rows[i].site, checked(&rows[i], &server));
    server.tls = true;
    assert_int_equal(checked(&(struct row){"h:1", "https://h:1", NULL, 0}, &server), 0);
    assert_int_equal(checked(&(struct row){"h:1", "http://h:1", NULL, 0}, &server), 403);
}

/* Over plain HTTP no page has a shell, were it this server's. */
static void test_upgrades(void **state)
{
    static const struct {
        const char *origin;
        bool tls, token;
        int code;
    } rows[] = {
        {NULL, false, false, 0},
        {NULL, false, true, 0},
        {"http://localhost:7070", false, false, 403},
        {"http://localhost:7070", false, true, 0}, /* a library that is no browser */
        {"https://localhost", false, false, 403},
        {"http://evil.example", false, true, 403},
        {"", false, true, 403},
        {"https://localhost:7070", true, false, 0},
        {"https://evil.example", true, false, 403},
        {"http://localhost:7070", true, true, 403},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {0};
        struct origin_headers headers = {.host = STR("localhost:7070"),
                                         .origin = text(rows[i].origin),
                                         .upgrade = true,
                                         .token = rows[i].token};
        int code = origin_check(&headers, &(struct origin_server){.tls = rows[i].tls}, &error);
        if (code != rows[i].code)
            fail_msg("Origin: %s, TLS %d, token %d: %d", rows[i].origin, rows[i].tls, rows[i].token, code);
    }
}

/* The status that a real server answers this text with. */
static int answered(struct fake_host *host, const char *request)
{
    struct client client;
    client_send_text(&client, host, str_from(request));
    assert_true(client_wait(&client, NULL));
    int code = client.code;
    client_done(&client);
    return code;
}

#define EVIL   "Origin: http://evil.example\r\n"
#define OWN    "Origin: http://localhost\r\n"
#define SOCKET                                                                                               \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                             \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
#define EXEC                                                                                                 \
    "GET /api/v1/namespaces/default/pods/a/exec?command=id&stdout=true HTTP/1.1\r\nHost: localhost\r\n"
#define OBJECT "{\"metadata\":{\"name\":\"c\"}}"
#define MAPS   "/api/v1/namespaces/default/configmaps"

static void test_server(void **state)
{
    struct fake_host *host = *state;
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        {"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
        {"GET /api/v1/nodes HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        {"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        {"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\n" EVIL "\r\n", 403},
        {"OPTIONS /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\n" EVIL "\r\n", 403},
        {"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
        {"POST " MAPS " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 25\r\n\r\n" OBJECT, 415},
        {"POST " MAPS " HTTP/1.1\r\nHost: localhost\r\nContent-Type:\r\nContent-Length: 25\r\n\r\n" OBJECT,
         415},
        {"POST " MAPS " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
         "19\r\n" OBJECT "\r\n0\r\n\r\n",
         415},
        {"POST " MAPS " HTTP/1.1\r\nHost: localhost\r\n" EVIL
         "Content-Type: application/json\r\nContent-Length: 25\r\n\r\n" OBJECT,
         403},
        {EXEC EVIL SOCKET "\r\n", 403},
        {EXEC OWN SOCKET "\r\n", 403},
        {EXEC OWN SOCKET "Authorization: Bearer t\r\n\r\n", 404}, /* there is no such Pod */
        {EXEC SOCKET "\r\n", 404},
        {"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\n" OWN "\r\n", 200},
        {"POST " MAPS " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         "Content-Length: 25\r\n\r\n" OBJECT,
         201},
    };
    assert_int_equal(strlen(OBJECT), 25);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = answered(host, rows[i].text);
        if (code != rows[i].code)
            fail_msg("%s\n%d instead of %d", rows[i].text, code, rows[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_upgrades),
        cmocka_unit_test_setup_teardown(test_server, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
