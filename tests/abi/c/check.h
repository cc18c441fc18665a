/* Helpers that the parts of the runtime check share. */
#ifndef CHECK_H
#define CHECK_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zmq.h"

#ifdef _WIN32
/* Windows has no alarm. The caller of the program must end it. */
#define alarm(seconds) ((void) (seconds))
#endif

extern int passed;
extern int failed;
/* True if the checks also use handles after their end, and pass null where the manual does not mention it. */
extern int strict;

void check(int ok, const char *what, const char *file, int line);

#define CHECK(condition) check((condition) ? 1 : 0, #condition, __FILE__, __LINE__)

/* Checks that the call fails, and that errno and zmq_errno() agree. */
#define CHECK_ERRNO(call, failure, number)                                                                   \
    (errno = 0,                                                                                              \
     check((call) == (failure) && errno == (number) && zmq_errno() == (number), #call, __FILE__, __LINE__))

/* handles.c */
void handles(void);
/* Creates a connected pair of sockets over inproc. */
void make_pair(void *context, void **one, void **other);
int int_option(void *socket, int option);
void set_int_option(void *socket, int option, int value);

/* messages.c, traffic.c */
void messages(void);
void traffic(void);
/* fork.c */
void forks(void);
void forks_with_messages_left(void);
/* endings.c */
void endings(void);
/* drafts.c */
void drafts(void);
/* routing_ids.c */
void routing_ids(void);

#endif
