// SPDX-License-Identifier: Apache-2.0
// Lowering: places every value, then turns the nodes into kernels one after another.
#include "toolchain/lower/lower.h"

#include <string.h>

#include "runtime/base/str.h"
#include "toolchain/lower/internal.h"

typedef npu_status lower_fn(struct lower *L, const struct graph_node *n);

static lower_fn *const lower_fns[GRAPH_OPS] = {
#define LOWER_OP(N, fn) [GRAPH_##N] = lower_##fn,
#include "toolchain/lower/lower.def"
};

// Bytes of input i that any program has to read: of a table no more than the rows that are chosen.
static int64_t needed_bytes(const struct graph_node *n, int i) {
    int64_t bytes = graph_value_bytes(n->inputs[i]);
    if (n->op != GRAPH_GATHER || i != 0) return bytes;
    return lower_min(bytes,
                     graph_value_elems(n->outputs[0]) * lower_dtype_bytes(n->inputs[0]->dtype));
}

static bool repeats(const struct graph_node *n, int i) {
    for (int j = 0; j < i; j++)
        if (n->inputs[j] == n->inputs[i]) return true;
    return false;
}

void lower_kernel(struct lower *L, const struct graph_node *n, const char *kernel) {
    L->node = n;
    L->kernel = tile_kernel_begin(L->p, n->name, graph_ops[n->op].text,
                                  n->kernel ? n->kernel : kernel, n->origins, n->norigin);
    for (int i = 0; i < n->nin; i++) {
        if (repeats(n, i)) continue;
        *(n->inputs[i]->data ? &L->kernel->weight_bytes : &L->kernel->input_bytes) +=
            needed_bytes(n, i);
    }
    for (int i = 0; i < n->nout; i++)
        L->kernel->output_bytes += graph_value_bytes(n->outputs[i]);
}

void lower_product(struct lower *L, int64_t batch, int64_t m, int64_t n, int64_t k,
                   enum isa_dtype dtype) {
    struct tile_kernel *t = L->kernel;
    bool first =
        !t->batch && batch <= UINT32_MAX && m <= UINT32_MAX && n <= UINT32_MAX && k <= UINT32_MAX;
    t->m = first ? m : 0;
    t->n = first ? n : 0;
    t->k = first ? k : 0;
    t->batch = batch;
    t->dtype = dtype;
}

struct lower_epilogue lower_epilogue_of(const struct lower *L, const struct graph_node *n) {
    struct lower_epilogue e;
    memset(&e, 0, sizeof e);
    if (!n->has_chain) return e;
    e.chain = n->chain;
    for (int k = 1; k < 3; k++) {
        if (n->chain_in[k] < 0) continue;
        e.has[k] = true;
        e.in[k] =
            lower_broadcast(L, n->inputs[n->chain_in[k]], n->outputs[0]->rank, n->outputs[0]->dims);
    }
    return e;
}

// Sizes of every value, the model's inputs and outputs among them: nothing is empty, nothing larger
// than the memory.
static npu_status check_sizes(const struct graph *g, const struct hw *hw) {
    npu_status all = NULL;
    for (int i = 0; i < g->nvalue; i++) {
        const struct graph_value *v = g->values[i];
        if (!v || (v->data && !v->is_output && !graph_count_uses(g, v))) continue;
        bool empty = false;
        double bytes = (double)isa_dtype_bits((int)v->dtype) / 8;
        for (int d = 0; d < v->rank; d++) {
            bytes *= (double)v->dims[d];
            if (v->dims[d] < 1 && !empty)
                all = npu_status_join(
                    all, npu_fail(UNSUPPORTED,
                                  "value '%s' has dimension %d of size %lld; at least 1 is needed",
                                  v->name, d, (long long)v->dims[d]));
            empty |= v->dims[d] < 1;
        }
        if (bytes > (double)hw->dram_bytes)
            all = npu_status_join(all, npu_fail(NO_FIT,
                                                "value '%s' takes %.0f bytes, the target's memory "
                                                "has %lld (dram.bytes)",
                                                v->name, bytes, (long long)hw->dram_bytes));
    }
    return all;
}

// Every node that has no kernel, and every value of a type that no engine takes.
static npu_status check(const struct graph *g, const struct hw *hw) {
    npu_status all = NULL;
    for (const struct graph_node *n = g->first; n; n = n->next) {
        if (!lower_fns[n->op])
            all = npu_status_join(all, npu_fail(UNSUPPORTED,
                                                "node '%s': op %s reaches lowering; a pass folds "
                                                "or expands it when its inputs are constant",
                                                n->name, graph_ops[n->op].text));
        for (int i = 0; i < n->nin + n->nout; i++) {
            const struct graph_value *v = i < n->nin ? n->inputs[i] : n->outputs[i - n->nin];
            if (isa_dtype_bits((int)v->dtype) < 8 || v->dtype == ISA_F64 || v->dtype == ISA_U64)
                all = npu_status_join(
                    all,
                    npu_fail(UNSUPPORTED,
                             "node '%s' (%s): value '%s' is %s, which engines do not take", n->name,
                             graph_ops[n->op].text, v->name, isa_dtype_name((int)v->dtype)));
        }
    }
    return npu_status_join(all, check_sizes(g, hw));
}

// An output that is an input or a constant: its own buffer, filled by a copy.
static npu_status copy_outputs(struct lower *L) {
    for (int i = 0; i < L->g->noutput; i++) {
        const struct graph_value *v = L->g->outputs[i];
        bool again = false;
        for (int j = 0; j < i; j++)
            again = again || L->g->outputs[j] == v;
        if (again || v->state || (!v->is_input && !v->data)) continue;
        struct graph_node n = {.op = GRAPH_COPY, .name = v->name};
        L->node = &n;
        L->kernel = tile_kernel_begin(L->p, v->name, "copy", "copy", NULL, 0);
        L->kernel->text = arena_printf(L->a, "%%%s = copy %%%s", v->name, v->name);
        L->kernel->input_bytes = L->kernel->output_bytes = graph_value_bytes(v);
        struct lower_affine a = {.rank = v->rank,
                                 .has = {true, false, false},
                                 .in = {L->place[v->id]},
                                 .out = L->place[v->id]};
        memcpy(a.size, v->dims, sizeof v->dims);
        a.out.buf =
            tile_add_dram(L->p, v->name, TILE_OUTPUT, lower_max(graph_value_bytes(v), 1), NULL, v);
        NPU_TRY(lower_affine_run(L, &a));
    }
    return NULL;
}

// What states become, behind everything that reads them.
static npu_status copy_states(struct lower *L) {
    for (int i = 0; i < L->g->noutput; i++) {
        const struct graph_value *v = L->g->outputs[i], *s = v->state;
        if (!s || L->place[v->id].buf == L->place[s->id].buf) continue;
        struct graph_node n = {.op = GRAPH_COPY, .name = s->name};
        L->node = &n;
        L->kernel = tile_kernel_begin(L->p, s->name, "state", "copy", NULL, 0);
        L->kernel->text = arena_printf(L->a, "%%%s = state %%%s", s->name, v->name);
        L->kernel->input_bytes = L->kernel->output_bytes = graph_value_bytes(v);
        struct lower_affine a = {.rank = v->rank,
                                 .has = {true, false, false},
                                 .in = {L->place[v->id]},
                                 .out = L->place[s->id]};
        memcpy(a.size, v->dims, sizeof v->dims);
        NPU_TRY(lower_affine_run(L, &a));
    }
    return NULL;
}

// One node. When two slots per buffer do not fit, one has to do.
static npu_status lower_node(struct lower *L, const struct graph_node *n) {
    const struct tile_program before = *L->p;
    npu_status st = lower_fns[n->op](L, n);
    if (L->slots == 1 || npu_status_code(st) != NPU_NO_FIT) return st;
    npu_status_free(st);
    struct tile_program *p = L->p;
    p->nkernel = before.nkernel;
    p->nbuf = before.nbuf;
    p->nop = before.nop;
    p->next_step = before.next_step;
    int slots = L->slots;
    L->slots = 1;
    st = lower_fns[n->op](L, n);
    L->slots = slots;
    return st;
}

// A constant that an earlier kernel reads counts there: once is all that is needed.
static void count_once(struct tile_kernel *k, const struct graph_node *n, bool *counted) {
    for (int i = 0; i < n->nin; i++) {
        const struct graph_value *v = n->inputs[i];
        if (!v->data || repeats(n, i)) continue;
        if (counted[v->id]) k->weight_bytes -= needed_bytes(n, i);
        counted[v->id] = true;
    }
}

// The first kernel that stores a part of n's result: of a concatenation, its inputs' kernels do
// when those lie in their parts of it.
static int first_part(const struct lower *L, const struct graph_node *n, int first) {
    bool parts = false;
    for (int k = 0; k < n->nin && n->op == GRAPH_CONCAT; k++)
        parts |= lower_is_part(L, n, k);
    for (int i = 0; i < L->p->nresult && parts; i++)
        if (L->p->results[i]->buf == L->place[n->outputs[0]->id].buf)
            first = (int)lower_min(first, L->p->results[i]->first_kernel);
    return first;
}

// Notes where the results of n lie, which the kernels from `first` on store.
static void note_results(struct lower *L, const struct graph_node *n, int first) {
    if (first == L->p->nkernel) return;
    first = first_part(L, n, first);
    for (int i = 0; i < n->nout; i++) {
        const struct lower_view *place = &L->place[n->outputs[i]->id];
        struct tile_result r = {.value = n->outputs[i],
                                .first_kernel = first,
                                .last_kernel = L->p->nkernel - 1,
                                .buf = place->buf,
                                .slot = place->slot,
                                .offset = place->offset};
        memcpy(r.stride, place->stride, sizeof r.stride);
        tile_add_result(L->p, &r);
    }
}

// peak: most bytes of values in the scratchpad at once.
static npu_status lower_nodes(struct lower *L, int resident_percent, int64_t *peak) {
    NPU_TRY(lower_storage(L));
    if (L->texts) lower_label(L);
    int count = 0, i = 0;
    for (const struct graph_node *n = L->g->first; n; n = n->next)
        count++;
    int64_t *live = ARENA_ARRAY(L->a, int64_t, (size_t)count + 1);
    bool *counted = ARENA_ARRAY(L->a, bool, (size_t)L->g->nvalue + 1);
    *peak = resident_percent > 0 ? lower_reside(L, resident_percent, live) : 0;
    for (const struct graph_node *n = L->g->first; n; n = n->next, i++) {
        if (lower_is_alias(L, n)) continue;
        L->node = n;
        L->resident_bytes = live[i];
        int first = L->p->nkernel;
        NPU_TRY_NOTE(lower_node(L, n), "node '%s' (%s)", n->name, graph_ops[n->op].text);
        if (first < L->p->nkernel) count_once(L->p->kernels[first], n, counted);
        note_results(L, n, first);
        if (L->texts) lower_describe(L, n, first);
        for (; first < L->p->nkernel; first++) {
            L->p->kernels[first]->resident_bytes = live[i];
            L->p->kernels[first]->call = n->call;
        }
    }
    L->resident_bytes = 0;
    NPU_TRY(copy_outputs(L));
    return copy_states(L);
}

static struct lower lowering(const struct graph *g, const struct hw *hw,
                             const struct lower_options *opt, struct tile_program *out,
                             struct lower_memo *memo) {
    return (struct lower){.g = g,
                          .hw = hw,
                          .opt = *opt,
                          .p = out,
                          .a = out->arena,
                          .memo = memo,
                          .slots = opt->level >= 2 && !opt->one_slot ? 2 : 1};
}

// Cycles of all kernels when values may take that part of the scratchpad; 0 when some kernel does
// not fit then.
static double try_resident(const struct graph *g, const struct hw *hw,
                           const struct lower_options *opt, struct lower_memo *memo, int percent,
                           int64_t *peak) {
    struct arena *scratch = arena_scratch(g->arena);
    struct tile_program *p = tile_program_new(scratch, hw);
    struct lower L = lowering(g, hw, opt, p, memo);
    npu_status st = lower_nodes(&L, percent, peak);
    double cycles = 0;
    for (int i = 0; i < p->nkernel && !st; i++)
        cycles += p->kernels[i]->estimate_cycles;
    npu_status_free(st);
    arena_free(scratch);
    return cycles;
}

// Values in the scratchpad save their transfers but leave less to tiles: the best of some shares.
static int choose_resident(const struct graph *g, const struct hw *hw,
                           const struct lower_options *opt, struct lower_memo *memo) {
    static const int shares[] = {50, 70, 25, 12, 0};
    int best = 0;
    double least = 0;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        int64_t peak = 0;
        double cycles = try_resident(g, hw, opt, memo, shares[i], &peak);
        if (cycles > 0 && (least <= 0 || cycles < least)) {
            least = cycles;
            best = shares[i];
        }
        if (i == 0 && cycles > 0 && peak < hw->spm_bytes / 4) break;
    }
    return best;
}

npu_status lower_graph(const struct graph *g, const struct hw *hw, const struct lower_options *opt,
                       struct tile_program *out) {
    NPU_TRY(check(g, hw));
    int percent = opt->resident_percent;
    struct lower_memo *memo = lower_memo_new(out->arena);
    if (!percent) percent = opt->level >= 2 ? choose_resident(g, hw, opt, memo) : 0;
    struct lower L = lowering(g, hw, opt, out, memo);
    int64_t peak;
    L.texts = true;
    NPU_TRY(lower_nodes(&L, percent, &peak));
    if (opt->eager) tile_launches(out);
    return NULL;
}
