/* levels.c - names of levels and codes on both sides (MindCluster's faultCode.json,
 * NodeDConfiguration.json). */
#include "host/mindcluster/internal.h"

const struct level_names level_names[LEVEL_NAMES] = {
    {"NotHandle", "NotHandleFault", "NotHandleFault", "empty"},
    {"SubHealth", "SubHealthFault", "NotHandleFault", "ignore"},
    {"RestartRequest", "RestartRequest", "NotHandleFault", "restart_request"},
    {"RestartBusiness", "RestartBusiness", "NotHandleFault", "restart"},
    {"PreSeparate", "PreSeparateNPU", "PreSeparateFault", "isolate"},
    {"FreeReset", "FreeRestartNPU", "PreSeparateFault", "free_reset"},
    {"Reset", "RestartNPU", "SeparateFault", "reset"},
    {"Separate", "SeparateNPU", "SeparateFault", "isolate"},
    {"ManuallySeparate", "ManuallySeparateNPU", "SeparateFault", "isolate"},
};

int level_of(struct str ours)
{
    for (int i = 0; i < LEVEL_NAMES; i++)
        if (str_is(ours, level_names[i].ours))
            return i;
    return 0;
}

int level_of_chip(struct str name)
{
    for (int i = 0; i < LEVEL_NAMES; i++)
        if (str_is(name, level_names[i].chip))
            return i;
    return -1;
}

int level_of_node(struct str name)
{
    static const char *const ours[][2] = {
        {"NotHandleFault", "NotHandle"}, {"PreSeparateFault", "PreSeparate"}, {"SeparateFault", "Separate"}};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (str_is(name, ours[i][0]))
            return level_of(str_from(ours[i][1]));
    return -1;
}

int level_of_policy(struct str name)
{
    int level = LEVEL_NAMES - 2; /* the last is by escalation */
    while (level >= 0 && !str_is(name, level_names[level].policy))
        level--;
    return level;
}

struct str code_family(struct str code)
{
    struct str family, rest;
    return str_cut(code, '/', &family, &rest) ? family : (struct str){0};
}

struct str code_out(struct arena *arena, struct str code)
{
    struct str family, name;
    if (!str_cut(code, '/', &family, &name) || (!str_is(family, "public") && !str_is(family, "ascend")))
        return code;
    char *text = arena_strdup(arena, name);
    for (size_t i = 0; str_is(family, "ascend") && i < name.len; i++)
        if (text[i] >= 'a' && text[i] <= 'f')
            text[i] = (char)(text[i] - 'a' + 'A');
    return (struct str){text, name.len};
}

struct str code_in(struct arena *arena, struct str code)
{
    struct str family, name;
    bool ours = str_cut(code, '/', &family, &name);
    char *text = arena_strdup(arena, code);
    if (code.len == 0 || code.len > 48 || (ours && (family.len == 0 || name.len == 0)))
        return (struct str){0};
    for (size_t i = 0; i < code.len; i++) {
        char c = text[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        if (!plain && !(ours && i == family.len))
            return (struct str){0};
    }
    return ours ? (struct str){text, code.len} : arena_printf(arena, "ascend/%s", text);
}
