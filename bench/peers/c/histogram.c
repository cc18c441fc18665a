#include "histogram.h"

static int bucket_of(uint64_t ns)
{
    int power = 63 - __builtin_clzll(ns | 64);
    return power * 64 + (int) (ns >> (power - 6) & 63);
}

static double bucket_us(int bucket)
{
    return (double) ((UINT64_C(64) + (uint64_t) (bucket % 64)) << (bucket / 64 - 6)) / 1e3;
}

void histogram_record(struct histogram *histogram, uint64_t ns)
{
    histogram->bucket[bucket_of(ns)]++;
}

void histogram_add(struct shared_histogram *to, const struct histogram *from)
{
    for (int i = 0; i < BUCKETS; i++)
        atomic_fetch_add(&to->bucket[i], from->bucket[i]);
}

double histogram_quantile_us(struct shared_histogram *histogram, double q)
{
    uint64_t total = 0, seen = 0;

    for (int i = 0; i < BUCKETS; i++)
        total += atomic_load(&histogram->bucket[i]);
    for (int i = 0; i < BUCKETS; i++) {
        seen += atomic_load(&histogram->bucket[i]);
        if (seen > 0 && (double) seen >= q * (double) total)
            return bucket_us(i);
    }
    return 0;
}
