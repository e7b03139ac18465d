/* gang.h - how running functions of one gang meet: struct flow_gang over threads and hosts.
 *
 * Members on one host meet in memory. When the last of them has come, one GATHER entry with all their parts
 * goes to each other host of the group: through shared memory (board.h) between hosts of one machine, through
 * `send` otherwise. A gang that is aborted answers everybody at once, also those who come
 * later; its traces are forgotten with its launch.
 */
#ifndef PHX_FLOW_HOST_GANG_H
#define PHX_FLOW_HOST_GANG_H

#include "flow/host/board.h"
#include "flow/island/machine.h"

struct gang_table;
/* `send` hands an entry to another host; called on the thread that meets, under no lock. */
struct gang_table *gang_table_new(void (*send)(void *context, uint32_t host, const struct flow_entry *entry,
                                               struct str tail),
                                  void *context);
void gang_table_free(struct gang_table *table); /* nobody meets any more */
void gang_table_set_host(struct gang_table *table, uint32_t host);

/* Parts go over the board from now on, to hosts that are on it. The board outlives the table. `slow` is
 * called by a member that has waited for more than 1 ms, under no lock. Before anybody meets. */
void gang_table_use(struct gang_table *table, struct board *board, void (*slow)(void *context));
/* Tells where another host is (board_place; 0: on no board). Thread-safe. */
void gang_table_meet(struct gang_table *table, uint32_t host, uint64_t place);

struct gang_member;
/* A member of run `run`: hosts[p] is where partition p is. Its gang serves one launch of an executable.
 * `hosts` must live until gang_member_free. */
struct gang_member *gang_member_new(struct gang_table *table, const struct run_id *run, const uint32_t *hosts,
                                    uint32_t count);
struct flow_gang *gang_member_gang(struct gang_member *member);
/* Copies why the gang was aborted; false: it was not. */
bool gang_member_fault(struct gang_member *member, struct fault *ret);
void gang_member_free(struct gang_member *member);

/* Parts of another host. Thread-safe, as all below. */
void gang_take(struct gang_table *table, const struct flow_entry *entry, struct str tail);
/* node UINT32_MAX: every run of the launch. */
void gang_abort(struct gang_table *table, const struct run_id *run, const struct fault *fault);
/* Every run, from now on: the process ends. */
void gang_abort_all(struct gang_table *table);
/* The part of `run`'s launch that is on this host; its node and partition do not count. */
void gang_forget(struct gang_table *table, const struct run_id *run);
/* Forgets launches that nobody expects anything of: parts on the board may come after their launch is over.
 * `expects` gets the table's context; called under the table's lock. */
void gang_sweep(struct gang_table *table,
                bool (*expects)(void *context, uint32_t client, uint64_t launch, uint64_t head));

#endif
