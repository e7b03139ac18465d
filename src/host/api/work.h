/* work.h - parts of a request that are done beside the loop: reading a large body, working out a patch; and
 * those that need the loop, in turn.
 *
 *     if (work_pays(request, bytes)) {
 *         work_start(request, compute, go_on);   // the request is pending
 *         return;
 *     }
 * `compute` runs on a thread of libuv's pool, once its user has a seat (seats.h). Meanwhile it alone owns the
 * request: it may use the request's own fields and arena, and neither the core nor the API's state. `go_on`
 * then runs on the loop and leaves an outcome as a handler does. Without a loop (tests, fuzzers) nothing
 * pays. A client that goes away is noticed when the work is over.
 *
 *     work_in_turn(request, compute, go_on);   // carried out, or pending
 * Both run on the loop, which reads the core. As soon as one of these has worked on WORK_BYTES_MIN, of the
 * body and of the live object, the others wait for the loop's next turn. The users take turns then, and
 * other requests are served between.
 */
#ifndef PHX_HOST_API_WORK_H
#define PHX_HOST_API_WORK_H

#include "host/api/request.h"

enum {
    WORK_BYTES_MIN = 16 * 1024, /* smaller texts take less time than a hand-over, or a turn of the loop */
    WORK_NICE = 5,              /* of the threads, on top of the loop's (nice(2)) */
};

/* Whether that much text should be worked on beside the loop. */
bool work_pays(const struct api_request *request, size_t bytes);
/* Hands the request over; answers 429 where its user has too much work waiting. */
void work_start(struct api_request *request, void (*compute)(struct api_request *request),
                void (*go_on)(struct api_request *request));
/* Carries the work out on the loop, now or in a later turn; answers 429 where its user has too much waiting.
 */
void work_in_turn(struct api_request *request, void (*compute)(struct api_request *request),
                  void (*go_on)(struct api_request *request));
void work_next_turn(struct api *api);          /* a turn of the loop has begun */
bool work_turn_is_over(const struct api *api); /* false: work_next_turn() is due */
/* The API closes: waits for what is being computed, and forgets the rest. Nothing goes on afterwards. */
void work_close(struct api *api);

#endif
