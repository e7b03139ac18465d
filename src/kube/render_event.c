#include <stdio.h>

#include "kube/render.h"

void render_note_name(const struct note *note, char ret_name[NOTE_NAME_MAX])
{
    snprintf(ret_name, NOTE_NAME_MAX, STR_FORMAT ".%llx", STR_ARG(note->name),
             (unsigned long long)note->slot);
}

struct str render_note_namespace(const struct note *note)
{
    return note->namespace_.len ? note->namespace_ : STR("default");
}

static void put_head(struct render *render, const struct note *note, const char *api_version)
{
    char name[NOTE_NAME_MAX];
    render_note_name(note, name);
    json_begin_object(&render->out);
    render_type(render, api_version, "Event");
    render_metadata_begin(render, &(struct render_metadata){.name = str_from(name),
                                                            .namespace_ = render_note_namespace(note),
                                                            .uid = note->uid,
                                                            .version = note->changed_seq,
                                                            .created_ns = note->first_ns});
    render_metadata_end(render);
}

static void put_about(struct render *render, const char *key, const struct note *note)
{
    struct json_writer *out = &render->out;
    const struct resource *resource = resource_of_kind(note->regarding);
    char uid[UID_TEXT_MAX];
    json_key(out, key);
    json_begin_object(out);
    if (resource) {
        json_pair_text(out, "kind", resource->kind);
        json_pair_text(out, "apiVersion", resource_api_version(resource));
    }
    if (note->namespace_.len)
        json_pair_str(out, "namespace", note->namespace_);
    json_pair_str(out, "name", note->name);
    /* Kubernetes' components use the node's name as uid in a Node's events, and clients that describe a node
     * search for that. */
    if (note->regarding == OBJECT_NODE) {
        json_pair_str(out, "uid", note->name);
    } else if (note->regarding_uid) {
        uid_text(note->regarding_uid, uid);
        json_pair_text(out, "uid", uid);
    }
    json_end_object(out);
}

static void put_source(struct render *render, const char *key)
{
    json_key(&render->out, key);
    json_begin_object(&render->out);
    json_pair_text(&render->out, "component", "phalanx-controller");
    json_end_object(&render->out);
}

void render_event(struct render *render, const struct note *note)
{
    struct json_writer *out = &render->out;
    put_head(render, note, "v1");
    put_about(render, "involvedObject", note);
    json_pair_str(out, "reason", note->reason);
    json_pair_str(out, "message", note->message);
    put_source(render, "source");
    render_time(render, "firstTimestamp", note->first_ns);
    render_time(render, "lastTimestamp", note->last_ns);
    json_pair_int(out, "count", note->count);
    json_pair_text(out, "type", note->warning ? "Warning" : "Normal");
    json_key(out, "eventTime");
    json_put_null(out);
    json_pair_text(out, "reportingComponent", "phalanx-controller");
    json_pair_text(out, "reportingInstance", "");
    json_end_object(out);
}

void render_new_event(struct render *render, const struct note *note)
{
    struct json_writer *out = &render->out;
    put_head(render, note, "events.k8s.io/v1");
    render_micro_time(render, "eventTime", note->first_ns);
    put_about(render, "regarding", note);
    json_pair_str(out, "reason", note->reason);
    json_pair_str(out, "note", note->message);
    json_pair_text(out, "action", "Reconciling");
    json_pair_text(out, "type", note->warning ? "Warning" : "Normal");
    json_pair_text(out, "reportingController", "phalanx-controller");
    json_pair_text(out, "reportingInstance", "phalanx-controller");
    if (note->count > 1) {
        json_key(out, "series");
        json_begin_object(out);
        json_pair_int(out, "count", note->count);
        render_micro_time(render, "lastObservedTime", note->last_ns);
        json_end_object(out);
    }
    put_source(render, "deprecatedSource");
    render_time(render, "deprecatedFirstTimestamp", note->first_ns);
    render_time(render, "deprecatedLastTimestamp", note->last_ns);
    json_pair_int(out, "deprecatedCount", note->count);
    json_end_object(out);
}
