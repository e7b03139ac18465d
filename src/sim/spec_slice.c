/* spec_slice.c - JobSets that ask for a slice: parts of a cube, a whole one, two of them, twisted or not. */
#include "sim/world.h"

#include "base/units.h"

void spec_slice(struct world *world, const char *ns, const char *name, struct buf *out, bool *ret_deletes)
{
    static const struct {
        const char *shape;
        int tasks;
        uint32_t cubes;
    } shapes[] = {{"2x2x1", 1, 1},  {"2x2x2", 2, 1},  {"2x4x2", 4, 1},         {"4x4x2", 8, 1},
                  {"4x4x4", 16, 1}, {"4x4x8", 32, 2}, {"4x4x8-twisted", 32, 2}};
    bool whole = world->swarm.whole_ppm && world_chance(world, world->swarm.whole_ppm);
    bool one = whole && world_chance(world, 500000); /* it may find another cube free */
    int64_t last = world->swarm.cubes > 1 && !one ? 6 : 4;
    int64_t which = world_draw(world, whole ? 4 : 0, last);
    bool moves = world->swarm.whole_ppm && which >= 4 && world_chance(world, 400000);
    int tasks = shapes[which].tasks;
    CHECK(shapes[which].cubes <= world->swarm.cubes);
    *ret_deletes = world->swarm.whole_ppm > 0;
    buf_printf(
        out,
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"%s\",\"annotations\":{\"phalanx.dev/slice\":\"%s\",%s"
        "\"phalanx.dev/"
        "no-progress-attempts\":\"1000\"}},\"spec\":{%s\"failurePolicy\":{\"maxRestarts\":1000},"
        "\"replicatedJobs\":[{\"name\":\"r0\",\"replicas\":1,\"template\":{\"spec\":{\"parallelism\":%d,"
        "\"completions\":%d,\"completionMode\":\"Indexed\",\"backoffLimit\":0,\"template\":{\"spec\":{"
        "\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":%d,\"containers\":[{\"name\":"
        "\"main\",\"image\":\"sim\",\"command\":[\"sim\",\"%lld\",\"0\",\"%lld\",\"%lld\"],\"resources\":{"
        "\"limits\":{\"google.com/tpu\":4}}}]}}}}}]}}",
        name, ns, shapes[which].shape, moves ? "\"phalanx.dev/slice-on-switch-loss\":\"Move\"," : "",
        world->swarm.whole_ppm ? "\"ttlSecondsAfterFinished\":2," : "", tasks, tasks,
        (int)world_draw(world, 0, 2), (long long)world_draw(world, 200, world->swarm.run_max_ns / NS_PER_MS),
        (long long)world_draw(world, 50, 400), (long long)world_draw(world, 5, 50));
}
