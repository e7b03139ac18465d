#include "sim/campaign.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "sim/ha/ha.h"

/* A worker's message about a seed. It is smaller than PIPE_BUF, so it arrives whole. */
struct verdict_message {
    uint64_t seed;
    struct torture_outcome outcome;
};

struct worker {
    pid_t pid; /* 0: none */
    int fd;
    uint64_t seed; /* the seed that it runs */
    bool more;
};

struct campaign {
    const struct campaign_options *options;
    struct campaign_outcome *outcome;
    struct worker workers[CAMPAIGN_JOBS_MAX];
    uint64_t next_seed; /* seeds handed out so far */
    int64_t began_ns;
};

static int64_t mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool write_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t written = write(fd, at, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        len -= (size_t)written;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t len)
{
    char *at = data;
    while (len > 0) {
        ssize_t count = read(fd, at, len);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        len -= (size_t)count;
    }
    return true;
}

static _Noreturn void work(const struct campaign_options *options, uint64_t seed, int fd)
{
    for (;; seed += options->jobs) {
        if (options->count && seed >= options->first_seed + options->count)
            _exit(0);
        struct verdict_message message = {.seed = seed};
        struct torture_options run = {.seed = seed,
                                      .steps = options->steps,
                                      .plant = options->plant,
                                      .controllers = options->controllers};
        if (run.controllers)
            ha_run(&run, &message.outcome);
        else
            torture_run(&run, &message.outcome);
        if (!write_all(fd, &message, sizeof(message)))
            _exit(0); /* the campaign no longer listens */
    }
}

static bool enough(const struct campaign *campaign)
{
    const struct campaign_options *options = campaign->options;
    uint64_t failures_max = options->failures_max ? options->failures_max : 1;
    if (campaign->outcome->failure_count >= failures_max ||
        campaign->outcome->failure_count == CAMPAIGN_FAILURES_MAX)
        return true;
    return options->time_ns && mono_ns() - campaign->began_ns >= options->time_ns;
}

static bool in_range(const struct campaign *campaign, uint64_t seed)
{
    return !campaign->options->count || seed < campaign->options->first_seed + campaign->options->count;
}

static int worker_start(struct campaign *campaign, struct worker *worker, uint64_t seed)
{
    int fds[2];
    if (pipe(fds) < 0)
        return -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close(fds[0]);
        close(fds[1]);
        return -1;
    }
    if (pid == 0) {
        close(fds[0]);
        work(campaign->options, seed, fds[1]);
    }
    close(fds[1]);
    *worker = (struct worker){.pid = pid, .fd = fds[0], .seed = seed};
    return 0;
}

static void worker_end(struct worker *worker, int *ret_status)
{
    close(worker->fd);
    while (waitpid(worker->pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    worker->pid = 0;
}

static int by_seed(const void *a, const void *b)
{
    const struct campaign_failure *first = a, *second = b;
    return first->seed < second->seed ? -1 : first->seed > second->seed;
}

static void add_failure(struct campaign *campaign, uint64_t seed, enum torture_result result, const char *why)
{
    struct campaign_outcome *outcome = campaign->outcome;
    if (outcome->failure_count == CAMPAIGN_FAILURES_MAX)
        return;
    struct campaign_failure *failure = &outcome->failures[outcome->failure_count++];
    *failure = (struct campaign_failure){.seed = seed, .result = result};
    snprintf(failure->why, sizeof(failure->why), "%s", why);
    FILE *out = campaign->options->progress;
    if (!out)
        return;
    fprintf(out, "seed %llu: %s\n", (unsigned long long)seed, why);
    fflush(out);
}

static void add_verdict(struct campaign *campaign, const struct verdict_message *message)
{
    struct campaign_outcome *sum = campaign->outcome;
    const struct torture_outcome *one = &message->outcome;
    sum->seeds++;
    sum->events += one->events;
    sum->records += one->records;
    sum->starts += one->starts;
    for (int reach = 0; reach < REACHES; reach++) {
        sum->reached[reach] += one->reached[reach];
        sum->reached_by[reach] += one->reached[reach] > 0;
    }
    for (int reach = 0; reach < HA_REACHES; reach++) {
        sum->ha[reach] += one->ha[reach];
        sum->ha_by[reach] += one->ha[reach] > 0;
    }
    sum->faults += one->faults;
    sum->boots += one->boots;
    sum->jobsets += one->jobsets;
    sum->finished += one->finished;
    sum->restarts += one->restarts;
    sum->virtual_ns += one->virtual_ns;
    if (one->result != TORTURE_OK)
        add_failure(campaign, message->seed, one->result, one->why);
    FILE *out = campaign->options->progress;
    if (out && sum->seeds % 100 == 0) {
        fprintf(out, "%llu seeds, %.1f s\n", (unsigned long long)sum->seeds,
                (double)(mono_ns() - campaign->began_ns) / 1e9);
        fflush(out);
    }
}

/* Handles the end of a worker, after its last seed or by a broken invariant. In the latter case another
 * worker continues with the seed after that. */
static int on_end(struct campaign *campaign, struct worker *worker)
{
    int status = 0;
    uint64_t seed = worker->seed;
    worker_end(worker, &status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    char why[96];
    if (WIFSIGNALED(status))
        snprintf(why, sizeof(why), "an invariant is broken: ended by signal %d (%s), see above",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(why, sizeof(why), "an invariant is broken: ended with exit code %d, see above",
                 WEXITSTATUS(status));
    campaign->outcome->seeds++;
    add_failure(campaign, seed, TORTURE_SAFETY, why);
    seed += campaign->options->jobs;
    return in_range(campaign, seed) && !enough(campaign) ? worker_start(campaign, worker, seed) : 0;
}

static int listen_once(struct campaign *campaign)
{
    struct pollfd polled[CAMPAIGN_JOBS_MAX];
    struct worker *who[CAMPAIGN_JOBS_MAX];
    nfds_t count = 0;
    for (unsigned i = 0; i < campaign->options->jobs; i++) {
        if (!campaign->workers[i].pid)
            continue;
        who[count] = &campaign->workers[i];
        polled[count++] = (struct pollfd){.fd = campaign->workers[i].fd, .events = POLLIN};
    }
    if (count == 0)
        return 0;
    if (poll(polled, count, 200) < 0 && errno != EINTR)
        return -1;
    for (nfds_t i = 0; i < count; i++) {
        if (!(polled[i].revents & (POLLIN | POLLHUP)))
            continue;
        struct verdict_message message;
        if (read_all(who[i]->fd, &message, sizeof(message))) {
            add_verdict(campaign, &message);
            who[i]->seed = message.seed + campaign->options->jobs;
        } else if (on_end(campaign, who[i]) < 0) {
            return -1;
        }
    }
    return 1;
}

int campaign_run(const struct campaign_options *options, struct campaign_outcome *ret_outcome)
{
    CHECK(options->jobs >= 1 && options->jobs <= CAMPAIGN_JOBS_MAX);
    *ret_outcome = (struct campaign_outcome){0};
    struct campaign *campaign = mem_alloc(sizeof(*campaign));
    campaign->options = options;
    campaign->outcome = ret_outcome;
    campaign->began_ns = mono_ns();
    int rc = 0;
    for (unsigned i = 0; i < options->jobs && rc == 0 && in_range(campaign, options->first_seed + i); i++)
        rc = worker_start(campaign, &campaign->workers[i], options->first_seed + i);
    while (rc == 0 && !enough(campaign)) {
        int more = listen_once(campaign);
        if (more == 0)
            break;
        rc = more < 0 ? -1 : 0;
    }
    int saved = errno, status;
    for (unsigned i = 0; i < options->jobs; i++) {
        if (!campaign->workers[i].pid)
            continue;
        kill(campaign->workers[i].pid, SIGKILL);
        worker_end(&campaign->workers[i], &status);
    }
    errno = saved;
    qsort(ret_outcome->failures, ret_outcome->failure_count, sizeof(*ret_outcome->failures), by_seed);
    ret_outcome->result = ret_outcome->failure_count ? ret_outcome->failures[0].result : TORTURE_OK;
    ret_outcome->wall_ns = mono_ns() - campaign->began_ns;
    mem_free(campaign);
    return rc;
}
