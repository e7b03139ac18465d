#include "core/spec/schema.h"
#include "core/spec/spec_test.h"

/* Rules that every table must keep, for each table that can be reached. */
static size_t check_table(const struct schema *schema, int depth)
{
    size_t count = 0;
    assert_true(depth < 24 && schema->name && schema->fields);
    for (const struct schema_field *field = schema->fields; field->name; field++) {
        count++;
        assert_ptr_equal(schema_field_of(schema, str_from(field->name)), field); /* unique */
        assert_true((field->kind == SCHEMA_OBJECT) == (field->object != NULL));
        assert_true((field->list == SCHEMA_KEYED) == (field->keys != NULL));
        assert_true(!field->fallback || field->kind == SCHEMA_STRING || field->kind == SCHEMA_INT32);
        assert_true(!field->values || field->kind == SCHEMA_STRING);
        assert_true(!field->fallback || !field->values ||
                    path_one_of(str_from(field->fallback), field->values));
        assert_true(field->items_max == 0 || field->list != SCHEMA_SINGLE);
        if (field->keys) {
            struct str rest = str_from(field->keys), key;
            while (str_cut(rest, ',', &key, &rest))
                assert_non_null(schema_field_of(field->object, key));
            assert_non_null(schema_field_of(field->object, rest));
        }
        if (field->object)
            count += check_table(field->object, depth + 1);
    }
    return count;
}

static void tables_are_sound(void **state)
{
    assert_true(check_table(&schema_jobset, 0) > 1000);
}

/* Each kind that is written has a schema in each version, of its name. */
static void every_written_kind_has_a_schema(void **state)
{
    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *row = &resource_table[i];
        const struct schema *schema = schema_of_row(row->id);
        assert_int_equal(schema != NULL, row->rules != RULES_NONE);
        if (schema)
            assert_string_equal(schema->name, row->kind);
    }
}

static void merge_keys(void **state)
{
    static const struct {
        const struct schema *schema;
        const char *field, *keys;
    } rows[] = {
        {&schema_jobset_spec, "replicatedJobs", "name"},
        {&schema_pod_spec, "containers", "name"},
        {&schema_pod_spec, "initContainers", "name"},
        {&schema_pod_spec, "volumes", "name"},
        {&schema_pod_spec, "imagePullSecrets", "name"},
        {&schema_pod_spec, "resourceClaims", "name"},
        {&schema_pod_spec, "schedulingGates", "name"},
        {&schema_pod_spec, "hostAliases", "ip"},
        {&schema_pod_spec, "topologySpreadConstraints", "topologyKey,whenUnsatisfiable"},
        {&schema_pod_spec, "tolerations", NULL},
        {&schema_container, "env", "name"},
        {&schema_container, "ports", "containerPort,protocol"},
        {&schema_container, "volumeMounts", "mountPath"},
        {&schema_container, "volumeDevices", "devicePath"},
        {&schema_container, "args", NULL},
        {&schema_container, "command", NULL},
        {&schema_container, "envFrom", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct schema_field *field = schema_field_of(rows[i].schema, str_from(rows[i].field));
        assert_non_null(field);
        if (rows[i].keys)
            assert_string_equal(field->keys, rows[i].keys);
        else
            assert_int_equal(field->list, SCHEMA_ATOMIC);
    }
}

/* Flow style, which would be taken for JSON without the marker. */
static struct str text_of(struct arena *arena, const char *flow)
{
    return arena_printf(arena, "--- %s\n", flow);
}

static void kinds(void **state)
{
    static const struct {
        const char *text, *errors;
    } rows[] = {
        {"{apiVersion: v1, kind: ConfigMap, data: {free: x}, date: 1}",
         "unknown field \"date\"; did you mean \"data\"?\n"},
        {"{apiVersion: v1, kind: Secret, stringData: {free: x}}", ""},
        {"{apiVersion: v1, kind: Pod, spec: {container: []}}",
         "unknown field \"spec.container\"; did you mean \"containers\"?\n"},
        {"{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{nme: x}]}}}}",
         "unknown field \"spec.template.spec.containers[0].nme\"; did you mean \"name\"?\n"},
        {"{apiVersion: other/v1, kind: Thing, anything: 1}", ""},
        {"[1]", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        BUF_CLEANUP struct buf text = {0};
        struct field_errors errors = {.arena = &arena};
        struct doc_list docs;
        struct error error;
        assert_int_equal(yaml_parse_all(&arena, text_of(&arena, rows[i].text), &docs, &error), 0);
        spec_unknown_fields(docs.items[0], &errors);
        for (size_t k = 0; k < errors.list.len; k++)
            errors.list.items[k].line = 0;
        field_errors_print(&errors, &text);
        assert_text(&text, rows[i].errors);
        field_errors_done(&errors);
    }
}

/* docs/jobset.md says of every field whether it is acted on: none may be missing there. */
static void every_field_is_documented(void **state)
{
    static const struct schema *const schemas[] = {&schema_jobset_spec, &schema_job_spec, &schema_pod_spec,
                                                   &schema_container};
    BUF_CLEANUP struct buf page = {0};
    FILE *file = fopen("docs/jobset.md", "r");
    assert_non_null(file);
    char chunk[4096];
    for (size_t len; (len = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buf_add(&page, chunk, len);
    fclose(file);
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        for (const struct schema_field *field = schemas[i]->fields; field->name; field++) {
            /* As code, or the first or last part of a longer path in code. */
            bool found = false;
            static const char *const forms[] = {"`%s`", "`%s.", "`%s[]", ".%s`", "`%s:"};
            for (size_t f = 0; f < sizeof forms / sizeof forms[0] && !found; f++) {
                char quoted[80];
                snprintf(quoted, sizeof quoted, forms[f], field->name);
                found = strstr(page.data, quoted) != NULL;
            }
            if (!found)
                fail_msg("docs/jobset.md does not tell about %s.%s", schemas[i]->name, field->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_sound), cmocka_unit_test(every_written_kind_has_a_schema),
        cmocka_unit_test(merge_keys), cmocka_unit_test(kinds), cmocka_unit_test(every_field_is_documented)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
