/* The filter of system calls, run as the kernel would run it, for each architecture: its numbers are those of
 * the kernel's headers, and its answers the same everywhere. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/str.h"
#include "shim/filter.h"

enum { ALLOWED = 0, NUMBERS_MAX = 600, SYS_ADMIN = 21, SYS_TIME = 25 };

/* The answer of the program: 0 or an errno. */
static int ask(const struct filter_program *program, const struct seccomp_data *data)
{
    uint32_t value = 0;
    for (size_t at = 0; at < program->len; at++) {
        const struct sock_filter *code = &program->code[at];
        bool equal = value == code->k, above = value >= code->k, bits = value & code->k;
        switch (code->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(code->k + sizeof value <= sizeof *data && code->k % sizeof value == 0);
            memcpy(&value, (const char *)data + code->k, sizeof value);
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += equal ? code->jt : code->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += above ? code->jt : code->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            at += bits ? code->jt : code->jf;
            break;
        case BPF_RET | BPF_K:
            return code->k == SECCOMP_RET_ALLOW ? ALLOWED : (int)(code->k & SECCOMP_RET_DATA);
        default:
            fail_msg("an instruction %x at %zu", code->code, at);
        }
    }
    fail_msg("the program has no end");
    return -1;
}

static const struct machine {
    const char *name;
    uint16_t elf;
    uint32_t audit;
    const char *header; /* that numbers its calls */
} machines[] = {
    {"x86-64", EM_X86_64, AUDIT_ARCH_X86_64, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"},
    {"aarch64", EM_AARCH64, AUDIT_ARCH_AARCH64, "/usr/include/asm-generic/unistd.h"},
    {"riscv64", EM_RISCV, AUDIT_ARCH_RISCV64, "/usr/include/asm-generic/unistd.h"},
    {"loongarch64", 258, 258u | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE, "/usr/include/asm-generic/unistd.h"},
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* The number of a call by the kernel's header; -1: the header, or the call, is not there. */
static int number_of(const struct machine *machine, const char *call)
{
    static const char *const forms[] = {"#define __NR_%s %%d", "#define __NR3264_%s %%d"};
    char line[256], form[80];
    int number = -1;
    FILE *file = fopen(machine->header, "r");
    while (file && number < 0 && fgets(line, sizeof line, file))
        for (size_t i = 0; i < 2 && number < 0; i++) {
            snprintf(form, sizeof form, forms[i], call);
            if (sscanf(line, form, &number) != 1)
                number = -1;
        }
    if (file)
        fclose(file);
    return number;
}

static int answer_of(const struct filter_program *program, const struct machine *machine, const char *call,
                     uint64_t argument)
{
    struct seccomp_data data = {.nr = number_of(machine, call), .arch = machine->audit, .args = {argument}};
    if (data.nr < 0)
        skip();
    return ask(program, &data);
}

static void test_each_machine(void **state)
{
    static const struct {
        const char *call;
        uint64_t argument;
        int answer;
    } cases[] = {
        {"mount", 0, EPERM},
        {"umount2", 0, EPERM},
        {"unshare", 0, EPERM},
        {"setns", 0, EPERM},
        {"bpf", 0, EPERM},
        {"keyctl", 0, EPERM},
        {"reboot", 0, EPERM},
        {"pivot_root", 0, EPERM},
        {"perf_event_open", 0, EPERM},
        {"acct", 0, EPERM},
        {"syslog", 0, EPERM},
        {"open_by_handle_at", 0, EPERM},
        {"swapon", 0, EPERM},
        {"io_uring_setup", 0, EPERM},
        {"clock_settime", 0, EPERM},
        {"vhangup", 0, EPERM},
        {"userfaultfd", 0, EPERM},
        {"init_module", 0, EPERM},
        {"read", 0, ALLOWED},
        {"openat", 0, ALLOWED},
        {"execve", 0, ALLOWED},
        {"mbind", 0, ALLOWED},
        {"clone", 17, ALLOWED},
        {"clone", CLONE_NEWUSER, EPERM},
        {"clone3", 0, ENOSYS},
        {"socket", AF_INET, ALLOWED},
        {"socket", AF_VSOCK, EPERM},
        {"personality", 0, ALLOWED},
        {"personality", 0x0400000, EPERM},
    };
    (void)state;
    for (size_t m = 0; m < MACHINES; m++) {
        struct filter_program program;
        assert_true(filter_build(&program, machines[m].elf, 0));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            int answer = answer_of(&program, &machines[m], cases[i].call, cases[i].argument);
            if (answer != cases[i].answer)
                fail_msg("%s: %s(%llx): %d", machines[m].name, cases[i].call,
                         (unsigned long long)cases[i].argument, answer);
        }
    }
}

/* As many numbers are refused on each architecture: no number stands for another call. */
static void test_as_many(void **state)
{
    int refused[MACHINES] = {0};
    (void)state;
    for (size_t m = 0; m < MACHINES; m++) {
        struct filter_program program;
        assert_true(filter_build(&program, machines[m].elf, 0));
        for (int number = 0; number < NUMBERS_MAX; number++) {
            struct seccomp_data data = {.nr = number, .arch = machines[m].audit};
            refused[m] += ask(&program, &data) != ALLOWED;
        }
        assert_true(refused[m] > 40);
        assert_int_equal(refused[m], refused[0]);
    }
}

static void test_other_calls(void **state)
{
    struct filter_program program;
    struct seccomp_data data = {.nr = 0, .arch = AUDIT_ARCH_I386};
    (void)state;
    assert_true(filter_build(&program, EM_X86_64, 0));
    assert_int_equal(ask(&program, &data), EPERM);
    data = (struct seccomp_data){.nr = 0x40000000, .arch = AUDIT_ARCH_X86_64}; /* x32 */
    assert_int_equal(ask(&program, &data), EPERM);
    data = (struct seccomp_data){.nr = 0, .arch = AUDIT_ARCH_AARCH64};
    assert_int_equal(ask(&program, &data), EPERM);
    assert_false(filter_build(&program, EM_S390, 0));
}

static void test_capabilities(void **state)
{
    (void)state;
    for (size_t m = 0; m < MACHINES; m++) {
        struct filter_program program;
        assert_true(filter_build(&program, machines[m].elf, UINT64_C(1) << SYS_ADMIN));
        assert_int_equal(answer_of(&program, &machines[m], "mount", 0), ALLOWED);
        assert_int_equal(answer_of(&program, &machines[m], "clone", CLONE_NEWUSER), ALLOWED);
        assert_int_equal(answer_of(&program, &machines[m], "clone3", 0), ALLOWED);
        assert_int_equal(answer_of(&program, &machines[m], "settimeofday", 0), EPERM);
        assert_true(filter_build(&program, machines[m].elf, UINT64_C(1) << SYS_TIME));
        assert_int_equal(answer_of(&program, &machines[m], "settimeofday", 0), ALLOWED);
        assert_int_equal(answer_of(&program, &machines[m], "mount", 0), EPERM);
        assert_true(filter_build(&program, machines[m].elf, UINT64_MAX)); /* some are given back by none */
        assert_int_equal(answer_of(&program, &machines[m], "keyctl", 0), EPERM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_machine),
        cmocka_unit_test(test_as_many),
        cmocka_unit_test(test_other_calls),
        cmocka_unit_test(test_capabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
