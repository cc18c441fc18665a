/*
 * Tests link-local addresses with a zone, which the library reports by the name of its interface. It runs in a network
 * namespace if this process may create one, or with an address of the machine.
 */
#define _GNU_SOURCE
#define ZMQ_BUILD_DRAFT_API
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "addresses.h"

static char zone[IF_NAMESIZE]; /* the interface */
static unsigned number;        /* the interface by its number */
static char ip[INET6_ADDRSTRLEN];

/* The kernel's structure for adding an address to an interface. The kernel's header conflicts with the C library's headers. */
struct in6_request {
    struct in6_addr address;
    unsigned prefix;
    int index;
};

/* Creates a network with only a loopback interface, which has only a link-local address. */
static int make_network(void)
{
    struct ifreq request;
    struct in6_request add;
    int fd, ok;
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return 0;
    fd = socket(AF_INET6, SOCK_DGRAM, 0);
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    ok = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0 && ioctl(fd, SIOCGIFINDEX, &request) == 0;
    memset(&add, 0, sizeof add);
    inet_pton(AF_INET6, "fe80::7", &add.address);
    add.prefix = 64;
    add.index = request.ifr_ifindex;
    ok = ok && ioctl(fd, SIOCSIFADDR, &add) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Finds a link-local address that can be bound. */
static int find_address(void)
{
    struct ifaddrs *list = NULL, *entry;
    if (getifaddrs(&list) != 0)
        return 0;
    for (entry = list; entry != NULL && number == 0; entry = entry->ifa_next) {
        struct sockaddr_in6 *address = (struct sockaddr_in6 *)entry->ifa_addr;
        int fd;
        if (address == NULL || address->sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr))
            continue;
        fd = socket(AF_INET6, SOCK_STREAM, 0);
        if (fd >= 0 && bind(fd, (struct sockaddr *)address, sizeof *address) == 0) {
            strcpy(zone, entry->ifa_name);
            number = if_nametoindex(zone);
            inet_ntop(AF_INET6, &address->sin6_addr, ip, sizeof ip);
        }
        if (fd >= 0)
            close(fd);
    }
    freeifaddrs(list);
    return number != 0;
}

static const char *port_of(const char *endpoint)
{
    return strrchr(endpoint, ':') + 1;
}

/* Returns an endpoint with the zone by name or by number. The text is valid until the fourth call after this one. */
static const char *endpoint_with(const char *scheme, int by_name, const char *rest)
{
    static char text[4][256];
    static int turn;
    char digits[16];
    turn = (turn + 1) % 4;
    snprintf(digits, sizeof digits, "%u", number);
    snprintf(text[turn], sizeof text[0], "%s://[%s%%%s]:%s", scheme, ip, by_name ? zone : digits, rest);
    return text[turn];
}

static int is_zoned(const char *endpoint, const char *scheme)
{
    const char *prefix = endpoint_with(scheme, 1, "");
    return strncmp(endpoint, prefix, strlen(prefix)) == 0;
}

/* One socket binds one form of the endpoint, the other connects to the other form. All reports have the name of the zone. */
static void bound_by(void *context, const char *scheme, int by_name)
{
    void *pull = new_socket(context, ZMQ_PULL, 1), *push = new_socket(context, ZMQ_PUSH, 1), *events;
    char rest[64], peer[128];
    int event;
    zmq_msg_t message;
    events = monitor(context, pull, ZMQ_EVENT_LISTENING | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CLOSED);
    CHECK(zmq_bind(pull, endpoint_with(scheme, by_name, "*")) == 0);
    check(is_zoned(last_endpoint(pull), scheme), last_endpoint(pull), __FILE__, __LINE__);
    CHECK(strcmp(next_event(events, &event), last_endpoint(pull)) == 0 && event == ZMQ_EVENT_LISTENING);
    snprintf(rest, sizeof rest, "%s", port_of(last_endpoint(pull)));
    CHECK(zmq_connect(push, endpoint_with(scheme, !by_name, rest)) == 0);
    CHECK(strcmp(last_endpoint(push), endpoint_with(scheme, !by_name, rest)) == 0);
    CHECK(strcmp(next_event(events, &event), last_endpoint(pull)) == 0 && event == ZMQ_EVENT_ACCEPTED);
    CHECK(zmq_send(push, "x", 1, 0) == 1);
    CHECK(zmq_msg_init(&message) == 0 && zmq_msg_recv(&message, pull, 0) == 1);
    snprintf(peer, sizeof peer, "%s%%%s", ip, zone);
    check(strcmp(zmq_msg_gets(&message, "Peer-Address"), peer) == 0, peer, __FILE__, __LINE__);
    CHECK(zmq_msg_close(&message) == 0);
    CHECK(zmq_disconnect(push, endpoint_with(scheme, !by_name, rest)) == 0);
    CHECK(zmq_unbind(pull, strict ? endpoint_with(scheme, !by_name, rest) : last_endpoint(pull)) == 0);
    CHECK(strcmp(next_event(events, &event), last_endpoint(pull)) == 0 && event == ZMQ_EVENT_CLOSED);
    CHECK(zmq_close(pull) == 0 && zmq_close(push) == 0 && zmq_close(events) == 0);
}

/* Monitors of version 2 report both addresses of a connection from a chosen source. */
static void sources(void *context, int by_name)
{
    void *pull = new_socket(context, ZMQ_PULL, 1), *push = new_socket(context, ZMQ_PUSH, 1), *end;
    char endpoint[256], local[256] = "", remote[256] = "";
    int more = 1, frame;
    size_t size = sizeof more;
    CHECK(zmq_bind(pull, endpoint_with("tcp", 1, "*")) == 0);
    end = zmq_socket(context, ZMQ_PAIR);
    CHECK(zmq_socket_monitor_versioned(pull, by_name ? "inproc://v2a" : "inproc://v2b", ZMQ_EVENT_ACCEPTED, 2, ZMQ_PAIR) == 0);
    CHECK(zmq_connect(end, by_name ? "inproc://v2a" : "inproc://v2b") == 0);
    snprintf(endpoint, sizeof endpoint, "%s;%s", endpoint_with("tcp", by_name, "0"),
             endpoint_with("tcp", !by_name, port_of(last_endpoint(pull))) + strlen("tcp://"));
    CHECK(zmq_connect(push, endpoint) == 0);
    CHECK(strcmp(last_endpoint(push), endpoint) == 0);
    /* The frames are the event, the number of values, the value, and both addresses. */
    for (frame = 0; more; frame++) {
        char text[256];
        int length = zmq_recv(end, text, sizeof text - 1, 0);
        text[length < 0 ? 0 : length] = 0;
        if (frame == 3)
            strcpy(local, text);
        else if (frame == 4)
            strcpy(remote, text);
        CHECK(zmq_getsockopt(end, ZMQ_RCVMORE, &more, &size) == 0);
    }
    check(strcmp(local, last_endpoint(pull)) == 0, local, __FILE__, __LINE__);
    check(is_zoned(remote, "tcp"), remote, __FILE__, __LINE__);
    CHECK(zmq_close(pull) == 0 && zmq_close(push) == 0 && zmq_close(end) == 0);
}

static void datagrams(void *context, int by_name)
{
    char data[256], digits[16];
    int length;
    void *dish = new_socket(context, ZMQ_DISH, 1), *radio = new_socket(context, ZMQ_RADIO, 1);
    void *one = new_socket(context, ZMQ_DGRAM, 1), *other = new_socket(context, ZMQ_DGRAM, 1);
    zmq_msg_t message;
    CHECK(zmq_bind(dish, endpoint_with("udp", by_name, "*")) == 0);
    check(is_zoned(last_endpoint(dish), "udp"), last_endpoint(dish), __FILE__, __LINE__);
    CHECK(zmq_join(dish, "g") == 0);
    CHECK(zmq_connect(radio, endpoint_with("udp", !by_name, port_of(last_endpoint(dish)))) == 0);
    CHECK(zmq_msg_init_size(&message, 1) == 0 && zmq_msg_set_group(&message, "g") == 0);
    CHECK(zmq_msg_send(&message, radio, 0) == 1);
    CHECK(zmq_recv(dish, data, sizeof data, 0) == 1);
    CHECK(zmq_unbind(dish, last_endpoint(dish)) == 0);
    /* A group with this zone as its interface. */
    snprintf(digits, sizeof digits, "%u", number);
    snprintf(data, sizeof data, "udp://[ff02::77%%%s]:*", by_name ? zone : digits);
    if (zmq_bind(dish, data) == 0) {
        snprintf(data, sizeof data, "udp://[ff02::77%%%s]:", zone);
        check(strncmp(last_endpoint(dish), data, strlen(data)) == 0, last_endpoint(dish), __FILE__, __LINE__);
        CHECK(zmq_unbind(dish, last_endpoint(dish)) == 0);
    }
    /* A DGRAM receives the sender of a datagram, and can answer to it. */
    CHECK(zmq_bind(one, endpoint_with("udp", by_name, "*")) == 0);
    CHECK(zmq_bind(other, endpoint_with("udp", by_name, "*")) == 0);
    CHECK(zmq_send(one, last_endpoint(other) + 6, strlen(last_endpoint(other) + 6), ZMQ_SNDMORE) > 0);
    CHECK(zmq_send(one, "there", 5, 0) == 5);
    length = zmq_recv(other, data, sizeof data - 1, 0);
    data[length < 0 ? 0 : length] = 0;
    check(strcmp(data, last_endpoint(one) + 6) == 0, data, __FILE__, __LINE__);
    CHECK(zmq_send(other, data, strlen(data), ZMQ_SNDMORE) == length);
    CHECK(zmq_recv(other, data + 200, 5, 0) == 5 && zmq_send(other, "back", 4, 0) == 4);
    CHECK(zmq_recv(one, data, sizeof data, 0) > 0 && zmq_recv(one, data, sizeof data, 0) == 4);
    CHECK(zmq_close(dish) == 0 && zmq_close(radio) == 0 && zmq_close(one) == 0 && zmq_close(other) == 0);
}

/* Tests addresses with a missing or an unknown zone, and an interface by its name alone. */
static void others(void *context)
{
    char endpoint[128];
    void *pull = new_socket(context, ZMQ_PULL, 1);
    snprintf(endpoint, sizeof endpoint, "tcp://[%s]:*", ip);
    CHECK_ERRNO(zmq_bind(pull, endpoint), -1, EINVAL);
    snprintf(endpoint, sizeof endpoint, "tcp://[%s%%no-such-zone]:*", ip);
    CHECK_ERRNO(zmq_bind(pull, endpoint), -1, EINVAL);
    snprintf(endpoint, sizeof endpoint, "tcp://[%s%%0]:*", ip);
    CHECK_ERRNO(zmq_bind(pull, endpoint), -1, EINVAL);
    CHECK(zmq_close(pull) == 0);
    pull = new_socket(context, ZMQ_PULL, 0);
    CHECK_ERRNO(zmq_bind(pull, endpoint_with("tcp", 1, "*")), -1, ENODEV);
    CHECK(zmq_close(pull) == 0);
    if (strict) {
        /* The bind may use any address of the interface. */
        pull = new_socket(context, ZMQ_PULL, 1);
        snprintf(endpoint, sizeof endpoint, "tcp://%s:*", zone);
        CHECK(zmq_bind(pull, endpoint) == 0);
        CHECK(arrives(context, pull, last_endpoint(pull), 1));
        CHECK(zmq_close(pull) == 0);
    }
}

void zones(void)
{
    void *context;
    int by_name, is_own = make_network();
    /* The kernel needs some time before a new address is usable. */
    while (!find_address())
        if (!is_own) {
            skip("link-local addresses", "no network of its own can be made, and the machine has none");
            return;
        } else {
            sched_yield();
        }
    context = zmq_ctx_new();
    for (by_name = 0; by_name < 2; by_name++) {
        bound_by(context, "tcp", by_name);
        if (strict && zmq_has("WS"))
            bound_by(context, "ws", by_name);
        sources(context, by_name);
        if (strict && zmq_has("draft"))
            datagrams(context, by_name);
    }
    others(context);
    CHECK(zmq_ctx_term(context) == 0);
}
