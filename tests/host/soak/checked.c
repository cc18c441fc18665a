#include "checked.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum
{
    LARGEST_PART = 200000
};

void fail (const char *what)
{
    fprintf (stderr, "soak: process %d: %s (errno %d: %s)\n", (int) getpid (), what, zmq_errno (),
             zmq_strerror (zmq_errno ()));
    abort ();
}

uint64_t random_next (uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C (0x2545F4914F6CDD1D);
}

static uint64_t mix (uint64_t sender, uint64_t number, uint64_t part)
{
    uint64_t state = (sender * 31 + number) * 31 + part + 1;
    random_next (&state);
    return random_next (&state);
}

/* Returns the size of a part: mostly small, sometimes 0, sometimes above all internal limits. */
static size_t part_size (uint64_t sender, uint64_t number, unsigned part)
{
    uint64_t chance = mix (sender, number, part);
    switch (chance >> 60) {
    case 0: return 0;
    case 1: return (size_t) (chance % 9000);
    case 2: return chance % 32 == 0 ? (size_t) (chance % LARGEST_PART) : 300;
    default: return (size_t) (chance % 120);
    }
}

static unsigned char part_byte (uint64_t sender, uint64_t number, unsigned part)
{
    return (unsigned char) mix (sender, number, part + 100);
}

static checked_header header_of (uint64_t sender, uint64_t number)
{
    checked_header header;
    memset (&header, 0, sizeof header);
    header.topic = (char) ('A' + number % 4);
    header.parts = (uint8_t) (mix (sender, number, 50) % 5);
    header.sender = sender;
    header.number = number;
    header.check = mix (sender, number, 51);
    return header;
}

/* Sends a part. Once a message has begun, its other parts must not block for long, because a full queue refuses only the first part. */
static int send_part (void *socket, const void *data, size_t size, int flags)
{
    int result;
    do
        result = zmq_send (socket, data, size, flags);
    while (result == -1 && zmq_errno () == EINTR);
    return result == -1 ? -1 : 0;
}

int checked_send (void *socket, uint64_t sender, uint64_t number, int flags)
{
    static __thread unsigned char body[LARGEST_PART];
    checked_header header = header_of (sender, number);
    unsigned part;
    if (send_part (socket, &header, sizeof header, flags | (header.parts ? ZMQ_SNDMORE : 0)) == -1)
        return -1;
    for (part = 1; part <= header.parts; part++) {
        size_t size = part_size (sender, number, part);
        memset (body, part_byte (sender, number, part), size);
        if (send_part (socket, body, size, part < header.parts ? ZMQ_SNDMORE : 0) == -1) {
            if (zmq_errno () != ETERM)
                fail ("a later part of a message is refused");
            return -1;
        }
    }
    return 0;
}

static void verify_body (const checked_header *header, unsigned part, const unsigned char *data, size_t size)
{
    unsigned char wanted = part_byte (header->sender, header->number, part);
    size_t at;
    if (size != part_size (header->sender, header->number, part))
        fail ("the length of a part has changed");
    for (at = 0; at < size; at++)
        if (data[at] != wanted)
            fail ("the bytes of a part have changed");
}

int checked_recv (void *socket, int skip, checked_header *header, int flags)
{
    zmq_msg_t message;
    unsigned part = 0;
    int more = 1;
    int index;
    for (index = 0; more; index++) {
        zmq_msg_init (&message);
        while (zmq_msg_recv (&message, socket, flags) == -1) {
            if (zmq_errno () == EINTR)
                continue;
            if (index > 0 && zmq_errno () != ETERM)
                fail ("the rest of a message is missing");
            zmq_msg_close (&message);
            return -1;
        }
        more = zmq_msg_more (&message);
        if (index < skip) {
            if (!more)
                fail ("a message has only an envelope");
        } else if (index == skip) {
            checked_header wanted;
            if (zmq_msg_size (&message) != sizeof *header)
                fail ("a message does not begin with a header");
            memcpy (header, zmq_msg_data (&message), sizeof *header);
            wanted = header_of (header->sender, header->number);
            if (memcmp (header, &wanted, sizeof wanted) != 0)
                fail ("a header has changed");
        } else {
            part++;
            if (part > header->parts)
                fail ("a message has too many parts");
            verify_body (header, part, zmq_msg_data (&message), zmq_msg_size (&message));
        }
        zmq_msg_close (&message);
    }
    if (part != header->parts)
        fail ("a message has too few parts");
    return 0;
}

unsigned random_below (uint64_t *state, unsigned limit)
{
    return (unsigned) (random_next (state) >> 33) % limit;
}

void set_option (void *socket, int option, int value)
{
    if (zmq_setsockopt (socket, option, &value, sizeof value) != 0)
        fail ("an option is refused");
}

char shown[512];

static void on_alarm (int signal)
{
    (void) signal;
    (void) !write (STDERR_FILENO, shown, strlen (shown));
    abort ();
}

void show_on_alarm (void)
{
    signal (SIGALRM, on_alarm);
}
