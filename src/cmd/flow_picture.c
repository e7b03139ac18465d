/* flow_picture.c - a graph of operations as an SVG picture. */
#include "cmd/flow_picture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

/* Sizes in pixels. */
enum {
    BOX_HEIGHT = 36,
    LAYER_HEIGHT = 72,
    LETTER = 7,
    BOX_PADDING = 18,
    BOX_GAP = 16,
    MARGIN = 20,
    SWEEPS = 8
};

/* Fill and border of a node, by kind. */
static const char *const COLOURS[][2] = {
    [PICTURE_ARGUMENT] = {"#e8f0fe", "#4a6fa5"},   [PICTURE_OPERATION] = {"#ffffff", "#888888"},
    [PICTURE_COLLECTIVE] = {"#fdebd3", "#c77d1e"}, [PICTURE_REGION] = {"#eee8f8", "#7a5ca8"},
    [PICTURE_RESULT] = {"#e3f5e6", "#3f8f52"},
};

uint32_t flow_picture_node(struct flow_picture *picture, enum picture_kind kind, const char *title,
                           const char *detail)
{
    struct picture_node node = {.kind = kind};
    snprintf(node.title, sizeof node.title, "%s", title);
    snprintf(node.detail, sizeof node.detail, "%s", detail);
    vec_push(&picture->nodes, node);
    return (uint32_t)picture->nodes.len - 1;
}

void flow_picture_edge(struct flow_picture *picture, uint32_t from, uint32_t to)
{
    CHECK(from < to && to < picture->nodes.len);
    struct picture_node *node = &picture->nodes.items[to];
    uint32_t below = picture->nodes.items[from].layer + 1;
    node->layer = node->layer > below ? node->layer : below;
    vec_push(&picture->edges, ((struct picture_edge){from, to}));
}

void flow_picture_done(struct flow_picture *picture)
{
    vec_done(&picture->nodes);
    vec_done(&picture->edges);
}

static double box_width(const struct picture_node *node)
{
    size_t title = strlen(node->title), detail = strlen(node->detail);
    return (double)((title > detail ? title : detail) * LETTER + BOX_PADDING);
}

/* --- order within layers */

/* The nodes, sorted by layer and by place within it. */
struct layers {
    struct picture_node **sorted;
    size_t count;
    uint32_t layer_count;
    double width; /* of the widest layer */
};

static int node_before(const void *a, const void *b)
{
    const struct picture_node *x = *(struct picture_node *const *)a, *y = *(struct picture_node *const *)b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->wish != y->wish)
        return x->wish < y->wish ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Sorts each layer by the nodes' wishes, and places its boxes side by side around the middle. */
static void layers_lay(struct layers *layers)
{
    qsort(layers->sorted, layers->count, sizeof *layers->sorted, node_before);
    layers->width = 0;
    for (size_t first = 0, end; first < layers->count; first = end) {
        double width = -BOX_GAP, x;
        for (end = first; end < layers->count && layers->sorted[end]->layer == layers->sorted[first]->layer;
             end++)
            width += box_width(layers->sorted[end]) + BOX_GAP;
        x = -width / 2;
        for (size_t k = first; k < end; k++) {
            struct picture_node *node = layers->sorted[k];
            node->rank = (uint32_t)(k - first);
            node->x = x + box_width(node) / 2;
            x += box_width(node) + BOX_GAP;
        }
        layers->width = width > layers->width ? width : layers->width;
    }
}

/* Sets each node's wish to the middle of its neighbours above it, or below it. */
static void layers_wish(struct flow_picture *picture, bool above)
{
    size_t count = picture->nodes.len;
    double *sums = mem_alloc((count + 1) * sizeof *sums);
    uint32_t *neighbours = mem_alloc((count + 1) * sizeof *neighbours);
    for (size_t k = 0; k < picture->edges.len; k++) {
        const struct picture_edge *edge = &picture->edges.items[k];
        uint32_t moved = above ? edge->to : edge->from, fixed = above ? edge->from : edge->to;
        sums[moved] += picture->nodes.items[fixed].x;
        neighbours[moved]++;
    }
    for (size_t k = 0; k < count; k++) {
        struct picture_node *node = &picture->nodes.items[k];
        node->wish = neighbours[k] ? sums[k] / neighbours[k] : node->x;
    }
    mem_free(sums);
    mem_free(neighbours);
}

static void layers_make(struct flow_picture *picture, struct layers *layers)
{
    *layers = (struct layers){.count = picture->nodes.len};
    layers->sorted = mem_alloc((layers->count + 1) * sizeof *layers->sorted);
    for (size_t k = 0; k < layers->count; k++) {
        struct picture_node *node = &picture->nodes.items[k];
        node->wish = node->rank = (uint32_t)k;
        layers->sorted[k] = node;
        layers->layer_count = node->layer >= layers->layer_count ? node->layer + 1 : layers->layer_count;
    }
    layers_lay(layers);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        layers_wish(picture, sweep % 2 == 0);
        layers_lay(layers);
    }
}

/* --- the document */

static void svg_text(struct buf *svg, double x, double y, const char *class, const char *text)
{
    buf_printf(svg, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&')
            buf_printf(svg, "&#%d;", *text);
        else
            buf_add(svg, text, 1);
    }
    buf_printf(svg, "</text>\n");
}

static double top_of(const struct picture_node *node)
{
    return MARGIN + (double)node->layer * LAYER_HEIGHT;
}

static void svg_edge(struct buf *svg, const struct picture_node *from, const struct picture_node *to,
                     double middle)
{
    double y1 = top_of(from) + BOX_HEIGHT, y2 = top_of(to), bend = (y2 - y1) / 2;
    buf_printf(svg, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n", middle + from->x, y1,
               middle + from->x, y1 + bend, middle + to->x, y2 - bend, middle + to->x, y2);
}

static void svg_node(struct buf *svg, const struct picture_node *node, double middle)
{
    double width = box_width(node), x = middle + node->x, y = top_of(node);
    buf_printf(
        svg,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"5\" fill=\"%s\" stroke=\"%s\"/>\n",
        x - width / 2, y, width, BOX_HEIGHT, COLOURS[node->kind][0], COLOURS[node->kind][1]);
    svg_text(svg, x, y + 15, "title", node->title);
    svg_text(svg, x, y + 29, "detail", node->detail);
}

void flow_picture_svg(struct flow_picture *picture, struct buf *svg)
{
    struct layers layers;
    layers_make(picture, &layers);
    double width = layers.width + 2 * MARGIN;
    double height = 2 * MARGIN + ((double)layers.layer_count - 1) * LAYER_HEIGHT + BOX_HEIGHT;
    buf_printf(svg,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\">\n"
               "<style>text{font-family:monospace;text-anchor:middle}.title{font-size:12px}"
               ".detail{font-size:10px;fill:#555}path{fill:none;stroke:#999}</style>\n",
               width, height);
    for (size_t k = 0; k < picture->edges.len; k++)
        svg_edge(svg, &picture->nodes.items[picture->edges.items[k].from],
                 &picture->nodes.items[picture->edges.items[k].to], width / 2);
    for (size_t k = 0; k < picture->nodes.len; k++)
        svg_node(svg, &picture->nodes.items[k], width / 2);
    buf_printf(svg, "</svg>\n");
    mem_free(layers.sorted);
}
