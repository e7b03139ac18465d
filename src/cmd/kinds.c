#include <stdio.h>

#include "base/nearest.h"
#include "cmd/client.h"

/* Returns true if the row is a kind on the command line. For a kind that is served in two versions, names
 * mean the first row. */
static bool is_ours(const struct resource *row)
{
    return row->singular[0] && row->verbs & VERB_LIST;
}

static bool among(const char *list, struct str name)
{
    struct str names = str_from(list ? list : "");
    struct str head, rest;
    while (str_cut(names, ' ', &head, &rest)) {
        if (str_equal(head, name))
            return true;
        names = rest;
    }
    return names.len && str_equal(names, name);
}

const struct resource *kind_find(struct str name)
{
    struct str plain = name, group;
    if (!str_cut(name, '.', &plain, &group))
        plain = name;
    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *row = &resource_table[i];
        if (is_ours(row) &&
            (str_is(plain, row->plural) || str_is(plain, row->singular) || str_is(plain, row->kind) ||
             among(row->short_name, plain) || among(row->aliases, plain)))
            return row;
    }
    return NULL;
}

const struct resource *kind_of(struct str api_version, struct str kind)
{
    const struct resource *row = resource_served(api_version, kind);
    return row && is_ours(row) ? row : NULL;
}

const struct resource *kind_nearest(struct str api_version, struct str kind)
{
    struct nearest nearest = nearest_to(kind);
    const struct resource *best = NULL;
    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *row = &resource_table[i];
        if (!is_ours(row))
            continue;
        unsigned before = nearest.best.len ? nearest.distance : NEAREST_WORD_MAX;
        nearest_offer(&nearest, str_from(row->kind));
        bool nearer = nearest.best.len && (!best || nearest.distance < before);
        if (nearer ||
            (best && str_is(str_from(best->kind), row->kind) && str_is(api_version, row->api_version)))
            best = row;
    }
    return best;
}

void kind_say_unknown(struct str name)
{
    struct nearest nearest = nearest_to(name);
    for (int i = 0; i < RESOURCES; i++) {
        if (!is_ours(&resource_table[i]))
            continue;
        nearest_offer(&nearest, str_from(resource_table[i].plural));
        nearest_offer(&nearest, str_from(resource_table[i].singular));
    }
    if (nearest.best.len)
        say("unknown kind \"" STR_FORMAT "\"; did you mean \"" STR_FORMAT "\"?", STR_ARG(name),
            STR_ARG(nearest.best));
    else
        say("unknown kind \"" STR_FORMAT "\", expected jobsets, jobs, pods, nodes, events or another of "
            "docs/api.md",
            STR_ARG(name));
}

bool kind_split(const char *text, const struct resource **ret_kind, struct str *ret_name)
{
    struct str kind, name;
    if (!str_cut(str_from(text), '/', &kind, &name) || name.len == 0) {
        say("\"%s\" is not KIND/NAME", text);
        return false;
    }
    const struct resource *found = kind_find(kind);
    if (!found) {
        kind_say_unknown(kind);
        return false;
    }
    *ret_kind = found;
    *ret_name = name;
    return true;
}

bool kind_leading(char ***args, int *count, const struct resource **ret_kind)
{
    const char *first = (*args)[0];
    if (strchr(first, '/'))
        return true;
    const struct resource *kind = kind_find(str_from(first));
    if (!kind || *count < 2) {
        if (kind)
            say("which %s? the name is missing after \"%s\"", kind->singular, first);
        else
            kind_say_unknown(str_from(first));
        return false;
    }
    ++*args;
    --*count;
    *ret_kind = kind;
    return true;
}

void url_add(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
        if (plain && c)
            buf_add_char(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

void kind_path(struct buf *out, const struct resource *kind, const char *namespace_, struct str name)
{
    buf_printf(out, "%s%s", kind->group[0] ? "/apis/" : "/api/", kind->api_version);
    if (kind->namespaced && namespace_) {
        buf_add_str(out, STR("/namespaces/"));
        url_add(out, str_from(namespace_));
    }
    buf_printf(out, "/%s", kind->plural);
    if (name.len) {
        buf_add_char(out, '/');
        url_add(out, name);
    }
}
