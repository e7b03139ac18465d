/* work.h - expensive parts of a request: those that run on another thread (parsing a large body, computing a
 * patch), and those that need the loop, where users take turns.
 *
 *     if (work_pays(request, bytes)) {
 *         work_start(request, compute, go_on);   // the request is pending
 *         return;
 *     }
 * `compute` runs on a thread of libuv's pool once its user has a seat (seats.h). Until it returns it alone
 * owns the request: it may use the request's fields and arena, but neither the core nor the API's state.
 * `go_on` then runs on the loop and leaves an outcome, as a handler does. Without a loop (tests, fuzzers)
 * work_pays() returns false. A client's disconnect is noticed when the work is done.
 *
 *     work_in_turn(request, compute, go_on);   // done, or the request is pending
 *
 * Here both functions run on the loop, and may read the core. Once a request has worked on WORK_BYTES_MIN
 * (its body and the live object), the others wait for the loop's next turn. Users take turns, and other
 * requests are served in between.
 */
#ifndef PHX_HOST_API_WORK_H
#define PHX_HOST_API_WORK_H

#include "host/api/request.h"

enum {
    WORK_BYTES_MIN = 16 * 1024, /* smaller texts take less time than a hand-over, or a turn of the loop */
    WORK_NICE = 5,              /* nice(2) value of the threads, added to the loop's */
};

/* Returns whether `bytes` of text are worth another thread. */
bool work_pays(const struct api_request *request, size_t bytes);
/* Hands the request to another thread. Answers 429 if its user has too much work waiting. */
void work_start(struct api_request *request, void (*compute)(struct api_request *request),
                void (*go_on)(struct api_request *request));
/* Does the work on the loop, now or in a later turn. Answers 429 if its user has too much work waiting. */
void work_in_turn(struct api_request *request, void (*compute)(struct api_request *request),
                  void (*go_on)(struct api_request *request));
void work_next_turn(struct api *api);          /* call it in each turn of the loop */
bool work_turn_is_over(const struct api *api); /* false: call work_next_turn() in the next turn */
/* Waits for running `compute` functions and drops all other work. No `go_on` is called afterwards. */
void work_close(struct api *api);

#endif
