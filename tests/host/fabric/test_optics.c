/* Switches tell of themselves: makers, ports, alarms, and the factory's losses, of which a SAI library
 * (stub_sai.c) has those between the first two ports of each side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arena.h"
#include "host/fabric/optics.h"

static char library[4096];

/* A crew of x0 alone. */
static struct crew *crew_of(const char *driver, const char *address)
{
    struct buf text BUF_CLEANUP = {0};
    struct switches *switches = mem_alloc(sizeof *switches);
    struct crew_terms terms = CREW_TERMS_DEFAULT;
    struct crew *crew;
    struct error error = {0};
    terms.attempts = 1;
    buf_printf(&text, "switches:\n- {name: x0, driver: %s, address: \"%s\"}\n", driver, address);
    if (switches_parse(buf_str(&text), switches, &error) < 0 ||
        switches_open(switches, &terms, &crew, &error) < 0)
        fail_msg("%s", error.text);
    mem_free(switches);
    return crew;
}

static void join(struct crew *crew, const uint32_t pairs[][2], uint32_t count)
{
    struct switch_work *work = mem_alloc(POD_SWITCHES * sizeof *work);
    for (uint32_t i = 0; i < count; i++)
        work[0].changes[work[0].count++] =
            (struct switch_change){.add = true, .a = pairs[i][0], .b = pairs[i][1]};
    if (crew_carry_out(crew, work) != 0)
        fail_msg("%s", work[0].why);
    mem_free(work);
}

struct seen {
    struct switch_work work[POD_SWITCHES];
    struct switch_optics optics[POD_SWITCHES];
};

static struct seen *look(struct crew *crew, uint32_t frequency_ghz, uint32_t silent)
{
    struct seen *seen = mem_alloc(sizeof *seen);
    assert_int_equal(crew_look(crew, frequency_ghz, seen->work, seen->optics), silent);
    return seen;
}

static void losses_are_those_of_the_paths(void **state)
{
    static const uint32_t measured[][2] = {{1, 10}, {2, 9}}, other[][2] = {{6, 14}};
    char address[4200];
    snprintf(address, sizeof address, "%s?optics&PORTS=8", library);
    struct crew *crew = crew_of("sai", address);
    struct seen *seen = look(crew, 193400, 0);
    const struct switch_optics *optics = &seen->optics[0];
    assert_true(seen->work[0].answers);
    assert_int_equal(optics->identity.a_ports + optics->identity.b_ports, 16);
    assert_int_equal(optics->port_count, 16);
    assert_int_equal(optics->ports[0].peer, 0);
    assert_int_equal(optics->loss_count, 0);
    mem_free(seen);
    join(crew, measured, 2);
    seen = look(crew, 193400, 0);
    optics = &seen->optics[0];
    assert_true(optics->ports[0].peer == 10 && optics->ports[9].peer == 1);
    assert_int_equal(optics->loss_count, 2);
    assert_true(optics->losses[0].a == 1 && optics->losses[0].b == 10 && optics->losses[0].loss_mdb > 0);
    assert_true(optics->losses[1].a == 2 && optics->losses[1].b == 9);
    mem_free(seen);
    join(crew, other, 1); /* the factory has not measured this one */
    seen = look(crew, 193400, 0);
    assert_int_equal(seen->optics[0].loss_count, 2);
    assert_true(seen->work[0].answers && seen->work[0].why[0] == 0);
    mem_free(seen);
    crew_close(crew);
}

static void who_does_not_answer_is_told_with_the_reason(void **state)
{
    struct crew *crew = crew_of("scpi", "127.0.0.1:1");
    struct seen *seen = look(crew, 193400, 1);
    assert_false(seen->work[0].answers);
    assert_true(seen->work[0].why[0] != 0);
    assert_int_equal(seen->optics[0].port_count, 0);
    mem_free(seen);
    crew_close(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_the_paths),
        cmocka_unit_test(who_does_not_answer_is_told_with_the_reason),
    };
    const char *build = getenv("PHX_BUILD");
    snprintf(library, sizeof library, "%s/stub_sai.so", build ? build : "build");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
