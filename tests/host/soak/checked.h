/* Messages that show whether they arrived whole: every part can be recomputed from the first.
 *
 * Part 0 is a header; the parts behind it have lengths and bytes that follow from it. A message with a part missing,
 * added, cut or mixed with another one does not verify. */

#ifndef CHECKED_H
#define CHECKED_H

#include <stdint.h>

typedef struct
{
    char topic;       /* 'A' to 'D', for subscriptions by prefix */
    uint8_t parts;    /* parts behind the header, 0 to 4 */
    uint8_t zero[6];  /* always 0 */
    uint64_t sender;  /* unique for each sending socket */
    uint64_t number;  /* grows by one with each message of a sender */
    uint64_t check;   /* over the three above */
} checked_header;

/* A random number; the state is one word. */
uint64_t random_next (uint64_t *state);

/* A random number below `limit`. */
unsigned random_below (uint64_t *state, unsigned limit);

/* Sets an option whose value is an int; ends the process if it is refused. */
void set_option (void *socket, int option, int value);

/* What is written before SIGALRM ends the process, once that is asked for. */
extern char shown[512];
void show_on_alarm (void);

/* Sends message `number` of `sender`; `flags` (0 or ZMQ_DONTWAIT) are those of the first part.
 * Returns 0, or -1 with zmq_errno(). EAGAIN is possible before the first part only. */
int checked_send (void *socket, uint64_t sender, uint64_t number, int flags);

/* Receives a message with `flags` and verifies it; ends the process if it is not whole. `skip` parts in front of the header are
 * ignored. Returns 0, or -1 with zmq_errno(). */
int checked_recv (void *socket, int skip, checked_header *header, int flags);

/* Ends the process with a message and zmq_errno(). */
void fail (const char *what);

#endif
