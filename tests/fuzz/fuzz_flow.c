/* Bytes of programs, plans, faults and declarations, by the first byte. */
#include <stddef.h>
#include <stdint.h>

#include "flow/ir/program.h"
#include "flow/ir/user.h"
#include "flow/island/entry.h"
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
    switch (data[0] % 4) {
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
    }
    buf_done(&text);
    return 0;
}
