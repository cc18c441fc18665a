/* Restrictions of the current process: resource limits and system calls. */
#ifndef RULES_H
#define RULES_H

/* Takes a rule of the command line. Returns 0, or -1 if the text is not a rule.
 *
 *   limit=NAME:VALUE         a soft limit: FSIZE, NOFILE, AS, DATA, NPROC or MEMLOCK; +VALUE adds to the current use
 *   refuse=CALL:ERRNO        all calls of this system call return ERRNO
 *   refuse=CALL:ERRNO:N      only the Nth call
 *   refuse=CALL:ERRNO:A=V    only calls with the value V for argument A (from 0)
 *   kernel=..., sandbox=...  all features that an older kernel lacks, or a sandbox refuses: systems.h
 *   flight                   the limit of descriptors in flight (sent and not received) is reached; not for root
 *   uid=NUMBER               another user, for the limits that root is exempt from */
int rules_take(const char *rule);

/* Becomes another user if a rule has one. An end without other rules does this as well. Returns 0, or -1 with a message. */
int rules_user(void);

/* Applies all rules to this thread and the threads that it creates. Returns 0, or -1 with a message. */
int rules_apply(void);

/* Restores the soft limits. */
void rules_lift(void);

/* Returns the reason if this machine or this user lacks a feature that the rules need, or NULL. */
const char *rules_missing(void);

/* Returns the number of calls that rules with a number counted. */
unsigned rules_count(void);

#endif
