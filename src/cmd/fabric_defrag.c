/* phalanx fabric defrag: reads the cubes, slices, machines and tasks of a controller, and proposes the fewest
 * small slices to move so that a shape fits (core/fabric/defrag.h). With --move it drains the cubes that
 * become free, which moves their slices (core/react/slices.c). */
#include <stdio.h>

#include "base/check.h"
#include "base/map.h"
#include "cmd/client.h"
#include "cmd/fabric_asked.h"
#include "cmd/fabric_drain.h"
#include "core/fabric/defrag.h"

/* Cubes to drain in order to carry out a plan. */
struct emptied {
    struct str cubes[POD_CUBES_MAX];
    uint32_t count;
    bool needed; /* the plan has moves */
};

/* The controller's answers, and the pod under consideration. */
struct survey {
    struct client_reply cubes, slices, nodes, pods;
    struct str pod;
    struct defrag_pod state;
    struct str names[POD_CUBES_MAX];
    struct str machines[POD_CUBES_MAX][CUBE_MACHINES];
    const struct doc *owners[DEFRAG_PARTS_MAX]; /* the slice of each part */
    struct defrag_part parts[DEFRAG_PARTS_MAX];
};

static int survey_list(struct client *client, const char *kind, struct client_reply *ret_reply)
{
    struct buf path BUF_CLEANUP = {0};
    kind_path(&path, kind_find(str_from(kind)), NULL, (struct str){0});
    return client_get(client, buf_str(&path), ret_reply);
}

static int survey_ask(const char *server, struct survey *survey)
{
    struct client client;
    struct client_options options = {.server = server};
    int rc = client_open(&client, &options);
    if (rc != EXIT_OK)
        return rc;
    if ((rc = survey_list(&client, "cubes", &survey->cubes)) == EXIT_OK &&
        (rc = survey_list(&client, "slices", &survey->slices)) == EXIT_OK &&
        (rc = survey_list(&client, "nodes", &survey->nodes)) == EXIT_OK)
        rc = survey_list(&client, "pods", &survey->pods);
    client_close(&client);
    return rc;
}

static void survey_done(struct survey *survey)
{
    client_reply_done(&survey->cubes);
    client_reply_done(&survey->slices);
    client_reply_done(&survey->nodes);
    client_reply_done(&survey->pods);
    mem_free(survey);
}

static const struct doc *items_of(const struct client_reply *reply)
{
    return doc_get(reply->doc, "items");
}

/* Finds the place of a machine in the pod. Returns false if it is in another pod. */
static bool find_machine(const struct survey *survey, struct str name, uint32_t *ret_cube, uint32_t *ret_bit)
{
    for (uint32_t cube = 0; cube < survey->state.cubes; cube++)
        for (uint32_t bit = 0; bit < CUBE_MACHINES; bit++)
            if (str_equal(survey->machines[cube][bit], name)) {
                *ret_cube = cube;
                *ret_bit = bit;
                return true;
            }
    return false;
}

static bool is_usable(const struct doc *node)
{
    const struct doc *conditions = doc_dotted(node, "status.conditions");
    bool ready = false;
    for (size_t i = 0; i < doc_len(conditions); i++)
        ready |= str_is(doc_text(doc_at(conditions, i), "type"), "Ready") &&
                 str_is(doc_text(doc_at(conditions, i), "status"), "True");
    return ready && !doc_bool(doc_dotted(node, "spec.unschedulable"), false) &&
           doc_len(doc_dotted(node, "spec.taints")) == 0;
}

static void take_cubes(struct survey *survey)
{
    const struct doc *cubes = items_of(&survey->cubes);
    for (size_t i = 0; i < doc_len(cubes); i++) {
        const struct doc *cube = doc_at(cubes, i), *machines = doc_dotted(cube, "spec.machines");
        int64_t index = doc_number(cube, "spec.index", -1);
        if (!str_equal(doc_text(cube, "spec.pod"), survey->pod) || index < 0 || index >= POD_CUBES_MAX)
            continue;
        survey->names[index] = doc_text(cube, "metadata.name");
        for (size_t bit = 0; bit < CUBE_MACHINES; bit++)
            survey->machines[index][bit] = doc_str(doc_at(machines, bit), STR(""));
        bool out = doc_bool(doc_dotted(cube, "spec.unschedulable"), false) ||
                   doc_len(doc_dotted(cube, "status.badSwitches")) > 0 || doc_len(machines) != CUBE_MACHINES;
        survey->state.blocked[index] = out ? DEFRAG_CUBE_FULL : 0;
        survey->state.cubes =
            (uint32_t)index >= survey->state.cubes ? (uint32_t)index + 1 : survey->state.cubes;
    }
}

static void block_machine(struct survey *survey, struct str name)
{
    uint32_t cube, bit;
    if (find_machine(survey, name, &cube, &bit))
        survey->state.blocked[cube] |= (uint16_t)(1u << bit);
}

static bool is_at_work(const struct doc *pod)
{
    struct str phase = doc_text(pod, "status.phase");
    return doc_text(pod, "spec.nodeName").len > 0 && !str_is(phase, "Succeeded") && !str_is(phase, "Failed");
}

static bool is_task_of(const struct doc *pod, const struct doc *slice)
{
    const struct doc *labels = doc_dotted(pod, "metadata.labels");
    return str_equal(doc_text(pod, "metadata.namespace"), doc_text(slice, "metadata.namespace")) &&
           str_equal(doc_str(doc_get(labels, "jobset.sigs.k8s.io/jobset-name"), STR("")),
                     doc_text(slice, "metadata.name"));
}

/* Finds the machines of a small slice from its tasks. Returns false if they do not form its shape; the slice
 * then stays. */
static bool find_part(const struct survey *survey, const struct doc *slice, const struct slice_shape *shape,
                      struct defrag_part *ret_part)
{
    const struct doc *pods = items_of(&survey->pods);
    uint32_t cube, bit, in = UINT32_MAX;
    struct defrag_part part = {0};
    defrag_extent(shape, part.extent);
    for (size_t i = 0; i < doc_len(pods); i++) {
        const struct doc *pod = doc_at(pods, i);
        if (!is_at_work(pod) || !is_task_of(pod, slice) ||
            !find_machine(survey, doc_text(pod, "spec.nodeName"), &cube, &bit))
            continue;
        if (in != UINT32_MAX && in != cube)
            return false;
        in = cube;
        part.mask |= (uint16_t)(1u << bit);
    }
    part.cube = (uint16_t)in;
    *ret_part = part;
    return in != UINT32_MAX && defrag_is_place(part.mask, part.extent);
}

static void take_slices(struct survey *survey)
{
    const struct doc *slices = items_of(&survey->slices);
    for (size_t i = 0; i < doc_len(slices); i++) {
        const struct doc *slice = doc_at(slices, i), *cubes = doc_dotted(slice, "status.cubes");
        struct slice_shape shape;
        if (!str_equal(doc_text(slice, "status.pod"), survey->pod) ||
            slice_shape_parse(doc_text(slice, "spec.shape"), &shape, NULL) < 0)
            continue;
        for (size_t c = 0; c < doc_len(cubes) && slice_shape_is_whole(&shape); c++)
            for (uint32_t cube = 0; cube < survey->state.cubes; cube++)
                if (str_equal(doc_str(doc_at(cubes, c), STR("")), survey->names[cube]))
                    survey->state.blocked[cube] = DEFRAG_CUBE_FULL;
        struct defrag_part part;
        uint32_t count = survey->state.part_count;
        if (slice_shape_is_whole(&shape) || count == DEFRAG_PARTS_MAX ||
            !find_part(survey, slice, &shape, &part) || (survey->state.blocked[part.cube] & part.mask))
            continue;
        survey->owners[count] = slice;
        survey->parts[count] = part;
        survey->state.part_count++;
    }
}

/* Marks machines that no slice can use: those out of service, and those with tasks of no small slice. */
static void take_machines(struct survey *survey)
{
    const struct doc *nodes = items_of(&survey->nodes), *pods = items_of(&survey->pods);
    for (size_t i = 0; i < doc_len(nodes); i++)
        if (!is_usable(doc_at(nodes, i)))
            block_machine(survey, doc_text(doc_at(nodes, i), "metadata.name"));
    take_slices(survey);
    for (size_t i = 0; i < doc_len(pods); i++) {
        const struct doc *pod = doc_at(pods, i);
        bool moves = false;
        for (uint32_t k = 0; k < survey->state.part_count && !moves; k++)
            moves = is_task_of(pod, survey->owners[k]);
        if (is_at_work(pod) && !moves)
            block_machine(survey, doc_text(pod, "spec.nodeName"));
    }
}

static void put_machines(struct buf *out, const struct survey *survey, uint16_t cube, uint16_t mask)
{
    const char *between = "";
    for (uint32_t bit = 0; bit < CUBE_MACHINES; bit++)
        if (mask >> bit & 1) {
            buf_printf(out, "%s" STR_FORMAT, between, STR_ARG(survey->machines[cube][bit]));
            between = ",";
        }
    buf_printf(out, " of " STR_FORMAT, STR_ARG(survey->names[cube]));
}

static void put_room_text(struct buf *out, const struct survey *survey, const char *shape,
                          const struct defrag_room *room)
{
    buf_printf(out, "%s finds ", shape);
    for (uint32_t i = 0; i < room->place_count; i++) {
        const char *between = i ? ", " : "";
        if (room->places[i].mask == DEFRAG_CUBE_FULL)
            buf_printf(out, "%s" STR_FORMAT, between, STR_ARG(survey->names[room->places[i].cube]));
        else
            put_machines(out, survey, room->places[i].cube, room->places[i].mask);
    }
    buf_printf(out, room->move_count ? " after " : " free");
    if (room->move_count)
        put_count(out, room->move_count, "move");
    buf_printf(out, "%s\n",
               room->move_count == 0   ? ""
               : !room->proved         ? "; fewer may do: the search was cut short"
               : room->place_count > 1 ? "; the fewest for each cube, one after the other"
                                       : "; no fewer would do");
    for (uint32_t i = 0; i < room->move_count; i++) {
        const struct defrag_move *move = &room->moves[i];
        const struct doc *slice = survey->owners[move->part];
        buf_printf(out, "%u. " STR_FORMAT "/" STR_FORMAT " from ", i + 1,
                   STR_ARG(doc_text(slice, "metadata.namespace")), STR_ARG(doc_text(slice, "metadata.name")));
        put_machines(out, survey, move->from_cube, move->from_mask);
        buf_printf(out, " to ");
        put_machines(out, survey, move->cube, move->mask);
        buf_add_char(out, '\n');
    }
}

/* Finds the cubes that the moves of the plan empty, whose drains carry it out. A plan with moves out of other
 * cubes gets none, because the drain of a cube moves all of its slices. */
static void find_emptied(const struct survey *survey, const struct defrag_room *room,
                         struct emptied *ret_emptied)
{
    uint32_t moves = 0;
    ret_emptied->count = 0;
    for (uint32_t k = 0; k < room->place_count; k++) {
        uint32_t from = 0;
        for (uint32_t i = 0; i < room->move_count && room->places[k].mask == DEFRAG_CUBE_FULL; i++)
            from += room->moves[i].from_cube == room->places[k].cube;
        if (from > 0)
            ret_emptied->cubes[ret_emptied->count++] = survey->names[room->places[k].cube];
        moves += from;
    }
    ret_emptied->needed = room->move_count > 0;
    if (moves < room->move_count)
        ret_emptied->count = 0;
}

static void put_place_json(struct json_writer *writer, const struct survey *survey, const char *key,
                           uint16_t cube, uint16_t mask)
{
    if (key)
        json_key(writer, key);
    json_begin_object(writer);
    json_pair_str(writer, "cube", survey->names[cube]);
    json_key(writer, "machines");
    json_begin_array(writer);
    for (uint32_t bit = 0; bit < CUBE_MACHINES; bit++)
        if (mask >> bit & 1)
            json_put_str(writer, survey->machines[cube][bit]);
    json_end_array(writer);
    json_end_object(writer);
}

static void put_room_json(struct buf *out, const struct survey *survey, const char *shape,
                          const struct defrag_room *room)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_text(&writer, "shape", shape);
    json_pair_str(&writer, "pod", survey->pod);
    json_pair_bool(&writer, "fewest", room->proved);
    json_key(&writer, "places");
    json_begin_array(&writer);
    for (uint32_t i = 0; i < room->place_count; i++)
        put_place_json(&writer, survey, NULL, room->places[i].cube, room->places[i].mask);
    json_end_array(&writer);
    json_key(&writer, "moves");
    json_begin_array(&writer);
    for (uint32_t i = 0; i < room->move_count; i++) {
        const struct defrag_move *move = &room->moves[i];
        const struct doc *slice = survey->owners[move->part];
        json_begin_object(&writer);
        json_pair_str(&writer, "namespace", doc_text(slice, "metadata.namespace"));
        json_pair_str(&writer, "slice", doc_text(slice, "metadata.name"));
        put_place_json(&writer, survey, "from", move->from_cube, move->from_mask);
        put_place_json(&writer, survey, "to", move->cube, move->mask);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

/* Plans one pod. Returns true if it can free the space with fewer moves than `*moves_left`. Then *ret_out has
 * the plan, *ret_emptied the cubes to drain, and *moves_left is one less than the plan's moves. */
static bool try_pod(const struct fabric_asked *asked, struct survey *survey, struct str pod,
                    int64_t *moves_left, struct buf *ret_out, struct emptied *ret_emptied)
{
    char shape[SHAPE_TEXT_MAX];
    struct defrag_room *room = mem_alloc(sizeof *room);
    survey->pod = pod;
    survey->state = (struct defrag_pod){.parts = survey->parts};
    take_cubes(survey);
    take_machines(survey);
    bool found =
        *moves_left >= 0 && defrag_make_room(&survey->state, &asked->shape, (uint32_t)*moves_left, room);
    if (found) {
        buf_clear(ret_out);
        slice_shape_format(&asked->shape, shape);
        if (asked->json) {
            put_room_json(ret_out, survey, shape, room);
        } else {
            put_room_text(ret_out, survey, shape, room);
        }
        find_emptied(survey, room, ret_emptied);
        if (ret_emptied->count > 0 && !asked->json && !asked->move)
            buf_printf(ret_out, "to do so: add --move\n");
        *moves_left = (int64_t)room->move_count - 1;
    }
    mem_free(room);
    return found;
}

/* Drains the cubes, waits until their slices have moved, and ends the drains. All cubes are drained at the
 * same time, so no slice moves from one of them to another. */
static int move_slices(const struct fabric_asked *asked, const struct emptied *emptied)
{
    const struct resource *kind = kind_find(STR("cube"));
    const struct client_options options = {.server = asked->server};
    struct client client;
    int64_t deadline_ns = asked->timeout_ns ? client_clock() + asked->timeout_ns : INT64_MAX;
    uint32_t drained = 0;
    int rc = client_open(&client, &options);
    if (rc != EXIT_OK)
        return rc;
    for (; drained < emptied->count && rc == EXIT_OK; drained++)
        rc = fabric_set_drain(&client, kind, emptied->cubes[drained], true);
    for (uint32_t i = 0; i < emptied->count && rc == EXIT_OK; i++)
        rc = fabric_wait(&client, kind, emptied->cubes[i], "Drained", deadline_ns);
    for (uint32_t i = 0; i < drained; i++) { /* even of cubes whose slices have not moved */
        int back = fabric_set_drain(&client, kind, emptied->cubes[i], false);
        rc = rc == EXIT_OK ? back : rc;
    }
    client_close(&client);
    return rc;
}

static int carry_out(const struct fabric_asked *asked, const struct emptied *emptied)
{
    if (!emptied->needed)
        return EXIT_OK;
    if (emptied->count > 0)
        return move_slices(asked, emptied);
    say("defrag: some of these slices move out of cubes that do not become free, which no drain asks for; "
        "move "
        "them by hand");
    return EXIT_FAILED;
}

int fabric_run_defrag(const struct fabric_asked *asked)
{
    if (asked->move && asked->json) {
        say("defrag: --move tells as text what it does: leave -o json out");
        return EXIT_USAGE;
    }
    struct survey *survey = mem_alloc(sizeof *survey);
    struct emptied *emptied = mem_alloc(sizeof *emptied);
    struct buf out BUF_CLEANUP = {0};
    int64_t moves_left = asked->moves;
    bool found = false, known = false;
    int rc = survey_ask(asked->server, survey);
    const struct doc *cubes = items_of(&survey->cubes);
    struct str pod = {0};
    for (size_t i = 0; rc == EXIT_OK && i < doc_len(cubes); i++) {
        struct str next = doc_text(doc_at(cubes, i), "spec.pod");
        if (str_equal(next, pod) || (asked->in && !str_is(next, asked->in)))
            continue;
        pod = next;
        known = true;
        found |= try_pod(asked, survey, pod, &moves_left, &out, emptied);
    }
    if (rc == EXIT_OK && !known)
        say("defrag: the controller has no pod %s%swith cubes", asked->in ? asked->in : "",
            asked->in ? " " : "");
    else if (rc == EXIT_OK && !found)
        say("defrag: %lld moves of small slices free no place for this shape", (long long)asked->moves);
    output_write(&out);
    if (rc == EXIT_OK && !found)
        rc = EXIT_FAILED;
    if (rc == EXIT_OK && asked->move)
        rc = carry_out(asked, emptied);
    mem_free(emptied);
    survey_done(survey);
    return rc;
}
