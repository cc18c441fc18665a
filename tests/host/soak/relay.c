#include "relay.h"
#include "checked.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
    MOST_LINKS = 64,
    GREETING = 64,
    MORE = 1,
    LONG = 2,
    COMMAND = 4
};

/* Follows the frames of one direction of one connection. */
struct reader
{
    size_t greeted, head_length, first_length;
    unsigned char head[9], first[sizeof (checked_header)];
    uint64_t left;
    int in_body, in_message;
};

/* One direction, with its bytes that were read but not yet written. */
struct way
{
    int from, to, ended;
    size_t at, length;
    unsigned char bytes[16384];
};

struct link
{
    struct way there, back;
    struct reader leaving, passing;
    long cut_after; /* bytes before the cut, or -1 for no cut */
    int resets, is_cut;
};

static void count (const unsigned char *first, tally seen)
{
    checked_header header;
    memcpy (&header, first, sizeof header);
    if (header.sender >= MOST_SENDERS || header.number >= MOST_MESSAGES)
        fail ("a message in transit has a changed header");
    if (seen[header.sender][header.number]++ != 0)
        fail ("a message is in transit twice");
}

/* Returns the number of messages that these bytes complete. */
static unsigned follow (struct reader *reader, const unsigned char *bytes, size_t length, tally seen)
{
    unsigned whole = 0;
    for (; length > 0; bytes++, length--) {
        if (reader->greeted < GREETING) {
            reader->greeted++;
            continue;
        }
        if (!reader->in_body) {
            size_t i, needed;
            reader->head[reader->head_length++] = *bytes;
            needed = reader->head[0] & LONG ? 9 : 2;
            if (reader->head_length < needed)
                continue;
            for (reader->left = 0, i = 1; i < needed; i++)
                reader->left = reader->left << 8 | reader->head[i];
            reader->in_body = 1;
            reader->first_length = reader->in_message ? reader->first_length : 0;
        } else {
            if (!(reader->head[0] & COMMAND) && !reader->in_message && reader->first_length < sizeof reader->first)
                reader->first[reader->first_length++] = *bytes;
            reader->left--;
        }
        if (reader->left > 0)
            continue;
        reader->in_body = 0;
        reader->head_length = 0;
        if (reader->head[0] & COMMAND)
            continue;
        reader->in_message = reader->head[0] & MORE;
        if (!reader->in_message) {
            count (reader->first, seen);
            whole++;
        }
    }
    return whole;
}

static int dial (int port)
{
    struct sockaddr_in address;
    int fd = socket (AF_INET, SOCK_STREAM, 0);
    memset (&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons ((uint16_t) port);
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    if (fd == -1 || connect (fd, (struct sockaddr *) &address, sizeof address) != 0)
        fail ("cannot connect to the receiver");
    fcntl (fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static struct link *greet (relay *relay)
{
    struct link *link;
    int fd = accept (relay->listens, NULL, NULL);
    if (fd == -1)
        return NULL;
    link = calloc (1, sizeof *link);
    fcntl (fd, F_SETFL, O_NONBLOCK);
    link->there.from = link->back.to = fd;
    link->there.to = link->back.from = dial (relay->receiver_port);
    link->resets = relay->resets && random_below (&relay->random, 2) == 0;
    link->cut_after = random_below (&relay->random, 3) == 0 ? (long) random_below (&relay->random, random_below (&relay->random, 2) == 0 ? 300 : 300000) : -1;
    /* Stop cutting after 30 cuts, so that each sender succeeds and the round ends. */
    if (atomic_load (&relay->cuts) > 30)
        link->cut_after = -1;
    atomic_fetch_add (&relay->open, 1);
    return link;
}

/* Reads bytes from one end, and drops the bytes after a cut. True if it read bytes. */
static int take (struct way *way)
{
    ssize_t length = recv (way->from, way->bytes, sizeof way->bytes, 0);
    if (length > 0) {
        way->at = 0;
        way->length = (size_t) length;
        return 1;
    }
    if (length == 0 || errno != EAGAIN) {
        way->ended = 1;
        shutdown (way->to, SHUT_WR);
    }
    return 0;
}

static size_t give (struct way *way, long most)
{
    size_t length = most >= 0 && (size_t) most < way->length ? (size_t) most : way->length;
    ssize_t written = length > 0 ? send (way->to, way->bytes + way->at, length, MSG_NOSIGNAL) : 0;
    if (written < 0 && errno != EAGAIN)
        way->length = 0;
    if (written <= 0)
        return 0;
    way->at += (size_t) written;
    way->length -= (size_t) written;
    return (size_t) written;
}

static void cut (relay *relay, struct link *link)
{
    static const struct linger reset = {1, 0};
    int ends[] = {link->there.from, link->there.to}, i;
    atomic_fetch_add (&relay->cuts, 1);
    link->is_cut = 1;
    for (i = 0; i < 2; i++) {
        shutdown (ends[i], SHUT_WR);
        if (link->resets)
            setsockopt (ends[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    if (link->resets)
        link->there.ended = link->back.ended = 1;
}

static void pass_on (relay *relay, struct link *link, short sender_events, short receiver_events)
{
    struct way *there = &link->there, *back = &link->back;
    if (!there->ended && there->length == 0 && sender_events && take (there))
        follow (&link->leaving, there->bytes, there->length, relay->left);
    if (!back->ended && back->length == 0 && receiver_events)
        take (back);
    if (!link->is_cut && there->length > 0) {
        size_t at = there->at, given = give (there, link->cut_after);
        atomic_fetch_add (&relay->passed_total, follow (&link->passing, there->bytes + at, given, relay->passed));
        if (link->cut_after >= 0 && (link->cut_after -= (long) given) == 0)
            cut (relay, link);
    }
    if (!link->is_cut && back->length > 0)
        give (back, -1);
    if (link->is_cut)
        there->length = back->length = 0;
}

static void *run (void *argument)
{
    relay *relay = argument;
    struct link *links[MOST_LINKS] = {NULL};
    for (;;) {
        struct pollfd fds[1 + 2 * MOST_LINKS];
        int i, open = 0;
        memset (fds, 0, sizeof fds);
        fds[0].fd = relay->listens;
        fds[0].events = POLLIN;
        for (i = 0; i < MOST_LINKS; i++) {
            struct pollfd *sender = &fds[1 + 2 * i], *receiver = sender + 1;
            struct link *link = links[i];
            sender->fd = receiver->fd = -1;
            if (link == NULL)
                continue;
            open++;
            sender->events = (short) ((!link->there.ended && link->there.length == 0 ? POLLIN : 0) | (link->back.length > 0 ? POLLOUT : 0));
            receiver->events = (short) ((!link->back.ended && link->back.length == 0 ? POLLIN : 0) | (link->there.length > 0 ? POLLOUT : 0));
            sender->fd = sender->events ? link->there.from : -1;
            receiver->fd = receiver->events ? link->there.to : -1;
        }
        if (open == 0 && atomic_load (&relay->stops))
            return NULL;
        poll (fds, 1 + 2 * MOST_LINKS, 20);
        for (i = 0; i < MOST_LINKS; i++) {
            struct link *link = links[i];
            if (link != NULL && (fds[1 + 2 * i].revents || fds[2 + 2 * i].revents))
                pass_on (relay, link, fds[1 + 2 * i].revents, fds[2 + 2 * i].revents);
            if (link != NULL && link->there.ended && link->back.ended && link->there.length == 0) {
                close (link->there.from);
                close (link->there.to);
                free (link);
                links[i] = NULL;
                atomic_fetch_sub (&relay->open, 1);
            }
            if (links[i] == NULL && fds[0].revents) {
                links[i] = greet (relay);
                fds[0].revents = 0;
            }
        }
    }
}

void relay_start (relay *relay)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    memset (relay->left, 0, sizeof relay->left);
    memset (relay->passed, 0, sizeof relay->passed);
    relay->passed_total = relay->open = relay->cuts = 0;
    relay->stops = 0;
    relay->listens = fd;
    memset (&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    if (fd == -1 || bind (fd, (struct sockaddr *) &address, length) != 0 || listen (fd, 50) != 0
        || getsockname (fd, (struct sockaddr *) &address, &length) != 0)
        fail ("cannot start the relay");
    snprintf (relay->endpoint, sizeof relay->endpoint, "tcp://127.0.0.1:%d", ntohs (address.sin_port));
    if (pthread_create (&relay->thread, NULL, run, relay) != 0)
        fail ("cannot start a thread");
}

void relay_stop (relay *relay)
{
    atomic_store (&relay->stops, 1);
    pthread_join (relay->thread, NULL);
    close (relay->listens);
}
