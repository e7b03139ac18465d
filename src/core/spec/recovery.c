/* recovery.c - the annotations of the recovery ladder (ladder/ladder.h) and of spares: reads them into the
 * typed view, and checks them wherever a user may write them: on the workload itself and its templates. An
 * annotation of the workload takes precedence over one of a template. */
#include "core/words/limits.h"
#include "core/spec/read.h"
#include "core/spec/validate.h"

#include <stdio.h>

#define SPARES_KEY     "phalanx.dev/spares"
#define SPARE_KIND_KEY "phalanx.dev/spare-kind"

/* Finds a word of the ladder. Our words are annotations; some of MindCluster's are labels. */
static struct str find_word(const struct labels *annotations, const struct labels *labels,
                            enum ladder_word word)
{
    CHECK(word < LADDER_WORDS_ALL);
    struct str key = str_from(ladder_keys[word]), text = labels_get(annotations, key, (struct str){0});
    return !text.data && word >= LADDER_WORDS ? labels_get(labels, key, text) : text;
}

static struct str word_of(const struct jobset_spec *spec, enum ladder_word word)
{
    struct str text = find_word(&spec->annotations, &spec->labels, word);
    for (size_t i = 0; i < spec->rjob_count && !text.data; i++)
        text = find_word(&spec->rjobs[i].job.pod.annotations, &spec->rjobs[i].job.pod.labels, word);
    return text;
}

/* Returns the annotation of the workload, else of the Job template, else of the Pod template. */
static struct str rjob_word(const struct jobset_spec *spec, const struct rjob_spec *rjob, struct str key)
{
    struct str text = labels_get(&rjob->job.pod.annotations, key, STR(""));
    text = labels_get(&rjob->annotations, key, text);
    return labels_get(&spec->annotations, key, text);
}

/* A spare takes over an index with its rank, so a Job without ranks has no spares. */
bool spares_allowed(const struct job_spec *job)
{
    return job->indexed && job->completions >= 0 && !job->pod.node_name.len;
}

static void read_spares(struct jobset_spec *spec)
{
    for (size_t r = 0; r < spec->rjob_count; r++) {
        struct rjob_spec *rjob = &spec->rjobs[r];
        struct str text = rjob_word(spec, rjob, STR(SPARES_KEY));
        struct str kind = rjob_word(spec, rjob, STR(SPARE_KIND_KEY));
        int64_t count = 0; /* an invalid value is refused below */
        (void)str_to_i64(text, 0, SPARES_PER_JOB_MAX, &count);
        CHECK(count >= 0 && count <= SPARES_PER_JOB_MAX);
        rjob->spares = spares_allowed(&rjob->job) ? (uint32_t)count : 0;
        rjob->cold_spares = str_is(kind, "cold");
        rjob->spares_said = text.len > 0;
        rjob->spare_kind_said = kind.len > 0;
    }
}

bool spares_of_queue(const struct doc *queue, struct queue_spares *ret)
{
    const struct doc *annotations = doc_path(queue, "metadata", "annotations", NULL);
    int64_t count;
    if (!str_to_i64(doc_str(doc_get(annotations, SPARES_KEY), STR("")), 0, SPARES_PER_JOB_MAX, &count))
        return false;
    CHECK(count >= 0 && count <= SPARES_PER_JOB_MAX);
    ret->count = (uint32_t)count;
    ret->cold = str_is(doc_str(doc_get(annotations, SPARE_KIND_KEY), STR("")), "cold");
    return true;
}

/* Returns whether the workload has any annotation or label, which might be a word of the ladder. */
static bool may_have_words(const struct jobset_spec *spec)
{
    size_t count = spec->annotations.len + spec->labels.len;
    for (size_t i = 0; i < spec->rjob_count; i++)
        count += spec->rjobs[i].job.pod.annotations.len + spec->rjobs[i].job.pod.labels.len;
    return count > 0;
}

void read_recovery(struct jobset_spec *spec)
{
    read_spares(spec);
    ladder_defaults(&spec->recovery);
    if (!may_have_words(spec))
        return;
    struct str texts[LADDER_WORDS_ALL] = {0};
    for (int word = LADDER_WORDS; word < LADDER_WORDS_ALL; word++)
        texts[word] = word_of(spec, (enum ladder_word)word);
    ladder_take_theirs(&spec->recovery, texts);
    for (int word = 0; word < LADDER_WORDS; word++) {
        struct str text = word_of(spec, (enum ladder_word)word);
        if (text.data)
            ladder_take(&spec->recovery, (enum ladder_word)word, text,
                        NULL); /* an invalid value is refused below */
    }
}

void validate_spares(const struct doc *meta, const struct field_path *path, struct field_errors *errors)
{
    const struct doc *annotations = doc_get(meta, "annotations");
    const struct doc *count = doc_get(annotations, SPARES_KEY), *kind = doc_get(annotations, SPARE_KIND_KEY);
    struct str text = doc_str(kind, STR(""));
    int64_t number;
    if (count && !str_to_i64(doc_str(count, STR("")), 0, SPARES_PER_JOB_MAX, &number)) {
        char why[64];
        snprintf(why, sizeof why, "must be a number from 0 to %d", SPARES_PER_JOB_MAX);
        path_invalid(errors, AT_KEY(AT(path, "annotations"), STR(SPARES_KEY)), count, doc_str(count, STR("")),
                     why);
    }
    if (kind && !str_is(text, "warm") && !str_is(text, "cold"))
        path_invalid(errors, AT_KEY(AT(path, "annotations"), STR(SPARE_KIND_KEY)), kind, text,
                     "must be warm or cold");
}

void validate_recovery(const struct doc *meta, const struct field_path *path, struct field_errors *errors)
{
    const struct doc *annotations = doc_get(meta, "annotations");
    struct ladder_settings settings;
    if (doc_len(annotations) == 0)
        return;
    validate_spares(meta, path, errors);
    ladder_defaults(&settings);
    for (int word = 0; word < LADDER_WORDS; word++) {
        struct str key = str_from(ladder_keys[word]);
        const struct doc *node = doc_get_str(annotations, key);
        struct error error = {0};
        if (node && !ladder_take(&settings, (enum ladder_word)word, doc_str(node, STR("")), &error))
            path_invalid(errors, AT_KEY(AT(path, "annotations"), key), node, doc_str(node, STR("")),
                         error.text);
    }
}
