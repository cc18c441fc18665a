/* XPUB to a crowd of `--connections` subscribers, which all subscribe to everything. A
 * send to a full subscriber waits. With `--window N`, a full subscriber loses messages
 * instead, as with PUB. To prevent that, the publisher waits after every N messages
 * until they are delivered. Then the first `--stuck` of the crowd may never read.
 * Counts deliveries; the crowd checks each stream. */
#include "crowd.h"
#include <errno.h>
#include <unistd.h>

void crowd_publish_run(const struct config *config, struct result *result)
{
    struct crowd crowd;
    char endpoint[ENDPOINT_SIZE];
    uint64_t sent = 0, readers = (uint64_t) (config->connections - config->stuck);
    double cpu;

    if (strcmp(config->transport, "inproc") == 0 || config->connections <= config->stuck
        || (config->stuck > 0 && config->window == 0)) {
        errno = 0;
        fail("a crowd cannot use inproc, --stuck must be below --connections, and --stuck needs --window");
    }
    crowd_start(&crowd, config, CROWD_SUBSCRIBERS);
    void *context = context_open();
    void *socket = open_and_bind(config, context, ZMQ_XPUB, 0, endpoint);
    if (config->window == 0)
        option_int(socket, ZMQ_XPUB_NODROP, 1, "ZMQ_XPUB_NODROP");
    option_int(socket, ZMQ_XPUB_VERBOSE, 1, "ZMQ_XPUB_VERBOSE");
    unsigned char *body = calloc(1, config->size + 8);
    if (body == NULL)
        fail("calloc");
    crowd_connect(&crowd, endpoint);
    for (int i = 0; i < config->connections; i++) {
        if (receive_all(socket, body, config->size) != 1) {
            errno = 0;
            fail("not the expected subscription");
        }
    }
    usleep(20000);

    cpu = cpu_seconds();
    uint64_t began = now_ns(), end = began + (uint64_t) config->millis * 1000000u;
    for (uint64_t now = began; now < end; now = now_ns()) {
        int batch = config->window > 0 ? config->window : 16;
        for (int i = 0; i < batch; i++) {
            stamp(body, config->size, sent++);
            send_all(socket, body, config->size, 0);
        }
        if (config->window > 0)
            crowd_await(&crowd, sent * readers);
    }
    crowd_await(&crowd, sent * readers);
    result->cpu_seconds = cpu_seconds() - cpu;
    result->seconds = (double) (atomic_load(&crowd.shared->last_ns) - began) / 1e9;
    result->messages = sent * readers;
    result_metric(result, "messages_per_second", (double) result->messages / result->seconds);
    crowd_end(&crowd, result);
    free(body);
    option_int(socket, ZMQ_LINGER, 0, "ZMQ_LINGER");
    zmq_close(socket);
    zmq_ctx_term(context);
}
