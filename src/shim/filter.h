/* filter.h - the system calls that a task may not make: those that container runtimes block by default, as a
 * program for the kernel (seccomp(2), "filter mode"). Pure.
 *
 * Each architecture has its own numbers of system calls; those of the 64-bit architectures that came after
 * x86-64 are the same (asm-generic/unistd.h).
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
 * endian). `given`: bit N: capability N gives back the calls that go with it. False: no such machine is
 * known, and the program stays. */
bool filter_build(struct filter_program *program, uint16_t machine, uint64_t given);

#endif
