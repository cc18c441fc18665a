/* Peers from plain streams, and a ZAP handler with scripted answers. */
#include "play.h"

#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(3);
}

static socklen_t name_of(const char *endpoint, struct sockaddr_storage *name)
{
    memset(name, 0, sizeof *name);
    if (!strncmp(endpoint, "ipc://", 6)) {
        struct sockaddr_un *local = (struct sockaddr_un *)name;
        local->sun_family = AF_UNIX;
        snprintf(local->sun_path, sizeof local->sun_path, "%s", endpoint + 6);
        return sizeof *local;
    } else {
        struct sockaddr_in *inet = (struct sockaddr_in *)name;
        const char *port = strrchr(endpoint, ':');
        inet->sin_family = AF_INET;
        inet->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        inet->sin_port = htons((unsigned short)(port[1] == '*' ? 0 : atoi(port + 1)));
        return sizeof *inet;
    }
}

static int stream(const struct sockaddr_storage *name)
{
    /* Limits the wait for a library that never answers. */
    struct timeval limit = {.tv_sec = 120};
    int fd = socket(name->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
        die("socket");
    return fd;
}

int raw_listen(const char *transport, const char **endpoint)
{
    static char end[256];
    struct sockaddr_storage name;
    socklen_t length = name_of(fresh(transport), &name);
    int fd = stream(&name);
    snprintf(end, sizeof end, "%s", fresh(transport));
    length = name_of(end, &name);
    if (bind(fd, (struct sockaddr *)&name, length) || listen(fd, 8))
        die("listen");
    if (name.ss_family == AF_INET) {
        if (getsockname(fd, (struct sockaddr *)&name, &length))
            die("getsockname");
        snprintf(end, sizeof end, "%s://127.0.0.1:%d", transport, ntohs(((struct sockaddr_in *)&name)->sin_port));
    }
    call(strstr(end, "://") + 3, "raw");
    *endpoint = end;
    return fd;
}

int raw_accept(int listener)
{
    struct timeval limit = {.tv_sec = 120};
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
        die("accept");
    return fd;
}

int raw_connect(const char *endpoint)
{
    struct sockaddr_storage name;
    socklen_t length = name_of(endpoint, &name);
    int fd = stream(&name);
    if (connect(fd, (struct sockaddr *)&name, length))
        die("connect");
    return fd;
}

void raw_write(int fd, const void *bytes, size_t length)
{
    /* The other side may have closed the stream already. */
    if (send(fd, bytes, length, MSG_NOSIGNAL) != (ssize_t)length && errno != EPIPE && errno != ECONNRESET)
        die("write");
}

void raw_read(int fd, void *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got = recv(fd, (char *)bytes + done, length - done, 0);
        if (got <= 0)
            return;
        done += (size_t)got;
    }
}

void raw_drain(int fd)
{
    char bytes[512];
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        ;
}

void raw_greet(int fd, const char *mechanism, int as_server)
{
    unsigned char greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 1};
    memcpy(greeting + 12, mechanism, strlen(mechanism));
    greeting[32] = (unsigned char)as_server;
    raw_write(fd, greeting, sizeof greeting);
    raw_read(fd, greeting, sizeof greeting);
}

void raw_frame(int fd, int flags, const void *body, size_t length)
{
    unsigned char frame[258];
    if (length > 255)
        die("frame");
    frame[0] = (unsigned char)flags;
    frame[1] = (unsigned char)length;
    memcpy(frame + 2, body, length);
    raw_write(fd, frame, length + 2);
}

/* ---- ZAP */

static int zap_status;

static void zap_answer(void *unused)
{
    void *handler = zmq_socket(context, ZMQ_REP);
    int linger = 0;
    (void)unused;
    zmq_setsockopt(handler, ZMQ_LINGER, &linger, sizeof linger);
    if (zmq_bind(handler, "inproc://zeromq.zap.01"))
        die("zap");
    /* The situation waits for this socket's message. */
    void *ready = zmq_socket(context, ZMQ_PAIR);
    zmq_setsockopt(ready, ZMQ_LINGER, &linger, sizeof linger);
    zmq_connect(ready, "inproc://zap-ready");
    zmq_send(ready, "", 0, 0);
    for (;;) {
        char parts[16][256], status[16];
        int count = 0, more = 1, index;
        size_t size = sizeof more, sizes[16];
        const char *reply[6];
        while (more && count < 16) {
            int got = zmq_recv(handler, parts[count], 255, 0);
            if (got < 0)
                goto end;
            sizes[count] = (size_t)got;
            parts[count++][got < 255 ? got : 255] = '\0';
            zmq_getsockopt(handler, ZMQ_RCVMORE, &more, &size);
        }
        snprintf(status, sizeof status, "%d", zap_status >= 100 ? zap_status : 200);
        reply[0] = zap_status == ZAP_BAD_VERSION ? "2.0" : "1.0";
        reply[1] = zap_status == ZAP_BAD_ID ? "other" : NULL;
        reply[2] = status, reply[3] = "said so", reply[4] = "user", reply[5] = "";
        for (index = 0; index < (zap_status == ZAP_SHORT ? 3 : 6); index++) {
            int last = index == (zap_status == ZAP_SHORT ? 2 : 5);
            if (reply[index])
                zmq_send(handler, reply[index], strlen(reply[index]), last ? 0 : ZMQ_SNDMORE);
            else
                zmq_send(handler, parts[1], sizes[1], last ? 0 : ZMQ_SNDMORE);
        }
    }
end:
    zmq_close(ready);
    zmq_close(handler);
}

void zap_start(int status)
{
    void *ready = zmq_socket(context, ZMQ_PAIR);
    char byte;
    zap_status = status;
    if (zmq_bind(ready, "inproc://zap-ready"))
        die("zap");
    zmq_threadstart(zap_answer, NULL);
    zmq_recv(ready, &byte, 1, 0);
    zmq_close(ready);
}
