/*
 * unload MODULE: repeatedly loads and unloads a library that ends its context during the unload. The dynamic loader holds its lock then,
 * and the library's I/O thread must not need this lock.
 *
 * unload MODULE exit: loads the library, and returns from main at once.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int round;
    for (round = 0; argc > 1 && round < 20; round++) {
        int (*begin)(void) = NULL;
        void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        void *symbol = module ? dlsym(module, "module_begin") : NULL;
        /* ISO C has no conversion from a data pointer to a function pointer. */
        memcpy(&begin, &symbol, sizeof begin);
        int is_last = argc > 2 && strcmp(argv[2], "exit") == 0;
        if (symbol == NULL || begin() != 0 || (!is_last && dlclose(module) != 0)) {
            const char *why = dlerror();
            fprintf(stderr, "unload: round %d: %s\n", round, why ? why : "the module does not begin");
            return 1;
        }
        if (is_last)
            return 0;
    }
    return 0;
}
