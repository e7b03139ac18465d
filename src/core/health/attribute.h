/* attribute.h - which fault ended an attempt: Meta's rule (arXiv 2410.21680), "detected within ten minutes
 * before or five minutes after the end of the job", with one primary cause and the others as support.
 *
 * A fault struck a JobSet when it occurred on a machine or chip that the JobSet had, or had until at most
 * five minutes before. Of those in the window the primary one has the largest level; of equal ones hardware
 * goes before software before the user, then the earliest. A code that struck several chips of the job at
 * once counts as software, whatever its table says.
 */
#ifndef PHX_CORE_HEALTH_ATTRIBUTE_H
#define PHX_CORE_HEALTH_ATTRIBUTE_H

#include "core/health/fault.h"

#define ATTRIBUTE_BEFORE_NS (600 * NS_PER_SECOND)
#define ATTRIBUTE_AFTER_NS  (300 * NS_PER_SECOND)

enum { ATTRIBUTE_SUPPORT_MAX = 7 };

struct attribution {
    const struct fault *primary;                           /* NULL: nothing is known that explains it */
    const struct fault *supporting[ATTRIBUTE_SUPPORT_MAX]; /* the next worst, in order */
    size_t supporting_count, more;                         /* more: beyond those */
    enum fault_domain domain;                              /* of the primary one */
};

/* Why did an attempt of this JobSet end at `end_ns` (stamp)? Faults of `machine`, that of the task which
 * ended first, go before all others; empty: it is not known. Looks at every fault: for one object at a time,
 * not for lists. */
void attribute(const struct health *health, obj_id job, struct str machine, int64_t end_ns,
               struct attribution *ret);

#endif
