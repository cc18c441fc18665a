/*
 * Tests addresses: host names, files of ipc endpoints, zones. run.sh links it to the built library.
 *
 *   addresses names|files|zones [lenient]     lenient: without the promises of only this library, to run the other checks on another libzmq
 *
 * A part that cannot run on this system prints `skipped NAME: REASON`.
 */
#define _POSIX_C_SOURCE 200809L
#include "addresses.h"

void skip(const char *what, const char *reason)
{
    printf("skipped %s: %s\n", what, reason);
}

const char *last_endpoint(void *socket)
{
    static char text[2][256];
    static int turn;
    size_t size = sizeof text[0];
    turn = !turn;
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text[turn], &size) != 0)
        text[turn][0] = 0;
    return text[turn];
}

void *new_socket(void *context, int type, int ipv6)
{
    void *socket = zmq_socket(context, type);
    int linger = 0;
    CHECK(zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) == 0);
    CHECK(zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof ipv6) == 0);
    return socket;
}

int arrives(void *context, void *pull, const char *endpoint, int ipv6)
{
    char data[8];
    void *push = new_socket(context, ZMQ_PUSH, ipv6);
    int ok = zmq_connect(push, endpoint) == 0 && zmq_send(push, "x", 1, 0) == 1 && zmq_recv(pull, data, sizeof data, 0) == 1;
    CHECK(zmq_close(push) == 0);
    return ok;
}

void *monitor(void *context, void *socket, int events)
{
    static int number;
    char name[32];
    void *end = zmq_socket(context, ZMQ_PAIR);
    snprintf(name, sizeof name, "inproc://events-%d", ++number);
    CHECK(zmq_socket_monitor(socket, name, events) == 0);
    CHECK(zmq_connect(end, name) == 0);
    return end;
}

const char *next_event(void *end, int *event)
{
    static char address[256];
    unsigned char head[6];
    unsigned short number;
    int size;
    CHECK(zmq_recv(end, head, sizeof head, 0) == sizeof head);
    memcpy(&number, head, sizeof number);
    *event = number;
    size = zmq_recv(end, address, sizeof address - 1, 0);
    address[size < 0 ? 0 : size] = 0;
    return address;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(120); /* a call that hangs ends the program */
    strict = argc < 3 || strcmp(argv[2], "lenient") != 0;
    if (strcmp(part, "names") == 0)
        names();
    else if (strcmp(part, "files") == 0)
        files();
    else if (strcmp(part, "zones") == 0)
        zones();
    else
        return 2;
    printf("%d checks passed, %d failed\n", passed, failed);
    return failed != 0;
}
