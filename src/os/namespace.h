/* namespace.h - tests whether children of this process may have their own mounts and root file system. */
#ifndef PHX_OS_NAMESPACE_H
#define PHX_OS_NAMESPACE_H

/* Tries in a child process whether it may have its own mount namespace, with mounts that the machine does not
 * see. Returns 0 if it may, otherwise the errno of the refusal: EPERM without CAP_SYS_ADMIN, as in most
 * containers; EINVAL in a chroot, whose root is no mount point and cannot be cut off from the machine's.
 * Thread-safe; takes about a millisecond. */
int os_mounts_refused(void);

/* Tries in a child process whether it may have its own root file system: an overlay of the machine's with its
 * changes in memory. `place` is any folder but "/"; nothing is left in it. Returns 0 if it may, otherwise the
 * errno of the refusal: EPERM without CAP_SYS_ADMIN, ENODEV in a kernel without overlays, EINVAL in a chroot.
 * Thread-safe. */
int os_root_refused(const char *place);

#endif
