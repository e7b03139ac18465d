/* metrics.h - a head's numbers as Prometheus reads them, for an HTTP server on another thread.
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

/* Adds the metrics of a status as OpenMetrics 1.0 text. docs/flow-runtime.md lists them. */
void flow_metrics_write(const struct flow_status *status, struct buf *out);

/* A desk at which one thread asks the head's thread for its metrics. */
struct flow_desk;
struct flow_desk *flow_desk_new(void);
void flow_desk_free(struct flow_desk *desk); /* NULL allowed; nobody may be asking */
/* Waits for the head's thread to add its metrics to `out`. False: there is no head, or it has ended. Any
 * thread. */
bool flow_desk_ask(struct flow_desk *desk, struct buf *out);

struct loop;
struct head;
/* For the head's thread. The loop is woken for those who ask; then flow_desk_answer answers them. After
 * flow_desk_close nobody waits. */
void flow_desk_open(struct flow_desk *desk, struct loop *loop);
void flow_desk_answer(struct flow_desk *desk, const struct head *head);
void flow_desk_close(struct flow_desk *desk);

#endif
