/* fault.c - API writes to Faults: reports of other systems and people, and the end of a fault. A
 * created Fault is a signal, judged like that of any probe. Deleting one clears it. */
#include "core/health/sender.h"
#include "core/write/write.h"
#include "core/react/react.h"

#define WAIT_FOR_ROOM_NS (60 * NS_PER_SECOND)

struct reading {
    const struct writing *writing;
    struct field_errors *errors;
    const struct doc *spec;
};

static struct str text_of(const struct reading *reading, const char *key)
{
    return doc_str(doc_get(reading->spec, key), STR(""));
}

static void fail(const struct reading *reading, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(const struct reading *reading, const char *key, const char *format, ...)
{
    struct buf path BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    buf_printf(&path, "spec.%s", key);
    field_error_add(reading->errors, buf_str(&path), "FieldValueInvalid", doc_get(reading->spec, key),
                    STR_FORMAT, STR_ARG(buf_str(&text)));
}

/* Returns the index of the member's text in `names`; 0, which is the default, if it is absent or invalid
 * (reported). */
static int read_name(const struct reading *reading, const char *key, const char *const *names)
{
    CHECK(names[0]);
    struct str text = text_of(reading, key);
    struct buf known BUF_CLEANUP = {0};
    for (int i = 0; names[i]; i++) {
        if (str_is(text, names[i]))
            return i;
        buf_printf(&known, "%s\"%s\"", i ? ", " : "", names[i]);
    }
    if (text.len)
        fail(reading, key, "Unsupported value: \"" STR_FORMAT "\": supported values: " STR_FORMAT,
             STR_ARG(text), STR_ARG(buf_str(&known)));
    return 0;
}

static int64_t read_time(const struct reading *reading, const char *key, int64_t fallback)
{
    int64_t ns = fallback;
    struct str text = text_of(reading, key);
    if (text.len && !time_parse(text, &ns))
        fail(reading, key, "Invalid value: \"" STR_FORMAT "\": must be a time like 2026-01-31T12:00:00Z",
             STR_ARG(text));
    return ns;
}

static void read_signal(const struct reading *reading, struct signal *ret)
{
    static const char *const assertions[] = {"occur", "recover", "once", NULL};
    static const char *const severities[] = {"major", "notice", "minor", "critical", NULL};
    static const enum signal_severity grades[] = {SEVERITY_MAJOR, SEVERITY_NOTICE, SEVERITY_MINOR,
                                                  SEVERITY_CRITICAL};
    int64_t now_ns = reading->writing->step->now_ns;
    int64_t chip = doc_int(doc_get(reading->spec, "chip"), -1);
    *ret = (struct signal){
        .code = text_of(reading, "code"),
        .place = text_of(reading, "place"),
        .evidence = text_of(reading, "evidence"),
        .assertion = (enum signal_assertion)(SIGNAL_OCCUR + read_name(reading, "assertion", assertions)),
        .severity = grades[read_name(reading, "severity", severities)],
        .chip = -1,
        .first_ns = read_time(reading, "time", now_ns),
        .count = 1,
    };
    ret->last_ns = ret->first_ns;
    struct signal placeless = *ret, bare = *ret;
    placeless.evidence = bare.evidence = bare.place = STR("");
    if (!signal_is_valid(&bare))
        fail(reading, "code",
             "Invalid value: \"" STR_FORMAT
             "\": must be a family and a name of lower case letters, digits and "
             "'-' with one '/' between them, at most %d bytes",
             STR_ARG(ret->code), SIGNAL_CODE_MAX);
    else if (!signal_is_valid(&placeless))
        fail(reading, "place", "Invalid value: must be at most %d printable ASCII bytes", SIGNAL_PLACE_MAX);
    else if (!signal_is_valid(ret))
        fail(reading, "evidence", "Invalid value: must be at most %d bytes", SIGNAL_EVIDENCE_MAX);
    struct str sender = text_of(reading, "sender");
    for (size_t i = 0; i < sender.len; i++)
        if (sender.len > SENDER_NAME_MAX || sender.data[i] < ' ' || sender.data[i] > '~') {
            fail(reading, "sender", "Invalid value: must be at most %d printable ASCII bytes",
                 SENDER_NAME_MAX);
            break;
        }
    const struct machine *machine =
        cluster_find(&reading->writing->core->cluster, text_of(reading, "machine"));
    if (!machine)
        fail(reading, "machine", "Not found: \"" STR_FORMAT "\"", STR_ARG(text_of(reading, "machine")));
    else if (chip < -1 || chip >= (int64_t)machine->chip_count)
        fail(reading, "chip", "Invalid value: %lld: the machine has %u chips", (long long)chip,
             machine->chip_count);
    else
        ret->chip = (int32_t)chip;
}

/* Returns the sender's name in the report, else the author of the write, else "unknown". */
static struct str sender_of(const struct reading *reading)
{
    struct str sender = text_of(reading, "sender"), user = reading->writing->write->user;
    if (!sender.len)
        sender = user.len && user.len <= SENDER_NAME_MAX ? user : STR("unknown");
    return sender;
}

static bool refuse_for_now(const struct writing *writing, int64_t wait_ns, const char *why)
{
    CHECK(wait_ns >= 0);
    const struct effects *effects = writing->step->effects;
    (void)write_refuse(writing, 429, "TooManyRequests", NULL, "%s", why);
    effects->list.items[effects->list.len - 1].reply.retry_after_s =
        (uint32_t)((wait_ns + NS_PER_SECOND - 1) / NS_PER_SECOND);
    return false;
}

/* Checks the limits in the `public` part of the FaultTable: the sender's codes, rate and number of faults. */
static bool may_report(const struct writing *writing, const struct sighting *sighting)
{
    int64_t wait_ns = 0;
    struct str sender = sighting->sender;
    switch (sender_judge(writing->step->health, sighting, writing->step->now_ns, &wait_ns)) {
    case SENDER_MAY:
        return true;
    case SENDER_UNKNOWN:
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "faults.phalanx.dev is forbidden: the FaultTable lets \"" STR_FORMAT
                            "\" report nothing",
                            STR_ARG(sender));
    case SENDER_OTHER_CODE:
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "faults.phalanx.dev is forbidden: the FaultTable does not let \"" STR_FORMAT
                            "\" report \"" STR_FORMAT "\"",
                            STR_ARG(sender), STR_ARG(sighting->signal->code));
    case SENDER_TOO_FAST:
        return refuse_for_now(writing, wait_ns, "the sender reports faster than the FaultTable lets it");
    case SENDER_TOO_MANY:
        return refuse_for_now(writing, WAIT_FOR_ROOM_NS,
                              "as many faults of the sender are open as the FaultTable lets it have");
    case SENDERS_TOO_MANY:
        return refuse_for_now(writing, WAIT_FOR_ROOM_NS,
                              "as many faults of other systems are open as the FaultTable lets them have");
    }
    CHECK_UNREACHABLE();
}

static bool create(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_CREATE);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    if (!write_parse(writing, &arena, OBJECT_BYTES_MAX, &document))
        return false;
    write_set_name(writing, &arena, document, false);
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    struct reading reading = {writing, write_new_errors(writing), doc_get(document, "spec")};
    struct signal signal;
    read_signal(&reading, &signal);
    if (name.len > NAME_MAX_BYTES)
        field_error_add(reading.errors, STR("metadata.name"), "FieldValueInvalid", NULL,
                        "Invalid value: must be no more than %d bytes", NAME_MAX_BYTES);
    if (reading.errors->list.len)
        return write_refuse_invalid(writing, reading.errors, name);
    if (name.len && fault_find(writing->step->health, name))
        return write_refuse_taken(writing, "faults.phalanx.dev", name);
    struct sighting sighting = {.machine = text_of(&reading, "machine"),
                                .signal = &signal,
                                .user = writing->write->user,
                                .sender = sender_of(&reading),
                                .name = name};
    if (!may_report(writing, &sighting))
        return false;
    if (writing->dry)
        return true;
    struct fault *fault = core_sighted(writing->core, writing->step, &sighting);
    if (!fault && signal.assertion == SIGNAL_RECOVER)
        return write_refuse(writing, 404, "NotFound", NULL,
                            "machine " STR_FORMAT " has no fault " STR_FORMAT
                            " at that place: nothing recovers",
                            STR_ARG(sighting.machine), STR_ARG(signal.code));
    if (!fault)
        return write_refuse(writing, 429, "TooManyRequests", NULL,
                            "machine " STR_FORMAT " has as many open faults as are kept",
                            STR_ARG(sighting.machine));
    return write_accept(writing, 201, ref_fault(fault));
}

bool write_fault(const struct writing *writing)
{
    if (writing->write->verb == WRITE_CREATE)
        return create(writing);
    if (writing->write->verb != WRITE_DELETE)
        return write_refuse_verb(writing);
    struct fault *fault = (struct fault *)fault_find(writing->step->health, writing->write->name);
    if (!fault)
        return write_refuse_missing(writing);
    if (!write_still_holds(writing, ref_fault(fault)))
        return false;
    if (writing->dry)
        return true;
    health_remove(writing->step, fault);
    return write_accept(writing, 200, ref_fault(fault));
}
