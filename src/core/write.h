/* write.h - what the files of the write path share: write.c (refusals, preconditions, routing),
 * write_workload.c, write_podsets.c, write_object.c (stored objects). Private to the core.
 *
 * Every function that refuses leaves one REPLY and returns false.
 */
#ifndef PHX_CORE_WRITE_H
#define PHX_CORE_WRITE_H

#include "core/internal.h"

struct writing {
    struct core *core;
    struct step *step;
    const struct write_event *write;
    bool dry; /* would it be accepted? Only a refusal is replied, nothing changes */
};

bool write_refuse(const struct writing *writing, int code, const char *reason,
                  const struct field_errors *causes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool write_accept(const struct writing *writing, int code, struct object_ref object); /* true */
bool write_refuse_missing(const struct writing *writing);
bool write_refuse_verb(const struct writing *writing);
/* AlreadyExists; `title`: object_kind_title. */
bool write_refuse_taken(const struct writing *writing, const char *title, struct str name);
/* The document is not of the kind `expected`. */
bool write_refuse_kind(const struct writing *writing, const char *expected, const struct doc *document);
/* Preconditions on the object as it is. */
bool write_still_holds(const struct writing *writing, struct object_ref ref);
/* The body as a document without what the server owns; `bytes_max`: of its text. */
bool write_parse(const struct writing *writing, struct arena *arena, size_t bytes_max,
                 struct doc **ret_document);
/* metadata.namespace (where `namespaced`) and, for a generateName, metadata.name. */
void write_set_name(const struct writing *writing, struct arena *arena, struct doc *document,
                    bool namespaced);
/* A list of broken rules for the reply, in which it lives. */
struct field_errors *write_new_errors(const struct writing *writing);
/* write_refuse with `causes` (write_new_errors, not empty), whose items move into the reply. */
bool write_refuse_causes(const struct writing *writing, int code, const char *reason,
                         struct field_errors *causes, const char *message);
/* `errors` is not empty; its items move into the reply, whose life they share. */
bool write_refuse_invalid(const struct writing *writing, struct field_errors *errors, struct str name);

bool write_workload(const struct writing *writing); /* write_workload.c */
/* write_advise.c: leaves a WARNING for each thing that the workload names and that does not exist here. For a
 * write that is only checked. */
void write_advise(const struct writing *writing, const struct doc *document, const struct jobset_spec *spec);
bool write_podsets(const struct writing *writing); /* write_podsets.c */
/* write_object.c */
bool write_object(const struct writing *writing);
/* May something be made in this namespace? A namespace that is missing is made, unless the write is only
 * checked:
 * an old log names namespaces that nobody had made. */
bool write_namespace_open(const struct writing *writing, struct str namespace_);
/* No finalizer may come to an object that is being deleted. */
bool write_finalizers_hold(const struct writing *writing, int64_t deleted_ns, const struct doc *was,
                           const struct doc *is);
bool write_fault(const struct writing *writing); /* write_fault.c */
bool write_injection(const struct writing *writing); /* injections.c */
/* write_quota.c: do the namespace's ResourceQuotas leave room for what is being created? `document` and
 * `spec` of a
 * workload; NULL: it is none. */
bool write_quota_allows(const struct writing *writing, struct str namespace_, const struct doc *document,
                        const struct jobset_spec *spec);

#endif
