/* Shared code of the programs with and without libzmq: counting out-of-order messages,
   waiting, quantiles, threads, memory of several processes. */
#include "bench.h"
#include <sys/mman.h>

/* Counts a message that is not the next one. Skipped messages count as lost until they
   arrive late. */
void tally_sequence(struct tally *tally, uint64_t sequence, uint64_t *expected)
{
    if (sequence > *expected) {
        tally->lost += sequence - *expected;
        *expected = sequence + 1;
    } else {
        tally->reordered++;
        if (tally->lost > 0)
            tally->lost--;
    }
}

/* Sleeps while the time is far away, and then spins. */
void wait_until(uint64_t due)
{
    uint64_t now = now_ns();

    if (due > now + 250000) {
        uint64_t at = due - 100000;
        struct timespec t = {.tv_sec = (time_t) (at / 1000000000u), .tv_nsec = (long) (at % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
    while (now_ns() < due) {
    }
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

void sort_samples(uint32_t *samples_ns, uint64_t count)
{
    qsort(samples_ns, count, sizeof *samples_ns, ascending);
}

double quantile_us(const uint32_t *sorted_ns, uint64_t count, double q)
{
    uint64_t at = (uint64_t) (q * (double) (count - 1) + 0.5);
    return sorted_ns[at] / 1e3;
}

void thread_start(pthread_t *thread, void *(*run)(void *), void *of)
{
    if (pthread_create(thread, NULL, run, of) != 0)
        fail("pthread_create");
}

/* Allocates zeroed memory that forked processes share. */
void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    return memory;
}
