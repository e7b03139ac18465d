/* load_hangs.c - spec.settings.hangs: when a job without steps is suspected to hang (docs/diagnose.md). */
#include "core/model/load.h"

#define SECOND NS_PER_SECOND
#define DAY    (24 * 3600 * NS_PER_SECOND)

void load_hangs(struct loader *loader, const struct field *field)
{
    static const char *const known[] = {"enabled",    "factor", "minimum", "firstStep",
                                        "checkpoint", "answer", "join", NULL};
    struct hang_settings *hangs = &loader->cluster->hangs;
    struct field enabled = field_get(field, "enabled"), factor = field_get(field, "factor");
    struct field minimum = field_get(field, "minimum"), first = field_get(field, "firstStep");
    struct field checkpoint = field_get(field, "checkpoint"), answer = field_get(field, "answer");
    struct field join = field_get(field, "join");
    bool on = true;
    *hangs = (struct hang_settings){.factor = 5,
                                    .minimum_ns = 60 * SECOND,
                                    .first_step_ns = 1800 * SECOND,
                                    .checkpoint_ns = 600 * SECOND,
                                    .answer_ns = 2 * SECOND,
                                    .join_ns = 60 * SECOND};
    load_object(loader, field, known);
    load_bool(loader, &enabled, &on);
    hangs->off = !on;
    load_int(loader, &factor, 2, 1000, &hangs->factor);
    load_duration(loader, &minimum, SECOND, DAY, &hangs->minimum_ns);
    load_duration(loader, &first, SECOND, 7 * DAY, &hangs->first_step_ns);
    load_duration(loader, &checkpoint, SECOND, DAY, &hangs->checkpoint_ns);
    load_duration(loader, &join, SECOND, DAY, &hangs->join_ns);
    load_duration(loader, &answer, SECOND / 10, 60 * SECOND, &hangs->answer_ns);
}
