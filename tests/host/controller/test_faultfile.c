/* The fault table as a file: read at the start and at each change, however the file is changed; a
 * mistake leaves what was there and says where it is. */
#include "core/health/fault.h"
#include "host/controller/world.h"

struct table {
    struct world w;
    char path[320], fresh[340];
};

/* In place, or as editors do: another file takes its name. */
static void put(struct table *t, const char *text, bool rename_it)
{
    const char *path = rename_it ? t->fresh : t->path;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    if (rename_it)
        assert_int_equal(rename(t->fresh, t->path), 0);
}

static enum fault_level level_of(const struct table *t, const char *code)
{
    const struct fault_table *table = health_table(core_health(t->w.controller->core));
    return fault_table_rule(table, str_from(code), SEVERITY_MAJOR)->level;
}

static const char *complaint_wanted;

static void find_complaint(void *context, const struct object *object)
{
    struct str message = doc_str(doc_get(object->document, "message"), STR(""));
    *(bool *)context |= memmem(message.data, message.len, complaint_wanted, strlen(complaint_wanted)) != NULL;
}

static bool complained(const struct table *t, const char *text)
{
    bool found = false;
    complaint_wanted = text;
    object_visit(core_objects(t->w.controller->core), OBJECT_USER_EVENT, STR(""), find_complaint, &found);
    return found;
}

static void begin(struct table *t, const char *text)
{
    world_prepare(&t->w, PATIENT_LEASE_MS);
    snprintf(t->path, sizeof t->path, "%s/faults.yaml", t->w.dir);
    snprintf(t->fresh, sizeof t->fresh, "%s/faults.yaml.new", t->w.dir);
    t->w.options.faults = t->path;
    put(t, text, false);
    world_start(&t->w);
}

static void a_file_is_followed(void **state)
{
    struct table t;
    begin(&t, "apiVersion: phalanx.dev/v1\nkind: FaultTable\nmetadata: {name: default}\n"
              "spec:\n  codes:\n  - {code: fan/slow, level: SubHealth}\n");
    RUN_UNTIL(&t.w, level_of(&t, "fan/slow") == LEVEL_SUB_HEALTH);
    put(&t, "codes:\n- {code: fan/slow, level: Reset}\n", true); /* the spec alone does as well */
    RUN_UNTIL(&t.w, level_of(&t, "fan/slow") == LEVEL_RESET);
    put(&t, "codes: []\n", false);
    RUN_UNTIL(&t.w, level_of(&t, "fan/slow") == LEVEL_PRE_SEPARATE); /* an unknown code again */
    uint64_t seq = core_seq(t.w.controller->core);
    world_restart(&t.w);
    uint64_t boot_records = core_seq(t.w.controller->core) - seq;
    assert_true(boot_records <= 2); /* what is there already is not written again */
    world_done(&t.w);
}

static void mistakes_are_said_with_their_place(void **state)
{
    struct table t;
    begin(&t, "codes:\n- {code: fan/slow, level: SubHealth}\n");
    RUN_UNTIL(&t.w, level_of(&t, "fan/slow") == LEVEL_SUB_HEALTH);
    put(&t, "codes:\n- {code: fan/slow, level: Reset}\n- {code: Nonsense, level: Reset}\n", true);
    RUN_UNTIL(&t.w, complained(&t, "faults.yaml:3:10: spec.codes[1].code"));
    put(&t, "codes:\n- {code: fan/slow, level: Reset, colour: red}\n", true);
    RUN_UNTIL(&t.w, complained(&t, "spec.codes[0].colour"));
    put(&t, "codes: [\n", true);
    RUN_UNTIL(&t.w, complained(&t, "faults.yaml:2:"));
    put(&t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", true);
    RUN_UNTIL(&t.w, complained(&t, "no FaultTable"));
    assert_int_equal(level_of(&t, "fan/slow"), LEVEL_SUB_HEALTH);
    put(&t, "codes:\n- {code: fan/slow, level: FreeReset}\n", true);
    RUN_UNTIL(&t.w, level_of(&t, "fan/slow") == LEVEL_FREE_RESET);
    world_done(&t.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_followed),
        cmocka_unit_test(mistakes_are_said_with_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
