/* latency as in latency.c, without a library. All due messages are written at once:
 * one message or burst, as long as the sender keeps up. All received data is read at
 * once, by a receiver that spins (then each end needs a core) or sleeps in read. The
 * rest is the latency of the kernel and the scheduler. */
#include <stdio.h>
#include <sys/prctl.h>
#include "raw.h"

static uint64_t start;

static uint64_t due_at(uint64_t sequence)
{
    return start + (uint64_t) ((double) (sequence / (uint64_t) burst) * 1e9 / rate);
}

static void *send_on_time(void *unused)
{
    size_t most = CHUNK / size > (size_t) burst ? CHUNK / size : (size_t) burst;
    unsigned char *chunk = calloc(most, size);

    (void) unused;
    if (chunk == NULL)
        fail("calloc");
    prctl(PR_SET_TIMERSLACK, 1);
    start = now_ns() + 1000000;
    for (uint64_t sent = 0; sent < count;) {
        size_t ready = 0;
        wait_until(due_at(sent));
        for (uint64_t now = now_ns(), due; ready < most && sent < count && (due = due_at(sent)) <= now; ready++, sent++) {
            stamp(chunk + ready * size, size, sent);
            memcpy(chunk + ready * size + 8, &due, 8);
        }
        write_all(near_end, chunk, ready * size);
    }
    free(chunk);
    return NULL;
}

void latency(void)
{
    size_t room = CHUNK + size, have = 0;
    uint64_t expected = 0, taken = 0, first = 0, now = 0;
    char text[128];

    count = (uint64_t) rate * (uint64_t) burst * (uint64_t) millis / 1000;
    if (size < 24 || count < 20 || count > 50000000)
        fail("too small messages, or too few or too many of them");
    uint32_t *samples_ns = malloc(count * sizeof *samples_ns);
    unsigned char *buffer = malloc(room);
    if (samples_ns == NULL || buffer == NULL)
        fail("malloc");
    /* Touch all pages now, so that there are no page faults while the clock runs. */
    memset(samples_ns, 1, count * sizeof *samples_ns);
    connect_ends();
    double cpu = cpu_seconds();
    start_sender(send_on_time);
    while (expected < count) {
        size_t n = read_some(far_end, buffer + have, room - have), at = 0;
        now = now_ns();
        if (n == 0)
            fail("the sender ended early");
        if (first == 0)
            first = now;
        have += n;
        for (; have - at >= size; at += size, expected++) {
            uint64_t due;
            if (!intact(buffer + at, size, size) || sequence_of(buffer + at) != expected) {
                corrupted++;
                continue;
            }
            memcpy(&due, buffer + at + 8, 8);
            if (expected >= count / 10)
                samples_ns[taken++] = now - due > UINT32_MAX ? UINT32_MAX : (uint32_t) (now - due);
        }
        have -= at;
        memmove(buffer, buffer + at, have);
    }
    cpu = cpu_seconds() - cpu;
    await_sender();
    put_quantiles(text, sizeof text, samples_ns, taken);
    print(count, (double) (now - first) / 1e9, cpu, text);
    free(buffer);
    free(samples_ns);
}
