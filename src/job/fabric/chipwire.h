/* chipwire.h - the protocol between the driver of emulated chips and the emulator (sim/fabric/chips_serve.h).
 * Both sides include this header.
 *
 * Transport: a stream socket of the Unix family for each machine. The emulator sends HELLO; then the driver
 * sends requests. The emulator answers each but WRITE with one frame, in order: LOOKED, DATA or DONE. EVENT
 * frames may arrive in between. A new connection to a machine ends the previous one; the end of a connection
 * unloads the chips.
 *
 * Frame (all integers little-endian):
 *     u32 length     of what follows, 1 to CHIPWIRE_BYTES_MAX
 *     u8  type       enum chipwire_type
 *     fields         in the order of the comments below, without padding; `chip` is an index in the machine
 * A stream is valid if and only if each length is within the limit and each frame holds its fields exactly.
 */
#ifndef PHX_JOB_FABRIC_CHIPWIRE_H
#define PHX_JOB_FABRIC_CHIPWIRE_H

#include "job/link/wire.h"
#include "phalanx/chips.h"

enum {
    CHIPWIRE_VERSION = 1,
    CHIPWIRE_HEAD = 4,
    CHIPWIRE_BYTES_MAX = (1 << 20) + 64,
    CHIPWIRE_DATA_MAX = 1 << 20, /* bytes of one write or read */
    CHIPWIRE_WRITE_HEAD = 1 + 1 + 2 + 4 + 8,
    CHIPWIRE_TEXT_MAX = 200,
};

enum chipwire_type {
    CHIPWIRE_LOOK = 1,   /* u8 chip */
    CHIPWIRE_LOAD = 2,   /* u8 chip, u32 session, u16 number, u8 parent, u8 children, i64 wait_ns,
                            6 x u32 buffer_bytes, u16 chips, transit[chips], inject[chips] */
    CHIPWIRE_START = 3,  /* u8 chip, u32 session */
    CHIPWIRE_UNLOAD = 4, /* u8 chip */
    CHIPWIRE_WRITE = 5,  /* u8 chip, u16 to, u32 address, u64 tag, bytes: at least one */
    CHIPWIRE_READ = 6,   /* u8 chip, u32 address, u32 len: 1 to CHIPWIRE_DATA_MAX */

    CHIPWIRE_HELLO = 64,  /* u16 version, u8 chips */
    CHIPWIRE_DONE = 65,   /* u8 refused: 0 or 1, then the reason for 1 as text */
    CHIPWIRE_LOOKED = 66, /* u32 label, u32 session, u32 memory_bytes, 6 x (u8 light, u8 port, u32 chip,
                             u32 rtt_ns) */
    CHIPWIRE_DATA = 67,   /* bytes */
    CHIPWIRE_EVENT = 68,  /* u8 kind, u8 chip, u8 port, u32 session, u64 tag */
};

enum { CHIPWIRE_ABOUT_BYTES = 12 + PHX_CHIP_PORTS * 10 };

/* Writes the fields of LOOKED. */
static inline void chipwire_put_about(struct jobwire_writer *writer, const struct phx_chip_about *about)
{
    jobwire_put(writer, about->label, 4);
    jobwire_put(writer, about->session, 4);
    jobwire_put(writer, about->memory_bytes, 4);
    for (uint32_t port = 0; port < PHX_CHIP_PORTS; port++) {
        jobwire_put(writer, about->ports[port].light, 1);
        jobwire_put(writer, about->ports[port].port, 1);
        jobwire_put(writer, about->ports[port].chip, 4);
        jobwire_put(writer, about->ports[port].rtt_ns, 4);
    }
}

static inline void chipwire_get_about(struct jobwire_reader *reader, struct phx_chip_about *ret_about)
{
    ret_about->label = (uint32_t)jobwire_get(reader, 4);
    ret_about->session = (uint32_t)jobwire_get(reader, 4);
    ret_about->memory_bytes = (uint32_t)jobwire_get(reader, 4);
    for (uint32_t port = 0; port < PHX_CHIP_PORTS; port++) {
        ret_about->ports[port].light = (uint8_t)jobwire_get_bool(reader);
        ret_about->ports[port].port = (uint8_t)jobwire_get(reader, 1);
        ret_about->ports[port].chip = (uint32_t)jobwire_get(reader, 4);
        ret_about->ports[port].rtt_ns = (uint32_t)jobwire_get(reader, 4);
    }
}

#endif
