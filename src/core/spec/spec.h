/* spec.h - documents of users: defaulted, read into typed views, and validated.
 *
 * Source of the rules: jobset.x-k8s.io/v1alpha2 (kubernetes-sigs/jobset), batch/v1 Job, v1 Pod; the
 * field-by-field table is in docs/jobset.md, which also names the fields that are kept but not acted on.
 *
 * A write passes through these steps, in this order, in the core and (to answer early) in the host:
 *     spec_unknown_fields -> workload_default -> workload_read -> workload_validate
 *     [-> workload_validate_update]
 * batch/v1 Jobs and v1 Pods without a JobSet pass through the same steps and become a `struct jobset_spec`
 * of one replicated job with one Job; the core runs them as it runs a JobSet (enum form). Users get back
 * the document as it was written; `struct jobset_spec` is the typed view that the core acts on.
 *
 * All functions are pure. Results are allocated in the given arena and point into the document, so both
 * must outlive them. Functions that take `errors` append to the list; its `arena` must be set.
 */
#ifndef PHX_CORE_SPEC_SPEC_H
#define PHX_CORE_SPEC_SPEC_H

#include "doc/doc.h"
#include "base/error.h"
#include "base/vec.h"
#include "core/ladder/ladder.h"
#include "core/spec/container.h"

/* A broken rule, as a Kubernetes Status cause: kubectl prints "* spec.replicatedJobs[0].name: Invalid
 * value: ...". */
struct field_error {
    struct str path;          /* "spec.replicatedJobs[0].template.spec.parallelism" */
    /* FieldValueInvalid, FieldValueRequired, FieldValueDuplicate, FieldValueNotSupported,
     * FieldValueForbidden, FieldValueTooLong, FieldValueTooMany, FieldValueTypeInvalid, FieldValueNotFound */
    const char *reason;
    struct str message;       /* the whole message in Kubernetes' words: `Invalid value: -1: must be ...` */
    uint32_t line, column;    /* in the source text; 0: unknown */
};
struct field_errors {
    struct arena *arena;      /* owns paths and messages */
    VEC(struct field_error) list;
    size_t dropped; /* errors beyond FIELD_ERRORS_MAX, which are counted and not kept */
};
enum { FIELD_ERRORS_MAX = 100 };

/* Adds a broken rule. The path and the message are copied; `reason` must be a literal. `place` gives the
 * line and column; NULL: unknown. */
void field_error_add(struct field_errors *errors, struct str path, const char *reason,
                     const struct doc *place, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Appends "LINE:COLUMN: path: message" and a newline for each error. Omits "LINE:COLUMN: " if the place is
 * unknown, and "path: " if the path is empty. Ends with "and N more" if errors were dropped. */
void field_errors_print(const struct field_errors *errors, struct buf *out);
/* Frees the list; the texts stay with the arena. */
void field_errors_done(struct field_errors *errors);

/* Annotations of a JobSet, or of a Job or Pod without one. */
#define SUB_HEALTH_KEY   "phalanx.dev/sub-health"
/* The annotation of a Namespace that holds the user ids of its tasks, such as "100000-100999". */
#define UID_RANGE_KEY "phalanx.dev/uid-range"
struct uid_range {
    uint32_t from, count;
};
/* Reads "FROM-TO", two user ids above 0 in ascending order. Returns false if the text is malformed. */
bool uid_range_read(struct str text, struct uid_range *ret);
#define SLICE_KEY               "phalanx.dev/slice" /* the shape of the network that a JobSet runs on */
/* "Reroute" or "Move": what a running slice does when it loses a switch. */
#define SLICE_ON_LOSS_KEY       "phalanx.dev/slice-on-switch-loss"
/* Each log line that matches is one training step. */
#define STEP_PATTERN_KEY        "phalanx.dev/step-pattern"
#define CHECKPOINT_INTERVAL_KEY "phalanx.dev/checkpoint-interval" /* steps, or auto */
#define CHECKPOINT_FOLDER_KEY   "phalanx.dev/checkpoint-folder"   /* overrides the JobSet's own folder */
#define CHECKPOINT_KEEP_KEY "phalanx.dev/checkpoint-keep" /* which committed checkpoints are kept */
/* In a log line, the rank's own work of a step, in milliseconds, follows the match. */
#define WORK_PATTERN_KEY "phalanx.dev/work-pattern"

struct label {
    struct str key, value;
};
struct labels {
    struct label *items;
    size_t len;
};
/* Returns the value of the key, or `fallback` if the labels do not have it. */
struct str labels_get(const struct labels *labels, struct str key, struct str fallback);

struct toleration {
    /* op: "Equal" (default) or "Exists"; empty effect: all; empty key + Exists: all */
    struct str key, op, value, effect;
};
enum restart_policy { RESTART_ON_FAILURE, RESTART_NEVER, RESTART_ALWAYS };
enum pod_failure_action { POD_FAIL_JOB, POD_IGNORE, POD_COUNT, POD_FAIL_INDEX };
struct pod_failure_rule {
    enum pod_failure_action action;
    bool on_exit_codes, not_in;  /* onExitCodes present; operator NotIn */
    struct str container;        /* onExitCodes.containerName; empty: any */
    int32_t *codes;
    size_t code_count;
    struct label *conditions;    /* onPodConditions: type, status */
    size_t condition_count;
};

/* The placement rule of one replicated job's tasks (Kueue: a PodSet): the pod template's
 * kueue.x-k8s.io/podset-... annotations. */
enum topology_mode { TOPOLOGY_NONE, TOPOLOGY_REQUIRED, TOPOLOGY_PREFERRED, TOPOLOGY_UNCONSTRAINED };
enum { TOPOLOGY_SLICES_MAX = 3 };
struct topology_slice {
    struct str key; /* node label: each `size` consecutive tasks are in one of its domains */
    int32_t size;
};
struct topology_rule {
    enum topology_mode mode;
    struct str key;   /* node label of REQUIRED and PREFERRED */
    struct str group; /* podsets of one name are placed in one domain; empty: none */
    /* Outermost first; each size divides the previous one. */
    struct topology_slice slices[TOPOLOGY_SLICES_MAX];
    size_t slice_count;
};

/* An expression about a machine's labels. A term matches if all of its expressions hold. */
enum node_operator { NODE_IN, NODE_NOT_IN, NODE_EXISTS, NODE_DOES_NOT_EXIST, NODE_GT, NODE_LT };
struct node_rule {
    struct str key; /* empty: the machine's name (matchFields) */
    enum node_operator op;
    struct str *values;
    size_t value_count;
};
struct node_term {
    struct node_rule *rules; /* none: no machine matches */
    size_t rule_count;
};

struct pod_spec {
    struct str image;            /* recorded only: commands run directly on the machine */
    struct str container;        /* name of the main (first) container */
    struct str *command, *args;  /* $(VAR) not yet expanded */
    size_t command_count, arg_count;
    struct str working_dir;
    struct env_spec *env;
    size_t env_count;
    struct str chip_resource;    /* "google.com/tpu", "nvidia.com/gpu", ...; empty: requests no chips */
    uint32_t chips;              /* per task: requests or limits of any vendor/accelerator resource */
    int64_t cpu_milli, memory_bytes; /* limits; 0: none */
    int64_t cpu_request_milli, memory_request_bytes;
    struct labels node_selector; /* sorted by key */
    struct str node_name;        /* spec.nodeName, a machine; empty: the scheduler chooses */
    struct toleration *tolerations;
    size_t toleration_count;
    struct str priority_class;
    int32_t priority;            /* spec.priority or 0; priority classes are resolved by the core */
    enum restart_policy restart_policy;
    int64_t grace_s;             /* terminationGracePeriodSeconds, 30 */
    int64_t active_deadline_s;   /* -1: none */
    int64_t run_as_user, run_as_group; /* -1: the agent's choice */
    int64_t fs_group;                  /* group of the pod's volumes; -1: none */
    bool host_network;
    struct labels labels, annotations; /* of the pod template, as written */
    struct topology_rule topology; /* from the annotations */
    /* nodeAffinity's requiredDuringScheduling...: a machine must match one of the terms; none: any machine
     * suits */
    struct node_term *node_terms;
    size_t node_term_count;
    /* All containers, main ones first (the fields above are the first one's); then init ones and sidecars. */
    struct container_spec *containers;
    size_t container_count;
    struct volume_spec *volumes;
    size_t volume_count;
    /* a single container without probes, hooks, mounts, restart rules and security settings */
    bool plain;
    bool uses_config;            /* refers to ConfigMaps, Secrets or PersistentVolumeClaims */
};

struct index_range {
    int32_t first, last;
};
struct job_success_rule {
    struct index_range *ranges;  /* succeededIndexes, ascending; none: every index */
    size_t range_count;
    int32_t count;               /* succeededCount; -1: all of the ranges */
};

struct job_spec {
    int32_t parallelism;         /* >= 0 */
    int32_t completions;         /* -1: unset (work-queue semantics) */
    bool indexed;
    int32_t backoff_limit;       /* 6 */
    int32_t backoff_limit_per_index; /* -1: unset */
    int32_t max_failed_indexes;  /* -1: unset */
    int64_t active_deadline_s;   /* -1: none */
    bool replace_failed_only;    /* podReplacementPolicy: Failed */
    struct pod_failure_rule *pod_failure_rules;
    size_t pod_failure_rule_count;
    struct job_success_rule *success_rules;
    size_t success_rule_count;
    struct pod_spec pod;
};

enum depends_status { DEPENDS_READY, DEPENDS_COMPLETE };
struct depends_on {
    uint32_t rjob; /* index of an earlier replicated job */
    enum depends_status status;
};
struct rjob_spec {
    struct str name, group;
    int32_t replicas;
    struct depends_on *depends;
    size_t depend_count;
    struct labels labels, annotations; /* of the job template */
    /* The node-selector annotation is present: the administrator has labelled the nodes for each Job, and
     * exclusive_topology is empty. */
    bool node_selector_strategy;
    struct str exclusive_topology;     /* node label key of the exclusive-topology annotation; empty: none */
    uint32_t spares;  /* number of each Job's tasks that wait for a rank; 0 for a Job without ranks */
    bool cold_spares; /* capacity is reserved for spares, but no task runs there */
    bool spares_said, spare_kind_said; /* set by the workload; false: its queue decides (spares_of_queue) */
    struct job_spec job;
};

enum policy_operator { OPERATOR_ALL, OPERATOR_ANY };
enum failure_action {
    FAILURE_FAIL_JOBSET,
    FAILURE_RESTART_JOBSET,
    FAILURE_RESTART_JOBSET_IGNORE_MAX,
    FAILURE_RESTART_JOB,
    FAILURE_RESTART_JOB_IGNORE_MAX,
};
enum restart_strategy { RESTART_RECREATE, RESTART_BLOCKING_RECREATE, RESTART_IN_PLACE };
struct failure_rule {
    struct str name;
    enum failure_action action;
    struct str *reasons;         /* onJobFailureReasons; none: any */
    size_t reason_count;
    struct str *patterns;        /* onJobFailureMessagePatterns (RE2 syntax, unanchored); none: any */
    size_t pattern_count;
    uint8_t *targets;            /* [rjob_count] flags; NULL: all */
};

/* spec.scheduling: the gang of a replicated job's tasks. */
struct gang_rule {
    uint32_t group;      /* replicated jobs with equal numbers form one gang */
    bool per_job;        /* a gang for each Job */
    bool basic;          /* no gang: each task alone */
    int32_t min_count;   /* the gang starts with this many tasks; 0: all */
    struct topology_rule topology; /* of the gang; mode TOPOLOGY_NONE: the tasks' own annotations apply */
};

struct jobset_spec {
    struct gang_rule *gang_rules; /* [rjob_count]; NULL: tasks that are created together form one gang */
    struct rjob_spec *rjobs;
    size_t rjob_count;
    bool suspend;
    enum policy_operator success_operator;
    uint8_t *success_targets;    /* [rjob_count] flags; NULL: all */
    bool has_failure_policy;
    int32_t max_restarts;
    enum restart_strategy strategy;
    struct failure_rule *rules;
    size_t rule_count;
    bool in_order;               /* startupPolicyOrder: InOrder */
    bool dns_hostnames, publish_not_ready;
    struct str subdomain;        /* empty: the JobSet's name */
    struct str coordinator;      /* "<js>-<rjob>-<job>-<pod>.<subdomain>" or empty */
    struct str managed_by;
    int64_t ttl_s;               /* -1: never */
    struct labels labels, annotations; /* of the JobSet */
    struct ladder_settings recovery; /* from the annotations */
    /* replica_size: ranks of one data-parallel replica; 0: the world is not divided. min_replicas: the least
     * number of replicas with which the JobSet may run. */
    uint32_t replica_size, min_replicas;
};

/* Reports fields of `object` that the schema of its apiVersion and kind does not know: strict decoding.
 * The message is `unknown field "spec.bogus"`, as Kubernetes words it, and `path` is empty. An object
 * whose kind has no schema passes. */
void spec_unknown_fields(const struct doc *object, struct field_errors *errors);
/* Warns about items of a Job's or Pod's list that hide an earlier item of the same key, such as two env
 * entries of one name. In JobSets such items are errors of jobset_read. */
void spec_doubles(const struct doc *object, struct field_errors *warnings);

/* Returns whether the spec of an existing claim equals that of a template in every field of the template. */
bool claim_specs_equal(const struct doc *existing, const struct doc *wanted);
/* Returns whether the JobSet has a failure rule that restarts single Jobs. */
bool jobset_restarts_jobs(const struct jobset_spec *spec);
/* Returns whether the Job can have spares: it is Indexed with completions, and the scheduler chooses its
 * machines. */
bool spares_allowed(const struct job_spec *job);
/* A ClusterQueue's or LocalQueue's spares for each Job without a setting of its own, by the queue's
 * annotations phalanx.dev/spares and spare-kind. */
struct queue_spares {
    uint32_t count;
    bool cold;
};
/* Returns false if the queue sets no valid number of spares; *ret is unchanged then. */
bool spares_of_queue(const struct doc *queue, struct queue_spares *ret);

/* Checks the labels (64 at most) and annotations of any object. */
void metadata_check(const struct doc *object, struct field_errors *errors);
/* Checks a user's write to a Node: labels, annotations, taints. */
void node_check(const struct doc *object, struct field_errors *errors);

/* Returns whether a metav1.LabelSelector matches the labels: a NULL selector matches nothing, {} everything.
 * `labels` is a map; NULL: an empty one. */
bool selector_matches(const struct doc *selector, const struct doc *labels);

/* Returns whether two defaulted objects of one kind mean the same: absent, null and an empty list or map are
 * equal, and quantities compare by value ("1" equals "1000m"). Parts of objects, and kinds without a schema,
 * are compared with doc_equal. A write of an equal object changes nothing. */
bool spec_equal(const struct doc *a, const struct doc *b);

/* Fills in the defaults of the API server and of JobSet's webhooks, in place. Idempotent. Wrong types are
 * left for jobset_read to report. */
void jobset_default(struct arena *arena, struct doc *object);

/* Reads the typed view. Returns false if the document does not fit its schema: wrong types, unknown values of
 * enums, missing required fields, lists that are too long, or keys that are not unique. *ret_spec points into
 * `object` and `arena`, and is set only on success. A null field counts as absent. An Indexed Job with
 * parallelism but without completions reads as completions -1, which validation refuses. Times are limited
 * to 2^31 - 1 seconds. */
bool jobset_read(struct arena *arena, const struct doc *object, struct jobset_spec *ret_spec,
                 struct field_errors *errors);

/* Checks every create-time rule; a JobSet is valid if no error is added. `object` is the defaulted document
 * that `spec` was read from. metadata.name or generateName must be set. */
void jobset_validate(const struct doc *object, const struct jobset_spec *spec, struct field_errors *errors);

/* Reports each immutable field that differs between `old` and `changed` (both defaulted). */
void jobset_validate_update(const struct doc *old, const struct doc *changed, struct field_errors *errors);

/* --- any workload: JobSet, Job, Pod --------------------------------------------------------------------- */

/* The kind that the user wrote. The order is part of the snapshot's format. */
enum form {
    FORM_JOBSET,
    FORM_JOB,
    FORM_POD,
    FORM_WORKLOAD, /* a Workload of Kueue: PodSets that request quota and run nothing (podsets.c) */
};

/* Returns the form by apiVersion and kind: FORM_JOBSET for all kinds but Job, Pod and Workload. */
enum form workload_form(const struct doc *object);
/* The next three do for every form what jobset_default, jobset_read and jobset_validate do for JobSets. */
void workload_default(struct arena *arena, struct doc *object);
bool workload_read(struct arena *arena, const struct doc *object, struct jobset_spec *ret_spec,
                   struct field_errors *errors);
void workload_validate(const struct doc *object, const struct jobset_spec *spec, struct field_errors *errors);
/* Checks a JobSet's spec.scheduling, and the success policies of its Jobs. */
void jobset_validate_new(const struct doc *object, const struct jobset_spec *spec,
                         struct field_errors *errors);
/* Checks a JobSet's spec.scheduling. */
void jobset_validate_scheduling(const struct doc *object, const struct jobset_spec *spec,
                                struct field_errors *errors);
/* Checks the topology annotations, nodeAffinity and nodeName. `before` is the replaced spec, NULL on create.
 * Numbers that equal those of `before` are not checked again, because partial admission may have set them. */
void workload_validate_topology(const struct doc *object, const struct jobset_spec *spec,
                                const struct jobset_spec *before, struct field_errors *errors);
/* Checks the annotations phalanx.dev/slice and slice-on-switch-loss against the tasks. */
void workload_validate_slice(const struct doc *object, const struct jobset_spec *spec,
                             struct field_errors *errors);
/* Checks the annotations phalanx.dev/replica-size and min-replicas against the world of `spec`. `before` is
 * the replaced spec, NULL on create. A world that equals that of `before` is not checked again, because
 * partial admission may have set it. */
void workload_validate_replicas(const struct doc *object, const struct jobset_spec *spec,
                                const struct jobset_spec *before, struct field_errors *errors);
/* Checks a change of a JobSet, Job or Pod. `started`: the Job has run, so its template is immutable. */
void workload_validate_update(const struct doc *old, const struct doc *changed, bool started,
                              struct field_errors *errors);
/* Refuses a change of the sizes of a finished JobSet's Jobs. */
void jobset_validate_sizes_kept(const struct doc *old, const struct doc *changed,
                                struct field_errors *errors);
/* Refuses a change of the containers' resources. Called while the workload holds quota, is not suspended,
 * or, for a Job, has pods that have not ended. */
void workload_validate_resources_kept(const struct doc *old, const struct doc *changed,
                                      struct field_errors *errors);
/* Checks a change of a Workload. While its quota is `reserved`, podSets, queue and class are immutable,
 * except the name of a WorkloadPriorityClass. While it is `admitted`, so is its maximum execution time. */
void podsets_validate_update(const struct doc *old, const struct doc *changed, bool reserved, bool admitted,
                             struct field_errors *errors);
/* Returns minCount of a PodSet, the least number of tasks, or its count if minCount is not set. */
int32_t podsets_least(const struct doc *object, size_t podset);
/* Return the template of the replicated job's Jobs (metadata, spec), and that of their pods, in the document
 * itself. A Pod or Workload has no Job template: NULL. */
const struct doc *workload_job_template(const struct doc *object, size_t rjob);
const struct doc *workload_pod_template(const struct doc *object, size_t rjob);
/* Refuses scheduling gates that an existing Pod did not have: gates may only be removed. `old` and `changed`
 * are lists of gates; NULL: none. */
void validate_gates_kept(const struct doc *old, const struct doc *changed, struct field_errors *errors);

/* --- stored kinds (object/object.h): ConfigMap, Namespace, ClusterQueue, ... as they are kept ----------- */

/* Fills in the server's defaults, in place. Idempotent. Wrong types are left for stored_check to report. */
void stored_default(struct arena *arena, struct doc *object);
/* Checks a defaulted document: types, required fields, names, and the rules of its kind. */
void stored_check(const struct doc *object, struct field_errors *errors);
/* Checks the change from `old` to `changed` (both defaulted). */
void stored_check_update(const struct doc *old, const struct doc *changed, struct field_errors *errors);

/* Return whether the text satisfies the rule of Kubernetes that the function names. */
bool name_is_dns1035_label(struct str name);
bool name_is_dns1123_label(struct str name);
bool name_is_dns1123_subdomain(struct str name);
bool name_is_label_key(struct str key);
bool name_is_label_value(struct str value);

/* Returns "<jobset>-<rjob>-<index>". */
struct str job_name(struct arena *arena, struct str jobset, struct str rjob, int32_t index);
/* Returns "<job>-<index>", a task's hostname. Its pod's name is the hostname and "-<5 random>". */
struct str pod_hostname(struct arena *arena, struct str job, int32_t index);

/* Searches `text` for an RE2-style pattern: unanchored, no back-references, linear time. Sets *ret_matched on
 * success. Fails with ERROR_INVALID if the pattern is malformed or uses an unsupported feature, and with
 * ERROR_LIMIT if it is too large. */
int pattern_search(struct str pattern, struct str text, bool *ret_matched, struct error *error);
/* A compiled pattern, to search many texts. Lives in its arena, and serves one search at a time. */
struct matcher;
enum { LINE_PROGRAM_MAX = 256 }; /* `program_max` for patterns of log lines (validate_pace.c) */
/* Compiles the pattern; errors as pattern_search. A program of more than `program_max` instructions (at most
 * PATTERN_PROGRAM_MAX) is ERROR_LIMIT. A search takes at most that many steps for each byte of text. */
int matcher_new(struct arena *arena, struct str pattern, size_t program_max, struct matcher **ret_matcher,
                struct error *error);
/* Returns whether the text has a match. *ret_end is the end of the match that ends first. */
bool matcher_find(struct matcher *matcher, struct str text, size_t *ret_end);
/* A compiled pattern that captures the texts of its groups at the first match. Which match it is follows the
 * preference of RE2 and Perl: the first of two alternatives, the greedy or the lazy one of two lengths. A
 * search takes as many steps as matcher_find, each with a copy of the groups' positions. Lives in its arena,
 * and serves one search at a time. */
struct capturer;
enum { PATTERN_GROUPS_MAX = 8 };
/* Compiles the pattern, like matcher_new. */
int capturer_new(struct arena *arena, struct str pattern, size_t program_max, struct capturer **ret_capturer,
                 struct error *error);
/* Returns the number of groups, including those beyond PATTERN_GROUPS_MAX, which are never captured. */
size_t capturer_groups(const struct capturer *capturer);
struct str capturer_name(const struct capturer *capturer, size_t group); /* group from 0; empty: no name */
/* Returns false if nothing matches. The texts point into `text`; a group outside of the match has no data. */
bool capturer_find(struct capturer *capturer, struct str text, struct str ret_groups[PATTERN_GROUPS_MAX]);

#endif
