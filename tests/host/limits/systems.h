/* Older kernels and sandboxes, as a filter of system calls. */
#ifndef SYSTEMS_H
#define SYSTEMS_H

#include <linux/filter.h>

/* Most instructions of such a filter. */
enum { SYSTEM_MOST = 400 };

/* Takes a rule of the command line; 0 if it is one, -1 if not. Every one adds to those before.
 *
 *   kernel=MAJOR.MINOR   features that a Linux of that version lacks: system calls (ENOSYS), and options, commands and flags of older ones that the library
 *                        uses (the error that they have there); from 3.10 on
 *   sandbox=docker       calls that Docker's default profile refuses: EPERM, or ENOSYS for unknown calls
 *   sandbox=docker-19.03 like `docker`, of a version that refuses calls newer than Linux 4.17 with EPERM
 *   sandbox=gvisor       calls that gVisor lacks */
int system_take(const char *rule);

/* Writes the filter to `filter`; its length, 0 without a rule. It goes on behind its end with what is allowed. */
unsigned short system_filter(struct sock_filter *filter);

#endif
