// SPDX-License-Identifier: Apache-2.0
//
// Einsum of one or two operands. Letters are sorted by where they stand: in both operands and the
// result (batch), in both only (contracted), in one and the result (rows, columns), in one only
// (summed first). Each operand becomes [batch.., free, contracted], then one product:
//
//   a [batch, rows, contracted] x b [batch, columns, contracted]' -> [batch, rows, columns] ->
//   result

#include "toolchain/frontend/common/einsum.h"

#include <ctype.h>
#include <string.h>

struct term {
    int rank;
    char letters[GRAPH_MAX_RANK]; // those of "..." are codes below GRAPH_MAX_RANK + 1
};

enum { ELLIPSIS = 1 }; // letters 1.. are the dimensions of "...", counted from its last

static bool has(const struct term *t, char c) {
    return memchr(t->letters, c, (size_t)t->rank) != NULL;
}

// "bij" or "...ij" for a value of that rank (-1: unknown, the ellipsis has `dots` dimensions).
static npu_status read_term(const char *text, size_t len, int rank, int dots, struct term *out) {
    int named = 0;
    bool ellipsis = false;
    for (size_t k = 0; k < len; k++) {
        named += isalpha((unsigned char)text[k]) != 0;
        if (k + 2 < len && !strncmp(text + k, "...", 3)) ellipsis = true;
    }
    if (rank >= 0) dots = ellipsis ? rank - named : 0;
    if (!ellipsis) dots = 0;
    if (dots < 0 || named + dots > GRAPH_MAX_RANK || (rank >= 0 && named + dots != rank))
        return npu_fail(BAD_INPUT, "equation term '%.*s' for an operand of rank %d", (int)len, text,
                        rank);
    out->rank = 0;
    for (size_t k = 0; k < len; k++) {
        if (isalpha((unsigned char)text[k])) {
            if (has(out, text[k]))
                return npu_fail(UNSUPPORTED, "a letter twice in '%.*s'", (int)len, text);
            out->letters[out->rank++] = text[k];
        } else if (k + 2 < len && !strncmp(text + k, "...", 3)) {
            for (int d = dots; d > 0; d--)
                out->letters[out->rank++] = (char)(ELLIPSIS + d - 1);
            k += 2;
        } else if (text[k] != ' ') {
            return npu_fail(BAD_INPUT, "'%c' in the equation", text[k]);
        }
    }
    return NULL;
}

// The result that is not written: the dimensions of "...", then letters that stand once, sorted.
static void implicit_result(const struct term *in, int count, struct term *out) {
    out->rank = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k <= 'z' && out->rank < GRAPH_MAX_RANK; k++) {
            int c = pass ? k : ELLIPSIS + GRAPH_MAX_RANK - 1 - k, seen = 0;
            if (pass ? c < 'A' : c < ELLIPSIS) continue;
            for (int i = 0; i < count; i++)
                seen += has(&in[i], (char)c);
            if (pass ? seen == 1 : seen > 0) out->letters[out->rank++] = (char)c;
        }
}

// x with its dimensions in the order of `wanted`; letters that x lacks become size 1, letters not
// wanted are summed.
static npu_status arrange(const struct build *b, struct graph_value *x, const struct term *t,
                          const struct term *wanted, struct graph_value **out) {
    int64_t axes[GRAPH_MAX_RANK], perm[GRAPH_MAX_RANK], dims[GRAPH_MAX_RANK];
    struct term kept = {0};
    int count = 0, from = 0;
    for (int d = 0; d < t->rank; d++) {
        if (has(wanted, t->letters[d]))
            kept.letters[kept.rank++] = t->letters[d];
        else
            axes[count++] = d;
    }
    if (count) NPU_TRY(build_reduce(b, x, "sum", count, axes, false, &x));
    for (int d = 0; d < wanted->rank; d++) {
        const char *at = memchr(kept.letters, wanted->letters[d], (size_t)kept.rank);
        if (at) perm[from++] = at - kept.letters;
    }
    NPU_TRY(build_transpose(b, x, perm, &x));
    for (int d = 0, k = 0; d < wanted->rank; d++)
        dims[d] = has(&kept, wanted->letters[d]) ? x->dims[k++] : 1;
    return build_reshape(b, x, wanted->rank, dims, out);
}

static void push(struct term *t, char c) {
    t->letters[t->rank++] = c;
}

static int64_t product(const int64_t *dims, int count) {
    int64_t p = 1;
    for (int d = 0; d < count; d++)
        p *= dims[d];
    return p;
}

static npu_status two_operands(const struct build *b, struct graph_value *const *x,
                               const struct term in[2], const struct term *result,
                               struct graph_value **out) {
    struct term batch = {0}, rows = {0}, cols = {0}, sum = {0}, order[2] = {{0}, {0}};
    for (int d = 0; d < result->rank; d++) {
        char c = result->letters[d];
        bool left = has(&in[0], c), right = has(&in[1], c);
        if (!left && !right) return npu_fail(BAD_INPUT, "the result's '%c' is in no operand", c);
        push(left && right ? &batch : left ? &rows : &cols, c);
    }
    for (int d = 0; d < in[0].rank; d++)
        if (has(&in[1], in[0].letters[d]) && !has(result, in[0].letters[d]))
            push(&sum, in[0].letters[d]);
    struct graph_value *side[2];
    int64_t dims[GRAPH_MAX_RANK];
    for (int k = 0; k < 2; k++) {
        const struct term *free_letters = k ? &cols : &rows;
        if (batch.rank + free_letters->rank + sum.rank > GRAPH_MAX_RANK)
            return npu_fail(UNSUPPORTED, "too many letters");
        const struct term *const parts[3] = {&batch, free_letters, &sum};
        for (int p = 0; p < 3; p++)
            for (int d = 0; d < parts[p]->rank; d++)
                push(&order[k], parts[p]->letters[d]);
        NPU_TRY(arrange(b, x[k], &in[k], &order[k], &side[k]));
        const int64_t *s = side[k]->dims;
        memcpy(dims, s, sizeof dims);
        dims[batch.rank] = product(s + batch.rank, free_letters->rank);
        dims[batch.rank + 1] = product(s + batch.rank + free_letters->rank, sum.rank);
        if (batch.rank + 2 > GRAPH_MAX_RANK) return npu_fail(UNSUPPORTED, "too many letters");
        struct graph_value *whole = side[k];
        NPU_TRY(build_reshape(b, whole, batch.rank + 2, dims, &side[k]));
    }
    struct graph_value *y;
    NPU_TRY(build_matmul(b, side[0], side[1], false, true, &y));
    // [batch, rows, cols] with each letter's own dimension, then the result's order.
    struct term all = batch;
    int rank = batch.rank;
    memcpy(dims, y->dims, sizeof dims);
    for (int k = 0; k < 2; k++) {
        const struct term *free_letters = k ? &cols : &rows;
        for (int d = 0; d < free_letters->rank; d++) {
            const char *at = memchr(in[k].letters, free_letters->letters[d], (size_t)in[k].rank);
            dims[rank++] = x[k]->dims[at - in[k].letters];
            push(&all, free_letters->letters[d]);
        }
    }
    NPU_TRY(build_reshape(b, y, rank, dims, &y));
    return arrange(b, y, &all, result, out);
}

npu_status build_einsum(const struct build *b, const char *equation, int count,
                        struct graph_value *const *x, struct graph_value **out) {
    const char *arrow = strstr(equation, "->");
    size_t left = arrow ? (size_t)(arrow - equation) : strlen(equation);
    const char *comma = memchr(equation, ',', left);
    struct term in[2] = {{0}, {0}}, result = {0};
    int dots = 0;
    const int operands = comma ? 2 : 1;
    if (count != operands)
        return npu_fail(BAD_INPUT, "equation '%s' for %d operands", equation, count);
    size_t first = comma ? (size_t)(comma - equation) : left;
    NPU_TRY(read_term(equation, first, x[0]->rank, 0, &in[0]));
    if (comma) NPU_TRY(read_term(comma + 1, left - first - 1, x[1]->rank, 0, &in[1]));
    for (int k = 0; k < 2; k++)
        for (int d = 0; d < in[k].rank; d++) {
            int code = (unsigned char)in[k].letters[d];
            if (code < ELLIPSIS + GRAPH_MAX_RANK && code > dots) dots = code;
        }
    if (arrow)
        NPU_TRY(read_term(arrow + 2, strlen(arrow + 2), -1, dots, &result));
    else
        implicit_result(in, operands, &result);
    if (operands == 1) {
        for (int d = 0; d < result.rank; d++)
            if (!has(&in[0], result.letters[d]))
                return npu_fail(BAD_INPUT, "the result's '%c' is in no operand", result.letters[d]);
        return arrange(b, x[0], &in[0], &result, out);
    }
    return two_operands(b, x, in, &result, out);
}
