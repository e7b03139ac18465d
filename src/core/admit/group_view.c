/* group_view.c - the single Workload that the API shows for the Pods of a group, as Kueue does. Its PodSets
 * are the roles of the group: Pods of equal shape. Decisions are made on each Pod's own Workload; the
 * functions here present these Workloads as one.
 */
#include "core/admit/internal.h"

#include "base/hash.h"
#include "doc/json.h"
#include "core/step.h"

#define NOTE_TOTAL STR("kueue.x-k8s.io/pod-group-total-count")
#define NOTE_AGAIN STR("kueue.x-k8s.io/retriable-in-group")

_Static_assert(sizeof(((struct workload *)NULL)->role) == 8 + 1, "a role is eight digits and a NUL");

/* --- annotations ------------------------------------------------------------------------- */

int64_t group_total(const struct pod_group *group)
{
    int64_t total = 0;
    for (size_t i = 0; i < group->members.len; i++) {
        int64_t own;
        const struct jobset *jobset = group->members.items[i]->jobset;
        struct str text = labels_get(&jobset->spec.annotations, NOTE_TOTAL, STR(""));
        if (!text.len || !str_to_i64(text, 1, TASKS_PER_JOBSET_MAX, &own) || (total && own != total) ||
            !str_equal(group->members.items[i]->queue_name, group->members.items[0]->queue_name))
            return 0;
        total = own;
    }
    return total;
}

bool group_says(const struct pod_group *group, struct str note, const char *value)
{
    for (size_t i = 0; i < group->members.len; i++)
        if (str_is(labels_get(&group->members.items[i]->jobset->spec.annotations, note, STR("")), value))
            return true;
    return false;
}

bool group_retries(const struct pod_group *group)
{
    return !group_says(group, NOTE_AGAIN, "false");
}

/* --- the representative ---------------------------------------------------------------------- */

/* Returns the member's rank; the member with the highest rank represents the group. The most advanced state
 * ranks highest. In that state, a member that is not ready ranks first, so that the group is not ready
 * either, or the gang's leader. */
static int member_rank(const struct workload *member)
{
    CHECK(member->state < WORKLOAD_STATES);
    static const int ranks[WORKLOAD_STATES] = {
        [WORKLOAD_FINISHED] = 0, [WORKLOAD_PENDING] = 2,  [WORKLOAD_HOLDING] = 4,
        [WORKLOAD_LEAVING] = 6,  [WORKLOAD_ADMITTED] = 8,
    };
    bool unready = member->state == WORKLOAD_ADMITTED && !workload_holds(member, WORKLOAD_PODS_READY);
    return ranks[member->state] + (unready || member->leader == member);
}

const struct workload *workload_representative(const struct workload *workload)
{
    const struct pod_group *group = workload->group;
    const struct workload *chosen = workload;
    for (size_t i = 0; group && i < group->members.len; i++)
        if (i == 0 || member_rank(group->members.items[i]) > member_rank(chosen))
            chosen = group->members.items[i];
    CHECK(chosen->group == group);
    return chosen;
}

void workload_changed(struct step *step, enum change_type type, struct workload *workload)
{
    struct pod_group *group = workload->group;
    CHECK(!group || type != CHANGE_DELETED); /* a group is deleted with its last member, which has left it */
    workload->changed_seq = step->seq;
    if (!group) {
        step_tell(step, type, ref_workload(workload));
        return;
    }
    if (type == CHANGE_MODIFIED && group->told_seq == step->seq)
        return;
    if (type == CHANGE_MODIFIED)
        group->told_seq = step->seq;
    for (size_t i = 0; i < group->members.len; i++)
        group->members.items[i]->changed_seq = step->seq;
    step_tell(step, type, ref_workload(workload));
}

size_t workload_members(const struct workload *workload, const struct workload *const **ret_list)
{
    const struct pod_group *group = workload->group;
    if (group) {
        CHECK(group->members.len > 0);
        *ret_list = (const struct workload *const *)group->members.items;
        return group->members.len;
    }
    *ret_list = NULL;
    return 0;
}

/* --- progress ----------------------------------------------------------------------------- */

static bool has_succeeded(const struct workload *member)
{
    const char *reason = member->conditions[WORKLOAD_IS_FINISHED].reason;
    return member->state == WORKLOAD_FINISHED && reason && strcmp(reason, "Succeeded") == 0;
}

bool workload_counts(const struct workload *member)
{
    return member->state != WORKLOAD_FINISHED || has_succeeded(member) || !member->group ||
           !group_retries(member->group);
}

struct group_end workload_group_end(const struct workload *workload)
{
    const struct pod_group *group = workload->group;
    struct group_end end = {.total = group ? group_total(group) : 0};
    bool active = false, stuck = false;
    for (size_t i = 0; group && i < group->members.len; i++) {
        const struct workload *member = group->members.items[i];
        const char *reason = member->conditions[WORKLOAD_IS_FINISHED].reason;
        active |= member->state != WORKLOAD_FINISHED;
        stuck |= member->state == WORKLOAD_FINISHED && reason && strcmp(reason, "FailedToStart") == 0;
        end.succeeded += has_succeeded(member);
    }
    end.well = end.total > 0 && end.succeeded >= end.total;
    end.finished = group && (end.well || (!active && (stuck || !group_retries(group))));
    CHECK(!end.finished || group);
    CHECK(end.succeeded >= 0 && (!group || end.succeeded <= (int64_t)group->members.len));
    return end;
}

/* --- roles ------------------------------------------------------------------------------------- */

static void add_part(struct buf *text, const struct doc *object, const char *key)
{
    const struct doc *part = doc_get(object, key);
    buf_printf(text, "%s:", key);
    if (part)
        json_write(text, part);
}

/* Names the role after the Pod's fields that matter to admission and placement, as kubernetes-sigs/kueue does
 * (pkg/controller/jobs/pod, "role hash"), but with other digits. */
void group_name_role(struct workload *member)
{
    CHECK(member->group && member->podsets && member->jobset->form == FORM_POD);
    static const char *const parts[] = {"nodeSelector",      "affinity", "tolerations",
                                        "priorityClassName", "priority", "topologySpreadConstraints"};
    static const char *const lists[] = {"initContainers", "containers"};
    const struct doc *spec = doc_get(member->jobset->document, "spec");
    struct buf text BUF_CLEANUP = {0};
    for (size_t l = 0; l < 2; l++) {
        const struct doc *list = doc_get(spec, lists[l]);
        for (size_t c = 0; c < doc_len(list); c++) {
            add_part(&text, doc_at(list, c), "resources");
            add_part(&text, doc_at(list, c), "ports");
        }
        buf_printf(&text, ";");
    }
    for (size_t p = 0; p < sizeof(parts) / sizeof(*parts); p++)
        add_part(&text, spec, parts[p]);
    uint64_t hash = hash64(0, text.data, text.len);
    static const char digits[] = "0123456789abcdef";
    for (int d = 0; d < 8; d++)
        member->role[d] = digits[hash >> (4 * d) & 15];
    member->podsets[0].name = (struct str){member->role, 8};
}
