/* The fault table: every code that probes say has a row, and what a document lays over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/yaml.h"
#include "core/health/table.h"
#include "base/units.h"

static const struct fault_rule *rule(const struct fault_table *table, const char *code)
{
    return fault_table_rule(table, str_from(code), SEVERITY_MINOR);
}

static const char *const codes[] = {
    "xid/13",
    "xid/48",
    "xid/63",
    "xid/74",
    "xid/79",
    "xid/94",
    "xid/119",
    "xid/144-fatal",
    "xid/150-nonfatal",
    "xid/154",
    "xid/154-none",
    "xid/154-reset",
    "xid/154-reboot",
    "xid/154-drain",
    "xid/154-drain-reset",
    "mce/corrected",
    "mce/uncorrected",
    "edac/ce",
    "edac/ue",
    "pcie/correctable",
    "pcie/nonfatal",
    "pcie/fatal",
    "pcie/link-speed",
    "pcie/link-width",
    "pcie/missing",
    "ib/port-down",
    "ib/port-flap",
    "ib/errors",
    "ib/missing",
    "ib/rate",
    "eth/down",
    "eth/flap",
    "eth/speed",
    "eth/carrier",
    "mlx5/temperature",
    "mlx5/power",
    "mlx5/module",
    "mlx5/health",
    "mount/missing",
    "mount/read-only",
    "mount/hung",
    "mount/error",
    "fs/error",
    "fs/full",
    "fs/inodes",
    "fs/health",
    "nfs/server",
    "disk/timeout",
    "disk/failed",
    "disk/io",
    "disk/raid",
    "disk/smart",
    "disk/media",
    "mem/pressure",
    "mem/oom",
    "cpu/lockup",
    "cpu/hung-task",
    "cpu/d-state",
    "cpu/thermal",
    "cpu/throttle",
    "os/files",
    "os/zombies",
    "os/load",
    "os/panic",
    "os/oops",
    "os/log-lost",
    "os/probe-cost",
    "os/probe-hung",
    "os/signals-lost",
    "net/retransmits",
    "clock/unsynced",
    "clock/skew",
    "clock/source",
    "gpu/missing",
    "gpu/ecc-uncorrected",
    "gpu/row-remap-failed",
    "gpu/row-remap-pending",
    "gpu/nvlink",
    "gpu/nvlink-errors",
    "gpu/clocks",
    "gpu/temperature",
    "gpu/driver",
    "gpu/init",
    "gpu/peermem",
};

static void every_code_of_the_probes_has_a_row(void **state)
{
    struct fault_table *table = fault_table_new(NULL);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!str_is(rule(table, codes[i])->code, codes[i]))
            fail_msg("no row for %s", codes[i]);
    assert_true(str_is(rule(table, "sxid/20034")->code, "sxid/*"));
    fault_table_free(table);
}

/* NVIDIA's catalogue: applications' errors never isolate, the others as their action says. */
static void xids_mean_what_the_catalogue_says(void **state)
{
    struct fault_table *table = fault_table_new(NULL);
    static const struct {
        const char *code;
        enum fault_level level;
        bool high;
    } wanted[] = {
        {"xid/13", LEVEL_RESTART_BUSINESS, false},
        {"xid/31", LEVEL_RESTART_BUSINESS, false},
        {"xid/43", LEVEL_NOT_HANDLE, false},
        {"xid/45", LEVEL_NOT_HANDLE, false},
        {"xid/48", LEVEL_RESET, true},
        {"xid/63", LEVEL_FREE_RESET, false},
        {"xid/79", LEVEL_SEPARATE, true},
        {"xid/95", LEVEL_RESET, true},
        {"xid/149-fatal", LEVEL_SEPARATE, true},
        {"xid/149-nonfatal", LEVEL_SUB_HEALTH, false},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_int_equal(rule(table, wanted[i].code)->level, wanted[i].level);
        assert_int_equal(rule(table, wanted[i].code)->high, wanted[i].high);
    }
    fault_table_free(table);
}

static void a_document_is_laid_over_the_defaults(void **state)
{
    static const char text[] = "spec:\n"
                               "  codes:\n"
                               "  - {code: xid/79, level: SubHealth, domain: software}\n"
                               "  - {code: twice/said, level: Reset}\n"
                               "  - {code: twice/said, level: SubHealth}\n"
                               "  - {code: vendor/*, level: PreSeparate, severity: high, action: call}\n"
                               "  frequency:\n"
                               "  - {codes: [xid/79, new/one], times: 4, window: 1h, release: 2h}\n"
                               "  duration:\n"
                               "  - {codes: [new/one], after: 5s, recover: 6s, level: Separate}\n"
                               "  relations: []\n"
                               "  unknown: {minor: SubHealth}\n"
                               "  breaker: {perHour: 3, total: 4}\n";
    struct arena arena = {0};
    struct doc_list documents = {0};
    assert_int_equal(yaml_parse_all(&arena, str_from(text), &documents, NULL), 0);
    struct fault_table *table = fault_table_new(documents.items[0]);
    assert_int_equal(rule(table, "xid/79")->level, LEVEL_SUB_HEALTH);
    assert_int_equal(rule(table, "xid/79")->times, 4);
    assert_int_equal(rule(table, "twice/said")->level, LEVEL_RESET); /* the larger one */
    assert_int_equal(rule(table, "vendor/x")->level, LEVEL_PRE_SEPARATE);
    assert_true(rule(table, "vendor/x")->high && str_is(rule(table, "vendor/x")->action, "call"));
    assert_true(rule(table, "new/one")->release_ns == 2 * 3600 * NS_PER_SECOND);
    assert_true(rule(table, "new/one")->settle_ns == 5 * NS_PER_SECOND);
    assert_int_equal(rule(table, "new/one")->frequent, LEVEL_MANUALLY_SEPARATE);
    assert_int_equal(rule(table, "unheard/of")->level, LEVEL_SUB_HEALTH);
    assert_int_equal(rule(table, "edac/ue")->level, LEVEL_SEPARATE); /* untouched */
    size_t relations;
    fault_table_relations(table, &relations);
    assert_int_equal(relations, 0);
    assert_int_equal(fault_table_breaker(table).hour_percent, 3);
    fault_table_free(table);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_the_probes_has_a_row),
        cmocka_unit_test(xids_mean_what_the_catalogue_says),
        cmocka_unit_test(a_document_is_laid_over_the_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
