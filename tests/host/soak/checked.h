/* Messages that a receiver can verify, because each part can be recomputed from the first part.
 *
 * Part 0 is a header, which determines the lengths and bytes of the other parts. A message with a missing, added,
 * truncated or foreign part fails the verification. */

#ifndef CHECKED_H
#define CHECKED_H

#include <stdint.h>

typedef struct
{
    char topic;       /* 'A' to 'D', for subscriptions by prefix */
    uint8_t parts;    /* parts after the header, 0 to 4 */
    uint8_t zero[6];  /* always 0 */
    uint64_t sender;  /* unique for each sending socket */
    uint64_t number;  /* increases by one with each message of a sender */
    uint64_t check;   /* derived from sender and number */
} checked_header;

/* Returns a random number. The state is one word. */
uint64_t random_next (uint64_t *state);

/* Returns a random number below `limit`. */
unsigned random_below (uint64_t *state, unsigned limit);

/* Sets an option with an int value. Ends the process if the socket refuses it. */
void set_option (void *socket, int option, int value);

/* Text that the process prints before SIGALRM ends it, after a call of show_on_alarm. */
extern char shown[512];
void show_on_alarm (void);

/* Sends message `number` of `sender`. The first part has `flags` (0 or ZMQ_DONTWAIT).
 * Returns 0, or -1 with zmq_errno(). EAGAIN is possible only before the first part. */
int checked_send (void *socket, uint64_t sender, uint64_t number, int flags);

/* Receives a message with `flags` and verifies it. Ends the process if the message is damaged. The first `skip` parts before the header
 * are ignored. Returns 0, or -1 with zmq_errno(). */
int checked_recv (void *socket, int skip, checked_header *header, int flags);

/* Ends the process with a message and zmq_errno(). */
void fail (const char *what);

#endif
