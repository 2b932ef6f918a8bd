// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/json_out.h"

#include <inttypes.h>

void json_open(struct json_view *v, char phase, int pid, int tid) {
    str_printf(v->s, "%s{\"ph\":\"%c\",\"pid\":%d,\"tid\":%d", v->any ? ",\n" : "\n", phase, pid,
               tid);
    v->any = true;
}

void json_close(struct json_view *v) {
    str_putc(v->s, '}');
    trace_out_flush(v->out);
}

static uint64_t nanoseconds(const struct json_view *v, uint64_t cycle) {
    return cycle * 1000 / (uint64_t)v->run->hw->clock_npu_mhz;
}

static void microseconds(struct json_view *v, const char *key, uint64_t ns) {
    str_printf(v->s, ",\"%s\":%" PRIu64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

void json_ts(struct json_view *v, uint64_t cycle) {
    microseconds(v, "ts", nanoseconds(v, cycle));
}

void json_dur(struct json_view *v, uint64_t from, uint64_t to) {
    microseconds(v, "dur", nanoseconds(v, to) - nanoseconds(v, from));
}

void json_text(struct json_view *v, const char *key, const char *text) {
    if (!text) return;
    str_printf(v->s, ",\"%s\":", key);
    str_json(v->s, text);
}

static void metadata(struct json_view *v, int pid, int tid, const char *what, const char *name,
                     int place) {
    json_open(v, 'M', pid, tid);
    str_printf(v->s, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
    str_json(v->s, name);
    str_putc(v->s, '}');
    json_close(v);
    json_open(v, 'M', pid, tid);
    str_printf(v->s, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%d}", what, place);
    json_close(v);
}

void json_process(struct json_view *v, int pid, const char *name) {
    metadata(v, pid, pid, "process", name, pid);
}

void json_thread(struct json_view *v, int pid, int tid, const char *name) {
    metadata(v, pid, tid, "thread", name, tid);
}
