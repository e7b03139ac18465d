#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int os_file_read(const char *path, size_t most, struct buf *ret_text, struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "reading %s", path);
    struct buf text = {0};
    for (;;) {
        char block[4096];
        ssize_t len = read(fd, block, sizeof block);
        if (len < 0 && errno == EINTR)
            continue;
        int reason = errno;
        if (len > 0)
            buf_add(&text, block, (size_t)len);
        if (len > 0 && text.len <= most)
            continue;
        close(fd);
        if (len == 0) {
            buf_done(ret_text);
            *ret_text = text;
            return 0;
        }
        buf_done(&text);
        return len < 0 ? error_set_errno(error, reason, "reading %s", path)
                       : error_set(error, ERROR_LIMIT, "%s is larger than %zu bytes", path, most);
    }
}
