/* Any bytes as the strings of a shim's task file: refused, or read with every string inside the file. Four
 * bytes before them say how many strings the header promises. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/parts.h"

enum { PROMISES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(int number, const void *bytes, size_t len)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
        abort();
    if (fd != number) {
        if (dup2(fd, number) < 0)
            abort();
        close(fd);
    }
}

static void require(int good)
{
    if (!good)
        abort();
}

static void check(const struct shim *shim, const char *file, size_t len)
{
    const char *const strings[] = {shim->name, shim->directory, shim->hosts, shim->rank_table};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        require(strings[i] > file && strings[i] < file + len);
    require(shim->argv[shim->header->argc] == NULL && shim->envp[shim->header->envc] == NULL);
    for (uint32_t i = 0; i < shim->mount_count; i++)
        require(shim->mounts[i].target > file && shim->mounts[i].target < file + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct shim_fence fence;
    if (size < PROMISES)
        return 0;
    size_t len = SHIM_STRINGS_OFFSET + size - PROMISES;
    char *file = calloc(1, len);
    const struct shim_header header = {.magic = SHIM_HEADER_MAGIC,
                                       .version = SHIM_VERSION,
                                       .file_len = len,
                                       .argc = data[0],
                                       .envc = data[1],
                                       .hosts_len = data[2],
                                       .flags = data[3] & 1 ? SHIM_MOUNTS : 0};
    memcpy(file, &header, sizeof header);
    memcpy(file + SHIM_STRINGS_OFFSET, data + PROMISES, size - PROMISES);
    show(SHIM_FD_TASK, file, len);
    show(SHIM_FD_FENCE, &fence, sizeof fence);
    struct shim shim = {.output = -1};
    if (spec_load(&shim) == 0) {
        check(&shim, (const char *)shim.header, len);
        munmap((void *)shim.fence, sizeof fence);
    }
    if (shim.argv)
        munmap((void *)shim.argv, (shim.header->argc + shim.header->envc + 2) * sizeof(char *));
    if (shim.header)
        munmap((void *)shim.header, len);
    free(file);
    return 0;
}
