/* bench/probes - what watching a machine costs: this one, and a made-up one like an H100 node (8 GPUs, 9
 * ports, 200 PCI devices, 32 DIMMs, 112 processors, 1,500 processes).
 *
 * One JSON object a line (bench/run gives the form). "processor": of all looks at their default periods,
 * children and forks with them, in percent of a core; the limit is that of forking as often and doing
 * nothing. "longest turn": how long one round keeps its caller. "memory": growth of the caller over 100
 * rounds.
 */
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "host/probes/probes.h"

#include "timing.h"

enum { ROUNDS = 40, ROUNDS_OF_MEMORY = 100 };

static int64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Processor time of this process and of its children that have ended. */
static double used_seconds(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const struct timeval times[] = {own.ru_utime, own.ru_stime, children.ru_utime, children.ru_stime};
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)times[i].tv_sec + (double)times[i].tv_usec / 1e6;
    return sum;
}

static double resident_mb(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0, resident = 0;
    if (file && fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void ignore(void *context, const struct signal *signal)
{
    (void)context;
    (void)signal;
}

/* All probes once; the longest time that a turn took. */
static int64_t look(struct probes *probes, int64_t at_ns)
{
    int64_t longest_ns = 0;
    probes_hurry(probes);
    do {
        int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
        probes_round(probes, at_ns, ignore, NULL);
        int64_t took_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        struct pollfd ready = {probes_fd(probes), POLLIN, 0};
        if (probes_busy(probes))
            poll(&ready, 1, 1000);
    } while (probes_busy(probes));
    return longest_ns;
}

/* Percent of a core for `times` forks each with this share of a second. */
static double forks_percent(double per_second)
{
    double before = used_seconds();
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
    }
    return (used_seconds() - before) / 100 * per_second * 100;
}

static void bench(const char *name, const char *root)
{
    struct probes_options options = {.root = root};
    struct probes *probes = probes_new(&options, NULL);
    int64_t turns[ROUNDS], at_ns = 0;
    CHECK(probes);
    double memory = resident_mb(), percent = 0, forks = 0;
    for (int i = 0; i < ROUNDS; i++)
        turns[i] = look(probes, at_ns += 60 * NS_PER_SECOND);
    for (size_t i = 0; i < probes_count(); i++) {
        struct probes_standing standing;
        probes_standing(probes, i, &standing);
        if (!standing.enabled || standing.runs == 0)
            continue;
        double seconds = (double)standing.period_ns / 1e9;
        percent += (double)standing.cost_sum_ns / (double)ROUNDS / 1e9 / seconds * 100;
        forks += standing.wall_ns > 2 * standing.cost_ns ? 1 / seconds : 0; /* it was elsewhere meanwhile */
    }
    double limit = forks_percent(forks);
    printf("{\"bench\":\"probes\",\"case\":\"%s: processor at the default "
           "periods\",\"value\":%.4f,\"unit\":\"%%\","
           "\"limit\":%.4f,\"ratio_limit\":%.2f}\n",
           name, percent, limit, limit > 0 ? percent / limit : 0);
    printf("{\"bench\":\"probes\",\"case\":\"%s: longest turn of a round\",\"value\":%.3f,\"unit\":\"ms\"}\n",
           name, (double)median_ns(turns, ROUNDS) / 1e6);
    double start = used_seconds();
    for (int i = ROUNDS; i < ROUNDS_OF_MEMORY; i++)
        look(probes, at_ns += 60 * NS_PER_SECOND);
    printf("{\"bench\":\"probes\",\"case\":\"%s: a whole round\",\"value\":%.3f,\"unit\":\"ms\"}\n", name,
           (used_seconds() - start) * 1e3 / (ROUNDS_OF_MEMORY - ROUNDS));
    printf("{\"bench\":\"probes\",\"case\":\"%s: memory growth\",\"value\":%.3f,\"unit\":\"MB\"}\n", name,
           resident_mb() - memory);
    fflush(stdout);
    probes_free(probes);
}

/* --- a made-up node ------------------------------------------------------------------------------- */

static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    CHECK(snprintf(full, sizeof full, "%s%s", root, path) < (int)sizeof full);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(full, 0755);
        *at = '/';
    }
    FILE *file = fopen(full, "we");
    CHECK(file && fputs(text, file) >= 0);
    fclose(file);
}

static void make_ports(const char *root)
{
    static const char *const counters[] = {"counters/link_downed",
                                           "counters/link_error_recovery",
                                           "counters/symbol_error",
                                           "counters/port_rcv_errors",
                                           "counters/local_link_integrity_errors",
                                           "counters/port_xmit_discards",
                                           "counters/VL15_dropped",
                                           "counters/port_rcv_constraint_errors",
                                           "hw_counters/local_ack_timeout_err",
                                           "hw_counters/rnr_nak_retry_err",
                                           "hw_counters/rx_icrc_encapsulated"};
    char path[256];
    for (int i = 0; i < 9; i++) {
        static const char *const words[][2] = {{"state", "4: ACTIVE\n"},
                                               {"phys_state", "5: LinkUp\n"},
                                               {"rate", "400 Gb/sec (4X NDR)\n"},
                                               {"link_layer", "InfiniBand\n"}};
        for (int k = 0; k < 4; k++) {
            snprintf(path, sizeof path, "/sys/class/infiniband/mlx5_%d/ports/1/%s", i, words[k][0]);
            put(root, path, words[k][1]);
        }
        for (size_t k = 0; k < sizeof counters / sizeof *counters; k++) {
            snprintf(path, sizeof path, "/sys/class/infiniband/mlx5_%d/ports/1/%s", i, counters[k]);
            put(root, path, "17\n");
        }
    }
}

static void make_devices(const char *root)
{
    static const char aer[] =
        "Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nCmpltAbrt 0\nUnxCmplt 0\n"
        "RxOF 0\nMalfTLP 0\nECRC 0\nUnsupReq 0\nACSViol 0\nUncorrIntErr 0\n"
        "BlockedTLP 0\nAtomicOpBlocked 0\nTLPBlockedErr 0\nPoisonTLPBlocked 0\nTOTAL 0\n";
    static const char *const files[][2] = {{"aer_dev_fatal", aer},
                                           {"aer_dev_nonfatal", aer},
                                           {"aer_dev_correctable", aer},
                                           {"current_link_width", "16\n"},
                                           {"current_link_speed", "32.0 GT/s PCIe\n"},
                                           {"vendor", "0x10de\n"},
                                           {"class", "0x030200\n"}};
    char path[256];
    for (int i = 0; i < 200; i++)
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            snprintf(path, sizeof path, "/sys/bus/pci/devices/0000:%02x:00.0/%s", i, files[k][0]);
            put(root, path, files[k][1]);
        }
}

static void make_rest(const char *root)
{
    char path[256], text[256];
    for (int i = 0; i < 32; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/edac/mc/mc%d/dimm%d/dimm_ce_count", i / 4, i % 4);
        put(root, path, "0\n");
        snprintf(path, sizeof path, "/sys/devices/system/edac/mc/mc%d/dimm%d/dimm_ue_count", i / 4, i % 4);
        put(root, path, "0\n");
        snprintf(path, sizeof path, "/sys/devices/system/edac/mc/mc%d/ue_count", i / 4);
        put(root, path, "0\n");
    }
    for (int i = 0; i < 112; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", i);
        put(root, path, "0\n");
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/thermal_throttle/package_throttle_count",
                 i);
        put(root, path, "0\n");
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon0/temp%d_input", i + 1);
        put(root, path, "56000\n");
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon0/temp%d_crit", i + 1);
        put(root, path, "100000\n");
    }
    for (int i = 1; i <= 1500; i++) {
        snprintf(path, sizeof path, "/proc/%d/stat", i);
        snprintf(text, sizeof text, "%d (python3) S 1 1 1 0 -1 0 1 0 0 0 5 5 0 0 20 0 1 0 %d 1000 10\n", i,
                 i);
        put(root, path, text);
    }
    put(root, "/proc/loadavg", "1.0 1.0 1.0 1/1500 9\n");
    put(root, "/proc/meminfo", "MemTotal: 2000000000 kB\nMemAvailable: 1500000000 kB\n");
    put(root, "/proc/sys/fs/file-nr", "9000\t0\t9223372036854775807\n");
    put(root, "/proc/self/mountinfo",
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n30 27 0:50 / /data rw - lustre m:/x rw\n");
    put(root, "/data/x", "x");
    put(root, "/dev/kmsg", "6,1,1,-;booted\n");
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

int main(void)
{
    const char *base = getenv("TMPDIR");
    char root[128];
    snprintf(root, sizeof root, "%.80s/phx-bench-probes-XXXXXX", base ? base : "/var/tmp");
    CHECK(mkdtemp(root));
    make_ports(root);
    make_devices(root);
    make_rest(root);
    bench("this machine", "");
    bench("H100 node, made up", root);
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
