/* Opens contexts and sockets, sets their mechanism, passes the endpoint to the other
   end, and creates the control descriptor between the ends. */
#include "bench.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void *context_open(void)
{
    void *context = zmq_ctx_new();
    if (context == NULL)
        fail("zmq_ctx_new");
    return context;
}

void option(void *socket, int name, const void *value, size_t length, const char *what)
{
    if (zmq_setsockopt(socket, name, value, length) != 0)
        fail(what);
}

void option_int(void *socket, int name, int value, const char *what)
{
    option(socket, name, &value, sizeof value, what);
}

/* Reads one socket's events until it is closed. */
static void *listen_to_events(void *pair)
{
    zmq_msg_t part;

    zmq_msg_init(&part);
    while (zmq_msg_recv(&part, pair, 0) >= 0) {
        uint16_t event = 0;
        if (zmq_msg_size(&part) >= sizeof event)
            memcpy(&event, zmq_msg_data(&part), sizeof event);
        /* The context may end between two parts. */
        while (zmq_msg_more(&part) && zmq_msg_recv(&part, pair, 0) >= 0) {
        }
        if (event == ZMQ_EVENT_MONITOR_STOPPED)
            break;
    }
    zmq_msg_close(&part);
    zmq_close(pair);
    return NULL;
}

static void monitor(void *context, void *socket)
{
    char endpoint[64];
    pthread_t thread;
    void *pair = zmq_socket(context, ZMQ_PAIR);

    snprintf(endpoint, sizeof endpoint, "inproc://monitor-%p", socket);
    if (pair == NULL || zmq_socket_monitor(socket, endpoint, ZMQ_EVENT_ALL) != 0 || zmq_connect(pair, endpoint) != 0)
        fail("zmq_socket_monitor");
    thread_start(&thread, listen_to_events, pair);
    pthread_detach(thread);
}

static char server_public[41], server_secret[41], client_public[41], client_secret[41];

/* Do this before the fork: both processes must have the same keys. */
void security_prepare(const struct config *config)
{
    if (config->curve
        && (zmq_curve_keypair(server_public, server_secret) != 0 || zmq_curve_keypair(client_public, client_secret) != 0))
        fail("zmq_curve_keypair");
}

/* Admits every client that has a password: PLAIN needs a handler (RFC 27). */
static void *let_in(void *handler)
{
    const char *reply[] = {"1.0", "", "200", "", "", ""};
    char frames[8][64];
    for (;;) {
        int count = 0, more = 1;
        size_t length = sizeof more, id = 0;
        while (more) {
            int at = count < 7 ? count : 7, size = zmq_recv(handler, frames[at], sizeof frames[at], 0);
            if (size < 0 || zmq_getsockopt(handler, ZMQ_RCVMORE, &more, &length) != 0) {
                zmq_close(handler);
                return NULL;
            }
            if (count++ == 1)
                id = (size_t) size < sizeof frames[1] ? (size_t) size : sizeof frames[1];
        }
        /* A send fails when the context ends, and so does the next receive. */
        for (int i = 0; i < 6; i++)
            zmq_send(handler, i == 1 ? frames[1] : reply[i], i == 1 ? id : strlen(reply[i]), i < 5 ? ZMQ_SNDMORE : 0);
    }
}

void security_serve(const struct config *config, void *context)
{
    pthread_t thread;
    if (!config->plain)
        return;
    void *handler = zmq_socket(context, ZMQ_REP);
    if (handler == NULL || zmq_bind(handler, "inproc://zeromq.zap.01") != 0)
        fail("zeromq.zap.01");
    thread_start(&thread, let_in, handler);
    pthread_detach(thread);
}

/* Draft options of certificates, which the headers of old releases lack. */
enum { WSS_KEY_PEM = 103, WSS_CERT_PEM, WSS_TRUST_PEM };

/* A self-signed certificate of example.org, valid until 2126, and its key, which only
 * this benchmark uses. A client that trusts this certificate itself does not check the
 * name. */
static const char certificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBizCCATCgAwIBAgIUbI02T2J6Xd8n1cIut4OlozLqgj4wCgYIKoZIzj0EAwIw\n"
    "DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjEyMjI4MzhaGA8yMTI2MTAyODIyMjgz\n"
    "OFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABC9N\n"
    "hTMYXRLxdqeZPAyGMlxuHg+YhfcYbijhuociAS8eST3pNuwxyXIO5Vadim2kHALU\n"
    "0dl/O2nheiUCOv+EemWjaDBmMB0GA1UdDgQWBBRcUKV2Jxc1t7aqjOw2y9kMvUYp\n"
    "rDAfBgNVHSMEGDAWgBRcUKV2Jxc1t7aqjOw2y9kMvUYprDAWBgNVHREEDzANggtl\n"
    "eGFtcGxlLm9yZzAMBgNVHRMBAf8EAjAAMAoGCCqGSM49BAMCA0kAMEYCIQDpH1F+\n"
    "kGrbUi1UtSqUCwzqpHH5dzTBq5LOpVndLBXd6AIhAKSIhJTcOMhnz/KnwaYvMmKh\n"
    "gnEvoNpde2VLDzAyd3dE\n"
    "-----END CERTIFICATE-----\n";
static const char certificate_key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRgj8UuY0hGu3v/Oq\n"
    "czNDw2JSNgLdRFLhrcbJqXbXkS+hRANCAAQvTYUzGF0S8XanmTwMhjJcbh4PmIX3\n"
    "GG4o4bqHIgEvHkk96TbsMclyDuVWnYptpBwC1NHZfztp4XolAjr/hHpl\n"
    "-----END PRIVATE KEY-----\n";

static void secure_server(const struct config *config, void *socket)
{
    if (config->plain) {
        option_int(socket, ZMQ_PLAIN_SERVER, 1, "ZMQ_PLAIN_SERVER");
        option(socket, ZMQ_ZAP_DOMAIN, "bench", 5, "ZMQ_ZAP_DOMAIN");
    }
    if (config->tls) {
        option(socket, WSS_CERT_PEM, certificate, sizeof certificate - 1, "ZMQ_WSS_CERT_PEM");
        option(socket, WSS_KEY_PEM, certificate_key, sizeof certificate_key - 1, "ZMQ_WSS_KEY_PEM");
    }
    if (config->curve) {
        option_int(socket, ZMQ_CURVE_SERVER, 1, "ZMQ_CURVE_SERVER");
        option(socket, ZMQ_CURVE_SECRETKEY, server_secret, sizeof server_secret, "ZMQ_CURVE_SECRETKEY");
    }
}

static void secure_client(const struct config *config, void *socket)
{
    if (config->plain) {
        option(socket, ZMQ_PLAIN_USERNAME, "user", 4, "ZMQ_PLAIN_USERNAME");
        option(socket, ZMQ_PLAIN_PASSWORD, "password", 8, "ZMQ_PLAIN_PASSWORD");
    }
    if (config->tls)
        option(socket, WSS_TRUST_PEM, certificate, sizeof certificate - 1, "ZMQ_WSS_TRUST_PEM");
    if (config->curve) {
        option(socket, ZMQ_CURVE_SERVERKEY, server_public, sizeof server_public, "ZMQ_CURVE_SERVERKEY");
        option(socket, ZMQ_CURVE_PUBLICKEY, client_public, sizeof client_public, "ZMQ_CURVE_PUBLICKEY");
        option(socket, ZMQ_CURVE_SECRETKEY, client_secret, sizeof client_secret, "ZMQ_CURVE_SECRETKEY");
    }
}

void *open_in(const struct config *config, void *context, int type)
{
    void *socket = zmq_socket(context, type);
    if (socket == NULL)
        fail("zmq_socket");
    if (config->hwm >= 0) {
        option_int(socket, ZMQ_SNDHWM, config->hwm, "ZMQ_SNDHWM");
        option_int(socket, ZMQ_RCVHWM, config->hwm, "ZMQ_RCVHWM");
    }
    if (config->monitor)
        monitor(context, socket);
    return socket;
}

void *socket_open(struct end *end, int type)
{
    return open_in(end->config, end->context, type);
}

/* Binds to the `number`-th endpoint of this run, and writes it to `endpoint`. */
static void bind_as(const struct config *config, void *socket, int number, char *endpoint)
{
    size_t length = ENDPOINT_SIZE;

    secure_server(config, socket);
    if (strcmp(config->transport, "tcp") == 0)
        snprintf(endpoint, ENDPOINT_SIZE, "%s://%s:*", config->tls ? "tls+tcp" : "tcp", side_address(config));
    else if (strcmp(config->transport, "ws") == 0)
        snprintf(endpoint, ENDPOINT_SIZE, "ws://%s:*/bench", side_address(config));
    else if (strcmp(config->transport, "ipc") == 0)
        snprintf(endpoint, ENDPOINT_SIZE, "ipc://%s/%c%c", config->directory, 'a' + number / 26, 'a' + number % 26);
    else
        snprintf(endpoint, ENDPOINT_SIZE, "inproc://bench-%d", number);
    if (zmq_bind(socket, endpoint) != 0)
        fail("zmq_bind");
    if (strcmp(config->transport, "inproc") != 0
        && zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length) != 0)
        fail("ZMQ_LAST_ENDPOINT");
}

void *open_and_bind(const struct config *config, void *context, int type, int number, char *endpoint)
{
    void *socket = open_in(config, context, type);
    bind_as(config, socket, number, endpoint);
    return socket;
}

void *open_and_connect(const struct config *config, void *context, int type, const char *endpoint)
{
    void *socket = open_in(config, context, type);
    secure_client(config, socket);
    if (zmq_connect(socket, endpoint) != 0)
        fail("zmq_connect");
    return socket;
}

void send_all(void *socket, const void *data, size_t length, int flags)
{
    while (zmq_send(socket, data, length, flags) < 0) {
        if (errno != EINTR)
            fail("zmq_send");
    }
}

size_t receive_all(void *socket, void *data, size_t room)
{
    int length;
    while ((length = zmq_recv(socket, data, room, 0)) < 0) {
        if (errno != EINTR)
            fail("zmq_recv");
    }
    return (size_t) length;
}

void endpoint_tell(int control, const char *endpoint)
{
    if (write(control, endpoint, ENDPOINT_SIZE) != ENDPOINT_SIZE)
        fail("control write");
}

void endpoint_learn(int control, char *endpoint)
{
    size_t have = 0;

    while (have < ENDPOINT_SIZE) {
        ssize_t n = read(control, endpoint + have, ENDPOINT_SIZE - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            fail("control read");
        have += (size_t) n;
    }
}

/* Binds, then reports the endpoint to each of the `peers` other ends. */
void socket_bind(struct end *end, void *socket, int peers)
{
    char endpoint[ENDPOINT_SIZE] = {0};

    bind_as(end->config, socket, 0, endpoint);
    for (int i = 0; i < peers; i++)
        endpoint_tell(end->control[i], endpoint);
}

void socket_connect(struct end *end, void *socket)
{
    char endpoint[ENDPOINT_SIZE];

    endpoint_learn(end->control[0], endpoint);
    secure_client(end->config, socket);
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
