/* rights.h - lets a thread of root's open and make files with the rights of another user. */
#ifndef PHX_OS_RIGHTS_H
#define PHX_OS_RIGHTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* The thread's own groups, while it has the rights of another user. */
struct os_rights {
    bool taken;
    int group_count;
    gid_t groups[NGROUPS_MAX];
};

/* Gives this thread the rights of the user and group to files, without further groups, until
 * os_rights_return(). Other threads keep theirs. Does nothing if the process is not root's, or `user` is
 * 0. */
void os_rights_take(uid_t user, gid_t group, struct os_rights *ret_rights);
void os_rights_return(const struct os_rights *rights);

#endif
