/* What the programs with and without libzmq share: counting what came out of order, threads, memory of several processes. */
#include "bench.h"
#include <sys/mman.h>

/* A message that is not the next one. Whatever was skipped is lost until it turns up late. */
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

void thread_start(pthread_t *thread, void *(*run)(void *), void *of)
{
    if (pthread_create(thread, NULL, run, of) != 0)
        fail("pthread_create");
}

/* Zeroed memory that a forked process shares. */
void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    return memory;
}
