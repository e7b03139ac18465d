/* standby.h - one of several controllers: follows the log on etcd until it leads, and knows while it leads.
 *
 *     struct standby *standby;
 *     rc = standby_new(loop, &options, &standby, error);   // reads snapshot and log
 *     uv_run(loop, UV_RUN_DEFAULT);                        // follows; forwards clients to the leader
 *     if (standby_leads(standby)) {
 *         controller_options.shared = standby_shared(standby);
 *         ... controller_new(), uv_run(), as a single controller does; controller_hand_over() at its end ...
 *         standby_follow_on(standby);                      // and the loop is run again: it follows
 *     }
 *     standby_leave(standby);                              // and the loop is run until clients have left
 *     standby_free(standby);
 *
 * A standby applies each record as the leader's log has it, so its state is the leader's when it takes over.
 * It takes over when nobody leads (the leader has handed over, or its lease has ended), and at once when the
 * leader's process has ended: the kernel of its computer closes the connection that the standby keeps to it,
 * and refuses the next one. That is safe though it is a guess: host/store/etcd/etcd.h.
 *
 * A standby answers reads from its own state (rule.h): a read that asks for no version waits until all
 * records were applied that the log had then. Other requests of its clients are passed on to the leader, one
 * by one, so that a client keeps its connection while the leader changes; the clients of a leader that hands
 * over are passed on by it likewise (controller_shared.pass_on). TLS of clients ends here (secure.h), or is
 * passed on byte for byte where it cannot: then it is between client and leader.
 * Agents are not: the end of their connections is evidence (core/health/evidence.h) which a forwarder would
 * fake. A standby does not listen for them, so they try the next address.
 *
 * The API's port is open as long as the process follows or leads: forwarder and API share its socket.
 *
 * Files: standby.c the loop's side; keeper.c the threads that renew the lease and watch; forward.c clients;
 * pair.c one of them; way.c its way to whoever answers; secure.c TLS; trial.c which leader takes requests;
 * bounds.c where HTTP's messages end; reads.c the API of a standby; rule.c which requests that answers.
 *
 * Threading: all functions on the loop's thread; standby_shared()'s `leads_until_ns` from any.
 */
#ifndef PHX_HOST_STANDBY_STANDBY_H
#define PHX_HOST_STANDBY_STANDBY_H

#include "host/controller/controller.h"
#include "host/store/etcd/etcd.h"

struct standby;

struct standby_options {
    struct etcd_options etcd;
    const char *api_address; /* where clients are taken */
    uint16_t api_port;       /* 0: any */
    const char *advertise;   /* ADDRESS:PORT at which the other controllers reach our API; NULL: these two */
    const struct controller_options *clients; /* who may read what; NULL: all reads are the leader's */
    /* While this one acts as the leader: another controller leads, or may, or the log in etcd is damaged or
     * another one. Does not return. */
    void (*lost)(const char *why);
};

/* Opens and applies the log, and begins to follow. The strings must outlive the standby. */
int standby_new(uv_loop_t *loop, const struct standby_options *options, struct standby **ret_standby,
                struct error *error);
uint16_t standby_api_port(const struct standby *standby);
/* The loop then ends: standby_leads() is false. */
void standby_stop(struct standby *standby);
/* The process ends: it never takes the lead again, lets its clients go (forward_leave()), and then the loop
 * ends as after standby_stop(). Call it after a hand-over, not during one. A second call ends it now. */
void standby_leave(struct standby *standby);
/* Before a hand-over behind which the process ends: further clients are refused, and ask another one. */
void standby_ends(struct standby *standby);
/* After a hand-over, when the controller was freed: follows on with its state. It leaves the lead to another
 * controller for a little while (YIELD_MS), and takes it again if none does. */
void standby_follow_on(struct standby *standby);
bool standby_leads(const struct standby *standby);
/* Why following ended without a stop: 0: it did not. ERROR_CORRUPT: the log in etcd is damaged, or does not
 * go on from what was applied here. */
int standby_failed(const struct standby *standby, struct error *error);
/* The parts that a leading controller needs; the standby must outlive it. */
const struct controller_shared *standby_shared(struct standby *standby);
/* While it leads: `asked` is called on the loop when the leadership is asked to end. */
void standby_on_step_down(struct standby *standby, void (*asked)(void *context), void *context);
/* While it leads: `readers` is called on the loop with the level of records that every replica reads, or 0.
 * `readers` opens that level and returns the log's present one (core/log/record.h). */
void standby_on_readers(struct standby *standby, uint32_t (*readers)(void *context, uint32_t reads),
                        void *context);
/* The controller that leads takes clients now: those that waited here are joined to it. */
void standby_serving(struct standby *standby);
/* Closes what is on the loop: it must be run once more before standby_free(). */
void standby_close(struct standby *standby);
void standby_free(struct standby *standby); /* ends the lease; NULL is fine */

#endif
