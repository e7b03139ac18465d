/* rule.h - which requests a standby answers itself, and how new its state must be for that. Pure. Private to
 * standby.
 *
 * A standby answers reads of API objects: GET and HEAD of a collection or an object, including watches. The
 * resourceVersion of a request follows Kubernetes' API concepts, "Resource versions": without one, the answer
 * shows every write that was acknowledged before; "0" accepts any state; any other number accepts no older
 * state. The leader answers what a standby does not have: subresources (logs, commands), metrics, which
 * agents report to the leader, and Maintenance objects, which show what agents have confirmed to the leader.
 *
 * /livez and /healthz are about the process that is asked, so no supervisor restarts a standby because nobody
 * leads. The leader answers /readyz, which says whether writes are taken.
 */
#ifndef PHX_HOST_STANDBY_RULE_H
#define PHX_HOST_STANDBY_RULE_H

#include "host/http/http.h"

struct read_rule {
    bool here;        /* the standby answers; the other fields are meaningless otherwise */
    bool newest;      /* its state must hold every write that was acknowledged before the request */
    uint64_t version; /* its state must hold all records up to this one */
};

/* The kind of thing that an API path names, by the path's form alone. */
enum rule_path { RULE_NO_OBJECT, RULE_COLLECTION, RULE_OBJECT, RULE_SUBRESOURCE };
enum rule_path rule_path_of(struct str path);

struct read_rule rule_of(const struct http_head *head);

#endif
