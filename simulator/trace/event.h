// SPDX-License-Identifier: Apache-2.0
//
// The event log: what the timing machine says while it runs, and what every view reads.
#ifndef SIMULATOR_TRACE_EVENT_H
#define SIMULATOR_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/insn.h"
#include "runtime/base/status.h"

enum trace_class {
#define TRACE_CLASS(NAME, key, title, meaning) TRACE_##NAME,
#include "simulator/trace/class.def"
    TRACE_CLASSES
};

enum trace_kind {
#define TRACE_EVENT(NAME, text, meaning) TRACE_EVENT_##NAME,
#include "simulator/trace/event.def"
};

#define TRACE_NO_SEQ UINT64_MAX

/// All times in cycles of the NPU clock. Of STATE: engine, start, done, wait_class (here the class,
/// BUSY too) and wait_engine. Of SEMAPHORE: id, start, change. Of the other kinds but INSN: engine,
/// seq, tag, start, id. Of DISPATCH: start and done on the host, in cycles; issued is when the
/// device starts the launch; seq and tag of its first instruction, id its number, change the views
/// before.
struct trace_event {
    enum trace_kind kind;
    int engine; ///< enum isa_engine
    int opcode; ///< enum isa_op
    uint32_t tag;
    uint32_t pc;         ///< granule of the code where it stands
    uint32_t id;         ///< STAMP, OPEN, CLOSE, IRQ: the instruction's id; SEMAPHORE: which
    int32_t change;      ///< SEMAPHORE: added to its count
    uint64_t seq;        ///< order of dispatch
    uint64_t dispatched; ///< entered the engine's queue
    uint64_t ready;      ///< first in its queue, the engine free of the one before
    uint64_t start;      ///< its waits were over
    uint64_t read;       ///< operands read
    uint64_t issued;     ///< the engine took the next one, or could have
    uint64_t done;       ///< result visible
    enum trace_class wait_class;    ///< the longest part of ready .. start (BUSY: there was none)
    int wait_engine;                ///< signaller of the semaphore waited for last, -1
    uint64_t cause_seq;             ///< instruction whose signal let it start, TRACE_NO_SEQ
    uint64_t cause_cycle;           ///< when that one signalled
    uint64_t work;                  ///< MXU: multiply-adds; VEC: elements; DMA: bytes over the link
    uint32_t dram_read, dram_write; ///< useful bytes, saturating
};

/// Takes events, in an order that is not that of time.
typedef void trace_sink(void *ctx, const struct trace_event *e);

/// What an engine did from one cycle to another. For each engine of the run they cover it from 0 to
/// its end, and the cycles of a class add up to struct trace_engine.
struct trace_state {
    uint64_t from, to;  ///< from < to
    uint8_t engine;     ///< enum isa_engine
    uint8_t cls;        ///< enum trace_class
    int8_t wait_engine; ///< of WAIT_SEMAPHORE and WAIT_DMA: who signals; else -1
};

/// A change of a semaphore's count.
struct trace_semaphore {
    uint64_t cycle;
    uint32_t id;
    int32_t change;
};

/// Bytes of the scratchpad that an instruction reads or writes: the box around an operand.
struct trace_touch {
    uint64_t seq;    ///< the instruction's
    uint32_t lo, hi; ///< bytes [lo, hi)
    bool write;
};

/// Growing log that keeps everything. Zero-initialised is empty.
struct trace_log {
    struct trace_event *event; ///< all kinds but STATE and SEMAPHORE
    size_t count, capacity;
    struct trace_state *state;
    size_t states, state_capacity;
    struct trace_semaphore *semaphore;
    size_t semaphores, semaphore_capacity;
    struct trace_touch *touch; ///< in program order; empty when nobody noted them
    size_t touches, touch_capacity;
    int failed; ///< out of memory: events were dropped
};

/// A trace_sink; ctx is the struct trace_log.
void trace_log_add(void *ctx, const struct trace_event *e);

/// Adds a touch.
void trace_log_touch(struct trace_log *log, const struct trace_touch *t);

/// Sorts events by start, then seq; states by engine, then start;
/// changes of semaphores by cycle, signals before waits. NO_MEMORY when events were
/// dropped.
NPU_MUST_USE npu_status trace_log_finish(struct trace_log *log);

void trace_log_clear(struct trace_log *log);
void trace_log_free(struct trace_log *log);

/// Key, title and meaning of a class.
const char *trace_class_key(enum trace_class c);
const char *trace_class_title(enum trace_class c);
const char *trace_class_meaning(enum trace_class c);

#endif
