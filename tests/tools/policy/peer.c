/*
 * The C version of peer.py: peer bind|connect TYPE ENDPOINT [OPTION=VALUE ...], where TYPE is push or pull. For OPTION@PATH it reads the
 * value from the file and erases its copy. It knows the commands of peer.py, and `abort`.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

static const struct
{
    const char *name;
    int number;
} options[] = {
    {"CURVE_SERVER", ZMQ_CURVE_SERVER},
    {"CURVE_PUBLICKEY", ZMQ_CURVE_PUBLICKEY},
    {"CURVE_SECRETKEY", ZMQ_CURVE_SECRETKEY},
    {"CURVE_SERVERKEY", ZMQ_CURVE_SERVERKEY},
};

static int set(void *socket, const char *option)
{
    const char *value = strpbrk(option, "=@");
    char text[64];
    size_t index;
    int result = -1, one = 1;
    if (!value)
        return -1;
    for (index = 0; index < sizeof options / sizeof options[0]; index++) {
        if (strncmp(options[index].name, option, (size_t) (value - option)) != 0 || options[index].name[value - option] != 0)
            continue;
        if (options[index].number == ZMQ_CURVE_SERVER)
            return zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &one, sizeof one);
        if (value[0] == '@') {
            int file = open(value + 1, O_RDONLY);
            ssize_t length = file < 0 ? -1 : read(file, text, 40);
            if (length == 40) {
                text[40] = 0;
                result = zmq_setsockopt(socket, options[index].number, text, 41);
            }
            explicit_bzero(text, sizeof text);
            close(file);
            return result;
        }
        return zmq_setsockopt(socket, options[index].number, value + 1, strlen(value + 1));
    }
    return -1;
}

int main(int argc, char **argv)
{
    char line[4096], endpoint[256];
    size_t size = sizeof endpoint;
    int linger = 0, index;
    if (argc < 4)
        return 2;
    void *context = zmq_ctx_new();
    if (!context) {
        printf("failed %d\n", errno);
        return 1;
    }
    void *socket = zmq_socket(context, strcmp(argv[2], "push") == 0 ? ZMQ_PUSH : ZMQ_PULL);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    for (index = 4; index < argc; index++) {
        if (set(socket, argv[index]) != 0)
            return 2;
    }
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
        } else if (strcmp(line, "abort") == 0) {
            abort();
        } else {
            break;
        }
        fflush(stdout);
    }
    return 0;
}
