#include "sim/capacity/packing.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/rng.h"
#include "core/fabric/defrag.h"
#include "core/slice/slice.h"
#include "doc/json.h"
#include "sim/capacity/torus3d.h"

enum { CUBES = 64, SIDE = 4, MACHINES = CUBES * CUBE_MACHINES };
const char *const packing_names[PACKING_WAYS] = {"any cubes", "any cubes, small slices move", "torus3d boxes",
                                                 "torus3d boxes at any cube"};

/* The mix: how many of 1,000 slices have each shape. */
static const struct mix_row {
    const char *shape;
    uint32_t permille;
} mix[] = {{"2x2x1", 100}, {"2x2x2", 60},  {"2x2x4", 60},  {"2x4x4", 70}, {"4x4x4", 280},
           {"4x4x8", 170}, {"4x4x12", 20}, {"4x8x8", 120}, {"8x8x8", 80}, {"8x8x16", 40}};
enum { SHAPES = sizeof mix / sizeof *mix };

enum held { HELD_NOT, HELD_BUSY, HELD_BROKEN };
struct run {
    double end;
    uint32_t count;
    uint16_t *machines;      /* [count] */
    struct defrag_part part; /* for a slice that is a part of a cube */
    bool is_part;
};
struct pack {
    const struct packing_order *order;
    enum packing_way way;
    struct packing_result *result;
    struct rng rng;
    double now;
    uint8_t state[MACHINES];
    uint32_t idle, healthy; /* machines */
    struct slice_shape shapes[SHAPES];
    bool hopeless[SHAPES];
    VEC(struct run) runs;
    /* for placement with switches */
    struct cluster cluster;
    struct slices *slices;
    /* for placement in boxes */
    struct arena arena;
    struct torus3d_file file;
    uint16_t machine_of[MACHINES]; /* by cell */
    uint16_t found[MACHINES];      /* machines of the last choice */
    struct defrag_part found_part;
};

/* --- with switches -------------------------------------------------------------------------------------- */

static void make_pod(struct pack *pack)
{
    struct field_errors errors = {.arena = &pack->arena};
    struct doc *document;
    CHECK(json_parse(&pack->arena,
                     STR("{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":"
                         "\"packing\"},\"spec\":{\"settings\":{\"checkpointDir\":\"/ckpt\"},"
                         "\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\",\"pods\":[{\"namePattern\":"
                         "\"pod-{pod}\",\"count\":1,\"cubes\":64,\"fabric\":{\"switches\":"
                         "\"127.0.0.1:5100\"}}]}}"),
                     &document, NULL) == 0);
    CHECK(cluster_load(document, &pack->cluster, &errors) && pack->cluster.machine_count == MACHINES);
    pack->slices = slices_new();
    slices_cluster(NULL, pack->slices, &pack->cluster);
}

static enum machine_fit fit_of(const void *context, machine_id machine)
{
    static const enum machine_fit fits[] = {
        [HELD_NOT] = MACHINE_FITS, [HELD_BUSY] = MACHINE_IS_TAKEN, [HELD_BROKEN] = MACHINE_IS_OUT};
    const struct pack *pack = context;
    return fits[pack->state[machine]];
}

static bool choose_cubes(struct pack *pack, const struct slice_shape *shape)
{
    struct slice_want want = {.shape = shape, .jobset = 1, .fit = fit_of, .context = pack};
    struct slice_place place;
    struct buf why BUF_CLEANUP = {0};
    if (!slice_choose(pack->slices, &pack->cluster, &want, &place, &why))
        return false;
    for (uint32_t rank = 0; rank < slice_machine_count(shape); rank++)
        pack->found[rank] = (uint16_t)slice_machine(&pack->cluster, &place, rank);
    if (!slice_shape_is_whole(shape)) {
        pack->found_part = (struct defrag_part){.cube = place.cubes.cube[0]};
        defrag_extent(shape, pack->found_part.extent);
        pack->found_part.mask = defrag_mask(place.origin, pack->found_part.extent);
    }
    return true;
}

/* --- boxes ---------------------------------------------------------------------------------------------- */

static void add_placement(struct torus3d *torus, const struct slice_shape *shape, const int axes[AXES],
                          bool free_anchors)
{
    static const uint16_t unit[AXES] = {2, 2, 1}, cube[AXES] = {2, 2, 4};
    struct torus3d_placement placement = {.size = slice_machine_count(shape), .anchors = 1};
    for (int axis = 0; axis < AXES; axis++) {
        uint16_t chips = shape->extent[axes[axis]];
        if (chips % unit[axis] != 0)
            return;
        placement.dims[axis] = chips / unit[axis];
        placement.spacing[axis] =
            free_anchors && slice_shape_is_whole(shape) ? cube[axis] : placement.dims[axis];
        uint32_t steps = 1;
        while (steps * placement.spacing[axis] % torus->dims[axis] != 0)
            steps++;
        placement.anchors *= steps;
    }
    for (uint32_t i = 0; i < torus->placement_count; i++)
        if (memcmp(torus->placements[i].dims, placement.dims, sizeof placement.dims) == 0)
            return;
    torus->placements[torus->placement_count++] = placement;
}

static void make_torus(struct pack *pack)
{
    static const int orders[][AXES] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct torus3d *torus = ARENA_NEW(&pack->arena, struct torus3d);
    *torus = (struct torus3d){.name = STR("pod"), .dims = {8, 8, 16}, .cells = MACHINES};
    torus->nodes = ARENA_ARRAY(&pack->arena, struct str, MACHINES);
    torus->placements = ARENA_ARRAY(&pack->arena, struct torus3d_placement, 6 * SHAPES);
    for (uint32_t cell = 0; cell < MACHINES; cell++) {
        uint32_t x = cell % 8, y = cell / 8 % 8, z = cell / 64;
        torus->nodes[cell] = STR("m");
        pack->machine_of[cell] = (uint16_t)(CUBE_MACHINES * (x / 2 + SIDE * (y / 2 + SIDE * (z / 4))) +
                                            x % 2 + 2 * (y % 2) + 4 * (z % 4));
    }
    for (uint32_t i = 0; i < SHAPES; i++)
        for (int k = 0; k < 6; k++)
            add_placement(torus, &pack->shapes[i], orders[k], pack->way == PACKING_BOXES_FREE);
    pack->file = (struct torus3d_file){torus, 1};
}

static bool choose_box(struct pack *pack, const struct slice_shape *shape)
{
    uint8_t is_free[MACHINES];
    const uint8_t *all[] = {is_free};
    uint32_t cells[MACHINES], torus, count = slice_machine_count(shape);
    for (uint32_t cell = 0; cell < MACHINES; cell++)
        is_free[cell] = pack->state[pack->machine_of[cell]] == HELD_NOT;
    if (!torus3d_place(&pack->file, all, count, &torus, cells))
        return false;
    for (uint32_t i = 0; i < count; i++)
        pack->found[i] = pack->machine_of[cells[i]];
    return true;
}

/* --- moves ---------------------------------------------------------------------------------------------- */

/* Describes the pod for the planner: parts of cubes may move, and everything else blocks. */
static void describe_pod(const struct pack *pack, struct defrag_pod *pod, uint32_t *run_of)
{
    pod->cubes = CUBES;
    for (uint32_t m = 0; m < MACHINES; m++)
        if (pack->state[m] != HELD_NOT)
            pod->blocked[m / CUBE_MACHINES] |= (uint16_t)(1u << m % CUBE_MACHINES);
    for (uint32_t i = 0; i < pack->runs.len; i++)
        if (pack->runs.items[i].is_part) {
            run_of[pod->part_count] = i;
            pod->parts[pod->part_count++] = pack->runs.items[i].part;
            pod->blocked[pack->runs.items[i].part.cube] &= (uint16_t)~pack->runs.items[i].part.mask;
        }
}

static void take_machines(struct pack *pack, const struct run *run, enum held state)
{
    for (uint32_t i = 0; i < run->count; i++)
        pack->state[run->machines[i]] = (uint8_t)state;
}

static void move_run(struct pack *pack, struct run *run, const struct defrag_move *move)
{
    uint32_t count = 0;
    take_machines(pack, run, HELD_NOT);
    run->part.cube = move->cube;
    run->part.mask = move->mask;
    for (uint32_t bit = 0; bit < CUBE_MACHINES; bit++)
        if (move->mask >> bit & 1) {
            uint16_t machine = (uint16_t)(CUBE_MACHINES * move->cube + bit);
            CHECK(pack->state[machine] == HELD_NOT);
            run->machines[count++] = machine;
        }
    CHECK(count == run->count);
    take_machines(pack, run, HELD_BUSY);
}

static bool make_room(struct pack *pack, const struct slice_shape *shape)
{
    struct defrag_pod *pod = mem_alloc(sizeof *pod);
    struct defrag_room *room = mem_alloc(sizeof *room);
    uint32_t *run_of = mem_alloc(MACHINES * sizeof *run_of);
    pod->parts = mem_alloc(MACHINES * sizeof *pod->parts);
    describe_pod(pack, pod, run_of);
    bool found = defrag_make_room(pod, shape, pack->order->moves_max, room) && room->move_count > 0;
    for (uint32_t i = 0; i < room->move_count && found; i++) {
        const struct defrag_move *move = &room->moves[i];
        move_run(pack, &pack->runs.items[run_of[move->part]], move);
    }
    pack->result->moves += found ? room->move_count : 0;
    pack->result->moved_for += found;
    mem_free(pod->parts);
    mem_free(pod);
    mem_free(room);
    mem_free(run_of);
    return found;
}

/* --- the stream ----------------------------------------------------------------------------------------- */

static bool choose(struct pack *pack, const struct slice_shape *shape)
{
    int64_t begin_ns = pack->order->clock_ns ? pack->order->clock_ns() : 0;
    bool boxes = pack->way == PACKING_BOXES || pack->way == PACKING_BOXES_FREE;
    bool found = boxes ? choose_box(pack, shape) : choose_cubes(pack, shape);
    if (!found && pack->way == PACKING_MOVING && pack->idle >= slice_machine_count(shape) &&
        make_room(pack, shape))
        found = choose_cubes(pack, shape);
    if (pack->order->clock_ns)
        pack->result->choose_ns += pack->order->clock_ns() - begin_ns;
    pack->result->choices++;
    return found;
}

static void begin_run(struct pack *pack, const struct slice_shape *shape, double length)
{
    struct run run = {.end = pack->now + length, .count = slice_machine_count(shape)};
    run.is_part = pack->way <= PACKING_MOVING && !slice_shape_is_whole(shape);
    run.part = pack->found_part;
    run.machines = mem_alloc(run.count * sizeof *run.machines);
    mem_copy(run.machines, pack->found, run.count * sizeof *run.machines);
    for (uint32_t i = 0; i < run.count; i++)
        CHECK(pack->state[run.machines[i]] == HELD_NOT);
    take_machines(pack, &run, HELD_BUSY);
    pack->idle -= run.count;
    vec_push(&pack->runs, run);
    pack->result->placed++;
}

/* Advances time until a slice ends, while a slice of `wants` machines waits. */
static void end_run(struct pack *pack, uint32_t wants)
{
    uint32_t first = 0;
    CHECK(pack->runs.len > 0);
    for (uint32_t i = 1; i < pack->runs.len; i++)
        first = pack->runs.items[i].end < pack->runs.items[first].end ? i : first;
    struct run run = pack->runs.items[first];
    double passed = run.end - pack->now;
    pack->result->busy += passed * (pack->healthy - pack->idle);
    pack->result->stranded += pack->idle >= wants ? passed * pack->idle : 0;
    pack->now = run.end;
    take_machines(pack, &run, HELD_NOT);
    pack->idle += run.count;
    pack->runs.items[first] = pack->runs.items[--pack->runs.len];
    mem_free(run.machines);
}

static uint32_t draw_shape(struct rng *rng)
{
    uint32_t at = (uint32_t)rng_below(rng, 1000), i = 0;
    while (at >= mix[i].permille)
        at -= mix[i++].permille;
    CHECK(i < SHAPES);
    return i;
}

static void prepare_pack(struct pack *pack)
{
    rng_seed(&pack->rng, pack->order->seed);
    for (uint32_t i = 0; i < SHAPES; i++)
        CHECK(slice_shape_parse(str_from(mix[i].shape), &pack->shapes[i], NULL) == 0);
    for (uint32_t m = 0; m < MACHINES; m++) {
        pack->state[m] = rng_unit(&pack->rng) < pack->order->host_up ? HELD_NOT : HELD_BROKEN;
        pack->healthy += pack->state[m] == HELD_NOT;
    }
    pack->idle = pack->healthy;
    if (pack->way <= PACKING_MOVING)
        make_pod(pack);
    else
        make_torus(pack);
    struct packing_result none = *pack->result;
    for (uint32_t i = 0; i < SHAPES; i++)
        pack->hopeless[i] = !choose(pack, &pack->shapes[i]);
    *pack->result = none;
}

void packing_run(const struct packing_order *order, enum packing_way way, struct packing_result *ret_result)
{
    CHECK(way < PACKING_WAYS && order->slices <= PACKING_SLICES_MAX && order->moves_max <= DEFRAG_MOVES_MAX);
    struct pack *pack = mem_alloc(sizeof *pack);
    *ret_result = (struct packing_result){0};
    pack->order = order;
    pack->way = way;
    pack->result = ret_result;
    prepare_pack(pack);
    for (uint32_t i = 0; i < order->slices; i++) {
        uint32_t drawn = draw_shape(&pack->rng);
        const struct slice_shape *shape = &pack->shapes[drawn];
        double length = -log(1 - rng_unit(&pack->rng));
        if (pack->hopeless[drawn]) {
            ret_result->refused++;
            continue;
        }
        while (!choose(pack, shape))
            end_run(pack, slice_machine_count(shape));
        begin_run(pack, shape, length);
    }
    ret_result->time = pack->now;
    ret_result->busy /= pack->now > 0 ? pack->now * pack->healthy : 1;
    ret_result->stranded /= pack->now > 0 ? pack->now * pack->healthy : 1;
    for (uint32_t i = 0; i < pack->runs.len; i++)
        mem_free(pack->runs.items[i].machines);
    vec_done(&pack->runs);
    if (pack->slices) {
        slices_free(pack->slices);
        cluster_done(&pack->cluster);
    }
    arena_done(&pack->arena);
    mem_free(pack);
}
