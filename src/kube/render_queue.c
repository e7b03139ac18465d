/* render_queue.c - the queues' state in the status of Kueue's queue objects. */
#include "core/admit/admit.h"
#include "kube/stored.h"

struct usages {
    VEC(struct queue_usage) list;
};

static void keep_usage(void *context, const struct queue_usage *usage)
{
    struct usages *usages = context;
    vec_push(&usages->list, *usage);
}

static void put_total(struct render *render, const char *key, struct str resource, int64_t amount)
{
    struct buf text BUF_CLEANUP = {0};
    amount_format(&text, resource, amount);
    json_pair_str(&render->out, key, buf_str(&text));
}

/* Writes the usage of flavours in their order, each with its resources; `key` is flavorsReservation or
 * flavorsUsage. */
static void put_usage(struct render *render, const char *key, const struct usages *usages, bool admitted,
                      bool borrowed)
{
    struct json_writer *out = &render->out;
    json_key(out, key);
    json_begin_array(out);
    for (size_t i = 0; i < usages->list.len;) {
        struct str flavor = usages->list.items[i].flavor;
        json_begin_object(out);
        json_pair_str(out, "name", flavor);
        json_key(out, "resources");
        json_begin_array(out);
        for (; i < usages->list.len && str_equal(usages->list.items[i].flavor, flavor); i++) {
            const struct queue_usage *usage = &usages->list.items[i];
            json_begin_object(out);
            json_pair_str(out, "name", usage->resource);
            put_total(render, "total", usage->resource, admitted ? usage->admitted : usage->reserved);
            if (borrowed)
                put_total(render, "borrowed", usage->resource, usage->borrowed);
            json_end_object(out);
        }
        json_end_array(out);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_share(struct render *render, const struct object *object)
{
    json_key(&render->out, "fairSharing");
    json_begin_object(&render->out);
    json_pair_int(&render->out, "weightedShare", queue_weighted_share(core_admit(render->core), object));
    json_end_object(&render->out);
}

void render_queue_status(struct render *render, const struct resource *resource, const struct object *object)
{
    struct json_writer *out = &render->out;
    struct queue_condition active;
    struct queue_counts counts;
    struct usages usages = {0};
    (void)resource;
    bool known = queue_status(core_admit(render->core), object, &active, &counts);
    bool cluster_wide = object->kind != OBJECT_LOCAL_QUEUE;
    json_key(out, "status");
    json_begin_object(out);
    if (known) {
        json_pair_int(out, "pendingWorkloads", counts.pending);
        json_pair_int(out, "reservingWorkloads", counts.reserving);
        json_pair_int(out, "admittedWorkloads", counts.admitted);
        queue_usage_visit(core_admit(render->core), object, keep_usage, &usages);
        put_usage(render, "flavorsReservation", &usages, false, cluster_wide);
        put_usage(render, "flavorsUsage", &usages, true, cluster_wide);
        json_key(out, "conditions");
        json_begin_array(out);
        render_condition(render, "Active", active.active ? "True" : "False", active.changed_ns, active.reason,
                         active.message);
        json_end_array(out);
    }
    if (cluster_wide)
        put_share(render, object);
    json_end_object(out);
    vec_done(&usages.list);
}

void render_check_status(struct render *render, const struct object *object)
{
    const struct doc *said = doc_get(object->document, "status");
    json_key(&render->out, "status");
    if (said && admission_check_served(object)) {
        json_put_doc(&render->out, said);
        return;
    }
    json_begin_object(&render->out);
    if (!admission_check_served(object)) {
        json_key(&render->out, "conditions");
        json_begin_array(&render->out);
        render_condition(render, "Active", "False", object->created_ns, "ControllerNotServed",
                         STR("Nobody here acts for a controller that is part of Kueue"));
        json_end_array(&render->out);
    }
    json_end_object(&render->out);
}

void render_queue_counts(const struct render *render, const struct object *object, int64_t *ret_pending,
                         int64_t *ret_admitted)
{
    struct queue_condition active;
    struct queue_counts counts = {0};
    queue_status(core_admit(render->core), object, &active, &counts);
    *ret_pending = counts.pending;
    *ret_admitted = counts.admitted;
}
