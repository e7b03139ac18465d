/* Fills regions from a safetensors file of another program, or of `phalanx checkpoint export`. The file is
 * treated as a checkpoint of one rank that has every region whole. */
#include "job/context.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/link/error.h"
#include "job/checkpoint/reshard.h"

/* A mapped file. */
struct file {
    const char *path;
    const uint8_t *data;
    size_t len;
};

static int map_file(const char *path, struct file *ret_file, struct phx_error *error)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC), reason = errno;
    if (fd < 0)
        return reason == ENOENT ? job_fail(error, PHX_ERROR_NONE, "%.150s does not exist", path)
                                : job_fail_errno(error, reason, "open %.150s", path);
    void *data = MAP_FAILED;
    bool plain = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    if (plain)
        data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    reason = errno;
    close(fd);
    if (!plain)
        return job_fail(error, PHX_ERROR_CORRUPT, "%.150s is empty or not a regular file", path);
    if (data == MAP_FAILED)
        return job_fail_errno(error, reason, "map %.150s", path);
    *ret_file = (struct file){path, data, (size_t)info.st_size};
    return 0;
}

static int fill(const struct job_regions *regions, const struct file *file, const struct safetensors *tensors,
                size_t *ret_count, struct phx_error *error)
{
    struct reshard *reshard;
    uint32_t rank;
    size_t count = 0;
    int status = reshard_new(regions, &reshard, error);
    if (status != 0)
        return status;
    status = reshard_add(reshard, 0, tensors, error);
    if (status == 0 && (count = reshard_pass_over(reshard)) == 0)
        status = job_fail(error, PHX_ERROR_INVALID, "%.150s has none of the registered regions", file->path);
    if (status == 0)
        status = reshard_plan(reshard, error);
    while (status == 0 && reshard_next(reshard, &rank))
        status = reshard_fill(reshard, file->data, file->len, error);
    reshard_free(reshard);
    if (status == 0 && ret_count != NULL)
        *ret_count = count;
    return status;
}

int phx_checkpoint_import(phx_context *ctx, const char *path, size_t *ret_count, struct phx_error *error)
{
    struct file file = {0};
    struct safetensors tensors;
    if (path == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "path is NULL");
    if (ctx->regions.count == 0)
        return job_fail(error, PHX_ERROR_INVALID, "no regions are registered");
    int status = map_file(path, &file, error);
    if (status != 0)
        return status;
    size_t len = safetensors_header_len(file.data, file.len);
    status = len == 0 ? job_fail(error, PHX_ERROR_CORRUPT, "%.150s is not a safetensors file", path)
                      : safetensors_read(file.data, len, file.len, path, &tensors, error);
    if (status == 0) {
        status = fill(&ctx->regions, &file, &tensors, ret_count, error);
        safetensors_done(&tensors);
    }
    munmap((void *)(uintptr_t)file.data, file.len);
    return status;
}
