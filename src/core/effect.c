#include "core/effect.h"

#include <inttypes.h>

#include "base/check.h"
#include "core/job/job.h"
#include "core/note.h"
#include "core/object/object.h"

struct effect *effect_add(struct effects *effects, enum effect_kind kind)
{
    CHECK(kind >= EFFECT_REPLY && kind <= EFFECT_SWITCH_APPLY);
    CHECK(effects->list.len < UINT32_MAX); /* the index is half of the effect's id */
    struct effect effect = {.kind = kind, .seq = effects->seq, .index = (uint32_t)effects->list.len};
    vec_push(&effects->list, effect);
    return &vec_last(&effects->list);
}

/* No switch below has a default: a missing kind does not compile. */
#pragma GCC diagnostic error "-Wswitch"

const char *effect_kind_name(enum effect_kind kind)
{
    switch (kind) {
    case EFFECT_REPLY:
        return "reply";
    case EFFECT_CHANGED:
        return "changed";
    case EFFECT_TASK_START:
        return "task-start";
    case EFFECT_TASK_STOP:
        return "task-stop";
    case EFFECT_TASK_NOTICE:
        return "task-notice";
    case EFFECT_TASK_FORGET:
        return "task-forget";
    case EFFECT_ERRAND_START:
        return "errand-start";
    case EFFECT_ERRAND_STOP:
        return "errand-stop";
    case EFFECT_SAY_AGAIN:
        return "say-again";
    case EFFECT_TASK_REJOIN:
        return "task-rejoin";
    case EFFECT_SWITCH_APPLY:
        return "switch-apply";
    case EFFECT_WARNING:
        return "warning";
    }
    CHECK(false);
}

static const char *change_name(enum change_type type)
{
    switch (type) {
    case CHANGE_ADDED:
        return "added";
    case CHANGE_MODIFIED:
        return "modified";
    case CHANGE_DELETED:
        return "deleted";
    }
    CHECK(false);
}

static void describe_object(struct buf *out, struct object_ref ref)
{
    struct object_name name = object_name(ref);
    buf_printf(out, " %s " STR_FORMAT "%s" STR_FORMAT, object_kind_name(name.kind),
               STR_ARG(name.namespace_), name.namespace_.len > 0 ? "/" : "", STR_ARG(name.name));
}

static void describe_reply(struct buf *out, const struct effect *effect)
{
    buf_printf(out, " %d", effect->reply.code);
    if (effect->reply.reason)
        buf_printf(out, " %s", effect->reply.reason);
    if (effect->reply.message.len > 0)
        buf_printf(out, ": " STR_FORMAT, STR_ARG(effect->reply.message));
}

void effect_describe(struct buf *out, const struct effect *effect)
{
    buf_printf(out, "%" PRIu64 ".%u %s", effect->seq, effect->index, effect_kind_name(effect->kind));
    switch (effect->kind) {
    case EFFECT_REPLY:
        describe_reply(out, effect);
        break;
    case EFFECT_CHANGED:
        buf_printf(out, " %s", change_name(effect->changed.type));
        describe_object(out, effect->changed.object);
        break;
    case EFFECT_TASK_START:
        buf_printf(out, " " STR_FORMAT, STR_ARG(effect->start->name));
        break;
    case EFFECT_TASK_REJOIN:
        buf_printf(out, " " STR_FORMAT, STR_ARG(effect->rejoin->name));
        break;
    case EFFECT_TASK_STOP:
        buf_printf(out, " %" PRIx64 " grace %" PRId64 " ms", effect->stop.stop.task,
                   effect->stop.stop.grace_ns / NS_PER_MS);
        break;
    case EFFECT_TASK_NOTICE:
        buf_printf(out, " %" PRIx64, effect->notice.notice.task);
        break;
    case EFFECT_TASK_FORGET:
        buf_printf(out, " %" PRIx64, effect->forget.task);
        break;
    case EFFECT_ERRAND_START:
        buf_printf(out, " %" PRIx64, effect->errand_start.start.errand);
        break;
    case EFFECT_ERRAND_STOP:
        buf_printf(out, " %" PRIx64, effect->errand_stop.errand);
        break;
    case EFFECT_SWITCH_APPLY:
        buf_printf(out, " " STR_FORMAT " operation %" PRIu64 ": %zu to break, %zu to make",
                   STR_ARG(effect->switch_apply.name), effect->switch_apply.operation,
                   effect->switch_apply.break_count, effect->switch_apply.make_count);
        break;
    case EFFECT_WARNING:
        buf_printf(out, ": " STR_FORMAT, STR_ARG(effect->warning));
        break;
    case EFFECT_SAY_AGAIN:
        break;
    }
}
