/* spec_test.h - manifests from files and edits of them, and all steps of a write with its errors as text. */
#ifndef PHX_TESTS_CORE_SPEC_SPEC_TEST_H
#define PHX_TESTS_CORE_SPEC_SPEC_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "doc/yaml.h"
#include "core/spec/spec.h"

#define MANIFESTS "tests/core/spec/manifests/"
__attribute__((unused)) static const char *const manifests[] = {
    "pytorch", "jax", "driver-worker", "in-order", "policies", "exclusive", "volumes"};
enum { MANIFEST_COUNT = sizeof manifests / sizeof manifests[0] };

static inline struct doc *parse(struct arena *arena, struct str text)
{
    struct doc_list docs = {0};
    struct error error;
    if (yaml_parse_all(arena, text, &docs, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(docs.len, 1);
    return docs.items[0];
}

static inline struct doc *load(struct arena *arena, const char *name)
{
    struct str path = arena_printf(arena, MANIFESTS "%s.yaml", name);
    struct buf text = {0};
    FILE *file = fopen(path.data, "r");
    if (!file)
        fail_msg("cannot open %s", path.data);
    char chunk[4096];
    for (size_t len; (len = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buf_add(&text, chunk, len);
    fclose(file);
    struct doc *doc = parse(arena, buf_str(&text));
    buf_done(&text);
    return doc;
}

/* Two replicated jobs, nothing but what is required; the tests edit it. */
static inline struct doc *small(struct arena *arena)
{
    static const char text[] =
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"js\"},"
        "\"spec\":{\"replicatedJobs\":["
        "{\"name\":\"a\",\"template\":{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}}"
        "}},"
        "{\"name\":\"b\",\"template\":{\"spec\":{\"parallelism\":2,\"completions\":2,"
        "\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}}]}}";
    struct doc *doc = NULL;
    struct error error;
    assert_int_equal(json_parse(arena, str_from(text), &doc, &error), 0);
    return doc;
}

static inline size_t item_index(struct str text)
{
    int64_t index;
    if (!str_to_i64(text, 0, 1000, &index))
        fail_msg(STR_FORMAT " is no index", STR_ARG(text));
    return (size_t)index;
}

/* Puts a JSON value at "spec.replicatedJobs.0.name"; an empty value removes what is there. "R0", "J0", "P0",
 * "C0" at the beginning stand for replicated job 0, its Job spec, its pod spec, its first container. */
static inline void edit(struct arena *arena, struct doc *root, const char *where, const char *json)
{
    static const char *const parts[] = {"R", "",
                                        "J", ".template.spec",
                                        "P", ".template.spec.template.spec",
                                        "C", ".template.spec.template.spec.containers.0"};
    struct str path = str_from(where), head, rest = path;
    for (size_t i = 0; i < 8; i += 2) {
        if (where[0] == parts[i][0] && where[1] >= '0' && where[1] <= '9')
            path = arena_printf(arena, "spec.replicatedJobs.%c%s%s", where[1], parts[i + 1], where + 2);
    }
    struct doc *node = root, *value = NULL;
    struct error error;
    if (json[0] && json_parse(arena, str_from(json), &value, &error) < 0)
        fail_msg("%s: %s", json, error.text);
    for (rest = path; str_cut(rest, '.', &head, &rest);) {
        struct doc *next =
            node->kind == DOC_ARRAY ? doc_at(node, item_index(head)) : doc_get_str(node, head);
        node = next ? next : doc_need_object(arena, node, arena_strdup(arena, head));
    }
    if (node->kind == DOC_ARRAY)
        node->array.items[item_index(rest)] = value;
    else if (value)
        doc_set(arena, node, rest, value);
    else
        doc_unset(node, arena_strdup(arena, rest));
}

/* "path=json" edits, divided by " ; ". */
static inline void edit_all(struct arena *arena, struct doc *root, const char *edits)
{
    struct str rest = str_from(edits);
    while (rest.len > 0) {
        const char *stop = strstr(rest.data, " ; ");
        struct str one = {rest.data, stop ? (size_t)(stop - rest.data) : rest.len}, where, json;
        assert_true(str_cut(one, '=', &where, &json));
        edit(arena, root, arena_strdup(arena, where), arena_strdup(arena, json));
        rest = stop ? str_from(stop + 3) : STR("");
    }
}

/* All steps of a write; the errors as "path: message" lines. *ret_spec is whole when this returns true. */
static inline bool check_write(struct arena *arena, struct doc *doc, struct jobset_spec *ret_spec,
                               struct buf *ret_errors)
{
    struct field_errors errors = {.arena = arena};
    spec_unknown_fields(doc, &errors);
    jobset_default(arena, doc);
    bool read = jobset_read(arena, doc, ret_spec, &errors);
    if (read)
        jobset_validate(doc, ret_spec, &errors);
    for (size_t i = 0; i < errors.list.len; i++)
        errors.list.items[i].line = 0;
    field_errors_print(&errors, ret_errors);
    field_errors_done(&errors);
    return read;
}

static inline void assert_text(const struct buf *text, const char *expected)
{
    assert_string_equal(text->data ? text->data : "", expected);
}

#endif
