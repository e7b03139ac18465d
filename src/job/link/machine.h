/* machine.h - which ranks are on one machine, and how far machines are from each other. This decides which
 * rank can read another's memory, and which rank keeps copies for another.
 *
 * Two ranks are on one machine if they see the same folder in memory: the same boot of a kernel, the same
 * path, and behind it the same file system. Ranks without such a folder are told apart by their host's name.
 *
 * Reads files and the environment. Any thread but, as for getenv, not while another calls setenv.
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

/* memory_dir: may be empty, and need not exist yet. name: of the host. */
struct machine machine_of(const char *memory_dir, const char *name);

/* The rank that keeps copies for `rank`: on the next machine of a ring of all, `by_rack` on another rack
 * where no rack has more than half of the machines. Each machine keeps those of one other. MACHINE_NONE:
 * there is no other machine, or no memory to find it. Pure. */
uint32_t machine_buddy(const struct machine *machines, uint32_t world, uint32_t rank, bool by_rack);

#endif
