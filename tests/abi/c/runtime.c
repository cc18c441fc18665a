/*
 * Tests the whole interface from C: C linkage, C errno, callbacks into C and calls from within callbacks. run.sh
 * links it to the built library.
 *
 *   runtime [lenient]      lenient: without the promises of only this library (libzmq itself reads freed memory
 *                          there), to run the checks on another libzmq
 *
 * This file has the calls without a socket. handles.c, messages.c, traffic.c, fork.c, endings.c, routing_ids.c and drafts.c have
 * the other calls.
 */
#include "check.h"

static void tells_what_it_is(void)
{
    void *context = zmq_ctx_new();
    int version = zmq_ctx_get(context, ZMQ_TAUTLINE_VERSION);
    CHECK(zmq_has("tautline") == 1 && zmq_has("Tautline") == 0);
    CHECK(version >= ZMQ_MAKE_VERSION(0, 1, 0) && version < ZMQ_MAKE_VERSION(100, 0, 0));
    CHECK_ERRNO(zmq_ctx_set(context, ZMQ_TAUTLINE_VERSION, version), -1, EINVAL);
    CHECK(zmq_ctx_term(context) == 0);
}

static void errors(void)
{
    int major = 0, minor = 0, patch = 0;
    zmq_version(&major, &minor, &patch);
    CHECK(ZMQ_MAKE_VERSION(major, minor, patch) == ZMQ_VERSION);
    CHECK(strcmp(zmq_strerror(EINVAL), strerror(EINVAL)) == 0);
    CHECK(strcmp(zmq_strerror(EFSM), "Operation cannot be accomplished in current state") == 0);
    CHECK(strcmp(zmq_strerror(ENOCOMPATPROTO), "The protocol is not compatible with the socket type") == 0);
    CHECK(strcmp(zmq_strerror(ETERM), "Context was terminated") == 0);
    CHECK(strcmp(zmq_strerror(EMTHREAD), "No thread available") == 0);
    CHECK(strcmp(zmq_strerror(EHOSTUNREACH), "Host unreachable") == 0);
    errno = ERANGE;
    CHECK(zmq_errno() == ERANGE);
#ifndef _WIN32
    CHECK(zmq_has("ipc") == 1);
#endif
    CHECK(zmq_has("no such capability") == 0);
    tells_what_it_is();
}

static void counters(void)
{
    void *counter = zmq_atomic_counter_new();
    CHECK(zmq_atomic_counter_value(counter) == 0);
    CHECK(zmq_atomic_counter_inc(counter) == 0);
    CHECK(zmq_atomic_counter_inc(counter) == 1);
    CHECK(zmq_atomic_counter_dec(counter) == 1);
    CHECK(zmq_atomic_counter_dec(counter) == 0);
    zmq_atomic_counter_set(counter, 7);
    CHECK(zmq_atomic_counter_value(counter) == 7);
    zmq_atomic_counter_destroy(&counter);
    CHECK(counter == NULL);
}

static void keys(void)
{
    /* The example of RFC 32. */
    static const uint8_t bytes[8] = {0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B};
    char text[11];
    uint8_t back[8];
    char public_key[41], secret_key[41], derived[41];

    CHECK(zmq_z85_encode(text, bytes, 8) == text && strcmp(text, "HelloWorld") == 0);
    CHECK(zmq_z85_decode(back, "HelloWorld") == back && memcmp(back, bytes, 8) == 0);
    CHECK_ERRNO(zmq_z85_encode(text, bytes, 7), NULL, EINVAL);
    CHECK_ERRNO(zmq_z85_decode(back, "Hello Worl"), NULL, EINVAL);
    CHECK_ERRNO(zmq_z85_decode(back, "#####"), NULL, EINVAL);

    CHECK(zmq_curve_keypair(public_key, secret_key) == 0);
    CHECK(strlen(public_key) == 40 && strlen(secret_key) == 40);
    CHECK(zmq_curve_public(derived, secret_key) == 0 && strcmp(derived, public_key) == 0);
}

static void *timers;
static int called, added;

static void count(int id, void *arg)
{
    (void) id;
    ++*(int *) arg;
}

/* A timer callback that cancels its timer and registers another one. */
static void replace(int id, void *arg)
{
    ++*(int *) arg;
    CHECK(zmq_timers_cancel(timers, id) == 0);
    added = zmq_timers_add(timers, 60000, count, arg);
    CHECK(added > 0);
}

static void timer_callbacks(void)
{
    void *none = NULL;
    int id;
    CHECK_ERRNO(zmq_timers_destroy(&none), -1, EFAULT);
    CHECK_ERRNO(zmq_timers_add(NULL, 1, count, NULL), -1, EFAULT);
    CHECK_ERRNO(zmq_timers_timeout(NULL), -1, EFAULT);

    timers = zmq_timers_new();
    CHECK_ERRNO(zmq_timers_add(timers, 1, NULL, NULL), -1, EFAULT);
    CHECK_ERRNO(zmq_timers_cancel(timers, 1), -1, EINVAL);
    CHECK(zmq_timers_timeout(timers) == -1);

    id = zmq_timers_add(timers, 0, replace, &called);
    CHECK(id > 0 && zmq_timers_timeout(timers) == 0);
    CHECK(zmq_timers_execute(timers) == 0 && called == 1);
    CHECK(zmq_timers_execute(timers) == 0 && called == 1);
    CHECK(zmq_timers_timeout(timers) > 0);
    CHECK(zmq_timers_set_interval(timers, added, (size_t) -1) == 0);
    CHECK(zmq_timers_reset(timers, added) == 0);
    CHECK(zmq_timers_cancel(timers, added) == 0);
    CHECK_ERRNO(zmq_timers_cancel(timers, added), -1, EINVAL);
    CHECK(zmq_timers_destroy(&timers) == 0 && timers == NULL);
}

static void in_thread(void *counter)
{
    errno = ENOENT; /* each thread has its own errno */
    zmq_atomic_counter_inc(counter);
}

static void threads(void)
{
    void *watch = zmq_stopwatch_start();
    void *counter = zmq_atomic_counter_new();
    void *thread;
    unsigned long between;
    errno = 0;
    thread = zmq_threadstart(in_thread, counter);
    CHECK(thread != NULL);
    zmq_threadclose(thread);
    CHECK(zmq_atomic_counter_value(counter) == 1 && zmq_errno() == 0);
    zmq_atomic_counter_destroy(&counter);
    zmq_sleep(0);
    between = zmq_stopwatch_intermediate(watch);
    CHECK(zmq_stopwatch_stop(watch) >= between);
}

int main(int argc, char **argv)
{
    alarm(120); /* a call that hangs ends the program */
    strict = argc < 2 || strcmp(argv[1], "lenient") != 0;
    errors();
    counters();
    keys();
    timer_callbacks();
    threads();
    handles();
    messages();
#ifndef _WIN32 /* cross/windows.c has the parts of these that Windows supports */
    traffic();
    if (strict) {
        forks();
        forks_with_messages_left();
    }
    drafts();
#endif
    endings();
    if (strict)
        routing_ids();
    printf("%d checks passed, %d failed\n", passed, failed);
    return failed != 0;
}
