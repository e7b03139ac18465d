/* flow_file.c - reads the modules of a file. */
#include <errno.h>
#include <stdio.h>

#include "base/vec.h"
#include "cmd/flow.h"

static int read_whole_file(const char *path, struct buf *text, struct error *error)
{
    char part[65536];
    size_t len;
    FILE *file = str_is(str_from(path), "-") ? stdin : fopen(path, "rb");
    if (!file)
        return error_set_errno(error, errno, "%s", path);
    while ((len = fread(part, 1, sizeof part, file)) > 0 && text->len <= IR_TEXT_MAX)
        buf_add(text, part, len);
    int failed = ferror(file) ? errno : 0;
    if (file != stdin)
        fclose(file);
    return failed ? error_set_errno(error, failed, "%s", path) : 0;
}

int flow_modules(const char *path, int (*each)(struct ir_module *module, void *arg), void *arg,
                 struct error *error)
{
    struct buf BUF_CLEANUP text = {0};
    struct ir_module *module = NULL;
    int code = read_whole_file(path, &text, error);
    if (code < 0)
        return code;
    if (!str_starts(buf_str(&text), STR("PHXF")))
        return ir_parse_split(buf_str(&text), path, each, arg, error);
    code = ir_decode(buf_str(&text), &module, error);
    if (code < 0)
        return error_wrap(error, "%s", path);
    code = each(module, arg);
    ir_module_free(module);
    return code;
}
