#include "sim/fabric/ocs_script.h"

#include <stdlib.h>

#include "base/units.h"
#include "doc/yaml.h"
#include "core/fabric/wiring.h"

enum { SCRIPT_ACTS_MAX = 100000, SCRIPT_BYTES_MAX = 64 << 20 };

static int wrong(struct error *error, const struct doc *node, const char *what)
{
    return error_set(error, ERROR_INVALID, "%u:%u: %s", node->line, node->column, what);
}

static int read_span(const struct doc *entry, const char *key, int64_t *ret_ns, struct error *error)
{
    const struct doc *node = doc_get(entry, key);
    if (node && !duration_parse(doc_str(node, STR("")), ret_ns))
        return wrong(error, node, "expected a duration, such as 500ms or 2s");
    return 0;
}

static int read_which(const struct doc *entry, int32_t *ret_which, struct error *error)
{
    const struct doc *node = doc_get(entry, "switch");
    struct pod_switch which;
    if (!node || str_is(doc_str(node, STR("")), "all"))
        *ret_which = OCS_ALL_SWITCHES;
    else if (node->kind == DOC_INT && node->integer >= 0 && node->integer < INT32_MAX)
        *ret_which = (int32_t)node->integer;
    else if (pod_switch_parse(doc_str(node, STR("")), &which, NULL) == 0)
        *ret_which = (int32_t)pod_switch_number(which);
    else
        return wrong(error, node, "expected a switch such as x5, a number from 0, or all");
    return 0;
}

static int read_kind(const struct doc *entry, enum ocs_act_kind *ret_kind, struct error *error)
{
    static const char *const names[] = {"join", "swap",    "stick",  "free",    "darken", "light",
                                        "drop", "silence", "answer", "restart", "die",    "slow"};
    struct str word = doc_str(doc_get(entry, "do"), STR(""));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(word, names[i])) {
            *ret_kind = (enum ocs_act_kind)i;
            return 0;
        }
    return wrong(
        error, doc_get(entry, "do") ? doc_get(entry, "do") : entry,
        "do: expected join, swap, stick, free, darken, light, drop, silence, answer, restart, die or slow");
}

static bool is_of_pairs(enum ocs_act_kind kind)
{
    return kind == OCS_ACT_JOIN || kind == OCS_ACT_SWAP;
}

static bool read_port(const struct doc *node, struct ocs_act *act)
{
    struct str a_text, b_text;
    int64_t a, b = 0;
    if (is_of_pairs(act->kind)) {
        if (!str_cut(doc_str(node, STR("")), '-', &a_text, &b_text) ||
            !str_to_i64(a_text, 1, OCS_PORTS_MAX, &a) || !str_to_i64(b_text, 1, OCS_PORTS_MAX, &b))
            return false;
    } else {
        a = doc_int(node, 0);
        if (node->kind != DOC_INT || a < 1 || a > OCS_PORTS_MAX)
            return false;
    }
    act->a = (uint32_t)a;
    act->b = (uint32_t)b;
    return true;
}

static int read_entry(const struct doc *entry, struct ocs_script *script, struct error *error)
{
    static const char *const keys[] = {"at",  "switch", "do",     "ports", "pairs",
                                       "for", "after",  "forget", "tuning"};
    struct ocs_act act = {0};
    if (entry->kind != DOC_OBJECT)
        return wrong(error, entry, "expected an entry such as {at: 2s, switch: x5, do: drop}");
    for (size_t i = 0; i < entry->object.len; i++) {
        size_t known = 0;
        while (known < sizeof keys / sizeof *keys && !str_is(entry->object.members[i].key, keys[known]))
            known++;
        if (known == sizeof keys / sizeof *keys)
            return wrong(
                error, entry->object.members[i].value,
                "unknown field: expected at, switch, do, ports, pairs, for, after, forget or tuning");
    }
    if (read_kind(entry, &act.kind, error) < 0 || read_which(entry, &act.which, error) < 0 ||
        read_span(entry, "at", &act.at_ns, error) < 0 || read_span(entry, "for", &act.span_ns, error) < 0 ||
        read_span(entry, "tuning", &act.span_ns, error) < 0)
        return ERROR_INVALID;
    act.forget = doc_bool(doc_get(entry, "forget"), false);
    act.after = doc_int(doc_get(entry, "after"), -1);
    bool listed = act.kind <= OCS_ACT_LIGHT;
    const struct doc *list = doc_get(entry, is_of_pairs(act.kind) ? "pairs" : "ports");
    if (listed && !doc_len(list))
        return wrong(error, entry,
                     "expected pairs: [1-65] for join and swap, and ports: [3] for mirrors and light");
    for (size_t i = 0; i < (listed ? doc_len(list) : 1); i++) {
        if (listed && !read_port(doc_at(list, i), &act))
            return wrong(error, doc_at(list, i),
                         "expected a port such as 3, or for join and swap a pair such as 1-65");
        if (script->acts.len == SCRIPT_ACTS_MAX)
            return wrong(error, entry, "the script has too many entries");
        vec_push(&script->acts, act);
    }
    return 0;
}

/* Sorts acts by time. Acts of equal times keep their order. */
static void sort_acts(struct ocs_script *script)
{
    for (size_t i = 1; i < script->acts.len; i++)
        for (size_t at = i; at && script->acts.items[at].at_ns < script->acts.items[at - 1].at_ns; at--) {
            struct ocs_act act = script->acts.items[at];
            script->acts.items[at] = script->acts.items[at - 1];
            script->acts.items[at - 1] = act;
        }
}

int ocs_script_parse(struct str text, struct ocs_script *ret_script, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = SCRIPT_BYTES_MAX};
    struct ocs_script script = {0};
    struct doc_list docs;
    int rc = yaml_parse_all(&arena, text, &docs, error);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < docs.len; i++) {
        if (docs.items[i]->kind != DOC_ARRAY)
            rc = wrong(error, docs.items[i], "expected a list of entries, such as - {do: drop}");
        for (size_t k = 0; rc == 0 && k < doc_len(docs.items[i]); k++)
            rc = read_entry(doc_at(docs.items[i], k), &script, error);
    }
    if (rc < 0) {
        ocs_script_done(&script);
        return rc;
    }
    sort_acts(&script);
    *ret_script = script;
    return 0;
}

void ocs_script_done(struct ocs_script *script)
{
    vec_done(&script->acts);
}

void ocs_act_apply(const struct ocs_act *act, struct ocs *ocs, int64_t now_ns)
{
    bool known = act->a >= 1 && act->a <= ocs_ports(ocs);
    switch (act->kind) {
    case OCS_ACT_JOIN:
        ocs_join(ocs, act->a, act->b, now_ns);
        break;
    case OCS_ACT_SWAP:
        ocs_swap(ocs, act->a, act->b);
        break;
    case OCS_ACT_STICK:
    case OCS_ACT_FREE:
        if (known)
            ocs->port[act->a].stuck = act->kind == OCS_ACT_STICK;
        break;
    case OCS_ACT_DARKEN:
    case OCS_ACT_LIGHT:
        if (known)
            ocs->port[act->a].dark = act->kind == OCS_ACT_DARKEN;
        break;
    case OCS_ACT_RESTART:
        ocs_restart(ocs, act->forget, now_ns);
        break;
    case OCS_ACT_DIE:
        ocs->dead = ocs->dead || act->after < 0;
        ocs->joins_left = act->after < 0 ? 0 : (uint64_t)act->after;
        break;
    case OCS_ACT_SLOW:
        ocs->settings.tuning_ns = act->span_ns;
        break;
    case OCS_ACT_DROP:
    case OCS_ACT_SILENCE:
    case OCS_ACT_ANSWER:
        break;
    }
}
