/* signal.h - an observation on a machine: the vocabulary between its observers (host/probes, external checks,
 * daemons like NodeD, people) and the fault store that judges it (core/health/).
 *
 * A signal states what happened where; the fault table (table.h) alone decides what to do about it. Codes are
 * "family/name" in lower case, the table's keys:
 *
 *   xid/N  sxid/N  sxid/N-fatal         NVIDIA driver and switch errors, by number
 *     xid/144-fatal xid/144-nonfatal    to 150: the text of an NVLink 5 code says which
 *     xid/154-none -reset -reboot -drain -drain-reset   the action that the text of 154 requires
 *   mce/corrected  mce/deferred  mce/uncorrected   machine checks
 *   edac/ce  edac/ue                    memory controllers
 *   pcie/correctable  pcie/nonfatal  pcie/fatal  pcie/link-speed  pcie/link-width  pcie/missing
 *   pcie/link-down  pcie/power
 *   ib/port-down  ib/port-flap  ib/errors  ib/missing  ib/rate
 *   eth/down  eth/flap  eth/speed  eth/carrier  eth/tx-timeout
 *   mlx5/temperature  mlx5/power  mlx5/module  mlx5/health  mlx5/tx-timeout  mlx5/command
 *   mount/missing  mount/read-only  mount/hung  mount/error
 *   fs/error  fs/full  fs/inodes  fs/health  nfs/server  lustre/server  lustre/evicted
 *   disk/timeout  disk/failed  disk/io  disk/raid  disk/smart  disk/media
 *   mem/pressure  mem/oom   cpu/lockup  cpu/hung-task  cpu/d-state  cpu/thermal  cpu/throttle
 *   os/files  os/zombies  os/load  os/panic  os/oops   clock/unsynced  clock/skew  clock/source
 *   net/retransmits
 *   os/log-lost  os/probe-cost  os/probe-hung  os/signals-lost      of the probes themselves
 *   gpu/missing  gpu/ecc-uncorrected  gpu/row-remap-failed  gpu/row-remap-pending  gpu/nvlink
 *   gpu/nvlink-errors  gpu/clocks  gpu/temperature  gpu/driver  gpu/init  gpu/peermem
 *   gpu/ecc-deferred  gpu/poison  gpu/ras  gpu/page-retired  gpu/bad-pages  gpu/page-fault  gpu/hang
 *   gpu/firmware  gpu/reset  gpu/reset-failed  gpu/lost   of any vendor's accelerator (docs/probes.md)
 *   fabric/switch-down  fabric/switch-lies  fabric/switch-alarm  fabric/link-bad   of a pod (docs/fabric.md)
 *   agent/stop                          the agent was ordered to end
 *   lemon/repeated-failures             the machine failed too often (core/lemon/lemon.h)
 *   pace/slow                           ranks are slower than their peers, or than before (pace/pace.h)
 *   hang/absent  hang/stuck  hang/silent  hang/stopped  hang/behind  hang/network   ranks of a job that hung
 *   qualify/TEST                        failed a test before work: cpu memory disk loopback gpu pair, or
 *     qualify/straggler qualify/unanswered   was far slower than its peers, gave no answer (docs/qualify.md)
 *   reset/POLICY                        requested for a rank by another system: restart-request restart
 *                                       free-reset reset isolate (docs/mindcluster.md)
 *   phalanx/suspect-machine  phalanx/unjoined   jobs failed there (core/recover/suspect.c, unjoined.c)
 *   agent/state                         the agent's state directory is missing
 *   inventory/chips                     the agent found other chips than the cluster file has
 *   check/NAME                          an external check of that name
 *   public/CODE                         reported by another system
 *
 * Places are "kind/which" below the machine: "gpu/0000:9b:00.0", "gpu/hl2", "npu/5",
 * "port/mlx5_0/1", "mount//data", "disk/nvme0n1", "dimm/mc0/dimm3", "net/eth0", "process/<task>",
 * "pci/0000:5c:00.0", "switch/0000:c1:00.0", "server/<NFS server>", "cpu/3", "sensor/hwmon1/temp1",
 * "probe/kmsg"; "" is the machine itself.
 */
#ifndef PHX_CORE_WORDS_SIGNAL_H
#define PHX_CORE_WORDS_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { SIGNAL_CODE_MAX = 63, SIGNAL_PLACE_MAX = 127, SIGNAL_EVIDENCE_MAX = 512 };

enum signal_assertion {
    SIGNAL_OCCUR = 1,   /* the condition holds until RECOVER with the same code and place */
    SIGNAL_RECOVER = 2, /* the condition has ended */
    SIGNAL_ONCE = 3,    /* a momentary event without an end */
};

/* The reporter's judgement, which is used only for codes that the table does not know. */
enum signal_severity { SEVERITY_NOTICE = 1, SEVERITY_MINOR = 2, SEVERITY_MAJOR = 3, SEVERITY_CRITICAL = 4 };

/* A plain value; strings are borrowed from the caller. */
struct signal {
    struct str code;     /* 1..SIGNAL_CODE_MAX bytes of [a-z0-9-] around one '/' */
    struct str place;    /* 0..SIGNAL_PLACE_MAX printable bytes */
    struct str evidence; /* the raw line or reading: UTF-8, at most SIGNAL_EVIDENCE_MAX bytes */
    enum signal_assertion assertion;
    enum signal_severity severity;
    int32_t chip;              /* the affected chip of this machine; -1: none or unknown */
    int64_t first_ns, last_ns; /* wall clock of the machine */
    uint32_t count;            /* number of equal signals that this one represents, at least 1 */
};

/* Returns whether the signal keeps the rules above: code, place and evidence have their forms, assertion and
 * severity are values of their enums, chip >= -1, first_ns <= last_ns, and count > 0. */
bool signal_is_valid(const struct signal *signal);
/* Makes a signal of the core itself about the whole machine: no place and no chip, with stamp `now_ns`. Code
 * and evidence are not copied. Aborts if they are not valid. */
struct signal signal_now(struct str code, enum signal_assertion assertion, enum signal_severity severity,
                         struct str evidence, int64_t now_ns);

#endif
