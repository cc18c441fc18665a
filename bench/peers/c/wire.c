/* wire: passes packets between the TUN devices of two network namespaces, each after a
 * delay: a cable for kernels without netem.
 *
 * wire DEVICE NETNS-A NETNS-B MICROSECONDS
 *
 * The devices exist already. Prints `ready` when packets pass, and runs until it is
 * killed or its parent ends. It has a thread for each direction. It takes processor
 * time, which netem does not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Limit of packets in transit in one direction. At the limit, further packets wait in
   the device's own queue. */
#define UNDER_WAY 16384
#define LARGEST 1500

struct direction {
    int from, to;
    struct packet {
        uint64_t due;
        size_t length;
        unsigned char bytes[LARGEST];
    } *ring;
    uint64_t first, next; /* positions in the ring, modulo its size */
};

static uint64_t delay_ns;

static void fail(const char *what)
{
    fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
    exit(2);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* Opens the device of that name in the namespace. The process stays in that namespace. */
static int open_device(const char *namespace, const char *device)
{
    char path[256];
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int descriptor;

    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || setns(descriptor, CLONE_NEWNET) != 0)
        fail(namespace);
    close(descriptor);
    descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        fail("/dev/net/tun");
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    if (ioctl(descriptor, TUNSETIFF, &request) != 0)
        fail("TUNSETIFF");
    return descriptor;
}

/* Reads the available packets, as far as there is room. */
static void take(struct direction *d)
{
    while (d->next - d->first < UNDER_WAY) {
        struct packet *packet = &d->ring[d->next % UNDER_WAY];
        ssize_t n = read(d->from, packet->bytes, LARGEST);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0)
            fail("read");
        packet->length = (size_t) n;
        packet->due = now_ns() + delay_ns;
        d->next++;
    }
}

static void *pass_on(void *argument)
{
    struct direction *d = argument;

    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        struct pollfd readable = {.fd = d->from, .events = d->next - d->first < UNDER_WAY ? POLLIN : 0};
        struct timespec left = {0}, *wait = NULL;
        uint64_t now = now_ns();

        /* A device that is down takes no packet, so the packet is lost, as on a cable. */
        for (; d->first < d->next && d->ring[d->first % UNDER_WAY].due <= now; d->first++) {
            struct packet *packet = &d->ring[d->first % UNDER_WAY];
            if (write(d->to, packet->bytes, packet->length) < 0 && errno != EIO && errno != EAGAIN && errno != EINVAL)
                fail("write");
        }
        if (d->first < d->next) {
            uint64_t due = d->ring[d->first % UNDER_WAY].due;
            now = now_ns();
            left.tv_nsec = due > now ? (long) ((due - now) % 1000000000u) : 0;
            left.tv_sec = due > now ? (time_t) ((due - now) / 1000000000u) : 0;
            wait = &left;
        }
        if (ppoll(&readable, 1, wait, NULL) < 0 && errno != EINTR)
            fail("ppoll");
        if (readable.revents != 0)
            take(d);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct direction there, back;
    pthread_t thread;

    if (argc != 5) {
        fprintf(stderr, "usage: wire DEVICE NETNS-A NETNS-B MICROSECONDS\n");
        return 1;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        fail("PR_SET_PDEATHSIG");
    delay_ns = strtoull(argv[4], NULL, 10) * 1000u;
    there.from = back.to = open_device(argv[2], argv[1]);
    there.to = back.from = open_device(argv[3], argv[1]);
    there.ring = calloc(UNDER_WAY, sizeof *there.ring);
    back.ring = calloc(UNDER_WAY, sizeof *back.ring);
    if (there.ring == NULL || back.ring == NULL)
        fail("calloc");
    if (pthread_create(&thread, NULL, pass_on, &there) != 0)
        fail("pthread_create");
    printf("ready\n");
    fclose(stdout);
    pass_on(&back);
    return 0;
}
