/* standby.h - one of several controllers that share a log on etcd: a standby follows the log until it leads.
 *
 *     struct standby *standby;
 *     rc = standby_new(loop, &options, &standby, error);   // reads snapshot and log
 *     uv_run(loop, UV_RUN_DEFAULT);                        // follows; forwards clients to the leader
 *     if (standby_leads(standby)) {
 *         controller_options.shared = standby_shared(standby);
 *         ... controller_new(), uv_run(), as a single controller does; controller_hand_over() at its end ...
 *         standby_follow_on(standby);                      // run the loop again: the standby follows
 *     }
 *     standby_leave(standby);                              // run the loop until all clients have left
 *     standby_close(standby);                              // run the loop once more
 *     standby_free(standby);
 *
 * A standby applies each record of the leader's log, so its state equals the leader's when it takes over.
 * The standby takes over when nobody leads: the leader has handed over, or its lease has ended. It takes over
 * at once when the leader's process has died: the kernel of the leader's machine closes the connection that
 * the standby keeps to the leader, and refuses the next one. This is a guess, but a safe one:
 * host/store/etcd/etcd.h.
 *
 * A standby answers reads from its own state (rule.h): a read that asks for no version waits until the
 * standby has applied every record that the log held when the read arrived. The standby forwards all other
 * requests to the leader, one by one, so a client keeps its connection when the leader changes. After a
 * hand-over it also forwards the requests of the former leader's clients (controller_shared.pass_on).
 * Clients' TLS sessions end at the standby (secure.h). Where they cannot, the standby forwards the encrypted
 * bytes, and the session is between client and leader.
 * Agents are not forwarded: a closed agent connection is evidence (core/health/evidence.h), and a forwarder
 * would falsify it. A standby does not listen for agents, so they try the next address.
 *
 * The API's port stays open while the process follows or leads: forwarder and API share its socket.
 *
 * Files: standby.c the loop's side; keeper.c the threads that renew the lease and watch etcd; forward.c all
 * clients; pair.c one client; way.c a client's connection to the leader or to the local API; secure.c TLS;
 * trial.c tests whether a leader takes forwarded requests; again.h writes that are sent again; bounds.c where
 * HTTP messages end; reads.c the standby's API; rule.c which requests that API answers.
 *
 * Threading: call every function on the loop's thread. Any thread may call standby_shared()'s
 * `leads_until_ns`.
 */
#ifndef PHX_HOST_STANDBY_STANDBY_H
#define PHX_HOST_STANDBY_STANDBY_H

#include "host/controller/controller.h"
#include "host/store/etcd/etcd.h"

struct standby;

struct standby_options {
    struct etcd_options etcd;
    const char *api_address; /* numeric address to listen on for clients */
    uint16_t api_port;       /* 0: any */
    const char *advertise;   /* ADDRESS:PORT at which other controllers reach our API; NULL: the two above */
    const struct controller_options *clients; /* TLS and access control; NULL: the leader serves all reads */
    /* Called while this controller leads, when another controller leads or may lead, or when the log in etcd
     * is damaged or has been replaced. Must not return. */
    void (*lost)(const char *why);
};

/* Opens the log, applies it, and begins to follow. Blocks until the log is read. On failure *ret_standby is
 * set all the same: close and free it. `options` is copied; what it points to must outlive the standby. */
int standby_new(uv_loop_t *loop, const struct standby_options *options, struct standby **ret_standby,
                struct error *error);
uint16_t standby_api_port(const struct standby *standby);
/* Ends the loop. standby_leads() returns false from then on. */
void standby_stop(struct standby *standby);
/* Ends the process's part in the cluster: the standby never leads again, lets its clients go
 * (forward_leave()), and then ends the loop as standby_stop() does. Call it after a hand-over, not during
 * one. A second call ends the loop at once. */
void standby_leave(struct standby *standby);
/* Announces that the process ends after the next hand-over: that hand-over then closes the listening socket,
 * so that new clients try another controller. */
void standby_ends(struct standby *standby);
/* Follows the log again after a hand-over, from the controller's last state. Call it once the controller is
 * freed. For a short time (YIELD_MS) the standby leaves the lead to others; it leads again if none takes
 * it. */
void standby_follow_on(struct standby *standby);
bool standby_leads(const struct standby *standby);
/* Returns 0, or the error that ended the loop without a stop. ERROR_CORRUPT: the log in etcd is damaged, or
 * does not continue what this standby has applied. */
int standby_failed(const struct standby *standby, struct error *error);
/* Returns what a leading controller needs (controller_options.shared). Requires standby_leads(); the standby
 * must outlive the controller. */
const struct controller_shared *standby_shared(struct standby *standby);
/* Has `asked` called on the loop when, while this controller leads, it is asked to hand over. */
void standby_on_step_down(struct standby *standby, void (*asked)(void *context), void *context);
/* Has `readers` called on the loop, while this controller leads, with the highest level of records that every
 * replica reads. `readers` opens that level (none if 0) and returns the log's level (core/log/record.h). */
void standby_on_readers(struct standby *standby, uint32_t (*readers)(void *context, uint32_t reads),
                        void *context);
/* Connects the requests that waited here to the leading controller of this process, which now listens. */
void standby_serving(struct standby *standby);
/* Ends the lease and closes the standby's handles: run the loop until they are closed, then call
 * standby_free(). NULL is fine. */
void standby_close(struct standby *standby);
/* Frees a closed standby. NULL is fine. */
void standby_free(struct standby *standby);

#endif
