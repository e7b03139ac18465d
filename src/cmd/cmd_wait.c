/* phalanx wait: waits until a condition holds. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/client.h"

static const char usage[] =
    "Usage: phalanx wait --for=WHAT KIND/NAME... | KIND NAME... [options]\n"
    "\n"
    "Waits until WHAT holds for every object named:\n"
    "  finished                 the object has ended; exit status 0 if it completed, 1 if it failed\n"
    "  condition=TYPE[=STATUS]  a condition has this status (default: True), such as condition=Completed\n"
    "  jsonpath='{PATH}'[=TEXT] a field exists (or equals TEXT): jsonpath='{.status.phalanx.step}'=100\n"
    "  create                   the object exists\n"
    "  delete                   the object does not exist\n"
    "\n"
    "      --for WHAT         see above (needed)\n"
    "      --timeout DURATION such as 30s, 5m; 0: no limit (default: 30s)\n" CLIENT_HELP CLIENT_EXIT_HELP;

enum goal { GOAL_FINISHED, GOAL_CONDITION, GOAL_PATH, GOAL_CREATE, GOAL_DELETE };

struct waiting {
    struct client client;
    struct client_options options;
    enum goal goal;
    struct str name, value; /* the condition or path, and the wanted value */
    bool has_value, has_goal, failed, seen, gone;
    struct buf conditions; /* of the object when last seen: "Suspended=False, FailurePolicy=True" */
    int64_t timeout_ns, deadline_ns;
};

/* The conditions that people usually wait for; the first of each kind is the example. */
static const struct {
    const char *kind, *conditions;
} usual[] = {
    {"jobset", "Completed, Failed, Suspended, StartupPolicyCompleted"},
    {"job", "Complete, Failed, Suspended"},
    {"pod", "Ready, PodScheduled, Initialized"},
    {"node", "Ready"},
    {"workload", "Admitted, QuotaReserved, PodsReady, Evicted, Finished"},
    {"clusterqueue", "Active"},
    {"localqueue", "Active"},
};

static const char *usual_conditions(const struct resource *kind)
{
    for (size_t i = 0; kind && i < sizeof usual / sizeof *usual; i++)
        if (strcmp(usual[i].kind, kind->singular) == 0)
            return usual[i].conditions;
    return NULL;
}

/* Prints the forms of --for, with the conditions of the kind that the first argument names. */
static int goal_missing(char **args, int count)
{
    struct str head = count > 0 ? str_from(args[0]) : (struct str){0}, tail;
    (void)str_cut(head, '/', &head, &tail);
    const char *conditions = usual_conditions(head.len ? kind_find(head) : NULL);
    return usage_wrong(usage, "--for=WHAT is missing, such as --for=finished%s%s",
                       conditions ? " or --for=condition=TYPE with TYPE one of "
                                  : " or --for=condition=Ready",
                       conditions ? conditions : "");
}

/* Prints the mistake in the value of --for. "Completed" alone is most probably a condition. */
static bool goal_wrong(struct str text)
{
    bool word = text.len > 0;
    for (size_t i = 0; i < text.len && word; i++)
        word = (text.data[i] >= 'a' && text.data[i] <= 'z') || (text.data[i] >= 'A' && text.data[i] <= 'Z');
    if (!word)
        return usage_value(false);
    say("--for: \"" STR_FORMAT "\" is not a valid value; did you mean --for=condition=" STR_FORMAT "?",
        STR_ARG(text), STR_ARG(text));
    return false;
}

static bool parse_goal(struct waiting *waiting, struct str text)
{
    struct str head, tail;
    waiting->has_goal = true;
    if (str_is(text, "finished") || str_is(text, "create") || str_is(text, "delete")) {
        waiting->goal = str_is(text, "finished") ? GOAL_FINISHED
                        : str_is(text, "create") ? GOAL_CREATE
                                                 : GOAL_DELETE;
        return true;
    }
    if (!str_cut(text, '=', &head, &tail) || tail.len == 0)
        return false;
    if (str_is(head, "condition")) {
        waiting->goal = GOAL_CONDITION;
        waiting->has_value = str_cut(tail, '=', &waiting->name, &waiting->value);
        if (!waiting->has_value) {
            waiting->name = tail;
            waiting->value = STR("True");
        }
        return true;
    }
    if (!str_is(head, "jsonpath"))
        return false;
    waiting->goal = GOAL_PATH;
    const char *end = memchr(tail.data, '}', tail.len);
    bool braces = tail.data[0] == '{' && end;
    waiting->name = braces ? (struct str){tail.data + 1, (size_t)(end - tail.data) - 1} : tail;
    struct str rest = braces ? (struct str){end + 1, tail.len - waiting->name.len - 2} : (struct str){0};
    if (!braces && str_cut(tail, '=', &waiting->name, &rest))
        waiting->has_value = true;
    if (rest.len && rest.data[0] == '=') {
        waiting->has_value = true;
        rest = (struct str){rest.data + 1, rest.len - 1};
    }
    waiting->value = rest;
    return waiting->name.len > 0;
}

/* Returns the value at a path such as .status.replicatedJobsStatus[0].ready; NULL if there is none. */
static const struct doc *at_path(const struct doc *node, struct str path)
{
    while (path.len && node) {
        size_t len = 0;
        if (path.data[0] == '[') {
            int64_t index;
            while (len < path.len && path.data[len] != ']')
                len++;
            if (len == path.len || !str_to_i64((struct str){path.data + 1, len - 1}, 0, INT32_MAX, &index))
                return NULL;
            node = doc_at(node, (size_t)index);
            len++;
        } else {
            size_t start = path.data[0] == '.';
            len = start;
            while (len < path.len && path.data[len] != '.' && path.data[len] != '[')
                len++;
            if (len > start)
                node = doc_get_str(node, (struct str){path.data + start, len - start});
        }
        path = (struct str){path.data + len, path.len - len};
    }
    return node;
}

static bool text_equal(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.data, b.data, a.len) == 0);
}

static bool has_condition(const struct doc *object, struct str type, struct str status)
{
    const struct doc *conditions = doc_dotted(object, "status.conditions");
    for (size_t i = 0; i < doc_len(conditions); i++)
        if (text_equal(doc_text(doc_at(conditions, i), "type"), type))
            return text_equal(doc_text(doc_at(conditions, i), "status"), status);
    return false;
}

/* Keeps the conditions of the object, for the message of a wait that times out. */
static void keep_conditions(struct waiting *waiting, const struct doc *object)
{
    const struct doc *conditions = doc_dotted(object, "status.conditions");
    buf_clear(&waiting->conditions);
    for (size_t i = 0; i < doc_len(conditions); i++)
        buf_printf(&waiting->conditions, "%s" STR_FORMAT "=" STR_FORMAT, i ? ", " : "",
                   STR_ARG(doc_text(doc_at(conditions, i), "type")),
                   STR_ARG(doc_text(doc_at(conditions, i), "status")));
}

static void say_timeout(struct waiting *waiting, const struct resource *kind, struct str name)
{
    struct str seen = buf_str(&waiting->conditions);
    if (waiting->goal != GOAL_CONDITION && waiting->goal != GOAL_FINISHED)
        say("timed out waiting for %s/" STR_FORMAT, kind->singular, STR_ARG(name));
    else if (seen.len)
        say("timed out waiting for %s/" STR_FORMAT "; its conditions are " STR_FORMAT, kind->singular,
            STR_ARG(name), STR_ARG(seen));
    else
        say("timed out waiting for %s/" STR_FORMAT "; it has no conditions yet", kind->singular,
            STR_ARG(name));
}

static bool path_holds(const struct waiting *waiting, const struct doc *object)
{
    const struct doc *node = at_path(object, waiting->name);
    struct buf text BUF_CLEANUP = {0};
    if (!node || !waiting->has_value)
        return node != NULL;
    if (node->kind == DOC_STRING)
        return str_equal(node->text, waiting->value);
    json_write(&text, node);
    return str_equal(buf_str(&text), waiting->value);
}

static bool holds(struct waiting *waiting, const struct doc *object)
{
    switch (waiting->goal) {
    case GOAL_FINISHED: {
        struct str phase = doc_text(object, "status.phase");
        bool good = has_condition(object, STR("Completed"), STR("True")) ||
                    has_condition(object, STR("Complete"), STR("True")) || str_is(phase, "Succeeded");
        bool bad = has_condition(object, STR("Failed"), STR("True")) || str_is(phase, "Failed");
        waiting->failed |= bad;
        return good || bad;
    }
    case GOAL_CONDITION:
        return has_condition(object, waiting->name, waiting->value);
    case GOAL_PATH:
        return path_holds(waiting, object);
    case GOAL_CREATE:
        return true;
    case GOAL_DELETE:
        return false;
    }
    return false;
}

static bool on_object(void *context, const char *type, const struct doc *object)
{
    struct waiting *waiting = context;
    if (strcmp(type, "BEGIN") == 0) {
        waiting->seen = false;
        return true;
    }
    if (strcmp(type, "DELETED") == 0 || (strcmp(type, "SYNCED") == 0 && !waiting->seen)) {
        waiting->gone = waiting->goal != GOAL_CREATE;
        return !waiting->gone;
    }
    waiting->seen = true;
    if (object)
        keep_conditions(waiting, object);
    return !object || !holds(waiting, object);
}

static int wait_one(struct waiting *waiting, const struct resource *kind, struct str name)
{
    struct buf path BUF_CLEANUP = {0}, query BUF_CLEANUP = {0};
    struct client_reply reply;
    const char *namespace_ = client_namespace(&waiting->options);
    kind_path(&path, kind, namespace_ ? namespace_ : "default", name);
    int rc = client_call(&waiting->client, &(struct client_request){.path = buf_str(&path)}, &reply);
    if (rc != EXIT_OK)
        return rc;
    bool absent = reply.code == 404;
    if (reply.code >= 400 && !(absent && (waiting->goal == GOAL_CREATE || waiting->goal == GOAL_DELETE)))
        rc = client_refused(&reply, NULL);
    client_reply_done(&reply);
    if (rc != EXIT_OK)
        return rc;
    if (!(absent && waiting->goal == GOAL_DELETE)) {
        buf_clear(&path);
        kind_path(&path, kind, namespace_ ? namespace_ : "default", (struct str){0});
        buf_add_str(&query, STR("fieldSelector=metadata.name%3D"));
        url_add(&query, name);
        rc = client_watch(&waiting->client, buf_str(&path), buf_str(&query), waiting->deadline_ns, on_object,
                          waiting);
    }
    if (rc == EXIT_TIMEOUT)
        say_timeout(waiting, kind, name);
    if (rc == EXIT_OK && waiting->gone && waiting->goal != GOAL_DELETE) {
        say("%s/" STR_FORMAT " was deleted", kind->singular, STR_ARG(name));
        rc = EXIT_NOT_FOUND;
    }
    if (rc == EXIT_OK)
        output_print("%s/" STR_FORMAT " %s\n", kind->singular, STR_ARG(name),
                     waiting->goal == GOAL_FINISHED ? (waiting->failed ? "failed" : "completed")
                                                    : "condition met");
    return rc;
}

static int wait_all(struct waiting *waiting, char **args, int count)
{
    const struct resource *kind = NULL;
    int result = EXIT_OK;
    if (!kind_leading(&args, &count, &kind))
        return EXIT_USAGE;
    for (int i = 0; i < count && result == EXIT_OK; i++) {
        struct str name = str_from(args[i]);
        const struct resource *one = kind;
        if (!kind && !kind_split(args[i], &one, &name))
            return EXIT_USAGE;
        result = wait_one(waiting, one, name);
    }
    return result == EXIT_OK && waiting->failed ? EXIT_FAILED : result;
}

int cmd_wait(int argc, char **argv)
{
    static const struct option options[] = {{"for", required_argument, NULL, 'F'},
                                            {"timeout", required_argument, NULL, 't'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct waiting waiting = {.timeout_ns = 30 * NS_PER_SECOND};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1) {
        if (letter == 'F')
            usable = (parse_goal(&waiting, str_from(optarg)) || goal_wrong(str_from(optarg))) && usable;
        else if (letter == 't')
            usable = usage_value(duration_parse(str_from(optarg), &waiting.timeout_ns)) && usable;
        else
            usable = client_option(&waiting.options, letter, optarg) && usable;
    }
    if (waiting.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (usable && !waiting.has_goal)
        return goal_missing(argv + optind, argc - optind);
    if (!usable || optind == argc)
        return usage_wrong(usage, usable ? "KIND/NAME is missing" : NULL);
    waiting.deadline_ns = waiting.timeout_ns > 0 ? client_clock() + waiting.timeout_ns : INT64_MAX;
    client_open(&waiting.client, &waiting.options);
    int rc = wait_all(&waiting, argv + optind, argc - optind);
    client_close(&waiting.client);
    buf_done(&waiting.conditions);
    return rc;
}
