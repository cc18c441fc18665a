/* Older kernels and sandboxes, as a filter of system calls. */
#ifndef SYSTEMS_H
#define SYSTEMS_H

#include <linux/filter.h>

/* Largest number of instructions of such a filter. */
enum { SYSTEM_MOST = 400 };

/* Takes a rule of the command line. Returns 0, or -1 if the text is not a rule. Several rules add up.
 *
 *   kernel=MAJOR.MINOR   features that a Linux of that version lacks, from 3.10 on: system calls (ENOSYS), and options, commands and
 *                        flags of older calls that the library uses (the error of that kernel)
 *   sandbox=docker       calls that Docker's default profile refuses: EPERM, or ENOSYS for unknown calls
 *   sandbox=docker-19.03 like `docker`, of a version that refuses calls newer than Linux 4.17 with EPERM
 *   sandbox=gvisor       calls that gVisor lacks */
int system_take(const char *rule);

/* Writes the filter to `filter`. Returns its length, which is 0 without a rule. Allowed calls continue after the end of the filter. */
unsigned short system_filter(struct sock_filter *filter);

#endif
