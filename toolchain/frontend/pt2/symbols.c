// SPDX-License-Identifier: Apache-2.0
//
// Expressions of sizes, by recursive descent. Calls (Add, Mul, FloorDiv, ..) are how torch writes
// them; infix is what older versions wrote:
//
//   sum     = product (('+' | '-') product)*
//   product = power (('*' | '//' | '%') power)*
//   power   = ['-'] primary ['**' power]
//   primary = number | symbol | name '(' arguments ')' | '(' sum ')'

#include "toolchain/frontend/pt2/symbols.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_MAX = 64, ARGS_MAX = 64 };

struct parser {
    const struct symbols *s;
    const char *at;
    int depth;
    bool open, strange;
    const struct symbol *seen; // the first open symbol
    bool several;
};

static int64_t strange(struct parser *p) {
    p->strange = true;
    return 0;
}

static int64_t bounded(struct parser *p, int64_t v) {
    return v > SYMBOL_LIMIT || v < -SYMBOL_LIMIT ? strange(p) : v;
}

static void blanks(struct parser *p) {
    while (*p->at == ' ')
        p->at++;
}

static bool take(struct parser *p, const char *text) {
    blanks(p);
    size_t n = strlen(text);
    if (strncmp(p->at, text, n) != 0) return false;
    p->at += n;
    return true;
}

static int64_t multiply(struct parser *p, int64_t a, int64_t b) {
    if (a && (b > SYMBOL_LIMIT / (a < 0 ? -a : a) || b < -SYMBOL_LIMIT / (a < 0 ? -a : a)))
        return strange(p);
    return a * b;
}

// Towards minus infinity, as Python.
static int64_t floor_div(struct parser *p, int64_t a, int64_t b) {
    if (!b) return p->open ? 0 : strange(p);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t raise(struct parser *p, int64_t base, int64_t exponent) {
    int64_t v = 1;
    if (exponent < 0 || exponent > 62) return p->open ? 0 : strange(p);
    for (; exponent > 0; exponent--)
        v = multiply(p, v, base);
    return v;
}

static int64_t sum(struct parser *p);

static int64_t symbol_value(struct parser *p, const char *name, size_t length) {
    const struct symbol *s = map_get_n(&p->s->table, name, length);
    if (!s) return strange(p);
    if (s->size >= 0) return s->size;
    p->open = true;
    p->several |= p->seen && p->seen != s;
    if (!p->seen) p->seen = s;
    return 0;
}

static int64_t quoted_symbol(struct parser *p) {
    if (!take(p, "'")) return strange(p);
    size_t length = strcspn(p->at, "'");
    int64_t v = symbol_value(p, p->at, length);
    p->at += length + (p->at[length] == '\'');
    p->at += strcspn(p->at, ")"); // assumptions: positive=True, ..
    return take(p, ")") ? v : strange(p);
}

static int64_t apply(struct parser *p, const char *name, size_t length, const int64_t *v,
                     int count) {
    static const struct {
        const char *name;
        enum { FIRST, SUM, PRODUCT, POWER, DIVIDE, MODULO, LEAST, MOST } what;
        int args; // 0: one or more
    } known[] = {{"Integer", FIRST, 1},      {"Add", SUM, 0},
                 {"Mul", PRODUCT, 0},        {"Pow", POWER, 2},
                 {"PowByNatural", POWER, 2}, {"FloorDiv", DIVIDE, 2},
                 {"CleanDiv", DIVIDE, 2},    {"Mod", MODULO, 2},
                 {"PythonMod", MODULO, 2},   {"Min", LEAST, 0},
                 {"Max", MOST, 0},           {"Identity", FIRST, 1}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (strlen(known[k].name) != length || strncmp(known[k].name, name, length) != 0) continue;
        if (count < 1 || (known[k].args && known[k].args != count)) return strange(p);
        int64_t acc = v[0];
        if (known[k].what == POWER) return raise(p, v[0], v[1]);
        if (known[k].what == DIVIDE) return floor_div(p, v[0], v[1]);
        if (known[k].what == MODULO) return v[0] - multiply(p, v[1], floor_div(p, v[0], v[1]));
        for (int i = 1; i < count; i++) {
            if (known[k].what == SUM) acc = bounded(p, acc + v[i]);
            if (known[k].what == PRODUCT) acc = multiply(p, acc, v[i]);
            if (known[k].what == LEAST && v[i] < acc) acc = v[i];
            if (known[k].what == MOST && v[i] > acc) acc = v[i];
        }
        return acc;
    }
    return strange(p);
}

static int64_t primary(struct parser *p) {
    blanks(p);
    if (isdigit((unsigned char)*p->at)) {
        int64_t v = 0;
        for (; isdigit((unsigned char)*p->at); p->at++)
            v = bounded(p, v * 10 + (*p->at - '0'));
        return v;
    }
    if (take(p, "(")) {
        int64_t v = sum(p);
        return take(p, ")") ? v : strange(p);
    }
    const char *name = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_')
        p->at++;
    size_t length = (size_t)(p->at - name);
    if (!length) return strange(p);
    if (!take(p, "(")) return symbol_value(p, name, length);
    if (length == 6 && !strncmp(name, "Symbol", 6)) return quoted_symbol(p);
    int64_t args[ARGS_MAX];
    int count = 0;
    do {
        if (count == ARGS_MAX) return strange(p);
        args[count++] = sum(p);
    } while (!p->strange && take(p, ","));
    return take(p, ")") ? apply(p, name, length, args, count) : strange(p);
}

static int64_t power(struct parser *p) {
    if (take(p, "-")) return -power(p);
    int64_t v = primary(p);
    return take(p, "**") ? raise(p, v, power(p)) : v;
}

static int64_t product(struct parser *p) {
    int64_t v = power(p);
    while (!p->strange) {
        if (take(p, "//")) {
            v = floor_div(p, v, power(p));
        } else if (take(p, "*")) {
            v = multiply(p, v, power(p));
        } else if (take(p, "%")) {
            int64_t b = power(p);
            v -= multiply(p, b, floor_div(p, v, b));
        } else {
            break;
        }
    }
    return v;
}

static int64_t sum(struct parser *p) {
    if (++p->depth > DEPTH_MAX) return strange(p);
    int64_t v = product(p);
    while (!p->strange) {
        if (take(p, "+"))
            v = bounded(p, v + product(p));
        else if (take(p, "-"))
            v = bounded(p, v - product(p));
        else
            break;
    }
    p->depth--;
    return v;
}

static int64_t run(struct parser *p) {
    int64_t v = sum(p);
    blanks(p);
    p->strange |= *p->at != 0;
    return v;
}

enum symbol_result symbol_eval(const struct symbols *s, const char *text, int64_t *out) {
    struct parser p = {.s = s, .at = text};
    *out = run(&p);
    return p.strange ? SYMBOL_STRANGE : p.open ? SYMBOL_OPEN : SYMBOL_KNOWN;
}

struct symbol *symbol_only(const struct symbols *s, const char *text) {
    struct parser p = {.s = s, .at = text};
    run(&p);
    return p.strange || p.several || !p.seen ? NULL : map_get(&s->table, p.seen->name);
}
