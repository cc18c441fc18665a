/* A layer over zmq_send that simulates faults of a library: FAULT=lose, swap, corrupt,
 * repeat or hang, once, in the middle of a run. check.sh preloads it to check that
 * zmq-bench detects each fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*next_send)(void *, const void *, size_t, int);

int zmq_send(void *socket, const void *data, size_t length, int flags)
{
    static unsigned calls;
    static unsigned char held[65536];
    const char *fault = getenv("FAULT");

    if (next_send == NULL)
        *(void **) &next_send = dlsym(RTLD_NEXT, "zmq_send");
    calls++;
    if (fault != NULL && length <= sizeof held && calls == 500) {
        if (strcmp(fault, "lose") == 0)
            return (int) length;
        if (strcmp(fault, "swap") == 0) {
            memcpy(held, data, length);
            return (int) length;
        }
        if (strcmp(fault, "corrupt") == 0) {
            memcpy(held, data, length);
            held[length - 1] ^= 1;
            return next_send(socket, held, length, flags);
        }
        if (strcmp(fault, "repeat") == 0)
            next_send(socket, data, length, flags);
        if (strcmp(fault, "hang") == 0)
            for (;;)
                pause();
    }
    if (fault != NULL && calls == 501 && strcmp(fault, "swap") == 0) {
        int sent = next_send(socket, data, length, flags);
        next_send(socket, held, length, flags);
        return sent;
    }
    return next_send(socket, data, length, flags);
}
