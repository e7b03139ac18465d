/* gang.h - communication between the functions of one gang: struct flow_gang over threads and hosts.
 *
 * Members on one host meet in memory. When the last of them has arrived, one GATHER entry with all their
 * parts is sent to each other host of the group: through shared memory (board.h) between hosts of one
 * machine, through `send` otherwise. An abort ends the waits of all members at once, including members that
 * arrive later. The state of a gang is freed with its launch.
 */
#ifndef PHX_FLOW_HOST_GANG_H
#define PHX_FLOW_HOST_GANG_H

#include "flow/host/board.h"
#include "flow/island/machine.h"

struct gang_table;
/* `send` sends an entry to another host. It is called on the thread of a member, without locks. */
struct gang_table *gang_table_new(void (*send)(void *context, uint32_t host, const struct flow_entry *entry,
                                               struct str tail),
                                  void *context);
void gang_table_free(struct gang_table *table); /* all members have been freed */
void gang_table_set_host(struct gang_table *table, uint32_t host);

/* Sends parts over the board from now on, to hosts that are on it. The board outlives the table. `slow` is
 * called by a member that has waited for more than 1 ms, without locks. Called before the first member. */
void gang_table_use(struct gang_table *table, struct board *board, void (*slow)(void *context));
/* Sets the place of another host (board_place; 0: on no board). Thread-safe. */
void gang_table_meet(struct gang_table *table, uint32_t host, uint64_t place);

struct gang_member;
/* Returns a member of run `run`; hosts[p] is the host of partition p. Its gang serves one launch of an
 * executable. `hosts` is borrowed until gang_member_free. */
struct gang_member *gang_member_new(struct gang_table *table, const struct run_id *run, const uint32_t *hosts,
                                    uint32_t count);
struct flow_gang *gang_member_gang(struct gang_member *member);
/* Copies the reason if the gang was aborted; returns whether it was. */
bool gang_member_fault(struct gang_member *member, struct fault *ret);
void gang_member_free(struct gang_member *member);

/* Handles GATHER of another host. This and the functions below are thread-safe. */
void gang_take(struct gang_table *table, const struct flow_entry *entry, struct str tail);
/* Aborts a run, whatever its step and partition; with node UINT32_MAX, every run of the launch. */
void gang_abort(struct gang_table *table, const struct run_id *run, const struct fault *fault);
/* Aborts every run, also later ones, because the process ends. */
void gang_abort_all(struct gang_table *table);
/* Frees this host's state of `run`'s launch; its node and partition do not count. */
void gang_forget(struct gang_table *table, const struct run_id *run);
/* Frees the state of launches for which `expects` returns false: parts may arrive on the board after their
 * launch is over. `expects` gets the table's context, and is called under the table's lock. */
void gang_sweep(struct gang_table *table,
                bool (*expects)(void *context, uint32_t client, uint64_t launch, uint64_t head));

#endif
