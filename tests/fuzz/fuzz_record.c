/* Log records: arbitrary bytes decode or are refused; what decodes encodes to bytes that mean the same; and
 * the core takes whatever decodes, in any order (it is total). The input is a sequence of {u8 seconds passed,
 * u16 length, record}. */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/core.h"
#include "core/log/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 20, EVENTS_MAX = 64 };

static const char cluster_json[] =
    "{\"apiVersion\":\"phalanx.dev/"
    "v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"c\"},\"spec\":{\"machineNames\":\"m-{n}\","
    "\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[{\"machines\":2,\"chips\":4}]}]}}";
static const char jobset_json[] =
    "{\"apiVersion\":\"jobset.x-k8s.io/"
    "v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"failurePolicy\":"
    "{\"maxRestarts\":2},\"replicatedJobs\":[{\"name\":\"w\",\"replicas\":2,\"template\":{\"spec\":{"
    "\"parallelism\":2,"
    "\"completions\":2,\"backoffLimit\":1,\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":"
    "[{\"name\":\"c\","
    "\"image\":\"i\",\"command\":[\"x\"],\"resources\":{\"limits\":{\"google.com/tpu\":1}}}]}}}}}]}}";

static void apply(struct core *core, struct event *event, int64_t later_ns, struct effects *effects)
{
    event->seq = core_seq(core) + 1;
    event->stamp_ns = core_now(core) + later_ns;
    core_step(core, event, effects);
}

/* Two machines, and a JobSet whose tasks have been told to start on them. */
static struct core *make_core(struct effects *effects)
{
    struct core *core = core_new();
    struct event cluster = {.kind = EVENT_CLUSTER}, write = {.kind = EVENT_WRITE},
                 hello = {.kind = EVENT_MACHINE_HELLO};
    cluster.cluster.document = str_from(cluster_json);
    apply(core, &cluster, 1, effects);
    for (int i = 0; i < 2; i++) {
        hello.machine_hello.hello =
            (struct hello){.version = 1, .machine = i ? STR("m-2") : STR("m-1"), .chips = 4};
        apply(core, &hello, 1, effects);
    }
    write.write = (struct write_event){.verb = WRITE_CREATE,
                                       .object = OBJECT_JOBSET,
                                       .namespace_ = STR("default"),
                                       .body = str_from(jobset_json),
                                       .grace_s = -1};
    apply(core, &write, 1, effects);
    CHECK(core_jobs(core)->tasks.len == 4);
    return core;
}

static void check_stable(const struct event *event)
{
    BUF_CLEANUP struct buf first = {0}, second = {0};
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf line = {0};
    struct event back;
    record_encode(&first, event);
    CHECK(record_decode(&arena, buf_str(&first), &back, NULL) == 0 && back.kind == event->kind);
    record_encode(&second, &back);
    CHECK(str_equal(buf_str(&first), buf_str(&second)));
    record_describe(&line, event);
}

/* Small uids in reports stand for the core's own tasks, so that the fuzzer need not find them. */
static void aim(const struct core *core, struct event *event)
{
    const struct job_store *store = core_jobs(core);
    if (store->jobsets.len == 0)
        return;
    const struct jobset *jobset = store->jobsets.items[0];
    if (event->kind == EVENT_PROGRESS && event->progress.jobset < 16)
        event->progress.jobset = jobset->uid;
    bool reports = event->kind == EVENT_REPORTS, hello = event->kind == EVENT_MACHINE_HELLO;
    struct task_report *items = reports ? event->reports.reports.items : event->machine_hello.hello.reports;
    size_t count = reports ? event->reports.reports.count
                   : hello ? event->machine_hello.hello.report_count
                           : 0;
    for (size_t i = 0; i < count; i++) {
        const struct job *job = jobset->job_count ? jobset->jobs[items[i].task % jobset->job_count] : NULL;
        if (items[i].task < 16 && job && job->tasks.len)
            items[i].task = job->tasks.items[items[i].task / 4 % job->tasks.len]->uid;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct effects effects = {0};
    struct core *core = make_core(&effects);
    for (int n = 0; n < EVENTS_MAX && size >= 3; n++) {
        size_t len = data[1] | (size_t)data[2] << 8;
        int64_t later_ns = data[0] * NS_PER_SECOND;
        data += 3;
        size -= 3;
        len = len < size ? len : size;
        ARENA_CLEANUP struct arena arena = {.limit_bytes = LIMIT};
        struct event event;
        struct error error = {0};
        int rc = record_decode(&arena, (struct str){(const char *)data, len}, &event, &error);
        CHECK(rc == 0 || error.text[0]);
        if (rc == 0) {
            check_stable(&event);
            aim(core, &event);
            apply(core, &event, later_ns, &effects);
            core_check_invariants(core);
        }
        data += len;
        size -= len;
    }
    core_free(core);
    vec_done(&effects.list);
    return 0;
}
