/* load.h - private to model/: how a cluster document becomes a cluster, in three steps that collect every
 * error.
 *
 *   read    load.c, load_policy.c, load_queues.c, load_qualification.c, load_repair.c, load_switches.c,
 *           load_level.c, load_plan.c: check every field, and make a plan of pods and blocks
 *   expand  load_expand.c: makes machines with names, addresses and labels from the plan
 *   amend   load_amend.c: applies the settings of machines that spec.machines names; checks addresses
 *
 * The format is docs/cluster-file.md. Expansion needs a plan without errors. The types of spec.machines are
 * checked even if the plan has errors.
 */
#ifndef PHX_CORE_MODEL_LOAD_H
#define PHX_CORE_MODEL_LOAD_H

#include "core/model/address.h"
#include "core/model/model.h"
#include "core/model/pattern.h"

/* A place in the document: its path (for messages) and its value. Lives on the stack; a path becomes text
 * only when an error needs it. */
struct field {
    const struct field *parent; /* NULL: the document itself */
    struct str key;             /* empty: item `index` of a list */
    size_t index;
    const struct doc *doc; /* NULL: absent */
};

/* The settings that a level of the document passes on to the levels below it. */
struct level {
    struct labels labels; /* sorted by key */
    struct pattern *names;
    struct address_source *addresses; /* NULL: none given so far */
    int64_t cpu_milli, memory_bytes;
};

struct block_plan {
    struct level level;
    enum block_kind kind;
    struct pattern *names; /* of blocks */
    int64_t count, machines, chips, spares;
    const struct doc *spare_names; /* a list of machine names in place of `spares`; NULL: none */
    bool *spares_found;            /* [spare_names' length] whether each exists */
    const struct doc *doc;         /* the entry's place, for errors of later steps */
    struct str path;
};
struct fabric_plan {
    struct str protocol;
    struct str host;        /* of switch x0 of the first pod */
    uint32_t port;          /* of switch x0; the other switches have the following ports */
    const struct doc *list; /* addresses of all 48 switches, in place of host and port; NULL: none */
    struct str chips;       /* as in struct pod */
    struct str user, secret_file; /* as in struct switch_login; user empty: no login */
    int64_t timeout_ns;
};
struct pod_plan {
    struct fabric_plan *fabric; /* NULL: no optical switches are managed */
    struct pattern *names;
    int64_t count;
    size_t first_block, block_count; /* in loader.blocks */
    const struct doc *doc;
    struct str path;
};

struct loader {
    struct cluster *cluster; /* the cluster being made; its arena owns the result */
    struct arena scratch;    /* owns the plan */
    struct field_errors *errors;
    size_t failures;         /* number of errors reported so far */
    int64_t number_from;     /* 1 or 0: the first number of {n}, {pod} and {rack} */
    struct str_map patterns; /* text -> struct pattern, so that equal patterns share their counters */
    VEC(struct pod_plan) pods;
    VEC(struct block_plan) blocks;
};

/* --- load_field.c: one field at a time ----------------------------------------------------------------- */
/* Return a member or an item of the parent, which must outlive the result. */
struct field field_get(const struct field *parent, const char *key);
struct field field_at(const struct field *parent, size_t index);
/* Reports an error at the field or, if the field is absent, at the nearest parent that is present. */
void load_fail(struct loader *loader, const struct field *field, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns the path of a field as text, in the loader's scratch arena. */
struct str load_path(struct loader *loader, const struct field *field);

/* Each of these returns true if the field is present and valid. Otherwise it returns false, leaves the result
 * unchanged, and reports an error unless the field is absent or null. */

/* Reports unknown members too, but returns true: the known ones can be read. `known` ends with NULL. */
bool load_object(struct loader *loader, const struct field *field, const char *const *known);
bool load_list(struct loader *loader, const struct field *field);
bool load_int(struct loader *loader, const struct field *field, int64_t min, int64_t max, int64_t *ret_value);
bool load_bool(struct loader *loader, const struct field *field, bool *ret_value);
bool load_text(struct loader *loader, const struct field *field, struct str *ret_text); /* not empty */
bool load_duration(struct loader *loader, const struct field *field, int64_t min_ns, int64_t max_ns,
                   int64_t *ret_ns);
bool load_quantity(struct loader *loader, const struct field *field, int64_t *ret_milli); /* above 0 */
/* Reads labels on top of `base`: sorted, in the cluster's arena. Refuses keys that the controller sets. */
bool load_labels(struct loader *loader, const struct field *field, struct labels base,
                 struct labels *ret_labels);
/* Reports that a required field is absent. `what` describes the missing value. */
void load_required(struct loader *loader, const struct field *field, const char *what);
bool load_present(const struct field *field); /* neither absent nor null */
/* Returns at most 80 bytes of a text, for messages. */
struct str load_excerpt(struct str text);

/* --- the steps ----------------------------------------------------------------------------------------- */
/* Reads the settings of a level. A setting that is absent or invalid is that of `above`. */
void load_level(struct loader *loader, const struct field *field, const struct level *above,
                struct level *ret_level);
/* Reads a name pattern. Returns `fallback` if the field is absent, or invalid (reported). */
struct pattern *load_pattern(struct loader *loader, const struct field *field, enum pattern_level level,
                             struct pattern *fallback);
/* Returns the loader's pattern of this text and level, or NULL with the reason in *ret_why. */
struct pattern *load_pattern_text(struct loader *loader, struct str text, enum pattern_level level,
                                  const char **ret_why);
void load_pods(struct loader *loader, const struct field *pods, const struct level *above);
void load_fabric(struct loader *loader, const struct field *fabric, struct pod_plan *pod);
/* Makes the switches. The pods must have been expanded. */
void load_switches(struct loader *loader);
/* Sets the policy's defaults and reads its fields. Called before load_queues and load_repair. */
void load_policy(struct loader *loader, const struct field *spec);
void load_queues(struct loader *loader, const struct field *queues);
void load_qualification(struct loader *loader, const struct field *qualification);
void load_repair(struct loader *loader, const struct field *repair);
/* Checks that the machines that run repair hooks exist. */
void load_repair_machines(struct loader *loader, const struct field *repair);
/* Makes pods, blocks, machines and switches from a plan without errors. */
void load_expand(struct loader *loader);
/* Applies spec.machines. Without `expanded` machines, checks only the types of its fields. */
void load_amend(struct loader *loader, const struct field *machines, bool expanded);

#define LABEL_HOSTNAME STR("kubernetes.io/hostname")
#define LABEL_POD      STR("phalanx.dev/pod")
#define LABEL_CUBE     STR("phalanx.dev/cube")
#define LABEL_RACK     STR("phalanx.dev/rack")
/* Returns `base` with `over` on top, in the arena. Both must be sorted by key, and so is the result. */
struct labels load_merge_labels(struct arena *arena, struct labels base, struct labels over);

#endif
