#include "cmd/node_empty.h"

#include <stdio.h>
#include <string.h>

struct waiting {
    bool any_left; /* in the first list */
    int64_t deadline_ns;
};

struct str node_named(const char *text)
{
    struct str kind, name;
    bool node = str_cut(str_from(text), '/', &kind, &name) && kind_find(kind) == kind_find(STR("node"));
    return node ? name : str_from(text);
}

int node_must_exist(struct client *client, struct str machine)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    kind_path(&path, kind_find(STR("node")), NULL, machine);
    int rc = client_get(client, buf_str(&path), &reply);
    if (rc == EXIT_OK)
        client_reply_done(&reply);
    return rc;
}

static bool on_change(void *context, const char *type, const struct doc *object)
{
    struct waiting *waiting = context;
    (void)object;
    if (strcmp(type, "BEGIN") == 0)
        waiting->any_left = false;
    if (strcmp(type, "ADDED") == 0)
        waiting->any_left = true;
    if (strcmp(type, "SYNCED") == 0)
        return waiting->any_left; /* the last pod may have ended since the list was read */
    return strcmp(type, "BEGIN") == 0 || strcmp(type, "ADDED") == 0 || client_clock() >= waiting->deadline_ns;
}

void node_pods_query(struct buf *out, struct str machine)
{
    buf_printf(out, "fieldSelector=spec.nodeName%%3D");
    url_add(out, machine);
    buf_printf(out, "%%2Cstatus.phase%%21%%3DSucceeded%%2Cstatus.phase%%21%%3DFailed");
}

int node_wait_empty(struct client *client, struct str machine, int64_t deadline_ns)
{
    struct waiting waiting = {.deadline_ns = deadline_ns};
    struct buf path BUF_CLEANUP = {0}, query BUF_CLEANUP = {0}, list BUF_CLEANUP = {0};
    kind_path(&path, kind_find(STR("pod")), NULL, (struct str){0});
    node_pods_query(&query, machine);
    buf_printf(&list, STR_FORMAT "?" STR_FORMAT, STR_ARG(buf_str(&path)), STR_ARG(buf_str(&query)));
    for (;;) {
        struct client_reply reply;
        int rc = client_get(client, buf_str(&list), &reply);
        if (rc != EXIT_OK)
            return rc;
        size_t left = doc_len(doc_get(reply.doc, "items"));
        client_reply_done(&reply);
        if (left == 0)
            break;
        if (client_clock() >= deadline_ns) {
            say("%zu pods are still on " STR_FORMAT, left, STR_ARG(machine));
            return EXIT_TIMEOUT;
        }
        rc = client_watch(client, buf_str(&path), buf_str(&query), deadline_ns, on_change, &waiting);
        if (rc != EXIT_OK && rc != EXIT_TIMEOUT)
            return rc;
    }
    output_print("node/" STR_FORMAT " is empty\n", STR_ARG(machine));
    return EXIT_OK;
}
