/* notice STAMPS: a task that runs until it is told to stop, and says when that was.
 *
 * Writes the time (8 bytes, CLOCK_REALTIME in nanoseconds: its reader compares it with the time of a fault)
 * into the FIFO named STAMPS when SIGTERM comes, and ends.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    sigset_t term;
    int number;
    struct timespec now;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    if (argc != 2 || sigwait(&term, &number) != 0)
        return 2;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t stamp_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    int stamps = open(argv[1], O_WRONLY | O_CLOEXEC);
    return stamps < 0 || write(stamps, &stamp_ns, sizeof stamp_ns) != sizeof stamp_ns;
}
