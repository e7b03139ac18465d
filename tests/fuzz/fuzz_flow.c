/* Bytes of programs, plans, faults, declarations, statuses and traces, by the first byte. */
#include <stddef.h>
#include <stdint.h>

#include "flow/ir/program.h"
#include "flow/ir/user.h"
#include "flow/island/entry.h"
#include "flow/island/status.h"
#include "flow/island/trace.h"
#include "flow/lower/lower.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str bytes = {(const char *)data + 1, size - 1};
    struct buf text = {0};
    struct program *program;
    struct plan *plan;
    struct ir_module *module;
    struct fault fault;
    struct flow_status status = {0};
    struct trace_record record;
    switch (data[0] % 6) {
    case 0:
        if (program_decode(bytes, &program, NULL) == 0) {
            program_print(program, &text);
            program_free(program);
        }
        break;
    case 1:
        if (plan_decode(bytes, &plan, NULL) == 0) {
            plan_print(plan, &text);
            plan_free(plan);
        }
        break;
    case 2:
        if (ir_parse_user(bytes, &module, NULL) == 0)
            ir_module_free(module);
        break;
    case 3:
        fault_decode(bytes, &fault);
        break;
    case 4:
        if (flow_status_decode(bytes, &status, NULL) == 0)
            flow_status_encode(&status, &text);
        flow_status_done(&status);
        break;
    case 5:
        for (size_t i = 0; i < trace_count(bytes); i++)
            (void)trace_at(bytes, i, &record);
        break;
    }
    buf_done(&text);
    return 0;
}
