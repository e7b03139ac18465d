/* machinewire.h - the protocol between the processes that emulate a pod, one for each machine.
 *
 * Copper links run over a stream socket between the two machines that they join, at
 * <network>/<cube>-<machine>.copper of the machine with the higher number; the other one connects. Optical
 * links run through the process that emulates the switches (phalanx switch-sim --light), at <network>/light.
 * A frame that a machine sends into a fibre comes out at the machine whose fibre the switch joins with it, as
 * light does. This has three consequences. A cross-connect, a dead switch or a closed shutter acts on the
 * frames themselves, at once and in one place. A machine learns who is at the other end only from the frames
 * that arrive, so a wrong cross-connect is discovered and not assumed. And machines of different cubes need
 * no sockets to each other, of which a pod would have tens of thousands.
 *
 * Frame (all integers little-endian):
 *     u32 length     of the rest, 1 to MACHINEWIRE_BYTES_MAX
 *     u8  type       enum machinewire_type
 *     fields         in the order of the comments below, without padding
 * `chip` is a label (chips.h). `chip` and `port` name a link end of the machine at this connection: of the
 * receiver in frames to a machine, and of the sender in frames to the switches. A stream is valid if and only
 * if each length is within the limit, each frame holds its fields exactly, and the first frame from either
 * side is HELLO.
 *
 * A light has a number, its epoch, so that frames of an earlier light are not taken for frames of the present
 * one: the switches drop frames of another epoch. Copper has light while the connection lasts, and its epoch
 * is 0. Both ends share one light: an end receives in it only what the other end sent in it.
 */
#ifndef PHX_SIM_FABRIC_MACHINEWIRE_H
#define PHX_SIM_FABRIC_MACHINEWIRE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/str.h"
#include "job/link/wire.h"
#include "sim/fabric/chips.h"

enum {
    MACHINEWIRE_VERSION = 1,
    MACHINEWIRE_HEAD = 4,
    MACHINEWIRE_BYTES_MAX = 4096 + 128,
    MACHINEWIRE_OUT_MAX = 64 << 20, /* bytes that a process may leave unread before it is disconnected */
};

enum machinewire_type {
    MACHINEWIRE_HELLO = 1, /* u16 version, u32 machine: 16 x cube + machine of the cube */
    MACHINEWIRE_FRAME = 2, /* u32 chip, u8 port, u32 epoch, the bytes of a frame (chips_wire.c) */
    MACHINEWIRE_LIGHT = 3, /* u32 chip, u8 port, u8 light: 0 or 1, u32 epoch. From the switches */
    MACHINEWIRE_RETRAIN =
        4, /* u32 chip, u8 port, u32 epoch: take the light away and give it again. To the switches */
    MACHINEWIRE_LOST = 5, /* u32 from, u32 serial, u32 session, u64 tag: struct chips_lost, on its way to the
                                machine of chip `from` */
};

/* A link end, and the light in which it is used. */
struct machinewire_end {
    uint32_t chip, port, epoch;
};

/* --- a connection -------------------------------------------------------------------------------------- */

/* A connection. Before use it is zero, except that fd is -1. */
struct machinewire_stream {
    int fd;
    struct buf in, out;
    size_t taken, sent; /* bytes of `in` already taken, and of `out` already sent */
};

void machinewire_close(struct machinewire_stream *stream); /* also drops the bytes in it */
/* Reads once. Returns false if the connection has ended. */
bool machinewire_receive(struct machinewire_stream *stream);
/* Takes the next whole frame. Returns 1 with *ret_frame, which begins with the type and is valid until the
 * next receive; 0 if there is none; or ERROR_CORRUPT. */
int machinewire_next(struct machinewire_stream *stream, struct jobwire_reader *ret_frame);
/* Sends what can be sent without blocking. Returns false if the connection has ended, or more than
 * MACHINEWIRE_OUT_MAX bytes are unread. */
bool machinewire_send(struct machinewire_stream *stream);
/* Returns the stream's entry for poll(). */
struct pollfd machinewire_poll(const struct machinewire_stream *stream);

/* Makes the address of a machine's socket, or of the switches' for MACHINEWIRE_SWITCHES. Returns
 * ERROR_INVALID if the path is too long. */
enum { MACHINEWIRE_SWITCHES = -1 };
int machinewire_address(const char *folder, int32_t machine, struct sockaddr_un *ret_at, struct error *error);
int machinewire_listen(const char *folder, int32_t machine, int *ret_fd, struct error *error);
/* returns a descriptor, or -1 if nobody listens */
int machinewire_connect(const char *folder, int32_t machine);
int machinewire_accept(int listen_fd); /* returns a descriptor, or -1 */

/* --- frames -------------------------------------------------------------------------------------------- */

void machinewire_put_hello(struct machinewire_stream *stream, uint32_t machine);
void machinewire_put_frame(struct machinewire_stream *stream, struct machinewire_end end, const void *bytes,
                           size_t len);
void machinewire_put_light(struct machinewire_stream *stream, struct machinewire_end end, bool light);
void machinewire_put_retrain(struct machinewire_stream *stream, struct machinewire_end end);
void machinewire_put_lost(struct machinewire_stream *stream, const struct chips_lost *lost);

/* Read the fields of a frame whose type was read. Return false if the frame does not hold them exactly, or a
 * number is beyond any pod. */
bool machinewire_get_hello(struct jobwire_reader *reader, uint32_t *ret_machine);
/* Leaves the reader at the frame's bytes. */
bool machinewire_get_frame(struct jobwire_reader *reader, struct machinewire_end *ret_end);
bool machinewire_get_light(struct jobwire_reader *reader, struct machinewire_end *ret_end, bool *ret_light);
bool machinewire_get_retrain(struct jobwire_reader *reader, struct machinewire_end *ret_end);
bool machinewire_get_lost(struct jobwire_reader *reader, struct chips_lost *ret_lost);

#endif
