/* Probes that read sysfs and proc: what changes is told once, what does not is not told. */
#include "fixture.h"

#define MC "/sys/devices/system/edac/mc/mc0"

static void memory_controllers(struct fixture *f, int dimm_ue, int ue, int dimm_ce, int ce)
{
    put(f, MC "/dimm3/dimm_label", "CPU0_D1\n");
    put(f, MC "/dimm3/dimm_ue_count", "%d\n", dimm_ue);
    put(f, MC "/dimm3/dimm_ce_count", "%d\n", dimm_ce);
    put(f, MC "/ue_count", "%d\n", ue);
    put(f, MC "/ce_count", "%d\n", ce);
    put(f, MC "/ue_noinfo_count", "0\n");
}

static void edac_errors(void **state)
{
    struct fixture *f = *state;
    memory_controllers(f, 2, 2, 40, 40); /* from before: history */
    begin(f, "edac", NULL);
    look_after(f, 0);
    expect_none(f);
    memory_controllers(f, 3, 3, 40, 40);
    look_after(f, 30);
    const struct kept *kept = expect_one(f, SIGNAL_ONCE, "edac/ue", "dimm/mc0/dimm3");
    assert_int_equal(kept->severity, SEVERITY_CRITICAL);
    assert_int_equal(kept->count, 1);
    assert_non_null(strstr(kept->evidence, "CPU0_D1"));
    memory_controllers(f, 3, 4, 40, 40); /* the controller alone knows of this one */
    look_after(f, 30);
    expect_one(f, SIGNAL_ONCE, "edac/ue", "dimm/mc0");
    memory_controllers(f, 3, 4, 49, 49); /* nine an hour are few */
    look_after(f, 30);
    expect_none(f);
    memory_controllers(f, 3, 4, 51, 51);
    look_after(f, 30);
    kept = expect(f, 0, SIGNAL_ONCE, "edac/ce", "dimm/mc0/dimm3");
    assert_int_equal(kept->count, 11);
    memory_controllers(f, 0, 0, 0, 0); /* counters were reset */
    look_after(f, 30);
    expect_none(f);
}

#define DEVICE "/sys/bus/pci/devices/0000:9b:00.0"

static void aer(struct fixture *f, const char *file, const char *name, int count, const char *total)
{
    char path[256];
    snprintf(path, sizeof path, DEVICE "/%s", file);
    put(f, path, "Undefined 0\n%s %d\n%s %d\n", name, count, total, count);
}

static void pcie_errors(void **state)
{
    struct fixture *f = *state;
    aer(f, "aer_dev_fatal", "Data Link Protocol", 0, "TOTAL_ERR_FATAL");
    aer(f, "aer_dev_nonfatal", "CmpltTO", 0, "TOTAL_ERR_NONFATAL");
    aer(f, "aer_dev_correctable", "RxErr", 7, "TOTAL_ERR_COR");
    put(f, "/sys/bus/pci/devices/0000:00:01.0/aer_rootport_total_err_fatal", "0\n");
    begin(f, "pcie", "manifest: {gpus: ['0000:18:00.0', '0000:9b:00.0']}");
    look_after(f, 0);
    expect_none(f);
    aer(f, "aer_dev_fatal", "Data Link Protocol", 1, "TOTAL_ERR_FATAL");
    put(f, "/sys/bus/pci/devices/0000:00:01.0/aer_rootport_total_err_fatal", "1\n"); /* the same */
    look_after(f, 60);
    const struct kept *kept = expect_one(f, SIGNAL_ONCE, "pcie/fatal", "pci/0000:9b:00.0");
    assert_non_null(strstr(kept->evidence, "Data Link Protocol=1"));
    assert_int_equal(kept->chip, 1);
    put(f, "/sys/bus/pci/devices/0000:00:01.0/aer_rootport_total_err_fatal", "2\n"); /* nobody else knows */
    look_after(f, 60);
    expect_one(f, SIGNAL_ONCE, "pcie/fatal", "pci/0000:00:01.0");
    aer(f, "aer_dev_nonfatal", "CmpltTO", 2, "TOTAL_ERR_NONFATAL");
    look_after(f, 60);
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "pcie/nonfatal", "pci/0000:9b:00.0")->count, 2);
    aer(f, "aer_dev_correctable", "RxErr", 60, "TOTAL_ERR_COR");
    look_after(f, 60);
    expect_none(f);
    aer(f, "aer_dev_correctable", "RxErr", 110, "TOTAL_ERR_COR");
    look_after(f, 60);
    expect_one(f, SIGNAL_ONCE, "pcie/correctable", "pci/0000:9b:00.0");
}

static void pcie_counters_without_a_total(void **state)
{
    struct fixture *f = *state;
    put(f, DEVICE "/aer_dev_nonfatal", "Completion Timeout 1\nPoisoned TLP 0\n");
    begin(f, "pcie", NULL);
    look_after(f, 0);
    put(f, DEVICE "/aer_dev_nonfatal", "Completion Timeout 1\nPoisoned TLP 2\n");
    look_after(f, 60);
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "pcie/nonfatal", "pci/0000:9b:00.0")->count, 2);
}

static void pcie_links(void **state)
{
    struct fixture *f = *state;
    put(f, DEVICE "/current_link_width", "16\n");
    put(f, DEVICE "/max_link_width", "16\n");
    put(f, DEVICE "/current_link_speed", "2.5 GT/s PCIe\n"); /* idle */
    begin(f, "pcie", NULL);
    look_after(f, 0);
    expect_none(f);
    put(f, DEVICE "/current_link_width", "8\n");
    look_after(f, 60);
    const struct kept *kept = expect_one(f, SIGNAL_OCCUR, "pcie/link-width", "pci/0000:9b:00.0");
    assert_string_equal(kept->evidence, "x8 instead of x16");
    look_after(f, 60);
    expect_none(f);
    put(f, DEVICE "/current_link_width", "63\n"); /* what a dead device answers */
    look_after(f, 60);
    expect_none(f);
    put(f, DEVICE "/current_link_width", "16\n");
    look_after(f, 60);
    expect_one(f, SIGNAL_RECOVER, "pcie/link-width", "pci/0000:9b:00.0");
}

static void pcie_manifest(void **state)
{
    struct fixture *f = *state;
    put(f, DEVICE "/current_link_width", "8\n");
    put(f, DEVICE "/current_link_speed", "16.0 GT/s PCIe\n");
    put(f, DEVICE "/vendor", "0x10de\n");
    put(f, DEVICE "/class", "0x030200\n");
    begin(f, "pcie",
          "manifest:\n  pci:\n  - {address: '0000:9b:00.0', width: 16, speed: 32.0 GT/s}\n"
          "  - {vendor: '0x10de', class: '0x0302', count: 2}\n  - {address: '0000:9c:00.0'}\n");
    look_after(f, 0);
    assert_int_equal(f->kept.len, 4);
    for (size_t i = 0; i < 2; i++) /* in the order of the device's files */
        assert_true(strncmp(f->kept.items[i].code, "pcie/link-", 10) == 0);
    expect(f, 2, SIGNAL_OCCUR, "pcie/missing", "pci/0x10de:0x0302");
    expect(f, 3, SIGNAL_OCCUR, "pcie/missing", "pci/0000:9c:00.0");
    put(f, DEVICE "/current_link_width", "16\n");
    put(f, DEVICE "/current_link_speed", "32.0 GT/s PCIe\n");
    put(f, "/sys/bus/pci/devices/0000:9c:00.0/vendor", "0x10de\n");
    put(f, "/sys/bus/pci/devices/0000:9c:00.0/class", "0x030200\n");
    look_after(f, 60);
    assert_int_equal(f->kept.len, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(f->kept.items[i].assertion, SIGNAL_RECOVER);
}

#define NIC "/sys/class/net/ens1"

static void ethernet_interfaces(void **state)
{
    struct fixture *f = *state;
    put(f, NIC "/device/uevent", "x");
    put(f, NIC "/flags", "0x1003\n");
    put(f, NIC "/carrier", "1\n");
    put(f, NIC "/speed", "100000\n");
    put(f, NIC "/carrier_down_count", "4\n");
    put(f, "/sys/class/net/veth1/flags", "0x1003\n"); /* no device: a container's */
    put(f, "/sys/class/net/veth1/carrier", "1\n");
    begin(f, "ethernet", NULL);
    look_after(f, 0);
    put(f, "/sys/class/net/veth1/carrier", "0\n");
    look_after(f, 10);
    expect_none(f);
    put(f, NIC "/carrier", "0\n");
    put(f, NIC "/carrier_down_count", "5\n");
    look_after(f, 10);
    expect_one(f, SIGNAL_OCCUR, "eth/down", "net/ens1");
    put(f, NIC "/carrier", "1\n");
    look_after(f, 10);
    expect_one(f, SIGNAL_RECOVER, "eth/down", "net/ens1");
    put(f, NIC "/carrier_down_count", "8\n"); /* three more between two looks */
    look_after(f, 10);
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "eth/flap", "net/ens1")->count, 4);
    put(f, NIC "/flags", "0x1002\n"); /* by hand */
    take_away(f, NIC "/carrier");
    look_after(f, 10);
    expect_none(f);
}

static void ethernet_manifest(void **state)
{
    struct fixture *f = *state;
    put(f, NIC "/flags", "0x1003\n");
    put(f, NIC "/speed", "25000\n");
    put(f, NIC "/carrier", "1\n");
    begin(f, "ethernet", "manifest: {ethernet: [{name: ens1, mbps: 100000}, {name: ens2}]}");
    look_after(f, 0);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_OCCUR, "eth/speed", "net/ens1");
    expect(f, 1, SIGNAL_OCCUR, "eth/down", "net/ens2");
    put(f, NIC "/speed", "100000\n");
    put(f, "/sys/class/net/ens2/flags", "0x1003\n");
    put(f, "/sys/class/net/ens2/carrier", "1\n");
    look_after(f, 10);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_RECOVER, "eth/speed", "net/ens1");
    expect(f, 1, SIGNAL_RECOVER, "eth/down", "net/ens2");
}

static void disks(void **state)
{
    struct fixture *f = *state;
    static const char mdstat[] = "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0]\n"
                                 "      976630464 blocks super 1.2 [2/%d] [%s]\n\nunused devices: <none>\n";
    put(f, "/sys/class/nvme/nvme0/state", "live\n");
    put(f, "/sys/block/sda/device/state", "running\n");
    put(f, "/sys/fs/ext4/sda1/errors_count", "0\n");
    put(f, "/sys/fs/ext4/features/lazy_itable_init", "supported\n");
    put(f, "/proc/mdstat", mdstat, 2, "UU");
    begin(f, "disk", NULL);
    look_after(f, 0);
    expect_none(f);
    put(f, "/sys/class/nvme/nvme0/state", "resetting\n");
    put(f, "/sys/block/sda/device/state", "offline\n");
    put(f, "/sys/fs/ext4/sda1/errors_count", "2\n"); /* there is no kernel log here that would say it */
    put(f, "/proc/mdstat", mdstat, 1, "U_");
    look_after(f, 30);
    assert_int_equal(f->kept.len, 4);
    expect(f, 0, SIGNAL_OCCUR, "disk/timeout", "disk/nvme0");
    expect(f, 1, SIGNAL_OCCUR, "disk/failed", "disk/sda");
    expect(f, 2, SIGNAL_ONCE, "fs/error", "disk/sda1");
    expect(f, 3, SIGNAL_OCCUR, "disk/raid", "disk/md0");
    put(f, "/sys/class/nvme/nvme0/state", "dead\n");
    put(f, "/sys/block/sda/device/state", "running\n");
    put(f, "/proc/mdstat", mdstat, 2, "UU");
    look_after(f, 30);
    assert_int_equal(f->kept.len, 4);
    expect(f, 0, SIGNAL_OCCUR, "disk/failed", "disk/nvme0");
    expect(f, 1, SIGNAL_RECOVER, "disk/timeout", "disk/nvme0");
    expect(f, 2, SIGNAL_RECOVER, "disk/failed", "disk/sda");
    expect(f, 3, SIGNAL_RECOVER, "disk/raid", "disk/md0");
}

/* The health page of an NVMe disk in the place of its device. */
static void health_page(struct fixture *f, const char *disk, unsigned char warning,
                        unsigned char media_errors, size_t len)
{
    unsigned char page[512] = {[0] = warning, [3] = 4, [4] = 10, [5] = 97, [160] = media_errors};
    char path[64];
    snprintf(path, sizeof path, "/sys/class/nvme/%s/state", disk);
    put(f, path, "live\n");
    snprintf(path, sizeof path, "/dev/%s", disk);
    put_bytes(f, path, page, len, false);
}

static void what_disks_say_of_themselves(void **state)
{
    struct fixture *f = *state;
    health_page(f, "nvme0", 0, 7, 512);
    health_page(f, "nvme1", 0xff, 9, 100); /* not a whole page: says nothing */
    begin(f, "smart", NULL);
    look_after(f, 0);
    expect_none(f);
    health_page(f, "nvme0", 0x02, 7, 512); /* it is warm */
    look_after(f, 600);
    expect_none(f);
    health_page(f, "nvme0", 0x05, 9, 512);
    look_after(f, 600);
    assert_int_equal(f->kept.len, 2);
    assert_int_equal(expect(f, 0, SIGNAL_ONCE, "disk/media", "disk/nvme0")->count, 2);
    assert_string_equal(
        expect(f, 1, SIGNAL_OCCUR, "disk/smart", "disk/nvme0")->evidence,
        "spare blocks below the limit, reliability degraded, 4 % spare (limit 10 %), 97 % used");
    look_after(f, 600);
    expect_none(f);
    health_page(f, "nvme0", 0, 9, 512); /* it was replaced */
    look_after(f, 600);
    expect_one(f, SIGNAL_RECOVER, "disk/smart", "disk/nvme0");
}

#define ZONE "/sys/class/thermal/thermal_zone0"

static void temperatures(void **state)
{
    struct fixture *f = *state;
    put(f, ZONE "/temp", "54000\n");
    put(f, ZONE "/trip_point_0_type", "passive\n");
    put(f, ZONE "/trip_point_0_temp", "50000\n");
    put(f, ZONE "/trip_point_1_type", "critical\n");
    put(f, ZONE "/trip_point_1_temp", "100000\n");
    put(f, "/sys/class/hwmon/hwmon1/temp1_input", "40000\n");
    put(f, "/sys/class/hwmon/hwmon1/temp1_crit", "90000\n");
    put(f, "/sys/class/hwmon/hwmon1/temp2_input", "65000\n"); /* knows no limit */
    put(f, "/sys/class/hwmon/hwmon1/temp2_crit", "0\n");
    put(f, "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "100\n");
    put(f, "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "100\n");
    begin(f, "thermal", NULL);
    look_after(f, 0);
    expect_none(f);
    put(f, ZONE "/temp", "100500\n");
    put(f, "/sys/class/hwmon/hwmon1/temp1_input", "91000\n");
    look_after(f, 30);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_OCCUR, "cpu/thermal", "sensor/thermal_zone0");
    expect(f, 1, SIGNAL_OCCUR, "cpu/thermal", "sensor/hwmon1/temp1");
    put(f, ZONE "/temp", "97000\n"); /* not cool enough to call it over */
    put(f, "/sys/class/hwmon/hwmon1/temp1_input", "60000\n");
    look_after(f, 30);
    expect_one(f, SIGNAL_RECOVER, "cpu/thermal", "sensor/hwmon1/temp1");
    put(f, ZONE "/temp", "80000\n");
    put(f, "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "112\n");
    look_after(f, 30);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_RECOVER, "cpu/thermal", "sensor/thermal_zone0");
    assert_int_equal(expect(f, 1, SIGNAL_ONCE, "cpu/throttle", "cpu/0")->count, 12);
}

#define SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static void clocks(void **state)
{
    struct fixture *f = *state;
    put(f, SOURCE, "tsc\n");
    f->has_clock = true; /* and not synchronized: as a virtual machine without NTP is, always */
    begin(f, "clock", NULL);
    look_after(f, 0);
    expect_none(f);
    f->clock = (struct probes_clock){.synced = true, .max_error_ns = 3 * NS_PER_MS};
    look_after(f, 60);
    expect_none(f);
    f->clock.max_error_ns = 800 * NS_PER_MS;
    put(f, SOURCE, "hpet\n");
    look_after(f, 60);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_OCCUR, "clock/unsynced", "");
    expect(f, 1, SIGNAL_OCCUR, "clock/source", "");
    f->clock.max_error_ns = 3 * NS_PER_MS;
    put(f, SOURCE, "tsc\n");
    look_after(f, 60);
    assert_int_equal(f->kept.len, 2);
    vec_clear(&f->kept);
    probes_clock_offset(f->probes, 600 * NS_PER_MS, 200 * NS_PER_MS); /* it may be 400 */
    settle(f);
    expect_none(f);
    probes_clock_offset(f->probes, -900 * NS_PER_MS, 200 * NS_PER_MS);
    assert_true(probes_next_ns(f->probes) <= f->now_ns); /* it is told at once */
    probes_clock_offset(f->probes, -900 * NS_PER_MS, 200 * NS_PER_MS);
    settle(f);
    expect_one(f, SIGNAL_OCCUR, "clock/skew", "");
    vec_clear(&f->kept);
    probes_clock_offset(f->probes, -450 * NS_PER_MS, 200 * NS_PER_MS);
    settle(f);
    expect_none(f);
    probes_clock_offset(f->probes, INT64_MIN, INT64_MAX);
    probes_clock_offset(f->probes, 5 * NS_PER_MS, NS_PER_MS);
    settle(f);
    expect_one(f, SIGNAL_RECOVER, "clock/skew", "");
}

static void memory_of_the_machine(void **state)
{
    struct fixture *f = *state;
    static const char meminfo[] = "MemTotal:       16000000 kB\nMemFree: 9 kB\nMemAvailable:   %d kB\n";
    put(f, "/proc/meminfo", meminfo, 9000000);
    put(f, "/proc/pressure/memory",
        "some avg10=0.00 avg60=0.00 total=1\nfull avg10=0.00 avg60=0.00 total=1\n");
    put(f, "/proc/vmstat", "nr_free_pages 1\noom_kill 4\nx 1\n");
    begin(f, "memory", NULL);
    look_after(f, 0);
    expect_none(f);
    put(f, "/proc/meminfo", meminfo, 200000);
    put(f, "/proc/vmstat", "nr_free_pages 1\noom_kill 6\nx 1\n");
    look_after(f, 5);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_OCCUR, "mem/pressure", "");
    assert_int_equal(expect(f, 1, SIGNAL_ONCE, "mem/oom", "")->count, 2);
    put(f, "/proc/meminfo", meminfo, 400000); /* hardly better */
    look_after(f, 5);
    expect_none(f);
    put(f, "/proc/meminfo", meminfo, 9000000);
    look_after(f, 5);
    expect_one(f, SIGNAL_RECOVER, "mem/pressure", "");
    put(f, "/proc/pressure/memory",
        "some avg10=0.00 avg60=0.00 total=1\nfull avg10=9.00 avg60=31.50 total=1\n");
    look_after(f, 5);
    expect_one(f, SIGNAL_OCCUR, "mem/pressure", "");
}

static void open_files(void **state)
{
    struct fixture *f = *state;
    put(f, "/proc/sys/fs/file-nr", "2000\t0\t9223372036854775807\n");
    begin(f, "files", NULL);
    look_after(f, 0);
    expect_none(f);
    put(f, "/proc/sys/fs/file-nr", "95000\t0\t100000\n");
    look_after(f, 30);
    expect_one(f, SIGNAL_OCCUR, "os/files", "");
    put(f, "/proc/sys/fs/file-nr", "50000\t0\t100000\n");
    look_after(f, 30);
    expect_one(f, SIGNAL_RECOVER, "os/files", "");
}

static void process(struct fixture *f, int pid, const char *name, char how, unsigned flags, int begun)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    put(f, path, "%d (%s) %c 1 1 1 0 -1 %u 1 0 0 0 5 5 0 0 20 0 1 0 %d 1000 10\n", pid, name, how, flags,
        begun);
}

static void blocked_processes(void **state)
{
    struct fixture *f = *state;
    process(f, 10, "trainer", 'D', 0, 77);
    process(f, 11, "a b) D 1", 'R', 0, 78);
    process(f, 12, "kworker/1", 'D', 0x00200000, 1);
    put(f, "/proc/loadavg", "0.5 0.7 0.1 1/100 5\n");
    begin(f, "processes", "probes: {processes: {zombies: 3}}");
    look_after(f, 0);
    for (int minute = 1; minute < 5; minute++) {
        look_after(f, 60);
        expect_none(f);
    }
    look_after(f, 60);
    expect_one(f, SIGNAL_OCCUR, "cpu/d-state", "process/trainer");
    process(f, 10, "trainer", 'D', 0, 99); /* another one with its number */
    look_after(f, 60);
    expect_one(f, SIGNAL_RECOVER, "cpu/d-state", "process/trainer");
    process(f, 10, "trainer", 'R', 0, 99);
    for (int pid = 20; pid < 23; pid++)
        process(f, pid, "gone", 'Z', 0, 5);
    put(f, "/proc/loadavg", "90000.5 90000.7 0.1 1/100 5\n");
    look_after(f, 60);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_OCCUR, "os/zombies", "");
    expect(f, 1, SIGNAL_OCCUR, "os/load", "");
}

static void tcp_counters(struct fixture *f, uint64_t out, uint64_t again)
{
    put(f, "/proc/net/snmp",
        "Ip: Forwarding InReceives\nIp: 1 5\n"
        "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs InErrs\nTcp: 1 -1 70 %llu %llu 0\n"
        "Udp: OutDatagrams\nUdp: 9\n",
        (unsigned long long)out, (unsigned long long)again);
}

static void segments_sent_again(void **state)
{
    struct fixture *f = *state;
    tcp_counters(f, 5000, 4000); /* from before: history */
    begin(f, "tcp", NULL);
    look_after(f, 0);
    tcp_counters(f, 5800, 4150); /* one in six, but too few to tell */
    look_after(f, 10);
    expect_none(f);
    tcp_counters(f, 6000, 4150); /* now enough: 150 of 1150 */
    look_after(f, 10);
    assert_non_null(strstr(expect_one(f, SIGNAL_OCCUR, "net/retransmits", "")->evidence, "13.0 % of 1150"));
    tcp_counters(f, 7000, 4190); /* 3.8 %: better, but not well */
    look_after(f, 10);
    expect_none(f);
    tcp_counters(f, 7500, 4190);
    look_after(f, 10);
    expect_none(f);
    tcp_counters(f, 8100, 4200); /* 0.9 % */
    look_after(f, 10);
    expect_one(f, SIGNAL_RECOVER, "net/retransmits", "");
    tcp_counters(f, 90000, 8000); /* 4.4 %: it began below the limit and stays below */
    look_after(f, 10);
    expect_none(f);
    tcp_counters(f, 10, 10); /* counted anew */
    look_after(f, 10);
    put(f, "/proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 5000\n"); /* what is not whole says nothing */
    look_after(f, 10);
    expect_none(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(edac_errors),
        CASE(pcie_errors),
        CASE(pcie_counters_without_a_total),
        CASE(pcie_links),
        CASE(pcie_manifest),
        CASE(ethernet_interfaces),
        CASE(ethernet_manifest),
        CASE(disks),
        CASE(what_disks_say_of_themselves),
        CASE(temperatures),
        CASE(clocks),
        CASE(memory_of_the_machine),
        CASE(open_files),
        CASE(blocked_processes),
        CASE(segments_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
