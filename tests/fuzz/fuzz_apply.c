/* fuzz_apply.c - any documents as objects, patches and owners: bounded, no crash, and what must hold does.
 *
 * Input: up to four JSON documents on lines of their own: an object, a patch, a managedFields list, another
 * applied document. The kinds of the patches: merge, strategic, JSON, apply. After an apply by force the same
 * apply changes nothing and meets no conflict, and managedFields read back as they were written.
 */
#include <stddef.h>
#include <stdint.h>

#include "doc/json.h"
#include "kube/apply.h"
#include "kube/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct doc *next_doc(struct arena *arena, struct str *text)
{
    struct str line = *text;
    struct doc *doc = NULL;
    if (!str_cut(*text, '\n', &line, text))
        text->len = 0;
    return json_parse(arena, line, &doc, NULL) == 0 ? doc : NULL;
}

static int apply(struct arena *arena, const struct doc *live, const struct doc *config, const char *who,
                 bool force, struct apply_managers *managers, struct doc **ret_object)
{
    struct apply_conflicts conflicts = {0};
    struct error error = {0};
    struct apply_request request = {
        .schema = schema_of(config),
        .live = live,
        .config = config,
        .who = {.name = str_from(who), .api_version = STR("v1"), .time = STR("t"), .applies = true},
        .force = force};
    int rc = apply_merge(arena, &request, managers, ret_object, &conflicts, &error);
    CHECK(rc == 0 || rc == ERROR_CONFLICT || rc == ERROR_INVALID);
    CHECK(!(force && rc == ERROR_CONFLICT) && (rc == ERROR_CONFLICT) == (conflicts.list.len > 0));
    vec_done(&conflicts.list);
    return rc;
}

static void check_twice(struct arena *arena, const struct doc *live, const struct doc *config,
                        struct apply_managers *managers)
{
    struct doc *once, *twice;
    if (apply(arena, live, config, "one", true, managers, &once) < 0)
        return;
    struct doc *written = apply_managers_doc(arena, managers);
    struct apply_managers read = {0};
    struct error error = {0};
    CHECK(apply_managers_read(arena, written, &read, &error) == 0);
    CHECK(apply(arena, once, config, "one", false, &read, &twice) == 0);
    CHECK(doc_equal(once, twice));
    apply_managers_done(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct str text = {(const char *)data, size};
    struct error error = {0};
    if (size > 64 * 1024)
        return 0;
    struct doc *live = next_doc(&arena, &text), *patch = next_doc(&arena, &text);
    struct doc *fields = next_doc(&arena, &text), *config = next_doc(&arena, &text), *result;
    if (!live || !patch || live->kind != DOC_OBJECT)
        return 0;
    const struct schema *schema = schema_of(live);
    (void)patch_merge(&arena, doc_clone(&arena, live), patch);
    result = doc_clone(&arena, live);
    (void)patch_strategic(&arena, schema, &result, patch, &error);
    result = doc_clone(&arena, live);
    (void)patch_apply(&arena, &result, patch, &error);
    struct apply_managers managers = {0};
    (void)apply_managers_read(&arena, fields, &managers, &error);
    apply_managers_expand(&arena, &managers, live);
    if (patch->kind == DOC_OBJECT) {
        struct apply_manager who = {.name = STR("u"), .time = STR("t")};
        apply_update(&arena, schema, live, patch, &who, &managers);
        apply_managers_collapse(&arena, &managers, patch);
    }
    if (config && config->kind == DOC_OBJECT)
        check_twice(&arena, live, config, &managers);
    apply_managers_done(&managers);
    return 0;
}
