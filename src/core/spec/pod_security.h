/* pod_security.h - Kubernetes' Pod Security Standards: the level of a Pod, and the one that a namespace asks.
 *
 * A Namespace's labels pod-security.kubernetes.io/{enforce,warn,audit} name a level. Privileged allows all,
 * baseline refuses what reaches out of a Pod (the machine's folders, ports, namespaces, capabilities),
 * restricted also asks for what hardens it. The label KIND-version is kept and printed; the rules are always
 * the latest ones. Words and order of a violation are those of Kubernetes 1.34
 * (k8s.io/pod-security-admission), so that what people search for is found:
 *
 *     allowPrivilegeEscalation != false (container "c" must set
 *     securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (...)
 *
 * Fields that validation refuses for every Pod (SELinux, Windows, sysctls, Localhost profiles) have no rule
 * here. All functions are pure, and take documents of any shape: a wrong type is left to validation.
 */
#ifndef PHX_CORE_SPEC_POD_SECURITY_H
#define PHX_CORE_SPEC_POD_SECURITY_H

#include "core/spec/spec.h"

enum pod_security_level { POD_SECURITY_PRIVILEGED, POD_SECURITY_BASELINE, POD_SECURITY_RESTRICTED };
enum pod_security_mode { POD_SECURITY_ENFORCE, POD_SECURITY_WARN, POD_SECURITY_AUDIT, POD_SECURITY_MODES };

struct pod_security_policy {
    struct {
        enum pod_security_level level;
        struct str version; /* "latest" or as the label says; points into the namespace */
    } modes[POD_SECURITY_MODES];
};

const char *pod_security_name(enum pod_security_level level);
/* False: no such level, and *ret_level stays. */
bool pod_security_read(struct str name, enum pod_security_level *ret_level);

/* Reads the labels of a Namespace (NULL: none). Without a label enforce is `fallback`, warn and audit ask
 * nothing. A label of no level, which an old log may hold, counts as restricted. */
void pod_security_of(const struct doc *namespace_, enum pod_security_level fallback,
                     struct pod_security_policy *ret_policy);
/* Reports labels of a Namespace that name no level or version. */
void pod_security_check_labels(const struct doc *namespace_, struct field_errors *errors);

/* Adds what keeps a Pod's spec from a level to `out`, in Kubernetes' words. False: it fits, nothing is added.
 */
bool pod_security_violated(const struct doc *pod_spec, enum pod_security_level level, struct buf *out);
/* Whether the Pod or one of its containers asks for user 0 by number. */
bool pod_security_asks_root(const struct doc *pod_spec);

#endif
