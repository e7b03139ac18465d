/* load.h - private to model/: how a cluster document becomes a cluster, in three steps that collect every
 * error.
 *
 *   read    load.c, load_policy.c, load_queues.c, load_qualification.c, load_repair.c, load_switches.c,
 *           load_level.c, load_plan.c: every field is checked and becomes a plan of pods and blocks
 *   expand  load_expand.c: the plan's patterns and counts become machines with names, addresses and labels
 *   amend   load_amend.c: machines named in spec.machines get their particular settings; addresses
 * The format is docs/cluster-file.md. Step two needs a plan without errors; step three's types are checked
 * regardless.
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
    const struct doc *doc;         /* its place, for errors of later steps */
    struct str path;
};
struct fabric_plan {
    struct str protocol;
    struct str host;        /* of switch x0 of the first pod */
    uint32_t port;          /* likewise; the others follow */
    const struct doc *list; /* addresses of 48 switches instead; NULL: none */
    struct str chips;       /* as struct pod has it */
    struct str user, secret_file; /* as struct switch_login has them; user empty: no login */
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
    struct cluster *cluster; /* the cluster being made; its arena owns all that stays */
    struct arena scratch;    /* owns the plan */
    struct field_errors *errors;
    size_t failures;
    int64_t number_from;     /* 1 or 0: the first number of {n}, {pod} and {rack} */
    struct str_map patterns; /* text -> struct pattern, so that equal patterns share their counters */
    VEC(struct pod_plan) pods;
    VEC(struct block_plan) blocks;
};

/* --- load_field.c: one field at a time ----------------------------------------------------------------- */
struct field field_get(const struct field *parent, const char *key);
struct field field_at(const struct field *parent, size_t index);
void load_fail(struct loader *loader, const struct field *field, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns the path of a field as text, in the loader's scratch arena. */
struct str load_path(struct loader *loader, const struct field *field);

/* All of these report errors and return false; an absent (or null) field is false without a report, and
 * leaves the result unchanged. */
bool load_object(struct loader *loader, const struct field *field, const char *const *known);
bool load_list(struct loader *loader, const struct field *field);
bool load_int(struct loader *loader, const struct field *field, int64_t min, int64_t max, int64_t *ret_value);
bool load_bool(struct loader *loader, const struct field *field, bool *ret_value);
bool load_text(struct loader *loader, const struct field *field, struct str *ret_text); /* not empty */
bool load_duration(struct loader *loader, const struct field *field, int64_t min_ns, int64_t max_ns,
                   int64_t *ret_ns);
bool load_quantity(struct loader *loader, const struct field *field, int64_t *ret_milli);
/* Reads labels on top of `base`: sorted, in the cluster's arena. Keys that the model sets itself are
 * refused. */
bool load_labels(struct loader *loader, const struct field *field, struct labels base,
                 struct labels *ret_labels);
/* Reports an absent field. */
void load_required(struct loader *loader, const struct field *field, const char *what);
bool load_present(const struct field *field);
/* Returns at most 80 bytes of a text, for messages. */
struct str load_excerpt(struct str text);

/* --- the steps ----------------------------------------------------------------------------------------- */
void load_level(struct loader *loader, const struct field *field, const struct level *above,
                struct level *ret_level);
struct pattern *load_pattern(struct loader *loader, const struct field *field, enum pattern_level level,
                             struct pattern *fallback);
struct pattern *load_pattern_text(struct loader *loader, struct str text, enum pattern_level level,
                                  const char **ret_why);
void load_pods(struct loader *loader, const struct field *pods, const struct level *above);
void load_fabric(struct loader *loader, const struct field *fabric, struct pod_plan *pod);
/* Makes the switches of the pods, which exist by now. */
void load_switches(struct loader *loader);
void load_policy(struct loader *loader, const struct field *spec); /* first: it sets the defaults */
void load_queues(struct loader *loader, const struct field *queues);
void load_qualification(struct loader *loader, const struct field *qualification);
void load_repair(struct loader *loader, const struct field *repair);
/* Checks that the machines which its hooks name exist. */
void load_repair_machines(struct loader *loader, const struct field *repair);
void load_expand(struct loader *loader);
void load_amend(struct loader *loader, const struct field *machines, bool expanded);

#define LABEL_HOSTNAME STR("kubernetes.io/hostname")
#define LABEL_POD      STR("phalanx.dev/pod")
#define LABEL_CUBE     STR("phalanx.dev/cube")
#define LABEL_RACK     STR("phalanx.dev/rack")
/* Merges labels on top of `base`, both sorted by key; in the given arena. */
struct labels load_merge_labels(struct arena *arena, struct labels base, struct labels over);

#endif
