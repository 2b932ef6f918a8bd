// SPDX-License-Identifier: Apache-2.0
//
// Text form of a graph (grammar in toolchain/frontend/text/README.md): a line per input, used
// constant, node and output, in that order. Constants of up to INLINE_ELEMS elements are spelled
// out, the others referred to.

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "isa/numeric.h"
#include "runtime/base/alloc.h"
#include "runtime/base/file.h"
#include "runtime/base/str.h"
#include "toolchain/graph/graph.h"

enum { INLINE_ELEMS = 64 };

// ---- words -----------------------------------------------------------------------------------

static bool is_plain(const char *name) {
    for (const char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-", *c))
            return false;
    return *name != 0;
}

// Text in quotes; the quote, the backslash and control bytes as \xHH.
static void put_quoted(struct str *out, const char *text) {
    str_putc(out, '"');
    while (*text) {
        const size_t plain = *text == '"' || *text == '\\' ? 0 : str_plain_char(text);
        if (plain)
            str_append(out, text, plain);
        else
            str_printf(out, "\\x%02x", (unsigned)(unsigned char)*text);
        text += plain ? plain : 1;
    }
    str_putc(out, '"');
}

static void put_name(struct str *out, const struct graph_value *v) {
    str_putc(out, '%');
    if (is_plain(v->name))
        str_puts(out, v->name);
    else
        put_quoted(out, v->name);
}

// The fewest digits that read back as the same f32 (17: f64).
static void put_float(struct str *out, double v, bool wide) {
    if (isnan(v)) {
        str_puts(out, "nan");
    } else if (isinf(v)) {
        str_puts(out, v < 0 ? "-inf" : "inf");
    } else {
        for (int digits = wide ? 15 : 6; digits <= 17; digits++) {
            char text[40];
            int len = snprintf(text, sizeof text, "%.*g", digits, v);
            double back = strtod(text, NULL);
            if (len > 0 && (wide ? back == v : (float)back == (float)v)) {
                str_puts(out, text);
                return;
            }
        }
    }
}

static void put_ints(struct str *out, int n, const int64_t *v) {
    str_putc(out, '[');
    for (int k = 0; k < n; k++)
        str_printf(out, "%s%" PRId64, k ? "," : "", v[k]);
    str_putc(out, ']');
}

void graph_print_type(const struct graph_value *v, struct str *out) {
    str_puts(out, v->dtype == ISA_DTYPE_NONE ? "none" : isa_dtype_name(v->dtype));
    put_ints(out, v->rank, v->dims);
    if (!v->has_order) return;
    int64_t order[GRAPH_MAX_RANK];
    for (int d = 0; d < v->rank; d++)
        order[d] = v->order[d];
    str_puts(out, " order=");
    put_ints(out, v->rank, order);
}

// ---- constants -------------------------------------------------------------------------------

static void put_elements(struct str *out, const struct graph_value *v) {
    int64_t n = graph_value_elems(v);
    str_puts(out, " = {");
    for (int64_t k = 0; k < n; k++) {
        if (k) str_puts(out, ", ");
        if (v->dtype == ISA_U64) {
            uint64_t u;
            memcpy(&u, (const uint8_t *)v->data + k * 8, sizeof u);
            str_printf(out, "%" PRIu64, u);
        } else if (isa_dtype_is_int(v->dtype)) {
            str_printf(out, "%" PRId64, num_load_i64(v->dtype, v->data, k));
        } else if (v->dtype == ISA_F64) {
            double d;
            memcpy(&d, (const uint8_t *)v->data + k * 8, sizeof d);
            put_float(out, d, true);
        } else {
            put_float(out, (double)num_load_f32(v->dtype, v->data, k), false);
        }
    }
    str_puts(out, "}");
}

static uint32_t crc_of(const struct graph_value *v) {
    return (uint32_t)crc32_z(0, v->data, (size_t)graph_value_bytes(v));
}

// Where large constants without a file go: bin is NULL when nowhere.
struct sink {
    struct file_out *bin;
    const char *bin_name;
    int64_t offset;
    const char *path; // of the text, which is to be read back; NULL when nobody knows
};

// The constant's file as the text names it: relative to the text's folder, NULL when it is not in
// there. Without a folder the path as it is.
static const char *named_file(const struct sink *to, const char *source) {
    if (!source || !to->path) return source;
    const char *slash = strrchr(to->path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - to->path) : 0;
    if (strncmp(source, to->path, folder) != 0 || source[folder] == '/') return NULL;
    return strstr(source + folder, "..") ? NULL : source + folder;
}

static npu_status put_constant(struct str *out, const struct graph_value *v, struct sink *to) {
    str_puts(out, "const ");
    put_name(out, v);
    str_puts(out, " : ");
    graph_print_type(v, out);
    int64_t bytes = graph_value_bytes(v);
    const char *file = named_file(to, v->source);
    int64_t offset = v->source_offset;
    if (graph_value_elems(v) <= INLINE_ELEMS) {
        put_elements(out, v);
    } else if (file || to->bin) {
        if (!file) {
            NPU_TRY(file_out_write(to->bin, (struct span){v->data, (size_t)bytes}));
            file = to->bin_name;
            offset = to->offset;
            to->offset += bytes;
        }
        str_puts(out, " = .incbin ");
        put_quoted(out, file);
        str_printf(out, ", %" PRId64 ", %" PRId64 ", 0x%08" PRIx32, offset, bytes, crc_of(v));
    } else {
        str_printf(out, " = crc(0x%08" PRIx32 ")", crc_of(v));
    }
    str_putc(out, '\n');
    return NULL;
}

// A constant in the value's own type.
static npu_status put_rounded(struct str *out, const struct graph_value *v, struct sink *to) {
    if (graph_data_dtype(v) == v->dtype) return put_constant(out, v, to);
    struct graph_value own = *v;
    void *data = base_alloc((size_t)graph_value_bytes(v));
    if (!data) return npu_fail(NO_MEMORY, "constant '%s': out of memory printing it", v->name);
    num_convert(v->dtype, data, v->data_dtype, v->data, (size_t)graph_value_elems(v));
    own.data = data;
    own.data_dtype = ISA_DTYPE_NONE;
    npu_status st = put_constant(out, &own, to);
    base_free(data);
    return st;
}

// ---- nodes -----------------------------------------------------------------------------------

static void put_chain(struct str *out, const struct graph_node *n) {
    static const char *const sources[ISA_SRCS] = {
        [ISA_SRC_ACC] = "acc",   [ISA_SRC_IN0] = "in0",   [ISA_SRC_IN1] = "in1",
        [ISA_SRC_IN2] = "in2",   [ISA_SRC_TMP] = "tmp",   [ISA_SRC_IMM0] = "imm0",
        [ISA_SRC_IMM1] = "imm1", [ISA_SRC_IMM2] = "imm2", [ISA_SRC_IMM3] = "imm3",
        [ISA_SRC_ROW] = "row",   [ISA_SRC_COL] = "col"};
    bool used[ISA_IMMS] = {false}, first = true;
    str_puts(out, " chain=(");
    for (int s = 0; s < ISA_STAGES; s++) {
        const struct isa_stage *st = &n->chain.st[s];
        if (st->op == ISA_VOP_NOP && !st->save) continue;
        str_printf(out, "%s%s", first ? "" : "; ", isa_vop_name((int)st->op));
        first = false;
        const int64_t operand[2] = {st->a, st->b};
        for (int k = 0; k < 2 && k < isa_vop_operands((int)st->op); k++) {
            bool known = operand[k] > 0 && operand[k] < ISA_SRCS;
            str_printf(out, " %s", known ? sources[operand[k]] : "?");
            if (operand[k] >= ISA_SRC_IMM0 && operand[k] <= ISA_SRC_IMM3)
                used[operand[k] - ISA_SRC_IMM0] = true;
        }
        if (st->save) str_puts(out, " =tmp");
    }
    str_putc(out, ')');
    for (int k = 0; k < ISA_IMMS; k++) {
        if (!used[k]) continue;
        str_printf(out, " imm%d=", k);
        if (graph_chain_is_int(n))
            str_printf(out, "%" PRId32, (int32_t)(uint32_t)n->chain.imm[k]);
        else
            put_float(out, (double)num_float((uint32_t)n->chain.imm[k]), false);
    }
}

static void put_attr(struct str *out, const struct graph_attr *a) {
    str_printf(out, " %s=", graph_attrs[a->key].text);
    if (a->key == GRAPH_ATTR_DTYPE) {
        str_puts(out, isa_dtype_name((int)a->i));
        return;
    }
    enum graph_attr_kind kind = graph_attrs[a->key].kind;
    if (kind == GRAPH_INT) {
        str_printf(out, "%" PRId64, a->i);
    } else if (kind == GRAPH_FLOAT) {
        put_float(out, a->f, true);
    } else if (kind == GRAPH_INTS) {
        put_ints(out, a->n, a->ints);
    } else if (kind == GRAPH_FLOATS) {
        str_putc(out, '[');
        for (int k = 0; k < a->n; k++) {
            if (k) str_putc(out, ',');
            put_float(out, a->floats[k], true);
        }
        str_putc(out, ']');
    } else if (is_plain(a->word) && !strpbrk(a->word, "/:-")) {
        str_puts(out, a->word);
    } else {
        put_quoted(out, a->word);
    }
}

void graph_print_node(const struct graph_node *n, struct str *out) {
    for (int k = 0; k < n->nout; k++) {
        if (k) str_puts(out, ", ");
        put_name(out, n->outputs[k]);
        str_puts(out, " : ");
        graph_print_type(n->outputs[k], out);
    }
    str_printf(out, " = %s", graph_ops[n->op].text);
    for (int k = 0; k < n->nown; k++) {
        str_puts(out, k ? ", " : " ");
        put_name(out, n->inputs[k]);
    }
    for (int k = 0; k < n->nattr; k++)
        put_attr(out, &n->attrs[k]);
    if (n->has_chain) {
        put_chain(out, n);
        for (int k = 1; k < 3 && n->op != GRAPH_MAP; k++) {
            if (n->chain_in[k] < 0) continue;
            str_printf(out, " in%d=", k);
            put_name(out, n->inputs[n->chain_in[k]]);
        }
    }
    str_puts(out, " node=");
    put_quoted(out, n->name);
    if (n->norigin) {
        str_puts(out, " from=[");
        for (int k = 0; k < n->norigin; k++) {
            if (k) str_puts(out, ", ");
            put_quoted(out, n->origins[k]);
        }
        str_putc(out, ']');
    }
    if (n->kernel) {
        str_puts(out, " kernel=");
        put_quoted(out, n->kernel);
    }
    str_putc(out, '\n');
}

// ---- the graph -------------------------------------------------------------------------------

static npu_status print(const struct graph *g, struct str *out, struct sink *to) {
    str_puts(out, "graph ");
    put_quoted(out, g->name);
    str_putc(out, '\n');
    for (int k = 0; k < g->ninput; k++) {
        const struct graph_value *v = g->inputs[k];
        str_puts(out, "in ");
        put_name(out, v);
        str_puts(out, " : ");
        graph_print_type(v, out);
        if (v->file_dtype != v->dtype) str_printf(out, " file=%s", isa_dtype_name(v->file_dtype));
        if (v->index_limit) str_printf(out, " limit=%" PRId64, v->index_limit);
        str_putc(out, '\n');
    }
    bool *used = base_alloc_array((size_t)g->nvalue + 1, sizeof *used);
    if (!used) {
        out->failed = true;
        return str_status(out);
    }
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++)
            used[n->inputs[k]->id] = true;
    for (int k = 0; k < g->ninput; k++)
        if (g->inputs[k]->initial) used[g->inputs[k]->initial->id] = true;
    npu_status failed = NULL;
    for (int k = 0; k < g->nvalue && !failed; k++) {
        const struct graph_value *v = g->values[k];
        if (!v || !v->data || (!used[k] && !v->is_output)) continue;
        failed = put_rounded(out, v, to);
    }
    base_free(used);
    NPU_TRY(failed);
    for (const struct graph_node *n = g->first; n; n = n->next)
        graph_print_node(n, out);
    for (int k = 0; k < g->noutput; k++) {
        const struct graph_value *v = g->outputs[k];
        str_puts(out, "out ");
        put_name(out, v);
        if (v->file_dtype != v->dtype) str_printf(out, " file=%s", isa_dtype_name(v->file_dtype));
        if (v->file_name) {
            str_puts(out, " name=");
            put_quoted(out, v->file_name);
        }
        if (v->state) {
            str_puts(out, " state=");
            put_name(out, v->state);
        }
        if (v->state && v->state->initial) {
            str_puts(out, " initial=");
            put_name(out, v->state->initial);
        }
        str_putc(out, '\n');
    }
    return str_status(out);
}

void graph_print(const struct graph *g, struct str *out) {
    struct sink nowhere = {0};
    npu_status_free(print(g, out, &nowhere)); // out of memory: the caller sees out->failed
}

static bool needs_bin(const struct graph *g, const struct sink *to) {
    for (int k = 0; k < g->nvalue; k++) {
        const struct graph_value *v = g->values[k];
        if (v && v->data && !named_file(to, v->source) && graph_value_elems(v) > INLINE_ELEMS)
            return true;
    }
    return false;
}

npu_status graph_save(const struct graph *g, const char *path) {
    struct str text = {0}, bin_path = {0};
    const char *slash = strrchr(path, '/');
    str_printf(&bin_path, "%s.bin", path);
    struct sink to = {.bin_name = str_text(&bin_path) + (slash ? slash + 1 - path : 0),
                      .path = path};
    npu_status failed = str_status(&bin_path);
    if (!failed && needs_bin(g, &to)) failed = file_out_open(str_text(&bin_path), &to.bin);
    if (!failed) failed = print(g, &text, &to);
    if (failed)
        file_out_abort(to.bin);
    else if (to.bin)
        failed = file_out_commit(to.bin);
    if (!failed)
        failed = file_write_atomic(path, (struct span){(const uint8_t *)str_text(&text), text.len});
    str_free(&text);
    str_free(&bin_path);
    return failed;
}
