/* incident.c - the losses of one step, made into one question to the ladder. */
#include "core/ladder/incident.h"

bool incident_is_open(const struct incident *incident)
{
    return incident->losses.len > 0 || incident->requests.len > 0;
}

void incident_note(struct incident *incident, obj_id task, uint8_t end)
{
    for (size_t i = 0; i < incident->losses.len; i++)
        CHECK(incident->losses.items[i].task != task); /* a task ends once */
    vec_push(&incident->losses, ((struct loss){.task = task, .end = end}));
}

void incident_note_request(struct incident *incident, enum loss_request_kind kind, obj_id task,
                           struct str why)
{
    vec_push(&incident->requests, ((struct loss_request){kind, task, why}));
}

const struct loss *incident_root(const struct incident *incident)
{
    const struct loss *first = NULL, *proven = NULL;
    for (size_t i = 0; i < incident->losses.len; i++) {
        const struct loss *loss = &incident->losses.items[i];
        if (!loss->asks)
            continue;
        if (loss->barred)
            return loss;
        first = first ? first : loss;
        proven = proven || !loss->proven ? proven : loss;
    }
    return proven ? proven : first;
}

void incident_question(const struct incident *incident, int64_t now_ns, struct ladder_incident *ret)
{
    const struct loss *root = incident_root(incident);
    CHECK(root && root->cause < LOSS_CAUSES);
    *ret = (struct ladder_incident){
        .cause = (enum loss_cause)root->cause, .again = true, .runs_long = root->runs_long, .now_ns = now_ns};
    for (size_t i = 0; i < incident->losses.len; i++) {
        const struct loss *loss = &incident->losses.items[i];
        ret->place_is_bad |= loss->asks && loss->place_is_bad;
        ret->again &= !loss->asks || loss->again;
    }
}

bool incident_gives_up_place(const struct incident *incident, const struct loss *loss)
{
    bool some = false;
    for (size_t i = 0; i < incident->losses.len; i++)
        some |= incident->losses.items[i].asks && incident->losses.items[i].place_is_bad;
    return loss->asks && (loss->place_is_bad || (!some && loss == incident_root(incident)));
}

void incident_done(struct incident *incident)
{
    vec_done(&incident->losses);
    vec_done(&incident->requests);
    CHECK(!incident_is_open(incident));
}
