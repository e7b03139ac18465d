/* client.h - what tests of the API over real sockets share: a client, and a server on a real core around each
 * test. */
#ifndef PHX_TESTS_HOST_API_CLIENT_H
#define PHX_TESTS_HOST_API_CLIENT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/api/fake_host.h"

#define CLUSTER "clusters/mini.yaml"
#define JOBSETS "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"

/* --- a client that lets the server's loop run while it waits ----------------------------------- */

struct client {
    struct fake_host *host;
    int fd;
    struct buf in;   /* as received */
    struct buf body; /* decoded */
    int code;
    bool chunked, closed;
    size_t head_len, parsed;
    int64_t length;
    struct arena arena;
    char *head;
};

/* Connects from an address of 127/8, and sends the bytes of a request as they stand. */
static inline void client_send_from(struct client *client, struct fake_host *host, uint32_t from,
                                    struct str text)
{
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(api_port(host->api)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *client = (struct client){.host = host, .length = -1};
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client->fd >= 0);
    assert_int_equal(bind(client->fd, (struct sockaddr *)&source, sizeof source), 0);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof address), 0);
    for (size_t at = 0; at < text.len;) {
        ssize_t len = send(client->fd, text.data + at, text.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (len > 0)
            at += (size_t)len;
        else if (errno != EAGAIN)
            break;
        uv_run(&host->loop, UV_RUN_NOWAIT);
    }
}

static inline void client_send_text(struct client *client, struct fake_host *host, struct str text)
{
    client_send_from(client, host, INADDR_LOOPBACK, text);
}

static inline void client_send(struct client *client, struct fake_host *host, const char *method,
                               const char *url, const char *headers, const char *body)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, url, headers);
    if (body)
        buf_printf(&text, "%sContent-Length: %zu\r\n",
                   strcasestr(headers, "content-type:") ? "" : "Content-Type: application/json\r\n",
                   strlen(body));
    buf_printf(&text, "\r\n%s", body ? body : "");
    client_send_text(client, host, buf_str(&text));
}

/* Decodes what has come so far; true when the answer is whole. */
static inline bool client_parse(struct client *client)
{
    if (!client->head_len) {
        char *end = client->in.data ? strstr(client->in.data, "\r\n\r\n") : NULL;
        if (!end)
            return false;
        client->head_len = (size_t)(end - client->in.data) + 4;
        client->head = arena_strdup(&client->arena, (struct str){client->in.data, client->head_len});
        client->code = (int)strtol(client->in.data + 9, NULL, 10);
        client->chunked = strcasestr(client->head, "transfer-encoding: chunked") != NULL;
        const char *length = strcasestr(client->head, "content-length:");
        client->length = length ? strtoll(length + 15, NULL, 10) : client->code == 304 ? 0 : -1;
        client->parsed = client->head_len;
    }
    if (!client->chunked) {
        buf_add(&client->body, client->in.data + client->parsed, client->in.len - client->parsed);
        client->parsed = client->in.len;
        return client->length >= 0 ? (int64_t)client->body.len >= client->length : client->closed;
    }
    for (;;) {
        char *line = client->in.data + client->parsed, *end = strstr(line, "\r\n");
        if (!end)
            return false;
        size_t len = strtoul(line, NULL, 16), start = (size_t)(end - client->in.data) + 2;
        if (client->in.len < start + len + 2)
            return false;
        if (len == 0)
            return true;
        buf_add(&client->body, client->in.data + start, len);
        client->parsed = start + len + 2;
    }
}

/* Reads what is there; true when there is nothing to wait for any more. */
static inline bool client_read(struct client *client, const char *text, bool *ret_found)
{
    char chunk[65536];
    ssize_t len;
    while ((len = recv(client->fd, chunk, sizeof chunk, MSG_DONTWAIT)) > 0)
        buf_add(&client->in, chunk, (size_t)len);
    client->closed |= len == 0 || errno != EAGAIN;
    bool whole = client_parse(client), found = text && client->body.data && strstr(client->body.data, text);
    *ret_found = text ? found : whole;
    return found || whole || client->closed;
}

/* Runs the loop until the answer is whole, or (`text` given) the body has this text. */
static inline bool client_wait(struct client *client, const char *text)
{
    bool found = false;
    RUN_UNTIL(client->host, client_read(client, text, &found));
    return found;
}

static inline void client_done(struct client *client)
{
    close(client->fd);
    buf_done(&client->in);
    buf_done(&client->body);
    arena_done(&client->arena);
}

/* One request; the answer's body as a document that lives with `arena` (NULL if it is no JSON). */
static inline int ask(struct fake_host *host, struct arena *arena, const char *method, const char *url,
                      const char *headers, const char *body, struct doc **ret_doc)
{
    struct client client;
    struct error error = {0};
    client_send(&client, host, method, url, headers, body);
    assert_true(client_wait(&client, NULL));
    if (ret_doc) {
        *ret_doc = NULL;
        if (json_parse(arena, arena_str(arena, buf_str(&client.body)), ret_doc, &error) < 0)
            *ret_doc = NULL;
    }
    int code = client.code;
    client_done(&client);
    return code;
}

static inline bool text_is(const struct doc *node, const char *text)
{
    return node && node->kind == DOC_STRING && str_is(node->text, text);
}

static inline char *jobset_json(struct arena *arena, const char *name, const char *more)
{
    return arena_strdup(
        arena,
        arena_printf(
            arena,
            "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"%s\","
            "\"labels\":{\"team\":\"a\"}},\"spec\":{%s\"replicatedJobs\":[{\"name\":\"workers\",\"replicas\":"
            "2,"
            "\"template\":{\"spec\":{\"parallelism\":2,\"completions\":2,\"backoffLimit\":0,\"template\":{"
            "\"spec\":{"
            "\"containers\":[{\"name\":\"main\",\"image\":\"img\",\"command\":[\"sleep\",\"1\"],"
            "\"resources\":{"
            "\"limits\":{\"google.com/tpu\":\"1\"}}}]}}}}}]}}",
            name, more));
}

#define NONE "Accept: application/json\r\n"
#define TABLE                                                                                                \
    "Accept: "                                                                                               \
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,"        \
    "application/json\r\n"

static inline void create(struct fake_host *host, const char *name)
{
    struct arena arena ARENA_CLEANUP = {0};
    assert_int_equal(ask(host, &arena, "POST", JOBSETS, NONE, jobset_json(&arena, name, ""), NULL), 201);
}

static inline int setup(void **state)
{
    struct fake_host *host = mem_alloc(sizeof *host);
    fake_start(host, CLUSTER, 0);
    *state = host;
    return 0;
}

static inline int teardown(void **state)
{
    fake_stop(*state);
    mem_free(*state);
    return 0;
}

#endif
