/* req_rep: one round trip at a time, both ends spinning or asleep. */
#include <stdio.h>
#include "raw.h"

void *echo(void *unused)
{
    unsigned char *body = malloc(size);
    (void) unused;
    while (body != NULL && read_body(far_end, body))
        write_all(far_end, body, size);
    free(body);
    return NULL;
}

int trip(unsigned char *body, uint64_t sequence)
{
    stamp(body, size, sequence);
    write_all(near_end, body, size);
    return read_body(near_end, body) && intact(body, size, size) && sequence_of(body) == sequence;
}

void round_trips(void)
{
    pthread_t thread;
    unsigned char *body = calloc(1, size);
    uint32_t *samples = calloc(count, sizeof *samples);
    char text[128];

    connect_ends();
    if (body == NULL || samples == NULL || pthread_create(&thread, NULL, echo, NULL) != 0)
        fail("starting");
    for (uint64_t i = 0; i < count / 10; i++)
        trip(body, i);
    double cpu = cpu_seconds();
    uint64_t began = now_ns(), before = began;
    for (uint64_t i = 0; i < count; i++) {
        corrupted += !trip(body, i);
        uint64_t after = now_ns();
        samples[i] = after - before > UINT32_MAX ? UINT32_MAX : (uint32_t) (after - before);
        before = after;
    }
    cpu = cpu_seconds() - cpu;
    put_quantiles(text, sizeof text, samples, count);
    print(count, (double) (before - began) / 1e9, cpu, text);
}
