/* Tables of jobs: the first byte chooses the format. No text crashes a reader, and the jobs that it takes are
 * in order, have chips and run times, and have tags that exist. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_terms terms = {.processors_per_chip = 1, .chips_per_node = 8, .priorities = true};
    struct trace trace;
    struct error error = {0};
    if (size == 0 || size > 65536)
        return 0;
    enum trace_format format = (enum trace_format)(data[0] % TRACE_FORMATS);
    if (format == TRACE_PHALANX)
        return 0;
    if (trace_read(&trace, format, (struct str){(const char *)data + 1, size - 1}, "t", &terms, &error) < 0) {
        assert(error.text[0]);
        return 0;
    }
    for (size_t i = 0; i < trace.jobs.len; i++) {
        const struct trace_job *job = &trace.jobs.items[i];
        assert(i == 0 || trace.jobs.items[i - 1].submit_s <= job->submit_s);
        assert(job->chips > 0 && job->chips <= TRACE_CHIPS_MAX && job->runtime_s > 0);
        for (int tag = 0; tag < TRACE_TAGS; tag++)
            assert(job->tags[tag] < trace.names.len);
    }
    trace_done(&trace);
    return 0;
}
