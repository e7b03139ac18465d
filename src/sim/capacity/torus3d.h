/* torus3d.h - static contiguous placement, like Slurm's topology/torus3d, read from its file.
 *
 * Such a system has no optical switches: a job gets a box of neighbouring cells of a torus, which may wrap
 * around. The file (topology.yaml of Slurm 26.05) lists toruses and, for each, the boxes that jobs may get:
 *
 *     - topology: pods
 *       torus3d:
 *         toruses:
 *         - name: pod-1
 *           dims: {x: 8, y: 8, z: 16}          # cells
 *           nodes: m-[0001-1024]               # or regions: [{anchor, dims, nodes}]; x varies fastest
 *           placements:
 *           - dims: {x: 2, y: 2, z: 4}
 *             anchor_seed: {x: 0, y: 0, z: 0}  # the first anchor
 *             anchor_spacing: {x: 2, y: 2, z: 4}   # from anchor to anchor, round the torus; default: dims
 *
 * The choice follows the rules of that plugin. The number of a job's nodes selects the placements. An anchor
 * is a candidate if all cells of its box have a free node. Among the candidates of one placement, the best
 * spoils the fewest free boxes of the next larger placement; ties go to the torus with the fewest free nodes,
 * then to the first candidate.
 *
 * Pure functions. All memory is the arena's, and names point into the arena.
 */
#ifndef PHX_SIM_CAPACITY_TORUS3D_H
#define PHX_SIM_CAPACITY_TORUS3D_H

#include "base/error.h"
#include "core/fabric/shape.h"
#include "doc/doc.h"

enum { TORUS3D_TORUSES_MAX = 64, TORUS3D_PLACEMENTS_MAX = 128, TORUS3D_EXTENT_MAX = 4096 };
enum { TORUS3D_CELLS_MAX = 1 << 16 }; /* cells of all toruses of a file */

struct torus3d_placement {
    uint16_t dims[AXES], seed[AXES], spacing[AXES];
    uint32_t size;    /* cells */
    uint32_t anchors; /* number of boxes, which may overlap */
};
struct torus3d {
    struct str name;
    uint16_t dims[AXES];
    uint32_t cells;
    struct str *nodes; /* [cells]; empty: the cell has no node */
    struct torus3d_placement *placements;
    uint32_t placement_count;
};
struct torus3d_file {
    struct torus3d *toruses;
    uint32_t count;
};

/* Reads the toruses of all topologies of the document. Returns ERROR_INVALID, which names line, field and
 * what is expected, or ERROR_LIMIT, which says what is too large. Unknown fields are refused, as Slurm
 * does. */
int torus3d_read(struct arena *arena, const struct doc *document, struct torus3d_file *ret_file,
                 struct error *error);
/* Writes the names of a list such as "m-[01-03,7],gpu9" to ret_names[max]. Returns their number, or a
 * negative error code. */
int torus3d_names(struct arena *arena, struct str list, struct str *ret_names, uint32_t max,
                  struct error *error);

/* Writes the cells of the placement at one of its anchors: ret_cells[size]. */
void torus3d_box(const struct torus3d *torus, const struct torus3d_placement *placement, uint32_t anchor,
                 uint32_t *ret_cells);
/* Finds a box of `nodes` cells for which is_free[torus][cell] is true. Writes its torus and cells
 * (ret_cells[nodes]). Returns false if there is none. */
bool torus3d_place(const struct torus3d_file *file, const uint8_t *const *is_free, uint32_t nodes,
                   uint32_t *ret_torus, uint32_t *ret_cells);

#endif
