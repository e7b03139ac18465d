/* Writes that are worked out on the loop: of users who have many each waits its turn. */
#include "client.h"

#include "host/api/request.h"
#include "host/api/seats.h"
#include "host/api/work.h"

enum { LARGE_BYTES = 20 * 1024, REVIEWS = 1 + SEATS_WITHOUT_ROLE_WAITING_MAX, REVIEWERS = REVIEWS + 1 };
enum { ANN_PATCHES = 4, BOB_PATCHES = 2, PATCHES = ANN_PATCHES + BOB_PATCHES };
#define MERGE "application/merge-patch+json"

/* Gives the JobSet a text of WORK_BYTES_MIN and more. */
static void make_large(struct fake_host *host)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    create(host, "a");
    buf_add_str(&body, STR("{\"metadata\":{\"annotations\":{\"note\":\""));
    for (int i = 0; i < WORK_BYTES_MIN; i++)
        buf_add_char(&body, 'x');
    buf_add_str(&body, STR("\"}}}"));
    assert_int_equal(ask(host, &arena, "PATCH", JOBSETS "/a", "Content-Type: " MERGE "\r\n", body.data, NULL),
                     200);
}

/* Has the server a user's patch, which sets a label. */
static void handle_patch_of(struct api_request *request, struct fake_host *host,
                            const struct access_user *user, int label)
{
    char url[256];
    snprintf(url, sizeof url, JOBSETS "/a?fieldManager=" STR_FORMAT, STR_ARG(user->name));
    request_init(request, host->api, METHOD_PATCH, str_from(url));
    request->content_type = STR(MERGE);
    request->user = user;
    buf_printf(&request->body, "{\"metadata\":{\"labels\":{\"l%d\":\"x\"}}}", label);
    fake_begins(host);
    request_handle(request);
    fake_ends(host);
}

/* Has the host `count` writes? In one turn of the loop it gets one at most. */
static bool has_writes(const struct fake_host *host, size_t count, size_t *seen)
{
    assert_true(host->writes.len <= *seen + 1);
    *seen = host->writes.len;
    return host->writes.len == count;
}

static void users_take_turns(void **state)
{
    static const char *const order[PATCHES] = {"ann", "bob", "ann", "bob", "ann", "ann"};
    const struct access_user ann = {.name = STR("ann")}, bob = {.name = STR("bob")};
    struct fake_host *host = *state;
    struct api_request requests[PATCHES];
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    size_t seen = 1;
    make_large(host);
    host->hold_commits = true;
    for (int i = 0; i < PATCHES; i++)
        handle_patch_of(&requests[i], host, i < ANN_PATCHES ? &ann : &bob, i);
    RUN_UNTIL(host, has_writes(host, PATCHES, &seen));
    for (int i = 0; i < PATCHES; i++)
        assert_true(str_is(host->writes.items[i].event.user, order[i]));
    host->hold_commits = false; /* one is written, and the others begin again */
    for (int i = 0; i < PATCHES; i++) {
        RUN_UNTIL(host, !request_is_pending(&requests[i]));
        assert_int_equal(requests[i].code, 200);
        request_done(&requests[i]);
    }
    assert_int_equal(ask(host, &arena, "GET", JOBSETS "/a", NONE, NULL, &doc), 200);
    for (int i = 0; i < PATCHES; i++) {
        char label[8];
        snprintf(label, sizeof label, "l%d", i);
        assert_true(text_is(doc_path(doc, "metadata", "labels", label, NULL), "x"));
    }
}

/* Small ones wait for nobody. */
static void small_writes_do_not_wait(void **state)
{
    const struct access_user ann = {.name = STR("ann")};
    struct fake_host *host = *state;
    struct api_request requests[PATCHES];
    create(host, "a");
    host->hold_commits = true;
    for (int i = 0; i < PATCHES; i++)
        handle_patch_of(&requests[i], host, &ann, i);
    assert_int_equal(host->writes.len, PATCHES);
    host->hold_commits = false;
    for (int i = 0; i < PATCHES; i++) {
        RUN_UNTIL(host, !request_is_pending(&requests[i]));
        assert_int_equal(requests[i].code, 200);
        request_done(&requests[i]);
    }
}

/* Has the server a request of a user: a review or a ConfigMap that is large enough for the pool. */
static void handle_large_of(struct api_request *request, struct fake_host *host,
                            const struct access_user *user, bool review)
{
    request_init(request, host->api, METHOD_POST,
                 review ? STR("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
                        : STR("/api/v1/namespaces/default/configmaps"));
    request->content_type = STR("application/json");
    request->user = user;
    buf_printf(&request->body, "{\"metadata\":{\"name\":\"" STR_FORMAT "\",\"annotations\":{\"note\":\"",
               STR_ARG(user->name));
    for (int i = 0; i < LARGE_BYTES; i++)
        buf_add_char(&request->body, 'x');
    buf_add_str(&request->body, STR("\"}},\"spec\":{\"resourceAttributes\":{\"verb\":\"get\"}}}"));
    fake_begins(host);
    request_handle(request);
    fake_ends(host);
}

/* Anybody may ask for reviews, under any name: however many users ask, one is worked on beside the loop at a
 * time, some wait, and the seats of those with a role stay theirs. */
static void reviews_share_a_seat(void **state)
{
    const struct access_user ann = {.name = STR("ann")}, bob = {.name = STR("bob")};
    struct fake_host *host = *state;
    static struct api_request reviews[REVIEWERS];
    struct access_user users[REVIEWERS] = {0};
    struct api_request writes[2];
    struct arena arena ARENA_CLEANUP = {0};
    unsigned idle = host->loop.active_reqs.count;
    for (int i = 0; i < REVIEWERS; i++) {
        users[i].name = arena_printf(&arena, "stranger-%d", i);
        handle_large_of(&reviews[i], host, &users[i], true);
        assert_int_equal(host->loop.active_reqs.count, idle + SEATS_WITHOUT_ROLE); /* in libuv's pool */
        assert_int_equal(request_is_pending(&reviews[i]), i < REVIEWS);
    }
    assert_int_equal(reviews[REVIEWS].code, 429);
    handle_large_of(&writes[0], host, &ann, false);
    handle_large_of(&writes[1], host, &bob, false);
    assert_int_equal(host->loop.active_reqs.count, idle + SEATS);
    for (int i = 0; i < 2; i++) {
        RUN_UNTIL(host, !request_is_pending(&writes[i]));
        assert_int_equal(writes[i].code, 201);
        request_done(&writes[i]);
    }
    for (int i = 0; i < REVIEWERS; i++) {
        RUN_UNTIL(host, !request_is_pending(&reviews[i]));
        assert_int_equal(reviews[i].code, i < REVIEWS ? 201 : 429);
        request_done(&reviews[i]);
    }
}

/* The API closes while some wait for their turn. */
static void turns_end_with_the_api(void **state)
{
    struct fake_host *host = mem_alloc(sizeof *host);
    struct client clients[PATCHES];
    (void)state;
    fake_start(host, CLUSTER, 0);
    make_large(host);
    host->hold_commits = true;
    for (int i = 0; i < PATCHES; i++)
        client_send(&clients[i], host, "PATCH", JOBSETS "/a", "Content-Type: " MERGE "\r\n",
                    "{\"metadata\":{\"labels\":{\"l\":\"x\"}}}");
    RUN_UNTIL(host, host->writes.len > 0);
    fake_stop(host);
    for (int i = 0; i < PATCHES; i++)
        client_done(&clients[i]);
    mem_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(users_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(small_writes_do_not_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(reviews_share_a_seat, setup, teardown),
        cmocka_unit_test(turns_end_with_the_api),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
