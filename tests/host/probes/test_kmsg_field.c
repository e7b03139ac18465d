/* More lines of the kernel log in the wording of newer kernels and drivers: NVIDIA's XIDs and SXids, disks,
 * networks, locks; and what such logs are full of without a fault. */
#include "fixture.h"

#define LOG "/dev/kmsg"

struct sample {
    const char *line, *code, *place; /* code NULL: nothing */
    enum signal_severity severity;
};

static const struct sample samples[] = {
    {"NVRM: Xid (PCI:0000:07:00): 94, pid=1234, name=python3, Ch 00000008", "xid/94", "gpu/0000:07:00.0",
     SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0000:08:00): 119, pid=1234, name=python3, Timeout after 6s of waiting for RPC response "
     "from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).",
     "xid/119", "gpu/0000:08:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0000:09:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link "
     "6(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
     "xid/74", "gpu/0000:09:00.0", SEVERITY_MAJOR},
    {"NVRM: Xid (PCI:0000:0a:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row "
     "(0x0000001000000000) marked for remapping, reset gpu to activate.",
     "xid/63", "gpu/0000:0a:00.0", SEVERITY_NOTICE},
    {"NVRM: Xid (PCI:0000:0b:00): 64, pid='<unknown>', name=<unknown>, Row Remapper: Failed to record a new "
     "row.",
     "xid/64", "gpu/0000:0b:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:0c:00): 31, pid=99, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE "
     "GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
     "xid/31", "gpu/0000:0c:00.0", SEVERITY_MINOR},
    {"NVRM: Xid (PCI:0000:0d:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot "
     "Required)",
     "xid/154-reboot", "gpu/0000:0d:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:0e:00): 154, GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 "
     "(None)",
     "xid/154-none", "gpu/0000:0e:00.0", SEVERITY_NOTICE},
    {"NVRM: Xid (PCI:0000:0f:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 00 (0x004505c6 0x00000000 "
     "0x00000000 0x00000000 0x00000000 0x00000000)",
     "xid/149-fatal", "gpu/0000:0f:00.0", SEVERITY_CRITICAL},
    {"NVRM: Xid (PCI:0000:10:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 03 (0x00000004 0x00000001 0x00000000 "
     "0x00000000 0x00000000 0x00000000)",
     "xid/145-nonfatal", "gpu/0000:10:00.0", SEVERITY_MINOR},
    {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)",
     "sxid/28006", "switch/0000:c1:00.0", SEVERITY_MINOR},
    {"nvidia-nvswitch0: SXid (PCI:0000:c5:00.0): 12028, Fatal, Link 32 egress non-posted PRIV error (First)",
     "sxid/12028-fatal", "switch/0000:c5:00.0", SEVERITY_CRITICAL},
    {"nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 27 LTSSM Fault Up", "sxid/20034-fatal",
     "switch/0000:86:00.0", SEVERITY_CRITICAL},
    {"nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 20034, Severity 1 Engine instance 27 Sub-engine instance 00",
     NULL, NULL, 0},
    {"NVRM: GPU at PCI:0000:07:00: GPU-d8a6b9b5-0d3c-7f2a-93b5-5a1c3b1f0a11", NULL, NULL, 0},
    {"NVRM: A GPU crash dump has been created. If possible, please run nvidia-bug-report.sh as root", NULL,
     NULL, 0},
    {"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024", NULL, NULL,
     0},
    {"nvidia-nvswitch0: open (major=510)", NULL, NULL, 0},
    {"nvidia 0000:07:00.0: enabling device (0140 -> 0142)", NULL, NULL, 0},

    {"nvme nvme3: I/O tag 12 (700c) opcode 0x2 (I/O Cmd) QID 5 timeout, aborting req_op:READ(0) size:4096",
     "disk/timeout", "disk/nvme3", SEVERITY_MINOR},
    {"nvme nvme4: I/O tag 12 (700c) opcode 0x2 (I/O Cmd) QID 5 timeout, reset controller", "disk/timeout",
     "disk/nvme4", SEVERITY_MAJOR},
    {"nvme nvme5: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "disk/timeout",
     "disk/nvme5", SEVERITY_MAJOR},
    {"nvme nvme6: Disabling device after reset failure: -19", "disk/failed", "disk/nvme6", SEVERITY_CRITICAL},
    {"critical medium error, dev nvme7n1, sector 12345 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
     "disk/io", "disk/nvme7n1", SEVERITY_MAJOR},
    {"I/O error, dev nvme8n1, sector 12345 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", "disk/io",
     "disk/nvme8n1", SEVERITY_MAJOR},
    {"XFS (nvme0n1): log I/O error -5", "fs/error", "disk/nvme0n1", SEVERITY_MAJOR},
    {"XFS (nvme1n1): Filesystem has been shut down due to log error (0x2).", "fs/error", "disk/nvme1n1",
     SEVERITY_MAJOR},
    {"EXT4-fs (nvme0n1p2): mounted filesystem 4f1d r/w with ordered data mode. Quota mode: none.", NULL, NULL,
     0},
    {"nvme nvme0: 63/0/0 default/read/poll queues", NULL, NULL, 0},
    {"md: data-check of RAID array md0", NULL, NULL, 0},

    {"mlx5_core 0000:9a:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
     "mlx5/health", "pci/0000:9a:00.0", SEVERITY_MAJOR},
    {"mlx5_core 0000:61:00.0 eth2: Link down", NULL, NULL, 0},
    {"infiniband mlx5_0: create_qp:3206:(pid 7): Create QP type 2 failed", NULL, NULL, 0},
    {"nfs: server 10.0.0.5 not responding, timed out", "nfs/server", "server/10.0.0.5", SEVERITY_MAJOR},
    {"TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.  Check SNMP counters.",
     NULL, NULL, 0},
    {"Lustre: 2345:0:(client.c:2289:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow "
     "reply: [sent 1732442400/real 1732442400]",
     NULL, NULL, 0},

    {"watchdog: BUG: soft lockup - CPU#12 stuck for 26s! [python3:1234]", "cpu/lockup", "cpu/12",
     SEVERITY_MAJOR},
    {"watchdog: Watchdog detected hard LOCKUP on cpu 3", "cpu/lockup", "cpu/3", SEVERITY_CRITICAL},
    {"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "cpu/lockup", "", SEVERITY_MINOR},
    {"INFO: task khugepaged:321 blocked for more than 120 seconds.", "cpu/hung-task", "process/khugepaged",
     SEVERITY_MINOR},
    {"clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable because the skew is "
     "too large:",
     "clock/source", "", SEVERITY_MINOR},
    {"perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to 79000", NULL,
     NULL, 0},
    {"workqueue: drm_fb_helper_damage_work hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
     NULL, NULL, 0},
    {"hrtimer: interrupt took 12345 ns", NULL, NULL, 0},
    {"pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0", NULL, NULL, 0},
    {"python3[99]: segfault at 10 ip 00007f sp 00007f error 4 in libc10_cuda.so[7f+10] likely on CPU 3 (core "
     "3, socket 0)",
     NULL, NULL, 0},
    {"systemd-journald[321]: Under memory pressure, flushing caches.", NULL, NULL, 0},
};

static void field_lines(void **state)
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
    const struct CMUnitTest tests[] = {CASE(field_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
