/* phalanx logs: prints the output of one pod, or of all ranks of a job or jobset, as it arrives. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/usage.h"
#include "cmd/client.h"
#include "cmd/https.h"
#include "cmd/loglines.h"

static const char usage[] =
    "Usage: phalanx logs POD | pod/NAME | job/NAME | jobset/NAME [options]\n"
    "\n"
    "Prints what pods wrote to standard output and standard error. For a job or jobset, prints the\n"
    "lines of all ranks in the order of time, each behind its rank, including earlier attempts as far as\n"
    "the machines keep their output; with -f, also restarted ranks, until the jobset has finished.\n"
    "\n"
    "  -f, --follow           go on printing as more is written\n"
    "      --tail N           only the last N lines of each pod\n"
    "      --since DURATION   only what was written in the last 30s, 5m, 2h\n"
    "      --attempt N        only what was written in this attempt, from 0\n"
    "  -p, --previous         output of the previous attempt; of a pod also of its previous run\n"
    "  -c, --container NAME   of this container (default: the first)\n"
    "      --timestamps       each line with the time of its arrival\n"
    "      --no-prefix        lines as they were written\n" CLIENT_HELP CLIENT_EXIT_HELP;

enum { RELIST_MS = 500, STREAMS_MAX = 4096, EARLIER_MAX = 8 };

struct logging;
struct reading {
    struct logging *logging;
    CURL *curl;
    struct str uid, rank; /* in logging->arena */
    int64_t began_attempt; /* the attempt in which the process of this log began */
    bool earlier;          /* the log of an earlier process in the place of this pod */
    struct buf line, refusal;
    bool done;
};
struct logging {
    struct client client;
    struct client_options options;
    bool follow, previous, no_prefix, timestamps;
    const char *container;
    int64_t tail, since_ns;
    size_t missing;
    int64_t attempt; /* only this attempt; -1: all */
    struct log_restarts restarts;
    struct log_merge merge;
    struct arena arena;
    CURLM *multi;
    VEC(struct reading *) readings;
    struct buf selector; /* empty: one pod */
    struct str jobset;   /* following ends when this jobset does; empty: never */
    int result;
};

/* --- lines ------------------------------------------------------------------------------------- */

/* Prints a line of a group after its rank, its attempt if there was more than one, and its time if
 * requested. */
static void take_line(struct reading *reading, struct str line)
{
    struct logging *logging = reading->logging;
    struct str whole = line;
    int64_t time_ns = log_line_time(&line);
    int64_t attempt = log_attempt_at(&logging->restarts, time_ns, reading->began_attempt);
    struct buf prefix BUF_CLEANUP = {0};
    if (logging->attempt >= 0 && attempt != logging->attempt)
        return;
    if (!logging->no_prefix && logging->restarts.attempt > 0)
        buf_printf(&prefix, "[" STR_FORMAT " attempt %lld] ", STR_ARG(reading->rank), (long long)attempt);
    else if (!logging->no_prefix)
        buf_printf(&prefix, "[" STR_FORMAT "] ", STR_ARG(reading->rank));
    log_merge_add(&logging->merge, time_ns, buf_str(&prefix), logging->timestamps ? whole : line);
}

static void take_lines(struct reading *reading, bool end)
{
    struct str line, rest = buf_str(&reading->line);
    while (str_cut(rest, '\n', &line, &rest))
        take_line(reading, line);
    buf_drop_front(&reading->line, reading->line.len - rest.len);
    if (end && reading->line.len) {
        take_line(reading, buf_str(&reading->line));
        buf_clear(&reading->line);
    }
    if (reading->logging->follow)
        log_merge_print(&reading->logging->merge);
}

static size_t on_data(char *data, size_t size, size_t count, void *context)
{
    struct reading *reading = context;
    long code = 0;
    size_t len = size * count;
    curl_easy_getinfo(reading->curl, CURLINFO_RESPONSE_CODE, &code);
    if (code >= 400) {
        buf_add(&reading->refusal, data, len);
    } else if (reading->logging->selector.len == 0) {
        fwrite(data, 1, len, stdout);
        fflush(stdout);
    } else {
        buf_add(&reading->line, data, len);
        take_lines(reading, false);
    }
    return len;
}

/* --- pods -------------------------------------------------------------------------------------- */

static bool known(const struct logging *logging, struct str uid)
{
    for (size_t i = 0; i < logging->readings.len; i++)
        if (str_equal(logging->readings.items[i]->uid, uid))
            return true;
    return false;
}

static bool has_output(const struct doc *pod)
{
    const struct doc *state = doc_dotted(doc_at(doc_dotted(pod, "status.containerStatuses"), 0), "state");
    return doc_get(state, "running") || doc_get(state, "terminated");
}

/* Returns the name of a pod's rank, such as "rank 3 w-0-3". */
static struct str rank_of(struct logging *logging, const struct doc *pod)
{
    struct str host = doc_text(pod, "spec.hostname");
    if (logging->jobset.len && str_starts(host, logging->jobset) && host.len > logging->jobset.len)
        host = (struct str){host.data + logging->jobset.len + 1, host.len - logging->jobset.len - 1};
    return arena_printf(&logging->arena, "rank %lld " STR_FORMAT,
                        (long long)doc_number(pod, "status.phalanx.rank", 0), STR_ARG(host));
}

/* Starts to read a log: that of the process that began in attempt `earlier` in the place of the pod; -1: the
 * pod's own. */
static void start(struct logging *logging, const struct doc *pod, int64_t earlier)
{
    struct buf path BUF_CLEANUP = {0};
    const struct resource *kind = kind_find(STR("pods"));
    struct reading *reading = mem_alloc(sizeof *reading);
    const char *namespace_ = arena_strdup(&logging->arena, doc_text(pod, "metadata.namespace"));
    kind_path(&path, kind, namespace_, doc_text(pod, "metadata.name"));
    buf_printf(&path, "/log?follow=%s", logging->follow && earlier < 0 ? "true" : "false");
    if (earlier >= 0)
        buf_printf(&path, "&attempt=%lld", (long long)earlier);
    if (logging->tail >= 0)
        buf_printf(&path, "&tailLines=%lld", (long long)logging->tail);
    if (logging->since_ns > 0)
        buf_printf(&path, "&sinceSeconds=%lld",
                   (long long)((logging->since_ns + NS_PER_SECOND - 1) / NS_PER_SECOND));
    if (logging->previous && logging->selector.len == 0)
        buf_add_str(&path, STR("&previous=true"));
    if (logging->timestamps || logging->selector.len > 0)
        buf_add_str(&path, STR("&timestamps=true"));
    if (logging->container) {
        buf_add_str(&path, STR("&container="));
        url_add(&path, str_from(logging->container));
    }
    reading->logging = logging;
    reading->uid = arena_str(&logging->arena, doc_text(pod, "metadata.uid"));
    reading->rank = rank_of(logging, pod);
    reading->earlier = earlier >= 0;
    reading->began_attempt =
        reading->earlier ? earlier : doc_number(pod, "status.phalanx.beganAttempt", 0);
    reading->curl = https_handle(&logging->client, buf_str(&path));
    curl_easy_setopt(reading->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(reading->curl, CURLOPT_WRITEDATA, reading);
    curl_easy_setopt(reading->curl, CURLOPT_PRIVATE, reading);
    curl_multi_add_handle(logging->multi, reading->curl);
    vec_push(&logging->readings, reading);
}

static void finish(struct logging *logging, struct reading *reading, CURLcode rc)
{
    long code = 0;
    curl_easy_getinfo(reading->curl, CURLINFO_RESPONSE_CODE, &code);
    take_lines(reading, true);
    if (code == 404 && reading->earlier && logging->selector.len > 0) {
        logging->missing++; /* the log is no longer kept, or its machine is lost */
    } else if (code >= 400) {
        struct client_reply reply = {.code = code, .text = reading->refusal};
        if (json_parse(&reply.arena, buf_str(&reply.text), &reply.doc, NULL) < 0)
            reply.doc = NULL;
        logging->result = client_refused(&reply, NULL);
        arena_done(&reply.arena);
    } else if (rc != CURLE_OK && !logging->follow) {
        say("reading a log: %s", curl_easy_strerror(rc));
        logging->result = EXIT_FAILED;
    }
    curl_multi_remove_handle(logging->multi, reading->curl);
    curl_easy_cleanup(reading->curl);
    reading->curl = NULL;
    reading->done = true;
    buf_done(&reading->line);
    buf_done(&reading->refusal);
}

/* Reads the logs of earlier processes in the place of the pod. Each log is kept under the attempt in which
 * its process began, and may continue into later attempts. */
static void start_earlier(struct logging *logging, const struct doc *pod)
{
    int64_t began = doc_number(pod, "status.phalanx.beganAttempt", 0);
    int64_t first = began > EARLIER_MAX ? began - EARLIER_MAX : 0;
    for (int64_t n = first; n < began && logging->readings.len < STREAMS_MAX; n++)
        if (logging->attempt < 0 || n <= logging->attempt)
            start(logging, pod, n);
}

static void read_restarts(struct logging *logging)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    const char *namespace_ = client_namespace(&logging->options);
    if (logging->jobset.len == 0)
        return;
    kind_path(&path, kind_find(STR("jobsets")), namespace_ ? namespace_ : "default", logging->jobset);
    if (client_call(&logging->client, &(struct client_request){.path = buf_str(&path)}, &reply) != EXIT_OK)
        return;
    if (reply.code < 400)
        log_restarts_read(&logging->restarts, reply.doc);
    client_reply_done(&reply);
}

/* Starts to read the pods that have begun since the last call; the first call includes earlier logs. */
static int relist(struct logging *logging, size_t *ret_pods)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply list;
    const char *namespace_ = client_namespace(&logging->options);
    kind_path(&path, kind_find(STR("pods")), namespace_ ? namespace_ : "default", (struct str){0});
    buf_add_str(&path, STR("?labelSelector="));
    url_add(&path, buf_str(&logging->selector));
    int rc = client_get(&logging->client, buf_str(&path), &list);
    if (rc != EXIT_OK)
        return rc;
    const struct doc *items = doc_get(list.doc, "items");
    *ret_pods = doc_len(items);
    bool begins = logging->readings.len == 0;
    read_restarts(logging);
    for (size_t i = 0; i < doc_len(items) && logging->readings.len < STREAMS_MAX; i++)
        if (has_output(doc_at(items, i)) && !known(logging, doc_text(doc_at(items, i), "metadata.uid")))
            start(logging, doc_at(items, i), -1);
    for (size_t i = 0; begins && (logging->tail < 0 || logging->attempt >= 0) && i < doc_len(items); i++)
        start_earlier(logging, doc_at(items, i));
    client_reply_done(&list);
    return EXIT_OK;
}

static bool jobset_finished(struct logging *logging)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    const char *namespace_ = client_namespace(&logging->options);
    if (logging->jobset.len == 0)
        return false;
    kind_path(&path, kind_find(STR("jobsets")), namespace_ ? namespace_ : "default", logging->jobset);
    if (client_call(&logging->client, &(struct client_request){.path = buf_str(&path)}, &reply) != EXIT_OK)
        return true;
    bool finished = reply.code >= 400 || doc_text(reply.doc, "status.terminalState").len > 0;
    client_reply_done(&reply);
    return finished;
}

/* --- reading ----------------------------------------------------------------------------------- */

static int read_streams(struct logging *logging)
{
    bool group = logging->selector.len > 0;
    int64_t relist_ns = 0;
    for (;;) {
        int running = 0, left;
        CURLMsg *message;
        curl_multi_perform(logging->multi, &running);
        while ((message = curl_multi_info_read(logging->multi, &left))) {
            struct reading *reading;
            if (message->msg != CURLMSG_DONE)
                continue;
            CURLcode rc = message->data.result;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&reading);
            finish(logging, reading, rc);
        }
        if (running == 0 && !(group && logging->follow))
            return logging->result;
        if (group && logging->follow && client_clock() >= relist_ns) {
            size_t pods, before = logging->readings.len;
            bool finished = running == 0 && jobset_finished(logging);
            int rc = relist(logging, &pods);
            if (rc == EXIT_NOT_FOUND || (rc != EXIT_OK && rc != EXIT_UNREACHABLE))
                return rc;
            if (rc == EXIT_OK && finished && logging->readings.len == before)
                return logging->result;
            relist_ns = client_clock() + RELIST_MS * NS_PER_MS;
        }
        curl_multi_poll(logging->multi, NULL, 0, RELIST_MS, NULL);
    }
}

/* Starts to read a single pod; when following, waits until it has begun. */
static int start_pod(struct logging *logging, struct str name)
{
    const char *namespace_ = client_namespace(&logging->options);
    for (;;) {
        struct buf path BUF_CLEANUP = {0};
        struct client_reply pod;
        kind_path(&path, kind_find(STR("pods")), namespace_ ? namespace_ : "default", name);
        int rc = client_get(&logging->client, buf_str(&path), &pod);
        if (rc != EXIT_OK)
            return rc;
        bool ready = !logging->follow || has_output(pod.doc);
        if (ready)
            start(logging, pod.doc, logging->attempt);
        client_reply_done(&pod);
        if (ready)
            return EXIT_OK;
        curl_multi_poll(logging->multi, NULL, 0, RELIST_MS, NULL);
    }
}

static int run(struct logging *logging, const char *target)
{
    const struct resource *kind = kind_find(STR("pods"));
    struct str name = str_from(target);
    if (strchr(target, '/') && !kind_split(target, &kind, &name))
        return EXIT_USAGE;
    if (strcmp(kind->plural, "pods") == 0) {
        int rc = start_pod(logging, name);
        return rc == EXIT_OK ? read_streams(logging) : rc;
    }
    bool jobset = strcmp(kind->plural, "jobsets") == 0;
    if (!jobset && strcmp(kind->plural, "jobs") != 0) {
        say("%s have no log: POD, job/NAME or jobset/NAME", kind->plural);
        return EXIT_USAGE;
    }
    struct buf path BUF_CLEANUP = {0};
    struct client_reply object;
    const char *namespace_ = client_namespace(&logging->options);
    kind_path(&path, kind, namespace_ ? namespace_ : "default", name);
    int rc = client_get(&logging->client, buf_str(&path), &object);
    if (rc != EXIT_OK)
        return rc;
    struct str owner =
        jobset ? name
               : doc_str(doc_get(doc_dotted(object.doc, "metadata.labels"), "jobset.sigs.k8s.io/jobset-name"),
                         STR(""));
    logging->jobset = arena_str(&logging->arena, owner);
    client_reply_done(&object);
    buf_printf(&logging->selector, "%s=" STR_FORMAT,
               jobset ? "jobset.sigs.k8s.io/jobset-name" : "batch.kubernetes.io/job-name", STR_ARG(name));
    size_t pods = 0;
    read_restarts(logging);
    if (logging->previous && logging->restarts.attempt == 0) {
        say("%s: it has not been restarted", target);
        return EXIT_FAILED;
    }
    if (logging->previous)
        logging->attempt = logging->restarts.attempt - 1;
    rc = relist(logging, &pods);
    if (rc != EXIT_OK)
        return rc;
    if (logging->readings.len == 0 && !logging->follow) {
        say("%s: %s", target, pods ? "none of its pods have started" : "it has no pods");
        return EXIT_FAILED;
    }
    rc = read_streams(logging);
    bool nothing = logging->attempt >= 0 && logging->merge.list.len == 0 && !logging->follow;
    if (rc == EXIT_OK && nothing) {
        say("%s: no output of attempt %lld is kept", target, (long long)logging->attempt);
        rc = EXIT_FAILED;
    }
    log_merge_print(&logging->merge);
    return rc;
}

static void logging_done(struct logging *logging)
{
    for (size_t i = 0; i < logging->readings.len; i++) {
        struct reading *reading = logging->readings.items[i];
        if (!reading->done)
            finish(logging, reading, CURLE_OK);
        mem_free(reading);
    }
    vec_done(&logging->readings);
    vec_done(&logging->restarts.list);
    log_merge_done(&logging->merge);
    curl_multi_cleanup(logging->multi);
    client_close(&logging->client);
    buf_done(&logging->selector);
    arena_done(&logging->arena);
}

int cmd_logs(int argc, char **argv)
{
    static const struct option options[] = {{"follow", no_argument, NULL, 'f'},
                                            {"tail", required_argument, NULL, 't'},
                                            {"since", required_argument, NULL, 'S'},
                                            {"previous", no_argument, NULL, 'p'},
                                            {"attempt", required_argument, NULL, 'a'},
                                            {"container", required_argument, NULL, 'c'},
                                            {"timestamps", no_argument, NULL, 'T'},
                                            {"no-prefix", no_argument, NULL, 'P'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct logging logging = {.tail = -1, .attempt = -1};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "fpc:", options, NULL)) != -1) {
        if (letter == 'f')
            logging.follow = true;
        else if (letter == 'p')
            logging.previous = true;
        else if (letter == 'c')
            logging.container = optarg;
        else if (letter == 'T')
            logging.timestamps = true;
        else if (letter == 'P')
            logging.no_prefix = true;
        else if (letter == 't')
            usable = usage_value(str_to_i64(str_from(optarg), 0, INT32_MAX, &logging.tail)) && usable;
        else if (letter == 'a')
            usable = str_to_i64(str_from(optarg), 0, INT32_MAX, &logging.attempt) && usable;
        else if (letter == 'S')
            usable = usage_value(duration_parse(str_from(optarg), &logging.since_ns)) && usable;
        else
            usable = client_option(&logging.options, letter, optarg) && usable;
    }
    if (logging.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (!usable || optind + 1 != argc) {
        return !usable         ? usage_wrong(usage, NULL)
               : optind < argc ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1])
                               : usage_wrong(usage, "POD or KIND/NAME is missing");
    }
    client_open(&logging.client, &logging.options);
    logging.multi = curl_multi_init();
    CHECK(logging.multi);
    int rc = run(&logging, argv[optind]);
    logging_done(&logging);
    return rc;
}
