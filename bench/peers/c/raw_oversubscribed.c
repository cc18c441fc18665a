/* oversubscribed: pairs of processes with their ends asleep in read, beside processes
   that only use a core. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "pairs.h"
#include "raw.h"

static struct shared {
    struct gate gate;
    _Atomic uint64_t trips, bad, cpu_us, samples;
    uint32_t sample[1 << 22];
} *shared;

static void pair_process(int number)
{
    pthread_t thread;
    unsigned char *body = calloc(1, size);
    uint64_t trips = 0, bad = 0;

    (void) number;
    connect_ends();
    if (body == NULL || pthread_create(&thread, NULL, echo, NULL) != 0)
        fail("starting");
    trip(body, HELLO);
    gate_pass(&shared->gate);
    double cpu = cpu_seconds();
    uint64_t before = now_ns(), end = before + (uint64_t) millis * 1000000u;
    while (before < end) {
        bad += !trip(body, trips++);
        uint64_t after = now_ns(), at = atomic_fetch_add(&shared->samples, 1);
        if (at < sizeof shared->sample / sizeof *shared->sample)
            shared->sample[at] = (uint32_t) (after - before);
        before = after;
    }
    atomic_fetch_add(&shared->cpu_us, (uint64_t) ((cpu_seconds() - cpu) * 1e6));
    atomic_fetch_add(&shared->trips, trips);
    atomic_fetch_add(&shared->bad, bad);
    _exit(0);
}

void oversubscribed(void)
{
    char text[160];

    if (pairs > MAX_SUBSCRIBERS || busy > MAX_SUBSCRIBERS || millis < 1)
        unsupported();
    shared = shared_memory(sizeof *shared);
    pairs_run(pairs, busy, pair_process, &shared->gate);
    uint64_t samples = atomic_load(&shared->samples), most = sizeof shared->sample / sizeof *shared->sample;
    samples = samples < most ? samples : most;
    corrupted = atomic_load(&shared->bad);
    int length = snprintf(text, sizeof text, "\"messages_per_second\":%.1f,", (double) atomic_load(&shared->trips) * 1e3 / millis);
    put_quantiles(text + length, sizeof text - (size_t) length, shared->sample, samples);
    print(atomic_load(&shared->trips), millis / 1e3, (double) atomic_load(&shared->cpu_us) / 1e6, text);
}
