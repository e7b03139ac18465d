/* injections.c - fault injection in a cluster with real agents (docs/inject.md): a write to a Node is an
 * order to its agent. This file checks only the order's form, and routes it as an errand (errand/errand.h).
 * The agent interprets the order and decides whether it is allowed. Without --allow-injection it accepts no
 * injection, but it always reverts standing ones.
 *
 *     {"metadata": {"name": "x7"},
 *      "spec": {"action": "stop", "object": "pod/default/train-w-0-1", "for": "5s"}}
 *
 * Unless spec.silent is set, the order is announced before it leaves: by a Fault injected/ACTION of the
 * machine, place "injection/NAME", and by an Event of the Pod if that is the object. With spec.for the Fault
 * is open until the agent reports the end. The agent's answer becomes an Event of the Node. The writer
 * chooses the object: nothing is random here.
 */
#include "core/react/react.h"
#include "core/write/write.h"

#include "doc/json.h"

#define INJECTION_TIMEOUT_NS (15 * NS_PER_SECOND)
enum {
    INJECTION_BYTES_MAX = 16 * 1024,
    INJECTION_MEMBERS_MAX = 24,
    INJECTION_TEXT_MAX = 320,
    INJECTION_ACTION_MAX = 32,
    INJECTION_SAID_MAX = 400, /* bytes of an answer in an Event */
};

struct injection {
    struct str name, action, object, duration; /* duration: of a standing fault; empty: a momentary one */
    bool silent;
    const struct doc *spec;
};

/* --- orders --------------------------------------------------------------------------------------------- */

static void wrong(struct field_errors *errors, const char *path, const struct doc *node, const char *why)
{
    CHECK(why && why[0]);
    field_error_add(errors, str_from(path), "FieldValueInvalid", node, "Invalid value: %s", why);
}

/* Returns whether the code "injected/ACTION" with this action is valid. */
static bool is_action(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!(text.data[i] >= 'a' && text.data[i] <= 'z') && text.data[i] != '-')
            return false;
    return text.len > 0 && text.len <= INJECTION_ACTION_MAX;
}

static bool is_plain(const struct doc *node)
{
    if (node->kind == DOC_INT || node->kind == DOC_BOOL)
        return true;
    if (node->kind != DOC_STRING || node->text.len > INJECTION_TEXT_MAX)
        return false;
    for (size_t i = 0; i < node->text.len; i++)
        if (node->text.data[i] < ' ' || node->text.data[i] > '~')
            return false;
    return true;
}

static struct injection read_injection(const struct doc *document)
{
    const struct doc *spec = doc_get(document, "spec");
    return (struct injection){.name = doc_str(doc_path(document, "metadata", "name", NULL), STR("")),
                              .action = doc_str(doc_get(spec, "action"), STR("")),
                              .object = doc_str(doc_get(spec, "object"), STR("")),
                              .duration = doc_str(doc_get(spec, "for"), STR("")),
                              .silent = doc_bool(doc_get(spec, "silent"), false),
                              .spec = spec};
}

static void check(const struct injection *injection, struct field_errors *errors)
{
    const struct doc *spec = injection->spec;
    if (!name_is_dns1123_label(injection->name))
        wrong(errors, "metadata.name", NULL, "must be a name of lower case letters, digits and '-'");
    if (!spec || spec->kind != DOC_OBJECT || doc_len(spec) > INJECTION_MEMBERS_MAX) {
        wrong(errors, "spec", NULL, "must be an object with an action and its target");
        return;
    }
    for (size_t i = 0; i < doc_len(spec); i++)
        if (!is_plain(spec->object.members[i].value))
            wrong(errors, "spec", spec, "members must be numbers, or printable texts of at most 320 bytes");
    if (!is_action(injection->action))
        wrong(errors, "spec.action", doc_get(spec, "action"), "must be a word of lower case letters and '-'");
    if (!injection->object.len)
        wrong(errors, "spec.object", doc_get(spec, "object"), "must name the target");
}

static bool undoes(const struct injection *injection)
{
    return str_is(injection->action, "heal");
}

static bool may_go(const struct writing *writing, const struct machine *machine,
                   const struct injection *asked)
{
    if (machine->state != MACHINE_READY || !machine->errands)
        return write_refuse(writing, 409, "Conflict", NULL,
                            "machine " STR_FORMAT " is not reached: its agent is not connected, or too old",
                            STR_ARG(machine->name));
    if (!machine->injection && !undoes(asked))
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "machine " STR_FORMAT " takes no injections: its agent was started without "
                            "--allow-injection",
                            STR_ARG(machine->name));
    return true;
}

/* --- announcement --------------------------------------------------------------------------------------- */

static void sight(struct core *core, struct step *step, const struct machine *machine, struct str user,
                  const struct injection *injection, enum signal_assertion assertion, struct str evidence)
{
    CHECK(injection->name.len > 0 && is_action(injection->action));
    struct buf code BUF_CLEANUP = {0}, place BUF_CLEANUP = {0};
    buf_printf(&code, "injected/" STR_FORMAT, STR_ARG(injection->action));
    buf_printf(&place, "injection/" STR_FORMAT, STR_ARG(injection->name));
    struct signal signal = signal_now(buf_str(&code), assertion, SEVERITY_NOTICE,
                                      str_head_utf8(evidence, SIGNAL_EVIDENCE_MAX), step->now_ns);
    signal.place = buf_str(&place);
    CHECK(signal_is_valid(&signal));
    core_sighted(core, step, &(struct sighting){.machine = machine->name, .signal = &signal, .user = user});
}

/* Appends "stop pod/default/train-w-0-1 for 5s by alice". */
static void describe(const struct injection *injection, struct str user, struct buf *out)
{
    buf_printf(out, STR_FORMAT " " STR_FORMAT, STR_ARG(injection->action), STR_ARG(injection->object));
    if (injection->duration.len)
        buf_printf(out, " for " STR_FORMAT, STR_ARG(injection->duration));
    if (user.len)
        buf_printf(out, " by " STR_FORMAT, STR_ARG(user));
}

/* Returns the Pod that the order names, or NULL if it names none or an unknown one. */
static const struct task *pod_of(const struct core *core, struct str object)
{
    struct str kind, rest, namespace_, name;
    if (!str_cut(object, '/', &kind, &rest) || !str_is(kind, "pod") ||
        !str_cut(rest, '/', &namespace_, &name))
        return NULL;
    return jobs_find_pod(&core->jobs, namespace_, name);
}

static void tell(const struct writing *writing, const struct machine *machine,
                 const struct injection *injection)
{
    struct buf text BUF_CLEANUP = {0};
    const struct task *task = pod_of(writing->core, injection->object);
    describe(injection, writing->write->user, &text);
    sight(writing->core, writing->step, machine, writing->write->user, injection,
          injection->duration.len ? SIGNAL_OCCUR : SIGNAL_ONCE, buf_str(&text));
    if (task)
        step_note(writing->step, true, "InjectionOrdered", ref_task(task), STR_FORMAT ": " STR_FORMAT,
                  STR_ARG(injection->name), STR_ARG(buf_str(&text)));
}

/* --- sending an order, and its answer ------------------------------------------------------------------- */

static void send(const struct writing *writing, const struct machine *machine,
                 const struct injection *injection)
{
    struct buf body BUF_CLEANUP = {0};
    struct json_writer json = {.out = &body};
    json_begin_object(&json);
    json_pair_str(&json, "name", injection->name);
    json_pair_str(&json, "user", writing->write->user);
    json_key(&json, "spec");
    json_put_doc(&json, injection->spec);
    json_end_object(&json);
    errand_begin(writing->step, &(struct errand_order){.machine = machine->id,
                                                       .kind = ERRAND_INJECT,
                                                       .owner = ERRAND_OF_INJECTION,
                                                       .body = buf_str(&body),
                                                       .timeout_ns = INJECTION_TIMEOUT_NS});
}

bool write_injection(const struct writing *writing)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    const struct machine *machine = cluster_find(&writing->core->cluster, writing->write->name);
    if (!machine)
        return write_refuse_missing(writing);
    if (!write_parse(writing, &arena, INJECTION_BYTES_MAX, &document))
        return false;
    struct injection injection = read_injection(document);
    struct field_errors *errors = write_new_errors(writing);
    check(&injection, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors, injection.name);
    field_errors_done(errors);
    if (!may_go(writing, machine, &injection))
        return false;
    if (writing->dry)
        return true;
    if (!injection.silent && !undoes(&injection))
        tell(writing, machine, &injection);
    send(writing, machine, &injection);
    return write_accept(writing, 201, ref_machine(machine));
}

void core_injection_ended(struct core *core, struct step *step, const struct errand *errand,
                          const struct errand_end *end)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct doc *order;
    const struct machine *machine = cluster_find(&core->cluster, errand->machine);
    CHECK(errand->owner == ERRAND_OF_INJECTION && json_parse(&arena, errand->body, &order, NULL) == 0);
    if (!machine)
        return;
    struct injection injection = read_injection(order);
    injection.name = doc_str(doc_get(order, "name"), STR(""));
    struct str user = doc_str(doc_get(order, "user"), STR(""));
    bool done = end->outcome == ERRAND_OK;
    bool stands = injection.duration.len && !injection.silent && !undoes(&injection);
    if (stands && !done && end->outcome != ERRAND_LOST) /* nothing was done, or it was taken back */
        sight(core, step, machine, user, &injection, SIGNAL_RECOVER, end->output);
    buf_printf(&text, STR_FORMAT ": ", STR_ARG(injection.name));
    describe(&injection, user, &text);
    buf_printf(
        &text, ": " STR_FORMAT,
        STR_ARG(str_trim(end->outcome == ERRAND_TIMED_OUT ? STR("its agent has not finished it in time")
                                                          : str_head_utf8(end->output, INJECTION_SAID_MAX))));
    const char *reason = done                          ? "Injected"
                         : end->outcome == ERRAND_LOST ? "InjectionLost"
                                                       : "InjectionFailed";
    step_note(step, !done, reason, ref_machine(machine), STR_FORMAT, STR_ARG(buf_str(&text)));
}
