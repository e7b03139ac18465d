/* Requests over real sockets, against a server that is a child process and follows a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/http_client.h"

/* The server's answers on one connection, in order: it reads a request, then sends an answer. NULL ends the
 * list; the server then closes. */
struct script {
    const char *answers[4]; /* on one connection; "" : says nothing and waits for the client to close */
};

struct server {
    pid_t pid;
    char url[64];
};

/* Reads one request up to the end of its head, and the body that Content-Length names. False: the client
 * closed. */
static bool read_request(int fd, struct buf *text)
{
    for (;;) {
        char *end = text->data ? strstr(text->data, "\r\n\r\n") : NULL;
        if (end) {
            char *length = strstr(text->data, "Content-Length: ");
            size_t body = length ? strtoul(length + 16, NULL, 10) : 0,
                   whole = (size_t)(end - text->data) + 4 + body;
            if (text->len >= whole) {
                buf_drop_front(text, whole);
                return true;
            }
        }
        char block[512];
        ssize_t count = read(fd, block, sizeof block);
        if (count <= 0)
            return false;
        buf_add(text, block, (size_t)count);
    }
}

static void serve(int listener, const struct script *scripts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int fd = accept(listener, NULL, NULL);
        struct buf text = {0};
        for (size_t k = 0; k < 4 && scripts[i].answers[k] && read_request(fd, &text); k++) {
            const char *answer = scripts[i].answers[k];
            if (!*answer)
                read_request(fd, &text);
            if (write(fd, answer, strlen(answer)) < 0)
                _exit(1);
        }
        buf_done(&text);
        close(fd);
    }
    _exit(0);
}

static struct server begin(const struct script *scripts, size_t count)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    struct server server = {.pid = fork()};
    if (server.pid == 0)
        serve(listener, scripts, count);
    close(listener);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return server;
}

static void end(struct server *server)
{
    int status;
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    assert_int_equal(status, 0);
}

static bool gather(void *context, int code, struct str bytes)
{
    (void)code;
    buf_add_str(context, bytes);
    return true;
}

static enum http_result get(struct http_client *client, const char *path, struct buf *body, int *ret_code,
                            struct error *error)
{
    buf_clear(body);
    struct http_request request = {
        .path = str_from(path), .timeout_ms = 60000, .context = body, .on_body = gather};
    return http_client_call(client, &request, ret_code, error);
}

#define OK(text) "HTTP/1.1 200 OK\r\nContent-Length: " text

static void a_connection_serves_several_requests(void **state)
{
    (void)state;
    static const struct script scripts[] = {
        {{OK("1\r\n\r\na"), OK("1\r\n\r\nb"), OK("1\r\nConnection: close\r\n\r\nc")}}, {{OK("1\r\n\r\nd")}}};
    struct server server = begin(scripts, 2);
    struct http_client *client;
    struct buf body BUF_CLEANUP = {0};
    struct error error;
    int code;
    assert_int_equal(http_client_new(str_from(server.url), &client, &error), 0);
    for (const char *expected = "abcd"; *expected; expected++) {
        assert_int_equal(get(client, "/x", &body, &code, &error), HTTP_ANSWERED);
        assert_int_equal(code, 200);
        assert_int_equal(body.data[0], *expected);
    }
    http_client_free(client);
    end(&server);
}

static void a_connection_that_was_closed_meanwhile_is_replaced(void **state)
{
    (void)state;
    static const struct script scripts[] = {{{OK("1\r\n\r\na")}}, {{OK("1\r\n\r\nb")}}};
    struct server server = begin(scripts, 2);
    struct http_client *client;
    struct buf body BUF_CLEANUP = {0};
    int code;
    assert_int_equal(http_client_new(str_from(server.url), &client, NULL), 0);
    assert_int_equal(get(client, "/", &body, &code, NULL), HTTP_ANSWERED);
    assert_int_equal(get(client, "/", &body, &code, NULL), HTTP_ANSWERED);
    assert_string_equal(body.data, "b");
    http_client_free(client);
    end(&server);
}

static void failures_are_told_apart(void **state)
{
    (void)state;
    static const struct script scripts[] = {{{OK("5\r\n\r\nhal")}}, {{"\x15\x03\x03 no HTTP\n"}}, {{NULL}}};
    struct server server = begin(scripts, 3);
    struct http_client *client;
    struct buf body BUF_CLEANUP = {0};
    struct error error;
    int code;
    assert_int_equal(http_client_new(str_from(server.url), &client, NULL), 0);
    assert_int_equal(get(client, "/", &body, &code, &error), HTTP_BROKE);
    assert_int_equal(code, 200);
    assert_string_equal(body.data, "hal");
    assert_int_equal(get(client, "/", &body, &code, &error), HTTP_NOT_HTTP);
    assert_int_equal(get(client, "/", &body, &code, &error), HTTP_NOT_HTTP);
    end(&server);
    assert_int_equal(get(client, "/", &body, &code, &error), HTTP_NO_SERVER);
    assert_non_null(strstr(error.text, "127.0.0.1 port"));
    http_client_free(client);
}

static void a_silent_server_is_waited_for_no_longer_than_told(void **state)
{
    (void)state;
    static const struct script scripts[] = {{{""}}};
    struct server server = begin(scripts, 1);
    struct http_client *client;
    struct error error;
    int code;
    assert_int_equal(http_client_new(str_from(server.url), &client, NULL), 0);
    struct http_request request = {.path = STR("/"), .timeout_ms = 50};
    assert_int_equal(http_client_call(client, &request, &code, &error), HTTP_TIMED_OUT);
    assert_int_equal(error.code, ERROR_TIMEOUT);
    http_client_free(client);
    kill(server.pid, SIGKILL);
    waitpid(server.pid, NULL, 0);
}

static void a_body_is_sent_whole(void **state)
{
    (void)state;
    static const struct script scripts[] = {{{"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"}}};
    struct server server = begin(scripts, 1);
    struct http_client *client;
    struct buf body BUF_CLEANUP = {0};
    int code;
    buf_reserve(&body, 4 << 20);
    memset(body.data, 'x', 4 << 20);
    assert_int_equal(http_client_new(str_from(server.url), &client, NULL), 0);
    struct http_request request = {.method = "POST", .path = STR("/"), .body = {body.data, 4 << 20}};
    assert_int_equal(http_client_call(client, &request, &code, NULL), HTTP_ANSWERED);
    assert_int_equal(code, 201);
    http_client_free(client);
    end(&server);
}

static void tls_is_recognised_by_its_first_byte(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool tls;
    } rows[] = {{"\x15\x03\x03\x01\x02\x02\x28", true},
                {"\x16\x03\x03", true},
                {"HTTP/1.1 400 Bad\r\n\r\n", false},
                {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof address;
        char url[64];
        struct http_client *client;
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
        pid_t pid = fork();
        if (pid == 0) {
            char hello[128];
            int fd = accept(listener, NULL, NULL);
            if (read(fd, hello, sizeof hello) != 93 || write(fd, rows[i].bytes, strlen(rows[i].bytes)) < 0)
                _exit(1);
            _exit(0);
        }
        close(listener);
        snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
        assert_int_equal(http_client_new(str_from(url), &client, NULL), 0);
        assert_int_equal(http_client_meets_tls(client, 60000), rows[i].tls);
        http_client_free(client);
        end(&(struct server){.pid = pid});
    }
}

static void urls_are_checked(void **state)
{
    (void)state;
    static const char *const good[] = {"http://localhost", "http://10.0.0.1:7070", "http://[::1]:80/prefix/",
                                       "http://[::1]", "http://host/a/b"};
    static const char *const bad[] = {
        "https://host",      "http://",           "http://:80",       "http://host:",
        "http://host:0",     "http://host:65536", "http://host:8o",   "http://[::1",
        "http://[::1]x:80",  "http://[]:80",      "http://[::1]:",    "http:///path",
        "http://user@host/", "host:7070",         "http://host:1:2/", ""};
    struct http_client *client;
    struct error error;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(http_client_new(str_from(good[i]), &client, &error), 0);
        http_client_free(client);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(http_client_new(str_from(bad[i]), &client, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_serves_several_requests),
        cmocka_unit_test(a_connection_that_was_closed_meanwhile_is_replaced),
        cmocka_unit_test(failures_are_told_apart),
        cmocka_unit_test(a_silent_server_is_waited_for_no_longer_than_told),
        cmocka_unit_test(a_body_is_sent_whole),
        cmocka_unit_test(tls_is_recognised_by_its_first_byte),
        cmocka_unit_test(urls_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
