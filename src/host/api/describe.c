/* Sentences for `kubectl explain`, in our own words: what a field does here. docs/jobset.md has more. */
#include "host/api/openapi.h"

#include <string.h>

static const struct {
    const char *schema; /* NULL: in every schema */
    const char *field;
    const char *text;
} texts[] = {
    {NULL, "apiVersion", "Group and version of the object."},
    {NULL, "kind", "Kind of the object."},
    {NULL, "metadata", "Name, namespace, labels, annotations, and what the server keeps."},
    {"JobSet", "spec", "What is wanted: replicated Jobs, and what to do when one fails or ends."},
    {"JobSet", "status", "What is: conditions, restarts, state of each replicated job."},
    {"JobSetSpec", "replicatedJobs", "Groups of identical Jobs. They start, restart and stop as one."},
    {"JobSetSpec", "network", "Host names of the pods, and whether peers find them before they are ready."},
    {"JobSetSpec", "successPolicy", "Which Jobs have to complete for the JobSet to be complete."},
    {"JobSetSpec", "failurePolicy", "What a failed Job does to the JobSet. Without it the JobSet fails."},
    {"JobSetSpec", "startupPolicy", "Whether replicated jobs start in their order. dependsOn says it finer."},
    {"JobSetSpec", "suspend", "True stops all pods and frees their machines; false starts them again."},
    {"JobSetSpec", "coordinator", "The pod whose address every pod gets as coordinator."},
    {"JobSetSpec", "managedBy", "Who runs this JobSet. Anybody but JobSet's controller: it is left alone."},
    {"JobSetSpec", "ttlSecondsAfterFinished", "Seconds after its end until the JobSet is deleted."},
    {"JobSetSpec", "volumeClaimPolicies", "Volumes made for the JobSet, shared by the pods that mount them."},
    {"JobSetSpec", "scheduling", "Which pods are placed together, where, and how they may be disrupted."},
    {"ReplicatedJob", "name", "Name of the group; part of its Jobs' names."},
    {"ReplicatedJob", "groupName", "Groups may share a name; it becomes a label of their Jobs."},
    {"ReplicatedJob", "replicas", "How many Jobs are made from the template."},
    {"ReplicatedJob", "template", "The Job that is made."},
    {"ReplicatedJob", "dependsOn", "Earlier groups that must be ready or complete before this one starts."},
    {"Network", "enableDNSHostnames", "Pods find each other by name (default true)."},
    {"Network", "subdomain", "Second part of the pods' names; default: the JobSet's name."},
    {"Network", "publishNotReadyAddresses", "Names resolve before the pods are ready (default true)."},
    {"SuccessPolicy", "operator", "All: every Job has to complete. Any: one is enough."},
    {"SuccessPolicy", "targetReplicatedJobs", "The groups that count; none named: all."},
    {"FailurePolicy", "maxRestarts", "Restarts of the whole JobSet until it is failed."},
    {"FailurePolicy", "restartStrategy",
     "Recreate starts new pods as machines become free, BlockingRecreate when all old ones are gone, "
     "InPlaceRestart keeps the pods and restarts what runs in them."},
    {"FailurePolicy", "rules", "The first rule that matches a failed Job decides."},
    {"FailurePolicyRule", "action", "What happens when the rule matches."},
    {"FailurePolicyRule", "onJobFailureReasons", "Reasons of the Job's failure; none: any."},
    {"FailurePolicyRule", "onJobFailureMessagePatterns", "RE2 patterns searched for in the Job's message."},
    {"FailurePolicyRule", "targetReplicatedJobs", "The groups that the rule is for; none: all."},
    {"StartupPolicy", "startupPolicyOrder", "AnyOrder or InOrder."},
    {"JobTemplateSpec", "spec", "How many pods the Job has and what counts as its success."},
    {"JobSpec", "parallelism", "Pods that run at once."},
    {"JobSpec", "completions", "Pods that have to succeed."},
    {"JobSpec", "completionMode", "Indexed: each pod has an index, 0 and up. NonIndexed: any pods will do."},
    {"JobSpec", "backoffLimit", "Failures of pods until the Job fails (default 6)."},
    {"JobSpec", "backoffLimitPerIndex", "Failures of one index until that index fails."},
    {"JobSpec", "maxFailedIndexes", "Failed indexes until the Job fails."},
    {"JobSpec", "activeDeadlineSeconds", "Seconds that the Job may run."},
    {"JobSpec", "podFailurePolicy", "Which failures count, are ignored, or fail the Job at once."},
    {"JobSpec", "podReplacementPolicy", "When a pod that is going away is replaced."},
    {"JobSpec", "ttlSecondsAfterFinished", "Seconds after its end until the Job is deleted."},
    {"JobSpec", "suspend", "True: no pods run."},
    {"JobSpec", "template", "The pod that is made."},
    {"PodTemplateSpec", "spec", "Containers, where they may run, and what they may use."},
    {"PodSpec", "containers", "Processes that run side by side; the first one is the main one."},
    {"PodSpec", "initContainers",
     "Run one after the other before the containers; with restartPolicy Always beside them."},
    {"PodSpec", "nodeSelector", "Labels that a machine must have."},
    {"PodSpec", "tolerations", "Taints of machines that do not keep the pod away."},
    {"PodSpec", "priorityClassName", "Decides who goes first, and who gives way."},
    {"PodSpec", "restartPolicy", "Whether a container that ended is started again in its place."},
    {"PodSpec", "terminationGracePeriodSeconds", "Time between SIGTERM and SIGKILL (default 30)."},
    {"PodSpec", "activeDeadlineSeconds", "Seconds that the pod may run."},
    {"PodSpec", "hostNetwork", "The pod uses its machine's network; here it always does."},
    {"PodSpec", "serviceAccountName", "Kept, and shown to the pod."},
    {"PodSpec", "volumes", "Directories and files that containers can mount."},
    {"PodSpec", "schedulingGates", "While there are any, the pod waits."},
    {"PodSpec", "nodeName", "The machine that it runs on."},
    {"Container", "name", "Name of the container; unique in the pod."},
    {"Container", "image", "Recorded only: commands run directly on the machine."},
    {"Container", "command", "The program and its first arguments. $(VAR) is replaced."},
    {"Container", "args", "Further arguments. $(VAR) is replaced."},
    {"Container", "env", "Environment variables."},
    {"Container", "envFrom", "ConfigMaps and Secrets whose keys become variables."},
    {"Container", "workingDir", "Where the program starts."},
    {"Container", "resources", "Chips, cpu and memory that the container needs and may use."},
    {"Container", "volumeMounts", "Where volumes appear."},
    {"Container", "ports", "Ports that the container listens on; for people and peers."},
    {"Container", "startupProbe", "Until it succeeds the other probes wait."},
    {"Container", "livenessProbe", "When it fails the container is restarted."},
    {"Container", "readinessProbe", "While it fails the pod is not ready."},
    {"ResourceRequirements", "requests",
     "What is set aside: cpu, memory, google.com/tpu, nvidia.com/gpu, ..."},
    {"ResourceRequirements", "limits", "What may be used at most; chips are what is asked for here."},
    {"ObjectMeta", "name", "Unique in the namespace; cannot change."},
    {"ObjectMeta", "generateName", "The name is this and five random characters."},
    {"ObjectMeta", "namespace", "Where the object lives."},
    {"ObjectMeta", "labels", "Short values to select by."},
    {"ObjectMeta", "annotations", "Any texts."},
    {"ObjectMeta", "finalizers", "While there are any, a deleted object stays."},
    {"ObjectMeta", "ownerReferences", "Objects that this one belongs to; it goes with the last of them."},
    {"ObjectMeta", "managedFields", "Which client owns which field."},
    {"ObjectMeta", "resourceVersion", "Changes with every change of the object."},
    {"ObjectMeta", "generation", "Counts the changes of spec."},
    {"ObjectMeta", "uid", "Unique for all time."},
    {"ObjectMeta", "creationTimestamp", "When the server made it."},
    {"ObjectMeta", "deletionTimestamp", "When its deletion was asked for."},
    {"ConfigMap", "data", "Texts by key."},
    {"ConfigMap", "binaryData", "Bytes by key, in base64."},
    {"Secret", "data", "Bytes by key, in base64."},
    {"Secret", "stringData", "Texts by key; stored as data."},
};

const char *openapi_describe(const char *schema, const char *field)
{
    const char *general = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(texts[i].field, field) != 0)
            continue;
        if (!texts[i].schema)
            general = texts[i].text;
        else if (strcmp(texts[i].schema, schema) == 0)
            return texts[i].text;
    }
    return general;
}
