/* As peer.py, in C: `peer bind|connect TYPE ENDPOINT`, where TYPE is push or pull. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    char line[4096], endpoint[256];
    size_t size = sizeof endpoint;
    int linger = 0;
    if (argc != 4)
        return 2;
    void *context = zmq_ctx_new();
    if (!context) {
        printf("failed %d\n", errno);
        return 1;
    }
    void *socket = zmq_socket(context, strcmp(argv[2], "push") == 0 ? ZMQ_PUSH : ZMQ_PULL);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    if ((strcmp(argv[1], "bind") == 0 ? zmq_bind : zmq_connect)(socket, argv[3]) != 0) {
        printf("failed %d\n", errno);
        return 1;
    }
    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size);
    printf("at %s\n", endpoint);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "send ", 5) == 0) {
            zmq_send(socket, line + 5, strlen(line + 5), 0);
        } else if (strcmp(line, "receive") == 0) {
            int length = zmq_recv(socket, line, sizeof line, 0);
            printf("received %.*s\n", length, line);
        } else if (strcmp(line, "term") == 0) {
            zmq_close(socket);
            zmq_ctx_term(context);
            puts("done");
        } else {
            break;
        }
        fflush(stdout);
    }
    return 0;
}
