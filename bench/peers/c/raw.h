/* What the files of raw-bench share. */
#ifndef RAW_H
#define RAW_H

#include "bench.h"

#define CHUNK 65536

/* The run's configuration, and what it has found. */
extern const char *transport;
extern size_t size;
extern uint64_t corrupted;
extern int millis, connections;

/* The two ends of the connection made last. */
extern int near_end, far_end;
void connect_ends(void);

void unsupported(void);
void write_all(int descriptor, const unsigned char *from, size_t length);
/* One body; spinning or asleep. 0 at the end of the stream. */
int read_body(int descriptor, unsigned char *into);
void print(uint64_t messages, double seconds, double cpu, const char *metrics);

/* raw_crowd.c */
void crowd_of_dealers(void);
void crowd_of_subscribers(void);

#endif
