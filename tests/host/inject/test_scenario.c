/* Scenario files and the words for what is to break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "host/inject/inject.h"

static struct arena arena;

static const char *refusal(const char *text)
{
    static struct error error;
    struct scenario scenario;
    arena_done(&arena);
    assert_true(scenario_read(&arena, str_from(text), &scenario, &error) < 0);
    return error.text;
}

static const char whole[] = "name: nn\n"
                            "seed: 7\n"
                            "job: team/train\n"
                            "timeout: 2m\n"
                            "steps:\n"
                            "- {at: 5s, action: kill, object: [controller, machine of rank 2], pick: 1}\n"
                            "- when: {step: 30, job: other}\n"
                            "  action: slow\n"
                            "  object: rank 1 of jobset/other\n"
                            "  cpu: 70%\n"
                            "  for: 3s\n"
                            "  repeat: 3\n"
                            "  every: 4s\n"
                            "  jitter: 500ms\n"
                            "- {action: partition, object: random machine, direction: in}\n"
                            "expect:\n"
                            "- completes: 1m\n"
                            "- file: {path: out/hash, sameAs: out/quiet}\n"
                            "- restarts: {atLeast: 1, atMost: 3}\n"
                            "- survivorsKeepTheirProcesses: true\n"
                            "- rung: replace-machine\n"
                            "- stepsLost: 4\n"
                            "- recoveredWithin: 5s\n";

static void a_whole_scenario_is_read(void **state)
{
    struct scenario scenario;
    struct error error;
    arena_done(&arena);
    assert_int_equal(scenario_read(&arena, str_from(whole), &scenario, &error), 0);
    assert_true(scenario.has_seed && scenario.seed == 7 && str_is(scenario.job, "team/train"));
    assert_int_equal(scenario.timeout_ns, 120 * NS_PER_SECOND);
    assert_int_equal(scenario.step_count, 3);
    const struct scenario_step *step = scenario.steps;
    assert_true(step->moment == MOMENT_AT && step->at_ns == 5 * NS_PER_SECOND && step->object_count == 2);
    assert_true(step->pick == 1 && step->objects[0].kind == INJECT_CONTROLLER);
    assert_true(step->objects[1].kind == INJECT_MACHINE && step->objects[1].rank == 2);
    step++;
    assert_true(step->moment == MOMENT_STEP && step->step == 30 && str_is(step->job, "other"));
    assert_true(step->action == ACTION_SLOW && step->how.cpu_percent == 70 && step->repeat == 3);
    assert_true(step->how.for_ns == 3 * NS_PER_SECOND && step->every_ns == 4 * NS_PER_SECOND);
    assert_true(str_is(step->objects[0].job, "other") && step->jitter_ns == 500 * NS_PER_MS);
    step++;
    assert_true(step->moment == MOMENT_AFTER && step->at_ns == 0 && step->how.direction == DIRECTION_IN);
    assert_int_equal(scenario.expect_count, 7);
    assert_true(scenario.expects[1].what == EXPECT_FILE && str_is(scenario.expects[1].same_as, "out/quiet"));
    assert_true(scenario.expects[2].low == 1 && scenario.expects[2].high == 3);
}

#define STEP(more) "steps:\n- {action: kill, object: m-1" more "}\n"

static void mistakes_are_told_with_their_place(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "1:1: expected one document"},
        {"name: nn\n", "1:1: a scenario needs steps"},
        {"steps: []\n", "1:8: steps is a list"},
        {"nam: nn\n", "1:1: a scenario has no member \"nam\""},
        {"steps:\n- {action: kill}\n", "2:3: a step needs an action and an object"},
        {"steps:\n- {action: eat, object: m-1}\n", "2:12: \"eat\" is not an action"},
        {"steps:\n- {action: kill, object: rank x}\n", "2:26: \"rank x\" names no object"},
        {"steps:\n- {action: corrupt, object: rank 1}\n", "2:29: corrupt: checkpoints can be damaged"},
        {"steps:\n- {action: slow, object: rank 1}\n", "2:3: slow needs cpu or loss"},
        {"steps:\n- {action: slow, object: rank 1, cpu: 100%}\n", "2:39: cpu: \"100%\" is not"},
        {STEP(", for: 3s"), "2:3: kill cannot be undone"},
        {STEP(", repeat: 2"), "2:3: repeat needs \"every\""},
        {STEP(", at: 1s, after: 2s"), "a step has one of at, after and when"},
        {STEP(", when: {}"), "when is a list of members"},
        {"steps:\n- {action: lie, object: m-1}\n", "2:3: lie needs a code"},
        {STEP(", pick: 2"), "2:3: pick is more than"},
        {STEP("") "expect:\n- {rung: a, completes: 1s}\n", "4:3: an expectation has one"},
        {STEP("") "expect:\n- file: {path: a}\n", "4:9: file needs a path, and"},
        {"steps: [\n", ":"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = refusal(cases[i].text);
        if (!strstr(said, cases[i].why))
            fail_msg("\"%s\" was refused with \"%s\", not \"%s\"", cases[i].text, said, cases[i].why);
    }
}

static void selectors_mean_what_they_say(void **state)
{
    struct inject_selector found;
    assert_int_equal(inject_selector_parse(STR("m-2"), &found, NULL), 0);
    assert_true(found.kind == INJECT_MACHINE && found.choice == CHOICE_NAME && str_is(found.name, "m-2"));
    assert_int_equal(inject_selector_parse(STR("agent/m-2"), &found, NULL), 0);
    assert_true(found.kind == INJECT_AGENT && str_is(found.name, "m-2"));
    assert_int_equal(inject_selector_parse(STR("pod/team/x-0"), &found, NULL), 0);
    assert_true(found.kind == INJECT_RANK && found.by_pod && str_is(found.name, "team/x-0"));
    assert_int_equal(inject_selector_parse(STR("jobset/x"), &found, NULL), 0);
    assert_true(found.kind == INJECT_RANK && found.choice == CHOICE_ALL && str_is(found.job, "x"));
    /* As `get -o name` and kubectl print names. */
    assert_int_equal(inject_selector_parse(STR("node/m-2"), &found, NULL), 0);
    assert_true(found.kind == INJECT_MACHINE && str_is(found.name, "m-2"));
    assert_int_equal(inject_selector_parse(STR("jobset.jobset.x-k8s.io/x"), &found, NULL), 0);
    assert_true(found.kind == INJECT_RANK && found.choice == CHOICE_ALL && str_is(found.job, "x"));
    assert_int_equal(inject_selector_parse(STR("rank 1 of jobsets/x"), &found, NULL), 0);
    assert_true(found.choice == CHOICE_RANK && str_is(found.job, "x"));
    assert_int_equal(inject_selector_parse(STR("pods/x-0"), &found, NULL), 0);
    assert_true(found.kind == INJECT_RANK && found.by_pod);
    assert_int_equal(inject_selector_parse(STR(" rack of random rank of jobset/x "), &found, NULL), 0);
    assert_true(found.kind == INJECT_RACK && found.choice == CHOICE_RANDOM && found.by_rank);
    assert_int_equal(inject_selector_parse(STR("checkpoint of rank 3"), &found, NULL), 0);
    assert_true(found.kind == INJECT_CHECKPOINT && found.choice == CHOICE_RANK && found.rank == 3);
    static const char *const bad[] = {"",
                                      "../x",
                                      "machine/",
                                      "controller of rank 1",
                                      "rank -1",
                                      "rank 1 of x",
                                      "pod/a/b/c",
                                      "x/y",
                                      "machine/../../etc",
                                      "rank 1 of jobset/a b",
                                      "chip/m-2",
                                      "chip/m-2/x",
                                      "chip/m-2/64",
                                      "link/m-2/..",
                                      "link/m-2/0/1",
                                      "chip of rank 1",
                                      "switch/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (inject_selector_parse(str_from(bad[i]), &found, NULL) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
}

static void parts_of_machines_are_reported(void **state)
{
    static const struct {
        const char *object;
        enum inject_action asked, done;
        const char *code; /* NULL: it is refused */
    } cases[] = {
        {"chip/m-2/3", ACTION_KILL, ACTION_CHIP, ""},
        {"chip/m-2/3", ACTION_SLOW, ACTION_CHIP, "gpu/clocks"},
        {"link/m-2/mlx5_0", ACTION_KILL, ACTION_LINK, ""},
        {"link/m-2/0", ACTION_SLOW, ACTION_LINK, "ib/rate"},
        {"switch/rack-1", ACTION_KILL, ACTION_SWITCH, ""},
        {"switch/rack-1", ACTION_SLOW, 0, NULL},
        {"chip/m-2/3", ACTION_STOP, 0, NULL},
        {"link/m-2/0", ACTION_CHIP, 0, NULL},
        {"m-2", ACTION_KILL, ACTION_KILL, ""},
        {"cube/c-1", ACTION_KILL, ACTION_KILL, ""},
    };
    struct inject_selector both[2];
    size_t which;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct inject_how how = inject_how_default();
        enum inject_action action = cases[i].asked;
        assert_int_equal(inject_selector_parse(str_from(cases[i].object), &both[0], NULL), 0);
        assert_int_equal(!inject_settle(both, 1, &action, &how, &which), cases[i].code != NULL);
        assert_true(!cases[i].code || (action == cases[i].done && str_is(how.code, cases[i].code)));
    }
    struct inject_how how = inject_how_default();
    enum inject_action action = ACTION_KILL;
    assert_int_equal(inject_selector_parse(STR("chip/m-2/3"), &both[0], NULL), 0);
    assert_true(str_is(both[0].name, "m-2") && str_is(both[0].part, "3"));
    assert_int_equal(inject_selector_parse(STR("m-2"), &both[1], NULL), 0);
    assert_non_null(inject_settle(both, 2, &action, &how, &which));
    assert_true(which == 1 && action == ACTION_KILL);
}

/* A scenario that was written is read again, and means the same. */
static void options_go_there_and_back(void **state)
{
    static const char *const given[][2] = {{"direction", "out"}, {"for", "1500ms"},   {"cpu", "70%"},
                                           {"loss", "0.5%"},     {"tier", "storage"}, {"code", "a/b"},
                                           {"place", "c/d"},     {"chip", "3"}};
    struct inject_how how = inject_how_default(), again = inject_how_default();
    arena_done(&arena);
    struct doc *spec = doc_new(&arena, DOC_OBJECT);
    inject_how_write(&how, &arena, spec);
    assert_int_equal(doc_len(spec), 0);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        assert_int_equal(inject_how_set(&how, str_from(given[i][0]), str_from(given[i][1]), NULL), 0);
    inject_how_write(&how, &arena, spec);
    assert_int_equal(doc_len(spec), sizeof given / sizeof *given);
    for (size_t i = 0; i < doc_len(spec); i++) {
        const struct doc_member *member = &spec->object.members[i];
        assert_int_equal(inject_how_set(&again, member->key, doc_str(member->value, STR("")), NULL), 0);
    }
    assert_true(how.direction == again.direction && how.for_ns == again.for_ns && how.tier == again.tier);
    assert_true(how.cpu_percent == again.cpu_percent && how.loss_ppm == again.loss_ppm);
    assert_true(str_equal(how.code, again.code) && str_equal(how.place, again.place) && again.chip == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_scenario_is_read),     cmocka_unit_test(mistakes_are_told_with_their_place),
        cmocka_unit_test(selectors_mean_what_they_say), cmocka_unit_test(parts_of_machines_are_reported),
        cmocka_unit_test(options_go_there_and_back),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_done(&arena);
    return failed;
}
