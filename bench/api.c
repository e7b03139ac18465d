/* api.c - what the API costs, beside a bare libmicrohttpd server in the same run: the limit of anything that
 * answers over it. Prints one JSON object a line.
 *
 *     bench_api [FOLDER]        (default: $TMPDIR or /var/tmp, for the controller's log)
 *
 * A real controller with clusters of 16,000 machines that are all away; the client is this process. Figures
 * of the controller (memory, CPU) are of its own process, from /proc.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/str.h"

#include "timing.h"

enum { ROUND_MS = 1500, WATCHES = 10000, FEW_WATCHES = 1000, READ_BYTES = 1 << 18, WRITERS = 64 };
enum { ATTACKERS = 4000, PROBES = 400 };

enum { MANY_MACHINES = 16000, FEW_MACHINES = 16, CROWD = 20000, BODY_MIB = 100, RECONNECTS = 1000000 };

static const char cluster[] = "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: bench}\nspec:\n"
                              "  machineNames: \"m-{n:05}\"\n  addresses: 127.0.0.1\n  pods:\n  - racks:\n   "
                              " - {machines: %d, chips: 4}\n";

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_api: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void say(const char *name, double value, const char *unit, double limit)
{
    (void)printf("{\"bench\":\"api\",\"case\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", name, value, unit);
    if (limit > 0)
        (void)printf(",\"limit\":%.4g,\"ratio_limit\":%.4g", limit, value / limit);
    (void)printf("}\n");
    (void)fflush(stdout);
}

/* --- processes --------------------------------------------------------------------------------- */

static int64_t memory_kib(pid_t pid, const char *key)
{
    char path[64], line[256];
    long long value = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        die(path);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtoll(line + strlen(key) + 1, NULL, 10);
    (void)fclose(file);
    return value;
}

/* The highest resident size from now on is counted anew. */
static void reset_peak(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "5", 1);
        (void)close(fd);
    }
}

static uint16_t free_port(void)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof place;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&place, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&place, &len) < 0)
        die("a free port");
    (void)close(fd);
    return ntohs(place.sin_port);
}

/* Comes from eight addresses in turn: one may have half of the connections at most. */
static int connect_to(uint16_t port)
{
    static uint32_t turn;
    struct sockaddr_in place = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + turn++ % 8)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&from, sizeof from) == 0 &&
        connect(fd, (struct sockaddr *)&place, sizeof place) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static void wait_for_port(uint16_t port)
{
    int64_t end_ns = now_ns() + INT64_C(30000000000);
    for (int fd = -1; fd < 0;) {
        fd = connect_to(port);
        if (fd < 0 && now_ns() > end_ns)
            die("the server does not start");
        if (fd < 0)
            (void)poll(NULL, 0, 20);
        else
            (void)close(fd);
    }
}

static pid_t start_controller(const char *folder, uint16_t port, int machines)
{
    char text[512], self[4096], program[4200], file[4200], data[4200], api[64], agents[64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0)
        die("/proc/self/exe");
    self[len] = 0;
    (void)snprintf(program, sizeof program, "%s/phalanx", dirname(self));
    (void)snprintf(file, sizeof file, "%s/cluster.yaml", folder);
    (void)snprintf(data, sizeof data, "%s/data", folder);
    (void)snprintf(api, sizeof api, "127.0.0.1:%u", port);
    (void)snprintf(agents, sizeof agents, "127.0.0.1:%u", free_port());
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int text_len = snprintf(text, sizeof text, cluster, machines);
    if (fd < 0 || write(fd, text, (size_t)text_len) < 0)
        die(file);
    (void)close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, 1);
        execl(program, "phalanx", "controller", "--data", data, "--cluster", file, "--api", api, "--agents",
              agents, (char *)NULL);
        die(program);
    }
    wait_for_port(port);
    return pid;
}

static enum MHD_Result hello(void *context, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *data, size_t *len,
                             void **request)
{
    static int seen;
    struct str *answer = context;
    (void)url, (void)method, (void)version, (void)data, (void)len;
    if (!*request) {
        *request = &seen;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->len, (void *)answer->data, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
}

/* A server that answers everything with these bytes. */
static pid_t start_hello(struct str answer, uint16_t port)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (!MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, port, NULL, NULL, hello, &answer,
                              MHD_OPTION_END))
            die("libmicrohttpd");
        for (;;)
            (void)pause();
    }
    wait_for_port(port);
    return pid;
}

static void stop(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* --- a client ---------------------------------------------------------------------------------- */

static void send_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t sent = write(fd, text, len);
        if (sent < 0)
            die("write");
        text += sent;
        len -= (size_t)sent;
    }
}

static char *chunk;

/* Reads one answer; returns its size with head, -1: the connection ended. Answers here end with their body's
 * length or with an empty chunk. */
static int64_t read_answer(int fd, struct buf *kept)
{
    int64_t total = 0, wanted = -1;
    bool chunked = false;
    char tail[8] = {0};
    struct buf head BUF_CLEANUP = {0};
    for (;;) {
        ssize_t len = read(fd, chunk, READ_BYTES);
        if (len <= 0)
            return -1;
        total += len;
        if (kept)
            buf_add(kept, chunk, (size_t)len);
        for (ssize_t i = len > 7 ? len - 7 : 0; i < len; i++) {
            memmove(tail, tail + 1, 6);
            tail[6] = chunk[i];
        }
        if (wanted < 0 && !chunked) {
            buf_add(&head, chunk, (size_t)len);
            const char *end = strstr(head.data, "\r\n\r\n");
            if (!end)
                continue;
            const char *length = strcasestr(head.data, "\r\ncontent-length: ");
            chunked = !length || length > end;
            wanted = chunked ? -1 : (end + 4 - head.data) + strtoll(length + 18, NULL, 10);
        }
        if (chunked ? memcmp(tail, "\r\n0\r\n\r\n", 7) == 0 : total >= wanted)
            return total;
    }
}

/* Answers a second and bytes a second on one connection. */
static void measure(uint16_t port, const char *path, const char *accept, double *ret_rate, double *ret_bytes)
{
    char text[512];
    int len =
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n\r\n", path, accept);
    int fd = connect_to(port);
    if (fd < 0)
        die("connect");
    int64_t start_ns = now_ns(), spent_ns = 0, bytes = 0, count = 0;
    while (spent_ns < ROUND_MS * INT64_C(1000000) || count < 3) {
        send_all(fd, text, (size_t)len);
        int64_t got = read_answer(fd, NULL);
        if (got < 0)
            die("read");
        bytes += got;
        count++;
        spent_ns = now_ns() - start_ns;
    }
    (void)close(fd);
    *ret_rate = (double)count * 1e9 / (double)spent_ns;
    *ret_bytes = (double)bytes * 1e9 / (double)spent_ns;
}

static void get_body(uint16_t port, const char *path, struct buf *out)
{
    char text[512];
    int len = snprintf(text, sizeof text, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
    int fd = connect_to(port);
    if (fd < 0)
        die("connect");
    send_all(fd, text, (size_t)len);
    ssize_t got;
    while ((got = read(fd, chunk, READ_BYTES)) > 0)
        buf_add(out, chunk, (size_t)got);
    (void)close(fd);
    const char *end = out->len ? strstr(out->data, "\r\n\r\n") : NULL;
    if (!end)
        die("answer");
    buf_drop_front(out, (size_t)(end + 4 - out->data));
}

/* --- cases ------------------------------------------------------------------------------------- */

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

/* Measures a path, beside a server that has the same bytes ready. */
static void compare(const char *name, uint16_t port, pid_t controller, const char *path, const char *accept,
                    bool list)
{
    struct buf body BUF_CLEANUP = {0};
    char title[160];
    double rate, bytes, limit_rate, limit_bytes;
    uint16_t other = free_port();
    get_body(port, path, &body);
    pid_t limit = start_hello(buf_str(&body), other);
    measure(other, "/", accept, &limit_rate, &limit_bytes);
    stop(limit);
    reset_peak(controller);
    int64_t before_kib = memory_kib(controller, "VmRSS");
    measure(port, path, accept, &rate, &bytes);
    int64_t peak_kib = memory_kib(controller, "VmHWM");
    if (!list) {
        say(name, rate, "answers/s", limit_rate);
        return;
    }
    (void)snprintf(title, sizeof title, "%s: bytes", name);
    say(title, bytes / 1e6, "MB/s", limit_bytes / 1e6);
    (void)snprintf(title, sizeof title, "%s: one list", name);
    say(title, 1000 / rate, "ms", 0);
    (void)snprintf(title, sizeof title, "%s: memory growth", name);
    say(title, (double)(peak_kib - before_kib) / 1024, "MiB", 0);
}

static const char *write_text(char *text, size_t size, int number, int value)
{
    char body[256];
    int len =
        snprintf(body, sizeof body,
                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c-%d\"},\"data\":{"
                 "\"a\":\"%d\"}}",
                 number, value);
    (void)snprintf(
        text, size,
        "%s /api/v1/namespaces/default/configmaps%s%.0d HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        "application/json\r\nContent-Length: %d\r\n\r\n%s",
        value ? "PUT" : "POST", value ? "/c-" : "", value ? number : 0, len, body);
    return text;
}

/* Each of several clients makes an object and then changes it again and again: every change is durable before
 * it is answered. */
static void measure_writes(uint16_t port)
{
    struct pollfd sockets[WRITERS];
    char text[1024];
    int answered = 0, refused = 0, value = 0;
    for (int i = 0; i < WRITERS; i++) {
        sockets[i] = (struct pollfd){.fd = connect_to(port), .events = POLLIN};
        (void)write_text(text, sizeof text, i + 1, 0);
        send_all(sockets[i].fd, text, strlen(text));
    }
    int64_t start_ns = now_ns(), spent_ns = 0;
    while (spent_ns < ROUND_MS * INT64_C(1000000)) {
        (void)poll(sockets, WRITERS, 1000);
        for (int i = 0; i < WRITERS; i++) {
            struct buf answer BUF_CLEANUP = {0};
            if (!(sockets[i].revents & POLLIN))
                continue;
            if (read_answer(sockets[i].fd, &answer) < 0)
                die("write answer");
            refused += strncmp(answer.data, "HTTP/1.1 20", 11) != 0;
            answered++;
            (void)write_text(text, sizeof text, i + 1, ++value);
            send_all(sockets[i].fd, text, strlen(text));
        }
        spent_ns = now_ns() - start_ns;
    }
    for (int i = 0; i < WRITERS; i++)
        (void)close(sockets[i].fd);
    if (refused)
        (void)fprintf(stderr, "bench_api: %d of %d writes refused\n", refused, answered);
    say("writes through the log, 64 clients", (double)answered * 1e9 / (double)spent_ns, "writes/s", 0);
}

static void read_away(int fd, int64_t wait_ms)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    if (poll(&item, 1, (int)wait_ms) == 1)
        (void)!read(fd, chunk, READ_BYTES);
}

/* `count` idle watches; what each holds, and one change to all of them. */
static void measure_watches(uint16_t port, pid_t controller, int count)
{
    static const char text[] = "GET /api/v1/namespaces/default/configmaps?watch=true&resourceVersion=%s "
                               "HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char title[96], request[256], version[32] = "";
    struct buf list BUF_CLEANUP = {0};
    get_body(port, "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=none", &list);
    const char *place = strstr(list.data, "\"resourceVersion\":\"");
    if (place)
        (void)snprintf(version, sizeof version, "%.*s", (int)strcspn(place + 19, "\""), place + 19);
    int len = snprintf(request, sizeof request, text, version);
    int *sockets = mem_alloc((size_t)count * sizeof *sockets), epoll = epoll_create1(EPOLL_CLOEXEC);
    int64_t before_kib = memory_kib(controller, "VmRSS");
    for (int i = 0; i < count; i++) {
        sockets[i] = connect_to(port);
        if (sockets[i] < 0)
            die("a watch");
        send_all(sockets[i], request, (size_t)len);
        read_away(sockets[i], 10000); /* the head: the watch stands */
        struct epoll_event event = {.events = EPOLLIN, .data.fd = sockets[i]};
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
    }
    int64_t after_kib = memory_kib(controller, "VmRSS");
    (void)snprintf(title, sizeof title, "%d idle watches: memory each", count);
    say(title, (double)(after_kib - before_kib) / count, "KiB", 0);
    char body[1024];
    int writer = connect_to(port), reached = 0;
    (void)write_text(body, sizeof body, 10000000 + count, 0);
    int64_t start_ns = now_ns();
    send_all(writer, body, strlen(body));
    while (reached < count && now_ns() - start_ns < INT64_C(20000000000)) {
        struct epoll_event events[256];
        int ready = epoll_wait(epoll, events, 256, 1000);
        for (int i = 0; i < ready; i++) {
            (void)!read(events[i].data.fd, chunk, READ_BYTES);
            (void)epoll_ctl(epoll, EPOLL_CTL_DEL, events[i].data.fd, NULL);
            reached++;
        }
    }
    (void)snprintf(title, sizeof title, "one change to %d watchers, the last one has it", reached);
    say(title, (double)(now_ns() - start_ns) / 1e6, "ms", 0);
    (void)close(writer);
    for (int i = 0; i < count; i++)
        (void)close(sockets[i]);
    (void)close(epoll);
    mem_free(sockets);
}

/* Watchers that never read: they must cost nobody anything. */
static void measure_slow(uint16_t port, pid_t controller)
{
    enum { SLOW = 200 };
    int sockets[SLOW];
    char text[1024];
    static const char watch[] =
        "GET /api/v1/namespaces/default/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int small = 4096;
    int64_t before_kib = memory_kib(controller, "VmRSS");
    for (int i = 0; i < SLOW; i++) {
        sockets[i] = connect_to(port);
        (void)setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        send_all(sockets[i], watch, sizeof watch - 1);
    }
    int fd = connect_to(port);
    int64_t worst_ns = 0;
    for (int i = 0; i < 500; i++) {
        (void)write_text(text, sizeof text, 20000000 + i, 0);
        int64_t start_ns = now_ns();
        send_all(fd, text, strlen(text));
        if (read_answer(fd, NULL) < 0)
            die("a write beside slow watchers");
        int64_t spent_ns = now_ns() - start_ns;
        worst_ns = i > 10 && spent_ns > worst_ns ? spent_ns : worst_ns;
    }
    say("200 watchers that do not read: slowest of 500 writes", (double)worst_ns / 1e6, "ms", 0);
    say("200 watchers that do not read: memory each",
        (double)(memory_kib(controller, "VmRSS") - before_kib) / SLOW, "KiB", 0);
    (void)close(fd);
    for (int i = 0; i < SLOW; i++)
        (void)close(sockets[i]);
}

/* --- the controller's own count of how long each turn of its loop was busy ------------------------- */

enum { TURN_LIMITS_MAX = 32 };
struct turns {
    double limits_ms[TURN_LIMITS_MAX];
    uint64_t below[TURN_LIMITS_MAX];
    int count;
};

static struct turns read_turns(uint16_t port)
{
    static const char name[] = "phalanx_loop_turn_seconds_bucket{le=\"";
    struct turns turns = {0};
    struct buf text BUF_CLEANUP = {0};
    get_body(port, "/metrics", &text);
    for (const char *at = text.data; at && (at = strstr(at, name)) && turns.count < TURN_LIMITS_MAX;) {
        char *end;
        at += sizeof name - 1;
        turns.limits_ms[turns.count] = strncmp(at, "+Inf", 4) == 0 ? 1e9 : strtod(at, NULL) * 1e3;
        at = strchr(at, ' ');
        turns.below[turns.count++] = at ? strtoull(at, &end, 10) : 0;
    }
    return turns;
}

/* The upper limit of the bucket in which the 99th of a hundred turns since `before` lies. */
static void say_turns(const char *name, uint16_t port, const struct turns *before)
{
    struct turns now = read_turns(port);
    char title[128];
    uint64_t all = now.count ? now.below[now.count - 1] - before->below[now.count - 1] : 0;
    int i = 0;
    while (i < now.count - 1 && (now.below[i] - before->below[i]) * 100 < all * 99)
        i++;
    (void)snprintf(title, sizeof title, "%s: the loop's turns, p99 at most", name);
    say(title, now.limits_ms[i], "ms", 0);
}

/* --- attacks: what a small durable write costs meanwhile, one after the other --------------------- */

static void say_times(const char *name, int64_t *times_ns, int count)
{
    char title[128];
    qsort(times_ns, (size_t)count, sizeof *times_ns, ascending_ns);
    (void)snprintf(title, sizeof title, "%s: a write, p50", name);
    say(title, (double)times_ns[count / 2] / 1e6, "ms", 0);
    (void)snprintf(title, sizeof title, "%s: a write, p99", name);
    say(title, (double)times_ns[count * 99 / 100] / 1e6, "ms", 0);
}

static int64_t probe(int fd, int number)
{
    char text[1024];
    (void)write_text(text, sizeof text, number, 0);
    int64_t start_ns = now_ns();
    send_all(fd, text, strlen(text));
    if (read_answer(fd, NULL) < 0)
        die("a write under attack");
    return now_ns() - start_ns;
}

/* Requests that come a byte at a time and never to their end ("slowloris"): every write goes with a byte for
 * each of ten of them. */
static void measure_dribble(uint16_t port, pid_t controller)
{
    static int sockets[ATTACKERS];
    static int64_t quiet_ns[PROBES], times_ns[PROBES];
    static const char start[] = "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\nX-A: ";
    int fd = connect_to(port);
    for (int i = 0; i < PROBES; i++)
        quiet_ns[i] = probe(fd, 30000000 + i);
    say_times("nobody else", quiet_ns, PROBES);
    int64_t before_kib = memory_kib(controller, "VmRSS");
    struct turns before = read_turns(port);
    for (int i = 0; i < ATTACKERS; i++) {
        sockets[i] = connect_to(port);
        send_all(sockets[i], start, sizeof start - 1);
    }
    for (int i = 0; i < PROBES; i++) {
        for (int k = 0; k < ATTACKERS / PROBES; k++)
            (void)!send(sockets[i * (ATTACKERS / PROBES) + k], "a", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        times_ns[i] = probe(fd, 31000000 + i);
    }
    say_times("4000 half requests, a byte at a time", times_ns, PROBES);
    say_turns("4000 half requests, a byte at a time", port, &before);
    say("4000 half requests: memory each", (double)(memory_kib(controller, "VmRSS") - before_kib) / ATTACKERS,
        "KiB", 0);
    for (int i = 0; i < ATTACKERS; i++)
        (void)close(sockets[i]);
    (void)close(fd);
}

/* All watches break at once and come again, each from the version it had: `count` of them, a write after each
 * twenty-fifth. */
static void measure_reconnect(uint16_t port, int count)
{
    static const char text[] =
        "GET /api/v1/nodes?watch=true&resourceVersion=%s HTTP/1.1\r\nHost: localhost\r\n\r\n";
    enum { EACH = 25 };
    char title[96], request[256], version[32] = "";
    struct buf list BUF_CLEANUP = {0};
    get_body(port, "/api/v1/nodes?fieldSelector=metadata.name=none", &list);
    const char *place = strstr(list.data, "\"resourceVersion\":\"");
    if (place)
        (void)snprintf(version, sizeof version, "%.*s", (int)strcspn(place + 19, "\""), place + 19);
    int len = snprintf(request, sizeof request, text, version), fd = connect_to(port);
    int *sockets = mem_alloc((size_t)count * sizeof *sockets);
    int64_t *times_ns = mem_alloc((size_t)(count / EACH + 1) * sizeof *times_ns), start_ns = 0;
    for (int round = 0; round < 2; round++) {
        start_ns = now_ns();
        for (int i = 0; i < count; i++) {
            if (round > 0)
                (void)close(sockets[i]);
            sockets[i] = connect_to(port);
            if (sockets[i] < 0)
                die("a watch that comes again");
            send_all(sockets[i], request, (size_t)len);
            if (i % EACH == 0)
                times_ns[i / EACH] = probe(fd, 40000000 + round * 1000000 + i);
        }
        for (int i = 0; i < count; i++)
            read_away(sockets[i], 10000); /* the head: the watch stands */
    }
    (void)snprintf(title, sizeof title, "%d watches that break and come again", count);
    say(title, count / ((double)(now_ns() - start_ns) / 1e9), "1/s", 0);
    say_times(title, times_ns, (count + EACH - 1) / EACH);
    for (int i = 0; i < count; i++)
        (void)close(sockets[i]);
    (void)close(fd);
    mem_free(sockets);
    mem_free(times_ns);
}

/* As many connections as the limit of open files lets the two of us have, up to CROWD, that say nothing. */
static void measure_crowd(uint16_t port, pid_t controller, int files)
{
    static int64_t times_ns[PROBES];
    char title[96];
    int wanted = files - 400 < CROWD ? files - 400 : CROWD, open = 0;
    int *sockets = mem_alloc((size_t)wanted * sizeof *sockets);
    int64_t before_kib = memory_kib(controller, "VmRSS");
    struct turns before = read_turns(port);
    while (open < wanted && (sockets[open] = connect_to(port)) >= 0)
        open++;
    int fd = connect_to(port); /* last: those that say nothing are ended after a while */
    for (int i = 0; i < PROBES; i++)
        times_ns[i] = probe(fd, 50000000 + i);
    (void)snprintf(title, sizeof title, "%d open connections", open);
    say_times(title, times_ns, PROBES);
    say_turns(title, port, &before);
    (void)snprintf(title, sizeof title, "%d open connections: memory each", open);
    say(title, (double)(memory_kib(controller, "VmRSS") - before_kib) / (open ? open : 1), "KiB", 0);
    for (int i = 0; i < open; i++)
        (void)close(sockets[i]);
    (void)close(fd);
    mem_free(sockets);
}

/* A body of 100 MiB, sent as fast as it is taken. */
static void measure_body(uint16_t port, pid_t controller)
{
    static const char head[] = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n";
    char text[256];
    static int64_t times_ns[PROBES];
    int count = 0, body = connect_to(port), fd = connect_to(port);
    struct turns before = read_turns(port);
    reset_peak(controller);
    int64_t before_kib = memory_kib(controller, "VmHWM"), left = (int64_t)BODY_MIB << 20;
    send_all(body, text, (size_t)snprintf(text, sizeof text, head, BODY_MIB << 20));
    memset(chunk, ' ', READ_BYTES);
    while (left > 0 && count < PROBES) {
        ssize_t sent = send(body, chunk, READ_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);
        left -= sent > 0 ? sent : 0;
        if (sent < 0 && errno != EAGAIN)
            break; /* refused before its end */
        times_ns[count] = probe(fd, 51000000 + count);
        count++;
    }
    say_times("a body of 100 MiB", times_ns, count);
    say_turns("a body of 100 MiB", port, &before);
    say("a body of 100 MiB: memory at most", (double)(memory_kib(controller, "VmHWM") - before_kib) / 1024,
        "MiB", 0);
    (void)close(body);
    (void)close(fd);
}

/* A million watches' worth of reconnects: each connection asks for a watch and goes away. */
static void measure_churn(uint16_t port, pid_t controller)
{
    static const char watch[] = "GET /api/v1/nodes?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n";
    enum { ABREAST = 256, EACH = 2500 };
    static int sockets[ABREAST];
    static int64_t times_ns[RECONNECTS / EACH + 1];
    const char *asked = getenv("PHX_BENCH_RECONNECTS");
    int64_t count = 0;
    bool told = asked && str_to_i64(str_from(asked), 1, RECONNECTS, &count);
    int total = told ? (int)count : RECONNECTS / 10, fd = connect_to(port), probes = 0;
    char title[96];
    struct turns before = read_turns(port);
    int64_t before_kib = memory_kib(controller, "VmRSS"), start_ns = now_ns();
    memset(sockets, -1, sizeof sockets);
    for (int i = 0; i < total; i++) {
        int *place = &sockets[i % ABREAST];
        struct linger reset = {1, 0}; /* no port is left waiting */
        if (*place >= 0) {
            (void)setsockopt(*place, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            (void)close(*place);
        }
        *place = connect_to(port);
        if (*place >= 0)
            send_all(*place, watch, sizeof watch - 1);
        if (i % EACH == 0)
            times_ns[probes++] = probe(fd, 52000000 + i);
    }
    (void)snprintf(title, sizeof title, "%d watches that come and go", total);
    say(title, total / ((double)(now_ns() - start_ns) / 1e9), "1/s", 0);
    say_times(title, times_ns, probes);
    say_turns(title, port, &before);
    say("watches that come and go: memory that stays",
        (double)(memory_kib(controller, "VmRSS") - before_kib) / 1024, "MiB", 0);
    for (int i = 0; i < ABREAST; i++)
        if (sockets[i] >= 0)
            (void)close(sockets[i]);
    (void)close(fd);
}

static int drop(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

int main(int argc, char **argv)
{
    char folder[4096];
    const char *base = argc > 1 ? argv[1] : getenv("TMPDIR");
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)snprintf(folder, sizeof folder, "%s/phx-bench-api-XXXXXX", base ? base : "/var/tmp");
    if (!mkdtemp(folder))
        die(folder);
    chunk = mem_alloc(READ_BYTES);
    uint16_t port = free_port();
    pid_t controller = start_controller(folder, port, MANY_MACHINES);
    compare("GET of one node", port, controller, "/api/v1/nodes/m-00001", "application/json", false);
    compare("list of 16000 nodes as JSON", port, controller, "/api/v1/nodes", "application/json", true);
    compare("list of 16000 nodes as Table", port, controller, "/api/v1/nodes", TABLE, true);
    measure_slow(port, controller);
    measure_dribble(port, controller);
    measure_watches(port, controller, FEW_WATCHES);
    /* With so many machines the controller keeps half of its files for their agents. */
    int most = files.rlim_cur / 2 > WATCHES + 100 ? WATCHES : (int)files.rlim_cur / 2 - 100;
    say("connections that RLIMIT_NOFILE lets the controller serve", (double)(files.rlim_cur / 2), "", 0);
    measure_watches(port, controller, most);
    measure_reconnect(port, most);
    measure_writes(port);
    stop(controller);
    (void)nftw(folder, drop, 16, FTW_DEPTH | FTW_PHYS);
    if (mkdir(folder, 0700) < 0)
        die(folder);
    port = free_port();
    controller = start_controller(folder, port, FEW_MACHINES);
    measure_body(port, controller);
    measure_crowd(port, controller, (int)files.rlim_cur);
    measure_churn(port, controller);
    stop(controller);
    (void)nftw(folder, drop, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(chunk);
    return 0;
}
