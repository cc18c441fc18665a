/*
 * Tests host names in zmq_bind, zmq_unbind and as sources of zmq_connect. This file replaces the resolver, which answers names that
 * end in `.test` itself, and `slow.test` only when the test releases it. It also replaces `socket`, to imitate a system without IPv6.
 */
#define _GNU_SOURCE
#define ZMQ_BUILD_DRAFT_API
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "addresses.h"

/* Names and their addresses, in the order of the resolver's answers. */
static const char *const known[][3] = {
    {"two.test", "127.0.0.2", "127.0.0.3"},      {"alias.test", "127.0.0.2", NULL},
    {"both.test", "127.0.0.2", "::1"},           {"six.test", "::1", NULL},
    {"foreign.test", "203.0.113.7", NULL},       {"foreign-first.test", "203.0.113.7", "127.0.0.2"},
    {"foreign-last.test", "127.0.0.2", "203.0.113.7"}, {"group.test", "239.255.77.1", NULL},
    {"slow.test", "127.0.0.2", NULL},
};
static sem_t asked, answer;
static char ours; /* the address of this variable marks the answers of this file */

struct node {
    struct addrinfo info;
    struct sockaddr_storage address;
};

/* Adds an address to a list in the form that the hints request. Returns false if they exclude it. */
static int add(struct addrinfo ***tail, const char *text, const struct addrinfo *hints, int mapped)
{
    struct node *node = calloc(1, sizeof *node);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&node->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&node->address;
    char as_v6[64];
    int is_v4 = inet_pton(AF_INET, text, &v4->sin_addr) == 1;
    if (is_v4 && mapped) {
        snprintf(as_v6, sizeof as_v6, "::ffff:%s", text);
        memset(&node->address, 0, sizeof node->address);
        is_v4 = 0;
        text = as_v6;
    }
    if (!is_v4)
        inet_pton(AF_INET6, text, &v6->sin6_addr);
    node->address.ss_family = is_v4 ? AF_INET : AF_INET6;
    if (hints->ai_family != AF_UNSPEC && hints->ai_family != node->address.ss_family) {
        free(node);
        return 0;
    }
    node->info.ai_family = node->address.ss_family;
    node->info.ai_socktype = SOCK_STREAM;
    node->info.ai_addrlen = is_v4 ? sizeof *v4 : sizeof *v6;
    node->info.ai_addr = (struct sockaddr *)&node->address;
    node->info.ai_canonname = &ours;
    **tail = &node->info;
    *tail = &node->info.ai_next;
    return 1;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
    static int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    const size_t length = strlen(name), suffix = strlen(".test");
    struct addrinfo **tail = list;
    size_t i, j;
    int mapped, found = 0;
    if (length < suffix || strcmp(name + length - suffix, ".test") != 0) {
        if (next == NULL)
            *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
        return next(name, service, hints, list);
    }
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    if (strcmp(name, "slow.test") == 0) {
        sem_post(&asked);
        while (sem_wait(&answer) != 0)
            ;
    }
    for (mapped = 0; mapped <= ((hints->ai_flags & AI_V4MAPPED) != 0) && !found; mapped++)
        for (i = 0; i < sizeof known / sizeof known[0]; i++)
            for (j = 1; j < 3 && strcmp(known[i][0], name) == 0; j++)
                if (known[i][j] != NULL)
                    found += add(&tail, known[i][j], hints, mapped);
    return found ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list)
{
    static void (*next)(struct addrinfo *);
    if (list != NULL && list->ai_canonname == &ours) {
        while (list != NULL) {
            struct addrinfo *rest = list->ai_next;
            free(list);
            list = rest;
        }
        return;
    }
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "freeaddrinfo");
    next(list);
}

static int without_ipv6;

int socket(int domain, int type, int protocol)
{
    static int (*next)(int, int, int);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "socket");
    if (without_ipv6 && domain == AF_INET6) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return next(domain, type, protocol);
}

static int has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* True if the machine has the address ::1. */
static int has_ipv6(void)
{
    struct sockaddr_in6 address;
    int fd = socket(AF_INET6, SOCK_STREAM, 0), ok;
    memset(&address, 0, sizeof address);
    address.sin6_family = AF_INET6;
    address.sin6_addr.s6_addr[15] = 1;
    ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A socket can bind the name. All reports have the endpoint with the address, and a peer can connect to it. */
static void binds(void *context, const char *scheme, const char *host, int ipv6, const char *address)
{
    char given[128], prefix[128], unbound[256];
    void *pull = new_socket(context, ZMQ_PULL, ipv6), *events;
    int event;
    snprintf(given, sizeof given, "%s://%s:*", scheme, host);
    snprintf(prefix, sizeof prefix, "%s://%s:", scheme, address);
    events = monitor(context, pull, ZMQ_EVENT_LISTENING | ZMQ_EVENT_CLOSED);
    errno = 0;
    if (zmq_bind(pull, given) != 0) {
        check(0, given, __FILE__, __LINE__);
        CHECK(zmq_close(pull) == 0 && zmq_close(events) == 0);
        return;
    }
    check(has_prefix(last_endpoint(pull), prefix), prefix, __FILE__, __LINE__);
    CHECK(strcmp(next_event(events, &event), last_endpoint(pull)) == 0 && event == ZMQ_EVENT_LISTENING);
    CHECK(arrives(context, pull, last_endpoint(pull), ipv6));
    /* The wildcard does not unbind it. The name with the port does, and also any other name of the address. */
    CHECK_ERRNO(zmq_unbind(pull, given), -1, ENOENT);
    if (strict || (strcmp(scheme, "tcp") == 0 && strchr(host, '%') == NULL)) {
        snprintf(unbound, sizeof unbound, "%s://%s:%s", scheme, host, strrchr(last_endpoint(pull), ':') + 1);
        check(zmq_unbind(pull, unbound) == 0, unbound, __FILE__, __LINE__);
        CHECK(strcmp(next_event(events, &event), last_endpoint(pull)) == 0 && event == ZMQ_EVENT_CLOSED);
        CHECK_ERRNO(zmq_unbind(pull, unbound), -1, ENOENT);
    }
    CHECK(zmq_close(pull) == 0 && zmq_close(events) == 0);
}

static void fails(void *context, int type, const char *endpoint, int ipv6, int number)
{
    void *socket = new_socket(context, type, ipv6);
    errno = 0;
    check(zmq_bind(socket, endpoint) == -1 && zmq_errno() == number, endpoint, __FILE__, __LINE__);
    CHECK(zmq_close(socket) == 0);
}

static void streams(void *context, int ipv6)
{
    const char *four = ipv6 ? "[::ffff:127.0.0.2]" : "127.0.0.2";
    binds(context, "tcp", "two.test", ipv6, four);
    binds(context, "tcp", "[two.test]", ipv6, four);
    binds(context, "tcp", "both.test", ipv6, ipv6 ? "[::1]" : four);
    binds(context, "tcp", "two.test%lo", ipv6, four);
    binds(context, "tcp", "127.0.2", ipv6, four);
    binds(context, "tcp", "foreign-last.test", ipv6, four);
    if (ipv6)
        binds(context, "tcp", "six.test", ipv6, "[::1]");
    else
        fails(context, ZMQ_PULL, "tcp://six.test:*", ipv6, ENODEV);
    fails(context, ZMQ_PULL, "tcp://foreign.test:*", ipv6, EADDRNOTAVAIL);
    fails(context, ZMQ_PULL, "tcp://foreign-first.test:*", ipv6, EADDRNOTAVAIL);
    fails(context, ZMQ_PULL, "tcp://none.test:*", ipv6, ENODEV);
    fails(context, ZMQ_PULL, "tcp://none.test:5555", ipv6, ENODEV);
    fails(context, ZMQ_PULL, "tcp://two.test%nowhere:*", ipv6, EINVAL);
    fails(context, ZMQ_PULL, "tcp://two.test%0:*", ipv6, EINVAL);
    /* A source has a meaning only in zmq_connect, and must not be a name. An invalid source is an error here as well. */
    binds(context, "tcp", "127.0.0.1:0;two.test", ipv6, four);
    fails(context, ZMQ_PULL, "tcp://two.test:0;127.0.0.1:*", ipv6, ENODEV);
    if (strict && zmq_has("WS")) {
        binds(context, "ws", "two.test", ipv6, four);
        fails(context, ZMQ_PULL, "ws://none.test:*", ipv6, ENODEV);
    }
}

/* Names that the system knows. */
static void of_the_system(void *context, int ipv6)
{
    char host[256] = "", endpoint[300];
    struct addrinfo hints, *list = NULL;
    void *pull = new_socket(context, ZMQ_PULL, ipv6);
    CHECK(zmq_bind(pull, "tcp://localhost:*") == 0);
    CHECK(arrives(context, pull, last_endpoint(pull), ipv6));
    CHECK(zmq_close(pull) == 0);
    memset(&hints, 0, sizeof hints);
    hints.ai_family = ipv6 ? AF_INET6 : AF_INET;
    hints.ai_flags = AI_V4MAPPED;
    if (gethostname(host, sizeof host - 1) == 0 && getaddrinfo(host, NULL, &hints, &list) == 0) {
        int fd = socket(list->ai_family, SOCK_STREAM, 0);
        int possible = bind(fd, list->ai_addr, list->ai_addrlen) == 0;
        pull = new_socket(context, ZMQ_PULL, ipv6);
        snprintf(endpoint, sizeof endpoint, "tcp://%s:*", host);
        check((zmq_bind(pull, endpoint) == 0) == possible, endpoint, __FILE__, __LINE__);
        CHECK(zmq_close(pull) == 0);
        freeaddrinfo(list);
        close(fd);
    } else {
        skip("the machine's own name", "the resolver does not know it");
    }
}

/* Any name of the address unbinds an endpoint. A connected endpoint is found only by its text. */
static void other_names(void *context)
{
    char endpoint[256];
    void *pull = new_socket(context, ZMQ_PULL, 0);
    const char *port;
    CHECK(zmq_bind(pull, "tcp://127.0.0.2:*") == 0);
    port = strrchr(last_endpoint(pull), ':') + 1;
    snprintf(endpoint, sizeof endpoint, "tcp://foreign.test:%s", port);
    CHECK_ERRNO(zmq_unbind(pull, endpoint), -1, ENOENT);
    snprintf(endpoint, sizeof endpoint, "tcp://none.test:%s", port);
    CHECK_ERRNO(zmq_unbind(pull, endpoint), -1, ENOENT);
    snprintf(endpoint, sizeof endpoint, "tcp://alias.test:%s", port);
    CHECK(zmq_unbind(pull, endpoint) == 0);
    CHECK(zmq_connect(pull, "tcp://two.test:9") == 0);
    CHECK_ERRNO(zmq_disconnect(pull, "tcp://alias.test:9"), -1, ENOENT);
    CHECK(zmq_disconnect(pull, "tcp://two.test:9") == 0);
    CHECK(zmq_close(pull) == 0);
}

static void sources(void *context)
{
    char endpoint[256];
    void *pull = new_socket(context, ZMQ_PULL, 0), *push = new_socket(context, ZMQ_PUSH, 0), *events;
    int event;
    CHECK(zmq_bind(pull, "tcp://two.test:*") == 0);
    snprintf(endpoint, sizeof endpoint, "tcp://127.3:0;%s", last_endpoint(pull) + strlen("tcp://"));
    CHECK(arrives(context, pull, endpoint, 0));
    snprintf(endpoint, sizeof endpoint, "tcp://127.3:0;two.test:%s", strrchr(last_endpoint(pull), ':') + 1);
    CHECK(arrives(context, pull, endpoint, 0));
    snprintf(endpoint, sizeof endpoint, "tcp://two.test%%lo:%s", strrchr(last_endpoint(pull), ':') + 1);
    CHECK(arrives(context, pull, endpoint, 0));
    /* A source must not be a name, so the socket retries for ever. */
    events = monitor(context, push, ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_RETRIED);
    snprintf(endpoint, sizeof endpoint, "tcp://alias.test:0;%s", last_endpoint(pull) + strlen("tcp://"));
    CHECK(zmq_connect(push, endpoint) == 0);
    CHECK(strcmp(last_endpoint(push), endpoint) == 0);
    next_event(events, &event);
    CHECK(event == ZMQ_EVENT_CONNECT_RETRIED);
    CHECK(zmq_close(pull) == 0 && zmq_close(push) == 0 && zmq_close(events) == 0);
}

static void datagrams(void *context, int ipv6)
{
    char data[8];
    void *dish = new_socket(context, ZMQ_DISH, ipv6), *radio = new_socket(context, ZMQ_RADIO, ipv6);
    zmq_msg_t message;
    CHECK(zmq_bind(dish, "udp://two.test:*") == 0);
    if (strict) {
        CHECK(has_prefix(last_endpoint(dish), "udp://127.0.0.2:"));
        CHECK(zmq_join(dish, "g") == 0);
        CHECK(zmq_connect(radio, last_endpoint(dish)) == 0);
        CHECK(zmq_msg_init_size(&message, 1) == 0 && zmq_msg_set_group(&message, "g") == 0);
        CHECK(zmq_msg_send(&message, radio, 0) == 1);
        CHECK(zmq_recv(dish, data, sizeof data, 0) == 1);
        CHECK(zmq_unbind(dish, last_endpoint(dish)) == 0);
        /* A name may belong to a group. */
        if (zmq_bind(dish, "udp://lo;group.test:*") == 0)
            CHECK(has_prefix(last_endpoint(dish), "udp://239.255.77.1:"));
        else
            skip("a group by name", zmq_strerror(zmq_errno()));
        fails(context, ZMQ_DISH, "udp://foreign.test:5555", ipv6, EADDRNOTAVAIL);
    }
    CHECK(zmq_close(dish) == 0 && zmq_close(radio) == 0);
    fails(context, ZMQ_DISH, "udp://none.test:5555", ipv6, ENODEV);
    /* An interface is allowed only before a group. */
    fails(context, ZMQ_DISH, "udp://lo;127.0.0.1:5555", ipv6, EINVAL);
    fails(context, ZMQ_DGRAM, "udp://lo;two.test:5555", ipv6, EINVAL);
    fails(context, ZMQ_DISH, "udp://two.test;239.255.77.1:5555", ipv6, ENODEV);
    if (!ipv6) {
        radio = new_socket(context, ZMQ_RADIO, 0);
        CHECK_ERRNO(zmq_connect(radio, "udp://lo;127.0.0.1:5555"), -1, EINVAL);
        CHECK_ERRNO(zmq_connect(radio, "udp://[::1]:5555"), -1, EINVAL);
        CHECK(zmq_close(radio) == 0);
        fails(context, ZMQ_DISH, "udp://[ff02::1]:5555", 0, ENODEV);
    }
}

static void bind_slowly(void *socket)
{
    CHECK(zmq_bind(socket, "tcp://slow.test:*") == 0);
}

/* During a slow lookup, a program can use the context, other sockets, and a thread-safe socket. */
static void slow_resolver(void *context, int type)
{
    void *socket = new_socket(context, type, 0), *other, *thread;
    int more;
    size_t size = sizeof more;
    thread = zmq_threadstart(bind_slowly, socket);
    while (sem_wait(&asked) != 0)
        ;
    other = new_socket(context, ZMQ_PULL, 0);
    CHECK(zmq_bind(other, "tcp://two.test:*") == 0);
    CHECK(arrives(context, other, last_endpoint(other), 0));
    CHECK(zmq_close(other) == 0);
    if (type != ZMQ_PULL) {
        CHECK(zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0);
        CHECK(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
        CHECK_ERRNO(zmq_send(socket, "x", 1, ZMQ_DONTWAIT), -1, EHOSTUNREACH);
        CHECK_ERRNO(zmq_recv(socket, &more, sizeof more, ZMQ_DONTWAIT), -1, EAGAIN);
    }
    sem_post(&answer);
    zmq_threadclose(thread);
    CHECK(has_prefix(last_endpoint(socket), "tcp://127.0.0.2:"));
    CHECK(zmq_close(socket) == 0);
}

/* On a system without IPv6, sockets with ZMQ_IPV6 work as without the option. */
static void no_ipv6(void *context)
{
    static const char *const endpoints[][2] = {
        {"tcp://*:*", "tcp://0.0.0.0:"},
        {"tcp://127.0.0.1:*", "tcp://127.0.0.1:"},
        {"tcp://lo:*", "tcp://127.0.0.1:"},
        {"tcp://both.test:*", "tcp://127.0.0.2:"},
    };
    size_t i;
    void *pull;
    without_ipv6 = 1;
    for (i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        pull = new_socket(context, ZMQ_PULL, 1);
        check(zmq_bind(pull, endpoints[i][0]) == 0, endpoints[i][0], __FILE__, __LINE__);
        check(has_prefix(last_endpoint(pull), endpoints[i][1]), last_endpoint(pull), __FILE__, __LINE__);
        CHECK(arrives(context, pull, last_endpoint(pull), 1));
        CHECK(zmq_unbind(pull, last_endpoint(pull)) == 0);
        CHECK(zmq_close(pull) == 0);
    }
    fails(context, ZMQ_PULL, "tcp://six.test:*", 1, ENODEV);
    without_ipv6 = 0;
}

void names(void)
{
    void *context = zmq_ctx_new();
    int ipv6, most = has_ipv6();
    sem_init(&asked, 0, 0);
    sem_init(&answer, 0, 0);
    if (!most)
        skip("names with IPv6", "::1 is not there");
    for (ipv6 = 0; ipv6 <= most; ipv6++) {
        streams(context, ipv6);
        of_the_system(context, ipv6);
        if (zmq_has("draft"))
            datagrams(context, ipv6);
    }
    other_names(context);
    sources(context);
    no_ipv6(context);
    slow_resolver(context, ZMQ_PULL);
    if (strict)
        slow_resolver(context, ZMQ_SERVER);
    CHECK(zmq_ctx_term(context) == 0);
}
