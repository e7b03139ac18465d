/* The table of kinds: every kind has a row, and every row each column that its readers rely on. */
#include "core/kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct resource *row_at(int i)
{
    const struct resource *row = &resource_table[i];
    assert_int_equal(row->id, i);
    return row;
}

static void every_kind_has_a_row(void **state)
{
    (void)state;
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++) {
        const struct resource *row = resource_row((enum object_kind)kind);
        assert_non_null(row);
        assert_int_equal(row->named, kind);
        for (int i = 0; i < (int)row->id; i++)
            assert_int_not_equal(resource_table[i].named, kind); /* the preferred version is the first */
        assert_int_equal(object_kind_of(str_from(row->api_version), str_from(row->kind)), kind);
        assert_string_equal(object_kind_title((enum object_kind)kind), row->title);
        assert_string_equal(object_kind_name((enum object_kind)kind), row->kind);
        assert_ptr_equal(resource_served(str_from(row->api_version), str_from(row->kind)), row);
    }
    assert_null(resource_row(0));
    assert_null(resource_row(OBJECT_KINDS));
    assert_string_equal(object_kind_title(0), "objects");
    assert_string_equal(object_kind_name(OBJECT_KINDS), "object");
    assert_int_equal(object_kind_of(STR("v1"), STR("Binding")), 0);
    assert_int_equal(object_kind_of(STR("phalanx.dev/v1"), STR("Lemon")), 0); /* shows Nodes */
    assert_int_equal(object_kind_of(STR("kueue.x-k8s.io/v1"), STR("Cohort")), OBJECT_COHORT);
    assert_null(resource_served(STR("kueue.x-k8s.io/v1"), STR("Cohort")));
}

static void every_row_has_each_column(void **state)
{
    (void)state;
    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *row = row_at(i);
        char api_version[96], title[128];
        snprintf(api_version, sizeof(api_version), "%s%s%s", row->group, row->group[0] ? "/" : "",
                 row->version);
        snprintf(title, sizeof(title), "%s%s%s", row->plural, row->group[0] ? "." : "", row->group);
        assert_string_equal(row->api_version, api_version);
        if (row->id != RESOURCE_NEW_EVENTS) /* named as the kind that it is another form of */
            assert_string_equal(row->title, title);
        assert_true(row->object >= OBJECT_JOBSET && row->object < OBJECT_KINDS);
        assert_true(row->plural[0] && row->kind[0] >= 'A' && row->kind[0] <= 'Z');
        assert_true(row->singular[0] || row->view == VIEW_METRICS);
        assert_int_equal(row->verbs == 0, row->view == VIEW_PENDING);
    }
}

/* A kind that is written has rules; a kind that the store keeps has limits. */
static void rules_have_what_they_need(void **state)
{
    (void)state;
    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *row = row_at(i);
        /* Slices and FabricSessions have rules that refuse every write. */
        bool written = row->verbs & (VERB_CREATE | VERB_UPDATE) || row->rules == RULES_FABRIC;
        bool kept = object_kind_info(row->named) != NULL;
        assert_int_equal(row->rules != RULES_NONE, written);
        assert_int_equal(row->named != 0, written);
        assert_int_equal(row->rules == RULES_STORED, kept || row->named == OBJECT_EVENT);
        assert_int_equal(row->bytes_max > 0, kept);
        assert_int_equal(row->per_namespace_max > 0, kept);
        if (kept && row->named != OBJECT_USER_EVENT)
            assert_int_equal(row->view, VIEW_STORED);
        else
            assert_int_not_equal(row->view, VIEW_STORED);
    }
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Versions of one kind differ in nothing but the version. */
static void versions_agree(void **state)
{
    (void)state;
    int pairs = 0;
    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *a = row_at(i), *b = a->named ? resource_row(a->named) : a;
        pairs += a != b;
        assert_true(same(a->group, b->group) && same(a->title, b->title) && same(a->plural, b->plural));
        assert_true(same(a->singular, b->singular) && same(a->kind, b->kind) &&
                    same(a->short_name, b->short_name) && same(a->aliases, b->aliases));
        assert_true(same(a->category, b->category) && same(a->fields, b->fields) &&
                    same(a->patch_types, b->patch_types));
        assert_true(a->verbs == b->verbs && a->namespaced == b->namespaced && a->rules == b->rules &&
                    a->view == b->view && a->object == b->object);
        assert_true(a->counts_generations == b->counts_generations &&
                    a->per_namespace_max == b->per_namespace_max && a->bytes_max == b->bytes_max);
    }
    assert_int_equal(pairs, 11); /* Kueue's kinds */
}

static void no_two_rows_are_one(void **state)
{
    (void)state;
    for (int i = 0; i < RESOURCES; i++) {
        for (int j = 0; j < i; j++) {
            const struct resource *a = row_at(i), *b = row_at(j);
            bool together = same(a->api_version, b->api_version);
            assert_false(together && same(a->kind, b->kind));
            assert_false(together && same(a->plural, b->plural));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_row),      cmocka_unit_test(every_row_has_each_column),
        cmocka_unit_test(rules_have_what_they_need), cmocka_unit_test(versions_agree),
        cmocka_unit_test(no_two_rows_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
