/* scenario_queues.h - the queues and priorities of a scenario: read, given to jobs, written as API objects
 * (scenario.h declares the latter). Private to src/sim/capacity.
 */
#ifndef PHX_SIM_CAPACITY_SCENARIO_QUEUES_H
#define PHX_SIM_CAPACITY_SCENARIO_QUEUES_H

#include "sim/capacity/scenario.h"

struct reader; /* field.h */
struct place;

/* The member `queues` of the scenario. */
void scenario_read_queues(struct reader *reader, struct sim_scenario *scenario, const struct place *list);
/* A field that names a queue: *ret is 1 + its place. */
void scenario_read_queue_name(struct reader *reader, const struct sim_scenario *scenario,
                              const struct place *place, uint32_t *ret);
/* A field that is a priority, which a PriorityClass will have. */
void scenario_read_priority(struct reader *reader, struct sim_scenario *scenario, const struct place *place,
                            int32_t *ret);
/* The member `priorities` of a trace: priorities by QoS. */
void scenario_read_classes(struct reader *reader, struct sim_scenario *scenario, const struct place *place);

/* The queue for jobs of that name: 1 + its place. 0: there is none, or the name is empty and no queue takes
 * all others. *ret_found is false if the scenario has queues, and none for a name that is not empty. */
uint32_t scenario_queue_of(const struct sim_scenario *scenario, struct str name, bool *ret_found);
int scenario_no_queue(const struct sim_scenario *scenario, struct str name, struct error *error);
/* Notes a priority that some job has. ERROR_LIMIT: there are too many. */
int scenario_note_priority(struct sim_scenario *scenario, int32_t priority, struct error *error);
/* The priority of the QoS; false: it has none. */
bool scenario_class_of(const struct sim_scenario *scenario, struct str qos, int32_t *ret);

#endif
