/* A pod's switches at work, with a driver from a shared library (stub_switch.c): lists are read, every change
 * has an end, sessions that break are opened again, and changes are taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arena.h"
#include "host/fabric/internal.h"
#include "host/fabric/switches.h"

static char library[4096];

/* A crew of x0 and x1 at the stub's addresses; x1's goes wrong as its address says. */
static struct crew *crew_of(const char *first, const char *second)
{
    struct buf text BUF_CLEANUP = {0};
    struct switches *switches = mem_alloc(sizeof *switches);
    struct crew_terms terms = CREW_TERMS_DEFAULT;
    struct crew *crew;
    struct error error = {0};
    terms.backoff_ms = 1;
    terms.cubes = 64;
    buf_printf(&text,
               "switches:\n- {name: x0, driver: %s, address: %s}\n- {name: x1, driver: %s, address: %s}\n",
               library, first, library, second);
    if (switches_parse(buf_str(&text), switches, &error) < 0 ||
        switches_open(switches, &terms, &crew, &error) < 0)
        fail_msg("%s", error.text);
    mem_free(switches);
    return crew;
}

static struct switch_work *work_for_both(void)
{
    struct switch_work *work = mem_alloc(POD_SWITCHES * sizeof *work);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < 4; k++)
            work[i].changes[work[i].count++] = (struct switch_change){.add = true, .a = 1 + k, .b = 65 + k};
    return work;
}

static uint32_t ends_of(const struct switch_work *work, enum change_end end)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++)
        count += work->changes[i].end == end;
    return count;
}

static void changes_are_carried_out_once(void **state)
{
    struct crew *crew = crew_of("a1", "a2");
    struct switch_work *work = work_for_both(), *again = work_for_both();
    assert_int_equal(crew_read(crew, work), 0);
    assert_true(work[0].answers && work[0].peer[1] == 0);
    assert_int_equal(crew_carry_out(crew, work), 0);
    assert_int_equal(ends_of(&work[1], CHANGE_APPLIED), 4);
    assert_int_equal(work[1].peer[68], 4);
    assert_int_equal(crew_carry_out(crew, again), 0);
    assert_true(again[0].changes[0].already && again[0].changes[0].end == CHANGE_APPLIED);
    assert_int_equal(crew_undo(crew, again), 0); /* what was there before stays */
    assert_int_equal(ends_of(&again[0], CHANGE_APPLIED), 4);
    assert_int_equal(crew_undo(crew, work), 0);
    assert_int_equal(ends_of(&work[0], CHANGE_UNDONE), 4);
    mem_free(work);
    mem_free(again);
    crew_close(crew);
}

static void a_session_that_breaks_is_opened_again(void **state)
{
    struct crew *crew = crew_of("b1", "breaks=2");
    struct switch_work *work = work_for_both();
    assert_int_equal(crew_carry_out(crew, work), 0);
    assert_int_equal(work[0].tries, 1);
    assert_int_equal(work[1].tries, 2);
    assert_int_equal(ends_of(&work[1], CHANGE_APPLIED), 4);
    assert_non_null(strstr(work[1].why, "session broke"));
    mem_free(work);
    crew_close(crew);
}

static void the_end_of_a_dead_switch_is_unknown(void **state)
{
    struct crew *crew = crew_of("c1", "dies=2");
    struct switch_work *work = work_for_both();
    assert_int_equal(crew_carry_out(crew, work), 1);
    assert_false(work[1].answers);
    assert_int_equal(ends_of(&work[1], CHANGE_UNKNOWN), 4);
    assert_int_equal(ends_of(&work[0], CHANGE_APPLIED), 4);
    assert_int_equal(crew_undo(crew, work), 1);
    assert_int_equal(ends_of(&work[0], CHANGE_UNDONE), 4);
    assert_int_equal(ends_of(&work[1], CHANGE_UNKNOWN), 4);
    mem_free(work);
    crew_close(crew);
}

static void a_port_in_use_is_not_taken(void **state)
{
    struct crew *crew = crew_of("d1", "d2");
    struct switch_work *work = work_for_both(), *other = work_for_both();
    assert_int_equal(crew_carry_out(crew, work), 0);
    for (uint32_t k = 0; k < 4; k++)
        other[0].changes[k].b = 70 + k;
    other[0].changes[3].a = 9;
    other[1].count = 0;
    assert_int_equal(crew_carry_out(crew, other), 1);
    assert_int_equal(ends_of(&other[0], CHANGE_NOT_APPLIED), 3);
    assert_int_equal(other[0].changes[3].end, CHANGE_APPLIED);
    assert_non_null(strstr(other[0].why, "in another cross-connect"));
    mem_free(work);
    mem_free(other);
    crew_close(crew);
}

static void lists_and_libraries_are_refused_by_name(void **state)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"switches: []", "1:1"},
        {"switches:\n- {name: q1, driver: scpi, address: \"a:1\"}", "2:3: name"},
        {"switches:\n- {name: x1, driver: scpi}", "2:3: expected a driver and an address"},
        {"switches:\n- {name: x1, driver: scpi, address: a, color: red}", "unknown field"},
        {"switches:\n- {name: x1, driver: scpi, address: a}\n- {name: x1, driver: scpi, address: a}", "3:3"},
    };
    const struct phx_switch_driver *driver;
    struct switches *switches = mem_alloc(sizeof *switches);
    struct error error;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(switches_parse(str_from(wrong[i].text), switches, &error), ERROR_INVALID);
        assert_non_null(strstr(error.text, wrong[i].why));
    }
    assert_int_equal(driver_find("sdpi", &driver, &error), ERROR_NOT_FOUND);
    assert_int_equal(driver_find("/nowhere/x.so", &driver, &error), ERROR_NOT_FOUND);
    assert_int_equal(driver_find("libm.so.6/../x", &driver, &error), ERROR_NOT_FOUND);
    mem_free(switches);
}

int main(void)
{
    const char *build = getenv("PHX_BUILD");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_carried_out_once),
        cmocka_unit_test(a_session_that_breaks_is_opened_again),
        cmocka_unit_test(the_end_of_a_dead_switch_is_unknown),
        cmocka_unit_test(a_port_in_use_is_not_taken),
        cmocka_unit_test(lists_and_libraries_are_refused_by_name),
    };
    snprintf(library, sizeof library, "%s/stub_switch.so", build ? build : "build");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
