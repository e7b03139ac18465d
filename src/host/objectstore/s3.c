/* s3.c - the protocol of S3: https://docs.aws.amazon.com/AmazonS3/latest/API/ */
#include <pthread.h>
#include <stdio.h>

#include "host/objectstore/request.h"

static struct s3 *s3_of(struct object_store *store)
{
    return (struct s3 *)(void *)store;
}

static int put(struct object_store *store, const char *key, struct str bytes, struct error *error)
{
    struct s3_answer answer = {0};
    int rc = s3_request(s3_of(store), &(struct s3_request){.method = "PUT", .key = key, .body = bytes},
                        &answer, error);
    buf_done(&answer.body);
    return rc;
}

static int get(struct object_store *store, const char *key, uint64_t offset, uint8_t *buf, size_t len,
               size_t *ret_len, uint64_t *ret_total, struct error *error)
{
    char range[64];
    struct s3_answer answer = {0};
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)offset,
             (unsigned long long)(offset + len - 1));
    struct s3_request request = {.method = "GET", .key = key, .range = range, .into = buf, .into_cap = len};
    int rc = s3_request(s3_of(store), &request, &answer, error);
    buf_done(&answer.body);
    if (rc < 0)
        return rc;
    *ret_len = answer.into_len;
    if (ret_total)
        *ret_total = answer.total;
    return 0;
}

static int delete_key(struct object_store *store, const char *key, struct error *error)
{
    struct s3_answer answer = {0};
    int rc = s3_request(s3_of(store), &(struct s3_request){.method = "DELETE", .key = key}, &answer, error);
    buf_done(&answer.body);
    return rc == ERROR_NOT_FOUND ? 0 : rc;
}

static int odd_answer(const char *what, struct error *error)
{
    return error_set(error, ERROR_CORRUPT, "object store: the answer to %s is not understood", what);
}

static int list(struct object_store *store, const char *start, struct arena *arena, struct object_list *ret,
                struct error *error)
{
    struct answer_page page = {0};
    do {
        const struct sigv4_pair query[] = {
            {"continuation-token", page.next_token.data}, {"list-type", "2"}, {"prefix", start}};
        bool first = page.next_token.len == 0;
        struct s3_answer answer = {0};
        struct s3_request request = {
            .method = "GET", .query = first ? query + 1 : query, .query_count = first ? 2 : 3};
        int rc = s3_request(s3_of(store), &request, &answer, error);
        if (rc == 0 && (!answer_list(buf_str(&answer.body), arena, ret, &page) ||
                        (page.truncated && page.next_token.len == 0)))
            rc = odd_answer("a list", error);
        buf_done(&answer.body);
        if (rc < 0)
            return rc;
    } while (page.truncated);
    return 0;
}

/* --- uploads -------------------------------------------------------------------------------------- */

static int begin(struct object_store *store, const char *key, char ret_id[STORE_ID_MAX], struct error *error)
{
    static const struct sigv4_pair query[] = {{"uploads", ""}};
    struct s3_answer answer = {0};
    struct s3_request request = {.method = "POST", .key = key, .query = query, .query_count = 1};
    int rc = s3_request(s3_of(store), &request, &answer, error);
    if (rc == 0 && !answer_upload_id(buf_str(&answer.body), ret_id))
        rc = odd_answer("the begin of an upload", error);
    buf_done(&answer.body);
    return rc;
}

static int part(struct object_store *store, const char *key, const char *id, uint32_t number,
                struct str bytes, char ret_tag[STORE_TAG_MAX], struct error *error)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%u", number);
    const struct sigv4_pair query[] = {{"partNumber", digits}, {"uploadId", id}};
    struct s3_answer answer = {0};
    struct s3_request request = {
        .method = "PUT", .key = key, .query = query, .query_count = 2, .body = bytes};
    int rc = s3_request(s3_of(store), &request, &answer, error);
    if (rc == 0 && (answer.etag[0] == 0 || strpbrk(answer.etag, "<>& ")))
        rc = odd_answer("a part", error);
    if (rc == 0)
        memcpy(ret_tag, answer.etag, STORE_TAG_MAX);
    buf_done(&answer.body);
    return rc;
}

static int finish(struct object_store *store, const char *key, const char *id,
                  const char (*tags)[STORE_TAG_MAX], uint32_t count, struct error *error)
{
    const struct sigv4_pair query[] = {{"uploadId", id}};
    struct buf body BUF_CLEANUP = {0};
    buf_add_str(&body, STR("<CompleteMultipartUpload>"));
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&body, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1, tags[i]);
    buf_add_str(&body, STR("</CompleteMultipartUpload>"));
    struct s3_answer answer = {0};
    struct s3_request request = {
        .method = "POST", .key = key, .query = query, .query_count = 1, .body = buf_str(&body)};
    int rc = s3_request(s3_of(store), &request, &answer, error);
    buf_done(&answer.body);
    return rc;
}

static int abort_upload(struct object_store *store, const char *key, const char *id, struct error *error)
{
    const struct sigv4_pair query[] = {{"uploadId", id}};
    struct s3_answer answer = {0};
    struct s3_request request = {.method = "DELETE", .key = key, .query = query, .query_count = 1};
    int rc = s3_request(s3_of(store), &request, &answer, error);
    buf_done(&answer.body);
    return rc == ERROR_NOT_FOUND ? 0 : rc;
}

static int uploads(struct object_store *store, struct arena *arena, struct object_list *ret,
                   struct error *error)
{
    struct answer_page page = {0};
    do {
        const struct sigv4_pair first[] = {{"prefix", store->place->prefix}, {"uploads", ""}};
        const struct sigv4_pair next[] = {{"key-marker", page.next_key.data},
                                          {"prefix", store->place->prefix},
                                          {"upload-id-marker", page.next_upload.data},
                                          {"uploads", ""}};
        bool begins = page.next_key.len == 0;
        struct s3_answer answer = {0};
        struct s3_request request = {
            .method = "GET", .query = begins ? first : next, .query_count = begins ? 2 : 4};
        int rc = s3_request(s3_of(store), &request, &answer, error);
        if (rc == 0 && (!answer_list(buf_str(&answer.body), arena, ret, &page) ||
                        (page.truncated && page.next_key.len == 0)))
            rc = odd_answer("a list of uploads", error);
        buf_done(&answer.body);
        if (rc < 0)
            return rc;
    } while (page.truncated);
    return 0;
}

/* --- begin and end -------------------------------------------------------------------------------- */

static void close_s3(struct object_store *store)
{
    struct s3 *s3 = s3_of(store);
    curl_easy_cleanup(s3->curl);
    secrets_forget(&s3->secrets);
    mem_free(s3);
}

static const struct store_driver s3_driver = {close_s3, put,  get,    delete_key,   list,
                                              begin,    part, finish, abort_upload, uploads};

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void set_host(struct s3 *s3, const struct store_place *place)
{
    char endpoint[STORE_TEXT_MAX];
    if (place->endpoint[0])
        snprintf(endpoint, sizeof endpoint, "%s", place->endpoint);
    else
        snprintf(endpoint, sizeof endpoint, "https://s3.%s.amazonaws.com", place->region);
    const char *authority = strstr(endpoint, "://") + 3;
    snprintf(s3->host, sizeof s3->host, "%s%s%s", place->in_path ? "" : place->bucket,
             place->in_path ? "" : ".", authority);
    snprintf(s3->base, sizeof s3->base, "%.*s%s", (int)(authority - endpoint), endpoint, s3->host);
}

int s3_open(const struct store_place *place, struct object_store **ret, struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    struct s3 *s3 = mem_alloc(sizeof *s3);
    s3->store.driver = &s3_driver;
    int rc = secrets_load(place, &s3->secrets, error);
    if (rc == 0 && !(s3->curl = curl_easy_init()))
        rc = error_set(error, ERROR_LIMIT, "object store: there is no memory for a connection");
    if (rc < 0) {
        secrets_forget(&s3->secrets);
        mem_free(s3);
        return rc;
    }
    set_host(s3, place);
    s3->jitter = (uint64_t)(uintptr_t)s3;
    *ret = &s3->store;
    return 0;
}
