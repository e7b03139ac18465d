/* Any two patterns and any bytes as a log, in two parts cut anywhere: no crash, sums that never fall, and the
 * same as in one part. */
#include "base/check.h"
#include "host/agent/steplines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size}, step, work;
    if (!str_cut(text, '\n', &step, &text) || !str_cut(text, '\n', &work, &text) || text.len == 0)
        return 0;
    struct step_lines whole, parts;
    step_lines_init(&whole, step, work);
    step_lines_init(&parts, step, work);
    size_t cut = data[size - 1] % text.len;
    step_lines_take(&whole, text, NS_PER_SECOND);
    step_lines_take(&parts, (struct str){text.data, cut}, NS_PER_SECOND);
    struct pace_sums half = parts.sums;
    step_lines_take(&parts, (struct str){text.data + cut, text.len - cut}, NS_PER_SECOND);
    CHECK(parts.sums.steps >= half.steps && parts.sums.elapsed_us >= half.elapsed_us);
    CHECK(parts.sums.steps == whole.sums.steps && parts.sums.own_us == whole.sums.own_us);
    CHECK(whole.sums.own_us >= 0 && whole.line.len <= STEP_LINE_BYTES);
    step_lines_done(&whole);
    step_lines_done(&parts);
    return 0;
}
