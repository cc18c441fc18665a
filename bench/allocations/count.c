/* Counts the heap allocations of a program: preloaded into it, for glibc on Linux.
 *
 * The counters are in the file that COUNT_FILE names, as 64-bit numbers in this order: allocations, frees, bytes asked for, live bytes.
 * Live bytes include the unused end of a block. A realloc counts as an allocation and a free. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

struct counters {
    uint64_t allocations, frees, asked, live;
};

/* Used before the file is mapped. Without a file, used for the whole run. */
static struct counters before_main;
static struct counters *counters = &before_main;

static void add(uint64_t *counter, uint64_t amount)
{
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void map_counters(void)
{
    const char *path = getenv("COUNT_FILE");
    int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (file < 0 || ftruncate(file, sizeof *counters) != 0)
        return;
    struct counters *mapped = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return;
    *mapped = before_main;
    counters = mapped;
}

static void *taken(void *block, size_t asked)
{
    if (block != NULL) {
        add(&counters->allocations, 1);
        add(&counters->asked, asked);
        add(&counters->live, malloc_usable_size(block));
    }
    return block;
}

static void given_back(uint64_t usable)
{
    add(&counters->frees, 1);
    add(&counters->live, -usable);
}

void *malloc(size_t size)
{
    return taken(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
    return taken(__libc_calloc(count, size), count * size);
}

void *realloc(void *block, size_t size)
{
    uint64_t usable = block != NULL ? malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, size);

    if (block != NULL && (moved != NULL || size == 0))
        given_back(usable);
    return taken(moved, size);
}

void *memalign(size_t alignment, size_t size)
{
    return taken(__libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *aligned;

    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
        return EINVAL;
    aligned = memalign(alignment, size);
    if (aligned == NULL)
        return ENOMEM;
    *block = aligned;
    return 0;
}

void free(void *block)
{
    if (block == NULL)
        return;
    given_back(malloc_usable_size(block));
    __libc_free(block);
}
