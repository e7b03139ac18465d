/* The kernel log: what its lines mean, from where it is read, what is one event and what are two. */
#include "fixture.h"

#include <sys/wait.h>
#include <termios.h>

#include "host/probes/internal.h"

#define LOG "/dev/kmsg"

/* One line that was appended gives one signal. */
static const struct sample {
    const char *line, *code, *place;
    enum signal_severity severity;
} samples[] = {
    {"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC "
     "response",
     "xid/119", "gpu/0000:9b:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "xid/79",
     "gpu/0000:18:00.0", SEVERITY_CRITICAL},
    {"NVRM: GPU 0000:19:00.0: GPU has fallen off the bus.", "xid/79", "gpu/0000:19:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (0000:03:00): 14, Channel 00000001", "xid/14", "gpu/0000:03:00.0", SEVERITY_NOTICE},
    /* From an H100, driver 580 (open kernel modules). */
    {"NVRM: Xid (PCI:0000:00:06): 31, pid=502, name=crash, channel 0x0000000a, intr 00000000. MMU Fault: "
     "ENGINE "
     "GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x8326_05e00000. Fault is of type FAULT_PDE "
     "ACCESS_TYPE_VIRT_WRITE",
     "xid/31", "gpu/0000:00:06.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0000:05:00 GPU-I:05): 13, Graphics SM Warp Exception", "xid/13", "gpu/0000:05:00.0",
     SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)",
     "xid/149-fatal", "gpu/0018:01:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0018:01:00): 145, RLW_REMAP Nonfatal XC1 i0 Link 08 (0x004505c6 0x00000000)",
     "xid/145-nonfatal", "gpu/0018:01:00.0", SEVERITY_MINOR},
    /* Sub-codes 38 and 40 of a link that went down are what somebody did to it. */
    {"NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x026505c6 0x00000000 "
     "0x00000000)",
     "xid/149-nonfatal", "gpu/0018:01:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0018:01:00): 149, pid=12, name=python3, NETIR_LINK_DOWN Fatal XC0 i0 Link 08 "
     "(0x028005c6 "
     "0x00000000)",
     "xid/149-nonfatal", "gpu/0018:01:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0018:01:00): 150, MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x00000000 0x00000000)",
     "xid/150-fatal", "gpu/0018:01:00.0", SEVERITY_CRITICAL},
    /* Without the driver's word: by the unit's status. */
    {"NVRM: Xid (PCI:0000:04:00): 145, RLW_SRC_TRACK XC0 i0 Link 00 (0x000000e2 0x00000010 0x0)",
     "xid/145-fatal", "gpu/0000:04:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:04:00): 145, RLW_SRC_TRACK XC0 i0 Link 01 (0x000000e2 0x00000002 0x0)",
     "xid/145-nonfatal", "gpu/0000:04:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0018:01:00): 146, TLW_RX Fatal XC0 i0 Link 03 (0x00000004 0x00000000 0x00000000)",
     "xid/146-fatal", "gpu/0018:01:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0018:01:00): 146, TLW_RX Nonfatal XC0 i0 Link 03 (0x00000004 0x00000004 0x00000000)",
     "xid/146-nonfatal", "gpu/0018:01:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0000:04:00): 146, TLW_CTRL XC0 i0 Link 03 (0x00000001 0x00000004 0x0)", "xid/146-fatal",
     "gpu/0000:04:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:04:00): 146, TLW_TX XC0 i0 Link 04 (0x00000004 0x00000002 0x0)", "xid/146-nonfatal",
     "gpu/0000:04:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0018:01:00): 147, TREX Fatal XC0 i0 Link -1 (0x00000001 0x00000000 0x00000000)",
     "xid/147-fatal", "gpu/0018:01:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0018:01:00): 147, TREX Nonfatal XC0 i0 Link -1 (0x00000001 0x00000000 0x00000000)",
     "xid/147-nonfatal", "gpu/0018:01:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0000:04:00): 147, TREX XC0 i0 Link -1 (0x00000001 0xffffffff 0x0)", "xid/147-nonfatal",
     "gpu/0000:04:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0018:01:00): 148, NVLPW_CTRL Fatal XC0 i0 Link 12 (0x00000002 0x00000000 0x00000000)",
     "xid/148-fatal", "gpu/0018:01:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0018:01:00): 148, NVLPW_CTRL Non-fatal XC0 i0 Link 12 (0x00000002 0x00000000)",
     "xid/148-nonfatal", "gpu/0018:01:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0000:04:00): 148, NVLPW_CTRL XC0 i0 Link 12", "xid/148", "gpu/0000:04:00.0",
     SEVERITY_MAJOR},
    /* The code beside these: no word of such a line is read. */
    {"NVRM: Xid (PCI:0000:04:00): 151, Key rotation Fatal (0x00000000 0x00000000)", "xid/151",
     "gpu/0000:04:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0000:9b:00): 162, Power Smoothing HW Circuitry capability reengaged", "xid/162",
     "gpu/0000:9b:00.0", SEVERITY_NOTICE},
    {"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
     "xid/154-drain-reset", "gpu/0000:9b:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU "
     "Reset "
     "Required)",
     "xid/154-reset", "gpu/0000:9b:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 "
     "(None)",
     "xid/154-none", "gpu/0000:9b:00.0", SEVERITY_NOTICE},
    {"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "sxid/20034-fatal",
     "switch/0000:c1:00.0", SEVERITY_CRITICAL},
    {"nvidia-nvswitch1: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 54 sourcetrack timeout error (First)",
     "sxid/24007-fatal", "switch/0000:c3:00.0", SEVERITY_CRITICAL},
    {"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
     "sxid/12028", "switch/0000:05:00.0", SEVERITY_MINOR},
    {"nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further "
     "processing",
     "gpu/peermem", "", SEVERITY_NOTICE},
    {"mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: be00000000800400", "mce/uncorrected", "cpu/3",
     SEVERITY_CRITICAL},
    {"mce: [Hardware Error]: CPU 4: Machine Check: 0 Bank 7: 8c00004000010090", "mce/corrected", "cpu/4",
     SEVERITY_NOTICE},
    {"{1}[Hardware Error]: event severity: fatal", "mce/uncorrected", "", SEVERITY_CRITICAL},
    {"Memory failure: 0x3a2f1: recovery action for dirty LRU page: Recovered", "edac/ue", "", SEVERITY_MAJOR},
    {"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/"
     "a,"
     "task=python3,pid=25595,uid=0",
     "mem/oom", "process/python3", SEVERITY_MINOR},
    {"Memory cgroup out of memory: Killed process 1212 (trainer) total-vm:1kB, anon-rss:1kB", "mem/oom",
     "process/trainer", SEVERITY_MINOR},
    {"INFO: task kworker/u8:0:1234 blocked for more than 120 seconds.", "cpu/hung-task",
     "process/kworker/u8:0", SEVERITY_MINOR},
    {"watchdog: BUG: soft lockup - CPU#23 stuck for 27s! [migration/23:123]", "cpu/lockup", "cpu/23",
     SEVERITY_MAJOR},
    {"watchdog: Watchdog detected hard LOCKUP on cpu 7", "cpu/lockup", "cpu/7", SEVERITY_CRITICAL},
    {"Kernel panic - not syncing: Fatal exception", "os/panic", "", SEVERITY_CRITICAL},
    {"Oops: 0002 [#1] SMP NOPTI", "os/oops", "", SEVERITY_MAJOR},
    {"nvme nvme0: I/O 123 QID 5 timeout, reset controller", "disk/timeout", "disk/nvme0", SEVERITY_MAJOR},
    {"nvme nvme1: I/O tag 1 (1001) opcode 0x2 (I/O Cmd) QID 1 timeout, aborting req_op:READ(0) size:4096",
     "disk/timeout", "disk/nvme1", SEVERITY_MINOR},
    {"nvme nvme2: Disabling device after reset failure: -19", "disk/failed", "disk/nvme2", SEVERITY_CRITICAL},
    {"Buffer I/O error on dev dm-3, logical block 2621424, async page read", "disk/io", "disk/dm-3",
     SEVERITY_MAJOR},
    {"blk_update_request: I/O error, dev sdc, sector 2048 op 0x0:(READ)", "disk/io", "disk/sdc",
     SEVERITY_MAJOR},
    {"attempt to access beyond end of device", "disk/io", "", SEVERITY_MINOR},
    {"md/raid1:md0: Disk failure on sdb1, disabling device.", "disk/raid", "disk/sdb1", SEVERITY_MAJOR},
    {"EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
     "fs/error", "disk/sda1", SEVERITY_MAJOR},
    {"EXT4-fs (sdd1): Remounting filesystem read-only", "mount/read-only", "disk/sdd1", SEVERITY_MAJOR},
    {"XFS (dm-0): Metadata corruption detected at xfs_agf_read_verify+0x70/0x120", "fs/error", "disk/dm-0",
     SEVERITY_MAJOR},
    {"mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature",
     "mlx5/temperature", "pci/0000:5c:00.0", SEVERITY_MAJOR},
    {"mlx5_core 0000:5d:00.0: mlx5_pcie_event:294:(pid 1): Detected insufficient power on the PCIe slot "
     "(27W).",
     "mlx5/power", "pci/0000:5d:00.0", SEVERITY_MINOR},
    {"pcieport 0000:00:03.0: DPC: containment event, status:0x1f01 source:0x0000", "pcie/fatal",
     "pci/0000:00:03.0", SEVERITY_CRITICAL},
    {"systemd-networkd[512]: eth0: Lost carrier", "eth/carrier", "net/eth0", SEVERITY_NOTICE},
    {"mce: CPU5: Core temperature above threshold, cpu clock throttled (total events = 1)", "cpu/throttle",
     "cpu/5", SEVERITY_NOTICE},
    {"clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is "
     "too "
     "large:",
     "clock/source", "", SEVERITY_MINOR},
};

static void every_sample(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "6,1,1,-;booted\n");
    begin(f, "kmsg", NULL);
    look_after(f, 0);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        struct buf line BUF_CLEANUP = {0};
        buf_printf(&line, "3,%zu,%zu,-;%s", i + 2, (i + 1) * 60000000, samples[i].line);
        add_line(f, LOG, line.data);
        look_after(f, 60);
        const struct kept *kept = expect_one(f, SIGNAL_ONCE, samples[i].code, samples[i].place);
        assert_int_equal(kept->severity, samples[i].severity);
        assert_int_equal(kept->last_ns, fixture_wall(f));
    }
}

static void evidence(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", "manifest: {gpus: ['0000:18:00.0', '0018:01:00.0']}");
    look_after(f, 0);
    add_line(f, LOG,
             "3,1,1,-;NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x00a505c6 0x0)");
    look_after(f, 1);
    const struct kept *kept = expect_one(f, SIGNAL_ONCE, "xid/149-fatal", "gpu/0018:01:00.0");
    assert_true(strncmp(kept->evidence, "sub-code 10: NVRM: Xid", 22) == 0);
    assert_int_equal(kept->chip, 1);
}

static void innocent_lines(void **state)
{
    static const char *const lines[] = {
        "NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d",
        "NVRM: Xid (PCI:0000:9b:00)",
        "nvidia-nvswitch1: SXid (PCI:0000:c3:00.0): 24007, Severity 1 Engine instance 54 Sub-engine instance "
        "00",
        "nvidia-nvswitch1: SXid (PCI:0000:c3:00.0): 24007, Data {0x00000001, 0x00000001, 0x00000000, "
        "0x00000001}",
        "NVRM: Xid (PCI:0000:9b:00): , pid=1",
        "NVRM: Xid (): 79",
        "NVRM: Xid (PCI:0000:9b:00): 99999999999999999999999999",
        "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
        "perf: interrupt took too long (2509 > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
        "EXT4-fs (vda): mounted filesystem 0 r/w with ordered data mode. Quota mode: none.",
        "EXT4-fs (vda): re-mounted. Opts: errors=remount-ro",
        "nvme nvme0: 32/0/0 default/read/poll queues",
        "mce: CPU0: Core temperature/speed normal (total events = 1)",
        "Command line: BOOT_IMAGE=/vmlinuz panic=1 oops=panic",
        "md/raid1:md0: active with 2 out of 2 mirrors",
        "clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x1, max_idle_ns: 1 ns",
        "XFS (dm-0): Ending clean mount",
        "nfs: server",
        "PCI: CLS 0 bytes, default 64",
        "; , ( ) [",
    };
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(f, LOG, lines[i]);
    look_after(f, 1);
    expect_none(f);
}

static void servers(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    add_line(f, LOG, "4,1,1,-;nfs: server filer1.example.com not responding, still trying");
    add_line(f, LOG, "4,2,2,-;nfs: server filer1.example.com not responding, still trying");
    look_after(f, 1);
    expect_one(f, SIGNAL_OCCUR, "nfs/server", "server/filer1.example.com");
    add_line(f, LOG, "4,3,3,-;nfs: server filer1.example.com OK");
    look_after(f, 1);
    expect_one(f, SIGNAL_RECOVER, "nfs/server", "server/filer1.example.com");
}

static void same_within_five_seconds(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    look_after(f, 0);
    static const char xid[] = "NVRM: Xid (PCI:0000:9b:00): 31, pid=1, MMU Fault";
    char line[256];
    for (int i = 0; i < 100; i++) { /* in one go */
        snprintf(line, sizeof line, "3,%d,%d,-;%s", i, i * 10000, xid);
        add_line(f, LOG, line);
    }
    look_after(f, 1);
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "xid/31", "gpu/0000:9b:00.0")->count, 100);
    snprintf(line, sizeof line, "3,200,%d,-;%s", 4900000, xid);
    add_line(f, LOG, line);
    snprintf(line, sizeof line, "3,201,%d,-;%s", 4900000, "NVRM: Xid (PCI:0000:9c:00): 31, pid=1, MMU Fault");
    add_line(f, LOG, line);
    look_after(f, 4);
    expect_one(f, SIGNAL_ONCE, "xid/31", "gpu/0000:9c:00.0"); /* another GPU */
    snprintf(line, sizeof line, "3,202,%d,-;%s", 5100000, xid);
    add_line(f, LOG, line);
    look_after(f, 1);
    expect_one(f, SIGNAL_ONCE, "xid/31", "gpu/0000:9b:00.0");
}

static void half_lines(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    look_after(f, 0);
    static const char line[] = "3,1,1,-;Kernel panic - not syncing: x\n";
    put_bytes(f, LOG, line, 14, true);
    look_after(f, 1);
    expect_none(f);
    put_bytes(f, LOG, line + 14, sizeof line - 1 - 14, true);
    look_after(f, 1);
    expect_one(f, SIGNAL_ONCE, "os/panic", "");
    put(f, LOG, "%s", "Oops: 1\n"); /* it was rotated */
    look_after(f, 60);
    expect_one(f, SIGNAL_ONCE, "os/oops", "");
}

static void others_than_the_kernel(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    add_line(f, LOG, "11,1,1,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1, forged"); /* facility 1 */
    add_line(f, LOG, "30,2,2,-;systemd-networkd[1]: eth1: Lost carrier");
    look_after(f, 1);
    expect_one(f, SIGNAL_ONCE, "eth/carrier", "net/eth1");
    probes_free(f->probes);
    begin(f, "kmsg", "probes: {kmsg: {userspace: true}}");
    add_line(f, LOG, "11,3,3,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1, by a test");
    look_after(f, 1);
    expect_one(f, SIGNAL_ONCE, "xid/79", "gpu/0000:9b:00.0");
}

static void copy_sample(struct fixture *f, const char *name)
{
    char path[256];
    struct buf text BUF_CLEANUP = {0};
    snprintf(path, sizeof path, "../shared/data/kmsg/%s", name);
    FILE *file = fopen(path, "re");
    if (!file) {
        print_message("skip: no %s\n", path);
        skip();
    }
    char chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buf_add(&text, chunk, got);
    fclose(file);
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    buf_add_char(&text, '\n');
    put_bytes(f, LOG, text.data, text.len, true);
    look_after(f, 1);
}

static void real_xid_119(void **state)
{
    struct fixture *f = *state;
    copy_sample(f, "dmesg-with-xid-119.log");
    assert_int_equal(f->kept.len, 5); /* 6 s apart and more: five events */
    for (size_t i = 0; i < 5; i++)
        expect(f, i, SIGNAL_ONCE, "xid/119", "gpu/0000:9b:00.0");
    char time[32];
    time_format(f->kept.items[0].first_ns, time);
    assert_string_equal(time, "2025-02-23T16:24:18Z");
    time_format(f->kept.items[4].first_ns, time);
    assert_string_equal(time, "2025-02-23T16:30:13Z");
}

static void real_boot(void **state)
{
    struct fixture *f = *state;
    copy_sample(f, "kmsg.1.log");
    expect_none(f);
}

static void real_peermem(void **state)
{
    struct fixture *f = *state;
    copy_sample(f, "kmsg.2.peermem.log");
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "gpu/peermem", "")->count, 7);
}

/* --- the kernel's own log ------------------------------------------------------------------------- */

static struct probes *real_log(struct fixture *f, const char *resume)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list documents = {0};
    CHECK(yaml_parse_all(&arena, STR("probes: {kmsg: {userspace: true}}"), &documents, NULL) == 0);
    struct probes_options options = {.settings = documents.items[0], .only = "kmsg", .resume = resume};
    (void)f;
    return probes_new(&options, NULL);
}

static bool say_to_kernel(const char *text)
{
    int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
    bool said = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return said;
}

/* Rounds until that code was told at that place. */
static bool wait_for(struct fixture *f, const char *code, const char *place)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        probes_round(f->probes, f->now_ns, keep, f);
        for (size_t i = 0; i < f->kept.len; i++)
            if (strcmp(f->kept.items[i].code, code) == 0 && strcmp(f->kept.items[i].place, place) == 0)
                return true;
        struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
        poll(&ready, 1, 1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 60);
    return false;
}

/* --- a device of our own: a terminal in the place of /dev/kmsg, one record a write ----------------- */

static int device_begin(struct fixture *f, char log[160])
{
    struct termios raw;
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0) {
        print_message("skip: no terminals here\n");
        skip();
    }
    put(f, "/dev/x", "x");
    snprintf(log, 160, "%s/dev/kmsg", f->root);
    assert_int_equal(symlink(ptsname(fd), log), 0);
    int slave = open(log, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_int_equal(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
    close(slave);
    return fd;
}

/* Written, and there to be read. */
static void device_say(struct fixture *f, int fd, const char *record, bool watched)
{
    struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
    assert_int_equal(write(fd, record, strlen(record)), (ssize_t)strlen(record));
    assert_int_equal(poll(&ready, 1, watched ? 60000 : 200), watched ? 1 : 0);
}

static void overwritten_records(void **state)
{
    struct fixture *f = *state;
    char log[160];
    int fd = device_begin(f, log);
    begin(f, "kmsg", NULL);
    look_after(f, 0);
    device_say(f, fd, "6,10,1000,-;one\n", true);
    look_after(f, 1);
    device_say(f, fd, "6,11,2000,-;two\n", true);
    look_after(f, 1);
    expect_none(f);
    device_say(f, fd, "6,16,3000,-;Oops: 1\n SUBSYSTEM=x\n", true);
    look_after(f, 1);
    assert_int_equal(f->kept.len, 2);
    assert_int_equal(expect(f, 0, SIGNAL_ONCE, "os/log-lost", "")->count, 4);
    expect(f, 1, SIGNAL_ONCE, "os/oops", "");
    device_say(f, fd, "6,12,3000,-;Kernel panic - not syncing\n", true); /* of before: read already */
    look_after(f, 1);
    expect_none(f);
    close(fd);
}

/* Switched off for its cost, the log must not keep the loop awake. */
static void too_costly_to_read(void **state)
{
    struct fixture *f = *state;
    char log[160];
    int fd = device_begin(f, log);
    f->cost_ns = -1; /* the real clock, and a bound that nothing keeps */
    begin(f, "kmsg", "probes: {kmsg: {cost: 1ns}}");
    look_after(f, 0);
    expect_one(f, SIGNAL_ONCE, "os/probe-cost", "probe/kmsg");
    device_say(f, fd, "6,10,1000,-;Oops: 1\n", false);
    look_after(f, 599);
    expect_none(f);
    look_after(f, 1);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_ONCE, "os/oops", "");
    expect(f, 1, SIGNAL_ONCE, "os/probe-cost", "probe/kmsg");
    close(fd);
}

/* The chips are the driver's GPUs, also when it was loaded after the start. */
static void chips_of_the_driver(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    add_line(f, LOG, "3,1,1,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1, x");
    look_after(f, 1);
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "xid/79", "gpu/0000:9b:00.0")->chip, -1);
    put(f, "/proc/driver/nvidia/gpus/0000:18:00.0/information", "x");
    put(f, "/proc/driver/nvidia/gpus/0000:9b:00.0/information", "x");
    add_line(f, LOG, "3,2,9000000,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1, x");
    look_after(f, 9);
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "xid/79", "gpu/0000:9b:00.0")->chip, 1);
}

static void real_device(void **state)
{
    struct fixture *f = *state;
    char place[64], text[256], position[PROBES_POSITION_MAX];
    unsigned number = (unsigned)getpid() & 0xffff;
    if (access("/dev/kmsg", R_OK | W_OK) < 0 || geteuid() != 0) {
        print_message("skip real_device: /dev/kmsg is not ours to write\n");
        skip();
    }
    snprintf(place, sizeof place, "gpu/%04x:9b:00.0", number);
    snprintf(text, sizeof text, "<11>NVRM: Xid (PCI:%04x:9b:00): 79, pid=1, by a test of phalanx\n", number);
    f->probes = real_log(f, NULL);
    assert_non_null(f->probes);
    probes_position(f->probes, position);
    assert_true(position[0] != 0); /* known before anything was read */
    probes_round(f->probes, 0, keep, f);
    vec_clear(&f->kept);
    if (!say_to_kernel(text)) {
        print_message("skip real_device: /dev/kmsg: %s\n", strerror(errno));
        skip();
    }
    struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
    assert_int_equal(poll(&ready, 1, 60000), 1); /* at once, not at the next period */
    assert_true(wait_for(f, "xid/79", place));
    /* The next process goes on where this one stood, with what was said in between. */
    probes_position(f->probes, position);
    probes_free(f->probes);
    snprintf(place, sizeof place, "gpu/%04x:9c:00.0", number);
    snprintf(text, sizeof text, "<11>NVRM: Xid (PCI:%04x:9c:00): 79, pid=1, by a test of phalanx\n", number);
    assert_true(say_to_kernel(text));
    vec_clear(&f->kept);
    f->probes = real_log(f, position);
    assert_true(wait_for(f, "xid/79", place));
    for (size_t i = 0; i < f->kept.len; i++)
        assert_null(strstr(f->kept.items[i].place, ":9b:"));
    probes_free(f->probes);
    f->probes = real_log(f, "another-boot 1");
    vec_clear(&f->kept);
    probes_round(f->probes, 0, keep, f);
    for (size_t i = 0; i < f->kept.len; i++)
        assert_null(strstr(f->kept.items[i].place, ":9c:"));
}

static void absent(void **state)
{
    struct fixture *f = *state;
    struct probes_standing standing;
    begin(f, "kmsg", NULL);
    look_after(f, 0);
    probes_standing(f->probes, 0, &standing);
    assert_string_equal(standing.name, "kmsg");
    assert_non_null(strstr(standing.note, "/dev/kmsg"));
    put(f, LOG, "Oops: 1\n"); /* there from now on: all of it is new */
    look_after(f, 10);
    expect_one(f, SIGNAL_ONCE, "os/oops", "");
}

/* --- patterns ------------------------------------------------------------------------------------- */

static bool is(const char *pattern, const char *text, const char *first, const char *second)
{
    struct str captures[CAPTURES_MAX] = {{0}};
    return match(pattern, str_from(text), captures) && str_is(captures[0], first) &&
           str_is(captures[1], second);
}

static void patterns(void **state)
{
    (void)state;
    assert_true(is("a @ b %", "xx a word: a one b 17 c", "one", "17"));
    assert_true(is("a*z%", "a z z12", "", "") == false); /* the first z it is */
    assert_true(is("a*z%", "a z12", "12", ""));
    assert_true(is("@: gone~", "x eth0: gone", "eth0", ""));
    assert_false(is("@: gone~", "eth0: gone today", "eth0", ""));
    assert_false(is("@: gone", ": gone", "", ""));
    assert_true(is("a @", "a a", "a", ""));
    assert_false(is("a @", "a ", "", ""));
    assert_true(is("end*", "the end", "", ""));
    assert_false(is("end", "", "", ""));
    assert_true(is("a*~", "a and all", "", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_sample),
        CASE(evidence),
        CASE(innocent_lines),
        CASE(servers),
        CASE(same_within_five_seconds),
        CASE(half_lines),
        CASE(others_than_the_kernel),
        CASE(real_xid_119),
        CASE(real_boot),
        CASE(real_peermem),
        CASE(real_device),
        CASE(chips_of_the_driver),
        CASE(overwritten_records),
        CASE(too_costly_to_read),
        CASE(absent),
        CASE(patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
