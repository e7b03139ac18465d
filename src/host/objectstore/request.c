#include "host/objectstore/request.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/hash.h"
#include "base/units.h"

enum {
    ANSWER_BYTES_MAX = 16 << 20,
    CONNECT_S = 10,
    STALL_S = 30, /* without a byte a second */
    SLICE_MS = 50,
    HEADERS_MAX = 5,
};
#define PAUSE_FIRST_NS (NS_PER_SECOND / 10)
#define PAUSE_MAX_NS   (10 * NS_PER_SECOND)

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* --- what comes ----------------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct s3_answer *answer = context;
    size_t len = size * count;
    long status = 0;
    curl_easy_getinfo(answer->curl, CURLINFO_RESPONSE_CODE, &status);
    if (answer->request->into && status >= 200 && status < 300) {
        if (len > answer->request->into_cap - answer->into_len) {
            answer->overflow = true;
            return 0;
        }
        memcpy(answer->request->into + answer->into_len, data, len);
        answer->into_len += len;
        return len;
    }
    if (answer->body.len + len > ANSWER_BYTES_MAX) {
        answer->overflow = true;
        return 0;
    }
    buf_add(&answer->body, data, len);
    return len;
}

static void take_header(struct s3_answer *answer, struct str name, struct str value)
{
    char text[STORE_TAG_MAX];
    int64_t number;
    struct str unit, total;
    snprintf(text, sizeof text, STR_FORMAT, STR_ARG(name));
    if (strcasecmp(text, "etag") == 0 && value.len < sizeof answer->etag) {
        snprintf(answer->etag, sizeof answer->etag, STR_FORMAT, STR_ARG(value));
    } else if (strcasecmp(text, "content-range") == 0 && str_cut(value, '/', &unit, &total)) {
        if (str_to_i64(total, 0, INT64_MAX, &number))
            answer->total = (uint64_t)number;
    } else if (strcasecmp(text, "content-length") == 0 && answer->total == 0) {
        if (str_to_i64(value, 0, INT64_MAX, &number))
            answer->total = (uint64_t)number;
    } else if (strcasecmp(text, "retry-after") == 0 && str_to_i64(value, 0, 3600, &number)) {
        answer->retry_after_ns = number * NS_PER_SECOND;
    }
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct str name, value;
    if (str_cut((struct str){data, size * count}, ':', &name, &value))
        take_header(context, str_trim(name), str_trim(value));
    return size * count;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    return store_stopped(context);
}

/* --- what is sent --------------------------------------------------------------------------------- */

static void sign(const struct s3 *s3, const struct s3_request *request, struct buf *url,
                 struct curl_slist **ret_headers)
{
    char hash[SIGV4_HEX_SIZE], date[SIGV4_DATE_SIZE];
    struct buf path BUF_CLEANUP = {0}, line BUF_CLEANUP = {0};
    time_t now = time(NULL);
    struct tm calendar;
    gmtime_r(&now, &calendar);
    strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", &calendar);
    sigv4_hash(request->body, hash);
    if (s3->store.place->in_path)
        buf_printf(&path, "/%s", s3->store.place->bucket);
    buf_add_char(&path, '/');
    if (request->key)
        sigv4_encode(&path, str_from(request->key), true);
    const struct sigv4_pair headers[] = {{"host", s3->host},
                                         {"x-amz-content-sha256", hash},
                                         {"x-amz-date", date},
                                         {"x-amz-security-token", s3->secrets.token}};
    size_t count = s3->secrets.token[0] ? 4 : 3;
    struct sigv4_request signing = {request->method,
                                    buf_str(&path),
                                    request->query,
                                    headers,
                                    request->query_count,
                                    count,
                                    hash,
                                    date,
                                    s3->store.place->region,
                                    "s3",
                                    s3->secrets.access_key,
                                    s3->secrets.secret_key};
    for (size_t i = 0; i < count; i++) {
        buf_clear(&line);
        buf_printf(&line, "%s: %s", headers[i].name, headers[i].value);
        *ret_headers = curl_slist_append(*ret_headers, line.data);
    }
    buf_clear(&line);
    buf_add_str(&line, STR("authorization: "));
    sigv4_authorization(&line, &signing);
    *ret_headers = curl_slist_append(*ret_headers, line.data);
    buf_printf(url, "%s%s", s3->base, path.data);
    if (request->query_count > 0) {
        buf_add_char(url, '?');
        sigv4_query(url, request->query, request->query_count);
    }
}

static void prepare(struct s3 *s3, const struct s3_request *request, struct s3_answer *answer,
                    struct curl_slist **headers)
{
    CURL *curl = s3->curl;
    const struct store_place *place = s3->store.place;
    struct buf url BUF_CLEANUP = {0};
    curl_easy_reset(curl); /* connections stay */
    sign(s3, request, &url, headers);
    *headers = curl_slist_append(*headers, "content-type:");
    *headers = curl_slist_append(*headers, "expect:");
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *headers);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L << 10);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, answer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &s3->store);
    if (place->ca[0]) { /* that authority and no other */
        curl_easy_setopt(curl, CURLOPT_CAINFO, place->ca);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    if (place->rate_bytes) { /* as many transfers as `parallel` go at once */
        curl_off_t rate = (curl_off_t)(place->rate_bytes / place->parallel);
        curl_easy_setopt(curl, CURLOPT_MAX_SEND_SPEED_LARGE, rate);
        curl_easy_setopt(curl, CURLOPT_MAX_RECV_SPEED_LARGE, rate);
    }
    if (request->range)
        curl_easy_setopt(curl, CURLOPT_RANGE, request->range + strlen("bytes="));
    if (request->body.len > 0 || strcmp(request->method, "PUT") == 0 ||
        strcmp(request->method, "POST") == 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.len ? request->body.data : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    }
}

/* --- what became of it ---------------------------------------------------------------------------- */

static bool is_passing(long status, const struct answer_error *said)
{
    static const char *const codes[] = {"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout",
                                        "OperationAborted"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(said->code, codes[i]) == 0)
            return true;
    return status == 408 || status == 429 || status >= 500;
}

/* Returns the object that a message names. */
static const char *what(const struct s3_request *request)
{
    return request->key ? request->key : "the bucket";
}

static int judge(const struct s3_request *request, struct s3_answer *answer, long status, bool *ret_again,
                 struct error *error)
{
    struct answer_error said;
    answer_error(buf_str(&answer->body), &said);
    bool well = status >= 200 && status < 300 && said.code[0] == 0;
    *ret_again = !well && is_passing(status, &said);
    if (well)
        return 0;
    enum error_code code = *ret_again                       ? ERROR_UNAVAILABLE
                           : status == 404                  ? ERROR_NOT_FOUND
                           : status == 401 || status == 403 ? ERROR_DENIED
                           : status == 416                  ? ERROR_CORRUPT
                                                            : ERROR_INVALID;
    return error_set(error, code, "object store, %s %s: status %ld %s%s%s", request->method, what(request),
                     status, said.code, said.message[0] ? ": " : "", said.message);
}

static int try_once(struct s3 *s3, const struct s3_request *request, struct s3_answer *answer,
                    bool *ret_again, struct error *error)
{
    struct curl_slist *headers = NULL;
    long status = 0;
    buf_clear(&answer->body);
    *answer = (struct s3_answer){.body = answer->body, .request = request, .curl = s3->curl};
    prepare(s3, request, answer, &headers);
    CURLcode code = curl_easy_perform(s3->curl);
    curl_easy_getinfo(s3->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    *ret_again = false;
    if (answer->overflow)
        return error_set(error, ERROR_CORRUPT,
                         "object store, %s %s: the answer is longer than what was asked", request->method,
                         what(request));
    if (code == CURLE_OK)
        return judge(request, answer, status, ret_again, error);
    *ret_again = code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL &&
                 code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE;
    return error_set(error, ERROR_UNAVAILABLE, "object store, %s %s: %s", request->method, what(request),
                     curl_easy_strerror(code));
}

static void pause_for(const struct s3 *s3, int64_t pause_ns)
{
    int64_t until_ns = now_ns() + pause_ns;
    for (int64_t left_ns = pause_ns; left_ns > 0 && !store_stopped(&s3->store); left_ns = until_ns - now_ns())
        poll(NULL, 0, left_ns < SLICE_MS * NS_PER_MS ? (int)(left_ns / NS_PER_MS) + 1 : SLICE_MS);
}

int s3_request(struct s3 *s3, const struct s3_request *request, struct s3_answer *ret, struct error *error)
{
    int64_t deadline_ns = now_ns() + s3->store.place->patience_ns, pause_ns = PAUSE_FIRST_NS;
    for (;;) {
        bool again;
        if (store_stopped(&s3->store))
            return error_set(error, ERROR_UNAVAILABLE, "object store: stopped");
        int rc = try_once(s3, request, ret, &again, error);
        if (rc == 0 || !again || now_ns() >= deadline_ns)
            return rc;
        s3->jitter = hash_mix(s3->jitter + (uint64_t)now_ns());
        int64_t wait_ns = pause_ns / 2 + (int64_t)(s3->jitter % (uint64_t)(pause_ns / 2 + 1));
        if (ret->retry_after_ns > wait_ns)
            wait_ns = ret->retry_after_ns < PAUSE_MAX_NS ? ret->retry_after_ns : PAUSE_MAX_NS;
        pause_for(s3, wait_ns);
        pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
    }
}
