/* Starts a program under rules (rules.h): confine RULE... -- PROGRAM [ARGUMENT...]
 *
 * Exits with 2 if a rule is invalid or cannot be applied. */
#include "rules.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int at = 1;
    for (; at < count && strcmp(arguments[at], "--") != 0; at++)
        if (rules_take(arguments[at]))
            return fprintf(stderr, "no rule: %s\n", arguments[at]), 2;
    if (at + 1 >= count)
        return fprintf(stderr, "usage: confine RULE... -- PROGRAM [ARGUMENT...]\n"), 2;
    if (rules_missing() || rules_user() || rules_apply())
        return 2;
    execv(arguments[at + 1], arguments + at + 1);
    perror(arguments[at + 1]);
    return 2;
}
