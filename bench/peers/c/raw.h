/* What the files of raw-bench share. */
#ifndef RAW_H
#define RAW_H

#include "bench.h"

#define CHUNK 65536

/* In the order of their names in raw.c. */
enum mode { STREAM, COPIED, OBJECTS, PIPE, BLOCKING, HANDOVER, UNTOUCHED, MALLOC };

/* The run's configuration, and what it has found. */
extern enum mode mode;
extern const char *transport;
extern size_t size;
extern uint64_t count, corrupted;
extern int millis, connections, pairs, busy;
extern int spinning; /* reads that find nothing */
extern int copied;   /* COPIED or OBJECTS */

/* The two ends of the connection made last. */
extern int near_end, far_end;
void connect_ends(void);

void unsupported(void);
void write_all(int descriptor, const unsigned char *from, size_t length);
/* One body; spinning or asleep. 0 at the end of the stream. */
int read_body(int descriptor, unsigned char *into);
void print(uint64_t messages, double seconds, double cpu, const char *metrics);
/* The metrics p50_us and p99_us as text; sorts the samples. */
void put_quantiles(char *text, size_t room, uint32_t *samples_ns, uint64_t count);

/* raw_stream.c: seconds from the first message to the last. */
double stream(void);
/* raw_memory.c: the same. */
double copy(void);
double hand_over(void);
/* raw_round_trip.c */
void *echo(void *unused);
int trip(unsigned char *body, uint64_t sequence);
void round_trips(void);
/* raw_oversubscribed.c */
void oversubscribed(void);
/* raw_crowd.c */
void crowd_of_dealers(void);
void crowd_of_subscribers(void);

#endif
