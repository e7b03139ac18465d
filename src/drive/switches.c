/* switches.c - answers and health of optical switches, as events (core/words/switch.h). */
#include "drive/internal.h"

static struct str cut_text(struct arena *arena, struct str text)
{
    if (text.len > SWITCH_TEXT_MAX)
        text.len = SWITCH_TEXT_MAX;
    return arena_str(arena, text);
}

static void *copy(struct arena *arena, const void *items, size_t count, size_t size)
{
    if (count == 0)
        return NULL;
    void *copied = arena_alloc(arena, count * size);
    memcpy(copied, items, count * size);
    return copied;
}

void driver_switch_report(struct driver *driver, const struct switch_report *report)
{
    CHECK(report->result_count <= SWITCH_RESULTS_MAX && report->present_count <= SWITCH_CIRCUITS_MAX);
    struct pending *pending = pending_new(EVENT_SWITCH_REPORT);
    struct switch_report *own = &pending->event.switch_report;
    *own = *report;
    own->name = arena_str(&pending->arena, report->name);
    own->reason = cut_text(&pending->arena, report->reason);
    own->results = copy(&pending->arena, report->results, report->result_count, sizeof *own->results);
    own->present = copy(&pending->arena, report->present, report->present_count, sizeof *own->present);
    queue_put(driver, pending);
}

void driver_switch_health(struct driver *driver, const struct switch_health *health)
{
    CHECK(health->alarm_count <= SWITCH_ALARMS_MAX && health->bad_port_count <= SWITCH_PORTS_MAX);
    struct pending *pending = pending_new(EVENT_SWITCH_HEALTH);
    struct switch_health *own = &pending->event.switch_health;
    *own = *health;
    own->name = arena_str(&pending->arena, health->name);
    own->reason = cut_text(&pending->arena, health->reason);
    own->alarms = copy(&pending->arena, health->alarms, health->alarm_count, sizeof *own->alarms);
    for (size_t i = 0; i < health->alarm_count; i++)
        own->alarms[i] = cut_text(&pending->arena, health->alarms[i]);
    own->bad_ports = copy(&pending->arena, health->bad_ports, health->bad_port_count, sizeof *own->bad_ports);
    queue_put(driver, pending);
}
