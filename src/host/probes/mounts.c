/* mounts.c - file systems: missing, read-only, hung, in error, full, out of inodes; Lustre's own health.
 *
 * The owner reads the table of mounts (/proc/self/mountinfo). One child then goes through the file systems,
 * names each before it begins, calls statvfs() and reads a directory. If the child does not end, the last
 * file system that it began is hung, and another child continues after that one. While the child of a hung
 * file system lives, no other examines it. */
#include "host/probes/internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

enum { MOUNTS_MAX = 512, TABLE_BYTES_MAX = 4 * 1024 * 1024 };

struct mount {
    char *path, *type;
    char device[32];
    bool read_only;
};
struct hung {
    char *path;
    char key[24]; /* of the child */
};
struct mounts {
    int64_t percent, inodes;
    uint64_t serial;
    VEC(struct mount) list;
    VEC(char *) pass; /* the file systems of the present child */
    VEC(struct hung) hung;
};

static int start(struct probe *probe, struct error *error)
{
    struct mounts *mounts = probe->state = mem_alloc(sizeof *mounts);
    int rc = probe_setting(probe, "fullPercent", 1, 100, 97, &mounts->percent, error);
    return rc < 0 ? rc : probe_setting(probe, "inodesPercent", 1, 100, 97, &mounts->inodes, error);
}

/* --- the table ------------------------------------------------------------------------------------ */

static bool is_pseudo(struct str type)
{
    static const char list[] =
        " proc sysfs cgroup cgroup2 devtmpfs devpts mqueue hugetlbfs debugfs tracefs securityfs pstore bpf"
        " configfs fusectl autofs binfmt_misc rpc_pipefs nsfs ramfs efivarfs squashfs iso9660 overlay "
        "selinuxfs"
        " sockfs pipefs fuse.lxcfs fuse.gvfsd-fuse fuse.portal ";
    char word[64];
    snprintf(word, sizeof word, " " STR_FORMAT " ", STR_ARG(type));
    return strstr(list, word) != NULL;
}

/* Returns a copy without the table's escapes. */
static char *unescaped(struct str text)
{
    char *copy = mem_alloc(text.len + 1);
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    str_undo_octal(copy);
    return copy;
}

static bool has_option(struct str options, const char *option)
{
    struct str item, rest;
    for (; str_cut(options, ',', &item, &rest); options = rest)
        if (str_is(item, option))
            return true;
    return str_is(options, option);
}

/* Takes a line of the table: "36 35 98:0 /root /path rw,noatime master:1 - ext4 /dev/x
 * rw,errors=continue". */
static void take_line(struct mounts *mounts, struct str line)
{
    struct str fields[6], type, source, rest;
    for (int i = 0; i < 6; i++) {
        if (!str_cut(line, ' ', &fields[i], &rest))
            return;
        line = rest;
    }
    const char *dash = line.len ? memmem(line.data, line.len, "- ", 2) : NULL;
    while (dash && dash > line.data && dash[-1] != ' ') /* "x- " of an optional field */
        dash = memmem(dash + 1, line.len - (size_t)(dash + 1 - line.data), "- ", 2);
    if (!dash || mounts->list.len >= MOUNTS_MAX)
        return;
    line = (struct str){dash + 2, line.len - (size_t)(dash + 2 - line.data)};
    if (!str_cut(line, ' ', &type, &rest) || !str_cut(rest, ' ', &source, &rest) || is_pseudo(type))
        return;
    struct mount mount = {.path = unescaped(fields[4]),
                          .type = unescaped(type),
                          .read_only = has_option(fields[5], "ro") || has_option(rest, "ro")};
    snprintf(mount.device, sizeof mount.device, STR_FORMAT, STR_ARG(fields[2]));
    vec_push(&mounts->list, mount);
}

static void clear_list(struct mounts *mounts)
{
    for (size_t i = 0; i < mounts->list.len; i++) {
        mem_free(mounts->list.items[i].path);
        mem_free(mounts->list.items[i].type);
    }
    vec_clear(&mounts->list);
}

static bool read_table(struct probe *probe)
{
    struct mounts *mounts = probe->state;
    struct buf text BUF_CLEANUP = {0};
    struct str line, rest;
    if (!file_read_all(probe->all, &text, TABLE_BYTES_MAX, "/proc/self/mountinfo"))
        return false;
    clear_list(mounts);
    for (struct str left = buf_str(&text); str_cut(left, '\n', &line, &rest); left = rest)
        take_line(mounts, line);
    return true;
}

/* --- look ----------------------------------------------------------------------------------------- */

static void look_at(const struct probe *probe, const char *path, const char *index, struct buf *facts)
{
    char full[4096];
    struct statvfs about;
    if (!file_path(probe->all, full, sizeof full, "%s", path))
        return;
    fact_put(facts, index, "begin", "%s", path);
    child_say_part(facts);
    errno = 0;
    if (statvfs(full, &about) < 0) {
        fact_put(facts, index, "error", "%d", errno);
        return;
    }
    DIR *folder = opendir(full);
    if (folder && (errno = 0, !readdir(folder)) && errno != 0)
        fact_put(facts, index, "error", "%d", errno);
    else if (!folder && errno != EACCES && errno != ENOTDIR && errno != ENOENT)
        fact_put(facts, index, "error", "%d", errno);
    else
        fact_put(facts, index, "space", "%llu %llu %llu %llu", (unsigned long long)about.f_bavail,
                 (unsigned long long)(about.f_blocks - about.f_bfree + about.f_bavail),
                 (unsigned long long)about.f_favail, (unsigned long long)about.f_files);
    if (folder)
        closedir(folder);
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    const struct mounts *mounts = probe->state;
    struct text text;
    if (file_read(probe->all, &text, "/sys/fs/lustre/health_check"))
        fact_put(facts, "lustre", "health", "%s", text.data);
    for (size_t i = 0; i < mounts->pass.len; i++) {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        look_at(probe, mounts->pass.items[i], index, facts);
    }
}

/* --- judge ---------------------------------------------------------------------------------------- */

static bool over(struct probe *probe, const char *code, const char *place, uint64_t left, uint64_t all,
                 int64_t percent)
{
    double used = all > 0 && left <= all ? 100.0 - 100.0 * (double)left / (double)all : 0;
    return used >= (double)percent || (probe_is_on(probe, code, place) && used >= (double)percent - 2);
}

static const struct mount *mount_of(const struct mounts *mounts, const char *path)
{
    const struct mount *found = NULL; /* the last one is on top */
    for (size_t i = 0; i < mounts->list.len; i++)
        if (strcmp(mounts->list.items[i].path, path) == 0)
            found = &mounts->list.items[i];
    return found;
}

static void judge_space(struct probe *probe, const char *path, const char *place, struct str value)
{
    struct mounts *mounts = probe->state;
    const struct mount *mount = mount_of(mounts, path);
    uint64_t numbers[4];
    for (int i = 0; i < 4; i++) {
        struct str word = value, rest = {0};
        str_cut(value, ' ', &word, &rest);
        if (!str_to_u64(word, &numbers[i]))
            return;
        value = rest;
    }
    probe_condition(probe, "mount/hung", place, false, SEVERITY_MAJOR, "it answers");
    probe_condition(probe, "mount/error", place, false, SEVERITY_MAJOR, "it answers");
    if (!mount || mount->read_only)
        return;
    probe_condition(probe, "fs/full", place,
                    over(probe, "fs/full", place, numbers[0], numbers[1], mounts->percent), SEVERITY_MAJOR,
                    "%llu of %llu blocks left", (unsigned long long)numbers[0],
                    (unsigned long long)numbers[1]);
    probe_condition(probe, "fs/inodes", place,
                    over(probe, "fs/inodes", place, numbers[2], numbers[3], mounts->inodes), SEVERITY_MAJOR,
                    "%llu of %llu inodes left", (unsigned long long)numbers[2],
                    (unsigned long long)numbers[3]);
}

/* Judges the facts of the child; returns the index of the mount that the child began and did not end;
 * SIZE_MAX if none. */
static size_t judge_facts(struct probe *probe, struct str facts)
{
    struct mounts *mounts = probe->state;
    size_t open = SIZE_MAX;
    for (struct fact fact; fact_next(&facts, &fact);) {
        uint64_t index, number;
        if (str_is(fact.place, "lustre"))
            probe_condition(probe, "fs/health", "lustre", !str_is(fact.value, "healthy"), SEVERITY_MAJOR,
                            "health_check says " STR_FORMAT, STR_ARG(fact.value));
        if (!str_to_u64(fact.place, &index) || index >= mounts->pass.len)
            continue;
        const char *path = mounts->pass.items[index];
        struct probe_place place = place_of("mount/%s", path);
        open = str_is(fact.name, "begin") ? (size_t)index : SIZE_MAX;
        if (str_is(fact.name, "space"))
            judge_space(probe, path, place.text, fact.value);
        else if (str_is(fact.name, "error") && str_to_u64(fact.value, &number) && number != ENOENT) {
            probe_condition(probe, "mount/hung", place.text, false, SEVERITY_MAJOR, "it answers");
            probe_condition(probe, "mount/error", place.text, number != EACCES, SEVERITY_MAJOR, "%s",
                            strerror((int)number));
        }
    }
    return open;
}

static void set_pass(struct mounts *mounts, size_t keep_from)
{
    for (size_t i = 0; i < keep_from && i < mounts->pass.len; i++)
        mem_free(mounts->pass.items[i]);
    size_t left = mounts->pass.len > keep_from ? mounts->pass.len - keep_from : 0;
    if (left > 0)
        memmove(mounts->pass.items, mounts->pass.items + keep_from, left * sizeof(char *));
    mounts->pass.len = left;
}

static bool send_child(struct probe *probe, char key[24])
{
    struct mounts *mounts = probe->state;
    snprintf(key, 24, "%llu", (unsigned long long)++mounts->serial);
    return mounts->pass.len > 0 && child_look(probe, key, probe->timeout_ns, false);
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    judge_facts(probe, facts);
    set_pass(probe->state, SIZE_MAX);
}

static char *copy_of(const char *text)
{
    char *copy = mem_alloc(strlen(text) + 1);
    memcpy(copy, text, strlen(text));
    return copy;
}

static void failed(struct probe *probe, const char *key, bool hung, struct str facts)
{
    struct mounts *mounts = probe->state;
    size_t open = judge_facts(probe, facts);
    char next[24];
    if (open == SIZE_MAX || !hung) {
        set_pass(mounts, SIZE_MAX);
        return;
    }
    struct hung entry = {.path = copy_of(mounts->pass.items[open])};
    snprintf(entry.key, sizeof entry.key, "%s", key);
    vec_push(&mounts->hung, entry);
    struct probe_place place = place_of("mount/%s", entry.path);
    probe_condition(probe, "mount/hung", place.text, true, SEVERITY_CRITICAL, "no answer within %lld ms",
                    (long long)(probe->timeout_ns / NS_PER_MS));
    set_pass(mounts, open + 1);
    send_child(probe, next);
}

/* --- run ------------------------------------------------------------------------------------------ */

/* Returns whether a child hangs at this path. Forgets children that have ended. */
static bool occupied(struct probe *probe, const char *path)
{
    struct mounts *mounts = probe->state;
    bool found = false;
    for (size_t i = mounts->hung.len; i-- > 0;) {
        struct hung *hung = &mounts->hung.items[i];
        if (!child_lives(probe, hung->key)) {
            mem_free(hung->path);
            vec_remove(&mounts->hung, i);
        } else {
            found = found || strcmp(hung->path, path) == 0;
        }
    }
    return found;
}

static const struct doc *expected(const struct probe *probe, const char *path)
{
    const struct doc *list = probe_manifest(probe, "mounts");
    for (size_t i = 0; i < doc_len(list); i++)
        if (str_is(doc_str(doc_get(doc_at(list, i), "path"), STR("")), path))
            return doc_at(list, i);
    return NULL;
}

static void judge_mount(struct probe *probe, const struct mount *mount)
{
    static const char *const kept[] = {"mount/hung", "mount/error", "fs/full", "fs/inodes"};
    struct probe_place place = place_of("mount/%s", mount->path);
    const struct doc *wanted = expected(probe, mount->path);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        probe_keep(probe, kept[i], place.text);
    if (!mount->read_only)
        probe_see(probe, place.text, "was writable");
    bool writable = wanted && doc_get(wanted, "readOnly")
                        ? !doc_bool(doc_get(wanted, "readOnly"), false)
                        : wanted || probe_seen(probe, place.text, "was writable");
    probe_condition(probe, "mount/read-only", place.text, mount->read_only && writable, SEVERITY_MAJOR,
                    "%s at %s is read-only", mount->type, mount->path);
}

static void judge_missing(struct probe *probe)
{
    const struct doc *list = probe_manifest(probe, "mounts");
    struct mounts *mounts = probe->state;
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        char path[512];
        snprintf(path, sizeof path, STR_FORMAT, STR_ARG(doc_str(doc_get(item, "path"), STR("?"))));
        struct str type = doc_str(doc_get(item, "type"), STR(""));
        const struct mount *mount = mount_of(mounts, path);
        bool there = mount && (type.len == 0 || str_is(type, mount->type));
        probe_condition(probe, "mount/missing", place_of("mount/%s", path).text, !there, SEVERITY_CRITICAL,
                        mount ? "type %s instead of " STR_FORMAT : "not mounted%s" STR_FORMAT,
                        mount ? mount->type : "", STR_ARG(mount ? type : STR("")));
    }
}

/* Lists the file systems to examine: each once, hung ones last. */
static void make_pass(struct probe *probe)
{
    struct mounts *mounts = probe->state;
    for (int hung = 0; hung < 2; hung++)
        for (size_t i = 0; i < mounts->list.len; i++) {
            const struct mount *mount = &mounts->list.items[i];
            bool twice = false;
            for (size_t k = 0; k < i && !expected(probe, mount->path); k++)
                twice = twice || strcmp(mounts->list.items[k].device, mount->device) == 0;
            bool is_hung = probe_is_on(probe, "mount/hung", place_of("mount/%s", mount->path).text);
            if (twice || is_hung != (hung == 1) || probe_listed(probe, "exclude", str_from(mount->path)) ||
                occupied(probe, mount->path))
                continue;
            vec_push(&mounts->pass, copy_of(mount->path));
        }
}

static void run(struct probe *probe)
{
    struct mounts *mounts = probe->state;
    char key[24];
    if (!read_table(probe))
        return;
    probe_sweep_begin(probe);
    probe_keep(probe, "fs/health", "lustre");
    for (size_t i = 0; i < mounts->list.len; i++)
        judge_mount(probe, &mounts->list.items[i]);
    judge_missing(probe);
    probe_sweep_end(probe);
    if (mounts->pass.len > 0 && probe->running) /* the last pass is not done */
        return;
    set_pass(mounts, SIZE_MAX);
    make_pass(probe);
    send_child(probe, key);
}

static void stop(struct probe *probe)
{
    struct mounts *mounts = probe->state;
    clear_list(mounts);
    set_pass(mounts, SIZE_MAX);
    for (size_t i = 0; i < mounts->hung.len; i++)
        mem_free(mounts->hung.items[i].path);
    vec_done(&mounts->list);
    vec_done(&mounts->pass);
    vec_done(&mounts->hung);
}

const struct probe_kind probe_mounts = {.name = "mounts",
                                        .period_ns = 30 * NS_PER_SECOND,
                                        .cost_ns = 200 * NS_PER_MS,
                                        .timeout_ns = 5 * NS_PER_SECOND,
                                        .keys = " exclude fullPercent inodesPercent ",
                                        .start = start,
                                        .run = run,
                                        .look = look,
                                        .judge = judge,
                                        .failed = failed,
                                        .stop = stop};
