/* place.c - tickets of a pod's switches and links.
 *
 * No hook repairs a switch or a link, so a person is notified as soon as a fault takes one out of service.
 * The faults end when the controller finds that the place works again, and the ticket ends with the last of
 * them; a switch that was drained for the repair is read first. A person may also report the ticket as done,
 * or delete it. Remaining defects are then found again and open another ticket. */
#include "core/repair/internal.h"

bool repair_is_of_place(const struct repair *repair)
{
    return subject_is_place(repair->subject);
}

static void open_ticket(struct step *step, struct repair *repair, const char *why)
{
    CHECK(repair->state == REPAIR_WAITING && repair_is_of_place(repair) && *why);
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    repair->heals = health_blocking(step->health, repair->subject, faults) > 0;
    step->repairs->totals.tickets++;
    repair_move(step, repair, REPAIR_TICKETED, "%s", why);
    repair_note(step, repair, true, "RepairTicket", "a person is needed: %s", why);
}

void place_ask(struct step *step, struct repair *repair)
{
    open_ticket(step, repair, "a person asked for it");
}

void repairs_watch_place(struct step *step, struct str subject)
{
    struct buf reason BUF_CLEANUP = {0}, why BUF_CLEANUP = {0};
    const struct fault *fault = fault_of_machine(step->health, subject);
    struct repair *repair = book_open(step->repairs, subject);
    CHECK(subject_is_place(subject));
    if (!fault || fault->level < LEVEL_PRE_SEPARATE)
        return;
    if (repair) {
        repair->heals = true;
        take_codes(step, repair);
        ticket_show(step, repair);
        return;
    }
    fault_describe(fault, &reason);
    repair = ticket_open(step, subject, &(struct repair_wish){.origin = REPAIR_BY_FAULT}, buf_str(&reason));
    if (!repair)
        return;
    buf_printf(&why, STR_FORMAT ": " STR_FORMAT, STR_ARG(fault->remedy.len ? fault->remedy : STR("inspect")),
               STR_ARG(buf_str(&reason)));
    open_ticket(step, repair, why.data);
}

void place_done(struct step *step, struct repair *repair)
{
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    size_t count = health_blocking(step->health, repair->subject, faults);
    CHECK(repair_is_of_place(repair) && repair->state == REPAIR_TICKETED);
    for (size_t i = 0; i < count; i++)
        health_clear(step, faults[i]);
    repair_close(step, repair, "done", true);
}

bool place_is_known(const struct step *step, struct str subject)
{
    struct str kind, name;
    if (!str_cut(subject, '/', &kind, &name) || !str_is(kind, "switch"))
        return fault_of_machine(step->health, subject) != NULL;
    for (size_t i = 0; i < step->cluster->switch_count; i++)
        if (str_equal(step->cluster->switches[i].name, name))
            return true;
    return false;
}
