/*
 * strangers [COUNT]: peers that offer memory without a handshake. The program counts the victim's mappings and descriptors, and checks that
 * a good client is served.
 */
#include "ipc.h"
#include <dirent.h>

static int descriptors(void)
{
    char name[64];
    int count = -2;
    snprintf(name, sizeof name, "/proc/%d/fd", (int)victim);
    DIR *directory = opendir(name);
    for (; directory && readdir(directory); count++) {
    }
    if (directory)
        closedir(directory);
    return count;
}

static int mappings(void)
{
    char name[64], line[512];
    int count = 0;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)victim);
    FILE *file = fopen(name, "r");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, "memfd:attack") != NULL;
    if (file)
        fclose(file);
    return count;
}

int main(int count, char **words)
{
    int strangers = count > 1 ? atoi(words[1]) : 40, refused = 0;
    start_victim(0);
    double before = slowest_answer_ms(0);
    int held = descriptors();
    for (int stranger = 0; stranger < strangers; stranger++) {
        char *memory;
        int pair[2], fds[2];
        NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        fds[0] = make_region(RING, &memory);
        fds[1] = pair[1];
        munmap(memory, PAGE + RING);
        refused += send_rights(call_victim(), "\xff", 1, fds, 2) != 0;
        close(fds[0]);
        close(pair[0]);
        close(pair[1]);
    }
    let_victim_look(0);
    int mapped = mappings();
    /* A separate thread of the victim closes the received descriptors. If they stay open, the time limit of the suite ends the program. */
    while (descriptors() - held > strangers + 1)
        sched_yield();
    held = descriptors() - held;
    double during = slowest_answer_ms(0);
    finish(mapped > 0 || during > LATE_MS,
           "strangers: %d of %d regions mapped, %d descriptors held, %d sends refused, slowest answer %.1f ms, before %.1f",
           mapped, strangers, held, refused, during, before);
}
