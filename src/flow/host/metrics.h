/* metrics.h - a head's metrics in the format of Prometheus, for an HTTP server on another thread.
 *
 *     struct flow_desk *desk = flow_desk_new();
 *     ... options.desk = desk; flow_head_run(&options, &error);      // on one thread
 *     struct buf text = {0};
 *     if (flow_desk_ask(desk, &text)) ...                            // on another
 *     flow_desk_free(desk);                                          // after both
 */
#ifndef PHX_FLOW_HOST_METRICS_H
#define PHX_FLOW_HOST_METRICS_H

#include "base/str.h"
#include "flow/island/status.h"

/* Appends the metrics of a status as OpenMetrics 1.0 text. docs/flow-runtime.md lists them. */
void flow_metrics_write(const struct flow_status *status, struct buf *out);

/* A desk passes requests for metrics from other threads to the head's thread. */
struct flow_desk;
struct flow_desk *flow_desk_new(void);
void flow_desk_free(struct flow_desk *desk); /* NULL allowed; no thread may be asking */
/* Waits until the head's thread has appended its metrics to `out`. Returns false if there is no head, or it
 * has ended. Any thread may call it. */
bool flow_desk_ask(struct flow_desk *desk, struct buf *out);

struct loop;
struct head;
/* For the head's thread. A request wakes the loop; flow_desk_answer then answers all requests.
 * flow_desk_close ends the waits of all threads that ask. */
void flow_desk_open(struct flow_desk *desk, struct loop *loop);
void flow_desk_answer(struct flow_desk *desk, const struct head *head);
void flow_desk_close(struct flow_desk *desk);

#endif
