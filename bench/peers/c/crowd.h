/* A crowd: many peers in a separate process that speaks ZMTP 3.1 over plain sockets,
 * without any messaging library. So a run measures only the library at this end, and
 * the other end costs the same with each library. */
#ifndef CROWD_H
#define CROWD_H

#include "bench.h"
#include <stdatomic.h>
#include <sys/types.h>

enum crowd_kind { CROWD_SUBSCRIBERS, CROWD_DEALERS };

struct crowd {
    const struct config *config;
    enum crowd_kind kind;
    pid_t process;
    int control;
    struct crowd_shared {
        _Atomic int echo;              /* dealers send back each message */
        _Atomic uint64_t received;     /* by all of them, without hello */
        _Atomic uint64_t last_ns;      /* time of the last received message */
        _Atomic uint64_t lost, reordered, corrupted;
    } *shared;
};

/* Starts the process. Call it before the context is created, because a library's
   threads do not survive a fork. */
void crowd_start(struct crowd *crowd, const struct config *config, enum crowd_kind kind);
/* Connects all of them. Dealers use `d` and their number in 4 bytes as routing id, and
   say hello. */
void crowd_connect(struct crowd *crowd, const char *endpoint);
/* Waits until all of them together have received the given number of messages. */
void crowd_await(const struct crowd *crowd, uint64_t received);
void crowd_end(struct crowd *crowd, struct result *result);
/* Reads the given number of bytes, from either end of a crowd. */
void read_all(int descriptor, void *into, size_t length);

/* Routing id of a dealer: `d` and the number. */
#define CROWD_ID 5
static inline void crowd_id(unsigned char *id, uint32_t number)
{
    id[0] = 'd';
    memcpy(id + 1, &number, sizeof number);
}

#endif
