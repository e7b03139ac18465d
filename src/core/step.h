/* step.h - the working set of one core_step, passed to the modules that act in it.
 *
 * Private to the core. Modules change state through it and leave their effects, notes and bookings in it;
 * none of them keeps it after the step.
 */
#ifndef PHX_CORE_STEP_H
#define PHX_CORE_STEP_H

#include "base/heap.h"
#include "core/effect.h"
#include "core/model/model.h"
#include "core/object/object.h"

struct admit;
struct errands;
struct job;
struct jobset;
struct job_store;
struct ledger;
struct task;
struct repairs;
struct fault;
struct hangs;
struct slices;
struct health;
struct lemon_store;

/* A time without a controller. Tasks end by their fences in it, and events just after it say nothing about
 * machines. */
struct outage {
    int64_t boot_ns;   /* stamp of the newest boot, or of the end of a pause; 0: none */
    int64_t paused_ns; /* newest end of a pause of the same process; 0: none */
};

/* After a boot on a restored log (recover/hearing.c). */
struct hearing {
    int64_t until_ns;      /* nothing starts before this stamp, unless all machines have been heard; 0: not */
    machine_id heard;      /* machines below this one have said hello since the boot */
    VEC(obj_id) strangers; /* living tasks of the lost part that agents have named */
};

struct step {
    struct cluster *cluster;
    struct outage outage;
    struct job_store *jobs;
    struct object_store *objects;
    struct admit *admit;
    struct health *health;
    struct lemon_store *lemons;
    struct errands *errands;
    struct hangs *hangs;
    struct slices *slices;
    struct repairs *repairs;
    struct hearing *hearing;
    struct ledger *ledger;
    struct note_ring *notes;
    struct effects *effects;
    uint64_t seq;
    obj_id uid_base; /* of log position 0 (ids.h) */
    uint64_t epoch;  /* of the newest boot */
    int64_t now_ns;
    uint32_t next_index; /* number of objects made in this step, for uids */
    uint32_t note_count; /* number of notes left in this step */
    machine_id
        suspect;   /* a machine whose ranks peers have reported gone, for core.c to judge; MACHINE_NONE */
    bool room;             /* machines have more room than before: for admission */
    bool settings_changed; /* the cluster file's settings changed: for admission */
    bool schedule; /* the queue or the room for it changed: run a pass before the step ends */
};

/* Returns the first of the 2^20 uids of this log position. */
static inline obj_id step_first_uid(const struct step *step)
{
    return step->uid_base + (step->seq << 20);
}
static inline obj_id step_uid(struct step *step)
{
    CHECK(step->next_index < (1u << 20) - 2);
    return step_first_uid(step) + ++step->next_index;
}
static inline int64_t step_now_us(const struct step *step)
{
    return step->now_ns / NS_PER_US;
}

/* Whether tasks that this log does not know may still run somewhere, so that nothing may start yet. */
static inline bool step_is_hearing(const struct step *step)
{
    return step->hearing && step->hearing->until_ns > 0; /* NULL in a step that starts nothing */
}

/* The time in which agents reconnect after an outage: a lease and a tenth, and as much again to connect. */
static inline int64_t step_return_ns(const struct step *step)
{
    return 2 * (step->cluster->policy.lease_ns + step->cluster->policy.lease_ns / 10);
}
static inline bool step_is_after(const struct step *step, int64_t outage_ns)
{
    return outage_ns > 0 && step->now_ns - outage_ns <= step_return_ns(step);
}

/* Marks the object as changed at this log position, with the one as which the API shows it, and tells
 * watchers of the latter. Of any kind but Workloads: admit's workload_changed. */
void step_changed(struct step *step, enum change_type type, struct object_ref object);
/* Tells watchers of a change that the caller has marked in the object. */
void step_tell(struct step *step, enum change_type type, struct object_ref object);
void step_note(struct step *step, bool warning, const char *reason, struct object_ref about,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

static inline struct object_ref ref_jobset(const struct jobset *jobset)
{
    return (struct object_ref){OBJECT_JOBSET, {.jobset = jobset}};
}
static inline struct object_ref ref_job(const struct job *job)
{
    return (struct object_ref){OBJECT_JOB, {.job = job}};
}
static inline struct object_ref ref_task(const struct task *task)
{
    return (struct object_ref){OBJECT_POD, {.task = task}};
}
static inline struct object_ref ref_object(const struct object *object)
{
    return (struct object_ref){object->kind, {.object = object}};
}
static inline struct object_ref ref_fault(const struct fault *fault)
{
    return (struct object_ref){OBJECT_FAULT, {.fault = fault}};
}
/* A Cube, Switch, Slice or FabricSession: a struct cube_now, switch_now or slice (slice/slice.h). */
static inline struct object_ref ref_fabric(enum object_kind kind, const void *thing)
{
    return (struct object_ref){kind, {.any = thing}};
}
static inline struct object_ref ref_machine(const struct machine *machine)
{
    return (struct object_ref){OBJECT_NODE, {.machine = machine}};
}

#endif
