/* Calls of an interface with one call per frame, without a library behind them. They
 * are in a separate file so that the compiler cannot inline them, as with a library's
 * calls. */
#include <sched.h>
#include <stdatomic.h>
#include "crowd.h"
#include "raw.h"

/* ---- frames, in any buffer ---- */

void put_copy(unsigned char *at, const unsigned char *body, size_t length)
{
    size_t head = head_of(length);
    uint64_t long_length = __builtin_bswap64(length);

    at[0] = length > SHORT ? 2 : 0;
    if (length > SHORT)
        memcpy(at + 1, &long_length, sizeof long_length);
    else
        at[1] = (unsigned char) length;
    memcpy(at + head, body, length);
}

size_t take_copy(const unsigned char *at, unsigned char *body, size_t room)
{
    uint64_t length = at[1];

    if (at[0] != 0) {
        memcpy(&length, at + 1, sizeof length);
        length = __builtin_bswap64(length);
    }
    memcpy(body, at + head_of(length), length < room ? length : room);
    return length;
}

/* ---- the names of a ROUTER's one connection ---- */

static struct name {
    size_t length;
    char text[NAME];
} there, here;

static void set_name(struct name *name, const char *text)
{
    name->length = strlen(text);
    memcpy(name->text, text, name->length);
}

void name_ends(const char *receiver, const char *sender)
{
    set_name(&there, receiver);
    set_name(&here, sender);
}

void put_name(const char *name, size_t length)
{
    if (length != there.length || memcmp(name, there.text, length) != 0)
        fail("nobody has that name");
}

size_t take_name(char *name, size_t room)
{
    memcpy(name, here.text, here.length < room ? here.length : room);
    return here.length;
}

/* ---- the names of a crowd ---- */

static struct member {
    unsigned char name[CROWD_ID];
    int number;
} *members;
static uint64_t places;

/* Multiplication, then the upper bits: a sufficient hash for a table of that size. */
static uint64_t place_of(const unsigned char *name)
{
    uint32_t number;

    memcpy(&number, name + CROWD_ID - sizeof number, sizeof number);
    return ((uint64_t) (number ^ name[0]) * 0x9e3779b97f4a7c15u) >> 32 & (places - 1);
}

void names_open(int crowd)
{
    unsigned char name[CROWD_ID];

    for (places = 1; places < 2 * (uint64_t) crowd; places *= 2)
        ;
    members = calloc(places, sizeof *members);
    if (members == NULL)
        fail("calloc");
    for (int i = 0; i < crowd; i++) {
        crowd_id(name, (uint32_t) i);
        uint64_t at = place_of(name);
        while (members[at].name[0] != 0)
            at = (at + 1) & (places - 1);
        memcpy(members[at].name, name, sizeof name);
        members[at].number = i;
    }
}

int find_name(const unsigned char *name)
{
    for (uint64_t at = place_of(name); members[at].name[0] != 0; at = (at + 1) & (places - 1)) {
        if (memcmp(members[at].name, name, CROWD_ID) == 0)
            return members[at].number;
    }
    fail("nobody has that name");
    return -1;
}

void names_close(void)
{
    free(members);
}

/* ---- a ring of frames from one thread to others ---- */

/* Two measures double the rate of 64 bytes. First, the ring is longer than the
 * messages in flight, because writing a line costs more while the receiver's cache
 * still holds it from the last cycle. Second, a receiver that finds the ring empty
 * waits for this number of nanoseconds, so that the sender gets ahead. Otherwise, it
 * would repeatedly take the lines that the sender is about to write. */
#define ROUND (4u << 20)
#define AHEAD_NS 10000

/* Each thread writes to separate lines, and reads the others' lines only when it must.
 * The counters count messages. The receiver publishes its counter when it has taken
 * half of the messages that can be in flight. All frames have the same length, so the
 * ring ends at the end of a frame. */
static struct ring {
    _Alignas(128) _Atomic uint64_t given;
    uint64_t taken_then;
    unsigned char *put_at;
    _Alignas(128) unsigned char *frames, *end;
    uint64_t ahead; /* limit of messages in flight */
    int takers;     /* each receives all of them */
} ring;
static struct taker {
    _Alignas(128) _Atomic uint64_t told;
    uint64_t taken, given_then;
    unsigned char *at;
} takers[MOST_TAKERS];

void ring_open(uint64_t ahead, int receivers)
{
    size_t frame = head_of(size) + size, places = ROUND / frame > ahead ? ROUND / frame : ahead;

    ring.frames = calloc(places, frame);
    if (ring.frames == NULL)
        fail("calloc");
    ring.put_at = ring.frames;
    ring.takers = receivers;
    for (int i = 0; i < receivers; i++)
        takers[i].at = ring.frames;
    ring.end = ring.frames + places * frame;
    ring.ahead = ahead;
}

void ring_close(void)
{
    free(ring.frames);
}

/* Number of messages that all receivers have taken. */
static uint64_t taken_by_all(void)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < ring.takers; i++) {
        uint64_t told = atomic_load_explicit(&takers[i].told, memory_order_acquire);
        least = told < least ? told : least;
    }
    return least;
}

void ring_send(const unsigned char *body, size_t length)
{
    uint64_t at = atomic_load_explicit(&ring.given, memory_order_relaxed);

    if (at - ring.taken_then >= ring.ahead) {
        while (at - (ring.taken_then = taken_by_all()) >= ring.ahead)
            sched_yield();
    }
    put_copy(ring.put_at, body, length);
    ring.put_at += head_of(length) + length;
    if (ring.put_at == ring.end)
        ring.put_at = ring.frames;
    atomic_store_explicit(&ring.given, at + 1, memory_order_release);
}

static void await_message(struct taker *taker)
{
    if (taker->taken == taker->given_then) {
        while (taker->taken == (taker->given_then = atomic_load_explicit(&ring.given, memory_order_acquire))) {
            uint64_t end = now_ns() + AHEAD_NS;
            do
                sched_yield();
            while (now_ns() < end);
        }
    }
}

size_t ring_name(char *name, size_t room)
{
    await_message(&takers[0]);
    return take_name(name, room);
}

size_t ring_receive(int number, unsigned char *body, size_t room)
{
    struct taker *taker = &takers[number];

    await_message(taker);
    size_t length = take_copy(taker->at, body, room);
    taker->at += head_of(length) + length;
    if (taker->at == ring.end)
        taker->at = ring.frames;
    if (++taker->taken - atomic_load_explicit(&taker->told, memory_order_relaxed) >= ring.ahead / 2)
        atomic_store_explicit(&taker->told, taker->taken, memory_order_release);
    return length;
}
