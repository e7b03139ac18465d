/* rbac.h - who may do what: Kubernetes' role-based access control (rbac.authorization.k8s.io/v1), evaluated.
 *
 * A policy is built from documents (Role, ClusterRole, RoleBinding, ClusterRoleBinding) in any order, and
 * sealed before it is asked. Roles only ever add rights: nothing is allowed that no rule allows.
 *
 *     rbac_add(policy, document) ...   rbac_seal(policy)   rbac_allows(policy, &user, &attributes)
 *
 * Objects that change are followed, kind by kind, at the cost of what changed:
 *
 *     rbac_follow_begin(policy, kind)   rbac_follow(policy, kind, uid, version, document) for each that is
 *                                       there
 *     rbac_follow_end(policy, kind)     rbac_seal(policy)
 *
 * Semantics (Kubernetes' "Using RBAC Authorization"): a ClusterRoleBinding gives its role everywhere, a
 * RoleBinding within its namespace, also when it names a ClusterRole; a binding to a role that does not
 * exist gives nothing; ClusterRoles with an aggregationRule gain the rules of those that it selects. A
 * rule with resourceNames allows nothing that has no name (list, create) unless the request is limited to
 * one name by a field selector. "pods" does not include "pods/log"; "*" and "* / log" (without spaces) do.
 *
 * Documents are copied. Cost of a question: the bindings of the user's names and groups, not of all users.
 */
#ifndef PHX_HOST_ACCESS_RBAC_H
#define PHX_HOST_ACCESS_RBAC_H

#include "doc/doc.h"
#include "base/error.h"
#include "host/access/access.h"

struct rbac;

struct rbac *rbac_new(void);
void rbac_free(struct rbac *policy);
/* Adds a document, or the documents of a `kind: List`. A later role of the same name replaces the earlier
 * one. ERROR_INVALID: the kind is another, or the document is malformed; nothing was added then. */
int rbac_add(struct rbac *policy, const struct doc *document, struct error *error);
/* Before the first rbac_follow. Kinds are any numbers but 0; an object's version changes with its
 * document. */
void rbac_follow_begin(struct rbac *policy, int kind);
void rbac_follow(struct rbac *policy, int kind, uint64_t uid, uint64_t version, const struct doc *document);
void rbac_follow_end(struct rbac *policy, int kind); /* what was not there again is gone */
/* "user `name` has ClusterRole `role`" in one namespace (empty: everywhere); for small files and built-ins.
 */
void rbac_bind(struct rbac *policy, struct str role, struct str namespace_, bool group, struct str subject);
void rbac_seal(struct rbac *policy);
bool rbac_has_role(const struct rbac *policy, struct str namespace_, struct str name); /* sealed or not */

bool rbac_allows(const struct rbac *policy, const struct access_user *user,
                 const struct access_attributes *attributes);
/* Does the user hold everything that `rules` (a role's `rules`) would allow in the namespace (empty:
 * cluster-wide)? A user may not give rights to others that the user does not have. */
bool rbac_covers(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                 const struct doc *rules);
/* The rules of a role as a document (in `arena`), aggregated ones included; NULL: there is none. */
const struct doc *rbac_role_rules(const struct rbac *policy, struct str namespace_, struct str name);
/* Each rule that the user holds in the namespace, cluster-wide ones included, as a PolicyRule document. */
void rbac_visit_rules(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                      void (*visit)(void *context, const struct doc *rule), void *context);

/* The ClusterRoles and bindings that always exist (builtin.c). */
void rbac_add_builtin(struct rbac *policy);

#endif
