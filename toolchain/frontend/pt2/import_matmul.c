// SPDX-License-Identifier: Apache-2.0
//
// Matrix products.

#include <string.h>

#include "toolchain/frontend/common/einsum.h"
#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/pt2/import.h"

// The result in the type that the graph declares.
static npu_status bind_sum(struct pt2_node *n, struct graph_value *y) {
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (isa_dtype_is_int(y->dtype) && type != ISA_DTYPE_NONE) NPU_TRY(pt2_cast(n, y, type, &y));
    return pt2_bind(n, 0, y);
}

npu_status aten_linear(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "input"), *w = pt2_need(n, "weight"),
                       *bias = pt2_in(n, "bias"), *y;
    if (n->failed) return NULL;
    if (!x->rank || !w->rank || w->rank > 2)
        return npu_fail(BAD_INPUT,
                        "'%s' has rank %d and the weights '%s' rank %d, expected 1 or "
                        "more and 1 or 2",
                        x->name, x->rank, w->name, w->rank);
    if (isa_dtype_is_int(x->dtype) && isa_dtype_bits(x->dtype) > 8)
        return npu_fail(UNSUPPORTED, "'%s' is %s; expected floats or i8", x->name,
                        isa_dtype_name(x->dtype));
    int rank = x->rank;
    if (rank == 1) NPU_TRY(build_reshape(&n->b, x, 2, (int64_t[]){1, x->dims[0]}, &x));
    if (w->rank == 1)
        NPU_TRY(build_product(&n->b, x, w, &y));
    else
        NPU_TRY(build_matmul(&n->b, x, w, false, true, &y));
    if (bias)
        NPU_TRY(
            build_map(&n->b, y->dtype, "add in1", NULL, 2, (struct graph_value *[]){y, bias}, &y));
    if (rank == 1) NPU_TRY(build_reshape(&n->b, y, y->rank - 1, y->dims + 1, &y));
    return bind_sum(n, y);
}

// A decomposed linear sees its input as one matrix: [.., M, K] reshaped to [N, K], times the
// weights, plus the bias, and back. The product is taken before the reshape, so that what follows
// behind the second one still meets the product's own result. The operand to multiply: x or what it
// is a reshape of.
static struct graph_value *unmerged(struct graph_value *x, const struct graph_value *w) {
    const struct graph_node *view = x->producer;
    if (!view || view->op != GRAPH_RESHAPE || view->has_chain || x->rank != 2 || w->rank != 2)
        return x;
    struct graph_value *whole = view->inputs[0];
    return whole->rank > 2 && whole->dims[whole->rank - 1] == x->dims[1] ? whole : x;
}

// y of whatever rank to the matrix that the product of x and w is.
static npu_status merged(struct pt2_node *n, struct graph_value *y, const struct graph_value *x,
                         const struct graph_value *w, struct graph_value **out) {
    *out = y;
    if (x->rank != 2 || w->rank != 2) return NULL;
    return build_reshape(&n->b, y, 2, (int64_t[]){x->dims[0], w->dims[1]}, out);
}

static npu_status bind_product(struct pt2_node *n, const char *left, const char *right) {
    struct graph_value *x = pt2_need(n, left), *w = pt2_need(n, right), *y;
    if (n->failed) return NULL;
    NPU_TRY(pt2_product(n, unmerged(x, w), w, &y));
    NPU_TRY(merged(n, y, x, w, &y));
    return bind_sum(n, y);
}

npu_status aten_mm(struct pt2_node *n) {
    return bind_product(n, "self", "mat2");
}

static bool of_constant(const struct graph_value *v) {
    while (v->producer && (v->producer->op == GRAPH_TRANSPOSE || v->producer->op == GRAPH_RESHAPE))
        v = v->producer->inputs[0];
    return v->data != NULL;
}

// Decomposed products of several matrices with one matrix of weights repeat it: [K, N] or [1, K, N]
// expanded to [B, K, N]. The weights before that as [K, N], else v.
static npu_status unrepeated(struct pt2_node *n, struct pt2_tensor *t, struct graph_value *v,
                             struct graph_value **out) {
    struct graph_value *one;
    *out = v;
    while (t && t->parent && (t->view.kind == VIEW_SAME || t->view.kind == VIEW_RESHAPE)) {
        NPU_TRY(tensor_read(&n->b, t->parent, &one));
        if (one->rank != v->rank ||
            memcmp(one->dims, v->dims, (size_t)v->rank * sizeof *v->dims) != 0)
            return NULL;
        t = t->parent;
    }
    if (!t || !t->parent || t->view.kind != VIEW_EXPAND) return NULL;
    NPU_TRY(tensor_read(&n->b, t->parent, &one));
    int lead = one->rank - 2;
    if (v->rank != 3 || lead < 0 || lead > 1 || (lead && one->dims[0] != 1) ||
        one->dims[lead] != v->dims[1] || one->dims[lead + 1] != v->dims[2] || !of_constant(one))
        return NULL;
    return build_reshape(&n->b, one, 2, one->dims + lead, out);
}

npu_status aten_bmm(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *w = pt2_need(n, "mat2"), *y;
    struct pt2_tensor *t = pt2_tensor(n, "mat2");
    if (n->failed) return NULL;
    NPU_TRY(unrepeated(n, t, w, &w));
    NPU_TRY(pt2_product(n, x, w, &y));
    return bind_sum(n, y);
}

npu_status aten_matmul(struct pt2_node *n) {
    return bind_product(n, "self", "other");
}

npu_status aten_mv(struct pt2_node *n) {
    return bind_product(n, "self", "vec");
}

npu_status aten_dot(struct pt2_node *n) {
    return bind_product(n, "self", "tensor");
}

npu_status aten_outer(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *w = pt2_need(n, "vec2"), *y;
    if (n->failed) return NULL;
    NPU_TRY(build_reshape(&n->b, x, 2, (int64_t[]){graph_value_elems(x), 1}, &x));
    NPU_TRY(
        pt2_map(n, pt2_out_dtype(n, 0), "mul in1", NULL, 2, (struct graph_value *[]){x, w}, &y));
    return pt2_bind(n, 0, y);
}

// beta * self + alpha * (a x b)
npu_status aten_addmm(struct pt2_node *n) {
    static const char *const names[][2] = {{"mat1", "mat2"}, {"batch1", "batch2"}, {"mat", "vec"}};
    int k = !strncmp(n->target, "addmm", 5) ? 0 : !strncmp(n->target, "baddbmm", 7) ? 1 : 2;
    struct graph_value *c = pt2_need(n, "self"), *x = pt2_need(n, names[k][0]),
                       *w = pt2_need(n, names[k][1]), *in[2];
    double p[2] = {pt2_float(n, "alpha"), pt2_float(n, "beta")};
    if (n->failed) return NULL;
    NPU_TRY(pt2_widen(n, c, &c));
    bool row = c->rank < 2 || c->dims[0] == 1; // broadcasts over rows
    NPU_TRY(pt2_product(n, row ? unmerged(x, w) : x, w, &in[0]));
    NPU_TRY(pt2_widen(n, in[0], &in[0]));
    in[1] = c;
    if (p[1] != 1 && p[1] != 0) NPU_TRY(build_map(&n->b, c->dtype, "mul $1", p, 1, &c, &in[1]));
    bool scaled = p[0] != 1;
    if (p[1] != 0)
        NPU_TRY(build_map(&n->b, in[0]->dtype, scaled ? "mul $0; add in1" : "add in1", p, 2, in,
                          &in[0]));
    else if (scaled)
        NPU_TRY(build_map(&n->b, in[0]->dtype, "mul $0", p, 1, in, &in[0]));
    NPU_TRY(merged(n, in[0], x, w, &in[0]));
    return bind_sum(n, in[0]);
}

// "ij,jk,kl->il" without spaces: where its operands end, at most one more than count; NULL for an
// ellipsis or an equation without a result.
static const char *terms(struct pt2_node *n, const char *equation, int count, const char **term) {
    char *text = arena_strdup(n->b.arena, equation);
    char *arrow = strstr(text, "->");
    size_t len = 0;
    if (!arrow || strchr(text, '.')) return NULL;
    for (const char *c = text; *c; c++)
        if (*c != ' ') text[len++] = *c;
    text[len] = '\0';
    arrow = strstr(text, "->");
    *arrow = '\0';
    int found = 0;
    for (char *c = text; c; found++) {
        char *comma = strchr(c, ',');
        if (found == count) return NULL;
        term[found] = c;
        if (comma) *comma++ = '\0';
        c = comma;
    }
    return found == count ? arrow + 2 : NULL;
}

// Joins the first two operands until two are left: what neither the result nor an operand behind
// them names is summed.
static npu_status pairwise(struct pt2_node *n, int count, struct graph_value **in,
                           const char *equation, const char **rest) {
    const char **term = ARENA_ARRAY(n->b.arena, const char *, (size_t)count);
    const char *result = terms(n, equation, count, term);
    if (!result)
        return npu_fail(UNSUPPORTED,
                        "equation '%s' of %d operands; of more than two it has to say the result, "
                        "without an ellipsis",
                        equation, count);
    for (int k = 1; k < count - 1; k++) {
        char kept[64] = "";
        size_t len = 0;
        for (int side = 0; side < 2; side++)
            for (const char *c = side ? term[k] : term[0]; *c && len + 1 < sizeof kept; c++) {
                bool needed = strchr(result, *c) != NULL;
                for (int later = k + 1; later < count; later++)
                    needed |= strchr(term[later], *c) != NULL;
                if (needed && !strchr(kept, *c)) kept[len++] = *c;
            }
        struct graph_value *two[2] = {in[0], in[k]};
        NPU_TRY(build_einsum(&n->b, arena_printf(n->b.arena, "%s,%s->%s", term[0], term[k], kept),
                             2, two, &in[0]));
        term[0] = arena_strdup(n->b.arena, kept);
    }
    in[1] = in[count - 1];
    *rest = arena_printf(n->b.arena, "%s,%s->%s", term[0], term[count - 1], result);
    return NULL;
}

// Of one operand, whether the equation only moves dimensions, as 'ij->ji' and '...i->i...': then
// torch gives a view. perm[d]: the dimension of x that dimension d of the result is.
static bool permutes(const char *equation, int rank, int64_t *perm) {
    char in[GRAPH_MAX_RANK + 4], out[GRAPH_MAX_RANK + 4], *to = in;
    size_t len = 0, dots = 0;
    for (const char *c = equation; *c; c++) {
        if (*c == ' ') continue;
        if (c[0] == '-' && c[1] == '>' && to == in) {
            in[len] = '\0';
            to = out;
            len = 0;
            c++;
            continue;
        }
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        if (!letter && strncmp(c, "...", 3) != 0) return false;
        if (len > GRAPH_MAX_RANK || memchr(to, letter ? *c : '.', len)) return false;
        to[len++] = letter ? *c : '.';
        if (!letter) c += 2;
    }
    to[len] = '\0';
    if (to == in) { // implicit: the ellipsis, then letters in order
        size_t next = 0;
        if (strchr(in, '.')) out[next++] = '.';
        for (int c = 'A'; c <= 'z'; c++)
            if (c && strchr(in, c)) out[next++] = (char)c;
        out[next] = '\0';
    }
    if (strlen(in) != strlen(out)) return false;
    dots = strchr(in, '.') ? (size_t)rank + 1 - strlen(in) : 0;
    if ((int)(strlen(in) + dots) != rank + (strchr(in, '.') ? 1 : 0)) return false;
    int d = 0;
    for (const char *c = out; *c; c++) {
        const char *at = strchr(in, *c), *dot = strchr(in, '.');
        if (!at) return false;
        int64_t from = at - in + (dot && dot < at ? (int64_t)dots - 1 : 0);
        for (size_t k = 0; k < (*c == '.' ? dots : 1); k++)
            perm[d++] = from + (int64_t)k;
    }
    return d == rank;
}

npu_status aten_einsum(struct pt2_node *n) {
    struct graph_value **in, *y;
    int count = pt2_tensors(n, "tensors", &in);
    const char *equation = pt2_string(n, "equation");
    if (n->failed) return NULL;
    if (!equation) equation = "";
    if (count < 1) return npu_fail(BAD_INPUT, "a sum of %d operands, expected 1 or more", count);
    for (int k = 0; k < count; k++)
        if (!in[k]) return npu_fail(BAD_INPUT, "operand %d is None", k);
    struct pt2_tensor *only = count == 1 ? pt2_listed(n, "tensors", 0) : NULL;
    struct view moved = {.kind = VIEW_PERMUTE, .rank = in[0]->rank};
    if (only && permutes(equation, in[0]->rank, moved.perm))
        return pt2_bind_view(n, 0, only, &moved);
    for (int k = 0; k < count; k++)
        if (isa_dtype_is_int(in[k]->dtype) && isa_dtype_bits(in[k]->dtype) > 8)
            return npu_fail(UNSUPPORTED, "operand %d is %s; expected floats or i8", k,
                            isa_dtype_name(in[k]->dtype));
    if (count > 2) NPU_TRY(pairwise(n, count, in, equation, &equation));
    NPU_TRY(build_einsum(&n->b, equation, count < 2 ? count : 2, in, &y));
    return bind_sum(n, y);
}

npu_status aten_cumsum(struct pt2_node *n) {
    struct graph_value *x = pt2_need(n, "self"), *y;
    int axis = pt2_axis(n, "dim", x->rank);
    enum isa_dtype type = pt2_out_dtype(n, 0);
    if (n->failed) return NULL;
    if (type != ISA_DTYPE_NONE) NPU_TRY(pt2_cast(n, x, type, &x));
    y = x;
    if (x->rank && isa_dtype_is_int(x->dtype))
        NPU_TRY(pt2_running_sum(n, x, axis, &y));
    else if (x->rank)
        NPU_TRY(build_cumsum(&n->b, x, axis, false, false, &y));
    return bind_sum(n, y);
}
