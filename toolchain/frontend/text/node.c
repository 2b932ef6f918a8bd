// SPDX-License-Identifier: Apache-2.0
//
// A node line. It is read whole, then the node is built and inferred, then what depends on its
// type is checked: immediates (bits of an f32, or an i32), the declared type.

#include <string.h>

#include "runtime/base/str.h"
#include "runtime/base/text.h"
#include "toolchain/frontend/text/scan.h"

// A line while it is read.
struct node_text {
    struct text_place start, type_at, chain_at, imm_at[ISA_IMMS];
    const char *name; // of the output
    bool typed;
    struct graph_value type;
    enum graph_op op;
    VEC(struct graph_value *) inputs;
    VEC(struct graph_attr) attrs;
    bool has_chain;
    struct isa_chain chain;
    struct graph_value *extra[3]; // the chain's in1, in2
    const char *imm[ISA_IMMS];    // its number, NULL when there is none
    const char *node, *kernel;
    bool has_from;
    VEC(const char *) from;
};

static bool read_value(struct text_state *s, struct graph_value **out) {
    struct text_place at = text_here(s);
    const char *name;
    return text_read_name(s, &name) && text_find(s, at, name, out);
}

// ---- the left side

static bool read_output(struct text_state *s, struct node_text *t) {
    if (!text_read_name(s, &t->name) || !text_is_new(s, t->start, t->name)) return false;
    if (text_eat(s, ':')) {
        t->typed = true;
        t->type_at = text_here(s);
        if (!text_read_type(s, &t->type)) return false;
    }
    if (text_peek(s) == ',')
        return text_fault(s, text_here(s), "a node has one result; '=' is expected");
    return t->typed || text_peek(s) == '=' ? text_need(s, '=')
                                           : text_expected(s, "': TYPE' or '='");
}

static bool read_op(struct text_state *s, struct node_text *t) {
    struct text_place at = text_here(s);
    const char *word, *known[GRAPH_OPS];
    if (!text_read_word(s, "an op", &word)) return false;
    int op = graph_op_parse(word);
    if (op >= 0) {
        t->op = (enum graph_op)op;
        return true;
    }
    for (int k = 0; k < GRAPH_OPS; k++)
        known[k] = graph_ops[k].text;
    const char *near = text_did_you_mean(word, known, GRAPH_OPS);
    return near ? text_fault(s, at, "there is no op '%.80s'; did you mean %s?", word, near)
                : text_fault(s, at, "there is no op '%.80s'; npuc --list ops shows them", word);
}

// ---- chains

static bool read_operand(struct text_state *s, int64_t *out) {
    struct text_place at = text_here(s);
    const char *word;
    if (!text_read_word(s, "an operand: acc, in0..in2, tmp, imm0..imm3", &word)) return false;
    for (int src = ISA_SRC_NONE + 1; src < ISA_SRCS; src++) {
        if (strcmp(word, isa_src_name(src)) != 0) continue;
        *out = src;
        return true;
    }
    return text_fault(s, at, "'%.40s' is no operand; there are acc, in0..in2, tmp, imm0..imm3",
                      word);
}

static bool read_vop(struct text_state *s, int64_t *out) {
    struct text_place at = text_here(s);
    const char *word, *known[128];
    size_t n = 0;
    if (!text_read_word(s, "an operation of a chain", &word)) return false;
    *out = isa_vop_parse(word);
    if (*out >= 0) return true;
    for (int k = 0; k < 128; k++)
        if (isa_vop_name(k)) known[n++] = isa_vop_name(k);
    const char *near = text_did_you_mean(word, known, n);
    return text_fault(s, at, "'%.40s' is no operation of a chain%s%s%s", word,
                      near ? "; did you mean " : ", see isa/vop.def", near ? near : "",
                      near ? "?" : "");
}

static bool read_chain(struct text_state *s, struct node_text *t) {
    t->has_chain = true;
    t->chain_at = text_here(s);
    if (!text_open(s, '(')) return false;
    for (int k = 0; !text_close(s, ')'); k++) {
        if (k && !text_eat(s, ';')) return text_expected(s, "';', '=tmp' or ')'");
        if (k == ISA_STAGES)
            return text_fault(s, text_here(s), "a chain has at most %d stages", ISA_STAGES);
        struct isa_stage *st = &t->chain.st[k];
        if (!read_vop(s, &st->op)) return false;
        int operands = isa_vop_operands((int)st->op);
        if (operands > 0 && !read_operand(s, &st->a)) return false;
        if (operands > 1 && !read_operand(s, &st->b)) return false;
        if (!text_eat(s, '=')) continue;
        const char *word = text_word(s);
        if (!word || strcmp(word, "tmp") != 0) return text_expected(s, "=tmp");
        st->save = 1;
    }
    return true;
}

// ---- KEY=VALUE

static bool read_word_value(struct text_state *s, const char **out) {
    if (text_peek(s) == '"') return text_read_string(s, out);
    return text_read_word(s, "a word", out);
}

static bool read_attr(struct text_state *s, struct node_text *t, struct text_place at,
                      const char *key) {
    struct graph_attr a = {0};
    int found = graph_attr_parse(key);
    if (found < 0) {
        const char *known[GRAPH_ATTRS + 1];
        for (int k = 0; k < GRAPH_ATTRS; k++)
            known[k] = graph_attrs[k].text;
        const char *near = text_did_you_mean(key, known, GRAPH_ATTRS);
        return text_fault(s, at, "there is no attribute '%.80s'%s%s%s", key,
                          near ? "; did you mean " : ", see toolchain/graph/attr.def",
                          near ? near : "", near ? "?" : "");
    }
    a.key = (enum graph_attr_key)found;
    for (size_t k = 0; k < t->attrs.len; k++)
        if (t->attrs.ptr[k].key == a.key) return text_fault(s, at, "%s stands twice", key);
    bool ok = true;
    enum graph_attr_kind kind = graph_attrs[found].kind;
    if (a.key == GRAPH_ATTR_DTYPE) {
        enum isa_dtype dtype;
        ok = text_read_dtype(s, &dtype);
        if (ok) a.i = (int64_t)dtype;
    } else if (kind == GRAPH_INT) {
        ok = text_read_int(s, INT64_MIN, INT64_MAX, &a.i);
    } else if (kind == GRAPH_FLOAT) {
        ok = text_read_float(s, &a.f);
    } else if (kind == GRAPH_INTS) {
        int64_t *ints;
        ok = text_read_ints(s, &a.n, &ints);
        if (ok) a.ints = ints;
    } else if (kind == GRAPH_FLOATS) {
        double *floats;
        ok = text_read_floats(s, &a.n, &floats);
        if (ok) a.floats = floats;
    } else {
        ok = read_word_value(s, &a.word);
    }
    if (ok) VEC_PUSH(s->arena, &t->attrs, a);
    return ok;
}

static bool read_from(struct text_state *s, struct node_text *t) {
    if (!text_open(s, '[')) return false;
    while (!text_close(s, ']')) {
        const char *text;
        if (t->from.len && !text_eat(s, ',')) return text_expected(s, "',' or ']'");
        if (!text_read_string(s, &text)) return false;
        VEC_PUSH(s->arena, &t->from, text);
    }
    return true;
}

static bool read_imm(struct text_state *s, struct node_text *t, int k) {
    t->imm_at[k] = text_here(s);
    t->imm[k] = text_number(s);
    return t->imm[k] || text_expected(s, "a number");
}

// The number behind a prefix of a key, as 2 of "in2"; -1 when it is something else.
static int numbered(const char *key, const char *prefix, int lo, int hi) {
    size_t n = strlen(prefix);
    if (strncmp(key, prefix, n) != 0 || key[n] < '0' + lo || key[n] > '0' + hi || key[n + 1])
        return -1;
    return key[n] - '0';
}

static bool read_pair(struct text_state *s, struct node_text *t) {
    struct text_place at = text_here(s);
    const char *key;
    if (!text_read_word(s, "KEY=VALUE", &key) || !text_need(s, '=')) return false;
    int imm = numbered(key, "imm", 0, ISA_IMMS - 1), in = numbered(key, "in", 1, 2);
    bool quoted = text_peek(s) == '"';
    if ((imm >= 0 && t->imm[imm]) || (in > 0 && t->extra[in]) ||
        (!strcmp(key, "chain") && t->has_chain) || (!strcmp(key, "node") && t->node) ||
        (!strcmp(key, "from") && t->has_from) || (!strcmp(key, "kernel") && quoted && t->kernel))
        return text_fault(s, at, "%s stands twice", key);
    if (!strcmp(key, "chain")) return read_chain(s, t);
    if (!strcmp(key, "node")) return text_read_string(s, &t->node);
    if (!strcmp(key, "kernel") && quoted) return text_read_string(s, &t->kernel);
    if (!strcmp(key, "from")) {
        t->has_from = true;
        return read_from(s, t);
    }
    if (imm >= 0) return read_imm(s, t, imm);
    if (in > 0 && t->op != GRAPH_MAP) return read_value(s, &t->extra[in]);
    if (in > 0) return text_fault(s, at, "the inputs of a map stand behind its op");
    return read_attr(s, t, at, key);
}

// ---- building

static struct graph_node *build(struct text_state *s, const struct node_text *t) {
    struct graph_node *n = graph_add_node(s->g, t->op, t->node ? t->node : t->name,
                                          (int)t->inputs.len, t->inputs.ptr, NULL);
    n->attrs = t->attrs.ptr;
    n->nattr = (int)t->attrs.len;
    n->has_chain = t->has_chain;
    n->chain = t->chain;
    n->kernel = t->kernel;
    for (size_t k = 0; k < t->from.len; k++)
        graph_add_origin(s->g, n, t->from.ptr[k]);
    struct graph_value **in = ARENA_ARRAY(s->arena, struct graph_value *, (size_t)n->nin + 2);
    for (int k = 0; k < n->nin; k++)
        in[k] = n->inputs[k];
    n->inputs = in;
    graph_add_call(s->g, n->name, graph_ops[t->op].text, n->prev);
    for (int k = 1; k < 3; k++) {
        if (!t->extra[k]) continue;
        n->chain_in[k] = n->nin;
        in[n->nin++] = t->extra[k];
    }
    return n;
}

static bool set_imm(struct text_state *s, const struct node_text *t, struct graph_node *n, int k) {
    bool read = false;
    for (int i = 0; i < ISA_STAGES; i++) {
        const struct isa_stage *st = &n->chain.st[i];
        int operands = isa_vop_operands((int)st->op);
        read |= operands > 0 && st->a == ISA_SRC_IMM0 + k;
        read |= operands > 1 && st->b == ISA_SRC_IMM0 + k;
    }
    if (!read && !t->imm[k]) return true;
    if (!t->imm[k])
        return text_fault(s, t->chain_at, "the chain reads imm%d, which is not given", k);
    if (!read) return text_fault(s, t->imm_at[k], "no stage of the chain reads imm%d", k);
    if (graph_chain_is_int(n)) {
        int64_t v;
        if (!text_parse_i64(t->imm[k], &v) || v < INT32_MIN || v > INT32_MAX)
            return text_fault(s, t->imm_at[k],
                              "'%s' is no immediate of an integer chain, which takes -2^31 to 2^31 "
                              "- 1",
                              t->imm[k]);
        n->chain.imm[k] = (int64_t)(uint32_t)(int32_t)v;
        return true;
    }
    double v;
    if (!text_parse_f64(t->imm[k], &v))
        return text_fault(s, t->imm_at[k], "'%s' is no number", t->imm[k]);
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    n->chain.imm[k] = (int64_t)bits;
    return true;
}

static bool check_type(struct text_state *s, const struct node_text *t, struct graph_value *y) {
    const struct graph_value *d = &t->type;
    if (d->dtype != y->dtype || d->rank != y->rank ||
        memcmp(d->dims, y->dims, (size_t)y->rank * sizeof *y->dims) != 0) {
        struct str is = {0};
        struct graph_value plain = *y;
        plain.has_order = false;
        graph_print_type(&plain, &is);
        text_fault(s, t->type_at, "%%%.200s is declared otherwise than its %s gives: %s", t->name,
                   graph_ops[t->op].text, str_text(&is));
        str_free(&is);
        return false;
    }
    y->has_order = d->has_order;
    memcpy(y->order, d->order, sizeof y->order);
    return true;
}

static bool finish(struct text_state *s, const struct node_text *t) {
    bool chained = t->extra[1] || t->extra[2];
    for (int k = 0; k < ISA_IMMS; k++)
        chained |= t->imm[k] != NULL;
    if (chained && !t->has_chain)
        return text_fault(s, t->start, "immediates and in1, in2 need a chain=(...)");
    struct graph_node *n = build(s, t);
    if (!text_status(s, t->start, graph_infer(s->g, n, t->name))) return false;
    for (int k = 0; k < ISA_IMMS && t->has_chain; k++)
        if (!set_imm(s, t, n, k)) return false;
    struct graph_value *y = n->outputs[0];
    if (t->typed && !check_type(s, t, y)) return false;
    text_define(s, t->start, t->name, y);
    return true;
}

bool text_read_node(struct text_state *s) {
    struct node_text t = {.start = text_here(s)};
    bool ok = read_output(s, &t) && read_op(s, &t);
    while (ok && text_peek(s) == '%') {
        struct graph_value *v;
        ok = read_value(s, &v);
        if (!ok) break;
        VEC_PUSH(s->arena, &t.inputs, v); // NOLINT(bugprone-sizeof-expression): pointers
        if (!text_eat(s, ',')) break;
        if (text_peek(s) != '%') ok = text_expected(s, "an input, %NAME");
    }
    while (ok && !text_at_end(s))
        ok = read_pair(s, &t);
    ok = ok && finish(s, &t);
    if (!ok && t.name) text_define(s, t.start, t.name, NULL);
    return ok;
}
