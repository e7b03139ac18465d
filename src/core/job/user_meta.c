/* user_meta.c - users' labels and annotations of Jobs and Pods that the control plane made. */
#include <stdlib.h>

#include "core/job/facts.h"

bool meta_is_controlled(struct str key)
{
    static const char *const prefixes[] = {"jobset.sigs.k8s.io/", "alpha.jobset.sigs.k8s.io/",
                                           "batch.kubernetes.io/"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (str_starts(key, str_from(prefixes[i])))
            return true;
    return str_is(key, "job-name") || str_is(key, "controller-uid") || str_is(key, SPARE_KEY);
}

static int by_key(const void *a, const void *b)
{
    return str_compare(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static struct labels copy(struct arena *arena, const struct doc *map)
{
    size_t count = map && map->kind == DOC_OBJECT ? map->object.len : 0;
    struct labels labels = {ARENA_ARRAY(arena, struct label, count), 0};
    for (size_t i = 0; i < count; i++) {
        const struct doc_member *member = &map->object.members[i];
        if (!meta_is_controlled(member->key))
            labels.items[labels.len++] = (struct label){arena_str(arena, member->key),
                                                        arena_str(arena, doc_str(member->value, STR("")))};
    }
    if (labels.len > 1)
        qsort(labels.items, labels.len, sizeof *labels.items, by_key);
    return labels;
}

static bool same(const struct labels *a, const struct labels *b)
{
    bool equal = a->len == b->len;
    for (size_t i = 0; equal && i < a->len; i++)
        equal =
            str_equal(a->items[i].key, b->items[i].key) && str_equal(a->items[i].value, b->items[i].value);
    return equal;
}

void user_meta_free(struct user_meta *meta)
{
    if (!meta)
        return;
    arena_done(&meta->arena);
    mem_free(meta);
}

void user_meta_restore(struct user_meta **place, const struct labels *labels,
                       const struct labels *annotations)
{
    CHECK(labels && annotations);
    struct user_meta *meta = mem_alloc(sizeof *meta);
    const struct labels *from[] = {labels, annotations};
    struct labels *to[] = {&meta->labels, &meta->annotations};
    for (int i = 0; i < 2; i++) {
        *to[i] = (struct labels){ARENA_ARRAY(&meta->arena, struct label, from[i]->len), from[i]->len};
        for (size_t n = 0; n < from[i]->len; n++)
            to[i]->items[n] = (struct label){arena_str(&meta->arena, from[i]->items[n].key),
                                             arena_str(&meta->arena, from[i]->items[n].value)};
    }
    user_meta_free(*place);
    *place = meta;
}

void job_set_meta(struct step *step, struct job *job, struct task *task, const struct doc *labels,
                  const struct doc *annotations)
{
    CHECK(!task || task->job == job);
    struct user_meta **place = task ? &task->meta : &job->meta;
    struct arena arena ARENA_CLEANUP = {0};
    struct labels wanted = copy(&arena, labels), notes = copy(&arena, annotations);
    if (*place && same(&(*place)->labels, &wanted) && same(&(*place)->annotations, &notes))
        return;
    user_meta_restore(place, &wanted, &notes);
    step_changed(step, CHANGE_MODIFIED, task ? ref_task(task) : ref_job(job));
}
