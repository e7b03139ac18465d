/* No alarm without a cause: this machine at rest, a day of the schedule, random machines; and no crash,
 * whatever stands in the files. */
#include "fixture.h"

#include <sys/wait.h>

#include "base/rng.h"

/* --- this machine --------------------------------------------------------------------------------- */

static void print_signals(struct fixture *f)
{
    for (size_t i = 0; i < f->kept.len; i++)
        print_message("# told: %s %s: %s\n", f->kept.items[i].code, f->kept.items[i].place,
                      f->kept.items[i].evidence);
}

/* Codes that a machine on which others work may really have: killed processes, full disks and memory. */
static bool may_be_so(const char *code)
{
    static const char *const codes[] = {"mem/",       "fs/full",     "fs/inodes",   "os/load",
                                        "os/zombies", "os/log-lost", "cpu/d-state", "cpu/hung-task",
                                        "cpu/lockup", "clock/",      "eth/carrier"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strncmp(code, codes[i], strlen(codes[i])) == 0)
            return true;
    return false;
}

static void expect_quiet(struct fixture *f)
{
    print_signals(f);
    for (size_t i = 0; i < f->kept.len; i++)
        if (!may_be_so(f->kept.items[i].code))
            fail_msg("a false alarm: %s %s: %s", f->kept.items[i].code, f->kept.items[i].place,
                     f->kept.items[i].evidence);
}

static void real_rounds(void **state)
{
    struct fixture *f = *state;
    struct probes_options options = {0};
    f->probes = probes_new(&options, NULL);
    assert_non_null(f->probes);
    for (int i = 0; i < 5; i++) {
        f->now_ns += 60 * NS_PER_SECOND;
        probes_hurry(f->probes);
        settle(f);
    }
    expect_quiet(f);
}

/* Copies of this machine's files that the probes read: /sys and /proc cannot be copied as they are. */
static void snapshot(struct fixture *f)
{
    static const char script[] =
        "cd / && for file in sys/devices/system/edac/mc/mc*/*_count "
        "sys/devices/system/edac/mc/mc*/dimm*/*_count"
        " sys/bus/pci/devices/*/aer_* sys/bus/pci/devices/*/current_link_* sys/bus/pci/devices/*/vendor"
        " sys/bus/pci/devices/*/class sys/class/infiniband/*/ports/*/*state "
        "sys/class/infiniband/*/ports/*/rate"
        " sys/class/infiniband/*/ports/*/*counters/* sys/class/net/*/flags sys/class/net/*/carrier"
        " sys/class/net/*/carrier_* sys/class/net/*/speed sys/class/net/*/device/vendor"
        " sys/class/thermal/thermal_zone*/t* sys/class/hwmon/*/temp* sys/class/nvme/*/state"
        " sys/devices/system/cpu/cpu*/thermal_throttle/*_count sys/fs/ext4/*/errors_count"
        " sys/devices/system/clocksource/clocksource0/current_clocksource proc/meminfo proc/pressure/memory"
        " proc/vmstat proc/loadavg proc/mdstat proc/net/snmp proc/sys/fs/file-nr proc/self/mountinfo "
        "proc/[0-9]*/stat; do"
        " if [ -f $file ]; then mkdir -p $ROOT/${file%/*} && timeout 5 cat $file > $ROOT/$file 2>/dev/null; "
        "fi;"
        " done; mkdir -p $ROOT/dev; dmesg > $ROOT/dev/kmsg 2>/dev/null; true";
    setenv("ROOT", f->root, 1);
    assert_int_equal(system(script), 0);
}

static void a_day(void **state)
{
    struct fixture *f = *state;
    uint64_t rounds = 0;
    int64_t day_ns = 24 * 3600 * NS_PER_SECOND;
    snapshot(f);
    /* The looks in children cost a fork each: a thirtieth of the default rate makes a day short enough. */
    begin(
        f, NULL,
        "probes:\n  edac: {period: 15m}\n  pcie: {period: 15m}\n  infiniband: {period: 5m}\n"
        "  ethernet: {period: 5m}\n  mounts: {period: 15m}\n  disk: {period: 15m}\n  thermal: {period: 15m}\n"
        "  processes: {period: 30m, blockedFor: 999h}\n  memory: {period: 60s}\n");
    while (f->now_ns < day_ns) {
        settle(f);
        rounds++;
        int64_t next_ns = probes_next_ns(f->probes);
        assert_true(next_ns > f->now_ns);
        f->now_ns = next_ns;
    }
    print_message("# %llu rounds\n", (unsigned long long)rounds);
    expect_quiet(f);
}

/* --- random machines ------------------------------------------------------------------------------ */

/* Files whose content is a counter, and those that say a state, of a made-up machine. */
static const char *const counters[] = {
    "/sys/devices/system/edac/mc/mc0/ue_count",
    "/sys/devices/system/edac/mc/mc0/ce_count",
    "/sys/devices/system/edac/mc/mc0/dimm0/dimm_ue_count",
    "/sys/devices/system/edac/mc/mc1/ue_noinfo_count",
    "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed",
    "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error",
    "/sys/class/infiniband/mlx5_1/ports/2/hw_counters/local_ack_timeout_err",
    "/sys/class/net/eth7/carrier_down_count",
    "/sys/class/net/eth8/carrier_changes",
    "/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count",
    "/sys/devices/system/cpu/cpu3/thermal_throttle/package_throttle_count",
    "/sys/fs/ext4/sdq1/errors_count",
    "/sys/bus/pci/devices/0000:01:00.0/aer_rootport_total_err_fatal",
};
enum { COUNTERS = sizeof counters / sizeof *counters };

static void machine(struct fixture *f, struct rng *rng)
{
    for (size_t i = 0; i < COUNTERS; i++)
        put(f, counters[i], "%llu\n", (unsigned long long)rng_next(rng) >> rng_below(rng, 64));
    put(f, "/sys/bus/pci/devices/0000:02:00.0/aer_dev_fatal", "Undefined %llu\nTLP %llu\n",
        (unsigned long long)rng_below(rng, 100), (unsigned long long)rng_below(rng, 100));
    put(f, "/proc/vmstat", "a 1\noom_kill %llu\n", (unsigned long long)rng_below(rng, 1000));
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/class/infiniband/mlx5_%d/ports/%d/state", i, i + 1);
        put(f, path, "%llu: X\n", (unsigned long long)rng_below(rng, 6));
        snprintf(path, sizeof path, "/sys/class/net/eth%d/device/vendor", 7 + i);
        put(f, path, "x");
        snprintf(path, sizeof path, "/sys/class/net/eth%d/carrier", 7 + i);
        put(f, path, "%llu\n", (unsigned long long)rng_below(rng, 2));
    }
}

static void nothing_without_change(void **state)
{
    struct fixture *f = *state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        machine(f, &rng);
        begin(f, NULL, NULL);
        for (int i = 0; i < 4; i++) {
            look_after(f, 100);
            if (f->kept.len > 0)
                fail_msg("seed %llu: %s %s: %s", (unsigned long long)seed, f->kept.items[0].code,
                         f->kept.items[0].place, f->kept.items[0].evidence);
        }
        probes_free(f->probes);
        f->probes = NULL;
    }
}

/* Every OCCUR is followed by a RECOVER before the next of its severity, and the other way round. */
static void occur_and_recover_alternate(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    rng_seed(&rng, 7);
    VEC(struct kept) lasting = {0};
    machine(f, &rng);
    begin(f, NULL, NULL);
    for (int i = 0; i < 60; i++) {
        machine(f, &rng);
        put(f, "/proc/sys/fs/file-nr", "%llu 0 100\n", (unsigned long long)rng_below(&rng, 101));
        put(f, "/sys/class/thermal/thermal_zone0/temp", "%llu\n",
            (unsigned long long)rng_below(&rng, 120000));
        put(f, "/sys/class/thermal/thermal_zone0/trip_point_0_type", "critical");
        put(f, "/sys/class/thermal/thermal_zone0/trip_point_0_temp", "95000");
        look_after(f, 30);
        for (size_t k = 0; k < f->kept.len; k++) {
            const struct kept *kept = &f->kept.items[k];
            size_t at = 0;
            while (at < lasting.len && (strcmp(lasting.items[at].code, kept->code) != 0 ||
                                        strcmp(lasting.items[at].place, kept->place) != 0))
                at++;
            if (kept->assertion == SIGNAL_OCCUR) {
                assert_int_equal(at, lasting.len);
                vec_push(&lasting, *kept);
            } else if (kept->assertion == SIGNAL_RECOVER) {
                assert_true(at < lasting.len);
                vec_remove(&lasting, at);
            }
        }
    }
    vec_done(&lasting);
}

/* --- whatever stands there ------------------------------------------------------------------------ */

static const char *const others[] = {
    "/sys/class/infiniband/mlx5_0/ports/1/state",
    "/sys/class/infiniband/mlx5_0/ports/1/phys_state",
    "/sys/class/infiniband/mlx5_0/ports/1/rate",
    "/sys/class/infiniband/mlx5_0/ports/1/link_layer",
    "/sys/bus/pci/devices/0000:02:00.0/aer_dev_correctable",
    "/sys/bus/pci/devices/0000:02:00.0/aer_dev_fatal",
    "/sys/bus/pci/devices/0000:02:00.0/current_link_width",
    "/sys/bus/pci/devices/0000:02:00.0/current_link_speed",
    "/sys/class/net/eth7/flags",
    "/sys/class/net/eth7/carrier",
    "/sys/class/net/eth7/speed",
    "/sys/class/thermal/thermal_zone0/temp",
    "/sys/class/thermal/thermal_zone0/trip_point_0_type",
    "/sys/class/thermal/thermal_zone0/trip_point_0_temp",
    "/sys/class/hwmon/hwmon0/temp1_input",
    "/sys/class/hwmon/hwmon0/temp1_crit",
    "/sys/class/nvme/nvme0/state",
    "/dev/nvme0",
    "/sys/block/sda/device/state",
    "/sys/fs/lustre/health_check",
    "/sys/devices/system/edac/mc/mc0/dimm0/dimm_label",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/proc/mdstat",
    "/proc/meminfo",
    "/proc/net/snmp",
    "/proc/pressure/memory",
    "/proc/vmstat",
    "/proc/loadavg",
    "/proc/sys/fs/file-nr",
    "/proc/self/mountinfo",
    "/proc/77/stat",
    "/dev/kmsg",
};
enum { OTHERS = sizeof others / sizeof *others };

static void mangle(struct fixture *f, struct rng *rng, const char *path)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "-1\n",
                                        "18446744073709551616\n",
                                        "99999999999999999999999999999999\n",
                                        "0x\n",
                                        "N/A\n",
                                        "NaN",
                                        "4:",
                                        "4: ACTIVE",
                                        "16.0.0.0 GT/s",
                                        " 1 ",
                                        "1 2 3 4 5 6 7 8 9",
                                        "\t\t\t\t",
                                        ") ( ) D 1 2",
                                        "77 (x) D",
                                        "md0 : active [2/] [",
                                        "MemTotal: \nMemAvailable: 5",
                                        "Tcp: OutSegs RetransSegs\nTcp: 5 6",
                                        "Tcp: OutSegs RetransSegs\nTcp: 5000000 4000000\nTcp:",
                                        "full avg60=",
                                        "- - - - - - - -",
                                        "30 27 0:50 / /\\777 rw - ext4",
                                        "a b c d e f - ext4 x rw",
                                        "3,1,1,-;",
                                        ",,,;x",
                                        "[",
                                        "[ 1.5] x"};
    uint64_t what = rng_below(rng, 10);
    char full[1024];
    snprintf(full, sizeof full, "%s%s", f->root, path);
    if (what == 0) { /* gone */
        take_away(f, path);
    } else if (what == 1) { /* a folder in its place: EISDIR */
        put(f, path, "x");
        CHECK(unlink(full) == 0 && mkdir(full, 0755) == 0);
    } else if (what <= 4) { /* any bytes */
        unsigned char bytes[8192];
        size_t len = rng_below(rng, rng_below(rng, 2) ? 64 : sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (unsigned char)rng_next(rng);
        put_bytes(f, path, bytes, len, false);
    } else {
        put(f, path, "%s", texts[rng_below(rng, sizeof texts / sizeof *texts)]);
    }
}

static void malformed_files(void **state)
{
    struct fixture *f = *state;
    struct probes_standing standing;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        begin(f, NULL, NULL);
        for (int round = 0; round < 6; round++) {
            for (size_t i = 0; i < OTHERS; i++) {
                take_away(f, others[i]);
                mangle(f, &rng, others[i]);
            }
            for (size_t i = 0; i < COUNTERS; i++) {
                take_away(f, counters[i]);
                mangle(f, &rng, counters[i]);
            }
            look_after(f, 30);
        }
        for (size_t i = 0; i < probes_count(); i++) { /* no look crashed, none was given up */
            probes_standing(f->probes, i, &standing);
            assert_int_equal(standing.timeouts, 0);
            if (standing.enabled)
                assert_true(standing.runs >= 6);
        }
        for (size_t i = 0; i < f->kept.len; i++)
            assert_string_not_equal(f->kept.items[i].code, "os/probe-hung");
        probes_free(f->probes);
        f->probes = NULL;
    }
}

/* --- a process that is really killed for memory --------------------------------------------------- */

static bool write_to(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return done;
}

static void oom_kill(void **state)
{
    struct fixture *f = *state;
    char folder[128];
    bool old = access("/sys/fs/cgroup/memory", W_OK) == 0;
    snprintf(folder, sizeof folder, "/sys/fs/cgroup/%sphx-probes-%d", old ? "memory/" : "", (int)getpid());
    if (geteuid() != 0 || access("/dev/kmsg", R_OK) < 0 || mkdir(folder, 0755) < 0 ||
        !write_to(folder, old ? "memory.limit_in_bytes" : "memory.max", "8388608")) {
        print_message("skip oom_kill: no memory cgroup can be made here\n");
        rmdir(folder);
        skip();
    }
    struct probes_options options = {.only = "kmsg"};
    f->probes = probes_new(&options, NULL);
    probes_round(f->probes, 0, keep, f);
    vec_clear(&f->kept);
    pid_t pid = fork();
    if (pid == 0) {
        char self[24];
        snprintf(self, sizeof self, "%d", (int)getpid());
        if (!write_to(folder, "cgroup.procs", self))
            _exit(1);
        for (;;) {
            volatile char *page = malloc(1 << 20); /* else an optimiser leaves it out */
            for (size_t at = 0; at < 1 << 20; at += 4096)
                page[at] = 1;
        }
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    bool told = false;
    for (int tries = 0; tries < 60 && !told; tries++) {
        probes_round(f->probes, 0, keep, f);
        for (size_t i = 0; i < f->kept.len; i++)
            told = told || (strcmp(f->kept.items[i].code, "mem/oom") == 0 &&
                            strstr(f->kept.items[i].place, "host_probes"));
        struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
        if (!told)
            poll(&ready, 1, 1000);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_true(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(real_rounds),
        CASE(a_day),
        CASE(nothing_without_change),
        CASE(occur_and_recover_alternate),
        CASE(malformed_files),
        CASE(oom_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
