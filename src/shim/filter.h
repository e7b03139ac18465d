/* filter.h - builds the kernel's filter program (seccomp(2), "filter mode") that blocks the system calls
 * which container runtimes block by default. Pure.
 *
 * x86-64 has its own system call numbers; the later 64-bit architectures share theirs (asm-generic/unistd.h).
 */
#ifndef PHX_SHIM_FILTER_H
#define PHX_SHIM_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

enum { FILTER_PROGRAM_MAX = 160 };

struct filter_program {
    struct sock_filter code[FILTER_PROGRAM_MAX];
    unsigned short len;
};

/* Makes the program for a machine of elf(5) (EM_X86_64, EM_AARCH64, EM_RISCV, EM_LOONGARCH; 64 bits, little
 * endian). Bit N of `given`: the task has capability N, and the calls that need it are allowed. Returns
 * false, with the program unchanged, if the machine is not known. */
bool filter_build(struct filter_program *program, uint16_t machine, uint64_t given);

#endif
