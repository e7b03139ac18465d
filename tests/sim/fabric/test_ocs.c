/* Emulated optical switches: mirrors and light, the two protocols, and scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "sim/fabric/ocs_script.h"
#include "sim/fabric/ocs_session.h"

static const struct ocs_settings settings = {
    .a_ports = 64, .b_ports = 64, .tuning_ns = 25000000, .seed = 3, .light_mdbm = 1000};

static void light_follows_the_cross_connect(void **state)
{
    struct ocs ocs;
    ocs_init(&ocs, &settings);
    assert_int_equal(ocs_join(&ocs, 1, 65, 100), OCS_DONE);
    assert_int_equal(ocs_power_mdbm(&ocs, 65, 200), OCS_DARK_MDBM);
    int32_t power = ocs_power_mdbm(&ocs, 65, 100 + settings.tuning_ns);
    assert_in_range(1000 - power, 800, 2000);
    assert_int_equal(power, 1000 - ocs_loss_mdb(&ocs, 1, 65));
    ocs.port[1].dark = true;
    assert_int_equal(ocs_power_mdbm(&ocs, 65, 100 + settings.tuning_ns), OCS_DARK_MDBM);
    ocs.port[1].dark = false;
    ocs.port[65].shutter_closed = true;
    assert_int_equal(ocs_power_mdbm(&ocs, 65, 100 + settings.tuning_ns), OCS_DARK_MDBM);
}

static void ports_in_use_are_not_taken(void **state)
{
    struct ocs ocs;
    ocs_init(&ocs, &settings);
    assert_int_equal(ocs_join(&ocs, 1, 65, 0), OCS_DONE);
    assert_int_equal(ocs_join(&ocs, 1, 65, 0), OCS_DONE);
    assert_int_equal(ocs_join(&ocs, 1, 66, 0), OCS_IN_USE);
    assert_int_equal(ocs_join(&ocs, 2, 65, 0), OCS_IN_USE);
    assert_int_equal(ocs_join(&ocs, 2, 3, 0), OCS_WRONG_SIDE);
    assert_int_equal(ocs_join(&ocs, 2, 129, 0), OCS_NO_PORT);
    assert_int_equal(ocs_part(&ocs, 1, 66, 0), OCS_NOT_JOINED);
    assert_int_equal(ocs_part(&ocs, 1, 65, 0), OCS_DONE);
    assert_int_equal(ocs_part(&ocs, 1, 0, 0), OCS_NOT_JOINED);
}

/* Returns the session's answer to `bytes` at `now_ns`. */
static const char *talk(struct ocs_session *session, struct ocs *ocs, const char *bytes, int64_t now_ns,
                        int64_t *ret_wake_ns)
{
    static char text[4096];
    struct buf out BUF_CLEANUP = {0};
    ocs_session_take(session, str_from(bytes));
    int64_t wake_ns = ocs_session_next(session, ocs, now_ns, &out);
    if (ret_wake_ns)
        *ret_wake_ns = wake_ns;
    snprintf(text, sizeof text, "%s", out.data ? out.data : "");
    return text;
}

static void scpi_answers_when_mirrors_are_at_rest(void **state)
{
    struct ocs ocs;
    struct ocs_session session;
    int64_t wake_ns;
    ocs_init(&ocs, &settings);
    ocs_session_init(&session, OCS_SCPI);
    assert_string_equal(talk(&session, &ocs, ":OXC:SWITch:SIZE?\r\n:oxc:swit:conn:stat?\n", 0, NULL),
                        "64,64\n(@),(@)\n");
    assert_string_equal(
        talk(&session, &ocs, ":oxc:swit:conn:add (@1,2),(@65,70)\n*opc?\n:syst:err?\n", 10, &wake_ns), "");
    assert_int_equal(wake_ns, 10 + settings.tuning_ns);
    assert_string_equal(talk(&session, &ocs, "", wake_ns, &wake_ns), "1\n0,\"No error\"\n");
    assert_true(wake_ns == OCS_NEVER);
    assert_string_equal(talk(&session, &ocs, ":oxc:swit:conn:add (@3),(@70)\n:system:error?\n", 99, NULL),
                        "-221,\"Settings conflict\"\n");
    assert_string_equal(talk(&session, &ocs, ":oxc:swit:conn:port? 2\n:oxc:swit:conn:port? 3\n", 99, NULL),
                        "\"70\"\n\"\"\n");
    assert_string_equal(
        talk(&session, &ocs, ":oxc:swit:conn:sub (@1),(@65)\n:oxc:swit:conn:stat?\n", 99, NULL),
        "(@2),(@70)\n");
    assert_string_equal(talk(&session, &ocs, ":oxc:nonsense 1\n:syst:err?\n:syst:err?\n", 99, NULL),
                        "-113,\"Undefined header\"\n0,\"No error\"\n");
    ocs_session_done(&session);
}

static void tl1_answers_when_mirrors_are_at_rest(void **state)
{
    struct ocs ocs;
    struct ocs_session session;
    int64_t wake_ns;
    ocs_init(&ocs, &settings);
    ocs.port[4].stuck = true;
    ocs_session_init(&session, OCS_TL1);
    assert_non_null(strstr(talk(&session, &ocs, "ACT-USER::root:1::secret;", 0, NULL), "M  1 COMPLD"));
    assert_string_equal(talk(&session, &ocs, "ENT-PATCH::1&&3,65&66&70:2:;RTRV-PATCH:::3:;", 0, &wake_ns),
                        "");
    const char *answer = talk(&session, &ocs, "", wake_ns, NULL);
    assert_non_null(strstr(answer, "M  2 COMPLD"));
    assert_non_null(strstr(answer, "\"3,70\""));
    assert_non_null(strstr(talk(&session, &ocs, "ENT-PATCH::9,70:4:;", wake_ns, NULL), "SROF"));
    assert_non_null(strstr(talk(&session, &ocs, "DLT-PATCH::9:4:;", wake_ns, NULL), "SNVS"));
    assert_non_null(
        strstr(talk(&session, &ocs, "RTRV-PORT-POWER::70&71:5:;", wake_ns, NULL), "\"71:-60.00\""));
    talk(&session, &ocs, "ENT-PATCH::4,80:6:;", wake_ns, NULL);
    answer = talk(&session, &ocs, "RTRV-ALM-ALL:::7:;", wake_ns + settings.tuning_ns, NULL);
    assert_non_null(strstr(answer, "\"4:MJ,MIRROR,SA\""));
    assert_int_equal(ocs_peer(&ocs, 4), 0);
    assert_non_null(strstr(talk(&session, &ocs, "FOO:::8:;", INT64_MAX - 1, NULL), "M  8 DENY"));
    ocs_session_done(&session);
}

static void tl1_insists_on_its_login(void **state)
{
    struct ocs ocs;
    struct ocs_session session;
    struct ocs_settings locked = settings;
    locked.user = "admin";
    locked.password = "right";
    ocs_init(&ocs, &locked);
    ocs_session_init(&session, OCS_TL1);
    for (size_t i = 0; i < 3; i++) {
        static const char *const early[] = {"RTRV-PATCH:::1:;", "ENT-PATCH::1,65:1:;", "FOO:::1:;"};
        const char *answer = talk(&session, &ocs, early[i], 0, NULL);
        assert_true(strstr(answer, "M  1 DENY") && strstr(answer, "PLNA"));
    }
    for (size_t i = 0; i < 4; i++) {
        static const char *const wrong[] = {"ACT-USER::admin:2::wrong;", "ACT-USER::root:2::right;",
                                            "ACT-USER::admin:2;", "ACT-USER:::2::right;"};
        const char *answer = talk(&session, &ocs, wrong[i], 0, NULL);
        assert_true(strstr(answer, "M  2 DENY") && strstr(answer, "PIUI"));
    }
    assert_non_null(strstr(talk(&session, &ocs, "ACT-USER::admin:3::right;", 0, NULL), "M  3 COMPLD"));
    assert_non_null(strstr(talk(&session, &ocs, "RTRV-PATCH:::4:;", 0, NULL), "M  4 COMPLD"));
    assert_non_null(strstr(talk(&session, &ocs, "CANC-USER::admin:5;", 0, NULL), "M  5 COMPLD"));
    assert_non_null(strstr(talk(&session, &ocs, "RTRV-PATCH:::6:;", 0, NULL), "PLNA"));
    assert_int_equal(ocs_peer(&ocs, 1), 0);
    ocs_session_done(&session);
}

static void a_switch_dies_in_the_midst_of_a_batch(void **state)
{
    struct ocs ocs;
    struct ocs_session session;
    ocs_init(&ocs, &settings);
    ocs.joins_left = 2;
    ocs_session_init(&session, OCS_SCPI);
    assert_string_equal(talk(&session, &ocs, ":oxc:swit:conn:add (@1,2,3),(@65,66,67)\n*opc?\n", 0, NULL),
                        "");
    assert_true(session.ended && ocs.dead);
    assert_int_equal(ocs_peer(&ocs, 2), 66);
    assert_int_equal(ocs_peer(&ocs, 3), 0);
    ocs_session_done(&session);
}

/* The switch joins ports as before; other fibres are in them. */
static void fibres_may_be_mixed_up(void **state)
{
    struct ocs ocs = {0};
    ocs_init(&ocs, &(struct ocs_settings){.a_ports = 64, .b_ports = 64});
    ocs_swap(&ocs, 1, 65); /* not of one side */
    assert_int_equal(ocs_fibre_in(&ocs, 1), 1);
    ocs_swap(&ocs, 65, 66);
    ocs_swap(&ocs, 66, 67);
    assert_int_equal(ocs_fibre_in(&ocs, 65), 66);
    assert_int_equal(ocs_fibre_in(&ocs, 66), 67);
    assert_int_equal(ocs_fibre_in(&ocs, 67), 65);
    for (uint32_t fibre = 65; fibre <= 68; fibre++)
        assert_int_equal(ocs_fibre_in(&ocs, ocs_port_of(&ocs, fibre)), fibre);
}

static void scripts_are_read_and_refused(void **state)
{
    struct ocs_script script = {0};
    struct error error;
    assert_int_equal(ocs_script_parse(STR("- {at: 2s, switch: x5, do: stick, ports: [3, 4]}\n"
                                          "- {do: join, pairs: [1-65]}\n"
                                          "- {at: 1s, switch: 0, do: restart, for: 500ms, forget: true}\n"),
                                      &script, &error),
                     0);
    assert_int_equal(script.acts.len, 4);
    assert_int_equal(script.acts.items[0].kind, OCS_ACT_JOIN);
    assert_int_equal(script.acts.items[0].which, OCS_ALL_SWITCHES);
    assert_int_equal(script.acts.items[1].span_ns, 500000000);
    assert_int_equal(script.acts.items[3].a, 4);
    assert_int_equal(script.acts.items[3].which, 5);
    ocs_script_done(&script);
    static const char *const wrong[] = {"- {do: explode}",
                                        "- {do: stick}",
                                        "- {do: join, pairs: [1]}",
                                        "- {do: swap, ports: [1]}",
                                        "a: b",
                                        "- {at: x, do: drop}",
                                        "- {do: drop, switch: q9}",
                                        "- {do: drop, why: x}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(ocs_script_parse(str_from(wrong[i]), &script, &error), ERROR_INVALID);
        assert_true(strncmp(error.text, "1:", 2) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(light_follows_the_cross_connect),
        cmocka_unit_test(ports_in_use_are_not_taken),
        cmocka_unit_test(scpi_answers_when_mirrors_are_at_rest),
        cmocka_unit_test(tl1_answers_when_mirrors_are_at_rest),
        cmocka_unit_test(tl1_insists_on_its_login),
        cmocka_unit_test(a_switch_dies_in_the_midst_of_a_batch),
        cmocka_unit_test(fibres_may_be_mixed_up),
        cmocka_unit_test(scripts_are_read_and_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
