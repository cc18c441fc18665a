/* Shared declarations of raw-bench. */
#ifndef RAW_H
#define RAW_H

#include "bench.h"

#define CHUNK 65536

/* In the order of their names in raw.c. */
enum mode { STREAM, COPIED, OBJECTS, PIPE, BLOCKING, HANDOVER, UNTOUCHED, MALLOC };

/* Configuration of the run, and its results. */
extern enum mode mode;
extern const char *transport;
extern size_t size;
extern uint64_t count, corrupted;
extern int millis, connections, subscribers, pairs, busy, rate, burst;
extern int spinning; /* reads without result */
extern int copied;   /* COPIED or OBJECTS */
extern int named;    /* as with ROUTER: before each body, a call with the other end's name */

/* The two ends of the last connection. */
extern int near_end, far_end;
void connect_ends(void);

/* Sender: a thread, or a separate process. */
void start_sender(void *(*run)(void *));
void await_sender(void);

void unsupported(void);
void write_all(int descriptor, const unsigned char *from, size_t length);
/* Reads the available bytes, at least one, spinning or asleep. Returns 0 at the end of
   the stream. */
size_t read_some(int descriptor, unsigned char *into, size_t room);
/* Reads one body, spinning or asleep. Returns 0 at the end of the stream. */
int read_body(int descriptor, unsigned char *into);
void print(uint64_t messages, double seconds, double cpu, const char *metrics);
/* Formats the metrics p50_us and p99_us. Sorts the samples. */
void put_quantiles(char *text, size_t room, uint32_t *samples_ns, uint64_t count);

/* raw_calls.c */
#define SHORT 255 /* the longest body with a short head */
#define NAME 32   /* room for a name */
#define SENDER "sender"
#define RECEIVER "receiver"
void put_copy(unsigned char *at, const unsigned char *body, size_t length);
size_t take_copy(const unsigned char *at, unsigned char *body, size_t room);
void name_ends(const char *receiver, const char *sender);
/* Sets the receiver of the next body. */
void put_name(const char *name, size_t length);
/* Gets the sender of the next body. Returns the name's length. */
size_t take_name(char *name, size_t room);
/* Table of a crowd: maps a name to its number. */
void names_open(int crowd);
int find_name(const unsigned char *name);
void names_close(void);
#define MOST_TAKERS 64
void ring_open(uint64_t ahead, int receivers);
void ring_close(void);
void ring_send(const unsigned char *body, size_t length);
size_t ring_name(char *name, size_t room);
size_t ring_receive(int number, unsigned char *body, size_t room);

/* Of a frame. */
static inline size_t head_of(size_t length)
{
    return length > SHORT ? 9 : 2;
}

static inline void expect_sender(const char *name, size_t length)
{
    if (length != sizeof SENDER - 1 || memcmp(name, SENDER, sizeof SENDER - 1) != 0)
        fail("a message without the sender's name in front");
}

/* Allocates memory for one body, and frees that of one body, or of all. */
static inline unsigned char *open_body(unsigned char *common)
{
    unsigned char *body = mode == OBJECTS ? malloc(size) : common;
    if (body == NULL)
        fail("malloc");
    return body;
}

static inline void close_body(unsigned char *body)
{
    if (mode == OBJECTS)
        free(body);
}

/* raw_stream.c: seconds from the first message to the last. */
double stream(void);
/* raw_memory.c: the same. */
double copy(void);
double copy_across(void);
double hand_over(void);
uint64_t ring_bodies(void);
/* raw_fan_out.c */
void fan_out(void);
/* raw_round_trip.c */
void *echo(void *unused);
int trip(unsigned char *body, uint64_t sequence);
void round_trips(void);
/* raw_latency.c */
void latency(void);
/* raw_oversubscribed.c */
void oversubscribed(void);
/* raw_crowd.c */
void crowd_of_dealers(void);
void crowd_of_subscribers(void);

#endif
