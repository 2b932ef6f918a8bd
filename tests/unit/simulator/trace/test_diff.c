// SPDX-License-Identifier: Apache-2.0
//
// Two runs compared: what is read and refused, which layers belong together, sums.
#include "simulator/trace/diff.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>
#include <zlib.h>

static struct span bytes(const char *text) {
    return (struct span){(const uint8_t *)text, strlen(text)};
}

// A layer of a report: name, nodes as JSON, op, cycles.
#define LAYER(name, nodes, op, cycles)                                                       \
    "{\"name\":\"" name "\",\"nodes\":" nodes ",\"op\":\"" op "\",\"kernel\":\"k\","         \
    "\"bound\":\"mxu\",\"cycles\":" #cycles ",\"macs\":7,\"mxu_cycles\":1,\"vec_cycles\":2," \
    "\"dma_cycles\":3,\"bytes\":{\"dram_read\":1024,\"dram_write\":0}}"

// A report of one engine that is busy for `busy` of `cycles`.
#define REPORT(clock, cycles, busy, idle, layers)                                   \
    "{\"schema\":1,\"program\":\"p\",\"target\":\"t\",\"clock_mhz\":" #clock        \
    ",\"cycles\":" #cycles ",\"engines\":[{\"name\":\"mxu\",\"busy_cycles\":" #busy \
    ",\"stalls\":{\"idle\":" #idle "}}],\"layers\":[" layers "]}"

static struct diff compare(struct arena *a, const char *first, const char *second) {
    struct diff d = {0};
    cr_assert_null(diff_parse(a, bytes(first), "a.json", &d.run[0]));
    cr_assert_null(diff_parse(a, bytes(second), "b.json", &d.run[1]));
    diff_align(a, &d);
    // Every layer is in one group, and the groups add up to the runs.
    for (int side = 0; side < 2; side++) {
        uint64_t cycles = 0;
        size_t layers = 0;
        for (size_t i = 0; i < d.ngroup; i++) {
            cycles += d.group[i].sum[side].cycles;
            layers += d.group[i].n[side];
        }
        cr_expect_eq(cycles, d.run[side].cycles);
        cr_expect_eq(layers, d.run[side].nlayer);
    }
    return d;
}

Test(diff, layers_that_were_fused_differently_are_one_group) {
    struct arena *a = arena_new();
    // A: conv, relu, pool. B: conv and relu in one, then pool; and one that A lacks.
    const struct diff d =
        compare(a,
                REPORT(1000, 100, 60, 40,
                       LAYER("conv", "[\"conv\"]", "conv2d",
                             50) "," LAYER("relu", "[\"relu\"]", "relu",
                                           30) "," LAYER("pool", "[\"pool\"]", "pool", 20)),
                REPORT(1000, 90, 70, 20,
                       LAYER("conv", "[\"conv\",\"relu\"]", "conv2d+relu",
                             60) "," LAYER("pool", "[\"pool\"]", "pool", 21) "," LAYER("new", "[]",
                                                                                       "copy", 9)));
    cr_assert_eq(d.ngroup, 3);
    const struct diff_group *g = &d.group[0];
    cr_expect_eq(g->match, DIFF_NAMED);
    cr_expect_eq(g->n[0], 2);
    cr_expect_eq(g->n[1], 1);
    cr_expect_eq(g->sum[0].cycles, 80);
    cr_expect_eq(g->sum[1].cycles, 60);
    cr_expect_eq(g->sum[0].dram_read, 2048);
    cr_expect_str_eq(g->sum[0].name, "conv"); // the longer one
    cr_expect_float_eq(diff_group_us(&d, g), -0.020, 1e-9);
    cr_expect_eq(d.group[1].match, DIFF_ALONE);
    cr_expect_eq(d.group[1].n[0], 0);
    cr_expect_eq(d.group[2].sum[1].cycles, 21);
    struct str s = {0};
    diff_text(&d, &s);
    const char *const want[] = {"B takes 0.010 us less than A (-10.0 %): 1.11 times as fast",
                                "conv (2 layers of A, 1 of B)",
                                "new (only in B)",
                                "busy               +10",
                                "idle               -20",
                                "sum                -10",
                                "           80           60          -20   -20.0"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_expect(strstr(str_text(&s), want[i]), "'%s' in\n%s", want[i], str_text(&s));
    str_free(&s);
    arena_free(a);
}

// Whatever stands in a report: nothing of it commands a terminal or breaks a line.
Test(diff, words_of_a_file_are_shown) {
    static const char odd[] =
        "{\"schema\":1,\"program\":\"p\\n\",\"target\":\"t\\u001b[1m\",\"clock_mhz\":1,"
        "\"cycles\":9,\"engines\":[{\"name\":\"e\\u001b[31m\",\"busy_cycles\":9,\"stalls\":{}}],"
        "\"layers\":[{\"name\":\"l\\n\\u0007\",\"nodes\":[\"n\\u001b\"],\"op\":\"o\\u001b\","
        "\"kernel\":\"k\\u001b\",\"bound\":\"b\\u009b\\u001b\",\"cycles\":9,\"macs\":0,"
        "\"mxu_cycles\":0,\"vec_cycles\":0,\"dma_cycles\":0,"
        "\"bytes\":{\"dram_read\":0,\"dram_write\":0}}]}";
    struct arena *a = arena_new();
    const struct diff d = compare(a, odd, REPORT(1, 8, 8, 0, LAYER("x", "[\"y\"]", "z", 8)));
    struct str s = {0};
    diff_text(&d, &s);
    const char *const want[] = {"p\\n, t\\x1b[1m, ", "   e\\x1b[31m", "l\\n\\x07", "b\\u009b\\x1b"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_expect(strstr(str_text(&s), want[i]), "'%s' in\n%s", want[i], str_text(&s));
    for (const char *c = str_text(&s); *c; c++)
        cr_expect(*c == '\n' || (unsigned char)*c >= ' ');
    str_free(&s);
    arena_free(a);
}

Test(diff, what_belongs_to_no_layer_is_called_as_in_the_cycle_report) {
    struct arena *a = arena_new();
    const char *text = REPORT(1000, 100, 60, 40, LAYER("", "[]", "", 100));
    const struct diff d = compare(a, text, REPORT(1000, 90, 60, 30, LAYER("", "[]", "", 90)));
    struct str s = {0};
    diff_text(&d, &s);
    cr_expect(strstr(str_text(&s), "  (no layer)\n"), "%s", str_text(&s));
    str_free(&s);
    arena_free(a);
}

Test(diff, without_common_names_the_order_counts) {
    struct arena *a = arena_new();
    const struct diff d =
        compare(a,
                REPORT(1000, 60, 60, 0,
                       LAYER("a", "[\"a0\"]", "conv2d", 10) "," LAYER("b", "[\"a1\"]", "relu",
                                                                      20) "," LAYER("c", "[\"a2\"]",
                                                                                    "pool", 30)),
                REPORT(1000, 70, 70, 0,
                       LAYER("u", "[\"b0\"]", "conv2d", 15) "," LAYER("v", "[\"b1\"]", "gelu",
                                                                      25) "," LAYER("w", "[\"b2\"]",
                                                                                    "pool", 30)));
    cr_assert_eq(d.ngroup, 4);
    size_t ordered = 0, alone = 0;
    for (size_t i = 0; i < d.ngroup; i++) {
        const struct diff_group *g = &d.group[i];
        ordered += g->match == DIFF_ORDERED;
        alone += g->match == DIFF_ALONE;
        if (g->match == DIFF_ORDERED) cr_expect_str_eq(g->sum[0].op, g->sum[1].op);
    }
    cr_expect_eq(ordered, 2);
    cr_expect_eq(alone, 2);
    arena_free(a);
}

Test(diff, other_clocks_are_compared_as_time) {
    struct arena *a = arena_new();
    const struct diff d = compare(a, REPORT(1000, 100, 100, 0, LAYER("l", "[]", "o", 100)),
                                  REPORT(2000, 100, 50, 50, LAYER("l", "[]", "o", 100)));
    cr_expect_float_eq(diff_group_us(&d, &d.group[0]), -0.05, 1e-9);
    struct str s = {0};
    diff_text(&d, &s);
    cr_expect(strstr(str_text(&s), "2.00 times as fast"));
    cr_expect(strstr(str_text(&s), "          100           50          -50   -50.0"), "%s",
              str_text(&s)); // ns
    str_free(&s);
    arena_free(a);
}

// A report of one engine that waits for its host, or of one that does not, and what follows.
#define HOSTED(cycles, busy, host, more)                                                      \
    "{\"schema\":1,\"program\":\"p\",\"target\":\"t\",\"clock_mhz\":1000,\"cycles\":" #cycles \
    ",\"engines\":[{\"name\":\"mxu\",\"busy_cycles\":" #busy ",\"stalls\":{\"host\":" #host   \
    "}}],\"layers\":[" LAYER("l", "[]", "o", cycles) "]" more "}"
#define EAGER HOSTED(1000, 200, 800, ",\"eager\":{\"host_model\":\"m\",\"latency_us\":1.25}")

// Cycles with waits for a host are not held against cycles without.
Test(diff, a_host_on_one_side_is_named) {
    static const struct {
        const char *a, *b, *says;
        bool mixed;
    } cases[] = {
        {EAGER, HOSTED(100, 100, 0, ",\"runs\":{\"quiet_us\":0.1}"),
         "A's time includes 0.800 us of waiting for its host, B's has no host in it (npusim "
         "--versus gives both one)\nwithout these waits B takes 0.100 us less than A (-50.0 %): "
         "2.00 times as fast\n",
         true},
        {HOSTED(100, 100, 0, ""), EAGER,
         "B's time includes 0.800 us of waiting for its host, A's has no host in it (npusim "
         "--versus gives both one)\nwithout these waits B takes 0.100 us more than A (+100.0 %): "
         "2.00 times as long\n",
         true},
        {EAGER, HOSTED(100, 100, 0, ",\"runs\":{\"quiet_us\":0.25}"),
         "latency as the host sees it: A 1.250 us, B 0.250 us\nB takes 1.000 us less than A "
         "(-80.0 %): 5.00 times as fast\n",
         true},
        {EAGER, EAGER, " us\nboth take the same time\n", false},
        {EAGER, HOSTED(500, 200, 300, ""),
         " us\nB takes 0.500 us less than A (-50.0 %): 2.00 times as fast\n", false},
        {HOSTED(100, 100, 0, ""), HOSTED(100, 100, 0, ",\"runs\":{\"quiet_us\":0.25}"),
         " us\nboth take the same time\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena *a = arena_new();
        const struct diff d = compare(a, cases[i].a, cases[i].b);
        struct str s = {0};
        diff_text(&d, &s);
        cr_expect_eq(diff_mixed(&d), cases[i].mixed, "case %zu", i);
        cr_expect(strstr(str_text(&s), cases[i].says), "case %zu: '%s' in\n%s", i, cases[i].says,
                  str_text(&s));
        str_free(&s);
        arena_free(a);
    }
    struct arena *a = arena_new();
    struct diff_run run;
    npu_status st =
        diff_parse(a, bytes(HOSTED(9, 9, 0, ",\"runs\":{\"quiet_us\":\"x\"}")), "x", &run);
    cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT);
    cr_expect(st && strstr(npu_status_message(st), "runs.quiet_us: expected a number from 0 on"));
    npu_status_free(st);
    arena_free(a);
}

Test(diff, the_json_can_be_read_and_adds_up) {
    struct arena *a = arena_new();
    const struct diff d =
        compare(a, REPORT(1000, 100, 60, 40, LAYER("x \\\"y\\\"", "[]", "o", 100)),
                REPORT(1000, 120, 90, 30, LAYER("x \\\"y\\\"", "[]", "o", 120)));
    struct str s = {0};
    diff_json(&d, &s);
    json_error_t error;
    json_t *o = json_loads(str_text(&s), JSON_REJECT_DUPLICATES, &error);
    cr_assert(o, "%s in %s", error.text, str_text(&s));
    json_t *layer = json_array_get(json_object_get(o, "layers"), 0);
    cr_expect_str_eq(json_string_value(
                         json_array_get(json_object_get(json_object_get(layer, "b"), "layers"), 0)),
                     "x \"y\"");
    cr_expect_str_eq(json_string_value(json_object_get(layer, "matched_by")), "name");
    json_t *classes = json_object_get(json_array_get(json_object_get(o, "engines"), 0), "classes");
    json_int_t sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach(classes, key, value) sum +=
        json_integer_value(json_object_get(value, "difference"));
    cr_expect_eq(sum, 20);
    json_decref(o);
    // A comparison is no run.
    struct diff_run run;
    npu_status st = diff_parse(a, (struct span){(const uint8_t *)str_text(&s), s.len}, "d", &run);
    cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT);
    npu_status_free(st);
    str_free(&s);
    arena_free(a);
}

#define TWICE "{\"name\":\"mxu\",\"busy_cycles\":100,\"stalls\":{}}"
#define GOOD LAYER("l", "[]", "o", 100)

Test(diff, damaged_and_foreign_files_are_refused_with_the_place) {
    static const struct {
        const char *text;
        enum npu_code code;
        const char *says;
    } cases[] = {
        {"", NPU_BAD_INPUT, "x.json: the file is empty; expected a report"},
        {" \n", NPU_BAD_INPUT, "x.json: the file is empty; expected a report"},
        {"{\"schema\":1,", NPU_BAD_INPUT, "line 1"},
        {"[]", NPU_BAD_INPUT, "a report or a trace of npusim"},
        {"{\"schema\":\"npuc-report/1\"}", NPU_BAD_INPUT, "neither a report of npusim"},
        {"{\"traceEvents\":[]}", NPU_BAD_INPUT, "neither a report of npusim"},
        {"{\"schema\":2,\"engines\":[]}", NPU_UNSUPPORTED, "schema 2"},
        {"{\"schema\":1,\"schema\":1,\"engines\":[]}", NPU_BAD_INPUT, "duplicate"},
        {REPORT(1000, 100, 60, 41, GOOD), NPU_BAD_INPUT, "mxu add up to 101, the run has 100"},
        {REPORT(1000, 101, 60, 41, GOOD), NPU_BAD_INPUT, "layers add up to 100, the run has 101"},
        {REPORT(0, 100, 60, 40, GOOD), NPU_BAD_INPUT, "clock_mhz is 0"},
        {REPORT(1000, 100, -1, 40, GOOD), NPU_BAD_INPUT, "engines[0].busy_cycles: expected"},
        {REPORT(1000, 100, 60, 40, LAYER("l", "[7]", "o", 100)), NPU_BAD_INPUT,
         "layers[0].nodes[0]: expected a text"},
        {REPORT(1000, 100, 60, 40, LAYER("l", "[]", "o", 1.5)), NPU_BAD_INPUT,
         "layers[0].cycles: expected a whole number"},
        {"{\"schema\":1,\"clock_mhz\":1,\"cycles\":1,\"engines\":[{\"name\":\"mxu\",\"busy_"
         "cycles\":1,"
         "\"stalls\":{\"lunch\":0}}],\"layers\":[]}",
         NPU_UNSUPPORTED, "engines[0].stalls: 'lunch' is no class"},
        {"{\"schema\":1,\"fault\":\"f\",\"clock_mhz\":1,\"cycles\":0,\"engines\":[],\"layers\":[]}",
         NPU_BAD_INPUT, "ended with a fault"},
        {"{\"schema\":1,\"stopped\":\"cycle 5, --break tag:3\",\"clock_mhz\":1,\"cycles\":0,"
         "\"engines\":[],\"layers\":[]}",
         NPU_BAD_INPUT, "the run was stopped (cycle 5, --break tag:3)"},
        {"{\"otherData\":{\"npusim_trace\":\"1\",\"stopped\":\"cycle 5, --break cycle:5\"},"
         "\"traceEvents\":[]}",
         NPU_BAD_INPUT, "the run was stopped (cycle 5, --break cycle:5)"},
        {REPORT(1000, 100, 60, 40, ""), NPU_BAD_INPUT, "layers add up to 0, the run has 100"},
        {"{\"schema\":1,\"clock_mhz\":1,\"cycles\":100,\"engines\":[],\"layers\":[" GOOD "]}",
         NPU_BAD_INPUT, "has no engines, the run has 100 cycles"},
        {"{\"schema\":1,\"clock_mhz\":1,\"cycles\":100,\"engines\":[" TWICE "," TWICE
         "],\"layers\":[" GOOD "]}",
         NPU_BAD_INPUT, "the engine mxu is there twice"},
        {"{\"otherData\":{\"npusim_trace\":\"9\"},\"traceEvents\":[]}", NPU_UNSUPPORTED,
         "version 9"},
        {"{\"otherData\":{\"npusim_trace\":\"1\",\"clock_mhz\":\"1\",\"cycles\":\"9\"},"
         "\"traceEvents\":[{\"cat\":\"state\",\"args\":{\"engine\":\"vec\",\"class\":\"busy\","
         "\"cycles\":10}}]}",
         NPU_BAD_INPUT, "vec has more cycles than the run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena *a = arena_new();
        struct diff_run run;
        npu_status st = diff_parse(a, bytes(cases[i].text), "x.json", &run);
        cr_expect_eq(npu_status_code(st), cases[i].code, "case %zu: %s", i,
                     st ? npu_status_message(st) : "read");
        cr_expect(st && strstr(npu_status_message(st), cases[i].says), "case %zu: '%s' in '%s'", i,
                  cases[i].says, st ? npu_status_message(st) : "read");
        npu_status_free(st);
        arena_free(a);
    }
}

Test(diff, packed_files_are_read_and_broken_ones_refused) {
    const char *text = REPORT(1000, 100, 60, 40, GOOD);
    uint8_t packed[4096];
    z_stream z = {0};
    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = packed;
    z.avail_out = sizeof packed;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t size = z.total_out;
    deflateEnd(&z);
    struct arena *a = arena_new();
    struct diff_run run;
    cr_assert_null(diff_parse(a, (struct span){packed, size}, "x.json.gz", &run));
    cr_expect_eq(run.layer[0].cycles, 100);
    for (size_t cut = 2; cut < size; cut += 7) {
        npu_status st = diff_parse(a, (struct span){packed, cut}, "x.json.gz", &run);
        cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT, "%zu of %zu bytes", cut, size);
        npu_status_free(st);
    }
    arena_free(a);
}

#define HEAD                                                                                    \
    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"npusim_trace\":\"1\",\"clock_mhz\":\"1000\"," \
    "\"cycles\":\"10\"},\"traceEvents\":["
#define STATE(class, cycles)                                        \
    "{\"ph\":\"X\",\"cat\":\"state\",\"args\":{\"cycles\":" #cycles \
    ",\"engine\":\"mxu\",\"class\":\"" class "\"}}"
#define WORK                                                                             \
    "{\"ph\":\"X\",\"cat\":\"layer\",\"name\":\"l\",\"args\":{\"cycles\":10,\"macs\":0," \
    "\"mxu_cycles\":0,\"vec_cycles\":0,\"dma_cycles\":0,\"dram_read\":0,\"dram_write\":0}}"

Test(diff, traces_are_read_line_by_line_or_as_a_whole) {
    static const struct {
        const char *text, *says; // NULL: read
    } cases[] = {
        {HEAD "\n" STATE("busy", 4) ",\n{\"ph\":\"C\"},\n" STATE("idle", 6) ",\n" WORK "\n]}\n",
         NULL},
        {HEAD STATE("busy", 4) "," STATE("idle", 6) "," WORK "]}", NULL},
        {HEAD " \n" STATE("busy", 4) ",\n" STATE("idle", 6) ",\n" WORK "\n]}\n", NULL},
        {HEAD "\n" STATE("busy", 4) ",\n" STATE("idle", 6) "\n]}\n", "layers add up to 0"},
        {HEAD "\n" WORK "\n]}\n", "has no engines"},
        {HEAD "\n" STATE("busy", 4) ",\n" STATE("idle", 6) "\n", "cut off"},
        {HEAD "\n" STATE("busy", 4) ",\n{\"cat\":\"state\",\n]}\n", "line 3"},
        {HEAD "\n" STATE("busy", 4) "\n]}\nmore", "behind its end"},
        {HEAD "\n" STATE("busy", 4) ",\n" WORK "\n]}\n", "mxu add up to 4, the run has 10"},
        {HEAD "\n" STATE("busy", 11) "\n]}\n", "traceEvents[0].args: damaged"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena *a = arena_new();
        struct diff_run run;
        npu_status st = diff_parse(a, bytes(cases[i].text), "x.json", &run);
        if (cases[i].says) {
            cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT, "case %zu", i);
            cr_expect(st && strstr(npu_status_message(st), cases[i].says), "case %zu: %s", i,
                      st ? npu_status_message(st) : "read");
        } else {
            cr_expect_null(st, "case %zu: %s", i, st ? npu_status_message(st) : "");
            cr_expect_eq(run.engine[0].cycles[TRACE_BUSY], 4);
            cr_expect_eq(run.engine[0].cycles[TRACE_IDLE], 6);
        }
        npu_status_free(st);
        arena_free(a);
    }
}
