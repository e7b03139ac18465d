#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shim/parts.h"

struct reader {
    const char *at, *end;
};

/* Returns the next string, or NULL if the file ends before its NUL. */
static const char *next_string(struct reader *reader)
{
    const char *start = reader->at;
    const char *nul = memchr(start, 0, (size_t)(reader->end - start));
    if (!nul)
        return NULL;
    reader->at = nul + 1;
    return start;
}

/* Returns the next text, of known length and followed by a NUL, or NULL. */
static const char *next_text(struct reader *reader, uint32_t len)
{
    if ((size_t)(reader->end - reader->at) <= len || reader->at[len] != 0)
        return NULL;
    const char *start = reader->at;
    reader->at += len + 1;
    return start;
}

static bool next_vector(struct reader *reader, const char **ret_vector, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!(ret_vector[i] = next_string(reader)))
            return false;
    ret_vector[count] = NULL;
    return true;
}

static bool read_mounts(struct shim *shim, struct reader *reader)
{
    const char *number = next_string(reader);
    for (; number && *number >= '0' && *number <= '9' && shim->mount_count <= SHIM_MOUNTS_MAX; number++)
        shim->mount_count = shim->mount_count * 10 + (uint32_t)(*number - '0');
    if (!number || *number || shim->mount_count > SHIM_MOUNTS_MAX)
        return false;
    for (uint32_t i = 0; i < shim->mount_count; i++) {
        struct mount_spec *mount = &shim->mounts[i];
        mount->letters = next_string(reader);
        mount->source = mount->letters ? next_string(reader) : NULL;
        if (!mount->source)
            return false;
        bool inside = mount->letters[0] && mount->letters[1] && mount->letters[2] == SHIM_MOUNT_INSIDE;
        mount->inside = inside ? next_string(reader) : NULL;
        mount->target = !inside || mount->inside ? next_string(reader) : NULL;
        if (!mount->target)
            return false;
    }
    return true;
}

static int read_strings(struct shim *shim, struct reader *reader)
{
    const struct shim_header *header = shim->header;
    uint64_t strings_max = (uint64_t)(reader->end - reader->at); /* a string takes at least its NUL */
    if (header->argc == 0 || header->argc > strings_max || header->envc > strings_max)
        return -EBADMSG;
    size_t pointers = (size_t)header->argc + header->envc + 2;
    void *memory = mmap(NULL, pointers * sizeof(char *), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    shim->argv = memory;
    shim->envp = shim->argv + header->argc + 1;
    shim->name = next_string(reader);
    shim->directory = shim->name ? next_string(reader) : NULL;
    shim->log_directory = shim->directory ? next_string(reader) : NULL;
    if (!shim->log_directory)
        return -EBADMSG;
    for (int i = 0; i < SHIM_CGROUPS_MAX; i++)
        if (!(shim->cgroups.directory[i] = next_string(reader)))
            return -EBADMSG;
    if (!next_vector(reader, shim->argv, header->argc) || !next_vector(reader, shim->envp, header->envc))
        return -EBADMSG;
    shim->hosts = next_text(reader, header->hosts_len);
    shim->rank_table = shim->hosts ? next_text(reader, header->rank_table_len) : NULL;
    if (!shim->rank_table || (header->flags & SHIM_MOUNTS && !read_mounts(shim, reader)))
        return -EBADMSG;
    return reader->at == reader->end ? 0 : -EBADMSG;
}

int spec_load(struct shim *shim)
{
    struct stat info;
    if (fstat(SHIM_FD_TASK, &info) < 0)
        return -errno;
    if (info.st_size < SHIM_STRINGS_OFFSET)
        return -EBADMSG;
    const char *file =
        mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, SHIM_FD_TASK, 0);
    if (file == MAP_FAILED)
        return -errno;
    shim->header = (const void *)file;
    if (shim->header->magic != SHIM_HEADER_MAGIC || shim->header->version != SHIM_VERSION ||
        shim->header->file_len != (uint64_t)info.st_size)
        return -EBADMSG;
    struct reader reader = {file + SHIM_STRINGS_OFFSET, file + info.st_size};
    int result = read_strings(shim, &reader);
    if (result < 0)
        return result;
    const void *fence = mmap(NULL, sizeof *shim->fence, PROT_READ, MAP_SHARED, SHIM_FD_FENCE, 0);
    if (fence == MAP_FAILED)
        return -errno;
    shim->fence = fence;
    return 0;
}
