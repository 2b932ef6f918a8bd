// SPDX-License-Identifier: Apache-2.0
//
// Trace events one by one: what json.c and json_counters.c share.
#ifndef SIMULATOR_TRACE_JSON_OUT_H
#define SIMULATOR_TRACE_JSON_OUT_H

#include "simulator/trace/out.h"
#include "simulator/trace/trace.h"

// Processes of the file. A thread's number is its own in the whole file, because Perfetto gives
// names to numbers of threads alone, and neither 0 nor that of a process.
enum { JSON_ENGINES = 1, JSON_LAYERS, JSON_COUNTERS };
enum {
    JSON_THREAD_HOST = 1,        // of an eager program
    JSON_THREAD_MARK = 1000,     // the program's own marks
    JSON_THREAD_COUNTER = 2000,  // counters want a thread, too
    JSON_THREAD_LAYER = 10000,   // + lane
    JSON_THREAD_ENGINE = 100000, // * (1 + engine), + lane
    JSON_THREAD_STATE = 99999,   // + that of the engine
};

struct json_view {
    const struct trace_run *run;
    const struct trace_log *log;
    struct trace_out *out;
    struct str *s;
    bool any;
};

/// "{" of the next event, with its phase, process and thread.
void json_open(struct json_view *v, char phase, int pid, int tid);

/// ,"ts":... and ,"dur":... in microseconds with three digits, which is what readers keep. Rounded
/// down, both ends in the same way, so that neighbours do not overlap.
void json_ts(struct json_view *v, uint64_t cycle);
void json_dur(struct json_view *v, uint64_t from, uint64_t to);

/// ,"key":"text" with the text escaped; nothing for NULL.
void json_text(struct json_view *v, const char *key, const char *text);

/// "}" of an event; passes the text on when there is enough of it.
void json_close(struct json_view *v);

/// Name and place of a process or thread among the others.
void json_process(struct json_view *v, int pid, const char *name);
void json_thread(struct json_view *v, int pid, int tid, const char *name);

/// Counters (json_counters.c). NO_MEMORY.
NPU_MUST_USE npu_status json_counters(struct json_view *v);

#endif
