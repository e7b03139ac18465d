/* write.h - API writes: what a client asked for is checked, refused with a reason, or applied.
 *
 *   write.c      refusals, preconditions, documents
 *   route.c      routing by kind, Nodes
 *   workload.c   JobSets, Jobs, Pods
 *   advise.c     warnings about workloads
 *   podsets.c    Workloads
 *   object.c     stored objects, namespaces
 *   fault.c      Faults
 *   fabric.c     Cubes, Switches
 *   quota.c      ResourceQuotas
 *   budget.c     bytes of documents
 *   react/injections.c   fault injection
 *
 * Every function that refuses leaves one REPLY and returns false.
 */
#ifndef PHX_CORE_WRITE_WRITE_H
#define PHX_CORE_WRITE_WRITE_H

#include "core/internal.h"

/* write.c: applies the step's EVENT_WRITE; always leaves one REPLY. */
void core_write(struct core *core, struct step *step, const struct write_event *write);
/* Replies only a refusal, and changes nothing. Returns whether the write would be accepted, and then, if
 * the kind has such (workload.c), what the step may apply; NULL: not wanted. */
bool core_write_check(struct core *core, struct step *step, const struct write_event *write,
                      struct prepared_write **ret_prepared);

struct writing {
    struct core *core;
    struct step *step;
    const struct write_event *write;
    struct arena *reply;                  /* owns what the REPLY points to */
    bool dry;                             /* only a check: replies only a refusal, and changes nothing */
    struct prepared_write **ret_prepared; /* of a check; NULL: not wanted */
};

/* The result of preparing a write's body, for the step to apply.
 *
 * Of a new JobSet, Job or Pod, by a check: its document and spec. Both depend on the write and, of the state,
 * on `default_queue` alone. Of a stored object, by core_prepare_write: its document in the form in which it
 * is kept, or why it is refused; of the write both depend on `draw` too. */
struct prepared_write {
    struct arena arena;   /* owns the rest; the step takes it */
    struct doc *document; /* NULL: a step has taken it, or it is refused */
    struct jobset_spec spec;
    bool default_queue; /* the namespace had a LocalQueue "default" */
    bool stored;        /* of a stored object */
    uint64_t draw;
    struct effect refusal; /* a REPLY; code 0: none */
};

bool write_refuse(const struct writing *writing, int code, const char *reason,
                  const struct field_errors *causes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool write_accept(const struct writing *writing, int code, struct object_ref object); /* true */
bool write_refuse_missing(const struct writing *writing);
bool write_refuse_verb(const struct writing *writing);
/* AlreadyExists; `title`: object_kind_title. */
bool write_refuse_taken(const struct writing *writing, const char *title, struct str name);
/* Refuses a document that is not of the kind `expected`. */
bool write_refuse_kind(const struct writing *writing, const char *expected, const struct doc *document);
/* Checks the write's preconditions on the present object. */
bool write_still_holds(const struct writing *writing, struct object_ref ref);
/* Parses the body into a document without the fields that only the server sets; `bytes_max`: limit of its
 * text. */
bool write_parse(const struct writing *writing, struct arena *arena, size_t bytes_max,
                 struct doc **ret_document);
/* The namespace of a namespaced object that is written. */
struct str write_namespace(const struct writing *writing);
/* Sets metadata.namespace (if `namespaced`) and, for a generateName, metadata.name. */
void write_set_name(const struct writing *writing, struct arena *arena, struct doc *document,
                    bool namespaced);
/* Makes a list of broken rules that lives as long as the reply. */
struct field_errors *write_new_errors(const struct writing *writing);
/* As write_refuse, with `causes` (from write_new_errors, not empty), whose items move into the reply. */
bool write_refuse_causes(const struct writing *writing, int code, const char *reason,
                         struct field_errors *causes, const char *message);
/* Refuses with `errors` (not empty), whose items move into the reply and live as long. */
bool write_refuse_invalid(const struct writing *writing, struct field_errors *errors, struct str name);

bool write_workload(const struct writing *writing); /* workload.c */
/* advise.c: leaves a WARNING for each missing object that the workload names. Only for a write that
 * is checked and not logged. */
void write_advise(const struct writing *writing, const struct doc *document, const struct jobset_spec *spec);
bool write_podsets(const struct writing *writing); /* podsets.c */
/* object.c */
bool write_object(const struct writing *writing);
/* Whether objects may be made in this namespace: it exists, or is a permanent one, which is made when it is
 * needed first, and it is not being deleted. */
bool write_namespace_open(const struct writing *writing, struct str namespace_);
/* Whether the finalizers may change so: an object that is being deleted may not get a new one. */
bool write_finalizers_hold(const struct writing *writing, int64_t deleted_ns, const struct doc *was,
                           const struct doc *is);
bool write_fabric(const struct writing *writing);    /* fabric.c: Cubes, Switches */
bool write_fault(const struct writing *writing);     /* fault.c */
bool write_injection(const struct writing *writing); /* injections.c */
/* quota.c: whether the namespace's ResourceQuotas have room for the new object. `document` and
 * `spec` of a workload; NULL: of another kind. */
bool write_quota_allows(const struct writing *writing, struct str namespace_, const struct doc *document,
                        const struct jobset_spec *spec);
/* budget.c: whether the namespace and the cluster may keep the document in place of one that is charged
 * with `was` bytes (0: a new object). An empty namespace: of a cluster-wide kind. */
bool write_budget_allows(const struct writing *writing, struct str namespace_, uint64_t was,
                         const struct doc *document);

#endif
