// SPDX-License-Identifier: Apache-2.0
//
// The event log in memory, and the names of classes.
#include "simulator/trace/event.h"

#include <stdlib.h>

#include "runtime/base/alloc.h"

static void add_state(struct trace_log *log, const struct trace_event *e) {
    if (log->states == log->state_capacity) {
        const size_t capacity = log->state_capacity ? log->state_capacity * 2 : 4096;
        struct trace_state *grown = base_realloc(log->state, capacity * sizeof *grown);
        if (!grown) {
            log->failed = 1;
            return;
        }
        log->state = grown;
        log->state_capacity = capacity;
    }
    log->state[log->states++] = (struct trace_state){.from = e->start,
                                                     .to = e->done,
                                                     .engine = (uint8_t)e->engine,
                                                     .cls = (uint8_t)e->wait_class,
                                                     .wait_engine = (int8_t)e->wait_engine};
}

void trace_log_add(void *ctx, const struct trace_event *e) {
    struct trace_log *log = ctx;
    if (e->kind == TRACE_EVENT_STATE) {
        add_state(log, e);
        return;
    }
    if (log->count == log->capacity) {
        const size_t capacity = log->capacity ? log->capacity * 2 : 4096;
        struct trace_event *grown = base_realloc(log->event, capacity * sizeof *grown);
        if (!grown) {
            log->failed = 1;
            return;
        }
        log->event = grown;
        log->capacity = capacity;
    }
    log->event[log->count++] = *e;
}

static int by_start(const void *a, const void *b) {
    const struct trace_event *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->seq != y->seq) return x->seq < y->seq ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

static int by_engine(const void *a, const void *b) {
    const struct trace_state *x = a, *y = b;
    if (x->engine != y->engine) return (int)x->engine - (int)y->engine;
    return x->from < y->from ? -1 : x->from > y->from;
}

npu_status trace_log_finish(struct trace_log *log) {
    if (log->count) qsort(log->event, log->count, sizeof *log->event, by_start);
    if (log->states) qsort(log->state, log->states, sizeof *log->state, by_engine);
    if (log->failed)
        return npu_fail(NO_MEMORY, "no memory for the event log, %zu events kept", log->count);
    return NULL;
}

void trace_log_clear(struct trace_log *log) {
    log->count = log->states = 0;
    log->failed = 0;
}

void trace_log_free(struct trace_log *log) {
    base_free(log->event);
    base_free(log->state);
    *log = (struct trace_log){0};
}

static const struct {
    const char *key, *title, *meaning;
} classes[] = {
#define TRACE_CLASS(NAME, key, title, meaning) {key, title, meaning},
#include "simulator/trace/class.def"
};

const char *trace_class_key(enum trace_class c) {
    return classes[c].key;
}

const char *trace_class_title(enum trace_class c) {
    return classes[c].title;
}

const char *trace_class_meaning(enum trace_class c) {
    return classes[c].meaning;
}
