/* Snapshots: arbitrary bytes are a state or an error. A state that was read is written again to what reads
 * the same. */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct core *core = core_new();
    struct error error = {0};
    int rc = core_snapshot_read(core, (struct str){(const char *)data, size}, &error);
    CHECK(rc == 0 || error.text[0]);
    if (rc == 0) {
        BUF_CLEANUP struct buf first = {0}, second = {0};
        core_snapshot_write(core, &first);
        struct core *again = core_new();
        CHECK(core_snapshot_read(again, buf_str(&first), &error) == 0);
        core_snapshot_write(again, &second);
        CHECK(str_equal(buf_str(&first), buf_str(&second)));
        core_free(again);
    }
    core_free(core);
    return 0;
}
