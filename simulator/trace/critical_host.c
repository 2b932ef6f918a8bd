// SPDX-License-Identifier: Apache-2.0
//
// The log has neither the length of the queue nor what the host did of the time in which it also
// waited for a place. The length: a launch that waited is made when an earlier one starts on the
// device; the farthest such pair is as many places apart, if no launch was made before its place
// was free. The work: all waits together are known (struct trace_host), so the mean of those
// launches is.
#include "simulator/trace/critical_host.h"

#include "runtime/base/alloc.h"

// 0: the queue was never full.
static size_t places(const struct critical_launch *l, size_t n) {
    size_t most = 0;
    for (size_t i = 0, j = 0; i < n; i++) {
        while (j < i && l[j].event->issued < l[i].event->done)
            j++;
        if (j < i && l[j].event->issued == l[i].event->done && i - j > most) most = i - j;
    }
    for (size_t i = most; most && i < n; i++)
        if (l[i].event->done < l[i - most].event->issued) return 0;
    return most;
}

static void waits(const struct trace_run *run, struct critical_launch *l, size_t n) {
    const size_t most = run->launches.full_us > 0 ? places(l, n) : 0;
    double busy = -run->launches.full_us * (double)run->hw->clock_npu_mhz, count = 0;
    for (size_t i = most; most && i < n; i++) {
        l[i].place = i - most;
        if (l[i].event->done != l[i - most].event->issued) continue;
        busy += (double)(l[i].event->done - l[i].event->start);
        count++;
    }
    const int64_t mean = count > 0 && busy > 0 ? (int64_t)(busy / count) : 0;
    for (size_t i = most; most && i < n; i++) {
        const int64_t all = (int64_t)(l[i].event->done - l[i].event->start);
        if (l[i].event->done == l[i - most].event->issued && all > mean) l[i].lag -= all - mean;
    }
}

npu_status critical_launches(const struct trace_run *run, const struct trace_log *log,
                             struct critical_launch **out, size_t *count) {
    size_t n = 0;
    for (size_t i = 0; i < log->count; i++)
        n += log->event[i].kind == TRACE_EVENT_DISPATCH;
    struct critical_launch *l = base_alloc_array(n + 1, sizeof *l);
    if (!l) return npu_fail(NO_MEMORY, "no memory for the critical path of %zu launches", n);
    uint64_t before = 0;
    n = 0;
    for (size_t i = 0; i < log->count; i++) {
        const struct trace_event *e = &log->event[i];
        if (e->kind != TRACE_EVENT_DISPATCH) continue;
        l[n] = (struct critical_launch){e, (int64_t)(e->done - before), n};
        before = e->done;
        n++;
    }
    waits(run, l, n);
    *out = l;
    *count = n;
    return NULL;
}
