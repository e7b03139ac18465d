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

/* A time without a controller. Tasks end by their fences in such a time, and events just after it are no
 * evidence about machines. */
struct outage {
    int64_t boot_ns;   /* stamp of the newest boot, or of the end of a pause; 0: none */
    int64_t paused_ns; /* newest end of a pause of the same process; 0: none */
};

/* The wait after a boot on a restored log (recover/hearing.c). */
struct hearing {
    /* no task starts before this stamp, unless all machines have been heard; 0: none */
    int64_t until_ns;
    machine_id heard;      /* machines below this one have said hello since the boot */
    VEC(obj_id) strangers; /* living tasks of the log's lost part that agents have named */
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
        suspect; /* for core.c to judge: a machine whose ranks peers reported gone; MACHINE_NONE: none */
    bool room;   /* for admission: machines have more free capacity than before */
    bool settings_changed; /* for admission: the cluster file's settings changed */
    bool schedule; /* the queue or free capacity changed: run a pass over the queue before the step ends */
};

/* Returns the first of the 2^20 uids of this log position. */
static inline obj_id step_first_uid(const struct step *step)
{
    return step->uid_base + (step->seq << 20);
}
/* Returns the next unused uid of this log position. */
static inline obj_id step_uid(struct step *step)
{
    CHECK(step->next_index < (1u << 20) - 2);
    return step_first_uid(step) + ++step->next_index;
}
static inline int64_t step_now_us(const struct step *step)
{
    return step->now_ns / NS_PER_US;
}

/* Returns whether tasks that this log does not know may still run, so that no task may start yet. */
static inline bool step_is_hearing(const struct step *step)
{
    return step->hearing && step->hearing->until_ns > 0; /* NULL in a step that starts nothing */
}

/* Returns the time in which agents reconnect after an outage: a lease and a tenth for the wait, and as much
 * again to connect. */
static inline int64_t step_return_ns(const struct step *step)
{
    return 2 * (step->cluster->policy.lease_ns + step->cluster->policy.lease_ns / 10);
}
/* Returns whether the step is within that time after `outage_ns` (a stamp of struct outage). */
static inline bool step_is_after(const struct step *step, int64_t outage_ns)
{
    return outage_ns > 0 && step->now_ns - outage_ns <= step_return_ns(step);
}

/* Stores this log position as the last change of the object and of the object as which the API shows it,
 * and emits CHANGED for the latter. Takes any kind but Workloads, for which admit has workload_changed. */
void step_changed(struct step *step, enum change_type type, struct object_ref object);
/* Emits CHANGED for an object whose change the caller has stored. */
void step_tell(struct step *step, enum change_type type, struct object_ref object);
/* Leaves a note (note.h) about the object as which the API shows `about`. Drops it if the API does not show
 * the object, or after NOTES_PER_STEP_MAX notes in one step. `reason` is in CamelCase. */
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
