#include "cmd/settings_file.h"

#include "doc/yaml.h"
#include "os/file.h"

int settings_file_read(const char *path, size_t bytes_max, struct arena *arena, struct doc **ret_document,
                        struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    struct doc_list documents = {0};
    int rc = os_file_read(path, bytes_max, &text, error);
    if (rc < 0)
        return rc;
    arena->limit_bytes = 16 * bytes_max;
    rc = yaml_parse_all(arena, buf_str(&text), &documents, error);
    if (rc < 0)
        return error_wrap(error, "%s", path);
    if (documents.len > 1)
        return error_set(error, ERROR_INVALID, "%s: expected exactly one document", path);
    *ret_document = documents.len ? documents.items[0] : NULL;
    return 0;
}
