/* connect.c - the difference between what the slices of a pod need and what its switches hold. */
#include "core/slice/internal.h"

/* --- intent --------------------------------------------------------------------------------------------- */

void intent_of_pod(const struct slices *slices, uint32_t pod, struct intent *ret)
{
    memset(ret->next, 0xff, sizeof ret->next);
    memset(ret->owned, 0, sizeof ret->owned);
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct cube_slice *cubes = &slices->list.items[i]->place.cubes;
        if (slices->list.items[i]->place.pod != pod)
            continue;
        for (uint32_t place = 0; place < cubes->count; place++) {
            ret->owned[cubes->cube[place]] = true;
            for (uint32_t axis = 0; slice_shape_is_whole(&cubes->shape) && axis < AXES; axis++)
                ret->next[axis][cubes->cube[place]] =
                    cubes->cube[slice_next_place(&cubes->shape, place, axis)];
        }
    }
}

bool slice_is_set(const struct slice *slice, const struct pod_now *pod, uint32_t number)
{
    const struct cube_slice *cubes = &slice->place.cubes;
    const uint16_t *next = pod->connects.next[number], *prior = pod->connects.prior[number];
    CHECK(number < POD_SWITCHES && cubes->count > 0);
    if (!pod->switches[number].known || pod->switches[number].read < slice->reads_from)
        return false;
    for (uint32_t place = 0; place < cubes->count; place++) {
        uint16_t cube = cubes->cube[place], wanted = CUBE_NONE;
        if (slice_shape_is_whole(&cubes->shape))
            wanted = cubes->cube[slice_next_place(&cubes->shape, place, number / FACE_LINKS)];
        else if (prior[cube] != CUBE_NONE)
            return false;
        if (next[cube] != wanted)
            return false;
    }
    return true;
}

bool slice_can_use(const struct slice *slice, const struct pod_now *pod, uint32_t number)
{
    const struct switch_now *now = &pod->switches[number];
    bool good = !switch_is_out(now) && !(slice->wrong >> number & 1);
    for (uint32_t c = 0; good && c < slice->place.cubes.count; c++)
        good = !now->bad[slice->place.cubes.cube[c]];
    return good;
}

/* A part of a cube has no optical links, so no switch can harm it. A connected slice that moves keeps its
 * first tables, so it can do without the switches that these avoid, and no others. */
bool slice_can_lack(const struct slice *slice, uint64_t switches)
{
    CHECK((switches & ~ALL_SWITCHES) == 0);
    if (!slice_shape_is_whole(&slice->place.cubes.shape))
        return true;
    if (slice->moves && slice->phase == SLICE_CONNECTED)
        return (switches & ~slice->tables_out) == 0;
    return __builtin_popcountll(switches) <= SLICE_OUT_MAX;
}

bool slice_wants_tables(const struct slice *slice)
{
    return slice->tables > 0 && !slice->lost && !slice->moves &&
           slice_shape_is_whole(&slice->place.cubes.shape) && slice->tables_out != slice->left_out;
}

/* --- requests ------------------------------------------------------------------------------------------- */

static struct circuit circuit_of(const struct pod_now *pod, uint32_t number, uint16_t plus, uint16_t minus)
{
    struct pod_switch which = pod_switch_at(number);
    struct link_end from = {plus, which.axis, which.index, POLARITY_PLUS};
    struct link_end to = {minus, which.axis, which.index, POLARITY_MINUS};
    return (struct circuit){(uint16_t)link_end_port(pod->cubes, from),
                            (uint16_t)link_end_port(pod->cubes, to)};
}

/* Fills in the breaks and makes of the next request. Returns false if the switch holds what it should. */
static bool compare(struct pod_now *pod, uint32_t number, const struct intent *intent)
{
    struct switch_now *now = &pod->switches[number];
    const uint16_t *wanted = intent->next[number / FACE_LINKS];
    vec_clear(&now->breaks);
    vec_clear(&now->makes);
    for (uint16_t plus = 0; plus < pod->cubes; plus++) {
        uint16_t minus = pod->connects.next[number][plus];
        if (minus == CUBE_NONE || minus == wanted[plus] || !(intent->owned[plus] || intent->owned[minus]))
            continue;
        CHECK(wanted[plus] != minus); /* the request breaks no circuit that a slice needs */
        vec_push(&now->breaks, circuit_of(pod, number, plus, minus));
    }
    for (uint16_t plus = 0; plus < pod->cubes; plus++)
        if (wanted[plus] != CUBE_NONE && pod->connects.next[number][plus] != wanted[plus])
            vec_push(&now->makes, circuit_of(pod, number, plus, wanted[plus]));
    CHECK(now->breaks.len <= SWITCH_CIRCUITS_MAX && now->makes.len <= SWITCH_CIRCUITS_MAX);
    return now->breaks.len > 0 || now->makes.len > 0;
}

static const struct optical_switch *config_of(const struct step *step, uint32_t pod, uint32_t number)
{
    return &step->cluster->switches[step->cluster->pods[pod].first_switch + number];
}

static void emit(struct step *step, uint32_t pod, uint32_t number)
{
    struct switch_now *now = &step->slices->pods[pod]->switches[number];
    const struct optical_switch *config = config_of(step, pod, number);
    CHECK(now->operation > 0 && config->pod == pod && config->number == number);
    now->due_ns = step->now_ns + 2 * config->timeout_ns + 5 * NS_PER_SECOND;
    effect_add(step->effects, EFFECT_SWITCH_APPLY)->switch_apply =
        (struct switch_apply){.place = {PLACE_SWITCH, (uint32_t)(config - step->cluster->switches)},
                              .name = config->name,
                              .protocol = config->protocol,
                              .address = config->address,
                              .login = config->login,
                              .cubes = step->cluster->pods[pod].cube_count,
                              .operation = now->operation,
                              .breaks = now->breaks.items,
                              .break_count = now->breaks.len,
                              .makes = now->makes.items,
                              .make_count = now->makes.len,
                              .timeout_ns = config->timeout_ns};
}

/* Sends the changes that were filled in as the next request. */
static void request(struct step *step, uint32_t pod, uint32_t number)
{
    struct switch_now *now = &step->slices->pods[pod]->switches[number];
    CHECK(now->operation == 0);
    now->operation = ++step->slices->operations;
    now->retry_ns = 0;
    emit(step, pod, number);
}

/* Requests a reading by an empty request. The first request to a switch also makes the host watch its
 * health. */
static void look(struct step *step, uint32_t pod, uint32_t number)
{
    struct switch_now *now = &step->slices->pods[pod]->switches[number];
    vec_clear(&now->breaks);
    vec_clear(&now->makes);
    request(step, pod, number);
}

/* Returns a bound above all numbers that earlier controllers gave, including those that this log has lost
 * (slice.h). */
static uint64_t least_number(const struct step *step)
{
    uint64_t epoch_max = SLICE_TABLES_NUMBER_MAX >> SLICE_TABLES_EPOCH_BITS;
    return (step->epoch < epoch_max ? step->epoch : epoch_max) << SLICE_TABLES_EPOCH_BITS;
}

/* Gives new numbers after a restore: switches may know requests of the log's lost part, and ranks its
 * tables. */
static void renumber_all(struct step *step)
{
    struct slices *slices = step->slices;
    uint64_t least = least_number(step);
    slices->operations = slices->operations > least ? slices->operations : least;
    for (size_t i = 0; i < slices->list.len; i++)
        if (slices->list.items[i]->tables > 0)
            slice_renumber_tables(step, slices->list.items[i]);
}

void slices_read_anew(struct step *step)
{
    struct slices *slices = step->slices;
    for (uint32_t p = 0; p < slices->pod_count; p++) {
        struct pod_now *pod = slices->pods[p];
        for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++) {
            forget_circuits(pod, number);
            pod->switches[number].verify = !pod->switches[number].leaving;
        }
        pod->dirty = pod->stale = true;
    }
    for (size_t i = 0; i < slices->list.len; i++) {
        struct slice *slice = slices->list.items[i];
        slice->unread = slice->phase == SLICE_CONNECTED && slice_shape_is_whole(&slice->place.cubes.shape);
    }
}

bool slice_is_read(const struct slices *slices, const struct slice *slice)
{
    const struct pod_now *pod = slices->pods[slice->place.pod];
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if ((slice->connected >> number & 1) && !pod->switches[number].known)
            return false;
    return true;
}

void slices_boot(struct step *step, bool restored)
{
    if (restored) {
        renumber_all(step);
        slices_read_anew(step);
    }
    for (uint32_t p = 0; p < step->slices->pod_count; p++)
        for (uint32_t number = 0; step->slices->pods[p]->switches && number < POD_SWITCHES; number++) {
            struct switch_now *now = &step->slices->pods[p]->switches[number];
            if (now->operation)
                emit(step, p, number);
            else if (!now->leaving && (now->known || now->health != SWITCH_UNSEEN))
                look(step, p, number);
        }
}

/* Returns whether some slice waits for a newer reading of the switch. */
static bool is_out_of_date(const struct slices *slices, const struct pod_now *pod, uint32_t number)
{
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        if (slice->place.pod == pod->index && slice->phase != SLICE_FAILED &&
            !(slice->connected >> number & 1) && pod->switches[number].read < slice->reads_from)
            return true;
    }
    return false;
}

/* Sends the next request to the switch, if none is under way and it is due. The request is empty, to get a
 * reading, if the switch's circuits are unknown or were read too long ago. `needed` means that some slice
 * waits for the switch. */
static void go_on(struct step *step, uint32_t p, uint32_t number, const struct intent *intent, bool needed)
{
    struct pod_now *pod = step->slices->pods[p];
    struct switch_now *now = &pod->switches[number];
    CHECK(pod->cubes == step->cluster->pods[p].cube_count);
    needed |= now->verify;
    if (now->operation || switch_is_out(now) || now->retry_ns > step->now_ns || !needed)
        return;
    if (!now->known)
        look(step, p, number);
    else if (compare(pod, number, intent) || is_out_of_date(step->slices, pod, number))
        request(step, p, number);
}

/* --- phases --------------------------------------------------------------------------------------------- */

static void judge_switch(struct slice *slice, const struct pod_now *pod, uint32_t number)
{
    uint64_t bit = UINT64_C(1) << number;
    bool usable = slice_can_use(slice, pod, number);
    if (usable && slice_is_set(slice, pod, number)) {
        slice->connected |= bit;
        slice->left_out &= ~bit;
    } else if (!usable) {
        slice->connected &= ~bit;
        slice->left_out |= bit;
    } else if (slice->phase == SLICE_CONNECTING) {
        slice->connected &= ~bit;
        slice->left_out &= ~bit;
    } else if (pod->switches[number].known) { /* it lost circuits; left out until they are made again */
        slice->connected &= ~bit;
        slice->left_out |= bit;
    }
}

static void judge_slice(struct step *step, struct slice *slice)
{
    const struct pod_now *pod = step->slices->pods[slice->place.pod];
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        judge_switch(slice, pod, number);
    bool enough = slice_can_lack(slice, slice->left_out);
    CHECK((slice->connected & slice->left_out) == 0 && pod->switches);
    if (slice->phase == SLICE_CONNECTING && !enough) {
        lifecycle_move(&slice_lifecycle, &slice->phase, SLICE_FAILED);
        slice->told = false;
    } else if (slice->phase == SLICE_CONNECTING && (slice->connected | slice->left_out) == ALL_SWITCHES) {
        lifecycle_move(&slice_lifecycle, &slice->phase, SLICE_CONNECTED);
        slice->connected_ns = step->now_ns;
        slice->told = false;
        slice->tables_out = slice->left_out;
    } else if (slice->phase == SLICE_CONNECTED && !slice->lost && !enough) {
        slice->lost = true;
        slice->told = false;
    }
}

static void settle_pod(struct step *step, uint32_t p)
{
    struct slices *slices = step->slices;
    struct pod_now *pod = slices->pods[p];
    uint64_t needed = 0;
    for (bool again = true; again;) {
        pod->dirty = false;
        drains_settle(step, pod);
        again = pod->dirty;
        needed = 0;
        for (size_t i = 0; i < slices->list.len; i++) {
            struct slice *slice = slices->list.items[i];
            uint64_t left_out = slice->left_out;
            if (slice->place.pod != p)
                continue;
            judge_slice(step, slice);
            again |= slice->left_out != left_out; /* a drain may have waited for this */
            needed |= slice->phase != SLICE_FAILED ? ~slice->connected : 0;
        }
    }
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        needed |= (uint64_t)pod->switches[number].verify << number;
    struct intent intent;
    intent_of_pod(slices, p, &intent);
    for (uint32_t number = 0; needed && number < POD_SWITCHES; number++)
        go_on(step, p, number, &intent, needed >> number & 1);
}

void slices_settle(struct step *step)
{
    struct slices *slices = step->slices;
    for (uint32_t p = 0; p < slices->pod_count; p++) {
        struct pod_now *pod = slices->pods[p];
        if (!pod->dirty)
            continue;
        pod->dirty = false;
        pod->stale = true;
        if (pod->switches)
            settle_pod(step, p);
    }
}

/* --- for people and audits ------------------------------------------------------------------------------ */

/* Tables of a part of a cube depend on no switch, because its links are copper. */
void slice_name_tables(struct slice *slice)
{
    char text[SHAPE_TEXT_MAX];
    slice_shape_format(&slice->place.cubes.shape, text);
    buf_clear(&slice->tables_name);
    buf_printf(&slice->tables_name, "%s", text);
    const char *before = " without ";
    for (uint32_t number = 0; slice_shape_is_whole(&slice->place.cubes.shape) && number < POD_SWITCHES;
         number++)
        if (slice->tables_out >> number & 1) {
            buf_printf(&slice->tables_name, "%s%s", before, pod_switch_name(pod_switch_at(number)));
            before = ",";
        }
    CHECK(slice->tables_name.len <= SLICE_TABLES_MAX);
}

static uint64_t next_number(const struct step *step)
{
    uint64_t next = step->slices->tables_number + 1, least = least_number(step);
    return next > least ? next : least;
}

bool slice_tables_are_lost(const struct step *step, const struct slice *slice, uint64_t number)
{
    CHECK(slice->tables_number <= step->slices->tables_number);
    return number > slice->tables_number && number < next_number(step);
}

void slice_renumber_tables(struct step *step, struct slice *slice)
{
    uint64_t number = next_number(step);
    CHECK(slice->tables > 0 && number > slice->tables_number && number < INT64_MAX);
    step->slices->tables_number = slice->tables_number = number;
}

void slice_give_tables(struct step *step, struct slice *slice)
{
    CHECK(slice->phase == SLICE_CONNECTED && slice->tables < UINT32_MAX);
    slice->tables++;
    slice_renumber_tables(step, slice);
    slice->tables_out = slice->left_out;
    slice->tables_ns = step->now_ns;
    slice_name_tables(slice);
    step->slices->pods[slice->place.pod]->stale = true;
}

void slice_describe(const struct slices *slices, const struct cluster *cluster, const struct slice *slice,
                    struct buf *out)
{
    const struct pod_now *pod = slices->pods[slice->place.pod];
    buf_printf(out, "%d of %d switches of " STR_FORMAT " are set", __builtin_popcountll(slice->connected),
               POD_SWITCHES, STR_ARG(cluster->pods[slice->place.pod].name));
    int named = 0;
    for (uint32_t number = 0; number < POD_SWITCHES && named < 3; number++) {
        const struct switch_now *now = &pod->switches[number];
        bool wrong = slice->wrong >> number & 1;
        if ((slice->connected >> number & 1) || (now->failures == 0 && !switch_is_out(now) && !wrong))
            continue;
        named++;
        buf_printf(out, "; %s: " STR_FORMAT, pod_switch_name(pod_switch_at(number)),
                   STR_ARG(now->leaving      ? STR("drained")
                           : wrong           ? STR("ranks see other chips than its circuits join")
                           : now->reason.len ? buf_str(&now->reason)
                                             : STR("out of service")));
    }
}

static void check_slice(const struct slices *slices, const struct cluster *cluster, const struct slice *slice)
{
    struct error error;
    CHECK(slice->place.pod < slices->pod_count && slice->phase < SLICE_PHASES);
    const struct pod_now *pod = slices->pods[slice->place.pod];
    CHECK(pod->switches && slice_shape_check(&slice->place.cubes.shape, &error) == 0);
    CHECK(slice->place.cubes.count == slice_shape_cubes(&slice->place.cubes.shape));
    CHECK((slice->connected & slice->left_out) == 0 && !(slice->connected & ~ALL_SWITCHES));
    CHECK(slice->phase != SLICE_CONNECTING || !slice->lost);
    CHECK(slice->tables_number <= slices->tables_number && (slice->tables > 0) == (slice->tables_number > 0));
    /* A slice is Ready only when all of its circuits were read back. */
    bool ready = slice->phase == SLICE_CONNECTED && !slice->lost;
    CHECK(slice->shown.uid == 0 || slice->shown.ready == (ready ? SHOWN_TRUE : SHOWN_FALSE));
    CHECK(slice->phase != SLICE_CONNECTED || (slice->connected | slice->left_out) == ALL_SWITCHES);
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if ((slice->connected >> number & 1) && pod->switches[number].known)
            CHECK(slice_is_set(slice, pod, number));
    for (uint32_t c = 0; c < slice->place.cubes.count; c++)
        CHECK(slice->place.cubes.cube[c] < pod->cubes &&
              pod->cubes == cluster->pods[slice->place.pod].cube_count);
}

static void check_switch(const struct slices *slices, const struct switch_now *now)
{
    CHECK(now->operation <= slices->operations && now->health < SWITCH_STATES);
    CHECK(now->drain || !now->leaving);
    CHECK(!now->leaving || !now->verify);
    CHECK((now->leaving || now->leaving_ns == 0) && (now->leaving || now->users == 0));
    CHECK(now->shown.uid == 0 || (now->shown.drained == SHOWN_TRUE) == switch_is_drained(now));
    for (size_t i = 0; now->leaving && i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        CHECK(slice->place.pod != now->pod->index || !(slice->connected >> now->number & 1));
    }
}

void slices_check(const struct slices *slices, const struct cluster *cluster)
{
    CHECK(slices->pod_count == cluster->pod_count);
    for (uint32_t p = 0; p < slices->pod_count; p++) {
        uint32_t owners[POD_CUBES_MAX] = {0}, parts[POD_CUBES_MAX] = {0};
        const struct pod_now *pod = slices->pods[p];
        CHECK(!pod->dirty && !pod->stale && pod->cubes == cluster->pods[p].cube_count);
        if (pod->switches)
            CHECK(crossconnects_valid(&pod->connects));
        for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++)
            check_switch(slices, &pod->switches[number]);
        for (size_t i = 0; i < slices->list.len; i++) {
            const struct slice *slice = slices->list.items[i];
            for (uint32_t c = 0; slice->place.pod == p && c < slice->place.cubes.count; c++)
                (slice_shape_is_whole(&slice->place.cubes.shape) ? owners
                                                                 : parts)[slice->place.cubes.cube[c]]++;
        }
        for (uint32_t cube = 0; cube < POD_CUBES_MAX; cube++)
            CHECK(owners[cube] <= 1 && (owners[cube] == 0 || parts[cube] == 0));
    }
    for (size_t i = 0; i < slices->list.len; i++) {
        check_slice(slices, cluster, slices->list.items[i]);
        CHECK(i == 0 || slices->list.items[i - 1]->jobset < slices->list.items[i]->jobset);
    }
}
