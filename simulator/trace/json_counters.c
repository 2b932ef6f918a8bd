// SPDX-License-Identifier: Apache-2.0
//
// Counter events. Each curve is a counter of its own: viewers stack the values of one counter,
// which then have to be given together.
#include "simulator/trace/counters.h"
#include "simulator/trace/json_out.h"

static void counter(struct json_view *v, const struct trace_counter *c) {
    for (size_t i = 0; i < c->n; i++) {
        json_open(v, 'C', JSON_COUNTERS, JSON_THREAD_COUNTER);
        json_ts(v, c->point[i].cycle);
        str_printf(v->s, ",\"name\":\"%s %s\",\"args\":{\"%s\":%.*f}", c->group, c->name, c->unit,
                   c->whole ? 0 : 2, c->point[i].value);
        json_close(v);
    }
}

npu_status json_counters(struct json_view *v) {
    struct trace_counter *c;
    size_t n;
    NPU_TRY(trace_counters(v->run, v->log, &c, &n));
    json_thread(v, JSON_COUNTERS, JSON_THREAD_COUNTER, "counters");
    for (size_t i = 0; i < n; i++)
        counter(v, &c[i]);
    trace_counters_free(c, n);
    return NULL;
}
