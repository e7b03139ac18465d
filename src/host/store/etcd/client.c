/* client.c - sends requests one after another to the member that answers. */
#include "host/store/etcd/client.h"

#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/base64.h"
#include "base/units.h"
#include "host/store/etcd/internal.h"

enum {
    REPLY_BYTES_MAX = 96 << 20, /* a range of parts, in base64 */
    TOKEN_CALLS_MAX = 2,        /* an expired token is replaced once */
    PAUSE_MS = 20,              /* between rounds in which no member accepted the connection */
};
/* The time limit of an attempt begins short, since a member without a leader holds requests for seconds. It
 * grows, since a busy member may need long for a large answer. */
#define ATTEMPT_FIRST_NS (250 * NS_PER_MS)
#define ATTEMPT_MOST_NS  (16 * NS_PER_SECOND)
#define LOG_IN_NS        (4 * NS_PER_SECOND)

struct etcd_client {
    const struct etcd_options *options;
    char *list[ETCD_ENDPOINTS_MAX]; /* URLs without a slash at the end */
    size_t count, at;               /* at: the member that answered last */
    CURL *curl;
    struct buf answer, token;
    bool too_large;
};

int64_t etcd_mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* --- begin and end ------------------------------------------------------------------------------------ */

static void gateway_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static char *copy_of(struct str text)
{
    char *copy = mem_alloc(text.len + 1);
    memcpy(copy, text.data, text.len);
    return copy;
}

int etcd_endpoints_read(const char *text, char **list, size_t *ret_count, struct error *error)
{
    struct str rest = str_from(text), one;
    size_t count = 0;
    int rc = 0;
    while (rc == 0 && rest.len > 0) {
        struct str tail = {0};
        one = rest;
        (void)str_cut(rest, ',', &one, &tail);
        rest = tail;
        one = str_trim(one);
        while (one.len > 0 && one.data[one.len - 1] == '/')
            one.len--;
        if (!str_starts(one, STR("http://")) && !str_starts(one, STR("https://")))
            rc = error_set(error, ERROR_INVALID, "\"" STR_FORMAT "\" is no URL of an etcd member",
                           STR_ARG(one));
        else if (count == ETCD_ENDPOINTS_MAX)
            rc = error_set(error, ERROR_LIMIT, "more than %d URLs of etcd members", (int)ETCD_ENDPOINTS_MAX);
        else
            list[count++] = copy_of(one);
    }
    *ret_count = count;
    if (rc == 0 && count == 0)
        rc = error_set(error, ERROR_INVALID, "no URL of an etcd member was given");
    return rc;
}

int etcd_client_new(const struct etcd_options *options, struct etcd_client **ret_client, struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, gateway_init);
    struct etcd_client *client = mem_alloc(sizeof *client);
    client->options = options;
    int rc = etcd_endpoints_read(options->endpoints, client->list, &client->count, error);
    if (rc == 0 && !(client->curl = curl_easy_init()))
        rc = error_set(error, ERROR_LIMIT, "etcd: there is no memory for a connection");
    if (rc < 0) {
        etcd_client_free(client);
        return rc;
    }
    *ret_client = client;
    return 0;
}

void etcd_client_free(struct etcd_client *client)
{
    if (!client)
        return;
    for (size_t i = 0; i < client->count; i++)
        mem_free(client->list[i]);
    curl_easy_cleanup(client->curl);
    buf_done(&client->answer);
    buf_done(&client->token);
    mem_free(client);
}

/* --- one attempt -------------------------------------------------------------------------------------- */

void etcd_curl_common(void *curl, const struct etcd_options *options)
{
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (options->ca) { /* trust this authority only */
        curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    if (options->cert)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, options->cert);
    if (options->key)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, options->key);
}

static size_t on_answer(char *data, size_t size, size_t count, void *context)
{
    struct etcd_client *client = context;
    client->too_large = size * count > REPLY_BYTES_MAX - client->answer.len;
    if (client->too_large)
        return 0;
    buf_add(&client->answer, data, size * count);
    return size * count;
}

struct curl_slist *etcd_headers(struct str token)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    if (token.len) {
        struct buf line BUF_CLEANUP = {0};
        buf_printf(&line, "Authorization: " STR_FORMAT, STR_ARG(token));
        headers = curl_slist_append(headers, line.data);
    }
    return headers;
}

/* The outcome of one attempt. */
struct attempt {
    long code;         /* HTTP status; 0: there is no answer */
    uint32_t requests; /* requests sent: libcurl repeats one whose connection ended without an answer */
    bool lost;         /* the fate of a request is unknown: it may still be carried out */
    bool distrusts;    /* the member's certificate was rejected, or ours cannot be used */
    char text[CURL_ERROR_SIZE];
};

static int on_traffic(CURL *curl, curl_infotype type, char *data, size_t size, void *context)
{
    struct attempt *attempt = context;
    (void)curl;
    attempt->requests += type == CURLINFO_HEADER_OUT && str_starts((struct str){data, size}, STR("POST "));
    return 0;
}

static void attempt_post(struct etcd_client *client, const char *path, struct str body, int64_t time_ns,
                         struct attempt *ret)
{
    struct buf url BUF_CLEANUP = {0};
    CURL *curl = client->curl;
    long time_ms = (long)(time_ns / NS_PER_MS);
    *ret = (struct attempt){0};
    buf_printf(&url, "%s%s", client->list[client->at], path);
    buf_clear(&client->answer);
    client->too_large = false;
    curl_easy_reset(curl);
    etcd_curl_common(curl, client->options);
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    struct curl_slist *headers = etcd_headers(buf_str(&client->token));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, time_ms > 0 ? time_ms : 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, ret->text);
    curl_easy_setopt(curl, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(curl, CURLOPT_DEBUGFUNCTION, on_traffic);
    curl_easy_setopt(curl, CURLOPT_DEBUGDATA, ret);
    CURLcode rc = curl_easy_perform(curl);
    if (rc == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->code);
    else if (!ret->text[0])
        snprintf(ret->text, sizeof ret->text, "%s", curl_easy_strerror(rc));
    ret->lost = ret->requests > (ret->code ? 1 : 0);
    ret->distrusts =
        rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CERTPROBLEM || rc == CURLE_SSL_CACERT_BADFILE;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(curl, CURLOPT_DEBUGDATA, NULL);
    curl_easy_setopt(curl, CURLOPT_VERBOSE, 0L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
}

/* --- calls -------------------------------------------------------------------------------------------- */

/* Returns 0 if the answer is a success, or the error that etcd returned. */
static int judge_answer(struct etcd_client *client, const struct attempt *attempt, struct arena *arena,
                        struct doc **ret_reply, struct error *error)
{
    struct error why;
    struct doc *reply;
    if (json_parse(arena, buf_str(&client->answer), &reply, &why) < 0) {
        if (attempt->code >= 500)
            return error_set(error, ERROR_UNAVAILABLE, "etcd %s: HTTP %ld", client->list[client->at],
                             attempt->code);
        struct str text = buf_str(&client->answer), rest;
        (void)str_cut(text, '\n', &text, &rest);
        if (attempt->code != 200) /* from the gateway itself */
            return error_set(error, ERROR_DENIED, "etcd %s: " STR_FORMAT, client->list[client->at],
                             STR_ARG(text));
        return error_set(error, ERROR_CORRUPT, "etcd %s: %s", client->list[client->at], why.text);
    }
    if (attempt->code != 200 || doc_get(reply, "error"))
        return etcd_refusal(reply, client->list[client->at], error);
    *ret_reply = reply;
    return 0;
}

/* Obtains a token if there is none and the options have a user. */
static int log_in(struct etcd_client *client, int64_t time_ns, struct attempt *attempt, struct error *error)
{
    const struct etcd_options *options = client->options;
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct buf body BUF_CLEANUP = {0};
    struct doc *reply;
    if (!options->user || client->token.len)
        return 0;
    struct json_writer writer = {.out = &body};
    json_begin_object(&writer);
    json_pair_text(&writer, "name", options->user);
    json_pair_text(&writer, "password", options->password ? options->password : "");
    json_end_object(&writer);
    attempt_post(client, "/v3/auth/authenticate", buf_str(&body), time_ns, attempt);
    if (!attempt->code)
        return error_set(error, ERROR_UNAVAILABLE, "etcd %s: %s", client->list[client->at], attempt->text);
    int rc = judge_answer(client, attempt, &arena, &reply, error);
    if (rc < 0 && rc != ERROR_UNAVAILABLE) {
        error_wrap(error, "etcd does not take user %s and its password", options->user);
        rc = ERROR_DENIED;
        if (error)
            error->code = ERROR_DENIED;
    }
    if (rc < 0)
        return rc;
    struct str token = doc_str(doc_get(reply, "token"), STR(""));
    if (!token.len)
        return error_set(error, ERROR_CORRUPT, "etcd %s gave no token", client->list[client->at]);
    buf_add_str(&client->token, token);
    return 0;
}

int etcd_client_log_in(struct etcd_client *client, size_t member, struct buf *ret_token, struct error *error)
{
    struct attempt attempt;
    client->at = member % client->count;
    int rc = log_in(client, LOG_IN_NS, &attempt, error);
    if (rc == 0)
        buf_add_str(ret_token, buf_str(&client->token));
    return rc;
}

static int post_once(struct etcd_client *client, const char *path, struct str body, int64_t time_ns,
                     struct arena *arena, struct doc **ret_reply, struct attempt *attempt,
                     struct error *error)
{
    bool lost = false;
    int rc = 0;
    for (int i = 0; i < TOKEN_CALLS_MAX; i++) {
        *attempt = (struct attempt){0};
        rc = log_in(client, time_ns, attempt, error);
        if (rc == 0) {
            attempt_post(client, path, body, time_ns, attempt);
            lost |= attempt->lost;
        }
        attempt->lost = lost; /* of the request, not of the login */
        if (rc < 0)
            return rc;
        if (client->too_large)
            return error_set(error, ERROR_LIMIT, "etcd %s: the answer is too large",
                             client->list[client->at]);
        if (!attempt->code)
            return error_set(error, ERROR_UNAVAILABLE, "etcd %s: %s", client->list[client->at],
                             attempt->text);
        rc = judge_answer(client, attempt, arena, ret_reply, error);
        /* the member did not get an answer from the others, which may still act */
        attempt->lost |= rc == ERROR_UNAVAILABLE;
        if (rc != ERROR_DENIED || !client->token.len)
            return rc;
        buf_clear(&client->token); /* it may have expired */
    }
    return rc;
}

static int64_t less(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int etcd_call(struct etcd_client *client, const char *path, struct str body, int64_t deadline_ns,
              struct arena *arena, struct doc **ret_reply, bool *ret_unsure, struct error *error)
{
    int64_t time_ns = ATTEMPT_FIRST_NS;
    size_t distrusted = 0; /* members of this round whose certificates fail */
    bool unsure = false;
    int rc;
    for (size_t tried = 1;; tried++) {
        struct attempt attempt;
        int64_t left_ns = deadline_ns - etcd_mono_ns(), begun_ns = etcd_mono_ns();
        rc = post_once(client, path, body, less(time_ns, left_ns > NS_PER_MS ? left_ns : NS_PER_MS), arena,
                       ret_reply, &attempt, error);
        unsure |= attempt.lost;
        if (rc != ERROR_UNAVAILABLE)
            break;
        distrusted += attempt.distrusts;
        client->at = (client->at + 1) % client->count;
        if (etcd_mono_ns() >= deadline_ns)
            break;
        if (distrusted == client->count) { /* waiting does not help */
            rc = ERROR_DENIED;
            if (error)
                error->code = ERROR_DENIED;
            break;
        }
        if (tried % client->count == 0) { /* each member was asked */
            distrusted = 0;
            time_ns = less(2 * time_ns, ATTEMPT_MOST_NS);
            if (etcd_mono_ns() - begun_ns < PAUSE_MS * NS_PER_MS)
                (void)poll(NULL, 0, PAUSE_MS);
        }
    }
    if (ret_unsure)
        *ret_unsure = unsure;
    return rc;
}
