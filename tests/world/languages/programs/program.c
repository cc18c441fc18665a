#include <stdio.h>
#include <string.h>
#include <zmq.h>
int main(void)
{
    void *context = zmq_ctx_new(), *push = zmq_socket(context, ZMQ_PUSH), *pull = zmq_socket(context, ZMQ_PULL);
    char endpoint[64], text[16], got[16];
    size_t length = sizeof endpoint;
    if (zmq_bind(pull, "tcp://127.0.0.1:*") || zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &length) || zmq_connect(push, endpoint))
        return 1;
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(text, sizeof text, "x%d", i);
        if (zmq_send(push, text, n, 0) != n || zmq_recv(pull, got, sizeof got, 0) != n || memcmp(text, got, n)) return 1;
    }
    zmq_close(push); zmq_close(pull); zmq_ctx_term(context);
    puts("ok");
}
