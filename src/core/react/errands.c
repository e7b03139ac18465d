/* errands.c - hands the ends of errands (errand/errand.h) to their owners; books results of machine tests. */
#include "core/gang/gang.h"
#include "core/react/react.h"

static void sight(struct core *core, struct step *step, const struct machine *machine, struct str code,
                  struct str evidence, enum signal_assertion assertion)
{
    struct signal signal = {.code = code,
                            .evidence = evidence,
                            .assertion = assertion,
                            .severity = SEVERITY_CRITICAL,
                            .chip = -1,
                            .first_ns = step->now_ns,
                            .last_ns = step->now_ns,
                            .count = 1};
    CHECK(signal_is_valid(&signal));
    core_sighted(core, step, &(struct sighting){.machine = machine->name, .signal = &signal});
}

/* --- machines that pass, and machines that fail --------------------------------------------------------- */

/* Books a passed test of any module: it counts for all gangs, and closes the faults of failed tests. */
static void book_pass(struct core *core, struct step *step, struct machine *machine)
{
    CHECK(machine->id < core->cluster.machine_count);
    machine->qualified_ns = step->now_ns;
    if (!fault_of_machine(core->health, machine->name))
        return;
    for (int i = 0; i <= QUALIFY_PAIR; i++) {
        struct buf code BUF_CLEANUP = {0};
        buf_printf(&code, "qualify/%s",
                   i < QUALIFY_PAIR ? qualify_test_name((enum qualify_test)i) : "unanswered");
        sight(core, step, machine, buf_str(&code), STR("its tests passed"), SIGNAL_RECOVER);
    }
}

/* Makes a fault of a failed test. If the fault does not isolate the machine, the gangs that wait for its test
 * use it as it is; otherwise they return to the queue. */
static void convict(struct core *core, struct step *step, const struct preflight_verdict *verdict)
{
    CHECK(verdict->machine < core->cluster.machine_count && verdict->code.len > 0);
    struct machine *machine = &core->cluster.machines[verdict->machine];
    sight(core, step, machine, buf_str(&verdict->code), buf_str(&verdict->evidence), SIGNAL_OCCUR);
    core_isolate(core, step);
    if (machine_schedulable(machine))
        preflight_excuse(step, machine);
    else
        preflight_leave(step, machine, buf_str(&verdict->evidence));
}

/* --- ends ----------------------------------------------------------------------------------------------- */

static void hand_over(struct core *core, struct step *step, const struct errand *errand,
                      const struct errand_end *end)
{
    struct machine *machine = cluster_find(&core->cluster, errand->machine);
    CHECK(end->errand == errand->uid);
    if (errand->kind == ERRAND_QUALIFY && end->outcome == ERRAND_OK && machine)
        book_pass(core, step, machine);
    switch (errand->owner) { /* a case for each owner of errands */
    case ERRAND_OF_PREFLIGHT:
        preflight_errand_ended(step, errand, end);
        break;
    case ERRAND_OF_HANG:
        hang_errand_ended(step, errand, end);
        break;
    case ERRAND_OF_REPAIR:
        repairs_errand_ended(step, errand, end);
        break;
    case ERRAND_OF_INJECTION:
        core_injection_ended(core, step, errand, end);
        break;
    }
}

bool core_errands(struct core *core, struct step *step)
{
    const struct errand *errand;
    struct errand_end end;
    struct preflight_verdict verdict;
    bool any = false;
    while (errands_next_end(core->errands, &errand, &end)) {
        hand_over(core, step, errand, &end);
        any = true;
    }
    while (preflight_next_verdict(step, &verdict)) {
        convict(core, step, &verdict);
        buf_done(&verdict.code);
        buf_done(&verdict.evidence);
        any = true;
    }
    return any;
}
