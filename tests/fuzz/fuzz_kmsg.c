/* Any bytes as the kernel's log, in two parts: no crash, well-formed signals, each event once; and the
 * matcher of patterns with any text. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "host/probes/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[64], path[96];

static void begin_once(void)
{
    char folder[96];
    if (root[0])
        return;
    snprintf(root, sizeof root, "/tmp/phx-fuzz-kmsg-XXXXXX");
    CHECK(mkdtemp(root));
    snprintf(folder, sizeof folder, "%s/dev", root);
    CHECK(mkdir(folder, 0755) == 0);
    snprintf(path, sizeof path, "%s/kmsg", folder);
}

static void end_all(void)
{
    char folder[96];
    snprintf(folder, sizeof folder, "%s/dev", root);
    unlink(path);
    rmdir(folder);
    rmdir(root);
}

static void put(const uint8_t *data, size_t size, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void on_signal(void *context, const struct signal *signal)
{
    CHECK(signal_is_valid(signal));
    ++*(size_t *)context;
}

static int64_t wall(void *context)
{
    (void)context;
    return INT64_C(1700000000) * NS_PER_SECOND;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t told = 0, lines = 0, half = size / 2;
    struct str captures[CAPTURES_MAX];
    if (!root[0]) {
        begin_once();
        atexit(end_all);
    }
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    put(data, half, O_TRUNC);
    struct probes_options options = {.root = root, .only = "kmsg", .log_from_start = true, .wall_ns = wall};
    struct probes *probes = probes_new(&options, NULL);
    CHECK(probes);
    probes_round(probes, 1, on_signal, &told);
    put(data + half, size - half, O_APPEND);
    probes_round(probes, 2, on_signal, &told);
    CHECK(told <= lines);
    size_t before = told;
    probes_round(probes, 3, on_signal, &told);
    CHECK(told == before);
    probes_free(probes);
    match("a*b@c%~", (struct str){(const char *)data, size}, captures);
    match("@: *%", (struct str){(const char *)data, size}, captures);
    return 0;
}
