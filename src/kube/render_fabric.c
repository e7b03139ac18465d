/* render_fabric.c - Cubes, Switches, Slices and FabricSessions (core/slice/slice.h) as phalanx.dev shows
 * them. */
#include "core/slice/slice.h"
#include "kube/table.h"

static void begin(struct render *render, const char *kind, const struct shown *shown)
{
    json_begin_object(&render->out);
    render_type(render, "phalanx.dev/v1", kind);
    render_metadata_begin(render, &(struct render_metadata){.name = shown->name,
                                                            .namespace_ = shown->namespace_,
                                                            .uid = shown->uid,
                                                            .version = shown->changed_seq,
                                                            .created_ns = shown->created_ns});
}

static void open_part(struct render *render, const char *key)
{
    json_key(&render->out, key);
    json_begin_object(&render->out);
}

static struct str pod_name(const struct render *render, uint32_t pod)
{
    return core_cluster(render->core)->pods[pod].name;
}

/* --- conditions ----------------------------------------------------------------------------------------- */

static const char *const truth_names[] = {
    [SHOWN_UNKNOWN] = "Unknown", [SHOWN_FALSE] = "False", [SHOWN_TRUE] = "True"};

static void put_ready(struct render *render, const struct shown *shown, const char *reason, struct str why)
{
    render_condition(render, "Ready", truth_names[shown->ready], shown->ready_ns, reason, why);
}

/* Writes the Drained condition. `why` is the message while a requested drain is not finished. */
static void put_drained(struct render *render, const struct shown *shown, bool asked, struct str why)
{
    bool drained = shown->drained == SHOWN_TRUE;
    render_condition(render, "Drained", truth_names[shown->drained], shown->drained_ns,
                     drained ? "Drained"
                     : asked ? "Draining"
                             : "InService",
                     drained || !asked ? STR("") : why);
}

static const char *status_word(const struct shown *shown, bool asked)
{
    return shown->drained == SHOWN_TRUE  ? "Drained"
           : asked                       ? "Draining"
           : shown->ready == SHOWN_TRUE  ? "Ready"
           : shown->ready == SHOWN_FALSE ? "NotReady"
                                         : "Unknown";
}

/* --- switches ------------------------------------------------------------------------------------------- */

static const char *switch_reason(const struct switch_now *now)
{
    return now->drain                       ? "Drained"
           : now->health == SWITCH_DOWN     ? "Down"
           : now->lies                      ? "Lies"
           : now->verify                    ? "Verifying"
           : now->health == SWITCH_DEGRADED ? "Degraded"
           : now->health == SWITCH_UNSEEN   ? "NotAsked"
                                            : "Up";
}

static struct str switch_why(const struct switch_now *now)
{
    return now->reason.len ? buf_str(&now->reason)
           : now->verify   ? STR("it is read before it counts, after work on it")
                           : STR("");
}

static void put_cubes(struct render *render, const char *key, const struct switch_now *now)
{
    json_key(&render->out, key);
    json_begin_array(&render->out);
    for (uint32_t cube = 0; cube < now->pod->cubes; cube++)
        if (now->bad[cube])
            json_put_str(&render->out, now->pod->all_cubes[cube].shown.name);
    json_end_array(&render->out);
}

static void put_lines(struct render *render, const char *key, struct str text)
{
    struct str line, rest = text;
    json_key(&render->out, key);
    json_begin_array(&render->out);
    while (rest.len && str_cut(rest, '\n', &line, &rest))
        json_put_str(&render->out, line);
    if (rest.len)
        json_put_str(&render->out, rest);
    json_end_array(&render->out);
}

static uint32_t port_of(const struct switch_now *now, uint16_t cube, enum polarity polarity)
{
    struct pod_switch which = pod_switch_at(now->number);
    struct link_end end = {cube, which.axis, which.index, polarity};
    return link_end_port(now->pod->cubes, end);
}

static void put_circuits(struct render *render, const struct switch_now *now)
{
    struct json_writer *out = &render->out;
    json_key(out, "circuits");
    json_begin_array(out);
    for (uint16_t cube = 0; now->known && cube < now->pod->cubes; cube++) {
        uint16_t next = now->pod->connects.next[now->number][cube];
        if (next == CUBE_NONE)
            continue;
        json_begin_object(out);
        json_pair_str(out, "plus", now->pod->all_cubes[cube].shown.name);
        json_pair_str(out, "minus", now->pod->all_cubes[next].shown.name);
        json_pair_int(out, "plusPort", port_of(now, cube, POLARITY_PLUS));
        json_pair_int(out, "minusPort", port_of(now, next, POLARITY_MINUS));
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_switch_status(struct render *render, const struct switch_now *now)
{
    struct json_writer *out = &render->out;
    struct buf why BUF_CLEANUP = {0};
    open_part(render, "status");
    json_pair_text(out, "health", switch_state_name((enum switch_state)now->health));
    json_pair_int(out, "failures", now->failures);
    put_lines(render, "alarms", buf_str(&now->alarms));
    put_cubes(render, "badCubes", now);
    put_circuits(render, now);
    json_key(out, "conditions");
    json_begin_array(out);
    put_ready(render, &now->shown, switch_reason(now), switch_why(now));
    (void)switch_drain_waits(core_slices(render->core), now, &why);
    put_drained(render, &now->shown, now->drain, buf_str(&why));
    json_end_array(out);
    json_end_object(out);
}

static void render_switch(struct render *render, const struct switch_now *now)
{
    static const char *const axes[AXES] = {"x", "y", "z"};
    struct json_writer *out = &render->out;
    const struct optical_switch *config = switch_config(core_cluster(render->core), now);
    struct pod_switch which = pod_switch_at(now->number);
    begin(render, "Switch", &now->shown);
    render_metadata_end(render);
    open_part(render, "spec");
    if (now->drain)
        json_pair_bool(out, "unschedulable", true);
    json_pair_str(out, "pod", pod_name(render, now->pod->index));
    json_pair_text(out, "axis", axes[which.axis]);
    json_pair_int(out, "index", which.index);
    json_pair_str(out, "protocol", config->protocol);
    json_pair_str(out, "address", config->address);
    json_end_object(out);
    put_switch_status(render, now);
    json_end_object(out);
}

static void switch_cells(struct render *render, const struct switch_now *now)
{
    struct json_writer *out = &render->out;
    int circuits = 0, bad = 0;
    for (uint32_t cube = 0; cube < now->pod->cubes; cube++) {
        circuits += now->known && now->pod->connects.next[now->number][cube] != CUBE_NONE;
        bad += __builtin_popcount(now->bad[cube]);
    }
    json_put_text(out, status_word(&now->shown, now->drain));
    json_put_text(out, switch_state_name((enum switch_state)now->health));
    json_put_int(out, circuits);
    json_put_int(out, bad);
    table_put_age(render, now->shown.created_ns);
    json_put_str(out, switch_config(core_cluster(render->core), now)->address);
    json_put_str(out, switch_why(now));
}

/* --- cubes ---------------------------------------------------------------------------------------------- */

static struct str slices_of(struct render *render, const struct cube_now *cube, const char *between)
{
    struct buf text BUF_CLEANUP = {0};
    const struct slice *slice;
    for (size_t at = 0; (slice = slice_on_cube(core_slices(render->core), cube, &at));)
        buf_printf(&text, "%s" STR_FORMAT "/" STR_FORMAT, text.len ? between : "",
                   STR_ARG(slice->shown.namespace_), STR_ARG(slice->shown.name));
    return arena_str(render->scratch, buf_str(&text));
}

static struct str bad_switches(struct render *render, const struct cube_now *cube, const char *between)
{
    struct buf text BUF_CLEANUP = {0};
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (cube->pod->switches[number].bad[cube->number])
            buf_printf(&text, "%s" STR_FORMAT, text.len ? between : "",
                       STR_ARG(cube->pod->switches[number].shown.name));
    return arena_str(render->scratch, buf_str(&text));
}

static void put_cube_spec(struct render *render, const struct cube_now *cube)
{
    struct json_writer *out = &render->out;
    const struct cluster *cluster = core_cluster(render->core);
    const struct block *block = cube_block(cluster, cube);
    open_part(render, "spec");
    if (cube->drain)
        json_pair_bool(out, "unschedulable", true);
    json_pair_str(out, "pod", pod_name(render, cube->pod->index));
    json_pair_int(out, "index", cube->number);
    json_key(out, "machines");
    json_begin_array(out);
    for (machine_id m = block->first; m < block->first + block->count; m++)
        json_put_str(out, cluster->machines[m].name);
    json_end_array(out);
    json_end_object(out);
}

static void render_cube(struct render *render, const struct cube_now *cube)
{
    struct json_writer *out = &render->out;
    uint32_t busy, ready = cube_ready_machines(core_cluster(render->core), cube, &busy);
    struct str bad = bad_switches(render, cube, "\n"), slices = slices_of(render, cube, "\n");
    begin(render, "Cube", &cube->shown);
    render_metadata_end(render);
    put_cube_spec(render, cube);
    open_part(render, "status");
    json_pair_int(out, "readyMachines", ready);
    json_pair_int(out, "chips", CUBE_MACHINES * SLICE_MACHINE_CHIPS);
    json_pair_int(out, "busyChips", busy);
    put_lines(render, "slices", slices);
    put_lines(render, "badSwitches", bad);
    json_key(out, "conditions");
    json_begin_array(out);
    const char *reason = cube->drain             ? "Drained"
                         : ready < CUBE_MACHINES ? "MachinesNotReady"
                         : bad.len               ? "BadLinks"
                                                 : "Ready";
    put_ready(render, &cube->shown, reason, STR(""));
    put_drained(
        render, &cube->shown, cube->drain,
        arena_printf(render->scratch, "slices have it: " STR_FORMAT, STR_ARG(slices_of(render, cube, ", "))));
    json_end_array(out);
    json_end_object(out);
    json_end_object(out);
}

static void cube_cells(struct render *render, const struct cube_now *cube)
{
    struct json_writer *out = &render->out;
    uint32_t busy, ready = cube_ready_machines(core_cluster(render->core), cube, &busy);
    json_put_text(out, status_word(&cube->shown, cube->drain));
    json_put_str(out, arena_printf(render->scratch, "%u/%d", ready, CUBE_MACHINES));
    json_put_str(out, arena_printf(render->scratch, "%u/%d", busy, CUBE_MACHINES * SLICE_MACHINE_CHIPS));
    json_put_str(out, slices_of(render, cube, ","));
    table_put_age(render, cube->shown.created_ns);
    json_put_str(out, pod_name(render, cube->pod->index));
    json_put_str(out, bad_switches(render, cube, ","));
}

/* --- slices --------------------------------------------------------------------------------------------- */

static struct str switch_names(struct render *render, const struct slice *slice, uint64_t which,
                               const char *between)
{
    const struct pod_now *pod = core_slices(render->core)->pods[slice->place.pod];
    struct buf text BUF_CLEANUP = {0};
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (which >> number & 1)
            buf_printf(&text, "%s" STR_FORMAT, text.len ? between : "",
                       STR_ARG(pod->switches[number].shown.name));
    return arena_str(render->scratch, buf_str(&text));
}

static struct str cube_names(struct render *render, const struct slice *slice, const char *between)
{
    const struct pod_now *pod = core_slices(render->core)->pods[slice->place.pod];
    struct buf text BUF_CLEANUP = {0};
    for (uint32_t c = 0; c < slice->place.cubes.count; c++)
        buf_printf(&text, "%s" STR_FORMAT, text.len ? between : "",
                   STR_ARG(pod->all_cubes[slice->place.cubes.cube[c]].shown.name));
    return arena_str(render->scratch, buf_str(&text));
}

static struct str shape_of(struct render *render, const struct slice *slice)
{
    char shape[SHAPE_TEXT_MAX];
    slice_shape_format(&slice->place.cubes.shape, shape);
    return arena_str(render->scratch, str_from(shape));
}

static struct str state_of(struct render *render, const struct slice *slice)
{
    struct buf text BUF_CLEANUP = {0};
    slice_describe(core_slices(render->core), core_cluster(render->core), slice, &text);
    return arena_str(render->scratch, buf_str(&text));
}

static void render_slice(struct render *render, const struct slice *slice)
{
    struct json_writer *out = &render->out;
    begin(render, "Slice", &slice->shown);
    render_owner(render, "jobset.x-k8s.io/v1alpha2", "JobSet", slice->shown.name, slice->jobset);
    render_metadata_end(render);
    open_part(render, "spec");
    json_pair_str(out, "shape", shape_of(render, slice));
    json_pair_text(out, "onSwitchLoss", slice->moves ? "Move" : "Reroute");
    json_end_object(out);
    open_part(render, "status");
    json_pair_text(out, "phase", slice_word(slice));
    json_pair_str(out, "pod", pod_name(render, slice->place.pod));
    put_lines(render, "cubes", cube_names(render, slice, "\n"));
    json_pair_int(out, "switches", __builtin_popcountll(slice->connected));
    put_lines(render, "without", switch_names(render, slice, slice->left_out, "\n"));
    render_time(render, "connectedAt", slice->connected_ns);
    json_key(out, "conditions");
    json_begin_array(out);
    put_ready(render, &slice->shown, slice_word(slice), state_of(render, slice));
    json_end_array(out);
    json_end_object(out);
    json_end_object(out);
}

static void slice_cells(struct render *render, const struct slice *slice)
{
    struct json_writer *out = &render->out;
    json_put_str(out, shape_of(render, slice));
    json_put_text(out, slice_word(slice));
    json_put_str(
        out, arena_printf(render->scratch, "%d/%d", __builtin_popcountll(slice->connected), POD_SWITCHES));
    json_put_str(out, slice_shape_is_whole(&slice->place.cubes.shape)
                          ? switch_names(render, slice, slice->left_out, ",")
                          : STR(""));
    json_put_int(out, slice->place.cubes.count);
    table_put_age(render, slice->shown.created_ns);
    json_put_str(out, pod_name(render, slice->place.pod));
    json_put_str(out, cube_names(render, slice, ","));
}

/* --- sessions ------------------------------------------------------------------------------------------- */

static void render_session(struct render *render, const struct slice *slice)
{
    struct json_writer *out = &render->out;
    begin(render, "FabricSession", &slice->session);
    render_owner(render, "phalanx.dev/v1", "Slice", slice->shown.name, slice->shown.uid);
    render_metadata_end(render);
    open_part(render, "spec");
    json_pair_str(out, "slice", slice->shown.name);
    json_end_object(out);
    open_part(render, "status");
    json_pair_str(out, "tables", buf_str(&slice->tables_name));
    json_pair_int(out, "changes", slice->tables - 1);
    put_lines(render, "without", switch_names(render, slice, slice->tables_out, "\n"));
    render_micro_time(render, "toldAt", slice->tables_ns);
    json_key(out, "conditions");
    json_begin_array(out);
    put_ready(render, &slice->session, slice->tables > 1 ? "Rerouted" : "Routed", STR(""));
    json_end_array(out);
    json_end_object(out);
    json_end_object(out);
}

static void session_cells(struct render *render, const struct slice *slice)
{
    struct json_writer *out = &render->out;
    json_put_str(out, buf_str(&slice->tables_name));
    json_put_int(out, slice->tables - 1);
    json_put_text(out, truth_names[slice->session.ready]);
    table_put_age(render, slice->session.created_ns);
}

/* --- all ------------------------------------------------------------------------------------------------ */

void render_fabric(struct render *render, struct object_ref object)
{
    if (object.kind == OBJECT_SWITCH)
        render_switch(render, object.optical_switch);
    else if (object.kind == OBJECT_CUBE)
        render_cube(render, object.cube);
    else if (object.kind == OBJECT_SLICE)
        render_slice(render, object.slice);
    else
        render_session(render, object.slice);
}

void fabric_cells(struct render *render, struct object_ref object)
{
    json_put_str(&render->out, shown_of(object)->name);
    if (object.kind == OBJECT_SWITCH)
        switch_cells(render, object.optical_switch);
    else if (object.kind == OBJECT_CUBE)
        cube_cells(render, object.cube);
    else if (object.kind == OBJECT_SLICE)
        slice_cells(render, object.slice);
    else
        session_cells(render, object.slice);
}
