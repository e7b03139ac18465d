/* members.h - real etcd processes for tests: started on ports of their own, killed, stopped, started again.
 * They end with the test, whatever way it ends. Included by one test program at a time.
 *
 *     struct members members;
 *     members_start(&members, 3, NULL);           // skips the test program where there is no etcd
 *     ... members.options.endpoints ...
 *     members_stop(&members);
 */
#ifndef PHX_TESTS_HOST_STORE_ETCD_MEMBERS_H
#define PHX_TESTS_HOST_STORE_ETCD_MEMBERS_H

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/units.h"
#include "host/store/etcd/client.h"
#include "host/store/sample.h"

enum { MEMBERS_MAX = 3, MEMBERS_SKIPPED = 77 };

struct members {
    int count;
    pid_t pids[MEMBERS_MAX]; /* 0: it is not running */
    uint16_t client_ports[MEMBERS_MAX], peer_ports[MEMBERS_MAX];
    char folder[64], endpoints[256], cluster[512];
    const char *quota; /* bytes, as text; NULL: etcd's default */
    struct etcd_options options;
};

/* Returns the etcd under test: $PHX_ETCD, or Debian's. */
static inline const char *members_etcd(void)
{
    const char *path = getenv("PHX_ETCD");
    return path && path[0] ? path : "/usr/bin/etcd";
}

/* Skips the test program with a line that says why, where etcd is missing. */
static inline void members_need(void)
{
    if (access(members_etcd(), X_OK) == 0)
        return;
    printf("skipped: there is no %s; Debian's package etcd-server has one\n", members_etcd());
    exit(MEMBERS_SKIPPED);
}

static inline uint16_t members_port(int *ret_fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_fd = fd;
    return ntohs(address.sin_port);
}

/* Starts one member, or starts it again on what it had written. */
static inline void members_start_one(struct members *members, int i)
{
    char name[16], dir[96], client[48], peer[48], log[112];
    snprintf(name, sizeof name, "m%d", i);
    snprintf(dir, sizeof dir, "%s/m%d", members->folder, i);
    snprintf(log, sizeof log, "%s/m%d.log", members->folder, i);
    snprintf(client, sizeof client, "http://127.0.0.1:%u", members->client_ports[i]);
    snprintf(peer, sizeof peer, "http://127.0.0.1:%u", members->peer_ports[i]);
    pid_t parent = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        const char *argv[] = {"etcd",
                              "--name",
                              name,
                              "--data-dir",
                              dir,
                              "--listen-client-urls",
                              client,
                              "--advertise-client-urls",
                              client,
                              "--listen-peer-urls",
                              peer,
                              "--initial-advertise-peer-urls",
                              peer,
                              "--initial-cluster",
                              members->cluster,
                              "--heartbeat-interval",
                              "100",
                              "--election-timeout",
                              "1000",
                              members->quota ? "--quota-backend-bytes" : NULL,
                              members->quota,
                              NULL};
        execv(members_etcd(), (char **)argv);
        _exit(1);
    }
    members->pids[i] = pid;
}

/* Waits until a majority answers. */
static inline void members_wait(struct members *members)
{
    struct etcd_log *log;
    struct error error;
    struct etcd_options options = members->options;
    options.patience_ns = 60 * NS_PER_SECOND;
    if (etcd_log_open(&options, &log, &error) < 0)
        fail_msg("%s", error.text);
    etcd_log_close(log);
}

static inline void members_start(struct members *members, int count, const char *quota)
{
    int fds[2 * MEMBERS_MAX];
    *members = (struct members){.count = count, .quota = quota};
    /* In memory: killed processes lose nothing there, and no other program's disk writes are waited for. */
    (void)snprintf(members->folder, sizeof members->folder, "%s/phalanx-etcd-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : P_tmpdir);
    assert_non_null(mkdtemp(members->folder));
    for (int i = 0; i < count; i++) {
        members->client_ports[i] = members_port(&fds[2 * i]);
        members->peer_ports[i] = members_port(&fds[2 * i + 1]);
        size_t len = strlen(members->endpoints), cluster = strlen(members->cluster);
        snprintf(members->endpoints + len, sizeof members->endpoints - len, "%shttp://127.0.0.1:%u",
                 i ? "," : "", members->client_ports[i]);
        snprintf(members->cluster + cluster, sizeof members->cluster - cluster, "%sm%d=http://127.0.0.1:%u",
                 i ? "," : "", i, members->peer_ports[i]);
    }
    for (int i = 0; i < 2 * count; i++)
        close(fds[i]);
    members->options.endpoints = members->endpoints;
    for (int i = 0; i < count; i++)
        members_start_one(members, i);
    members_wait(members);
}

static inline void members_kill(struct members *members, int i)
{
    if (!members->pids[i])
        return;
    kill(members->pids[i], SIGKILL);
    waitpid(members->pids[i], NULL, 0);
    members->pids[i] = 0;
}

static inline void members_remove(const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        DIR *dir = opendir(path);
        struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
            struct buf inner BUF_CLEANUP = {0};
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            buf_printf(&inner, "%s/%s", path, entry->d_name);
            members_remove(inner.data);
        }
        if (dir)
            closedir(dir);
        (void)rmdir(path);
    } else {
        (void)unlink(path);
    }
}

static inline void members_stop(struct members *members)
{
    for (int i = 0; i < members->count; i++)
        members_kill(members, i);
    members_remove(members->folder);
}

/* The member that leads, by its own word. */
static inline int members_leader(struct members *members)
{
    for (;;)
        for (int i = 0; i < members->count; i++) {
            struct etcd_options options = {.endpoints = NULL};
            char endpoint[64];
            struct etcd_client *client;
            struct arena arena ARENA_CLEANUP = {0};
            struct doc *reply;
            if (!members->pids[i])
                continue;
            snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", members->client_ports[i]);
            options.endpoints = endpoint;
            assert_int_equal(etcd_client_new(&options, &client, NULL), 0);
            int rc = etcd_call(client, "/v3/maintenance/status", STR("{}"), etcd_mono_ns() + NS_PER_SECOND,
                               &arena, &reply, NULL, NULL);
            bool leads = rc == 0 && str_equal(doc_str(doc_path(reply, "header", "member_id", NULL), STR("")),
                                              doc_str(doc_get(reply, "leader"), STR("none")));
            etcd_client_free(client);
            if (leads)
                return i;
        }
}

/* Calls etcd as its operator would; the reply is not looked at. */
static inline void members_call(struct members *members, const char *path, const char *body)
{
    struct etcd_client *client;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *reply;
    struct error error;
    assert_int_equal(etcd_client_new(&members->options, &client, NULL), 0);
    if (etcd_call(client, path, str_from(body), etcd_mono_ns() + 60 * NS_PER_SECOND, &arena, &reply, NULL,
                  &error) < 0)
        fail_msg("%s: %s", path, error.text);
    etcd_client_free(client);
}

/* Runs one transaction without comparisons, past any log. Returns etcd's code. */
static inline int members_do(struct members *members, struct etcd_txn *txn, int64_t *ret_revision,
                             struct error *error)
{
    struct etcd_client *client;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *reply;
    assert_int_equal(etcd_client_new(&members->options, &client, NULL), 0);
    int rc = etcd_txn_run(txn, client, etcd_mono_ns() + 60 * NS_PER_SECOND, &arena, &reply, NULL, error);
    if (rc == 0 && ret_revision)
        *ret_revision = etcd_revision(reply);
    etcd_client_free(client);
    return rc;
}

/* Returns etcd's code; *ret_revision (may be NULL) is the put's own. */
static inline int members_put(struct members *members, struct etcd_key key, struct str value,
                              int64_t *ret_revision, struct error *error)
{
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    etcd_txn_begin(&txn);
    etcd_txn_then(&txn);
    etcd_txn_put(&txn, etcd_key_str(&key), value, 0);
    return members_do(members, &txn, ret_revision, error);
}

static inline void members_put_well(struct members *members, struct etcd_key key, struct str value)
{
    struct error error;
    if (members_put(members, key, value, NULL, &error) < 0)
        fail_msg("%s", error.text);
}

/* Removes all keys of the log that members->options.prefix names. */
static inline void members_wipe(struct members *members)
{
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct error error;
    struct str from = str_from(members->options.prefix);
    char end[ETCD_PREFIX_MAX + 1];
    memcpy(end, from.data, from.len);
    end[from.len - 1]++;
    etcd_txn_begin(&txn);
    etcd_txn_then(&txn);
    etcd_txn_delete(&txn, from, (struct str){end, from.len});
    if (members_do(members, &txn, NULL, &error) < 0)
        fail_msg("%s", error.text);
}

/* --- the quota of a single member ---------------------------------------------------------------------- */

/* Uses the quota up; returns the revision of the last put that went through. */
static inline int64_t members_fill(struct members *members)
{
    struct etcd_key key = {.text = "/other", .len = 6};
    struct buf value BUF_CLEANUP = {0};
    struct error error;
    int64_t revision = 0;
    int rc;
    sample_state(&value, 1, 1 << 20);
    do
        rc = members_put(members, key, buf_str(&value), &revision, &error);
    while (rc == 0);
    assert_int_equal(rc, ERROR_NO_SPACE);
    return revision;
}

/* `action`: ACTIVATE raises the alarm NOSPACE of the one member, DEACTIVATE ends it, as `etcdctl alarm
 * disarm` does. */
static inline void members_alarm(struct members *members, const char *action)
{
    struct etcd_client *client;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    struct doc *reply;
    struct error error;
    int64_t until_ns = etcd_mono_ns() + 60 * NS_PER_SECOND;
    assert_int_equal(etcd_client_new(&members->options, &client, NULL), 0);
    if (etcd_call(client, "/v3/maintenance/status", STR("{}"), until_ns, &arena, &reply, NULL, &error) < 0)
        fail_msg("%s", error.text);
    etcd_client_free(client);
    buf_printf(&body, "{\"action\":\"%s\",\"alarm\":\"NOSPACE\",\"memberID\":\"" STR_FORMAT "\"}", action,
               STR_ARG(doc_str(doc_path(reply, "header", "member_id", NULL), STR("0"))));
    members_call(members, "/v3/maintenance/alarm", body.data);
}

/* Drops what is older than `revision`, and ends the alarm, as an operator would. */
static inline void members_make_room(struct members *members, int64_t revision)
{
    char body[64];
    snprintf(body, sizeof body, "{\"revision\":\"%lld\"}", (long long)revision);
    members_call(members, "/v3/kv/compaction", body);
    members_call(members, "/v3/maintenance/defragment", "{}");
    members_alarm(members, "DEACTIVATE");
}

/* --- logs ----------------------------------------------------------------------------------------------- */

/* A new log each time: another prefix. */
static inline void members_fresh(struct members *members)
{
    static char prefix[32];
    static int number;
    snprintf(prefix, sizeof prefix, "/test-%d/", ++number);
    members->options.prefix = prefix;
}

#endif
