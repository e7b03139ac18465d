#include "os/rights.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

void os_rights_take(uid_t user, gid_t group, struct os_rights *ret_rights)
{
    ret_rights->taken = geteuid() == 0 && user > 0;
    if (!ret_rights->taken)
        return;
    ret_rights->group_count = getgroups(NGROUPS_MAX, ret_rights->groups);
    syscall(SYS_setgroups, 0,
            NULL); /* of this thread alone, as the two below: glibc's would change them all */
    setfsgid(group);
    setfsuid(user);
}

void os_rights_return(const struct os_rights *rights)
{
    if (!rights->taken)
        return;
    setfsuid(geteuid());
    setfsgid(getegid());
    syscall(SYS_setgroups, rights->group_count > 0 ? rights->group_count : 0, rights->groups);
}
