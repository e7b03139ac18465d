/* settings.c - the settings document (docs/probes.md), checked as a whole before anything runs. */
#include "host/probes/internal.h"

#include <stdio.h>

static const char manifest_keys[] = " gpus infiniband ethernet pci mounts clock ";

static bool known(const char *list, struct str key)
{
    const char *found = list && key.len ? memmem(list, strlen(list), key.data, key.len) : NULL;
    return found && found > list && found[-1] == ' ' && found[key.len] == ' ';
}

int settings_duration(const struct doc *node, const char *what, int64_t fallback_ns, int64_t *ret_ns,
                      struct error *error)
{
    int64_t ns = fallback_ns;
    bool ok = !node || (node->kind == DOC_STRING && duration_parse(node->text, &ns));
    if (node && node->kind == DOC_INT && node->integer > 0 && node->integer <= INT64_MAX / NS_PER_SECOND) {
        ns = node->integer * NS_PER_SECOND;
        ok = true;
    }
    if (!ok || ns <= 0)
        return error_set(error, ERROR_INVALID, "%s: expected a duration such as 30s", what);
    *ret_ns = ns;
    return 0;
}

int probe_setting(const struct probe *probe, const char *key, int64_t min, int64_t max, int64_t fallback,
                  int64_t *ret_value, struct error *error)
{
    const struct doc *node = doc_get(probe->settings, key);
    if (!node) {
        *ret_value = fallback;
        return 0;
    }
    if (node->kind != DOC_INT || node->integer < min || node->integer > max)
        return error_set(error, ERROR_INVALID, "%s: expected an integer from %lld to %lld", key,
                         (long long)min, (long long)max);
    *ret_value = node->integer;
    return 0;
}

const struct doc *probe_manifest(const struct probe *probe, const char *key)
{
    return doc_get(probe->all->manifest, key);
}

bool probe_listed(const struct probe *probe, const char *key, struct str name)
{
    const struct doc *list = doc_get(probe->settings, key);
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str item = doc_str(doc_at(list, i), STR(""));
        bool any = item.len > 0 && item.data[item.len - 1] == '*';
        if (any ? str_starts(name, (struct str){item.data, item.len - 1}) : str_equal(item, name))
            return true;
    }
    return false;
}

static int check_members(const struct doc *object, const char *where, const char *keys, struct error *error)
{
    if (!object)
        return 0;
    if (object->kind != DOC_OBJECT)
        return error_set(error, ERROR_INVALID, "%s: expected an object", where);
    for (size_t i = 0; i < object->object.len; i++)
        if (!known(keys, object->object.members[i].key))
            return error_set(error, ERROR_INVALID, "%s: unknown setting \"" STR_FORMAT "\"", where,
                             STR_ARG(object->object.members[i].key));
    return 0;
}

static int read_probe(struct probe *probe, const struct doc *settings, struct error *error)
{
    char keys[512];
    snprintf(keys, sizeof keys, " enabled period timeout cost%s",
             probe->kind->keys ? probe->kind->keys : " ");
    int rc = check_members(settings, probe->kind->name, keys, error);
    const struct doc *enabled = doc_get(settings, "enabled");
    if (rc == 0 && enabled && enabled->kind != DOC_BOOL)
        rc = error_set(error, ERROR_INVALID, "%s.enabled: expected true or false", probe->kind->name);
    probe->settings = settings;
    probe->enabled = doc_bool(enabled, true);
    if (rc == 0)
        rc = settings_duration(doc_get(settings, "period"), "period", probe->period_ns, &probe->period_ns,
                               error);
    if (rc == 0 && probe->timeout_ns > 0)
        rc = settings_duration(doc_get(settings, "timeout"), "timeout", probe->timeout_ns, &probe->timeout_ns,
                               error);
    if (rc == 0)
        rc = settings_duration(doc_get(settings, "cost"), "cost", probe->cost_max_ns, &probe->cost_max_ns,
                               error);
    return rc;
}

int settings_read(struct probes *all, struct error *error)
{
    const struct doc *settings = all->options.settings;
    int rc = check_members(settings, "settings", " probes manifest checks ", error);
    const struct doc *probes = doc_get(settings, "probes");
    all->manifest = doc_get(settings, "manifest");
    if (rc == 0)
        rc = check_members(all->manifest, "manifest", manifest_keys, error);
    if (rc == 0 && probes && probes->kind != DOC_OBJECT)
        rc = error_set(error, ERROR_INVALID, "probes: expected an object");
    for (size_t i = 0; rc == 0 && i < doc_len(probes); i++) {
        struct str name = probes->object.members[i].key;
        struct probe *probe = NULL;
        for (size_t k = 0; k < all->count; k++)
            if (str_is(name, all->list[k].kind->name))
                probe = &all->list[k];
        rc = probe ? read_probe(probe, probes->object.members[i].value, error)
                   : error_set(error, ERROR_INVALID, "probes: unknown probe \"" STR_FORMAT "\"",
                               STR_ARG(name));
    }
    return rc < 0 ? error_wrap(error, "probe settings") : 0;
}
