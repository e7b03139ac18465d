/* effect.h - everything the controller can do to the world, as one closed union.
 *
 * core_step leaves effects in order; they may be carried out only after their event is durable. They point
 * into the core and are valid until the next core_step (those of a check: until the next core_check_write).
 * The driver carries them out in every world (drive/drive.h); hosts see only REPLY and CHANGED. An effect
 * may be carried out twice: its id (event seq, index) is stable across replay, and it names its object by
 * uid.
 *     kind           order and barrier
 *     REPLY          after the log write; exactly one for each EVENT_WRITE
 *     CHANGED        after the log write; watchers see changes in effect order
 *     START          after the log write; repeated when a machine says hello without the task
 *     STOP           after the log write; repeated when a machine says hello with the task
 *     NOTICE         best effort; a lost one is harmless
 *     FORGET         after the log write; the report's end is durable
 *     REJOIN         after the log write; repeated when a machine says hello with an older attempt
 *     ERRAND_START   as START of a task
 *     ERRAND_STOP    as STOP of a task
 *     SAY_AGAIN      best effort: a Hello has the same effect
 *     SWITCH_APPLY   after the log write; repeated with the same operation after a boot while its report is
 *                    missing
 *     WARNING        of core_check_write alone: the write would be accepted, and is probably a mistake
 */
#ifndef PHX_CORE_EFFECT_H
#define PHX_CORE_EFFECT_H

#include "base/vec.h"
#include "core/event.h"
#include "core/words/switch.h"

struct jobset;
struct job;
struct task;
struct note;
struct machine;
struct object;
struct workload;
struct fault;
struct cube_now;
struct switch_now;
struct slice;

enum effect_kind {
    EFFECT_REPLY = 1,
    EFFECT_CHANGED = 2,
    EFFECT_TASK_START = 3,
    EFFECT_TASK_STOP = 4,
    EFFECT_TASK_NOTICE = 5,
    EFFECT_TASK_FORGET = 6,
    EFFECT_ERRAND_START = 7,
    EFFECT_ERRAND_STOP = 8,
    EFFECT_WARNING = 9,
    EFFECT_SAY_AGAIN = 75,
    EFFECT_TASK_REJOIN = 105,
    EFFECT_SWITCH_APPLY = 106,
};
enum change_type { CHANGE_ADDED = 1, CHANGE_MODIFIED = 2, CHANGE_DELETED = 3 };

/* An API object in the core. */
struct object_ref {
    enum object_kind kind;
    union {
        const struct jobset *jobset;
        const struct job *job;
        const struct task *task;
        const struct machine *machine;
        const struct note *note;
        const struct object *object;     /* of every kind that object/object.h stores */
        const struct workload *workload; /* OBJECT_WORKLOAD */
        const struct fault *fault;       /* OBJECT_FAULT */
        const struct cube_now *cube;     /* OBJECT_CUBE */
        const struct switch_now *optical_switch; /* OBJECT_SWITCH */
        const struct slice *slice;               /* OBJECT_SLICE, OBJECT_FABRIC_SESSION */
        const void *any;
    };
};

struct receipt;
struct effect {
    enum effect_kind kind;
    uint64_t seq;                   /* of the event; with `index` the effect's id */
    uint32_t index;
    union {
        struct {
            int code;               /* HTTP status: 200, 201, 404, 409, 422, ... */
            /* Kubernetes Status reason when code >= 400: "NotFound", "Invalid", ... */
            const char *reason;
            struct str message;
            const struct field_errors *causes; /* 422: one for each broken rule; else NULL */
            uint32_t retry_after_s;            /* 429: seconds until the next try; 0: not known */
            struct object_ref object;          /* the object after the write; .any NULL: none */
            const struct receipt *receipt;     /* a repeated write: the first one's answer; else NULL */
        } reply;
        struct {
            enum change_type type;
            struct object_ref object;
        } changed;
        const struct task *start;  /* the task after the step: the driver builds the message (launch.h) */
        const struct task *rejoin; /* the task after the step, as for `start` */
        struct {
            machine_id machine;
            struct task_stop stop;
        } stop;
        struct {
            machine_id machine;
            struct task_notice notice;
        } notice;
        struct {
            machine_id machine;
            obj_id task;
        } forget;
        struct {
            machine_id machine;
            struct errand_start start;
        } errand_start;
        struct {
            machine_id machine;
            obj_id errand;
        } errand_stop;
        struct {
            machine_id machine; /* its probes report all present signals again */
        } say_again;
        struct switch_apply switch_apply;
        struct str warning; /* one sentence for the client */
    };
};

struct effects {
    VEC(struct effect) list;
    uint64_t seq;
};
/* Appends a zeroed effect with its kind and id. The pointer is valid until the next effect is added. */
struct effect *effect_add(struct effects *effects, enum effect_kind kind);
/* Returns the kind's name, such as "task-start" or "reply": unique, in letters and hyphens. */
const char *effect_kind_name(enum effect_kind kind);
/* Appends one line for people: "7.0 changed modified Pod default/train-w-0-0". The effect must still be
 * valid. */
void effect_describe(struct buf *out, const struct effect *effect);

#endif
