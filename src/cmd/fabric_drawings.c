#include "cmd/fabric_drawings.h"

#include "base/arena.h"

static void begin_drawing(struct buf *out, uint32_t width, uint32_t height)
{
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
               width, height, width, height);
}

/* --- slices ------------------------------------------------------------------------------------------ */

enum { BOX = 38, BOX_GAP = 6, BOARD_GAP = 28, BOARDS_IN_ROW = 6, SLICE_LEFT = 40, SLICE_TOP = 60 };

/* Draws a text about how the rings close. */
static void draw_wraps(struct buf *out, const struct slice_shape *shape, uint32_t y)
{
    uint32_t sides[AXES];
    for (int axis = 0; axis < AXES; axis++)
        sides[axis] = shape->extent[axis] / (uint32_t)CUBE_SIDE;
    for (uint32_t axis = 0; axis < AXES; axis++) {
        uint32_t last = axis == 0   ? sides[0] - 1
                        : axis == 1 ? sides[0] * (sides[1] - 1)
                                    : sides[0] * sides[1] * (sides[2] - 1);
        uint32_t next = slice_next_place(shape, last, axis);
        buf_printf(out, "<text x=\"%d\" y=\"%u\">%c+ of cube (%u,%u,%u) leads to (%u,%u,%u)</text>\n",
                   SLICE_LEFT, y + 15 * axis, "xyz"[axis], last % sides[0], last / sides[0] % sides[1],
                   last / (sides[0] * sides[1]), next % sides[0], next / sides[0] % sides[1],
                   next / (sides[0] * sides[1]));
    }
}

/* Draws a board for one Z, with the cubes along X and Y. */
static void draw_board(struct buf *out, const struct cube_slice *slice, bool places, uint32_t z,
                       uint32_t left, uint32_t bottom)
{
    uint32_t x_cubes = slice->shape.extent[0] / 4u, y_cubes = slice->shape.extent[1] / 4u;
    for (uint32_t y = 0; y < y_cubes; y++)
        for (uint32_t x = 0; x < x_cubes; x++) {
            uint32_t place = x + x_cubes * (y + y_cubes * z);
            uint32_t at_x = left + x * (BOX + BOX_GAP), at_y = bottom - BOX - y * (BOX + BOX_GAP);
            buf_printf(out,
                       "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"#dfe9f5\" "
                       "stroke=\"#4a6a8f\"/>\n<text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%u</text>\n",
                       at_x, at_y, BOX, BOX, at_x + BOX / 2, at_y + BOX / 2 + 4,
                       places ? place : slice->cube[place]);
        }
    buf_printf(out, "<text x=\"%u\" y=\"%u\" fill=\"#555\">z = %u</text>\n", left, bottom + 14, z);
}

void fabric_draw_slice(struct buf *out, const struct cube_slice *slice, bool places)
{
    uint32_t x_cubes = slice->shape.extent[0] / 4u, y_cubes = slice->shape.extent[1] / 4u,
             z_cubes = slice->shape.extent[2] / 4u;
    uint32_t board_x = x_cubes * (BOX + BOX_GAP) + BOARD_GAP, board_y = y_cubes * (BOX + BOX_GAP) + BOARD_GAP;
    uint32_t columns = z_cubes < BOARDS_IN_ROW ? z_cubes : BOARDS_IN_ROW;
    uint32_t rows = (z_cubes + columns - 1) / columns, bottom = SLICE_TOP + rows * board_y;
    uint32_t width = 2 * SLICE_LEFT + columns * board_x;
    char text[SHAPE_TEXT_MAX];
    slice_shape_format(&slice->shape, text);
    begin_drawing(out, width < 340 ? 340 : width, bottom + 50);
    buf_printf(out, "<text x=\"%d\" y=\"24\" font-size=\"13\">%s: %u cubes of 4x4x4 chips</text>\n",
               SLICE_LEFT, text, slice->count);
    buf_printf(out, "<text x=\"%d\" y=\"40\" fill=\"#555\">X to the right, Y up; %s</text>\n", SLICE_LEFT,
               places ? "numbers are places" : "numbers are cubes of the pod");
    for (uint32_t z = 0; z < z_cubes; z++)
        draw_board(out, slice, places, z, SLICE_LEFT + z % columns * board_x,
                   SLICE_TOP + (z / columns + 1) * board_y - BOARD_GAP);
    draw_wraps(out, &slice->shape, bottom + 12);
    buf_printf(out, "</svg>\n");
}

/* --- switches ---------------------------------------------------------------------------------------- */

enum { PANEL_WIDTH = 240, PANEL_TOP = 64, PANEL_ROW = 18, PANEL_LEFT = 56, PANEL_RIGHT = 176 };

struct mirrors {
    const struct crossconnects *before, *after;
    bool used[POD_CUBES_MAX];
    uint32_t row[POD_CUBES_MAX], rows;
};

static bool same_mirrors(const struct mirrors *mirrors, uint32_t a, uint32_t b)
{
    size_t size = sizeof mirrors->before->next[0];
    return memcmp(mirrors->before->next[a], mirrors->before->next[b], size) == 0 &&
           memcmp(mirrors->after->next[a], mirrors->after->next[b], size) == 0;
}

static void use_cubes(struct mirrors *mirrors)
{
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        for (uint32_t cube = 0; cube < mirrors->after->cubes; cube++)
            for (int i = 0; i < 2; i++) {
                uint16_t next = (i ? mirrors->after : mirrors->before)->next[number][cube];
                if (next != CUBE_NONE)
                    mirrors->used[cube] = mirrors->used[next] = true;
            }
    for (uint32_t cube = 0; cube < mirrors->after->cubes; cube++)
        if (mirrors->used[cube])
            mirrors->row[cube] = mirrors->rows++;
}

static void draw_join(struct buf *out, const struct mirrors *mirrors, uint32_t left, uint32_t plus,
                      uint32_t minus, const char *style)
{
    buf_printf(out, "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\" %s/>\n", left + PANEL_LEFT,
               PANEL_TOP + PANEL_ROW * mirrors->row[plus], left + PANEL_RIGHT,
               PANEL_TOP + PANEL_ROW * mirrors->row[minus], style);
}

/* Draws a panel for the switches `first` to `last` - 1, whose mirrors are equal. */
static void draw_panel(struct buf *out, const struct mirrors *mirrors, uint32_t left, uint32_t first,
                       uint32_t last)
{
    buf_printf(out, "<text x=\"%u\" y=\"44\" font-size=\"12\">switch %s", left + PANEL_LEFT - 32,
               pod_switch_name(pod_switch_at(first)));
    if (last > first + 1)
        buf_printf(out, " to %s", pod_switch_name(pod_switch_at(last - 1)));
    buf_printf(out, "</text>\n");
    for (uint32_t cube = 0; cube < mirrors->after->cubes; cube++) {
        uint16_t was = mirrors->before->next[first][cube], is = mirrors->after->next[first][cube];
        if (!mirrors->used[cube])
            continue;
        if (was != CUBE_NONE && was != is)
            draw_join(out, mirrors, left, cube, was, "stroke=\"#c0392b\" stroke-dasharray=\"4 3\"");
        if (is != CUBE_NONE)
            draw_join(out, mirrors, left, cube, is,
                      was == is ? "stroke=\"#888\"" : "stroke=\"#2a7d4f\" stroke-width=\"2\"");
        uint32_t y = PANEL_TOP + PANEL_ROW * mirrors->row[cube];
        buf_printf(
            out,
            "<circle cx=\"%u\" cy=\"%u\" r=\"3\"/>\n<circle cx=\"%u\" cy=\"%u\" r=\"3\"/>\n"
            "<text x=\"%u\" y=\"%u\" text-anchor=\"end\">%u+</text>\n<text x=\"%u\" y=\"%u\">%u-</text>\n",
            left + PANEL_LEFT, y, left + PANEL_RIGHT, y, left + PANEL_LEFT - 8, y + 4, cube,
            left + PANEL_RIGHT + 8, y + 4, cube);
    }
}

void fabric_draw_mirrors(struct buf *out, const struct crossconnects *before,
                         const struct crossconnects *after)
{
    struct mirrors mirrors = {.before = before, .after = after};
    uint32_t groups[POD_SWITCHES + 1], count = 0;
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (number % FACE_LINKS == 0 || !same_mirrors(&mirrors, number - 1, number))
            groups[count++] = number;
    groups[count] = POD_SWITCHES;
    use_cubes(&mirrors);
    begin_drawing(out, count * PANEL_WIDTH, PANEL_TOP + PANEL_ROW * (mirrors.rows + 1));
    buf_printf(
        out,
        "<text x=\"24\" y=\"20\" font-size=\"13\">Mirrors: plus ends of cubes to the left, minus ends to "
        "the right; green new, grey kept, dashed removed</text>\n");
    for (uint32_t i = 0; i < count; i++)
        draw_panel(out, &mirrors, i * PANEL_WIDTH, groups[i], groups[i + 1]);
    buf_printf(out, "</svg>\n");
}
