/* fan_out: the same bodies to each of `--subscribers` threads.
 *
 * - stream: encoded once, written to one connection after the other, 64 KiB at a time;
 *   tcp and ipc
 * - copied: inproc: copied once into a ring in memory, by one call for each body, and
 *   out of it by each receiver, by one call for each body */
#include <stdio.h>
#include <unistd.h>
#include "raw.h"

static struct receiver {
    pthread_t thread;
    int number, end;
    uint64_t first_ns, last_ns, corrupted;
} receivers[MOST_TAKERS];
static int ends[MOST_TAKERS];

static void check(struct receiver *receiver, const unsigned char *body, size_t length, uint64_t expected)
{
    if (receiver->first_ns == 0)
        receiver->first_ns = now_ns();
    receiver->corrupted += !intact(body, length, size) || sequence_of(body) != expected;
}

static void *take_from_ring(void *of)
{
    struct receiver *receiver = of;
    unsigned char *body = calloc(1, size);

    if (body == NULL)
        fail("calloc");
    for (uint64_t i = 0; i < count; i++) {
        size_t length = ring_receive(receiver->number, body, size);
        check(receiver, body, length, i);
    }
    receiver->last_ns = now_ns();
    free(body);
    return NULL;
}

static void *take_from_stream(void *of)
{
    struct receiver *receiver = of;
    size_t room = CHUNK + size, have = 0;
    unsigned char *buffer = malloc(room);

    if (buffer == NULL)
        fail("malloc");
    for (uint64_t expected = 0; expected < count;) {
        size_t at = 0, n = read_some(receiver->end, buffer + have, room - have);
        if (n == 0)
            fail("the sender ended early");
        for (have += n; have - at >= size; at += size)
            check(receiver, buffer + at, size, expected++);
        have -= at;
        memmove(buffer, buffer + at, have);
    }
    receiver->last_ns = now_ns();
    free(buffer);
    return NULL;
}

static void send_by_ring(void)
{
    unsigned char *body = calloc(1, size);

    if (body == NULL)
        fail("calloc");
    for (uint64_t i = 0; i < count; i++) {
        stamp(body, size, i);
        ring_send(body, size);
    }
    free(body);
}

static void send_by_streams(void)
{
    size_t batch = CHUNK / size > 0 ? CHUNK / size : 1;
    unsigned char *chunk = calloc(batch, size);

    if (chunk == NULL)
        fail("calloc");
    for (uint64_t sent = 0; sent < count;) {
        size_t now = count - sent < batch ? (size_t) (count - sent) : batch;
        for (size_t i = 0; i < now; i++)
            stamp(chunk + i * size, size, sent + i);
        for (int i = 0; i < subscribers; i++)
            write_all(ends[i], chunk, now * size);
        sent += now;
    }
    free(chunk);
}

void fan_out(void)
{
    int inproc = strcmp(transport, "inproc") == 0;
    uint64_t first = UINT64_MAX, last = 0;
    char text[64];

    if (inproc != copied || mode == OBJECTS || subscribers > MOST_TAKERS)
        unsupported();
    if (inproc)
        ring_open(ring_bodies(), subscribers);
    for (int i = 0; i < subscribers; i++) {
        receivers[i].number = i;
        if (!inproc) {
            connect_ends();
            ends[i] = near_end;
            receivers[i].end = far_end;
        }
    }
    double cpu = cpu_seconds();
    for (int i = 0; i < subscribers; i++)
        thread_start(&receivers[i].thread, inproc ? take_from_ring : take_from_stream, &receivers[i]);
    if (inproc)
        send_by_ring();
    else
        send_by_streams();
    for (int i = 0; i < subscribers; i++) {
        pthread_join(receivers[i].thread, NULL);
        first = receivers[i].first_ns < first ? receivers[i].first_ns : first;
        last = receivers[i].last_ns > last ? receivers[i].last_ns : last;
        corrupted += receivers[i].corrupted;
    }
    cpu = cpu_seconds() - cpu;
    if (inproc)
        ring_close();
    uint64_t delivered = count * (uint64_t) subscribers;
    double seconds = (double) (last - first) / 1e9;
    snprintf(text, sizeof text, "\"messages_per_second\":%.1f", (double) delivered / seconds);
    print(delivered, seconds, cpu, text);
}
