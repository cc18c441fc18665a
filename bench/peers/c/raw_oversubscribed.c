/* oversubscribed: pairs of processes with their ends asleep in read, beside processes that only use a core. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "raw.h"

static struct shared {
    _Atomic int ready, go;
    _Atomic uint64_t trips, bad, cpu_us, samples;
    uint32_t sample[1 << 22];
} *shared;

static void pair_process(void)
{
    pthread_t thread;
    unsigned char *body = calloc(1, size);
    uint64_t trips = 0, bad = 0;

    connect_ends();
    if (body == NULL || pthread_create(&thread, NULL, echo, NULL) != 0)
        fail("starting");
    trip(body, HELLO);
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        usleep(200);
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

static pid_t start(int works)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (works)
        pair_process();
    for (volatile uint64_t turns = 0;; turns++) {
    }
}

void oversubscribed(void)
{
    pid_t working[MAX_SUBSCRIBERS], idling[MAX_SUBSCRIBERS];
    char text[160];

    if (pairs > MAX_SUBSCRIBERS || busy > MAX_SUBSCRIBERS || millis < 1)
        unsupported();
    shared = shared_memory(sizeof *shared);
    for (int i = 0; i < pairs; i++)
        working[i] = start(1);
    while (atomic_load(&shared->ready) < pairs)
        usleep(1000);
    for (int i = 0; i < busy; i++)
        idling[i] = start(0);
    usleep(20000);
    atomic_store(&shared->go, 1);
    for (int i = 0; i < pairs; i++) {
        int status = 0;
        waitpid(working[i], &status, 0);
        if (status != 0)
            fail("a pair failed");
    }
    for (int i = 0; i < busy; i++) {
        kill(idling[i], SIGKILL);
        waitpid(idling[i], NULL, 0);
    }
    uint64_t samples = atomic_load(&shared->samples), most = sizeof shared->sample / sizeof *shared->sample;
    samples = samples < most ? samples : most;
    corrupted = atomic_load(&shared->bad);
    int length = snprintf(text, sizeof text, "\"messages_per_second\":%.1f,", (double) atomic_load(&shared->trips) * 1e3 / millis);
    put_quantiles(text + length, sizeof text - (size_t) length, shared->sample, samples);
    print(atomic_load(&shared->trips), millis / 1e3, (double) atomic_load(&shared->cpu_us) / 1e6, text);
}
