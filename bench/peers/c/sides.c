/* Location of the two ends of a run: both here, on the loopback interface, or the far
 * end in a separate network namespace. Each end binds to an address of its side. */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static int is_far;

const char *side_address(const struct config *config)
{
    return is_far ? config->far_address : config->near_address;
}

/* Moves this process to the far end. Call it before threads or sockets exist, because
   existing ones stay where they are. */
static void move_far(const struct config *config)
{
    char path[128];
    int namespace;

    is_far = 1;
    if (config->far_netns == NULL)
        return;
    snprintf(path, sizeof path, "/run/netns/%s", config->far_netns);
    namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) != 0)
        fail("the far network namespace");
    close(namespace);
}

pid_t side_fork(const struct config *config)
{
    pid_t parent = getpid(), child = fork();

    if (child < 0)
        fail("fork");
    watchdog_start(config); /* an alarm does not survive the fork */
    if (child > 0)
        return child;
    /* Remove everything of a run if the harness kills it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(2);
    move_far(config);
    return 0;
}
