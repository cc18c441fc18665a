/* A crowd: many peers in a process of its own that speaks ZMTP 3.1 over plain sockets, without any messaging library. So
 * whatever a run measures, it is the library at this end, and the other end costs the same beside each library. */
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
        _Atomic int echo;              /* dealers send back what they get */
        _Atomic uint64_t received;     /* by all of them, hello not counted */
        _Atomic uint64_t last_ns;      /* when the last of these came */
        _Atomic uint64_t lost, reordered, corrupted;
    } *shared;
};

/* Starts the process; before the context is made, as a library's threads do not survive a fork. */
void crowd_start(struct crowd *crowd, const struct config *config, enum crowd_kind kind);
/* Has all of them connect. Dealers have `d` and their number in 4 bytes as routing id and say hello. */
void crowd_connect(struct crowd *crowd, const char *endpoint);
/* Waits until so many messages came in all. */
void crowd_await(const struct crowd *crowd, uint64_t received);
void crowd_end(struct crowd *crowd, struct result *result);
/* Reads so many bytes, whichever end of a crowd they come to. */
void read_all(int descriptor, void *into, size_t length);

/* `d` and the number, as the dealers call themselves. */
#define CROWD_ID 5
static inline void crowd_id(unsigned char *id, uint32_t number)
{
    id[0] = 'd';
    memcpy(id + 1, &number, sizeof number);
}

#endif
