/* Collectives: members in threads of two hosts, joined by a queue of entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "flow/host/gang.h"

enum { MEMBERS = 6, ROUNDS = 200 };
static const uint32_t hosts[MEMBERS] = {0, 0, 1, 1, 1, 0};
static struct gang_table *tables[2];

/* Whatever one host sends arrives at the other at once. */
static void pass_on(void *context, uint32_t host, const struct flow_entry *entry, struct str tail)
{
    gang_take(tables[host], entry, tail);
}

struct member {
    pthread_t thread;
    uint32_t partition;
    bool stays_away;
    int rc;
    struct error error;
    struct fault fault;
    bool aborted;
    uint64_t sum;
};

static void *member_main(void *arg)
{
    struct member *self = arg;
    struct run_id run = {.client = 1, .launch = 1, .node = 4, .partition = self->partition};
    struct gang_member *member = gang_member_new(tables[hosts[self->partition]], &run, hosts, MEMBERS);
    struct flow_gang *gang = gang_member_gang(member);
    const uint32_t all[MEMBERS] = {5, 4, 3, 2, 1, 0};
    const uint32_t halves[2][3] = {{0, 2, 4}, {1, 3, 5}};
    for (uint64_t round = 0; round < ROUNDS && self->rc == 0 && !self->stays_away; round++) {
        uint64_t mine = round * 100 + self->partition, got[MEMBERS];
        self->rc = gang->all_gather(gang, all, MEMBERS, 1, &mine, sizeof mine, got, &self->error);
        for (uint32_t i = 0; i < MEMBERS && self->rc == 0; i++)
            self->sum += got[i] == round * 100 + all[i];
        if (self->rc == 0)
            self->rc = gang->all_gather(gang, halves[self->partition % 2], 3, 2, &mine, sizeof mine, got,
                                        &self->error);
        for (uint32_t i = 0; i < 3 && self->rc == 0; i++)
            self->sum += got[i] == round * 100 + halves[self->partition % 2][i];
    }
    self->aborted = gang_member_fault(member, &self->fault);
    gang_member_free(member);
    return NULL;
}

static void start(struct member members[MEMBERS], bool one_stays_away)
{
    for (uint32_t h = 0; h < 2; h++) {
        tables[h] = gang_table_new(pass_on, NULL);
        gang_table_set_host(tables[h], h);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = (struct member){.partition = i, .stays_away = one_stays_away && i == 3};
        pthread_create(&members[i].thread, NULL, member_main, &members[i]);
    }
}

static void stop(struct member members[MEMBERS])
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        pthread_join(members[i].thread, NULL);
    for (uint32_t h = 0; h < 2; h++) {
        gang_forget(tables[h], &(struct run_id){.client = 1, .launch = 1});
        gang_table_free(tables[h]);
    }
}

static void members_meet(void **state)
{
    struct member members[MEMBERS];
    start(members, false);
    stop(members);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(members[i].rc, 0);
        assert_int_equal(members[i].sum, ROUNDS * (MEMBERS + 3));
        assert_false(members[i].aborted);
    }
}

static void abort_reaches_everybody(void **state)
{
    struct member members[MEMBERS];
    struct fault fault = fault_make(FAULT_DEVICE_LOST, 1, 4, "host 1 is lost");
    start(members, true);
    gang_abort(tables[0], &(struct run_id){.client = 1, .launch = 1, .node = UINT32_MAX}, &fault);
    gang_abort(tables[1], &(struct run_id){.client = 1, .launch = 1, .node = 4}, &fault);
    stop(members);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (i == 3)
            continue;
        assert_int_equal(members[i].rc, ERROR_UNAVAILABLE);
        assert_true(members[i].aborted);
        assert_int_equal(members[i].fault.reason, FAULT_DEVICE_LOST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_meet),
        cmocka_unit_test(abort_reaches_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
