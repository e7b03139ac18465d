/* The actions of `phalanx inject` other than signals. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/door.h"
#include "cmd/inject.h"
#include "os/folder.h"

/* Bits to flip after a shard's header (docs/formats/checkpoint.md): damage that only reading reveals. */
enum { SHARD_HEADER = 64, FLIPS = 3 };
/* A disk with more free space than this was not made to be filled. */
#define FILL_MAX ((uint64_t)2 << 30)
enum { NOTE_MS = 1000, REPORT_MS = 5000, TURN_US = 20000, LOOK_AGAIN_TURNS = 10 };

void path_list_done(path_list *paths)
{
    for (size_t i = 0; i < paths->len; i++)
        free(paths->items[i]);
    vec_done(paths);
}

static void add_path(path_list *paths, const char *path)
{
    for (size_t i = 0; i < paths->len; i++)
        if (strcmp(paths->items[i], path) == 0)
            return;
    char *copy = strdup(path);
    CHECK(copy);
    vec_push(paths, copy);
}

/* --- networks ------------------------------------------------------------------------------------------- */

static bool holds(const pid_list *pids, pid_t pid)
{
    for (size_t i = 0; i < pids->len; i++)
        if (pids->items[i] == pid)
            return true;
    return false;
}

/* Returns a process of the group that is not in the list; 0 if there is none. */
static pid_t stranger(const char *cgroup, const pid_list *pids)
{
    char path[INJECT_PATH_MAX + 32];
    int pid;
    pid_t found = 0;
    snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
    FILE *file = fopen(path, "re");
    while (file && !found && fscanf(file, "%d", &pid) == 1)
        if (!holds(pids, pid) && pid != getpid() && kill(pid, 0) == 0)
            found = pid;
    if (file)
        fclose(file);
    return found;
}

static const char own_group_of_up[] =
    "`phalanx up` must run as a user who may make control groups (root), so that each machine has its own";
static const char own_group_of_agent[] =
    "its agent must run in a control group of its own, as systemd does (deploy/systemd)";

int harm_cut(const struct ground *ground, const struct target *target, const struct inject_how *how,
             path_list *paths, size_t *count)
{
    pid_list pids = {0}, again = {0};
    path_list groups = {0};
    struct error error;
    char path[INJECT_PATH_MAX];
    int rc = EXIT_OK;
    ground_processes(ground, target, &pids);
    for (size_t i = 0; i < pids.len; i++)
        if (inject_cgroup_of(pids.items[i], path))
            add_path(&groups, path);
    ground_processes(ground, target, &again); /* includes processes started in the meantime */
    for (size_t i = 0; i < groups.len && rc == EXIT_OK; i++) {
        pid_t other = stranger(groups.items[i], &again);
        if (other) {
            say("%s: process %d is in the same control group, %s: %s", target->name, (int)other,
                groups.items[i], ground->where == GROUND_UP ? own_group_of_up : own_group_of_agent);
            rc = EXIT_FAILED;
        } else if (inject_cut(groups.items[i], how->direction, how->loss_ppm ? how->loss_ppm : 1000000,
                              &error) < 0) {
            say("%s: %s", target->name, error.text);
            rc = EXIT_FAILED;
        } else {
            add_path(paths, groups.items[i]);
            ++*count;
        }
    }
    if (!groups.len && pids.len && rc == EXIT_OK) {
        say("%s: this computer has no control groups of version 2", target->name);
        rc = EXIT_FAILED;
    }
    path_list_done(&groups);
    vec_done(&pids);
    vec_done(&again);
    return rc;
}

/* --- checkpoints, disks, memory ------------------------------------------------------------------------- */

/* Reads a variable PHX_... from the environment of a rank's process. Returns false if it is not set. */
static bool variable_of(const struct ground *ground, const struct target *target, const char *name,
                        char ret_value[PATH_MAX])
{
    struct target rank = *target;
    pid_list pids = {0};
    bool found = false;
    rank.kind = INJECT_RANK;
    ground_processes(ground, &rank, &pids);
    for (size_t i = 0; i < pids.len && !found; i++) {
        char path[64], *line = NULL;
        size_t room = 0;
        snprintf(path, sizeof path, "/proc/%d/environ", (int)pids.items[i]);
        FILE *file = fopen(path, "re");
        while (file && !found && getdelim(&line, &room, 0, file) > 0)
            found = strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == '=' &&
                    strlen(line) < PATH_MAX;
        if (found)
            snprintf(ret_value, PATH_MAX, "%s", line + strlen(name) + 1);
        free(line);
        if (file)
            fclose(file);
    }
    vec_done(&pids);
    return found;
}

/* Returns the step in ".../step-40/attempt-0-rank-1.shard". */
static int64_t step_of(const char *path)
{
    const char *at = strstr(path, "/step-");
    return at ? strtoll(at + strlen("/step-"), NULL, 10) : 0;
}

int harm_corrupt(struct ground *ground, const struct target *target, enum inject_tier tier, size_t *count)
{
    char folder[PATH_MAX], pattern[PATH_MAX + 96];
    bool memory = tier == TIER_MEMORY;
    glob_t found;
    if (!variable_of(ground, target, memory ? "PHX_MEMORY_DIR" : "PHX_CHECKPOINT_DIR", folder)) {
        say("rank %lld of %s keeps no checkpoints there, or has no process", (long long)target->rank,
            target->job);
        return EXIT_NOT_FOUND;
    }
    snprintf(pattern, sizeof pattern, memory ? "%s/rank-%lld.[01]" : "%s/step-*/attempt-*-rank-%lld.shard",
             folder, (long long)target->rank);
    if (glob(pattern, 0, NULL, &found) != 0)
        return EXIT_NOT_FOUND; /* there is no checkpoint yet */
    int64_t newest = 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        newest = step_of(found.gl_pathv[i]) > newest ? step_of(found.gl_pathv[i]) : newest;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct error error;
        if (!memory && step_of(found.gl_pathv[i]) < newest)
            continue;
        if (inject_flip(found.gl_pathv[i], SHARD_HEADER, FLIPS, &ground->rng, &error) < 0)
            say("%s", error.text);
        else
            ++*count;
    }
    globfree(&found);
    return *count ? EXIT_OK : EXIT_FAILED;
}

int harm_fill(const struct ground *ground, const struct target *target, path_list *paths, size_t *count)
{
    struct error error;
    uint64_t bytes;
    char folder[PATH_MAX], path[PATH_MAX + 64];
    if (target->kind != INJECT_CHECKPOINT)
        ground_state(ground, target->name, folder);
    else if (!variable_of(ground, target, "PHX_CHECKPOINT_DIR", folder)) {
        say("rank %lld of %s keeps no checkpoints in storage, or has no process", (long long)target->rank,
            target->job);
        return EXIT_NOT_FOUND;
    }
    snprintf(path, sizeof path, "%s/.ballast-%lld", folder, (long long)client_wall());
    int rc = inject_fill(path, FILL_MAX, &bytes, &error);
    if (rc < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    add_path(paths, path);
    ++*count;
    return EXIT_OK;
}

void harm_memory(const struct ground *ground, const char *machine)
{
    char folder[PATH_MAX];
    if (ground_memory_of(ground, machine, folder))
        os_folder_remove(AT_FDCWD, folder);
}

/* --- out of memory -------------------------------------------------------------------------------------- */

/* Takes memory in the task's control group until the kernel kills a process of the group. The kernel cannot
 * choose this process. */
static void eat(const char *procs)
{
    char pid[16];
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    int group = open(procs, O_WRONLY | O_CLOEXEC);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (score < 0 || write(score, "-1000", 5) != 5 || group < 0 || write(group, pid, strlen(pid)) < 0)
        _exit(EXIT_FAILED);
    for (;;) {
        size_t size = (size_t)1 << 20;
        char *page =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (page == MAP_FAILED)
            _exit(EXIT_FAILED);
        memset(page, 1, size);
    }
}

static bool memory_group(pid_t pid, char ret_path[PATH_MAX + 32])
{
    char path[64], line[PATH_MAX];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line - 128, file)) {
        line[strcspn(line, "\n")] = 0;
        char *memory = strstr(line, ":memory:");
        found = memory && strstr(memory, "/phalanx/");
        if (found)
            snprintf(ret_path, PATH_MAX, "/sys/fs/cgroup/memory%s", memory + strlen(":memory:"));
    }
    if (file)
        fclose(file);
    if (!found && inject_cgroup_of(pid, ret_path))
        found = strstr(ret_path, "/phalanx/") != NULL && strstr(ret_path, "/unified/") == NULL;
    return found;
}

int harm_oom(const struct ground *ground, const struct target *target, size_t *count)
{
    pid_list pids = {0};
    char group[PATH_MAX + 32], procs[PATH_MAX + 64];
    ground_processes(ground, target, &pids);
    bool limited = pids.len && memory_group(pids.items[0], group);
    if (!limited) {
        say("%s has no memory limit of its own: set resources.limits.memory", target->name);
        vec_done(&pids);
        return EXIT_FAILED;
    }
    snprintf(procs, sizeof procs, "%s/cgroup.procs", group);
    pid_t eater = fork();
    if (eater == 0)
        eat(procs);
    bool gone = false;
    for (int waited = 0; eater > 0 && !gone && waited < REPORT_MS; waited += 10) {
        nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
        for (size_t i = 0; i < pids.len && !gone; i++)
            gone = kill(pids.items[i], 0) < 0 && errno == ESRCH;
        if (waitpid(eater, NULL, WNOHANG) == eater)
            eater = 0;
    }
    if (eater > 0) {
        kill(eater, SIGKILL);
        waitpid(eater, NULL, 0);
    }
    *count += gone;
    if (!gone)
        say("%s was not killed: this needs root", target->name);
    vec_done(&pids);
    return gone ? EXIT_OK : EXIT_FAILED;
}

/* --- faults --------------------------------------------------------------------------------------------- */

struct report {
    const char *machine, *code, *place, *assertion, *severity;
    struct str evidence;
    int64_t chip; /* -1: none */
    int64_t timeout_ms;
};

/* Reports a fault to the agent, as a probe of this machine would. */
static int tell_agent(const struct ground *ground, const struct report *report)
{
    char path[AGENT_SOCKET_PATH_MAX + 1];
    struct error error;
    door_path(ground->data, path);
    int rc = door_report(path,
                         &(struct door_report){.code = report->code,
                                               .place = report->place,
                                               .severity = report->severity,
                                               .assertion = report->assertion,
                                               .evidence = report->evidence,
                                               .chip = report->chip},
                         &error);
    if (rc < 0)
        say("%s", error.text);
    return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int post(struct ground *ground, const struct report *report, bool told)
{
    if (ground->where == GROUND_MACHINE)
        return tell_agent(ground, report);
    struct buf body BUF_CLEANUP = {0};
    struct json_writer json = {.out = &body};
    struct client_reply reply;
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "phalanx.dev/v1");
    json_pair_text(&json, "kind", "Fault");
    json_key(&json, "spec");
    json_begin_object(&json);
    json_pair_text(&json, "machine", report->machine);
    json_pair_text(&json, "code", report->code);
    if (report->place)
        json_pair_text(&json, "place", report->place);
    if (report->chip >= 0)
        json_pair_int(&json, "chip", report->chip);
    json_pair_text(&json, "assertion", report->assertion);
    json_pair_text(&json, "severity", report->severity);
    json_pair_str(&json, "evidence", report->evidence);
    json_end_object(&json);
    json_end_object(&json);
    ground->client.quiet = !told;
    struct client_request request = {.method = "POST",
                                     .path = STR("/apis/phalanx.dev/v1/faults"),
                                     .body = buf_str(&body),
                                     .timeout_ms = report->timeout_ms};
    int rc = client_call(&ground->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    if (reply.code >= 400 && told)
        rc = client_refused(&reply, "reporting");
    client_reply_done(&reply);
    return rc;
}

void harm_note(struct ground *ground, enum inject_action action, const target_list *targets)
{
    char text[TARGET_NAME_MAX + 32], code[64];
    struct buf evidence BUF_CLEANUP = {0};
    snprintf(code, sizeof code, "injected/%s", inject_action_names[action]);
    for (size_t i = 0; i < targets->len; i++) {
        const struct target *target = &targets->items[i];
        const char *user = getenv("USER");
        if (!target->machine[0])
            continue;
        target_text(target, text);
        buf_clear(&evidence);
        buf_printf(&evidence, "phalanx inject %s %s by %s", inject_action_names[action], text,
                   user ? user : "root");
        if (post(ground,
                 &(struct report){.machine = target->machine,
                                  .code = code,
                                  .assertion = "once",
                                  .severity = "notice",
                                  .evidence = buf_str(&evidence),
                                  .chip = -1,
                                  .timeout_ms = NOTE_MS},
                 false) != EXIT_OK)
            return; /* no answer: further requests would only cost time */
    }
}

/* Writes the place of a fault in the form of drivers and probes: the target's part, or a part of the machine
 * by number. */
static void default_place(enum inject_action action, const struct target *target, int64_t number,
                          char ret_place[160])
{
    static const char *const kinds[INJECT_ACTIONS] = {
        [ACTION_CHIP] = "gpu", [ACTION_LINK] = "link", [ACTION_SWITCH] = "switch", [ACTION_LIE] = "machine"};
    static const char *const parts[] = {"gpu", "link", "switch"};
    if (target->part[0])
        snprintf(ret_place, 160, "%s/%s", parts[target->kind - INJECT_CHIP], target->part);
    else
        snprintf(ret_place, 160, "%s/%lld", kinds[action], (long long)(number < 0 ? 0 : number));
}

int harm_report(struct ground *ground, enum inject_action action, const struct target *target,
                const struct inject_how *how, bool recover, size_t *count)
{
    static const char *const codes[INJECT_ACTIONS] = {
        [ACTION_CHIP] = "xid/79", [ACTION_LINK] = "ib/port-down", [ACTION_SWITCH] = "public/switch-down"};
    char code[160], place[160];
    int64_t chip = how->chip;
    if (target->kind == INJECT_CHIP && chip < 0)
        (void)str_to_i64(str_from(target->part), 0, INT32_MAX, &chip);
    snprintf(code, sizeof code, "%s", codes[action] ? codes[action] : "");
    default_place(action, target, chip, place);
    if (how->code.len)
        snprintf(code, sizeof code, STR_FORMAT, STR_ARG(how->code));
    if (how->place.len)
        snprintf(place, sizeof place, STR_FORMAT, STR_ARG(how->place));
    struct str evidence = action == ACTION_LIE ? STR("a false report by phalanx inject")
                                               : STR("injected by phalanx inject");
    int rc = post(ground,
                  &(struct report){.machine = target->machine,
                                   .code = code,
                                   .place = place,
                                   .assertion = recover ? "recover" : "occur",
                                   .severity = "major",
                                   .evidence = evidence,
                                   .chip = chip,
                                   .timeout_ms = REPORT_MS},
                  !recover);
    *count += rc == EXIT_OK;
    return rc;
}

/* --- slow ----------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t asked_to_end;

static void on_end(int number)
{
    asked_to_end = number;
}

static void signal_each(const pid_list *pids, int number)
{
    for (size_t i = 0; i < pids->len; i++)
        (void)kill(pids->items[i], number);
}

static void rest(uint64_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

void harm_slow(const struct ground *ground, const struct target *target, uint32_t percent)
{
    pid_list pids = {0};
    struct sigaction action = {.sa_handler = on_end};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    for (int turn = 0; !asked_to_end; turn++) {
        if (turn % LOOK_AGAIN_TURNS == 0)
            ground_processes(ground, target, &pids);
        signal_each(&pids, SIGSTOP);
        rest((uint64_t)TURN_US * percent / 100);
        signal_each(&pids, SIGCONT);
        rest((uint64_t)TURN_US * (100 - percent) / 100);
    }
    signal_each(&pids, SIGCONT);
    _exit(EXIT_OK);
}
