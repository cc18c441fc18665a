/* Opening sockets, passing the endpoint to the other end, and the control descriptor between the ends. */
#include "bench.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void *socket_open(struct end *end, int type)
{
    void *socket = zmq_socket(end->context, type);
    if (socket == NULL)
        fail("zmq_socket");
    return socket;
}

/* Binds, then tells each of the `peers` other ends where. */
void socket_bind(struct end *end, void *socket, int peers)
{
    const struct config *config = end->config;
    char endpoint[ENDPOINT_SIZE] = {0};
    size_t length = sizeof endpoint;

    if (strcmp(config->transport, "tcp") == 0)
        snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:*");
    else if (strcmp(config->transport, "ipc") == 0)
        snprintf(endpoint, sizeof endpoint, "ipc://%s/s", config->directory);
    else
        snprintf(endpoint, sizeof endpoint, "inproc://bench");
    if (zmq_bind(socket, endpoint) != 0)
        fail("zmq_bind");
    if (strcmp(config->transport, "inproc") != 0
        && zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length) != 0)
        fail("ZMQ_LAST_ENDPOINT");
    for (int i = 0; i < peers; i++) {
        if (write(end->control[i], endpoint, sizeof endpoint) != (ssize_t) sizeof endpoint)
            fail("control write");
    }
}

void socket_connect(struct end *end, void *socket)
{
    char endpoint[ENDPOINT_SIZE];
    size_t have = 0;

    while (have < sizeof endpoint) {
        ssize_t n = read(end->control[0], endpoint + have, sizeof endpoint - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            fail("control read");
        have += (size_t) n;
    }
    if (zmq_connect(socket, endpoint) != 0)
        fail("zmq_connect");
}

void control_put(int control, char byte)
{
    if (write(control, &byte, 1) != 1)
        fail("control write");
}

void control_await(int control, char byte)
{
    char got = 0;
    ssize_t n;
    do
        n = read(control, &got, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1 || got != byte) {
        errno = 0;
        fail("the other end went away");
    }
}
