#include "core/note.h"

#include <stdlib.h>

#include "core/admit/admit.h"
#include "core/health/fault.h"
#include "core/job/job.h"
#include "core/object/object.h"
#include "core/slice/slice.h"

struct object_name object_name(struct object_ref ref)
{
    CHECK(ref.any && ref.kind > 0 && ref.kind < OBJECT_KINDS);
    struct object_name name = {.kind = ref.kind};
    switch (ref.kind) {
    case OBJECT_JOBSET:
        name.namespace_ = ref.jobset->namespace_;
        name.name = ref.jobset->name;
        name.uid = ref.jobset->uid;
        name.version = ref.jobset->changed_seq;
        break;
    case OBJECT_JOB:
        name.namespace_ = ref.job->jobset->namespace_;
        name.name = ref.job->name;
        name.uid = ref.job->uid;
        name.version = ref.job->changed_seq;
        break;
    case OBJECT_POD:
        name.namespace_ = ref.task->job->jobset->namespace_;
        name.name = ref.task->name;
        name.uid = ref.task->pod_uid;
        name.version = ref.task->changed_seq;
        break;
    case OBJECT_NODE:
        name.name = ref.machine->name;
        name.uid = ref.machine->uid;
        name.version = ref.machine->changed_seq;
        break;
    case OBJECT_EVENT:
        name.namespace_ = ref.note->namespace_.len ? ref.note->namespace_ : STR("default");
        name.uid = ref.note->uid;
        name.version = ref.note->changed_seq;
        break;
    case OBJECT_WORKLOAD:
        name.namespace_ = ref.workload->jobset->namespace_;
        name.name = ref.workload->name;
        name.uid = workload_shown_uid(ref.workload);
        name.version = workload_version(ref.workload);
        break;
    case OBJECT_FAULT:
        name.name = ref.fault->name;
        name.uid = ref.fault->uid;
        name.version = ref.fault->changed_seq;
        break;
    case OBJECT_CUBE:
    case OBJECT_SWITCH:
    case OBJECT_SLICE:
    case OBJECT_FABRIC_SESSION: {
        const struct shown *shown = shown_of(ref);
        name.namespace_ = shown->namespace_;
        name.name = shown->name;
        name.uid = shown->uid;
        name.version = shown->changed_seq;
        break;
    }
    default:
        CHECK(object_kind_info(ref.kind));
        name.namespace_ = ref.object->namespace_;
        name.name = ref.object->name;
        name.uid = ref.object->uid;
        name.version = ref.object->changed_seq;
        break;
    }
    return name;
}

const struct note *note_at(const struct note_ring *ring, uint64_t slot)
{
    CHECK(slot >= ring->first && slot < ring->next);
    CHECK(ring->slots[slot % EVENT_OBJECTS_MAX]->slot == slot);
    return ring->slots[slot % EVENT_OBJECTS_MAX];
}

static void add_number(struct buf *out, uint64_t number)
{
    char digits[24];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    buf_add(out, digits + at, sizeof(digits) - at);
    buf_add_char(out, ' ');
}

/* Makes the key by which equal notes are found: everything that a reader sees except time and count. The key
 * becomes note->text, into which the note's strings point. */
static struct str note_key(struct buf *out, bool warning, const char *reason, struct str message,
                           const struct object_name *about)
{
    struct str word = str_from(reason);
    buf_clear(out);
    buf_reserve(out, 64 + word.len + about->namespace_.len + about->name.len + message.len);
    add_number(out, warning); /* no printf: several are made for every task */
    add_number(out, (uint64_t)about->kind);
    add_number(out, about->uid);
    buf_add_str(out, word);
    buf_add_char(out, ' ');
    buf_add_str(out, about->namespace_);
    buf_add_char(out, ' ');
    buf_add_str(out, about->name);
    buf_add_char(out, ' ');
    buf_add_str(out, message);
    return buf_str(out);
}

static void note_emit(struct effects *effects, enum change_type type, const struct note *note)
{
    CHECK(type == CHANGE_ADDED || type == CHANGE_MODIFIED);
    struct effect *effect = effect_add(effects, EFFECT_CHANGED);
    effect->changed.type = type;
    effect->changed.object = (struct object_ref){OBJECT_EVENT, {.note = note}};
}

/* Drops the oldest note to free its slot. */
static void note_drop_first(struct note_ring *ring)
{
    struct note *old = ring->slots[ring->first % EVENT_OBJECTS_MAX];
    CHECK(ring->first < ring->next && old && old->slot == ring->first);
    struct str key = str_from(old->text);
    if (str_map_get(&ring->by_text, key) == old)
        str_map_remove(&ring->by_text, key);
    ring->slots[ring->first % EVENT_OBJECTS_MAX] = NULL;
    ring->first++;
    vec_push(&ring->dead, old);
}

void note_ring_bury(struct note_ring *ring)
{
    for (size_t i = 0; i < ring->dead.len; i++)
        mem_free(ring->dead.items[i]);
    vec_clear(&ring->dead);
}

/* Adds a note with a copy of `text`, made by note_key. The visible strings are its tail, in the order in
 * which note_key wrote them. */
static struct note *note_put(struct note_ring *ring, struct str text, size_t reason_len, size_t message_len,
                             const struct object_name *about)
{
    if (!ring->slots)
        ring->slots = mem_alloc(EVENT_OBJECTS_MAX * sizeof(*ring->slots));
    if (!ring->hashes)
        ring->hashes = mem_alloc(EVENT_OBJECTS_MAX * sizeof(*ring->hashes));
    if (ring->next - ring->first == EVENT_OBJECTS_MAX)
        note_drop_first(ring);
    struct note *note = mem_alloc(sizeof(*note) + text.len + 1);
    size_t message_at = text.len - message_len, name_at = message_at - 1 - about->name.len;
    size_t namespace_at = name_at - 1 - about->namespace_.len;
    CHECK(namespace_at > reason_len && name_at > namespace_at && message_at > name_at);
    memcpy(note->text, text.data, text.len);
    note->slot = ring->next++;
    note->regarding = about->kind;
    note->regarding_uid = about->uid;
    note->message = (struct str){note->text + message_at, message_len};
    note->name = (struct str){note->text + name_at, about->name.len};
    note->namespace_ = (struct str){note->text + namespace_at, about->namespace_.len};
    note->reason = (struct str){note->text + namespace_at - 1 - reason_len, reason_len};
    CHECK(!ring->slots[note->slot % EVENT_OBJECTS_MAX]);
    ring->slots[note->slot % EVENT_OBJECTS_MAX] = note;
    ring->hashes[note->slot % EVENT_OBJECTS_MAX] = 0;
    CHECK(ring->next - ring->first <= EVENT_OBJECTS_MAX);
    str_map_put(&ring->by_text, str_from(note->text), note);
    return note;
}

void note_add(struct note_ring *ring, const struct note_input *input, obj_id uid, uint64_t seq,
              int64_t now_ns, struct effects *effects)
{
    CHECK(uid != 0 && input->reason && input->reason[0]);
    struct object_name about = object_name(input->about);
    struct str text = note_key(&ring->key, input->warning, input->reason, input->message, &about);
    struct note *note = str_map_get(&ring->by_text, text);
    if (note) {
        CHECK(note->warning == input->warning && note->regarding == about.kind);
        ring->hashes[note->slot % EVENT_OBJECTS_MAX] = 0;
        note->count++;
        note->last_ns = now_ns;
        note->changed_seq = seq;
        note_emit(effects, CHANGE_MODIFIED, note);
        return;
    }
    note = note_put(ring, text, strlen(input->reason), input->message.len, &about);
    note->uid = uid;
    note->warning = input->warning;
    note->first_ns = note->last_ns = now_ns;
    note->count = 1;
    note->changed_seq = seq;
    note_emit(effects, CHANGE_ADDED, note);
}

void note_restore(struct note_ring *ring, const struct note_saved *saved)
{
    struct str text = note_key(&ring->key, saved->warning, saved->reason, saved->message, &saved->about);
    struct note *note = note_put(ring, text, strlen(saved->reason), saved->message.len, &saved->about);
    note->uid = saved->uid;
    note->warning = saved->warning;
    note->first_ns = saved->first_ns;
    note->last_ns = saved->last_ns;
    note->count = saved->count;
    note->changed_seq = saved->changed_seq;
}

void note_ring_done(struct note_ring *ring)
{
    for (uint64_t slot = ring->first; slot < ring->next; slot++)
        mem_free(ring->slots[slot % EVENT_OBJECTS_MAX]);
    note_ring_bury(ring);
    vec_done(&ring->dead);
    buf_done(&ring->key);
    mem_free(ring->slots);
    mem_free(ring->hashes);
    str_map_done(&ring->by_text);
    *ring = (struct note_ring){0};
}
