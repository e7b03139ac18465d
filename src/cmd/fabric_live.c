#include "cmd/fabric_live.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "doc/json.h"
#include "cmd/client.h"
#include "cmd/fabric_switches.h"

struct live {
    const struct live_order *order;
    struct crew *crew;
    struct switch_work *work; /* [POD_SWITCHES] */
    struct crossconnects *now;
    bool left_out[POD_SWITCHES]; /* the order leaves it out: it need not answer */
    uint32_t silent;             /* switches that did not answer */
    uint32_t kept;
    bool changed; /* changes were sent */
    bool failed, undone;
    int64_t plan_ns, took_ns;
};

static int64_t live_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static const char *name_at(uint32_t number)
{
    return pod_switch_name(pod_switch_at(number));
}

/* --- from switches to a plan and back ------------------------------------------------------------- */

/* Takes the cross-connects that a switch lists. Returns ERROR_INVALID if it joins ports that no cube of the
 * pod is wired to. */
static int take_state(struct live *live, uint32_t number, struct error *error)
{
    const struct switch_work *work = &live->work[number];
    for (uint32_t port = 1; port < sizeof work->peer / sizeof *work->peer; port++) {
        struct link_end plus, minus;
        if (!work->peer[port] || work->peer[port] < port)
            continue;
        if (!switch_port_end(live->order->pod, pod_switch_at(number), port, &plus) ||
            !switch_port_end(live->order->pod, pod_switch_at(number), work->peer[port], &minus) ||
            plus.polarity != POLARITY_PLUS || minus.polarity != POLARITY_MINUS)
            return error_set(
                error, ERROR_INVALID,
                "switch %s joins ports %u and %u: no such ends in a pod of %u cubes; is --pod right?",
                name_at(number), port, work->peer[port], live->order->pod);
        live->now->next[number][plus.cube] = minus.cube;
        live->now->prior[number][minus.cube] = plus.cube;
    }
    return 0;
}

static int read_pod(struct live *live, struct error *error)
{
    crossconnects_init(live->now, live->order->pod);
    memcpy(live->left_out, live->order->limits->switch_out, sizeof live->left_out);
    live->silent = crew_read(live->crew, live->work);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        if (!live->work[i].answers) {
            live->order->limits->switch_out[i] = true;
        } else if (take_state(live, i, error) < 0) {
            return ERROR_INVALID;
        }
    }
    return 0;
}

/* Checks, before clearing, that every switch was read: an unread one may have cross-connects to clear. Diff
 * and apply leave this check to the planner. */
static int check_all_read(const struct live *live, struct error *error)
{
    for (uint32_t i = 0; live->order->action == LIVE_CLEAR && i < POD_SWITCHES; i++)
        if (!live->work[i].answers && !live->left_out[i])
            return error_set(
                error, ERROR_UNAVAILABLE,
                "switch %s is out of service, and may hold cross-connects of these cubes: repair "
                "it, or leave it out (--switch-out %s)",
                name_at(i), name_at(i));
    return 0;
}

static int make_plan(struct live *live, struct arena *arena, struct crossconnect_plan *ret_plan,
                     struct error *error)
{
    const struct live_order *order = live->order;
    struct cube_slice slice;
    int64_t begin_ns = live_clock_ns();
    int rc;
    if (order->action == LIVE_CLEAR)
        rc = crossconnect_plan_clear(live->now, order->limits, order->cubes, order->cube_count, arena,
                                     ret_plan, error);
    else if ((rc = crossconnect_arrange(live->now, &order->shape, order->cubes, order->cube_count, &slice,
                                        error)) == 0)
        rc = crossconnect_plan(live->now, order->limits, &slice, arena, ret_plan, error);
    live->plan_ns = live_clock_ns() - begin_ns;
    return rc;
}

static void give_work(struct live *live, const struct crossconnect_plan *plan)
{
    live->kept = plan->kept;
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct switch_work *work = &live->work[number];
        for (uint32_t i = plan->first[number]; i < plan->first[number + 1]; i++) {
            const struct crossconnect_change *change = &plan->changes[i];
            struct pod_switch at = pod_switch_at(number);
            struct link_end plus = {change->plus, at.axis, at.index, POLARITY_PLUS};
            struct link_end minus = {change->minus, at.axis, at.index, POLARITY_MINUS};
            work->changes[work->count++] = (struct switch_change){
                .add = change->add,
                .a = link_end_port(live->order->pod, plus),
                .b = link_end_port(live->order->pod, minus),
            };
        }
    }
}

/* --- output ---------------------------------------------------------------------------------------- */

static void put_live_json(const struct live *live, struct buf *out)
{
    static const char *const actions[] = {"diff", "apply", "clear"};
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_text(&writer, "action", actions[live->order->action]);
    json_pair_bool(&writer, "done", live->changed && !live->failed);
    json_pair_bool(&writer, "undone", live->undone);
    json_pair_int(&writer, "kept", live->kept);
    json_pair_int(&writer, "planUs", live->plan_ns / 1000);
    json_pair_int(&writer, "tookUs", live->took_ns / 1000);
    json_key(&writer, "switches");
    json_begin_array(&writer);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        const struct switch_work *work = &live->work[i];
        if (!work->count && work->answers)
            continue;
        json_begin_object(&writer);
        json_pair_text(&writer, "name", name_at(i));
        json_pair_bool(&writer, "answers", work->answers);
        if (work->why[0])
            json_pair_text(&writer, "reason", work->why);
        json_key(&writer, "changes");
        json_begin_array(&writer);
        for (uint32_t k = 0; k < work->count; k++) {
            const struct switch_change *change = &work->changes[k];
            json_begin_object(&writer);
            json_pair_text(&writer, "change", change->add ? "add" : "remove");
            json_pair_int(&writer, "a", change->a);
            json_pair_int(&writer, "b", change->b);
            if (live->changed)
                json_pair_text(&writer, "end", change_end_name(change->end));
            json_end_object(&writer);
        }
        json_end_array(&writer);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

static void put_diff_text(const struct live *live, struct buf *out)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        const struct switch_work *work = &live->work[i];
        total += work->count;
        if (work->count)
            buf_printf(out, "%s\n", name_at(i));
        for (uint32_t k = 0; k < work->count; k++)
            buf_printf(out, "  %c %u-%u\n", work->changes[k].add ? '+' : '-', work->changes[k].a,
                       work->changes[k].b);
    }
    buf_printf(out, "%u changes, %u cross-connects kept; planned in %lld us\n", total, live->kept,
               (long long)live->plan_ns / 1000);
}

static void put_ends_text(const struct live *live, struct buf *out)
{
    uint32_t ends[CHANGE_UNKNOWN + 1] = {0};
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        for (uint32_t k = 0; k < live->work[i].count; k++)
            ends[live->work[i].changes[k].end]++;
    for (uint32_t i = 0; live->failed && i < POD_SWITCHES; i++) {
        const struct switch_work *work = &live->work[i];
        for (uint32_t k = 0; k < work->count; k++)
            if (work->changes[k].end == CHANGE_NOT_APPLIED || work->changes[k].end == CHANGE_UNKNOWN)
                buf_printf(out, "%-4s %s %u-%u: %s\n", name_at(i), work->changes[k].add ? "add" : "remove",
                           work->changes[k].a, work->changes[k].b, change_end_name(work->changes[k].end));
        if (work->why[0])
            buf_printf(out, "%-4s %s\n", name_at(i), work->why);
    }
    buf_printf(out, "%u applied, %u kept", ends[CHANGE_APPLIED], live->kept);
    for (int end = CHANGE_NOT_APPLIED; end <= CHANGE_UNKNOWN; end++)
        if (ends[end])
            buf_printf(out, ", %u %s", ends[end], change_end_name((enum change_end)end));
    buf_printf(out, "; %lld.%lld ms\n", (long long)(live->took_ns / 1000000),
               (long long)(live->took_ns / 100000 % 10));
}

/* --- the commands ---------------------------------------------------------------------------------- */

static void carry_plan_out(struct live *live)
{
    int64_t begin_ns = live_clock_ns();
    live->changed = true;
    live->failed = crew_carry_out(live->crew, live->work) > 0;
    if (live->failed && !live->order->keep) {
        crew_undo(live->crew, live->work);
        live->undone = true;
    }
    live->took_ns = live_clock_ns() - begin_ns;
}

/* Prints a refusal of the planner. If it names a switch that is out, adds why that switch does not answer. */
static int refuse_plan(const struct live *live, const struct error *error)
{
    say("%s", error->text);
    for (uint32_t i = 0, said = 0; live->silent && i < POD_SWITCHES && said < 4; i++)
        if (!live->work[i].answers) {
            say("switch %s: %s", name_at(i), live->work[i].why[0] ? live->work[i].why : "not in the list");
            said++;
        }
    return EXIT_FAILED;
}

static int do_live(struct live *live)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf out BUF_CLEANUP = {0};
    struct crossconnect_plan plan;
    struct error error = {0};
    if (read_pod(live, &error) < 0 || check_all_read(live, &error) < 0 ||
        make_plan(live, &arena, &plan, &error) < 0)
        return refuse_plan(live, &error);
    give_work(live, &plan);
    if (live->order->action != LIVE_DIFF)
        carry_plan_out(live);
    if (live->order->json)
        put_live_json(live, &out);
    else if (live->order->action == LIVE_DIFF)
        put_diff_text(live, &out);
    else
        put_ends_text(live, &out);
    output_write(&out);
    return live->failed || (live->order->action == LIVE_DIFF && plan.count) ? EXIT_FAILED : EXIT_OK;
}

int fabric_live(const struct live_order *order)
{
    struct switches *switches = mem_alloc(sizeof *switches);
    struct live live = {.order = order};
    struct error error = {0};
    struct crew_terms terms = CREW_TERMS_DEFAULT;
    int status = EXIT_FAILED;
    terms.cubes = order->pod;
    terms.timeout_ms = order->timeout_ms;
    terms.attempts = order->attempts;
    if (!fabric_switches_find(order->list, order->cluster, order->in, switches, NULL)) {
        status = EXIT_FAILED;
    } else if (switches_open(switches, &terms, &live.crew, &error) < 0) {
        say("%s", error.text);
    } else {
        live.work = mem_alloc(POD_SWITCHES * sizeof *live.work);
        live.now = mem_alloc(sizeof *live.now);
        status = do_live(&live);
        crew_close(live.crew);
        mem_free(live.work);
        mem_free(live.now);
    }
    mem_free(switches);
    return status;
}
