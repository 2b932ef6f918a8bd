// SPDX-License-Identifier: Apache-2.0
//
// The critical path of a run: which chain of instructions its length comes from, and by how much
// each instruction could be later without the end moving.
//
// Two moments per instruction. Of an engine's: entering the queue, start. Of the command
// processor's: start of decoding, end. What one moment waits for:
//
//   dispatch   the instruction before it in program order has left the command processor, plus its
//              own decoding
//   slot       its queue has room: the instruction queue_depth places before it has started
//   queue      it has entered its queue
//   engine     the instruction before it has been issued
//   result     an instruction shortly before it on its engine is done, where that is when it starts
//   signal     the signals that its semaphores wait for. The n-th count of a semaphore is always
//              the same instruction's (one signaller, in order), so those that were there early
//              are known too
//   barrier    BARRIER, HALT: everything handed out is done
//
// An eager program's launches have two moments too: made by the host, started by the device. The
// first waits for the launch before it to be made, plus the host's own work, and for room in the
// host's queue (both: host); the second for the first (host) and for the end of the launch before
// (barrier). What the host does takes as long on any machine.
//
// What remains (fetching, arbitration) stays with the instruction. Steps of the path add up to the
// run's length.
#ifndef SIMULATOR_TRACE_CRITICAL_H
#define SIMULATOR_TRACE_CRITICAL_H

#include "simulator/trace/trace.h"

enum critical_kind {
    CRITICAL_DISPATCH,
    CRITICAL_SLOT,
    CRITICAL_QUEUE,
    CRITICAL_ENGINE,
    CRITICAL_RESULT,
    CRITICAL_SIGNAL,
    CRITICAL_BARRIER,
    CRITICAL_HOST,
};

/// A step: between two moments the path was with this instruction, or with the host for the launch
/// that it is of.
struct critical_step {
    uint32_t insn; ///< number among the log's instructions, in order of start
    enum critical_kind kind;
    uint64_t from, to;             ///< cycles; steps follow each other without gaps
    uint64_t work, latency, other; ///< of them; they add up to to - from
};

struct critical;

/// From a finished log. *out is NULL when the run's code is not known. NO_MEMORY. Release with
/// critical_free (NULL is allowed).
NPU_MUST_USE npu_status critical_new(const struct trace_run *run, const struct trace_log *log,
                                     struct critical **out);
void critical_free(struct critical *c);

/// In order of time.
const struct critical_step *critical_steps(const struct critical *c, size_t *count);

/// Cycles by which the insn-th instruction could start later.
uint64_t critical_slack(const struct critical *c, size_t insn);

/// Dependences that said that something happened too early; 0 unless the machine knows more than
/// the rules above.
size_t critical_contradictions(const struct critical *c);

/// A change of the machine as factors on what instructions take. A field of 0 means 1.
struct critical_change {
    double compute, vector; ///< issue time of MXU, VEC
    double memory;          ///< external memory: what a transfer takes, its link's time at least
    double link;            ///< DMA: time that its link needs
    double earlier_ps;      ///< external memory: each transfer is over so much sooner
    bool no_memory;         ///< external memory takes no time
    bool no_refresh;        ///< nor does refresh: its share of the DMA engines' waits goes
    double decode;          ///< command processor
    bool no_latency;        ///< signals are seen at once
    bool no_queue;          ///< engines' queues never fill
    double host;            ///< what the host does, in cycles of the changed machine's clock
};

/// Length of the run with that change, by the longest path. NO_MEMORY.
NPU_MUST_USE npu_status critical_predict(const struct critical *c,
                                         const struct critical_change *change, double *cycles);

#endif
