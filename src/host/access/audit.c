#include "host/access/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "doc/json.h"
#include "base/units.h"
#include "doc/yaml.h"
#include "os/file.h"

enum { POLICY_BYTES_MAX = 1 << 20, FILES_MAX_DEFAULT = 10, BODY_BYTES_MAX = 64 * 1024, SYNC_S = 1 };
#define BYTES_MAX_DEFAULT (UINT64_C(100) << 20)

struct audit {
    const char *path;
    uint64_t bytes_max, bytes;
    uint32_t files_max;
    int fd;
    struct arena policy_arena;
    const struct doc *policy; /* NULL: the default */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct buf waiting;         /* this and the members below are protected by the mutex */
    uint64_t dropped, reported; /* reported: dropped lines that a written line accounts for */
    bool ending;
    /* Used by the thread only. */
    bool failing; /* the last write failed, and that was reported */
    bool torn;    /* the file ends with part of a line, whose rest could not be written */
};

/* --- the file, on the thread ---------------------------------------------------------------------------- */

static int open_file(struct audit *audit)
{
    struct stat info;
    audit->fd = open(audit->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    audit->bytes = audit->fd >= 0 && fstat(audit->fd, &info) == 0 ? (uint64_t)info.st_size : 0;
    return audit->fd < 0 ? -errno : 0;
}

static void put_aside(struct audit *audit)
{
    struct buf from BUF_CLEANUP = {0}, to BUF_CLEANUP = {0};
    fdatasync(audit->fd);
    close(audit->fd);
    for (uint32_t i = audit->files_max; i > 0; i--) {
        buf_clear(&from);
        buf_clear(&to);
        buf_printf(&to, "%s.%u", audit->path, i);
        if (i > 1)
            buf_printf(&from, "%s.%u", audit->path, i - 1);
        else
            buf_printf(&from, "%s", audit->path);
        (void)rename(from.data, to.data); /* a gap in the numbers does no harm */
    }
    (void)open_file(audit);
    audit->torn = false;
}

static void say_failure(struct audit *audit, const char *why)
{
    if (!audit->failing)
        fprintf(stderr, "warning: the audit log %s cannot be written: %s\n", audit->path, why);
    audit->failing = true;
}

/* Writes lines. Returns the number of bytes that could not be written. */
static size_t write_lines(struct audit *audit, struct str text)
{
    bool is_file = strcmp(audit->path, "-") != 0;
    if (audit->fd < 0)
        (void)open_file(audit);
    if (is_file && audit->fd >= 0 && audit->bytes > 0 && audit->bytes + text.len > audit->bytes_max)
        put_aside(audit);
    bool ready = audit->fd >= 0;
    if (ready && audit->torn) {
        ready = write(audit->fd, "\n", 1) == 1;
        audit->bytes += ready;
        audit->torn = !ready;
    }
    while (text.len) {
        ssize_t len = ready ? write(audit->fd, text.data, text.len) : -1;
        if (len < 0 && ready && errno == EINTR)
            continue;
        if (len < 0) {
            say_failure(audit, strerror(errno));
            return text.len;
        }
        audit->bytes += (uint64_t)len;
        audit->torn = len > 0 && text.data[len - 1] != '\n';
        text = (struct str){text.data + len, text.len - (size_t)len};
    }
    audit->failing = false;
    return 0;
}

static size_t count_lines(struct str text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* Waits for lines, but not longer than written lines may stay unsynced. */
static void await(struct audit *audit, bool unsynced)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SYNC_S;
    while (audit->waiting.len == 0 && !audit->ending)
        if (!unsynced)
            pthread_cond_wait(&audit->filled, &audit->mutex);
        else if (pthread_cond_timedwait(&audit->filled, &audit->mutex, &until) == ETIMEDOUT)
            return;
}

static void *run(void *context)
{
    struct audit *audit = context;
    struct timespec now, synced = {0};
    bool unsynced = false, ending = false;
    while (!ending) {
        pthread_mutex_lock(&audit->mutex);
        await(audit, unsynced);
        struct buf lines = audit->waiting;
        audit->waiting = (struct buf){0};
        ending = audit->ending;
        pthread_mutex_unlock(&audit->mutex);
        size_t lost = lines.len ? write_lines(audit, buf_str(&lines)) : 0;
        unsynced |= lines.len > 0;
        if (lost) {
            pthread_mutex_lock(&audit->mutex);
            audit->dropped += count_lines((struct str){lines.data + lines.len - lost, lost});
            pthread_mutex_unlock(&audit->mutex);
        }
        buf_done(&lines);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (unsynced && audit->fd >= 0 && (ending || now.tv_sec - synced.tv_sec >= SYNC_S)) {
            fdatasync(audit->fd);
            synced = now;
            unsynced = false;
        }
    }
    return NULL;
}

/* --- start and end -------------------------------------------------------------------------------------- */

int audit_new(const struct access_options *options, struct audit **ret_audit, struct error *error)
{
    if (!options->audit) {
        *ret_audit = NULL;
        return 0;
    }
    struct audit *audit = mem_alloc(sizeof *audit);
    audit->path = options->audit;
    audit->bytes_max = options->audit_bytes_max ? options->audit_bytes_max : BYTES_MAX_DEFAULT;
    audit->files_max = options->audit_files_max ? options->audit_files_max : FILES_MAX_DEFAULT;
    audit->fd = -1;
    int rc = strcmp(audit->path, "-") == 0 ? 0 : open_file(audit);
    if (rc < 0) {
        mem_free(audit);
        return error_set_errno(error, -rc, "opening the audit log %s", options->audit);
    }
    if (audit->fd < 0)
        audit->fd = STDERR_FILENO;
    pthread_mutex_init(&audit->mutex, NULL);
    pthread_cond_init(&audit->filled, NULL);
    CHECK(pthread_create(&audit->thread, NULL, run, audit) == 0);
    *ret_audit = audit;
    return 0;
}

void audit_free(struct audit *audit)
{
    if (!audit)
        return;
    pthread_mutex_lock(&audit->mutex);
    audit->ending = true;
    pthread_cond_signal(&audit->filled);
    pthread_mutex_unlock(&audit->mutex);
    pthread_join(audit->thread, NULL);
    pthread_mutex_destroy(&audit->mutex);
    pthread_cond_destroy(&audit->filled);
    if (audit->fd > STDERR_FILENO)
        close(audit->fd);
    buf_done(&audit->waiting);
    arena_done(&audit->policy_arena);
    mem_free(audit);
}

static int check_policy(const struct doc *policy, struct error *error)
{
    static const char *const levels[] = {"None", "Metadata", "Request", "RequestResponse"};
    const struct doc *rules = doc_get(policy, "rules");
    if (!rules || rules->kind != DOC_ARRAY)
        return error_set(error, ERROR_INVALID, "a Policy has a list `rules`");
    for (size_t i = 0; i < rules->array.len; i++) {
        struct str level = doc_str(doc_get(rules->array.items[i], "level"), STR(""));
        bool known = false;
        for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
            known |= str_is(level, levels[k]);
        if (!known)
            return error_set(error, ERROR_INVALID, "rules[%zu]: no level \"" STR_FORMAT "\"", i,
                             STR_ARG(level));
    }
    return 0;
}

int audit_reload(struct audit *audit, const char *policy, struct error *error)
{
    struct arena arena = {.limit_bytes = 16 * POLICY_BYTES_MAX};
    struct buf text BUF_CLEANUP = {0};
    struct doc_list documents = {0};
    if (!audit || !policy)
        return 0;
    int rc = os_file_read(policy, POLICY_BYTES_MAX, &text, error);
    if (rc == 0)
        rc = yaml_parse_all(&arena, buf_str(&text), &documents, error);
    if (rc == 0 && documents.len != 1)
        rc = error_set(error, ERROR_INVALID, "expected exactly one document");
    if (rc == 0)
        rc = check_policy(documents.items[0], error);
    if (rc < 0) {
        arena_done(&arena);
        return error_wrap(error, "%s", policy);
    }
    arena_done(&audit->policy_arena);
    audit->policy_arena = arena;
    audit->policy = documents.items[0];
    return 0;
}

uint64_t audit_dropped(const struct audit *audit)
{
    if (!audit)
        return 0;
    struct audit *writable = (struct audit *)audit;
    pthread_mutex_lock(&writable->mutex);
    uint64_t dropped = audit->dropped;
    pthread_mutex_unlock(&writable->mutex);
    return dropped;
}

/* --- the policy ----------------------------------------------------------------------------------------- */

/* Returns whether a list matches a word. An empty list matches everything; "*" at the end of an item matches
 * any rest. */
static bool listed(const struct doc *list, struct str word)
{
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str item = doc_str(doc_at(list, i), STR(""));
        if (str_equal(item, word))
            return true;
        if (item.len && item.data[item.len - 1] == '*' &&
            str_starts(word, (struct str){item.data, item.len - 1}))
            return true;
    }
    return doc_len(list) == 0;
}

static bool resource_listed(const struct doc *list, const struct access_attributes *what)
{
    struct buf full BUF_CLEANUP = {0};
    buf_add_str(&full, what->resource);
    if (what->subresource.len)
        buf_printf(&full, "/" STR_FORMAT, STR_ARG(what->subresource));
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        if (str_equal(doc_str(doc_get(item, "group"), STR("")), what->group) &&
            listed(doc_get(item, "resources"), buf_str(&full)) &&
            listed(doc_get(item, "resourceNames"), what->name))
            return true;
    }
    return false;
}

static bool rule_matches(const struct doc *rule, const struct access_record *record)
{
    const struct access_attributes *what = &record->what;
    const struct doc *groups = doc_get(rule, "userGroups"), *urls = doc_get(rule, "nonResourceURLs");
    const struct doc *resources = doc_get(rule, "resources");
    bool in_group = doc_len(groups) == 0;
    for (size_t i = 0; i < record->user->group_count; i++)
        in_group = in_group || listed(groups, record->user->groups[i]);
    if (!in_group || !listed(doc_get(rule, "users"), record->user->name) ||
        !listed(doc_get(rule, "verbs"), what->verb))
        return false;
    if (what->resource.len == 0)
        return doc_len(resources) == 0 && listed(urls, what->path);
    return doc_len(urls) == 0 && listed(doc_get(rule, "namespaces"), what->namespace_) &&
           (doc_len(resources) == 0 || resource_listed(resources, what));
}

static bool is_secret(const struct access_attributes *what)
{
    return str_is(what->resource, "secrets") || str_is(what->resource, "tokenreviews") ||
           str_is(what->subresource, "token");
}

enum audit_level audit_level_of(const struct doc *policy, const struct access_record *record)
{
    struct str path = record->what.path;
    enum audit_level level = AUDIT_METADATA;
    if (policy) {
        const struct doc *rules = doc_get(policy, "rules");
        level = AUDIT_NONE;
        for (size_t i = 0; i < doc_len(rules); i++) {
            const struct doc *rule = doc_at(rules, i);
            if (!rule_matches(rule, record))
                continue;
            struct str name = doc_str(doc_get(rule, "level"), STR(""));
            level = str_starts(name, STR("Request")) ? AUDIT_REQUEST
                    : str_is(name, "Metadata")       ? AUDIT_METADATA
                                                     : AUDIT_NONE;
            break;
        }
    } else if (record->what.resource.len == 0 &&
               (str_starts(path, STR("/healthz")) || str_starts(path, STR("/livez")) ||
                str_starts(path, STR("/readyz")))) {
        level = AUDIT_NONE;
    }
    return level == AUDIT_REQUEST && is_secret(&record->what) ? AUDIT_METADATA : level;
}

/* --- lines ---------------------------------------------------------------------------------------------- */

static void put_user(struct json_writer *out, const char *key, const struct access_user *user)
{
    json_key(out, key);
    json_begin_object(out);
    json_pair_str(out, "username", user->name);
    if (user->uid.len)
        json_pair_str(out, "uid", user->uid);
    if (user->group_count) {
        json_key(out, "groups");
        json_begin_array(out);
        for (size_t i = 0; i < user->group_count; i++)
            json_put_str(out, user->groups[i]);
        json_end_array(out);
    }
    access_put_extra(out, user);
    json_end_object(out);
}

static void put_some(struct json_writer *out, const char *key, struct str value)
{
    if (value.len)
        json_pair_str(out, key, value);
}

static void put_object(struct json_writer *out, const struct access_record *record)
{
    const struct access_attributes *what = &record->what;
    if (what->resource.len == 0)
        return;
    json_key(out, "objectRef");
    json_begin_object(out);
    put_some(out, "resource", what->resource);
    put_some(out, "namespace", what->namespace_);
    put_some(out, "name", what->name);
    put_some(out, "apiGroup", what->group);
    put_some(out, "apiVersion", record->api_version);
    put_some(out, "subresource", what->subresource);
    json_end_object(out);
}

static void put_id(struct json_writer *out)
{
    uint8_t id[16];
    char text[40];
    CHECK(gnutls_rnd(GNUTLS_RND_NONCE, id, sizeof id) == 0);
    snprintf(text, sizeof text, "%02x%02x%02x%02x-%02x%02x-4%x%02x-%x%x%02x-%02x%02x%02x%02x%02x%02x", id[0],
             id[1], id[2], id[3], id[4], id[5], id[6] & 15, id[7], 8 | (id[8] & 3), id[8] >> 4, id[9], id[10],
             id[11], id[12], id[13], id[14], id[15]);
    json_pair_text(out, "auditID", text);
}

static void put_status(struct json_writer *out, const struct access_record *record)
{
    char text[40];
    json_key(out, "responseStatus");
    json_begin_object(out);
    json_key(out, "metadata");
    json_begin_object(out);
    json_end_object(out);
    put_some(out, "reason", record->reason);
    json_pair_int(out, "code", record->code);
    json_end_object(out);
    time_format_micro(record->received_ns, text);
    json_pair_text(out, "requestReceivedTimestamp", text);
    time_format_micro(record->answered_ns, text);
    json_pair_text(out, "stageTimestamp", text);
    int64_t took_ns = record->answered_ns - record->received_ns;
    snprintf(text, sizeof text, "%lld.%03lldms", (long long)(took_ns / NS_PER_MS),
             (long long)(took_ns % NS_PER_MS / NS_PER_US));
    json_key(out, "annotations");
    json_begin_object(out);
    put_some(out, "authorization.k8s.io/decision", record->decision);
    put_some(out, "authorization.k8s.io/reason", record->decision_reason);
    put_some(out, "pod-security.kubernetes.io/audit-violations", record->violations);
    json_pair_text(out, "apiserver.latency.k8s.io/total", text);
    json_end_object(out);
}

void audit_format(struct buf *out, enum audit_level level, const struct access_record *record)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "kind", "Event");
    json_pair_text(&json, "apiVersion", "audit.k8s.io/v1");
    json_pair_text(&json, "level", level == AUDIT_REQUEST ? "Request" : "Metadata");
    put_id(&json);
    json_pair_text(&json, "stage", record->stage);
    json_pair_str(&json, "requestURI", record->uri);
    json_pair_str(&json, "verb", record->what.verb);
    put_user(&json, "user", record->user);
    if (record->impersonated)
        put_user(&json, "impersonatedUser", record->impersonated);
    json_key(&json, "sourceIPs");
    json_begin_array(&json);
    if (record->source.len)
        json_put_str(&json, record->source);
    json_end_array(&json);
    put_some(&json, "userAgent", record->user_agent);
    put_object(&json, record);
    put_status(&json, record);
    if (level == AUDIT_REQUEST && record->body.len && record->body.len <= BODY_BYTES_MAX) {
        struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 * BODY_BYTES_MAX};
        struct doc *body;
        if (json_parse(&arena, record->body, &body, NULL) == 0) {
            json_key(&json, "requestObject");
            json_put_doc(&json, body);
        }
    }
    json_end_object(&json);
    buf_add_char(out, '\n');
}

static void put_missing(struct buf *out, uint64_t missing)
{
    buf_printf(
        out,
        "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"Metadata\",\"stage\":\"Panic\","
        "\"verb\":\"\",\"user\":{\"username\":\"phalanx:audit\"},"
        "\"annotations\":{\"phalanx/lines-missing\":\"%llu\"}}\n",
        (unsigned long long)missing);
}

void audit_write(struct audit *audit, const struct access_record *record)
{
    if (!audit)
        return;
    enum audit_level level = audit_level_of(audit->policy, record);
    if (level == AUDIT_NONE)
        return;
    struct buf line BUF_CLEANUP = {0};
    audit_format(&line, level, record);
    pthread_mutex_lock(&audit->mutex);
    if (audit->waiting.len + line.len > AUDIT_BUFFER_BYTES) {
        audit->dropped++;
    } else {
        if (audit->dropped > audit->reported)
            put_missing(&audit->waiting, audit->dropped - audit->reported);
        audit->reported = audit->dropped;
        buf_add_str(&audit->waiting, buf_str(&line));
        pthread_cond_signal(&audit->filled);
    }
    pthread_mutex_unlock(&audit->mutex);
}
