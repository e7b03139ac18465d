/* rbac.h - evaluates Kubernetes' role-based access control (rbac.authorization.k8s.io/v1).
 *
 * A policy is built from documents (Role, ClusterRole, RoleBinding, ClusterRoleBinding) in any order, and
 * must be sealed before it is queried. Roles only add rights: what no rule allows is refused.
 *
 *     rbac_add(policy, document) ...   rbac_seal(policy)   rbac_allows(policy, &user, &attributes)
 *
 * Objects that change are followed kind by kind; the cost depends on what has changed:
 *
 *     rbac_follow_begin(policy, kind)
 *     rbac_follow(policy, kind, uid, version, document)    for each object that exists
 *     rbac_follow_end(policy, kind)
 *     rbac_seal(policy)
 *
 * Semantics (Kubernetes' "Using RBAC Authorization"): a ClusterRoleBinding gives its role everywhere; a
 * RoleBinding within its namespace, even if it names a ClusterRole. A binding to a role that does not exist
 * gives nothing. ClusterRoles with an aggregationRule gain the rules of the roles that it selects. A rule
 * with resourceNames allows no request without a name (list, create), unless a field selector limits the
 * request to one name. "pods" does not include "pods/log"; "*" and "* / log" (without spaces) do.
 *
 * Documents are copied. The cost of a query depends on the bindings of the user and the user's groups only.
 */
#ifndef PHX_HOST_ACCESS_RBAC_H
#define PHX_HOST_ACCESS_RBAC_H

#include "doc/doc.h"
#include "base/error.h"
#include "host/access/access.h"

struct rbac;

struct rbac *rbac_new(void);
void rbac_free(struct rbac *policy);
/* Adds a document, or the documents of a `kind: List`, before the first rbac_follow() (CHECKed). A later role
 * of the same name replaces the earlier one. ERROR_INVALID: the kind is another one, or the document is
 * malformed and adds nothing; the documents before it in a List are added. */
int rbac_add(struct rbac *policy, const struct doc *document, struct error *error);
/* Begins to follow the objects of a kind, any number but 0. */
void rbac_follow_begin(struct rbac *policy, int kind);
/* Reports an object that exists. `version` must change with the document. A malformed document adds
 * nothing. */
void rbac_follow(struct rbac *policy, int kind, uint64_t uid, uint64_t version, const struct doc *document);
/* Removes the objects of the kind that were not reported since rbac_follow_begin(). */
void rbac_follow_end(struct rbac *policy, int kind);
/* Binds a user or group to a ClusterRole in one namespace (empty: everywhere). */
void rbac_bind(struct rbac *policy, struct str role, struct str namespace_, bool group, struct str subject);
/* Applies aggregation rules. Required after a change, before the queries below. */
void rbac_seal(struct rbac *policy);
bool rbac_has_role(const struct rbac *policy, struct str namespace_, struct str name); /* sealed or not */

bool rbac_allows(const struct rbac *policy, const struct access_user *user,
                 const struct access_attributes *attributes);
/* The most combinations of verb, group, resource and name that rbac_covers() checks at once. */
enum { RBAC_ATOMS_MAX = 10000 };
/* Returns 1 if the user holds every right that `documents` (a role's `rules`) would give in the namespace
 * (empty: cluster-wide), otherwise 0. Only a user who holds them may give them to others. ERROR_LIMIT: the
 * rules have more than RBAC_ATOMS_MAX combinations, and were not checked, which would hold the loop. */
int rbac_covers(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                const struct doc *documents);
/* Returns the rules of a role, aggregated ones included, or NULL if there is no such role. The policy owns
 * the document, which is valid until the policy changes. */
const struct doc *rbac_role_rules(const struct rbac *policy, struct str namespace_, struct str name);
/* Calls `visit` with each rule that the user holds in the namespace, cluster-wide rules included, as a
 * PolicyRule document. */
void rbac_visit_rules(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                      void (*visit)(void *context, const struct doc *rule), void *context);

/* Adds the ClusterRoles and bindings that always exist (builtin.c). */
void rbac_add_builtin(struct rbac *policy);

#endif
