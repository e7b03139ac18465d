/* phalanx fabric place: places a stream of random slices in a pod, with switches and with static boxes; or
 * shows where a job would run according to a file of Slurm's topology/torus3d. */
#include <stdio.h>

#include "base/check.h"
#include "cmd/client.h"
#include "cmd/fabric_asked.h"
#include "core/fabric/defrag.h"
#include "doc/yaml.h"
#include "os/file.h"
#include "sim/capacity/packing.h"
#include "sim/capacity/torus3d.h"

enum { TORUS3D_BYTES_MAX = 16 << 20 };

/* --- streams -------------------------------------------------------------------------------------------- */

static void put_stream_text(struct buf *out, const char *name, const struct packing_result *result)
{
    buf_printf(out, "%-30s %8.1f %10.1f %10u %7u %8.1f\n", name, 100 * result->busy, 100 * result->stranded,
               result->refused, result->moves, result->time);
}

static void put_stream_json(struct json_writer *writer, const char *name, double host,
                            const struct packing_result *result)
{
    json_begin_object(writer);
    json_pair_text(writer, "way", name);
    json_pair_float(writer, "hostUp", host);
    json_pair_int(writer, "placed", result->placed);
    json_pair_int(writer, "neverFit", result->refused);
    json_pair_int(writer, "moves", result->moves);
    json_pair_float(writer, "working", result->busy);
    json_pair_float(writer, "stranded", result->stranded);
    json_pair_float(writer, "time", result->time);
    json_end_object(writer);
}

static void run_streams(const struct fabric_asked *asked, struct buf *out)
{
    static const double usual[] = {.99, .999};
    struct json_writer writer = {.out = out};
    const double *hosts = asked->host_count ? asked->hosts : usual;
    int count = asked->host_count ? asked->host_count : 2;
    if (asked->json) {
        json_begin_object(&writer);
        json_pair_int(&writer, "slices", asked->slices);
        json_key(&writer, "streams");
        json_begin_array(&writer);
    }
    for (int h = 0; h < count; h++) {
        struct packing_order order = {.slices = (uint32_t)asked->slices,
                                      .host_up = hosts[h],
                                      .seed = (uint64_t)asked->seed,
                                      .moves_max = (uint32_t)asked->moves};
        if (!asked->json)
            buf_printf(
                out,
                "%s%lld random slices in a pod of 64 cubes, hosts up %.5g\n%-30s %8s %10s %10s %7s %8s\n",
                h ? "\n" : "", (long long)asked->slices, hosts[h], "", "working%", "stranded%", "never fit",
                "moves", "time");
        for (int way = 0; way < PACKING_WAYS; way++) {
            struct packing_result result;
            packing_run(&order, way, &result);
            if (asked->json)
                put_stream_json(&writer, packing_names[way], hosts[h], &result);
            else
                put_stream_text(out, packing_names[way], &result);
        }
    }
    if (asked->json) {
        json_end_array(&writer);
        json_end_object(&writer);
        buf_add_char(out, '\n');
    }
}

/* --- a file of Slurm ------------------------------------------------------------------------------------ */

static int read_torus3d(struct arena *arena, const char *path, struct torus3d_file *ret_file,
                        struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    struct doc_list docs;
    int rc = os_file_read(path, TORUS3D_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    struct str copy = arena_str(arena, buf_str(&text));
    if ((rc = yaml_parse_all(arena, copy, &docs, error)) == 0)
        rc = torus3d_read(arena, docs.len ? docs.items[0] : NULL, ret_file, error);
    return rc < 0 ? error_wrap(error, "%s", path) : 0;
}

/* Marks the cells of these nodes as taken. ERROR_NOT_FOUND names the first node that the file lacks. */
static int take_busy(struct arena *arena, const struct torus3d_file *file, const char *list,
                     uint8_t **is_free, struct error *error)
{
    struct str *names = ARENA_ARRAY(arena, struct str, TORUS3D_CELLS_MAX);
    int count = torus3d_names(arena, str_from(list), names, TORUS3D_CELLS_MAX, error);
    if (count < 0)
        return error_wrap(error, "--busy");
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (uint32_t t = 0; t < file->count && !found; t++)
            for (uint32_t cell = 0; cell < file->toruses[t].cells && !found; cell++) {
                found = str_equal(file->toruses[t].nodes[cell], names[i]);
                is_free[t][cell] = (uint8_t)(is_free[t][cell] && !found);
            }
        if (!found)
            return error_set(error, ERROR_NOT_FOUND, "--busy " STR_FORMAT ": no torus has this node",
                             STR_ARG(names[i]));
    }
    return 0;
}

static void put_toruses(struct buf *out, const struct torus3d_file *file, uint8_t *const *is_free)
{
    for (uint32_t t = 0; t < file->count; t++) {
        const struct torus3d *torus = &file->toruses[t];
        uint32_t nodes = 0, idle = 0;
        for (uint32_t cell = 0; cell < torus->cells; cell++) {
            nodes += torus->nodes[cell].len > 0;
            idle += torus->nodes[cell].len > 0 && is_free[t][cell];
        }
        buf_printf(out, "torus " STR_FORMAT ": %ux%ux%u cells, %u nodes, %u free; boxes of",
                   STR_ARG(torus->name), torus->dims[0], torus->dims[1], torus->dims[2], nodes, idle);
        for (uint32_t p = 0; p < torus->placement_count; p++)
            buf_printf(out, "%s %ux%ux%u (%u anchors)", p ? "," : "", torus->placements[p].dims[0],
                       torus->placements[p].dims[1], torus->placements[p].dims[2],
                       torus->placements[p].anchors);
        buf_printf(out, "%s\n", torus->placement_count ? "" : " no size");
    }
}

static int place_by_torus3d(const struct fabric_asked *asked, struct buf *out, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 256 << 20};
    struct torus3d_file file;
    int rc = read_torus3d(&arena, asked->torus3d, &file, error);
    if (rc < 0)
        return rc;
    uint8_t **is_free = ARENA_ARRAY(&arena, uint8_t *, file.count);
    for (uint32_t t = 0; t < file.count; t++) {
        is_free[t] = ARENA_ARRAY(&arena, uint8_t, file.toruses[t].cells);
        memset(is_free[t], 1, file.toruses[t].cells);
    }
    if (asked->busy && (rc = take_busy(&arena, &file, asked->busy, is_free, error)) < 0)
        return rc;
    if (asked->nodes == 0) {
        put_toruses(out, &file, is_free);
        return 0;
    }
    uint32_t *cells = ARENA_ARRAY(&arena, uint32_t, TORUS3D_CELLS_MAX), torus;
    if (!torus3d_place(&file, (const uint8_t *const *)is_free, (uint32_t)asked->nodes, &torus, cells))
        return error_set(error, ERROR_UNAVAILABLE, "no box of %lld nodes is free in %s",
                         (long long)asked->nodes, asked->torus3d);
    for (uint32_t i = 0; i < asked->nodes; i++)
        buf_printf(out, STR_FORMAT "\n", STR_ARG(file.toruses[torus].nodes[cells[i]]));
    return 0;
}

int fabric_run_place(const struct fabric_asked *asked)
{
    struct buf out BUF_CLEANUP = {0};
    struct error error = {0};
    if (!asked->torus3d && (asked->nodes > 0 || asked->busy)) {
        say("place: --nodes and --busy belong to a file, --torus3d FILE");
        return EXIT_USAGE;
    }
    if (!asked->torus3d)
        run_streams(asked, &out);
    else if (place_by_torus3d(asked, &out, &error) < 0)
        return fabric_refuse(&error);
    output_write(&out);
    return EXIT_OK;
}
