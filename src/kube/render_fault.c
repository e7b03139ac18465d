/* render_fault.c - Faults (core/health/fault.h) as phalanx.dev shows them. */
#include "core/health/fault.h"
#include "kube/render.h"

static void put_spec(struct render *render, const struct fault *fault)
{
    struct json_writer *out = &render->out;
    json_key(out, "spec");
    json_begin_object(out);
    struct str name;
    enum place_kind kind = fault_place(fault, &name);
    json_pair_str(out,
                  kind == PLACE_MACHINE  ? "machine"
                  : kind == PLACE_SWITCH ? "switch"
                  : kind == PLACE_CUBE   ? "cube"
                                         : "link",
                  name);
    json_pair_str(out, "code", fault->code);
    if (fault->place.len)
        json_pair_str(out, "place", fault->place);
    if (fault->chip >= 0)
        json_pair_int(out, "chip", fault->chip);
    if (fault->sender.len)
        json_pair_str(out, "sender", fault->sender);
    json_end_object(out);
}

static void put_jobs(struct render *render, const struct fault *fault)
{
    struct json_writer *out = &render->out;
    if (!fault->job_count)
        return;
    json_key(out, "jobs");
    json_begin_array(out);
    for (uint32_t i = 0; i < fault->job_count; i++)
        json_put_str(out, fault->jobs[i]);
    json_end_array(out);
}

static void put_status(struct render *render, const struct fault *fault)
{
    struct json_writer *out = &render->out;
    json_key(out, "status");
    json_begin_object(out);
    json_pair_text(out, "state", fault->open ? "Open" : "Closed");
    json_pair_text(out, "level", fault_level_names[fault->level]);
    if (fault->reason != RAISED_NOT) {
        json_pair_text(out, "ownLevel", fault_level_names[fault->own]);
        json_pair_text(out, "raisedBy", fault_reason_names[fault->reason]);
    }
    json_pair_text(out, "domain", fault_domain_names[fault->domain]);
    json_pair_text(out, "severity", fault->high ? "high" : "low");
    json_pair_text(out, "action", fault_action_names[fault->action]);
    if (fault->remedy.len)
        json_pair_str(out, "remedy", fault->remedy);
    json_pair_int(out, "count", (int64_t)fault->count);
    render_micro_time(render, "firstSeen", fault->first_ns);
    render_micro_time(render, "lastSeen", fault->last_ns);
    render_micro_time(render, "closedAt", fault->closed_ns);
    json_pair_str(out, "evidence", buf_str(&fault->evidence));
    put_jobs(render, fault);
    if (fault->software)
        json_pair_bool(out, "software", true);
    if (fault->user.len)
        json_pair_str(out, "reportedBy", fault->user);
    json_end_object(out);
}

void render_fault(struct render *render, const struct fault *fault)
{
    json_begin_object(&render->out);
    render_type(render, "phalanx.dev/v1", "Fault");
    render_metadata_begin(render, &(struct render_metadata){.name = fault->name,
                                                            .uid = fault->uid,
                                                            .version = fault->changed_seq,
                                                            .created_ns = fault->created_ns});
    render_metadata_end(render);
    put_spec(render, fault);
    put_status(render, fault);
    json_end_object(&render->out);
}

void fault_cells(struct render *render, const struct fault *fault)
{
    struct json_writer *out = &render->out;
    json_put_str(out, fault->name);
    json_put_str(out, fault->machine);
    json_put_str(out, fault->code);
    json_put_str(out, fault->place);
    json_put_text(out, fault_level_names[fault->level]);
    json_put_text(out, fault->open ? "Open" : "Closed");
    json_put_text(out, fault_action_names[fault->action]);
    json_put_int(out, (int64_t)fault->count);
}
