#include "cmd/https.h"

#include <curl/curl.h>
#include <stdio.h>

#include "cmd/client.h"
#include "core/words/release.h"

struct https_client {
    struct client *client;
    CURL *curl;
    char error_text[CURL_ERROR_SIZE];
};

/* The call in progress on a handle. */
struct https_call {
    const struct http_request *request;
    CURL *curl;
    bool stopped;
};

/* Sets an option that takes a file, to a memory file with contents of the kubeconfig. */
static void set_file(CURL *curl, CURLoption option, int fd)
{
    char path[32];
    if (fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    curl_easy_setopt(curl, option, path);
}

static void set_common(struct client *client, CURL *curl, struct str path)
{
    struct buf url BUF_CLEANUP = {0};
    buf_add_str(&url, buf_str(&client->server));
    buf_add_str(&url, path);
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, this_release.user_agent);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    set_file(curl, CURLOPT_CAINFO, client->ca_fd);
    set_file(curl, CURLOPT_SSLCERT, client->cert_fd);
    set_file(curl, CURLOPT_SSLKEY, client->key_fd);
    if (client->ca_fd >= 0) /* trusts this authority only */
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    if (client->bearer.len) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, client->bearer.data);
    }
}

void *https_handle(struct client *client, struct str path)
{
    CURL *curl = curl_easy_init();
    CHECK(curl);
    set_common(client, curl, path);
    return curl;
}

struct https_client *https_client_new(struct client *client)
{
    struct https_client *https = mem_alloc(sizeof(*https));
    https->client = client;
    https->curl = curl_easy_init();
    CHECK(https->curl);
    return https;
}

void https_client_free(struct https_client *https)
{
    if (!https)
        return;
    curl_easy_cleanup(https->curl);
    mem_free(https);
}

/* --- one call ---------------------------------------------------------------------------------- */

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    const struct https_call *call = context;
    struct str name, value;
    if (call->request->on_field && str_cut((struct str){data, size * count}, ':', &name, &value))
        call->request->on_field(call->request->context, name, str_trim(value));
    return size * count;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct https_call *call = context;
    long code = 0;
    curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &code);
    call->stopped = call->request->on_body && !call->request->on_body(call->request->context, (int)code,
                                                                      (struct str){data, size * count});
    return call->stopped ? 0 : size * count;
}

static int on_wait(void *context, curl_off_t to_come, curl_off_t came, curl_off_t to_go, curl_off_t went)
{
    const struct https_call *call = context;
    (void)to_come, (void)came, (void)to_go, (void)went;
    call->request->on_tick(call->request->context);
    return 0;
}

static struct curl_slist *header_list(const struct http_request *request)
{
    struct curl_slist *headers = NULL;
    char text[512];
    snprintf(text, sizeof text, "Accept: %s", request->accept ? request->accept : "application/json");
    headers = curl_slist_append(headers, text);
    if (request->key) {
        snprintf(text, sizeof text, "Idempotency-Key: %s", request->key);
        headers = curl_slist_append(headers, text);
    }
    if (request->key && request->resent_ms > 0) {
        snprintf(text, sizeof text, "Phalanx-Resent: %lld", (long long)request->resent_ms);
        headers = curl_slist_append(headers, text);
    }
    if (request->body.data) {
        snprintf(text, sizeof text, "Content-Type: %s",
                 request->content_type ? request->content_type : "application/json");
        headers = curl_slist_append(headers, text);
        headers = curl_slist_append(headers, "Expect:");
    }
    return headers;
}

static void set_request(CURL *curl, const struct http_request *request, struct https_call *call)
{
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    if (request->body.data) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.data);
    }
    if (request->method)
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    if (request->on_tick) {
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_wait);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, call);
    }
}

static enum http_result result_of(CURLcode rc, const struct https_call *call)
{
    if (rc == CURLE_OK)
        return HTTP_ANSWERED;
    if (call->stopped)
        return HTTP_STOPPED;
    if (rc == CURLE_OPERATION_TIMEDOUT)
        return HTTP_TIMED_OUT;
    if (rc == CURLE_WEIRD_SERVER_REPLY)
        return HTTP_NOT_HTTP;
    if (rc == CURLE_SSL_CONNECT_ERROR)
        return HTTP_NO_TLS;
    bool broke = rc == CURLE_GOT_NOTHING || rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR ||
                 rc == CURLE_PARTIAL_FILE;
    return broke ? HTTP_BROKE : HTTP_NO_SERVER;
}

enum http_result https_client_call(struct https_client *https, const struct http_request *request,
                                   int *ret_code, struct error *error)
{
    CURL *curl = https->curl;
    struct https_call call = {.request = request, .curl = curl};
    long code = 0;
    curl_easy_reset(curl);
    set_common(https->client, curl, request->path);
    https->error_text[0] = 0;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, https->error_text);
    set_request(curl, request, &call);
    struct curl_slist *headers = header_list(request);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    CURLcode rc = curl_easy_perform(curl);
    curl_slist_free_all(headers);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    *ret_code = (int)code;
    if (rc != CURLE_OK && !call.stopped)
        error_set(error, ERROR_UNAVAILABLE, "%s",
                  https->error_text[0] ? https->error_text : curl_easy_strerror(rc));
    return result_of(rc, &call);
}
