/* Processes that work at the same time, beside others that only use a core. */
#ifndef PAIRS_H
#define PAIRS_H

#include <stdatomic.h>

/* Gate where they wait until all have started. In shared memory, zeroed. */
struct gate {
    _Atomic int ready, go;
};

/* Waits in such a process for the others. */
void gate_pass(struct gate *gate);

/* Runs `work` in the given number of processes, which end in it, beside the given
   number of busy ones, from the opening of the gate until the last process has ended. */
void pairs_run(int pairs, int busy, void (*work)(int number), struct gate *gate);

#endif
