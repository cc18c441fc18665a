/* Building blocks of the situations. A situation creates sockets, watches them, calls them and reads their events up to
 * a given event. Each call and each event becomes a line of the table. */
#ifndef PLAY_H
#define PLAY_H

#ifndef ZMQ_BUILD_DRAFT_API
#define ZMQ_BUILD_DRAFT_API 1
#endif

#include <errno.h>
#include <stddef.h>

#include "zmq.h"

/* An hour in milliseconds, for an interval that ends after the situation. */
#define LONG 3600000

/* A socket with its monitor. */
struct watched {
    const char *name;
    void *socket;
    void *monitor;
    /* The last event that was reported for a descriptor. */
    struct {
        int fd;
        const char *origin;
    } open[16];
    int opens;
    int stopped;
};

struct situation {
    const char *name;
    /* The transport, unless it is part of the name. */
    const char *transport;
    void (*play)(const char *transport);
    /* Versions of the events that the situation is played for. The second needs the draft interface. */
    enum { SECOND, BOTH_VERSIONS, FIRST } versions;
};

/* binds.c, connects.c, losses.c, refusals.c, broken.c, unbinds.c: lists that end with an empty name. */
extern const struct situation bind_situations[];
extern const struct situation connect_situations[];
extern const struct situation loss_situations[];
extern const struct situation refusal_situations[];
extern const struct situation broken_situations[];
extern const struct situation unbind_situations[];

/* The context of the situation at hand. */
extern void *context;
/* Version of the events. */
extern int version;
/* The directory of this situation in TMPDIR. */
extern const char *directory;

/* Creates a socket with a ZMQ_LINGER of 0, and watches it. The table shows it under this name. */
struct watched *watch(const char *name, int type);
/* As `watch`, without a monitor. The table has the calls of this socket, but not its events. */
struct watched *unwatched(const char *name, int type);
void set(struct watched *watched, int option, int value);
void set_text(struct watched *watched, int option, const char *value);

/* Calls, each a line of the table with its result. */
int do_bind(struct watched *watched, const char *endpoint);
int do_connect(struct watched *watched, const char *endpoint);
int do_unbind(struct watched *watched, const char *endpoint);
int do_disconnect(struct watched *watched, const char *endpoint);
int do_send(struct watched *watched, const char *text);
/* Sends, and waits for a peer or for room. The table omits this call. */
int send_waiting(struct watched *watched, const char *text);
int do_recv(struct watched *watched, int flags);
/* Closes the socket and reads its events to the end. */
void do_close(struct watched *watched);
/* Closes the socket, and omits later events. */
void close_unread(struct watched *watched);
/* Binds the first socket, connects the second one to it, and waits until both report the handshake. */
const char *meet(struct watched *bound, struct watched *connected, const char *transport);
/* Writes a line for any other call. */
void note(const struct watched *watched, const char *what, int result);

/* Returns the value of ZMQ_LAST_ENDPOINT. If `alias` is not null, the table shows the endpoint under this name later. */
const char *endpoint_of(struct watched *watched, const char *alias);
/* Return a new endpoint of this transport for zmq_bind, and an endpoint without a listener. */
const char *fresh(const char *transport);
const char *nobody(const char *transport);
/* From now on the table shows `text` as `alias`. */
void call(const char *text, const char *alias);

/* Reads events into the table up to the next one of this kind. */
void until(struct watched *watched, int event);
/* As `until`, but omits the event and the events before it, because their order or their number depends on the system. */
void pass(struct watched *watched, int event);
/* Waits until all started work is finished, and reads the available events. */
void settle(void);
/* As `settle`, but received messages stay unread. */
void fence(void);

/* Plain sockets, for peers that do not speak ZMTP or speak it wrongly. Addresses are endpoints. */
int raw_listen(const char *transport, const char **endpoint);
int raw_accept(int listener);
int raw_connect(const char *endpoint);
void raw_write(int fd, const void *bytes, size_t length);
void raw_read(int fd, void *bytes, size_t length);
/* Reads until the other side has closed. */
void raw_drain(int fd);
/* Sends a greeting of ZMTP 3.1 with this mechanism, and reads the greeting of the other side. */
void raw_greet(int fd, const char *mechanism, int as_server);
/* Sends one frame. */
void raw_frame(int fd, int flags, const void *body, size_t length);

/* Starts a thread that answers ZAP requests with this status, or with an error below. `zap_stop` ends it. */
enum { ZAP_BAD_VERSION = 1, ZAP_BAD_ID = 2, ZAP_SHORT = 3 };
void zap_start(int status);

#endif
