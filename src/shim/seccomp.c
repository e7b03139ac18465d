/* seccomp.c - gives the kernel the filter of system calls (filter.h). */
#include <elf.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "shim/filter.h"
#include "shim/parts.h"

/* The header of this program: its machine is the architecture of its system calls. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

int filter_calls(const struct shim *shim)
{
    static struct filter_program program; /* built again for a command beside the task */
    const struct shim_header *header = shim->header;
    uint64_t given = header->flags & SHIM_BOUND ? header->capabilities : 0;
    if (!filter_build(&program, __ehdr_start.e_machine, given))
        return -ENOSYS;
    struct sock_fprog filter = {program.len, program.code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0 ? -errno : 0;
}
