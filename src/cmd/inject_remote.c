/* Injects into a cluster that is reached by its API: sends an order to the agent of each machine that is hit
 * (core/react/injections.c), and waits for its answer, which is an Event of the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/inject.h"

/* Somewhat longer than the controller waits for an agent. */
#define PATIENCE_NS (30 * NS_PER_SECOND)

/* An order that was sent and not yet answered. */
struct asked {
    char name[ORDER_NAME_MAX], machine[TARGET_NAME_MAX];
    struct buf answer;
    bool answered, good;
    bool quiet; /* print nothing for a good answer */
    bool mutes; /* the order hits the agent that would answer: the loss of the machine counts as an answer */
};
typedef VEC(struct asked) asked_list;

static void asked_done(asked_list *asked)
{
    for (size_t i = 0; i < asked->len; i++)
        buf_done(&asked->items[i].answer);
    vec_done(asked);
}

/* --- orders --------------------------------------------------------------------------------------------- */

/* Makes a name that no other order has. The name does not depend on the seed. */
static void make_name(const char *action, char ret_name[ORDER_NAME_MAX])
{
    static uint32_t count;
    struct rng rng;
    rng_seed(&rng, (uint64_t)client_wall() ^ (uint64_t)getpid() << 40 ^ (uint64_t)++count << 56);
    snprintf(ret_name, ORDER_NAME_MAX, "%.20s-%08x", action, (unsigned)rng_next(&rng));
}

static void write_order(struct buf *out, const char *name, const struct doc *spec)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "phalanx.dev/v1");
    json_pair_text(&json, "kind", "Injection");
    json_key(&json, "metadata");
    json_begin_object(&json);
    json_pair_text(&json, "name", name);
    json_end_object(&json);
    json_key(&json, "spec");
    json_put_doc(&json, spec);
    json_end_object(&json);
}

static void set(struct arena *arena, struct doc *spec, const char *key, const char *value)
{
    doc_set(arena, spec, str_from(key), doc_new_str(arena, arena_str(arena, str_from(value))));
}

/* Sends an order and adds it to those whose answers are awaited. */
static int send_order(struct ground *ground, struct asked one, const char *action, const struct doc *spec,
                      asked_list *asked)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
    struct client_reply reply;
    make_name(action, one.name);
    buf_printf(&path, "/api/v1/nodes/");
    url_add(&path, str_from(one.machine));
    buf_printf(&path, "/injections");
    write_order(&body, one.name, spec);
    ground->client.quiet = false;
    struct client_request request = {
        .method = "POST", .path = buf_str(&path), .body = buf_str(&body), .content_type = "application/json"};
    int rc = client_call(&ground->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    if (reply.code >= 400)
        rc = client_refused(&reply, NULL);
    else
        vec_push(asked, one);
    client_reply_done(&reply);
    return rc;
}

static int send_target(struct ground *ground, enum inject_action action, const struct inject_how *how,
                       const struct target *target, asked_list *asked)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *spec = doc_new(&arena, DOC_OBJECT);
    char text[TARGET_NAME_MAX + 32];
    if (!target->machine[0]) {
        say("agents cannot stop the controller: end it on its own machine");
        return EXIT_USAGE;
    }
    target_text(target, text);
    set(&arena, spec, "action", inject_action_names[action]);
    set(&arena, spec, "object", text);
    if (target->rank >= 0)
        doc_set(&arena, spec, STR("rank"), doc_new_int(&arena, target->rank));
    if (target->job[0])
        set(&arena, spec, "job", target->job);
    if (ground->silent || action == ACTION_LIE)
        doc_set(&arena, spec, STR("silent"), doc_new_bool(&arena, true));
    inject_how_write(how, &arena, spec);
    struct asked one = {.mutes = (target->kind == INJECT_MACHINE || target->kind == INJECT_AGENT) &&
                                 action <= ACTION_SLOW};
    memcpy(one.machine, target->machine, sizeof one.machine);
    return send_order(ground, one, inject_action_names[action], spec, asked);
}

/* --- answers -------------------------------------------------------------------------------------------- */

struct awaiting {
    asked_list *asked;
    int64_t until_ns;
};

/* Takes an answer such as "stop-1a2b3c4d: stop pod/default/train-w-0-1 for 5s by alice: 3 processes". */
static bool on_event(void *context, const char *type, const struct doc *event)
{
    struct awaiting *awaiting = context;
    struct str reason = doc_text(event, "reason"), message = doc_text(event, "message"), name, rest;
    bool all = true;
    bool ours = event && str_starts(reason, STR("Inject")) && str_cut(message, ':', &name, &rest);
    for (size_t i = 0; i < awaiting->asked->len; i++) {
        struct asked *asked = &awaiting->asked->items[i];
        if (ours && !asked->answered && str_is(name, asked->name)) {
            asked->answered = true;
            asked->good = str_is(reason, "Injected") || (asked->mutes && str_is(reason, "InjectionLost"));
            buf_add_str(&asked->answer, str_trim(rest));
        }
        all &= asked->answered;
    }
    (void)type;
    return !all && client_clock() < awaiting->until_ns;
}

/* Reads "3 processes" from the answer above, and returns the singular noun: "process". */
static struct str count_of(const struct buf *answer, int64_t *ret_count)
{
    struct str text = buf_str(answer), number, noun;
    for (size_t i = text.len; i-- > 1;)
        if (text.data[i - 1] == ':' && text.data[i] == ' ') {
            text = str_trim((struct str){text.data + i, text.len - i});
            break;
        }
    *ret_count = 0;
    if (!str_cut(text, ' ', &number, &noun) || !str_to_i64(number, 0, INT32_MAX, ret_count))
        return text;
    if (*ret_count != 1 && str_ends(noun, STR("sses")))
        noun.len -= 2;
    else if (*ret_count != 1 && str_ends(noun, STR("s")))
        noun.len--;
    return noun;
}

static int await(struct ground *ground, asked_list *asked)
{
    struct awaiting awaiting = {asked, client_clock() + PATIENCE_NS};
    int rc = EXIT_OK;
    if (asked->len == 0)
        return rc;
    rc = client_watch(&ground->client, STR("/api/v1/events"), STR("fieldSelector=involvedObject.kind%3DNode"),
                      awaiting.until_ns, on_event, &awaiting);
    if (rc != EXIT_OK && rc != EXIT_TIMEOUT)
        return rc;
    rc = EXIT_OK;
    for (size_t i = 0; i < asked->len; i++) {
        const struct asked *one = &asked->items[i];
        if (!one->answered)
            say("%s: no answer to the order %s", one->machine, one->name);
        else if (!one->good || !one->quiet)
            say("%s: %s: " STR_FORMAT, one->machine, one->name, STR_ARG(buf_str(&one->answer)));
        rc = one->answered && one->good ? rc : EXIT_FAILED;
    }
    return rc;
}

int remote_do(struct ground *ground, enum inject_action action, const struct inject_how *how,
              const target_list *targets, struct injected *ret)
{
    asked_list asked = {0};
    int rc = EXIT_OK;
    ret->at_ns = client_wall();
    if (inject_stands(action) && !how->for_ns) {
        say("%s needs --for: at most an hour, then its machine undoes it", inject_action_names[action]);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < targets->len && rc == EXIT_OK; i++)
        rc = send_target(ground, action, how, &targets->items[i], &asked);
    int answered = await(ground, &asked);
    for (size_t i = 0; i < asked.len; i++) {
        int64_t count;
        struct str noun = count_of(&asked.items[i].answer, &count);
        ret->count += (size_t)count;
        if (count)
            ret->noun = arena_strdup(&ground->arena, noun);
        if (inject_stands(action) && asked.items[i].good) {
            struct remote_standing standing = {.action = action};
            memcpy(standing.name, asked.items[i].name, sizeof standing.name);
            memcpy(standing.machine, asked.items[i].machine, sizeof standing.machine);
            vec_push(&ground->standing, standing);
        }
    }
    asked_done(&asked);
    return rc == EXIT_OK ? answered : rc;
}

/* --- injections in force -------------------------------------------------------------------------------- */

static int heal_one(struct ground *ground, const struct remote_standing *standing, asked_list *asked)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *spec = doc_new(&arena, DOC_OBJECT);
    set(&arena, spec, "action", "heal");
    set(&arena, spec, "object", standing->name);
    if (strcmp(standing->name, "all") != 0)
        set(&arena, spec, "of", inject_action_names[standing->action]);
    struct asked one = {.quiet = true};
    memcpy(one.machine, standing->machine, sizeof one.machine);
    return send_order(ground, one, "heal", spec, asked);
}

static int heal_list(struct ground *ground, const remote_list *list)
{
    asked_list asked = {0};
    int rc = EXIT_OK, one;
    for (size_t i = 0; i < list->len; i++)
        if ((one = heal_one(ground, &list->items[i], &asked)) != EXIT_OK)
            rc = one;
    one = await(ground, &asked);
    asked_done(&asked);
    return rc == EXIT_OK ? one : rc;
}

int remote_heal_run(struct ground *ground)
{
    int rc = heal_list(ground, &ground->standing);
    vec_clear(&ground->standing);
    return rc;
}

/* Lists the open Faults that report an injection. */
static int list_faults(struct ground *ground, struct client_reply *ret, remote_list *ret_list)
{
    int rc = client_get(&ground->client, STR("/apis/phalanx.dev/v1/faults"), ret);
    const struct doc *items = rc == EXIT_OK ? doc_get(ret->doc, "items") : NULL;
    for (size_t i = 0; i < doc_len(items); i++) {
        const struct doc *fault = doc_at(items, i);
        struct remote_standing one = {.fault = fault};
        struct str family, action, kind, name;
        if (!str_cut(doc_text(fault, "spec.code"), '/', &family, &action) || !str_is(family, "injected") ||
            !str_cut(doc_text(fault, "spec.place"), '/', &kind, &name) || !str_is(kind, "injection") ||
            !str_is(doc_text(fault, "status.state"), "Open") || !inject_action_find(action, &one.action))
            continue;
        struct str machine = doc_text(fault, "spec.machine");
        snprintf(one.name, sizeof one.name, STR_FORMAT, STR_ARG(name));
        snprintf(one.machine, sizeof one.machine, STR_FORMAT, STR_ARG(machine));
        vec_push(ret_list, one);
    }
    return rc;
}

/* Chooses the injections with the given names. "all" means all of them, and those that were ordered without a
 * report, on any machine. */
static int choose(struct ground *ground, const remote_list *standing, char **names, int count, bool all,
                  remote_list *chosen)
{
    for (size_t i = 0; i < standing->len; i++) {
        bool named = all;
        for (int k = 0; k < count; k++)
            named |= strcmp(names[k], standing->items[i].name) == 0;
        if (named)
            vec_push(chosen, standing->items[i]);
    }
    if (!all && chosen->len < (size_t)count) {
        say("heal: some of these injections do not exist; `phalanx inject list` shows those that do");
        return EXIT_NOT_FOUND;
    }
    int rc = all ? ground_look(ground) : EXIT_OK;
    for (size_t i = 0; rc == EXIT_OK && all && i < ground->machines.len; i++) {
        struct remote_standing one = {.name = "all"};
        memcpy(one.machine, ground->machines.items[i].name, sizeof one.machine);
        if (ground->machines.items[i].injection)
            vec_push(chosen, one);
    }
    return rc;
}

int remote_heal(struct ground *ground, char **names, int count)
{
    struct client_reply reply;
    remote_list standing = {0}, chosen = {0};
    bool all = count == 1 && strcmp(names[0], "all") == 0;
    int rc = list_faults(ground, &reply, &standing);
    if (rc != EXIT_OK)
        return rc;
    rc = choose(ground, &standing, names, count, all, &chosen);
    if (rc == EXIT_OK)
        rc = heal_list(ground, &chosen);
    vec_done(&standing);
    vec_done(&chosen);
    client_reply_done(&reply);
    return rc;
}

int remote_print_standing(struct ground *ground, bool json)
{
    struct client_reply reply;
    remote_list standing = {0};
    struct buf out = {0};
    struct json_writer writer = {.out = &out};
    static const char *const names[] = {"NAME", "ACTION", "MACHINE", "WHAT"};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    int rc = list_faults(ground, &reply, &standing);
    if (rc != EXIT_OK)
        return rc;
    table_heads(&table, names);
    json_begin_array(&writer);
    for (size_t i = 0; i < standing.len; i++) {
        const struct remote_standing *one = &standing.items[i];
        const char *action = inject_action_names[one->action];
        struct str what = doc_text(one->fault, "status.evidence");
        const struct str cells[] = {str_from(one->name), str_from(action), str_from(one->machine), what};
        static const char *const keys[] = {"name", "action", "machine", "what"};
        json_begin_object(&writer);
        for (size_t k = 0; k < table.columns; k++) {
            json_pair_str(&writer, keys[k], cells[k]);
            table_add(&table, cells[k]);
        }
        json_end_object(&writer);
    }
    json_end_array(&writer);
    inject_print_list(&table, &out, json, standing.len);
    vec_done(&standing);
    client_reply_done(&reply);
    return EXIT_OK;
}
