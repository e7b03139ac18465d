/* hangs.c - the consequences of verdicts on hanging jobs (hang/hang.h): faults, ends of tasks, Events. */
#include "core/react/react.h"

static const char *const reasons[HANG_VERDICTS] = {
    [HANG_NOT_FOUND] = "HangUnexplained",
    [HANG_MACHINES] = "HangCulprit",
    [HANG_PROGRAM] = "CollectiveMismatch",
    [HANG_NETWORK] = "CollectiveHang",
};

static void report(struct core *core, struct step *step, const struct hang_blame *blame)
{
    CHECK(blame->task->machine != MACHINE_NONE);
    struct buf place BUF_CLEANUP = {0};
    const struct machine *machine = &core->cluster.machines[blame->task->machine];
    buf_printf(&place, "process/" STR_FORMAT "/" STR_FORMAT, STR_ARG(blame->task->job->jobset->namespace_),
               STR_ARG(blame->task->name));
    struct str where = buf_str(&place);
    struct signal signal =
        signal_now(str_from(blame->code), SIGNAL_ONCE, SEVERITY_MAJOR, blame->evidence, step->now_ns);
    signal.place = where.len <= SIGNAL_PLACE_MAX ? where : STR("");
    struct sighting sighting = {.machine = machine->name, .signal = &signal};
    core_sighted(core, step, &sighting);
}

/* Opens faults of the blamed machines, before their tasks end, so that restarting tasks avoid them. */
static void blame_all(struct core *core, struct step *step, const struct hang_order *order)
{
    for (size_t i = 0; i < order->blamed_count; i++) {
        const struct task *task = order->blamed[i].task;
        report(core, step, &order->blamed[i]);
        if (order->verdict == HANG_MACHINES)
            step_note(step, true, reasons[HANG_MACHINES], ref_task(task), STR_FORMAT,
                      STR_ARG(order->blamed[i].evidence));
    }
}

static void carry_out(struct core *core, struct step *step, const struct hang_order *order)
{
    CHECK(order->jobset && (order->blamed || order->blamed_count == 0));
    CHECK(order->verdict < HANG_VERDICTS && reasons[order->verdict]);
    step_note(step, true, reasons[order->verdict], ref_jobset(order->jobset), STR_FORMAT,
              STR_ARG(order->text));
    blame_all(core, step, order);
    if (order->verdict == HANG_MACHINES) {
        for (size_t i = 0; i < order->blamed_count; i++)
            jobs_end_hung(step, order->blamed[i].task, order->blamed[i].evidence);
        return;
    }
    bool ends = order->verdict != HANG_NOT_FOUND || order->restart;
    if (ends && order->first)
        jobs_fail_hung(step, order->first->job, reasons[order->verdict], order->text);
}

bool core_hangs(struct core *core, struct step *step)
{
    struct hang_order order;
    bool any = false;
    while (hangs_next_order(step, &order)) {
        carry_out(core, step, &order);
        any = true;
    }
    return any;
}

void core_hangs_forget(struct core *core, struct step *step)
{
    for (size_t i = 0; i < core->jobs.dead_jobsets.len; i++)
        hangs_forget(step, core->jobs.dead_jobsets.items[i]);
}
