#include "core/sched/place.h"

#include "base/check.h"

enum { NAMES_SHOWN = 3, HOLDERS_SHOWN = 3 };

/* A common reason of machines that cannot take a task. */
struct cause {
    uint32_t count;
    machine_id examples[NAMES_SHOWN];
};

static const char *const cause_text[REFUSALS] = {
    [REFUSED_LABEL] = "without the topology label",
    [REFUSED_SELECTOR] = "not matching the node selector",
    [REFUSED_NAME] = "not the one of spec.nodeName",
    [REFUSED_SMALL] = "with fewer chips in all",
    [REFUSED_SPARE] = "kept as spares",
    [REFUSED_UNSEEN] = "not registered yet",
    [REFUSED_AWAY] = "not answering",
    [REFUSED_LOST] = "lost",
    [REFUSED_CORDONED] = "cordoned",
    [REFUSED_DRAINED] = "drained",
    [REFUSED_DRAINING] = "draining",
    [REFUSED_QUARANTINED] = "quarantined",
    [REFUSED_TAINT] = "tainted",
    [REFUSED_OWNED] = "held exclusively by other jobs",
    [REFUSED_CLOSED] = "used by its job's ranks",
    [REFUSED_GANG] = "used by this gang's other tasks",
    [REFUSED_RESERVED] = "reserved for others",
    [REFUSED_TAKEN] = "taken",
    [REFUSED_CPU] = "short of cpu",
    [REFUSED_MEMORY] = "short of memory",
};
/* The most useful causes come first. */
static const enum refusal cause_order[] = {
    REFUSED_TAKEN,    REFUSED_RESERVED, REFUSED_GANG,    REFUSED_CPU,         REFUSED_MEMORY,
    REFUSED_OWNED,    REFUSED_CORDONED, REFUSED_DRAINED, REFUSED_QUARANTINED, REFUSED_DRAINING,
    REFUSED_TAINT,    REFUSED_LOST,     REFUSED_AWAY,    REFUSED_UNSEEN,      REFUSED_SPARE,
    REFUSED_SELECTOR, REFUSED_LABEL,    REFUSED_SMALL,   REFUSED_NAME,        REFUSED_CLOSED,
};

_Static_assert(sizeof cause_order / sizeof *cause_order == REFUSALS - 1, "every refusal is told");

static void put_fault(const struct placer *placer, enum refusal refusal, machine_id id, const char *before,
                      const char *after, struct buf *why)
{
    struct buf name BUF_CLEANUP = {0};
    if ((refusal != REFUSED_QUARANTINED && refusal != REFUSED_DRAINING) || !placer->request->fault_name)
        return;
    placer->request->fault_name(placer->context, id, &name);
    if (name.len)
        buf_printf(why, "%s" STR_FORMAT "%s", before, STR_ARG(buf_str(&name)), after);
}

void place_why_behind(const struct placer *placer, enum refusal refusal, machine_id id, struct buf *why)
{
    put_fault(placer, refusal, id, " (", ")", why);
    if (refusal != REFUSED_TAKEN || !placer->request->holder_name)
        return;
    struct buf name BUF_CLEANUP = {0};
    placer->request->holder_name(placer->context, id, &name);
    buf_printf(why, " by " STR_FORMAT, STR_ARG(name.len ? buf_str(&name) : STR("others")));
}

static void put_names(const struct placer *placer, enum refusal refusal, const struct cause *cause,
                      struct buf *why)
{
    buf_add_str(why, STR(" ("));
    for (uint32_t i = 0; i < cause->count && i < NAMES_SHOWN; i++) {
        machine_id id = cause->examples[i];
        buf_printf(why, "%s" STR_FORMAT, i ? ", " : "", STR_ARG(placer->cluster->machines[id].name));
        put_fault(placer, refusal, id, ": ", "", why);
    }
    if (cause->count > NAMES_SHOWN)
        buf_printf(why, " and %u more", cause->count - NAMES_SHOWN);
    buf_add_char(why, ')');
}

/* The first holders of chips that were found, for "6 taken by default/llm, 2 by team-b/x". */
struct holders {
    obj_id ids[HOLDERS_SHOWN];
    machine_id examples[HOLDERS_SHOWN];
    uint32_t machines[HOLDERS_SHOWN];
    uint32_t len;
};

/* Returns the holder's counter of machines. A new holder gets `id` as its example. Returns NULL if enough
 * other holders are shown. */
static uint32_t *holder_count(struct holders *holders, machine_id id, obj_id holder)
{
    uint32_t at = 0;
    while (at < holders->len && holders->ids[at] != holder)
        at++;
    if (at == HOLDERS_SHOWN)
        return NULL;
    if (at == holders->len) {
        holders->len++;
        holders->ids[at] = holder;
        holders->examples[at] = id;
    }
    return &holders->machines[at];
}

static void put_holders(const struct placer *placer, const struct holders *holders, uint32_t taken,
                        struct buf *why)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < holders->len; i++) {
        struct buf name BUF_CLEANUP = {0};
        placer->request->holder_name(placer->context, holders->examples[i], &name);
        buf_printf(why, i ? ", %u by " STR_FORMAT : "%u taken by " STR_FORMAT, holders->machines[i],
                   STR_ARG(name.len ? buf_str(&name) : STR("others")));
        shown += holders->machines[i];
    }
    CHECK(shown <= taken);
    if (shown < taken)
        buf_printf(why, ", %u by others", taken - shown);
}

/* The result of one pass over the machines, for the tasks that found no place. */
struct survey {
    struct cause causes[REFUSALS];
    struct holders holders;
    uint32_t fitting;     /* machines with room for at least one task */
    uint64_t room;        /* tasks */
    uint32_t per_machine; /* tasks that the largest machine holds when empty */
};

static void survey_machines(const struct placer *placer, struct survey *survey)
{
    const struct place_request *request = placer->request;
    for (machine_id id = 0; id < placer->cluster->machine_count; id++) {
        enum refusal refusal;
        uint32_t fits = place_fit(placer, placer->failed->like, id, placer->failed_tasks, false, &refusal);
        survey->fitting += fits > 0;
        survey->room += fits;
        if (fits)
            continue;
        CHECK(refusal != FITS && refusal < REFUSALS);
        struct cause *cause = &survey->causes[refusal];
        if (cause->count < NAMES_SHOWN)
            cause->examples[cause->count] = id;
        cause->count++;
        if (refusal != REFUSED_TAKEN || !request->holder)
            continue;
        uint32_t *held = holder_count(&survey->holders, id, request->holder(placer->context, id));
        if (held)
            ++*held;
    }
}

/* Makes the same survey from a cached shape, in time proportional to the number of names shown. */
static void survey_kept(const struct shape_capacity *kept, bool names_holders, struct survey *survey)
{
    const struct refusals *refusals = &kept->refusals;
    survey->fitting = refusals->fitting;
    survey->room = capacity_room(kept);
    for (int refusal = FITS + 1; refusal < REFUSALS; refusal++) {
        struct cause *cause = &survey->causes[refusal];
        cause->count = refusals->counts[refusal];
        machine_id from = 0;
        for (uint32_t i = 0; i < cause->count && i < NAMES_SHOWN; i++) {
            cause->examples[i] = refusals_next(refusals, (enum refusal)refusal, from);
            from = cause->examples[i] + 1;
        }
    }
    uint32_t left = names_holders ? refusals->counts[REFUSED_TAKEN] : 0;
    for (machine_id id = 0; left > 0 && survey->holders.len < HOLDERS_SHOWN; id++) {
        id = refusals_next(refusals, REFUSED_TAKEN, id);
        uint32_t *held = holder_count(&survey->holders, id, kept->holder[id]);
        if (*held)
            continue; /* it was counted with its first machine */
        *held = refusals_held(refusals, kept->holder[id]);
        left -= *held;
    }
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void put_selector(const struct place_job *job, struct buf *why)
{
    for (size_t i = 0; job->node_selector && i < job->node_selector->len; i++)
        buf_printf(why, "%s" STR_FORMAT "=" STR_FORMAT, i ? "," : " with ",
                   STR_ARG(job->node_selector->items[i].key), STR_ARG(job->node_selector->items[i].value));
}

static void put_need(const struct placer *placer, const struct survey *survey, struct buf *why)
{
    const struct place_job *job = placer->failed->like;
    unsigned long long tasks = placer->failed_tasks;
    const struct cluster *cluster = placer->cluster;
    unsigned machines = (unsigned)cluster->machine_count;
    const char *state = placer->ideal ? "" : "free ";
    if (job->chips && survey->per_machine <= 1) {
        buf_printf(why, "needs %llu machine%s with %u %s" STR_FORMAT " chip%s", tasks, plural(tasks),
                   job->chips, state, STR_ARG(cluster->chip_resource), plural(job->chips));
        put_selector(job, why);
        buf_printf(why, "; %u of %u %s", survey->fitting, machines,
                   survey->fitting == 1 ? "has them" : "have them");
        return;
    }
    buf_printf(why, "needs room for %llu task%s", tasks, plural(tasks));
    if (job->chips)
        buf_printf(why, " of %u %s" STR_FORMAT " chip%s", job->chips, state, STR_ARG(cluster->chip_resource),
                   plural(job->chips));
    put_selector(job, why);
    buf_printf(why, "; there is room for %llu on %u of %u machines", (unsigned long long)survey->room,
               survey->fitting, machines);
}

static void put_domains(const struct placer *placer, struct buf *why)
{
    const struct place_job *job = placer->failed->like;
    buf_printf(why, "needs %zu domain%s of " STR_FORMAT " with room for %llu task%s",
               placer->failed->job_count, plural(placer->failed->job_count), STR_ARG(job->exclusive_topology),
               (unsigned long long)placer->failed_tasks, plural(placer->failed_tasks));
    if (job->chips)
        buf_printf(why, " of %u " STR_FORMAT " chip%s", job->chips, STR_ARG(placer->cluster->chip_resource),
                   plural(job->chips));
    buf_printf(why, " each; of %u domains %u %s in use", placer->domains.all, placer->domains.occupied,
               placer->domains.occupied == 1 ? "is" : "are");
    if (placer->domains.small)
        buf_printf(why, " and %u too small now (the roomiest takes %llu)", placer->domains.small,
                   (unsigned long long)placer->domains.largest);
    buf_add_str(why, STR("; machines"));
}

void place_why_cause(enum refusal refusal, struct buf *why)
{
    CHECK(refusal > FITS && refusal < REFUSALS);
    buf_add_str(why, str_from(cause_text[refusal]));
}

void place_why(const struct placer *placer, struct buf *why)
{
    CHECK(placer->failed && placer->failed_tasks > 0);
    if (place_why_topology(placer, why))
        return;
    struct survey survey = {0};
    uint32_t chips = placer->failed->like->chips;
    survey.per_machine = chips ? placer->cluster->chips_max / chips : 2;
    if (placer->kept)
        survey_kept(placer->kept, placer->request->holder != NULL, &survey);
    else
        survey_machines(placer, &survey);
    if (placer->failed->like->exclusive_topology.len)
        put_domains(placer, why);
    else if (!place_why_slices(placer, why))
        put_need(placer, &survey, why);
    const char *before = ": ";
    for (size_t i = 0; i < sizeof cause_order / sizeof *cause_order; i++) {
        enum refusal refusal = cause_order[i];
        const struct cause *cause = &survey.causes[refusal];
        if (!cause->count)
            continue;
        buf_add_str(why, str_from(before));
        before = ", ";
        if (refusal == REFUSED_TAKEN && survey.holders.len) {
            put_holders(placer, &survey.holders, cause->count, why);
            continue;
        }
        CHECK(cause_text[refusal]);
        buf_printf(why, "%u %s", cause->count, cause_text[refusal]);
        put_names(placer, refusal, cause, why);
    }
}
