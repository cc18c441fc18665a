/* Processes that work in pairs of threads, beside others that only use a core. */
#ifndef PAIRS_H
#define PAIRS_H

#include <stdatomic.h>

/* Where they wait until all are there. In shared memory, zeroed. */
struct gate {
    _Atomic int ready, go;
};

/* In such a process: waits for the others. */
void gate_pass(struct gate *gate);

/* Has `work` done in so many processes, which end in it, beside so many busy ones, from when the gate opens until the last has ended. */
void pairs_run(int pairs, int busy, void (*work)(int number), struct gate *gate);

#endif
