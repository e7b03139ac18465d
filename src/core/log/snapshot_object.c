/* snapshot_object.c - stored objects in snapshots. */
#include "doc/json.h"
#include "core/agent/codec_pb.h"
#include "core/internal.h"
#include "core/object/life.h"
#include "core/log/snapshot.h"

struct writing_objects {
    void (*put)(void *context, Snapshot__Record *record);
    void *context;
};

static void write_object_record(void *context, const struct object *object)
{
    CHECK(object->document->kind == DOC_OBJECT && object->kind < OBJECT_KINDS);
    struct writing_objects *writing = context;
    struct arena arena ARENA_CLEANUP = {0};
    struct buf json BUF_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Object pb = SNAPSHOT__OBJECT__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_OBJECT;
    record.object = &pb;
    json_write(&json, object->document);
    pb.uid = object->uid;
    pb.kind = object->kind;
    pb.document = codec_text(&arena, buf_str(&json));
    pb.generation = object->generation;
    pb.created_ns = object->created_ns;
    pb.deleted_ns = object->deleted_ns;
    pb.changed_seq = object->changed_seq;
    writing->put(writing->context, &record);
}

void snapshot_write_objects(const struct object_store *store,
                            void (*put)(void *context, Snapshot__Record *record), void *context)
{
    struct writing_objects writing = {put, context};
    objects_visit_all(store, write_object_record, &writing);
}

bool snapshot_read_object(struct object_store *store, int64_t now_ns, const Snapshot__Object *pb)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    if (pb->kind >= OBJECT_KINDS || pb->created_ns < 0 || pb->created_ns > now_ns || pb->deleted_ns < 0 ||
        pb->deleted_ns > now_ns || json_parse(&arena, str_from(pb->document), &document, NULL) < 0 ||
        document->kind != DOC_OBJECT)
        return false;
    struct object *object = object_restore(store, (enum object_kind)pb->kind, pb->uid, &arena, document);
    if (!object)
        return false;
    object->generation = pb->generation;
    object->created_ns = pb->created_ns;
    object->deleted_ns = pb->deleted_ns;
    object->changed_seq = pb->changed_seq;
    if (object->deleted_ns)
        objects_wait(store, object->uid);
    return true;
}
