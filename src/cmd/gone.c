#include "cmd/gone.h"

struct watched {
    struct str uid;
    bool listed; /* the object was in the first list */
};

static bool on_object(void *context, const char *type, const struct doc *object)
{
    struct watched *watched = context;
    if (strcmp(type, "BEGIN") == 0) {
        watched->listed = false;
        return true;
    }
    if (strcmp(type, "SYNCED") == 0)
        return watched->listed;
    bool same = str_equal(doc_text(object, "metadata.uid"), watched->uid);
    watched->listed |= same;
    return !same || strcmp(type, "DELETED") != 0;
}

int wait_gone(struct client *client, const struct resource *kind, const char *namespace_, struct str name,
              struct str uid, int64_t deadline_ns)
{
    struct watched watched = {.uid = uid};
    for (;;) {
        struct buf path BUF_CLEANUP = {0}, query BUF_CLEANUP = {0};
        struct client_reply reply;
        kind_path(&path, kind, namespace_, name);
        int rc = client_call(client, &(struct client_request){.path = buf_str(&path)}, &reply);
        if (rc != EXIT_OK)
            return rc;
        bool gone = reply.code == 404 || !str_equal(doc_text(reply.doc, "metadata.uid"), uid);
        client_reply_done(&reply);
        if (gone)
            return EXIT_OK;
        if (client_clock() >= deadline_ns) {
            say("%s/" STR_FORMAT " is still there", kind->singular, STR_ARG(name));
            return EXIT_TIMEOUT;
        }
        buf_clear(&path);
        kind_path(&path, kind, namespace_, (struct str){0});
        buf_printf(&query, "fieldSelector=metadata.name%%3D");
        url_add(&query, name);
        rc = client_watch(client, buf_str(&path), buf_str(&query), deadline_ns, on_object, &watched);
        if (rc != EXIT_OK && rc != EXIT_TIMEOUT)
            return rc;
    }
}
