// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel: out = softmax(scale * q k^T + mask) v, whose scores exist only a tile at
// a time, in PSUM.
//
//   views of one shape: (batch..., key head, query head of it, row, column); batch dimensions merge
//   choose tiles (attention_plan.c)
//   emit (attention_run.c)
#include "toolchain/lower/attention.h"

#include <math.h>
#include <string.h>

// Below this no score of a key that is seen is near: e^(fill - score) is 0.
#define FAR_BELOW (-10000.0f)

// The place of an operand whose head dimension is split into key heads and `share` of each.
static struct lower_view split_heads(const struct lower_view *v, int rank, int64_t share) {
    struct lower_view r = *v;
    int h = rank - 3;
    memmove(r.stride + h + 2, v->stride + h + 1, 2 * sizeof *v->stride);
    r.stride[h] = v->stride[h] * share;
    r.stride[h + 1] = share > 1 ? v->stride[h] : 0;
    return r;
}

// Batch dimensions of size 1 go, neighbours merge where every view allows it; one is left.
static void merge_batch(struct attn *a) {
    struct lower_view *views[5] = {&a->q, &a->k, &a->v, &a->out, &a->mask};
    int rank = a->nb + 3;
    for (int d = 0; d < a->nb && a->nb > 1;) {
        bool joins = a->batch[d] == 1;
        if (!joins && d + 1 < a->nb) {
            joins = true;
            for (int i = 0; i < 5 && joins; i++)
                joins = views[i]->stride[d] == views[i]->stride[d + 1] * a->batch[d + 1];
        }
        if (!joins) {
            d++;
            continue;
        }
        if (d + 1 < a->nb) a->batch[d + 1] *= a->batch[d];
        for (int i = d; i + 1 < a->nb; i++)
            a->batch[i] = a->batch[i + 1];
        for (int i = 0; i < 5; i++)
            memmove(views[i]->stride + d, views[i]->stride + d + 1,
                    (size_t)(rank - 1 - d) * sizeof(int64_t));
        a->nb--;
        rank--;
    }
}

// Whether every query sees a key, whatever the values.
static bool all_see(const struct attn *a) {
    return !a->has_mask && (!a->high_on || a->high >= 0) &&
           (!a->low_on || a->m - 1 + a->low <= a->s - 1);
}

static void set_window(const struct graph_node *n, struct attn *a) {
    int64_t left = graph_ints_at(n, GRAPH_ATTR_WINDOW, 0, -1),
            right = graph_ints_at(n, GRAPH_ATTR_WINDOW, 1, -1),
            shift = graph_ints_at(n, GRAPH_ATTR_WINDOW, 2, 0), most = a->m + a->s;
    // Limits beyond all keys are as good as those just beyond.
    a->low = lower_max(-most, lower_min(shift - left, most));
    a->high = lower_max(-most, lower_min(shift + right, most));
    a->low_on = left >= 0 && a->m - 1 + a->low > 0;
    a->high_on = right >= 0 && a->high < a->s - 1;
}

static struct attn attn_of(const struct lower *L, const struct graph_node *n) {
    const struct graph_value *q = n->inputs[0], *k = n->inputs[1], *v = n->inputs[2],
                             *out = n->outputs[0];
    int rank = q->rank, h = rank - 3;
    int64_t share = q->dims[h] / k->dims[h];
    struct attn a = {.nb = rank - 2,
                     .g = share,
                     .m = q->dims[rank - 2],
                     .s = k->dims[rank - 2],
                     .d = q->dims[rank - 1],
                     .dv = v->dims[rank - 1],
                     .dtype = q->dtype};
    memcpy(a.batch, k->dims, (size_t)a.nb * sizeof *a.batch);
    a.q = split_heads(&L->place[q->id], rank, share);
    a.out = split_heads(&L->place[out->id], rank, share);
    a.k = split_heads(&L->place[k->id], rank, 1);
    a.v = split_heads(&L->place[v->id], rank, 1);
    a.scale = (float)graph_float(n, GRAPH_ATTR_SCALE, 1);
    a.cap = (float)graph_float(n, GRAPH_ATTR_SOFTCAP, 0);
    a.fill = (float)graph_float(n, GRAPH_ATTR_FILL, (double)-INFINITY);
    a.zero_rows = graph_int(n, GRAPH_ATTR_ZERO_ROWS, 0) != 0;
    a.has_mask = n->nown > 3;
    if (a.has_mask) {
        int64_t scores[LOWER_DIMS];
        memcpy(scores, q->dims, sizeof q->dims);
        scores[rank - 1] = a.s;
        struct lower_view mask = lower_broadcast(L, n->inputs[3], rank, scores);
        a.mask = split_heads(&mask, rank, share);
        a.keep = isa_dtype_is_int((int)n->inputs[3]->dtype);
    }
    set_window(n, &a);
    bool finite = !isinf((double)a.fill) && !all_see(&a), narrow = a.low_on || a.high_on;
    // A floating mask may put keys that are seen as low as hidden ones.
    bool apart = a.fill <= FAR_BELOW && !(a.has_mask && !a.keep) && a.s <= 65536;
    a.all_keys = finite && !(narrow && apart);
    a.mean = finite && narrow && apart && !a.zero_rows;
    merge_batch(&a);
    return a;
}

npu_status lower_attention(struct lower *L, const struct graph_node *n) {
    lower_kernel(L, n, "attn_fused");
    struct attn a = attn_of(L, n);
    struct attn_tile t;
    npu_status st = attn_choose(L, &a, &t);
    if (a.mean && npu_status_code(st) == NPU_NO_FIT) {
        npu_status_free(st);
        a.mean = false;
        a.all_keys = true;
        st = attn_choose(L, &a, &t);
    }
    NPU_TRY(st);
    int64_t heads = a.g, pairs;
    for (int d = 0; d < a.nb; d++)
        heads *= a.batch[d];
    pairs = heads * attn_pairs(&a);
    // Pairs of query and key that the window leaves, whatever the tiles: both products, and twice
    // through the vector engine; the result once.
    L->kernel->macs += pairs * (a.d + a.dv);
    L->kernel->vector_elems += 2 * pairs + heads * a.m * a.dv;
    L->kernel->estimate_cycles += t.cycles;
    L->kernel->dtype = a.dtype;
    attn_run(L, &a, &t);
    return NULL;
}
