/* A relay between sockets that send, with messages as in checked.h, and one that receives. It reads the frames that it passes on (of the
 * NULL mechanism), and now and then ends a connection behind some byte. */

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

    /* Filled in meanwhile; the tallies are complete behind relay_stop. */
    tally left, passed; /* whole messages that came from senders, and that the receiver's system has taken */
    atomic_uint passed_total, open, cuts;

    char endpoint[64]; /* where senders connect to */
    int listens;
    pthread_t thread;
    atomic_int stops;
} relay;

/* Listens, and relays in a thread of its own. */
void relay_start (relay *relay);

/* Called when all connections have ended. */
void relay_stop (relay *relay);

#endif
