/* Implements check.h: counts checks, and prints the first twenty failures. */
#include "check.h"

#include <stdio.h>

enum { SHOWN = 20 };

int passed;
int failed;
int strict = 1;

void check(int ok, const char *what, const char *file, int line)
{
    if (ok) {
        passed++;
        return;
    }
    if (++failed <= SHOWN)
        printf("%s:%d: %s (errno %d: %s)\n", file, line, what, errno, zmq_strerror(errno));
}
