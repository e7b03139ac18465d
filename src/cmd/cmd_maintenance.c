/* phalanx maintenance controller: holds the leases of machines during a planned restart of the controller, so
 * that tasks continue (core/health/lease_hold.h). A Maintenance with spec.controller requests it. */
#include <poll.h>
#include <stdio.h>

#include "doc/json.h"
#include "cmd/client.h"
#include "cmd/usage.h"

static const char usage[] =
    "Usage: phalanx maintenance controller DURATION [options]\n"
    "       phalanx maintenance controller [--end] [options]\n"
    "\n"
    "Tasks end themselves when their controller has been away for longer than the lease. For a planned\n"
    "restart, the first form holds the leases for DURATION, at most 30m, from now on, and waits until\n"
    "every machine has confirmed it. Then stop the controller: tasks run on, and lose nothing if it is\n"
    "back in time. A machine that falls silent meanwhile is replaced only when the hold is over, so end\n"
    "it when the controller is back. Without DURATION the command shows the hold in force.\n"
    "\n"
    "      --end              end the hold\n"
    "      --timeout DURATION of the wait (default: 30s); the hold stands all the same\n"
    "      --reason TEXT      the reason that others see\n"
    "  -o, --output FORMAT    text or json (default: text)\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  phalanx maintenance controller 5m && systemctl restart phalanx-controller\n"
    "  phalanx maintenance controller --end\n" CLIENT_EXIT_HELP;

enum { ASK_AGAIN_MS = 100 };

struct holding {
    struct client client;
    struct client_options options;
    const char *reason;
    bool end, json;
    const char *length; /* DURATION; NULL: only show the holds in force */
    int64_t timeout_ns;
};

/* The hold in force, according to the controller. */
struct shown {
    struct buf name, until; /* name empty: no hold is in force */
    int64_t machines, confirmed;
    struct buf missing; /* names of machines that have not confirmed it, as JSON */
    struct buf named;   /* the same for people */
};

static void shown_done(struct shown *shown)
{
    buf_done(&shown->name);
    buf_done(&shown->until);
    buf_done(&shown->missing);
    buf_done(&shown->named);
}

/* --- requests ------------------------------------------------------------------------------------- */

static void path_of(struct buf *ret_path, struct str name)
{
    kind_path(ret_path, kind_find(STR("maintenance")), NULL, name);
}

static void describe(const struct holding *holding, struct buf *out)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "phalanx.dev/v1");
    json_pair_text(&json, "kind", "Maintenance");
    json_key(&json, "metadata");
    json_begin_object(&json);
    json_pair_text(&json, "generateName", "controller-");
    json_end_object(&json);
    json_key(&json, "spec");
    json_begin_object(&json);
    json_pair_text(&json, "controller", holding->length);
    json_pair_text(&json, "reason", holding->reason);
    json_end_object(&json);
    json_end_object(&json);
}

static int place(struct holding *holding, struct buf *ret_name)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
    struct client_reply reply;
    path_of(&path, (struct str){0});
    describe(holding, &body);
    struct client_request request = {
        .method = "POST", .path = buf_str(&path), .body = buf_str(&body), .content_type = "application/json"};
    int rc = client_do(&holding->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    buf_add_str(ret_name, doc_text(reply.doc, "metadata.name"));
    client_reply_done(&reply);
    return EXIT_OK;
}

static int drop(struct holding *holding, struct str name)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    path_of(&path, name);
    struct client_request request = {.method = "DELETE", .path = buf_str(&path)};
    int rc = client_call(&holding->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    if (reply.code >= 400 && reply.code != 404)
        rc = client_refused(&reply, NULL);
    client_reply_done(&reply);
    return rc;
}

static bool is_hold(const struct doc *object)
{
    return doc_text(object, "spec.controller").len > 0;
}

/* Deletes all holds except `kept`, expired ones included. *ret_count is the number of them that were in
 * force. */
static int drop_others(struct holding *holding, struct str kept, size_t *ret_count)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    *ret_count = 0;
    path_of(&path, (struct str){0});
    int rc = client_get(&holding->client, buf_str(&path), &reply);
    if (rc != EXIT_OK)
        return rc;
    const struct doc *items = doc_get(reply.doc, "items");
    for (size_t i = 0; i < doc_len(items) && rc == EXIT_OK; i++) {
        const struct doc *object = doc_at(items, i);
        struct str name = doc_text(object, "metadata.name");
        if (!is_hold(object) || str_equal(name, kept))
            continue;
        *ret_count += str_is(doc_text(object, "status.phase"), "Active");
        rc = drop(holding, name);
    }
    client_reply_done(&reply);
    return rc;
}

/* --- what is in force ----------------------------------------------------------------------------- */

static void take(const struct doc *object, struct shown *ret_shown)
{
    const struct doc *names = doc_dotted(object, "status.unconfirmed");
    shown_done(ret_shown);
    *ret_shown = (struct shown){.machines = doc_number(object, "status.machines", 0),
                                .confirmed = doc_number(object, "status.confirmed", 0)};
    buf_add_str(&ret_shown->name, doc_text(object, "metadata.name"));
    buf_add_str(&ret_shown->until, doc_text(object, "status.until"));
    if (names)
        json_write(&ret_shown->missing, names);
    for (size_t i = 0; i < doc_len(names); i++)
        buf_printf(&ret_shown->named, "%s" STR_FORMAT, i ? ", " : "",
                   STR_ARG(doc_str(doc_at(names, i), STR(""))));
}

/* Reads the hold in force that ends last. */
static int look(struct holding *holding, struct shown *ret_shown)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    const struct doc *last = NULL;
    path_of(&path, (struct str){0});
    int rc = client_get(&holding->client, buf_str(&path), &reply);
    if (rc != EXIT_OK)
        return rc;
    const struct doc *items = doc_get(reply.doc, "items");
    for (size_t i = 0; i < doc_len(items); i++) {
        const struct doc *object = doc_at(items, i);
        if (!is_hold(object) || !str_is(doc_text(object, "status.phase"), "Active"))
            continue;
        if (!last || str_compare(doc_text(object, "status.until"), doc_text(last, "status.until")) > 0)
            last = object;
    }
    if (last)
        take(last, ret_shown);
    client_reply_done(&reply);
    return rc;
}

static int await_confirmations(struct holding *holding, struct shown *ret_shown)
{
    int64_t deadline_ns = client_clock() + holding->timeout_ns;
    for (;;) {
        int rc = look(holding, ret_shown);
        if (rc != EXIT_OK)
            return rc;
        if (ret_shown->name.len && ret_shown->confirmed == ret_shown->machines)
            return EXIT_OK;
        if (client_clock() >= deadline_ns)
            return EXIT_TIMEOUT;
        poll(NULL, 0, ASK_AGAIN_MS);
    }
}

/* --- output --------------------------------------------------------------------------------------- */

static void put_json(const struct shown *shown)
{
    struct buf out BUF_CLEANUP = {0};
    struct json_writer json = {.out = &out};
    bool held = shown->name.len > 0;
    json_begin_object(&json);
    json_pair_bool(&json, "held", held);
    if (held) {
        json_pair_str(&json, "name", buf_str(&shown->name));
        json_pair_str(&json, "until", buf_str(&shown->until));
        json_pair_int(&json, "machines", shown->machines);
        json_pair_int(&json, "confirmed", shown->confirmed);
        json_pair_bool(&json, "safe", shown->confirmed == shown->machines);
        json_key(&json, "unconfirmed");
        json_put_raw(&json, shown->missing.len ? buf_str(&shown->missing) : STR("[]"));
    }
    json_end_object(&json);
    buf_printf(&out, "\n");
    output_write(&out);
}

static void put_text(const struct shown *shown)
{
    struct buf out BUF_CLEANUP = {0};
    if (!shown->name.len) {
        buf_printf(&out, "leases are not held\n");
    } else {
        buf_printf(&out, "leases are held until " STR_FORMAT "; %lld of %lld machines have confirmed it\n",
                   STR_ARG(buf_str(&shown->until)), (long long)shown->confirmed, (long long)shown->machines);
        if (shown->confirmed == shown->machines)
            buf_printf(&out, "the controller can be stopped: tasks run on if it is back before then\n");
        else
            buf_printf(&out,
                       "not confirmed: " STR_FORMAT "; their tasks would end a lease after the controller "
                       "stops\n",
                       STR_ARG(buf_str(&shown->named)));
    }
    output_write(&out);
}

static int run_hold(struct holding *holding)
{
    struct shown shown = {0};
    struct buf name BUF_CLEANUP = {0};
    size_t ended = 0;
    int rc = EXIT_OK;
    if (holding->length) {
        rc = place(holding, &name);
        rc = rc == EXIT_OK ? drop_others(holding, buf_str(&name), &ended) : rc;
        rc = rc == EXIT_OK ? await_confirmations(holding, &shown) : rc;
    } else if (holding->end) {
        rc = drop_others(holding, STR(""), &ended);
    } else {
        rc = look(holding, &shown);
    }
    if (rc == EXIT_OK || rc == EXIT_TIMEOUT) {
        if (holding->json)
            put_json(&shown);
        else if (holding->end && ended)
            printf("leases are held no more\n");
        else
            put_text(&shown);
    }
    if (rc == EXIT_TIMEOUT)
        say("not every machine has confirmed the hold in time; `phalanx maintenance controller` shows it");
    shown_done(&shown);
    return rc;
}

/* --- the command ---------------------------------------------------------------------------------- */

static bool take_option(struct holding *holding, int letter)
{
    switch (letter) {
    case 'e':
        holding->end = true;
        return true;
    case 't':
        return duration_parse(str_from(optarg), &holding->timeout_ns) && holding->timeout_ns >= 0;
    case 'r':
        holding->reason = optarg;
        return true;
    case 'o':
        return usage_json(optarg, &holding->json);
    default:
        return client_option(&holding->options, letter, optarg);
    }
}

/* Returns a message about wrong arguments; NULL if they are valid. */
static const char *wrong_words(struct holding *holding, int count, char **words)
{
    int64_t length_ns;
    if (count == 0)
        return "say what the maintenance is of: controller";
    if (!str_is(str_from(words[0]), "controller"))
        return "the maintenance is of a controller; that of machines is an object (`phalanx migrate`, "
               "docs/repair.md)";
    if (count > 2)
        return "too many arguments";
    if (count == 2 && holding->end)
        return "--end takes no DURATION";
    if (count == 2 && (!duration_parse(str_from(words[1]), &length_ns) || length_ns <= 0))
        return "DURATION must be like 90s or 5m";
    holding->length = count == 2 ? words[1] : NULL;
    return NULL;
}

int cmd_maintenance(int argc, char **argv)
{
    static const struct option options[] = {{"end", no_argument, NULL, 'e'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"reason", required_argument, NULL, 'r'},
                                            {"output", required_argument, NULL, 'o'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct holding holding = {.timeout_ns = 30 * NS_PER_SECOND, .reason = "planned restart"};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, "o:" CLIENT_SHORT_OPTIONS, options, NULL)) != -1)
        usable = usage_value(take_option(&holding, letter)) && usable;
    if (holding.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    const char *wrong = usable ? wrong_words(&holding, argc - optind, argv + optind) : NULL;
    if (!usable || wrong)
        return usage_wrong(usage, wrong ? "%s" : NULL, wrong);
    int rc = client_open(&holding.client, &holding.options);
    if (rc == EXIT_OK)
        rc = run_hold(&holding);
    client_close(&holding.client);
    return rc;
}
