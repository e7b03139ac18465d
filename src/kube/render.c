#include "kube/stored.h"
#include "kube/usage.h"

#include <stdio.h>
#include <stdlib.h>

void render_object(struct render *render, const struct resource *resource, struct object_ref object,
                   struct str name)
{
    if (object.kind == OBJECT_USER_EVENT) {
        render_stored(render, resource, object.object);
        return;
    }
    switch ((enum kind_view)resource->view) {
    case VIEW_JOBSET:
        render_jobset(render, object.jobset);
        return;
    case VIEW_JOB:
        render_job(render, object.job);
        return;
    case VIEW_POD:
        render_pod(render, object.task);
        return;
    case VIEW_NODE:
        render_node(render, object.machine);
        return;
    case VIEW_EVENT:
        render_event(render, object.note);
        return;
    case VIEW_WORKLOAD:
        render_workload(render, resource, object.workload);
        return;
    case VIEW_FAULT:
        render_fault(render, object.fault);
        return;
    case VIEW_FABRIC:
        render_fabric(render, object);
        return;
    case VIEW_NEW_EVENT:
        render_new_event(render, object.note);
        return;
    case VIEW_LEMON:
        render_lemon(render, object.machine);
        return;
    case VIEW_METRICS:
        if (object.kind == OBJECT_NODE)
            render_node_metrics(render, object.machine);
        else
            render_pod_metrics(render, object.task);
        return;
    case VIEW_PENDING:
        CHECK(!"the list of a queue is no object");
        return;
    case VIEW_STORED:
        CHECK(resource_is_stored(resource));
        render_stored(render, resource, object.object);
        return;
    }
}

void render_type(struct render *render, const char *api_version, const char *kind)
{
    json_pair_text(&render->out, "apiVersion", api_version);
    json_pair_text(&render->out, "kind", kind);
}

void render_time(struct render *render, const char *key, int64_t time_ns)
{
    char text[32];
    if (time_ns == 0)
        return;
    time_format(time_ns, text);
    json_pair_text(&render->out, key, text);
}

void render_micro_time(struct render *render, const char *key, int64_t time_ns)
{
    char text[40];
    if (time_ns == 0)
        return;
    time_format_micro(time_ns, text);
    json_pair_text(&render->out, key, text);
}

void render_metadata_begin(struct render *render, const struct render_metadata *metadata)
{
    struct json_writer *out = &render->out;
    char uid[UID_TEXT_MAX], version[DECIMAL_TEXT_MAX];
    json_key(out, "metadata");
    render->metadata_start = out->out->len;
    json_begin_object(out);
    json_pair_str(out, "name", metadata->name);
    if (metadata->namespace_.len)
        json_pair_str(out, "namespace", metadata->namespace_);
    uid_text(metadata->uid, uid);
    json_pair_text(out, "uid", uid);
    json_pair_str(out, "resourceVersion", str_decimal((int64_t)metadata->version, version));
    if (metadata->generation)
        json_pair_int(out, "generation", metadata->generation);
    render_time(render, "creationTimestamp", metadata->created_ns);
    render_time(render, "deletionTimestamp", metadata->deleted_ns);
}

void render_metadata_end(struct render *render)
{
    json_end_object(&render->out);
    render->metadata_len = render->out.out->len - render->metadata_start;
}

void render_owner(struct render *render, const char *api_version, const char *kind, struct str name,
                  obj_id uid)
{
    struct json_writer *out = &render->out;
    char text[UID_TEXT_MAX];
    uid_text(uid, text);
    json_key(out, "ownerReferences");
    json_begin_array(out);
    json_begin_object(out);
    json_pair_text(out, "apiVersion", api_version);
    json_pair_text(out, "kind", kind);
    json_pair_str(out, "name", name);
    json_pair_text(out, "uid", text);
    json_pair_bool(out, "controller", true);
    json_pair_bool(out, "blockOwnerDeletion", true);
    json_end_object(out);
    json_end_array(out);
}

void render_condition(struct render *render, const char *type, const char *status, int64_t changed_ns,
                      const char *reason, struct str message)
{
    struct json_writer *out = &render->out;
    json_begin_object(out);
    json_pair_text(out, "type", type);
    json_pair_text(out, "status", status);
    render_time(render, "lastTransitionTime", changed_ns);
    if (reason && *reason)
        json_pair_text(out, "reason", reason);
    if (message.len)
        json_pair_str(out, "message", message);
    json_end_object(out);
}

void render_members(struct render *render, const struct doc *doc, const char *const *skip)
{
    if (!doc || doc->kind != DOC_OBJECT)
        return;
    for (size_t i = 0; i < doc->object.len; i++) {
        const struct doc_member *member = &doc->object.members[i];
        bool skipped = false;
        for (const char *const *name = skip; *name && !skipped; name++)
            skipped = str_is(member->key, *name);
        if (skipped)
            continue;
        json_key_str(&render->out, member->key);
        json_put_doc(&render->out, member->value);
    }
}

void render_user_metadata(struct render *render, const struct doc *metadata)
{
    static const char *const ours[] = {"name",
                                       "namespace",
                                       "uid",
                                       "resourceVersion",
                                       "generation",
                                       "creationTimestamp",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "selfLink",
                                       NULL};
    render_members(render, metadata, ours);
}

void render_labels(struct render *render, const char *key, const struct labels *labels, const struct doc *doc)
{
    struct json_writer *out = &render->out;
    if (labels->len == 0 && doc_len(doc) == 0)
        return;
    json_key(out, key);
    json_begin_object(out);
    for (size_t i = 0; i < labels->len; i++) {
        json_key_str(out, labels->items[i].key);
        json_put_str(out, labels->items[i].value);
    }
    for (size_t i = 0; doc && doc->kind == DOC_OBJECT && i < doc->object.len; i++) {
        const struct doc_member *member = &doc->object.members[i];
        if (labels_get(labels, member->key, (struct str){0}).data || !member->value ||
            member->value->kind != DOC_STRING)
            continue;
        json_key_str(out, member->key);
        json_put_str(out, member->value->text);
    }
    json_end_object(out);
}
