/* seccomp.c - the system calls that a task may not make: those that container runtimes block by default.
 *
 * The list follows the table "significant syscalls blocked by the default profile" of Docker's manual; as
 * there, a capability that the container adds gives back the calls that go with it. Beyond it io_uring is
 * blocked, as newer runtimes do. NUMA policies (mbind, set_mempolicy) are not: ranks bind their memory. Calls
 * that the kernel itself keeps for capabilities which no task has (iopl, nfsservctl, sysfs) are left to it.
 *
 * Everything else is allowed: a blocked call fails with EPERM. clone3 fails with ENOSYS, because the filter
 * cannot read its flags, and C libraries go on to clone. Calls of another architecture (32 bits, x32) fail.
 * The kernel keeps a bitmap of what is always allowed, so that the length of the list costs nothing there.
 */
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "shim/parts.h"

/* Numbers of capabilities(7). */
enum {
    DAC_READ_SEARCH = 2,
    SYS_MODULE = 16,
    SYS_PTRACE = 19,
    SYS_PACCT = 20,
    SYS_ADMIN = 21,
    SYS_BOOT = 22,
    SYS_TIME = 25,
    SYS_TTY_CONFIG = 26,
    SYSLOG = 34,
    NEVER = 63, /* the number of none */
};

static const struct {
    uint16_t number;
    uint8_t capability; /* that gives it back */
} blocked[] = {
    {SYS_acct, SYS_PACCT},
    {SYS_add_key, NEVER},
    {SYS_bpf, SYS_ADMIN},
    {SYS_clock_adjtime, SYS_TIME},
    {SYS_clock_settime, SYS_TIME},
    {SYS_delete_module, SYS_MODULE},
    {SYS_fanotify_init, SYS_ADMIN},
    {SYS_finit_module, SYS_MODULE},
    {SYS_fsconfig, SYS_ADMIN},
    {SYS_fsmount, SYS_ADMIN},
    {SYS_fsopen, SYS_ADMIN},
    {SYS_fspick, SYS_ADMIN},
    {SYS_init_module, SYS_MODULE},
    {SYS_io_uring_enter, NEVER},
    {SYS_io_uring_register, NEVER},
    {SYS_io_uring_setup, NEVER},
    {SYS_kcmp, SYS_PTRACE},
    {SYS_kexec_file_load, SYS_BOOT},
    {SYS_kexec_load, SYS_BOOT},
    {SYS_keyctl, NEVER},
    {SYS_lookup_dcookie, SYS_ADMIN},
    {SYS_mount, SYS_ADMIN},
    {SYS_mount_setattr, SYS_ADMIN},
    {SYS_move_mount, SYS_ADMIN},
    {SYS_move_pages, SYS_ADMIN},
    {SYS_open_by_handle_at, DAC_READ_SEARCH},
    {SYS_open_tree, SYS_ADMIN},
    {SYS_perf_event_open, SYS_ADMIN},
    {SYS_pivot_root, SYS_ADMIN},
    {SYS_quotactl, SYS_ADMIN},
    {SYS_reboot, SYS_BOOT},
    {SYS_request_key, NEVER},
    {SYS_setdomainname, SYS_ADMIN},
    {SYS_sethostname, SYS_ADMIN},
    {SYS_setns, SYS_ADMIN},
    {SYS_settimeofday, SYS_TIME},
    {SYS_swapoff, SYS_ADMIN},
    {SYS_swapon, SYS_ADMIN},
    {SYS_syslog, SYSLOG},
    {SYS_umount2, SYS_ADMIN},
    {SYS_unshare, SYS_ADMIN},
    {SYS_userfaultfd, NEVER},
    {SYS_vhangup, SYS_TTY_CONFIG},
};
enum { BLOCKED = sizeof blocked / sizeof *blocked, PROGRAM_MAX = 2 * BLOCKED + 48 };

/* The bit in the numbers of x32's calls, which come with the architecture of 64 bits. */
#define X32_BIT        UINT32_C(0x40000000)
#define FIRST_ARGUMENT ((uint32_t)offsetof(struct seccomp_data, args))
#define NEW_NAMESPACES                                                                                       \
    ((uint32_t)(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |    \
                CLONE_NEWCGROUP))

/* The header of this program: its machine is the architecture of its system calls. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

struct program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short len;
};

static void emit(struct program *program, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
    program->code[program->len++] = (struct sock_filter){code, if_true, if_false, k};
}

static void load(struct program *program, uint32_t offset)
{
    emit(program, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void answer(struct program *program, uint32_t error)
{
    emit(program, BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_ALLOW, 0, 0);
}

/* Lets calls that are decided by their first argument, the accumulator of what follows, skip `len` others. */
static void argument_of(struct program *program, uint32_t number, uint8_t len)
{
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, number, 0, (uint8_t)(len + 1));
    load(program, FIRST_ARGUMENT);
}

static void check_arguments(struct program *program, bool admin)
{
    static const uint32_t personalities[] = {0, 0x8, 0x20000, 0x20008, UINT32_MAX};
    enum { PERSONALITIES = sizeof personalities / sizeof *personalities };
    if (!admin) {
        argument_of(program, SYS_clone, 3);
        emit(program, BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
        answer(program, EPERM);
        answer(program, 0);
        emit(program, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
        answer(program, ENOSYS);
    }
    argument_of(program, SYS_socket, 3);
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 0, 1);
    answer(program, EPERM);
    answer(program, 0);
    argument_of(program, SYS_personality, PERSONALITIES + 2);
    for (uint8_t i = 0; i < PERSONALITIES; i++)
        emit(program, BPF_JMP | BPF_JEQ | BPF_K, personalities[i], (uint8_t)(PERSONALITIES - i), 0);
    answer(program, EPERM);
    answer(program, 0);
}

int filter_calls(const struct shim *shim)
{
    static struct program program;
    const struct shim_header *header = shim->header;
    uint64_t given = header->flags & SHIM_BOUND ? header->capabilities & ~(UINT64_C(1) << NEVER) : 0;
    program.len = 0; /* a command beside the task makes it anew */
    load(&program, offsetof(struct seccomp_data, arch));
    emit(&program, BPF_JMP | BPF_JEQ | BPF_K, __ehdr_start.e_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE,
         1, 0);
    answer(&program, EPERM);
    load(&program, offsetof(struct seccomp_data, nr));
    emit(&program, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    answer(&program, EPERM);
    for (int i = 0; i < BLOCKED; i++) {
        if (given >> blocked[i].capability & 1)
            continue;
        emit(&program, BPF_JMP | BPF_JEQ | BPF_K, blocked[i].number, 0, 1);
        answer(&program, EPERM);
    }
    check_arguments(&program, given >> SYS_ADMIN & 1);
    answer(&program, 0);
    struct sock_fprog filter = {program.len, program.code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0 ? -errno : 0;
}
