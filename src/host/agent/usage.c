/* A usage is the difference of two measurements. The first is made with the first heartbeat, the second soon
 * after it, so that a new machine is soon known, and all others at their interval. A container has a usage
 * from its second measurement on. */
#include "base/map.h"
#include "host/agent/internal.h"

#define USAGE_FIRST_NS    (2 * NS_PER_SECOND)
#define USAGE_INTERVAL_NS (10 * NS_PER_SECOND)

struct usage_meter {
    int64_t measured_ns, next_ns; /* boottime */
    bool known;                   /* the machine's */
    int64_t cpu_ns;
    struct launch_usage *before; /* [before_count], own */
    size_t before_count;
    struct u64_map by_uid; /* of `before` */
};

static void forget_before(struct usage_meter *meter)
{
    u64_map_done(&meter->by_uid);
    mem_free(meter->before);
    meter->by_uid = (struct u64_map){0};
    meter->before = NULL;
    meter->before_count = 0;
}

void local_usage_free(struct live *live)
{
    if (!live->meter)
        return;
    forget_before(live->meter);
    mem_free(live->meter);
    live->meter = NULL;
}

/* Returns the usage per second. A run that was restarted counts from zero. */
static int64_t rate(int64_t before_ns, int64_t after_ns, int64_t window_ns)
{
    int64_t used_ns = after_ns < before_ns ? after_ns : after_ns - before_ns;
    return used_ns > 0 ? (int64_t)((__int128)used_ns * NS_PER_SECOND / window_ns) : 0;
}

static void add_items(const struct usage_meter *meter, const struct launch_usage *now, size_t count,
                      struct arena *arena, struct usage *usage)
{
    usage->items = ARENA_ARRAY(arena, struct container_usage, count);
    for (size_t i = 0; i < count; i++) {
        const struct launch_usage *before = u64_map_get(&meter->by_uid, now[i].uid);
        if (!before)
            continue;
        struct container_usage *item = &usage->items[usage->item_count++];
        local_container_of(now[i].uid, &item->task, &item->container);
        item->cpu_nano = rate(before->cpu_ns, now[i].cpu_ns, usage->window_ns);
        item->memory_bytes = now[i].memory_bytes;
    }
}

static void keep(struct usage_meter *meter, struct launch_usage *now, size_t count)
{
    forget_before(meter);
    meter->before = now;
    meter->before_count = count;
    for (size_t i = 0; i < count; i++)
        u64_map_put(&meter->by_uid, now[i].uid, &now[i]);
}

void local_usage_add(struct live *live, struct arena *arena, struct heartbeat *heartbeat)
{
    if (!live->meter)
        live->meter = mem_alloc(sizeof *live->meter);
    struct usage_meter *meter = live->meter;
    int64_t now_ns = local_boot_ns(), cpu_ns = 0, memory_bytes = 0;
    if (now_ns < meter->next_ns)
        return;
    size_t max = live->running.len < USAGE_ITEMS_MAX ? live->running.len : USAGE_ITEMS_MAX;
    struct launch_usage *now = mem_alloc((max + 1) * sizeof *now);
    size_t count = launch_measure(live->launcher, now, max);
    bool known = launch_measure_machine(&cpu_ns, &memory_bytes);
    struct usage usage = {.window_ns = now_ns - meter->measured_ns, .memory_bytes = memory_bytes};
    if (known && meter->known && usage.window_ns > 0) {
        usage.cpu_nano = rate(meter->cpu_ns, cpu_ns, usage.window_ns);
        add_items(meter, now, count, arena, &usage);
        heartbeat->usage = usage;
    }
    meter->next_ns = now_ns + (meter->known ? USAGE_INTERVAL_NS : USAGE_FIRST_NS);
    meter->measured_ns = now_ns;
    meter->known = known;
    meter->cpu_ns = cpu_ns;
    keep(meter, now, count);
}
