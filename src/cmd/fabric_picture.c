#include "cmd/fabric_report.h"

enum { PITCH = 16, MARGIN = 28, TITLE = 34, BOARDS_MAX = 8 };

struct canvas {
    struct buf *out;
    const struct torus *torus;
    const uint32_t *load;
    uint32_t load_max;
};

/* Appends a colour: from blue at no load over green to red at the largest load. */
static void put_color(const struct canvas *canvas, uint32_t load)
{
    uint32_t share = canvas->load_max ? 255 * load / canvas->load_max : 0;
    buf_printf(canvas->out, "rgb(%u,%u,%u)", 70 + share * 185 / 255,
               share < 128 ? 90 + share : 345 - share * 5 / 4, 235 - share * 215 / 255);
}

static uint32_t load_of(const struct canvas *canvas, uint32_t chip, uint32_t port)
{
    uint32_t there = canvas->load[chip * CHIP_PORTS + port];
    uint32_t back =
        canvas->load[canvas->torus->next[chip * CHIP_PORTS + port] * (uint32_t)CHIP_PORTS + port + 1];
    return there > back ? there : back;
}

/* Draws the link at a chip's plus port along X or Y. A link that wraps around is drawn as a short line. */
static void put_link(const struct canvas *canvas, uint32_t chip, uint32_t axis, uint32_t x, uint32_t y)
{
    const struct torus *torus = canvas->torus;
    uint32_t port = 2 * axis;
    if (torus->next[chip * CHIP_PORTS + port] == TORUS_NONE)
        return;
    bool wraps = torus->at[axis][chip] + 1u == torus->shape.extent[axis];
    int length = wraps ? PITCH / 2 : PITCH;
    int to_x = (int)x + (axis == 0 ? length : 0), to_y = (int)y - (axis == 1 ? length : 0);
    buf_printf(canvas->out, "<line x1=\"%u\" y1=\"%u\" x2=\"%d\" y2=\"%d\" ", x, y, to_x, to_y);
    if (torus_link_live(torus, chip, port)) {
        buf_printf(canvas->out, "stroke=\"");
        put_color(canvas, load_of(canvas, chip, port));
        buf_printf(canvas->out, "\"/>\n");
    } else {
        buf_printf(canvas->out, "stroke=\"#999\" stroke-dasharray=\"2 2\"/>\n");
    }
}

static void put_chip(const struct canvas *canvas, uint32_t chip, uint32_t x, uint32_t y)
{
    const struct torus *torus = canvas->torus;
    put_link(canvas, chip, 0, x, y);
    put_link(canvas, chip, 1, x, y);
    buf_printf(canvas->out, "<circle cx=\"%u\" cy=\"%u\" r=\"4\" stroke-width=\"1\" ", x, y);
    if (torus->next[chip * CHIP_PORTS + PORT_Z_PLUS] == TORUS_NONE) {
        buf_printf(canvas->out, "fill=\"#ddd\" stroke=\"#999\"/>\n");
    } else if (torus_link_live(torus, chip, PORT_Z_PLUS)) {
        buf_printf(canvas->out, "fill=\"");
        put_color(canvas, load_of(canvas, chip, PORT_Z_PLUS));
        buf_printf(canvas->out, "\"/>\n");
    } else {
        buf_printf(canvas->out, "fill=\"white\" stroke=\"#999\" stroke-dasharray=\"2 2\"/>\n");
    }
}

void fabric_picture(struct buf *out, const struct torus *torus, const uint32_t *load, uint32_t load_max)
{
    struct canvas canvas = {out, torus, load, load_max};
    const uint16_t *extent = torus->shape.extent;
    uint32_t columns = extent[2] < BOARDS_MAX ? extent[2] : BOARDS_MAX,
             rows = (extent[2] + columns - 1) / columns;
    uint32_t board_x = extent[0] * PITCH + MARGIN, board_y = extent[1] * PITCH + MARGIN;
    uint32_t width = columns * board_x + MARGIN, height = TITLE + rows * board_y + MARGIN;
    char text[SHAPE_TEXT_MAX];
    slice_shape_format(&torus->shape, text);
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
               "fill=\"white\"/>\n"
               "<text x=\"%d\" y=\"20\" font-size=\"13\">%s: load of each link, all-to-all; dark red: %u "
               "units</text>\n"
               "<g stroke-width=\"3\">\n",
               width, height, width, height, MARGIN, text, load_max);
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        uint32_t z = torus->at[2][chip];
        put_chip(&canvas, chip, MARGIN + z % columns * board_x + torus->at[0][chip] * PITCH,
                 TITLE + z / columns * board_y + (extent[1] - torus->at[1][chip]) * PITCH);
    }
    buf_printf(out, "</g>\n");
    for (uint32_t z = 0; z < extent[2]; z++)
        buf_printf(out, "<text x=\"%u\" y=\"%u\">z = %u</text>\n", MARGIN + z % columns * board_x,
                   TITLE + z / columns * board_y + extent[1] * PITCH + 20, z);
    buf_printf(out, "</svg>\n");
}
