/* bench/tiers: what keeping the state in every tier costs a training, in processor time and in speed.
 *
 * Two ranks with 100 MB of state each (ranks.h), storage in TMPDIR (else /var/tmp). Two ranks keep two cores
 * busy, as the host of accelerators never is, so all that runs behind the loop takes its time from it.
 *
 * Processor time of a GB of state: both ranks', from the call until it counts, without the copy into memory
 * for the peer and storage; beside a memcpy, a plain TCP stream (both its ends), a write past the page cache.
 *
 * The loop is a sum over memory, a change of every page of the state, a barrier. With intervals that the
 * library chooses (PHX_AUTO; docs/ettr.md), each hold with a copy at the peer, as a job of 16,384 machines
 * has them: a failure every 811 s, the most that one is expected to meet. They are as long as what a
 * checkpoint costs makes them; rows of their own say how long. The first 22 s, in which the library learns
 * what that is, are not measured. Then ten times as dense as any job would: memory every 50 steps, peer at
 * the 100th, storage at the 200th. Others on the computer are in all of it: the slow-down compares steps with
 * those just before them, processor time is what the loop's two processes need more with all tiers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "ranks.h"

enum { ROUNDS = 7, WARM = 3, LOOPS = 3, DENSE_WARM = 6, DENSE_STEPS = 200, STEP_MS = 10 };
enum { OFF_S = 6, WARM_S = 22, ON_S = 55, MTTF_S = 811 };

static char storage[256];
static uint64_t warm_steps, loop_steps; /* the former are not measured */
static unsigned where;
static struct {
    double copy_ms, stream_ms, write_ms; /* processor time for one state */
} limits;

static void print(const char *name, double value, const char *unit, double limit)
{
    printf("{\"bench\":\"tiers\",\"case\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", name, value, unit);
    if (limit > 0)
        printf(",\"limit\":%.4g,\"ratio_limit\":%.4g", limit, value / limit);
    printf("}\n");
    fflush(stdout);
}

static double of_rusage(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

/* Processor time of this process, ms. */
static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- the processor's time of each tier ---- */

/* As an optimizer does: every page is another one than before. */
static void change_state(uint64_t step)
{
    for (size_t i = 0; i < STATE_BYTES; i += 4096)
        ranks_state[i] = (uint8_t)(step + i);
}

/* Takes a checkpoint, and waits until it counts in all of these tiers. */
static void keep_state(phx_context *ctx, uint64_t step, unsigned tiers)
{
    struct phx_error error;
    ranks_check(phx_checkpoint_take(ctx, step, tiers, &error), &error);
    ranks_check(phx_checkpoint_held(ctx, step, -1, &error), &error);
    if (tiers == PHX_IN_PEER)
        ranks_check(phx_checkpoint_copied(ctx, step, -1, &error), &error);
    if ((tiers & PHX_IN_STORAGE) != 0)
        ranks_check(phx_checkpoint_wait(ctx, step, -1, &error), &error);
}

/* out[round]: sum of both ranks, ms. */
static void keep_states(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    phx_context *ctx = ranks_join(rank, attempt, port);
    for (uint64_t step = 1; step <= ROUNDS + WARM; step++) { /* the first ones make the memory */
        change_state(step);
        ranks_check(phx_barrier(ctx, -1, &error), &error);
        double begin = cpu_ms();
        keep_state(ctx, step, where);
        ranks_check(phx_barrier(ctx, -1, &error), &error);
        if (step > WARM)
            out[(step - WARM - 1) * RANKS + rank] = cpu_ms() - begin;
    }
    phx_close(ctx);
}

/* Measures the processor time for one rank's state. */
static double tier_cpu_ms(unsigned tier, uint32_t *attempt)
{
    double out[ROUNDS * RANKS], sums[ROUNDS];
    where = tier;
    ranks_run(keep_states, (*attempt)++, out, ROUNDS * RANKS);
    for (int round = 0; round < ROUNDS; round++)
        sums[round] = (out[round * RANKS] + out[round * RANKS + 1]) / RANKS;
    ranks_lose_machine(0);
    ranks_lose_machine(1);
    ranks_remove(storage);
    return median(sums, ROUNDS);
}

static double copy_cpu_ms(uint8_t *copy)
{
    double begin = cpu_ms();
    memcpy(copy, ranks_state, STATE_BYTES);
    return cpu_ms() - begin;
}

static double stream_cpu_ms(void)
{
    double begin = of_rusage(RUSAGE_CHILDREN) + of_rusage(RUSAGE_SELF);
    ranks_stream_ms();
    return of_rusage(RUSAGE_CHILDREN) + of_rusage(RUSAGE_SELF) - begin;
}

/* Past the page cache where the file system can. */
static double write_cpu_ms(const uint8_t *aligned)
{
    char path[300];
    snprintf(path, sizeof path, "%s.plain", storage);
    double begin = cpu_ms();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_DIRECT, 0600);
    if (fd < 0 && errno == EINVAL)
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t at = 0; fd >= 0 && at < STATE_BYTES / 4096 * 4096;) {
        size_t left = STATE_BYTES / 4096 * 4096 - at;
        ssize_t written = write(fd, aligned + at, left < 4 << 20 ? left : 4 << 20);
        if (written <= 0)
            break;
        at += (size_t)written;
    }
    if (fd < 0 || fsync(fd) != 0)
        exit(1);
    close(fd);
    double ms = cpu_ms() - begin;
    unlink(path);
    return ms;
}

static void bench_cpu(uint32_t *attempt)
{
    double copies[ROUNDS], streams[ROUNDS], writes[ROUNDS], gb = STATE_BYTES / 1e9;
    uint8_t *copy = aligned_alloc(4096, (STATE_BYTES / 4096 + 1) * 4096);
    if (copy == NULL)
        exit(1);
    memset(copy, 1, STATE_BYTES);
    for (int round = 0; round < ROUNDS; round++)
        copies[round] = copy_cpu_ms(copy); /* before a fork, after which each page of it takes a fault */
    for (int round = 0; round < ROUNDS; round++) {
        streams[round] = stream_cpu_ms();
        writes[round] = write_cpu_ms(copy);
    }
    free(copy);
    double held = tier_cpu_ms(PHX_IN_MEMORY, attempt), peer = tier_cpu_ms(PHX_IN_PEER, attempt),
           stored = tier_cpu_ms(PHX_IN_MEMORY | PHX_IN_STORAGE, attempt);
    limits.copy_ms = median(copies, ROUNDS);
    limits.stream_ms = median(streams, ROUNDS);
    limits.write_ms = median(writes, ROUNDS);
    print("processor, memory", held / gb, "ms/GB", limits.copy_ms / gb);
    print("processor, peer, both ends", (peer - held) / gb, "ms/GB", limits.stream_ms / gb);
    print("processor, storage", (stored - held) / gb, "ms/GB", limits.write_ms / gb);
}

/* ---- the loop ---- */

/* Results of rank 0 (OUT_CPU_MS: its own and, behind it, the other rank's), then the time of each measured
 * step, followed by the time of the checkpoint behind it; negative if there was one. */
enum { STEPS_MAX = 20000 };
enum { OUT_MS, OUT_KEPT, OUT_SAVED, OUT_CPU_MS, OUT_STEPS = OUT_CPU_MS + RANKS };
enum { OUT_COUNT = OUT_STEPS + STEPS_MAX };

/* BEHIND_STEPS steps after a checkpoint may be slower because of it; QUIET_STEPS before it tell the usual
 * time. */
enum { BEHIND_STEPS = 60, QUIET_STEPS = 200 };

struct train {
    double *out;
    double began_ms, began_cpu_ms, step_ms; /* when they began */
    double *own_cpu_ms;
    uint64_t step;
    bool kept;
};

static uint64_t make_sum(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WORK_BYTES; i++)
        sum = sum * 31 + ranks_work[i];
    return sum;
}

static int make_step(phx_context *ctx, uint64_t step, struct phx_error *error)
{
    volatile uint64_t sum = make_sum();
    (void)sum;
    change_state(step);
    return phx_barrier(ctx, -1, error);
}

/* Is it one of those that are measured? Not the last one: what is kept behind it belongs to no interval. */
static bool is_measured(uint64_t step)
{
    return step >= warm_steps && step + 1 < loop_steps;
}

static int train_step(void *job, phx_context *ctx, uint64_t step, struct phx_error *error)
{
    struct train *train = job;
    double now = now_ms(), took = now - train->step_ms;
    if (step > warm_steps && is_measured(train->step))
        train->out[OUT_STEPS + train->step - warm_steps] = train->kept ? -took : took;
    train->step = step;
    train->step_ms = now;
    train->kept = false;
    if (step == warm_steps) {
        train->began_ms = now;
        train->began_cpu_ms = cpu_ms();
    }
    if (step + 1 == loop_steps) {
        train->out[OUT_MS] = now - train->began_ms;
        *train->own_cpu_ms = cpu_ms() - train->began_cpu_ms;
    }
    return make_step(ctx, step, error);
}

static int count_kept(void *job, phx_context *ctx, struct phx_error *error)
{
    struct train *train = job;
    (void)ctx, (void)error;
    train->out[OUT_KEPT] += is_measured(train->step);
    train->kept = true;
    return 0;
}

/* Counts the saved checkpoints; none was deleted, so these are all that were made. */
static double count_saved(void)
{
    double saved = 0;
    DIR *dir = opendir(storage);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, "step-", 5) == 0)
            saved += is_measured(strtoull(entry->d_name + 5, NULL, 10) - 1);
    if (dir != NULL)
        closedir(dir);
    return saved;
}

static void train(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    static double ignored[OUT_COUNT];
    struct train train = {.out = rank == 0 ? out : ignored, .own_cpu_ms = &out[OUT_CPU_MS + rank]};
    struct phx_loop loop = {
        .size = sizeof loop, .steps = loop_steps, .job = &train, .step = train_step, .fetch = count_kept};
    phx_context *ctx = ranks_join(rank, attempt, port);
    if (where != 0)
        loop.hold_every = loop.save_every = PHX_AUTO;
    ranks_check(phx_run_steps(ctx, &loop, &error), &error);
    if (where != 0)
        ranks_check(phx_checkpoint_wait(ctx, loop_steps, -1, &error), &error);
    ranks_check(phx_barrier(ctx, -1, &error), &error);
    if (rank == 0)
        out[OUT_SAVED] = count_saved();
    phx_close(ctx);
}

struct speed {
    double ms, cpu_ms; /* a step; the latter both ranks' */
};

/* With what the library chooses, or nothing; for some seconds behind those that are not measured. */
static struct speed run_chosen(bool tiers, double step_ms, double warm_s, double measured_s,
                               uint32_t *attempt, double out[OUT_COUNT])
{
    where = tiers ? PHX_IN_PEER : 0;
    warm_steps = (uint64_t)(warm_s * 1e3 / step_ms) + 1;
    uint64_t measured = (uint64_t)(measured_s * 1e3 / step_ms) + 1;
    loop_steps = warm_steps + 1 + (measured < STEPS_MAX ? measured : STEPS_MAX);
    ranks_remove(storage);
    ranks_lose_machine(0);
    ranks_lose_machine(1);
    ranks_run(train, (*attempt)++, out, OUT_COUNT);
    double steps = (double)(loop_steps - 1 - warm_steps);
    return (struct speed){out[OUT_MS] / steps, (out[OUT_CPU_MS] + out[OUT_CPU_MS + 1]) / steps};
}

/* Returns the mean time of the earlier steps that no checkpoint slowed down. */
static double mean_of_quiet(const double *steps, size_t at)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = at; i > 0 && count < QUIET_STEPS; i--) {
        size_t quiet = 0;
        while (quiet < BEHIND_STEPS && quiet < i && steps[i - 1 - quiet] > 0)
            quiet++;
        if (quiet < BEHIND_STEPS)
            continue;
        sum += steps[i - 1];
        count++;
    }
    return count > 0 ? sum / (double)count : 0;
}

/* Returns how much longer the steps at and after a checkpoint take than those before it, as a share of all
 * time. Other load on this computer is in both. */
static double slow_down_of(const double *steps, size_t count)
{
    double all = 0, longer = 0, quiet = 0;
    size_t behind = BEHIND_STEPS;
    for (size_t i = 0; i < count; i++) {
        all += fabs(steps[i]);
        if (steps[i] < 0) {
            quiet = behind < BEHIND_STEPS ? quiet : mean_of_quiet(steps, i);
            behind = 0;
        }
        if (behind < BEHIND_STEPS && quiet > 0)
            longer += fabs(steps[i]) - quiet;
        behind++;
    }
    return longer / (all - longer);
}

/* The loops without stand on both sides of that with all tiers: computers change their speed. */
static void bench_chosen(uint32_t *attempt)
{
    static double out[OUT_COUNT];
    struct speed first = run_chosen(false, STEP_MS, 1, 1, attempt, out);
    first = run_chosen(false, first.ms, 1, OFF_S, attempt, out);
    struct speed last = first;
    setenv("PHX_PEER_EVERY", "1", 1);
    struct speed on = run_chosen(true, first.ms, WARM_S, ON_S, attempt, out);
    unsetenv("PHX_PEER_EVERY");
    double seconds = out[OUT_MS] / 1e3, kept = out[OUT_KEPT], saved = out[OUT_SAVED];
    double slow_down = slow_down_of(out + OUT_STEPS, (size_t)(loop_steps - 1 - warm_steps));
    last = run_chosen(false, first.ms, 1, OFF_S, attempt, out);
    double limit_ms = kept * (limits.copy_ms + limits.stream_ms) + saved * limits.write_ms;
    double limit = limit_ms / (seconds * 1e3) * 100, off_ms = (first.ms + last.ms) / 2,
           off_cpu_ms = (first.cpu_ms + last.cpu_ms) / 2;
    print("chosen: between holds, each with a copy at the peer", seconds / kept, "s", 0);
    print("chosen: between saves to storage", seconds / saved, "s", 0);
    print("slow-down, intervals chosen", slow_down * 100, "%", limit);
    print("beside the same loop without, before and behind", (on.ms / off_ms - 1) * 100, "%", limit);
    print("in processor time, intervals chosen", (on.cpu_ms / off_cpu_ms - 1) * 100, "%", limit);
}

/* Without and with all tiers; out[0], out[1]: ms; behind them each rank's processor time. */
static void train_densely(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    phx_context *ctx = ranks_join(rank, attempt, port);
    uint64_t step = 0;
    while (step < DENSE_WARM) { /* the first ones make the memory of all slots */
        change_state(step++);
        keep_state(ctx, step, PHX_IN_PEER);
    }
    for (uint32_t tiers = 0; tiers < 2; tiers++) {
        double begin = now_ms(), begin_cpu = cpu_ms();
        for (int i = 1; i <= DENSE_STEPS; i++) {
            ranks_check(make_step(ctx, step++, &error), &error);
            unsigned to = i % 200 == 0   ? PHX_IN_MEMORY | PHX_IN_STORAGE
                          : i % 100 == 0 ? PHX_IN_PEER
                                         : PHX_IN_MEMORY;
            if (tiers == 1 && i % 50 == 0)
                ranks_check(phx_checkpoint_take(ctx, step, to, &error), &error);
        }
        if (tiers == 1)
            ranks_check(phx_checkpoint_wait(ctx, step, -1, &error), &error);
        if (rank == 0)
            out[tiers] = now_ms() - begin;
        out[2 + 2 * rank + tiers] = cpu_ms() - begin_cpu;
    }
    ranks_check(phx_barrier(ctx, -1, &error), &error);
    phx_close(ctx);
}

static void bench_dense(uint32_t *attempt)
{
    double ratios[LOOPS], cpu_ratios[LOOPS], out[2 + 2 * RANKS], off = 0;
    for (int round = 0; round < LOOPS; round++) {
        ranks_remove(storage);
        ranks_lose_machine(0);
        ranks_lose_machine(1);
        ranks_run(train_densely, (*attempt)++, out, 2 + 2 * RANKS);
        ratios[round] = out[1] / out[0];
        cpu_ratios[round] = (out[3] + out[5]) / (out[2] + out[4]);
        off = out[0];
    }
    double limit_ms = 4 * limits.copy_ms + limits.stream_ms + limits.write_ms;
    print("dense: between holds", off / DENSE_STEPS * 50 / 1e3, "s", 0);
    print("slow-down, dense", (median(ratios, LOOPS) - 1) * 100, "%", limit_ms / off * 100);
    print("in processor time, dense", (median(cpu_ratios, LOOPS) - 1) * 100, "%", limit_ms / off * 100);
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    char mttf[16];
    uint32_t attempt = 1;
    snprintf(storage, sizeof storage, "%s/phalanx-bench-XXXXXX", parent ? parent : "/var/tmp");
    if (!mkdtemp(storage))
        return 1;
    ranks_init(storage);
    snprintf(mttf, sizeof mttf, "%d", MTTF_S);
    setenv("PHX_MTTF_S", mttf, 1);
    setenv("PHX_CHECKPOINT_KEEP", "last=64", 1);
    bench_cpu(&attempt);
    bench_dense(&attempt);
    bench_chosen(&attempt);
    ranks_remove(storage);
    ranks_remove(ranks_root);
    return 0;
}
