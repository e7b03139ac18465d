/* wiring.h - the fixed wiring of a pod: cubes, their machines and chips, and the optical switches.
 *
 * A cube is 4x4x4 chips: 16 machines of 2x2x1. Each of its six faces has 16 optical links, so a cube has 96.
 * A link end is named {cube, axis, index, polarity}. `index` is the place on the face: the lower of the two
 * other axes counts 1, the higher one 4. `polarity` is plus for the face where the axis' coordinate is 3 (a
 * chip's + port), and minus for the face where the coordinate is 0.
 *
 * A switch is named {axis, index}, and all ends of that axis and index lead to it: one plus end and one minus
 * end of each cube of the pod, and nothing else. A pod therefore has 48 switches. A cross-connect joins the
 * plus end of one cube with the minus end of a cube, perhaps its own.
 *
 * Switch ports are numbered from 1. In a pod of up to 64 cubes, cube c has its plus end at port 1 + c and its
 * minus end at port 65 + c. In larger pods the minus ends begin at port 1 + SLICE_CUBES_MAX.
 *
 * Pure values; no memory, no state.
 */
#ifndef PHX_CORE_FABRIC_WIRING_H
#define PHX_CORE_FABRIC_WIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fabric/shape.h"

enum {
    FACE_LINKS = 16, /* optical links of one face of a cube */
    POD_SWITCHES = AXES * FACE_LINKS,
    CUBE_LINKS = 2 * POD_SWITCHES, /* optical link ends of one cube */
    CUBE_MACHINES = 16,
    POD_CUBES_MAX = SLICE_CUBES_MAX,
    SMALL_POD_CUBES = 64, /* largest pod whose minus ends are at port 65 + cube */
};

/* A chip's port: twice the axis, plus 1 for the minus direction. The port opposite to p is p ^ 1. */
enum chip_port {
    PORT_X_PLUS,
    PORT_X_MINUS,
    PORT_Y_PLUS,
    PORT_Y_MINUS,
    PORT_Z_PLUS,
    PORT_Z_MINUS,
    CHIP_PORTS
};
enum polarity { POLARITY_PLUS, POLARITY_MINUS };

struct pod_switch {
    uint8_t axis, index;
};
struct link_end {
    uint16_t cube;
    uint8_t axis, index, polarity;
};

/* Convert between a switch of a pod and its number, 0 to 47. */
uint32_t pod_switch_number(struct pod_switch which);
struct pod_switch pod_switch_at(uint32_t number);
/* Reads an axis and index, such as "x5". Returns ERROR_INVALID, which says what is expected. */
int pod_switch_parse(struct str text, struct pod_switch *ret_switch, struct error *error);
/* Returns static text, such as "x5". */
const char *pod_switch_name(struct pod_switch which);

/* Returns the number of a chip's machine, x / 2 + 2 (y / 2) + 4 z. Both numbers are within the cube; the
 * chip's is x + 4 y + 16 z. */
uint32_t cube_chip_machine(uint32_t chip);
/* Finds the optical link at a chip's port. Returns false if a copper link leads from the port to another chip
 * of the cube. */
bool cube_chip_optical(uint16_t cube, uint32_t chip, enum chip_port port, struct link_end *ret_end);
/* Returns the chip at a link end, by its number within the cube. Its port is 2 * axis + polarity. */
uint32_t link_end_chip(struct link_end end);
/* Convert between a link end and its switch port in a pod of `cubes`. switch_port_end() returns false if the
 * port has no link end. */
uint32_t link_end_port(uint32_t cubes, struct link_end end);
bool switch_port_end(uint32_t cubes, struct pod_switch which, uint32_t port, struct link_end *ret_end);

#endif
