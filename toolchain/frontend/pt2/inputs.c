// SPDX-License-Identifier: Apache-2.0
//
// The user's inputs. A size that the export left open is a symbol (s27), which --dim fixes, or a
// --shape or --const of an input that has it; sizes like 2*s27 are solved for their symbol. Every
// mention must agree and lie in the range that the export allows. What no option fixes is gathered
// and reported at once, and so are options that name nothing.

#include <inttypes.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/base/text.h"
#include "toolchain/frontend/pt2/import.h"

struct input {
    const char *name;
    const json_t *meta;
    const struct import_shape *shape;
    const struct import_const *bound;
};

struct inputs {
    struct importer *m;
    struct scope *s;
    struct input *list;
    int count;
    struct diag open, usage;
};

// ---- symbols ---------------------------------------------------------------------------------

static bool is_symbol(const char *name) {
    size_t digits = strspn(name + (*name != 0), "0123456789");
    return (*name == 's' || *name == 'u') && digits && !name[1 + digits];
}

static int64_t limit(const json_t *range, const char *key, int64_t otherwise) {
    const json_t *v = json_object_get(range, key);
    int64_t found = json_is_integer(v) ? json_integer_value(v) : otherwise;
    return found < 0 ? 0 : found > SYMBOL_LIMIT ? SYMBOL_LIMIT : found;
}

static struct symbol *add_symbol(struct importer *m, const char *name, size_t length) {
    struct symbol *s = map_get_n(&m->symbols.table, name, length);
    if (s) return s;
    s = ARENA_NEW(m->arena, struct symbol);
    *s = (struct symbol){arena_strndup(m->arena, name, length), -1, 0, SYMBOL_LIMIT, NULL};
    map_put(&m->symbols.table, s->name, s);
    return s;
}

static void read_ranges(struct importer *m) {
    const char *name;
    json_t *range;
    json_object_foreach((json_t *)m->schema.ranges, name, range) {
        if (!is_symbol(name)) continue;
        struct symbol *s = add_symbol(m, name, strlen(name));
        s->least = limit(range, "min_val", 0);
        s->most = limit(range, "max_val", SYMBOL_LIMIT);
    }
}

// Symbols that stand in an input's sizes, with or without a range.
static void find_symbols(struct importer *m, const json_t *meta) {
    const json_t *sizes = json_object_get(meta, "sizes");
    for (size_t d = 0; d < json_array_size(sizes); d++) {
        const json_t *expr = json_object_get(json_array_get(sizes, d), "as_expr");
        const char *text = json_string_value(json_object_get(expr, "expr_str"));
        for (; text && *text; text++) {
            size_t length = 1 + strspn(text + 1, "0123456789");
            if ((*text == 's' || *text == 'u') && length > 1 && length < 20)
                add_symbol(m, text, length);
            if (length > 1) text += length - 1;
        }
    }
}

static void settle(struct inputs *in, struct symbol *s, int64_t size, const char *from) {
    if (s->size >= 0 && s->size != size) {
        diag_fail(&in->usage, USAGE, "size '%s' is %" PRId64 " by %s and %" PRId64 " by %s",
                  s->name, s->size, s->from, size, from);
        return;
    }
    if (size < s->least || size > s->most)
        diag_fail(&in->usage, USAGE,
                  "%s makes size '%s' %" PRId64 ", the export allows %" PRId64 " to %" PRId64, from,
                  s->name, size, s->least, s->most);
    s->size = size;
    s->from = from;
}

static const char *expression(const json_t *meta, size_t d) {
    const json_t *size = json_array_get(json_object_get(meta, "sizes"), d);
    return json_string_value(json_object_get(json_object_get(size, "as_expr"), "expr_str"));
}

// ---- sizes that follow from a symbol ---------------------------------------------------------

// a * s + b
struct line {
    int64_t a, b;
};

static bool value_at(struct inputs *in, const char *text, struct symbol *s, int64_t size,
                     int64_t *out) {
    s->size = size;
    bool known = symbol_eval(&in->m->symbols, text, out) == SYMBOL_KNOWN;
    s->size = -1;
    return known;
}

static bool is_line(struct inputs *in, const char *text, struct symbol *s, struct line *line) {
    int64_t v[3];
    for (int k = 0; k < 3; k++)
        if (!value_at(in, text, s, k + 1, &v[k])) return false;
    *line = (struct line){v[1] - v[0], 2 * v[0] - v[1]};
    return line->a && v[2] - v[1] == line->a;
}

static bool is_itself(struct line line) {
    return line.a == 1 && line.b == 0;
}

// "2*s27+1"
static const char *line_text(struct arena *a, const struct symbol *s, struct line line) {
    const char *text = line.a == 1 ? s->name : arena_printf(a, "%" PRId64 "*%s", line.a, s->name);
    return line.b ? arena_printf(a, "%s%+" PRId64, text, line.b) : text;
}

// "4, 6, .. 20": what the expression can be.
static const char *sizes_text(struct inputs *in, const char *expr, struct symbol *s) {
    struct arena *a = in->m->arena;
    const char *text = "";
    int64_t v;
    for (int64_t k = s->least; k <= s->most && k < s->least + 3; k++)
        if (value_at(in, expr, s, k, &v))
            text = arena_printf(a, "%s%s%" PRId64, text, *text ? ", " : "", v);
    if (s->most - s->least < 3) return text;
    if (s->most >= SYMBOL_LIMIT || !value_at(in, expr, s, s->most, &v))
        return arena_printf(a, "%s, ..", text);
    return arena_printf(a, "%s, .. %" PRId64, text, v);
}

// What a size that is no line can be is tried, as far as that goes.
static void search(struct inputs *in, const char *text, struct symbol *s, int d, int64_t size,
                   const char *from) {
    enum { TRIES = 1 << 14 };
    int64_t found = -1, v, last = s->most - s->least < TRIES ? s->most : s->least + TRIES;
    for (int64_t k = s->least; k <= last; k++) {
        if (!value_at(in, text, s, k, &v) || v != size) continue;
        if (found >= 0) return; // several: left open
        found = k;
    }
    if (found >= 0)
        settle(in, s, found, from);
    else if (last == s->most)
        diag_fail(&in->usage, USAGE,
                  "%s gives dimension %d as %" PRId64
                  ", the model computes it of '%s'; expected %s",
                  from, d, size, s->name, sizes_text(in, text, s));
}

// Solves a size that has one open symbol for what an option says it is.
static void solve(struct inputs *in, const struct input *i, int d, int64_t size, const char *from) {
    const char *text = expression(i->meta, (size_t)d);
    struct symbol *s = symbol_only(&in->m->symbols, text);
    struct line line;
    if (!s) return;
    if (!is_line(in, text, s, &line)) {
        search(in, text, s, d, size, from);
        return;
    }
    int64_t steps = size < SYMBOL_LIMIT ? (size - line.b) / line.a : -1;
    if (is_itself(line))
        settle(in, s, size, from);
    else if (steps >= s->least && steps <= s->most && line.a * steps + line.b == size)
        settle(in, s, steps, from);
    else
        diag_fail(&in->usage, USAGE,
                  "%s gives dimension %d as %" PRId64 ", the model makes it %s; expected %s", from,
                  d, size, line_text(in->m->arena, s, line), sizes_text(in, text, s));
}

// ---- options ---------------------------------------------------------------------------------

static void apply_option(struct inputs *in, const struct input *i, const char *flag, int rank,
                         const int64_t *dims) {
    const char *from = arena_printf(in->m->arena, "%s %s", flag, i->name);
    size_t own = json_array_size(json_object_get(i->meta, "sizes"));
    if ((size_t)rank != own) {
        diag_fail(&in->usage, USAGE, "%s has %d dimensions, the model's input has %zu", from, rank,
                  own);
        return;
    }
    for (int d = 0; d < rank; d++)
        if (expression(i->meta, (size_t)d)) solve(in, i, d, dims[d], from);
}

// Afterwards every size that is known must be what the option says.
static npu_status check_option(struct inputs *in, const struct input *i, const char *flag, int rank,
                               const int64_t *dims) {
    struct tensor_meta t;
    NPU_TRY_NOTE(schema_meta(i->meta, &in->m->symbols, "its tensor_meta", &t), "input '%s'",
                 i->name);
    for (int d = 0; d < rank && rank == t.rank; d++)
        if (t.sizes[d] >= 0 && t.sizes[d] != dims[d])
            diag_fail(&in->usage, USAGE,
                      "%s %s gives dimension %d as %" PRId64 ", the model %s %" PRId64, flag,
                      i->name, d, dims[d],
                      expression(i->meta, (size_t)d) ? "and the other options make it"
                                                     : "fixes it to",
                      t.sizes[d]);
    return NULL;
}

// "INPUT:AXIS", a dimension of an input. False when the name is no such thing.
static bool apply_axis(struct inputs *in, const char *name, int64_t size) {
    const char *colon = strrchr(name, ':'), *from = arena_printf(in->m->arena, "--dim %s", name);
    uint64_t axis;
    for (int k = 0; colon && k < in->count; k++) {
        const struct input *i = &in->list[k];
        size_t length = strlen(i->name);
        size_t rank = json_array_size(json_object_get(i->meta, "sizes"));
        if (length != (size_t)(colon - name) || memcmp(i->name, name, length) != 0) continue;
        if (!text_parse_u64(colon + 1, &axis) || axis >= rank)
            diag_fail(&in->usage, USAGE, "%s: input '%s' has dimensions 0 to %zu", from, i->name,
                      rank ? rank - 1 : 0);
        else if (!expression(i->meta, (size_t)axis))
            diag_fail(&in->usage, USAGE, "%s: the export fixed that dimension", from);
        else
            solve(in, i, (int)axis, size, from);
        return true;
    }
    return false;
}

static void apply_dims(struct inputs *in) {
    const struct import_options *o = in->m->options;
    const struct map *table = &in->m->symbols.table;
    for (int k = 0; k < o->ndim; k++) {
        struct symbol *s = map_get(table, o->dims[k].name);
        if (s) {
            settle(in, s, o->dims[k].size, "--dim");
            continue;
        }
        if (apply_axis(in, o->dims[k].name, o->dims[k].size)) continue;
        const char **names = ARENA_ARRAY(in->m->arena, const char *, table->len + 1);
        const char *all = "";
        for (size_t i = 0; i < table->len; i++) {
            names[i] = table->entries[i].key;
            all = arena_printf(in->m->arena, "%s%s%s", all, i ? ", " : "", names[i]);
        }
        diag_fail(&in->usage, USAGE,
                  "--dim %s names no open size of the model, which has %s; "
                  "the export does not keep the names of Dim(), a dimension of an input is "
                  "INPUT:AXIS",
                  o->dims[k].name, *all ? all : "none");
    }
}

static void take_options(struct inputs *in) {
    const struct import_options *o = in->m->options;
    for (int k = 0; k < o->nshape; k++) {
        struct input *i = NULL;
        for (int j = 0; j < in->count; j++)
            if (!strcmp(in->list[j].name, o->shapes[k].name)) i = &in->list[j];
        if (!i)
            diag_fail(&in->usage, USAGE, "--shape %s names no input of the model",
                      o->shapes[k].name);
        else if (i->shape)
            diag_fail(&in->usage, USAGE, "--shape %s stands twice", i->name);
        else
            i->shape = &o->shapes[k];
    }
    for (int k = 0; k < o->nconst; k++) {
        struct input *i = NULL;
        for (int j = 0; j < in->count; j++)
            if (!strcmp(in->list[j].name, o->consts[k].name)) i = &in->list[j];
        if (!i)
            diag_fail(&in->usage, USAGE, "--const %s names no input of the model",
                      o->consts[k].name);
        else if (i->bound || i->shape)
            diag_fail(&in->usage, USAGE, "input '%s' has more than one --shape or --const",
                      i->name);
        else
            i->bound = &o->consts[k];
    }
}

// ---- values ----------------------------------------------------------------------------------

// "2,N": the sizes with the open ones as placeholders.
static const char *example(struct arena *a, const struct tensor_meta *t) {
    const char *text = "";
    for (int d = 0; d < t->rank; d++)
        text = t->sizes[d] >= 0 ? arena_printf(a, "%s%s%" PRId64, text, d ? "," : "", t->sizes[d])
                                : arena_printf(a, "%s%sN", text, d ? "," : "");
    return text;
}

static void report_open(struct inputs *in, const struct input *i, const struct tensor_meta *t) {
    struct arena *a = in->m->arena;
    for (int d = 0; d < t->rank; d++) {
        const char *text = expression(i->meta, (size_t)d);
        struct symbol *s;
        struct line line = {1, 0};
        if (t->sizes[d] >= 0) continue;
        s = symbol_only(&in->m->symbols, text);
        bool derived = s && (!is_line(in, text, s, &line) || !is_itself(line));
        const char *most = s && s->most < SYMBOL_LIMIT
                               ? arena_printf(a, "%" PRId64 " to %" PRId64, s->least, s->most)
                               : arena_printf(a, "%" PRId64 " or more", s ? s->least : 0);
        const char *what = !s         ? "several open sizes in one"
                           : !derived ? arena_printf(a, "'%s', %s", s->name, most)
                                      : arena_printf(a, "%s, from '%s', %s",
                                                     sizes_text(in, text, s), s->name, most);
        diag_fail(&in->open, BAD_INPUT,
                  "dimension %d of input '%s' is open (%s): fix it with --shape %s=%s or --dim "
                  "%s=N%s",
                  d, i->name, what, i->name, example(a, t), s ? s->name : "NAME",
                  s && !derived ? arena_printf(a, ", which is --dim %s:%d=N", i->name, d) : "");
    }
}

static npu_status check_elems(const char *name, int rank, const int64_t *dims) {
    size_t elems;
    if (!tensor_count(dims, rank, 1 << 20, &elems))
        return npu_fail(UNSUPPORTED, "input '%s' is too large", name);
    return NULL;
}

static npu_status bind_constant(struct inputs *in, const struct input *i,
                                const struct tensor_meta *meta, struct graph_value **out) {
    struct importer *m = in->m;
    const struct tensor_data *t = &i->bound->value;
    enum isa_dtype dtype = build_dtype(meta->dtype);
    if (t->dtype != meta->dtype && t->dtype != dtype)
        return npu_fail(USAGE, "--const %s is %s, the model's input is %s", i->name,
                        isa_dtype_name(t->dtype), isa_dtype_name(meta->dtype));
    const void *data = t->data;
    int64_t elems = 1;
    for (int d = 0; d < t->rank; d++)
        elems *= t->dims[d];
    if (t->dtype != dtype) {
        void *converted = arena_alloc(m->arena, (size_t)elems * 8 + 1);
        num_convert(dtype, converted, t->dtype, t->data, (size_t)elems);
        data = converted;
    }
    if (!elems) data = arena_alloc(m->arena, 1);
    *out = graph_add_const(m->g, i->name, dtype, t->rank, t->dims, data);
    return NULL;
}

static npu_status import_input(struct inputs *in, const struct input *i) {
    struct importer *m = in->m;
    struct tensor_meta t;
    struct graph_value *v;
    NPU_TRY_NOTE(schema_meta(i->meta, &m->symbols, "its tensor_meta", &t), "input '%s'", i->name);
    if (!t.known) {
        report_open(in, i, &t);
        return NULL;
    }
    NPU_TRY(check_elems(i->name, t.rank, t.sizes));
    if (i->bound) {
        NPU_TRY(bind_constant(in, i, &t, &v));
    } else {
        v = graph_add_value(m->g, i->name, build_dtype(t.dtype), t.rank, t.sizes);
        graph_add_input(m->g, v);
    }
    v->file_dtype = t.dtype;
    struct pt2_name *name = ARENA_NEW(m->arena, struct pt2_name);
    name->tensor = tensor_new(m->arena, v);
    name->tensor->file = t.dtype;
    if (map_put(&in->s->names, i->name, name))
        return npu_fail(BAD_INPUT, "input '%s' stands twice", i->name);
    return NULL;
}

// Tensors among the user's inputs; numbers, strings and None were compiled into the graph.
static npu_status list_inputs(struct inputs *in) {
    json_t *specs;
    NPU_TRY(schema_need(in->m->schema.signature, "input_specs", JSON_ARRAY, "signature", &specs));
    in->list = ARENA_ARRAY(in->m->arena, struct input, json_array_size(specs) + 1);
    for (size_t k = 0; k < json_array_size(specs); k++) {
        const json_t *user = json_object_get(json_array_get(specs, k), "user_input");
        const json_t *arg = json_object_get(user, "arg");
        if (json_object_get(arg, "as_sym_int") || json_object_get(arg, "as_sym_float") ||
            json_object_get(arg, "as_sym_bool"))
            return npu_fail(UNSUPPORTED,
                            "input %zu of the user is a number that the export left "
                            "open; expected tensors",
                            k);
        if (!json_object_get(arg, "as_tensor")) continue;
        struct input *i = &in->list[in->count++];
        const char *name = schema_name(arg);
        if (!name || !*name) return npu_fail(BAD_INPUT, "input_specs[%zu] has no name", k);
        i->name = arena_strdup(in->m->arena, name);
        i->meta = json_object_get(in->s->tensor_values, name);
        if (!json_is_object(i->meta))
            return npu_fail(BAD_INPUT, "input '%s' is not in tensor_values", name);
    }
    return NULL;
}

static npu_status walk(struct inputs *in) {
    NPU_TRY(list_inputs(in));
    read_ranges(in->m);
    for (int k = 0; k < in->count; k++)
        find_symbols(in->m, in->list[k].meta);
    apply_dims(in);
    take_options(in);
    for (int pass = 0; pass < 2; pass++) // what one input settles may leave one symbol of another
        for (int k = 0; k < in->count; k++) {
            const struct input *i = &in->list[k];
            if (i->shape && (pass == 0 || !in->usage.count))
                apply_option(in, i, "--shape", i->shape->rank, i->shape->dims);
            if (i->bound && (pass == 0 || !in->usage.count))
                apply_option(in, i, "--const", i->bound->value.rank, i->bound->value.dims);
        }
    for (int k = 0; k < in->count; k++) {
        const struct input *i = &in->list[k];
        if (i->shape) NPU_TRY(check_option(in, i, "--shape", i->shape->rank, i->shape->dims));
        if (i->bound)
            NPU_TRY(check_option(in, i, "--const", i->bound->value.rank, i->bound->value.dims));
    }
    NPU_TRY(diag_finish(&in->usage));
    for (int k = 0; k < in->count; k++)
        NPU_TRY(import_input(in, &in->list[k]));
    return diag_finish(&in->open);
}

npu_status pt2_inputs(struct importer *m, struct scope *s) {
    struct inputs in = {.m = m, .s = s};
    npu_status failed = walk(&in);
    // When something else failed first, what was gathered is not lost.
    failed = npu_status_join(failed, diag_finish(&in.usage));
    return npu_status_join(failed, diag_finish(&in.open));
}
