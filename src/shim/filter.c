/* filter.c - the blocked system calls, as data and as a program.
 *
 * The list follows the table "significant syscalls blocked by the default profile" of Docker's manual; as
 * there, a capability that the container adds allows the calls that need it. Beyond it io_uring is blocked,
 * as newer runtimes do. NUMA policies (mbind, set_mempolicy) are not: ranks bind their memory. Calls for
 * which the kernel requires capabilities that no task has (iopl, nfsservctl, sysfs) are not listed.
 *
 * Everything else is allowed: a blocked call fails with EPERM. clone3 fails with ENOSYS, because the filter
 * cannot read its flags, and C libraries then use clone. Calls of another architecture (32 bits, x32) fail.
 * The kernel keeps a bitmap of calls that are always allowed, so the length of the list costs nothing for
 * these.
 */
#include "shim/filter.h"

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>

enum { LOONGARCH = 258 }; /* of elf(5); older headers do not have it */

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

enum { X86_64, GENERIC, NUMBERINGS };

static const struct {
    uint16_t numbers[NUMBERINGS];
    uint8_t capability; /* that gives it back */
} blocked[] = {
    /* clang-format off */
    {{163, 89}, SYS_PACCT}, /* acct */
    {{248, 217}, NEVER}, /* add_key */
    {{321, 280}, SYS_ADMIN}, /* bpf */
    {{305, 266}, SYS_TIME}, /* clock_adjtime */
    {{227, 112}, SYS_TIME}, /* clock_settime */
    {{176, 106}, SYS_MODULE}, /* delete_module */
    {{300, 262}, SYS_ADMIN}, /* fanotify_init */
    {{313, 273}, SYS_MODULE}, /* finit_module */
    {{431, 431}, SYS_ADMIN}, /* fsconfig */
    {{432, 432}, SYS_ADMIN}, /* fsmount */
    {{430, 430}, SYS_ADMIN}, /* fsopen */
    {{433, 433}, SYS_ADMIN}, /* fspick */
    {{175, 105}, SYS_MODULE}, /* init_module */
    {{426, 426}, NEVER}, /* io_uring_enter */
    {{427, 427}, NEVER}, /* io_uring_register */
    {{425, 425}, NEVER}, /* io_uring_setup */
    {{312, 272}, SYS_PTRACE}, /* kcmp */
    {{320, 294}, SYS_BOOT}, /* kexec_file_load */
    {{246, 104}, SYS_BOOT}, /* kexec_load */
    {{250, 219}, NEVER}, /* keyctl */
    {{212, 18}, SYS_ADMIN}, /* lookup_dcookie */
    {{165, 40}, SYS_ADMIN}, /* mount */
    {{442, 442}, SYS_ADMIN}, /* mount_setattr */
    {{429, 429}, SYS_ADMIN}, /* move_mount */
    {{279, 239}, SYS_ADMIN}, /* move_pages */
    {{304, 265}, DAC_READ_SEARCH}, /* open_by_handle_at */
    {{428, 428}, SYS_ADMIN}, /* open_tree */
    {{298, 241}, SYS_ADMIN}, /* perf_event_open */
    {{155, 41}, SYS_ADMIN}, /* pivot_root */
    {{179, 60}, SYS_ADMIN}, /* quotactl */
    {{169, 142}, SYS_BOOT}, /* reboot */
    {{249, 218}, NEVER}, /* request_key */
    {{171, 162}, SYS_ADMIN}, /* setdomainname */
    {{170, 161}, SYS_ADMIN}, /* sethostname */
    {{308, 268}, SYS_ADMIN}, /* setns */
    {{164, 170}, SYS_TIME}, /* settimeofday */
    {{168, 225}, SYS_ADMIN}, /* swapoff */
    {{167, 224}, SYS_ADMIN}, /* swapon */
    {{103, 116}, SYSLOG}, /* syslog */
    {{166, 39}, SYS_ADMIN}, /* umount2 */
    {{272, 97}, SYS_ADMIN}, /* unshare */
    {{323, 282}, NEVER}, /* userfaultfd */
    {{153, 58}, SYS_TTY_CONFIG}, /* vhangup */
    /* clang-format on */
};
enum { BLOCKED = sizeof blocked / sizeof *blocked };
_Static_assert(2 * BLOCKED + 48 <= FILTER_PROGRAM_MAX, "the longest program has room");

/* Calls that depend on an argument, or fail with another error. */
struct filter_numbers {
    uint16_t clone, clone3, socket, personality;
};
static const struct filter_numbers judged[NUMBERINGS] = {
    [X86_64] = {56, 435, 41, 135},
    [GENERIC] = {220, 435, 198, 92},
};

static const struct {
    uint16_t machine;
    uint8_t numbering;
} machines[] = {
    {EM_X86_64, X86_64},
    {EM_AARCH64, GENERIC},
    {EM_RISCV, GENERIC},
    {LOONGARCH, GENERIC},
};

/* The bit in the numbers of x32's calls, which have the architecture of 64-bit calls. */
#define X32_BIT        UINT32_C(0x40000000)
#define FIRST_ARGUMENT ((uint32_t)offsetof(struct seccomp_data, args))
#define NEW_NAMESPACES                                                                                       \
    ((uint32_t)(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |    \
                CLONE_NEWCGROUP))

static void filter_emit(struct filter_program *program, uint16_t code, uint32_t k, uint8_t if_true,
                        uint8_t if_false)
{
    program->code[program->len++] = (struct sock_filter){code, if_true, if_false, k};
}

static void filter_load(struct filter_program *program, uint32_t offset)
{
    filter_emit(program, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void filter_answer(struct filter_program *program, uint32_t error)
{
    filter_emit(program, BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_ALLOW, 0, 0);
}

/* Loads the first argument, on which the following instructions decide, for one call; all others skip `len`
 * instructions. */
static void filter_argument_of(struct filter_program *program, uint32_t number, uint8_t len)
{
    filter_emit(program, BPF_JMP | BPF_JEQ | BPF_K, number, 0, (uint8_t)(len + 1));
    filter_load(program, FIRST_ARGUMENT);
}

static void filter_check_arguments(struct filter_program *program, const struct filter_numbers *numbers,
                                   bool admin)
{
    static const uint32_t personalities[] = {0, 0x8, 0x20000, 0x20008, UINT32_MAX};
    enum { PERSONALITIES = sizeof personalities / sizeof *personalities };
    if (!admin) {
        filter_argument_of(program, numbers->clone, 3);
        filter_emit(program, BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
        filter_answer(program, EPERM);
        filter_answer(program, 0);
        filter_emit(program, BPF_JMP | BPF_JEQ | BPF_K, numbers->clone3, 0, 1);
        filter_answer(program, ENOSYS);
    }
    filter_argument_of(program, numbers->socket, 3);
    filter_emit(program, BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 0, 1);
    filter_answer(program, EPERM);
    filter_answer(program, 0);
    filter_argument_of(program, numbers->personality, PERSONALITIES + 2);
    for (uint8_t i = 0; i < PERSONALITIES; i++)
        filter_emit(program, BPF_JMP | BPF_JEQ | BPF_K, personalities[i], (uint8_t)(PERSONALITIES - i), 0);
    filter_answer(program, EPERM);
    filter_answer(program, 0);
}

bool filter_build(struct filter_program *program, uint16_t machine, uint64_t given)
{
    size_t known = sizeof machines / sizeof *machines, which = 0;
    while (which < known && machines[which].machine != machine)
        which++;
    if (which == known)
        return false;
    uint8_t numbering = machines[which].numbering;
    given &= ~(UINT64_C(1) << NEVER);
    program->len = 0;
    filter_load(program, offsetof(struct seccomp_data, arch));
    filter_emit(program, BPF_JMP | BPF_JEQ | BPF_K, machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE, 1, 0);
    filter_answer(program, EPERM);
    filter_load(program, offsetof(struct seccomp_data, nr));
    filter_emit(program, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    filter_answer(program, EPERM);
    for (int i = 0; i < BLOCKED; i++) {
        if (given >> blocked[i].capability & 1)
            continue;
        filter_emit(program, BPF_JMP | BPF_JEQ | BPF_K, blocked[i].numbers[numbering], 0, 1);
        filter_answer(program, EPERM);
    }
    filter_check_arguments(program, &judged[numbering], given >> SYS_ADMIN & 1);
    filter_answer(program, 0);
    return true;
}
