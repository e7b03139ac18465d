/* load_repair.c - reads spec.repair.hooks: the actions that a repair tries on a machine (docs/repair.md). */
#include "core/model/load.h"

#define MINUTE_NS (60 * NS_PER_SECOND)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
enum { RETRIES_MAX = 100, ACTION_BYTES_MAX = 63 };

#define HOOK(name, timeout, ...)                                                                             \
    {                                                                                                        \
        .action = {name, sizeof(name) - 1}, .timeout_ns = (timeout), .retries = 1,                           \
        .backoff_ns = 30 * NS_PER_SECOND, ##__VA_ARGS__                                                      \
    }
static const struct repair_hook default_hooks[] = {
    HOOK("clean", 5 * MINUTE_NS),
    HOOK("remount", 2 * MINUTE_NS),
    HOOK("reset-gpu", 5 * MINUTE_NS),
    HOOK("reboot", 20 * MINUTE_NS, .reboots = true),
    HOOK("power-cycle", 20 * MINUTE_NS, .reboots = true),
};
enum { DEFAULT_HOOKS = sizeof(default_hooks) / sizeof(*default_hooks) };

/* Returns whether the text can be an action: the name of a script in the hooks directory, and no path. */
static bool is_action(struct str text)
{
    return text.len > 0 && text.len <= ACTION_BYTES_MAX && name_is_dns1123_label(text);
}

/* Returns the default hook of that name, or the defaults of every hook. */
static struct repair_hook default_of(struct str action)
{
    for (size_t i = 0; i < DEFAULT_HOOKS; i++)
        if (str_equal(default_hooks[i].action, action))
            return default_hooks[i];
    return (struct repair_hook)HOOK("", 5 * MINUTE_NS);
}

static void read_hook(struct loader *loader, const struct field *field, struct repair_settings *repair)
{
    static const char *const known[] = {"action",  "machine", "timeout", "retries",
                                        "backoff", "reboots", NULL};
    struct field action = field_get(field, "action"), machine = field_get(field, "machine");
    struct field timeout = field_get(field, "timeout"), retries = field_get(field, "retries");
    struct field backoff = field_get(field, "backoff"), reboots = field_get(field, "reboots");
    struct arena *arena = &loader->cluster->arena;
    struct str text;
    if (!load_object(loader, field, known))
        return;
    if (!load_present(&action))
        load_required(loader, &action, "the action that the hook is for");
    if (!load_text(loader, &action, &text))
        return;
    if (!is_action(text)) {
        load_fail(loader, &action, "FieldValueInvalid",
                  "Invalid value: \"" STR_FORMAT "\": must be lower case letters, digits and '-'",
                  STR_ARG(load_excerpt(text)));
        return;
    }
    struct repair_hook hook = default_of(text);
    hook.action = arena_str(arena, text);
    for (size_t i = 0; i < repair->hook_count; i++)
        if (str_equal(repair->hooks[i].action, hook.action))
            load_fail(loader, &action, "FieldValueDuplicate", "Duplicate value: \"" STR_FORMAT "\"",
                      STR_ARG(text));
    if (load_text(loader, &machine, &text))
        hook.on = arena_str(arena, text);
    load_duration(loader, &timeout, NS_PER_SECOND, DAY_NS, &hook.timeout_ns);
    load_int(loader, &retries, 0, RETRIES_MAX, &hook.retries);
    load_duration(loader, &backoff, 0, DAY_NS, &hook.backoff_ns);
    load_bool(loader, &reboots, &hook.reboots);
    repair->hooks[repair->hook_count++] = hook;
}

static void read_hooks(struct loader *loader, const struct field *hooks, struct repair_settings *repair)
{
    if (!load_list(loader, hooks))
        return;
    if (doc_len(hooks->doc) > REPAIR_HOOKS_MAX) {
        load_fail(loader, hooks, "FieldValueTooMany", "Too many: at most %d hooks", REPAIR_HOOKS_MAX);
        return;
    }
    repair->hook_count = 0;
    for (size_t i = 0; i < doc_len(hooks->doc); i++) {
        struct field item = field_at(hooks, i);
        read_hook(loader, &item, repair);
    }
}

void load_repair(struct loader *loader, const struct field *field)
{
    struct repair_settings *repair = &loader->cluster->policy.repair;
    struct field hooks = field_get(field, "hooks");
    repair->hooks = ARENA_ARRAY(&loader->cluster->arena, struct repair_hook, REPAIR_HOOKS_MAX);
    repair->hook_count = DEFAULT_HOOKS;
    mem_copy(repair->hooks, default_hooks, sizeof(default_hooks));
    read_hooks(loader, &hooks, repair);
}

void load_repair_machines(struct loader *loader, const struct field *field)
{
    struct field hooks = field_get(field, "hooks");
    for (size_t i = 0; i < loader->cluster->policy.repair.hook_count && i < doc_len(hooks.doc); i++) {
        struct field item = field_at(&hooks, i), machine = field_get(&item, "machine");
        struct str name;
        if (load_text(loader, &machine, &name) && !str_map_get(&loader->cluster->by_name, name))
            load_fail(loader, &machine, "FieldValueNotFound", "Not found: \"" STR_FORMAT "\"",
                      STR_ARG(load_excerpt(name)));
    }
}
