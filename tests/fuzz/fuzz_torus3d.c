/* Any bytes as Slurm's topology.yaml: no crash, memory within the limit, and of a file that is read every box
 * lies within its torus, no box has a cell twice, and jobs get free cells with nodes alone. */
#include <stdint.h>

#include "base/check.h"
#include "doc/yaml.h"
#include "sim/capacity/torus3d.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 64 << 20, CELLS_MAX = 512, ANCHORS_MAX = 64 };

static void check_box(const struct torus3d *torus, const uint32_t *cells, uint32_t count)
{
    uint8_t seen[CELLS_MAX] = {0};
    for (uint32_t i = 0; i < count; i++) {
        CHECK(cells[i] < torus->cells && !seen[cells[i]]);
        seen[cells[i]] = 1;
    }
}

/* Fills the torus with jobs of one placement. */
static void check_placement(const struct torus3d_file *file, uint32_t t,
                            const struct torus3d_placement *placement, uint8_t **is_free)
{
    const struct torus3d *torus = &file->toruses[t];
    uint32_t cells[CELLS_MAX], found;
    CHECK(placement->size > 0 && placement->size <= torus->cells && placement->anchors > 0);
    for (uint32_t anchor = 0; anchor < placement->anchors && anchor < ANCHORS_MAX; anchor++) {
        torus3d_box(torus, placement, anchor, cells);
        check_box(torus, cells, placement->size);
    }
    if (!torus3d_place(file, (const uint8_t *const *)is_free, placement->size, &found, cells))
        return;
    check_box(&file->toruses[found], cells, placement->size);
    for (uint32_t i = 0; i < placement->size; i++) {
        CHECK(is_free[found][cells[i]] && file->toruses[found].nodes[cells[i]].len > 0);
        is_free[found][cells[i]] = 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = LIMIT};
    struct doc_list docs;
    struct torus3d_file file;
    struct error error;
    uint32_t cells = 0;
    if (yaml_parse_all(&arena, (struct str){(const char *)data, size}, &docs, &error) < 0 || docs.len == 0)
        return 0;
    int code = torus3d_read(&arena, docs.items[0], &file, &error);
    CHECK(code == 0 || code == ERROR_INVALID || code == ERROR_LIMIT);
    if (code < 0)
        return 0;
    uint8_t **is_free = ARENA_ARRAY(&arena, uint8_t *, file.count);
    for (uint32_t t = 0; t < file.count; t++) {
        cells += file.toruses[t].cells;
        is_free[t] = ARENA_ARRAY(&arena, uint8_t, file.toruses[t].cells);
        memset(is_free[t], 1, file.toruses[t].cells);
    }
    CHECK(file.count > 0 && cells <= TORUS3D_CELLS_MAX);
    for (uint32_t t = 0; t < file.count && cells <= CELLS_MAX; t++)
        for (uint32_t p = 0; p < file.toruses[t].placement_count; p++)
            check_placement(&file, t, &file.toruses[t].placements[p], is_free);
    return 0;
}
