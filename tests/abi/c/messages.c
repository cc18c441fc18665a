/* Tests message objects, alone and in transit. */
#include "check.h"

static const char *name_of_nothing = "No-Such-Property";

static void no_message(zmq_msg_t *message)
{
    zmq_msg_t other;
    zmq_msg_init(&other);
    CHECK_ERRNO(zmq_msg_close(message), -1, EFAULT);
    CHECK_ERRNO(zmq_msg_copy(&other, message), -1, EFAULT);
    CHECK_ERRNO(zmq_msg_copy(message, &other), -1, EFAULT);
    CHECK_ERRNO(zmq_msg_move(&other, message), -1, EFAULT);
    CHECK_ERRNO(zmq_msg_move(message, &other), -1, EFAULT);
    if (strict) {
        CHECK(zmq_msg_size(message) == 0);
        CHECK(zmq_msg_data(message) == NULL);
        CHECK(zmq_msg_more(message) == 0);
        CHECK_ERRNO(zmq_msg_get(message, ZMQ_MORE), -1, EFAULT);
        CHECK_ERRNO(zmq_msg_gets(message, name_of_nothing), NULL, EFAULT);
    }
    CHECK(zmq_msg_close(&other) == 0);
}

static int is(zmq_msg_t *message, const void *body, size_t size)
{
    return zmq_msg_size(message) == size && memcmp(zmq_msg_data(message), body, size) == 0;
}

static void alone(void)
{
    static char large[100000];
    zmq_msg_t one, other;
    size_t size;

    memset(&one, 0, sizeof one);
    no_message(&one);
    CHECK(zmq_msg_init(&one) == 0);
    CHECK(zmq_msg_size(&one) == 0 && zmq_msg_data(&one) != NULL);
    CHECK(zmq_msg_close(&one) == 0);
    no_message(&one);
    if (strict) {
        no_message(NULL);
        CHECK_ERRNO(zmq_msg_init(NULL), -1, EFAULT);
    }
    CHECK_ERRNO(zmq_msg_init_size(&one, (size_t) -1 - 1000), -1, ENOMEM);

    memset(large, 'x', sizeof large);
    for (size = 0; size <= sizeof large; size = size * 3 + 1) {
        CHECK(zmq_msg_init_size(&one, size) == 0);
        memcpy(zmq_msg_data(&one), large, size);
        CHECK(zmq_msg_init(&other) == 0);
        CHECK(zmq_msg_copy(&other, &one) == 0 && is(&other, large, size) && is(&one, large, size));
        CHECK(zmq_msg_move(&other, &one) == 0 && is(&other, large, size) && zmq_msg_size(&one) == 0);
        CHECK(zmq_msg_close(&one) == 0 && zmq_msg_close(&other) == 0);
    }

    CHECK(zmq_msg_init_data(&one, large, 4, NULL, NULL) == 0);
    CHECK(zmq_msg_data(&one) == large && zmq_msg_get(&one, ZMQ_SHARED) == 1);
    CHECK(zmq_msg_get(&one, ZMQ_MORE) == 0 && zmq_msg_more(&one) == 0);
    CHECK_ERRNO(zmq_msg_get(&one, ZMQ_SRCFD), -1, EINVAL);
    CHECK_ERRNO(zmq_msg_get(&one, 12345), -1, EINVAL);
    CHECK_ERRNO(zmq_msg_set(&one, ZMQ_MORE, 1), -1, EINVAL);
    CHECK_ERRNO(zmq_msg_gets(&one, name_of_nothing), NULL, EINVAL);
    CHECK(zmq_msg_close(&one) == 0);
}

/* Frees the data and counts the call. Any thread may call this, so the counter is atomic. */
static void release(void *data, void *counter)
{
    free(data);
    zmq_atomic_counter_inc(counter);
}

static void zero_copy(void)
{
    void *context = zmq_ctx_new();
    void *counter = zmq_atomic_counter_new();
    void *one, *other;
    zmq_msg_t message, copy;
    size_t size;
    int expected = 0;

    make_pair(context, &one, &other);
    for (size = 1; size <= 300000; size *= 7) {
        char *data = malloc(size);
        memset(data, 'z', size);
        CHECK(zmq_msg_init_data(&message, data, size, release, counter) == 0);
        CHECK(zmq_msg_data(&message) == data);
        CHECK(zmq_msg_init(&copy) == 0 && zmq_msg_copy(&copy, &message) == 0);
        CHECK(zmq_msg_send(&message, one, 0) == (int) size && zmq_msg_size(&message) == 0);
        CHECK(zmq_msg_close(&message) == 0);
        CHECK(zmq_msg_size(&copy) == size && ((char *) zmq_msg_data(&copy))[size - 1] == 'z');
        CHECK(zmq_msg_close(&copy) == 0);
        CHECK(zmq_msg_init(&message) == 0);
        CHECK(zmq_msg_recv(&message, other, 0) == (int) size);
        CHECK(((char *) zmq_msg_data(&message))[size - 1] == 'z');
        CHECK(zmq_msg_close(&message) == 0);
        expected++;
    }
    CHECK(zmq_close(one) == 0 && zmq_close(other) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    CHECK(zmq_atomic_counter_value(counter) == expected);
    zmq_atomic_counter_destroy(&counter);
}

static void from_a_peer(void)
{
    void *context = zmq_ctx_new();
    void *dealer = zmq_socket(context, ZMQ_DEALER);
    void *other = zmq_socket(context, ZMQ_DEALER);
    char endpoint[64];
    size_t size = sizeof endpoint;
    zmq_msg_t message;
    const char *text;

    CHECK(zmq_bind(dealer, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(dealer, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    CHECK(zmq_setsockopt(other, ZMQ_ROUTING_ID, "abc", 3) == 0);
    CHECK(zmq_connect(other, endpoint) == 0);
    CHECK(zmq_send(other, "1", 1, ZMQ_SNDMORE) == 1 && zmq_send(other, "2", 1, 0) == 1);

    CHECK(zmq_msg_init(&message) == 0);
    CHECK(zmq_msg_recv(&message, dealer, 0) == 1);
    CHECK(zmq_msg_more(&message) == 1 && zmq_msg_get(&message, ZMQ_MORE) == 1);
    CHECK(int_option(dealer, ZMQ_RCVMORE) == 1);
    CHECK(zmq_msg_get(&message, ZMQ_SRCFD) >= 0);
    text = zmq_msg_gets(&message, "Socket-Type");
    CHECK(text && strcmp(text, "DEALER") == 0);
    text = zmq_msg_gets(&message, "Identity");
    CHECK(text && strcmp(text, "abc") == 0);
    if (strict) { /* the name of the property in newer manuals */
        text = zmq_msg_gets(&message, "Routing-Id");
        CHECK(text && strcmp(text, "abc") == 0);
    }
    text = zmq_msg_gets(&message, "Peer-Address");
    CHECK(text && strcmp(text, "127.0.0.1") == 0);
    CHECK_ERRNO(zmq_msg_gets(&message, name_of_nothing), NULL, EINVAL);
    CHECK(zmq_msg_recv(&message, dealer, 0) == 1);
    CHECK(zmq_msg_more(&message) == 0 && int_option(dealer, ZMQ_RCVMORE) == 0);
    CHECK(zmq_msg_close(&message) == 0);
    CHECK(zmq_close(dealer) == 0 && zmq_close(other) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

/* A failure leaves the message unchanged. */
static void refused(void)
{
    void *context = zmq_ctx_new();
    void *alone_socket = zmq_socket(context, ZMQ_PUSH);
    void *pull = zmq_socket(context, ZMQ_PULL);
    zmq_msg_t message;
    char byte;

    CHECK(zmq_msg_init_size(&message, 3) == 0);
    memcpy(zmq_msg_data(&message), "abc", 3);
    CHECK_ERRNO(zmq_msg_send(&message, alone_socket, ZMQ_DONTWAIT), -1, EAGAIN);
    CHECK_ERRNO(zmq_msg_send(&message, pull, ZMQ_DONTWAIT), -1, ENOTSUP);
    CHECK(is(&message, "abc", 3));
    CHECK_ERRNO(zmq_msg_recv(&message, pull, ZMQ_DONTWAIT), -1, EAGAIN);
    CHECK_ERRNO(zmq_recv(pull, &byte, 1, ZMQ_DONTWAIT), -1, EAGAIN);
    CHECK_ERRNO(zmq_recv(alone_socket, &byte, 1, ZMQ_DONTWAIT), -1, ENOTSUP);
    CHECK(zmq_msg_close(&message) == 0);
    CHECK_ERRNO(zmq_msg_recv(&message, pull, ZMQ_DONTWAIT), -1, EFAULT);
    if (strict) {
        CHECK_ERRNO(zmq_msg_send(&message, alone_socket, ZMQ_DONTWAIT), -1, EFAULT);
        CHECK_ERRNO(zmq_msg_send(NULL, alone_socket, ZMQ_DONTWAIT), -1, EFAULT);
        CHECK_ERRNO(zmq_msg_recv(NULL, pull, ZMQ_DONTWAIT), -1, EFAULT);
        CHECK_ERRNO(zmq_send(alone_socket, NULL, 1, ZMQ_DONTWAIT), -1, EFAULT);
        CHECK_ERRNO(zmq_recv(pull, NULL, 1, ZMQ_DONTWAIT), -1, EFAULT);
    }
    CHECK(zmq_close(alone_socket) == 0 && zmq_close(pull) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

void messages(void)
{
    alone();
    zero_copy();
    from_a_peer();
    refused();
}
