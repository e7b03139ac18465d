/* preflight_pairs.c - tests of a gang's machines in pairs, in two rounds: neighbours; then the fastest
 * with the slowest, so that a bad machine meets a good one. A machine is bad only if it failed with each
 * partner; it is a straggler if even its better time is more than twice the median (DLRover's rule; the
 * cluster file may have another factor).
 *
 * A round has an epoch, which both ends must send, and a deadline: the time-out of its errands. Ends that are
 * out of step (of a round that was given up, or of an agent that began late) therefore fail by time-out. */
#include <stdlib.h>

#include "doc/json.h"
#include "core/gang/preflight.h"

enum { MEMBERS_MIN = 4, STRAGGLER_MEMBERS_MIN = 3 };

static int round_of(const struct preflight *preflight)
{
    CHECK(preflight->phase == PREFLIGHT_NEIGHBOURS || preflight->phase == PREFLIGHT_EXTREMES);
    return preflight->phase - PREFLIGHT_NEIGHBOURS;
}

static struct paired *member_of(const struct preflight *preflight, machine_id machine)
{
    for (size_t i = 0; i < preflight->members.len; i++)
        if (preflight->members.items[i].machine == machine)
            return &preflight->members.items[i];
    return NULL;
}

/* --- a round -------------------------------------------------------------------------------------------- */

static void put_end(struct json_writer *json, bool listens, struct str address, int64_t port)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, STR_FORMAT ":%lld", STR_ARG(address), (long long)port);
    json_pair_str(json, listens ? "listen" : "connect", buf_str(&text));
}

/* Begins one end of a pair. Its deadline precedes the errand's time-out, so the agent can report the end. */
static obj_id begin_end(struct step *step, const struct gang *gang, const struct pair *pair, int end)
{
    const struct qualification *settings = &step->cluster->qualification;
    const struct machine *machine = &step->cluster->machines[pair->machines[end]];
    const struct machine *listener = &step->cluster->machines[pair->machines[0]];
    int64_t seconds = settings->pair_timeout_ns / NS_PER_SECOND;
    struct buf body BUF_CLEANUP = {0};
    struct json_writer json = {.out = &body};
    json_begin_object(&json);
    put_end(&json, end == 0, listener->address,
            settings->pair_port + (int64_t)(step->seq % QUALIFY_PAIR_PORTS));
    json_pair_int(&json, "epoch", (int64_t)(step->seq & INT64_MAX));
    json_pair_int(&json, "deadline", seconds > 0 ? seconds : 1);
    json_key(&json, "golden");
    json_put_raw(&json, qualify_class_of(settings, machine)->golden);
    json_end_object(&json);
    return errand_begin(step,
                        &(struct errand_order){.machine = machine->id,
                                               .kind = ERRAND_PAIR,
                                               .owner = ERRAND_OF_PREFLIGHT,
                                               .about = gang->uid,
                                               .tag = (uint32_t)end,
                                               .body = buf_str(&body),
                                               .timeout_ns = settings->pair_timeout_ns + 2 * NS_PER_SECOND});
}

static void begin_pair(struct step *step, struct gang *gang, machine_id a, machine_id b)
{
    CHECK(a != b);
    struct preflight *preflight = gang->preflight;
    struct pair pair = {.machines = {a < b ? a : b, a < b ? b : a}};
    int round = round_of(preflight);
    for (int end = 0; end < 2; end++) {
        pair.errands[end] = begin_end(step, gang, &pair, end);
        struct paired *member = member_of(preflight, pair.machines[end]);
        CHECK(member && member->partners[round] == MACHINE_NONE);
        member->partners[round] = pair.machines[1 - end];
    }
    vec_push(&preflight->pairs, pair);
}

/* --- members -------------------------------------------------------------------------------------------- */

static bool may_take_part(const struct step *step, const struct machine *machine)
{
    return machine->state == MACHINE_READY && machine->errands && preflight_is_quiet(step, machine);
}

static void add_members(struct step *step, struct gang *gang, bool wanting, size_t most)
{
    struct preflight *preflight = gang->preflight;
    for (size_t i = 0; i < preflight->machines.len && preflight->members.len < most; i++) {
        const struct machine *machine = &step->cluster->machines[preflight->machines.items[i]];
        if (preflight_is_valid(step, gang, machine->paired_ns) != wanting && may_take_part(step, machine)) {
            struct paired member = {machine->id, {-1, -1}, {MACHINE_NONE, MACHINE_NONE}};
            vec_push(&preflight->members, member);
        }
    }
}

static int compare_members(const void *a, const void *b)
{
    machine_id x = ((const struct paired *)a)->machine, y = ((const struct paired *)b)->machine;
    return (x > y) - (x < y);
}

bool preflight_pairs_begin(struct step *step, struct gang *gang)
{
    struct preflight *preflight = gang->preflight;
    vec_clear(&preflight->members);
    vec_clear(&preflight->pairs);
    add_members(step, gang, true, SIZE_MAX);
    if (preflight->members.len == 0)
        return false;
    if (preflight->members.len < MEMBERS_MIN)
        add_members(step, gang, false, MEMBERS_MIN);
    if (preflight->members.len < 2)
        return false;
    qsort(preflight->members.items, preflight->members.len, sizeof *preflight->members.items,
          compare_members);
    preflight->phase = PREFLIGHT_NEIGHBOURS;
    for (size_t i = 0; i + 1 < preflight->members.len; i += 2)
        begin_pair(step, gang, preflight->members.items[i].machine, preflight->members.items[i + 1].machine);
    return true;
}

/* --- the second round ----------------------------------------------------------------------------------- */

/* Returns the sort key of the second round: failures count as slowest but for machines without a time, which
 * come last, to be paired with the fastest. */
static int64_t slowness(const struct paired *member)
{
    return member->times_ns[0] > 0    ? member->times_ns[0]
           : member->times_ns[0] == 0 ? INT64_MAX - 1
                                      : INT64_MAX;
}

static int compare_slowness(const void *a, const void *b)
{
    const struct paired *x = *(struct paired *const *)a, *y = *(struct paired *const *)b;
    int64_t i = slowness(x), k = slowness(y);
    if (i != k)
        return i < k ? -1 : 1;
    return (x->machine > y->machine) - (x->machine < y->machine);
}

/* Begins the second round. With an odd number of machines, the one in the middle has no part. */
static void begin_extremes(struct step *step, struct gang *gang)
{
    CHECK(gang->preflight->phase == PREFLIGHT_NEIGHBOURS && gang->preflight->members.len > 1);
    struct preflight *preflight = gang->preflight;
    size_t count = preflight->members.len;
    struct paired **order = mem_alloc(count * sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = &preflight->members.items[i];
    qsort(order, count, sizeof *order, compare_slowness);
    preflight->phase = PREFLIGHT_EXTREMES;
    vec_clear(&preflight->pairs);
    for (size_t i = 0; i < count / 2; i++)
        begin_pair(step, gang, order[i]->machine, order[count - 1 - i]->machine);
    mem_free(order);
}

/* --- the judgement -------------------------------------------------------------------------------------- */

static bool failed_all(const struct paired *member, int *ret_rounds)
{
    bool failed = true;
    *ret_rounds = 0;
    for (int r = 0; r < PREFLIGHT_ROUNDS; r++) {
        *ret_rounds += member->times_ns[r] >= 0;
        failed = failed && member->times_ns[r] <= 0;
    }
    return failed && *ret_rounds > 0;
}

/* Returns whether the machine failed with each of its partners. A machine with a single partner is bad only
 * if that partner is not to blame. */
static bool is_bad(const struct preflight *preflight, const struct paired *member)
{
    int rounds, others;
    if (!failed_all(member, &rounds))
        return false;
    if (rounds == PREFLIGHT_ROUNDS)
        return true;
    const struct paired *partner = member_of(preflight, member->partners[member->times_ns[0] >= 0 ? 0 : 1]);
    return !partner || !failed_all(partner, &others) || others < PREFLIGHT_ROUNDS;
}

static int64_t best_time(const struct paired *member)
{
    int64_t best_ns = 0;
    for (int r = 0; r < PREFLIGHT_ROUNDS; r++)
        if (member->times_ns[r] > 0 && (best_ns == 0 || member->times_ns[r] < best_ns))
            best_ns = member->times_ns[r];
    return best_ns;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the median of the machines' better times, or 0 if there are too few for a comparison. */
static int64_t median_time(const struct preflight *preflight)
{
    int64_t *times_ns = mem_alloc(preflight->members.len * sizeof *times_ns), median_ns = 0;
    size_t count = 0;
    for (size_t i = 0; i < preflight->members.len; i++) {
        times_ns[count] = best_time(&preflight->members.items[i]);
        count += times_ns[count] > 0;
    }
    if (count >= STRAGGLER_MEMBERS_MIN) {
        qsort(times_ns, count, sizeof *times_ns, compare_times);
        median_ns = times_ns[(count - 1) / 2];
    }
    mem_free(times_ns);
    return median_ns;
}

static void judge(struct step *step, struct gang *gang)
{
    CHECK(gang->preflight->phase == PREFLIGHT_EXTREMES);
    struct preflight *preflight = gang->preflight;
    int64_t median_ns = median_time(preflight), percent = step->cluster->qualification.straggler_percent;
    for (size_t i = 0; i < preflight->members.len; i++) {
        const struct paired *member = &preflight->members.items[i];
        struct buf why BUF_CLEANUP = {0};
        int64_t best_ns = best_time(member);
        if (is_bad(preflight, member)) {
            buf_printf(&why, "its network test failed with each partner");
            for (int r = 0; r < PREFLIGHT_ROUNDS; r++)
                if (member->partners[r] != MACHINE_NONE)
                    buf_printf(&why, "%s " STR_FORMAT, r > 0 ? "," : ":",
                               STR_ARG(step->cluster->machines[member->partners[r]].name));
            preflight_blame(step, member->machine, "pair", buf_str(&why));
        } else if (median_ns > 0 && best_ns > median_ns / 100 * percent) {
            buf_printf(&why, "its network test took %lld us, the median is %lld us",
                       (long long)(best_ns / NS_PER_US), (long long)(median_ns / NS_PER_US));
            preflight_blame(step, member->machine, "straggler", buf_str(&why));
        } else {
            step->cluster->machines[member->machine].paired_ns = step->now_ns;
        }
    }
    vec_clear(&preflight->members);
    vec_clear(&preflight->pairs);
    preflight->phase = PREFLIGHT_ALONE;
}

void preflight_pairs_go_on(struct step *step, struct gang *gang)
{
    struct preflight *preflight = gang->preflight;
    int round = round_of(preflight);
    for (size_t i = 0; i < preflight->pairs.len; i++) {
        const struct pair *pair = &preflight->pairs.items[i];
        bool good = pair->times_ns[0] > 0 && pair->times_ns[1] > 0;
        for (int end = 0; end < 2; end++)
            member_of(preflight, pair->machines[end])->times_ns[round] = good ? pair->times_ns[0] : 0;
    }
    if (preflight->phase == PREFLIGHT_NEIGHBOURS)
        begin_extremes(step, gang);
    else
        judge(step, gang);
}

/* --- ends ----------------------------------------------------------------------------------------------- */

/* Returns the time of the work that the output reports, in ns, or 1 if it reports none. */
static int64_t work_time(struct str output)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *report = NULL;
    if (json_parse(&arena, output, &report, NULL) < 0)
        return 1;
    int64_t work_ns = doc_int(doc_get(doc_at(doc_get(report, "tests"), 0), "workNanoseconds"), 1);
    return work_ns > 0 ? work_ns : 1;
}

void preflight_pair_ended(struct step *step, struct gang *gang, const struct errand *errand,
                          const struct errand_end *end)
{
    struct preflight *preflight = gang->preflight;
    (void)step;
    for (size_t i = 0; i < preflight->pairs.len; i++)
        for (int e = 0; e < 2; e++) {
            struct pair *pair = &preflight->pairs.items[i];
            if (pair->errands[e] != errand->uid)
                continue;
            pair->errands[e] = 0;
            pair->times_ns[e] = end->outcome == ERRAND_OK ? work_time(end->output) : 0;
        }
}

void preflight_pairs_cancel(struct step *step, struct preflight *preflight)
{
    for (size_t i = 0; i < preflight->pairs.len; i++)
        for (int end = 0; end < 2; end++)
            if (preflight->pairs.items[i].errands[end])
                errand_cancel(step, preflight->pairs.items[i].errands[end]);
    vec_clear(&preflight->pairs);
}

void preflight_pairs_give_up(struct step *step, struct preflight *preflight)
{
    CHECK(preflight->phase != PREFLIGHT_ALONE && preflight->members.len > 0);
    preflight_pairs_cancel(step, preflight);
    vec_clear(&preflight->members);
    preflight->phase = PREFLIGHT_ALONE;
}
