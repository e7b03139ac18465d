#include "core/spec/spec_test.h"

#define R0 "spec.replicatedJobs[0]"
#define J0 R0 ".template.spec"
#define P0 J0 ".template.spec"
#define C0 P0 ".containers[0]"
#define DNS1035                                                                                              \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "  \
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "      \
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')\n"

#define SIXTEEN "abcdefgh12345678"
#define LONG    SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN /* 128 */

struct row {
    const char *edits, *errors;
};

static void run_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf errors = {0};
        struct doc *doc = small(&arena);
        struct jobset_spec spec;
        edit_all(&arena, doc, rows[i].edits);
        check_write(&arena, doc, &spec, &errors);
        const char *got = errors.data ? errors.data : "";
        if (strcmp(got, rows[i].errors) != 0)
            fail_msg("%s:\n%snot\n%s", rows[i].edits, got, rows[i].errors);
    }
}
#define RUN(rows) run_rows(rows, sizeof rows / sizeof rows[0])

static void unknown_fields(void **state)
{
    static const struct row rows[] = {
        {"spec.bogus=1", "unknown field \"spec.bogus\"\n"},
        {"R0.bogus=1", "unknown field \"" R0 ".bogus\"\n"},
        {"bogus={}", "unknown field \"bogus\"\n"},
        {"metadata.label={}", "unknown field \"metadata.label\"; did you mean \"labels\"?\n"},
        {"C0.cmd=[]", "unknown field \"" C0 ".cmd\"\n"},
        {"C0.resources={\"limit\":{}}",
         "unknown field \"" C0 ".resources.limit\"; did you mean \"limits\"?\n"},
        {"C0.env=[{\"name\":\"A\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\",\"x\":0}}}]",
         "unknown field \"" C0 ".env[0].valueFrom.fieldRef.x\"\n"},
        {"P0.affinity={\"podAffinity\":{\"x\":1}}", "unknown field \"" P0 ".affinity.podAffinity.x\"\n"},
        {"metadata.labels={\"free\":\"x\"} ; P0.nodeSelector={\"any\":\"y\"} ; spec.scheduling={\"q\":1}",
         ""},
        {"spec.Suspend=true ; R0.Replicas=2",
         "unknown field \"spec.replicatedJobs[0].Replicas\"; did you mean \"replicas\"?\n"
         "unknown field \"spec.Suspend\"; did you mean \"suspend\"?\n"},
    };
    RUN(rows);
}

static void types(void **state)
{
    static const struct row rows[] = {
        {"R0.replicas=\"2\"", R0 ".replicas: Invalid value: \"string\": " R0
                                 ".replicas in body must be of type integer: \"string\"\n"},
        {"R0.replicas=2147483648",
         R0 ".replicas: Invalid value: 2147483648: must be between -2147483648 and 2147483647, inclusive\n"},
        {"R0.replicas=1.5", R0 ".replicas: Invalid value: \"number\": " R0
                               ".replicas in body must be of type integer: \"number\"\n"},
        {"R0.replicas=null", ""},
        {"spec.suspend=\"true\"", "spec.suspend: Invalid value: \"string\": spec.suspend in body must be of "
                                  "type boolean: \"string\"\n"},
        {"C0.env=[{\"name\":\"A\",\"value\":8080}]",
         C0 ".env[0].value: Invalid value: \"integer\": " C0
            ".env[0].value in body must be of type string: \"integer\"\n"},
        {"C0.command=\"sleep 1\"", C0 ".command: Invalid value: \"string\": " C0
                                      ".command in body must be of type array: \"string\"\n"},
        {"metadata.labels={\"a\":1}",
         "metadata.labels[a]: Invalid value: \"integer\": metadata.labels[a] in body "
         "must be of type string: \"integer\"\n"},
        {"spec.network=[]",
         "spec.network: Invalid value: \"array\": spec.network in body must be of type object: \"array\"\n"},
        {"spec=7", "spec: Invalid value: \"integer\": spec in body must be of type object: \"integer\"\n"},
        {"spec.replicatedJobs=[3]",
         R0 ": Invalid value: \"integer\": " R0 " in body must be of type object: \"integer\"\n"},
        {"C0.resources={\"limits\":{\"cpu\":\"x\",\"memory\":-1}}",
         C0 ".resources.limits[cpu]: Invalid value: \"x\": quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' and fit 64 bits\n" C0
            ".resources.limits[memory]: Invalid value: \"-1\": must be greater than or equal to 0\n"},
        {"spec.successPolicy={\"operator\":\"Some\"}",
         "spec.successPolicy.operator: Unsupported value: \"Some\": supported values: \"All\", \"Any\"\n"},
        {"spec.successPolicy={}", "spec.successPolicy.operator: Required value\n"},
        {"spec.startupPolicy={\"startupPolicyOrder\":\"\"}",
         "spec.startupPolicy.startupPolicyOrder: Required value\n"},
        {"R0.name=", R0 ".name: Required value\n"},
        {"R0.template=", R0 ".template: Required value\n"},
        {"J0.template=", J0 ".template: Required value\n"},
        {"P0.containers=", P0 ".containers: Required value\n"},
        {"spec.replicatedJobs.1.name=\"a\"", "spec.replicatedJobs[1].name: Duplicate value: \"a\"\n"},
        {"C0.ports=[{\"containerPort\":1},{\"containerPort\":1}]",
         C0 ".ports[1]: Duplicate value: {\"containerPort\":1,\"protocol\":\"TCP\"}\n"},
        {"C0.ports=[{\"containerPort\":1},{\"containerPort\":1,\"protocol\":\"UDP\"}]", ""},
        {"P0.restartPolicy=\"always\"", P0 ".restartPolicy: Unsupported value: \"always\": supported values: "
                                           "\"Always\", \"OnFailure\", \"Never\"\n"},
    };
    RUN(rows);
}

static void metadata(void **state)
{
    static const struct row rows[] = {
        {"metadata.name=", "metadata.name: Required value: name or generateName is required\n"},
        {"metadata.name= ; metadata.generateName=\"js-\"", ""},
        {"metadata.name=\"Js\"",
         "metadata.name: Invalid value: \"Js\": a lowercase RFC 1123 subdomain must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
         "'example.com', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n" R0
         ".name: Invalid value: \"Js-a-0\": " DNS1035
         "spec.replicatedJobs[1].name: Invalid value: \"Js-b-0\": " DNS1035},
        {"metadata.name=\"js.x\" ; spec.replicatedJobs=[]", ""},
        {"metadata.labels={\"a\":\"b c\"}", "metadata.labels: Invalid value: \"b c\": a valid label must be "
                                            "an empty string or consist of alphanumeric "
                                            "characters, '-', '_' or '.', and must start and end with an "
                                            "alphanumeric character (e.g. 'MyValue',  or "
                                            "'my_value',  or '12345', regex used for validation is "
                                            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\n"},
    };
    RUN(rows);
}

static void names(void **state)
{
    /* A job's name adds "-a-0", a pod's "-0-abcde" more, or "-1-abcde" for completions 2. */
    static const struct row rows[] = {
        {"R0.name=\"A\"", R0 ".name: Invalid value: \"js-A-0\": " DNS1035},
        {"R0.name=\"\"", R0 ".name: Required value\n"},
        {"metadata.name=\"a2345678901234567890123456789012345678901234567890123456789\"",
         "metadata.name: Invalid value: \"a2345678901234567890123456789012345678901234567890123456789\": "
         "JobSet name "
         "is too long, pod names generated for this JobSet will exceed 63 characters\n"},
        {"metadata.name=\"a23456789012345678901234567890123456789012345678901234567890\"",
         "metadata.name: Invalid value: \"a23456789012345678901234567890123456789012345678901234567890\": "
         "JobSet "
         "name is too long, job names generated for this JobSet will exceed 63 characters\n"},
        {"metadata.name=\"a234567890123456789012345678901234567890123456789012\"",
         "metadata.name: Invalid value: \"a234567890123456789012345678901234567890123456789012\": JobSet "
         "name is too "
         "long, pod names generated for this JobSet will exceed 63 characters\n"},
        {"R0.groupName=\"1x\"", R0 ".groupName: Invalid value: \"1x\": " DNS1035},
        {"spec.network={\"subdomain\":\"a.b\"}", "spec.network.subdomain: Invalid value: \"a.b\": " DNS1035},
        {"spec.network={\"subdomain\":\"a234567890123456789012345678901234567890123456789012345678901234\"}",
         "spec.network.subdomain: Invalid value: "
         "\"a234567890123456789012345678901234567890123456789012345678901234\": .spec.network.subdomain is "
         "too long, "
         "must be less than 63 characters\n"},
        {"spec.managedBy=\"me\"",
         "spec.managedBy: Invalid value: \"me\": must be a domain-prefixed path (such as \"acme.io/foo\")\n"},
        {"spec.managedBy=\"kueue.x-k8s.io/multikueue\"", ""},
    };
    RUN(rows);
}

static void counts(void **state)
{
    static const struct row rows[] = {
        {"R0.replicas=0", ""},
        {"R0.replicas=-1", R0 ".replicas: Invalid value: -1: must be greater than or equal to 0\n"},
        {"J0.parallelism=-1 ; J0.completions=1",
         J0 ".parallelism: Invalid value: -1: must be greater than or equal to 0\n"},
        {"J0.parallelism=2", J0 ".completions: Required value: when completion mode is Indexed\n"},
        {"J0.parallelism=2 ; J0.completionMode=\"NonIndexed\"", ""},
        {"J0.completions=3", ""},
        {"R0.replicas=65536 ; J0.parallelism=65536 ; J0.completions=1",
         R0 ".replicas: Invalid value: 65536: the product of replicas and parallelism must not exceed "
            "2147483647 for "
            "replicatedJob 'a'\nspec.replicatedJobs: Invalid value: 4294967296: the sum of replicas x "
            "max(parallelism, completions, 1) must be at most 65536\n"},
        {"R0.replicas=2147483647 ; J0.parallelism=0 ; J0.completions=0",
         "spec.replicatedJobs: Invalid value: 2147483647: the sum of replicas x max(parallelism, "
         "completions, 1) must "
         "be at most 65536\n"},
        {"J0.completions=2147483647", "spec.replicatedJobs: Invalid value: 2147483647: the sum of replicas x "
                                      "max(parallelism, completions, 1) must "
                                      "be at most 65536\n"},
        {"J0.completions=65534", ""},
        {"spec.ttlSecondsAfterFinished=-1",
         "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0\n"},
        {"J0.backoffLimit=-1", J0 ".backoffLimit: Invalid value: -1: must be greater than or equal to 0\n"},
        {"P0.terminationGracePeriodSeconds=-1 ; P0.activeDeadlineSeconds=0",
         P0 ".terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0\n" P0
            ".activeDeadlineSeconds: Invalid value: 0: must be greater than or equal to 1\n"},
        {"J0.backoffLimitPerIndex=1", P0 ".restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is "
                                         "supported when backoffLimitPerIndex is "
                                         "specified\n"},
        {"J0.backoffLimitPerIndex=1 ; J0.maxFailedIndexes=2 ; P0.restartPolicy=\"Never\"",
         J0 ".maxFailedIndexes: Invalid value: 2: must be less than or equal to completions\n"},
        {"J0.maxFailedIndexes=1",
         J0 ".backoffLimitPerIndex: Required value: when maxFailedIndexes is specified\n"},
        {"P0.restartPolicy=\"Always\"",
         P0 ".restartPolicy: Unsupported value: \"Always\": supported values: \"OnFailure\", \"Never\"\n"},
        {"spec.replicatedJobs=[]", ""},
        {"spec.replicatedJobs=null", ""},
    };
    RUN(rows);
}

static void pod_failure_policy(void **state)
{
#define RULE(text) "P0.restartPolicy=\"Never\" ; J0.podFailurePolicy={\"rules\":[" text "]}"
#define AT_RULE    J0 ".podFailurePolicy.rules[0]"
    static const struct row rows[] = {
        {RULE("{\"action\":\"FailJob\",\"onPodConditions\":[],\"onExitCodes\":{\"operator\":\"In\","
              "\"values\":[1]}}"),
         ""},
        {RULE("{\"action\":\"Ignore\",\"onPodConditions\":[{\"type\":\"DisruptionTarget\"}]}"), ""},
        {"J0.podFailurePolicy={\"rules\":[]}", P0
         ".restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is "
         "specified\n"},
        {RULE("{\"action\":\"Stop\"}"),
         AT_RULE ".action: Unsupported value: \"Stop\": supported values: \"FailJob\", "
                 "\"FailIndex\", \"Ignore\", \"Count\"\n"},
        {RULE("{\"action\":\"Count\"}"),
         AT_RULE ": Invalid value: \"object\": specifying one of OnExitCodes and "
                 "OnPodConditions is required\n"},
        {RULE("{\"action\":\"FailJob\",\"onExitCodes\":{\"operator\":\"In\",\"values\":[0]}}"),
         AT_RULE ".onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator\n"},
        {RULE("{\"action\":\"FailJob\",\"onExitCodes\":{\"operator\":\"NotIn\",\"values\":[0,3,2]}}"),
         AT_RULE ".onExitCodes.values: Invalid value: \"array\": must be ordered\n"},
        {RULE("{\"action\":\"FailJob\",\"onExitCodes\":{\"operator\":\"In\",\"values\":[1,1]}}"),
         AT_RULE ".onExitCodes.values[1]: Duplicate value: 1\n"},
        {RULE("{\"action\":\"FailIndex\",\"onExitCodes\":{\"operator\":\"In\",\"values\":[1]}}"),
         AT_RULE ".action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set\n"},
        {RULE("") " ; J0.podReplacementPolicy=\"TerminatingOrFailed\"", J0
         ".podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: \"Failed\"\n"},
    };
    RUN(rows);
}

static void pods(void **state)
{
    static const struct row rows[] = {
        {"P0.containers=[]", P0 ".containers: Required value\n"},
        {"C0.name=\"a_b\"", C0
         ".name: Invalid value: \"a_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
         "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
         "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"},
        {"C0.image=", C0 ".image: Required value\n"},
        {"C0.image=\"i \"",
         C0 ".image: Invalid value: \"i \": must not have leading or trailing whitespace\n"},
        {"P0.initContainers=[{\"name\":\"d\"}]", P0 ".initContainers[0].image: Required value\n"},
        {"P0.initContainers=[{\"name\":\"c\",\"image\":\"i\"}]",
         P0 ".initContainers[0].name: Duplicate value: \"c\"\n"},
        {"C0.env=[{\"name\":\"A=B\"}]", C0 ".env[0].name: Invalid value: \"A=B\": a valid environment "
                                           "variable name must consist only of printable "
                                           "ASCII characters other than '='\n"},
        {"C0.env=[{\"name\":\"A\",\"value\":\"x\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata."
         "uid\"}}}]",
         C0 ".env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty\n"},
        {"C0.env=[{\"name\":\"A\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"spec.x\"}}}]",
         C0 ".env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.x\": error converting fieldPath: "
            "field label "
            "not supported: spec.x\n"},
        {"C0.env=[{\"name\":\"A\",\"valueFrom\":{}}]",
         C0 ".env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, "
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`\n"},
        {"C0.ports=[{\"containerPort\":0}]",
         C0 ".ports[0].containerPort: Invalid value: 0: must be between 1 and 65535, inclusive\n"},
        {"C0.resources={\"limits\":{\"google.com/tpu\":4}}", ""},
        {"C0.resources={\"requests\":{\"huawei.com/Ascend910\":\"8\"}}", ""},
        {"C0.resources={\"limits\":{\"google.com/tpu\":4},\"requests\":{\"google.com/tpu\":2}}",
         C0 ".resources.requests[google.com/tpu]: Invalid value: \"2\": must be equal to google.com/tpu "
            "limit of 4\n"},
        {"C0.resources={\"limits\":{\"cpu\":\"1\"},\"requests\":{\"cpu\":\"1500m\"}}",
         C0 ".resources.requests[cpu]: Invalid value: \"1500m\": must be less than or equal to cpu limit of "
            "1\n"},
        {"C0.resources={\"limits\":{\"google.com/tpu\":4,\"nvidia.com/gpu\":1}}",
         C0 ".resources.limits[nvidia.com/gpu]: Forbidden: a pod can ask for one kind of chips; it asks for "
            "google.com/tpu too\n"},
        {"C0.resources={\"limits\":{\"google.com/tpu\":\"500m\"}}",
         C0 ".resources.limits[google.com/tpu]: Invalid value: \"500m\": must be an integer\n"},
        {"C0.resources={\"limits\":{\"google.com/tpu\":65}}",
         C0 ".resources.limits[google.com/tpu]: Invalid value: \"65\": must be at most 64: the chips of a "
            "task are "
            "those of one machine\n"},
        {"C0.resources={\"limits\":{\"tpu\":1}}", C0 ".resources.limits[tpu]: Invalid value: \"tpu\": must "
                                                     "be a standard resource type or fully qualified\n"},
        {"P0.tolerations=[{\"operator\":\"Exists\"},{\"key\":\"a\",\"value\":\"b\",\"effect\":\"NoExecute\","
         "\"tolerationSeconds\":5}]",
         ""},
        {"P0.tolerations=[{\"value\":\"b\"}]", P0 ".tolerations[0].operator: Invalid value: \"\": operator "
                                                  "must be Exists when `key` is empty, which means "
                                                  "\"match all values and all keys\"\n"},
        {"P0.tolerations=[{\"key\":\"a\",\"operator\":\"Exists\",\"value\":\"b\"}]", P0
         ".tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'\n"},
        {"P0.tolerations=[{\"key\":\"a\",\"tolerationSeconds\":5}]",
         P0 ".tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is "
            "set\n"},
        {"C0.securityContext={\"runAsUser\":-1}",
         C0 ".securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive\n"},
        {"C0.volumeMounts=[{\"name\":\"v\",\"mountPath\":\"/v\"}]",
         C0 ".volumeMounts[0].name: Not found: \"v\"\n"},
        {"C0.volumeMounts=[{\"name\":\"v\",\"mountPath\":\"/v\"}] ; "
         "P0.volumes=[{\"name\":\"v\",\"emptyDir\":{}}]",
         ""},
    };
    RUN(rows);
}

/* Values that stand for another way than the machines' are refused. */
static void policies_of_security(void **state)
{
    static const struct row rows[] = {
        {"P0.securityContext={\"supplementalGroupsPolicy\":\"Strict\",\"fsGroupChangePolicy\":"
         "\"OnRootMismatch\",\"seLinuxChangePolicy\":\"Recursive\"}",
         ""},
        {"P0.securityContext={\"supplementalGroupsPolicy\":\"Merge\",\"seLinuxChangePolicy\":"
         "\"MountOption\"}",
         ""},
        {"P0.securityContext={\"supplementalGroupsPolicy\":\"Some\"}",
         P0 ".securityContext.supplementalGroupsPolicy: Unsupported value: \"Some\": supported values: "
            "\"Merge\", \"Strict\"\n"},
        {"P0.securityContext={\"fsGroupChangePolicy\":\"Always\"}", /* every file of a claim, at each start */
         P0 ".securityContext.fsGroupChangePolicy: Unsupported value: \"Always\": supported values: "
            "\"OnRootMismatch\"\n"},
        {"P0.securityContext={\"seLinuxChangePolicy\":\"Any\"}",
         P0 ".securityContext.seLinuxChangePolicy: Unsupported value: \"Any\": supported values: "
            "\"MountOption\", \"Recursive\"\n"},
    };
    RUN(rows);
}

/* Fields that machines cannot keep are refused, of a pod and of a container; those that say nothing are
 * taken. */
static void security_that_cannot_be_kept(void **state)
{
#define SECURITY(where, text) where ".securityContext={" text "}"
#define ARMOR(type)           "\"appArmorProfile\":{\"type\":\"" type "\"}"
#define PROFILE(type)         "\"seccompProfile\":{\"type\":\"" type "\"}"
#define WINDOWS               "\"windowsOptions\":{\"runAsUserName\":\"a\"}"
    static const struct row rows[] = {
        {SECURITY("P0", "\"sysctls\":[{\"name\":\"kernel.shm_rmid_forced\",\"value\":\"0\"}]"),
         P0 ".securityContext.sysctls: Forbidden: tasks share the machine's kernel settings\n"},
        {SECURITY("P0", "\"sysctls\":[]"), ""},
        {"P0.hostUsers=false", P0 ".hostUsers: Forbidden: tasks get no user namespace of their own\n"},
        {"P0.hostUsers=true", ""},
        {SECURITY("P0", ARMOR("RuntimeDefault")),
         P0 ".securityContext.appArmorProfile.type: Unsupported value: \"RuntimeDefault\": supported values: "
            "\"Unconfined\"\n"},
        {SECURITY("C0", ARMOR("RuntimeDefault")),
         C0 ".securityContext.appArmorProfile.type: Unsupported value: \"RuntimeDefault\": supported values: "
            "\"Unconfined\"\n"},
        {SECURITY("C0", ARMOR("Unconfined")), ""},
        {SECURITY("P0", WINDOWS), P0 ".securityContext.windowsOptions: Forbidden: machines run Linux\n"},
        {SECURITY("C0", WINDOWS), C0 ".securityContext.windowsOptions: Forbidden: machines run Linux\n"},
        {SECURITY("C0", "\"windowsOptions\":{}"), ""},
        {SECURITY("P0", "\"seLinuxOptions\":{\"level\":\"s0\"}"),
         P0 ".securityContext.seLinuxOptions: Forbidden: machines do not set SELinux labels\n"},
        {SECURITY("P0", PROFILE("Localhost")),
         P0 ".securityContext.seccompProfile.type: Unsupported value: \"Localhost\": supported values: "
            "\"RuntimeDefault\", \"Unconfined\"\n"},
        {SECURITY("P0", PROFILE("Unconfined")), ""},
        {SECURITY("C0", "\"procMount\":\"Unmasked\""),
         C0 ".securityContext.procMount: Unsupported value: \"Unmasked\": supported values: \"Default\"\n"},
        {SECURITY("C0", "\"capabilities\":{\"add\":[\"ROOT\"]}"),
         C0 ".securityContext.capabilities.add[0]: Invalid value: \"ROOT\": must be ALL or the name of a "
            "capability, such as NET_BIND_SERVICE\n"},
        {SECURITY("C0", "\"capabilities\":{\"drop\":[\"ALL\",\"NOBODY\"]}"),
         C0 ".securityContext.capabilities.drop[1]: Invalid value: \"NOBODY\": must be ALL or the name of a "
            "capability, such as NET_BIND_SERVICE\n"},
        {SECURITY("P0", "\"supplementalGroups\":[7,-1]"),
         P0 ".securityContext.supplementalGroups[1]: Invalid value: -1: must be between 0 and 2147483647, "
            "inclusive\n"},
        {SECURITY("P0", "\"fsGroup\":-1"),
         P0 ".securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive\n"},
    };
    RUN(rows);
}

static void policies(void **state)
{
#define FAIL(text) "spec.failurePolicy={\"rules\":[" text "]}"
#define AT_FAIL    "spec.failurePolicy.rules[0]"
    static const struct row rows[] = {
        {"spec.failurePolicy={\"maxRestarts\":-1}", ""},
        {"spec.successPolicy={\"operator\":\"Any\",\"targetReplicatedJobs\":[\"b\",\"x\"]}",
         "spec.successPolicy.targetReplicatedJobs[1]: Invalid value: \"x\": invalid replicatedJob name 'x' "
         "does not "
         "appear in .spec.ReplicatedJobs\n"},
        {FAIL("{}"), AT_FAIL ".action: Required value\n"},
        {FAIL("{\"action\":\"Retry\"}"), AT_FAIL
         ".action: Unsupported value: \"Retry\": supported values: \"FailJobSet\", \"RestartJobSet\", "
         "\"RestartJobSetAndIgnoreMaxRestarts\", \"RestartJob\", \"RestartJobAndIgnoreMaxRestarts\"\n"},
        {FAIL("{\"action\":\"RestartJob\",\"name\":\"a-b\"}"), AT_FAIL
         ".name: Invalid value: \"a-b\": a failure policy rule name must start with an alphabetic character, "
         "optionally followed by a string of alphanumeric characters or '_,:', and must end with an "
         "alphanumeric character or '_'\n"},
        {FAIL("{\"action\":\"FailJobSet\",\"name\":\"failurePolicyRule1\"},{\"action\":\"FailJobSet\"}"),
         "spec.failurePolicy.rules[1].name: Duplicate value: \"failurePolicyRule1\"\n"},
        {FAIL("{\"action\":\"FailJobSet\",\"onJobFailureReasons\":[\"FailedIndexes\",\"Bad\"]}"), AT_FAIL
         ".onJobFailureReasons[1]: Unsupported value: \"Bad\": supported values: \"BackoffLimitExceeded\", "
         "\"DeadlineExceeded\", \"FailedIndexes\", \"MaxFailedIndexesExceeded\", \"PodFailurePolicy\"\n"},
        {FAIL("{\"action\":\"FailJobSet\",\"onJobFailureMessagePatterns\":[\"(\"]}"), ""},
        {FAIL("{\"action\":\"FailJobSet\",\"targetReplicatedJobs\":[\"x\"]}"), AT_FAIL
         ".targetReplicatedJobs[0]: Invalid value: \"x\": invalid replicatedJob name 'x' in failure policy "
         "does not appear in .spec.ReplicatedJobs\n"},
        {FAIL("{\"action\":\"RestartJob\"}") " ; R0.replicas=1025",
         R0 ".replicas: Invalid value: 1025: must be less than or equal to 1024 when a failure policy rule "
            "restarts "
            "single jobs\n"},
        {"spec.failurePolicy={\"restartStrategy\":\"InPlaceRestart\"} ; J0.backoffLimit=2147483647 ; "
         "J0.podReplacementPolicy=\"Failed\" ; J0.parallelism=1 ; J0.completions=1",
         "spec.replicatedJobs[1].template.spec.backoffLimit: Invalid value: 6: must be 2147483647 when the "
         "restart "
         "strategy is InPlaceRestart\nspec.replicatedJobs[1].template.spec.podReplacementPolicy: Invalid "
         "value: \"\": "
         "must be Failed when the restart strategy is InPlaceRestart\n"},
        {"R0.dependsOn=[{\"name\":\"b\",\"status\":\"Ready\"}]",
         R0 ".dependsOn: Forbidden: dependsOn can't be set for the first replicatedJob\n"},
        {"R1.dependsOn=[{\"name\":\"a\",\"status\":\"Complete\"}]", ""},
        {"R1.dependsOn=[{\"name\":\"a\",\"status\":\"Done\"}]",
         "spec.replicatedJobs[1].dependsOn[0].status: Unsupported value: \"Done\": supported values: "
         "\"Ready\", "
         "\"Complete\"\n"},
        {"R1.dependsOn=[{\"name\":\"b\",\"status\":\"Ready\"}]",
         "spec.replicatedJobs[1].dependsOn[0].name: Invalid value: \"b\": a replicatedJob cannot depend on "
         "itself\n"},
        {"R1.dependsOn=[{\"name\":\"x\",\"status\":\"Ready\"}]",
         "spec.replicatedJobs[1].dependsOn[0].name: Not found: \"x\"\n"},
        {"R1.dependsOn=[{\"name\":\"a\",\"status\":\"Ready\"}] ; "
         "spec.startupPolicy={\"startupPolicyOrder\":\"InOrder\"}",
         "spec.replicatedJobs[1].dependsOn: Forbidden: StartupPolicy and DependsOn APIs are mutually "
         "exclusive\n"},
        {"R1.dependsOn=[{\"name\":\"a\",\"status\":\"Ready\"}] ; "
         "spec.startupPolicy={\"startupPolicyOrder\":\"AnyOrder\"}",
         ""},
    };
    RUN(rows);
}

static void coordinator(void **state)
{
    static const struct row rows[] = {
        {"spec.coordinator={\"replicatedJob\":\"b\",\"podIndex\":1}", ""},
        {"spec.coordinator={\"replicatedJob\":\"x\"}",
         "spec.coordinator.replicatedJob: Invalid value: \"x\": coordinator replicatedJob does not exist\n"},
        {"spec.coordinator={\"replicatedJob\":\"b\",\"jobIndex\":1,\"podIndex\":2}",
         "spec.coordinator.jobIndex: Invalid value: 1: coordinator job index must be at least 0 and less "
         "than "
         "replicas, 1\nspec.coordinator.podIndex: Invalid value: 2: coordinator pod index must be at least 0 "
         "and less "
         "than completions, 2\n"},
        {"spec.coordinator={\"replicatedJob\":\"a\"} ; J0.completionMode=\"NonIndexed\"",
         "spec.coordinator.replicatedJob: Invalid value: \"a\": job for coordinator must be indexed "
         "completion mode, "
         "and completions number must be set\n"},
        {"metadata.name=\"a23456789012345678901234567890\" ; spec.coordinator={\"replicatedJob\":\"b\"}",
         "spec.coordinator: Invalid value: "
         "\"a23456789012345678901234567890-b-0-0.a23456789012345678901234567890\": "
         "the coordinator endpoint \"<jobset>-<replicatedJob>-<jobIndex>-<podIndex>.<subdomain>\" is put "
         "into a label "
         "and must be no more than 63 bytes\n"},
    };
    RUN(rows);
}

static void volume_claims(void **state)
{
#define CLAIM(meta) "spec.volumeClaimPolicies=[{\"templates\":[{\"metadata\":" meta ",\"spec\":{}}]}]"
#define MOUNT       " ; C0.volumeMounts=[{\"name\":\"v\",\"mountPath\":\"/v\"}]"
#define AT_CLAIM    "spec.volumeClaimPolicies[0].templates[0].metadata"
    static const struct row rows[] = {
        {CLAIM("{\"name\":\"v\"}") MOUNT, ""},
        {CLAIM("{}") MOUNT,
         AT_CLAIM ".name: Required value\n" C0 ".volumeMounts[0].name: Not found: \"v\"\n"},
        {CLAIM("{\"name\":\"v\",\"namespace\":\"n\"}") MOUNT,
         AT_CLAIM ".namespace: Forbidden: must be empty\n"},
        {CLAIM("{\"name\":\"v\"}"),
         AT_CLAIM ".name: Invalid value: \"v\": at least one container or initContainer "
                  "must mount a volume of this name\n"},
        {CLAIM("{\"name\":\"v\"}") MOUNT " ; P0.volumes=[{\"name\":\"v\"}]",
         AT_CLAIM ".name: Invalid value: \"v\": the pod template of replicatedJobs[0] defines a volume of "
                  "this name\n"},
        {"spec.volumeClaimPolicies=[{\"templates\":[{\"metadata\":{\"name\":\"v\"}}]},{\"templates\":[{"
         "\"metadata\":{"
         "\"name\":\"v\"}}],\"retentionPolicy\":{}}]" MOUNT,
         "spec.volumeClaimPolicies[1].templates[0].metadata.name: Duplicate value: \"v\"\n"},
    };
    RUN(rows);
}

static void long_lists_are_refused(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf errors = {0}, items = {0};
    struct jobset_spec spec;
    struct doc *doc = small(&arena);
    for (int i = 0; i < 65; i++)
        buf_printf(&items, "%s\"x.io/r%d\":1", i > 0 ? "," : "{\"limits\":{", i);
    buf_printf(&items, "}}");
    edit(&arena, doc, "C0.resources", items.data);
    buf_clear(&items);
    for (int i = 0; i < 257; i++)
        buf_printf(&items, "%s{}", i > 0 ? "," : "[");
    buf_printf(&items, "]");
    edit(&arena, doc, "P0.volumes", items.data);
    edit(&arena, doc, "spec.volumeClaimPolicies", items.data);
    check_write(&arena, doc, &spec, &errors);
    assert_non_null(strstr(errors.data, C0 ".resources.limits: Too many: 65: must have at most 64 items\n"));
    assert_non_null(strstr(errors.data, P0 ".volumes: Too many: 257: must have at most 128 items\n"));
    assert_non_null(
        strstr(errors.data, "spec.volumeClaimPolicies: Too many: 257: must have at most 50 items\n"));
}

static void lists_and_names_have_their_lengths(void **state)
{
    static const struct row rows[] = {
        {"R1.dependsOn=[{\"name\":\"a\",\"status\":\"Ready\"},{},{},{},{},{}]",
         "spec.replicatedJobs[1].dependsOn: Too many: 6: must have at most 5 items\n"},
        {"R0.groupName=\"a234567890123456789012345678901234567890123456789012345678901234\"",
         R0 ".groupName: Invalid value: "
            "\"a234567890123456789012345678901234567890123456789012345678901234\": "
            "must be no more than 63 bytes\n"},
        {"metadata.name=\"a2345678901234567890123456789012\" ; "
         "spec.volumeClaimPolicies=[{\"templates\":[{\"metadata\":{\"name\":"
         "\"v2345678901234567890123456789012\"}}]}] ; "
         "C0.volumeMounts=[{\"name\":\"v2345678901234567890123456789012\",\"mountPath\":\"/v\"}]",
         "spec.volumeClaimPolicies[0].templates[0].metadata.name: Invalid value: "
         "\"v2345678901234567890123456789012\": "},
        {"spec.failurePolicy={\"rules\":[{\"action\":\"FailJobSet\",\"name\":\"" LONG "x\"}]}",
         "spec.failurePolicy.rules[0].name: Invalid value: \"" LONG "x\": "},
        {"spec.failurePolicy={\"rules\":[{\"action\":\"FailJobSet\",\"name\":\"" LONG "\"}]}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf errors = {0};
        struct jobset_spec spec;
        struct doc *doc = small(&arena);
        edit_all(&arena, doc, rows[i].edits);
        check_write(&arena, doc, &spec, &errors);
        const char *got = errors.data ? errors.data : "";
        if (!strstr(got, rows[i].errors) || (!*rows[i].errors && *got))
            fail_msg("%s:\n%snot\n%s", rows[i].edits, got, rows[i].errors);
    }
}

static void errors_have_places_and_an_end(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf text = {0};
    struct field_errors errors = {.arena = &arena};
    struct jobset_spec spec;
    struct doc *doc =
        parse(&arena, STR("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x}\nspec:\n"
                          "  bogus: 1\n  suspend: maybe\n"));
    spec_unknown_fields(doc, &errors);
    assert_false(jobset_read(&arena, doc, &spec, &errors));
    field_errors_print(&errors, &text);
    assert_text(
        &text,
        "5:3: unknown field \"spec.bogus\"\n6:12: spec.suspend: Invalid value: \"string\": spec.suspend "
        "in body must be of type boolean: \"string\"\n");
    for (int i = 0; i < 200; i++)
        field_error_add(&errors, STR("x"), "FieldValueInvalid", NULL, "%d", i);
    assert_int_equal(errors.list.len, FIELD_ERRORS_MAX);
    assert_int_equal(errors.dropped, 102);
    field_errors_done(&errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_fields),
        cmocka_unit_test(types),
        cmocka_unit_test(metadata),
        cmocka_unit_test(names),
        cmocka_unit_test(counts),
        cmocka_unit_test(pod_failure_policy),
        cmocka_unit_test(pods),
        cmocka_unit_test(policies_of_security),
        cmocka_unit_test(security_that_cannot_be_kept),
        cmocka_unit_test(policies),
        cmocka_unit_test(coordinator),
        cmocka_unit_test(volume_claims),
        cmocka_unit_test(long_lists_are_refused),
        cmocka_unit_test(lists_and_names_have_their_lengths),
        cmocka_unit_test(errors_have_places_and_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
