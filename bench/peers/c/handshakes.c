/* Connections, one after the other or `--window` at a time: each is opened, carries
 * one message to a permanent PULL, and is closed. Measures the cost of a connection
 * from zmq_socket to zmq_close, with the handshake of its mechanism. */
#include "bench.h"
#include <errno.h>

void handshakes_run(const struct config *config, struct result *result)
{
    int window = config->window > 0 ? config->window : 1;
    void *context = context_open(), **clients = calloc((size_t) window, sizeof *clients);
    unsigned char *body = calloc(1, config->size + 8);
    char endpoint[ENDPOINT_SIZE];
    security_serve(config, context);
    void *server = open_and_bind(config, context, ZMQ_PULL, 0, endpoint);
    static struct tally tally;
    uint64_t start, end, seen, number = 0;
    double cpu = cpu_seconds();

    if (clients == NULL || body == NULL)
        fail("calloc");
    watchdog_watch(&tally);
    start = now_ns();
    end = start + (uint64_t) config->millis * 1000000u;
    while (now_ns() < end) {
        uint64_t first = number;
        for (int i = 0; i < window; i++) {
            clients[i] = open_and_connect(config, context, ZMQ_PUSH, endpoint);
            stamp(body, config->size, number++);
            send_all(clients[i], body, config->size, 0);
        }
        seen = 0; /* they arrive in any order */
        for (int i = 0; i < window; i++) {
            size_t length = receive_all(server, body, config->size + 8);
            if (!intact(body, length, config->size) || sequence_of(body) < first || sequence_of(body) >= number)
                tally.corrupted++;
            else
                seen += sequence_of(body) - first + 1;
            tally.received++;
        }
        if (seen != (uint64_t) window * (uint64_t) (window + 1) / 2)
            tally.lost++;
        for (int i = 0; i < window; i++)
            zmq_close(clients[i]);
    }
    result_tally(result, &tally);
    result->seconds = (double) (now_ns() - start) / 1e9;
    result->cpu_seconds = cpu_seconds() - cpu;
    result->messages = number;
    result_metric(result, "connections_per_second", (double) number / result->seconds);
    zmq_close(server);
    zmq_ctx_term(context);
    free(clients);
    free(body);
}
