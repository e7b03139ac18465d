/* emulated.c - the driver of emulated chips: a socket to the emulator (chipwire.h). */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "job/fabric/chipwire.h"
#include "job/fabric/internal.h"

enum { READ_BYTES = 64 << 10, SEND_AT = 64 << 10 };

struct phx_chips {
    int fd;
    uint32_t count;
    struct buf in, out;
    size_t taken; /* bytes of `in` that were consumed */
    VEC(struct phx_chip_event) events;
    size_t next;
};

/* --- frames -------------------------------------------------------------------------------------------- */

static int lost(int errnum, struct phx_error *error)
{
    return fabric_fail(error, PHX_ERROR_IO, "the emulator of chips: %s",
                       errnum ? strerror(errnum) : "it closed the connection");
}

static int garbled(struct phx_error *error)
{
    return fabric_fail(error, PHX_ERROR_IO, "the emulator of chips: an answer that is none");
}

static void put(struct phx_chips *chips, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        buf_add_char(&chips->out, (char)(value >> (8 * i)));
}

/* Begins a request: every request starts with a chip. */
static void put_head(struct phx_chips *chips, enum chipwire_type type, uint32_t chip, size_t fields)
{
    put(chips, 2 + fields, CHIPWIRE_HEAD);
    put(chips, type, 1);
    put(chips, chip, 1);
}

static int send_all(struct phx_chips *chips, struct phx_error *error)
{
    size_t sent = 0;
    while (sent < chips->out.len) {
        ssize_t some = send(chips->fd, chips->out.data + sent, chips->out.len - sent, MSG_NOSIGNAL);
        if (some < 0 && errno != EINTR)
            return lost(errno, error);
        sent += some > 0 ? (size_t)some : 0;
    }
    buf_clear(&chips->out);
    return 0;
}

/* Reads once; without `wait`, only the available bytes. */
static int receive(struct phx_chips *chips, bool wait, struct phx_error *error)
{
    char bytes[READ_BYTES];
    ssize_t got = recv(chips->fd, bytes, sizeof bytes, wait ? 0 : MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        return lost(got == 0 ? 0 : errno, error);
    if (chips->taken > 0) {
        buf_drop_front(&chips->in, chips->taken);
        chips->taken = 0;
    }
    buf_add(&chips->in, bytes, got > 0 ? (size_t)got : 0);
    return 0;
}

/* Returns 1 with the next whole frame, valid until the next receive(), 0 if there is none, or an error. */
static int take_frame(struct phx_chips *chips, struct jobwire_reader *ret_frame, struct phx_error *error)
{
    if (chips->in.len - chips->taken < CHIPWIRE_HEAD)
        return 0;
    const uint8_t *at = (const uint8_t *)chips->in.data + chips->taken;
    struct jobwire_reader head = {.data = at, .len = chips->in.len - chips->taken};
    size_t len = (size_t)jobwire_get(&head, CHIPWIRE_HEAD);
    if (len == 0 || len > CHIPWIRE_BYTES_MAX)
        return garbled(error);
    if (len > head.len - head.pos)
        return 0;
    *ret_frame = (struct jobwire_reader){.data = at + CHIPWIRE_HEAD, .len = len};
    chips->taken += CHIPWIRE_HEAD + len;
    return 1;
}

static int take_event(struct phx_chips *chips, struct jobwire_reader *frame, struct phx_error *error)
{
    struct phx_chip_event event = {.kind = (uint32_t)jobwire_get(frame, 1)};
    event.chip = (uint8_t)jobwire_get(frame, 1);
    event.port = (uint8_t)jobwire_get(frame, 1);
    event.session = (uint32_t)jobwire_get(frame, 4);
    event.tag = jobwire_get(frame, 8);
    if (frame->broken || frame->pos != frame->len || event.chip >= chips->count ||
        event.port >= PHX_CHIP_PORTS || event.kind < PHX_CHIP_STARTED || event.kind > PHX_CHIP_LOST)
        return garbled(error);
    vec_push(&chips->events, event);
    return 0;
}

/* Takes the frames received so far, up to an answer. Returns 1 with the answer in *ret_frame, positioned
 * after its type, 0 if there were only events, or an error. */
static int take_frames(struct phx_chips *chips, uint64_t *ret_type, struct jobwire_reader *ret_frame,
                       struct phx_error *error)
{
    int found;
    while ((found = take_frame(chips, ret_frame, error)) == 1) {
        *ret_type = jobwire_get(ret_frame, 1);
        if (*ret_type != CHIPWIRE_EVENT)
            return 1;
        int status = take_event(chips, ret_frame, error);
        if (status < 0)
            return status;
    }
    return found;
}

/* Sends all pending requests and waits for the answer. */
static int ask(struct phx_chips *chips, enum chipwire_type expected, struct jobwire_reader *ret_answer,
               struct phx_error *error)
{
    uint64_t type = 0;
    int found, status = send_all(chips, error);
    if (status < 0)
        return status;
    while ((found = take_frames(chips, &type, ret_answer, error)) == 0)
        if ((status = receive(chips, true, error)) < 0)
            return status;
    if (found < 0)
        return found;
    if (type == CHIPWIRE_DONE && jobwire_get(ret_answer, 1) == 1)
        return fabric_fail(error, PHX_ERROR_INVALID, "the emulator of chips refuses: %.*s",
                           (int)(ret_answer->len - ret_answer->pos),
                           (const char *)ret_answer->data + ret_answer->pos);
    return type == expected && !ret_answer->broken ? 0 : garbled(error);
}

static int ask_done(struct phx_chips *chips, struct phx_error *error)
{
    struct jobwire_reader answer;
    return ask(chips, CHIPWIRE_DONE, &answer, error);
}

/* --- the table ----------------------------------------------------------------------------------------- */

static void emulated_close(struct phx_chips *chips)
{
    close(chips->fd);
    buf_done(&chips->in);
    buf_done(&chips->out);
    vec_done(&chips->events);
    mem_free(chips);
}

int fabric_emulated_on(int fd, struct phx_chips **ret_chips, struct phx_error *error)
{
    struct jobwire_reader hello;
    struct phx_chips *chips = mem_alloc(sizeof *chips);
    chips->fd = fd;
    int status = ask(chips, CHIPWIRE_HELLO, &hello, error);
    uint64_t version = status == 0 ? jobwire_get(&hello, 2) : 0;
    chips->count = status == 0 ? (uint32_t)jobwire_get(&hello, 1) : 0;
    if (status == 0 && (hello.broken || version != CHIPWIRE_VERSION || chips->count == 0))
        status = fabric_fail(error, PHX_ERROR_IO, "the emulator of chips is of another version");
    if (status < 0) {
        emulated_close(chips);
        return status;
    }
    *ret_chips = chips;
    return 0;
}

static int emulated_open(const char *address, struct phx_chips **ret_chips, struct phx_error *error)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(address) >= sizeof at.sun_path)
        return fabric_fail(error, PHX_ERROR_INVALID, "chips at %.100s: the path is too long", address);
    memcpy(at.sun_path, address, strlen(address) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        int status = fabric_fail(error, PHX_ERROR_IO, "chips at %.100s: %s", address, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    return fabric_emulated_on(fd, ret_chips, error);
}

static uint32_t emulated_count(const struct phx_chips *chips)
{
    return chips->count;
}

static int emulated_look(struct phx_chips *chips, uint32_t chip, struct phx_chip_about *ret_about,
                         struct phx_error *error)
{
    struct phx_chip_about about = {0};
    struct jobwire_reader answer;
    put_head(chips, CHIPWIRE_LOOK, chip, 0);
    int status = ask(chips, CHIPWIRE_LOOKED, &answer, error);
    if (status < 0)
        return status;
    chipwire_get_about(&answer, &about);
    if (answer.broken || answer.pos != answer.len)
        return garbled(error);
    *ret_about = about;
    return 0;
}

static int emulated_load(struct phx_chips *chips, uint32_t chip, const struct phx_chip_load *load,
                         struct phx_error *error)
{
    put_head(chips, CHIPWIRE_LOAD, chip,
             4 + 2 + 1 + 1 + 8 + 4 * PHX_CHIP_PORTS + 2 + 2 * (size_t)load->chips);
    put(chips, load->session, 4);
    put(chips, load->number, 2);
    put(chips, load->parent, 1);
    put(chips, load->children, 1);
    put(chips, (uint64_t)load->wait_ns, 8);
    for (uint32_t port = 0; port < PHX_CHIP_PORTS; port++)
        put(chips, load->buffer_bytes[port], 4);
    put(chips, load->chips, 2);
    buf_add(&chips->out, load->transit, load->chips);
    buf_add(&chips->out, load->inject, load->chips);
    return ask_done(chips, error);
}

static int emulated_start(struct phx_chips *chips, uint32_t chip, uint32_t session, struct phx_error *error)
{
    put_head(chips, CHIPWIRE_START, chip, 4);
    put(chips, session, 4);
    return ask_done(chips, error);
}

static int emulated_unload(struct phx_chips *chips, uint32_t chip, struct phx_error *error)
{
    put_head(chips, CHIPWIRE_UNLOAD, chip, 0);
    return ask_done(chips, error);
}

static int emulated_write(struct phx_chips *chips, uint32_t chip, uint16_t to, uint32_t address,
                          const void *bytes, uint32_t len, uint64_t tag, struct phx_error *error)
{
    if (len == 0 || len > CHIPWIRE_DATA_MAX)
        return fabric_fail(error, PHX_ERROR_INVALID, "a write of %u bytes: expected 1 to %d", len,
                           CHIPWIRE_DATA_MAX);
    put_head(chips, CHIPWIRE_WRITE, chip, CHIPWIRE_WRITE_HEAD - 2 + (size_t)len);
    put(chips, to, 2);
    put(chips, address, 4);
    put(chips, tag, 8);
    buf_add(&chips->out, bytes, len);
    return chips->out.len >= SEND_AT ? send_all(chips, error) : 0;
}

static int emulated_read(struct phx_chips *chips, uint32_t chip, uint32_t address, void *bytes, uint32_t len,
                         struct phx_error *error)
{
    struct jobwire_reader answer;
    put_head(chips, CHIPWIRE_READ, chip, 8);
    put(chips, address, 4);
    put(chips, len, 4);
    int status = ask(chips, CHIPWIRE_DATA, &answer, error);
    if (status < 0)
        return status;
    if (answer.len - answer.pos != len)
        return garbled(error);
    memcpy(bytes, answer.data + answer.pos, len);
    return 0;
}

static int emulated_next(struct phx_chips *chips, struct phx_chip_event *ret_event, struct phx_error *error)
{
    struct jobwire_reader frame;
    uint64_t type;
    int status = send_all(chips, error);
    if (chips->next == chips->events.len) {
        vec_clear(&chips->events);
        chips->next = 0;
        if (status == 0)
            status = receive(chips, false, error);
        if (status == 0)
            status = take_frames(chips, &type, &frame, error);
        if (status == 1)
            return garbled(error); /* an answer without a request */
    }
    if (status < 0)
        return status;
    if (chips->next == chips->events.len)
        return 0;
    *ret_event = chips->events.items[chips->next++];
    return 1;
}

static int emulated_fd(const struct phx_chips *chips)
{
    return chips->fd;
}

const struct phx_chips_driver fabric_emulated = {.abi = PHX_CHIPS_DRIVER_ABI,
                                                 .name = "emulated",
                                                 .open = emulated_open,
                                                 .close = emulated_close,
                                                 .count = emulated_count,
                                                 .look = emulated_look,
                                                 .load = emulated_load,
                                                 .start = emulated_start,
                                                 .unload = emulated_unload,
                                                 .write = emulated_write,
                                                 .read = emulated_read,
                                                 .next = emulated_next,
                                                 .fd = emulated_fd};
