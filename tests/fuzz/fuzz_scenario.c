/* Scenarios of the simulator, and traces of workloads: no text crashes a reader. The first byte chooses. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "doc/yaml.h"
#include "sim/capacity/study.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_trace(enum trace_format format, struct str text)
{
    struct trace trace;
    struct error error = {0};
    struct trace_terms terms = {.processors_per_chip = 3, .chips_per_node = 8};
    if (trace_read(&trace, format, text, "t", &terms, &error) < 0) {
        assert(error.text[0]);
        return;
    }
    for (size_t i = 0; i < trace.jobs.len; i++) {
        const struct trace_job *job = &trace.jobs.items[i];
        assert(job->chips >= 1 && job->chips <= TRACE_CHIPS_MAX && job->runtime_s > 0);
        assert(job->submit_s >= (i ? trace.jobs.items[i - 1].submit_s : 0));
    }
    trace_done(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 << 20};
    struct str text = {(const char *)data + 1, size - 1};
    struct doc_list docs;
    struct study study;
    struct error error = {0};
    if (size < 1 || size > 65536)
        return 0;
    if (data[0] < 64) {
        fuzz_trace(data[0] % 2 ? TRACE_SWF : TRACE_SACCT, text);
        return 0;
    }
    if (yaml_parse_all(&arena, text, &docs, &error) < 0 || docs.len == 0)
        return 0;
    if (study_read(&study, docs.items[0], "s", &error) < 0)
        assert(error.text[0]);
    else
        study_done(&study);
    return 0;
}
