/* watch.c - a stream of changes that only wakes its owner. The owner then reads what has changed, so a watch
 * that lags, breaks or is compacted away costs time but no record. */
#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/units.h"
#include "host/store/etcd/internal.h"

#define REOPEN_NS (50 * NS_PER_MS) /* between two tries of members that do not answer */
#define ENDS      "\"canceled\":true"

struct etcd_watch {
    const struct etcd_options *options;
    char *list[ETCD_ENDPOINTS_MAX];
    size_t count, at;
    struct buf body, token;
    CURLM *multi;
    CURL *curl; /* NULL: no stream is open */
    struct curl_slist *headers;
    bool came;       /* a line has arrived on this stream since the last wait */
    size_t ends_len; /* bytes of ENDS at the end of what has arrived */
    bool ended;      /* etcd has ended the watch, as after a compaction, but not the stream */
    /* etcd_watch_wake() was called. An early end of the poll proves nothing: libcurl's timers end it too. */
    _Atomic bool woken;
    int64_t reopen_ns;
};

int etcd_watch_new(const struct etcd_options *options, struct etcd_key from, struct etcd_key to,
                   struct etcd_watch **ret_watch, struct error *error)
{
    struct etcd_client *client; /* checks the options, and initialises libcurl */
    int rc = etcd_client_new(options, &client, error);
    if (rc < 0)
        return rc;
    etcd_client_free(client);
    struct etcd_watch *watch = mem_alloc(sizeof *watch);
    watch->options = options;
    rc = etcd_endpoints_read(options->endpoints, watch->list, &watch->count, error);
    CHECK(rc == 0);
    watch->multi = curl_multi_init();
    CHECK(watch->multi);
    buf_add_str(&watch->body, STR("{\"create_request\":"));
    etcd_range_body(&watch->body, etcd_key_str(&from), etcd_key_str(&to), 0, false, false);
    buf_add_char(&watch->body, '}');
    *ret_watch = watch;
    return 0;
}

/* --- the stream --------------------------------------------------------------------------------------- */

/* Looks for ENDS, which may arrive in pieces. Keys and values are base64, so it cannot occur inside them. */
static void look_for_end(struct etcd_watch *watch, struct str bytes)
{
    for (size_t i = 0; i < bytes.len && !watch->ended; i++) {
        if (bytes.data[i] == ENDS[watch->ends_len])
            watch->ends_len++;
        else
            watch->ends_len = bytes.data[i] == ENDS[0];
        watch->ended = watch->ends_len == strlen(ENDS);
    }
}

static size_t on_change(char *data, size_t size, size_t count, void *context)
{
    struct etcd_watch *watch = context;
    watch->came |= memchr(data, '\n', size * count) != NULL;
    look_for_end(watch, (struct str){data, size * count});
    return size * count;
}

static void stream_close(struct etcd_watch *watch)
{
    if (!watch->curl)
        return;
    curl_multi_remove_handle(watch->multi, watch->curl);
    curl_easy_cleanup(watch->curl);
    curl_slist_free_all(watch->headers);
    watch->curl = NULL;
    watch->headers = NULL;
}

/* Obtains a token for each stream, if the options have a user. */
static bool stream_log_in(struct etcd_watch *watch)
{
    struct etcd_client *client;
    buf_clear(&watch->token);
    if (!watch->options->user)
        return true;
    if (etcd_client_new(watch->options, &client, NULL) < 0)
        return false;
    int rc = etcd_client_log_in(client, watch->at, &watch->token, NULL);
    etcd_client_free(client);
    return rc == 0;
}

static void stream_open(struct etcd_watch *watch)
{
    struct buf url BUF_CLEANUP = {0};
    watch->reopen_ns = etcd_mono_ns() + REOPEN_NS;
    if (!stream_log_in(watch)) {
        watch->at = (watch->at + 1) % watch->count;
        return;
    }
    CURL *curl = watch->curl = curl_easy_init();
    CHECK(curl);
    watch->came = watch->ended = false;
    watch->ends_len = 0;
    buf_printf(&url, "%s/v3/watch", watch->list[watch->at]);
    etcd_curl_common(curl, watch->options);
    watch->headers = etcd_headers(buf_str(&watch->token));
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, watch->headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, watch->body.data);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)watch->body.len);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 1000L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_change);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, watch);
    curl_multi_add_handle(watch->multi, curl);
}

/* Lets libcurl work. Closes a stream that has ended, or whose watch has: the next member follows. */
static void stream_run(struct etcd_watch *watch)
{
    int running = 0, left;
    curl_multi_perform(watch->multi, &running);
    struct CURLMsg *message = curl_multi_info_read(watch->multi, &left);
    if (!watch->ended && (!message || message->msg != CURLMSG_DONE))
        return;
    stream_close(watch);
    watch->at = (watch->at + 1) % watch->count;
}

int etcd_watch_wait(struct etcd_watch *watch, int64_t until_ns)
{
    for (;;) {
        int64_t now_ns = etcd_mono_ns();
        if (!watch->curl && now_ns >= watch->reopen_ns)
            stream_open(watch);
        if (watch->curl)
            stream_run(watch);
        if (watch->came) {
            watch->came = false;
            return 1;
        }
        now_ns = etcd_mono_ns();
        if (atomic_exchange(&watch->woken, false) || now_ns >= until_ns)
            return 0;
        int64_t due_ns = !watch->curl && watch->reopen_ns < until_ns ? watch->reopen_ns : until_ns;
        int64_t wait_ms = due_ns > now_ns ? (due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
        curl_multi_poll(watch->multi, NULL, 0, wait_ms < 60000 ? (int)wait_ms : 60000, NULL);
    }
}

void etcd_watch_wake(struct etcd_watch *watch)
{
    atomic_store(&watch->woken, true);
    curl_multi_wakeup(watch->multi);
}

void etcd_watch_free(struct etcd_watch *watch)
{
    if (!watch)
        return;
    stream_close(watch);
    curl_multi_cleanup(watch->multi);
    for (size_t i = 0; i < watch->count; i++)
        mem_free(watch->list[i]);
    buf_done(&watch->body);
    buf_done(&watch->token);
    mem_free(watch);
}
