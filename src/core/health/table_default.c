/* table_default.c - the default meaning of each code.
 *
 * XIDs: by the immediate action in NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors). RESTART_APP and
 * IGNORE never take a machine out of service; RESET_GPU and RESTART_BM do. A code with the action
 * CONTACT_SUPPORT has no row here and follows table.h's rule for unknown codes. The high and low severities
 * of the other codes are those of Meta's health checks (arXiv 2410.21680, section on health checks). */
#include "core/health/table_default.h"

#define HOUR (3600 * NS_PER_SECOND)
#define DAY  (24 * HOUR)

/* Hardware that a restart or reset recovers; the third occurrence in a day takes the machine out for two
 * days. */
#define THRICE_A_DAY .times = 3, .window_ns = DAY, .release_ns = 2 * DAY, .frequent = LEVEL_MANUALLY_SEPARATE

/* A stalled queue that its driver restarts; the third occurrence in a day raises the level. */
#define STALLS_THRICE .times = 3, .window_ns = DAY, .release_ns = DAY, .frequent = LEVEL_PRE_SEPARATE

#define ROW(c, l, d, ...)                                                                                    \
    {                                                                                                        \
        .code = {c, sizeof(c) - 1}, .level = LEVEL_##l, .domain = DOMAIN_##d, __VA_ARGS__                    \
    }
#define HIGH(what)        .high = true, .action = {what, sizeof(what) - 1}
#define LOW(what)         .high = false, .action = {what, sizeof(what) - 1}
#define XID(n, l, d, ...) ROW("xid/" #n, l, d, __VA_ARGS__)
#define XID_RESET(n)      XID(n, RESET, HARDWARE, HIGH("reset-gpu"), THRICE_A_DAY)
#define XID_APP(n)        XID(n, RESTART_BUSINESS, USER)
#define XID_IGNORED(n)    XID(n, NOT_HANDLE, SOFTWARE)
#define XID_NVLINK(n)     XID(n, SUB_HEALTH, HARDWARE)

const struct fault_rule fault_default_rules[] = {
    /* clang-format off */
    /* RESTART_APP: the application, or one engine's context. The job restarts by itself. */
    XID_APP(8), XID_APP(11), XID_APP(13), XID_APP(25), XID_APP(31), XID_APP(32), XID_APP(39),
    XID_APP(40), XID_APP(41), XID_APP(60), XID_APP(68), XID_APP(69), XID_APP(70), XID_APP(71),
    XID_APP(72), XID_APP(75), XID_APP(76), XID_APP(77), XID_APP(80), XID_APP(82), XID_APP(83),
    XID_APP(84), XID_APP(85), XID_APP(86), XID_APP(88), XID_APP(89), XID_APP(96), XID_APP(97),
    XID_APP(98), XID_APP(99), XID_APP(100), XID_APP(101), XID_APP(102), XID_APP(103), XID_APP(104),
    XID_APP(105), XID_APP(126), XID_APP(127), XID_APP(128), XID_APP(129), XID_APP(130),
    XID_APP(131), XID_APP(132), XID_APP(133), XID_APP(134), XID_APP(135), XID_APP(139),
    /* IGNORE. 45 follows another error, 106 and 107 are test messages, 159 comes from the driver's UVM,
     * 162 to 165 concern power smoothing, 171 and 172 only qualify 48. */
    XID_IGNORED(14), XID_IGNORED(37), XID_IGNORED(38), XID_IGNORED(43), XID_IGNORED(44),
    XID_IGNORED(45), XID_IGNORED(66), XID_IGNORED(67), XID_IGNORED(78), XID_IGNORED(106),
    XID_IGNORED(107), XID_IGNORED(108), XID_IGNORED(121), XID_IGNORED(137), XID_IGNORED(141),
    XID_IGNORED(152), XID_IGNORED(153), XID_IGNORED(157), XID_IGNORED(159), XID_IGNORED(160),
    XID_IGNORED(161), XID_IGNORED(162), XID_IGNORED(163), XID_IGNORED(164), XID_IGNORED(165),
    XID_IGNORED(166), XID_IGNORED(167), XID_IGNORED(168), XID_IGNORED(169), XID_IGNORED(170),
    XID_IGNORED(171), XID_IGNORED(172),
    /* RESET_GPU. */
    XID_RESET(46), XID_RESET(62), XID_RESET(64), XID_RESET(95), XID_RESET(109), XID_RESET(110),
    XID_RESET(119), XID_RESET(120), XID_RESET(136), XID_RESET(140), XID_RESET(143), XID_RESET(155),
    XID_RESET(156), XID_RESET(158),
    /* clang-format on */
    /* RESTART_APP as well, but memory of the hardware: contained, and tolerated twice a day. */
    XID(94, RESTART_BUSINESS, HARDWARE, LOW("reset-gpu"), THRICE_A_DAY),
    /* IGNORE as well, but part of the memory's history that people want to see. */
    XID(63, SUB_HEALTH, HARDWARE),
    XID(92, SUB_HEALTH, HARDWARE, LOW("inspect")),
    XID(93, SUB_HEALTH, HARDWARE, LOW("inspect")),
    XID(48, RESET, HARDWARE, HIGH("reset-gpu"), .times = 2, .window_ns = DAY, .release_ns = 2 * DAY,
        .frequent = LEVEL_MANUALLY_SEPARATE),
    XID(54, SEPARATE, HARDWARE, HIGH("inspect")),
    XID(79, SEPARATE, HARDWARE, HIGH("reboot")),
    XID(151, SEPARATE, HARDWARE, HIGH("reboot")),
    XID(74, SEPARATE, HARDWARE, HIGH("reset-gpu")),
    /* The text of an NVLink 5 code says whether it was fatal; that of 154, which action it asks for. */
    /* clang-format off */
    XID_NVLINK(144), XID_NVLINK(145), XID_NVLINK(146), XID_NVLINK(147), XID_NVLINK(148), XID_NVLINK(149),
    XID_NVLINK(150),
    /* clang-format on */
    ROW("xid/*-nonfatal", SUB_HEALTH, HARDWARE),
    ROW("xid/*-fatal", RESET, HARDWARE, HIGH("reset-gpu"), THRICE_A_DAY),
    XID(154, SUB_HEALTH, HARDWARE),
    ROW("xid/154-none", NOT_HANDLE, HARDWARE),
    ROW("xid/154-reset", RESET, HARDWARE, HIGH("reset-gpu"), THRICE_A_DAY),
    ROW("xid/154-reboot", SEPARATE, HARDWARE, HIGH("reboot")),
    ROW("xid/154-drain", PRE_SEPARATE, HARDWARE, LOW("drain")),
    ROW("xid/154-drain-reset", FREE_RESET, HARDWARE, LOW("reset-gpu")),
    /* The text of an NVSwitch code says whether it was fatal; a fatal one ends all traffic of the link. */
    ROW("sxid/*-fatal", RESET, HARDWARE, HIGH("reset-gpu"), THRICE_A_DAY),
    ROW("sxid/*", SUB_HEALTH, HARDWARE, LOW("inspect")),

    ROW("qualify/*", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("injected/*", NOT_HANDLE, USER), /* announced by phalanx inject; the injected fault shows itself */
    ROW("agent/stop", NOT_HANDLE, USER), /* an orderly stop of the agent */
    ROW("lemon/*", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    /* Recovers a day after the last attempt that the machine ended. */
    ROW("phalanx/suspect-machine", NOT_HANDLE, UNKNOWN, LOW("inspect"), .recover_ns = DAY),
    ROW("phalanx/unjoined", SEPARATE, SOFTWARE, HIGH("inspect")),
    ROW("agent/state", SEPARATE, SOFTWARE, HIGH("inspect")),
    ROW("inventory/chips", PRE_SEPARATE, SOFTWARE, LOW("inspect")),
    ROW("mce/corrected", NOT_HANDLE, HARDWARE, .times = 9, .window_ns = HOUR, .frequent = LEVEL_PRE_SEPARATE,
        .release_ns = DAY),
    ROW("mce/deferred", SUB_HEALTH, HARDWARE, LOW("inspect")),
    ROW("mce/uncorrected", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("edac/ce", NOT_HANDLE, HARDWARE, .times = 24, .window_ns = DAY, .frequent = LEVEL_PRE_SEPARATE,
        .release_ns = DAY),
    ROW("edac/ue", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("pcie/correctable", NOT_HANDLE, HARDWARE),
    ROW("pcie/nonfatal", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("pcie/fatal", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("pcie/link-speed", SUB_HEALTH, HARDWARE, LOW("reboot")),
    ROW("pcie/link-width", SUB_HEALTH, HARDWARE, LOW("inspect")),
    ROW("pcie/link-down", PRE_SEPARATE, HARDWARE, LOW("reboot")),
    ROW("pcie/power", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("pcie/missing", SEPARATE, HARDWARE, HIGH("reboot")),

    /* MindCluster's link-down: tolerated for 20 s, over when it was up for 60 s. */
    ROW("ib/port-down", SUB_HEALTH, HARDWARE, HIGH("inspect"), .settle_ns = 20 * NS_PER_SECOND,
        .recover_ns = 60 * NS_PER_SECOND, .lasting = LEVEL_SEPARATE, .times = 5, .window_ns = DAY,
        .release_ns = 2 * DAY, .frequent = LEVEL_MANUALLY_SEPARATE),
    ROW("ib/port-flap", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("ib/errors", SUB_HEALTH, HARDWARE),
    ROW("ib/missing", SEPARATE, HARDWARE, HIGH("reboot")),
    ROW("ib/rate", SUB_HEALTH, HARDWARE, LOW("inspect")),
    ROW("eth/down", SUB_HEALTH, HARDWARE, HIGH("inspect"), .settle_ns = 20 * NS_PER_SECOND,
        .recover_ns = 60 * NS_PER_SECOND, .lasting = LEVEL_PRE_SEPARATE),
    ROW("eth/flap", SUB_HEALTH, HARDWARE),
    ROW("eth/speed", SUB_HEALTH, HARDWARE, LOW("inspect")),
    ROW("eth/carrier", NOT_HANDLE, HARDWARE),
    ROW("eth/tx-timeout", SUB_HEALTH, HARDWARE, LOW("inspect"), STALLS_THRICE),
    ROW("net/retransmits", SUB_HEALTH, HARDWARE, LOW("inspect")),
    ROW("mlx5/temperature", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("mlx5/power", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("mlx5/module", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("mlx5/tx-timeout", SUB_HEALTH, HARDWARE, LOW("inspect"), STALLS_THRICE),
    ROW("mlx5/command", PRE_SEPARATE, HARDWARE, LOW("reboot")),
    ROW("mlx5/health", SEPARATE, HARDWARE, HIGH("reboot")),

    ROW("mount/missing", SEPARATE, SOFTWARE, HIGH("remount")),
    ROW("mount/read-only", SEPARATE, SOFTWARE, HIGH("remount")),
    ROW("mount/hung", SEPARATE, SOFTWARE, HIGH("remount")),
    ROW("mount/error", PRE_SEPARATE, SOFTWARE, LOW("remount")),
    ROW("fs/error", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("fs/full", PRE_SEPARATE, SOFTWARE, LOW("clean")),
    ROW("fs/inodes", PRE_SEPARATE, SOFTWARE, LOW("clean")),
    ROW("fs/health", PRE_SEPARATE, SOFTWARE, LOW("inspect")),
    ROW("nfs/server", SUB_HEALTH, SOFTWARE),
    ROW("lustre/server", SUB_HEALTH, SOFTWARE),
    ROW("lustre/evicted", SUB_HEALTH, SOFTWARE), /* open files fail; the client recovers by itself */
    ROW("disk/timeout", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("disk/failed", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("disk/io", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("disk/raid", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("disk/smart", PRE_SEPARATE, HARDWARE, LOW("inspect")),
    ROW("disk/media", SUB_HEALTH, HARDWARE, LOW("inspect")),

    ROW("mem/pressure", SUB_HEALTH, SOFTWARE),
    ROW("mem/oom", NOT_HANDLE, USER),
    ROW("cpu/lockup", PRE_SEPARATE, SOFTWARE, LOW("reboot")),
    ROW("cpu/hung-task", SUB_HEALTH, SOFTWARE, .settle_ns = 600 * NS_PER_SECOND,
        .lasting = LEVEL_PRE_SEPARATE),
    ROW("cpu/d-state", SUB_HEALTH, SOFTWARE, .settle_ns = 600 * NS_PER_SECOND, .lasting = LEVEL_PRE_SEPARATE),
    ROW("cpu/thermal", SUB_HEALTH, HARDWARE),
    ROW("cpu/throttle", SUB_HEALTH, HARDWARE),
    ROW("os/files", SUB_HEALTH, SOFTWARE),
    ROW("os/zombies", NOT_HANDLE, SOFTWARE),
    ROW("os/load", NOT_HANDLE, SOFTWARE),
    ROW("os/oops", PRE_SEPARATE, SOFTWARE, LOW("reboot")),
    ROW("os/log-lost", NOT_HANDLE, SOFTWARE),
    ROW("os/probe-cost", NOT_HANDLE, SOFTWARE),
    ROW("os/probe-hung", SUB_HEALTH, SOFTWARE),
    ROW("os/signals-lost", NOT_HANDLE, SOFTWARE),
    ROW("os/panic", SEPARATE, SOFTWARE, HIGH("reboot")),
    ROW("clock/unsynced", NOT_HANDLE, SOFTWARE),
    ROW("clock/skew", SUB_HEALTH, SOFTWARE),
    ROW("clock/source", SUB_HEALTH, SOFTWARE),

    ROW("pace/slow", SUB_HEALTH, HARDWARE, LOW("inspect")),

    /* Ranks for which the rest of their job waited (hang/hang.h). */
    ROW("hang/stuck", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("hang/silent", SEPARATE, UNKNOWN, HIGH("inspect")),
    ROW("hang/stopped", SEPARATE, UNKNOWN, HIGH("inspect")),
    ROW("hang/absent", PRE_SEPARATE, UNKNOWN, LOW("inspect")),
    ROW("hang/behind", PRE_SEPARATE, UNKNOWN, LOW("inspect")),
    ROW("hang/network", SUB_HEALTH, HARDWARE, LOW("inspect")),
    ROW("hang/undecided", SUB_HEALTH, UNKNOWN, LOW("inspect")),

    ROW("gpu/missing", SEPARATE, HARDWARE, HIGH("reboot")),
    ROW("gpu/ecc-uncorrected", RESET, HARDWARE, HIGH("reset-gpu"), THRICE_A_DAY),
    ROW("gpu/ecc-deferred", SUB_HEALTH, HARDWARE),
    ROW("gpu/poison", RESTART_BUSINESS, HARDWARE, LOW("reset-gpu"), THRICE_A_DAY),
    ROW("gpu/ras", SUB_HEALTH, HARDWARE),
    ROW("gpu/page-retired", SUB_HEALTH, HARDWARE),
    ROW("gpu/bad-pages", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("gpu/page-fault", RESTART_BUSINESS, USER),
    ROW("gpu/hang", RESTART_BUSINESS, UNKNOWN),
    ROW("gpu/firmware", RESET, HARDWARE, HIGH("reset-gpu"), THRICE_A_DAY),
    ROW("gpu/reset", RESTART_BUSINESS, UNKNOWN), /* a reset by the driver, which continues to work */
    ROW("gpu/reset-failed", SEPARATE, HARDWARE, HIGH("reboot")),
    ROW("gpu/lost", SEPARATE, HARDWARE, HIGH("reboot")),
    ROW("gpu/row-remap-failed", SEPARATE, HARDWARE, HIGH("inspect")),
    ROW("gpu/row-remap-pending", FREE_RESET, HARDWARE, LOW("reset-gpu")),
    ROW("gpu/nvlink", SEPARATE, HARDWARE, HIGH("reset-gpu")),
    ROW("gpu/nvlink-errors", SUB_HEALTH, HARDWARE),
    ROW("gpu/driver", SEPARATE, SOFTWARE, HIGH("reboot")),
    ROW("gpu/init", SEPARATE, HARDWARE, HIGH("reboot")),
    ROW("gpu/peermem", SUB_HEALTH, SOFTWARE),
    ROW("gpu/clocks", SUB_HEALTH, HARDWARE),
    ROW("gpu/temperature", SUB_HEALTH, HARDWARE),

    /* Switches and optical links of a pod (core/react/fabric_faults.c): slices keep away by themselves. */
    ROW("fabric/switch-down", SEPARATE, NETWORK, HIGH("repair-switch")),
    ROW("fabric/switch-lies", SEPARATE, NETWORK, HIGH("replace-switch")),
    ROW("fabric/switch-alarm", SUB_HEALTH, NETWORK, LOW("inspect-switch")),
    ROW("fabric/wrong-wire", SUB_HEALTH, NETWORK, LOW("check-fibres")),
    ROW("fabric/link-bad", PRE_SEPARATE, NETWORK, LOW("clean-or-replace-fibre")),

    /* Requests of MindCluster's reset.json: the level is that of the policy. */
    ROW("reset/restart-request", RESTART_REQUEST, HARDWARE, .high = true),
    ROW("reset/restart", RESTART_BUSINESS, HARDWARE, .high = true),
    ROW("reset/free-reset", FREE_RESET, HARDWARE, LOW("reset-gpu")),
    ROW("reset/reset", RESET, HARDWARE, HIGH("reset-gpu")),
    ROW("reset/isolate", SEPARATE, HARDWARE, HIGH("inspect")),
};
const size_t fault_default_rule_count = sizeof(fault_default_rules) / sizeof(*fault_default_rules);

/* A port that goes down together with its device or its PCIe link will not recover. */
const struct fault_relation fault_default_relations[] = {
    {{"ib/port-down", 12}, {"pcie/fatal", 10}, 300 * NS_PER_SECOND, LEVEL_SEPARATE},
    {{"ib/port-down", 12}, {"ib/missing", 10}, 300 * NS_PER_SECOND, LEVEL_SEPARATE},
};
const size_t fault_default_relation_count =
    sizeof(fault_default_relations) / sizeof(*fault_default_relations);
