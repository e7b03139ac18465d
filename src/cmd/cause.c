#include "cmd/cause.h"

void put_place(struct buf *out, const struct doc *found)
{
    struct str machine = doc_text(found, "machine");
    if (doc_get(found, "rank"))
        buf_printf(out, " of rank %lld", (long long)doc_number(found, "rank", 0));
    if (machine.len)
        buf_printf(out, " on " STR_FORMAT, STR_ARG(machine));
    struct str user = doc_text(found, "user");
    if (user.len)
        buf_printf(out, " by " STR_FORMAT, STR_ARG(user));
    int64_t others = doc_number(found, "tasks", 1) - 1;
    if (others > 0) {
        buf_add_str(out, STR(" and "));
        put_count(out, others, "other task");
    }
}

void put_failure(struct buf *out, const struct doc *jobset)
{
    const struct doc *conditions = doc_dotted(jobset, "status.conditions");
    const struct doc *found = doc_dotted(jobset, "status.phalanx.end.attribution");
    struct str cause = doc_text(found, "cause"), evidence = doc_text(found, "evidence");
    const struct doc *failed = NULL;
    for (size_t i = 0; i < doc_len(conditions); i++)
        if (str_is(doc_text(doc_at(conditions, i), "type"), "Failed") &&
            str_is(doc_text(doc_at(conditions, i), "status"), "True"))
            failed = doc_at(conditions, i);
    if (!failed)
        return;
    if (!cause.len || str_is(cause, "unattributed")) {
        struct str message = doc_text(failed, "message");
        buf_add_str(out, message.len ? message : doc_text(failed, "reason"));
        return;
    }
    buf_add_str(out, cause);
    put_place(out, found);
    buf_printf(out, " (" STR_FORMAT ")", STR_ARG(doc_text(found, "domain")));
    if (evidence.len)
        buf_printf(out, ": " STR_FORMAT, STR_ARG(evidence));
}
