/* The board: messages through shared memory, and members of three hosts of one machine that meet over it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flow/host/board.h"
#include "flow/host/gang.h"

enum { HOSTS = 3, MEMBERS = 6, ROUNDS = 300, WORDS = 600 };
static const uint32_t places[MEMBERS] = {0, 1, 1, 2, 0, 2};
static struct gang_table *tables[HOSTS];
static struct board *boards[HOSTS];
static _Atomic int loops; /* entries that did not go over the board */

static struct flow_entry gather(uint32_t node)
{
    return (struct flow_entry){.kind = ENTRY_GATHER, .client = 1, .node = node};
}

static bool board_send(struct board *board, int seat, const struct flow_entry *entry, struct str tail)
{
    bool sent = board_compose(board, entry, tail) && board_post(board, seat);
    board_flush(board);
    return sent;
}

static void messages_pass(void **state)
{
    int fd = board_make();
    struct board *a = board_join(fd, 1), *b = board_join(fd, 1);
    struct flow_entry entry, sent = gather(7);
    struct str tail;
    assert_true(fd >= 0 && a && b);
    assert_int_equal(board_seat(a, board_place(a)), -1);
    assert_int_equal(board_seat(a, 0), -1);
    int to = board_seat(a, board_place(b));
    assert_true(to >= 0);
    assert_false(board_take(b, &entry, &tail));
    assert_true(board_send(a, to, &sent, str_from("parts")));
    assert_false(board_is_empty(b));
    assert_true(board_take(b, &entry, &tail));
    assert_int_equal(entry.node, 7);
    assert_true(str_is(tail, "parts"));
    assert_true(board_is_empty(b));
    board_leave(a);
    board_leave(b);
    close(fd);
}

static void full_ring_refuses(void **state)
{
    static char bytes[BOARD_MESSAGE_MAX + 1];
    int fd = board_make(), count = 0;
    struct board *a = board_join(fd, 1), *b = board_join(fd, 1);
    struct flow_entry entry, sent = gather(1);
    struct str tail, large = {bytes, BOARD_MESSAGE_MAX};
    int to = board_seat(a, board_place(b));
    assert_false(board_send(a, to, &sent, (struct str){bytes, sizeof bytes}));
    while (board_send(a, to, &sent, large))
        count++;
    assert_int_equal(count, BOARD_RING / (BOARD_MESSAGE_MAX + (int)sizeof sent));
    for (int i = 0; i < count; i++)
        assert_true(board_take(b, &entry, &tail));
    assert_int_equal(tail.len, BOARD_MESSAGE_MAX);
    assert_true(board_send(a, to, &sent, large));
    board_leave(a);
    board_leave(b);
    close(fd);
}

/* Seats are not used twice; a descriptor that is no board is refused. */
static void seats_end(void **state)
{
    int fd = board_make(), other = memfd_create("other", MFD_CLOEXEC);
    for (int i = 0; i < BOARD_SEATS; i++) {
        struct board *board = board_join(fd, 1);
        assert_non_null(board);
        board_leave(board);
    }
    assert_null(board_join(fd, 1));
    assert_int_equal(ftruncate(other, 1 << 27), 0);
    assert_null(board_join(other, 1));
    assert_null(board_join(-1, 1));
    close(fd);
    close(other);
}

static void head_links_it(void **state)
{
    char dir[] = "/tmp/flow-board-XXXXXX", listen[64], path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(listen, sizeof listen, "unix:%s/head", dir);
    snprintf(path, sizeof path, "%s/head.board", dir);
    int fd = board_make();
    assert_int_equal(board_find(listen), -1);
    board_publish(fd, listen);
    board_publish(fd, listen);
    int found = board_find(listen);
    struct board *a = board_join(fd, 1), *b = board_join(found, 1);
    assert_true(a && b && board_seat(a, board_place(b)) >= 0);
    board_withdraw(listen);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(board_find("localhost:1"), -1);
    board_leave(a);
    board_leave(b);
    close(found);
    close(fd);
    rmdir(dir);
}

struct sleeper {
    struct board *board;
    _Atomic pid_t thread;
    bool rung;
};

static void *sleeper_main(void *arg)
{
    struct sleeper *self = arg;
    uint32_t bell = board_bell(self->board);
    board_expect(self->board, 1);
    self->thread = gettid();
    self->rung = board_sleep(self->board, bell, -1);
    return NULL;
}

static char state_of(pid_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    return state;
}

/* A reader sleeps in the kernel until the message that it lacks comes. */
static void a_message_wakes_a_sleeper(void **state)
{
    int fd = board_make();
    struct sleeper sleeper = {.board = board_join(fd, 1)};
    struct board *other = board_join(fd, 1000); /* more threads than cores */
    struct flow_entry entry = gather(1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, sleeper_main, &sleeper), 0);
    while (!sleeper.thread || state_of(sleeper.thread) != 'S')
        sched_yield();
    assert_true(board_send(other, board_seat(other, board_place(sleeper.board)), &entry, STR("")));
    pthread_join(thread, NULL);
    assert_true(sleeper.rung);
    assert_false(board_sleep(sleeper.board, board_bell(sleeper.board), 1));
    board_leave(other);
    board_leave(sleeper.board);
    close(fd);
}

static void by_loop(void *context, uint32_t host, const struct flow_entry *entry, struct str tail)
{
    loops++;
    gang_take(tables[host], entry, tail);
}

static void never_slow(void *context)
{
}

struct member {
    pthread_t thread;
    uint32_t partition;
    size_t words; /* of 8 bytes that each member gives */
    bool stays_away;
    int rc;
    uint64_t right;
};

static void *member_main(void *arg)
{
    struct member *self = arg;
    struct run_id run = {.client = 1, .launch = 1, .node = 4, .partition = self->partition};
    struct gang_member *member = gang_member_new(tables[places[self->partition]], &run, places, MEMBERS);
    struct flow_gang *gang = gang_member_gang(member);
    const uint32_t all[MEMBERS] = {5, 4, 3, 2, 1, 0};
    uint64_t mine[WORDS] = {0}, got[MEMBERS * WORDS];
    struct error error;
    for (uint64_t round = 0; round < ROUNDS && self->rc == 0 && !self->stays_away; round++) {
        mine[self->words - 1] = round * 100 + self->partition;
        self->rc = gang->all_gather(gang, all, MEMBERS, 1, mine, self->words * 8, got, &error);
        for (uint32_t i = 0; i < MEMBERS && self->rc == 0; i++)
            self->right += got[(i + 1) * self->words - 1] == round * 100 + all[i];
    }
    gang_member_free(member);
    return NULL;
}

static int start(struct member members[MEMBERS], size_t words, bool one_stays_away)
{
    int fd = board_make();
    loops = 0;
    for (uint32_t h = 0; h < HOSTS; h++) {
        boards[h] = board_join(fd, 2);
        tables[h] = gang_table_new(by_loop, NULL);
        gang_table_set_host(tables[h], h);
        gang_table_use(tables[h], boards[h], never_slow);
    }
    for (uint32_t h = 0; h < HOSTS; h++)
        for (uint32_t k = 0; k < HOSTS; k++)
            if (k != h)
                gang_table_meet(tables[h], k, board_place(boards[k]));
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = (struct member){.partition = i, .words = words, .stays_away = one_stays_away && i == 3};
        pthread_create(&members[i].thread, NULL, member_main, &members[i]);
    }
    return fd;
}

static void stop(struct member members[MEMBERS], int fd)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        pthread_join(members[i].thread, NULL);
    for (uint32_t h = 0; h < HOSTS; h++) {
        gang_forget(tables[h], &(struct run_id){.client = 1, .launch = 1});
        gang_table_free(tables[h]);
        board_leave(boards[h]);
    }
    close(fd);
}

static void members_meet_on_board(void **state)
{
    struct member members[MEMBERS];
    stop(members, start(members, 1, false));
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(members[i].rc, 0);
        assert_int_equal(members[i].right, ROUNDS * MEMBERS);
    }
    assert_int_equal(loops, 0);
}

/* Parts that are too large for the board go by the loop, to members that wait at the board. */
static void large_parts_go_by_loop(void **state)
{
    struct member members[MEMBERS];
    stop(members, start(members, WORDS, false));
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(members[i].rc, 0);
        assert_int_equal(members[i].right, ROUNDS * MEMBERS);
    }
    assert_int_equal(loops, ROUNDS * HOSTS * (HOSTS - 1));
}

static void abort_wakes_who_watches(void **state)
{
    struct member members[MEMBERS];
    struct fault fault = fault_make(FAULT_DEVICE_LOST, 1, 4, "host 2 is lost");
    int fd = start(members, 1, true);
    for (uint32_t h = 0; h < HOSTS; h++)
        gang_abort(tables[h], &(struct run_id){.client = 1, .launch = 1, .node = UINT32_MAX}, &fault);
    stop(members, fd);
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (i != 3)
            assert_int_equal(members[i].rc, ERROR_UNAVAILABLE);
}

static bool expects_nothing(void *context, uint32_t client, uint64_t launch, uint64_t head)
{
    return false;
}

/* Parts that come when their launch is over are not kept. */
static void late_parts_are_swept(void **state)
{
    struct member members[MEMBERS];
    int fd = start(members, 1, false);
    for (uint32_t i = 0; i < MEMBERS; i++)
        pthread_join(members[i].thread, NULL);
    gang_forget(tables[1], &(struct run_id){.client = 1, .launch = 1});
    char parts[12 + 4 + 8] = {2, 0, 0, 0, 8, 0, 0, 0, 1};
    struct flow_entry entry = gather(4);
    entry.launch = 1;
    assert_true(board_send(boards[0], board_seat(boards[0], board_place(boards[1])), &entry,
                           (struct str){parts, sizeof parts}));
    assert_false(board_is_empty(boards[1]));
    gang_sweep(tables[1], expects_nothing);
    assert_true(board_is_empty(boards[1]));
    for (uint32_t h = 0; h < HOSTS; h++) {
        gang_forget(tables[h], &(struct run_id){.client = 1, .launch = 1});
        gang_table_free(tables[h]);
        board_leave(boards[h]);
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_pass),
        cmocka_unit_test(full_ring_refuses),
        cmocka_unit_test(seats_end),
        cmocka_unit_test(head_links_it),
        cmocka_unit_test(a_message_wakes_a_sleeper),
        cmocka_unit_test(members_meet_on_board),
        cmocka_unit_test(large_parts_go_by_loop),
        cmocka_unit_test(abort_wakes_who_watches),
        cmocka_unit_test(late_parts_are_swept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
