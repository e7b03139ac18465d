/* Lines of the kernel log of further machines: NVIDIA's newest codes, server processors, other network cards,
 * disks and file systems; and what such logs are full of without a fault. */
#include "fixture.h"

#define LOG "/dev/kmsg"

struct sample {
    const char *line, *code, *place; /* code NULL: nothing */
    enum signal_severity severity;
};

static const struct sample samples[] = {
    {"NVRM: Xid (PCI:0000:18:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error "
     "(DBE) "
     "has been detected on GPU in the framebuffer at partition 6, subpartition 1.",
     "xid/48", "gpu/0000:18:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:19:00): 95, pid=1234, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, "
     "D-RST: No",
     "xid/95", "gpu/0000:19:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:1a:00): 13, pid=1234, name=python3, Graphics SM Warp Exception on (GPC 0, TPC 1, "
     "SM 0): "
     "Out Of Range Address",
     "xid/13", "gpu/0000:1a:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0000:1c:00): 140, pid='<unknown>', name=<unknown>, An uncorrectable ECC error detected "
     "(possible firmware handling failure) DRAM:0, LTC:0, MMU:0, PCIE:1",
     "xid/140", "gpu/0000:1c:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0008:01:00): 144, SAW_MVB Fatal XC0 i0 Link -1 (0x00000001 0x00000000 0x00000000 "
     "0x00000000 "
     "0x00000000 0x00000000)",
     "xid/144-fatal", "gpu/0008:01:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:1d:00): 43, pid=1234, name=python3, channel 0x00000008", "xid/43",
     "gpu/0000:1d:00.0", SEVERITY_NOTICE},
    {"NVRM: Xid (PCI:0000:1e:00): 171, pid=1, name=x, Additional to 48: row remapping", "xid/171",
     "gpu/0000:1e:00.0", SEVERITY_NOTICE},
    {"NVRM: Xid (PCI:0000:1f:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset "
     "Required)",
     "xid/154-reset", "gpu/0000:1f:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0000:20:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
     "xid/154-drain-reset", "gpu/0000:20:00.0", SEVERITY_MAJOR},
    {"nvidia-nvswitch1: SXid (PCI:0000:c2:00.0): 24006, Non-fatal, Link 30 tlc tx parity", "sxid/24006",
     "switch/0000:c2:00.0", SEVERITY_MINOR},
    {"NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ kernel_gsp.c:77", NULL, NULL, 0},
    {"NVRM: Persistence mode is deprecated and will be removed in a future release.", NULL, NULL, 0},

    {"mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: fe200000000c110a", "mce/uncorrected",
     "cpu/12", SEVERITY_CRITICAL},
    {"{1}[Hardware Error]: event severity: fatal", "mce/uncorrected", "", SEVERITY_CRITICAL},
    {"EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0", NULL, NULL,
     0}, /* sysfs counts it */
    {"Memory failure: 0x3f8a2b: recovery action for dirty LRU page: Recovered", "edac/ue", "",
     SEVERITY_MAJOR},
    {"CPU3: Package temperature above threshold, cpu clock throttled (total events = 7)", "cpu/throttle",
     "cpu/3", SEVERITY_NOTICE},
    {"CPU3: Package temperature/speed normal", NULL, NULL, 0},
    {"mce: CPU44: Core temperature is above threshold, cpu clock is throttled (total events = 1)",
     "cpu/throttle", "cpu/44", SEVERITY_NOTICE},
    {"watchdog: BUG: soft lockup - CPU#101 stuck for 48s! [pt_main_thread:1234]", "cpu/lockup", "cpu/101",
     SEVERITY_MAJOR},
    {"rcu: INFO: rcu_sched self-detected stall on CPU", "cpu/lockup", "", SEVERITY_MINOR},
    {"BUG: unable to handle page fault for address: ffffc90000000000", "os/oops", "", SEVERITY_MAJOR},
    {"Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] "
     "PREEMPT SMP",
     "os/oops", "", SEVERITY_MAJOR},
    {"traps: python3[99] general protection fault ip:7f1 sp:7f2 error:0 in libc.so.6[7f+10]", NULL, NULL, 0},
    {"Oops: divide error: 0000 [#1] SMP NOPTI", "os/oops", "", SEVERITY_MAJOR},
    {"Unable to handle kernel paging request at virtual address ffff000000000000", "os/oops", "",
     SEVERITY_MAJOR},

    {"Memory cgroup out of memory: Killed process 4711 (pt main thread) total-vm:1kB, anon-rss:1kB, "
     "file-rss:0kB, "
     "shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0",
     "mem/oom", "process/pt main thread", SEVERITY_MINOR},
    {"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/x,"
     "task=data loader 3,pid=99,uid=0",
     "mem/oom", "process/data loader 3", SEVERITY_MINOR},

    {"mlx5_core 0000:1a:00.0 enp26s0f0np0: TX timeout detected", "mlx5/tx-timeout", "pci/0000:1a:00.0",
     SEVERITY_MINOR},
    {"mlx5_core 0000:1b:00.0: wait_func:1195:(pid 9): CREATE_CQ(0x400) timeout. Will cause a leak of a "
     "command "
     "resource",
     "mlx5/command", "pci/0000:1b:00.0", SEVERITY_MAJOR},
    {"mlx5_core 0000:1c:00.0: print_health_info:431:(pid 0): Health issue observed, firmware internal error, "
     "severity(3) ERROR:",
     "mlx5/health", "pci/0000:1c:00.0", SEVERITY_MAJOR},
    {"mlx5_core 0000:1d:00.0: mlx5_pcie_event:301:(pid 9): Detected insufficient power on the PCIe slot "
     "(27W).",
     "mlx5/power", "pci/0000:1d:00.0", SEVERITY_MINOR},
    {"bnxt_en 0000:31:00.0 eth4: Received firmware debug notification, data1: 0x1", NULL, NULL, 0},
    {"bnxt_en 0000:32:00.0 eth5: NETDEV WATCHDOG: CPU: 3: transmit queue 7 timed out 5120 ms",
     "eth/tx-timeout", "net/eth5", SEVERITY_MINOR},
    {"NETDEV WATCHDOG: ens5 (ena): transmit queue 2 timed out 6000 ms", "eth/tx-timeout", "net/ens5",
     SEVERITY_MINOR},
    {"pcieport 0000:40:01.1: pciehp: Slot(5): Link Down", "pcie/link-down", "pci/0000:40:01.1",
     SEVERITY_MAJOR},
    {"pcieport 0000:41:01.1: AER: Uncorrectable (Fatal) error message received from 0000:42:00.0", NULL, NULL,
     0}, /* sysfs counts it */
    {"pcieport 0000:43:01.1: DPC: containment event, status:0x1f01 source:0x0000", "pcie/fatal",
     "pci/0000:43:01.1", SEVERITY_CRITICAL},

    {"LustreError: 11-0: scratch-OST0007-osc-ffff: operation ost_write to node 10.0.0.5@o2ib failed: rc = "
     "-107",
     NULL, NULL, 0},
    {"LustreError: 167-0: scratch-MDT0000-mdc-ffff8: This client was evicted by scratch-MDT0000; in progress "
     "operations using this service will fail.",
     "lustre/evicted", "server/scratch-MDT0000", SEVERITY_MAJOR},
    {"nfs: server store-7 not responding, still trying", "nfs/server", "server/store-7", SEVERITY_MAJOR},
    {"EXT4-fs error (device sda2): ext4_find_entry:1463: inode #2: comm python3: reading directory lblock 0",
     "fs/error", "disk/sda2", SEVERITY_MAJOR},
    {"XFS (nvme2n1): Corruption of in-memory data (0x8) detected at xfs_defer_finish", "fs/error",
     "disk/nvme2n1", SEVERITY_MAJOR},
    {"blk_update_request: I/O error, dev sdb, sector 7 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
     "disk/io", "disk/sdb", SEVERITY_MAJOR},
    {"sd 0:0:0:0: [sdc] tag#7 FAILED Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK cmd_age=0s", NULL,
     NULL, 0},
    {"nvme nvme7: Device not ready; aborting initialisation, CSTS=0x0", "disk/failed", "disk/nvme7",
     SEVERITY_CRITICAL},
    {"libceph: osd3 (1)10.0.0.9:6801 socket closed (con state OPEN)", NULL, NULL, 0},
    {"beegfs: Communication error: Node: storage-1", NULL, NULL, 0},

    {"amdgpu 0000:29:00.0: amdgpu: socket: 0, die: 1, 3 new uncorrectable hardware errors detected in umc "
     "block",
     "gpu/ecc-uncorrected", "gpu/0000:29:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:2a:00.0: amdgpu: GPU reset begin!. Source:  1", "gpu/reset", "gpu/0000:2a:00.0",
     SEVERITY_MINOR},
    {"amdgpu 0000:2b:00.0: amdgpu: GPU reset(3) succeeded!", NULL, NULL, 0},
    {"amdgpu 0000:2c:00.0: amdgpu: RAS EEPROM reports 128 bad pages which reaches threshold: bad pages 128 "
     "reaches "
     "threshold",
     "gpu/bad-pages", "gpu/0000:2c:00.0", SEVERITY_CRITICAL},
    {"habanalabs 0000:33:00.0: Device heartbeat failed! PCI link is broken", "gpu/lost", "gpu/0000:33:00.0",
     SEVERITY_CRITICAL},
    {"habanalabs 0000:34:00.0: HBM_MC SEI: DERR=1", "gpu/ecc-uncorrected", "gpu/0000:34:00.0",
     SEVERITY_CRITICAL},
    {"[ascend] [drv_pcie] [ERROR] dev_id=4, pcie link is down", "gpu/lost", "npu/4", SEVERITY_CRITICAL},
};

static void lines_of_further_machines(void **state)
{
    struct fixture *f = *state;
    size_t wrong = 0;
    put(f, LOG, "6,1,1,-;booted\n");
    begin(f, "kmsg", NULL);
    look_after(f, 0);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *sample = &samples[i];
        struct buf line BUF_CLEANUP = {0};
        buf_printf(&line, "3,%zu,%zu,-;%s", i + 2, (i + 1) * 60000000, sample->line);
        add_line(f, LOG, line.data);
        look_after(f, 60);
        const struct kept *kept = f->kept.len ? &f->kept.items[0] : NULL;
        bool right = sample->code
                         ? f->kept.len == 1 && strcmp(kept->code, sample->code) == 0 &&
                               strcmp(kept->place, sample->place) == 0 && kept->severity == sample->severity
                         : !kept;
        if (!right)
            print_error("%s: %s at '%s', severity %d\n", sample->line, kept ? kept->code : "nothing",
                        kept ? kept->place : "", kept ? (int)kept->severity : 0);
        wrong += !right;
        f->kept.len = 0;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(lines_of_further_machines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
