/* fault_trace.c - reads a history of faults: see fault_trace.h. */
#include "sim/model/fault_trace.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"

struct open_fault {
    uint32_t fault; /* index */
    struct str level, class_, description;
};
struct trace_machine {
    uint32_t number, open_count;
    struct open_fault open[FAULT_TRACE_OPEN_MAX]; /* oldest first */
};

struct reader {
    struct arena *arena;
    struct fault_trace *trace;
    struct str_map machines; /* struct trace_machine */
    struct str_map causes;   /* struct trace_cause */
    double now_days;
    struct error *error;
};

struct trace_event {
    const struct doc *where;
    struct str machine, level, class_, description;
    double days;
    bool starts;
};

static int refuse_event(struct reader *reader, const struct doc *where, enum error_code code, const char *why)
{
    return error_set(reader->error, code, "%u:%u: %s", where->line, where->column, why);
}

static bool event_number(const struct doc *node, double *ret)
{
    if (!node || (node->kind != DOC_INT && node->kind != DOC_FLOAT))
        return false;
    *ret = node->kind == DOC_INT ? (double)node->integer : node->number;
    return isfinite(*ret);
}

static bool event_text(const struct doc *node, struct str *ret)
{
    if (!node || node->kind != DOC_STRING)
        return false;
    *ret = node->text;
    return true;
}

static int event_read(struct reader *reader, const struct doc *doc, struct trace_event *ret_event)
{
    struct str type;
    const struct doc *fault = doc_get(doc, "fault_type");
    *ret_event = (struct trace_event){.where = doc};
    if (doc->kind != DOC_OBJECT)
        return refuse_event(reader, doc, ERROR_INVALID, "expected an event, an object with node_id");
    if (!event_text(doc_get(doc, "node_id"), &ret_event->machine))
        return refuse_event(reader, doc, ERROR_INVALID, "node_id: expected a string");
    if (!event_number(doc_get(doc, "event_time"), &ret_event->days) || ret_event->days < 0)
        return refuse_event(reader, doc, ERROR_INVALID, "event_time: expected days, a number from 0");
    if (!event_text(doc_get(doc, "event_type"), &type) ||
        !(str_is(type, "fault_start") || str_is(type, "fault_end")))
        return refuse_event(reader, doc, ERROR_INVALID, "event_type: expected fault_start or fault_end");
    if (!event_text(doc_get(fault, "Level"), &ret_event->level) ||
        !event_text(doc_get(fault, "Class"), &ret_event->class_) ||
        !event_text(doc_get(fault, "Desc"), &ret_event->description))
        return refuse_event(reader, doc, ERROR_INVALID, "fault_type: expected strings Level, Class and Desc");
    if (ret_event->days < reader->now_days)
        return refuse_event(reader, doc, ERROR_INVALID,
                            "event_time: expected events in the order of time, this one is before the last");
    ret_event->starts = str_is(type, "fault_start");
    return 0;
}

static int fault_began(struct reader *reader, const struct trace_event *event, struct trace_machine *machine)
{
    struct fault_trace *trace = reader->trace;
    struct trace_cause *cause = str_map_get(&reader->causes, event->class_);
    if (machine->open_count == FAULT_TRACE_OPEN_MAX)
        return refuse_event(reader, event->where, ERROR_LIMIT, "a machine has more than 64 faults at a time");
    if (!cause) {
        cause = &trace->causes[trace->cause_count++];
        cause->name = event->class_;
        str_map_put(&reader->causes, event->class_, cause);
    }
    cause->faults++;
    machine->open[machine->open_count++] = (struct open_fault){.fault = trace->count,
                                                               .level = event->level,
                                                               .class_ = event->class_,
                                                               .description = event->description};
    trace->faults[trace->count++] = (struct trace_fault){.machine = machine->number,
                                                         .cause = (uint32_t)(cause - trace->causes),
                                                         .hardware = str_is(event->level, "Hardware Failure"),
                                                         .start_days = event->days,
                                                         .end_days = -1};
    return 0;
}

static int fault_ended(struct reader *reader, const struct trace_event *event, struct trace_machine *machine)
{
    for (uint32_t i = 0; i < machine->open_count; i++) {
        const struct open_fault *open = &machine->open[i];
        if (!str_equal(open->class_, event->class_) || !str_equal(open->level, event->level) ||
            !str_equal(open->description, event->description))
            continue;
        reader->trace->faults[open->fault].end_days = event->days;
        machine->open_count--;
        memmove(&machine->open[i], &machine->open[i + 1], (machine->open_count - i) * sizeof *machine->open);
        return 0;
    }
    return refuse_event(reader, event->where, ERROR_INVALID,
                        "fault_end: no fault of this type has begun on the machine");
}

static int take_event(struct reader *reader, const struct doc *doc)
{
    struct trace_event event;
    int code = event_read(reader, doc, &event);
    if (code < 0)
        return code;
    struct trace_machine *machine = str_map_get(&reader->machines, event.machine);
    if (!machine) {
        machine = arena_try_alloc(reader->arena, sizeof *machine);
        if (!machine)
            return refuse_event(reader, doc, ERROR_LIMIT, "too many machines for the memory allowed");
        machine->number = reader->trace->machines++;
        str_map_put(&reader->machines, event.machine, machine);
    }
    reader->now_days = event.days;
    return event.starts ? fault_began(reader, &event, machine) : fault_ended(reader, &event, machine);
}

static int read_events(struct reader *reader, const struct doc *events)
{
    struct fault_trace *trace = reader->trace;
    trace->faults = arena_try_alloc(reader->arena, doc_len(events) * sizeof *trace->faults);
    trace->causes = arena_try_alloc(reader->arena, doc_len(events) * sizeof *trace->causes);
    if (!trace->faults || !trace->causes)
        return refuse_event(reader, events, ERROR_LIMIT, "too many events for the memory allowed");
    for (size_t i = 0; i < doc_len(events); i++) {
        int code = take_event(reader, doc_at(events, i));
        if (code < 0)
            return code;
        if (i == 0)
            trace->first_days = reader->now_days;
    }
    trace->last_days = reader->now_days;
    for (uint32_t i = 0; i < trace->count; i++)
        if (trace->faults[i].end_days < 0)
            trace->faults[i].end_days = trace->last_days;
    return 0;
}

int fault_trace_read(struct arena *arena, const struct doc *events, struct fault_trace *ret_trace,
                     struct error *error)
{
    struct fault_trace trace = {0};
    struct reader reader = {.arena = arena, .trace = &trace, .error = error};
    if (events->kind != DOC_ARRAY || doc_len(events) == 0)
        return refuse_event(&reader, events, ERROR_INVALID, "expected an array of events");
    if (doc_len(events) > FAULT_TRACE_EVENTS_MAX)
        return refuse_event(&reader, events, ERROR_LIMIT, "more than 2,000,000 events");
    int code = read_events(&reader, events);
    str_map_done(&reader.machines);
    str_map_done(&reader.causes);
    if (code == 0)
        *ret_trace = trace;
    return code;
}
