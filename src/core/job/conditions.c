/* conditions.c - the conditions of a JobSet. */
#include "core/job/facts.h"

#include <stdio.h>

/* Returns whether the Event is a warning, as in Kubernetes: if the condition reports a failure. */
static bool is_warning(enum condition_kind kind, bool status)
{
    return status && (kind == CONDITION_FAILED || kind == CONDITION_RESTARTING);
}

void condition_say(struct condition *condition, struct str reason, struct str message)
{
    char *text = mem_alloc(reason.len + 1 + message.len + 1), *words = text + reason.len + 1;
    mem_copy(text, reason.data, reason.len);
    mem_copy(words, message.data, message.len);
    mem_free(condition->reason);
    condition->reason = text;
    condition->message = (struct str){words, message.len};
}

bool condition_set(struct step *step, struct jobset *jobset, enum condition_kind kind, bool status,
                   const char *reason, const char *format, ...)
{
    CHECK((unsigned)kind < CONDITION_KINDS && reason && reason[0]);
    struct condition *condition = &jobset->conditions[kind];
    if (!condition->present && !status)
        return false;
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    bool moved = !condition->present || condition->status != status;
    bool same =
        !moved && strcmp(condition->reason, reason) == 0 && str_equal(condition->message, buf_str(&text));
    if (same)
        return false;
    if (moved)
        condition->changed_ns = step->now_ns;
    condition->present = true;
    condition->status = status;
    condition_say(condition, str_from(reason), buf_str(&text));
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    if (moved && jobset->form == FORM_JOBSET)
        step_note(step, is_warning(kind, status), reason, ref_jobset(jobset), STR_FORMAT,
                  STR_ARG(condition->message));
    return moved;
}
