/* The fault table: every code that probes say has a row, and what a document lays over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "doc/yaml.h"
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
    "mce/deferred",
    "pcie/link-down",
    "pcie/power",
    "eth/tx-timeout",
    "mlx5/tx-timeout",
    "mlx5/command",
    "lustre/server",
    "lustre/evicted",
    "gpu/ecc-deferred",
    "gpu/poison",
    "gpu/ras",
    "gpu/page-retired",
    "gpu/bad-pages",
    "gpu/page-fault",
    "gpu/hang",
    "gpu/firmware",
    "gpu/reset",
    "gpu/reset-failed",
    "gpu/lost",
    "phalanx/unjoined",
    "agent/state",
    "inventory/chips",
};

static void every_code_of_the_probes_has_a_row(void **state)
{
    struct fault_table *table = fault_table_new(NULL);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (rule(table, codes[i])->code.len == 0)
            fail_msg("no row for %s", codes[i]);
    assert_true(str_is(rule(table, "sxid/12028")->code, "sxid/*"));
    assert_true(str_is(rule(table, "sxid/20034-fatal")->code, "sxid/*-fatal"));
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
        {"xid/63", LEVEL_SUB_HEALTH, false},
        {"xid/79", LEVEL_SEPARATE, true},
        {"xid/95", LEVEL_RESET, true},
        {"xid/149-fatal", LEVEL_RESET, true},
        {"xid/149-nonfatal", LEVEL_SUB_HEALTH, false},
        {"xid/154", LEVEL_SUB_HEALTH, false}, /* without its text */
        {"xid/154-reboot", LEVEL_SEPARATE, true},
        {"sxid/20034-fatal", LEVEL_RESET, true},
        {"sxid/12028", LEVEL_SUB_HEALTH, false},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_int_equal(rule(table, wanted[i].code)->level, wanted[i].level);
        assert_int_equal(rule(table, wanted[i].code)->high, wanted[i].high);
    }
    fault_table_free(table);
}

/* RESTART_APP and IGNORE never take a machine out, however often but for 94; RESET_GPU and RESTART_BM do. */
static void no_restart_of_an_application_takes_a_machine_out(void **state)
{
    static const int harmless[] = {8,   11,  13,  14,  25,  31,  32,  37,  38,  39,  40,  41,  43,  44,
                                   45,  60,  63,  66,  67,  68,  69,  70,  71,  72,  75,  76,  77,  78,
                                   80,  82,  83,  84,  85,  86,  88,  89,  92,  93,  94,  96,  97,  98,
                                   99,  100, 101, 102, 103, 104, 105, 106, 107, 108, 121, 126, 127, 128,
                                   129, 130, 131, 132, 133, 134, 135, 137, 139, 141, 152, 153, 157, 159,
                                   160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172};
    static const int grave[] = {46,  48,  54,  62,  64,  74,  79,  95,  109, 110,
                                119, 120, 136, 140, 143, 151, 155, 156, 158};
    struct fault_table *table = fault_table_new(NULL);
    char code[16];
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        snprintf(code, sizeof code, "xid/%d", harmless[i]);
        const struct fault_rule *row = rule(table, code);
        if (row->level >= LEVEL_PRE_SEPARATE || row->high || (row->times && harmless[i] != 94) ||
            !row->code.len)
            fail_msg("%s takes a machine out", code);
    }
    for (size_t i = 0; i < sizeof grave / sizeof *grave; i++) {
        snprintf(code, sizeof code, "xid/%d", grave[i]);
        if (rule(table, code)->level < LEVEL_RESET || !rule(table, code)->high)
            fail_msg("%s leaves a machine at work", code);
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
                               "  - {code: vendor/*-soft, level: NotHandle}\n"
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
    assert_int_equal(rule(table, "vendor/x-soft")->level, LEVEL_NOT_HANDLE);
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

/* A frequency or a duration changes nothing else of a code that has no row of its own. */
static void a_frequency_keeps_the_level(void **state)
{
    static const char text[] = "spec:\n"
                               "  codes:\n"
                               "  - {code: vendor/*, level: PreSeparate, severity: high, action: call}\n"
                               "  frequency:\n"
                               "  - {codes: [vendor/x, new/one, maker/*], times: 4, window: 1h}\n"
                               "  unknown: {minor: SubHealth}\n";
    struct arena arena = {0};
    struct doc_list documents = {0};
    assert_int_equal(yaml_parse_all(&arena, str_from(text), &documents, NULL), 0);
    struct fault_table *table = fault_table_new(documents.items[0]);
    assert_int_equal(rule(table, "vendor/x")->times, 4);
    assert_int_equal(rule(table, "vendor/x")->level, LEVEL_PRE_SEPARATE);
    assert_true(rule(table, "vendor/x")->high && str_is(rule(table, "vendor/x")->action, "call"));
    assert_int_equal(rule(table, "vendor/y")->times, 0);
    static const char *const unrated[] = {"new/one", "maker/thing"};
    for (int i = 0; i < 2; i++) {
        const struct fault_rule *critical = fault_table_rule(table, str_from(unrated[i]), SEVERITY_CRITICAL);
        assert_int_equal(rule(table, unrated[i])->times, 4);
        assert_int_equal(rule(table, unrated[i])->level, LEVEL_SUB_HEALTH);
        assert_int_equal(critical->level, LEVEL_SEPARATE);
        assert_true(critical->high && critical->times == 4);
        assert_int_equal(critical->code.len, 0); /* still a code that nobody has rated */
    }
    fault_table_free(table);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_the_probes_has_a_row),
        cmocka_unit_test(xids_mean_what_the_catalogue_says),
        cmocka_unit_test(no_restart_of_an_application_takes_a_machine_out),
        cmocka_unit_test(a_document_is_laid_over_the_defaults),
        cmocka_unit_test(a_frequency_keeps_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
