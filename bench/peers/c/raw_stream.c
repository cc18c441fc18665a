/* push_pull and router_router as bytes in a stream: bodies one after the other, or
 * each copied into a frame and out of it. A ROUTER's names are not sent on the wire,
 * so its stream is the same, with one more call at either end. */
#include "raw.h"

static void *stream_away(void *unused)
{
    size_t each = size + (copied ? head_of(size) : 0), batch = CHUNK / each > 0 ? CHUNK / each : 1;
    unsigned char *chunk = calloc(batch, each), *body = calloc(1, size);

    (void) unused;
    if (chunk == NULL || body == NULL)
        fail("calloc");
    for (uint64_t sent = 0; sent < count;) {
        size_t now = count - sent < batch ? (size_t) (count - sent) : batch;
        for (size_t i = 0; i < now; i++) {
            if (named)
                put_name(RECEIVER, sizeof RECEIVER - 1);
            unsigned char *from = copied ? open_body(body) : chunk + i * each;
            stamp(from, size, sent + i);
            if (copied) {
                put_copy(chunk + i * each, from, size);
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
    size_t each = size + (copied ? head_of(size) : 0), room = CHUNK + each, have = 0;
    unsigned char *buffer = malloc(room), *body = malloc(size);
    uint64_t expected = 0, first = 0;

    if (buffer == NULL || body == NULL)
        fail("malloc");
    connect_ends();
    start_sender(stream_away);
    while (expected < count) {
        size_t n = read_some(far_end, buffer + have, room - have);
        if (n == 0)
            fail("the sender ended early");
        have += n;
        if (first == 0)
            first = now_ns();
        size_t at = 0;
        for (; have - at >= each; at += each, expected++) {
            if (named) {
                char name[NAME];
                expect_sender(name, take_name(name, sizeof name));
            }
            unsigned char *came = copied ? open_body(body) : buffer + at;
            size_t length = copied ? take_copy(buffer + at, came, size) : size;
            corrupted += !intact(came, length, size) || sequence_of(came) != expected;
            if (copied)
                close_body(came);
        }
        have -= at;
        memmove(buffer, buffer + at, have);
    }
    double seconds = (double) (now_ns() - first) / 1e9;
    await_sender();
    free(body);
    free(buffer);
    return seconds;
}
