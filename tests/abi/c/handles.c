/* Tests contexts and sockets: their life, options and endpoints, and refused calls. */
#include "check.h"

int int_option(void *socket, int option)
{
    int value = -12345;
    size_t size = sizeof value;
    CHECK(zmq_getsockopt(socket, option, &value, &size) == 0 && size == sizeof value);
    return value;
}

void set_int_option(void *socket, int option, int value)
{
    CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

void make_pair(void *context, void **one, void **other)
{
    static int number;
    char endpoint[32];
    sprintf(endpoint, "inproc://pair-%d", ++number);
    *one = zmq_socket(context, ZMQ_PAIR);
    *other = zmq_socket(context, ZMQ_PAIR);
    CHECK(*one && *other);
    set_int_option(*one, ZMQ_LINGER, 0);
    set_int_option(*other, ZMQ_LINGER, 0);
    CHECK(zmq_bind(*one, endpoint) == 0);
    CHECK(zmq_connect(*other, endpoint) == 0);
}

static void no_context(void *handle)
{
    CHECK_ERRNO(zmq_ctx_term(handle), -1, EFAULT);
    CHECK_ERRNO(zmq_term(handle), -1, EFAULT);
    CHECK_ERRNO(zmq_ctx_destroy(handle), -1, EFAULT);
    CHECK_ERRNO(zmq_ctx_shutdown(handle), -1, EFAULT);
    CHECK_ERRNO(zmq_ctx_set(handle, ZMQ_IO_THREADS, 1), -1, EFAULT);
    CHECK_ERRNO(zmq_ctx_get(handle, ZMQ_IO_THREADS), -1, EFAULT);
    CHECK_ERRNO(zmq_socket(handle, ZMQ_PAIR), NULL, EFAULT);
}

static void no_socket(void *handle)
{
    int value = 1;
    size_t size = sizeof value;
    char bytes[8] = {0};
    struct iovec *vector = (struct iovec *) bytes;
    zmq_msg_t message;
    zmq_pollitem_t item;

    CHECK_ERRNO(zmq_close(handle), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_setsockopt(handle, ZMQ_LINGER, &value, size), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_getsockopt(handle, ZMQ_LINGER, &value, &size), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_bind(handle, "inproc://nowhere"), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_connect(handle, "inproc://nowhere"), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_unbind(handle, "inproc://nowhere"), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_disconnect(handle, "inproc://nowhere"), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_socket_monitor(handle, "inproc://nowhere", ZMQ_EVENT_ALL), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_send(handle, bytes, 1, ZMQ_DONTWAIT), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_send_const(handle, bytes, 1, ZMQ_DONTWAIT), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_recv(handle, bytes, 1, ZMQ_DONTWAIT), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_sendiov(handle, vector, 1, ZMQ_DONTWAIT), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_recviov(handle, vector, &size, ZMQ_DONTWAIT), -1, ENOTSOCK);
    zmq_msg_init(&message);
    CHECK_ERRNO(zmq_msg_send(&message, handle, ZMQ_DONTWAIT), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_msg_recv(&message, handle, ZMQ_DONTWAIT), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_sendmsg(handle, &message, ZMQ_DONTWAIT), -1, ENOTSOCK);
    CHECK_ERRNO(zmq_recvmsg(handle, &message, ZMQ_DONTWAIT), -1, ENOTSOCK);
    zmq_msg_close(&message);
    if (handle) {
        item.socket = handle;
        item.events = ZMQ_POLLIN;
        CHECK_ERRNO(zmq_poll(&item, 1, 0), -1, ENOTSOCK);
    }
}

static void contexts(void)
{
    void *context = zmq_ctx_new();
    void *socket, *ended;
    long long foreign[16] = {0};

    no_context(NULL);
    no_context(foreign);
    CHECK(context != NULL);
    CHECK(zmq_ctx_get(context, ZMQ_IO_THREADS) == ZMQ_IO_THREADS_DFLT);
    CHECK(zmq_ctx_get(context, ZMQ_MAX_SOCKETS) == ZMQ_MAX_SOCKETS_DFLT);
    CHECK(zmq_ctx_get(context, ZMQ_MSG_T_SIZE) == (int) sizeof(zmq_msg_t));
    CHECK(zmq_ctx_get(context, ZMQ_SOCKET_LIMIT) > 0);
    CHECK_ERRNO(zmq_ctx_get(context, 12345), -1, EINVAL);
    CHECK_ERRNO(zmq_ctx_set(context, 12345, 1), -1, EINVAL);
    CHECK_ERRNO(zmq_ctx_set(context, ZMQ_IO_THREADS, -1), -1, EINVAL);
    CHECK_ERRNO(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 0), -1, EINVAL);
    CHECK(zmq_ctx_set(context, ZMQ_IPV6, 1) == 0 && zmq_ctx_get(context, ZMQ_IPV6) == 1);
    CHECK(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 1) == 0 && zmq_ctx_get(context, ZMQ_MAX_SOCKETS) == 1);

    CHECK_ERRNO(zmq_socket(context, -1), NULL, EINVAL);
    CHECK_ERRNO(zmq_socket(context, 99), NULL, EINVAL);
    CHECK_ERRNO(zmq_socket(context, 256), NULL, EINVAL);
    socket = zmq_socket(context, ZMQ_PULL);
    CHECK(socket != NULL && int_option(socket, ZMQ_IPV6) == 1);
    CHECK_ERRNO(zmq_socket(context, ZMQ_PULL), NULL, EMFILE);
    no_context(socket);
    no_socket(context);

    CHECK(zmq_ctx_shutdown(context) == 0);
    CHECK_ERRNO(zmq_socket(context, ZMQ_PULL), NULL, ETERM);
    CHECK_ERRNO(zmq_recv(socket, foreign, 1, 0), -1, ETERM);
    CHECK_ERRNO(zmq_connect(socket, "inproc://nowhere"), -1, ETERM);
    CHECK(zmq_close(socket) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    if (strict)
        no_context(context);

    /* A new context may have the address of the old one. */
    ended = context;
    context = zmq_ctx_new();
    CHECK(context != NULL && zmq_ctx_destroy(context) == 0);
    (void) ended;

    context = zmq_init(3);
    CHECK(context != NULL && zmq_ctx_get(context, ZMQ_IO_THREADS) == 3);
    CHECK(zmq_term(context) == 0);
    CHECK_ERRNO(zmq_init(-1), NULL, EINVAL);
}

static void sockets(void)
{
    void *context = zmq_ctx_new();
    void *all[12];
    void *socket;
    long long foreign[16] = {0};
    int type;

    no_socket(NULL);
    no_socket(foreign);
    for (type = ZMQ_PAIR; type <= ZMQ_STREAM; type++) {
        all[type] = zmq_socket(context, type);
        CHECK(all[type] != NULL && int_option(all[type], ZMQ_TYPE) == type);
    }
    for (type = ZMQ_PAIR; type <= ZMQ_STREAM; type++) {
        CHECK(zmq_close(all[type]) == 0);
        if (strict)
            no_socket(all[type]);
    }
    socket = zmq_socket(context, ZMQ_DEALER);
    CHECK(zmq_close(socket) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static void options(void)
{
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_SUB);
    int value = 7;
    char text[256];
    size_t size = sizeof text;
    uint64_t affinity = 1;

    CHECK(int_option(socket, ZMQ_RCVMORE) == 0);
    CHECK(int_option(socket, ZMQ_SNDHWM) == 1000);
    set_int_option(socket, ZMQ_SNDHWM, 5);
    CHECK(int_option(socket, ZMQ_SNDHWM) == 5);
    CHECK_ERRNO(zmq_setsockopt(socket, 12345, &value, sizeof value), -1, EINVAL);
    CHECK_ERRNO(zmq_setsockopt(socket, ZMQ_SNDHWM, &value, 3), -1, EINVAL);
    value = -1;
    CHECK_ERRNO(zmq_setsockopt(socket, ZMQ_SNDHWM, &value, sizeof value), -1, EINVAL);
    CHECK_ERRNO(zmq_setsockopt(socket, ZMQ_AFFINITY, &value, sizeof value), -1, EINVAL);
    CHECK(zmq_setsockopt(socket, ZMQ_AFFINITY, &affinity, sizeof affinity) == 0);
    CHECK(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0);
    CHECK(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, NULL, 0) == 0);
    CHECK(zmq_setsockopt(socket, ZMQ_UNSUBSCRIBE, NULL, 0) == 0);
    if (strict) {
        CHECK_ERRNO(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, NULL, 3), -1, EINVAL);
        CHECK_ERRNO(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "x", (size_t) -1), -1, EINVAL);
    }

    CHECK_ERRNO(zmq_getsockopt(socket, 12345, text, &size), -1, EINVAL);
    CHECK_ERRNO(zmq_getsockopt(socket, ZMQ_SUBSCRIBE, text, &size), -1, EINVAL);
    size = 3;
    CHECK_ERRNO(zmq_getsockopt(socket, ZMQ_LINGER, &value, &size), -1, EINVAL);
    CHECK(size == 3);
    if (strict) {
        CHECK_ERRNO(zmq_getsockopt(socket, ZMQ_LINGER, NULL, &size), -1, EFAULT);
        CHECK_ERRNO(zmq_getsockopt(socket, ZMQ_LINGER, &value, NULL), -1, EFAULT);
    }
    /* The remaining bytes are cleared, because older programs read a 64-bit number. */
    memset(text, 0x55, sizeof text);
    size = sizeof text;
    CHECK(zmq_getsockopt(socket, ZMQ_RCVMORE, text, &size) == 0 && size == sizeof(int));
    CHECK(text[size] == 0 && text[200] == 0);

    CHECK(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
    size = sizeof text;
    CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text, &size) == 0);
    CHECK(strncmp(text, "tcp://127.0.0.1:", 16) == 0 && size == strlen(text) + 1);
    CHECK(zmq_unbind(socket, text) == 0);
    CHECK_ERRNO(zmq_unbind(socket, text), -1, ENOENT);
    CHECK_ERRNO(zmq_disconnect(socket, text), -1, ENOENT);
    CHECK_ERRNO(zmq_bind(socket, "no endpoint"), -1, EINVAL);
    CHECK_ERRNO(zmq_bind(socket, "nothing://at.all"), -1, EPROTONOSUPPORT);
    CHECK_ERRNO(zmq_connect(socket, "no endpoint"), -1, EINVAL);
    CHECK_ERRNO(zmq_connect(socket, "nothing://at.all"), -1, EPROTONOSUPPORT);
    if (strict) {
        CHECK_ERRNO(zmq_bind(socket, NULL), -1, EINVAL);
        CHECK_ERRNO(zmq_connect(socket, NULL), -1, EINVAL);
        CHECK_ERRNO(zmq_unbind(socket, NULL), -1, EINVAL);
        CHECK_ERRNO(zmq_disconnect(socket, NULL), -1, EINVAL);
        CHECK_ERRNO(zmq_connect(socket, "tcp://\xff"), -1, EINVAL);
    }
    CHECK(zmq_close(socket) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

void handles(void)
{
    contexts();
    sockets();
    options();
}
