// SPDX-License-Identifier: Apache-2.0
//
// Reads graph text line by line. A line with a fault is left out and its value marked, so that
// lines that use it are not reported too; at the end the whole graph is verified.

#include "toolchain/frontend/text/text_graph.h"

#include <string.h>

#include "toolchain/frontend/text/scan.h"

// "KEY=" when it comes next.
static bool eat_key(struct text_state *s, const char *key) {
    size_t n = strlen(key);
    text_blank(s);
    if ((size_t)(s->end - s->p) <= n || memcmp(s->p, key, n) != 0 || s->p[n] != '=') return false;
    s->p += n + 1;
    return true;
}

static bool at_statement_end(struct text_state *s, const char *what) {
    return text_at_end(s) || text_expected(s, what);
}

static bool read_graph(struct text_state *s, struct text_place at) {
    const char *name;
    if (s->g) return text_fault(s, at, "a second graph; a text has one");
    if (!text_read_string(s, &name)) return false;
    s->g = graph_new(s->arena, name);
    return at_statement_end(s, "the end of the line");
}

// "%NAME : TYPE" of an input or constant.
static bool read_declared(struct text_state *s, const char **name, struct graph_value *type) {
    struct text_place at = text_here(s);
    *name = NULL;
    if (!text_read_name(s, name) || !text_is_new(s, at, *name)) return false;
    return text_need(s, ':') && text_read_type(s, type);
}

static struct graph_value *add_value(struct text_state *s, const char *name,
                                     const struct graph_value *type) {
    struct graph_value *v = graph_add_value(s->g, name, type->dtype, type->rank, type->dims);
    v->has_order = type->has_order;
    memcpy(v->order, type->order, sizeof v->order);
    return v;
}

static bool read_input(struct text_state *s) {
    struct text_place at = text_here(s);
    struct graph_value type;
    const char *name;
    bool ok = read_declared(s, &name, &type);
    if (ok && eat_key(s, "file")) ok = text_read_dtype(s, &type.file_dtype);
    if (ok && eat_key(s, "limit")) ok = text_read_int(s, 0, INT64_MAX, &type.index_limit);
    ok = ok && at_statement_end(s, "file=DTYPE, limit=N or the end of the line");
    struct graph_value *v = NULL;
    if (ok) {
        v = add_value(s, name, &type);
        v->file_dtype = type.file_dtype;
        v->index_limit = type.index_limit;
        graph_add_input(s->g, v);
    }
    if (name) text_define(s, at, name, v);
    return ok;
}

static bool read_const(struct text_state *s) {
    struct text_place at = text_here(s);
    struct graph_value type;
    const char *name;
    bool ok = read_declared(s, &name, &type) && text_need(s, '=') && text_read_constant(s, &type) &&
              at_statement_end(s, "the end of the line");
    struct graph_value *v = NULL;
    if (ok) {
        v = add_value(s, name, &type);
        v->data = type.data;
        v->source = type.source;
        v->source_offset = type.source_offset;
    }
    if (name) text_define(s, at, name, v);
    return ok;
}

// "state=%NAME [initial=%NAME]": the output is the next value of an input.
static bool read_state(struct text_state *s, struct graph_value *v) {
    const char *name;
    struct graph_value *of;
    struct text_place at;
    if (!eat_key(s, "state")) return true;
    at = text_here(s);
    if (!text_read_name(s, &name) || !text_find(s, at, name, &v->state)) return false;
    if (!v->state->is_input || v->state->is_state)
        return text_fault(s, at, "%%%.200s is no input, or has a next value already", name);
    v->state->is_state = true;
    if (!eat_key(s, "initial")) return true;
    at = text_here(s);
    if (!text_read_name(s, &name) || !text_find(s, at, name, &of)) return false;
    if (!of->data) return text_fault(s, at, "%%%.200s is no constant", name);
    v->state->initial = of;
    return true;
}

static bool read_output(struct text_state *s) {
    struct text_place at = text_here(s);
    struct graph_value *v;
    const char *name;
    enum isa_dtype file = ISA_DTYPE_NONE;
    if (!text_read_name(s, &name) || !text_find(s, at, name, &v)) return false;
    if (v->is_output) return text_fault(s, at, "%%%.200s is an output already", name);
    if (eat_key(s, "file") && !text_read_dtype(s, &file)) return false;
    if (eat_key(s, "name") && !text_read_string(s, &v->file_name)) return false;
    if (!read_state(s, v)) return false;
    if (!at_statement_end(s, "file=DTYPE, name=\"NAME\", state=%NAME or the end of the line"))
        return false;
    if (file != ISA_DTYPE_NONE) v->file_dtype = file;
    graph_add_output(s->g, v);
    return true;
}

// The line starts like a statement.
static bool starts_statement(struct text_state *s) {
    static const char *const words[] = {"graph", "in", "const", "out"};
    if (text_peek(s) == '%') return true;
    const char *word = text_word(s);
    for (size_t k = 0; word && k < sizeof words / sizeof *words; k++)
        if (!strcmp(word, words[k])) return true;
    return false;
}

// Goes to the next statement. Behind a fault inside brackets that is the next line that looks like
// one, from the line of the fault on.
static void next_statement(struct text_state *s, int first_line) {
    bool inside = s->depth > 0;
    s->depth = 0;
    if (!inside) {
        text_next_line(s);
        return;
    }
    if (s->line > first_line)
        s->p = s->line_start;
    else
        text_next_line(s);
    while (s->p < s->end && !starts_statement(s))
        text_next_line(s);
    s->p = s->line_start;
}

static void read_statement(struct text_state *s) {
    static const struct {
        const char *word;
        bool (*read)(struct text_state *s);
    } rows[] = {{"in", read_input}, {"const", read_const}, {"out", read_output}};
    struct text_place at = text_here(s);
    if (text_peek(s) == '%' && s->g) {
        (void)text_read_node(s);
        return;
    }
    const char *word = text_word(s);
    if (word && !strcmp(word, "graph")) {
        (void)read_graph(s, at);
        return;
    }
    if (!s->g) {
        // One fault for all lines before it.
        (void)text_fault(s, at, "expected graph \"NAME\" as the first line");
        s->g = graph_new(s->arena, "");
        return;
    }
    for (size_t k = 0; word && k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(word, rows[k].word) != 0) continue;
        (void)rows[k].read(s);
        return;
    }
    if (word)
        (void)text_fault(s, at, "a line starts with in, const, out or %%NAME, not with '%.80s'",
                         word);
    else
        (void)text_expected(s, "in, const, out or %NAME");
}

npu_status text_graph_parse(struct arena *a, struct span text, const char *where,
                            struct graph **out) {
    struct text_state s = {.arena = a, .where = where, .line = 1};
    s.p = s.line_start = text.size ? (const char *)text.data : "";
    s.end = s.p + text.size;
    map_init(&s.defs, a);
    map_init(&s.files, a);
    while (s.p < s.end && !s.full) {
        s.failed = false;
        int line = s.line;
        if (!text_at_end(&s)) read_statement(&s);
        next_statement(&s, line);
    }
    if (!s.faults.count && !s.g)
        diag_fail(&s.faults, BAD_INPUT, "%s:%d:1: no graph \"NAME\" in the text", where, s.line);
    else if (!s.faults.count && !s.g->noutput)
        diag_fail(&s.faults, BAD_INPUT, "%s:%d:1: no line out %%NAME: a graph needs an output",
                  where, s.line);
    npu_status failed = diag_finish(&s.faults);
    if (!failed) failed = npu_note(graph_verify(s.g, "text"), "%s", where);
    if (!failed) *out = s.g;
    return failed;
}
