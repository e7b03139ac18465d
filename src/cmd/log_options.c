#include "cmd/log_options.h"

#include "base/units.h"

bool log_bytes_parse(const char *text, uint64_t *ret_bytes)
{
    int64_t milli;
    if (!quantity_parse_milli(str_from(text), &milli) || milli < (INT64_C(64) << 10) * 1000 ||
        milli > (INT64_C(1) << 40) * 1000)
        return false;
    *ret_bytes = (uint64_t)milli / 1000;
    return true;
}

bool log_files_parse(const char *text, uint32_t *ret_files)
{
    int64_t files;
    if (!str_to_i64(str_from(text), 1, 100, &files))
        return false;
    *ret_files = (uint32_t)files;
    return true;
}
