// SPDX-License-Identifier: Apache-2.0
//
// Expressions of sizes, and the places of nodes.
#include "toolchain/frontend/pt2/symbols.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "toolchain/frontend/pt2/place.h"

static struct arena *arena;
static struct symbols symbols;
static struct symbol known = {"s7", 12, 0, 64, NULL}, open_one = {"s27", -1, 0, 64, NULL},
                     other = {"s3", -1, 0, 64, NULL};

static void setup(void) {
    arena = arena_new();
    map_init(&symbols.table, arena);
    map_put(&symbols.table, "s7", &known);
    map_put(&symbols.table, "s27", &open_one);
    map_put(&symbols.table, "s3", &other);
}

static void teardown(void) {
    arena_free(arena);
}

static void gives(const char *text, int64_t expected) {
    int64_t v = -77;
    cr_expect_eq(symbol_eval(&symbols, text, &v), SYMBOL_KNOWN, "%s", text);
    cr_expect_eq(v, expected, "%s is %lld", text, (long long)v);
}

static void result(const char *text, enum symbol_result expected) {
    int64_t v;
    cr_expect_eq(symbol_eval(&symbols, text, &v), expected, "%s", text);
}

Test(symbols, calls, .init = setup, .fini = teardown) {
    gives("Symbol('s7', positive=True, integer=True)", 12);
    gives("Mul(Integer(2), Symbol('s7', positive=True, integer=True))", 24);
    gives("Add(Integer(-1), Mul(Integer(3), Symbol('s7')), Integer(5))", 40);
    gives("FloorDiv(Add(Symbol('s7'), Integer(1)), Integer(2))", 6);
    gives("Max(Integer(1), Min(Integer(8), Symbol('s7')))", 8);
    gives("Mod(Integer(-5), Integer(3))", 1);
    gives("Pow(Symbol('s7'), Integer(2))", 144);
}

Test(symbols, infix, .init = setup, .fini = teardown) {
    gives("s7", 12);
    gives("2*s7 + 1", 25);
    gives("(s7 - 1)//2", 5);
    gives("s7**2 % 10", 4);
    gives("-7//2", -4);
}

Test(symbols, open_and_strange, .init = setup, .fini = teardown) {
    result("2*s27", SYMBOL_OPEN);
    result("FloorDiv(Integer(8), Symbol('s27'))", SYMBOL_OPEN);
    result("s99", SYMBOL_STRANGE);
    result("Sin(s7)", SYMBOL_STRANGE);
    result("s7 s7", SYMBOL_STRANGE);
    result("Integer(1", SYMBOL_STRANGE);
    result("Symbol('s7", SYMBOL_STRANGE);
    result("", SYMBOL_STRANGE);
    result("1//0", SYMBOL_STRANGE);
    result("Pow(Integer(9), Integer(60))", SYMBOL_STRANGE);
    result("99999999999999999999", SYMBOL_STRANGE);
}

Test(symbols, depth_is_bounded, .init = setup, .fini = teardown) {
    char *deep = arena_alloc(arena, 300000);
    memset(deep, '(', 200000);
    result(deep, SYMBOL_STRANGE);
    memset(deep, '-', 200000);
    result(deep, SYMBOL_STRANGE);
}

Test(symbols, only_open_one, .init = setup, .fini = teardown) {
    cr_expect_eq(symbol_only(&symbols, "2*s27 + s7"), &open_one);
    cr_expect_null(symbol_only(&symbols, "s27*s3"));
    cr_expect_null(symbol_only(&symbols, "s7"));
}

static void place(const char *stack, const char *trace, const char *expected) {
    json_t *metadata = json_pack("{s:s, s:s}", "nn_module_stack", stack, "stack_trace", trace);
    cr_assert(metadata);
    const char *got = place_of(arena, metadata);
    cr_expect(got && !strcmp(got, expected), "%s, expected %s", got ? got : "NULL", expected);
    json_decref(metadata);
}

Test(place, module_and_own_line, .init = setup, .fini = teardown) {
    place("L__self__,,m.Net;L__self__e,layers.7.mlp.Wi,torch.nn.Linear",
          "File \"/home/me/x/modeling.py\", line 312, in forward\n    y = self.Wi(x)\n"
          "  File \"/usr/lib/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n",
          "layers.7.mlp.Wi, modeling.py:312");
    place("L__self__,,m.Net", "File \"C:\\work\\net.py\", line 5, in f", "net.py:5");
    place("", "File \"<eval_with_key>.3\", line 4, in f\n  File \"a.py\", line 9, in f", "a.py:9");
    place("_empty_nn_module_stack_from_metadata_hook,x,y", "File \"torch/fx/a.py\", line 24, in f",
          "a.py:24");
    json_t *none = json_pack("{s:s}", "stack_trace", "File \"unterminated");
    cr_expect_null(place_of(arena, none));
    json_decref(none);
}
