/* push_pull and router_router within memory: copies of each body, or its pointer from
   one thread to another. */
#include <sched.h>
#include <stdatomic.h>
#include "raw.h"

#define RING (2u << 20)
/* Sum of libzmq's two high-water marks, the limit of a connection over inproc. */
#define BOTH_MARKS 2000

/* Use one place after the other, so that not all copies hit the nearest cache. */
double copy(void)
{
    unsigned char *ring = calloc(1, RING + size), *body = calloc(1, size), *out = calloc(1, size);
    size_t at = 0;

    if (ring == NULL || body == NULL || out == NULL)
        fail("calloc");
    uint64_t began = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        stamp(body, size, i);
        memcpy(ring + at, body, size);
        __asm__ volatile("" ::: "memory");
        memcpy(out, ring + at, size);
        corrupted += !intact(out, size, size);
        at = at + size < RING ? at + size : 0;
    }
    double seconds = (double) (now_ns() - began) / 1e9;
    free(out);
    free(body);
    free(ring);
    return seconds;
}

/* Limit of messages in flight: as with a blocking sender over inproc, but enough to
   keep both threads busy. */
static uint64_t under_way(size_t each, uint64_t most)
{
    uint64_t fit = RING / each;
    return fit > most ? most : fit > 32 ? fit : 32;
}

/* Limit of messages in flight, as frames in a ring. */
uint64_t ring_bodies(void)
{
    return under_way(head_of(size) + size, BOTH_MARKS);
}

static void *copy_away(void *unused)
{
    unsigned char *common = calloc(1, size);

    (void) unused;
    if (common == NULL)
        fail("calloc");
    for (uint64_t i = 0; i < count; i++) {
        if (named)
            put_name(RECEIVER, sizeof RECEIVER - 1);
        unsigned char *body = open_body(common);
        stamp(body, size, i);
        ring_send(body, size);
        close_body(body);
    }
    free(common);
    return NULL;
}

double copy_across(void)
{
    unsigned char *common = calloc(1, size);
    uint64_t first = 0;

    if (common == NULL)
        fail("calloc");
    ring_open(ring_bodies(), 1);
    start_sender(copy_away);
    for (uint64_t i = 0; i < count; i++) {
        if (named) {
            char name[NAME];
            expect_sender(name, ring_name(name, sizeof name));
        }
        unsigned char *body = open_body(common);
        size_t length = ring_receive(0, body, size);
        if (first == 0)
            first = now_ns();
        corrupted += !intact(body, length, size) || sequence_of(body) != i;
        close_body(body);
    }
    double seconds = (double) (now_ns() - first) / 1e9;
    await_sender();
    ring_close();
    free(common);
    return seconds;
}

/* Pointers from one thread to another. The two threads write to separate lines, and
   read the other's lines only when they must. */
#define PLACES 1024
static struct way {
    _Alignas(128) _Atomic uint64_t given;
    uint64_t taken_then;
    _Alignas(128) _Atomic uint64_t taken;
    uint64_t given_then;
    _Alignas(128) unsigned char *place[PLACES];
} there, back;

static void give(struct way *way, unsigned char *body)
{
    uint64_t at = atomic_load_explicit(&way->given, memory_order_relaxed);
    for (uint32_t tries = 1; at - way->taken_then >= PLACES; tries++) {
        way->taken_then = atomic_load_explicit(&way->taken, memory_order_acquire);
        if (tries % 4096 == 0)
            sched_yield();
    }
    way->place[at % PLACES] = body;
    atomic_store_explicit(&way->given, at + 1, memory_order_release);
}

static unsigned char *take(struct way *way)
{
    uint64_t at = atomic_load_explicit(&way->taken, memory_order_relaxed);
    for (uint32_t tries = 1; at == way->given_then; tries++) {
        way->given_then = atomic_load_explicit(&way->given, memory_order_acquire);
        if (tries % 4096 == 0)
            sched_yield();
    }
    unsigned char *body = way->place[at % PLACES];
    atomic_store_explicit(&way->taken, at + 1, memory_order_release);
    return body;
}

static void *hand_away(void *unused)
{
    uint64_t bodies = under_way(size, 256);
    int fresh = mode == MALLOC, touched = mode != UNTOUCHED;

    (void) unused;
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *body = fresh ? malloc(size) : i < bodies ? calloc(1, size) : take(&back);
        if (body == NULL)
            fail("malloc");
        if (touched)
            stamp(body, size, i);
        give(&there, body);
    }
    return NULL;
}

double hand_over(void)
{
    uint64_t first = 0;
    int fresh = mode == MALLOC, touched = mode != UNTOUCHED;

    start_sender(hand_away);
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *body = take(&there);
        if (first == 0)
            first = now_ns();
        if (touched)
            corrupted += !intact(body, size, size) || sequence_of(body) != i;
        if (fresh)
            free(body);
        else
            give(&back, body);
    }
    double seconds = (double) (now_ns() - first) / 1e9;
    await_sender();
    return seconds;
}
