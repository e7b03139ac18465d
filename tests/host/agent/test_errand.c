/* Errands on a real agent: hooks that go well, fail, hang, are stopped or do not exist. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "host/agent/agent_process.h"
#include "host/agent/fake.h"

struct site {
    struct fake fake;
    char state[64];
    pid_t agent;
};

static void site_init(struct site *site)
{
    char hooks[96];
    fake_init(&site->fake);
    snprintf(site->state, sizeof site->state, "/tmp/phx-errand-test-XXXXXX");
    assert_non_null(mkdtemp(site->state));
    snprintf(hooks, sizeof hooks, "%s/hooks", site->state);
    assert_int_equal(mkdir(hooks, 0755), 0);
    site->agent = agent_spawn(site->fake.port, site->state);
    RUN_UNTIL(&site->fake, site->fake.agent && site->fake.tethers == 1);
}

static void site_done(struct site *site)
{
    assert_int_equal(agent_end(site->agent, SIGTERM), 0);
    agent_remove_state(site->state);
    fake_done(&site->fake);
}

static void write_hook(const struct site *site, const char *name, const char *script)
{
    char path[160];
    snprintf(path, sizeof path, "%s/hooks/%s", site->state, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static void start(struct site *site, obj_id errand, enum errand_kind kind, const char *body,
                  int64_t timeout_ns)
{
    struct errand_start order = {errand, kind, str_from(body), timeout_ns};
    wire_send_controller(site->fake.agent, &(struct from_controller){.kind = FROM_CONTROLLER_ERRAND_START,
                                                                     .errand_start = order});
}

static const struct heard_errand *wait_end(struct site *site, obj_id errand)
{
    RUN_UNTIL(&site->fake, heard_errand(&site->fake, errand));
    return heard_errand(&site->fake, errand);
}

static void test_a_hook_gets_what_the_body_says(void **state)
{
    struct site site;
    site_init(&site);
    write_hook(&site, "reset", "echo $PHX_MACHINE $PHX_ACTION; printf 'a\\377b' >&2; pwd; exit $CODE");
    start(&site, 1, ERRAND_HOOK, "{\"hook\":\"reset\",\"env\":{\"PHX_ACTION\":\"reset gpu\",\"CODE\":\"0\"}}",
          60 * NS_PER_SECOND);
    const struct heard_errand *end = wait_end(&site, 1);
    assert_int_equal(end->outcome, ERRAND_OK);
    assert_memory_equal(end->output, "m-1 reset gpu\na?b/", 18); /* UTF-8, whatever it wrote */
    assert_non_null(strstr(end->output, site.state));
    start(&site, 2, ERRAND_HOOK, "{\"hook\":\"reset\",\"env\":{\"CODE\":\"9\"}}", 60 * NS_PER_SECOND);
    end = wait_end(&site, 2);
    assert_int_equal(end->outcome, ERRAND_FAILED);
    assert_int_equal(end->exit_code, 9);
    write_hook(&site, "long", "head -c 100000 /dev/zero | tr '\\0' x; kill -TERM $$");
    start(&site, 3, ERRAND_HOOK, "{\"hook\":\"long\"}", 60 * NS_PER_SECOND);
    end = wait_end(&site, 3);
    assert_int_equal(end->exit_code, 128 + SIGTERM);
    assert_int_equal(strlen(end->output), ERRAND_OUTPUT_MAX);
    site_done(&site);
}

static bool is_dead(const char *pid)
{
    return kill((pid_t)strtol(pid, NULL, 10), 0) < 0 && errno == ESRCH;
}

/* With all that it started. */
static void test_a_late_hook_is_killed(void **state)
{
    struct site site;
    site_init(&site);
    write_hook(&site, "hang", "tail -f /dev/null & echo $!; wait");
    start(&site, 1, ERRAND_HOOK, "{\"hook\":\"hang\"}", 500 * NS_PER_MS);
    const struct heard_errand *end = wait_end(&site, 1);
    assert_int_equal(end->outcome, ERRAND_TIMED_OUT);
    assert_true(end->output[0] != 0);
    RUN_UNTIL(&site.fake, is_dead(end->output));
    site_done(&site);
}

static void test_a_stopped_hook_says_nothing(void **state)
{
    struct site site;
    char path[160], pid[16] = "";
    site_init(&site);
    snprintf(path, sizeof path, "%s/pid", site.state);
    write_hook(&site, "hang", "echo $$ > pid.new; mv pid.new pid; exec tail -f /dev/null");
    start(&site, 1, ERRAND_HOOK, "{\"hook\":\"hang\"}", 600 * NS_PER_SECOND);
    RUN_UNTIL(&site.fake, access(path, R_OK) == 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(pid, sizeof pid, file));
    fclose(file);
    assert_false(is_dead(pid));
    wire_send_controller(site.fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_ERRAND_STOP, .number = 1});
    RUN_UNTIL(&site.fake, is_dead(pid));
    write_hook(&site, "last", "true");
    start(&site, 2, ERRAND_HOOK, "{\"hook\":\"last\"}", 60 * NS_PER_SECOND);
    wait_end(&site, 2);
    assert_null(heard_errand(&site.fake, 1));
    site_done(&site);
}

static void test_what_cannot_be_run_says_why(void **state)
{
    static const struct {
        const char *body, *why;
        enum errand_kind kind;
    } cases[] = {
        {"{\"hook\":\"absent\"}", "No such file", ERRAND_HOOK},
        {"{\"hook\":\"../agent.sock\"}", "hook: ", ERRAND_HOOK},
        {"{\"hook\":\".\"}", "hook: ", ERRAND_HOOK},
        {"{}", "hook: ", ERRAND_HOOK},
        {"[]", "expected an object", ERRAND_HOOK},
        {"{\"hook\":", "the errand's body", ERRAND_HOOK},
        {"{\"hook\":\"plain\"}", "Permission denied", ERRAND_HOOK},
        {"{\"hook\":\"fine\",\"env\":{\"A\":1}}", "env.A", ERRAND_HOOK},
        {"{\"hook\":\"fine\",\"env\":{\"A=B\":\"\"}}", "env.A=B", ERRAND_HOOK},
        {"{}", "kind 99", (enum errand_kind)99},
        {"{\"name\":\"a\",\"spec\":{\"action\":\"kill\",\"object\":\"agent/m-1\"}}", "--allow-injection",
         ERRAND_INJECT},
    };
    struct site site;
    char path[160];
    site_init(&site);
    write_hook(&site, "fine", "true");
    write_hook(&site, "plain", "true");
    snprintf(path, sizeof path, "%s/hooks/plain", site.state);
    assert_int_equal(chmod(path, 0644), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start(&site, 10 + i, cases[i].kind, cases[i].body, 60 * NS_PER_SECOND);
        const struct heard_errand *end = wait_end(&site, 10 + i);
        assert_int_equal(end->outcome, ERRAND_FAILED);
        assert_int_equal(end->exit_code, -1);
        if (!strstr(end->output, cases[i].why))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].body, end->output, cases[i].why);
    }
    site_done(&site);
}

int main(int argc, char **argv)
{
    agent_process_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hook_gets_what_the_body_says),
        cmocka_unit_test(test_a_late_hook_is_killed),
        cmocka_unit_test(test_a_stopped_hook_says_nothing),
        cmocka_unit_test(test_what_cannot_be_run_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
