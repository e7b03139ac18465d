/* node.c - machines: their arrival, their loss, cordons, and changes of the cluster file. */
#include "core/gang/gang.h"
#include "core/react/react.h"

#include <stdio.h>

#include "doc/json.h"

void node_boot(struct core *core, struct step *step, bool paused)
{
    for (size_t i = 0; i < core->cluster.machine_count; i++) {
        struct machine *machine = &core->cluster.machines[i];
        if (machine->state != MACHINE_READY)
            continue;
        bool was = machine_schedulable(machine);
        machine_set_state(machine, MACHINE_AWAY, step->now_ns, step->seq);
        machine_book(step, machine, was);
        if (paused)
            step_changed(step, CHANGE_MODIFIED, ref_machine(machine));
    }
    repairs_machine_moved(step);
    /* After a boot without a pause there are no watchers to tell. */
}

/* --- the inventory ---------------------------------------------------------------------------- */

/* Keeps a fault open while the agent has more or fewer chips than the cluster file: tasks would get chips
 * that do not exist, or leave some idle. */
static void judge_chips(struct core *core, struct step *step, const struct machine *machine)
{
    char why[160];
    bool wrong = machine->found_plus_1 && machine->found_plus_1 - 1 != machine->chip_count;
    const struct fault *open = fault_find_open(step->health, machine->name, STR(CHIPS_FAULT));
    if (!wrong && !open)
        return;
    snprintf(why, sizeof(why),
             "the agent has %u chips, the cluster file says %u: correct the agent's --chips or the file",
             machine->found_plus_1 ? machine->found_plus_1 - 1 : 0, machine->chip_count);
    struct signal signal = signal_now(STR(CHIPS_FAULT), wrong ? SIGNAL_OCCUR : SIGNAL_RECOVER, SEVERITY_MAJOR,
                                      str_from(why), step->now_ns);
    struct sighting sighting = {.machine = machine->name, .signal = &signal};
    if (wrong)
        step_note(step, true, "InventoryMismatch", ref_machine(machine), STR_FORMAT ": %s",
                  STR_ARG(machine->name), why);
    core_sighted(core, step, &sighting);
}

static void adopt_machine(struct machine *machine, const struct machine *old)
{
    CHECK(str_equal(machine->name, old->name) && machine->state == MACHINE_UNSEEN);
    CHECK(machine->chip_count == old->chip_count || old->task_count == 0); /* find_unfit */
    struct machine_user user = machine_user(old);
    machine_set_user(machine, &user);
    machine->state = old->state;
    machine->cordoned |= old->cordoned;
    machine->isolation = old->isolation;
    machine->kept = old->kept;
    machine->isolated_ns = old->isolated_ns;
    machine->last_job = old->last_job;
    machine->last_job_ns = old->last_job_ns;
    machine->blamed_job = old->blamed_job;
    machine->blamed_ns = old->blamed_ns;
    machine->noticed_ns = old->noticed_ns;
    machine->leave_ns = old->leave_ns;
    machine->incarnation = old->incarnation;
    machine->found_plus_1 = old->found_plus_1;
    machine->found_cpu_milli = old->found_cpu_milli;
    machine->found_memory_bytes = old->found_memory_bytes;
    machine->errands = old->errands;
    machine->injection = old->injection;
    machine->qualified_ns = old->qualified_ns;
    machine->paired_ns = old->paired_ns;
    machine->qualifying = old->qualifying;
    machine->state_since_ns = old->state_since_ns;
    machine->changed_seq = old->changed_seq;
    machine->uid = old->uid;
    machine->created_ns = old->created_ns;
    if (machine->chip_count == old->chip_count)
        machine->free_mask = old->free_mask; /* otherwise it had no tasks */
    machine->cpu_used_milli = old->cpu_used_milli;
    machine->memory_used_bytes = old->memory_used_bytes;
    machine->task_count = old->task_count;
}

/* Returns the first machine with tasks that the new file removes, or gives other chips; NULL if none. */
static const struct machine *find_unfit(const struct core *core, const struct cluster *fresh)
{
    const struct cluster *old = &core->cluster;
    for (size_t i = 0; i < old->machine_count; i++) {
        const struct machine *machine = cluster_find(fresh, old->machines[i].name);
        bool busy = old->machines[i].task_count > 0 || !list_empty(&core->jobs.machine_tasks[i]);
        if (busy && (!machine || machine->chip_count != old->machines[i].chip_count))
            return &old->machines[i];
    }
    return NULL;
}

static void remap_jobs(struct core *core, const struct cluster *old)
{
    machine_id *map = mem_alloc((old->machine_count + 1) * sizeof(*map));
    for (size_t i = 0; i < old->machine_count; i++) {
        const struct machine *machine = cluster_find(&core->cluster, old->machines[i].name);
        map[i] = machine ? machine->id : MACHINE_NONE;
    }
    jobs_remap_machines(&core->jobs, map);
    mem_free(map);
}

static void book_inventory(struct core *core, struct step *step)
{
    for (size_t i = 0; i < core->retired.machine_count; i++)
        machine_book_chips(step, core->retired.machines[i].booked, -1);
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        CHECK(!ledger_owner_is_free((enum ledger_owner)owner) || core->ledger.chips[owner] == 0);
    for (size_t i = 0; i < core->cluster.machine_count; i++)
        machine_book_free(step, &core->cluster.machines[i]);
}

/* Loads a document that the host has checked. Returns false if it does not load, which is then ignored. */
static bool load_document(struct str document, struct cluster *ret_cluster)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc *doc;
    bool loaded = json_parse(&arena, document, &doc, NULL) == 0 && cluster_load(doc, ret_cluster, &errors);
    field_errors_done(&errors);
    return loaded;
}

static void tell_removed(struct core *core, struct step *step)
{
    CHECK(core->retired.machine_count == 0 || core->retired.machines);
    for (size_t i = 0; i < core->retired.machine_count; i++) {
        struct machine *machine = &core->retired.machines[i];
        if (!cluster_find(&core->cluster, machine->name))
            step_changed(step, CHANGE_DELETED, ref_machine(machine));
    }
}

void node_cluster(struct core *core, struct step *step, struct str document)
{
    struct cluster fresh = {0};
    if (!load_document(document, &fresh))
        return;
    const struct machine *unfit = find_unfit(core, &fresh);
    if (unfit) {
        step_note(step, true, "ClusterFileRefused", ref_machine(unfit),
                  "the new cluster file takes the machine away or changes its chips while tasks are on it");
        cluster_done(&fresh);
        return;
    }
    bool first = core->cluster.machine_count == 0;
    core->retired = core->cluster;
    core->cluster = fresh;
    const struct cluster *old = &core->retired;
    cluster_number_changes_after(&core->cluster, old);
    if (first)
        ledger_open(&core->ledger, step_now_us(step));
    for (size_t i = 0; i < fresh.machine_count; i++) {
        struct machine *machine = &core->cluster.machines[i];
        const struct machine *before = first ? NULL : cluster_find(old, machine->name);
        if (before) {
            adopt_machine(machine, before);
        } else {
            machine->uid = step_uid(step);
            machine->created_ns = machine->state_since_ns = step->now_ns;
        }
        step_changed(step, before ? CHANGE_MODIFIED : CHANGE_ADDED, ref_machine(machine));
    }
    cluster_find_max(&core->cluster);
    tell_removed(core, step);
    remap_jobs(core, old);
    jobs_bind_machines(&core->jobs, core->cluster.machine_count);
    core->hearing.heard = 0; /* machines have new ids: count again */
    slices_cluster(step, core->slices, &core->cluster);
    book_inventory(core, step);
    for (size_t i = 0; i < core->cluster.machine_count; i++)
        judge_chips(core, step, &core->cluster.machines[i]);
    buf_clear(&core->cluster_json);
    buf_add_str(&core->cluster_json, document);
    step->schedule = true;
    step->jobs->shape++;
}

/* --- arrival and loss ------------------------------------------------------------------------- */

static void move(struct step *step, struct machine *machine, enum machine_state state)
{
    CHECK((enum machine_state)machine->state != state);
    bool was = machine_schedulable(machine);
    machine_set_state(machine, state, step->now_ns, step->seq);
    machine_book(step, machine, was);
    repairs_machine_moved(step);
    step_changed(step, CHANGE_MODIFIED, ref_machine(machine));
}

void node_hello(struct core *core, struct step *step, const struct hello *hello)
{
    struct machine *machine = cluster_find(&core->cluster, hello->machine);
    if (!machine)
        return;
    machine->incarnation = hello->incarnation;
    machine->errands = hello->errands;
    machine->injection = hello->injection;
    machine->found_plus_1 = hello->chips + 1;
    machine_found(&core->cluster, machine, hello->cpu_milli, hello->memory_bytes);
    judge_chips(core, step, machine);
    if (machine->state != MACHINE_READY) {
        move(step, machine, MACHINE_READY);
        step_note(step, false, "MachineReady", ref_machine(machine), "Machine " STR_FORMAT " is ready",
                  STR_ARG(machine->name));
    }
    jobs_machine_hello(step, machine, hello);
    hearing_look(step);
    repairs_hello(step, machine, hello); /* before errands_hello */
    errands_hello(step, machine, hello);
}

void node_away(struct core *core, struct step *step, struct str name, struct str evidence)
{
    struct machine *machine = cluster_find(&core->cluster, name);
    if (!machine || machine->state != MACHINE_READY)
        return;
    move(step, machine, MACHINE_AWAY);
    step_note(step, true, "MachineAway", ref_machine(machine), STR_FORMAT, STR_ARG(evidence));
    node_judge(core, step, machine);
}

void node_lost(struct core *core, struct step *step, struct str name, struct str evidence)
{
    struct machine *machine = cluster_find(&core->cluster, name);
    if (!machine || (machine->state != MACHINE_READY && machine->state != MACHINE_AWAY))
        return;
    bool works = !isolation_is_out(machine->isolation) || machine->isolation == ISOLATION_DRAINING;
    if (works) { /* otherwise the failure was counted when the machine was taken out of service */
        lemon_count(step, machine, LEMON_OUT);
        core_failed_on(core, step, machine);
    }
    move(step, machine, MACHINE_LOST);
    step_note(step, true, "MachineLost", ref_machine(machine), STR_FORMAT, STR_ARG(evidence));
    jobs_machine_lost(step, machine, evidence);
    errands_machine_lost(step, machine, evidence);
}

void node_judge(struct core *core, struct step *step, struct machine *machine)
{
    CHECK(machine->id < core->cluster.machine_count);
    if (core->hold.owed_ns > 0) /* tasks that are cut off may outlive their connections (lease_hold.h) */
        return;
    if (jobs_peers_say_lost(&core->jobs, machine))
        node_lost(core, step, machine->name,
                  STR("its agent is away and its ranks' connections to their peers broke"));
}

/* --- a user's write --------------------------------------------------------------------------- */

/* Reads the labels that the cluster file does not set, or sets to another value. Returns their number. */
static size_t read_labels(const struct machine *machine, const struct doc *labels, struct label *ret_items)
{
    size_t kept = 0, count = labels && labels->kind == DOC_OBJECT ? labels->object.len : 0;
    for (size_t i = 0; i < count && kept < LABELS_MAX; i++) {
        const struct doc_member *member = &labels->object.members[i];
        struct str fixed = labels_get(&machine->labels, member->key, (struct str){0});
        struct str value = doc_str(member->value, STR(""));
        if (!fixed.data || !str_equal(fixed, value))
            ret_items[kept++] = (struct label){member->key, value};
    }
    CHECK(kept <= LABELS_MAX);
    return kept;
}

static size_t read_taints(const struct doc *taints, struct taint *ret_items)
{
    size_t count = doc_len(taints) < LABELS_MAX ? doc_len(taints) : LABELS_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct doc *taint = doc_at(taints, i);
        ret_items[i] =
            (struct taint){doc_str(doc_get(taint, "key"), STR("")), doc_str(doc_get(taint, "value"), STR("")),
                           doc_str(doc_get(taint, "effect"), STR("NoSchedule"))};
    }
    return count;
}

static struct labels read_annotations(struct arena *arena, const struct doc *map)
{
    size_t count = map && map->kind == DOC_OBJECT ? map->object.len : 0;
    struct labels annotations = {ARENA_ARRAY(arena, struct label, count), count};
    for (size_t i = 0; i < count; i++)
        annotations.items[i] =
            (struct label){map->object.members[i].key, doc_str(map->object.members[i].value, STR(""))};
    return annotations;
}

void node_replace(struct core *core, struct step *step, struct machine *machine, const struct doc *document)
{
    bool was = machine_schedulable(machine);
    bool cordon = doc_bool(doc_path(document, "spec", "unschedulable", NULL), false);
    struct arena arena ARENA_CLEANUP = {0};
    struct label labels[LABELS_MAX];
    struct taint taints[LABELS_MAX];
    const struct doc *metadata = doc_get(document, "metadata"), *managed = doc_get(metadata, "managedFields");
    struct buf owners BUF_CLEANUP = {0};
    if (doc_len(managed) > 0)
        json_write(&owners, managed);
    struct machine_user user = {.labels.items = labels,
                                .labels.len = read_labels(machine, doc_get(metadata, "labels"), labels),
                                .annotations = read_annotations(&arena, doc_get(metadata, "annotations")),
                                .taints = taints,
                                .taint_count =
                                    read_taints(doc_path(document, "spec", "taints", NULL), taints),
                                .managed_fields = buf_str(&owners)};
    struct machine_user before = machine_user(machine);
    if (cordon == machine->cordoned && machine_user_equal(&user, &before))
        return;
    if (cordon != machine->cordoned)
        step_note(step, false, cordon ? "NodeNotSchedulable" : "NodeSchedulable", ref_machine(machine),
                  "Node " STR_FORMAT " status is now: %s", STR_ARG(machine->name),
                  cordon ? "NodeNotSchedulable" : "NodeSchedulable");
    if (cordon && !machine->cordoned)
        jobs_notice_drain(step, machine, DRAIN_MAINTENANCE);
    machine->cordoned = cordon;
    machine_set_user(machine, &user);
    machine_book(step, machine, was);
    step->schedule = true;
    step->jobs->shape++;
    step_changed(step, CHANGE_MODIFIED, ref_machine(machine));
}
