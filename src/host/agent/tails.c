/* tails.c - reads the end of a failed task's log on its machine: at most SIGNATURE_TAIL_BYTES, of the current
 * file and, if that is short because the log was just rotated, of the part before it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"

/* Puts the last bytes of the file before those in `room`, as far as there is space. */
static void put_before(const char *path, char *room, size_t *begin)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        size_t want = (size_t)info.st_size < *begin ? (size_t)info.st_size : *begin;
        ssize_t count = pread(fd, room + *begin - want, want, info.st_size - (off_t)want);
        if (count == (ssize_t)want) /* else it was truncated in between */
            *begin -= want;
    }
    close(fd);
}

size_t local_tail_signatures(struct live *live, uint64_t process, struct arena *arena,
                             struct signature ret_signatures[SIGNATURES_MAX])
{
    char path[LAUNCH_PATH_MAX], older[LAUNCH_PATH_MAX + 16];
    if (launch_log_path(live->launcher, process, path, NULL) < 0)
        return 0;
    char *room = arena_alloc(arena, SIGNATURE_TAIL_BYTES);
    size_t begin = SIGNATURE_TAIL_BYTES;
    put_before(path, room, &begin);
    snprintf(older, sizeof older, "%s.1", path);
    if (begin > 0)
        put_before(older, room, &begin);
    return signatures_read(arena, (struct str){room + begin, SIGNATURE_TAIL_BYTES - begin}, ret_signatures);
}
