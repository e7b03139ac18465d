/* Any YAML or JSON text through all steps of a JobSet's write: no crash, defaults are idempotent, every error
 * has a message, an object is never changed by itself. */
#include <stdint.h>

#include "base/check.h"
#include "doc/yaml.h"
#include "core/spec/pod_security.h"
#include "core/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20, FUZZED_MAX = 4 };

static void check_errors(const struct field_errors *errors)
{
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; i < errors->list.len; i++)
        CHECK(errors->list.items[i].message.len > 0 && errors->list.items[i].reason);
    field_errors_print(errors, &text);
    CHECK(errors->list.len <= FIELD_ERRORS_MAX && str_is_utf8(buf_str(&text)));
}

static void check_spec(const struct jobset_spec *spec)
{
    for (size_t i = 0; i < spec->rjob_count; i++) {
        const struct rjob_spec *rjob = &spec->rjobs[i];
        CHECK(rjob->replicas >= 0 && rjob->job.parallelism >= 0);
        CHECK(!rjob->job.indexed || rjob->job.completions >= 0);
        for (size_t k = 0; k < rjob->depend_count; k++)
            CHECK(rjob->depends[k].rjob < i);
        for (size_t k = 1; k < rjob->job.pod.node_selector.len; k++)
            CHECK(str_compare(rjob->job.pod.node_selector.items[k - 1].key,
                              rjob->job.pod.node_selector.items[k].key) < 0);
    }
}

/* A Pod that fits restricted fits baseline, and everything fits privileged. The document may be of any
 * shape. */
static void check_levels(const struct doc *doc)
{
    for (size_t i = 0; i < FUZZED_MAX; i++) {
        const struct doc *pod = doc_get(workload_pod_template(doc, i), "spec");
        BUF_CLEANUP struct buf baseline = {0}, restricted = {0};
        bool open = pod_security_violated(pod, POD_SECURITY_BASELINE, &baseline);
        bool beyond = pod_security_violated(pod, POD_SECURITY_RESTRICTED, &restricted);
        CHECK(beyond || !open);
        CHECK(open == (baseline.len > 0) && beyond == (restricted.len > 0));
        CHECK(!pod_security_violated(pod, POD_SECURITY_PRIVILEGED, &baseline));
        (void)pod_security_asks_root(pod);
    }
}

static void run(struct arena *arena, struct doc *doc)
{
    check_levels(doc);
    struct field_errors errors = {.arena = arena}, none = {.arena = arena};
    struct jobset_spec spec;
    spec_unknown_fields(doc, &errors);
    jobset_default(arena, doc);
    struct doc *again = doc_clone(arena, doc);
    jobset_default(arena, again);
    CHECK(doc_equal(doc, again) && spec_equal(doc, again));
    if (jobset_read(arena, doc, &spec, &errors)) {
        jobset_validate(doc, &spec, &errors);
        if (errors.list.len == 0)
            check_spec(&spec);
    }
    check_errors(&errors);
    jobset_validate_update(doc, again, &none);
    CHECK(none.list.len == 0);
    field_errors_done(&errors);
    field_errors_done(&none);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = MEMORY_MAX};
    struct doc_list docs = {0};
    struct error error;
    if (yaml_parse_all(&arena, (struct str){(const char *)data, size}, &docs, &error) < 0)
        return 0;
    arena.limit_bytes = 0;
    for (size_t i = 0; i < docs.len && i < FUZZED_MAX; i++)
        run(&arena, docs.items[i]);
    return 0;
}
