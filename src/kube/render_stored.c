/* render_stored.c - stored objects as they were written, with the server's own fields and their status. */
#include <stdio.h>

#include "kube/stored.h"

const char *stored_namespace_phase(const struct object *object)
{
    return object->deleted_ns ? "Terminating" : "Active";
}

/* --- status ------------------------------------------------------------------------------------ */

static void begin_status(struct render *render)
{
    json_key(&render->out, "status");
    json_begin_object(&render->out);
}

static void namespace_status(struct render *render, const struct object *object)
{
    begin_status(render);
    json_pair_text(&render->out, "phase", stored_namespace_phase(object));
    json_end_object(&render->out);
}

/* Writes the status of a claim, a directory under the volumes' root, which is bound at once. */
static void claim_status(struct render *render, const struct object *object)
{
    struct json_writer *out = &render->out;
    const struct doc *spec = doc_get(object->document, "spec");
    const struct doc *modes = doc_get(spec, "accessModes"),
                     *asked = doc_path(spec, "resources", "requests", NULL);
    begin_status(render);
    json_pair_text(out, "phase", "Bound");
    if (modes) {
        json_key(out, "accessModes");
        json_put_doc(out, modes);
    }
    if (asked) {
        json_key(out, "capacity");
        json_put_doc(out, asked);
    }
    json_end_object(out);
}

static void put_milli(struct render *render, struct str key, int64_t milli)
{
    char text[32];
    if (milli % 1000)
        snprintf(text, sizeof text, "%lldm", (long long)milli);
    else
        snprintf(text, sizeof text, "%lld", (long long)(milli / 1000));
    json_key_str(&render->out, key);
    json_put_text(&render->out, text);
}

static void quota_status(struct render *render, const struct object *object)
{
    struct json_writer *out = &render->out;
    const struct doc *hard = doc_path(object->document, "spec", "hard", NULL);
    begin_status(render);
    if (doc_len(hard) > 0) {
        json_key(out, "hard");
        json_put_doc(out, hard);
        json_key(out, "used");
        json_begin_object(out);
        for (size_t i = 0; i < doc_len(hard); i++) {
            int64_t used = 0;
            struct str key = hard->object.members[i].key;
            if (core_quota_used(render->core, object->namespace_, key, &used))
                put_milli(render, key, used);
        }
        json_end_object(out);
    }
    json_end_object(out);
}

enum { UNCONFIRMED_MAX = 100 }; /* names */

/* Writes the machines whose agents have not confirmed the current hold, and how many have: only tasks of
 * confirmed machines outlive the controller. */
static void put_confirmations(struct render *render)
{
    const struct cluster *cluster = core_cluster(render->core);
    int64_t counted = 0, confirmed = 0, named = 0;
    json_key(&render->out, "unconfirmed");
    json_begin_array(&render->out);
    for (size_t i = 0; i < cluster->machine_count; i++) {
        const struct machine *machine = &cluster->machines[i];
        if (machine->state != MACHINE_READY && machine->state != MACHINE_AWAY)
            continue; /* nothing lives there */
        bool counts = render->hold_counts(render->host, machine->id);
        counted++;
        confirmed += counts;
        if (!counts && named++ < UNCONFIRMED_MAX)
            json_put_str(&render->out, machine->name);
    }
    json_end_array(&render->out);
    json_pair_int(&render->out, "machines", counted);
    json_pair_int(&render->out, "confirmed", confirmed);
}

static void maintenance_status(struct render *render, const struct object *object)
{
    static const char *const counted[] = {"machines", NULL}, *const none[] = {NULL};
    const struct doc *status = doc_get(object->document, "status");
    bool holds = render->hold_counts && doc_path(object->document, "spec", "controller", NULL) &&
                 str_is(doc_str(doc_get(status, "phase"), STR("")), "Active");
    begin_status(render);
    render_members(render, status, holds ? counted : none);
    if (holds)
        put_confirmations(render);
    json_end_object(&render->out);
}

static void put_status(struct render *render, const struct resource *resource, const struct object *object)
{
    switch (object->kind) {
    case OBJECT_NAMESPACE:
        namespace_status(render, object);
        break;
    case OBJECT_CLAIM:
        claim_status(render, object);
        break;
    case OBJECT_RESOURCE_QUOTA:
        quota_status(render, object);
        break;
    case OBJECT_DISRUPTION_BUDGET: /* made by the core, kept in the document */
    case OBJECT_REPAIR:
        json_key(&render->out, "status");
        json_put_doc(&render->out, doc_get(object->document, "status"));
        break;
    case OBJECT_MAINTENANCE:
        maintenance_status(render, object);
        break;
    case OBJECT_SERVICE:
        begin_status(render);
        json_key(&render->out, "loadBalancer");
        json_begin_object(&render->out);
        json_end_object(&render->out);
        json_end_object(&render->out);
        break;
    case OBJECT_CLUSTER_QUEUE:
    case OBJECT_LOCAL_QUEUE:
    case OBJECT_COHORT:
        render_queue_status(render, resource, object);
        break;
    case OBJECT_ADMISSION_CHECK:
        render_check_status(render, object);
        break;
    default:
        break;
    }
}

/* --- the object ------------------------------------------------------------------------------- */

void render_stored(struct render *render, const struct resource *resource, const struct object *object)
{
    static const char *const head[] = {"apiVersion", "kind", "metadata", "status", NULL};
    struct json_writer *out = &render->out;
    struct str api_version = str_from(resource_api_version(resource));
    const struct doc *document = object_shown(render->scratch, object, api_version);
    json_begin_object(out);
    render_type(render, resource_api_version(resource), resource->kind);
    render_metadata_begin(render, &(struct render_metadata){.name = object->name,
                                                            .namespace_ = object->namespace_,
                                                            .uid = object->uid,
                                                            .version = object->changed_seq,
                                                            .generation = object->generation,
                                                            .created_ns = object->created_ns,
                                                            .deleted_ns = object->deleted_ns});
    if (object->deleted_ns)
        json_pair_int(out, "deletionGracePeriodSeconds", 0);
    render_user_metadata(render, doc_get(document, "metadata"));
    render_metadata_end(render);
    render_members(render, document, head);
    put_status(render, resource, object);
    json_end_object(out);
}
