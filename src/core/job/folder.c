#include "core/job/folder.h"

#include "core/job/facts.h"

static struct str named(const struct jobset *jobset)
{
    bool saves = jobset->form != FORM_WORKLOAD; /* a Workload runs nothing */
    return saves ? labels_get(&jobset->spec.annotations, STR(CHECKPOINT_FOLDER_KEY), STR("")) : STR("");
}

struct str jobset_folder(struct arena *arena, const struct jobset *jobset)
{
    struct str name = named(jobset);
    char suffix[SUFFIX_TEXT_MAX];
    if (name.len)
        return name;
    uid_suffix(jobset->uid, suffix);
    return ARENA_CONCAT(arena, jobset->name, STR("-"), str_from(suffix));
}

static bool writes_to(const struct jobset *jobset, struct str namespace_, struct str name)
{
    struct arena arena ARENA_CLEANUP = {0};
    return str_equal(jobset->namespace_, namespace_) && str_equal(jobset_folder(&arena, jobset), name);
}

const struct jobset *folder_writer(const struct job_store *store, struct str namespace_, struct str name)
{
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        if (!jobset_finished(jobset) && writes_to(jobset, namespace_, name))
            return jobset;
    }
    return NULL;
}

static void take(struct jobset *jobset, int64_t step, int32_t attempt, int32_t next_attempt)
{
    if (next_attempt <= jobset->attempt)
        return;
    CHECK(jobset->made == 0 && jobset->restarts == 0 && jobset->recovery.in_place_restarts == 0);
    CHECK(step < 0 || attempt < next_attempt);
    jobset->first_attempt = jobset->attempt = next_attempt;
    jobset->checkpoint.committed_step = step;
    jobset->checkpoint.committed_attempt = step < 0 ? 0 : attempt;
}

static int32_t attempt_behind(const struct jobset *jobset)
{
    CHECK(jobset->attempt >= 0);
    return jobset->attempt < INT32_MAX / 2 ? jobset->attempt + 1 : jobset->attempt;
}

void folder_resume(struct step *step, struct jobset *jobset)
{
    struct str name = named(jobset);
    struct job_store *store = step->jobs;
    if (name.len == 0)
        return;
    for (size_t i = 0; i < store->folders.len; i++) {
        const struct checkpoint_folder *folder = &store->folders.items[i];
        if (str_equal(folder->namespace_, jobset->namespace_) && str_equal(folder->name, name))
            take(jobset, folder->step, folder->attempt, folder->next_attempt);
    }
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *other = store->jobsets.items[i];
        if (other != jobset && writes_to(other, jobset->namespace_, name))
            take(jobset, other->checkpoint.committed_step, other->checkpoint.committed_attempt,
                 attempt_behind(other));
    }
    if (jobset->checkpoint.committed_step >= 0)
        step_note(step, false, "ResumesFromCheckpoint", ref_jobset(jobset),
                  "goes on from step %lld of folder " STR_FORMAT,
                  (long long)jobset->checkpoint.committed_step, STR_ARG(name));
}

static void forget(struct job_store *store, size_t i)
{
    CHECK(i < store->folders.len);
    mem_free((char *)store->folders.items[i].namespace_.data);
    mem_free((char *)store->folders.items[i].name.data);
    vec_remove(&store->folders, i);
}

static struct str keep(struct str text)
{
    char *copy = mem_alloc(text.len + 1);
    mem_copy(copy, text.data, text.len);
    copy[text.len] = 0;
    return (struct str){copy, text.len};
}

bool folder_restore(struct job_store *store, const struct checkpoint_folder *saved)
{
    if (saved->step < -1 || saved->attempt < 0 || saved->attempt >= saved->next_attempt ||
        saved->name.len == 0 || store->folders.len >= CHECKPOINT_FOLDERS_MAX)
        return false;
    struct checkpoint_folder folder = *saved;
    folder.namespace_ = keep(saved->namespace_);
    folder.name = keep(saved->name);
    vec_push(&store->folders, folder);
    return true;
}

void folder_remember(struct job_store *store, const struct jobset *jobset)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct str name = jobset_folder(&arena, jobset);
    if (jobset->checkpoint.committed_step < 0 && named(jobset).len == 0)
        return; /* the folder holds nothing to resume from */
    for (size_t i = store->folders.len; i-- > 0;)
        if (str_equal(store->folders.items[i].namespace_, jobset->namespace_) &&
            str_equal(store->folders.items[i].name, name))
            forget(store, i);
    if (store->folders.len == CHECKPOINT_FOLDERS_MAX)
        forget(store, 0);
    struct checkpoint_folder folder = {.namespace_ = jobset->namespace_,
                                       .name = name,
                                       .step = jobset->checkpoint.committed_step,
                                       .attempt = jobset->checkpoint.committed_attempt,
                                       .next_attempt = attempt_behind(jobset)};
    CHECK(folder_restore(store, &folder));
}

void folders_done(struct job_store *store)
{
    while (store->folders.len)
        forget(store, store->folders.len - 1);
    vec_done(&store->folders);
}
