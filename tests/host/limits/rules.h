/* Restrictions on a process from now on: resource limits and system calls. */
#ifndef RULES_H
#define RULES_H

/* Takes a rule of the command line; 0 if it is one, -1 if not.
 *
 *   limit=NAME:VALUE         a soft limit: FSIZE, NOFILE, AS, DATA, NPROC or MEMLOCK; +VALUE counts from what is in use
 *   refuse=CALL:ERRNO        every such system call answers ERRNO
 *   refuse=CALL:ERRNO:N      only the Nth one
 *   refuse=CALL:ERRNO:A=V    only those whose argument A (from 0) is V
 *   kernel=..., sandbox=...  all that an older kernel lacks, or a sandbox refuses: systems.h
 *   flight                   so many descriptors are in flight (sent and not received) that no more can be sent; not for root
 *   uid=NUMBER               another user, for the limits that root is exempt from */
int rules_take(const char *rule);

/* Becomes another user, if a rule says so; so does an end that is denied nothing. 0, or -1 with a message. */
int rules_user(void);

/* Puts all rules in force for this thread and those that it makes. 0, or -1 with a message. */
int rules_apply(void);

/* The soft limits are as they were. */
void rules_lift(void);

/* True if the rules need something that this machine or this user does not have; the reason, or NULL. */
const char *rules_missing(void);

/* Number of times that the call of a rule with a number was made. */
unsigned rules_count(void);

#endif
