#define _GNU_SOURCE
#include "bodies.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum
{
    LEAST = 128 * 1024,
    /* A ring with its header is shorter, and a slab is at least as long. */
    SLAB_KIB = 16 * 1024
};

void fail (const char *what)
{
    fprintf (stderr, "loans: process %d: %s (errno %d: %s)\n", (int) getpid (), what, zmq_errno (),
             zmq_strerror (zmq_errno ()));
    exit (1);
}

static void expired (int number)
{
    static const char text[] = "loans: the watchdog ended a process that hangs\n";
    (void) number;
    if (write (STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit (4);
    _exit (3);
}

void watchdog (unsigned seconds)
{
    signal (SIGALRM, expired);
    alarm (seconds);
}

uint64_t random_next (uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C (0x2545F4914F6CDD1D);
}

size_t random_length (uint64_t *state, size_t most)
{
    uint64_t chance = random_next (state) >> 8;
    size_t span = 48 * 1024;
    switch (chance % 64) {
    case 0: return 16 + chance / 64 % LEAST;
    case 1: return LEAST;
    case 2: return LEAST + 1;
    case 3: span = most > LEAST ? most - LEAST : 1;
    }
    return LEAST + chance / 64 % span;
}

static uint64_t base_of (uint64_t number)
{
    return (number + 1) * UINT64_C (0x9E3779B97F4A7C15);
}

static void tail_of (uint64_t number, unsigned char tail[8])
{
    uint64_t word = ~base_of (number);
    memcpy (tail, &word, 8);
}

void body_write (void *body, size_t length, uint64_t number)
{
    unsigned char *bytes = body, tail[8];
    uint64_t word = base_of (number);
    memcpy (bytes, &number, 8);
    for (size_t at = 8; at + 8 <= length; at += 8) {
        word += at;
        memcpy (bytes + at, &word, 8);
    }
    tail_of (number, tail);
    memcpy (bytes + length / 8 * 8, tail, length % 8);
}

int body_is_right (const void *body, size_t length, uint64_t number)
{
    const unsigned char *bytes = body;
    unsigned char tail[8];
    uint64_t word = base_of (number), wrong = 0, got;
    memcpy (&got, bytes, 8);
    wrong = got ^ number;
    for (size_t at = 8; at + 8 <= length; at += 8) {
        word += at;
        memcpy (&got, bytes + at, 8);
        wrong |= got ^ word;
    }
    tail_of (number, tail);
    return wrong == 0 && memcmp (bytes + length / 8 * 8, tail, length % 8) == 0;
}

uint64_t body_number (const void *body)
{
    uint64_t number;
    memcpy (&number, body, 8);
    return number;
}

void body_scribble (void *body, size_t length, uint64_t seed)
{
    unsigned char *bytes = body;
    uint64_t state = seed | 1;
    unsigned places = 1 + random_next (&state) % 8;
    if (random_next (&state) % 16 == 0) {
        for (size_t at = seed % 4096; at < length; at += 4096)
            bytes[at] ^= 0x55;
        return;
    }
    while (places-- > 0)
        bytes[random_next (&state) % length] ^= 0x80;
}

int body_send (void *socket, size_t length, uint64_t number, int flags)
{
    zmq_msg_t message;
    int result;
    if (zmq_msg_init_size (&message, length) != 0)
        fail ("zmq_msg_init_size");
    body_write (zmq_msg_data (&message), length, number);
    do
        result = zmq_msg_send (&message, socket, flags);
    while (result == -1 && zmq_errno () == EINTR);
    if (result == -1) {
        int number_of_error = zmq_errno ();
        zmq_msg_close (&message);
        errno = number_of_error;
        return -1;
    }
    return 0;
}

int body_receive (void *socket, zmq_msg_t *message, int flags)
{
    int result;
    do
        result = zmq_msg_recv (message, socket, flags);
    while (result == -1 && zmq_errno () == EINTR);
    if (result == -1)
        return -1;
    if (result < 8)
        fail ("a message without a number");
    return 0;
}

void *socket_open (void *context, int type)
{
    void *socket = zmq_socket (context, type);
    if (socket == NULL)
        fail ("zmq_socket");
    socket_set (socket, ZMQ_LINGER, 0);
    return socket;
}

void socket_set (void *socket, int option, int value)
{
    if (zmq_setsockopt (socket, option, &value, sizeof value) != 0)
        fail ("zmq_setsockopt");
}

void socket_bind (void *socket, const char *endpoint)
{
    if (zmq_bind (socket, endpoint) != 0)
        fail (endpoint);
}

void socket_connect (void *socket, const char *endpoint)
{
    if (zmq_connect (socket, endpoint) != 0)
        fail (endpoint);
}

struct mappings mappings_of (pid_t process)
{
    struct mappings found = {0};
    char path[64], line[512], access[8];
    unsigned long long start, end, kib;
    int is_own = 0;
    FILE *file;

    snprintf (path, sizeof path, "/proc/%d/smaps", (int) process);
    file = fopen (path, "r");
    if (file == NULL)
        fail (path);
    while (fgets (line, sizeof line, file) != NULL) {
        if (sscanf (line, "%llx-%llx %7s", &start, &end, access) == 3) {
            int is_slab = strstr (line, "memfd:tautline-ipc") != NULL && (end - start) / 1024 >= SLAB_KIB;
            is_own = is_slab && strcmp (access, "rw-s") == 0;
            found.own += (unsigned) is_own;
            found.read += is_slab && strcmp (access, "r--s") == 0;
            found.written += is_slab && strcmp (access, "rw-p") == 0;
        } else if (is_own && sscanf (line, "Rss: %llu", &kib) == 1) {
            found.own_kib += kib;
        }
    }
    fclose (file);
    return found;
}

pid_t start (const char *const *arguments)
{
    char *all[16] = {"/proc/self/exe"};
    pid_t child;
    int count = 1, error;

    while (arguments[count - 1] != NULL && count < 15) {
        all[count] = (char *) arguments[count - 1];
        count++;
    }
    error = posix_spawn (&child, "/proc/self/exe", NULL, NULL, all, environ);
    if (error != 0) {
        errno = error;
        fail ("posix_spawn");
    }
    return child;
}

void pause_ms (unsigned ms)
{
    struct timespec time = {(time_t) (ms / 1000), (long) (ms % 1000) * 1000000};
    nanosleep (&time, NULL);
}
