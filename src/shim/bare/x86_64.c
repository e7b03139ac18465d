/* System V ABI for AMD64, appendix A.2.1: number in rax, arguments in rdi rsi rdx r10 r8 r9; rcx and r11 are
 * lost. */
#include <sys/syscall.h>

#include "shim/bare/call.h"

long bare_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The kernel enters with an aligned stack that holds argc, argv, envp; the shim needs none of them. */
__asm__(".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    and $-16, %rsp\n"
        "    call main\n"
        "    mov %eax, %edi\n"
        "    mov $231, %eax\n" /* exit_group */
        "    syscall\n"
        "    hlt\n"
        ".size _start, . - _start\n");

/* The child runs on this stack and overwrites the return address, so that is kept in a register, which each
 * of the two has for itself. */
__asm__(".globl vfork\n"
        ".type vfork, @function\n"
        "vfork:\n"
        "    pop %rdi\n"
        "    mov $58, %eax\n" /* vfork */
        "    syscall\n"
        "    push %rdi\n"
        "    cmp $-4095, %rax\n"
        "    jae 1f\n"
        "    ret\n"
        "1:  neg %eax\n"
        "    mov %eax, bare_errno(%rip)\n"
        "    mov $-1, %rax\n"
        "    ret\n"
        ".size vfork, . - vfork\n");

_Static_assert(SYS_exit_group == 231 && SYS_vfork == 58, "as in the assembly above");
