#include "core/gang/gang.h"
#include "core/internal.h"
#include "core/react/react.h"
#include "core/write/write.h"

#include "base/hash.h"
#include "core/admit/admit.h"
#include "core/react/disruption.h"
#include "core/gang/trial.h"
#include "core/launch/launch.h"
#include "core/object/life.h"
#include "core/log/record.h"
#include "core/sched/capacity.h"

struct core *core_new(void)
{
    struct core *core = mem_alloc(sizeof(*core));
    core->objects = object_store_new();
    core->jobs.objects = core->objects;
    core->jobs.capacity = capacity_new();
    core->admit = admit_new();
    core->health = health_new();
    core->jobs.health = core->health;
    core->lemons = lemon_store_new();
    lemon_store_excuse(core->lemons, core_excuses);
    core->errands = errands_new();
    core->hangs = hangs_new();
    core->slices = slices_new();
    core->jobs.slices = core->slices;
    core->repairs = repairs_new();
    core->receipts = receipts_new();
    return core;
}

void core_free(struct core *core)
{
    if (!core)
        return;
    admit_free(core->admit);
    health_free(core->health);
    lemon_store_free(core->lemons);
    errands_free(core->errands);
    hangs_free(core->hangs);
    slices_free(core->slices);
    repairs_free(core->repairs);
    receipts_free(core->receipts);
    vec_done(&core->leaving);
    job_store_done(&core->jobs);
    object_store_free(core->objects);
    note_ring_done(&core->notes);
    cluster_done(&core->cluster);
    cluster_done(&core->retired);
    vec_done(&core->hearing.strangers);
    buf_done(&core->cluster_json);
    arena_done(&core->reply);
    arena_done(&core->check_reply);
    mem_free(core);
}

static void route_reports(struct core *core, struct step *step, const struct event *event)
{
    struct machine *machine = cluster_find(&core->cluster, event->reports.machine);
    if (machine) {
        jobs_reports(step, machine, &event->reports.reports);
        core_signals(core, step, machine, &event->reports.reports);
        errands_reported(step, machine, &event->reports.reports);
        hangs_reported(step, machine, &event->reports.reports);
        hearing_look(step);
    }
    if (step->suspect == MACHINE_NONE)
        return;
    CHECK(step->suspect < core->cluster.machine_count);
    node_judge(core, step, &core->cluster.machines[step->suspect]);
}

static void route_cluster(struct core *core, struct step *step, const struct event *event)
{
    struct lemon_settings before = core->cluster.policy.lemons;
    step->settings_changed = true;
    node_cluster(core, step, event->cluster.document);
    health_cluster(step);
    lemon_cluster(step, &before);
    errands_cluster(step);
    repairs_cluster(step);
    core_leaving_restored(core);
}

void core_keep_secret(struct core *core, struct str secret)
{
    CHECK(!core->has_secret && secret.len == GANG_KEY_BYTES);
    memcpy(core->secret, secret.data, GANG_KEY_BYTES);
    hmac_begin(&core->keys, core->secret, sizeof core->secret);
    core->has_secret = true;
}

static void route_boot(struct core *core, struct step *step, const struct event *event)
{
    core->epoch = event->boot.epoch > core->epoch ? event->boot.epoch : core->epoch + 1;
    if (core->identity == 0)
        core->identity = event->boot.identity;
    if (core->first_epoch == 0)
        core->first_epoch = core->epoch;
    core->uids_ahead = uids_ahead(core->uids_ahead, step->seq, core->epoch - core->first_epoch);
    if (!core->has_secret && event->boot.secret.len == GANG_KEY_BYTES)
        core_keep_secret(core, event->boot.secret);
    step->uid_base = uid_base(core->identity, core->uids_ahead);
    step->epoch = core->epoch;
    namespaces_boot(step);
    core->outage.boot_ns = step->now_ns;
    core->outage.paused_ns = event->boot.paused ? step->now_ns : core->outage.paused_ns;
    step->outage = core->outage;
    lease_hold_boot(&core->hold, step->seq);
    node_boot(core, step, event->boot.paused);
    hangs_boot(step);
    slices_boot(step, event->boot.restored);
    if (event->boot.restored)
        hearing_begin(step);
}

static void route(struct core *core, struct step *step, const struct event *event)
{
    switch (event->kind) {
    case EVENT_BOOT:
        route_boot(core, step, event);
        break;
    case EVENT_CLUSTER:
        route_cluster(core, step, event);
        break;
    case EVENT_TICK:
        jobs_tick(step);
        health_tick(step);
        lemon_tick(step);
        hearing_look(step);
        errands_tick(step);
        hangs_tick(step);
        slices_tick(step);
        break;
    case EVENT_WRITE:
        core_write(core, step, &event->write);
        break;
    case EVENT_MACHINE_HELLO:
        node_hello(core, step, &event->machine_hello.hello);
        break;
    case EVENT_MACHINE_AWAY:
        node_away(core, step, event->machine.machine, event->machine.evidence);
        break;
    case EVENT_MACHINE_GONE:
    case EVENT_MACHINE_SILENT:
        node_lost(core, step, event->machine.machine, event->machine.evidence);
        break;
    case EVENT_REPORTS:
        route_reports(core, step, event);
        break;
    case EVENT_PROGRESS:
        jobs_progress(step, &event->progress);
        hangs_progressed(step, &event->progress);
        break;
    case EVENT_PACE:
        core_pace(core, step, &event->pace);
        break;
    case EVENT_HOLD_OVER:
        lease_hold_over(&core->hold, event->hold_over);
        break;
    case EVENT_LEVEL:
        CHECK(event->level <= this_release.level);
        core->level = event->level > core->level ? event->level : core->level;
        if (core->level >= LEVEL_RECEIPTS)
            receipts_begin(core->receipts, step->now_ns);
        break;
    case EVENT_SWITCH_REPORT:
        slices_report(step, &event->switch_report);
        break;
    case EVENT_SWITCH_HEALTH:
        slices_health(step, &event->switch_health);
        break;
    }
}

/* Frees the memory of the last step's effects. */
static void bury(struct core *core)
{
    arena_done(&core->reply);
    admit_bury(core->admit);
    jobs_bury(&core->jobs);
    objects_bury(core->objects);
    note_ring_bury(&core->notes);
    health_bury(core->health);
    errands_bury(core->errands);
    hangs_bury(core->hangs);
    slices_bury(core->slices);
    if (core->retired.machines)
        cluster_done(&core->retired);
}

static struct step step_begin(struct core *core, struct effects *effects, uint64_t seq, int64_t now_ns)
{
    CHECK(core->jobs.dirty.len == 0); /* the step before has ended */
    vec_clear(&effects->list);
    effects->seq = seq;
    return (struct step){
        .cluster = &core->cluster,
        .jobs = &core->jobs,
        .objects = core->objects,
        .admit = core->admit,
        .health = core->health,
        .lemons = core->lemons,
        .errands = core->errands,
        .hangs = core->hangs,
        .slices = core->slices,
        .repairs = core->repairs,
        .ledger = &core->ledger,
        .notes = &core->notes,
        .effects = effects,
        .seq = seq,
        .uid_base = uid_base(core->identity, core->uids_ahead),
        .epoch = core->epoch,
        .outage = core->outage,
        .hearing = &core->hearing,
        .now_ns = now_ns,
        .suspect = MACHINE_NONE,
    };
}

/* The effects are dropped: watchers begin with the restored state. */
void core_admit_restored(struct core *core)
{
    struct effects effects = {0};
    bury(core);
    struct step step = step_begin(core, &effects, core->seq, core->now_ns);
    admit_restored(&step);
    vec_done(&effects.list);
}

/* The limit of rounds of settling in a step. Each round but the last changes an object, a JobSet or a machine
 * for good, and none of them passes ROUNDS_EACH states in one step. A step with more rounds would never
 * end. */
enum { ROUNDS_FEW = 1000, ROUNDS_EACH = 64 };

static uint64_t count_things(const struct core *core)
{
    return core->jobs.jobsets.len + core->cluster.machine_count + objects_total(core->objects);
}

/* Lets all modules act until none of them has anything left to do. */
static void settle(struct core *core, struct step *step)
{
    struct collected seen = {0};
    uint64_t left = ROUNDS_FEW + ROUNDS_EACH * count_things(core);
    do {
        CHECK(left > 0);
        left--;
        jobs_settle(step);
    } while (core_errands(core, step) || core_hangs(core, step) || core_isolate(core, step) ||
             repairs_act(step) || core_judge_lemons(core, step) || admit_act(step) ||
             core_slices_act(core, step) || core_collect(step, &seen));
}

/* The objects that a step visits besides those that its event touches: none, the waiting gangs, or the
 * waiting gangs and every JobSet. */
enum look { LOOK_NO_FURTHER, LOOK_AT_QUEUE, LOOK_AT_ALL };

static void apply(struct core *core, const struct event *event, struct effects *effects, enum look look)
{
    CHECK(event->seq == core->seq + 1 && event->stamp_ns >= core->now_ns);
    core->seq = event->seq;
    core->now_ns = event->stamp_ns;
    bury(core);
    struct step step = step_begin(core, effects, event->seq, event->stamp_ns);
    route(core, &step, event);
    if (look == LOOK_AT_ALL)
        jobs_mark_all(&step);
    if (look != LOOK_NO_FURTHER)
        step.schedule = true;
    core_slices_leave(&step);
    settle(core, &step);
    jobs_book_reserved(&step);
    lease_hold_set(&core->hold, repairs_hold_until(core->repairs), core->seq, core->now_ns);
    core_hangs_forget(core, &step);
    jobs_show_accounts(&step);
    slices_machines_changed(core->slices, &core->cluster);
    slices_show(&step);
    disruptions_count(&step);
    CHECK(effects->seq == core->seq && core->jobs.machine_count == core->cluster.machine_count);
}

void core_step(struct core *core, const struct event *event, struct effects *effects)
{
    apply(core, event, effects, LOOK_NO_FURTHER);
}

bool core_is_settled(const struct core *core)
{
    struct buf bytes BUF_CLEANUP = {0};
    struct effects effects = {0};
    struct event tick = {.kind = EVENT_TICK, .seq = core->seq + 1, .stamp_ns = core->now_ns};
    uint64_t digests[2];
    core_snapshot_write(core, &bytes);
    for (int again = 0; again < 2; again++) {
        struct core *copy = core_new();
        struct error error = {0};
        CHECK(core_snapshot_read(copy, buf_str(&bytes), &error) == 0);
        /* Both visit the queue, because the reasons of waiting gangs may lag behind (gang/why.c). */
        jobs_let_gangs_say_why(&copy->jobs);
        apply(copy, &tick, &effects, again ? LOOK_AT_ALL : LOOK_AT_QUEUE);
        digests[again] = core_digest(copy);
        core_free(copy);
    }
    vec_done(&effects.list);
    return digests[0] == digests[1];
}

bool core_check_write(struct core *core, const struct write_event *write, int64_t now_ns,
                      struct effects *effects, struct prepared_write **ret_prepared)
{
    struct step step = step_begin(core, effects, core->seq, now_ns > core->now_ns ? now_ns : core->now_ns);
    arena_done(&core->check_reply);
    if (ret_prepared)
        *ret_prepared = NULL;
    bool accepted = core_write_check(core, &step, write, ret_prepared);
    for (size_t i = 0; i < effects->list.len; i++)
        CHECK(effects->list.items[i].kind == (accepted ? EFFECT_WARNING : EFFECT_REPLY));
    CHECK(accepted || effects->list.len == 1);
    return accepted;
}

uint64_t core_seq(const struct core *core)
{
    return core->seq;
}

static void put_bytes(uint8_t *out, uint64_t number, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

void core_gang_key(const struct core *core, obj_id jobset, int32_t attempt, uint8_t ret_key[GANG_KEY_BYTES])
{
    static const char purpose[] = "phalanx gang";
    uint8_t input[sizeof purpose + 12];
    _Static_assert((int)GANG_KEY_BYTES == (int)SHA256_SIZE, "a key is one sum");
    memset(ret_key, 0, GANG_KEY_BYTES);
    if (!core->has_secret)
        return;
    memcpy(input, purpose, sizeof purpose);
    put_bytes(input + sizeof purpose, jobset, 8);
    put_bytes(input + sizeof purpose + 8, (uint32_t)attempt, 4);
    hmac_sum(&core->keys, input, sizeof input, ret_key);
}

uint64_t core_identity(const struct core *core)
{
    static const char purpose[] = "phalanx cluster";
    uint8_t input[sizeof purpose + 8], sum[SHA256_SIZE];
    uint64_t identity = 0;
    CHECK(core->epoch > 0);
    memcpy(input, purpose, sizeof purpose);
    put_bytes(input + sizeof purpose, core->identity, 8);
    sha256(input, sizeof input, sum);
    for (int i = 0; i < 8; i++)
        identity = identity << 8 | sum[i];
    return identity ? identity : 1;
}

uint64_t core_epoch(const struct core *core)
{
    return core->epoch;
}

uint32_t core_level(const struct core *core)
{
    return core->level;
}

bool core_is_hearing(const struct core *core)
{
    return core->hearing.until_ns > 0;
}

size_t core_stranger_count(const struct core *core)
{
    return core->hearing.strangers.len;
}

int64_t core_now(const struct core *core)
{
    return core->now_ns;
}

int64_t core_deadline(const struct core *core)
{
    const int64_t all_ns[] = {hearing_deadline(&core->hearing, core->now_ns, jobs_deadline(&core->jobs)),
                              admit_deadline(core->admit, core->now_ns),
                              health_deadline(core->health, &core->cluster.policy),
                              core_leaving_deadline(core),
                              hangs_deadline(core->hangs),
                              lemon_deadline(core->lemons, &core->cluster.policy.lemons),
                              errands_deadline(core->errands),
                              repairs_deadline(core->repairs),
                              slices_deadline(core->slices)};
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < sizeof(all_ns) / sizeof(*all_ns); i++)
        due_ns = all_ns[i] < due_ns ? all_ns[i] : due_ns;
    return due_ns;
}

const struct cluster *core_cluster(const struct core *core)
{
    return &core->cluster;
}

const struct job_store *core_jobs(const struct core *core)
{
    return &core->jobs;
}

const struct object_store *core_objects(const struct core *core)
{
    return core->objects;
}

const struct admit *core_admit(const struct core *core)
{
    return core->admit;
}

const struct health *core_health(const struct core *core)
{
    return core->health;
}

const struct hangs *core_hang_watches(const struct core *core)
{
    return core->hangs;
}

const struct slices *core_slices(const struct core *core)
{
    return core->slices;
}

const struct lemon_store *core_lemons(const struct core *core)
{
    return core->lemons;
}

const struct errands *core_errands_store(const struct core *core)
{
    return core->errands;
}

const struct repairs *core_repairs(const struct core *core)
{
    return core->repairs;
}

int64_t core_machine_mttf_s(const struct core *core)
{
    int64_t age_us = core->now_ns / 1000 - core->ledger.opened_us;
    return machine_mttf_s(&core->cluster, core->lemons, age_us / 1000000);
}

const struct lease_hold *core_lease_hold(const struct core *core)
{
    return &core->hold;
}

const struct receipts *core_receipts(const struct core *core)
{
    return core->receipts;
}

const struct ledger *core_ledger(const struct core *core)
{
    return &core->ledger;
}

const struct note_ring *core_notes(const struct core *core)
{
    return &core->notes;
}
