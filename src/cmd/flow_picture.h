/* flow_picture.h - draws a graph of operations as an SVG picture, in layers from top to bottom.
 *
 *     struct flow_picture picture = {0};
 *     uint32_t a = flow_picture_node(&picture, PICTURE_ARGUMENT, "x", "4x8xf32");
 *     uint32_t b = flow_picture_node(&picture, PICTURE_OPERATION, "tanh", "4x8xf32");
 *     flow_picture_edge(&picture, a, b);
 *     flow_picture_svg(&picture, &svg);
 *     flow_picture_done(&picture);
 *
 * Edges lead from earlier nodes to later ones. A node is one layer below the lowest node that leads to it;
 * the order within a layer follows that of the neighbours (barycentres; Sugiyama et al., 1981).
 */
#ifndef PHX_CMD_FLOW_PICTURE_H
#define PHX_CMD_FLOW_PICTURE_H

#include "base/vec.h"

enum { PICTURE_TEXT_MAX = 64, PICTURE_NODES_MAX = 5000 };

enum picture_kind { PICTURE_ARGUMENT, PICTURE_OPERATION, PICTURE_COLLECTIVE, PICTURE_REGION, PICTURE_RESULT };

struct picture_node {
    enum picture_kind kind;
    char title[PICTURE_TEXT_MAX], detail[PICTURE_TEXT_MAX];
    uint32_t layer, rank; /* rank: place within the layer */
    double x;             /* of the middle */
    double wish;          /* place preferred by its neighbours */
};

struct picture_edge {
    uint32_t from, to;
};

struct flow_picture {
    VEC(struct picture_node) nodes;
    VEC(struct picture_edge) edges;
};

/* Adds a node, whose texts are cut to PICTURE_TEXT_MAX, and returns its number. */
uint32_t flow_picture_node(struct flow_picture *picture, enum picture_kind kind, const char *title,
                           const char *detail);
/* Adds an edge. `from` is an earlier node than `to`. */
void flow_picture_edge(struct flow_picture *picture, uint32_t from, uint32_t to);
/* Appends a whole SVG document. */
void flow_picture_svg(struct flow_picture *picture, struct buf *svg);
void flow_picture_done(struct flow_picture *picture);

#endif
