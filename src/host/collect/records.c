/* records.c - reads the records of a rank: libphalanx's memory, PyTorch's dump. */
#include "host/collect/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doc/json.h"
#include "doc/pickle.h"
#include "base/units.h"
#include "core/diagnose/diagnose.h"
#include "os/rights.h"

#define DUMP_BYTES_MAX   ((size_t)64 << 20)
#define MEMORY_BYTES_MAX ((size_t)1 << 30)
#define GROUP            "phalanx" /* PyTorch's groups have numbers as names */
enum { BARRIERS_TOLD = 2 };        /* the newest ones; all members have finished those before */

/* --- libphalanx ----------------------------------------------------------------------------------------- */

static void put_barrier(struct json_writer *writer, const struct jobwire_flight *record, uint64_t number)
{
    const struct jobwire_flight_entry *entry = &record->entries[number % JOBWIRE_FLIGHT_ENTRIES];
    json_begin_object(writer);
    json_pair_int(writer, "record_id", (int64_t)number);
    json_pair_int(writer, "pg_id", 0);
    json_key(writer, "process_group");
    json_begin_array(writer);
    json_put_text(writer, GROUP);
    json_put_text(writer, "gang");
    json_end_array(writer);
    json_pair_int(writer, "collective_seq_id", (int64_t)number);
    json_pair_text(writer, "profiling_name", "phalanx:barrier");
    json_pair_bool(writer, "is_p2p", false);
    json_pair_text(writer, "state", number <= record->ended ? "completed" : "started");
    json_pair_int(writer, "time_created_ns", entry->begun_ns);
    json_end_object(writer);
}

void record_put(struct buf *out, const struct jobwire_flight *record)
{
    struct json_writer writer = {.out = out};
    char ranks[32];
    snprintf(ranks, sizeof ranks, record->world > 1 ? "[0-%u]" : "[%u]", record->world - 1);
    json_begin_object(&writer);
    json_key(&writer, "pg_config");
    json_begin_object(&writer);
    json_key(&writer, GROUP);
    json_begin_object(&writer);
    json_pair_text(&writer, "name", GROUP);
    json_pair_text(&writer, "desc", "gang");
    json_pair_text(&writer, "ranks", ranks);
    json_end_object(&writer);
    json_end_object(&writer);
    json_key(&writer, "pg_status");
    json_begin_object(&writer);
    json_key(&writer, "0");
    json_begin_object(&writer);
    json_pair_int(&writer, "last_enqueued_collective", (int64_t)record->begun);
    json_pair_int(&writer, "last_completed_collective", (int64_t)record->ended);
    json_end_object(&writer);
    json_end_object(&writer);
    json_key(&writer, "entries");
    json_begin_array(&writer);
    uint64_t first = record->begun > BARRIERS_TOLD ? record->begun - BARRIERS_TOLD : 0;
    for (uint64_t number = first + 1; number <= record->begun; number++)
        put_barrier(&writer, record, number);
    json_end_array(&writer);
    json_end_object(&writer);
}

/* --- PyTorch -------------------------------------------------------------------------------------------- */

/* Reads the user and group of the process from its status: the owner of its folder in /proc is root for a
 * process that forbids dumps of itself. */
static bool read_owner(int process, uid_t *ret_user, gid_t *ret_group)
{
    char text[4096];
    int fd = openat(process, "status", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = 0;
    const char *users = strstr(text, "\nUid:"), *groups = strstr(text, "\nGid:");
    return users && groups && sscanf(users, "\nUid: %*u %u", ret_user) == 1 &&
           sscanf(groups, "\nGid: %*u %u", ret_group) == 1;
}

/* Opens PREFIX, the rank and `ending`, as the process sees it, whatever its root and working directory are.
 * Links do not lead out of these, and only files that the process's user may open are opened: the name is its
 * choice. */
static int open_of_process(const struct rank_process *process, struct str prefix, const char *ending,
                           int flags)
{
    struct buf path BUF_CLEANUP = {0}, own BUF_CLEANUP = {0};
    struct os_rights rights;
    struct open_how how = {.flags = (uint64_t)(flags | O_NONBLOCK | O_CLOEXEC),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    uid_t user = 0;
    gid_t group = 0;
    buf_printf(&path, STR_FORMAT "%u%s", STR_ARG(prefix), process->rank, ending);
    buf_printf(&own, "/proc/%d", process->pid);
    int folder = open(own.data, O_PATH | O_DIRECTORY | O_CLOEXEC), base = -1, fd = -1;
    if (folder >= 0 && read_owner(folder, &user, &group))
        base = openat(folder, prefix.data[0] == '/' ? "root" : "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base >= 0) {
        os_rights_take(user, group, &rights);
        fd = (int)syscall(SYS_openat2, base, path.data, &how, sizeof how);
        os_rights_return(&rights);
        close(base);
    }
    if (folder >= 0)
        close(folder);
    return fd;
}

bool dump_ask(const struct rank_process *process)
{
    struct stat about;
    if (!process->pipe.len || !process->dump.len)
        return false;
    int fd = open_of_process(process, process->pipe, ".pipe", O_WRONLY | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool asked = fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode) && write(fd, "1\n", 2) == 2;
    close(fd);
    return asked;
}

static bool read_dump(const struct rank_process *process, int64_t since_ns, struct buf *bytes)
{
    struct stat about;
    int fd = open_of_process(process, process->dump, "", O_RDONLY);
    if (fd < 0)
        return false;
    bool good = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
                (size_t)about.st_size <= DUMP_BYTES_MAX &&
                about.st_mtim.tv_sec * NS_PER_SECOND + about.st_mtim.tv_nsec >= since_ns;
    size_t size = good ? (size_t)about.st_size : 0;
    buf_reserve(bytes, size + 1);
    while (good && bytes->len < size) {
        ssize_t count = read(fd, bytes->data + bytes->len, size - bytes->len);
        good = count > 0 || (count < 0 && errno == EINTR);
        bytes->len += count > 0 ? (size_t)count : 0;
    }
    close(fd);
    return good;
}

bool dump_put(struct buf *out, const struct rank_process *process, int64_t since_ns, size_t bytes_max)
{
    struct buf bytes BUF_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {.limit_bytes = MEMORY_BYTES_MAX};
    struct doc *dump = NULL;
    struct error error;
    if (!process->dump.len || !read_dump(process, since_ns, &bytes))
        return false;
    struct str text = buf_str(&bytes);
    int code = pickle_is(text) ? pickle_parse(&arena, text, &dump, &error)
                               : json_parse_python(&arena, text, &dump, &error);
    if (code < 0)
        return false;
    struct flight *flight = flight_new();
    bool taken = flight_add_dump(flight, process->rank, dump, &error) == 0;
    if (taken)
        flight_summarise(flight, process->rank, bytes_max, out);
    flight_free(flight);
    return taken;
}
