/* Resolves a selector to the objects that it currently means, and finds their processes. */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/inject.h"
#include "cmd/keeper.h"
#include "cmd/processes.h"

enum { ASK_MS = 3000, ASK_AGAIN_MS = 50, PATIENCE_S = 30 };

#define POD_LABEL "jobset.sigs.k8s.io/jobset-name"

/* --- the cluster ---------------------------------------------------------------------------------------- */

static void copy_text(char *to, struct str text)
{
    size_t len = text.len < TARGET_NAME_MAX ? text.len : 0; /* no name of Phalanx is so long */
    mem_copy(to, text.data, len);
    to[len] = 0;
}

/* Completes the name of a job: "train" -> "default/train". */
static void full_job(char *to, struct str job)
{
    bool bare = job.len && !memchr(job.data, '/', job.len);
    snprintf(to, TARGET_NAME_MAX, "%s" STR_FORMAT, bare ? "default/" : "", (int)(job.len < 300 ? job.len : 0),
             job.data);
}

int ground_open(struct ground *ground, const char *data, const char *job)
{
    char path[PATH_MAX + 16], url[512] = "";
    struct client_options options = {0};
    *ground = (struct ground){.max_share = 0.25};
    if (!realpath(data, ground->data)) {
        say("%s: %s", data, strerror(errno));
        return EXIT_FAILED;
    }
    if (job)
        full_job(ground->job, str_from(job));
    snprintf(path, sizeof path, "%s/ready", ground->data);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(url, sizeof url, file)) {
        say("%s is not the folder of a running cluster (`phalanx up --data`)", ground->data);
        if (file)
            fclose(file);
        return EXIT_NOT_FOUND;
    }
    fclose(file);
    url[strcspn(url, "\n")] = 0;
    if (strncmp(url, "https:", 6) == 0) {
        snprintf(path, sizeof path, "%s/kubeconfig", ground->data);
        setenv("PHALANX_CONFIG", path, 1);
    }
    options.server = url;
    rng_seed(&ground->rng, (uint64_t)client_wall() ^ (uint64_t)getpid() << 40);
    return client_open(&ground->client, &options);
}

int ground_open_api(struct ground *ground, const struct client_options *options, const char *job)
{
    *ground = (struct ground){.where = GROUND_API, .max_share = 0.25};
    if (job)
        full_job(ground->job, str_from(job));
    rng_seed(&ground->rng, (uint64_t)client_wall() ^ (uint64_t)getpid() << 40);
    return client_open(&ground->client, options);
}

int ground_open_machine(struct ground *ground, const char *memory)
{
    *ground = (struct ground){.where = GROUND_MACHINE, .agent = getppid(), .mark = -1};
    if (!realpath(".", ground->data)) {
        say("%s", strerror(errno));
        return EXIT_FAILED;
    }
    if (strcmp(memory, "none") != 0)
        snprintf(ground->memory, sizeof ground->memory, "%s", memory);
    rng_seed(&ground->rng, (uint64_t)client_wall() ^ (uint64_t)getpid() << 40);
    return EXIT_OK;
}

void ground_close(struct ground *ground)
{
    if (ground->where != GROUND_MACHINE)
        client_close(&ground->client);
    vec_done(&ground->standing);
    arena_done(&ground->arena);
    vec_done(&ground->pods);
    vec_done(&ground->machines);
}

static void take_pod(struct ground *ground, const struct doc *pod)
{
    struct ground_pod found = {.rank = doc_number(pod, "status.phalanx.rank", -1)};
    struct str phase = doc_text(pod, "status.phase"), namespace_ = doc_text(pod, "metadata.namespace");
    struct str job = doc_str(doc_get(doc_dotted(pod, "metadata.labels"), POD_LABEL), STR(""));
    if (str_is(phase, "Succeeded") || str_is(phase, "Failed") ||
        doc_text(pod, "metadata.deletionTimestamp").len || !doc_text(pod, "spec.nodeName").len)
        return;
    struct str owner = job;
    const struct doc *owners = doc_dotted(pod, "metadata.ownerReferences");
    if (!owner.len && doc_len(owners))
        owner = doc_str(doc_get(doc_at(owners, 0), "name"), STR(""));
    snprintf(found.name, sizeof found.name, STR_FORMAT "/" STR_FORMAT, STR_ARG(namespace_),
             STR_ARG(doc_text(pod, "metadata.name")));
    snprintf(found.job, sizeof found.job, STR_FORMAT "/" STR_FORMAT, STR_ARG(namespace_), STR_ARG(owner));
    copy_text(found.machine, doc_text(pod, "spec.nodeName"));
    vec_push(&ground->pods, found);
}

/* Gets the list at `path`. A patient ground asks again while no controller answers. */
static int list(struct ground *ground, const char *path, struct client_reply *ret)
{
    int64_t until_ns = client_clock() + PATIENCE_S * NS_PER_SECOND;
    struct client_request request = {.path = str_from(path), .timeout_ms = ASK_MS};
    for (;;) {
        ground->client.quiet = ground->patient && client_clock() < until_ns;
        int rc = client_call(&ground->client, &request, ret);
        bool answered = rc == EXIT_OK && ret->code < 500 && ret->doc;
        if (answered && ret->code < 400)
            return EXIT_OK;
        if (answered || !ground->client.quiet) {
            if (rc == EXIT_OK) {
                rc = client_refused(ret, "reading");
                client_reply_done(ret);
            }
            return rc;
        }
        if (rc == EXIT_OK)
            client_reply_done(ret);
        nanosleep(&(struct timespec){.tv_nsec = ASK_AGAIN_MS * NS_PER_MS}, NULL);
    }
}

int ground_look(struct ground *ground)
{
    struct client_reply reply;
    int rc = list(ground, "/api/v1/nodes", &reply);
    if (rc != EXIT_OK)
        return rc;
    vec_clear(&ground->machines);
    vec_clear(&ground->pods);
    const struct doc *items = doc_get(reply.doc, "items");
    for (size_t i = 0; i < doc_len(items); i++) {
        struct ground_machine machine;
        const struct doc *labels = doc_dotted(doc_at(items, i), "metadata.labels");
        copy_text(machine.name, doc_text(doc_at(items, i), "metadata.name"));
        struct str cube = doc_str(doc_get(labels, "phalanx.dev/cube"), STR(""));
        copy_text(machine.rack, doc_str(doc_get(labels, "phalanx.dev/rack"), cube));
        machine.injection = str_is(doc_text(doc_at(items, i), "status.phalanx.injection"), "allowed");
        vec_push(&ground->machines, machine);
    }
    client_reply_done(&reply);
    rc = list(ground, "/api/v1/pods", &reply);
    if (rc != EXIT_OK)
        return rc;
    items = doc_get(reply.doc, "items");
    for (size_t i = 0; i < doc_len(items); i++)
        take_pod(ground, doc_at(items, i));
    client_reply_done(&reply);
    return EXIT_OK;
}

/* --- selectors ------------------------------------------------------------------------------------------ */

static void add_target(target_list *targets, const struct target *target)
{
    for (size_t i = 0; i < targets->len; i++)
        if (targets->items[i].kind == target->kind && strcmp(targets->items[i].name, target->name) == 0 &&
            strcmp(targets->items[i].part, target->part) == 0)
            return;
    vec_push(targets, *target);
}

static void add_machine(target_list *targets, enum inject_kind kind, const char *name)
{
    struct target target = {.kind = kind == INJECT_RACK ? INJECT_MACHINE : kind, .rank = -1};
    copy_text(target.name, str_from(name));
    copy_text(target.machine, str_from(name));
    add_target(targets, &target);
}

/* --- racks and cubes ------------------------------------------------------------------------------------ */

enum { RACKS_SAID = 20 };

/* Returns true if `name` means `rack`: the label "pod-1.rack-1" is meant by itself and by "rack-1", the form
 * in tables that name the pod too. */
static bool rack_is(const char *rack, struct str name)
{
    size_t len = strlen(rack);
    if (!name.len || name.len > len || memcmp(rack + len - name.len, name.data, name.len) != 0)
        return false;
    return name.len == len || rack[len - name.len - 1] == '.';
}

/* Finds the racks and cubes called `name`, each once; all of them if it is empty. If `name` is a whole label,
 * finds only that one. */
static void find_racks(const struct ground *ground, struct str name, rack_list *ret_racks)
{
    vec_clear(ret_racks);
    for (size_t i = 0; i < ground->machines.len; i++) {
        const char *rack = ground->machines.items[i].rack;
        bool seen = !rack[0] || (name.len && !rack_is(rack, name));
        for (size_t k = 0; k < ret_racks->len && !seen; k++)
            seen = strcmp(ret_racks->items[k], rack) == 0;
        if (seen)
            continue;
        if (str_is(name, rack))
            vec_clear(ret_racks);
        vec_push(ret_racks, rack);
        if (str_is(name, rack))
            return;
    }
}

static void say_racks(const char *before, struct str name, const char *between, const rack_list *racks)
{
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < racks->len && i < RACKS_SAID; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", racks->items[i]);
    if (racks->len > RACKS_SAID)
        buf_printf(&text, " and %zu others", racks->len - RACKS_SAID);
    say("%s \"" STR_FORMAT "\"%s%s", before, STR_ARG(name), between, racks->len ? text.data : "none");
}

/* Finds the only rack or cube of this name. The result is valid until the next ground_look. */
static int one_rack(const struct ground *ground, struct str name, const char **ret_rack)
{
    rack_list racks = {0};
    find_racks(ground, name, &racks);
    int rc = racks.len == 1 ? EXIT_OK : racks.len ? EXIT_USAGE : EXIT_NOT_FOUND;
    if (racks.len > 1)
        say_racks("several racks are", name, "; say which: ", &racks);
    *ret_rack = racks.len == 1 ? racks.items[0] : "";
    vec_done(&racks);
    return rc;
}

void ground_say_missing(const struct ground *ground, const struct inject_selector *selector, const char *text)
{
    bool rack = selector->choice == CHOICE_NAME && !selector->by_pod &&
                (selector->kind == INJECT_RACK || (selector->kind >= INJECT_CHIP && !selector->part.len));
    if (!rack) {
        say("no running object matches \"%s\"", text);
        return;
    }
    rack_list racks = {0};
    find_racks(ground, STR(""), &racks);
    say_racks("no rack or cube", selector->name, "; the cluster has: ", &racks);
    vec_done(&racks);
}

/* Adds a part. A switch that belongs to no machine serves the machines of the rack or cube whose name it has;
 * the model has no other switches. */
static int add_part(const struct ground *ground, const struct inject_selector *selector, target_list *targets)
{
    bool own = selector->part.len > 0;
    const char *rack = "";
    int rc = own ? EXIT_OK : one_rack(ground, selector->name, &rack);
    for (size_t i = 0; i < ground->machines.len && rc == EXIT_OK; i++) {
        const struct ground_machine *machine = &ground->machines.items[i];
        struct target target = {.kind = selector->kind, .rank = -1};
        if (own ? !str_is(selector->name, machine->name) : strcmp(rack, machine->rack) != 0)
            continue;
        copy_text(target.name, str_from(machine->name));
        copy_text(target.machine, str_from(machine->name));
        snprintf(target.part, sizeof target.part, STR_FORMAT, STR_ARG(own ? selector->part : str_from(rack)));
        add_target(targets, &target);
    }
    return rc;
}

static void add_rack(const struct ground *ground, const char *rack, target_list *targets)
{
    for (size_t i = 0; i < ground->machines.len; i++)
        if (rack[0] && strcmp(ground->machines.items[i].rack, rack) == 0)
            add_machine(targets, INJECT_MACHINE, ground->machines.items[i].name);
}

static const char *rack_of(const struct ground *ground, const char *machine)
{
    for (size_t i = 0; i < ground->machines.len; i++)
        if (strcmp(ground->machines.items[i].name, machine) == 0)
            return ground->machines.items[i].rack;
    return "";
}

/* Adds the targets of one rank. */
static void add_of_pod(const struct ground *ground, const struct inject_selector *selector,
                       const struct ground_pod *pod, target_list *targets)
{
    struct target target = {.kind = selector->kind, .rank = pod->rank};
    copy_text(target.machine, str_from(pod->machine));
    copy_text(target.name, str_from(pod->name));
    copy_text(target.job, str_from(pod->job));
    if (selector->kind == INJECT_RACK)
        add_rack(ground, rack_of(ground, pod->machine), targets);
    else if (selector->kind == INJECT_MACHINE || selector->kind == INJECT_AGENT)
        add_machine(targets, selector->kind, pod->machine);
    else
        add_target(targets, &target);
}

static int resolve_ranks(struct ground *ground, const struct inject_selector *selector, target_list *targets)
{
    char job[TARGET_NAME_MAX];
    VEC(const struct ground_pod *) found = {0};
    if (selector->job.len)
        full_job(job, selector->job);
    else
        copy_text(job, str_from(ground->job));
    if (!job[0]) {
        say("the job of the rank is missing: --job NAME, or \"rank 3 of jobset/NAME\"");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < ground->pods.len; i++) {
        const struct ground_pod *pod = &ground->pods.items[i];
        if (strcmp(pod->job, job) == 0 && (selector->choice != CHOICE_RANK || pod->rank == selector->rank))
            vec_push(&found, pod);
    }
    if (found.len && selector->choice != CHOICE_ALL)
        add_of_pod(ground, selector, found.items[rng_below(&ground->rng, found.len)], targets);
    for (size_t i = 0; i < found.len && selector->choice == CHOICE_ALL; i++)
        add_of_pod(ground, selector, found.items[i], targets);
    bool any = found.len > 0;
    vec_done(&found);
    return any ? EXIT_OK : EXIT_NOT_FOUND;
}

static int resolve_pod(struct ground *ground, const struct inject_selector *selector, target_list *targets)
{
    char name[TARGET_NAME_MAX];
    full_job(name, selector->name);
    struct target target = {.kind = INJECT_RANK, .rank = -1};
    copy_text(target.name, str_from(name));
    for (size_t i = 0; i < ground->pods.len; i++)
        if (strcmp(ground->pods.items[i].name, name) == 0) {
            add_of_pod(ground, selector, &ground->pods.items[i], targets);
            return EXIT_OK;
        }
    pid_list pids = {0}; /* for a machine that the controller no longer knows, or that does not answer */
    if (ground->where == GROUND_UP)
        ground_processes(ground, &target, &pids);
    bool any = pids.len > 0;
    vec_done(&pids);
    if (any)
        add_target(targets, &target);
    return any ? EXIT_OK : EXIT_NOT_FOUND;
}

void ground_state(const struct ground *ground, const char *machine, char ret_path[PATH_MAX])
{
    bool one = ground->where == GROUND_MACHINE;
    int len = one ? snprintf(ret_path, PATH_MAX, "%s", ground->data)
                  : snprintf(ret_path, PATH_MAX, "%s/machines/%s", ground->data, machine);
    if (len >= PATH_MAX)
        ret_path[0] = 0; /* there is no machine of that name */
}

static bool machine_exists(struct ground *ground, const char *name)
{
    char path[PATH_MAX];
    if (ground->where == GROUND_UP) {
        ground_state(ground, name, path);
        return access(path, F_OK) == 0;
    }
    for (size_t i = 0; i < ground->machines.len; i++)
        if (strcmp(ground->machines.items[i].name, name) == 0)
            return true;
    return false;
}

int ground_resolve(struct ground *ground, const struct inject_selector *selector, target_list *targets)
{
    char name[TARGET_NAME_MAX];
    size_t before = targets->len;
    bool named = selector->choice == CHOICE_NAME;
    copy_text(name, selector->name);
    if (selector->kind == INJECT_CONTROLLER) {
        add_target(targets, &(struct target){.kind = INJECT_CONTROLLER, .rank = -1});
        return EXIT_OK;
    }
    if (named && (selector->kind == INJECT_MACHINE || selector->kind == INJECT_AGENT)) {
        int rc = ground->where == GROUND_API ? ground_look(ground) : EXIT_OK;
        if (rc != EXIT_OK)
            return rc;
        if (!machine_exists(ground, name)) {
            say("no machine \"%s\"%s%s", name, ground->data[0] ? " below " : "", ground->data);
            return EXIT_NOT_FOUND;
        }
        add_machine(targets, selector->kind, name);
        return EXIT_OK;
    }
    const char *rack = "";
    int rc = ground_look(ground);
    if (rc != EXIT_OK && !selector->by_pod)
        return rc;
    if (selector->by_pod)
        return resolve_pod(ground, selector, targets);
    if (selector->by_rank)
        return resolve_ranks(ground, selector, targets);
    if (selector->kind >= INJECT_CHIP)
        rc = add_part(ground, selector, targets);
    else if (named && (rc = one_rack(ground, selector->name, &rack)) == EXIT_OK)
        add_rack(ground, rack, targets);
    else if (!named && ground->machines.len)
        add_machine(targets, selector->kind,
                    ground->machines.items[rng_below(&ground->rng, ground->machines.len)].name);
    if (rc != EXIT_OK)
        return rc;
    return targets->len > before ? EXIT_OK : EXIT_NOT_FOUND;
}

static bool hits_machine(const struct target *target)
{
    return target->kind == INJECT_MACHINE || target->kind == INJECT_AGENT || target->kind >= INJECT_CHIP;
}

size_t ground_machines_hit(const target_list *targets)
{
    size_t count = 0;
    for (size_t i = 0; i < targets->len; i++) {
        bool seen = !hits_machine(&targets->items[i]);
        for (size_t k = 0; k < i && !seen; k++)
            seen = strcmp(targets->items[i].machine, targets->items[k].machine) == 0 &&
                   hits_machine(&targets->items[k]);
        count += !seen;
    }
    return count;
}

void target_text(const struct target *target, char ret_text[TARGET_NAME_MAX + 32])
{
    if (target->kind == INJECT_CONTROLLER)
        snprintf(ret_text, TARGET_NAME_MAX + 32, "controller");
    else if (target->part[0])
        snprintf(ret_text, TARGET_NAME_MAX + 32, "%s/%.253s/%s", inject_kind_names[target->kind],
                 target->name, target->part);
    else
        snprintf(ret_text, TARGET_NAME_MAX + 32, "%s/%s",
                 target->kind == INJECT_RANK ? "pod" : inject_kind_names[target->kind], target->name);
}

/* --- processes ------------------------------------------------------------------------------------------ */

enum { PROC_TEXT_MAX = 256 * 1024 };

/* Reads a file of /proc, and adds a NUL; the caller frees it. */
static char *read_proc(pid_t pid, const char *name, size_t *ret_len)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    char *text = mem_alloc(PROC_TEXT_MAX + 1);
    *ret_len = file ? fread(text, 1, PROC_TEXT_MAX, file) : 0;
    if (file)
        fclose(file);
    return text;
}

/* Returns true if one of the NUL-terminated words equals `wanted` or, if `wanted` ends in '/', begins with
 * it. With `at` >= 0 only that word is compared. */
static bool has_word(pid_t pid, const char *name, const char *wanted, int at)
{
    size_t len, wanted_len = strlen(wanted);
    char *text = read_proc(pid, name, &len);
    bool found = false, prefix = wanted_len && wanted[wanted_len - 1] == '/';
    int number = 0;
    for (size_t i = 0; i < len && !found; i += strlen(text + i) + 1, number++)
        found = (at < 0 || at == number) &&
                (prefix ? strncmp(text + i, wanted, wanted_len) == 0 : strcmp(text + i, wanted) == 0);
    mem_free(text);
    return found;
}

static void every_process(void (*visit)(void *context, pid_t pid), void *context)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int64_t pid;
    while (proc && (entry = readdir(proc)))
        if (str_to_i64(str_from(entry->d_name), 1, INT32_MAX, &pid) && pid != getpid())
            visit(context, (pid_t)pid);
    if (proc)
        closedir(proc);
}

struct seeking {
    const struct ground *ground;
    const char *label;        /* of the shim */
    pid_t shim;               /* the shim that was found; 0: none */
    char mark[PATH_MAX + 32]; /* text in the environment of its processes; with a '/' at the end, a prefix */
    pid_list *pids;
    bool agents; /* find agents only */
};

static void add_process(pid_list *pids, pid_t pid)
{
    for (size_t i = 0; i < pids->len; i++)
        if (pids->items[i] == pid)
            return;
    vec_push(pids, pid);
}

static void seek_machine(void *context, pid_t pid)
{
    struct seeking *seeking = context;
    if (!seeking->agents || has_word(pid, "cmdline", "agent", 1))
        add_process(seeking->pids, pid);
}

static void seek_controller(void *context, pid_t pid)
{
    struct seeking *seeking = context;
    if (has_word(pid, "cmdline", "controller", 1) && has_word(pid, "cmdline", seeking->ground->data, 3))
        vec_push(seeking->pids, pid);
}

static void seek_shim(void *context, pid_t pid)
{
    struct seeking *seeking = context;
    char link[64], folder[PATH_MAX];
    if (!has_word(pid, "cmdline", seeking->label, 1) || !has_word(pid, "cmdline", "phalanx-shim", 0))
        return;
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    ssize_t len = readlink(link, folder, sizeof folder - 1);
    folder[len > 0 ? len : 0] = 0;
    char machines[PATH_MAX], real[PATH_MAX];
    ground_state(seeking->ground, "", machines);
    if (realpath(machines, real) && strncmp(folder, real, strlen(real)) == 0)
        snprintf(seeking->mark, sizeof seeking->mark, "PHX_TASK_DIR=%s", folder);
    if (seeking->mark[0])
        seeking->shim = pid;
}

static void seek_task(void *context, pid_t pid)
{
    struct seeking *seeking = context;
    if (has_word(pid, "environ", seeking->mark, -1))
        add_process(seeking->pids, pid);
}

/* Finds tasks by their parents, since a task may change its working directory and the environment of its
 * children. Leaves out processes of `phalanx inject`: an ordered injection outlives its agent. */
static void seek_child(void *context, pid_t pid)
{
    struct seeking *seeking = context;
    struct process_facts facts;
    bool ours = false;
    if (!process_facts(pid, &facts) || facts.state == 'Z' || has_word(pid, "cmdline", "inject", 1))
        return;
    for (size_t i = 0; i < seeking->pids->len && !ours; i++)
        ours = seeking->pids->items[i] == facts.parent;
    if (ours || (seeking->shim && facts.parent == seeking->shim))
        add_process(seeking->pids, pid);
}

static void add_descendants(struct seeking *seeking)
{
    size_t before;
    do {
        before = seeking->pids->len;
        every_process(seek_child, seeking);
    } while (seeking->pids->len > before);
}

static void machine_processes(const struct ground *ground, const char *machine, struct seeking *seeking)
{
    char state[PATH_MAX], real[PATH_MAX];
    ground_state(ground, machine, state);
    if (!state[0])
        return;
    processes_visit(state, seek_machine, seeking);
    if (!realpath(state, real))
        snprintf(real, sizeof real, "%s", state);
    if (strcmp(real, state) != 0)
        processes_visit(real, seek_machine, seeking);
    /* An agent that was started by hand may name its directory in another form. Its pid may be reused when
     * this process outlives it. */
    if (ground->where == GROUND_MACHINE && has_word(ground->agent, "cmdline", "agent", 1))
        add_process(seeking->pids, ground->agent);
    if (seeking->agents)
        return;
    snprintf(seeking->mark, sizeof seeking->mark, "PHX_TASK_DIR=%s/", real);
    every_process(seek_task, seeking);
    add_descendants(seeking);
}

void ground_processes(const struct ground *ground, const struct target *target, pid_list *ret_pids)
{
    struct seeking seeking = {.ground = ground, .pids = ret_pids, .agents = target->kind == INJECT_AGENT};
    vec_clear(ret_pids);
    if (target->kind == INJECT_CONTROLLER) {
        every_process(seek_controller, &seeking);
    } else if (target->kind == INJECT_MACHINE || target->kind == INJECT_AGENT) {
        machine_processes(ground, target->name, &seeking);
    } else if (target->kind == INJECT_RANK) {
        char label[TARGET_NAME_MAX];
        copy_text(label, str_from(target->name));
        char *slash = strchr(label, '/');
        if (slash)
            *slash = '.';
        seeking.label = label;
        every_process(seek_shim, &seeking);
        if (seeking.mark[0]) {
            every_process(seek_task, &seeking);
            add_descendants(&seeking);
        }
    }
}

/* --- memory --------------------------------------------------------------------------------------------- */

bool ground_memory_of(const struct ground *ground, const char *machine, char ret_path[PATH_MAX])
{
    char pattern[TARGET_NAME_MAX + 96];
    glob_t found;
    if (ground->where == GROUND_MACHINE) {
        memcpy(ret_path, ground->memory, PATH_MAX);
        return ground->memory[0] != 0;
    }
    char memory[64];
    struct error error;
    if (!keeper_memory(ground->data, memory, &error))
        return false;
    snprintf(pattern, sizeof pattern, "%s/phalanx-%s-????????", memory, machine);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return false;
    bool fits = strlen(found.gl_pathv[0]) < PATH_MAX;
    if (fits)
        memcpy(ret_path, found.gl_pathv[0], strlen(found.gl_pathv[0]) + 1);
    globfree(&found);
    return fits;
}
