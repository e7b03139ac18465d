/* note.h - the events that people read with `kubectl get events`: API Event objects, the newest
 * EVENT_OBJECTS_MAX.
 *
 * Modules leave notes; no decision reads them back. A note that equals an earlier one about the same object
 * raises the earlier one's count (an Event series).
 */
#ifndef PHX_CORE_NOTE_H
#define PHX_CORE_NOTE_H

#include "base/map.h"
#include "base/vec.h"
#include "core/effect.h"

struct note {
    obj_id uid;
    uint64_t slot;     /* running number; the ring holds slots [first, next) */
    bool warning;      /* type Warning, else Normal */
    struct str reason; /* "Started", "MachineLost", ... CamelCase */
    struct str message;
    enum object_kind regarding;  /* kind of the object that the note is about */
    struct str namespace_, name; /* of that object; namespace empty for Nodes */
    obj_id regarding_uid;
    int64_t first_ns, last_ns;
    uint32_t count;
    uint64_t changed_seq;
    char text[]; /* private: the strings point into it */
};
struct note_ring {
    struct note **slots; /* [EVENT_OBJECTS_MAX], by slot % EVENT_OBJECTS_MAX */
    uint64_t first, next;
    uint64_t *hashes; /* private: hash of each slot's record, for digests; 0: not known */
    struct str_map by_text; /* private */
    struct buf key;         /* private: text of the note that is added now */
    VEC(struct note *)
    dead; /* private: dropped notes, freed when the next step begins so that effects can name them */
};
/* Returns the note in a slot; first <= slot < next. The note is valid until the next step. */
const struct note *note_at(const struct note_ring *ring, uint64_t slot);

struct note_input {
    bool warning;
    const char *reason;
    struct str message;
    struct object_ref about;
};
/* Adds a note under `uid`, or counts an equal one, and emits EFFECT_CHANGED for it. Copies the input. A full
 * ring drops its oldest note without an effect: Kubernetes' events expire silently too. */
void note_add(struct note_ring *ring, const struct note_input *input, obj_id uid, uint64_t seq,
              int64_t now_ns, struct effects *effects);
void note_ring_bury(struct note_ring *ring); /* frees dropped notes; called before anything else in a step */
void note_ring_done(struct note_ring *ring);

/* The name of any object. The strings belong to the object. */
struct object_name {
    enum object_kind kind;
    struct str namespace_, name;
    obj_id uid;
    uint64_t version; /* resourceVersion: log position of its last change */
};
struct object_name object_name(struct object_ref ref);

/* A note as a snapshot stores it; note_restore adds a copy after the newest note. */
struct note_saved {
    obj_id uid;
    bool warning;
    const char *reason;
    struct str message;
    struct object_name about;
    int64_t first_ns, last_ns;
    uint32_t count;
    uint64_t changed_seq;
};
void note_restore(struct note_ring *ring, const struct note_saved *saved);

#endif
