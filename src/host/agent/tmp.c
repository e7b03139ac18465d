/* tmp.c - a private /tmp and /var/tmp for one run of a container.
 *
 *     <state>/volumes/<task>/.tmp-<container>-<run>/{tmp,var}    bound by the shim, removed with the volumes
 *
 * The machine's files there are hidden, except those that the container's command, arguments, environment or
 * working directory name: a directory directly below /tmp or /var/tmp that a path in them leads through, and
 * a file that is a whole argument or the whole value of a variable. So the agent's socket, the files of the
 * task, checkpoint folders and scripts keep working if they are in /tmp, also below a volume that is mounted
 * at /tmp in place of the private one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"

enum { NAME_BYTES_MAX = 255 };

static const struct {
    const char *path, *name;
} places[] = {{"/tmp", "tmp"}, {"/var/tmp", "var"}};
enum { PLACES = sizeof places / sizeof *places };

/* --- directories ---------------------------------------------------------------------------------- */

static const char *run_path(const struct live *live, struct arena *arena, obj_id task, uint32_t container,
                            uint32_t run)
{
    return arena_printf(arena, "%s/volumes/%llu/.tmp-%u-%u", live->directory, (unsigned long long)task,
                        container, run)
        .data;
}

static void remove_run(struct live *live, struct arena *arena, obj_id task, uint32_t container, uint32_t run)
{
    const char *gone = arena_printf(arena, "%s/volumes/.gone-%llu-%u-%u", live->directory,
                                    (unsigned long long)task, container, run)
                           .data;
    if (rename(run_path(live, arena, task, container, run), gone) == 0)
        local_remove_later(live, gone);
}

static int make_directory(const char *path, mode_t mode, struct error *error)
{
    if (mkdir(path, 0700) < 0)
        return errno == EEXIST ? 0 : error_set_errno(error, errno, "making the directory %s", path);
    return chmod(path, mode) < 0 ? error_set_errno(error, errno, "making the directory %s", path) : 0;
}

static int make_run(struct live *live, struct arena *arena, obj_id task, const char *path,
                    struct error *error)
{
    const char *volumes = arena_printf(arena, "%s/volumes", live->directory).data;
    int rc = make_directory(volumes, 0700, error);
    if (rc == 0)
        rc = make_directory(arena_printf(arena, "%s/%llu", volumes, (unsigned long long)task).data, 0700,
                            error);
    if (rc == 0)
        rc = make_directory(path, 0700, error);
    for (int i = 0; i < PLACES && rc == 0; i++)
        rc = make_directory(arena_printf(arena, "%s/%s", path, places[i].name).data, 01777, error);
    return rc;
}

/* --- what stays the machine's ----------------------------------------------------------------------- */

struct kept {
    struct arena *arena;
    struct launch_mount *mounts; /* [LOCAL_TMP_MOUNTS_MAX] */
    size_t count;
};

bool local_is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("._-+@%", c));
}

static void keep(struct kept *kept, const char *path, bool is_file)
{
    for (size_t i = 0; i < kept->count; i++)
        if (strcmp(kept->mounts[i].target, path) == 0)
            return;
    if (kept->count < LOCAL_TMP_MOUNTS_MAX)
        kept->mounts[kept->count++] =
            (struct launch_mount){.source = path, .target = path, .is_file = is_file, .optional = true};
}

/* Keeps a path below `place` that may begin at `at` in a text. `whole`: the text is only that path. */
static void keep_named(struct kept *kept, const char *place, const char *at, bool whole)
{
    size_t start = strlen(place) + 1, len = 0;
    struct stat info;
    while (local_is_name_byte(at[start + len]))
        len++;
    struct str name = {at + start, len};
    if (len == 0 || len > NAME_BYTES_MAX || str_is(name, ".") || str_is(name, ".."))
        return;
    const char *path = arena_printf(kept->arena, "%s/" STR_FORMAT, place, STR_ARG(name)).data;
    if (stat(path, &info) < 0)
        return;
    bool is_directory = S_ISDIR(info.st_mode);
    if (is_directory || (whole && at[start + len] == 0))
        keep(kept, path, !is_directory);
}

static void keep_in(void *context, const char *text)
{
    for (int i = 0; i < PLACES; i++) {
        size_t len = strlen(places[i].path);
        for (const char *at = text; (at = strstr(at, places[i].path)); at += len) {
            bool begins = at == text || !(local_is_name_byte(at[-1]) || at[-1] == '/');
            if (begins && at[len] == '/')
                keep_named(context, places[i].path, at, at == text);
        }
    }
}

void local_texts_visit(const struct launch_spec *spec, void (*visit)(void *context, const char *text),
                       void *context)
{
    if (spec->directory)
        visit(context, spec->directory);
    for (const char *const *arg = spec->argv; *arg; arg++)
        visit(context, *arg);
    for (const char *const *env = spec->env; env && *env; env++) {
        const char *value = strchr(*env, '=');
        if (value)
            visit(context, value + 1);
    }
}

/* --- mounts --------------------------------------------------------------------------------------- */

static bool is_taken(const struct launch_spec *spec, const char *target)
{
    size_t len = strlen(target);
    for (size_t i = 0; i < spec->mount_count; i++) {
        const char *other = spec->mounts[i].target;
        if (strncmp(other, target, len) == 0 && other[len + strspn(other + len, "/")] == 0)
            return true;
    }
    return false;
}

int local_tmp_mounts(struct live *live, obj_id task, uint32_t container, struct arena *arena,
                     struct launch_spec *spec, struct error *error)
{
    const char *path = run_path(live, arena, task, container, spec->run);
    if (spec->run > 0)
        remove_run(live, arena, task, container, spec->run - 1);
    int rc = make_run(live, arena, task, path, error);
    if (rc < 0)
        return rc;
    struct launch_mount *mounts =
        ARENA_ARRAY(arena, struct launch_mount, spec->mount_count + PLACES + LOCAL_TMP_MOUNTS_MAX);
    size_t count = spec->mount_count;
    mem_copy(mounts, spec->mounts, count * sizeof *mounts);
    for (int i = 0; i < PLACES; i++) {
        struct stat info; /* if one is a link to the other, they are the same */
        if (!is_taken(spec, places[i].path) && lstat(places[i].path, &info) == 0 && S_ISDIR(info.st_mode))
            mounts[count++] =
                (struct launch_mount){.source = arena_printf(arena, "%s/%s", path, places[i].name).data,
                                      .target = places[i].path,
                                      .optional = true};
    }
    struct kept kept = {.arena = arena,
                        .mounts = ARENA_ARRAY(arena, struct launch_mount, LOCAL_TMP_MOUNTS_MAX)};
    keep_in(&kept, live->directory);
    local_texts_visit(spec, keep_in, &kept);
    for (size_t i = 0; i < kept.count; i++)
        if (!is_taken(spec, kept.mounts[i].target))
            mounts[count++] = kept.mounts[i];
    spec->mounts = mounts;
    spec->mount_count = count;
    return 0;
}
