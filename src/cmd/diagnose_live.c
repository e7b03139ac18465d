/* phalanx diagnose jobset/NAME: asks the ranks of a running job for their records, and judges these by the
 * same rules as the files of a folder. */
#include "cmd/diagnose.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/hang/hang.h"

enum { LOOK_MS = 100 };
/* Longer than the controller waits for a silent agent. */
#define PATIENCE_NS (90 * NS_PER_SECOND)

struct asking {
    const struct diagnose_options *options;
    struct client client;
    struct buf path;
    struct client_reply reply; /* the diagnosis */
    struct arena arena;
    struct hang_part *parts;
    size_t part_count, unanswered;
};

/* --- asking --------------------------------------------------------------------------------------------- */

static int ask(struct asking *asking)
{
    struct client_reply reply = {0};
    struct client_request request = {.method = "POST",
                                     .path = buf_str(&asking->path),
                                     .content_type = "application/json",
                                     .body = STR("{}")};
    int rc = client_call(&asking->client, &request, &reply);
    if (rc == EXIT_OK && reply.code >= 400)
        rc = client_refused(&reply, NULL);
    client_reply_done(&reply);
    return rc;
}

static int64_t number_of(const struct client_reply *reply)
{
    return doc_int(doc_get(reply->doc, "number"), 0);
}

static bool is_over(const struct client_reply *reply)
{
    return number_of(reply) > 0 && !doc_bool(doc_get(reply->doc, "collecting"), false);
}

static int await(struct asking *asking)
{
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (;;) {
        int rc = client_get(&asking->client, buf_str(&asking->path), &asking->reply);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (rc != EXIT_OK || is_over(&asking->reply))
            return rc;
        client_reply_done(&asking->reply);
        asking->reply = (struct client_reply){0};
        if ((now.tv_sec - began.tv_sec) * NS_PER_SECOND > PATIENCE_NS) {
            say("no records of the ranks arrived within %lld s", (long long)(PATIENCE_NS / NS_PER_SECOND));
            return EXIT_TIMEOUT;
        }
        poll(NULL, 0, LOOK_MS);
    }
}

static void read_parts(struct asking *asking)
{
    const struct doc *list = doc_get(asking->reply.doc, "parts");
    asking->parts = ARENA_ARRAY(&asking->arena, struct hang_part, doc_len(list) + 1);
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        bool answered = doc_bool(doc_get(item, "answered"), false);
        asking->parts[asking->part_count++] =
            (struct hang_part){.pod = doc_str(doc_get(item, "pod"), STR("")),
                               .machine = doc_str(doc_get(item, "machine"), STR("")),
                               .world = (uint32_t)doc_int(doc_get(item, "world"), 0),
                               .rank = (uint32_t)doc_int(doc_get(item, "rank"), 0),
                               .size = (uint32_t)doc_int(doc_get(item, "worldSize"), 0),
                               .answered = answered,
                               .record = doc_str(doc_get(item, answered ? "record" : "reason"), STR(""))};
        asking->unanswered += !answered;
    }
}

/* --- keeping -------------------------------------------------------------------------------------------- */

static int save_file(const struct asking *asking, const char *name, struct str text)
{
    struct buf path BUF_CLEANUP = {0};
    buf_printf(&path, "%s/%s", asking->options->save, name);
    FILE *file = fopen(path.data, "we");
    bool good = file && fwrite(text.data, 1, text.len, file) == text.len;
    good = file && fclose(file) == 0 && good;
    if (!good)
        say("%s: %s", path.data, strerror(errno));
    return good ? EXIT_OK : EXIT_FAILED;
}

/* Saves the dumps in a form that phalanx diagnose DIR reads, and everything else that was reported. */
static int save_part(const struct asking *asking, const struct hang_part *part)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *record = NULL;
    struct error error;
    int rc = EXIT_OK;
    if (!part->answered || json_parse(&arena, part->record, &record, &error) < 0)
        return EXIT_OK;
    const struct doc *ranks = doc_get(record, "ranks");
    for (size_t i = 0; i < doc_len(ranks) && rc == EXIT_OK; i++) {
        const struct doc *dump = doc_get(doc_at(ranks, i), "flight");
        char name[64];
        struct buf text BUF_CLEANUP = {0};
        if (!dump)
            continue;
        json_write(&text, dump);
        long long rank = (long long)doc_int(doc_get(doc_at(ranks, i), "rank"), 0);
        if (part->world)
            snprintf(name, sizeof name, "world-%u.rank-%lld", part->world, rank);
        else
            snprintf(name, sizeof name, "rank-%lld", rank);
        rc = save_file(asking, name, buf_str(&text));
    }
    return rc;
}

static int save_all(const struct asking *asking)
{
    struct buf text BUF_CLEANUP = {0};
    if (!asking->options->save)
        return EXIT_OK;
    if (mkdir(asking->options->save, 0777) < 0 && errno != EEXIST) {
        say("%s: %s", asking->options->save, strerror(errno));
        return EXIT_FAILED;
    }
    json_write_pretty(&text, asking->reply.doc);
    int rc = save_file(asking, "diagnosis.json", buf_str(&text));
    for (size_t i = 0; i < asking->part_count && rc == EXIT_OK; i++)
        rc = save_part(asking, &asking->parts[i]);
    return rc;
}

/* --- judging -------------------------------------------------------------------------------------------- */

static int judge_world(const struct asking *asking, size_t first, size_t end)
{
    struct diagnosis diagnosis;
    size_t bad;
    uint32_t per_task;
    struct flight *flight = hang_judge_world(&asking->parts[first], end - first, &diagnosis, &bad, &per_task);
    int rc = diagnose_report(asking->options, &diagnosis, bad);
    diagnosis_done(&diagnosis);
    flight_free(flight);
    return rc;
}

static int judge(const struct asking *asking)
{
    int worst = EXIT_OK;
    if (doc_bool(doc_get(asking->reply.doc, "recordsDropped"), false)) {
        say("the records were dropped to make room for others; ask again");
        return EXIT_NOT_FOUND;
    }
    for (size_t first = 0; first < asking->part_count;) {
        size_t end = hang_world_end(asking->parts, asking->part_count, first);
        int rc = judge_world(asking, first, end);
        worst = rc > worst ? rc : worst;
        first = end;
    }
    for (size_t i = 0; i < asking->part_count; i++)
        if (!asking->parts[i].answered)
            say("no record of " STR_FORMAT " on " STR_FORMAT ": " STR_FORMAT, STR_ARG(asking->parts[i].pod),
                STR_ARG(asking->parts[i].machine),
                STR_ARG(asking->parts[i].record.len ? asking->parts[i].record : STR("no answer")));
    return worst;
}

int diagnose_live(const struct diagnose_options *options)
{
    struct asking asking = {.options = options};
    const struct resource *kind;
    struct str name;
    if (!kind_split(options->folder, &kind, &name))
        return EXIT_USAGE;
    if (strcmp(kind->singular, "jobset") != 0 && strcmp(kind->singular, "job") != 0) {
        say("only jobsets and jobs can be diagnosed, not %s", kind->plural);
        return EXIT_USAGE;
    }
    int rc = client_open(&asking.client, &options->client);
    if (rc != EXIT_OK)
        return rc;
    kind_path(&asking.path, kind, client_namespace(&options->client), name);
    buf_printf(&asking.path, "/diagnosis");
    rc = ask(&asking);
    if (rc == EXIT_OK)
        rc = await(&asking);
    if (rc == EXIT_OK) {
        read_parts(&asking);
        rc = save_all(&asking);
    }
    if (rc == EXIT_OK)
        rc = judge(&asking);
    client_reply_done(&asking.reply);
    client_close(&asking.client);
    buf_done(&asking.path);
    arena_done(&asking.arena);
    return rc;
}
