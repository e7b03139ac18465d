/* snapshot_slice.c - slices, and the known state of switches and cubes, in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/job/job.h"
#include "core/slice/slice.h"
#include "core/log/snapshot.h"

/* Returns a pair of ports or cubes as one number. */
static uint32_t pair_of(uint32_t plus, uint32_t minus)
{
    CHECK(plus <= UINT16_MAX && minus <= UINT16_MAX);
    return plus << 16 | minus;
}

static Snapshot__Shown write_shown(const struct shown *shown)
{
    CHECK(shown->ready <= SHOWN_TRUE && shown->drained <= SHOWN_TRUE);
    Snapshot__Shown pb = SNAPSHOT__SHOWN__INIT;
    pb.uid = shown->uid;
    pb.changed_seq = shown->changed_seq;
    pb.sum = shown->sum;
    pb.created_ns = shown->created_ns;
    pb.ready = shown->ready;
    pb.drained = shown->drained;
    pb.ready_ns = shown->ready_ns;
    pb.drained_ns = shown->drained_ns;
    return pb;
}

/* Keeps the names. */
static bool read_shown(struct shown *shown, int64_t now_ns, const Snapshot__Shown *pb)
{
    if (!pb || pb->ready > SHOWN_TRUE || pb->drained > SHOWN_TRUE || pb->created_ns > now_ns ||
        pb->ready_ns > now_ns || pb->drained_ns > now_ns)
        return false;
    shown->uid = pb->uid;
    shown->changed_seq = pb->changed_seq;
    shown->sum = pb->sum;
    shown->created_ns = pb->created_ns;
    shown->ready = (uint8_t)pb->ready;
    shown->drained = (uint8_t)pb->drained;
    shown->ready_ns = pb->ready_ns;
    shown->drained_ns = pb->drained_ns;
    return true;
}

static void write_slice(const struct slice *slice, void (*put)(void *context, Snapshot__Record *record),
                        void *context)
{
    CHECK(slice->phase < SLICE_PHASES && slice->place.cubes.count <= SLICE_CUBES_MAX);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Slice pb = SNAPSHOT__SLICE__INIT;
    char shape[SHAPE_TEXT_MAX];
    uint32_t cubes[SLICE_CUBES_MAX], origin[AXES];
    Snapshot__Shown shown = write_shown(&slice->shown), session = write_shown(&slice->session);
    record.kind_case = SNAPSHOT__RECORD__KIND_SLICE;
    record.slice = &pb;
    slice_shape_format(&slice->place.cubes.shape, shape);
    for (uint32_t c = 0; c < slice->place.cubes.count; c++)
        cubes[c] = slice->place.cubes.cube[c];
    for (uint32_t axis = 0; axis < AXES; axis++)
        origin[axis] = slice->place.origin[axis];
    pb.jobset = slice->jobset;
    pb.pod = slice->place.pod;
    pb.shape = shape;
    pb.n_cubes = slice->place.cubes.count;
    pb.cubes = cubes;
    pb.n_origin = AXES;
    pb.origin = origin;
    pb.phase = slice->phase;
    pb.lost = slice->lost;
    pb.told = slice->told;
    pb.unread = slice->unread;
    pb.connected = slice->connected;
    pb.left_out = slice->left_out;
    pb.wrong = slice->wrong;
    pb.begun_ns = slice->begun_ns;
    pb.connected_ns = slice->connected_ns;
    pb.reads_from = slice->reads_from;
    pb.moves = slice->moves;
    pb.tables = slice->tables;
    pb.tables_number = slice->tables_number;
    pb.tables_out = slice->tables_out;
    pb.tables_ns = slice->tables_ns;
    pb.leave_ns = slice->leave_ns;
    pb.noticed_ns = slice->noticed_ns;
    pb.shown = &shown;
    pb.session = &session;
    put(context, &record);
}

static bool is_fresh(const struct switch_now *now)
{
    bool bad = false;
    for (uint32_t cube = 0; cube < POD_CUBES_MAX; cube++)
        bad |= now->bad[cube] != 0;
    return !now->health && !now->known && !now->failures && !now->operation && !now->retry_ns && !bad &&
           !now->reason.len && !now->alarms.len && !now->lies && !now->drain && !now->verify &&
           !now->shown.uid;
}

static uint32_t *write_circuits(struct arena *arena, const struct circuit *circuits, size_t count)
{
    CHECK(count <= SWITCH_CIRCUITS_MAX);
    uint32_t *list = ARENA_ARRAY(arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++)
        list[i] = pair_of(circuits[i].plus, circuits[i].minus);
    return list;
}

static void write_switch(const struct pod_now *pod, uint32_t p, uint32_t number,
                         void (*put)(void *context, Snapshot__Record *record), void *context)
{
    CHECK(number < POD_SWITCHES && pod->switches && pod->cubes <= POD_CUBES_MAX);
    struct arena arena ARENA_CLEANUP = {0};
    const struct switch_now *now = &pod->switches[number];
    CHECK(now->health < SWITCH_STATES && (!now->leaving || now->drain));
    Snapshot__Shown shown = write_shown(&now->shown);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Switch pb = SNAPSHOT__SWITCH__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_OPTICAL_SWITCH;
    record.optical_switch = &pb;
    pb.pod = p;
    pb.number = number;
    pb.health = now->health;
    pb.known = now->known;
    pb.read = now->read;
    pb.failures = now->failures;
    pb.operation = now->operation;
    pb.due_ns = now->due_ns;
    pb.retry_ns = now->retry_ns;
    pb.reason = codec_text(&arena, buf_str(&now->reason));
    pb.alarms = codec_text(&arena, buf_str(&now->alarms));
    pb.lies = now->lies;
    pb.drain = now->drain;
    pb.leaving = now->leaving;
    pb.verify = now->verify;
    pb.leaving_ns = now->leaving_ns;
    pb.users = now->users;
    pb.user_rank = now->user_rank;
    pb.user_jobset = now->user_jobset;
    pb.overdue = now->overdue;
    pb.shown = &shown;
    pb.circuits = ARENA_ARRAY(&arena, uint32_t, POD_CUBES_MAX);
    pb.bad = ARENA_ARRAY(&arena, uint32_t, POD_CUBES_MAX);
    for (uint32_t cube = 0; cube < pod->cubes; cube++) {
        if (pod->connects.next[number][cube] != CUBE_NONE)
            pb.circuits[pb.n_circuits++] = pair_of(cube, pod->connects.next[number][cube]);
        if (now->bad[cube])
            pb.bad[pb.n_bad++] = pair_of(now->bad[cube], cube);
    }
    pb.n_breaks = now->operation ? now->breaks.len : 0;
    pb.breaks = write_circuits(&arena, now->breaks.items, pb.n_breaks);
    pb.n_makes = now->operation ? now->makes.len : 0;
    pb.makes = write_circuits(&arena, now->makes.items, pb.n_makes);
    put(context, &record);
}

static void write_cube(const struct cube_now *cube, uint32_t p,
                       void (*put)(void *context, Snapshot__Record *record), void *context)
{
    CHECK(cube->number < POD_CUBES_MAX);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Cube pb = SNAPSHOT__CUBE__INIT;
    Snapshot__Shown shown = write_shown(&cube->shown);
    record.kind_case = SNAPSHOT__RECORD__KIND_CUBE;
    record.cube = &pb;
    pb.pod = p;
    pb.number = cube->number;
    pb.drain = cube->drain;
    pb.shown = &shown;
    put(context, &record);
}

void snapshot_write_slices(const struct slices *slices, void (*put)(void *context, Snapshot__Record *record),
                           void *context)
{
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__SliceTotals pb = SNAPSHOT__SLICE_TOTALS__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_SLICE_TOTALS;
    record.slice_totals = &pb;
    pb.operations = slices->operations;
    pb.tables_number = slices->tables_number;
    if (slices->operations || slices->tables_number)
        put(context, &record);
    for (uint32_t p = 0; p < slices->pod_count; p++)
        for (uint32_t number = 0; slices->pods[p]->switches && number < POD_SWITCHES; number++)
            if (!is_fresh(&slices->pods[p]->switches[number]))
                write_switch(slices->pods[p], p, number, put, context);
    for (uint32_t p = 0; p < slices->pod_count; p++)
        for (uint32_t c = 0; slices->pods[p]->all_cubes && c < slices->pods[p]->cubes; c++)
            if (slices->pods[p]->all_cubes[c].shown.uid || slices->pods[p]->all_cubes[c].drain)
                write_cube(&slices->pods[p]->all_cubes[c], p, put, context);
    for (size_t i = 0; i < slices->list.len; i++)
        write_slice(slices->list.items[i], put, context);
}

/* --- reading -------------------------------------------------------------------------------------------- */

bool snapshot_read_slice_totals(struct slices *slices, const Snapshot__SliceTotals *pb)
{
    slices->operations = pb->operations;
    slices->tables_number = pb->tables_number;
    return (pb->operations > 0 || pb->tables_number > 0) && pb->tables_number <= SLICE_TABLES_NUMBER_MAX;
}

bool snapshot_read_cube(struct slices *slices, int64_t now_ns, const Snapshot__Cube *pb)
{
    if (pb->pod >= slices->pod_count || !slices->pods[pb->pod]->all_cubes ||
        pb->number >= slices->pods[pb->pod]->cubes)
        return false;
    struct cube_now *cube = &slices->pods[pb->pod]->all_cubes[pb->number];
    if (cube->drain || cube->shown.uid)
        return false; /* a second record of one cube */
    cube->drain = pb->drain;
    return read_shown(&cube->shown, now_ns, pb->shown);
}

bool snapshot_read_slice(struct slices *slices, const struct job_store *jobs, const struct cluster *cluster,
                         int64_t now_ns, const Snapshot__Slice *pb)
{
    const struct jobset *owner = jobs_find_uid(jobs, pb->jobset);
    struct slice saved = {.jobset = pb->jobset,
                          .phase = (uint8_t)pb->phase,
                          .lost = pb->lost,
                          .told = pb->told,
                          .unread = pb->unread,
                          .connected = pb->connected,
                          .left_out = pb->left_out,
                          .wrong = pb->wrong,
                          .begun_ns = pb->begun_ns,
                          .connected_ns = pb->connected_ns,
                          .reads_from = pb->reads_from,
                          .moves = pb->moves,
                          .tables = pb->tables,
                          .tables_number = pb->tables_number,
                          .tables_out = pb->tables_out,
                          .tables_ns = pb->tables_ns,
                          .leave_ns = pb->leave_ns,
                          .noticed_ns = pb->noticed_ns};
    struct error error;
    struct cube_slice *cubes = &saved.place.cubes;
    if (pb->phase >= SLICE_PHASES || pb->n_cubes > SLICE_CUBES_MAX || pb->n_origin != AXES || !owner ||
        pb->begun_ns > now_ns || pb->connected_ns > now_ns || pb->tables_ns > now_ns ||
        pb->noticed_ns > now_ns || !read_shown(&saved.shown, now_ns, pb->shown) ||
        !read_shown(&saved.session, now_ns, pb->session) ||
        slice_shape_parse(str_from(pb->shape), &cubes->shape, &error) < 0)
        return false;
    saved.shown.namespace_ = owner->namespace_;
    saved.shown.name = owner->name;
    saved.place.pod = pb->pod;
    cubes->count = (uint32_t)pb->n_cubes;
    for (uint32_t c = 0; c < cubes->count; c++) {
        if (pb->cubes[c] >= POD_CUBES_MAX)
            return false;
        cubes->cube[c] = (uint16_t)pb->cubes[c];
    }
    for (uint32_t axis = 0; axis < AXES; axis++) {
        if (pb->origin[axis] >= CUBE_SIDE)
            return false;
        saved.place.origin[axis] = (uint8_t)pb->origin[axis];
    }
    return slice_restore(slices, cluster, &saved);
}

static bool read_circuits(const uint32_t *list, size_t count, void *vec)
{
    VEC(struct circuit) *circuits = vec;
    if (count > SWITCH_CIRCUITS_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        vec_push(circuits, ((struct circuit){(uint16_t)(list[i] >> 16), (uint16_t)list[i]}));
    return true;
}

bool snapshot_read_switch(struct slices *slices, int64_t now_ns, const Snapshot__Switch *pb)
{
    if (pb->pod >= slices->pod_count || pb->number >= POD_SWITCHES || pb->health >= SWITCH_STATES ||
        !slices->pods[pb->pod]->switches || pb->operation > slices->operations ||
        pb->read > slices->operations || (pb->leaving && !pb->drain))
        return false;
    struct pod_now *pod = slices->pods[pb->pod];
    struct switch_now *now = &pod->switches[pb->number];
    if (now->breaks.len || now->makes.len || !is_fresh(now))
        return false; /* a second record of one switch */
    now->health = (uint8_t)pb->health;
    now->known = pb->known;
    now->read = pb->read;
    now->failures = pb->failures;
    now->operation = pb->operation;
    now->due_ns = pb->due_ns;
    now->retry_ns = pb->retry_ns;
    buf_add_str(&now->reason, str_from(pb->reason));
    buf_add_str(&now->alarms, str_from(pb->alarms));
    now->lies = pb->lies;
    now->faulty = true;
    now->drain = pb->drain;
    now->leaving = pb->leaving;
    now->verify = pb->verify;
    if (pb->leaving_ns > now_ns || (!pb->leaving && (pb->leaving_ns || pb->users)) ||
        (pb->users == 0 && (pb->user_rank || pb->user_jobset || pb->overdue)))
        return false;
    now->leaving_ns = pb->leaving_ns;
    now->users = pb->users;
    now->user_rank = pb->user_rank;
    now->user_jobset = pb->user_jobset;
    now->overdue = pb->overdue;
    pod->recount = true;
    if (!read_shown(&now->shown, now_ns, pb->shown))
        return false;
    for (size_t i = 0; i < pb->n_circuits; i++) {
        uint32_t plus = pb->circuits[i] >> 16, minus = pb->circuits[i] & 0xffff;
        if (plus >= pod->cubes || minus >= pod->cubes)
            return false;
        pod->connects.next[pb->number][plus] = (uint16_t)minus;
        pod->connects.prior[pb->number][minus] = (uint16_t)plus;
    }
    for (size_t i = 0; i < pb->n_bad; i++) {
        uint32_t ends = pb->bad[i] >> 16, cube = pb->bad[i] & 0xffff;
        if (cube >= pod->cubes || ends == 0 || ends > (LINK_BAD_PLUS | LINK_BAD_MINUS))
            return false;
        now->bad[cube] = (uint8_t)ends;
    }
    return read_circuits(pb->breaks, pb->n_breaks, &now->breaks) &&
           read_circuits(pb->makes, pb->n_makes, &now->makes);
}
