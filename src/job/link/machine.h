/* machine.h - which ranks are on one machine, and how far machines are from each other. This decides which
 * rank can read another's memory, and which rank keeps copies for another.
 *
 * Two ranks are on one machine if they see the same folder in memory: the same boot of a kernel, the same
 * path, and the same parent folder (device and inode). Ranks without such a folder are distinguished by host
 * name.
 *
 * Reads files and the environment. Any thread may call, but not while another thread calls setenv.
 */
#ifndef PHX_JOB_LINK_MACHINE_H
#define PHX_JOB_LINK_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_NONE UINT32_MAX

struct machine {
    uint64_t id;   /* equal: one machine; not 0 */
    uint64_t rack; /* hash of PHX_RACK; 0 when it is empty or not set */
};

/* Returns the machine of this process. `memory_dir` may be empty, and need not exist yet; `name` is the host
 * name. */
struct machine machine_of(const char *memory_dir, const char *name);

/* Returns the rank that keeps copies for `rank`: a rank on the next machine in a ring of all machines. With
 * `by_rack` the next machine is on another rack, unless a rack has more than half of the machines. Each
 * machine keeps the copies of one other machine. Returns MACHINE_NONE if there is no other machine, or no
 * memory to find it. Pure. */
uint32_t machine_buddy(const struct machine *machines, uint32_t world, uint32_t rank, bool by_rack);

#endif
