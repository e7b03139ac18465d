/* slice.h - reads the shape of a slice of a pod from the name of its routing tables, as the agent reports it.
 *
 * The name is valid if and only if it is a shape, "AxBxC" or "AxBxC-twisted", and optionally " without " and
 * names of switches, such as "x5", with ", " between them. Ranks count machines of 2x2x1 chips along X first,
 * then Y, then Z (docs/fabric.md). Pure; any thread.
 */
#ifndef PHX_JOB_LINK_SLICE_H
#define PHX_JOB_LINK_SLICE_H

#include "phalanx/phalanx.h"

/* Fills in everything but the number of the tables. Returns 0, or -1 with *ret_slice untouched if the name is
 * not valid or the slice has no machine for this rank. */
int job_slice_parse(const char *name, uint32_t rank, struct phx_slice *ret_slice);

#endif
