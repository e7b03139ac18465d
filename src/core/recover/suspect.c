/* suspect.c - suspect machines: machines that end attempts of different jobs without a known fault. Such a
 * machine stays in service, but tasks that fit elsewhere are placed elsewhere (sched), until a day after the
 * last such attempt. The suspicion is an open fault, SUSPECT_FAULT; the fault table sets its level, and
 * people may clear it.
 *
 * A machine becomes suspect by being lost, by a failed start, and by an end whose signatures point to the
 * hardware or the system's software, but not by what a process does to itself. */
#include "core/health/fault.h"
#include "core/recover/internal.h"

#define WINDOW_NS (INT64_C(24) * 3600 * NS_PER_SECOND)

static bool is_its_doing(const struct jobset *jobset, const struct task *culprit, struct str machine)
{
    if (culprit->end == END_MACHINE_LOST || culprit->end == END_START_FAILED)
        return true;
    const struct end_signature *root = end_signatures_root(&jobset->history.signatures);
    if (culprit->end != END_EXIT || !root || !str_is(machine, root->machine))
        return false;
    enum fault_domain domain = signature_domain(root->kind);
    return domain == DOMAIN_HARDWARE || domain == DOMAIN_SOFTWARE;
}

static void signal_it(struct step *step, const struct machine *machine, enum signal_assertion assertion,
                      struct str evidence)
{
    struct signal signal = signal_now(STR(SUSPECT_FAULT), assertion, SEVERITY_MINOR, evidence, step->now_ns);
    struct sighting sighting = {.machine = machine->name, .signal = &signal};
    health_signal(step, &sighting);
}

void suspect_blame(struct step *step, const struct jobset *jobset, const struct task *culprit)
{
    CHECK(culprit->machine < step->cluster->machine_count && culprit->end != END_NONE);
    struct machine *machine = &step->cluster->machines[culprit->machine];
    if (!is_its_doing(jobset, culprit, machine->name))
        return;
    const struct jobset *other = jobs_find_uid(step->jobs, machine->blamed_job);
    int64_t since_ns = step->now_ns - machine->blamed_ns;
    bool another = machine->blamed_job && machine->blamed_job != jobset->uid;
    if (another && since_ns <= INCIDENT_WINDOW_NS)
        return; /* all tasks there ended with the machine: one incident, counted once */
    machine->blamed_job = jobset->uid;
    machine->blamed_ns = step->now_ns;
    if (!machine->suspect && (!another || since_ns > WINDOW_NS))
        return;
    struct buf why BUF_CLEANUP = {0};
    buf_printf(&why, "it ended an attempt of " STR_FORMAT, STR_ARG(jobset->key));
    if (another && other)
        buf_printf(&why, ", and one of " STR_FORMAT " before", STR_ARG(other->key));
    signal_it(step, machine, SIGNAL_OCCUR, buf_str(&why));
    /* the table sets how long it stays open */
    signal_it(step, machine, SIGNAL_RECOVER, STR("nothing since"));
}
