/* Lines of the kernel log beyond NVIDIA's, as drivers and the kernel print them: AMD's machine checks and
 * GPUs, Gaudi, Ascend, networks, file systems, slots; and lines that look like these and say nothing. */
#include "fixture.h"

#include "host/probes/internal.h"

#define LOG "/dev/kmsg"

struct sample {
    const char *line, *code, *place; /* code NULL: nothing */
    enum signal_severity severity;
};

static const struct sample machine_checks[] = {
    {"[Hardware Error]: CPU:21 (19:21:0) MC5_STATUS[-|UE|MiscV|AddrV|PCC|TCC|SyndV|-|-|-]: "
     "0xbea0000001000108",
     "mce/uncorrected", "cpu/21", SEVERITY_CRITICAL},
    {"mce: [Hardware Error]: CPU:0 (17:31:0) MC27_STATUS[Over|UE|MiscV|-|PCC|-|SyndV|UECC|-|-]: "
     "0xf8a00000000c080b",
     "mce/uncorrected", "cpu/0", SEVERITY_CRITICAL},
    {"[Hardware Error]: CPU:2 (10:2:3) MC4_STATUS[Over|UE|MiscV|PCC|AddrV|UECC]: 0xfe00000000070f0f",
     "mce/uncorrected", "cpu/2", SEVERITY_CRITICAL},
    {"[Hardware Error]: CPU:7 (19:1:1) MC17_STATUS[-|UC|-|AddrV|-]: 0x0", "mce/uncorrected", "cpu/7",
     SEVERITY_CRITICAL},
    {"[Hardware Error]: CPU:40 (19:1:1) MC3_STATUS[-|-|-|-|PCC|-]: 0x0", "mce/uncorrected", "cpu/40",
     SEVERITY_CRITICAL},
    {"[Hardware Error]: CPU:5 (19:1:1) MC0_STATUS[-|-|MiscV]: 0xbc00080001010135", "mce/uncorrected", "cpu/5",
     SEVERITY_CRITICAL},
    {"[Hardware Error]: System Fatal error.", "mce/uncorrected", "", SEVERITY_CRITICAL},
    {"[Hardware Error]: Machine check: Processor context corrupt", "mce/uncorrected", "", SEVERITY_CRITICAL},
    {"[Hardware Error]: Uncorrected, software restartable error.", "mce/uncorrected", "", SEVERITY_CRITICAL},
    {"[Hardware Error]: Uncorrected, software containable error.", "mce/uncorrected", "", SEVERITY_CRITICAL},
    {"mce: Uncorrected hardware memory error in user-access at 3f8a2b000", "mce/uncorrected", "",
     SEVERITY_CRITICAL},
    {"[Hardware Error]: CPU:64 (19:1:1) MC18_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-]: "
     "0xdc2040000000011b",
     "mce/corrected", "cpu/64", SEVERITY_NOTICE},
    {"[Hardware Error]: CPU:64 (19:11:1) MC21_STATUS[-|-|MiscV|AddrV|-|TCC|SyndV|UECC|Deferred|-|-]: "
     "0x9c2031000000011b",
     "mce/deferred", "cpu/64", SEVERITY_MINOR},
    {"mce: [Hardware Error]: Machine check events logged", NULL, NULL, 0},
    {"[Hardware Error]: Machine check events logged", NULL, NULL, 0},
    {"[Hardware Error]: Corrected error, no action required.", NULL, NULL, 0},
    {"[Hardware Error]: Deferred error, no action required.", NULL, NULL, 0},
    {"[Hardware Error]: Error Addr: 0x000000013b2a4d80", NULL, NULL, 0},
    {"[Hardware Error]: IPID: 0x0000009600650f00, Syndrome: 0x00000000000a8a00", NULL, NULL, 0},
    {"[Hardware Error]: Unified Memory Controller Ext. Error Code: 0, DRAM ECC error.", NULL, NULL, 0},
    {"[Hardware Error]: cache level: L3/GEN, tx: GEN, mem-tx: RD", NULL, NULL, 0},
    {"MCE: In-kernel MCE decoding enabled.", NULL, NULL, 0},
};

static const struct sample amd_gpus[] = {
    {"amdgpu 0000:b1:00.0: amdgpu: Bad page threshold is exceeded", "gpu/bad-pages", "gpu/0000:b1:00.0",
     SEVERITY_CRITICAL},
    {"[drm:mes_v11_0_submit_pkt_and_poll_completion [amdgpu]] *ERROR* MES failed to response msg=14",
     "gpu/firmware", "", SEVERITY_MAJOR},
    {"amdgpu 0000:b2:00.0: amdgpu: Failed to send message 0x26, response 0x0", "gpu/firmware",
     "gpu/0000:b2:00.0", SEVERITY_MAJOR},
    {"amdgpu 0000:b2:00.0: amdgpu: GPU mode1 reset", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
     "gpu/ecc-uncorrected", "gpu/0000:c3:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:C3:00.0: {7}socket: 1, die: 2, 1 new uncorrectable hardware errors detected in gfx block",
     "gpu/ecc-uncorrected", "gpu/0000:c3:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:08:00.0: {1}1 uncorrectable hardware errors detected in umc block", "gpu/ecc-uncorrected",
     "gpu/0000:08:00.0", SEVERITY_CRITICAL},
    {"amdgpu: 3 uncorrectable hardware errors detected in UMC block", "gpu/ecc-uncorrected", "",
     SEVERITY_CRITICAL},
    {"amdgpu 0000:e3:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
     "gpu/ecc-uncorrected", "gpu/0000:e3:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:1b:00.0: {1}[Hardware Error]: aca entry[00].STATUS=0xbaa000000000080b",
     "gpu/ecc-uncorrected", "gpu/0000:1b:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:1b:00.0: amdgpu: {12}[Hardware Error]: ACA[03/08].STATUS=0x9c2010000000011b",
     "gpu/ecc-deferred", "gpu/0000:1b:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:68:00.0: {14}poison is consumed by client 12, kick off gpu reset flow", "gpu/poison",
     "gpu/0000:68:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:68:00.0: amdgpu: RAS poison consumption, unmap queue flow succeeded: client id 12",
     "gpu/poison", "gpu/0000:68:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:68:00.0: amdgpu: RAS poison consumption, fall back to gpu reset flow: client id 12",
     "gpu/ecc-uncorrected", "gpu/0000:68:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:68:00.0: {15}Poison is created", "gpu/ecc-deferred", "gpu/0000:68:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:68:00.0: {9}socket: 0, die: 0, 4 new deferred hardware errors detected in umc block",
     "gpu/ecc-deferred", "gpu/0000:68:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:69:00.0: amdgpu: RAS controller interrupt triggered by NBIF error", "gpu/ras",
     "gpu/0000:69:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:c3:00.0: amdgpu: GPU reset begin!", "gpu/reset", "gpu/0000:c3:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!. Source:  3", "gpu/reset", "gpu/0000:c5:00.0",
     SEVERITY_MINOR},
    {"amdgpu: GPU reset(2) failed", "gpu/reset-failed", "", SEVERITY_CRITICAL},
    {"amdgpu 0000:c5:00.0: amdgpu: GPU reset end with ret = -62", "gpu/reset-failed", "gpu/0000:c5:00.0",
     SEVERITY_CRITICAL},
    {"amdgpu 0000:c6:00.0: amdgpu: ASIC reset failed with error, -62 for drm dev, 0000:c6:00.0",
     "gpu/reset-failed", "gpu/0000:c6:00.0", SEVERITY_CRITICAL},
    {"[drm:amdgpu_device_gpu_recover [amdgpu]] *ERROR* GPU Recovery Failed: -62", "gpu/reset-failed", "",
     SEVERITY_CRITICAL},
    {"amdgpu 0000:66:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE", "gpu/firmware",
     "gpu/0000:66:00.0", SEVERITY_MAJOR},
    {"amdgpu 0000:67:00.0: amdgpu: MES(1) failed to respond to msg=MISC (WAIT_REG_MEM)", "gpu/firmware",
     "gpu/0000:67:00.0", SEVERITY_MAJOR},
    {"amdgpu 0000:f3:00.0: amdgpu: MES might be in unrecoverable state, issue a GPU reset", "gpu/firmware",
     "gpu/0000:f3:00.0", SEVERITY_MAJOR},
    {"amdgpu 0000:3d:00.0: amdgpu: The cp might be in an unrecoverable state due to an unsuccessful queues "
     "preemption",
     "gpu/firmware", "gpu/0000:3d:00.0", SEVERITY_MAJOR},
    {"amdgpu 0048:0f:00.0: amdgpu: Queue preemption failed for queue with doorbell_id: 80030008",
     "gpu/firmware", "gpu/0048:0f:00.0", SEVERITY_MAJOR},
    {"amdgpu 0000:c3:00.0: amdgpu: Saved bad pages 257 reaches threshold value 256", "gpu/bad-pages",
     "gpu/0000:c3:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:c4:00.0: amdgpu: RAS records:300 exceed threshold:256, GPU will not be initialized. "
     "Replace "
     "this GPU or increase the threshold",
     "gpu/bad-pages", "gpu/0000:c4:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:c4:00.0: amdgpu: Found 8 bad pages", "gpu/page-retired", "gpu/0000:c4:00.0",
     SEVERITY_NOTICE},
    {"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=13670, emitted seq=13672",
     "gpu/hang", "", SEVERITY_MINOR},
    {"amdgpu 0000:c1:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32769, for "
     "process "
     "python3 pid 1234 thread python3 pid 1234)",
     "gpu/page-fault", "gpu/0000:c1:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:c2:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)",
     "gpu/page-fault", "gpu/0000:c2:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:c7:00.0: amdgpu: device lost from bus!", "gpu/lost", "gpu/0000:c7:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:03:00.0: amdgpu: failed to remove hardware queue from MES, doorbell=0x1002", "gpu/firmware",
     "gpu/0000:03:00.0", SEVERITY_MAJOR},
    {"amdgpu 0000:04:00.0: Unable to change power state from D3cold to D0, device inaccessible", "gpu/lost",
     "gpu/0000:04:00.0", SEVERITY_CRITICAL},
    {"amdgpu 0000:c7:00.0: amdgpu: PCI error: detected callback, state(2)!!", "gpu/reset", "gpu/0000:c7:00.0",
     SEVERITY_MINOR},
    {"amdgpu 0000:d7:00.0: amdgpu: PCI error: detected callback, state(3)!!", "gpu/lost", "gpu/0000:d7:00.0",
     SEVERITY_CRITICAL},
    {"amdgpu 0000:c8:00.0: amdgpu: Fatal error during GPU init", "gpu/init", "gpu/0000:c8:00.0",
     SEVERITY_MAJOR},
    {"[drm:amdgpu_device_init [amdgpu]] *ERROR* hw_init of IP block <psp> failed -22", "gpu/init", "",
     SEVERITY_MAJOR},
    {"amdgpu 0000:c9:00.0: amdgpu: ERROR: GPU over temperature range(SW CTF) detected!", "gpu/temperature",
     "gpu/0000:c9:00.0", SEVERITY_MAJOR},
    {"amdgpu 0000:c3:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: no uncorrectable hardware errors detected in umc block", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: socket: 0, die: 0, 5 new correctable hardware errors detected in umc "
     "block, no "
     "user action is needed",
     NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: 5 correctable hardware errors detected in total in umc block", NULL, NULL,
     0},
    {"amdgpu 0000:1b:00.0: {1}[Hardware Error]: Accelerator Check Architecture events logged", "gpu/ras",
     "gpu/0000:1b:00.0", SEVERITY_MINOR},
    {"amdgpu 0000:1b:00.0: {1}[Hardware Error]: aca entry[00].ADDR=0xffffffffffffffff", NULL, NULL, 0},
    {"amdgpu 0000:1b:00.0: {1}[Hardware Error]: aca entry[00].STATUS=0x9c2040000000011b", NULL, NULL, 0},
    {"amdgpu 0000:c6:00.0: amdgpu: ring comp_1.0.1 timeout, but soft recovered", NULL, NULL, 0},
    {"amdgpu 0000:c1:00.0: amdgpu: [gfxhub0] retry page fault (src_id:0 ring:0 vmid:8)", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: GPU reset succeeded, trying to resume", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: GPU reset(2) succeeded!", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: GPU reset end with ret = 0", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: VRAM is lost due to GPU reset!", NULL, NULL, 0},
    {"amdgpu 0000:c3:00.0: amdgpu: Found 0 bad pages", NULL, NULL, 0},
    {"amdgpu 0000:e3:00.0: amdgpu: MEM ECC is active.", NULL, NULL, 0},
    {"amdgpu 0000:e3:00.0: amdgpu: RAS INFO: ras initialized successfully, hardware ability[1f] ras_mask[1f]",
     NULL, NULL, 0},
    {"amdgpu 0000:44:00.0: amdgpu: RAS: optional ras ta ucode is not available", NULL, NULL, 0},
    {"[drm] amdgpu kernel modesetting enabled.", NULL, NULL, 0},
};

static const struct sample gaudi_and_ascend[] = {
    {"habanalabs hl1: FW reported fatal error", "gpu/firmware", "gpu/hl1", SEVERITY_MAJOR},
    {"habanalabs hl3: Detected H/W interrupt, HBM ECC DERR", "gpu/ecc-uncorrected", "gpu/hl3",
     SEVERITY_CRITICAL},
    {"habanalabs hl3: HBM0 pc1 interrupts info: WR_PAR=0, RD_PAR=0, CATTRIP=0, SERR=1, DERR=0", NULL, NULL,
     0},
    {"habanalabs hl2: Failed to communicate with Device CPU (CPU-CP timeout)", "gpu/firmware", "gpu/hl2",
     SEVERITY_MAJOR},
    {"habanalabs 0000:1a:00.0: Failed to initialize hl2. Device is NOT usable !", "gpu/init",
     "gpu/0000:1a:00.0", SEVERITY_MAJOR},
    {"habanalabs hl3: Device heartbeat failed! PCI link is broken", "gpu/lost", "gpu/hl3", SEVERITY_CRITICAL},
    {"habanalabs 0000:1b:00.0 accel3: Device heartbeat failed! PCI link is healthy", "gpu/firmware",
     "gpu/0000:1b:00.0", SEVERITY_MAJOR},
    {"habanalabs hl4: Going to reset device", "gpu/reset", "gpu/hl4", SEVERITY_MINOR},
    {"habanalabs hl4: Failed to reset! Device is NOT usable", "gpu/reset-failed", "gpu/hl4",
     SEVERITY_CRITICAL},
    {"habanalabs hl0: Received H/W interrupt 123 [\"TPC0_DERR\"]", "gpu/ecc-uncorrected", "gpu/hl0",
     SEVERITY_CRITICAL},
    {"habanalabs hl1: HBM0_MC0_SERR: ECC error detected. address: 0x1234. Syndrom: 0x12. block id 3. "
     "critical 1.",
     "gpu/ecc-uncorrected", "gpu/hl1", SEVERITY_CRITICAL},
    {"habanalabs hl5: ECC error detected. address: 0x1234. Syndrom: 0x12. block id 3. critical 0.",
     "gpu/ecc-deferred", "gpu/hl5", SEVERITY_MINOR},
    {"habanalabs hl6: HBM1 pc3 interrupts info: WR_PAR=0, RD_PAR=0, CATTRIP=0, SERR=0, DERR=1",
     "gpu/ecc-uncorrected", "gpu/hl6", SEVERITY_CRITICAL},
    {"habanalabs hl2: failed to initialize CPU H/W queues -5", "gpu/init", "gpu/hl2", SEVERITY_MAJOR},
    {"habanalabs hl1: CPU-CP: Critical error", "gpu/firmware", "gpu/hl1", SEVERITY_MAJOR},
    {"habanalabs hl7: MMU page fault on va 0x1000", "gpu/page-fault", "gpu/hl7", SEVERITY_MINOR},
    {"habanalabs hl0: Loading secured firmware to device, may take some time...", NULL, NULL, 0},
    {"habanalabs hl0: Successfully loaded firmware to device", NULL, NULL, 0},
    {"habanalabs hl4: Successfully finished resetting the device", NULL, NULL, 0},
    {"habanalabs hl0: Received H/W interrupt 124 [\"TPC0_SERR\"]", NULL, NULL, 0},
    {"habanalabs 0000:a0:1e.0: habanalabs device found [1da3:1010] (rev 1)", NULL, NULL, 0},

    {"[ascend] [drv_pcie] [devdrv_sync_non_trans_msg_send 1239] <kworker/u385:0:15232:15232> Device is "
     "abnormal. "
     "(dev_id=5; msg_type=3; common_type=5)",
     "gpu/lost", "npu/5", SEVERITY_CRITICAL},
    {"[ascend] [ubdrv] [ERROR] [ubdrv_set_heart_beat_lost 12] <swapper:0> Device heart beat lost, stop all "
     "msg send. "
     "(udevid=3)",
     "gpu/lost", "npu/3", SEVERITY_CRITICAL},
    {"[ascend] [devmng] [ERROR] [devmng_ras 77] HBM multi-bit ECC error. (dev_id=1)", "gpu/ecc-uncorrected",
     "npu/1", SEVERITY_CRITICAL},
    {"[ascend] [devmm] [ERROR] [devmm_pin_user_pages_fast 124] <VLLM::Worker_TP:670605,670605> "
     "Get_user_pages_fast "
     "fail. (va=0xfffc8c19e2e8; expected_page_num=1; real_got_page_num=0)",
     NULL, NULL, 0},
    {"[ascend] [uda] [ERROR] [uda_occupy_dev_by_ns 932] <npu-smi:12> Conflict open udevid. (udevid=0)", NULL,
     NULL, 0},
};

static const struct sample the_kernel[] = {
    {"mlx5_core 0000:61:00.0: mlx5_health_try_recover:338:(pid 1): health recovery flow aborted, PCI reads "
     "still not working",
     "mlx5/health", "pci/0000:61:00.0", SEVERITY_MAJOR},
    {"Lustre: Evicted from fs-MDT0001_UUID (at 10.0.0.1@o2ib) after server handle changed from 0x1 to 0x2",
     "lustre/evicted", "server/fs-MDT0001_UUID", SEVERITY_MAJOR},
    {"mlx5_core 0000:5c:00.0 ens1f0np0: TX timeout detected", "mlx5/tx-timeout", "pci/0000:5c:00.0",
     SEVERITY_MINOR},
    {"mlx5_core 0000:5d:00.0 ens2: TX timeout on queue: 5, SQ: 0x1a6, CQ: 0x3f2, SQ Cons: 0x12 SQ Prod: "
     "0x15, usecs "
     "since last trans: 21000000",
     "mlx5/tx-timeout", "pci/0000:5d:00.0", SEVERITY_MINOR},
    {"mlx5_core 0000:5e:00.0 ens3: NETDEV WATCHDOG: CPU: 37: transmit queue 3 timed out 15084 ms",
     "mlx5/tx-timeout", "pci/0000:5e:00.0", SEVERITY_MINOR},
    {"NETDEV WATCHDOG: eth0 (ixgbe): transmit queue 5 timed out", "eth/tx-timeout", "net/eth0",
     SEVERITY_MINOR},
    {"ixgbe 0000:01:00.1 eth1: NETDEV WATCHDOG: CPU: 3: transmit queue 7 timed out 5120 ms", "eth/tx-timeout",
     "net/eth1", SEVERITY_MINOR},
    {"mlx5_core 0000:5f:00.0: wait_func:1108:(pid 1): 2RST_QP(0x50a) timeout. Will cause a leak of a command "
     "resource",
     "mlx5/command", "pci/0000:5f:00.0", SEVERITY_MAJOR},
    {"mlx5_core 0000:60:00.0: poll_health:837:(pid 0): Fatal error 3 detected", "mlx5/health",
     "pci/0000:60:00.0", SEVERITY_MAJOR},
    {"mlx5_core 0000:5c:00.0 ens1f0np0: Link up", NULL, NULL, 0},
    {"mlx5_core 0000:5c:00.0: Port module event: module 0, Cable plugged", NULL, NULL, 0},
    {"mlx5_core 0000:5c:00.0: mlx5_pcie_event:296:(pid 1): PCIe slot advertised sufficient power (27W).",
     NULL, NULL, 0},

    {"LustreError: 167-0: scratch-MDT0000-mdc-ffff880: This client was evicted by scratch-MDT0000; in "
     "progress "
     "operations using this service will fail.",
     "lustre/evicted", "server/scratch-MDT0000", SEVERITY_MAJOR},
    {"Lustre: scratch-OST0001-osc-ffff880: Connection to scratch-OST0001 (at 10.0.0.5@o2ib) was lost; in "
     "progress "
     "operations using this service will wait for recovery to complete",
     "lustre/server", "server/scratch-OST0001", SEVERITY_MINOR},
    {"LustreError: 1234:0:(osc_request.c:123:osc_foo()) LBUG", "os/oops", "", SEVERITY_MAJOR},
    {"Lustre: Mounted scratch-client", NULL, NULL, 0},
    {"Lustre: scratch-OST0001-osc-ffff880: Connection restored to 10.0.0.5@o2ib (at 10.0.0.5@o2ib)", NULL,
     NULL, 0},

    {"general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] PREEMPT SMP "
     "NOPTI",
     "os/oops", "", SEVERITY_MAJOR},
    {"general protection fault: 0000 [#1] SMP", "os/oops", "", SEVERITY_MAJOR},
    {"Oops: general protection fault, maybe for address 0xffff888: 0000 [#2] SMP", "os/oops", "",
     SEVERITY_MAJOR},
    {"BUG: unable to handle page fault for address: ffffc90001a0", "os/oops", "", SEVERITY_MAJOR},
    {"BUG: kernel NULL pointer dereference, address: 0000000000000008", "os/oops", "", SEVERITY_MAJOR},
    {"Unable to handle kernel paging request at virtual address dead000000000108", "os/oops", "",
     SEVERITY_MAJOR},
    {"traps: python3[1234] general protection fault ip:7f3a sp:7ffc error:0 in libtorch.so[7f3a+10]", NULL,
     NULL, 0},
    {"python3[1234]: segfault at 0 ip 00007f3a sp 00007ffc error 4 in libc.so.6[7f3a+10]", NULL, NULL, 0},

    {"mce: CPU12: Core temperature is above threshold, cpu clock is throttled (total events = 1)",
     "cpu/throttle", "cpu/12", SEVERITY_NOTICE},
    {"mce: CPU13: Package temperature is above threshold, cpu clock is throttled (total events = 17)",
     "cpu/throttle", "cpu/13", SEVERITY_NOTICE},
    {"CPU14: Package temperature above threshold, cpu clock throttled (total events = 17)", "cpu/throttle",
     "cpu/14", SEVERITY_NOTICE},
    {"thermal thermal_zone0: acpitz: critical temperature reached, shutting down", "cpu/thermal", "",
     SEVERITY_CRITICAL},
    {"mce: CPU12: Package temperature/speed normal", NULL, NULL, 0},
    {"CPU12: Package power limit normal", NULL, NULL, 0},

    {"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/a,"
     "task=Web Content,pid=25595,uid=0",
     "mem/oom", "process/Web Content", SEVERITY_MINOR},
    {"Out of memory: Killed process 1212 (python3 train.p) total-vm:1kB, anon-rss:1kB", "mem/oom",
     "process/python3 train.p", SEVERITY_MINOR},
    {"Memory cgroup out of memory: Killed process 99 ((sd-pam)) total-vm:1kB, anon-rss:1kB, UID:0", "mem/oom",
     "process/(sd-pam)", SEVERITY_MINOR},
    {"Out of memory: Kill process 7 (my proc) score 900 or sacrifice child", "mem/oom", "process/my proc",
     SEVERITY_MINOR},
    {"Memory cgroup out of memory: Killed process 4567, UID 1000, (data loader) total-vm:1kB", "mem/oom",
     "process/data loader", SEVERITY_MINOR},
    {"INFO: task data loader:77 blocked for more than 122 seconds.", "cpu/hung-task", "process/data loader",
     SEVERITY_MINOR},
    {"Out of memory (oom_kill_allocating_task): Killed process 7 (data loader) total-vm:1kB", "mem/oom",
     "process/data loader", SEVERITY_MINOR},
    {"stack segment: 0000 [#1] SMP", "os/oops", "", SEVERITY_MAJOR},
    {"invalid opcode: 0000 [#1] SMP PTI", "os/oops", "", SEVERITY_MAJOR},
    {"divide error: 0000 [#1] SMP", "os/oops", "", SEVERITY_MAJOR},
    {"BUG: Bad page state in process python3  pfn:3f8a2", "os/oops", "", SEVERITY_MAJOR},
    {"INFO: rcu_sched self-detected stall on CPU { 3}  (t=60000 jiffies)", "cpu/lockup", "", SEVERITY_MINOR},
    {"Memory failure: 0x3f8a2b: Sending SIGBUS to python:1234 due to hardware memory corruption", "edac/ue",
     "", SEVERITY_MAJOR},
    {"blk_update_request: critical target error, dev sda, sector 3", "disk/io", "disk/sda", SEVERITY_MAJOR},
    {"nvme nvme0: Device not ready; aborting reset, CSTS=0x1", "disk/failed", "disk/nvme0",
     SEVERITY_CRITICAL},
    {"BTRFS: error (device nvme1n1p1) in btrfs_commit_transaction:2377: errno=-5 IO failure", "fs/error",
     "disk/nvme1n1p1", SEVERITY_MAJOR},
    {"mlx5_core 0000:71:00.0: print_health_info:424:(pid 0): Health issue observed, firmware internal error, "
     "severity(3) ERROR:",
     "mlx5/health", "pci/0000:71:00.0", SEVERITY_MAJOR},
    {"mlx5_core 0000:72:00.0: print_health_info:424:(pid 0): Health issue observed, high temperature, "
     "severity(4) WARNING:",
     NULL, NULL, 0},
    {"mlx5_core 0000:73:00.0: temp_warn:160:(pid 1): High temperature on sensors with bit set 1 0",
     "mlx5/temperature", "pci/0000:73:00.0", SEVERITY_MAJOR},
    {"ib0: transmit timeout: latency 12345 msecs", "eth/tx-timeout", "net/ib0", SEVERITY_MINOR},
    {"NVRM: API mismatch: the client has the version 535.104.05, but NVRM: this kernel module has the "
     "version 535.54.03",
     "gpu/driver", "", SEVERITY_MAJOR},
    {"NVRM: The NVIDIA probe routine failed for 1 device(s).", "gpu/init", "", SEVERITY_MAJOR},
    {"NVRM: No NVIDIA GPU found.", "gpu/missing", "", SEVERITY_CRITICAL},
    {"NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 3", "gpu/init", "gpu/0000:3b:00.0",
     SEVERITY_MAJOR},
    {"ice 0000:01:00.0: eth5: tx_timeout: VSI_num: 7, Q 3", "eth/tx-timeout", "net/eth5", SEVERITY_MINOR},
    {"bnxt_en 0000:01:00.0 eth6: TX timeout detected, starting reset task!", "eth/tx-timeout", "net/eth6",
     SEVERITY_MINOR},
    {"mce: Fatal machine check on current CPU", "mce/uncorrected", "", SEVERITY_CRITICAL},
    {"oom_reaper: reaped process 1212 (python3), now anon-rss:0kB, file-rss:0kB", NULL, NULL, 0},

    {"pcieport 0000:5d:01.0: pciehp: Slot(12): Power fault", "pcie/power", "pci/0000:5d:01.0",
     SEVERITY_MAJOR},
    {"pcieport 0000:5d:01.0: pciehp: Slot(12): Attention button pressed", NULL, NULL, 0},
    {"pcieport 0000:5d:01.0: AER: enabled with IRQ 34", NULL, NULL, 0},
    {"NVRM: (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not responding to "
     "commands.",
     "xid/79", "", SEVERITY_CRITICAL},
};

static void judge_all(struct fixture *f, const struct sample *samples, size_t count)
{
    put(f, LOG, "6,1,1,-;booted\n");
    begin(f, "kmsg", NULL);
    look_after(f, 0);
    for (size_t i = 0; i < count; i++) {
        struct buf line BUF_CLEANUP = {0};
        buf_printf(&line, "3,%zu,%zu,-;%s", i + 2, (i + 1) * 60000000, samples[i].line);
        add_line(f, LOG, line.data);
        look_after(f, 60);
        if (!samples[i].code) {
            if (f->kept.len > 0)
                fail_msg("%s: said %s", samples[i].line, f->kept.items[0].code);
            continue;
        }
        if (f->kept.len != 1 || strcmp(f->kept.items[0].code, samples[i].code) != 0 ||
            strcmp(f->kept.items[0].place, samples[i].place) != 0)
            fail_msg("%s: %s at '%s', not %s at '%s'", samples[i].line,
                     f->kept.len ? f->kept.items[0].code : "nothing",
                     f->kept.len ? f->kept.items[0].place : "", samples[i].code, samples[i].place);
        const struct kept *kept = expect_one(f, SIGNAL_ONCE, samples[i].code, samples[i].place);
        assert_int_equal(kept->severity, samples[i].severity);
    }
}
#define JUDGE_ALL(f, samples) judge_all(f, samples, sizeof(samples) / sizeof *(samples))

static void machine_check_lines(void **state)
{
    JUDGE_ALL(*state, machine_checks);
}

static void amd_gpu_lines(void **state)
{
    JUDGE_ALL(*state, amd_gpus);
}

static void gaudi_and_ascend_lines(void **state)
{
    JUDGE_ALL(*state, gaudi_and_ascend);
}

static void kernel_lines(void **state)
{
    JUDGE_ALL(*state, the_kernel);
}

/* A slot without its card is a fault until the link is back. */
static void slots(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    add_line(f, LOG, "4,1,1,-;pcieport 0000:5d:01.0: pciehp: Slot(12): Link Down");
    add_line(f, LOG, "4,2,2,-;pcieport 0000:5d:01.0: pciehp: Slot(12): Card not present");
    look_after(f, 1);
    expect_one(f, SIGNAL_OCCUR, "pcie/link-down", "pci/0000:5d:01.0");
    add_line(f, LOG, "4,3,3,-;pcieport 0000:5d:01.0: pciehp: Slot(12): Card present");
    look_after(f, 1);
    expect_none(f);
    add_line(f, LOG, "4,4,4,-;pcieport 0000:5d:01.0: pciehp: Slot(12): Link Up");
    look_after(f, 1);
    expect_one(f, SIGNAL_RECOVER, "pcie/link-down", "pci/0000:5d:01.0");
}

/* Lines of a made-up log without a stamp, or of dmesg, are judged as well. */
static void other_forms(void **state)
{
    struct fixture *f = *state;
    put(f, LOG, "%s", "");
    begin(f, "kmsg", NULL);
    add_line(f, LOG, "[ascend] [drv_pcie] [x 1] Device is abnormal. (dev_id=5)");
    look_after(f, 1);
    expect_one(f, SIGNAL_ONCE, "gpu/lost", "npu/5");
    add_line(f, LOG, "[   12.345678] amdgpu 0000:c3:00.0: amdgpu: GPU reset begin!");
    look_after(f, 60);
    expect_one(f, SIGNAL_ONCE, "gpu/reset", "gpu/0000:c3:00.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(machine_check_lines), CASE(amd_gpu_lines), CASE(gaudi_and_ascend_lines),
        CASE(kernel_lines),        CASE(slots),         CASE(other_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
