/* diagnosis.c - jobsets/NAME/diagnosis and jobs/NAME/diagnosis: POST requests the records of a running job's
 * ranks (hang/hang.h). GET returns the last answers with all records, which the client judges by the same
 * rule as files (diagnose/diagnose.h). */
#include "core/hang/hang.h"
#include "kube/render.h"
#include "host/api/subresource.h"
#include "host/api/write.h"

static void put_time(struct json_writer *out, const char *key, int64_t time_ns)
{
    char text[40];
    if (time_ns <= 0)
        return;
    time_format_micro(time_ns, text);
    json_pair_text(out, key, text);
}

static void put_part(struct json_writer *out, const struct hang_part *part)
{
    json_begin_object(out);
    json_pair_str(out, "pod", part->pod);
    json_pair_str(out, "machine", part->machine);
    json_pair_int(out, "world", part->world);
    json_pair_int(out, "rank", part->rank);
    json_pair_int(out, "worldSize", part->size);
    json_pair_bool(out, "answered", part->answered);
    if (part->record.len)
        json_pair_str(out, part->answered ? "record" : "reason", part->record);
    json_end_object(out);
}

static void answer_diagnosis(struct api_request *request, const struct hang_watch *watch)
{
    struct json_writer out = answer_begin(request, 200);
    json_begin_object(&out);
    json_pair_text(&out, "kind", "Diagnosis");
    json_pair_text(&out, "apiVersion", "phalanx.dev/v1");
    json_pair_int(&out, "number", watch ? (int64_t)watch->number : 0);
    if (watch && watch->number) {
        json_pair_bool(&out, "asked", watch->asked);
        json_pair_bool(&out, "collecting", watch->phase == HANG_COLLECTING);
        json_pair_bool(&out, "recordsDropped", watch->forgotten);
        put_time(&out, "startTime", watch->begun_ns);
        put_time(&out, "completionTime", watch->judged_ns);
        json_pair_text(&out, "verdict", hang_verdict_names[watch->verdict]);
        json_pair_str(&out, "message", watch->text);
        json_key(&out, "parts");
        json_begin_array(&out);
        for (size_t i = 0; watch->phase == HANG_WATCHING && i < watch->part_count; i++)
            put_part(&out, &watch->parts[i]);
        json_end_array(&out);
    }
    json_end_object(&out);
}

static obj_id jobset_of(const struct object_ref *object)
{
    return object->kind == OBJECT_JOBSET ? object->jobset->uid : object->job->jobset->uid;
}

void handle_diagnosis(struct api_request *request)
{
    struct object_ref object;
    bool dry_run = str_is(request_query(request, "dryRun"), "All"); /* requests nothing, and answers as GET */
    if (request->method == METHOD_POST && !dry_run) {
        struct write_job *job = write_job_new(request, WRITE_DIAGNOSE);
        job->event.name = request->name;
        write_submit(request);
    } else if (request->method != METHOD_GET && request->method != METHOD_POST) {
        answer_status(request, 405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
    } else if (!request_find(request, &object)) {
        answer_not_found(request);
    } else {
        answer_diagnosis(request, hang_find(core_hang_watches(request_core(request)), jobset_of(&object)));
    }
}
