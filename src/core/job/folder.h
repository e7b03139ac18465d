/* folder.h - the folder in which a JobSet's checkpoints are stored, and what is known of a folder whose
 * JobSet is gone.
 *
 * The folder is "<name>-<suffix of the uid>", so a JobSet that is created again under its old name begins
 * in a new one, at step 0. The annotation phalanx.dev/checkpoint-folder names it instead: a JobSet with
 * that annotation goes on from the last checkpoint that was committed there, whoever wrote it. It begins
 * under the attempt behind the last one of its predecessor, so the files of both never mix and the fence
 * of an older attempt holds.
 *
 * One unfinished JobSet of a namespace writes to a folder. The newest CHECKPOINT_FOLDERS_MAX folders of
 * deleted JobSets are remembered.
 */
#ifndef PHX_CORE_JOB_FOLDER_H
#define PHX_CORE_JOB_FOLDER_H

#include "core/job/job.h"

struct step;

enum { CHECKPOINT_FOLDERS_MAX = 1024 };

struct checkpoint_folder {
    struct str namespace_, name; /* owned */
    int64_t step;                /* committed last; -1: none */
    int32_t attempt;             /* that committed it */
    int32_t next_attempt;        /* greater than every attempt that has written there */
};

/* Name of the JobSet's folder; lives in `arena` or in the JobSet. */
struct str jobset_folder(struct arena *arena, const struct jobset *jobset);

/* The unfinished JobSet that writes to the folder; NULL: none does. Linear in JobSets. */
const struct jobset *folder_writer(const struct job_store *store, struct str namespace_, struct str name);

/* A JobSet was created: it goes on from what its annotation names. */
void folder_resume(struct step *step, struct jobset *jobset);
/* It is gone: its folder is remembered, the oldest one forgotten where there are too many. */
void folder_remember(struct job_store *store, const struct jobset *jobset);

/* For reading a snapshot. Copies; false: it does not fit. */
bool folder_restore(struct job_store *store, const struct checkpoint_folder *saved);
void folders_done(struct job_store *store);

#endif
