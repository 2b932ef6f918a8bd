// SPDX-License-Identifier: Apache-2.0
// What a run fetches: its instructions in order, through the machine's instruction memory.
//
// LOOP, BR (taken to be unconditional), CALL and RET are followed. Of a loop two iterations are
// walked: what the second one fetches, every further one does.
#include <string.h>

#include "isa/timing.h"
#include "toolchain/codegen/codegen.h"

#define NEST 8

struct walk {
    const struct codegen_stream *s;
    struct isa_fetch memory;
    int64_t *granule; // of each instruction, and the end
    int64_t *held;    // by place in instruction memory: number of the block + 1
    int64_t blocks;   // of the code
    struct codegen_fetch sum;
    int64_t current; // block + 1
};

static void ask(struct walk *w, int64_t block) {
    int64_t *at = &w->held[block % w->memory.blocks];
    if (block >= w->blocks || *at == block + 1) return;
    *at = block + 1;
    int64_t end = w->granule[w->s->n] * ISA_GRANULE_BYTES, first = block * w->memory.block_bytes;
    w->sum.bytes += end - first < w->memory.block_bytes ? end - first : w->memory.block_bytes;
}

static void enter(struct walk *w, int i) {
    int64_t first = w->granule[i] * ISA_GRANULE_BYTES / w->memory.block_bytes,
            last = (w->granule[i + 1] * ISA_GRANULE_BYTES - 1) / w->memory.block_bytes;
    for (int64_t b = first; b <= last; b++) {
        if (b + 1 == w->current) continue;
        w->sum.misses += w->held[b % w->memory.blocks] != b + 1;
        for (int64_t k = 0; k <= w->memory.ahead; k++)
            ask(w, b + k);
        w->current = b + 1;
    }
}

// The instruction that begins at a granule.
static int at_granule(const struct walk *w, int64_t granule) {
    int lo = 0, hi = w->s->n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (w->granule[middle] < granule)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

// A loop that is open: where its body begins, iterations left, what was fetched before this one.
struct turn {
    int body;
    int64_t left;
    struct codegen_fetch sum;
    bool second;
};

static void run(struct walk *w) {
    struct turn loop[NEST];
    int back[NEST], nloop = 0, nback = 0;
    for (int i = 0; i < w->s->n;) {
        const struct isa_insn *in = &w->s->insn[i];
        enter(w, i++);
        if (in->h.opcode == ISA_OP_HALT) return;
        if (in->h.opcode == ISA_OP_LOOP && nloop < NEST) {
            loop[nloop++] = (struct turn){i, in->u.LOOP.count, w->sum, false};
        } else if (in->h.opcode == ISA_OP_ENDL && nloop) {
            struct turn *t = &loop[nloop - 1];
            if (--t->left > 0 && !t->second) {
                t->second = true;
                t->sum = w->sum;
                i = t->body;
            } else {
                int64_t more = t->left > 0 ? t->left : 0;
                w->sum.bytes += more * (w->sum.bytes - t->sum.bytes);
                w->sum.misses += more * (w->sum.misses - t->sum.misses);
                nloop--;
            }
        } else if (in->h.opcode == ISA_OP_CALL && nback < NEST) {
            back[nback++] = i;
            i = at_granule(w, w->granule[i - 1] + in->u.CALL.offset);
        } else if (in->h.opcode == ISA_OP_BR) { // always taken
            i = at_granule(w, w->granule[i - 1] + in->u.BR.offset);
        } else if (in->h.opcode == ISA_OP_RET && nback) {
            i = back[--nback];
        }
    }
}

struct codegen_fetch codegen_fetched(struct arena *a, const struct hw *hw,
                                     const struct codegen_stream *s) {
    struct arena *scratch = arena_scratch(a);
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    struct walk w = {.s = s, .memory = isa_time_fetch(hw)};
    w.granule = ARENA_ARRAY(scratch, int64_t, (size_t)s->n + 1);
    w.held = ARENA_ARRAY(scratch, int64_t, (size_t)w.memory.blocks);
    for (int i = 0; i < s->n; i++)
        w.granule[i + 1] = w.granule[i] + isa_encode(&s->insn[i], bytes, &field);
    w.blocks =
        (w.granule[s->n] * ISA_GRANULE_BYTES + w.memory.block_bytes - 1) / w.memory.block_bytes;
    run(&w);
    arena_free(scratch);
    return w.sum;
}
