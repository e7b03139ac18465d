/* check.c - AdmissionChecks: answers of other controllers that a Workload with quota needs before it may run
 * (Kueue, "Admission check"). A Workload whose queue names checks holds its quota and its machines until each
 * check is Ready. The checks' controllers write their answers to Workload.status.admissionChecks:
 *
 *     Pending   not answered yet
 *     Ready     the Workload may run; podSetUpdates (updates.c) change its Pods
 *     Retry     the Workload is evicted, queued again after requeueAfterSeconds, and checked again
 *     Rejected  the Workload is evicted and deactivated
 */
#include "core/admit/internal.h"

static const char *const state_names[] = {"Pending", "Ready", "Retry", "Rejected"};
_Static_assert(sizeof(state_names) / sizeof(*state_names) == CHECK_STATES, "each state has a name");

const char *check_state_name(uint8_t state)
{
    CHECK(state < CHECK_STATES);
    return state_names[state];
}

static bool parse_state(struct str text, uint8_t *ret_state)
{
    for (uint8_t i = 0; i < sizeof(state_names) / sizeof(*state_names); i++) {
        if (str_is(text, state_names[i])) {
            *ret_state = i;
            return true;
        }
    }
    return false;
}

static void check_done(struct workload_check *check)
{
    mem_free((char *)check->name.data);
    buf_done(&check->message);
    arena_done(&check->arena);
}

void checks_done(struct workload *workload)
{
    for (size_t i = 0; i < workload->checks.len; i++)
        check_done(&workload->checks.items[i]);
    vec_done(&workload->checks);
}

static struct workload_check *find(struct workload *workload, struct str name)
{
    for (size_t i = 0; i < workload->checks.len; i++)
        if (str_equal(workload->checks.items[i].name, name))
            return &workload->checks.items[i];
    return NULL;
}

struct workload_check *check_add(struct workload *workload, struct str name)
{
    struct buf text = {0};
    buf_add_str(&text, name);
    struct workload_check check = {.name = {text.data, text.len}};
    vec_push(&workload->checks, check);
    return &vec_last(&workload->checks);
}

/* --- the object itself ------------------------------------------------------------------------ */

enum { CONDITIONS_MAX = 16 };

static void keep_condition(struct arena *arena, const struct doc *condition, size_t index, struct doc *list,
                           struct field_errors *errors)
{
    CHECK(index < CONDITIONS_MAX && list->kind == DOC_ARRAY);
    static const char *const texts[] = {"type", "status", "reason", "message", "lastTransitionTime"};
    struct doc *kept = doc_new(arena, DOC_OBJECT);
    struct str status = doc_str(doc_get(condition, "status"), STR(""));
    for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
        const struct doc *text = doc_get(condition, texts[t]);
        if (text && text->kind == DOC_STRING)
            doc_set(arena, kept, str_from(texts[t]), doc_clone(arena, text));
    }
    doc_push(arena, list, kept);
    if (!doc_str(doc_get(condition, "type"), STR("")).len)
        field_error_add(errors, arena_printf(errors->arena, "status.conditions[%zu].type", index),
                        "FieldValueRequired", condition, "Required value");
    if (!str_is(status, "True") && !str_is(status, "False") && !str_is(status, "Unknown"))
        field_error_add(errors, arena_printf(errors->arena, "status.conditions[%zu].status", index),
                        "FieldValueNotSupported", doc_get(condition, "status"),
                        "Unsupported value: \"" STR_FORMAT
                        "\": supported values: \"False\", \"True\", \"Unknown\"",
                        STR_ARG(status));
}

struct doc *admission_check_status(struct arena *arena, const struct doc *document,
                                   struct field_errors *errors)
{
    const struct doc *conditions = doc_path(document, "status", "conditions", NULL);
    struct doc *status = doc_new(arena, DOC_OBJECT), *list = doc_new(arena, DOC_ARRAY);
    if (doc_len(conditions) > CONDITIONS_MAX)
        field_error_add(errors, STR("status.conditions"), "FieldValueTooMany", conditions,
                        "Too many: must have at most %d items", CONDITIONS_MAX);
    for (size_t i = 0; i < doc_len(conditions) && i < CONDITIONS_MAX; i++)
        keep_condition(arena, doc_at(conditions, i), i, list, errors);
    doc_set(arena, status, STR("conditions"), list);
    return errors->list.len ? NULL : status;
}

/* --- required checks ------------------------------------------------------------------------------------ */

static bool uses_flavor(const struct workload *workload, struct str flavor)
{
    for (size_t p = 0; p < workload->jobset->spec.rjob_count; p++)
        for (size_t i = 0; i < workload->podsets[p].resource_count; i++)
            if (str_equal(workload->podsets[p].resources[i].flavor, flavor))
                return true;
    return false;
}

/* Whether the check applies to the workload's flavours; without onFlavors it applies to all. */
static bool applies(const struct queue_check *check, const struct workload *workload)
{
    bool any = check->flavor_count == 0;
    for (size_t f = 0; !any && f < check->flavor_count; f++)
        any = uses_flavor(workload, check->flavors[f]);
    return any;
}

static bool is_asked(const struct cluster_queue *queue, const struct workload *workload, struct str name)
{
    for (size_t c = 0; queue && c < queue->check_count; c++)
        if (str_equal(queue->checks[c].name, name))
            return applies(&queue->checks[c], workload);
    return false;
}

void checks_sync(struct step *step, struct workload *workload)
{
    const struct cluster_queue *queue = workload->booked_in;
    bool changed = false;
    for (size_t i = workload->checks.len; i-- > 0;) {
        if (is_asked(queue, workload, workload->checks.items[i].name))
            continue;
        check_done(&workload->checks.items[i]);
        vec_remove(&workload->checks, i);
        changed = true;
    }
    for (size_t c = 0; queue && c < queue->check_count; c++) {
        if (!applies(&queue->checks[c], workload) || find(workload, queue->checks[c].name))
            continue;
        check_add(workload, queue->checks[c].name)->changed_ns = step->now_ns;
        changed = true;
    }
    if (changed)
        workload_changed(step, CHANGE_MODIFIED, workload);
    CHECK(queue || workload->checks.len == 0); /* without a queue no check is asked for */
}

bool checks_wait(const struct workload *workload)
{
    for (size_t i = 0; i < workload->checks.len; i++)
        if (workload->checks.items[i].state != CHECK_READY)
            return true;
    return false;
}

/* --- answers ------------------------------------------------------------------------- */

static void set_state(struct step *step, struct workload_check *check, uint8_t state, struct str message)
{
    CHECK(state < CHECK_STATES);
    if (check->state != state)
        check->changed_ns = step->now_ns;
    check->state = state;
    buf_clear(&check->message);
    buf_add_str(&check->message,
                message.len > CHECK_MESSAGE_MAX ? (struct str){message.data, CHECK_MESSAGE_MAX} : message);
}

static void take_answer(struct step *step, struct workload_check *check, const struct doc *answer)
{
    uint8_t state = check->state;
    const struct doc *updates = doc_get(answer, "podSetUpdates");
    parse_state(doc_str(doc_get(answer, "state"), STR("")), &state);
    set_state(step, check, state, doc_str(doc_get(answer, "message"), STR("")));
    check->requeue_after_s = doc_int(doc_get(answer, "requeueAfterSeconds"), 0);
    CHECK(check->requeue_after_s >= 0 && check->requeue_after_s <= INT32_MAX); /* checks_validate */
    check->retries = (int32_t)doc_int(doc_get(answer, "retryCount"), check->retries);
    arena_done(&check->arena);
    check->updates = doc_len(updates) ? doc_clone(&check->arena, updates) : NULL;
}

void checks_validate(const struct workload *workload, const struct doc *document, struct field_errors *errors)
{
    const struct doc *list = doc_path(document, "status", "admissionChecks", NULL);
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *state = doc_get(doc_at(list, i), "state");
        int64_t after_s = doc_int(doc_get(doc_at(list, i), "requeueAfterSeconds"), 0);
        struct str path = arena_printf(errors->arena, "status.admissionChecks[%zu]", i);
        struct str text = doc_str(state, STR(""));
        uint8_t known;
        if (!parse_state(text, &known))
            field_error_add(errors, arena_printf(errors->arena, STR_FORMAT ".state", STR_ARG(path)),
                            "FieldValueNotSupported", state,
                            "Unsupported value: \"" STR_FORMAT
                            "\": supported values: \"Pending\", \"Ready\", \"Rejected\", \"Retry\"",
                            STR_ARG(text));
        if (after_s < 0 || after_s > INT32_MAX)
            field_error_add(errors,
                            arena_printf(errors->arena, STR_FORMAT ".requeueAfterSeconds", STR_ARG(path)),
                            "FieldValueInvalid", doc_get(doc_at(list, i), "requeueAfterSeconds"),
                            "Invalid value: must be between 0 and 2147483647");
        int64_t retries = doc_int(doc_get(doc_at(list, i), "retryCount"), 0);
        if (retries < 0 || retries > INT32_MAX)
            field_error_add(errors, arena_printf(errors->arena, STR_FORMAT ".retryCount", STR_ARG(path)),
                            "FieldValueInvalid", doc_get(doc_at(list, i), "retryCount"),
                            "Invalid value: must be between 0 and 2147483647");
        updates_validate(workload, doc_get(doc_at(list, i), "podSetUpdates"), path, errors);
    }
}

static bool is_there(const struct workload *workload)
{
    return !workload->gone;
}

/* Stores an answer; an answer about a group applies to each of its Pods. */
void workload_answer(struct step *step, struct workload *workload, const struct doc *document)
{
    const struct doc *answers = doc_path(document, "status", "admissionChecks", NULL);
    struct arena arena ARENA_CLEANUP = {0};
    struct workload **list;
    size_t count = group_fellows(workload, is_there, &arena, &list);
    for (size_t w = 0; w < count; w++) {
        for (size_t i = 0; i < doc_len(answers); i++) {
            const struct doc *answer = doc_at(answers, i);
            struct workload_check *check = find(list[w], doc_str(doc_get(answer, "name"), STR("")));
            if (check)
                take_answer(step, check, answer);
        }
        workload_changed(step, CHANGE_MODIFIED, list[w]);
    }
    for (size_t w = 0; w < count; w++)
        if (!list[w]->gone)
            workload_look(step, list[w]);
}

/* --- consequences ----------------------------------------------------------------------------- */

static void list_names(const struct workload *workload, uint8_t state, struct buf *out)
{
    CHECK(state < CHECK_STATES);
    for (size_t i = 0; i < workload->checks.len; i++) {
        const struct workload_check *check = &workload->checks.items[i];
        if (check->state != state)
            continue;
        buf_printf(out, "%s" STR_FORMAT, out->len ? ", " : "", STR_ARG(check->name));
        if (check->message.len)
            buf_printf(out, " (" STR_FORMAT ")", STR_ARG(buf_str(&check->message)));
    }
}

bool checks_refuse(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_HOLDING || workload->state == WORKLOAD_ADMITTED);
    struct buf rejected BUF_CLEANUP = {0}, again BUF_CLEANUP = {0};
    list_names(workload, CHECK_REJECTED, &rejected);
    list_names(workload, CHECK_RETRY, &again);
    if (rejected.len) {
        workload->active = false;
        workload->generation++;
        step_note(step, true, "AdmissionCheckRejected", ref_workload(workload),
                  "Admission check(s): " STR_FORMAT ", were rejected", STR_ARG(buf_str(&rejected)));
        workload_evict(step, workload, "DeactivatedDueToAdmissionCheck",
                       "The workload is deactivated due to Admission check(s): " STR_FORMAT ", were rejected",
                       STR_ARG(buf_str(&rejected)));
    } else if (again.len) {
        workload_evict(step, workload, "AdmissionCheck", "At least one admission check is false: " STR_FORMAT,
                       STR_ARG(buf_str(&again)));
    }
    return rejected.len || again.len;
}

int64_t checks_backoff_ns(const struct workload *workload)
{
    int64_t most_s = 0;
    for (size_t i = 0; i < workload->checks.len; i++)
        if (workload->checks.items[i].state == CHECK_RETRY &&
            workload->checks.items[i].requeue_after_s > most_s)
            most_s = workload->checks.items[i].requeue_after_s;
    CHECK(most_s >= 0 && most_s <= INT32_MAX); /* so the product fits */
    return most_s * NS_PER_SECOND;
}

/* Sets all checks to Pending, so that they are answered again. Their messages name the previous states. */
void checks_reset(struct step *step, struct workload *workload)
{
    for (size_t i = 0; i < workload->checks.len; i++) {
        struct workload_check *check = &workload->checks.items[i];
        struct buf text BUF_CLEANUP = {0};
        if (check->state == CHECK_PENDING)
            continue;
        check->retries += check->state == CHECK_RETRY && check->retries < INT32_MAX;
        buf_printf(&text, "Reset to Pending after eviction. Previously: %s", state_names[check->state]);
        set_state(step, check, CHECK_PENDING, buf_str(&text));
        check->requeue_after_s = 0;
        check->updates = NULL;
        arena_done(&check->arena);
    }
}
