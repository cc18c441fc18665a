/* A library that keeps a socket and a context, and ends them when it is unloaded (as czmq does). See unload.c. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zmq.h"

enum { MESSAGES = 500, BODY = 1000 };

static void *context, *push;

int module_begin(void);

/* Connects to a peer that never answers. The I/O thread frees the messages queued for this peer, and is still busy with them when
 * this function returns. */
int module_begin(void)
{
    static const char body[BODY];
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    char endpoint[64], greeting;
    int i, linger = 0, peer, listener = socket(AF_INET, SOCK_STREAM, 0);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (struct sockaddr *) &address, len) != 0 || listen(listener, 1) != 0)
        return -1;
    if (getsockname(listener, (struct sockaddr *) &address, &len) != 0)
        return -1;
    sprintf(endpoint, "tcp://127.0.0.1:%d", (int) ntohs(address.sin_port));
    context = zmq_ctx_new();
    push = zmq_socket(context, ZMQ_PUSH);
    if (push == NULL || zmq_setsockopt(push, ZMQ_LINGER, &linger, sizeof linger) != 0)
        return -1;
    if (zmq_connect(push, endpoint) != 0)
        return -1;
    for (i = 0; i < MESSAGES; i++)
        if (zmq_send(push, body, BODY, ZMQ_DONTWAIT) != BODY)
            return -1;
    peer = accept(listener, NULL, NULL);
    if (peer < 0 || read(peer, &greeting, 1) != 1)
        return -1;
    close(peer);
    return close(listener);
}

__attribute__((destructor)) static void end(void)
{
    zmq_close(push);
    zmq_ctx_term(context);
}
