// SPDX-License-Identifier: Apache-2.0
// A kernel as one line of `npuc --info`:
//
//   %c0 = conv2d+bias+relu %x, W=const[64,3,7,7], bias=const[64,1,1], stride=2 -> f16[1,64,112,112]
//
// Values keep the model's name when they are its inputs or outputs, or when it is short and not one
// of a numbered series (linear_17); the others are numbered by the kind of op that makes them. What
// is only a view of a value is shown as that value with other dimensions, behind "+N" when it
// starts N elements into it, and a concatenation whose parts are stored in place as concat(...).
#include "toolchain/lower/text.h"

#include <string.h>

#include "runtime/base/map.h"
#include "toolchain/graph/act.h"

enum { READABLE_BYTES = 20, SHOWN_PARTS = 6 };

// ---- the rows of text.def -----------------------------------------------------------------------

enum form { ANY, GATE, LINEAR, DEPTHWISE, ONE_ROW, MAX_POOL, MODE, LOGARITHM, TABLE };

struct row {
    const char *op;
    enum form form;
    const char *display, *prefix, *operands;
};

static const struct row rows[] = {
#define TEXT_OP(op, form, display, prefix, operands) {op, form, display, prefix, operands},
#include "toolchain/lower/text.def"
};
static const struct row unknown = {"", ANY, "", "v", ""};

static bool fits(const struct graph_node *n, enum form form) {
    const struct graph_value *x = n->inputs[0], *w = n->nown > 1 ? n->inputs[1] : NULL;
    switch (form) {
    case ANY:
    case GATE:
    case MODE: return true;
    case LINEAR:
        return w->data && graph_value_elems(w) == w->dims[w->rank - 1] * w->dims[w->rank - 2];
    case DEPTHWISE: return w->dims[1] == 1 && graph_int(n, GRAPH_ATTR_GROUP, 1) == x->dims[1];
    case ONE_ROW: return x->dims[2] == 1 && w->dims[2] == 1;
    case MAX_POOL: return !strcmp(graph_word(n, GRAPH_ATTR_MODE, ""), "max");
    case LOGARITHM: return graph_int(n, GRAPH_ATTR_LOG, 0) != 0;
    case TABLE: return x->data && x->rank == 2 && graph_int(n, GRAPH_ATTR_AXIS, 0) == 0;
    }
    return false;
}

static const struct row *row_of(const struct graph_node *n) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].op, graph_ops[n->op].text) && fits(n, rows[i].form)) return &rows[i];
    return &unknown;
}

// The k-th name of a comma separated list; length 0 when it has none.
static const char *listed(const char *list, int k, int *length) {
    for (; k > 0 && *list; k--) {
        list += strcspn(list, ",");
        if (*list) list++;
    }
    *length = k ? 0 : (int)strcspn(list, ",");
    return list;
}

// ---- names of values ----------------------------------------------------------------------------

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Length of a name without "_17" at its end; the whole length when it has no such end.
static size_t without_number(const char *name) {
    size_t n = strlen(name), end = n;
    while (end > 0 && is_digit(name[end - 1]))
        end--;
    return end < n && end > 1 && name[end - 1] == '_' ? end - 1 : n;
}

// A word of letters, digits and underscores that is not one of a series.
static bool readable(const struct map *series, const char *name) {
    const size_t n = strlen(name);
    if (n > READABLE_BYTES || !is_letter(name[0]) || name[0] == '_' || without_number(name) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_letter(name[i]) && !is_digit(name[i])) return false;
    return !map_get(series, name);
}

// What v is a view of, through nodes without kernels; v itself when it is stored as such.
static const struct graph_value *source_of(const struct lower *L, const struct graph_value *v) {
    while (v->producer && v->producer->op != GRAPH_CONCAT && lower_is_alias(L, v->producer))
        v = v->producer->inputs[0];
    return v;
}

// Outputs that are a kernel's result in another shape give it their name.
static void label_outputs(struct lower *L, struct map *taken) {
    const struct graph *g = L->g;
    for (int i = 0; i < g->ninput + g->noutput; i++) {
        const struct graph_value *v = i < g->ninput ? g->inputs[i] : g->outputs[i - g->ninput];
        L->label[v->id] = v->name;
        map_put(taken, v->name, g->arena);
    }
    for (int i = 0; i < g->noutput; i++) {
        const struct graph_value *v = g->outputs[i], *from = source_of(L, v);
        if (!L->label[from->id] && !from->data && graph_value_elems(from) == graph_value_elems(v))
            L->label[from->id] = v->name;
    }
}

// Of the values that n makes. Gated activations are the middle of an MLP.
static const char *prefix_of(const struct graph_node *n) {
    struct text_term terms[TEXT_TERMS];
    if (n->op == GRAPH_MAP && text_chain(n, terms) && terms[0].gated) return "m";
    return row_of(n)->prefix;
}

// A counter for each prefix: kept as the number itself.
struct counter {
    int total, used;
};

static struct counter *counter_of(struct lower *L, struct map *counters, const char *prefix) {
    struct counter *c = map_get(counters, prefix);
    if (!c) {
        c = ARENA_NEW(L->a, struct counter);
        map_put(counters, prefix, c);
    }
    return c;
}

static void number(struct lower *L, struct map *counters, struct map *taken,
                   const struct graph_node *n) {
    const char *prefix = prefix_of(n);
    struct counter *c = counter_of(L, counters, prefix);
    for (int i = 0; i < n->nout; i++) {
        const char **label = &L->label[n->outputs[i]->id];
        if (*label) continue;
        do {
            *label =
                c->total == 1 && !c->used ? prefix : arena_printf(L->a, "%s%d", prefix, c->used);
            c->used++;
        } while (map_get(taken, *label));
        map_put(taken, *label, c);
    }
}

void lower_label(struct lower *L) {
    const struct graph *g = L->g;
    struct map taken, series, counters;
    map_init(&taken, L->a);
    map_init(&series, L->a);
    map_init(&counters, L->a);
    L->label = ARENA_ARRAY(L->a, const char *, (size_t)g->nvalue + 1);
    for (int i = 0; i < g->nvalue; i++) {
        const char *name = g->values[i] ? g->values[i]->name : "";
        const size_t stem = without_number(name);
        if (name[stem]) map_put_n(&series, name, stem, L->a);
    }
    label_outputs(L, &taken);
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nout && !lower_is_alias(L, n); i++) {
            const struct graph_value *v = n->outputs[i];
            if (L->label[v->id]) continue;
            if (readable(&series, v->name) && !map_get(&taken, v->name)) {
                L->label[v->id] = v->name;
                map_put(&taken, v->name, L->a);
            } else {
                counter_of(L, &counters, prefix_of(n))->total++;
            }
        }
    for (const struct graph_node *n = g->first; n; n = n->next)
        if (!lower_is_alias(L, n)) number(L, &counters, &taken, n);
}

// ---- one line -----------------------------------------------------------------------------------

static void put_dims(struct str *out, const struct graph_value *v) {
    str_putc(out, '[');
    for (int d = 0; d < v->rank; d++)
        str_printf(out, "%s%lld", d ? "," : "", (long long)v->dims[d]);
    str_putc(out, ']');
}

static bool same_dims(const struct graph_value *a, const struct graph_value *b) {
    bool same = a->rank == b->rank;
    for (int d = 0; d < a->rank && same; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

static void put_value(const struct lower *L, struct str *out, const struct graph_value *v) {
    const struct graph_value *from = source_of(L, v);
    if (from->data) {
        str_puts(out, "const");
        put_dims(out, v);
    } else if (L->label[v->id]) {
        str_printf(out, "%%%s", L->label[v->id]);
    } else if (L->label[from->id]) {
        const int64_t bytes = L->place[v->id].offset - L->place[from->id].offset;
        str_printf(out, "%%%s", L->label[from->id]);
        if (bytes) str_printf(out, "+%lld", (long long)(bytes / lower_dtype_bytes(v->dtype)));
        if (bytes || !same_dims(v, from)) put_dims(out, v);
    } else {
        const struct graph_node *n = from->producer; // a concatenation in place
        str_puts(out, "concat(");
        for (int k = 0; k < n->nin && k < SHOWN_PARTS; k++) {
            if (k) str_puts(out, ", ");
            put_value(L, out, n->inputs[k]);
        }
        str_puts(out, n->nin > SHOWN_PARTS ? ", ...)" : ")");
        if (!same_dims(v, from)) put_dims(out, v);
    }
}

// "kernel=3x3", "stride=2" when both are the same; nothing when all are `plain`.
static void put_pair(struct str *out, const struct graph_node *n, enum graph_attr_key key,
                     const char *name, int64_t plain) {
    const int64_t down = graph_ints_at(n, key, 0, plain), across = graph_ints_at(n, key, 1, plain);
    if (down == plain && across == plain) return;
    if (down == across)
        str_printf(out, ", %s=%lld", name, (long long)down);
    else
        str_printf(out, ", %s=%lldx%lld", name, (long long)down, (long long)across);
}

// A window of attention: "causal", "window=64", "window=128:0".
static void put_window(struct str *out, const struct graph_node *n) {
    const struct graph_attr *w = graph_attr(n, GRAPH_ATTR_WINDOW);
    if (!w || w->n < 2) return;
    const long long left = (long long)w->ints[0], right = (long long)w->ints[1];
    if (left < 0 && right == 0)
        str_puts(out, ", causal");
    else if (left == right)
        str_printf(out, ", window=%lld", left);
    else
        str_printf(out, ", window=%lld:%lld", left, right);
}

static void put_attributes(struct str *out, const struct graph_node *n) {
    const struct graph_attr *axes = graph_attr(n, GRAPH_ATTR_AXES);
    put_pair(out, n, GRAPH_ATTR_KERNEL, "kernel", 0);
    put_pair(out, n, GRAPH_ATTR_STRIDES, "stride", 1);
    put_pair(out, n, GRAPH_ATTR_DILATIONS, "dilation", 1);
    const int64_t groups = graph_int(n, GRAPH_ATTR_GROUP, 1);
    if (groups > 1 && (n->op == GRAPH_GROUPNORM || n->inputs[1]->dims[1] > 1))
        str_printf(out, ", groups=%lld", (long long)groups);
    for (int i = 0; axes && i < axes->n; i++)
        str_printf(out, "%s%lld%s", i ? "," : ", axes=[", (long long)axes->ints[i],
                   i + 1 < axes->n ? "" : "]");
    if (n->op == GRAPH_CONCAT)
        str_printf(out, ", axis=%lld", (long long)graph_int(n, GRAPH_ATTR_AXIS, 0));
    put_window(out, n);
}

struct line {
    const struct lower *L;
    struct str *out;
    int count; // operands so far
};

static void put_operand(struct line *l, const char *name, int length, const struct graph_value *v,
                        double imm) {
    str_puts(l->out, l->count++ ? ", " : " ");
    if (length) str_printf(l->out, "%.*s=", length, name);
    if (v)
        put_value(l->L, l->out, v);
    else
        str_printf(l->out, "%g", imm);
}

// The op's own inputs: those without a name first.
static void put_inputs(struct line *l, const struct graph_node *n, const struct row *row) {
    for (int named = 0; named < 2; named++)
        for (int k = 0; k < n->nown; k++) {
            int length;
            const char *name = listed(row->operands, k, &length);
            if (!!length == named) put_operand(l, name, length, n->inputs[k], 0);
        }
}

static void put_terms(struct line *l, const struct graph_node *n, const struct text_term *terms,
                      int count) {
    const bool named = n->op != GRAPH_MAP || count > 1;
    if (n->op == GRAPH_MAP && n->chain_in[0] >= 0)
        put_operand(l, "", 0, n->inputs[n->chain_in[0]], 0);
    for (int i = 0; i < count; i++) {
        const char *name = terms[i].gated ? "mul" : terms[i].name;
        for (int k = 0; k < terms[i].noperand; k++)
            put_operand(l, name, named ? (int)strlen(name) : 0, terms[i].operand[k].value,
                        terms[i].operand[k].imm);
    }
}

static const char *op_text(struct lower *L, const struct graph_node *n, const struct row *row,
                           const struct text_term *terms, int count) {
    struct str s = {0};
    const bool cast = n->outputs[0]->dtype != n->inputs[0]->dtype;
    if (row->form == MODE)
        str_puts(&s, graph_word(n, GRAPH_ATTR_MODE, graph_ops[n->op].text));
    else if (row->form == GATE) // geglu, geglu_mlp
        str_printf(&s, "%s%s",
                   graph_acts[graph_act_parse(graph_word(n, GRAPH_ATTR_ACT, "identity"))].glu,
                   row->display);
    else if (n->op != GRAPH_MAP)
        str_puts(&s, row->display[0] ? row->display : graph_ops[n->op].text);
    else if (!count)
        str_puts(&s, cast ? "cast" : "copy");
    for (int i = 0; i < count; i++)
        str_printf(&s, "%s%s", s.len ? "+" : "", terms[i].name);
    return str_move(&s, L->a);
}

void lower_describe(struct lower *L, const struct graph_node *n, int first) {
    struct text_term terms[TEXT_TERMS];
    const struct row *row = row_of(n);
    const int count = text_chain(n, terms), end = L->p->nkernel;
    const char *op = op_text(L, n, row, terms, count);
    struct str s = {0};
    struct line l = {L, &s, 0};
    for (int i = 0; i < n->nout; i++)
        str_printf(&s, "%s%%%s", i ? ", " : "", L->label[n->outputs[i]->id]);
    str_printf(&s, " = %s", op);
    if (n->op != GRAPH_MAP) put_inputs(&l, n, row);
    put_terms(&l, n, terms, count);
    put_attributes(&s, n);
    str_printf(&s, " -> %s", isa_dtype_name((int)n->outputs[0]->dtype));
    put_dims(&s, n->outputs[0]);
    const char *text = str_move(&s, L->a);
    for (int k = first; k < end; k++) {
        L->p->kernels[k]->op = op;
        L->p->kernels[k]->text = end - first == 1 ? text
                                                  : arena_printf(L->a, "%s (%d of %d)", text,
                                                                 k - first + 1, end - first);
    }
}
