/* Shared code of `ring` and of `oversubscribed`, the latter with a library and without. */
#include "pairs.h"
#include "bench.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void gate_pass(struct gate *gate)
{
    atomic_fetch_add(&gate->ready, 1);
    while (!atomic_load(&gate->go))
        usleep(200);
}

/* A process that ends with this one. Without work, it is a busy loop. */
static pid_t start(void (*work)(int), int number)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (work != NULL)
        work(number);
    for (volatile uint64_t turns = 0;; turns++) {
    }
}

static void one_failed(void)
{
    errno = 0;
    fail("one of the processes failed");
}

void pairs_run(int pairs, int busy, void (*work)(int number), struct gate *gate)
{
    pid_t idling[MAX_SUBSCRIBERS];

    for (int i = 0; i < pairs; i++)
        start(work, i);
    while (atomic_load(&gate->ready) < pairs) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            one_failed();
        usleep(1000);
    }
    for (int i = 0; i < busy; i++)
        idling[i] = start(NULL, i);
    usleep(20000);
    atomic_store(&gate->go, 1);
    /* In the order of their ends: the others may wait for one that failed. */
    for (int i = 0; i < pairs; i++) {
        int status = 0;
        if (wait(&status) < 0 || status != 0)
            one_failed();
    }
    for (int i = 0; i < busy; i++) {
        kill(idling[i], SIGKILL);
        waitpid(idling[i], NULL, 0);
    }
}
