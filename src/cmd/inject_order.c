/* Carries out an order of the controller on this machine (docs/inject.md). The machine's agent has started
 * this program for it, in its state directory, as an errand; standard output is the answer.
 *
 * An order is carried out once. If the order kills the agent, the controller sends it again after the agent
 * has returned. Therefore each order first writes a mark, injections/NAME.done.
 *
 * A separate process undoes a lasting injection. It outlives the order, and the agent too, which may be the
 * stopped process. The next agent finds the injection in force and leaves it until its time. While such a
 * process lives, or the order is still being carried out, the order's mark is locked. An injection is
 * abandoned if its mark is not locked, or if it is overdue: then an agent undoes it
 * (host/agent/injections.c). The process that undoes an injection tells the agent, which ends the Fault that
 * the controller opened. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/door.h"
#include "cmd/inject.h"

enum { STANDING_MAX = 16, MARK_KEPT_S = 24 * 3600 };
#define FOR_MAX_NS (3600 * NS_PER_SECOND)
#define OVERDUE_NS (5 * NS_PER_SECOND)
#define FOLDER     "injections"
enum { MARK_PATH_BYTES = sizeof FOLDER + ORDER_NAME_MAX + 16 };

struct order {
    struct str name, action, object;
    enum inject_action what, of; /* of: the action to heal; INJECT_ACTIONS: any */
    struct inject_how how;
    struct target target;
};

/* --- the order ------------------------------------------------------------------------------------------ */

/* Returns true for members of the order that are not options of its action (inject_how_set). */
static bool is_own_member(struct str key)
{
    return str_is(key, "action") || str_is(key, "object") || str_is(key, "rank") || str_is(key, "job") ||
           str_is(key, "silent") || str_is(key, "of");
}

static int read_options(const struct doc *spec, struct order *order, struct error *error)
{
    for (size_t i = 0; i < doc_len(spec); i++) {
        const struct doc_member *member = &spec->object.members[i];
        struct str value = doc_str(member->value, STR(""));
        int rc = is_own_member(member->key) ? 0 : inject_how_set(&order->how, member->key, value, error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_target(const struct order_options *options, const struct doc *spec, struct order *order,
                       struct error *error)
{
    struct inject_selector selector;
    struct target *target = &order->target;
    int rc = inject_selector_parse(order->object, &selector, error);
    if (rc < 0)
        return rc;
    size_t which;
    const char *why = inject_settle(&selector, 1, &order->what, &order->how, &which);
    bool whole = selector.kind == INJECT_MACHINE || selector.kind == INJECT_AGENT || selector.part.len;
    if (why)
        return error_set(error, ERROR_INVALID, STR_FORMAT " " STR_FORMAT ": %s", STR_ARG(order->action),
                         STR_ARG(order->object), why);
    if (selector.choice != CHOICE_NAME || !(whole || selector.by_pod) ||
        (whole && !str_is(selector.name, options->machine)))
        return error_set(error, ERROR_INVALID, "\"" STR_FORMAT "\" is not an object of machine %s",
                         STR_ARG(order->object), options->machine);
    struct str job = doc_str(doc_get(spec, "job"), STR(""));
    *target = (struct target){.kind = selector.kind, .rank = doc_int(doc_get(spec, "rank"), -1)};
    snprintf(target->name, sizeof target->name, STR_FORMAT, STR_ARG(selector.name));
    snprintf(target->machine, sizeof target->machine, "%s", options->machine);
    snprintf(target->job, sizeof target->job, STR_FORMAT, STR_ARG(job));
    snprintf(target->part, sizeof target->part, STR_FORMAT, STR_ARG(selector.part));
    return 0;
}

static bool heals(const struct order *order)
{
    return str_is(order->action, "heal");
}

/* Returns true if the name may be an order's own: "all" and "abandoned" have another meaning (heal). */
static bool is_order_name(struct str name)
{
    return name.len > 0 && name.len < ORDER_NAME_MAX && !memchr(name.data, '/', name.len) &&
           name.data[0] != '.' && !str_is(name, "all") && !str_is(name, "abandoned");
}

static int read_order(struct arena *arena, const struct order_options *options, struct order *ret,
                      struct error *error)
{
    struct doc *document;
    int rc = json_parse(arena, str_from(options->body), &document, error);
    if (rc < 0)
        return rc;
    const struct doc *spec = doc_get(document, "spec");
    *ret = (struct order){.name = doc_text(document, "name"),
                          .action = doc_text(spec, "action"),
                          .object = doc_text(spec, "object"),
                          .of = INJECT_ACTIONS,
                          .how = inject_how_default()};
    (void)inject_action_find(doc_text(spec, "of"), &ret->of);
    if (heals(ret))
        return 0;
    if (!is_order_name(ret->name))
        return error_set(error, ERROR_INVALID, "\"" STR_FORMAT "\" is not a valid name of an order",
                         STR_ARG(ret->name));
    if (!inject_action_find(ret->action, &ret->what))
        return error_set(error, ERROR_UNSUPPORTED, "this agent knows no action \"" STR_FORMAT "\"",
                         STR_ARG(ret->action));
    rc = read_options(spec, ret, error);
    return rc < 0 ? rc : read_target(options, spec, ret, error);
}

/* Checks that the injection has an end and stays within the limits. */
static int check_limits(const struct ground *ground, const struct order *order, struct error *error)
{
    record_list standing = {0};
    bool stands = inject_stands(order->what);
    inject_standing(ground, &standing);
    size_t count = standing.len;
    vec_done(&standing);
    if (stands && !order->how.for_ns)
        return error_set(error, ERROR_INVALID, STR_FORMAT " needs a time: for", STR_ARG(order->action));
    if (!stands && order->how.for_ns)
        return error_set(error, ERROR_INVALID, STR_FORMAT " cannot be undone: no time is taken",
                         STR_ARG(order->action));
    if (order->how.for_ns > FOR_MAX_NS)
        return error_set(error, ERROR_LIMIT, "at most an hour, then it is undone");
    if (stands && count >= STANDING_MAX)
        return error_set(error, ERROR_LIMIT, "this machine already has %zu injections", count);
    return 0;
}

/* --- marks ---------------------------------------------------------------------------------------------- */

/* Removes marks so old that no controller asks about them any longer. */
static void drop_old_marks(void)
{
    struct dirent *entry;
    struct stat info;
    DIR *folder = opendir(FOLDER);
    while (folder && (entry = readdir(folder)))
        if (str_ends(str_from(entry->d_name), STR(".done")) &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 &&
            info.st_mtime + MARK_KEPT_S < client_wall() / NS_PER_SECOND)
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

static void mark_path(struct str name, char ret_path[MARK_PATH_BYTES])
{
    snprintf(ret_path, MARK_PATH_BYTES, FOLDER "/" STR_FORMAT ".done", STR_ARG(name));
}

/* Makes the order's mark, locked by this process and its children. Returns 0, 1 if the mark already exists,
 * or an error. */
static int make_mark(struct ground *ground, const struct order *order, struct error *error)
{
    char path[MARK_PATH_BYTES];
    if (mkdir(FOLDER, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making %s", FOLDER);
    drop_old_marks();
    mark_path(order->name, path);
    ground->mark = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (ground->mark < 0)
        return errno == EEXIST ? 1 : error_set_errno(error, errno, "making %s", path);
    return flock(ground->mark, LOCK_EX | LOCK_NB) < 0 ? error_set_errno(error, errno, "locking %s", path) : 0;
}

/* Returns true if no process will undo the injection in time. */
static bool is_abandoned(const struct standing *one)
{
    char path[MARK_PATH_BYTES];
    if (one->until_ns + OVERDUE_NS < client_wall())
        return true;
    mark_path(str_from(one->name), path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool watched = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return !watched;
}

/* --- undoing -------------------------------------------------------------------------------------------- */

/* Reports to the agent that the controller's Fault of this name has ended. Returns false if no agent
 * answers. */
static bool tell_over(const struct ground *ground, const char *name, enum inject_action action)
{
    char code[64], place[ORDER_NAME_MAX + 16], path[AGENT_SOCKET_PATH_MAX + 1];
    struct error error;
    snprintf(code, sizeof code, "injected/%s", inject_action_names[action]);
    snprintf(place, sizeof place, "injection/%s", name);
    door_path(ground->data, path);
    return door_report(path,
                       &(struct door_report){.code = code,
                                             .place = place,
                                             .assertion = "recover",
                                             .evidence = STR("it was undone"),
                                             .chip = -1},
                       &error) != ERROR_UNAVAILABLE;
}

/* Reports that an injection has ended. If there is no agent, keeps the report as injections/NAME.ACTION.over
 * until there is one. */
static void over(const struct ground *ground, const char *name, enum inject_action action)
{
    char path[2 * ORDER_NAME_MAX + 64];
    if (tell_over(ground, name, action))
        return;
    snprintf(path, sizeof path, "%s/%s.%s.over", FOLDER, name, inject_action_names[action]);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

static void tell_late(const struct ground *ground)
{
    struct dirent *entry;
    DIR *folder = opendir(FOLDER);
    while (folder && (entry = readdir(folder))) {
        struct str name, rest, action, ending;
        char text[ORDER_NAME_MAX];
        enum inject_action what;
        if (!str_cut(str_from(entry->d_name), '.', &name, &rest) || !str_cut(rest, '.', &action, &ending) ||
            !str_is(ending, "over") || !inject_action_find(action, &what) || name.len >= sizeof text)
            continue;
        snprintf(text, sizeof text, STR_FORMAT, STR_ARG(name));
        if (tell_over(ground, text, what))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
}

typedef VEC(struct standing) standing_list;

static void list_standing(const struct ground *ground, standing_list *ret)
{
    record_list records = {0};
    struct standing one;
    inject_standing(ground, &records);
    for (size_t i = 0; i < records.len; i++)
        if (inject_standing_read(ground, records.items[i], &one) && one.name[0])
            vec_push(ret, one);
    vec_done(&records);
}

/* Reports the injections that were in force before and no longer are. */
static void tell_gone(const struct ground *ground, const standing_list *before)
{
    standing_list now = {0};
    list_standing(ground, &now);
    for (size_t i = 0; i < before->len; i++) {
        bool there = false;
        for (size_t k = 0; k < now.len; k++)
            there |= strcmp(now.items[k].name, before->items[i].name) == 0;
        if (!there)
            over(ground, before->items[i].name, before->items[i].action);
    }
    vec_done(&now);
}

/* Returns true if the name means this injection. The name of an order means its injections, "all" means all
 * of them, and "abandoned" those that no other process undoes. */
static bool is_meant(struct str name, const struct standing *one)
{
    if (str_is(name, "abandoned"))
        return is_abandoned(one);
    return str_is(name, "all") || str_is(name, one->name);
}

/* Undoes the injections that the name means. Returns their number, or -1 if some could not be undone. */
static int heal(struct ground *ground, struct str name)
{
    standing_list before = {0};
    record_list records = {0};
    struct standing one;
    int count = 0;
    bool failed = false;
    list_standing(ground, &before);
    inject_standing(ground, &records);
    for (size_t i = 0; i < records.len; i++) {
        if (!inject_standing_read(ground, records.items[i], &one) || !is_meant(name, &one))
            continue;
        int rc = inject_heal(ground, records.items[i]);
        failed |= rc != EXIT_OK && rc != EXIT_NOT_FOUND; /* another process was first */
        count++;
    }
    tell_gone(ground, &before);
    tell_late(ground);
    vec_done(&records);
    vec_done(&before);
    return failed ? -1 : count;
}

static int heal_order(struct ground *ground, const struct order *order)
{
    char name[ORDER_NAME_MAX];
    int count = heal(ground, order->object);
    if (count < 0)
        return EXIT_FAILED;
    if (count == 0 && order->of < INJECT_ACTIONS && order->object.len < sizeof name) {
        snprintf(name, sizeof name, STR_FORMAT, STR_ARG(order->object)); /* the Fault may still be open */
        over(ground, name, order->of);
    }
    printf("%d undone\n", count);
    return EXIT_OK;
}

static bool still_stands(const struct ground *ground, struct str name)
{
    standing_list list = {0};
    bool any = false;
    list_standing(ground, &list);
    for (size_t i = 0; i < list.len; i++)
        any |= str_is(name, list.items[i].name);
    vec_done(&list);
    return any;
}

/* Starts a process that sleeps until the injection's time has passed, and then undoes it. The process leaves
 * the errand's group, which ends with the errand, and does not end with the agent. */
static int keep(struct ground *ground, const struct order *order)
{
    pid_t child = inject_keeper();
    if (child != 0)
        return child > 0 ? EXIT_OK : EXIT_FAILED;
    int64_t left_ns;
    while ((left_ns = ground->until_ns - client_wall()) > 0) {
        bool last = left_ns < NS_PER_SECOND;
        struct timespec rest = {!last, last ? left_ns : 0};
        nanosleep(&rest, NULL);
        if (!still_stands(ground, order->name)) /* another process has undone it */
            _exit(EXIT_OK);
    }
    _exit(heal(ground, order->name) < 0 ? EXIT_FAILED : EXIT_OK);
}

/* --- doing ---------------------------------------------------------------------------------------------- */

static int carry_out(struct ground *ground, const struct order *order)
{
    target_list targets = {0};
    standing_list before = {0};
    struct injected done = {0};
    vec_push(&targets, order->target);
    list_standing(ground, &before);
    ground->order = order->name;
    ground->until_ns = client_wall() + order->how.for_ns;
    int rc = inject_do(ground, order->what, &order->how, &targets, &done);
    if (done.records.len && keep(ground, order) != EXIT_OK)
        rc = EXIT_FAILED;
    if (rc != EXIT_OK)
        (void)heal(ground, order->name); /* no injection may stay that no process will undo */
    tell_gone(ground, &before);          /* continued processes are no longer stopped */
    struct buf count BUF_CLEANUP = {0};
    put_count(&count, (int64_t)done.count, done.noun);
    if (rc == EXIT_OK)
        printf(STR_FORMAT "\n", STR_ARG(buf_str(&count)));
    else if (rc == EXIT_NOT_FOUND)
        output_print("no running object here matches " STR_FORMAT "\n", STR_ARG(order->object));
    injected_done(&done);
    vec_done(&before);
    vec_done(&targets);
    return rc;
}

int inject_order(const struct order_options *options)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct ground ground;
    struct order order;
    struct error error;
    int rc = ground_open_machine(&ground, options->memory);
    if (rc != EXIT_OK)
        return rc;
    rc = read_order(&arena, options, &order, &error);
    if (rc == 0 && heals(&order))
        return heal_order(&ground, &order);
    if (rc == 0)
        rc = check_limits(&ground, &order, &error);
    if (rc == 0)
        rc = make_mark(&ground, &order, &error);
    if (rc < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    if (rc > 0) {
        printf("done before\n");
        return EXIT_OK;
    }
    rc = carry_out(&ground, &order);
    ground_close(&ground);
    return rc;
}
