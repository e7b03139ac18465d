/* snapshot_folder.c - checkpoint folders of removed JobSets, in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/job/folder.h"
#include "core/log/snapshot.h"

void snapshot_write_folders(const struct job_store *store,
                            void (*put)(void *context, Snapshot__Record *record), void *context)
{
    for (size_t i = 0; i < store->folders.len; i++) {
        const struct checkpoint_folder *folder = &store->folders.items[i];
        CHECK(folder->namespace_.len > 0 && folder->name.len > 0);
        struct arena arena ARENA_CLEANUP = {0};
        Snapshot__Record record = SNAPSHOT__RECORD__INIT;
        Snapshot__CheckpointFolder pb = SNAPSHOT__CHECKPOINT_FOLDER__INIT;
        record.kind_case = SNAPSHOT__RECORD__KIND_CHECKPOINT_FOLDER;
        record.checkpoint_folder = &pb;
        pb.namespace_ = codec_text(&arena, folder->namespace_);
        pb.name = codec_text(&arena, folder->name);
        pb.step = folder->step;
        pb.attempt = folder->attempt;
        pb.next_attempt = folder->next_attempt;
        put(context, &record);
    }
}

bool snapshot_read_folder(struct job_store *store, const Snapshot__CheckpointFolder *pb)
{
    struct checkpoint_folder saved = {.namespace_ = str_from(pb->namespace_),
                                      .name = str_from(pb->name),
                                      .step = pb->step,
                                      .attempt = pb->attempt,
                                      .next_attempt = pb->next_attempt};
    return folder_restore(store, &saved);
}
