/* push_pull as bytes in a stream: bodies one after the other, or each copied into a frame and out of it. */
#include <unistd.h>
#include "raw.h"

/* The head of a short frame. */
#define FRAME 2

/* Calls that the compiler does not see through, as those of a library. */
__attribute__((noinline)) static void put_copy(unsigned char *at, const unsigned char *body)
{
    at[0] = 0;
    at[1] = (unsigned char) size;
    memcpy(at + FRAME, body, size);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static size_t take_copy(const unsigned char *at, unsigned char *body)
{
    size_t length = at[1];
    memcpy(body, at + FRAME, length);
    __asm__ volatile("" ::: "memory");
    return length;
}

/* Memory for one body, and its end: of each, or of all. */
static unsigned char *open_body(unsigned char *common)
{
    unsigned char *body = mode == OBJECTS ? malloc(size) : common;
    if (body == NULL)
        fail("malloc");
    return body;
}

static void close_body(unsigned char *body)
{
    if (mode == OBJECTS)
        free(body);
}

static void *stream_away(void *unused)
{
    size_t head = copied ? FRAME : 0, each = size + head, batch = CHUNK / each > 0 ? CHUNK / each : 1;
    unsigned char *chunk = calloc(batch, each), *body = calloc(1, size);

    (void) unused;
    if (chunk == NULL || body == NULL)
        fail("calloc");
    for (uint64_t sent = 0; sent < count;) {
        size_t now = count - sent < batch ? (size_t) (count - sent) : batch;
        for (size_t i = 0; i < now; i++) {
            unsigned char *from = copied ? open_body(body) : chunk + i * each;
            stamp(from, size, sent + i);
            if (copied) {
                put_copy(chunk + i * each, from);
                close_body(from);
            }
        }
        write_all(near_end, chunk, now * each);
        sent += now;
    }
    free(body);
    free(chunk);
    return NULL;
}

double stream(void)
{
    pthread_t thread;
    size_t each = size + (copied ? FRAME : 0), room = CHUNK + each, have = 0;
    unsigned char *buffer = malloc(room), *body = malloc(size);
    uint64_t expected = 0, first = 0;

    connect_ends();
    if (buffer == NULL || body == NULL || pthread_create(&thread, NULL, stream_away, NULL) != 0)
        fail("starting");
    while (expected < count) {
        ssize_t n = read(far_end, buffer + have, room - have);
        if (n <= 0)
            fail("read");
        have += (size_t) n;
        if (first == 0)
            first = now_ns();
        size_t at = 0;
        for (; have - at >= each; at += each, expected++) {
            unsigned char *came = copied ? open_body(body) : buffer + at;
            size_t length = copied ? take_copy(buffer + at, came) : size;
            corrupted += !intact(came, length, size) || sequence_of(came) != expected;
            if (copied)
                close_body(came);
        }
        have -= at;
        memmove(buffer, buffer + at, have);
    }
    double seconds = (double) (now_ns() - first) / 1e9;
    pthread_join(thread, NULL);
    free(body);
    free(buffer);
    return seconds;
}
