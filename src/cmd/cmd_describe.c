/* phalanx describe: shows one object and its events for people. */
#include <stdio.h>

#include "doc/yaml.h"
#include "cmd/usage.h"
#include "cmd/describe.h"

static const char usage[] =
    "Usage: phalanx describe KIND NAME... | KIND/NAME... [options]\n"
    "\n"
    "Shows jobsets, jobs, pods or nodes in words, with their events.\n"
    "\n"
    "  -o, --output json      one JSON object each: object, and events\n" CLIENT_HELP CLIENT_EXIT_HELP;

struct describing {
    struct client client;
    struct client_options options;
    bool json;
    struct buf out;
};

/* --- pieces ------------------------------------------------------------------------------------ */

static void put(struct describing *describing, const char *name, struct str value)
{
    if (value.len)
        buf_printf(&describing->out, "%-14s " STR_FORMAT "\n", name, STR_ARG(value));
}

static void put_at(struct describing *describing, const char *name, const struct doc *object,
                   const char *path)
{
    const struct doc *node = doc_dotted(object, path);
    struct buf text BUF_CLEANUP = {0};
    if (!node || node->kind == DOC_NULL)
        return;
    if (node->kind == DOC_STRING)
        put(describing, name, node->text);
    else {
        json_write(&text, node);
        put(describing, name, buf_str(&text));
    }
}

static void put_map(struct describing *describing, const char *name, const struct doc *map)
{
    for (size_t i = 0; map && map->kind == DOC_OBJECT && i < map->object.len; i++) {
        const struct doc_member *member = &map->object.members[i];
        struct str value = doc_str(member->value, STR(""));
        if (value.len > 100)
            continue;
        buf_printf(&describing->out, "%-14s " STR_FORMAT "=" STR_FORMAT "\n", i ? "" : name,
                   STR_ARG(member->key), STR_ARG(value));
    }
}

static void put_time(struct describing *describing, const char *name, const struct doc *object,
                     const char *path)
{
    struct str text = doc_text(object, path);
    int64_t time_ns;
    char age[24];
    if (!time_parse(text, &time_ns))
        return;
    int64_t passed_ns = client_wall() - time_ns;
    age_format(passed_ns > 0 ? passed_ns : 0, age);
    buf_printf(&describing->out, "%-14s " STR_FORMAT " (%s ago)\n", name, STR_ARG(text), age);
}

static void put_table(struct describing *describing, struct text_table *table)
{
    struct buf text BUF_CLEANUP = {0};
    table_print(table, &text, output_colors());
    for (size_t start = 0; start < text.len;) {
        char *end = memchr(text.data + start, '\n', text.len - start);
        size_t len = end ? (size_t)(end - text.data) - start + 1 : text.len - start;
        buf_printf(&describing->out, "  " STR_FORMAT, STR_ARG(((struct str){text.data + start, len})));
        start += len;
    }
    table_done(table);
}

static void add_number(struct text_table *table, const struct doc *object, const char *path)
{
    const struct doc *node = doc_dotted(object, path);
    struct buf text BUF_CLEANUP = {0};
    if (node && node->kind != DOC_STRING)
        json_write(&text, node);
    table_add(table, node && node->kind == DOC_STRING ? node->text : text.len ? buf_str(&text) : STR(""));
}

static void put_conditions(struct describing *describing, const struct doc *object)
{
    static const char *const names[] = {"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"};
    const struct doc *conditions = doc_dotted(object, "status.conditions");
    struct text_table table = {.columns = 5};
    if (doc_len(conditions) == 0)
        return;
    buf_add_str(&describing->out, STR("Conditions\n"));
    table_heads(&table, names);
    for (size_t i = 0; i < doc_len(conditions); i++) {
        const struct doc *condition = doc_at(conditions, i);
        table_add(&table, doc_text(condition, "type"));
        table_add(&table, doc_text(condition, "status"));
        table_add(&table, doc_text(condition, "lastTransitionTime"));
        table_add(&table, doc_text(condition, "reason"));
        table_add(&table, doc_text(condition, "message"));
    }
    put_table(describing, &table);
}

/* --- kinds ------------------------------------------------------------------------------------- */

static void add_duration(struct text_table *table, const struct doc *record, const char *from, const char *to)
{
    int64_t start_ns, end_ns;
    char text[24];
    bool known = time_parse(doc_text(record, from), &start_ns) && time_parse(doc_text(record, to), &end_ns) &&
                 end_ns >= start_ns;
    if (known)
        duration_format(end_ns - start_ns, text);
    table_add(table, known ? str_from(text) : STR("-"));
}

static void put_restarts(struct describing *describing, const struct doc *phalanx)
{
    static const char *const names[] = {"RESTART",     "ATTEMPT",    "CAUSE",   "MACHINE",
                                        "DETECTED IN", "STARTED IN", "STEP IN", "AT STEP",
                                        "RESUMED",     "BECAUSE",    "DETAIL"};
    const struct doc *restarts = doc_get(phalanx, "restarts");
    struct text_table table = {.columns = sizeof names / sizeof *names};
    if (doc_len(restarts) == 0)
        return;
    buf_add_str(&describing->out, STR("Restarts\n"));
    table_heads(&table, names);
    for (size_t i = 0; i < doc_len(restarts); i++) {
        const struct doc *record = doc_at(restarts, i);
        add_number(&table, record, "number");
        add_number(&table, record, "attempt");
        table_add(&table, doc_text(record, "cause"));
        table_add(&table, doc_text(record, "machine"));
        add_duration(&table, record, "evidenceTime", "faultTime");
        add_duration(&table, record, "faultTime", "startedTime");
        add_duration(&table, record, "faultTime", "steppedTime");
        add_number(&table, record, "stepAtFault");
        add_number(&table, record, "resumedFrom");
        table_add(&table, doc_text(record, "attribution.cause"));
        table_add(&table, doc_text(record, "detail"));
    }
    put_table(describing, &table);
}

static void put_ledger(struct describing *describing, const struct doc *phalanx)
{
    const struct doc *owners = doc_dotted(phalanx, "ledger.chipSeconds");
    double all = 0;
    for (size_t i = 0; i < doc_len(owners); i++)
        all += doc_real(owners->object.members[i].value, 0);
    int64_t ettr_ppm = doc_number(phalanx, "ledger.ettrPpm", -1);
    if (ettr_ppm >= 0)
        buf_printf(&describing->out, "%-14s %.2f %%\n", "ETTR", (double)ettr_ppm / 10000);
    if (all <= 0)
        return;
    buf_add_str(&describing->out, STR("Chip-seconds\n"));
    for (size_t i = 0; i < doc_len(owners); i++) {
        double value = doc_real(owners->object.members[i].value, 0);
        buf_printf(&describing->out, "  %-20s %14.3f  %5.1f %%\n", owners->object.members[i].key.data, value,
                   100 * value / all);
    }
}

static void put_replicated(struct describing *describing, const struct doc *object)
{
    static const char *const names[] = {"REPLICATED JOB", "READY",  "ACTIVE",
                                        "SUCCEEDED",      "FAILED", "SUSPENDED"};
    const struct doc *statuses = doc_dotted(object, "status.replicatedJobsStatus");
    struct text_table table = {.columns = 6};
    if (doc_len(statuses) == 0)
        return;
    buf_add_str(&describing->out, STR("Jobs\n"));
    table_heads(&table, names);
    for (size_t i = 0; i < doc_len(statuses); i++) {
        const struct doc *status = doc_at(statuses, i);
        table_add(&table, doc_text(status, "name"));
        add_number(&table, status, "ready");
        add_number(&table, status, "active");
        add_number(&table, status, "succeeded");
        add_number(&table, status, "failed");
        add_number(&table, status, "suspended");
    }
    put_table(describing, &table);
}

static void put_spares(struct describing *describing, const struct doc *phalanx)
{
    int64_t wanted = doc_number(phalanx, "spares.wanted", 0);
    if (wanted > 0)
        buf_printf(&describing->out, "%-14s %lld of %lld ready\n", "Spares",
                   (long long)doc_number(phalanx, "spares.ready", 0), (long long)wanted);
}

static void put_jobset(struct describing *describing, const struct doc *object)
{
    const struct doc *phalanx = doc_dotted(object, "status.phalanx");
    put_at(describing, "State", phalanx, "state");
    put_at(describing, "Waits because", phalanx, "why");
    put_at(describing, "Attempt", phalanx, "attempt");
    put_at(describing, "Restarts", phalanx, "restartCount");
    put_at(describing, "Step", phalanx, "step");
    put_at(describing, "Total steps", phalanx, "totalSteps");
    put_at(describing, "Steps/s", phalanx, "stepsPerSecond");
    put_at(describing, "Metrics", phalanx, "metrics");
    put_at(describing, "Checkpoint", phalanx, "checkpointStep");
    put_at(describing, "Interval", phalanx, "checkpoint");
    put_spares(describing, phalanx);
    put_ledger(describing, phalanx);
    put_replicated(describing, object);
    put_restarts(describing, phalanx);
    put_conditions(describing, object);
}

static void put_pod(struct describing *describing, const struct doc *object)
{
    put_at(describing, "Phase", object, "status.phase");
    put_at(describing, "Message", object, "status.message");
    put_at(describing, "Machine", object, "spec.nodeName");
    put_at(describing, "Address", object, "status.podIP");
    put_at(describing, "Host name", object, "spec.hostname");
    put_at(describing, "Chips", object, "status.phalanx.chips");
    put_at(describing, "Rank", object, "status.phalanx.rank");
    put_at(describing, "World", object, "status.phalanx.world");
    put_at(describing, "Attempt", object, "status.phalanx.attempt");
    const struct doc *container = doc_at(doc_dotted(object, "spec.containers"), 0);
    put_at(describing, "Image", container, "image");
    put_at(describing, "Command", container, "command");
    put_at(describing, "Arguments", container, "args");
    put_at(describing, "Container", doc_at(doc_dotted(object, "status.containerStatuses"), 0), "state");
    put_conditions(describing, object);
}

static void put_job(struct describing *describing, const struct doc *object)
{
    put_at(describing, "Parallelism", object, "spec.parallelism");
    put_at(describing, "Completions", object, "spec.completions");
    put_at(describing, "Active", object, "status.active");
    put_at(describing, "Ready", object, "status.ready");
    put_at(describing, "Succeeded", object, "status.succeeded");
    put_at(describing, "Failed", object, "status.failed");
    put_at(describing, "Done indexes", object, "status.completedIndexes");
    put_time(describing, "Started", object, "status.startTime");
    put_time(describing, "Completed", object, "status.completionTime");
    put_conditions(describing, object);
}

/* Appends the pods on the machine that have not ended. */
static void put_tasks(struct describing *describing, struct str node)
{
    static const char *const names[] = {"NAMESPACE", "POD", "PHASE", "RANK", "CHIPS"};
    struct buf path BUF_CLEANUP = {0}, selector BUF_CLEANUP = {0};
    struct text_table table = {.columns = 5};
    struct client_reply list;
    buf_printf(&selector, "spec.nodeName=" STR_FORMAT ",status.phase!=Succeeded,status.phase!=Failed",
               STR_ARG(node));
    buf_add_str(&path, STR("/api/v1/pods?fieldSelector="));
    url_add(&path, buf_str(&selector));
    if (client_get(&describing->client, buf_str(&path), &list) != EXIT_OK)
        return;
    const struct doc *items = doc_get(list.doc, "items");
    if (doc_len(items)) {
        buf_add_str(&describing->out, STR("Pods\n"));
        table_heads(&table, names);
    }
    for (size_t i = 0; i < doc_len(items); i++) {
        const struct doc *pod = doc_at(items, i);
        table_add(&table, doc_text(pod, "metadata.namespace"));
        table_add(&table, doc_text(pod, "metadata.name"));
        table_add(&table, doc_text(pod, "status.phase"));
        add_number(&table, pod, "status.phalanx.rank");
        add_number(&table, pod, "status.phalanx.chips");
    }
    put_table(describing, &table);
    client_reply_done(&list);
}

static void put_node(struct describing *describing, const struct doc *object)
{
    put_at(describing, "State", object, "status.phalanx.state");
    put_at(describing, "Cordoned", object, "spec.unschedulable");
    put_at(describing, "Taints", object, "spec.taints");
    put_at(describing, "Address", doc_at(doc_dotted(object, "status.addresses"), 0), "address");
    put_at(describing, "Pod", object, "status.phalanx.pod");
    put_at(describing, "Block", object, "status.phalanx.block");
    put_at(describing, "Spare", object, "status.phalanx.spare");
    put_at(describing, "Chips", object, "status.phalanx.chips");
    put_at(describing, "Free chips", object, "status.phalanx.freeChips");
    put_at(describing, "Capacity", object, "status.capacity");
    put_conditions(describing, object);
    put_tasks(describing, doc_text(object, "metadata.name"));
}

static int put_json(struct describing *describing, const struct resource *kind, const struct doc *object)
{
    struct buf path BUF_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct client_reply list;
    struct json_writer writer = {.out = &describing->out};
    struct str namespace_ = doc_text(object, "metadata.namespace");
    const char *in = namespace_.len ? arena_strdup(&arena, namespace_) : "default";
    kind_path(&path, kind_find(STR("events")), in, (struct str){0});
    int rc = client_get(&describing->client, buf_str(&path), &list);
    if (rc != EXIT_OK)
        return rc;
    const struct doc *items = doc_get(list.doc, "items");
    json_begin_object(&writer);
    json_key(&writer, "object");
    json_put_doc(&writer, object);
    json_key(&writer, "events");
    json_begin_array(&writer);
    for (size_t i = 0; i < doc_len(items); i++)
        if (describe_is_about(doc_at(items, i), kind, object))
            json_put_doc(&writer, doc_at(items, i));
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(&describing->out, '\n');
    client_reply_done(&list);
    return EXIT_OK;
}

static int describe(struct describing *describing, const struct resource *kind, struct str name)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    const char *namespace_ = client_namespace(&describing->options);
    kind_path(&path, kind, namespace_ ? namespace_ : "default", name);
    int rc = client_get(&describing->client, buf_str(&path), &reply);
    if (rc != EXIT_OK)
        return rc;
    const struct doc *object = reply.doc;
    if (describing->json) {
        rc = put_json(describing, kind, object);
        output_write(&describing->out);
        client_reply_done(&reply);
        return rc;
    }
    put_at(describing, "Name", object, "metadata.name");
    put_at(describing, "Namespace", object, "metadata.namespace");
    put(describing, "Kind", str_from(kind->kind));
    put_map(describing, "Labels", doc_dotted(object, "metadata.labels"));
    put_time(describing, "Created", object, "metadata.creationTimestamp");
    put_time(describing, "Deleted", object, "metadata.deletionTimestamp");
    if (strcmp(kind->kind, "JobSet") == 0)
        put_jobset(describing, object);
    else if (strcmp(kind->kind, "Pod") == 0)
        put_pod(describing, object);
    else if (strcmp(kind->kind, "Job") == 0)
        put_job(describing, object);
    else if (strcmp(kind->kind, "Node") == 0)
        put_node(describing, object);
    else
        yaml_write(&describing->out, object);
    if (strcmp(kind->kind, "Event") != 0 && strcmp(kind->kind, "Namespace") != 0)
        describe_events(&describing->client, &describing->out, kind, object);
    output_write(&describing->out);
    client_reply_done(&reply);
    return EXIT_OK;
}

static int describe_all(struct describing *describing, char **args, int count)
{
    const struct resource *kind = NULL;
    int result = EXIT_OK;
    if (!kind_leading(&args, &count, &kind))
        return EXIT_USAGE;
    for (int i = 0; i < count && result != EXIT_UNREACHABLE; i++) {
        struct str name = str_from(args[i]);
        const struct resource *one = kind;
        if (!kind && !kind_split(args[i], &one, &name))
            return EXIT_USAGE;
        if (i && !describing->json)
            putchar('\n');
        int rc = describe(describing, one, name);
        if (rc != EXIT_OK)
            result = rc;
    }
    return result;
}

int cmd_describe(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, CLIENT_LONG_OPTIONS, {0}};
    struct describing describing = {0};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1)
        usable = (letter == 'o' ? usage_json(optarg, &describing.json)
                                : client_option(&describing.options, letter, optarg)) &&
                 usable;
    if (describing.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (!usable || optind == argc) {
        return usage_wrong(usage, usable ? "KIND/NAME is missing" : NULL);
    }
    client_open(&describing.client, &describing.options);
    int rc = describe_all(&describing, argv + optind, argc - optind);
    client_close(&describing.client);
    buf_done(&describing.out);
    return rc;
}
