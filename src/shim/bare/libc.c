/* The few functions of libc that the shim uses, as bare system calls.
 *
 * glibc's start-up asks the processor for its features and caches with some dozens of CPUID instructions. In
 * a virtual machine each of them is a trip to the hypervisor: of the 0.37 ms that a static program that does
 * nothing takes there, 0.28 ms are spent so (measured on a KVM guest), on the way of every task to its first
 * instruction. Without it the shim needs none of it: it has one thread, no locale, no heap.
 *
 * The prototypes are those of the system's headers, so nothing else in the shim knows of this file; a build
 * with sanitizers, or for a processor that has no file here, takes libc proper. No function needs more than
 * what stands in its manual page; errno is set as there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/bare/call.h"

int bare_errno;

int *__errno_location(void)
{
    return &bare_errno;
}

static long finish(long result)
{
    if (result >= 0 || result < -4095)
        return result;
    bare_errno = (int)-result;
    return -1;
}

#define ARG(a)                       (long)(a)
#define CALL0(number)                finish(bare_call(number, 0, 0, 0, 0, 0, 0))
#define CALL1(number, a)             finish(bare_call(number, ARG(a), 0, 0, 0, 0, 0))
#define CALL2(number, a, b)          finish(bare_call(number, ARG(a), ARG(b), 0, 0, 0, 0))
#define CALL3(number, a, b, c)       finish(bare_call(number, ARG(a), ARG(b), ARG(c), 0, 0, 0))
#define CALL4(number, a, b, c, d)    finish(bare_call(number, ARG(a), ARG(b), ARG(c), ARG(d), 0, 0))
#define CALL5(number, a, b, c, d, e) finish(bare_call(number, ARG(a), ARG(b), ARG(c), ARG(d), ARG(e), 0))

enum { KERNEL_SIGSET_BYTES = 8 };

/* ---- files ---- */

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return (int)CALL4(SYS_openat, AT_FDCWD, path, flags, mode);
}

int close(int fd)
{
    return (int)CALL1(SYS_close, fd);
}

ssize_t read(int fd, void *data, size_t len)
{
    return CALL3(SYS_read, fd, data, len);
}

ssize_t write(int fd, const void *data, size_t len)
{
    return CALL3(SYS_write, fd, data, len);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    return CALL4(SYS_pwrite64, fd, data, len, offset);
}

int fstat(int fd, struct stat *info)
{
    return (int)CALL2(SYS_fstat, fd, info);
}

ssize_t getdents64(int fd, void *block, size_t len)
{
    return CALL3(SYS_getdents64, fd, block, len);
}

int mkdir(const char *path, mode_t mode)
{
    return (int)CALL3(SYS_mkdirat, AT_FDCWD, path, mode);
}

int unlink(const char *path)
{
    return (int)CALL3(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return (int)CALL3(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int rename(const char *from, const char *to)
{
    return (int)CALL5(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int chdir(const char *path)
{
    return (int)CALL1(SYS_chdir, path);
}

mode_t umask(mode_t mask)
{
    return (mode_t)CALL1(SYS_umask, mask);
}

int dup2(int from, int to)
{
    return (int)CALL3(SYS_dup3, from, to, 0);
}

int pipe2(int fds[2], int flags)
{
    return (int)CALL2(SYS_pipe2, fds, flags);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    long value = va_arg(args, long);
    va_end(args);
    return (int)CALL3(SYS_fcntl, fd, command, value);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    return (int)CALL5(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &timeout, NULL, KERNEL_SIGSET_BYTES);
}

void *mmap(void *address, size_t len, int protection, int flags, int fd, off_t offset)
{
    return (void *)finish(bare_call(SYS_mmap, ARG(address), ARG(len), protection, flags, fd, offset));
}

int munmap(void *address, size_t len)
{
    return (int)CALL2(SYS_munmap, address, len);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    long value = va_arg(args, long);
    va_end(args);
    return (int)CALL3(SYS_ioctl, fd, request, value);
}

/* ---- sockets ---- */

int socket(int domain, int type, int protocol)
{
    return (int)CALL3(SYS_socket, domain, type, protocol);
}

/* glibc's header gives the argument a type of its own. */
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    return (int)CALL3(SYS_connect, fd, address.__sockaddr__, len);
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
    return (int)CALL5(SYS_getsockopt, fd, level, name, value, len);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return CALL3(SYS_recvmsg, fd, message, flags);
}

int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
    return (int)CALL5(SYS_mount, source, target, type, flags, data);
}

/* ---- processes ---- */

void _exit(int status)
{
    for (;;)
        bare_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

pid_t getpid(void)
{
    return (pid_t)CALL0(SYS_getpid);
}

pid_t getppid(void)
{
    return (pid_t)CALL0(SYS_getppid);
}

uid_t geteuid(void)
{
    return (uid_t)CALL0(SYS_geteuid);
}

gid_t getegid(void)
{
    return (gid_t)CALL0(SYS_getegid);
}

pid_t getpgid(pid_t pid)
{
    return (pid_t)CALL1(SYS_getpgid, pid);
}

pid_t setsid(void)
{
    return (pid_t)CALL0(SYS_setsid);
}

int unshare(int flags)
{
    return (int)CALL1(SYS_unshare, flags);
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    return (int)CALL3(SYS_execve, path, argv, envp);
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    return (int)CALL5(SYS_waitid, type, id, info, options, NULL);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    return (pid_t)CALL4(SYS_wait4, pid, status, options, NULL);
}

int kill(pid_t pid, int signal_number)
{
    return (int)CALL2(SYS_kill, pid, signal_number);
}

int prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    long value = va_arg(args, long);
    va_end(args);
    return (int)CALL5(SYS_prctl, option, value, 0, 0, 0);
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return (int)CALL4(SYS_prlimit64, 0, resource, limit, NULL);
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
    return (int)CALL2(SYS_getrusage, who, usage);
}

long syscall(long number, ...)
{
    va_list args;
    va_start(args, number);
    long a = va_arg(args, long), b = va_arg(args, long), c = va_arg(args, long);
    va_end(args);
    return CALL3(number, a, b, c);
}

/* ---- signals and time ---- */

int sigemptyset(sigset_t *set)
{
    memset(set, 0, sizeof *set);
    return 0;
}

int sigaddset(sigset_t *set, int signal_number)
{
    set->__val[0] |= 1ul << (signal_number - 1);
    return 0;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return (int)CALL4(SYS_rt_sigprocmask, how, set, old, KERNEL_SIGSET_BYTES);
}

int signalfd(int fd, const sigset_t *set, int flags)
{
    return (int)CALL4(SYS_signalfd4, fd, set, KERNEL_SIGSET_BYTES, flags);
}

int timerfd_create(clockid_t clock, int flags)
{
    return (int)CALL2(SYS_timerfd_create, clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
    return (int)CALL4(SYS_timerfd_settime, fd, flags, when, old);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    return (int)CALL2(SYS_clock_gettime, clock, time);
}

/* ---- memory and strings ----
 * The empty asm keeps a compiler from seeing memset in memset and calling it. */

#define NOT_A_LIBRARY_CALL() __asm__ volatile("")

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ((char *)to)[i] = ((const char *)from)[i];
        NOT_A_LIBRARY_CALL();
    }
    return to;
}

void *memset(void *to, int value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ((char *)to)[i] = (char)value;
        NOT_A_LIBRARY_CALL();
    }
    return to;
}

void *memchr(const void *data, int value, size_t len)
{
    const char *bytes = data;
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == (char)value)
            return (void *)(bytes + i);
        NOT_A_LIBRARY_CALL();
    }
    return NULL;
}

void *memrchr(const void *data, int value, size_t len)
{
    const char *bytes = data;
    while (len-- > 0)
        if (bytes[len] == (char)value)
            return (void *)(bytes + len);
    return NULL;
}

size_t strlen(const char *text)
{
    size_t len = 0;
    while (text[len]) {
        len++;
        NOT_A_LIBRARY_CALL();
    }
    return len;
}

int strncmp(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (a[i] != b[i] || !a[i])
            return (unsigned char)a[i] - (unsigned char)b[i];
    return 0;
}

char *strchr(const char *text, int value)
{
    for (;; text++) {
        if (*text == (char)value)
            return (char *)text;
        if (!*text)
            return NULL;
    }
}

char *strrchr(const char *text, int value)
{
    return memrchr(text, value, strlen(text) + 1);
}

size_t strcspn(const char *text, const char *stops)
{
    size_t len = 0;
    while (text[len] && !strchr(stops, text[len]))
        len++;
    return len;
}

char *strstr(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (; *text; text++)
        if (strncmp(text, word, len) == 0)
            return (char *)text;
    return len ? NULL : (char *)text;
}
