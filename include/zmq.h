/*
 * zmq.h - the C interface of ZeroMQ, as implemented by Tautline.
 *
 * Source and binary compatible with libzmq 4.3: programs written for libzmq compile and link unchanged.
 * The functions, types and numbers are those of the zmq(7) manual; declarations under
 * ZMQ_BUILD_DRAFT_API are ZeroMQ's draft interface, which may change between releases.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef __ZMQ_H_INCLUDED__
#define __ZMQ_H_INCLUDED__

/* Release of the ZeroMQ interface, and a comparable number made of it. */
#define ZMQ_VERSION_MAJOR 4
#define ZMQ_VERSION_MINOR 3
#define ZMQ_VERSION_PATCH 5
#define ZMQ_MAKE_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define ZMQ_VERSION ZMQ_MAKE_VERSION(ZMQ_VERSION_MAJOR, ZMQ_VERSION_MINOR, ZMQ_VERSION_PATCH)

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Programs test this before they define the fixed-width integers themselves. */
#ifndef ZMQ_DEFINED_STDINT
#define ZMQ_DEFINED_STDINT 1
#endif

#if defined _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <winsock2.h>
#endif

#if defined ZMQ_BUILD_DRAFT_API && !defined _WIN32
#include <signal.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ZMQ_NO_EXPORT: no decoration. ZMQ_STATIC: linking libzmq statically on Windows. */
#if defined ZMQ_NO_EXPORT
#define ZMQ_EXPORT
#elif defined _WIN32
#if defined ZMQ_STATIC
#define ZMQ_EXPORT
#elif defined DLL_EXPORT
#define ZMQ_EXPORT __declspec(dllexport)
#else
#define ZMQ_EXPORT __declspec(dllimport)
#endif
#elif defined __GNUC__ && __GNUC__ >= 4
#define ZMQ_EXPORT __attribute__((visibility("default")))
#else
#define ZMQ_EXPORT
#endif

/* Feature macros that programs and bindings test. */
#define ZMQ_HAS_CAPABILITIES 1
#define ZMQ_HAVE_TIMERS

/*
 * Errors. Functions set errno (and zmq_errno); zmq_strerror describes these numbers too.
 */

/* Offset that keeps these numbers apart from those of any operating system. */
#define ZMQ_HAUSNUMERO 156384712

/* For platforms without these POSIX names. */
#ifndef ENOTSUP
#define ENOTSUP (ZMQ_HAUSNUMERO + 1)
#endif
#ifndef EPROTONOSUPPORT
#define EPROTONOSUPPORT (ZMQ_HAUSNUMERO + 2)
#endif
#ifndef ENOBUFS
#define ENOBUFS (ZMQ_HAUSNUMERO + 3)
#endif
#ifndef ENETDOWN
#define ENETDOWN (ZMQ_HAUSNUMERO + 4)
#endif
#ifndef EADDRINUSE
#define EADDRINUSE (ZMQ_HAUSNUMERO + 5)
#endif
#ifndef EADDRNOTAVAIL
#define EADDRNOTAVAIL (ZMQ_HAUSNUMERO + 6)
#endif
#ifndef ECONNREFUSED
#define ECONNREFUSED (ZMQ_HAUSNUMERO + 7)
#endif
#ifndef EINPROGRESS
#define EINPROGRESS (ZMQ_HAUSNUMERO + 8)
#endif
#ifndef ENOTSOCK
#define ENOTSOCK (ZMQ_HAUSNUMERO + 9)
#endif
#ifndef EMSGSIZE
#define EMSGSIZE (ZMQ_HAUSNUMERO + 10)
#endif
#ifndef EAFNOSUPPORT
#define EAFNOSUPPORT (ZMQ_HAUSNUMERO + 11)
#endif
#ifndef ENETUNREACH
#define ENETUNREACH (ZMQ_HAUSNUMERO + 12)
#endif
#ifndef ECONNABORTED
#define ECONNABORTED (ZMQ_HAUSNUMERO + 13)
#endif
#ifndef ECONNRESET
#define ECONNRESET (ZMQ_HAUSNUMERO + 14)
#endif
#ifndef ENOTCONN
#define ENOTCONN (ZMQ_HAUSNUMERO + 15)
#endif
#ifndef ETIMEDOUT
#define ETIMEDOUT (ZMQ_HAUSNUMERO + 16)
#endif
#ifndef EHOSTUNREACH
#define EHOSTUNREACH (ZMQ_HAUSNUMERO + 17)
#endif
#ifndef ENETRESET
#define ENETRESET (ZMQ_HAUSNUMERO + 18)
#endif

/* ZeroMQ's own. */
#define EFSM (ZMQ_HAUSNUMERO + 51)
#define ENOCOMPATPROTO (ZMQ_HAUSNUMERO + 52)
#define ETERM (ZMQ_HAUSNUMERO + 53)
#define EMTHREAD (ZMQ_HAUSNUMERO + 54)

ZMQ_EXPORT int zmq_errno(void);
ZMQ_EXPORT const char *zmq_strerror(int errnum);
ZMQ_EXPORT void zmq_version(int *major, int *minor, int *patch);
ZMQ_EXPORT int zmq_has(const char *capability);

/*
 * Contexts.
 */

/* Options of zmq_ctx_set and zmq_ctx_get; ZMQ_IPV6 and ZMQ_BLOCKY are accepted too.
   Number 3 is the socket limit when read and the thread priority when set. */
#define ZMQ_IO_THREADS                 1
#define ZMQ_MAX_SOCKETS                2
#define ZMQ_SOCKET_LIMIT               3
#define ZMQ_THREAD_PRIORITY            3
#define ZMQ_THREAD_SCHED_POLICY        4
#define ZMQ_MAX_MSGSZ                  5
#define ZMQ_MSG_T_SIZE                 6
#define ZMQ_THREAD_AFFINITY_CPU_ADD    7
#define ZMQ_THREAD_AFFINITY_CPU_REMOVE 8
#define ZMQ_THREAD_NAME_PREFIX         9

/* Their defaults. */
#define ZMQ_IO_THREADS_DFLT          1
#define ZMQ_MAX_SOCKETS_DFLT         1023
#define ZMQ_THREAD_PRIORITY_DFLT     (-1)
#define ZMQ_THREAD_SCHED_POLICY_DFLT (-1)

ZMQ_EXPORT void *zmq_ctx_new(void);
ZMQ_EXPORT int zmq_ctx_term(void *context);
ZMQ_EXPORT int zmq_ctx_shutdown(void *context);
ZMQ_EXPORT int zmq_ctx_set(void *context, int option, int optval);
ZMQ_EXPORT int zmq_ctx_get(void *context, int option);

/* Deprecated: use the functions above. */
ZMQ_EXPORT void *zmq_init(int io_threads);
ZMQ_EXPORT int zmq_term(void *context);
ZMQ_EXPORT int zmq_ctx_destroy(void *context);

/*
 * Messages.
 */

/* Opaque; the library keeps short bodies inside it. */
typedef struct zmq_msg_t
{
#if defined _MSC_VER && (defined _M_X64 || defined _M_ARM64)
    __declspec(align(8)) unsigned char _[64];
#elif defined _MSC_VER
    __declspec(align(4)) unsigned char _[64];
#elif defined __GNUC__
    unsigned char _[64] __attribute__((aligned(sizeof (void *))));
#else
    unsigned char _[64];
#endif
} zmq_msg_t;

/* Releases the data of a message made by zmq_msg_init_data; may run on any thread. */
typedef void (zmq_free_fn)(void *data, void *hint);

/* Properties for zmq_msg_get. ZMQ_SRCFD is deprecated. */
#define ZMQ_MORE   1
#define ZMQ_SRCFD  2
#define ZMQ_SHARED 3

ZMQ_EXPORT int zmq_msg_init(zmq_msg_t *msg);
ZMQ_EXPORT int zmq_msg_init_size(zmq_msg_t *msg, size_t size);
ZMQ_EXPORT int zmq_msg_init_data(zmq_msg_t *msg, void *data, size_t size, zmq_free_fn *ffn,
                                 void *hint);
ZMQ_EXPORT int zmq_msg_send(zmq_msg_t *msg, void *s, int flags);
ZMQ_EXPORT int zmq_msg_recv(zmq_msg_t *msg, void *s, int flags);
ZMQ_EXPORT int zmq_msg_close(zmq_msg_t *msg);
ZMQ_EXPORT int zmq_msg_move(zmq_msg_t *dest, zmq_msg_t *src);
ZMQ_EXPORT int zmq_msg_copy(zmq_msg_t *dest, zmq_msg_t *src);
ZMQ_EXPORT void *zmq_msg_data(zmq_msg_t *msg);
ZMQ_EXPORT size_t zmq_msg_size(const zmq_msg_t *msg);
ZMQ_EXPORT int zmq_msg_more(const zmq_msg_t *msg);
ZMQ_EXPORT int zmq_msg_get(const zmq_msg_t *msg, int property);
ZMQ_EXPORT int zmq_msg_set(zmq_msg_t *msg, int property, int optval);
ZMQ_EXPORT const char *zmq_msg_gets(const zmq_msg_t *msg, const char *property);

/*
 * Sockets.
 */

/* Socket types. */
#define ZMQ_PAIR   0
#define ZMQ_PUB    1
#define ZMQ_SUB    2
#define ZMQ_REQ    3
#define ZMQ_REP    4
#define ZMQ_DEALER 5
#define ZMQ_ROUTER 6
#define ZMQ_PULL   7
#define ZMQ_PUSH   8
#define ZMQ_XPUB   9
#define ZMQ_XSUB   10
#define ZMQ_STREAM 11

/* Socket options. */
#define ZMQ_AFFINITY                          4
#define ZMQ_ROUTING_ID                        5
#define ZMQ_SUBSCRIBE                         6
#define ZMQ_UNSUBSCRIBE                       7
#define ZMQ_RATE                              8
#define ZMQ_RECOVERY_IVL                      9
#define ZMQ_SNDBUF                            11
#define ZMQ_RCVBUF                            12
#define ZMQ_RCVMORE                           13
#define ZMQ_FD                                14
#define ZMQ_EVENTS                            15
#define ZMQ_TYPE                              16
#define ZMQ_LINGER                            17
#define ZMQ_RECONNECT_IVL                     18
#define ZMQ_BACKLOG                           19
#define ZMQ_RECONNECT_IVL_MAX                 21
#define ZMQ_MAXMSGSIZE                        22
#define ZMQ_SNDHWM                            23
#define ZMQ_RCVHWM                            24
#define ZMQ_MULTICAST_HOPS                    25
#define ZMQ_RCVTIMEO                          27
#define ZMQ_SNDTIMEO                          28
#define ZMQ_LAST_ENDPOINT                     32
#define ZMQ_ROUTER_MANDATORY                  33
#define ZMQ_TCP_KEEPALIVE                     34
#define ZMQ_TCP_KEEPALIVE_CNT                 35
#define ZMQ_TCP_KEEPALIVE_IDLE                36
#define ZMQ_TCP_KEEPALIVE_INTVL               37
#define ZMQ_IMMEDIATE                         39
#define ZMQ_XPUB_VERBOSE                      40
#define ZMQ_ROUTER_RAW                        41
#define ZMQ_IPV6                              42
#define ZMQ_MECHANISM                         43
#define ZMQ_PLAIN_SERVER                      44
#define ZMQ_PLAIN_USERNAME                    45
#define ZMQ_PLAIN_PASSWORD                    46
#define ZMQ_CURVE_SERVER                      47
#define ZMQ_CURVE_PUBLICKEY                   48
#define ZMQ_CURVE_SECRETKEY                   49
#define ZMQ_CURVE_SERVERKEY                   50
#define ZMQ_PROBE_ROUTER                      51
#define ZMQ_REQ_CORRELATE                     52
#define ZMQ_REQ_RELAXED                       53
#define ZMQ_CONFLATE                          54
#define ZMQ_ZAP_DOMAIN                        55
#define ZMQ_ROUTER_HANDOVER                   56
#define ZMQ_TOS                               57
#define ZMQ_CONNECT_ROUTING_ID                61
#define ZMQ_GSSAPI_SERVER                     62
#define ZMQ_GSSAPI_PRINCIPAL                  63
#define ZMQ_GSSAPI_SERVICE_PRINCIPAL          64
#define ZMQ_GSSAPI_PLAINTEXT                  65
#define ZMQ_HANDSHAKE_IVL                     66
#define ZMQ_SOCKS_PROXY                       68
#define ZMQ_XPUB_NODROP                       69
#define ZMQ_BLOCKY                            70
#define ZMQ_XPUB_MANUAL                       71
#define ZMQ_XPUB_WELCOME_MSG                  72
#define ZMQ_STREAM_NOTIFY                     73
#define ZMQ_INVERT_MATCHING                   74
#define ZMQ_HEARTBEAT_IVL                     75
#define ZMQ_HEARTBEAT_TTL                     76
#define ZMQ_HEARTBEAT_TIMEOUT                 77
#define ZMQ_XPUB_VERBOSER                     78
#define ZMQ_CONNECT_TIMEOUT                   79
#define ZMQ_TCP_MAXRT                         80
#define ZMQ_THREAD_SAFE                       81
#define ZMQ_MULTICAST_MAXTPDU                 84
#define ZMQ_VMCI_BUFFER_SIZE                  85
#define ZMQ_VMCI_BUFFER_MIN_SIZE              86
#define ZMQ_VMCI_BUFFER_MAX_SIZE              87
#define ZMQ_VMCI_CONNECT_TIMEOUT              88
#define ZMQ_USE_FD                            89
#define ZMQ_GSSAPI_PRINCIPAL_NAMETYPE         90
#define ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE 91
#define ZMQ_BINDTODEVICE                      92

/* Flags of the send and receive functions. */
#define ZMQ_DONTWAIT 1
#define ZMQ_SNDMORE  2

/* Values of ZMQ_MECHANISM. */
#define ZMQ_NULL   0
#define ZMQ_PLAIN  1
#define ZMQ_CURVE  2
#define ZMQ_GSSAPI 3

/* Values of the ZMQ_GSSAPI_..._NAMETYPE options. */
#define ZMQ_GSSAPI_NT_HOSTBASED      0
#define ZMQ_GSSAPI_NT_USER_NAME      1
#define ZMQ_GSSAPI_NT_KRB5_PRINCIPAL 2

/* Longest group name of RADIO and DISH, without the terminator. */
#define ZMQ_GROUP_MAX_LENGTH 255

/* Deprecated options, and older names of options, flags and socket types. */
#define ZMQ_IPV4ONLY                31
#define ZMQ_TCP_ACCEPT_FILTER       38
#define ZMQ_IPC_FILTER_PID          58
#define ZMQ_IPC_FILTER_UID          59
#define ZMQ_IPC_FILTER_GID          60
#define ZMQ_XREQ                    ZMQ_DEALER
#define ZMQ_XREP                    ZMQ_ROUTER
#define ZMQ_IDENTITY                ZMQ_ROUTING_ID
#define ZMQ_CONNECT_RID             ZMQ_CONNECT_ROUTING_ID
#define ZMQ_DELAY_ATTACH_ON_CONNECT ZMQ_IMMEDIATE
#define ZMQ_NOBLOCK                 ZMQ_DONTWAIT
#define ZMQ_FAIL_UNROUTABLE         ZMQ_ROUTER_MANDATORY
#define ZMQ_ROUTER_BEHAVIOR         ZMQ_ROUTER_MANDATORY

ZMQ_EXPORT void *zmq_socket(void *context, int type);
ZMQ_EXPORT int zmq_close(void *s);
ZMQ_EXPORT int zmq_setsockopt(void *s, int option, const void *optval, size_t optvallen);
ZMQ_EXPORT int zmq_getsockopt(void *s, int option, void *optval, size_t *optvallen);
ZMQ_EXPORT int zmq_bind(void *s, const char *addr);
ZMQ_EXPORT int zmq_connect(void *s, const char *addr);
ZMQ_EXPORT int zmq_unbind(void *s, const char *addr);
ZMQ_EXPORT int zmq_disconnect(void *s, const char *addr);
ZMQ_EXPORT int zmq_send(void *s, const void *buf, size_t len, int flags);
ZMQ_EXPORT int zmq_send_const(void *s, const void *buf, size_t len, int flags);
ZMQ_EXPORT int zmq_recv(void *s, void *buf, size_t len, int flags);

/* Several parts in one call; the caller sees struct iovec in <sys/uio.h>. */
struct iovec;
ZMQ_EXPORT int zmq_sendiov(void *s, struct iovec *iov, size_t count, int flags);
ZMQ_EXPORT int zmq_recviov(void *s, struct iovec *iov, size_t *count, int flags);

/* Deprecated: use zmq_msg_send and zmq_msg_recv. */
ZMQ_EXPORT int zmq_sendmsg(void *s, zmq_msg_t *msg, int flags);
ZMQ_EXPORT int zmq_recvmsg(void *s, zmq_msg_t *msg, int flags);

/*
 * Monitoring: events of a socket's connections, sent to an inproc PAIR socket.
 */

/* A first frame holds the event (uint16_t) and its value (uint32_t), a second one the endpoint. */
#define ZMQ_EVENT_CONNECTED                  0x1
#define ZMQ_EVENT_CONNECT_DELAYED            0x2
#define ZMQ_EVENT_CONNECT_RETRIED            0x4
#define ZMQ_EVENT_LISTENING                  0x8
#define ZMQ_EVENT_BIND_FAILED                0x10
#define ZMQ_EVENT_ACCEPTED                   0x20
#define ZMQ_EVENT_ACCEPT_FAILED              0x40
#define ZMQ_EVENT_CLOSED                     0x80
#define ZMQ_EVENT_CLOSE_FAILED               0x100
#define ZMQ_EVENT_DISCONNECTED               0x200
#define ZMQ_EVENT_MONITOR_STOPPED            0x400
#define ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL 0x800
#define ZMQ_EVENT_HANDSHAKE_SUCCEEDED        0x1000
#define ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL  0x2000
#define ZMQ_EVENT_HANDSHAKE_FAILED_AUTH      0x4000
#define ZMQ_EVENT_ALL                        0xffff

/* Values of ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL. */
#define ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED                   0x10000000
#define ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND            0x10000001
#define ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE              0x10000002
#define ZMQ_PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE                  0x10000003
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED 0x10000011
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE     0x10000012
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO       0x10000013
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE    0x10000014
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR       0x10000015
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY       0x10000016
#define ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME     0x10000017
#define ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_METADATA              0x10000018
#define ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC                 0x11000001
#define ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH            0x11000002
#define ZMQ_PROTOCOL_ERROR_ZAP_UNSPECIFIED                    0x20000000
#define ZMQ_PROTOCOL_ERROR_ZAP_MALFORMED_REPLY                0x20000001
#define ZMQ_PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID                 0x20000002
#define ZMQ_PROTOCOL_ERROR_ZAP_BAD_VERSION                    0x20000003
#define ZMQ_PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE            0x20000004
#define ZMQ_PROTOCOL_ERROR_ZAP_INVALID_METADATA               0x20000005
#define ZMQ_PROTOCOL_ERROR_WS_UNSPECIFIED                     0x30000000

/*
 * Tautline only: TLS errors of wss and tls+tcp, as values of ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL. The number of the peer's alert
 * (RFC 8446, 6) is added to the last one: ..._REFUSED + 48 means that the peer does not trust our certificate.
 */
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_UNSPECIFIED     0x54413000
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_NOT_TLS         0x54413001
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_INCOMPATIBLE    0x54413002
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_UNTRUSTED       0x54413003
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_EXPIRED         0x54413004
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_OTHER_NAME      0x54413005
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_BAD_CERTIFICATE 0x54413006
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_NO_CERTIFICATE  0x54413007
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_UNASKED         0x54413008
#define ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_REFUSED         0x54413100

ZMQ_EXPORT int zmq_socket_monitor(void *s, const char *addr, int events);

/*
 * Waiting for several sockets and file descriptors.
 */

/* The operating system's type for a socket. */
#if defined _WIN32
typedef SOCKET zmq_fd_t;
#else
typedef int zmq_fd_t;
#endif

/* One thing to wait for: `socket`, or `fd` when `socket` is NULL. */
typedef struct zmq_pollitem_t
{
    void *socket;
    zmq_fd_t fd;
    short events;
    short revents;
} zmq_pollitem_t;

#define ZMQ_POLLIN         1
#define ZMQ_POLLOUT        2
#define ZMQ_POLLERR        4
#define ZMQ_POLLPRI        8
#define ZMQ_POLLITEMS_DFLT 16

ZMQ_EXPORT int zmq_poll(zmq_pollitem_t *items, int nitems, long timeout);

/*
 * Proxies.
 */

ZMQ_EXPORT int zmq_proxy(void *frontend, void *backend, void *capture);
ZMQ_EXPORT int zmq_proxy_steerable(void *frontend, void *backend, void *capture, void *control);

/* Deprecated: use zmq_proxy. */
#define ZMQ_STREAMER  1
#define ZMQ_FORWARDER 2
#define ZMQ_QUEUE     3
ZMQ_EXPORT int zmq_device(int type, void *frontend, void *backend);

/*
 * Keys: Z85 text (RFC 32) and CURVE key pairs.
 */

ZMQ_EXPORT char *zmq_z85_encode(char *dest, const uint8_t *data, size_t size);
ZMQ_EXPORT uint8_t *zmq_z85_decode(uint8_t *dest, const char *string);
ZMQ_EXPORT int zmq_curve_keypair(char *z85_public_key, char *z85_secret_key);
ZMQ_EXPORT int zmq_curve_public(char *z85_public_key, const char *z85_secret_key);

/*
 * Atomic counters.
 */

ZMQ_EXPORT void *zmq_atomic_counter_new(void);
ZMQ_EXPORT void zmq_atomic_counter_set(void *counter, int value);
ZMQ_EXPORT int zmq_atomic_counter_inc(void *counter);
ZMQ_EXPORT int zmq_atomic_counter_dec(void *counter);
ZMQ_EXPORT int zmq_atomic_counter_value(void *counter);
ZMQ_EXPORT void zmq_atomic_counter_destroy(void **counter_p);

/*
 * Timers: callbacks run by zmq_timers_execute on the caller's thread. Intervals are in milliseconds.
 */

typedef void (zmq_timer_fn)(int timer_id, void *arg);

ZMQ_EXPORT void *zmq_timers_new(void);
ZMQ_EXPORT int zmq_timers_destroy(void **timers_p);
ZMQ_EXPORT int zmq_timers_add(void *timers, size_t interval, zmq_timer_fn handler, void *arg);
ZMQ_EXPORT int zmq_timers_cancel(void *timers, int timer_id);
ZMQ_EXPORT int zmq_timers_set_interval(void *timers, int timer_id, size_t interval);
ZMQ_EXPORT int zmq_timers_reset(void *timers, int timer_id);
ZMQ_EXPORT long zmq_timers_timeout(void *timers);
ZMQ_EXPORT int zmq_timers_execute(void *timers);

/*
 * Stopwatch (microseconds), sleep (seconds) and threads, for portable test programs.
 */

typedef void (zmq_thread_fn)(void *arg);

ZMQ_EXPORT void *zmq_stopwatch_start(void);
ZMQ_EXPORT unsigned long zmq_stopwatch_intermediate(void *watch);
ZMQ_EXPORT unsigned long zmq_stopwatch_stop(void *watch);
ZMQ_EXPORT void zmq_sleep(int seconds);
ZMQ_EXPORT void *zmq_threadstart(zmq_thread_fn *func, void *arg);
ZMQ_EXPORT void zmq_threadclose(void *thread);

/*
 * Tautline only: the version of Tautline in the format of ZMQ_MAKE_VERSION, an option for zmq_ctx_get. If the buffer is larger
 * than an int,
 * zmq_ctx_get_ext writes the version as text. libzmq returns EINVAL. zmq_has("tautline") returns 1 if the library is Tautline.
 */
#define ZMQ_TAUTLINE_VERSION 0x54410002

/*
 * Tautline only: 1 exposes the context, and all sockets created later, to tools that observe the process from outside. An int
 * for zmq_ctx_set, before the first socket. The tools see sockets, endpoints, peers, counters and events in a file of the same
 * user, but
 * never messages, keys or passwords. TAUT_OBSERVE=1 in the environment does the same for all contexts. If the file cannot be
 * created,
 * zmq_ctx_set fails with the system's error; on Windows it fails with ENOTSUP. zmq_ctx_get returns the setting. libzmq returns
 * EINVAL.
 */
#define ZMQ_TAUTLINE_OBSERVE 0x54410004

/*
 * Tautline only: applies a policy to all later binds and connects of the context's sockets. A string for zmq_ctx_set_ext:
 * audit, loopback or strict (built in), or the path of a file (docs/operate/policy.md). TAUT_POLICY in the environment does the
 * same for
 * all contexts. Returns EINVAL if the policy does not exist or is invalid (the fault is printed on standard error), or if the
 * context
 * already has one. zmq_bind and zmq_connect fail with EACCES if a rule refuses them. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_POLICY 0x54410008

/*
 * Tautline only: a names file that resolves names (name://orders in place of an endpoint) in later binds and connects. A string for
 * zmq_ctx_set_ext: the path of the file (docs/use/names.md). TAUT_NAMES in the environment does the same for all contexts.
 * Returns EINVAL if
 * the file is unreadable or invalid (the fault is printed on standard error), or if the context already has one. zmq_bind and
 * zmq_connect
 * return EPROTONOSUPPORT without a names file, and EINVAL if the name is malformed or the file of TAUT_NAMES is invalid.
 * zmq_bind returns
 * ENOTSUP if the file names no folder. libzmq and libraries built without names return EINVAL. zmq_has("name") returns 1 if
 * names exist.
 */
#define ZMQ_TAUTLINE_NAMES 0x54410009

/*
 * Tautline only: maximum memory in bytes for the subscriptions (PUB, XPUB) or groups (RADIO) of one peer. A peer that exceeds it is
 * disconnected. An int64_t for zmq_setsockopt and zmq_getsockopt. -1 is unlimited; 0 and values below -1 are EINVAL. The
 * default is 512 MiB:
 * one to four million topics. A raised limit applies to later binds and connects, a lowered limit to all. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS 0x54410010

/*
 * Tautline only: 1, the default, lets the socket receive large bodies over ipc without a copy. The body then lies in memory that
 * the sending process shares, and a faulty process of this user could change it while it is read. 0: bodies are copied. An int
 * for zmq_setsockopt and zmq_getsockopt, before zmq_bind and zmq_connect. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_LOANS 0x54410011

/*
 * Tautline only: a property for zmq_msg_get. 1 if the body was received without a copy, and lies in memory that the sending process
 * shares; otherwise 0. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_IS_LOAN 0x54410012

/*
 * Tautline only: a property for zmq_msg_set. 1 moves the body to memory that other processes can read in place, so that ipc peers of
 * this user receive it without a copy. zmq_msg_init_size does the same for a large body once such a peer is connected. Before
 * that, set the property first and write the body afterwards. -1 with ENOTSUP if loans are off or the body is too short, ENOMEM if
 * the memory for loans is exhausted. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_LOAN 0x54410013

/*
 * Tautline only: counters of a socket, an option for zmq_getsockopt. It needs no monitor and adds no work per message. libzmq
 * returns EINVAL. The length is set to the number of bytes written: later versions may have more counters, earlier ones fewer.
 */
#define ZMQ_TAUTLINE_STATISTICS 0x54410001

typedef struct zmq_tautline_statistics_t
{
    uint64_t messages_sent;     /* messages put into the peers' queues */
    uint64_t bytes_sent;        /* including frame headers */
    uint64_t messages_received; /* messages received by the program */
    uint64_t bytes_received;
    uint64_t dropped_full;      /* messages dropped because a peer was at its high-water mark (PUB, XPUB, RADIO, ROUTER) */
    uint64_t dropped_unroutable; /* messages dropped because no peer has that routing id (ROUTER) */
    uint64_t lost;              /* messages that were queued for peers that are gone for good */
    uint64_t queued_out;        /* messages that wait to be sent now */
    uint64_t queued_in;         /* messages that wait for the program now */
    uint64_t peers;             /* peers that are connected or being connected to now */
    uint64_t reconnects;        /* reconnects of peers */
    uint64_t failed_connects;   /* failed connect attempts */
    uint64_t failed_handshakes; /* handshakes that the peer aborted or that were refused */
    uint64_t topics_refused; /* subscriptions and messages of peers that may not use the topic (PUB, XPUB, SUB, XSUB) */
} zmq_tautline_statistics_t;

/*
 * Tautline only: a single counter. ZMQ_TAUTLINE_STATISTIC + N is the counter at index N (from 0) of the structure: a uint64_t
 * for zmq_getsockopt. A binding that reads unknown options as an int (pyzmq) gets the lower 31 bits, and with
 * ZMQ_TAUTLINE_STATISTIC_HIGH + N the upper bits. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_STATISTIC      0x54411000
#define ZMQ_TAUTLINE_STATISTIC_HIGH 0x54412000

/*
 * Tautline only: the peers of a socket, an option for zmq_getsockopt: an array of zmq_tautline_peer_t, as many as the buffer
 * holds. The
 * length is set to the number of bytes written. ZMQ_TAUTLINE_STATISTICS has the number of peers. It adds no work per message.
 * libzmq
 * returns EINVAL. Peers that are still being connected to are included. Texts end with a NUL and are truncated if they are too
 * long.
 */
#define ZMQ_TAUTLINE_PEERS 0x54410005

#define ZMQ_TAUTLINE_PEER_CONNECTING 0 /* not connected yet, or lost and possibly reconnecting */
#define ZMQ_TAUTLINE_PEER_CONNECTED  1
#define ZMQ_TAUTLINE_PEER_GONE       2 /* gone for good; its messages may still be received */

#define ZMQ_TAUTLINE_PEER_CONNECTED_HERE 1 /* this socket connected to the peer; otherwise the peer connected to this socket */
#define ZMQ_TAUTLINE_PEER_SHARED_MEMORY  2 /* bytes go through shared memory */

typedef struct zmq_tautline_peer_t
{
    uint64_t id;                /* identifies the peer within the socket while the peer exists */
    uint64_t since;             /* start of the current connection, microseconds since 1970; 0 before the first one, and for inproc */
    uint64_t messages_sent;     /* messages put into the peer's queue */
    uint64_t bytes_sent;        /* including frame headers */
    uint64_t messages_received; /* messages received by the program */
    uint64_t bytes_received;
    uint64_t queued_out;        /* messages that wait to be sent now */
    uint64_t queued_out_bytes;
    uint64_t queued_in;         /* messages that wait for the program now */
    uint64_t queued_in_bytes;
    uint64_t dropped;           /* messages dropped because the peer was at its high-water mark */
    uint64_t full;              /* number of messages that found the peer's queue full */
    uint64_t reconnects;        /* number of reconnects */
    uint64_t round_trip;        /* of the last heartbeat, microseconds; 0 without heartbeats */
    uint32_t state;             /* ZMQ_TAUTLINE_PEER_CONNECTING, ... */
    uint32_t flags;             /* ZMQ_TAUTLINE_PEER_CONNECTED_HERE, ... */
    uint32_t routing_id_size;
    uint32_t reserved;
    uint8_t routing_id[256];    /* routing id by which ROUTER and other sockets know the peer */
    char address[128];          /* the peer's end of the connection; empty for inproc */
    char local[128];            /* our end of the connection */
    char endpoint[256];         /* endpoint that was bound or connected on this side */
    char user_id[192];          /* user id that the authentication handler assigned */
    char host[64];              /* Peer-Address of the peer's messages */
    char mechanism[16];         /* NULL, PLAIN, CURVE; empty for inproc */
} zmq_tautline_peer_t;

/*
 * Tautline only: waits until this many peers are connected, or (PUB, XPUB) until the peers have subscribed to this many
 * different topics.
 * An int for zmq_setsockopt, which returns when the condition is true, or returns -1 with EAGAIN after ZMQ_SNDTIMEO. During the
 * wait, other
 * threads that use a thread-safe socket block. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_WAIT_PEERS         0x54410006
#define ZMQ_TAUTLINE_WAIT_SUBSCRIPTIONS 0x54410007

/*
 * Tautline only: maximum bytes of a message from a peer, counting all parts with their headers (2 or 9 bytes each). A peer that
 * sends more
 * is disconnected. An int64_t for zmq_setsockopt and zmq_getsockopt, before zmq_bind and zmq_connect. With the default of -1,
 * the limit is
 * 1024 times ZMQ_MAXMSGSIZE, but at least 64 MiB; without ZMQ_MAXMSGSIZE there is no limit. libzmq returns EINVAL.
 */
#define ZMQ_TAUTLINE_MAXMULTIPARTSIZE 0x54410003

/*
 * Draft interface.
 */
#ifdef ZMQ_BUILD_DRAFT_API

/* Socket types. */
#define ZMQ_SERVER  12
#define ZMQ_CLIENT  13
#define ZMQ_RADIO   14
#define ZMQ_DISH    15
#define ZMQ_GATHER  16
#define ZMQ_SCATTER 17
#define ZMQ_DGRAM   18
#define ZMQ_PEER    19
#define ZMQ_CHANNEL 20

/* Socket options. */
#define ZMQ_ZAP_ENFORCE_DOMAIN       93
#define ZMQ_LOOPBACK_FASTPATH        94
#define ZMQ_METADATA                 95
#define ZMQ_MULTICAST_LOOP           96
#define ZMQ_ROUTER_NOTIFY            97
#define ZMQ_XPUB_MANUAL_LAST_VALUE   98
#define ZMQ_SOCKS_USERNAME           99
#define ZMQ_SOCKS_PASSWORD           100
#define ZMQ_IN_BATCH_SIZE            101
#define ZMQ_OUT_BATCH_SIZE           102
#define ZMQ_WSS_KEY_PEM              103
#define ZMQ_WSS_CERT_PEM             104
#define ZMQ_WSS_TRUST_PEM            105
#define ZMQ_WSS_HOSTNAME             106
#define ZMQ_WSS_TRUST_SYSTEM         107
#define ZMQ_ONLY_FIRST_SUBSCRIBE     108
#define ZMQ_RECONNECT_STOP           109
#define ZMQ_HELLO_MSG                110
#define ZMQ_DISCONNECT_MSG           111
#define ZMQ_PRIORITY                 112
#define ZMQ_BUSY_POLL                113
#define ZMQ_HICCUP_MSG               114
#define ZMQ_XSUB_VERBOSE_UNSUBSCRIBE 115
#define ZMQ_TOPICS_COUNT             116
#define ZMQ_NORM_MODE                117
#define ZMQ_NORM_UNICAST_NACK        118
#define ZMQ_NORM_BUFFER_SIZE         119
#define ZMQ_NORM_SEGMENT_SIZE        120
#define ZMQ_NORM_BLOCK_SIZE          121
#define ZMQ_NORM_NUM_PARITY          122
#define ZMQ_NORM_NUM_AUTOPARITY      123
#define ZMQ_NORM_PUSH                124

/* Context options. */
#define ZMQ_ZERO_COPY_RECV 10

/* Bits of ZMQ_RECONNECT_STOP. */
#define ZMQ_RECONNECT_STOP_CONN_REFUSED     1
#define ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED 2
#define ZMQ_RECONNECT_STOP_AFTER_DISCONNECT 4

/* Bits of ZMQ_ROUTER_NOTIFY. */
#define ZMQ_NOTIFY_CONNECT    1
#define ZMQ_NOTIFY_DISCONNECT 2

/* Values of ZMQ_NORM_MODE. */
#define ZMQ_NORM_FIXED       0
#define ZMQ_NORM_CC          1
#define ZMQ_NORM_CCL         2
#define ZMQ_NORM_CCE         3
#define ZMQ_NORM_CCE_ECNONLY 4

/* Names for zmq_msg_gets. */
#define ZMQ_MSG_PROPERTY_ROUTING_ID   "Routing-Id"
#define ZMQ_MSG_PROPERTY_SOCKET_TYPE  "Socket-Type"
#define ZMQ_MSG_PROPERTY_USER_ID      "User-Id"
#define ZMQ_MSG_PROPERTY_PEER_ADDRESS "Peer-Address"

/* Monitor events of version 2. */
#define ZMQ_EVENT_PIPES_STATS           0x10000
#define ZMQ_CURRENT_EVENT_VERSION       1
#define ZMQ_CURRENT_EVENT_VERSION_DRAFT 2
#define ZMQ_EVENT_ALL_V1                ZMQ_EVENT_ALL
#define ZMQ_EVENT_ALL_V2                (ZMQ_EVENT_ALL_V1 | ZMQ_EVENT_PIPES_STATS)

ZMQ_EXPORT int zmq_ctx_set_ext(void *context, int option, const void *optval, size_t optvallen);
ZMQ_EXPORT int zmq_ctx_get_ext(void *context, int option, void *optval, size_t *optvallen);

ZMQ_EXPORT int zmq_join(void *s, const char *group);
ZMQ_EXPORT int zmq_leave(void *s, const char *group);
ZMQ_EXPORT uint32_t zmq_connect_peer(void *s, const char *addr);
ZMQ_EXPORT int zmq_disconnect_peer(void *s, uint32_t routing_id);
ZMQ_EXPORT int zmq_socket_get_peer_state(void *s, const void *routing_id, size_t routing_id_size);
/*
 * Tautline only, for event_version 3: a peer has subscribed or published to a topic that it may not use
 * (docs/operate/policy-users.md).
 * Sent for the first such topic of a connection, with the value EACCES. The event names the peer; its reason names the topic
 * and the rule.
 */
#define ZMQ_TAUTLINE_EVENT_TOPIC_REFUSED 0x10000000

/*
 * Tautline only, for event_version 3: an event of a connected name (docs/use/names.md). Value 0: the name now has other
 * endpoints, or the
 * resolver is reachable again. EHOSTUNREACH: the resolver is unreachable; existing connections stay open. The reason has details.
 */
#define ZMQ_TAUTLINE_EVENT_NAME 0x20000000

/*
 * Tautline only: event_version 3. Like version 2 (number, count of values, the values, local and remote endpoint), followed by
 * routing id,
 * address and user id of the peer (in HANDSHAKE_SUCCEEDED and DISCONNECTED, otherwise empty) and the reason in words. If a
 * handshake fails
 * after the peer has presented its credentials, the event also has the mechanism, the key or user name, and the handler's
 * answer. The
 * routing id is the one set by the peer, up to its first zero byte. libzmq returns EINVAL.
 */
ZMQ_EXPORT int zmq_socket_monitor_versioned(void *s, const char *addr, uint64_t events,
                                            int event_version, int type);
ZMQ_EXPORT int zmq_socket_monitor_pipes_stats(void *s);

ZMQ_EXPORT int zmq_msg_init_buffer(zmq_msg_t *msg, const void *buf, size_t size);
ZMQ_EXPORT int zmq_msg_set_routing_id(zmq_msg_t *msg, uint32_t routing_id);
ZMQ_EXPORT uint32_t zmq_msg_routing_id(zmq_msg_t *msg);
ZMQ_EXPORT int zmq_msg_set_group(zmq_msg_t *msg, const char *group);
ZMQ_EXPORT const char *zmq_msg_group(zmq_msg_t *msg);

/* zmq_poll with a signal mask. Windows, and glibc when asked for plain ISO C, have no sigset_t. */
#if defined _WIN32 || (defined __GLIBC__ && !defined __USE_POSIX)
ZMQ_EXPORT int zmq_ppoll(zmq_pollitem_t *items, int nitems, long timeout, const void *sigmask);
#else
ZMQ_EXPORT int zmq_ppoll(zmq_pollitem_t *items, int nitems, long timeout, const sigset_t *sigmask);
#endif

/* Pollers: a registered set of sockets and file descriptors. */
#define ZMQ_HAVE_POLLER

typedef struct zmq_poller_event_t
{
    void *socket;
    zmq_fd_t fd;
    void *user_data;
    short events;
} zmq_poller_event_t;

ZMQ_EXPORT void *zmq_poller_new(void);
ZMQ_EXPORT int zmq_poller_destroy(void **poller_p);
ZMQ_EXPORT int zmq_poller_size(void *poller);
ZMQ_EXPORT int zmq_poller_fd(void *poller, zmq_fd_t *fd);
ZMQ_EXPORT int zmq_poller_add(void *poller, void *s, void *user_data, short events);
ZMQ_EXPORT int zmq_poller_modify(void *poller, void *s, short events);
ZMQ_EXPORT int zmq_poller_remove(void *poller, void *s);
ZMQ_EXPORT int zmq_poller_add_fd(void *poller, zmq_fd_t fd, void *user_data, short events);
ZMQ_EXPORT int zmq_poller_modify_fd(void *poller, zmq_fd_t fd, short events);
ZMQ_EXPORT int zmq_poller_remove_fd(void *poller, zmq_fd_t fd);
ZMQ_EXPORT int zmq_poller_wait(void *poller, zmq_poller_event_t *event, long timeout);
ZMQ_EXPORT int zmq_poller_wait_all(void *poller, zmq_poller_event_t *events, int n_events,
                                   long timeout);

#endif /* ZMQ_BUILD_DRAFT_API */

#ifdef __cplusplus
}
#endif

#endif /* __ZMQ_H_INCLUDED__ */
