/* kmsg_rules.c - the meaning of lines of the kernel log. */
#include "host/probes/internal.h"

enum form { ONCE, BEGIN, END };

/* The first rule that matches a line is the one that counts. */
static const struct rule {
    const char *pattern; /* match() */
    const char *code;
    const char *place; /* before the captured word number `word`; NULL: the machine */
    uint8_t word;
    enum signal_severity severity;
    enum form form;
    bool anyone; /* counts whichever process wrote it */
} rules[] = {
    {"NVRM: GPU @*GPU has fallen off the bus", "xid/79", "gpu/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"NVRM: GPU @*RmInitAdapter failed", "gpu/init", "gpu/", 0, SEVERITY_MAJOR, ONCE, false},
    {"NVRM: GPU @*rm_init_adapter failed", "gpu/init", "gpu/", 0, SEVERITY_MAJOR, ONCE, false},
    {"NVRM: API mismatch: ", "gpu/driver", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"NVRM: The NVIDIA probe routine failed for % device", "gpu/init", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"NVRM: No NVIDIA GPU found", "gpu/missing", NULL, 0, SEVERITY_CRITICAL, ONCE, false},
    {"nvidia-peermem*ERROR detected invalid context", "gpu/peermem", NULL, 0, SEVERITY_NOTICE, ONCE, false},

    {"fallen off the bus and is not responding to commands", "xid/79", NULL, 0, SEVERITY_CRITICAL, ONCE,
     false},

    {"oom-kill:constraint=*,task=&,pid=%", "mem/oom", "process/", 0, SEVERITY_MINOR, ONCE, false},
    {"ut of memory: Kill process % (&) score ", "mem/oom", "process/", 1, SEVERITY_MINOR, ONCE, false},
    {"ut of memory: Killed process % (&) total-vm:", "mem/oom", "process/", 1, SEVERITY_MINOR, ONCE, false},
    {"ut of memory: Killed process %, UID %, (&) total-vm:", "mem/oom", "process/", 2, SEVERITY_MINOR, ONCE,
     false},
    {"ut of memory: Kill process % (&)", "mem/oom", "process/", 1, SEVERITY_MINOR, ONCE, false},
    {"ut of memory: Killed process % (&)", "mem/oom", "process/", 1, SEVERITY_MINOR, ONCE, false},
    {"ut of memory (oom_kill_allocating_task): Kill* process % (&)", "mem/oom", "process/", 1, SEVERITY_MINOR,
     ONCE, false},
    {"mce: Fatal machine check", "mce/uncorrected", NULL, 0, SEVERITY_CRITICAL, ONCE, false},
    {"Uncorrected hardware memory error in user-access", "mce/uncorrected", NULL, 0, SEVERITY_CRITICAL, ONCE,
     false},
    {"Memory failure: *ecovery action for *: ", "edac/ue", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"Memory failure: *Sending SIGBUS to ", "edac/ue", NULL, 0, SEVERITY_MAJOR, ONCE, false},

    {"INFO: task & blocked for more than % seconds", "cpu/hung-task", "process/", 0, SEVERITY_MINOR, ONCE,
     false},
    {"INFO: task & blocked in I/O wait for more than % seconds", "cpu/hung-task", "process/", 0,
     SEVERITY_MINOR, ONCE, false},
    {"soft lockup - CPU#% stuck for", "cpu/lockup", "cpu/", 0, SEVERITY_MAJOR, ONCE, false},
    {"hard LOCKUP on cpu %", "cpu/lockup", "cpu/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"INFO: rcu_*self-detected stall on CPU", "cpu/lockup", NULL, 0, SEVERITY_MINOR, ONCE, false},
    {"INFO: rcu_*detected stalls on CPUs", "cpu/lockup", NULL, 0, SEVERITY_MINOR, ONCE, false},
    {"Kernel panic - not syncing", "os/panic", NULL, 0, SEVERITY_CRITICAL, ONCE, false},
    {"Oops: %", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"kernel BUG at ", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    /* Faults of the kernel itself: a fault that a process causes to itself has no "[#1]". */
    {"general protection fault*[#%", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"general protection fault, ", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {": 0000 [#%]", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false}, /* any trap of the kernel */
    {"BUG: Bad page ", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"BUG: Bad rss-counter", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"BUG: unable to handle ", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"BUG: kernel NULL pointer dereference", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"nable to handle kernel ", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"Internal error: *[#%", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"LustreError: *LBUG", "os/oops", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"ritical temperature reached", "cpu/thermal", NULL, 0, SEVERITY_CRITICAL, ONCE, false},
    {"CPU%: *temperature *above threshold, cpu clock *throttled", "cpu/throttle", "cpu/", 0, SEVERITY_NOTICE,
     ONCE, false},
    {"Marking clocksource '@' as unstable", "clock/source", NULL, 0, SEVERITY_MINOR, ONCE, false},

    {"nvme @: I/O *timeout, reset controller", "disk/timeout", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"nvme @: I/O *timeout, ", "disk/timeout", "disk/", 0, SEVERITY_MINOR, ONCE, false},
    {"nvme @: controller is down; will reset", "disk/timeout", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"nvme @: Disabling device after reset failure", "disk/failed", "disk/", 0, SEVERITY_CRITICAL, ONCE,
     false},
    {"nvme @: Device not ready; aborting", "disk/failed", "disk/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"nvme @: Removing after probe failure", "disk/failed", "disk/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"Buffer I/O error on dev @", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"Buffer I/O error on device @", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"I/O error, dev @, sector %", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"critical medium error, dev @", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"critical target error, dev @", "disk/io", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"attempt to access beyond end of device", "disk/io", NULL, 0, SEVERITY_MINOR, ONCE, false},
    {"md/raid*Disk failure on @", "disk/raid", "disk/", 0, SEVERITY_MAJOR, ONCE, false},

    {"EXT4-fs error (device @)", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"EXT4-fs (@): Remounting filesystem read-only", "mount/read-only", "disk/", 0, SEVERITY_MAJOR, ONCE,
     false},
    {"XFS (@): *orruption", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"XFS (@): *I/O error", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"XFS (@): *hut down", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"BTRFS error (device @)", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"BTRFS: error (device @)", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"BTRFS critical (device @)", "fs/error", "disk/", 0, SEVERITY_MAJOR, ONCE, false},
    {"emounting filesystem read-only", "mount/read-only", NULL, 0, SEVERITY_MAJOR, ONCE, false},
    {"Evicted from @", "lustre/evicted", "server/", 0, SEVERITY_MAJOR, ONCE, false},
    {"This client was evicted by @", "lustre/evicted", "server/", 0, SEVERITY_MAJOR, ONCE, false},
    {"Connection to @*was lost; in progress operations using this service will", "lustre/server", "server/",
     0, SEVERITY_MINOR, ONCE, false},
    {"nfs: server @ not responding", "nfs/server", "server/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"nfs: server @ OK", "nfs/server", "server/", 0, SEVERITY_MAJOR, END, false},

    {"mlx5_core @*Port module event[error]*High Temperature", "mlx5/temperature", "pci/", 0, SEVERITY_MAJOR,
     ONCE, false},
    {"mlx5_core @*High temperature on sensors", "mlx5/temperature", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*Port module event[error]", "mlx5/module", "pci/", 0, SEVERITY_MINOR, ONCE, false},
    {"mlx5_core @*Detected insufficient power on the PCIe slot", "mlx5/power", "pci/", 0, SEVERITY_MINOR,
     ONCE, false},
    {"mlx5_core @*health compromised", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*Health issue observed*severity(0)", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*Health issue observed*severity(1)", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*Health issue observed*severity(2)", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*Health issue observed*severity(3)", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*ealth recovery flow aborted", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*Fatal error % detected", "mlx5/health", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*timeout. Will cause a leak of a command resource", "mlx5/command", "pci/", 0,
     SEVERITY_MAJOR, ONCE, false},
    {"mlx5_core @*TX timeout", "mlx5/tx-timeout", "pci/", 0, SEVERITY_MINOR, ONCE, false},
    {"mlx5_core @*NETDEV WATCHDOG*timed out", "mlx5/tx-timeout", "pci/", 0, SEVERITY_MINOR, ONCE, false},
    {"NETDEV WATCHDOG: @ (@): transmit queue % timed out", "eth/tx-timeout", "net/", 0, SEVERITY_MINOR, ONCE,
     false},
    {"@: NETDEV WATCHDOG: CPU: %: transmit queue % timed out", "eth/tx-timeout", "net/", 0, SEVERITY_MINOR,
     ONCE, false},
    {"@: tx_timeout: VSI_num", "eth/tx-timeout", "net/", 0, SEVERITY_MINOR, ONCE, false},
    {"@: TX timeout detected", "eth/tx-timeout", "net/", 0, SEVERITY_MINOR, ONCE, false},
    {"@: transmit timeout: latency % msecs", "eth/tx-timeout", "net/", 0, SEVERITY_MINOR, ONCE, false},
    {"pcieport @*Slot(@): Link Down", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"pcieport @*Slot(@): Card not present", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"pcieport @*Slot(@): Cannot train link", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"pcieport @*Slot(@): Link Up", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, END, false},
    {"pcieport @*Slot(@): Power fault", "pcie/power", "pci/", 0, SEVERITY_MAJOR, ONCE, false},
    {"pciehp @: Slot(@): Link Down", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"pciehp @: Slot(@): Card not present", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"pciehp @:*Card not present on Slot(", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"pciehp @:*Slot(@): Link Down", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, BEGIN, false},
    {"pciehp @: Slot(@): Link Up", "pcie/link-down", "pci/", 0, SEVERITY_MAJOR, END, false},
    {"@: DPC: containment event", "pcie/fatal", "pci/", 0, SEVERITY_CRITICAL, ONCE, false},
    {"@: Lost carrier", "eth/carrier", "net/", 0, SEVERITY_NOTICE, ONCE, true},
};

static struct probe_place rule_place(const struct rule *rule, const struct str *captures)
{
    struct str word = captures[rule->word];
    if (!rule->place)
        return place_of("%s", "");
    if (strcmp(rule->place, "gpu/") == 0)
        return kmsg_pci_place("gpu", word);
    if (strcmp(rule->code, "cpu/hung-task") == 0) { /* name and pid: the name */
        const char *colon = memrchr(word.data, ':', word.len);
        word.len = colon && colon > word.data ? (size_t)(colon - word.data) : word.len;
    }
    return place_of("%s" STR_FORMAT, rule->place, STR_ARG(word));
}

static void judge_rules(struct probe *probe, struct str line, int64_t at_ns, bool kernel)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        struct str captures[CAPTURES_MAX] = {{0}};
        if ((!kernel && !rule->anyone) || !match(rule->pattern, line, captures))
            continue;
        struct probe_place place = rule_place(rule, captures);
        if (rule->form == ONCE)
            probe_once(probe, rule->code, place.text, rule->severity, at_ns, 1, line);
        else
            probe_condition(probe, rule->code, place.text, rule->form == BEGIN, rule->severity, STR_FORMAT,
                            STR_ARG(line));
        return;
    }
}

void kmsg_judge(struct probe *probe, struct str line, int64_t at_ns, bool kernel)
{
    if (line.len == 0)
        return;
    if (kernel && (kmsg_xid(probe, line, at_ns) || kmsg_sxid(probe, line, at_ns) ||
                   kmsg_accelerator(probe, line, at_ns) || kmsg_machine_check(probe, line, at_ns)))
        return;
    judge_rules(probe, line, at_ns, kernel);
}
