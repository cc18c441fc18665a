/* Busy neighbours: starts processes that only use a core, runs a command beside them, and ends them with it.
 *
 *   busy NUMBER COMMAND [ARGUMENT ...]
 *
 * The neighbours are not pinned to a core. Exit code: the command's, 128 and its signal, or 125 for an error. If this
 * program or its parent is killed, the kernel kills the command and the neighbours. The neighbours keep the output of
 * this program open, so a reader of that output sees its end only after they have ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64

static void fail(const char *what)
{
    fprintf(stderr, "busy: %s: %s\n", what, strerror(errno));
    exit(125);
}

/* Forks a process that ends with this one. Returns 0 in that process. */
static pid_t start(void)
{
    pid_t parent = getpid(), child = fork();

    if (child < 0)
        fail("fork");
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(125);
    return child;
}

int main(int argc, char **argv)
{
    pid_t neighbours[MOST], command;
    int number = argc > 1 ? atoi(argv[1]) : 0, status = 0;

    if (argc < 3 || number < 1 || number > MOST) {
        fprintf(stderr, "usage: busy NUMBER COMMAND [ARGUMENT ...], with a NUMBER of 1 to %d\n", MOST);
        return 125;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        fail("prctl");
    for (int i = 0; i < number; i++) {
        neighbours[i] = start();
        if (neighbours[i] == 0) {
            for (volatile uint64_t turns = 0;; turns++) {
            }
        }
    }
    command = start();
    if (command == 0) {
        execvp(argv[2], argv + 2);
        fprintf(stderr, "busy: %s: %s\n", argv[2], strerror(errno));
        _exit(125);
    }
    while (waitpid(command, &status, 0) < 0) {
        if (errno != EINTR)
            fail("waitpid");
    }
    for (int i = 0; i < number; i++) {
        kill(neighbours[i], SIGKILL);
        waitpid(neighbours[i], NULL, 0);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
