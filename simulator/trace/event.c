// SPDX-License-Identifier: Apache-2.0
//
// The event log in memory, and the names of classes.
#include "simulator/trace/event.h"

#include <stdbool.h>
#include <stdlib.h>

#include "runtime/base/alloc.h"

// Room for one more item; false: out of memory, noted.
static bool grow(struct trace_log *log, void **items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return true;
    const size_t wanted = *capacity ? *capacity * 2 : 4096;
    void *grown = base_realloc(*items, wanted * size);
    if (!grown) {
        log->failed = 1;
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

static void add_state(struct trace_log *log, const struct trace_event *e) {
    void *items = log->state;
    if (!grow(log, &items, log->states, &log->state_capacity, sizeof *log->state)) return;
    log->state = items;
    log->state[log->states++] = (struct trace_state){.from = e->start,
                                                     .to = e->done,
                                                     .engine = (uint8_t)e->engine,
                                                     .cls = (uint8_t)e->wait_class,
                                                     .wait_engine = (int8_t)e->wait_engine};
}

static void add_semaphore(struct trace_log *log, const struct trace_event *e) {
    void *items = log->semaphore;
    if (!grow(log, &items, log->semaphores, &log->semaphore_capacity, sizeof *log->semaphore))
        return;
    log->semaphore = items;
    log->semaphore[log->semaphores++] =
        (struct trace_semaphore){.cycle = e->start, .id = e->id, .change = e->change};
}

void trace_log_add(void *ctx, const struct trace_event *e) {
    struct trace_log *log = ctx;
    if (e->kind == TRACE_EVENT_STATE) {
        add_state(log, e);
        return;
    }
    if (e->kind == TRACE_EVENT_SEMAPHORE) {
        add_semaphore(log, e);
        return;
    }
    void *items = log->event;
    if (!grow(log, &items, log->count, &log->capacity, sizeof *log->event)) return;
    log->event = items;
    log->event[log->count++] = *e;
}

void trace_log_touch(struct trace_log *log, const struct trace_touch *t) {
    void *items = log->touch;
    if (!grow(log, &items, log->touches, &log->touch_capacity, sizeof *log->touch)) return;
    log->touch = items;
    log->touch[log->touches++] = *t;
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

static int by_cycle(const void *a, const void *b) {
    const struct trace_semaphore *x = a, *y = b;
    if (x->cycle != y->cycle) return x->cycle < y->cycle ? -1 : 1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return y->change < x->change ? -1 : y->change > x->change;
}

npu_status trace_log_finish(struct trace_log *log) {
    if (log->count) qsort(log->event, log->count, sizeof *log->event, by_start);
    if (log->states) qsort(log->state, log->states, sizeof *log->state, by_engine);
    if (log->semaphores) qsort(log->semaphore, log->semaphores, sizeof *log->semaphore, by_cycle);
    if (log->failed)
        return npu_fail(NO_MEMORY, "no memory for the event log, %zu events kept", log->count);
    return NULL;
}

void trace_log_clear(struct trace_log *log) {
    log->count = log->states = log->semaphores = log->touches = 0;
    log->failed = 0;
}

void trace_log_free(struct trace_log *log) {
    base_free(log->event);
    base_free(log->state);
    base_free(log->semaphore);
    base_free(log->touch);
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
