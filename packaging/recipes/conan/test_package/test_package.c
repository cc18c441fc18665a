#include <stdio.h>
#include <string.h>
#include <zmq.h>

/* Sends a request and its reply within the process. */
int main(void)
{
    void *context = zmq_ctx_new();
    void *answering = zmq_socket(context, ZMQ_REP), *asking = zmq_socket(context, ZMQ_REQ);
    char text[16] = "";
    int bad = zmq_bind(answering, "inproc://test") != 0 || zmq_connect(asking, "inproc://test") != 0;

    bad = bad || zmq_send(asking, "ask", 3, 0) != 3 || zmq_recv(answering, text, sizeof text, 0) != 3;
    bad = bad || zmq_send(answering, "answer", 6, 0) != 6 || zmq_recv(asking, text, sizeof text, 0) != 6;
    printf("answered: %.6s\n", text);
    bad = bad || strcmp(text, "answer") != 0;
    zmq_close(asking);
    zmq_close(answering);
    return zmq_ctx_term(context) != 0 || bad;
}
