/* ha_log.c - records a second that the log takes in groups of 100: on etcd, beside transactions of the same
 * bytes that etcd takes from a client that does nothing else (the limit), and on SQLite (the peer). The three
 * take turns. A part of bench/run ha, which starts the members:
 *
 *     bench_ha_log http://127.0.0.1:PORT FOLDER
 *
 * Prints the three rates, medians of the turns: "ETCD OWN SQLITE\n".
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/check.h"
#include "host/store/etcd/etcd.h"
#include "host/store/log_store.h"

#include "timing.h"

enum { GROUP = 100, RECORD_BYTES = 200, ROUNDS = 5, ROUND_MS = 400, HEAD_BYTES = 64, LEASE_S = 120 };

static struct store_record records[GROUP];
static char bytes[GROUP][RECORD_BYTES];

static void die(const struct error *error)
{
    (void)fprintf(stderr, "bench_ha_log: %s\n", error->text);
    exit(1);
}

/* Records a second over one round of appends. */
static double append_round(const struct log_store *log)
{
    struct error error;
    uint64_t done = 0;
    int64_t start_ns = now_ns(), spent_ns = 0;
    while (spent_ns < ROUND_MS * INT64_C(1000000)) {
        uint64_t first = log->ends(log->context).last + 1;
        for (size_t i = 0; i < GROUP; i++)
            records[i] = (struct store_record){first + i, start_ns, {bytes[i], RECORD_BYTES}};
        if (log->append(log->context, records, GROUP, &error) < 0)
            die(&error);
        done += GROUP;
        spent_ns = now_ns() - start_ns;
    }
    return (double)done * 1e9 / (double)spent_ns;
}

/* --- etcd's own rate ---------------------------------------------------------------------------------- */

static int connect_to(const char *url)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    const char *colon = strrchr(url, ':');
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(colon && fd >= 0);
    at.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static void put_key(struct buf *out, const char *key, size_t len)
{
    struct buf value BUF_CLEANUP = {0};
    while (value.len < len)
        buf_add_char(&value, 'v');
    buf_add_str(out, STR("{\"requestPut\":{\"key\":\""));
    base64_encode(str_from(key), out);
    buf_add_str(out, STR("\",\"value\":\""));
    base64_encode(buf_str(&value), out);
    buf_add_str(out, STR("\"}}"));
}

/* A transaction that puts as many bytes as the log's: a group, and a small key beside it. */
static void make_request(struct buf *out, const char *url)
{
    struct buf body BUF_CLEANUP = {0};
    buf_add_str(&body, STR("{\"success\":["));
    put_key(&body, "/bench/group", (size_t)GROUP * (RECORD_BYTES + 16));
    buf_add_char(&body, ',');
    put_key(&body, "/bench/head", HEAD_BYTES);
    buf_add_str(&body, STR("]}"));
    buf_printf(out,
               "POST /v3/kv/txn HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n",
               url + strlen("http://"), body.len);
    buf_add_str(out, buf_str(&body));
}

/* Sends it and reads the answer, which is small and comes whole or in few pieces. */
static void ask_once(int fd, struct str request)
{
    char answer[4096];
    size_t len = 0;
    const char *end = NULL, *length;
    for (size_t sent = 0; sent < request.len;) {
        ssize_t count = send(fd, request.data + sent, request.len - sent, MSG_NOSIGNAL);
        CHECK(count > 0);
        sent += (size_t)count;
    }
    for (;;) {
        ssize_t count = recv(fd, answer + len, sizeof answer - 1 - len, 0);
        CHECK(count > 0);
        len += (size_t)count;
        answer[len] = 0;
        end = strstr(answer, "\r\n\r\n");
        length = strstr(answer, "Content-Length: ");
        CHECK(len < sizeof answer - 1);
        if (end && length && len >= (size_t)(end + 4 - answer) + strtoul(length + 16, NULL, 10))
            break;
    }
    CHECK(strncmp(answer, "HTTP/1.1 200", 12) == 0 && strstr(end, "succeeded"));
}

static double own_round(int fd, struct str request)
{
    uint64_t done = 0;
    int64_t start_ns = now_ns(), spent_ns = 0;
    while (spent_ns < ROUND_MS * INT64_C(1000000)) {
        ask_once(fd, request);
        done += GROUP;
        spent_ns = now_ns() - start_ns;
    }
    return (double)done * 1e9 / (double)spent_ns;
}

int main(int argc, char **argv)
{
    struct buf path BUF_CLEANUP = {0}, request BUF_CLEANUP = {0};
    double on_etcd[ROUNDS], own[ROUNDS], on_sqlite[ROUNDS];
    struct error error;
    struct etcd_log *log;
    struct etcd_lease *lease;
    struct store *store;
    if (argc != 3 || strncmp(argv[1], "http://", 7) != 0) {
        (void)fprintf(stderr, "usage: bench_ha_log http://127.0.0.1:PORT FOLDER\n");
        return 2;
    }
    struct etcd_options options = {.endpoints = argv[1], .prefix = "/bench-log/", .lease_s = LEASE_S};
    if (etcd_log_open(&options, &log, &error) < 0 || etcd_lease_new(&options, &lease, &error) < 0 ||
        etcd_log_lead(log, lease, STR("bench"), NULL, &error) < 0)
        die(&error);
    buf_printf(&path, "%s/log.db", argv[2]);
    if (store_open(path.data, NULL, &store, &error) < 0)
        die(&error);
    struct log_store etcd = etcd_log_store(log), sqlite = log_store_sqlite(store);
    int fd = connect_to(argv[1]);
    make_request(&request, argv[1]);
    for (int i = 0; i < ROUNDS; i++) {
        own[i] = own_round(fd, buf_str(&request));
        on_etcd[i] = append_round(&etcd);
        on_sqlite[i] = append_round(&sqlite);
    }
    printf("%.1f %.1f %.1f\n", median(on_etcd, ROUNDS), median(own, ROUNDS), median(on_sqlite, ROUNDS));
    close(fd);
    etcd.close(etcd.context);
    etcd_lease_end(lease);
    sqlite.close(sqlite.context);
    return 0;
}
