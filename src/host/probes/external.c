/* external.c - checks by other programs, with the exit codes of monitoring plug-ins: 0 good, 1 warning, 2
 * critical, anything else unknown. The code of such a signal is "check/NAME".
 *
 * Unknown, which includes a time-out, ranks lowest: it is reported as a notice, and does not end a warning or
 * worse. */
#include "host/probes/internal.h"

#include <stdio.h>

enum { CHECKS_MAX = 64, NAME_MAX_LEN = 50, ARGUMENTS_MAX = 64 };

struct check {
    const char *name;
    char **argv;
    int64_t period_ns, timeout_ns, due_ns;
};
struct external {
    struct check *checks;
    size_t count;
};

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!((name.data[i] >= 'a' && name.data[i] <= 'z') || (name.data[i] >= '0' && name.data[i] <= '9') ||
              name.data[i] == '-'))
            return false;
    return name.len > 0 && name.len <= NAME_MAX_LEN;
}

static int read_check(struct probe *probe, const struct doc *node, struct check *check, struct error *error)
{
    struct arena *arena = &probe->all->arena;
    struct str name = doc_str(doc_get(node, "name"), STR(""));
    const struct doc *command = doc_get(node, "command");
    size_t argc = doc_len(command);
    if (!is_name(name))
        return error_set(error, ERROR_INVALID, "checks: expected a name of small letters, digits and -");
    if (!command || command->kind != DOC_ARRAY || argc == 0 || argc > ARGUMENTS_MAX)
        return error_set(error, ERROR_INVALID, "checks." STR_FORMAT ".command: expected a list of words",
                         STR_ARG(name));
    check->name = arena_strdup(arena, name);
    check->argv = ARENA_ARRAY(arena, char *, argc + 1);
    for (size_t i = 0; i < argc; i++)
        check->argv[i] = arena_strdup(arena, doc_str(doc_at(command, i), STR("")));
    int rc =
        settings_duration(doc_get(node, "period"), "period", 60 * NS_PER_SECOND, &check->period_ns, error);
    if (rc == 0)
        rc = settings_duration(doc_get(node, "timeout"), "timeout", 10 * NS_PER_SECOND, &check->timeout_ns,
                               error);
    return rc;
}

static int start(struct probe *probe, struct error *error)
{
    struct external *state = probe->state = mem_alloc(sizeof *state);
    const struct doc *list = doc_get(probe->all->options.settings, "checks");
    if (doc_len(list) > CHECKS_MAX)
        return error_set(error, ERROR_LIMIT, "more than %d checks", CHECKS_MAX);
    state->checks = ARENA_ARRAY(&probe->all->arena, struct check, doc_len(list));
    for (size_t i = 0; i < doc_len(list); i++) {
        int rc = read_check(probe, doc_at(list, i), &state->checks[i], error);
        if (rc < 0)
            return rc;
        for (size_t k = 0; k < i; k++)
            if (strcmp(state->checks[k].name, state->checks[i].name) == 0)
                return error_set(error, ERROR_INVALID, "two checks are named %s", state->checks[i].name);
    }
    state->count = doc_len(list);
    probe->enabled = probe->enabled && state->count > 0;
    return 0;
}

static void run(struct probe *probe)
{
    struct external *state = probe->state;
    for (size_t i = 0; i < state->count; i++) {
        struct check *check = &state->checks[i];
        if (!probe->all->hurry && probe->all->now_ns < check->due_ns)
            continue;
        check->due_ns = probe->all->now_ns + check->period_ns;
        child_command(probe, check->name, check->argv, check->timeout_ns);
    }
}

static void told(struct probe *probe, const char *name, bool on, enum signal_severity severity,
                 struct str output)
{
    char code[SIGNAL_CODE_MAX + 1];
    snprintf(code, sizeof code, "check/%s", name);
    bool unknown = on && severity == SEVERITY_NOTICE;
    if (unknown && probe_is_on(probe, code, ""))
        return;
    probe_condition(probe, code, "", on, severity, STR_FORMAT, STR_ARG(output));
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    struct str status, output;
    if (!str_cut(facts, '\n', &status, &output))
        return;
    enum signal_severity severity = str_is(status, "1")   ? SEVERITY_MINOR
                                    : str_is(status, "2") ? SEVERITY_CRITICAL
                                                          : SEVERITY_NOTICE;
    if (output.len == 0)
        output = STR("it printed nothing");
    told(probe, key, !str_is(status, "0"), severity, output);
}

static void failed(struct probe *probe, const char *key, bool hung, struct str facts)
{
    (void)facts;
    told(probe, key, true, SEVERITY_NOTICE, hung ? STR("no answer in time") : STR("it could not be run"));
}

const struct probe_kind probe_external = {.name = "external",
                                          .period_ns = 1 * NS_PER_SECOND,
                                          .cost_ns = 60 * NS_PER_SECOND,
                                          .start = start,
                                          .run = run,
                                          .judge = judge,
                                          .failed = failed};
