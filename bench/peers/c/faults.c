/* A layer over zmq_send that simulates faults of a library: FAULT=lose, swap, corrupt,
 * corrupt-inside, repeat or hang, once, in the middle of a run. check.sh preloads it to check that
 * zmq-bench detects each fault. FAULT=lose-message and corrupt-message do the same with
 * zmq_msg_send, for the Python program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*next_send)(void *, const void *, size_t, int);
static int (*next_msg_send)(void *, void *, int);
static int (*next_msg_close)(void *);
static int (*next_msg_init)(void *);
static char *(*next_msg_data)(void *);
static size_t (*next_msg_size)(void *);

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
        if (strcmp(fault, "corrupt-inside") == 0) {
            memcpy(held, data, length);
            held[length / 2] ^= 1;
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

int zmq_msg_send(void *message, void *socket, int flags)
{
    static unsigned calls;
    const char *fault = getenv("FAULT");

    if (next_msg_send == NULL) {
        *(void **) &next_msg_close = dlsym(RTLD_NEXT, "zmq_msg_close");
        *(void **) &next_msg_init = dlsym(RTLD_NEXT, "zmq_msg_init");
        *(void **) &next_msg_data = dlsym(RTLD_NEXT, "zmq_msg_data");
        *(void **) &next_msg_size = dlsym(RTLD_NEXT, "zmq_msg_size");
        *(void **) &next_msg_send = dlsym(RTLD_NEXT, "zmq_msg_send");
    }
    calls++;
    if (fault != NULL && calls == 500) {
        int size = (int) next_msg_size(message);
        if (strcmp(fault, "lose-message") == 0) {
            next_msg_close(message);
            next_msg_init(message);
            return size;
        }
        if (strcmp(fault, "corrupt-message") == 0)
            next_msg_data(message)[size - 1] ^= 1;
    }
    return next_msg_send(message, socket, flags);
}
