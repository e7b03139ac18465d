/* gate.c - the annotation kueue.x-k8s.io/admission-gated-by: comma-separated names of controllers that must
 * release a workload before it is admitted. Gates are set when the object is created; later they can only be
 * removed.
 */
#include "core/admit/internal.h"

#define NOTE_GATES STR("kueue.x-k8s.io/admission-gated-by")
enum { GATE_BYTES_MAX = 63 };

struct str admission_gates(const struct jobset *jobset)
{
    return str_trim(labels_get(&jobset->spec.annotations, NOTE_GATES, STR("")));
}

static bool next_gate(struct str *rest, struct str *ret_gate)
{
    struct str head, tail;
    if (!rest->data)
        return false;
    bool more = str_cut(*rest, ',', &head, &tail);
    CHECK(!more || tail.len < rest->len); /* the list gets shorter */
    *ret_gate = str_trim(more ? head : *rest);
    *rest = more ? tail : (struct str){0};
    return true;
}

static bool has_gate(struct str list, struct str gate)
{
    struct str one;
    while (next_gate(&list, &one))
        if (str_equal(one, gate))
            return true;
    return false;
}

static void refuse(struct field_errors *errors, const char *reason, const char *format, struct str value)
{
    field_error_add(errors, STR("metadata.annotations[kueue.x-k8s.io/admission-gated-by]"), reason, NULL,
                    format, STR_ARG(value));
}

/* Whether the gate has the form "example.com/controller". */
static bool is_name(struct str gate)
{
    struct str domain, path;
    return str_cut(gate, '/', &domain, &path) && name_is_dns1123_subdomain(domain) && path.len > 0 &&
           name_is_label_key(gate);
}

static void check_form(struct str gates, struct field_errors *errors)
{
    struct str rest = gates, gate;
    while (gates.len && next_gate(&rest, &gate)) {
        if (!gate.len)
            refuse(errors, "FieldValueInvalid",
                   "Invalid value: \"" STR_FORMAT "\": cannot contain empty gate names", gates);
        else if (rest.data && has_gate(rest, gate))
            refuse(errors, "FieldValueInvalid", "Invalid value: \"" STR_FORMAT "\": names a gate twice",
                   gates);
        else if (gate.len > GATE_BYTES_MAX)
            refuse(errors, "FieldValueTooLong", "Too long: \"" STR_FORMAT "\": may not be more than 63 bytes",
                   gate);
        else if (!is_name(gate))
            refuse(errors, "FieldValueInvalid",
                   "Invalid value: \"" STR_FORMAT
                   "\": must be a domain-prefixed path (such as \"acme.io/foo\")",
                   gate);
    }
}

void gates_validate(struct str was, struct str is, bool is_new, struct field_errors *errors)
{
    CHECK(!is_new || !was.len); /* a new object had no gates before */
    struct str rest = is, gate;
    was = str_trim(was);
    is = str_trim(is);
    if (!is_new && !was.len && is.len)
        refuse(errors, "FieldValueForbidden",
               "Forbidden: cannot add admission gate after creation: \"" STR_FORMAT "\"", is);
    while (was.len && is.len && next_gate(&rest, &gate)) {
        if (!has_gate(was, gate)) {
            refuse(errors, "FieldValueForbidden",
                   "Forbidden: can only remove gates, not add new ones: \"" STR_FORMAT "\"", gate);
            break;
        }
    }
    check_form(is, errors);
}
