/* Any bytes to the emulator of chips as a client of a machine, and to the driver as an emulator: no crash,
 * and a driver that is told nonsense says so. The first byte chooses the side. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "job/fabric/chipwire.h"
#include "job/fabric/internal.h"
#include "sim/fabric/chips_serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    char folder[64];
    struct chips_serve *serve;
    struct pollfd *fds;
} bed;

static void remove_sockets(void)
{
    chips_serve_close(bed.serve);
    rmdir(bed.folder);
}

static void open_bed(void)
{
    snprintf(bed.folder, sizeof bed.folder, "/tmp/phalanx-chipwire-XXXXXX");
    CHECK(mkdtemp(bed.folder));
    struct chips_serve_settings settings = {.folder = bed.folder, .cubes = 1, .memory_bytes = 4096};
    CHECK(chips_serve_open(&settings, &bed.serve, NULL) == 0);
    bed.fds = calloc(chips_serve_fds(bed.serve), sizeof *bed.fds);
    CHECK(bed.fds);
    atexit(remove_sockets);
}

static void turn(void)
{
    uint32_t count = chips_serve_fds(bed.serve);
    chips_serve_watch(bed.serve, bed.fds);
    CHECK(poll(bed.fds, count, 0) >= 0);
    chips_serve_turn(bed.serve, bed.fds);
}

static void be_client(const uint8_t *data, size_t size)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s/0-0", bed.folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    turn();
    (void)!send(fd, data, size, MSG_NOSIGNAL);
    turn();
    turn();
    close(fd);
    turn();
}

/* Every answer is written beforehand, and behind the last one the connection ends. */
static void be_emulator(const uint8_t *data, size_t size)
{
    static const uint8_t hello[] = {4, 0, 0, 0, CHIPWIRE_HELLO, CHIPWIRE_VERSION, 0, 4};
    const struct phx_chips_driver *driver = &fabric_emulated;
    struct phx_chips *chips;
    struct phx_chip_about about;
    struct phx_chip_event event;
    struct phx_error error;
    uint8_t bytes[16];
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(send(ends[1], hello, sizeof hello, 0) == sizeof hello &&
          send(ends[1], data, size, 0) == (ssize_t)size);
    shutdown(ends[1], SHUT_WR);
    if (fabric_emulated_on(ends[0], &chips, &error) == 0) {
        if (driver->look(chips, 0, &about, &error) == 0 &&
            driver->read(chips, 1, 0, bytes, sizeof bytes, &error) == 0)
            while (driver->next(chips, &event, &error) == 1)
                CHECK(event.chip < driver->count(chips) && event.port < PHX_CHIP_PORTS);
        driver->close(chips);
    }
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!bed.serve)
        open_bed();
    if (size > 1 && size < 4096)
        (data[0] & 1 ? be_client : be_emulator)(data + 1, size - 1);
    return 0;
}
