#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "host/launch/state.h"

int task_file_open(struct launcher *launcher, uint64_t uid)
{
    char path[48];
    snprintf(path, sizeof path, UID_FORMAT "/task", UID_ARG(uid));
    return openat(launcher->tasks_fd, path, O_RDWR | O_CLOEXEC);
}

int task_file_read(int fd, struct task_file *ret_file)
{
    _Static_assert(sizeof(struct task_file) == SHIM_STRINGS_OFFSET, "read as it lies");
    struct stat info;
    if (fstat(fd, &info) < 0 || pread(fd, ret_file, sizeof *ret_file, 0) != (ssize_t)sizeof *ret_file)
        return ERROR_CORRUPT;
    const struct shim_header *header = &ret_file->header;
    if (header->magic != SHIM_HEADER_MAGIC || header->file_len != (uint64_t)info.st_size)
        return ERROR_CORRUPT;
    if (header->version != SHIM_VERSION)
        return ERROR_UNSUPPORTED;
    if (ret_file->start.magic != SHIM_START_MAGIC)
        ret_file->start = (struct shim_start){0};
    if (ret_file->exit.magic != SHIM_EXIT_MAGIC ||
        ret_file->exit.checksum != shim_exit_checksum(&ret_file->exit))
        ret_file->exit = (struct shim_exit){0};
    return 0;
}

/* Returns the strings from the first mount on; empty if there is none. */
static struct str mounts_of(const struct shim_header *header, struct str rest)
{
    struct str skipped;
    uint64_t before = 6 + (uint64_t)header->argc + header->envc;
    if (!(header->flags & SHIM_MOUNTS))
        return STR("");
    for (uint64_t i = 0; i < before; i++)
        if (!str_cut(rest, '\0', &skipped, &rest))
            return STR("");
    size_t texts = (size_t)header->hosts_len + header->rank_table_len + 2;
    if (rest.len <= texts)
        return STR("");
    rest = (struct str){rest.data + texts, rest.len - texts};
    return str_cut(rest, '\0', &skipped, &rest) ? rest : STR("");
}

int task_file_strings(int fd, const struct task_file *file, struct task_strings *ret_strings,
                      char **ret_block)
{
    size_t len = file->header.file_len - SHIM_STRINGS_OFFSET;
    if (file->header.file_len < SHIM_STRINGS_OFFSET || len > LAUNCH_SPEC_BYTES_MAX)
        return ERROR_CORRUPT;
    char *block = mem_alloc(len + 1);
    if (pread(fd, block, len, SHIM_STRINGS_OFFSET) != (ssize_t)len) {
        mem_free(block);
        return ERROR_CORRUPT;
    }
    struct str logs;
    struct str *const fields[] = {&ret_strings->name,      &ret_strings->directory, &logs,
                                  &ret_strings->cgroup[0], &ret_strings->cgroup[1], &ret_strings->cgroup[2],
                                  &ret_strings->command};
    struct str rest = {block, len};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!str_cut(rest, '\0', fields[i], &rest)) {
            mem_free(block);
            return ERROR_CORRUPT;
        }
    }
    ret_strings->mounts = mounts_of(&file->header, (struct str){block, len});
    *ret_block = block;
    return 0;
}

const char *stage_text(uint32_t stage)
{
    switch ((enum shim_stage)stage) {
    case SHIM_STAGE_FILES:
        return "writing the task's hosts file and rank table";
    case SHIM_STAGE_NAMESPACE:
        return "mounting the hosts file";
    case SHIM_STAGE_CGROUP_MAKE:
        return "making the cgroup";
    case SHIM_STAGE_CGROUP_LIMIT:
        return "setting the cgroup's limits";
    case SHIM_STAGE_CGROUP_JOIN:
        return "joining the cgroup";
    case SHIM_STAGE_PROCESS:
        return "making the process";
    case SHIM_STAGE_LIMITS:
        return "setting a resource limit (nofile, core, memlock)";
    case SHIM_STAGE_USER:
        return "changing to the task's user and group";
    case SHIM_STAGE_PRIVILEGES:
        return "giving up privileges";
    case SHIM_STAGE_READ_ONLY:
        return "making the root file system read-only";
    case SHIM_STAGE_DIRECTORY:
        return "entering the working directory";
    case SHIM_STAGE_MOUNT:
        return "mounting its volumes";
    case SHIM_STAGE_EXEC:
    case SHIM_STAGE_NONE:
        break;
    }
    return "running the command";
}

static void mount_failure(const struct shim_exit *record, const struct task_strings *strings,
                          struct buf *text)
{
    struct str source = STR(""), target = STR(""), rest = strings->mounts, letters;
    bool has_inside = false;
    for (uint32_t i = 0; i <= record->stage >> SHIM_STAGE_SHIFT; i++) {
        struct str inside;
        if (!str_cut(rest, '\0', &letters, &rest) || !str_cut(rest, '\0', &source, &rest))
            break;
        has_inside = letters.len == 3 && letters.data[2] == SHIM_MOUNT_INSIDE;
        if ((has_inside && !str_cut(rest, '\0', &inside, &rest)) || !str_cut(rest, '\0', &target, &rest))
            break;
        source = has_inside ? inside : source;
    }
    buf_printf(text, "cannot mount %s\"" STR_FORMAT "\" at \"" STR_FORMAT "\": %s",
               has_inside ? "subPath " : "", STR_ARG(source), STR_ARG(target),
               has_inside && record->error == EXDEV ? "it leads out of the volume" : strerror(record->error));
}

static void start_failure(const struct shim_exit *record, const struct task_strings *strings,
                          struct buf *text)
{
    if (record->stage == SHIM_STAGE_EXEC && record->error == ENOENT &&
        !memchr(strings->command.data, '/', strings->command.len))
        buf_printf(text, "cannot run \"" STR_FORMAT "\": not found in the task's PATH",
                   STR_ARG(strings->command));
    else if (record->stage == SHIM_STAGE_EXEC)
        buf_printf(text, "cannot run \"" STR_FORMAT "\": %s", STR_ARG(strings->command),
                   strerror(record->error));
    else if (record->stage == SHIM_STAGE_DIRECTORY)
        buf_printf(text, "cannot enter the working directory \"" STR_FORMAT "\": %s",
                   STR_ARG(strings->directory), strerror(record->error));
    else if ((record->stage & 0xff) == SHIM_STAGE_MOUNT)
        mount_failure(record, strings, text);
    else
        buf_printf(text, "%s: %s", stage_text(record->stage), strerror(record->error));
}

void exit_message(const struct shim_exit *record, const struct task_strings *strings, struct buf *ret_text)
{
    if (record->flags & SHIM_EXIT_START_FAILED)
        start_failure(record, strings, ret_text);
    else if (record->flags & SHIM_EXIT_LOST)
        buf_printf(ret_text,
                   "the task's shim was killed, and the task with it: its exit status is not known");
    else if ((record->flags & SHIM_EXIT_FENCED) && record->started_ns == 0)
        buf_printf(ret_text, "not started: the machine's fence had passed");
    else if (record->flags & SHIM_EXIT_FENCED)
        buf_printf(ret_text,
                   "killed by its fence: the machine had lost its controller for longer than the lease");
    else if (record->flags & SHIM_EXIT_OOM)
        buf_printf(ret_text, "out of memory: its cgroup's limit was reached");
    else if (record->flags & SHIM_EXIT_SIGNALED)
        buf_printf(ret_text, "killed by signal %d (%s)", record->status, strsignal(record->status));
    else if (record->status != 0)
        buf_printf(ret_text, "exit code %d", record->status);
    if (record->log_dropped_bytes > 0)
        buf_printf(ret_text, "%s%llu bytes of its output could not be written", ret_text->len ? "; " : "",
                   (unsigned long long)record->log_dropped_bytes);
    if (!ret_text->data)
        buf_add_str(ret_text, STR(""));
    buf_reserve(ret_text, 1);
    ret_text->data[ret_text->len] = 0;
}
