/* Errors: a run that fails or hangs always ends with one JSON line that reports it. */
#include "bench.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static char head[512];
static const struct config *running;
static const struct tally *watched[MAX_SUBSCRIBERS];
static volatile int watched_count;

void json_head(char *text, size_t room, const struct config *config)
{
    snprintf(text, room,
             "\"pattern\":\"%s\",\"transport\":\"%s\",\"size\":%zu,\"count\":%llu,\"api\":\"%s\","
             "\"processes\":%d,\"subscribers\":%d",
             config->pattern_name, config->transport, config->size, (unsigned long long) config->count,
             config->api, config->two_processes ? 2 : 1, config->subscribers);
}

static void put(const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t n = write(STDOUT_FILENO, text, length);
        if (n <= 0)
            return;
        text += n;
        length -= (size_t) n;
    }
}

/* Removes the files of the ipc endpoints. Also called from the signal handler, where
   unlink(2) and rmdir(2) are allowed. */
void remove_directory(void)
{
    char path[sizeof running->directory + 4];
    size_t length;

    if (running == NULL || running->directory[0] == 0)
        return;
    strcpy(path, running->directory);
    length = strlen(path);
    for (int i = 0; i < MAX_SUBSCRIBERS; i++) {
        path[length] = '/';
        path[length + 1] = (char) ('a' + i / 26);
        path[length + 2] = (char) ('a' + i % 26);
        path[length + 3] = 0;
        unlink(path);
    }
    rmdir(running->directory);
}

void fail(const char *what)
{
    char line[1024];
    int number = errno ? errno : zmq_errno();
    snprintf(line, sizeof line, "{\"ok\":false,%s%s\"error\":\"%s: %s\"}\n", head, head[0] ? "," : "", what,
             number ? zmq_strerror(number) : "unexpected");
    put(line);
    remove_directory();
    _exit(2);
}

static void put_number(uint64_t n)
{
    char digits[24];
    int at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char) ('0' + n % 10);
        n /= 10;
    } while (n > 0);
    put(digits + at);
}

/* Runs as a signal handler: only write(2) and arithmetic. */
static void expired(int signal_number)
{
    uint64_t received = 0;
    (void) signal_number;
    for (int i = 0; i < watched_count; i++)
        received += watched[i]->received;
    put("{\"ok\":false,");
    put(head);
    put(",\"received\":");
    put_number(received);
    put(",\"error\":\"hung: the watchdog ended it after ");
    put_number(received);
    put(" received messages\"}\n");
    remove_directory();
    _exit(3);
}

void watchdog_start(const struct config *config)
{
    running = config;
    json_head(head, sizeof head, config);
    signal(SIGALRM, expired);
    alarm((unsigned) config->timeout_s);
}

void watchdog_watch(const struct tally *tally)
{
    if (watched_count < MAX_SUBSCRIBERS)
        watched[watched_count++] = tally;
}
