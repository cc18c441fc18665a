/*
 * Lets the compiler check all constants, layouts and prototypes of the ZeroMQ 4.3 interface in zmq.h.
 * run.sh compiles it in all dialects of C and C++, with and without the draft interface. The program
 * never runs.
 */
#include "zmq.h"
#include "zmq_utils.h"

/* An array of negative size is an error in all dialects. The name of the array names the fault. */
#define CHECK(name, condition) extern char check_##name[(condition) ? 1 : -1]
#define CHECK_VALUE(name, value) extern char check_##name[((name) == (value)) ? 1 : -1]
#define CHECK_OFFSET(type, field, value) CHECK(type##_##field, offsetof(type, field) == (value))


/* Socket types. */
CHECK_VALUE(ZMQ_PAIR, 0);
CHECK_VALUE(ZMQ_PUB, 1);
CHECK_VALUE(ZMQ_SUB, 2);
CHECK_VALUE(ZMQ_REQ, 3);
CHECK_VALUE(ZMQ_REP, 4);
CHECK_VALUE(ZMQ_DEALER, 5);
CHECK_VALUE(ZMQ_ROUTER, 6);
CHECK_VALUE(ZMQ_PULL, 7);
CHECK_VALUE(ZMQ_PUSH, 8);
CHECK_VALUE(ZMQ_XPUB, 9);
CHECK_VALUE(ZMQ_XSUB, 10);
CHECK_VALUE(ZMQ_STREAM, 11);

/* Socket options. */
CHECK_VALUE(ZMQ_AFFINITY, 4);
CHECK_VALUE(ZMQ_ROUTING_ID, 5);
CHECK_VALUE(ZMQ_SUBSCRIBE, 6);
CHECK_VALUE(ZMQ_UNSUBSCRIBE, 7);
CHECK_VALUE(ZMQ_RATE, 8);
CHECK_VALUE(ZMQ_RECOVERY_IVL, 9);
CHECK_VALUE(ZMQ_SNDBUF, 11);
CHECK_VALUE(ZMQ_RCVBUF, 12);
CHECK_VALUE(ZMQ_RCVMORE, 13);
CHECK_VALUE(ZMQ_FD, 14);
CHECK_VALUE(ZMQ_EVENTS, 15);
CHECK_VALUE(ZMQ_TYPE, 16);
CHECK_VALUE(ZMQ_LINGER, 17);
CHECK_VALUE(ZMQ_RECONNECT_IVL, 18);
CHECK_VALUE(ZMQ_BACKLOG, 19);
CHECK_VALUE(ZMQ_RECONNECT_IVL_MAX, 21);
CHECK_VALUE(ZMQ_MAXMSGSIZE, 22);
CHECK_VALUE(ZMQ_SNDHWM, 23);
CHECK_VALUE(ZMQ_RCVHWM, 24);
CHECK_VALUE(ZMQ_MULTICAST_HOPS, 25);
CHECK_VALUE(ZMQ_RCVTIMEO, 27);
CHECK_VALUE(ZMQ_SNDTIMEO, 28);
CHECK_VALUE(ZMQ_LAST_ENDPOINT, 32);
CHECK_VALUE(ZMQ_ROUTER_MANDATORY, 33);
CHECK_VALUE(ZMQ_TCP_KEEPALIVE, 34);
CHECK_VALUE(ZMQ_TCP_KEEPALIVE_CNT, 35);
CHECK_VALUE(ZMQ_TCP_KEEPALIVE_IDLE, 36);
CHECK_VALUE(ZMQ_TCP_KEEPALIVE_INTVL, 37);
CHECK_VALUE(ZMQ_IMMEDIATE, 39);
CHECK_VALUE(ZMQ_XPUB_VERBOSE, 40);
CHECK_VALUE(ZMQ_ROUTER_RAW, 41);
CHECK_VALUE(ZMQ_IPV6, 42);
CHECK_VALUE(ZMQ_MECHANISM, 43);
CHECK_VALUE(ZMQ_PLAIN_SERVER, 44);
CHECK_VALUE(ZMQ_PLAIN_USERNAME, 45);
CHECK_VALUE(ZMQ_PLAIN_PASSWORD, 46);
CHECK_VALUE(ZMQ_CURVE_SERVER, 47);
CHECK_VALUE(ZMQ_CURVE_PUBLICKEY, 48);
CHECK_VALUE(ZMQ_CURVE_SECRETKEY, 49);
CHECK_VALUE(ZMQ_CURVE_SERVERKEY, 50);
CHECK_VALUE(ZMQ_PROBE_ROUTER, 51);
CHECK_VALUE(ZMQ_REQ_CORRELATE, 52);
CHECK_VALUE(ZMQ_REQ_RELAXED, 53);
CHECK_VALUE(ZMQ_CONFLATE, 54);
CHECK_VALUE(ZMQ_ZAP_DOMAIN, 55);
CHECK_VALUE(ZMQ_ROUTER_HANDOVER, 56);
CHECK_VALUE(ZMQ_TOS, 57);
CHECK_VALUE(ZMQ_CONNECT_ROUTING_ID, 61);
CHECK_VALUE(ZMQ_GSSAPI_SERVER, 62);
CHECK_VALUE(ZMQ_GSSAPI_PRINCIPAL, 63);
CHECK_VALUE(ZMQ_GSSAPI_SERVICE_PRINCIPAL, 64);
CHECK_VALUE(ZMQ_GSSAPI_PLAINTEXT, 65);
CHECK_VALUE(ZMQ_HANDSHAKE_IVL, 66);
CHECK_VALUE(ZMQ_SOCKS_PROXY, 68);
CHECK_VALUE(ZMQ_XPUB_NODROP, 69);
CHECK_VALUE(ZMQ_BLOCKY, 70);
CHECK_VALUE(ZMQ_XPUB_MANUAL, 71);
CHECK_VALUE(ZMQ_XPUB_WELCOME_MSG, 72);
CHECK_VALUE(ZMQ_STREAM_NOTIFY, 73);
CHECK_VALUE(ZMQ_INVERT_MATCHING, 74);
CHECK_VALUE(ZMQ_HEARTBEAT_IVL, 75);
CHECK_VALUE(ZMQ_HEARTBEAT_TTL, 76);
CHECK_VALUE(ZMQ_HEARTBEAT_TIMEOUT, 77);
CHECK_VALUE(ZMQ_XPUB_VERBOSER, 78);
CHECK_VALUE(ZMQ_CONNECT_TIMEOUT, 79);
CHECK_VALUE(ZMQ_TCP_MAXRT, 80);
CHECK_VALUE(ZMQ_THREAD_SAFE, 81);
CHECK_VALUE(ZMQ_MULTICAST_MAXTPDU, 84);
CHECK_VALUE(ZMQ_VMCI_BUFFER_SIZE, 85);
CHECK_VALUE(ZMQ_VMCI_BUFFER_MIN_SIZE, 86);
CHECK_VALUE(ZMQ_VMCI_BUFFER_MAX_SIZE, 87);
CHECK_VALUE(ZMQ_VMCI_CONNECT_TIMEOUT, 88);
CHECK_VALUE(ZMQ_USE_FD, 89);
CHECK_VALUE(ZMQ_GSSAPI_PRINCIPAL_NAMETYPE, 90);
CHECK_VALUE(ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE, 91);
CHECK_VALUE(ZMQ_BINDTODEVICE, 92);
CHECK_VALUE(ZMQ_TCP_ACCEPT_FILTER, 38);
CHECK_VALUE(ZMQ_IPC_FILTER_PID, 58);
CHECK_VALUE(ZMQ_IPC_FILTER_UID, 59);
CHECK_VALUE(ZMQ_IPC_FILTER_GID, 60);
CHECK_VALUE(ZMQ_IPV4ONLY, 31);

/* Context options. */
CHECK_VALUE(ZMQ_IO_THREADS, 1);
CHECK_VALUE(ZMQ_MAX_SOCKETS, 2);
CHECK_VALUE(ZMQ_SOCKET_LIMIT, 3);
CHECK_VALUE(ZMQ_THREAD_PRIORITY, 3);
CHECK_VALUE(ZMQ_THREAD_SCHED_POLICY, 4);
CHECK_VALUE(ZMQ_MAX_MSGSZ, 5);
CHECK_VALUE(ZMQ_MSG_T_SIZE, 6);
CHECK_VALUE(ZMQ_THREAD_AFFINITY_CPU_ADD, 7);
CHECK_VALUE(ZMQ_THREAD_AFFINITY_CPU_REMOVE, 8);
CHECK_VALUE(ZMQ_THREAD_NAME_PREFIX, 9);

/* Defaults of context options. */
CHECK_VALUE(ZMQ_IO_THREADS_DFLT, 1);
CHECK_VALUE(ZMQ_MAX_SOCKETS_DFLT, 1023);
CHECK_VALUE(ZMQ_THREAD_PRIORITY_DFLT, -1);
CHECK_VALUE(ZMQ_THREAD_SCHED_POLICY_DFLT, -1);

/* Message properties. */
CHECK_VALUE(ZMQ_MORE, 1);
CHECK_VALUE(ZMQ_SHARED, 3);
CHECK_VALUE(ZMQ_SRCFD, 2);

/* Send and receive flags. */
CHECK_VALUE(ZMQ_DONTWAIT, 1);
CHECK_VALUE(ZMQ_SNDMORE, 2);

/* Mechanisms. */
CHECK_VALUE(ZMQ_NULL, 0);
CHECK_VALUE(ZMQ_PLAIN, 1);
CHECK_VALUE(ZMQ_CURVE, 2);
CHECK_VALUE(ZMQ_GSSAPI, 3);

/* GSSAPI name types. */
CHECK_VALUE(ZMQ_GSSAPI_NT_HOSTBASED, 0);
CHECK_VALUE(ZMQ_GSSAPI_NT_USER_NAME, 1);
CHECK_VALUE(ZMQ_GSSAPI_NT_KRB5_PRINCIPAL, 2);

/* Limits. */
CHECK_VALUE(ZMQ_GROUP_MAX_LENGTH, 255);

/* Older names. */
CHECK_VALUE(ZMQ_XREQ, 5);
CHECK_VALUE(ZMQ_XREP, 6);
CHECK_VALUE(ZMQ_IDENTITY, 5);
CHECK_VALUE(ZMQ_CONNECT_RID, 61);
CHECK_VALUE(ZMQ_DELAY_ATTACH_ON_CONNECT, 39);
CHECK_VALUE(ZMQ_NOBLOCK, 1);
CHECK_VALUE(ZMQ_FAIL_UNROUTABLE, 33);
CHECK_VALUE(ZMQ_ROUTER_BEHAVIOR, 33);

/* Monitor events. */
CHECK_VALUE(ZMQ_EVENT_CONNECTED, 0x1);
CHECK_VALUE(ZMQ_EVENT_CONNECT_DELAYED, 0x2);
CHECK_VALUE(ZMQ_EVENT_CONNECT_RETRIED, 0x4);
CHECK_VALUE(ZMQ_EVENT_LISTENING, 0x8);
CHECK_VALUE(ZMQ_EVENT_BIND_FAILED, 0x10);
CHECK_VALUE(ZMQ_EVENT_ACCEPTED, 0x20);
CHECK_VALUE(ZMQ_EVENT_ACCEPT_FAILED, 0x40);
CHECK_VALUE(ZMQ_EVENT_CLOSED, 0x80);
CHECK_VALUE(ZMQ_EVENT_CLOSE_FAILED, 0x100);
CHECK_VALUE(ZMQ_EVENT_DISCONNECTED, 0x200);
CHECK_VALUE(ZMQ_EVENT_MONITOR_STOPPED, 0x400);
CHECK_VALUE(ZMQ_EVENT_ALL, 0xffff);
CHECK_VALUE(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, 0x800);
CHECK_VALUE(ZMQ_EVENT_HANDSHAKE_SUCCEEDED, 0x1000);
CHECK_VALUE(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, 0x2000);
CHECK_VALUE(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, 0x4000);

/* Protocol errors. */
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED, 0x10000000);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND, 0x10000001);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE, 0x10000002);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE, 0x10000003);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED, 0x10000011);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE, 0x10000012);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO, 0x10000013);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE, 0x10000014);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR, 0x10000015);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY, 0x10000016);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME, 0x10000017);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_METADATA, 0x10000018);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC, 0x11000001);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH, 0x11000002);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZAP_UNSPECIFIED, 0x20000000);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZAP_MALFORMED_REPLY, 0x20000001);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID, 0x20000002);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZAP_BAD_VERSION, 0x20000003);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE, 0x20000004);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_ZAP_INVALID_METADATA, 0x20000005);
CHECK_VALUE(ZMQ_PROTOCOL_ERROR_WS_UNSPECIFIED, 0x30000000);

/* Polling. */
CHECK_VALUE(ZMQ_POLLIN, 1);
CHECK_VALUE(ZMQ_POLLOUT, 2);
CHECK_VALUE(ZMQ_POLLERR, 4);
CHECK_VALUE(ZMQ_POLLPRI, 8);
CHECK_VALUE(ZMQ_POLLITEMS_DFLT, 16);

/* Devices. */
CHECK_VALUE(ZMQ_STREAMER, 1);
CHECK_VALUE(ZMQ_FORWARDER, 2);
CHECK_VALUE(ZMQ_QUEUE, 3);

/* Features. */
CHECK_VALUE(ZMQ_HAS_CAPABILITIES, 1);

/* Version. */
CHECK_VALUE(ZMQ_VERSION_MAJOR, 4);
CHECK_VALUE(ZMQ_VERSION_MINOR, 3);
CHECK_VALUE(ZMQ_VERSION_PATCH, 5);
CHECK_VALUE(ZMQ_VERSION, 40305);
CHECK(ZMQ_MAKE_VERSION, ZMQ_MAKE_VERSION(1, 2, 3) == 10203);
#ifndef ZMQ_DEFINED_STDINT
#error "ZMQ_DEFINED_STDINT is missing"
#endif
#ifndef ZMQ_HAVE_TIMERS
#error "ZMQ_HAVE_TIMERS is missing"
#endif

/* Errors that only ZeroMQ has. */
CHECK_VALUE(ZMQ_HAUSNUMERO, 156384712);
CHECK_VALUE(EFSM, 156384763);
CHECK_VALUE(ENOCOMPATPROTO, 156384764);
CHECK_VALUE(ETERM, 156384765);
CHECK_VALUE(EMTHREAD, 156384766);

/* Errors with the numbers of the platform. */
#ifdef __linux__
CHECK_VALUE(ENOTSUP, 95);
CHECK_VALUE(EPROTONOSUPPORT, 93);
CHECK_VALUE(ENOBUFS, 105);
CHECK_VALUE(ENETDOWN, 100);
CHECK_VALUE(EADDRINUSE, 98);
CHECK_VALUE(EADDRNOTAVAIL, 99);
CHECK_VALUE(ECONNREFUSED, 111);
CHECK_VALUE(EINPROGRESS, 115);
CHECK_VALUE(ENOTSOCK, 88);
CHECK_VALUE(EMSGSIZE, 90);
CHECK_VALUE(EAFNOSUPPORT, 97);
CHECK_VALUE(ENETUNREACH, 101);
CHECK_VALUE(ECONNABORTED, 103);
CHECK_VALUE(ECONNRESET, 104);
CHECK_VALUE(ENOTCONN, 107);
CHECK_VALUE(ETIMEDOUT, 110);
CHECK_VALUE(EHOSTUNREACH, 113);
CHECK_VALUE(ENETRESET, 102);
#endif

/* Layouts. */
struct check_msg_alignment
{
    char before;
    zmq_msg_t msg;
};
CHECK(zmq_msg_t, sizeof(zmq_msg_t) == 64);
CHECK(zmq_msg_t_alignment, offsetof(struct check_msg_alignment, msg) == sizeof(void *));
CHECK_OFFSET(zmq_msg_t, _, 0);
CHECK(zmq_fd_t, sizeof(zmq_fd_t) == sizeof(int));
CHECK(zmq_pollitem_t, sizeof(zmq_pollitem_t) == sizeof(void *) + 8);
CHECK_OFFSET(zmq_pollitem_t, socket, 0);
CHECK_OFFSET(zmq_pollitem_t, fd, sizeof(void *));
CHECK_OFFSET(zmq_pollitem_t, events, sizeof(void *) + 4);
CHECK_OFFSET(zmq_pollitem_t, revents, sizeof(void *) + 6);

/* Prototypes. A pointer of the exact type accepts each function. */
#ifdef __cplusplus
extern "C" {
#endif
typedef void check_free_fn(void *, void *);
typedef void check_timer_fn(int, void *);
typedef void check_thread_fn(void *);
struct iovec;
struct check_functions
{
    int (*fn_atomic_counter_dec)(void *);
    void (*fn_atomic_counter_destroy)(void **);
    int (*fn_atomic_counter_inc)(void *);
    void *(*fn_atomic_counter_new)(void);
    void (*fn_atomic_counter_set)(void *, int);
    int (*fn_atomic_counter_value)(void *);
    int (*fn_bind)(void *, const char *);
    int (*fn_close)(void *);
    int (*fn_connect)(void *, const char *);
    int (*fn_ctx_destroy)(void *);
    int (*fn_ctx_get)(void *, int);
    void *(*fn_ctx_new)(void);
    int (*fn_ctx_set)(void *, int, int);
    int (*fn_ctx_shutdown)(void *);
    int (*fn_ctx_term)(void *);
    int (*fn_curve_keypair)(char *, char *);
    int (*fn_curve_public)(char *, const char *);
    int (*fn_device)(int, void *, void *);
    int (*fn_disconnect)(void *, const char *);
    int (*fn_errno)(void);
    int (*fn_getsockopt)(void *, int, void *, size_t *);
    int (*fn_has)(const char *);
    void *(*fn_init)(int);
    int (*fn_msg_close)(zmq_msg_t *);
    int (*fn_msg_copy)(zmq_msg_t *, zmq_msg_t *);
    void *(*fn_msg_data)(zmq_msg_t *);
    int (*fn_msg_get)(const zmq_msg_t *, int);
    const char *(*fn_msg_gets)(const zmq_msg_t *, const char *);
    int (*fn_msg_init)(zmq_msg_t *);
    int (*fn_msg_init_data)(zmq_msg_t *, void *, size_t, check_free_fn *, void *);
    int (*fn_msg_init_size)(zmq_msg_t *, size_t);
    int (*fn_msg_more)(const zmq_msg_t *);
    int (*fn_msg_move)(zmq_msg_t *, zmq_msg_t *);
    int (*fn_msg_recv)(zmq_msg_t *, void *, int);
    int (*fn_msg_send)(zmq_msg_t *, void *, int);
    int (*fn_msg_set)(zmq_msg_t *, int, int);
    size_t (*fn_msg_size)(const zmq_msg_t *);
    int (*fn_poll)(zmq_pollitem_t *, int, long);
    int (*fn_proxy)(void *, void *, void *);
    int (*fn_proxy_steerable)(void *, void *, void *, void *);
    int (*fn_recv)(void *, void *, size_t, int);
    int (*fn_recviov)(void *, struct iovec *, size_t *, int);
    int (*fn_recvmsg)(void *, zmq_msg_t *, int);
    int (*fn_send)(void *, const void *, size_t, int);
    int (*fn_send_const)(void *, const void *, size_t, int);
    int (*fn_sendiov)(void *, struct iovec *, size_t, int);
    int (*fn_sendmsg)(void *, zmq_msg_t *, int);
    int (*fn_setsockopt)(void *, int, const void *, size_t);
    void (*fn_sleep)(int);
    void *(*fn_socket)(void *, int);
    int (*fn_socket_monitor)(void *, const char *, int);
    unsigned long (*fn_stopwatch_intermediate)(void *);
    void *(*fn_stopwatch_start)(void);
    unsigned long (*fn_stopwatch_stop)(void *);
    const char *(*fn_strerror)(int);
    int (*fn_term)(void *);
    void (*fn_threadclose)(void *);
    void *(*fn_threadstart)(check_thread_fn *, void *);
    int (*fn_timers_add)(void *, size_t, check_timer_fn *, void *);
    int (*fn_timers_cancel)(void *, int);
    int (*fn_timers_destroy)(void **);
    int (*fn_timers_execute)(void *);
    void *(*fn_timers_new)(void);
    int (*fn_timers_reset)(void *, int);
    int (*fn_timers_set_interval)(void *, int, size_t);
    long (*fn_timers_timeout)(void *);
    int (*fn_unbind)(void *, const char *);
    void (*fn_version)(int *, int *, int *);
    uint8_t *(*fn_z85_decode)(uint8_t *, const char *);
    char *(*fn_z85_encode)(char *, const uint8_t *, size_t);
};
#ifdef __cplusplus
}
#endif

extern const struct check_functions check_functions;
const struct check_functions check_functions = {
    zmq_atomic_counter_dec,
    zmq_atomic_counter_destroy,
    zmq_atomic_counter_inc,
    zmq_atomic_counter_new,
    zmq_atomic_counter_set,
    zmq_atomic_counter_value,
    zmq_bind,
    zmq_close,
    zmq_connect,
    zmq_ctx_destroy,
    zmq_ctx_get,
    zmq_ctx_new,
    zmq_ctx_set,
    zmq_ctx_shutdown,
    zmq_ctx_term,
    zmq_curve_keypair,
    zmq_curve_public,
    zmq_device,
    zmq_disconnect,
    zmq_errno,
    zmq_getsockopt,
    zmq_has,
    zmq_init,
    zmq_msg_close,
    zmq_msg_copy,
    zmq_msg_data,
    zmq_msg_get,
    zmq_msg_gets,
    zmq_msg_init,
    zmq_msg_init_data,
    zmq_msg_init_size,
    zmq_msg_more,
    zmq_msg_move,
    zmq_msg_recv,
    zmq_msg_send,
    zmq_msg_set,
    zmq_msg_size,
    zmq_poll,
    zmq_proxy,
    zmq_proxy_steerable,
    zmq_recv,
    zmq_recviov,
    zmq_recvmsg,
    zmq_send,
    zmq_send_const,
    zmq_sendiov,
    zmq_sendmsg,
    zmq_setsockopt,
    zmq_sleep,
    zmq_socket,
    zmq_socket_monitor,
    zmq_stopwatch_intermediate,
    zmq_stopwatch_start,
    zmq_stopwatch_stop,
    zmq_strerror,
    zmq_term,
    zmq_threadclose,
    zmq_threadstart,
    zmq_timers_add,
    zmq_timers_cancel,
    zmq_timers_destroy,
    zmq_timers_execute,
    zmq_timers_new,
    zmq_timers_reset,
    zmq_timers_set_interval,
    zmq_timers_timeout,
    zmq_unbind,
    zmq_version,
    zmq_z85_decode,
    zmq_z85_encode,
};

#ifdef ZMQ_BUILD_DRAFT_API

/* Socket types. */
CHECK_VALUE(ZMQ_SERVER, 12);
CHECK_VALUE(ZMQ_CLIENT, 13);
CHECK_VALUE(ZMQ_RADIO, 14);
CHECK_VALUE(ZMQ_DISH, 15);
CHECK_VALUE(ZMQ_GATHER, 16);
CHECK_VALUE(ZMQ_SCATTER, 17);
CHECK_VALUE(ZMQ_DGRAM, 18);
CHECK_VALUE(ZMQ_PEER, 19);
CHECK_VALUE(ZMQ_CHANNEL, 20);

/* Socket options. */
CHECK_VALUE(ZMQ_ZAP_ENFORCE_DOMAIN, 93);
CHECK_VALUE(ZMQ_LOOPBACK_FASTPATH, 94);
CHECK_VALUE(ZMQ_METADATA, 95);
CHECK_VALUE(ZMQ_MULTICAST_LOOP, 96);
CHECK_VALUE(ZMQ_ROUTER_NOTIFY, 97);
CHECK_VALUE(ZMQ_XPUB_MANUAL_LAST_VALUE, 98);
CHECK_VALUE(ZMQ_SOCKS_USERNAME, 99);
CHECK_VALUE(ZMQ_SOCKS_PASSWORD, 100);
CHECK_VALUE(ZMQ_IN_BATCH_SIZE, 101);
CHECK_VALUE(ZMQ_OUT_BATCH_SIZE, 102);
CHECK_VALUE(ZMQ_WSS_KEY_PEM, 103);
CHECK_VALUE(ZMQ_WSS_CERT_PEM, 104);
CHECK_VALUE(ZMQ_WSS_TRUST_PEM, 105);
CHECK_VALUE(ZMQ_WSS_HOSTNAME, 106);
CHECK_VALUE(ZMQ_WSS_TRUST_SYSTEM, 107);
CHECK_VALUE(ZMQ_ONLY_FIRST_SUBSCRIBE, 108);
CHECK_VALUE(ZMQ_RECONNECT_STOP, 109);
CHECK_VALUE(ZMQ_HELLO_MSG, 110);
CHECK_VALUE(ZMQ_DISCONNECT_MSG, 111);
CHECK_VALUE(ZMQ_PRIORITY, 112);
CHECK_VALUE(ZMQ_BUSY_POLL, 113);
CHECK_VALUE(ZMQ_HICCUP_MSG, 114);
CHECK_VALUE(ZMQ_XSUB_VERBOSE_UNSUBSCRIBE, 115);
CHECK_VALUE(ZMQ_TOPICS_COUNT, 116);
CHECK_VALUE(ZMQ_NORM_MODE, 117);
CHECK_VALUE(ZMQ_NORM_UNICAST_NACK, 118);
CHECK_VALUE(ZMQ_NORM_BUFFER_SIZE, 119);
CHECK_VALUE(ZMQ_NORM_SEGMENT_SIZE, 120);
CHECK_VALUE(ZMQ_NORM_BLOCK_SIZE, 121);
CHECK_VALUE(ZMQ_NORM_NUM_PARITY, 122);
CHECK_VALUE(ZMQ_NORM_NUM_AUTOPARITY, 123);
CHECK_VALUE(ZMQ_NORM_PUSH, 124);

/* Context options. */
CHECK_VALUE(ZMQ_ZERO_COPY_RECV, 10);

/* Monitor events. */
CHECK_VALUE(ZMQ_EVENT_PIPES_STATS, 0x10000);
CHECK_VALUE(ZMQ_CURRENT_EVENT_VERSION, 0x1);
CHECK_VALUE(ZMQ_CURRENT_EVENT_VERSION_DRAFT, 0x2);
CHECK_VALUE(ZMQ_EVENT_ALL_V1, 0xffff);
CHECK_VALUE(ZMQ_EVENT_ALL_V2, 0x1ffff);

/* NORM modes. */
CHECK_VALUE(ZMQ_NORM_FIXED, 0);
CHECK_VALUE(ZMQ_NORM_CC, 1);
CHECK_VALUE(ZMQ_NORM_CCL, 2);
CHECK_VALUE(ZMQ_NORM_CCE, 3);
CHECK_VALUE(ZMQ_NORM_CCE_ECNONLY, 4);

/* ZMQ_RECONNECT_STOP. */
CHECK_VALUE(ZMQ_RECONNECT_STOP_CONN_REFUSED, 1);
CHECK_VALUE(ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED, 2);
CHECK_VALUE(ZMQ_RECONNECT_STOP_AFTER_DISCONNECT, 4);

/* ZMQ_ROUTER_NOTIFY. */
CHECK_VALUE(ZMQ_NOTIFY_CONNECT, 1);
CHECK_VALUE(ZMQ_NOTIFY_DISCONNECT, 2);

/* Names of message properties. */
CHECK(ZMQ_MSG_PROPERTY_ROUTING_ID, sizeof(ZMQ_MSG_PROPERTY_ROUTING_ID) == sizeof("Routing-Id"));
CHECK(ZMQ_MSG_PROPERTY_SOCKET_TYPE, sizeof(ZMQ_MSG_PROPERTY_SOCKET_TYPE) == sizeof("Socket-Type"));
CHECK(ZMQ_MSG_PROPERTY_USER_ID, sizeof(ZMQ_MSG_PROPERTY_USER_ID) == sizeof("User-Id"));
CHECK(ZMQ_MSG_PROPERTY_PEER_ADDRESS, sizeof(ZMQ_MSG_PROPERTY_PEER_ADDRESS) == sizeof("Peer-Address"));
#ifndef ZMQ_HAVE_POLLER
#error "ZMQ_HAVE_POLLER is missing"
#endif

/* Layouts and prototypes. */
CHECK(zmq_poller_event_t, sizeof(zmq_poller_event_t) == 4 * sizeof(void *));
CHECK_OFFSET(zmq_poller_event_t, socket, 0);
CHECK_OFFSET(zmq_poller_event_t, fd, sizeof(void *));
CHECK_OFFSET(zmq_poller_event_t, user_data, 2 * sizeof(void *));
CHECK_OFFSET(zmq_poller_event_t, events, 3 * sizeof(void *));

#ifdef __cplusplus
extern "C" {
#endif
struct check_draft_functions
{
    uint32_t (*fn_connect_peer)(void *, const char *);
    int (*fn_ctx_get_ext)(void *, int, void *, size_t *);
    int (*fn_ctx_set_ext)(void *, int, const void *, size_t);
    int (*fn_disconnect_peer)(void *, uint32_t);
    int (*fn_join)(void *, const char *);
    int (*fn_leave)(void *, const char *);
    const char *(*fn_msg_group)(zmq_msg_t *);
    int (*fn_msg_init_buffer)(zmq_msg_t *, const void *, size_t);
    uint32_t (*fn_msg_routing_id)(zmq_msg_t *);
    int (*fn_msg_set_group)(zmq_msg_t *, const char *);
    int (*fn_msg_set_routing_id)(zmq_msg_t *, uint32_t);
    int (*fn_poller_add)(void *, void *, void *, short);
    int (*fn_poller_add_fd)(void *, zmq_fd_t, void *, short);
    int (*fn_poller_destroy)(void **);
    int (*fn_poller_fd)(void *, zmq_fd_t *);
    int (*fn_poller_modify)(void *, void *, short);
    int (*fn_poller_modify_fd)(void *, zmq_fd_t, short);
    void *(*fn_poller_new)(void);
    int (*fn_poller_remove)(void *, void *);
    int (*fn_poller_remove_fd)(void *, zmq_fd_t);
    int (*fn_poller_size)(void *);
    int (*fn_poller_wait)(void *, zmq_poller_event_t *, long);
    int (*fn_poller_wait_all)(void *, zmq_poller_event_t *, int, long);
    int (*fn_socket_get_peer_state)(void *, const void *, size_t);
    int (*fn_socket_monitor_pipes_stats)(void *);
    int (*fn_socket_monitor_versioned)(void *, const char *, uint64_t, int, int);
};
#ifdef __cplusplus
}
#endif

extern const struct check_draft_functions check_draft_functions;
const struct check_draft_functions check_draft_functions = {
    zmq_connect_peer,
    zmq_ctx_get_ext,
    zmq_ctx_set_ext,
    zmq_disconnect_peer,
    zmq_join,
    zmq_leave,
    zmq_msg_group,
    zmq_msg_init_buffer,
    zmq_msg_routing_id,
    zmq_msg_set_group,
    zmq_msg_set_routing_id,
    zmq_poller_add,
    zmq_poller_add_fd,
    zmq_poller_destroy,
    zmq_poller_fd,
    zmq_poller_modify,
    zmq_poller_modify_fd,
    zmq_poller_new,
    zmq_poller_remove,
    zmq_poller_remove_fd,
    zmq_poller_size,
    zmq_poller_wait,
    zmq_poller_wait_all,
    zmq_socket_get_peer_state,
    zmq_socket_monitor_pipes_stats,
    zmq_socket_monitor_versioned,
};

/* Plain ISO C has no sigset_t on glibc. */
#if !defined __GLIBC__ || defined __USE_POSIX
extern int (*const check_zmq_ppoll)(zmq_pollitem_t *, int, long, const sigset_t *);
int (*const check_zmq_ppoll)(zmq_pollitem_t *, int, long, const sigset_t *) = zmq_ppoll;
#endif
#else
/* Draft names are hidden unless a program asks for them. */
#if defined ZMQ_SERVER || defined ZMQ_CLIENT
#error "draft names of kind socktype are visible"
#endif
#if defined ZMQ_ZAP_ENFORCE_DOMAIN || defined ZMQ_LOOPBACK_FASTPATH
#error "draft names of kind sockopt are visible"
#endif
#if defined ZMQ_ZERO_COPY_RECV
#error "draft names of kind ctxopt are visible"
#endif
#endif
