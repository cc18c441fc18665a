/* Histogram of times in nanoseconds. Each power of two has 64 buckets, so a quantile is exact to 1.6 %. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define BUCKETS (64 * 64)

struct histogram {
    uint64_t bucket[BUCKETS];
};

/* Sum of the histograms of several processes. In shared memory, zeroed. */
struct shared_histogram {
    _Atomic uint64_t bucket[BUCKETS];
};

void histogram_record(struct histogram *histogram, uint64_t ns);
void histogram_add(struct shared_histogram *to, const struct histogram *from);
/* Returns the quantile of all recorded times; 0 if there are none. */
double histogram_quantile_us(struct shared_histogram *histogram, double q);

#endif
