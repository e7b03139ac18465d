/* first STAMPS GATE: a task that says when it ran its first instruction.
 *
 * Writes the time (8 bytes, CLOCK_MONOTONIC in nanoseconds) into the FIFO named STAMPS and then waits until
 * somebody opens the FIFO named GATE for writing, so that no task's end disturbs the start of another.
 * Static, to be as quick to load as a program can be.
 */
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t stamp_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (argc != 3)
        return 2;
    int stamps = open(argv[1], O_WRONLY | O_CLOEXEC);
    if (stamps < 0 || write(stamps, &stamp_ns, sizeof stamp_ns) != sizeof stamp_ns)
        return 1;
    close(stamps);
    return open(argv[2], O_RDONLY | O_CLOEXEC) < 0;
}
