#include "cmd/fabric_drain.h"

#include <stdio.h>
#include <string.h>

bool fabric_thing(const char *text, const struct resource **ret_kind, struct str *ret_name)
{
    struct str kind, name;
    if (!str_cut(str_from(text), '/', &kind, &name) || name.len == 0)
        return false;
    const struct resource *found = kind_find(kind);
    if (!found || (found->id != RESOURCE_SWITCHES && found->id != RESOURCE_CUBES))
        return false;
    *ret_kind = found;
    *ret_name = name;
    return true;
}

int fabric_set_drain(struct client *client, const struct resource *kind, struct str name, bool drain)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    kind_path(&path, kind, NULL, name);
    struct client_request request = {.method = "PATCH",
                                     .path = buf_str(&path),
                                     .content_type = "application/merge-patch+json",
                                     .body = drain ? STR("{\"spec\":{\"unschedulable\":true}}")
                                                   : STR("{\"spec\":{\"unschedulable\":null}}")};
    int rc = client_do(client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    printf("%s/" STR_FORMAT " %s\n", kind->singular, STR_ARG(name), drain ? "draining" : "back in service");
    fflush(stdout);
    client_reply_done(&reply);
    return EXIT_OK;
}

struct fabric_waiting {
    const char *condition;
    bool holds, gone;
    char why[240];
};

static void take_condition(struct fabric_waiting *waiting, const struct doc *object)
{
    const struct doc *conditions = doc_path(object, "status", "conditions", NULL);
    for (size_t i = 0; i < doc_len(conditions); i++) {
        const struct doc *condition = doc_at(conditions, i);
        if (!str_is(doc_text(condition, "type"), waiting->condition))
            continue;
        struct str why = doc_text(condition, "message");
        waiting->holds = str_is(doc_text(condition, "status"), "True");
        snprintf(waiting->why, sizeof waiting->why, STR_FORMAT, STR_ARG(why));
    }
}

static bool on_fabric_change(void *context, const char *type, const struct doc *object)
{
    struct fabric_waiting *waiting = context;
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        take_condition(waiting, object);
    waiting->gone |= strcmp(type, "DELETED") == 0;
    return !waiting->holds && !waiting->gone;
}

int fabric_wait(struct client *client, const struct resource *kind, struct str name, const char *condition,
                int64_t deadline_ns)
{
    struct buf path BUF_CLEANUP = {0}, query BUF_CLEANUP = {0};
    struct fabric_waiting waiting = {.condition = condition};
    kind_path(&path, kind, NULL, (struct str){0});
    buf_printf(&query, "fieldSelector=metadata.name%%3D");
    url_add(&query, name);
    int rc = client_watch(client, buf_str(&path), buf_str(&query), deadline_ns, on_fabric_change, &waiting);
    if (waiting.holds) {
        printf("%s/" STR_FORMAT " is %s\n", kind->singular, STR_ARG(name),
               strcmp(condition, "Drained") == 0 ? "drained" : "ready");
        return EXIT_OK;
    }
    if (waiting.gone)
        say("%s/" STR_FORMAT " has left the cluster file", kind->singular, STR_ARG(name));
    else if (rc == EXIT_TIMEOUT)
        say("%s/" STR_FORMAT " is not %s yet%s%s", kind->singular, STR_ARG(name),
            strcmp(condition, "Drained") == 0 ? "drained" : "ready", waiting.why[0] ? ": " : "", waiting.why);
    return rc == EXIT_OK ? EXIT_FAILED : rc;
}
