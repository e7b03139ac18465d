#include "core/words/container.h"

#include "base/arena.h"
#include "base/check.h"

bool volume_path_is_inner(struct str path)
{
    if (path.len > 0 && path.data[0] == '/')
        return false;
    struct str part, rest = path;
    while (rest.len > 0) {
        if (!str_cut(rest, '/', &part, &rest)) {
            part = rest;
            rest = (struct str){0};
        }
        if (str_is(part, ".."))
            return false;
    }
    return true;
}

static struct str *copy_strings(struct arena *arena, const struct str *from, size_t count)
{
    CHECK(from || count == 0);
    struct str *copy = ARENA_ARRAY(arena, struct str, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_str(arena, from[i]);
    return copy;
}

static struct env_var *copy_env(struct arena *arena, const struct env_var *from, size_t count)
{
    CHECK(from || count == 0);
    struct env_var *copy = ARENA_ARRAY(arena, struct env_var, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = (struct env_var){arena_str(arena, from[i].name), arena_str(arena, from[i].value),
                                   from[i].host_names};
    return copy;
}

static void copy_action(struct arena *arena, struct container_action *action)
{
    CHECK(action->kind < ACTION_KINDS);
    action->argv = copy_strings(arena, action->argv, action->argc);
    action->host = arena_str(arena, action->host);
    action->path = arena_str(arena, action->path);
    action->headers = copy_env(arena, action->headers, action->header_count);
}

void container_launch_copy(struct arena *arena, const struct container_launch *from,
                           struct container_launch *ret)
{
    CHECK(from != ret);
    *ret = *from;
    ret->name = arena_str(arena, from->name);
    ret->argv = copy_strings(arena, from->argv, from->argc);
    ret->env = copy_env(arena, from->env, from->env_count);
    ret->working_dir = arena_str(arena, from->working_dir);
    ret->rules = ARENA_ARRAY(arena, struct container_rule, from->rule_count);
    for (size_t i = 0; i < from->rule_count; i++) {
        const struct container_rule *rule = &from->rules[i];
        ret->rules[i] = (struct container_rule){rule->not_in, ARENA_ARRAY(arena, int32_t, rule->code_count),
                                                rule->code_count};
        for (size_t k = 0; k < rule->code_count; k++)
            ret->rules[i].codes[k] = rule->codes[k];
    }
    for (int i = 0; i < PROBE_KINDS; i++)
        copy_action(arena, &ret->probes[i].action);
    copy_action(arena, &ret->post_start);
    copy_action(arena, &ret->pre_stop);
    ret->security.groups = ARENA_ARRAY(arena, uint32_t, from->security.group_count);
    for (size_t i = 0; i < from->security.group_count; i++)
        ret->security.groups[i] = from->security.groups[i];
    ret->mounts = ARENA_ARRAY(arena, struct container_mount, from->mount_count);
    for (size_t i = 0; i < from->mount_count; i++) {
        const struct container_mount *mount = &from->mounts[i];
        ret->mounts[i] =
            (struct container_mount){arena_str(arena, mount->volume), arena_str(arena, mount->path),
                                     arena_str(arena, mount->sub_path), mount->read_only};
    }
}

void volume_launch_copy(struct arena *arena, const struct volume_launch *from, struct volume_launch *ret)
{
    CHECK(from != ret);
    *ret = *from;
    ret->name = arena_str(arena, from->name);
    ret->source = arena_str(arena, from->source);
    ret->type = arena_str(arena, from->type);
    ret->files = ARENA_ARRAY(arena, struct volume_file, from->file_count);
    for (size_t i = 0; i < from->file_count; i++)
        ret->files[i] = (struct volume_file){arena_str(arena, from->files[i].path),
                                             arena_str(arena, from->files[i].data), from->files[i].mode};
}

void container_status_copy(struct arena *arena, const struct container_status *from,
                           struct container_status *ret)
{
    CHECK(from != ret && from->phase < CONTAINER_PHASES);
    *ret = *from;
    ret->name = arena_str(arena, from->name);
    ret->reason = arena_str(arena, from->reason);
    ret->message = arena_str(arena, from->message);
    ret->end.message = arena_str(arena, from->end.message);
}
