/* pod_security.h - Kubernetes' Pod Security Standards: the level that a namespace requires, and whether a Pod
 * satisfies it.
 *
 * A Namespace's labels pod-security.kubernetes.io/{enforce,warn,audit} name a level. Privileged allows
 * everything. Baseline refuses access beyond the Pod: the machine's folders, ports, namespaces, capabilities.
 * Restricted also requires hardening. The label MODE-version is kept and printed; the rules are always the
 * latest ones. Wording and order of violations are those of Kubernetes 1.34 (k8s.io/pod-security-admission),
 * so a web search for a message finds its explanation:
 *
 *     allowPrivilegeEscalation != false (container "c" must set
 *     securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (...)
 *
 * Fields that validation refuses for every Pod (SELinux, Windows, sysctls, Localhost profiles) have no rule
 * here. All functions are pure and accept documents of any shape; wrong types are left to validation.
 */
#ifndef PHX_CORE_SPEC_POD_SECURITY_H
#define PHX_CORE_SPEC_POD_SECURITY_H

#include "core/spec/spec.h"

enum pod_security_level { POD_SECURITY_PRIVILEGED, POD_SECURITY_BASELINE, POD_SECURITY_RESTRICTED };
enum pod_security_mode { POD_SECURITY_ENFORCE, POD_SECURITY_WARN, POD_SECURITY_AUDIT, POD_SECURITY_MODES };

struct pod_security_policy {
    struct {
        enum pod_security_level level;
        struct str version; /* the label's value, or "latest"; points into the namespace */
    } modes[POD_SECURITY_MODES];
};

const char *pod_security_name(enum pod_security_level level);
/* Finds the level of a name such as "baseline". Returns false, and leaves *ret_level, if there is none. */
bool pod_security_read(struct str name, enum pod_security_level *ret_level);

/* Reads the labels of a Namespace (NULL: none). Without a label, enforce is `fallback`; warn and audit are
 * privileged. A label that names no level, which an old log may contain, counts as restricted. */
void pod_security_of(const struct doc *namespace_, enum pod_security_level fallback,
                     struct pod_security_policy *ret_policy);
/* Reports labels of a Namespace that name no level or version. */
void pod_security_check_labels(const struct doc *namespace_, struct field_errors *errors);

/* Appends the violations of the level by a Pod's spec to `out`, in Kubernetes' words. Returns false, and
 * appends nothing, if there are none. */
bool pod_security_violated(const struct doc *pod_spec, enum pod_security_level level, struct buf *out);
/* Returns whether the Pod or one of its containers sets runAsUser to 0. */
bool pod_security_asks_root(const struct doc *pod_spec);

#endif
