/* schema_jobset.c - batch/v1 Job, jobset.x-k8s.io/v1alpha2 JobSet, and the small kinds beside them.
 */
#include "core/words/limits.h"
#include "core/spec/schema_stored.h"

enum { FAILURE_RULES_MAX = 64, PATTERNS_MAX = 64 };

/* clang-format off */
/* --- Job ----------------------------------------------------------------------------------------------- */
static const struct schema on_exit_codes = {"PodFailurePolicyOnExitCodesRequirement", TABLE(
    STRING("containerName"), STRING("operator", REQUIRED, ENUM("In,NotIn")),
    INTS("values", REQUIRED, AT_MOST(255)))};
static const struct schema on_condition = {"PodFailurePolicyOnPodConditionsPattern", TABLE(
    STRING("type", REQUIRED), STRING("status"))};
static const struct schema pod_failure_rule = {"PodFailurePolicyRule", TABLE(
    STRING("action", REQUIRED, ENUM("FailJob,FailIndex,Ignore,Count")), OBJECT("onExitCodes", on_exit_codes),
    LIST("onPodConditions", on_condition, AT_MOST(20)))};
static const struct schema pod_failure_policy = {"PodFailurePolicy", TABLE(
    LIST("rules", pod_failure_rule, REQUIRED, AT_MOST(20)))};
static const struct schema job_success_rule = {"SuccessPolicyRule", TABLE(
    STRING("succeededIndexes"), INT32("succeededCount"))};
static const struct schema job_success_policy = {"SuccessPolicy", TABLE(
    LIST("rules", job_success_rule, REQUIRED, AT_MOST(20)))};
const struct schema schema_job_spec = {"JobSpec", TABLE(
    INT32("parallelism"), INT32("completions"), STRING("completionMode", ENUM("NonIndexed,Indexed")),
    INT32("backoffLimit"), INT32("backoffLimitPerIndex"), INT32("maxFailedIndexes"),
    INT64("activeDeadlineSeconds"), INT32("ttlSecondsAfterFinished"), BOOLEAN("suspend"),
    OBJECT("podFailurePolicy", pod_failure_policy), OBJECT("successPolicy", job_success_policy),
    STRING("podReplacementPolicy", ENUM("TerminatingOrFailed,Failed")), STRING("managedBy"),
    BOOLEAN("manualSelector"), OBJECT("selector", schema_label_selector),
    OBJECT("template", schema_pod_template, REQUIRED))};
static const struct schema job_template = {"JobTemplateSpec", TABLE(
    OBJECT("metadata", schema_embedded_meta), OBJECT("spec", schema_job_spec))};

/* --- JobSet -------------------------------------------------------------------------------------------- */
static const struct schema depends_on = {"DependsOn", TABLE(
    STRING("name", REQUIRED), STRING("status", REQUIRED, ENUM("Ready,Complete")))};
static const struct schema replicated_job = {"ReplicatedJob", TABLE(
    STRING("name", REQUIRED), STRING("groupName", DEFAULT("default")), INT32("replicas", DEFAULT("1")),
    OBJECT("template", job_template, REQUIRED), KEYED("dependsOn", depends_on, "name", AT_MOST(5)))};
static const struct schema network = {"Network", TABLE(
    BOOLEAN("enableDNSHostnames"), STRING("subdomain"), BOOLEAN("publishNotReadyAddresses"))};
static const struct schema success_policy = {"SuccessPolicy", TABLE(
    STRING("operator", REQUIRED, ENUM("All,Any")), STRINGS("targetReplicatedJobs"))};
static const struct schema failure_rule = {"FailurePolicyRule", TABLE(
    STRING("name"),
    STRING("action", REQUIRED, ENUM("FailJobSet,RestartJobSet,RestartJobSetAndIgnoreMaxRestarts,RestartJob,"
                                    "RestartJobAndIgnoreMaxRestarts")),
    STRINGS("onJobFailureReasons"), STRINGS("onJobFailureMessagePatterns", AT_MOST(PATTERNS_MAX)),
    STRINGS("targetReplicatedJobs"))};
static const struct schema failure_policy = {"FailurePolicy", TABLE(
    INT32("maxRestarts", DEFAULT("0")),
    STRING("restartStrategy", ENUM("Recreate,BlockingRecreate,InPlaceRestart"), DEFAULT("Recreate")),
    LIST("rules", failure_rule, AT_MOST(FAILURE_RULES_MAX)))};
static const struct schema startup_policy = {"StartupPolicy", TABLE(
    STRING("startupPolicyOrder", REQUIRED, ENUM("AnyOrder,InOrder")))};
static const struct schema coordinator = {"Coordinator", TABLE(
    STRING("replicatedJob", REQUIRED), INT32("jobIndex", DEFAULT("0")), INT32("podIndex", DEFAULT("0")))};
static const struct schema claim = {"PersistentVolumeClaim", TABLE(
    STRING("apiVersion"), STRING("kind"), OBJECT("metadata", schema_embedded_meta),
    OBJECT("spec", schema_claim_spec), ANYTHING("status"))};
static const struct schema retention = {"VolumeRetentionPolicy", TABLE(
    STRING("whenDeleted", ENUM("Delete,Retain"), DEFAULT("Delete")))};
static const struct schema claim_policy = {"VolumeClaimPolicy", TABLE(
    LIST("templates", claim, AT_MOST(50)), OBJECT("retentionPolicy", retention))};
const struct schema schema_jobset_spec = {"JobSetSpec", TABLE(
    KEYED("replicatedJobs", replicated_job, "name", AT_MOST(REPLICATED_JOBS_MAX)), OBJECT("network", network),
    OBJECT("successPolicy", success_policy), OBJECT("failurePolicy", failure_policy),
    OBJECT("startupPolicy", startup_policy), BOOLEAN("suspend"), OBJECT("coordinator", coordinator),
    STRING("managedBy"), INT32("ttlSecondsAfterFinished"),
    LIST("volumeClaimPolicies", claim_policy, AT_MOST(50)),
    ANYTHING("scheduling"))};
/* The control plane writes the status: a user's status is dropped, so it is not checked. */
const struct schema schema_jobset = {"JobSet", TABLE(
    STRING("apiVersion"), STRING("kind"), OBJECT("metadata", schema_object_meta),
    OBJECT("spec", schema_jobset_spec), ANYTHING("status"))};
const struct schema schema_job = {"Job", TABLE(
    STRING("apiVersion"), STRING("kind"), OBJECT("metadata", schema_object_meta),
    OBJECT("spec", schema_job_spec),
    ANYTHING("status"))};
const struct schema schema_pod = {"Pod", TABLE(
    STRING("apiVersion"), STRING("kind"), OBJECT("metadata", schema_object_meta),
    OBJECT("spec", schema_pod_spec),
    ANYTHING("status"))};
/* clang-format on */
