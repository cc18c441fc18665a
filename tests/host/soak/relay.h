/* A relay between sending sockets, with messages as in checked.h, and one receiving socket. It reads the forwarded frames (of the NULL
 * mechanism), and sometimes ends a connection after some byte. */

#ifndef RELAY_H
#define RELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum
{
    MOST_SENDERS = 4,
    MOST_MESSAGES = 800
};

/* Number of times that each message was seen. */
typedef unsigned char tally[MOST_SENDERS][MOST_MESSAGES];

typedef struct
{
    int receiver_port; /* tcp, on this machine */
    int resets;        /* some connections end with a reset */
    uint64_t random;

    /* The relay fills these while it runs. The tallies are complete after relay_stop. */
    tally left, passed; /* complete messages from senders, and complete messages that the receiver's system took */
    atomic_uint passed_total, open, cuts;

    char endpoint[64]; /* endpoint for the senders */
    int listens;
    pthread_t thread;
    atomic_int stops;
} relay;

/* Listens, and starts a thread that relays. */
void relay_start (relay *relay);

/* Stops the relay. Call this after all connections have ended. */
void relay_stop (relay *relay);

#endif
