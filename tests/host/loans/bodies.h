/* Large messages whose every word can be recomputed from the first one, and mappings of a process. */
#ifndef BODIES_H
#define BODIES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zmq.h>

/* Ends the process with a message, the error and its number. */
void fail (const char *what);

/* Ends the process with a failure after this time. */
void watchdog (unsigned seconds);

/* Returns a random number. The state is one word, and not 0. */
uint64_t random_next (uint64_t *state);

/* Returns a random length of a body: mostly a bit more than the smallest loan, sometimes up to `most` bytes. */
size_t random_length (uint64_t *state, size_t most);

/* Writes the body of number `number`: all words, and the bytes behind the last whole word. */
void body_write (void *body, size_t length, uint64_t number);

/* Returns true if all bytes are those of body_write. */
int body_is_right (const void *body, size_t length, uint64_t number);

/* Returns the number in a body. */
uint64_t body_number (const void *body);

/* Changes some bytes of a body, or all of its pages, by exclusive or. The same `seed` again restores them. */
void body_scribble (void *body, size_t length, uint64_t seed);

/* Sends a body that this function allocates by zmq_msg_init_size. Returns 0, or -1 with zmq_errno (). */
int body_send (void *socket, size_t length, uint64_t number, int flags);

/* Receives a message, whose length must be at least 8. Returns 0, or -1 with zmq_errno (). */
int body_receive (void *socket, zmq_msg_t *message, int flags);

void *socket_open (void *context, int type);
void socket_set (void *socket, int option, int value);
void socket_bind (void *socket, const char *endpoint);
void socket_connect (void *socket, const char *endpoint);

/* Slabs that a process maps. */
struct mappings {
    unsigned own;     /* of this process: shared and writable */
    unsigned read;    /* of others: shared and only readable */
    unsigned written; /* of others: private and writable */
    size_t own_kib;   /* resident memory of `own` */
};
struct mappings mappings_of (pid_t process);

/* Starts this program again with these arguments. */
pid_t start (const char *const *arguments);

void pause_ms (unsigned ms);

#endif
