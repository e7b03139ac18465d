/* write.h - API writes: checks a client's write, and applies it or refuses it with a reason.
 *
 *   write.c      refusals, preconditions, documents
 *   route.c      routing by kind, Nodes
 *   workload.c   JobSets, Jobs, Pods; advise.c: warnings about them; podsets.c: Workloads
 *   object.c     stored objects, namespaces; fault.c: Faults; fabric.c: Cubes, Switches
 *   quota.c      ResourceQuotas; budget.c: bytes of documents
 *   react/injections.c   fault injection
 *
 * Every function below that refuses a write leaves one REPLY and returns false. The REPLY points into
 * writing->reply, which lives until the next step or, for a check, until the next check.
 */
#ifndef PHX_CORE_WRITE_WRITE_H
#define PHX_CORE_WRITE_WRITE_H

#include "core/internal.h"

/* route.c: applies the step's EVENT_WRITE, or refuses it. Always leaves one REPLY. */
void core_write(struct core *core, struct step *step, const struct write_event *write);
/* route.c: checks the write without applying it. Returns whether it would be accepted. Otherwise leaves one
 * REPLY: the refusal or, if the write was applied before (receipt/receipt.h), the first answer. If
 * `ret_prepared` is not NULL, it may get a result that saves the step work (workloads only). */
bool core_write_check(struct core *core, struct step *step, const struct write_event *write,
                      struct prepared_write **ret_prepared);

struct writing {
    struct core *core;
    struct step *step;
    const struct write_event *write;
    struct arena *reply;                  /* owns what the REPLY points to */
    bool dry;                             /* a check: change nothing, and leave a REPLY only to refuse */
    struct prepared_write **ret_prepared; /* of a check; NULL: not wanted */
};

/* A write's body as prepared before the step, which then need not parse it.
 *
 *   new JobSet, Job or Pod   made by core_write_check: the document and its spec. They depend on the write
 *                            and, of the state, on `default_queue` alone.
 *   stored object            made by core_prepare_write: the document in the form in which it is kept, or its
 *                            refusal. They depend on the write alone, including `draw`.
 */
struct prepared_write {
    struct arena arena;   /* owns the rest; the step takes it */
    struct doc *document; /* NULL: taken by a step, or refused */
    struct jobset_spec spec;
    bool default_queue; /* the namespace had a LocalQueue "default" */
    bool stored;        /* of a stored object */
    uint64_t draw;
    struct effect refusal; /* a REPLY; code 0: none */
};

/* Leaves a REPLY with a status code of 400 to 599 and a reason (metav1.StatusReason), a literal. The message
 * is copied. `causes` (may be NULL) must live as long as the reply. Returns false. */
bool write_refuse(const struct writing *writing, int code, const char *reason,
                  const struct field_errors *causes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Leaves a REPLY with a status code of 200 to 299 and the written object. Not for checks. Returns true. */
bool write_accept(const struct writing *writing, int code, struct object_ref object);
bool write_refuse_missing(const struct writing *writing); /* NotFound */
bool write_refuse_verb(const struct writing *writing);    /* MethodNotAllowed */
/* Refuses with AlreadyExists. `title` is that of object_kind_title. */
bool write_refuse_taken(const struct writing *writing, const char *title, struct str name);
/* Refuses a document that is not of the kind `expected`. */
bool write_refuse_kind(const struct writing *writing, const char *expected, const struct doc *document);
/* Refuses with Conflict unless the object has the resourceVersion and uid that the write requires. */
bool write_still_holds(const struct writing *writing, struct object_ref ref);
/* Parses the body into a document in the arena, and removes the fields that only the server sets. Refuses a
 * body above `bytes_max` bytes, and one that is no JSON object. */
bool write_parse(const struct writing *writing, struct arena *arena, size_t bytes_max,
                 struct doc **ret_document);
/* Returns the write's namespace, or "default" if it names none. */
struct str write_namespace(const struct writing *writing);
/* Sets metadata.namespace, or removes it if the kind has none; and metadata.name from a generateName. */
void write_set_name(const struct writing *writing, struct arena *arena, struct doc *document,
                    bool namespaced);
/* Returns a list for broken rules, to be passed to one of the next two functions or to field_errors_done. */
struct field_errors *write_new_errors(const struct writing *writing);
/* Does the same as write_refuse with `causes`, which must not be empty. */
bool write_refuse_causes(const struct writing *writing, int code, const char *reason,
                         struct field_errors *causes, const char *message);
/* Refuses with Invalid, and the first of `errors`, which must not be empty, as the message. */
bool write_refuse_invalid(const struct writing *writing, struct field_errors *errors, struct str name);

bool write_workload(const struct writing *writing); /* workload.c */
/* advise.c, for checks: leaves a WARNING for each likely mistake that validation accepts: an annotation,
 * priority class or claim that does not exist, chips of another name than the cluster's, amounts that no
 * machine has. */
void write_advise(const struct writing *writing, const struct doc *document, const struct jobset_spec *spec);
bool write_podsets(const struct writing *writing); /* podsets.c */
/* object.c */
bool write_object(const struct writing *writing);
/* Refuses new objects in a namespace that is being deleted or does not exist. Makes permanent ones if
 * needed. */
bool write_namespace_open(const struct writing *writing, struct str namespace_);
/* Refuses new finalizers on an object that is being deleted (`deleted_ns` not 0). */
bool write_finalizers_hold(const struct writing *writing, int64_t deleted_ns, const struct doc *was,
                           const struct doc *is);
bool write_fabric(const struct writing *writing);    /* fabric.c: Cubes, Switches */
bool write_fault(const struct writing *writing);     /* fault.c */
bool write_injection(const struct writing *writing); /* injections.c */
/* quota.c: refuses a new object beyond a ResourceQuota. `document` and `spec`: a workload's, or NULL. */
bool write_quota_allows(const struct writing *writing, struct str namespace_, const struct doc *document,
                        const struct jobset_spec *spec);
/* budget.c: refuses a document that exceeds the bytes that the namespace or the cluster may store. `was`: the
 * bytes charged for the document that it replaces; 0: a new object. The namespace of cluster-wide kinds is
 * empty. A document that does not grow is always allowed. */
bool write_budget_allows(const struct writing *writing, struct str namespace_, uint64_t was,
                         const struct doc *document);

#endif
