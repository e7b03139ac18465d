/* validate_slice.c - the annotation phalanx.dev/slice: the shape of the network that a JobSet runs on. Its
 * tasks fill the shape exactly, one for each machine of 2x2x1 chips. */
#include <stdio.h>

#include "base/check.h"
#include "core/fabric/shape.h"
#include "core/spec/path.h"
#include "core/spec/validate.h"

enum { MACHINE_CHIPS = 4, WHY_MAX = 256 };

static void check_job(const struct doc *node, const struct rjob_spec *rjob, const struct field_path *at,
                      struct field_errors *errors)
{
    const struct job_spec *job = &rjob->job;
    char why[WHY_MAX];
    const char *wrong = NULL;
    CHECK(node && rjob->replicas >= 0 && job->parallelism >= 0);
    if (job->pod.chips != MACHINE_CHIPS)
        wrong = "each of its tasks needs all 4 chips of a machine";
    else if (!job->indexed || job->completions != job->parallelism)
        wrong = "its Job is to be Indexed, with as many completions as its parallelism";
    else if (rjob->spares > 0)
        wrong = "a slice has no room for spares: remove phalanx.dev/spares";
    else if (job->pod.node_name.len > 0)
        wrong = "its tasks cannot name their machines";
    if (!wrong)
        return;
    snprintf(why, sizeof why, "replicated job " STR_FORMAT ": %s", STR_ARG(rjob->name), wrong);
    path_invalid(errors, at, node, doc_str(node, STR("")), why);
}

static void check_on_loss(const struct doc *annotations, bool has_slice, struct field_errors *errors)
{
    const struct doc *node = doc_get_str(annotations, STR(SLICE_ON_LOSS_KEY));
    const struct field_path *at = AT_KEY(AT(AT(NULL, "metadata"), "annotations"), STR(SLICE_ON_LOSS_KEY));
    struct str text = doc_str(node, STR(""));
    if (node && !str_is(text, "Reroute") && !str_is(text, "Move"))
        path_unsupported(errors, at, node, text, "Reroute,Move");
    else if (node && !has_slice)
        path_invalid(errors, at, node, text, "there is no slice: add the annotation " SLICE_KEY);
}

void workload_validate_slice(const struct doc *object, const struct jobset_spec *spec,
                             struct field_errors *errors)
{
    const struct doc *annotations = doc_get(doc_get(object, "metadata"), "annotations");
    const struct doc *node = doc_get_str(annotations, STR(SLICE_KEY));
    const struct field_path *at = AT_KEY(AT(AT(NULL, "metadata"), "annotations"), STR(SLICE_KEY));
    struct str text = doc_str(node, STR(""));
    struct slice_shape shape;
    struct error error = {0};
    char why[WHY_MAX];
    int64_t tasks = 0;
    check_on_loss(annotations, node != NULL, errors);
    if (!node)
        return;
    if (slice_shape_parse(text, &shape, &error) < 0) {
        path_invalid(errors, at, node, text, error.text);
        return;
    }
    CHECK(slice_shape_chips(&shape) % MACHINE_CHIPS == 0 && slice_shape_chips(&shape) <= SLICE_CHIPS_MAX);
    for (size_t r = 0; r < spec->rjob_count; r++) {
        check_job(node, &spec->rjobs[r], at, errors);
        tasks += (int64_t)spec->rjobs[r].replicas * spec->rjobs[r].job.parallelism;
        if (spec->rjobs[r].depend_count > 0 || spec->in_order) {
            path_invalid(
                errors, at, node, text,
                "a slice is placed as one gang: all replicated jobs start together, without dependsOn "
                "and startupPolicy InOrder");
            break;
        }
    }
    if (spec->replica_size > 0)
        path_invalid(errors, at, node, text, "a slice cannot shrink: remove phalanx.dev/replica-size");
    if (tasks != slice_shape_chips(&shape) / MACHINE_CHIPS) {
        snprintf(why, sizeof why,
                 "has %u chips on %u machines, and the replicated jobs have %lld tasks: one task for each "
                 "machine of 4 chips",
                 slice_shape_chips(&shape), slice_shape_chips(&shape) / MACHINE_CHIPS, (long long)tasks);
        path_invalid(errors, at, node, text, why);
    }
}
