/* scenario_queues.h - the queues and priorities of a scenario: reads them, assigns them to jobs, and writes
 * them as API objects (declared in scenario.h). Private to src/sim/capacity.
 */
#ifndef PHX_SIM_CAPACITY_SCENARIO_QUEUES_H
#define PHX_SIM_CAPACITY_SCENARIO_QUEUES_H

#include "sim/capacity/scenario.h"

struct reader; /* field.h */
struct place;

/* Reads the member `queues` of the scenario. */
void scenario_read_queues(struct reader *reader, struct sim_scenario *scenario, const struct place *list);
/* Reads a field that names a queue. *ret is 1 + the queue's index. */
void scenario_read_queue_name(struct reader *reader, const struct sim_scenario *scenario,
                              const struct place *place, uint32_t *ret);
/* Reads a priority, for which a PriorityClass will be written. */
void scenario_read_priority(struct reader *reader, struct sim_scenario *scenario, const struct place *place,
                            int32_t *ret);
/* Reads the member `priorities` of a trace: priorities by QoS. */
void scenario_read_classes(struct reader *reader, struct sim_scenario *scenario, const struct place *place);

/* Returns 1 + the index of the queue for a name in a trace, or of the queue with "*" if none matches. Returns
 * 0 if there is neither; *ret_found is then false if the scenario has queues and the name is not empty. */
uint32_t scenario_queue_of(const struct sim_scenario *scenario, struct str name, bool *ret_found);
/* Sets the error for a name without a queue, and returns ERROR_INVALID. */
int scenario_no_queue(const struct sim_scenario *scenario, struct str name, struct error *error);
/* Notes the priority of a job. Returns ERROR_LIMIT if there are too many different ones. */
int scenario_note_priority(struct sim_scenario *scenario, int32_t priority, struct error *error);
/* Finds the priority of a QoS. Returns false if it has none. */
bool scenario_class_of(const struct sim_scenario *scenario, struct str qos, int32_t *ret);

#endif
