/* Injects faults, and undoes lasting ones. Each lasting injection has a record in a file
 * DIR/injections/N.json, where any later `phalanx inject heal` finds it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/inject.h"

enum { RECORD_BYTES_MAX = 1 << 20, RECORDS_MAX = 100000 };

/* The record of an injection in force, from which it can be undone after the process that made it has
 * ended. */
struct record {
    enum inject_action action;
    struct target target;
    struct inject_how how;
    int64_t at_ns;
    pid_t keeper; /* 0: none */
    path_list paths;
    struct standing order; /* from an agent's order */
};

/* --- signals -------------------------------------------------------------------------------------------- */

static int64_t wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static int do_signal(struct ground *ground, enum inject_action action, const target_list *targets,
                     struct injected *ret)
{
    pid_list pids = {0};
    if (action == ACTION_KILL)
        return inject_kill(ground, targets, ret);
    inject_processes(ground, targets, &pids);
    ret->at_ns = wall();
    int rc = inject_signal(&pids, action == ACTION_STOP ? SIGSTOP : SIGCONT);
    ret->count = pids.len;
    vec_done(&pids);
    return rc < 0 ? EXIT_FAILED : ret->count ? EXIT_OK : EXIT_NOT_FOUND;
}

/* --- records -------------------------------------------------------------------------------------------- */

static void record_path(const struct ground *ground, int64_t number, char ret_path[PATH_MAX + 64])
{
    snprintf(ret_path, PATH_MAX + 64, "%s/injections/%lld.json", ground->data, (long long)number);
}

static int by_number(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

void inject_standing(const struct ground *ground, record_list *ret_records)
{
    char path[PATH_MAX + 32];
    struct dirent *entry;
    struct str head, tail;
    int64_t number;
    vec_clear(ret_records);
    snprintf(path, sizeof path, "%s/injections", ground->data);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder)))
        if (str_cut(str_from(entry->d_name), '.', &head, &tail) && str_is(tail, "json") &&
            str_to_i64(head, 1, RECORDS_MAX, &number))
            vec_push(ret_records, number);
    if (folder)
        closedir(folder);
    if (ret_records->len > 1)
        qsort(ret_records->items, ret_records->len, sizeof *ret_records->items, by_number);
}

static void write_record(struct buf *out, const struct record *record)
{
    struct json_writer json = {.out = out};
    char text[TARGET_NAME_MAX + 32];
    target_text(&record->target, text);
    json_begin_object(&json);
    json_pair_text(&json, "action", inject_action_names[record->action]);
    json_pair_text(&json, "object", text);
    json_pair_text(&json, "machine", record->target.machine);
    json_pair_int(&json, "at", record->at_ns);
    json_pair_int(&json, "keeper", record->keeper);
    json_pair_text(&json, "order", record->order.name);
    json_pair_int(&json, "until", record->order.until_ns);
    json_pair_str(&json, "code", record->how.code);
    json_pair_str(&json, "place", record->how.place);
    json_pair_int(&json, "chip", record->how.chip);
    json_key(&json, "paths");
    json_begin_array(&json);
    for (size_t i = 0; i < record->paths.len; i++)
        json_put_text(&json, record->paths.items[i]);
    json_end_array(&json);
    json_end_object(&json);
    buf_add_char(out, '\n');
}

/* Writes a record. Returns its number, or 0 after a message. */
static int64_t keep_record(const struct ground *ground, const struct record *record)
{
    char path[PATH_MAX + 64];
    record_list standing = {0};
    struct buf text BUF_CLEANUP = {0};
    struct record whole = *record;
    whole.order.until_ns = ground->until_ns;
    snprintf(whole.order.name, sizeof whole.order.name, STR_FORMAT, STR_ARG(ground->order));
    snprintf(path, sizeof path, "%s/injections", ground->data);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        say("%s: %s", path, strerror(errno));
    inject_standing(ground, &standing);
    int64_t number = standing.len ? vec_last(&standing) : 0;
    vec_done(&standing);
    int fd = -1;
    do
        record_path(ground, ++number, path);
    while ((fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0 && errno == EEXIST);
    write_record(&text, &whole);
    if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len) {
        say("%s: %s", path, strerror(errno));
        number = 0;
    }
    if (fd >= 0)
        close(fd);
    return number;
}

static bool read_record(const struct ground *ground, int64_t number, struct arena *arena, struct record *ret)
{
    char path[PATH_MAX + 64];
    struct buf text BUF_CLEANUP = {0};
    struct doc *doc;
    record_path(ground, number, path);
    FILE *file = fopen(path, "re");
    buf_reserve(&text, RECORD_BYTES_MAX);
    text.len = file ? fread(text.data, 1, RECORD_BYTES_MAX, file) : 0;
    if (file)
        fclose(file);
    struct inject_selector selector;
    if (json_parse(arena, buf_str(&text), &doc, NULL) < 0 ||
        !inject_action_find(doc_text(doc, "action"), &ret->action) ||
        inject_selector_parse(doc_text(doc, "object"), &selector, NULL) < 0) {
        say("%s cannot be read", path);
        return false;
    }
    ret->target = (struct target){.kind = selector.kind, .rank = -1};
    struct str machine = doc_text(doc, "machine");
    snprintf(ret->target.name, sizeof ret->target.name, STR_FORMAT, STR_ARG(selector.name));
    snprintf(ret->target.machine, sizeof ret->target.machine, STR_FORMAT, STR_ARG(machine));
    snprintf(ret->target.part, sizeof ret->target.part, STR_FORMAT, STR_ARG(selector.part));
    ret->at_ns = doc_number(doc, "at", 0);
    ret->keeper = (pid_t)doc_number(doc, "keeper", 0);
    ret->order.action = ret->action;
    ret->order.until_ns = doc_number(doc, "until", 0);
    struct str order = doc_text(doc, "order");
    snprintf(ret->order.name, sizeof ret->order.name, STR_FORMAT, STR_ARG(order));
    ret->how = inject_how_default();
    ret->how.code = doc_text(doc, "code");
    ret->how.place = doc_text(doc, "place");
    ret->how.chip = doc_number(doc, "chip", -1);
    const struct doc *paths = doc_get(doc, "paths");
    for (size_t i = 0; i < doc_len(paths); i++)
        vec_push(&ret->paths, arena_strdup(arena, doc_str(doc_at(paths, i), STR(""))));
    return true;
}

/* --- undoing -------------------------------------------------------------------------------------------- */

/* Returns true if the process is a living process of this program, rather than another with a reused pid. */
static bool is_keeper(pid_t pid)
{
    char path[64], line[4096] = {0};
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    size_t first = strnlen(line, got);
    return first + 1 < got && strcmp(line + first + 1, "inject") == 0;
}

static void end_keeper(pid_t keeper)
{
    if (is_keeper(keeper))
        kill(keeper, SIGTERM);
    for (int i = 0; i < 1000 && is_keeper(keeper); i++) {
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        (void)waitpid(keeper, NULL, WNOHANG); /* if it is a child of this process */
    }
}

static int heal_paths(const struct record *record)
{
    int rc = EXIT_OK;
    for (size_t i = 0; i < record->paths.len; i++) {
        const char *path = record->paths.items[i];
        struct error error;
        size_t count;
        bool fill = record->action == ACTION_FILL;
        if (fill ? unlink(path) == 0 || errno == ENOENT
                 : access(path, F_OK) < 0 || inject_cut_heal(path, &count, &error) == 0)
            continue;
        say("%s", fill ? strerror(errno) : error.text);
        rc = EXIT_FAILED;
    }
    return rc;
}

static int heal(struct ground *ground, const struct record *record)
{
    pid_list pids = {0};
    size_t count = 0;
    int rc = heal_paths(record);
    if (record->keeper > 0)
        end_keeper(record->keeper);
    if (record->action == ACTION_STOP || record->keeper > 0) {
        ground_processes(ground, &record->target, &pids);
        rc = inject_signal(&pids, SIGCONT) < 0 ? EXIT_FAILED : rc;
        vec_done(&pids);
    }
    if (record->action >= ACTION_CHIP && record->action <= ACTION_LIE)
        rc = harm_report(ground, record->action, &record->target, &record->how, true, &count);
    return rc;
}

int inject_heal(struct ground *ground, int64_t number)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 * RECORD_BYTES_MAX};
    struct record record = {0};
    char path[PATH_MAX + 64];
    record_path(ground, number, path);
    if (access(path, F_OK) < 0) {
        say("no injection has the number %lld", (long long)number);
        return EXIT_NOT_FOUND;
    }
    int rc = read_record(ground, number, &arena, &record) ? heal(ground, &record) : EXIT_FAILED;
    vec_done(&record.paths);
    if (rc == EXIT_OK)
        unlink(path);
    return rc;
}

bool inject_standing_read(const struct ground *ground, int64_t number, struct standing *ret)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 * RECORD_BYTES_MAX};
    struct record record = {0};
    bool good = read_record(ground, number, &arena, &record);
    vec_done(&record.paths);
    if (good)
        *ret = record.order;
    return good;
}

void inject_print_list(struct text_table *table, struct buf *out, bool json, size_t count)
{
    buf_add_char(out, '\n');
    if (!json) {
        buf_clear(out);
        if (count)
            table_print(table, out, output_colors());
        else
            say("nothing stands");
    }
    output_write(out);
    buf_done(out);
    table_done(table);
}

void inject_print_standing(const struct ground *ground, bool json)
{
    record_list standing = {0};
    struct buf out = {0};
    struct json_writer writer = {.out = &out};
    struct text_table table = {.columns = 4};
    static const char *const names[] = {"NUMBER", "ACTION", "OBJECT", "AGE"};
    inject_standing(ground, &standing);
    table_heads(&table, names);
    json_begin_array(&writer);
    for (size_t i = 0; i < standing.len; i++) {
        struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 * RECORD_BYTES_MAX};
        struct record record = {0};
        char object[TARGET_NAME_MAX + 32], age[24];
        if (read_record(ground, standing.items[i], &arena, &record)) {
            target_text(&record.target, object);
            age_format(wall() - record.at_ns, age);
            json_begin_object(&writer);
            json_pair_int(&writer, "number", standing.items[i]);
            json_pair_text(&writer, "action", inject_action_names[record.action]);
            json_pair_text(&writer, "object", object);
            json_pair_int(&writer, "at", record.at_ns);
            json_end_object(&writer);
            table_add(&table, arena_printf(&table.arena, "%lld", (long long)standing.items[i]));
            table_add(&table, str_from(inject_action_names[record.action]));
            table_add(&table, arena_printf(&table.arena, "%s", object));
            table_add(&table, arena_printf(&table.arena, "%s", age));
        }
        vec_done(&record.paths);
    }
    json_end_array(&writer);
    inject_print_list(&table, &out, json, standing.len);
    vec_done(&standing);
}

/* --- doing ---------------------------------------------------------------------------------------------- */

pid_t inject_keeper(void)
{
    int fds[2];
    char byte;
    if (pipe2(fds, O_CLOEXEC) < 0) {
        say("pipe: %s", strerror(errno));
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
            if (dup2(null, fd) < 0) /* a reader of this program's output need not wait for it */
                _exit(EXIT_FAILED);
        setsid();
        close(fds[0]);
        close(fds[1]);
        return 0;
    }
    if (child < 0)
        say("fork: %s", strerror(errno));
    close(fds[1]);
    while (child > 0 && read(fds[0], &byte, 1) < 0 && errno == EINTR)
        ; /* waits until the child is in its session */
    close(fds[0]);
    return child;
}

static int keep_slow(struct ground *ground, const struct target *target, const struct inject_how *how,
                     pid_t *ret_keeper, size_t *count)
{
    pid_list pids = {0};
    ground_processes(ground, target, &pids);
    size_t there = pids.len;
    vec_done(&pids);
    if (!there)
        return EXIT_NOT_FOUND;
    pid_t child = inject_keeper();
    if (child == 0 && ground->where == GROUND_MACHINE)
        close(ground->mark); /* the child does not undo the injection */
    if (child == 0)
        harm_slow(ground, target, how->cpu_percent);
    if (child < 0)
        return EXIT_FAILED;
    *ret_keeper = child;
    *count += there;
    return EXIT_OK;
}

static int do_one(struct ground *ground, const struct target *target, struct record *record,
                  struct injected *ret)
{
    const struct inject_how *how = &record->how;
    int rc = EXIT_OK;
    ret->noun = "control group";
    switch (record->action) {
    case ACTION_PARTITION:
        return harm_cut(ground, target, how, &record->paths, &ret->count);
    case ACTION_SLOW:
        if (how->loss_ppm)
            rc = harm_cut(ground, target, how, &record->paths, &ret->count);
        if (rc == EXIT_OK && how->cpu_percent) {
            ret->noun = "process";
            rc = keep_slow(ground, target, how, &record->keeper, &ret->count);
        }
        return rc;
    case ACTION_CORRUPT:
        ret->noun = "file";
        return harm_corrupt(ground, target, how->tier, &ret->count);
    case ACTION_FILL:
        ret->noun = "disk";
        return harm_fill(ground, target, &record->paths, &ret->count);
    case ACTION_OOM:
        ret->noun = "task";
        return harm_oom(ground, target, &ret->count);
    default:
        ret->noun = "fault";
        return harm_report(ground, record->action, target, how, false, &ret->count);
    }
}

static size_t machines_in(const struct ground *ground)
{
    char path[PATH_MAX + 16];
    struct dirent *entry;
    size_t count = 0;
    if (ground->where == GROUND_API)
        return ground->machines.len;
    snprintf(path, sizeof path, "%s/machines", ground->data);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

static int guard(const struct ground *ground, const target_list *targets)
{
    size_t hit = ground_machines_hit(targets), all = machines_in(ground);
    if (ground->where == GROUND_MACHINE)
        return EXIT_OK; /* the sender of the order has checked */
    if (ground->sure || hit <= 1 || (double)hit <= ground->max_share * (double)all)
        return EXIT_OK;
    say("%zu of %zu machines would be hit, more than %.0f %%: raise --max-share, or give --yes", hit, all,
        100 * ground->max_share);
    return EXIT_FAILED;
}

static void keep_all(struct ground *ground, enum inject_action action, const struct inject_how *how,
                     const target_list *targets, struct injected *ret)
{
    for (size_t i = 0; i < targets->len; i++) {
        struct record record = {
            .action = action, .target = targets->items[i], .how = *how, .at_ns = ret->at_ns};
        vec_push(&ret->records, keep_record(ground, &record));
    }
}

/* Drops the records of stops of processes that have been continued. */
static void forget_stops(const struct ground *ground, const target_list *targets)
{
    record_list standing = {0};
    inject_standing(ground, &standing);
    for (size_t i = 0; i < standing.len; i++) {
        struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 * RECORD_BYTES_MAX};
        struct record record = {0};
        char path[PATH_MAX + 64];
        bool over = false;
        if (read_record(ground, standing.items[i], &arena, &record) && record.action == ACTION_STOP)
            for (size_t k = 0; k < targets->len; k++)
                over |= record.target.kind == targets->items[k].kind &&
                        strcmp(record.target.name, targets->items[k].name) == 0;
        record_path(ground, standing.items[i], path);
        if (over)
            unlink(path);
        vec_done(&record.paths);
    }
    vec_done(&standing);
}

int inject_do(struct ground *ground, enum inject_action action, const struct inject_how *how,
              const target_list *targets, struct injected *ret)
{
    *ret = (struct injected){.noun = "process"};
    int rc = guard(ground, targets);
    if (rc != EXIT_OK)
        return rc;
    if (ground->where == GROUND_API)
        return remote_do(ground, action, how, targets, ret);
    if (!ground->silent && action != ACTION_LIE && ground->where == GROUND_UP)
        harm_note(ground, action, targets);
    if (action <= ACTION_CONTINUE) {
        rc = do_signal(ground, action, targets, ret);
        if (rc == EXIT_OK && action == ACTION_STOP)
            keep_all(ground, action, how, targets, ret);
        if (rc == EXIT_OK && action == ACTION_CONTINUE)
            forget_stops(ground, targets);
        return rc;
    }
    ret->at_ns = wall();
    for (size_t i = 0; i < targets->len && rc == EXIT_OK; i++) {
        struct record record = {
            .action = action, .target = targets->items[i], .how = *how, .at_ns = ret->at_ns};
        size_t before = ret->count;
        rc = do_one(ground, &targets->items[i], &record, ret);
        if (inject_stands(action) && (ret->count > before || record.paths.len || record.keeper > 0))
            vec_push(&ret->records, keep_record(ground, &record));
        path_list_done(&record.paths);
    }
    return rc == EXIT_OK && !ret->count ? EXIT_NOT_FOUND : rc;
}

void injected_done(struct injected *done)
{
    vec_done(&done->records);
}
