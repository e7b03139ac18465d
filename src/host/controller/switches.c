/* switches.c - the driver's port to optical switches: the desk of host/fabric carries out its requests, and
 * answers become events. */
#include "host/controller/internal.h"
#include "host/fabric/desk.h"

static void begin_apply(void *context, const struct switch_apply *apply)
{
    struct controller *controller = context;
    if (controller->desk)
        desk_apply(controller->desk, apply);
}

static void on_report(void *context, const struct switch_report *report)
{
    struct controller *controller = context;
    driver_switch_report(controller->driver, report);
}

static void on_health(void *context, const struct switch_health *health)
{
    struct controller *controller = context;
    driver_switch_health(controller->driver, health);
}

void switches_follow(struct controller *controller)
{
    const struct cluster *cluster = core_cluster(controller->core);
    for (size_t i = 0; controller->desk && i < cluster->switch_count; i++) {
        const struct optical_switch *at = &cluster->switches[i];
        desk_follow(controller->desk, &(struct switch_apply){.name = at->name,
                                                             .protocol = at->protocol,
                                                             .address = at->address,
                                                             .login = at->login,
                                                             .cubes = cluster->pods[at->pod].cube_count});
    }
}

struct switch_port switches_begin(struct controller *controller)
{
    struct desk_calls calls = {.context = controller, .report = on_report, .health = on_health};
    controller->desk = desk_new(controller->loop, &calls);
    return (struct switch_port){controller, begin_apply};
}

void switches_end(struct controller *controller)
{
    if (controller->desk)
        desk_close(controller->desk);
    controller->desk = NULL;
}
