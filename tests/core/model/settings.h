/* settings.h - for tests of one section of the cluster file: what it gives, and where a mistake in it is. */
#ifndef PHX_TESTS_CORE_MODEL_SETTINGS_H
#define PHX_TESTS_CORE_MODEL_SETTINGS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "doc/yaml.h"
#include "core/model/model.h"

/* The text before the section's fields, which are indented by four and begin on the 7th line: machines
 * m-1 and m-2. */
#define SECTION(name)                                                                                        \
    "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n"                                \
    "  pods: [{addresses: 127.0.1.1, racks: [{machines: 2, chips: 4}]}]\n  " name ":\n"

static inline bool load(const char *text, struct cluster *ret_cluster, struct buf *out)
{
    struct arena arena ARENA_CLEANUP = {0}, messages ARENA_CLEANUP = {0};
    struct error error;
    struct doc_list docs;
    struct field_errors errors = {.arena = &messages};
    assert_int_equal(yaml_parse_all(&arena, str_from(text), &docs, &error), 0);
    bool good = cluster_load(docs.items[0], ret_cluster, &errors);
    field_errors_print(&errors, out);
    field_errors_done(&errors);
    return good;
}

struct mistake {
    const char *text, *message; /* the section's fields; "LINE:COLUMN: field: ..." that is said of them */
};

static inline void assert_mistakes(const char *head, const struct mistake *mistakes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cluster cluster;
        struct buf out BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        buf_printf(&text, "%s%s", head, mistakes[i].text);
        if (load(text.data, &cluster, &out))
            fail_msg("%s is taken", mistakes[i].text);
        if (!strstr(out.data, mistakes[i].message))
            fail_msg("%s: %s", mistakes[i].text, out.data);
    }
}

#endif
