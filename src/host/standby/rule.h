/* rule.h - which requests a standby answers itself, and how new its state must be for that. Pure. Private to
 * standby.
 *
 * Reads of API objects: GET and HEAD of a collection or an object, watches among them. The version that a
 * request asks for follows Kubernetes' API concepts, "Resource versions": without one the answer shows every
 * write that was acknowledged before; "0" takes any state; another number, no older one. A standby asks the
 * leader for what it does not have: subresources (logs, commands), metrics, which agents bring to the leader,
 * and Maintenance, which says what agents have confirmed to it.
 *
 * /livez and /healthz are about the process that is asked, so a supervisor restarts no standby because nobody
 * leads. /readyz is the leader's: whether writes are taken.
 */
#ifndef PHX_HOST_STANDBY_RULE_H
#define PHX_HOST_STANDBY_RULE_H

#include "host/http/http.h"

struct read_rule {
    bool here;        /* the standby answers; the rest is meaningless otherwise */
    bool newest;      /* it must hold every write that was acknowledged before the request */
    uint64_t version; /* and all records up to this one */
};

/* The thing that a path of the API names, by the path's form alone. */
enum rule_path { RULE_NO_OBJECT, RULE_COLLECTION, RULE_OBJECT, RULE_SUBRESOURCE };
enum rule_path rule_path_of(struct str path);

struct read_rule rule_of(const struct http_head *head);

#endif
