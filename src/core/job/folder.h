/* folder.h - the folder of a JobSet's checkpoints, and the core's records of folders of deleted JobSets.
 *
 * The folder is "<name>-<suffix of the uid>", so a JobSet that is created again under its old name begins
 * in a new folder, at step 0. The annotation phalanx.dev/checkpoint-folder overrides the name. A JobSet with
 * that annotation resumes from the last checkpoint that any JobSet committed there. Its attempts follow those
 * of its predecessor, so the files of both never mix, and the fence of an older attempt holds.
 *
 * At most one unfinished JobSet of a namespace writes to a folder. The newest CHECKPOINT_FOLDERS_MAX
 * folders of deleted JobSets are remembered.
 */
#ifndef PHX_CORE_JOB_FOLDER_H
#define PHX_CORE_JOB_FOLDER_H

#include "core/job/job.h"

struct step;

enum { CHECKPOINT_FOLDERS_MAX = 1024 };

struct checkpoint_folder {
    struct str namespace_, name; /* owned */
    int64_t step;                /* last committed step; -1: none */
    int32_t attempt;             /* the attempt that committed it */
    int32_t next_attempt;        /* greater than every attempt that wrote to the folder */
};

/* Returns the name of the JobSet's folder, which lives in `arena` or in the JobSet. */
struct str jobset_folder(struct arena *arena, const struct jobset *jobset);

/* Returns the unfinished JobSet that writes to the folder, or NULL if there is none. Linear in JobSets. */
const struct jobset *folder_writer(const struct job_store *store, struct str namespace_, struct str name);

/* Sets a new JobSet's first attempt and checkpoint from the folder that its annotation names, if any. */
void folder_resume(struct step *step, struct jobset *jobset);
/* Records the folder of a deleted JobSet if another may resume from it. A full list drops its oldest. */
void folder_remember(struct job_store *store, const struct jobset *jobset);

/* Adds a copy of a record from a snapshot. Returns false if the record is invalid or the list is full. */
bool folder_restore(struct job_store *store, const struct checkpoint_folder *saved);
void folders_done(struct job_store *store);

#endif
