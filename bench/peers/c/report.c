/* Result line of a run, in JSON. */
#define _GNU_SOURCE
#include "bench.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* Path of the library that defines zmq_version(): proof of the measured library. */
static const char *library_path(void)
{
    static char path[PATH_MAX];
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "zmq_version");
    if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL
        || realpath(info.dli_fname, path) == NULL)
        return "unknown";
    return path;
}

void result_metric(struct result *result, const char *name, double value)
{
    if (result->metric_count == MAX_METRICS)
        fail("too many metrics");
    result->metrics[result->metric_count].name = name;
    result->metrics[result->metric_count++].value = value;
}

/* Sorts the samples. */
void result_quantiles(struct result *result, uint32_t *samples_ns, uint64_t count)
{
    if (count == 0) {
        errno = 0;
        fail("no samples");
    }
    sort_samples(samples_ns, count);
    result_metric(result, "p50_us", quantile_us(samples_ns, count, 0.5));
    result_metric(result, "p99_us", quantile_us(samples_ns, count, 0.99));
}

void result_tally(struct result *result, const struct tally *tally)
{
    result->lost += tally->lost;
    result->reordered += tally->reordered;
    result->corrupted += tally->corrupted;
}

void result_print(const struct result *result, const struct config *config)
{
    char head[512];
    int major, minor, patch;

    zmq_version(&major, &minor, &patch);
    json_head(head, sizeof head, config);
    printf("{\"ok\":true,%s,\"library\":\"%s\",\"version\":\"%d.%d.%d\",\"messages\":%llu,\"seconds\":%.9f,"
           "\"cpu_seconds\":%.6f,\"lost\":%llu,\"reordered\":%llu,\"corrupted\":%llu,\"metrics\":{",
           head, library_path(), major, minor, patch, (unsigned long long) result->messages, result->seconds,
           result->cpu_seconds, (unsigned long long) result->lost, (unsigned long long) result->reordered,
           (unsigned long long) result->corrupted);
    for (int i = 0; i < result->metric_count; i++)
        printf("%s\"%s\":%.4f", i ? "," : "", result->metrics[i].name, result->metrics[i].value);
    printf("}}\n");
}
