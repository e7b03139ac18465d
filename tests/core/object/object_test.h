/* object_test.h - writes of any kind to the harness's core. */
#ifndef PHX_TESTS_CORE_OBJECT_OBJECT_TEST_H
#define PHX_TESTS_CORE_OBJECT_OBJECT_TEST_H

#include "../harness.h"

static inline struct write_event write_of(enum write_verb verb, enum object_kind kind, const char *namespace_,
                                          const char *name, struct str body)
{
    return (struct write_event){.verb = verb,
                                .object = kind,
                                .namespace_ = str_from(namespace_),
                                .name = str_from(name),
                                .body = body,
                                .grace_s = -1};
}

static inline struct str json_of(struct arena *arena, const char *yaml)
{
    struct doc_list docs = {0};
    struct error error = {0};
    struct buf json BUF_CLEANUP = {0};
    if (!yaml)
        return STR("");
    /* A text that begins with a brace would have to be JSON. */
    struct str text = yaml[0] == '{' ? arena_printf(arena, "flow: %s", yaml) : str_from(yaml);
    if (yaml_parse_all(arena, text, &docs, &error) < 0)
        fail_msg("%s in %s", error.text, yaml);
    json_write(&json, yaml[0] == '{' ? doc_get(docs.items[0], "flow") : docs.items[0]);
    return arena_str(arena, buf_str(&json));
}

/* The status of the write's reply, and h->last_message. */
static inline int put(struct harness *h, enum write_verb verb, enum object_kind kind, const char *ns,
                      const char *name, const char *yaml)
{
    struct arena arena = {0};
    struct event event = {.kind = EVENT_WRITE};
    event.write = write_of(verb, kind, ns, name, json_of(&arena, yaml));
    h->last_code = 0;
    harness_step(h, &event);
    core_check_invariants(h->core);
    arena_done(&arena);
    return h->last_code;
}

static inline int drop(struct harness *h, enum object_kind kind, const char *ns, const char *name,
                       enum propagation propagation)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = write_of(WRITE_DELETE, kind, ns, name, STR(""));
    event.write.propagation = propagation;
    h->last_code = 0;
    harness_step(h, &event);
    core_check_invariants(h->core);
    return h->last_code;
}

/* Returns the verdict of a check before the log: 0 accepted, else the status. */
static inline int check(struct harness *h, enum write_verb verb, enum object_kind kind, const char *ns,
                        const char *name, const char *yaml)
{
    struct arena arena = {0};
    struct write_event write = write_of(verb, kind, ns, name, json_of(&arena, yaml));
    uint64_t digest = core_digest(h->core);
    h->last_code = 0;
    h->last_message[0] = 0;
    if (!core_check_write(h->core, &write, h->now_ns, &h->effects, NULL))
        harness_watch(h);
    assert_true(core_digest(h->core) == digest);
    arena_done(&arena);
    return h->last_code;
}

static inline const struct object *found(struct harness *h, enum object_kind kind, const char *ns,
                                         const char *name)
{
    return object_find(core_objects(h->core), kind, str_from(ns), str_from(name));
}

/* A ConfigMap in `ns` with owners: "uid kind name block" for each of `owners`, NULL-terminated. */
struct owner {
    const char *api_version, *kind, *name;
    obj_id uid;
    bool block;
};
static inline int own(struct harness *h, const char *ns, const char *name, const struct owner *owners,
                      size_t count)
{
    struct buf yaml BUF_CLEANUP = {0};
    buf_printf(&yaml, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\n", name, ns);
    if (count)
        buf_printf(&yaml, "  ownerReferences:\n");
    for (size_t i = 0; i < count; i++) {
        char uid[UID_TEXT_MAX];
        uid_text(owners[i].uid, uid);
        buf_printf(&yaml, "  - {apiVersion: %s, kind: %s, name: %s, uid: %s, blockOwnerDeletion: %s}\n",
                   owners[i].api_version, owners[i].kind, owners[i].name, uid,
                   owners[i].block ? "true" : "false");
    }
    return put(h, WRITE_CREATE, OBJECT_CONFIG_MAP, ns, name, yaml.data);
}
static inline struct owner owner_of(struct harness *h, const char *ns, const char *name, bool block)
{
    return (struct owner){"v1", "ConfigMap", name, found(h, OBJECT_CONFIG_MAP, ns, name)->uid, block};
}

#endif
