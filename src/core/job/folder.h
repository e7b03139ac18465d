/* folder.h - the folder of a JobSet's checkpoints, and the core's memory of folders whose JobSet is gone.
 *
 * The folder is "<name>-<suffix of the uid>", so a JobSet that is created again under its old name begins
 * in a new one, at step 0. The annotation phalanx.dev/checkpoint-folder overrides the name: a JobSet with
 * that annotation goes on from the last checkpoint that was committed there by any JobSet. Its attempts
 * are numbered from the last one of its predecessor, so the files of both never mix and the fence of an
 * older attempt holds.
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
    int32_t attempt;             /* that committed it */
    int32_t next_attempt;        /* greater than every attempt that wrote to the folder */
};

/* Returns the name of the JobSet's folder, which lives in `arena` or in the JobSet. */
struct str jobset_folder(struct arena *arena, const struct jobset *jobset);

/* Returns the unfinished JobSet that writes to the folder; NULL: none does. Linear in JobSets. */
const struct jobset *folder_writer(const struct job_store *store, struct str namespace_, struct str name);

/* Lets a new JobSet go on from the folder that its annotation names. */
void folder_resume(struct step *step, struct jobset *jobset);
/* Remembers the folder of a JobSet that is gone, and forgets the oldest folder if there are too many. */
void folder_remember(struct job_store *store, const struct jobset *jobset);

/* Restores a folder from a snapshot. Copies; false: it does not fit. */
bool folder_restore(struct job_store *store, const struct checkpoint_folder *saved);
void folders_done(struct job_store *store);

#endif
