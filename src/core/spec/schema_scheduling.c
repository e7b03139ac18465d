/* schema_scheduling.c - spec.scheduling of a JobSet (KEP-969 of kubernetes-sigs/jobset, after
 * scheduling.k8s.io's PodGroup). Its rows are no part of schema_jobset: earlier versions kept the field
 * unchecked, and the values in their logs must still be read.
 */
#include "core/spec/schema_table.h"
#include "core/spec/validate.h"

/* clang-format off */
static const struct schema gang = {"GangSchedulingPolicy", TABLE(INT32("minCount"))};
static const struct schema basic = {"BasicSchedulingPolicy", TABLE(ANYTHING("_"))};
static const struct schema policy = {"SchedulingPolicy", TABLE(OBJECT("gang", gang), OBJECT("basic", basic))};
static const struct schema topology = {"TopologyConstraint", TABLE(STRING("key"), STRING("level"))};
static const struct schema constraints = {"SchedulingConstraints", TABLE(
    LIST("topology", topology, AT_MOST(1)))};
static const struct schema claim = {"ResourceClaim", TABLE(STRING("name"))};
#define TERMS \
    OBJECT("schedulingPolicy", policy), OBJECT("schedulingConstraints", constraints), \
    ANYTHING("disruptionMode"), LIST("resourceClaims", claim, AT_MOST(4))
static const struct schema job = {"JobScheduling", TABLE(TERMS)};
static const struct schema group = {"ReplicatedJobScheduling", TABLE(
    STRINGS("targetReplicatedJobs", REQUIRED), TERMS, OBJECT("job", job))};
static const struct schema scheduling = {"JobSetScheduling", TABLE(
    TERMS, LIST("replicatedJobs", group, AT_MOST(50)))};
static const struct schema spec = {"JobSetSpec", TABLE(OBJECT("scheduling", scheduling))};
static const struct schema jobset = {"JobSet", TABLE(OBJECT("spec", spec))};
/* clang-format on */

bool schema_check_scheduling(const struct doc *object, struct field_errors *errors)
{
    size_t before = errors->list.len + errors->dropped;
    schema_check_types(&jobset, object, errors);
    return errors->list.len + errors->dropped == before;
}
