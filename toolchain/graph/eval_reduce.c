// SPDX-License-Identifier: Apache-2.0
//
// Reference kernels of reductions and normalisations. A span's order is row-major over the reduced
// dimensions; sums use the contract's 64 partials (num_reduce).

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/eval.h"

// ---- reduce ----------------------------------------------------------------------------------

struct axes {
    int nkept, nreduced;
    int64_t kept[GRAPH_MAX_RANK], kept_stride[GRAPH_MAX_RANK];
    int64_t reduced[GRAPH_MAX_RANK], reduced_stride[GRAPH_MAX_RANK];
    int64_t outer, span;
};

static struct axes axes_of(const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    const struct graph_attr *list = graph_attr(n, GRAPH_ATTR_AXES);
    struct axes a = {.outer = 1, .span = 1};
    int64_t stride[GRAPH_MAX_RANK], step = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= x->dims[d];
    }
    for (int d = 0, k = 0; d < x->rank; d++) {
        if (k < list->n && list->ints[k] == d) {
            k++;
            a.reduced_stride[a.nreduced] = stride[d];
            a.reduced[a.nreduced++] = x->dims[d];
            a.span *= x->dims[d];
        } else {
            a.kept_stride[a.nkept] = stride[d];
            a.kept[a.nkept++] = x->dims[d];
            a.outer *= x->dims[d];
        }
    }
    return a;
}

// Element offset of the index-th combination.
static int64_t offset(int rank, const int64_t *dims, const int64_t *stride, int64_t index) {
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; d--) {
        at += index % dims[d] * stride[d];
        index /= dims[d];
    }
    return at;
}

// Feeds one span in pieces; contiguous runs go as they lie.
#define FEED(SUFFIX, TYPE)                                                                 \
    static void feed_##SUFFIX(struct num_reduce *r, const struct axes *a, const TYPE *x) { \
        TYPE piece[256];                                                                   \
        size_t held = 0;                                                                   \
        NPU_ASSERT(x != NULL);                                                             \
        int64_t run = a->nreduced ? a->reduced[a->nreduced - 1] : 1;                       \
        int64_t step = a->nreduced ? a->reduced_stride[a->nreduced - 1] : 1;               \
        for (int64_t k = 0; k < a->span; k += run) {                                       \
            const TYPE *from = x + offset(a->nreduced, a->reduced, a->reduced_stride, k);  \
            if (step == 1 && !held) {                                                      \
                num_reduce_add_##SUFFIX(r, from, (size_t)run);                             \
                continue;                                                                  \
            }                                                                              \
            for (int64_t i = 0; i < run; i++) {                                            \
                piece[held++] = from[i * step];                                            \
                if (held == sizeof piece / sizeof *piece)                                  \
                    num_reduce_add_##SUFFIX(r, piece, held), held = 0;                     \
            }                                                                              \
        }                                                                                  \
        if (held) num_reduce_add_##SUFFIX(r, piece, held);                                 \
    }
FEED(f32, float)
FEED(i64, int64_t)

static enum isa_red red_of(const char *mode) {
    static const struct {
        const char *word;
        enum isa_red red;
    } reds[] = {{"sum", ISA_RED_SUM},      {"mean", ISA_RED_SUM},  {"max", ISA_RED_MAX},
                {"min", ISA_RED_MIN},      {"prod", ISA_RED_PROD}, {"sumsq", ISA_RED_SUMSQ},
                {"argmax", ISA_RED_ARGMAX}};
    for (size_t k = 0; k < sizeof reds / sizeof *reds; k++)
        if (!strcmp(mode, reds[k].word)) return reds[k].red;
    return ISA_RED_NONE;
}

npu_status eval_reduce(struct graph_eval *e) {
    const char *mode = graph_word(e->n, GRAPH_ATTR_MODE, "");
    enum isa_red red = red_of(mode);
    bool mean = !strcmp(mode, "mean");
    struct axes a = axes_of(e->n);
    const float *f = e->ints ? NULL : eval_floats(e, 0);
    const int64_t *i = e->ints ? eval_ints(e, 0) : NULL;
    struct num_reduce r;
    for (int64_t k = 0; k < a.outer; k++) {
        int64_t at = offset(a.nkept, a.kept, a.kept_stride, k);
        num_reduce_begin(&r, (int)red);
        if (!a.span) { // an empty sum or product (the others are refused by the shape rule)
            if (e->own_int)
                e->i[k] = red == ISA_RED_PROD;
            else
                e->f[k] = mean ? num_float(NUM_NAN_F32) : red == ISA_RED_PROD ? 1.0f : 0.0f;
            continue;
        }
        if (e->ints)
            feed_i64(&r, &a, i + at);
        else
            feed_f32(&r, &a, f + at);
        if (red == ISA_RED_ARGMAX) {
            e->i[k] = e->ints ? num_reduce_end_index_i64(&r) : num_reduce_end_index_f32(&r);
        } else if (e->ints) {
            int64_t v = num_reduce_end_i64(&r);
            e->i[k] = mean ? v / a.span : v;
        } else {
            float v = num_reduce_end_f32(&r);
            e->f[k] = mean ? v / (float)a.span : v;
        }
    }
    return NULL;
}

static float reduce_run(enum isa_red red, const float *x, size_t n) {
    struct num_reduce r;
    num_reduce_begin(&r, (int)red);
    num_reduce_add_f32(&r, x, n);
    return num_reduce_end_f32(&r);
}

// ---- softmax ---------------------------------------------------------------------------------

npu_status eval_softmax(struct graph_eval *e) {
    const struct graph_value *x = e->n->inputs[0];
    int64_t axis = graph_int(e->n, GRAPH_ATTR_AXIS, 0), size = x->dims[axis], inner = 1;
    bool logarithm = graph_int(e->n, GRAPH_ATTR_LOG, 0) != 0;
    for (int d = (int)axis + 1; d < x->rank; d++)
        inner *= x->dims[d];
    int64_t outer = graph_value_elems(x) / (size * inner);
    const float *from = eval_floats(e, 0);
    float *line = ARENA_ARRAY(e->scratch, float, (size_t)size),
          *power = ARENA_ARRAY(e->scratch, float, (size_t)size);
    for (int64_t o = 0; o < outer * inner; o++) {
        int64_t base = o / inner * size * inner + o % inner;
        for (int64_t k = 0; k < size; k++)
            line[k] = from[base + k * inner];
        float top = reduce_run(ISA_RED_MAX, line, (size_t)size);
        for (int64_t k = 0; k < size; k++) {
            line[k] -= top;
            power[k] = num_exp(line[k]);
        }
        float sum = reduce_run(ISA_RED_SUM, power, (size_t)size);
        float log_sum = logarithm ? num_log(sum) : 0.0f;
        for (int64_t k = 0; k < size; k++) {
            float v = logarithm ? line[k] - log_sum : power[k] / sum;
            if (e->own_int)
                e->i[base + k * inner] = num_f32_to_i64(v);
            else
                e->f[base + k * inner] = v;
        }
    }
    return NULL;
}

// ---- normalisations --------------------------------------------------------------------------

static npu_status need_floats(const struct graph_eval *e) {
    if (!e->own_int) return NULL;
    return npu_fail(UNSUPPORTED, "normalisation of %s, expected a floating type",
                    isa_dtype_name(e->n->inputs[0]->dtype));
}

// y = (x - mean) * rsqrt(max(var + eps, floor)) * scale + bias; rms: no mean, no bias.
static npu_status normalise(struct graph_eval *e, bool rms) {
    NPU_TRY(need_floats(e));
    const struct graph_node *n = e->n;
    const struct graph_value *x = n->inputs[0];
    int64_t span = 1;
    for (int d = (int)graph_int(n, GRAPH_ATTR_AXIS, 0); d < x->rank; d++)
        span *= x->dims[d];
    float eps = (float)graph_float(n, GRAPH_ATTR_EPSILON, 1e-5);
    float least = (float)graph_float(n, GRAPH_ATTR_FLOOR, 0);
    const float *from = eval_floats(e, 0);
    const float *scale = n->nown > 1 ? eval_floats(e, 1) : NULL,
                *bias = n->nown > 2 ? eval_floats(e, 2) : NULL;
    float *d = ARENA_ARRAY(e->scratch, float, (size_t)span);
    int64_t rows = graph_value_elems(x) / span;
    for (int64_t r = 0; r < rows; r++) {
        const float *line = from + r * span;
        float mean = rms ? 0.0f : reduce_run(ISA_RED_SUM, line, (size_t)span) / (float)span;
        for (int64_t k = 0; k < span; k++)
            d[k] = line[k] - mean;
        float var = reduce_run(ISA_RED_SUMSQ, d, (size_t)span) / (float)span;
        float factor = num_rsqrt(var + eps < least ? least : var + eps);
        for (int64_t k = 0; k < span; k++) {
            float y = d[k] * factor;
            if (scale) y *= scale[k];
            if (bias) y += bias[k];
            e->f[r * span + k] = y;
        }
    }
    return NULL;
}

npu_status eval_layernorm(struct graph_eval *e) {
    return normalise(e, false);
}

npu_status eval_rmsnorm(struct graph_eval *e) {
    return normalise(e, true);
}

// y = (x - mean) * (scale / sqrt(var + eps)) + bias, per channel.
npu_status eval_batchnorm(struct graph_eval *e) {
    NPU_TRY(need_floats(e));
    const struct graph_value *x = e->n->inputs[0];
    const float *from = eval_floats(e, 0), *scale = eval_floats(e, 1), *bias = eval_floats(e, 2);
    const float *mean = eval_floats(e, 3), *var = eval_floats(e, 4);
    float eps = (float)graph_float(e->n, GRAPH_ATTR_EPSILON, 1e-5);
    int64_t channels = x->dims[1], inner = graph_value_elems(x) / (x->dims[0] * channels);
    for (int64_t k = 0; k < x->dims[0] * channels; k++) {
        int64_t c = k % channels;
        float factor = scale[c] / num_sqrt(var[c] + eps);
        for (int64_t s = k * inner; s < (k + 1) * inner; s++)
            e->f[s] = (from[s] - mean[c]) * factor + bias[c];
    }
    return NULL;
}
