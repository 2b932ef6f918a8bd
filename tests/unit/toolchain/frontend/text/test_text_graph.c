// SPDX-License-Identifier: Apache-2.0
//
// Reading graph text: what graph_print() writes comes back the same.

#define _XOPEN_SOURCE 700 // mkdtemp

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "isa/numeric.h"
#include "runtime/base/str.h"
#include "tests/unit/toolchain/frontend/text/cases.h"

// The text parses, and prints as `expected`.
static void prints(const char *text, const char *expected) {
    struct arena *a = arena_new();
    struct graph *g = NULL;
    npu_status st = cases_parse(a, text, &g);
    struct str out = {0};
    npu_status_print(st, NULL, &out);
    cr_assert_null(st, "%s\n%s", text, str_text(&out));
    graph_print(g, &out);
    cr_expect_str_eq(str_text(&out), expected);
    str_free(&out);
    arena_free(a);
}

static void same(const char *text) {
    prints(text, text);
}

// ---- round trips

static char *corpus(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/fuzz/corpus/npt/%s", NPU_SOURCE_DIR, name);
    struct span bytes;
    cr_assert_null(file_map(path, &bytes));
    char *text = malloc(bytes.size + 1);
    memcpy(text, bytes.data, bytes.size);
    text[bytes.size] = 0;
    file_unmap(bytes);
    return text;
}

Test(text_graph, every_op_attribute_and_type_comes_back) {
    char *text = corpus("ops.npt");
    same(text);
    struct arena *a = arena_new();
    struct graph *g = NULL;
    cr_assert_null(cases_parse(a, text, &g));
    bool op[GRAPH_OPS] = {false}, attr[GRAPH_ATTRS] = {false}, dtype[32] = {false};
    for (const struct graph_node *n = g->first; n; n = n->next) {
        op[n->op] = true;
        for (int k = 0; k < n->nattr; k++)
            attr[n->attrs[k].key] = true;
    }
    for (int k = 0; k < g->nvalue; k++)
        if (g->values[k]->data) dtype[g->values[k]->dtype] = true;
    for (int k = 0; k < GRAPH_OPS; k++)
        cr_expect(op[k], "op %s is not in the file", graph_ops[k].text);
    for (int k = 0; k < GRAPH_ATTRS; k++)
        cr_expect(attr[k], "attribute %s is not in the file", graph_attrs[k].text);
    for (int k = 1; k < 32; k++)
        cr_expect(dtype[k] || !isa_dtype_name(k), "type %s is not in the file", isa_dtype_name(k));
    arena_free(a);
    free(text);
}

Test(text_graph, every_chain_operation_and_operand_comes_back) {
    static const char *const operands[] = {"acc", "in0", "in1", "in2", "tmp", "imm0", "imm3"};
    for (int op = 0; op < 64; op++) {
        if (!isa_vop_name(op) || op == ISA_VOP_APRED || op == ISA_VOP_NOP) continue;
        bool ints = !num_vop_has(op, false);
        for (int k = 0; k < 7; k++) {
            char text[640];
            struct str stage = {0};
            str_printf(&stage, "neg =tmp; %s", isa_vop_name(op));
            if (isa_vop_operands(op) > 0) str_printf(&stage, " %s", operands[k]);
            if (isa_vop_operands(op) > 1) str_printf(&stage, " %s", operands[(k + 3) % 7]);
            const char *type = ints ? "i32" : "f32", *all = str_text(&stage);
            (void)snprintf(text, sizeof text,
                           "graph \"g\"\nin %%x : %s[2,3]\nin %%y : %s[3]\nin %%z : %s[]\n"
                           "%%v : %s[2,3] = map %%x, %%y, %%z chain=(%s)%s%s node=\"v\"\nout %%v\n",
                           type, type, type, type, all, strstr(all, "imm0") ? " imm0=-7" : "",
                           !strstr(all, "imm3") ? ""
                           : ints               ? " imm3=2147483647"
                                                : " imm3=1e-08");
            str_free(&stage);
            same(text);
        }
    }
}

Test(text_graph, numbers_come_back_bit_by_bit) {
    static const char *const types[] = {"f32", "f16", "bf16", "f64"};
    uint64_t seed = 99;
    for (int round = 0; round < 400; round++) {
        struct arena *a = arena_new();
        struct graph *g = graph_new(a, "n"), *back = NULL;
        enum isa_dtype t = (enum isa_dtype)isa_dtype_parse(types[round % 4]);
        int64_t dims[] = {8};
        uint64_t *data = ARENA_ARRAY(a, uint64_t, 8);
        for (int k = 0; k < 8; k++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            data[k] = seed;
        }
        struct graph_value *c = graph_add_const(g, "c", t, 1, dims, data);
        graph_add_output(g, c);
        struct str out = {0};
        graph_print(g, &out);
        cr_assert_null(cases_parse(a, str_text(&out), &back), "%s", str_text(&out));
        const void *got = back->outputs[0]->data;
        size_t size = (size_t)isa_dtype_bits(t) / 8;
        for (size_t k = 0; k < 8; k++) {
            double value;
            memcpy(&value, (const uint8_t *)data + 8 * k, sizeof value);
            bool nan = t == ISA_F64 ? value != value
                                    : isnan((double)num_load_f32(t, data, (int64_t)k)) != 0;
            cr_expect(nan || !memcmp((const uint8_t *)got + k * size,
                                     (const uint8_t *)data + k * size, size),
                      "%s element %zu: %s", types[round % 4], k, str_text(&out));
        }
        str_free(&out);
        arena_free(a);
    }
}

Test(text_graph, hand_written_text_may_be_short) {
    prints("# a comment\n\n   graph   \"g\"   // another\r\nin %x : f32[ 2 , 3 ]\n"
           "const %c : f32[2,3] = { # the list\n  1, 2,\n  3, ... }\n"
           "%y = map %x, %c chain=( add in1 ;\n max imm0 ) imm0=0\nout %y",
           "graph \"g\"\nin %x : f32[2,3]\nconst %c : f32[2,3] = {1, 2, 3, 1, 2, 3}\n"
           "%y : f32[2,3] = map %x, %c chain=(add in1; max imm0) imm0=0 node=\"y\"\nout %y\n");
    prints("graph \"g\"\nconst %c : i4[5] = {1, -2, ...}\nout %c\n",
           "graph \"g\"\nconst %c : i4[5] = {1, -2, 1, -2, 1}\nout %c\n");
}

Test(text_graph, names_are_quoted_where_they_must) {
    same("graph \"\\x22\\x5c\\x0a\"\nin %\"a b\" : f32[]\nin %a/b:c-d.e_0 : f32[]\n"
         "in %\"%\" : f32[]\nout %\"%\"\n");
    same("graph \"\"\nin %a : f32[]\n%b : f32[] = map %a chain=(neg) node=\"x\\x09y\" "
         "from=[\"\", \"q\"]\nout %b\n");
}

Test(text_graph, integer_chains_have_integer_immediates) {
    same("graph \"g\"\nin %x : i64[2]\n%y : i64[2] = map %x chain=(add imm0; mul imm1) "
         "imm0=-2147483648 imm1=2147483647 node=\"y\"\nout %y\n");
    struct arena *a = arena_new();
    struct graph *g = NULL;
    cr_assert_null(cases_parse(a,
                               "graph \"g\"\nin %x : i64[1]\n%y = map %x chain=(add imm0) imm0=-3\n"
                               "%z = map %x dtype=f32 chain=(add imm0) imm0=-3\nout %y\nout %z\n",
                               &g));
    cr_expect_eq(g->first->chain.imm[0], (int64_t)(uint32_t)-3);
    cr_expect_eq(num_float((uint32_t)g->last->chain.imm[0]), -3.0f);
    arena_free(a);
}

// ---- random graphs

static uint64_t state;
static int draw(int n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int)((state >> 11) % (unsigned)n);
}

static void random_chain(struct graph_node *n) {
    int length = draw(ISA_STAGES + 1), special = 0, saved = 0;
    n->has_chain = true;
    for (int k = 0; k < length; k++) {
        struct isa_stage *st = &n->chain.st[k];
        int op;
        do
            op = 1 + draw(51);
        while (!isa_vop_name(op) || op == ISA_VOP_APRED || !num_vop_has(op, false) ||
               (isa_vop_is_sf(op) && special));
        special |= isa_vop_is_sf(op);
        st->op = op;
        int64_t *operand[] = {&st->a, &st->b};
        for (int i = 0; i < isa_vop_operands(op); i++) {
            int64_t src;
            do
                src = ISA_SRC_ACC + draw(9);
            while ((src == ISA_SRC_TMP && !saved) ||
                   (src > ISA_SRC_IN0 && src <= ISA_SRC_IN2 && n->chain_in[src - ISA_SRC_IN0] < 0));
            *operand[i] = src;
        }
        st->save = draw(4) == 0;
        saved |= st->save != 0;
    }
    for (int k = 0; k < ISA_IMMS; k++)
        n->chain.imm[k] = (int64_t)((uint32_t)draw(1 << 30) << 2);
}

static struct graph *random_graph(struct arena *a) {
    struct graph *g = graph_new(a, "random");
    struct graph_value *v[64];
    int n = 0;
    int64_t dims[] = {2, 1 + draw(4)};
    for (int k = 0; k < 3; k++) {
        v[n] = graph_add_value(g, k ? "in put" : NULL, draw(2) ? ISA_F32 : ISA_F16, 2, dims);
        v[n]->has_order = draw(2);
        v[n]->order[0] = 1;
        v[n]->file_dtype = draw(2) ? ISA_F64 : ISA_DTYPE_NONE;
        v[n]->index_limit = draw(3);
        graph_add_input(g, v[n++]);
    }
    float *data = ARENA_ARRAY(a, float, 2 * 4);
    for (int k = 0; k < 8; k++)
        data[k] = (float)draw(1 << 20) / 1000.0f;
    v[n++] = graph_add_const(g, "c", ISA_F32, 2, dims, data);
    for (int nodes = 1 + draw(20); nodes > 0; nodes--) {
        struct graph_value *in[] = {v[draw(n)], v[draw(n)], v[draw(n)]};
        bool map = draw(3) > 0;
        struct graph_node *node =
            graph_add_node(g, map ? GRAPH_MAP : GRAPH_REDUCE, draw(2) ? "some/node" : NULL,
                           map ? 1 + draw(3) : 1, in, NULL);
        if (!map) {
            graph_set_word(g, node, GRAPH_ATTR_MODE, draw(2) ? "sum" : "max");
            graph_set_ints(g, node, GRAPH_ATTR_AXES, 0, NULL);
            for (int extra = draw(3); extra > 0; extra--)
                (void)graph_add_chain_input(g, node, v[draw(n)]);
        }
        if (map || draw(2) || node->nin > 1) random_chain(node);
        if (draw(2)) graph_set_int(g, node, GRAPH_ATTR_DTYPE, draw(2) ? ISA_F32 : ISA_BF16);
        if (draw(2)) graph_add_origin(g, node, "origin \"1\"");
        if (draw(2)) graph_add_origin(g, node, "other");
        if (draw(3) == 0) node->kernel = "kernel.x";
        npu_status st = graph_infer(g, node, "y");
        cr_assert_null(st, "%s", npu_status_message(st));
        v[n++] = node->outputs[0];
    }
    for (int k = 0; k < n; k++)
        if (k == n - 1 || draw(4) == 0) graph_add_output(g, v[k]);
    return g;
}

Test(text_graph, random_graphs_come_back) {
    state = 4711;
    for (int round = 0; round < 500; round++) {
        struct arena *a = arena_new();
        struct str out = {0};
        struct graph *g = random_graph(a);
        cr_assert_null(graph_verify(g, "random"));
        graph_print(g, &out);
        same(str_text(&out));
        str_free(&out);
        arena_free(a);
    }
}

// ---- files

static char folder[64];

static void put(const char *name, const void *bytes, size_t size) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_null(file_write_atomic(path, (struct span){bytes, size}));
}

static npu_status parse_file(struct arena *a, const char *text, struct graph **g) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/g.npt", folder);
    return text_graph_parse(a, (struct span){(const uint8_t *)text, strlen(text)}, path, g);
}

static void file_refused(const char *constant, const char *message) {
    struct arena *a = arena_new();
    struct graph *g = NULL;
    char text[512];
    (void)snprintf(text, sizeof text, "graph \"g\"\nconst %%c : f32[2] = %s\nout %%c\n", constant);
    npu_status st = parse_file(a, text, &g);
    cr_assert_not_null(st, "%s", constant);
    cr_expect(strstr(npu_status_message(st), message), "expected \"%s\" in %s", message,
              npu_status_message(st));
    npu_status_free(st);
    arena_free(a);
}

static void make_folder(void) {
    (void)snprintf(folder, sizeof folder, "text_graph_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void) {
    static const char *const names[] = {"g.npt", "g.npt.bin", "w.bin"};
    char path[128];
    for (int k = 0; k < 3; k++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

TestSuite(text_files, .init = make_folder, .fini = remove_folder);

Test(text_files, saved_graphs_come_back) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "saved"), *back = NULL;
    static float many[300];
    for (int k = 0; k < 300; k++)
        many[k] = (float)k * 0.1f;
    int64_t dims[] = {100}, odd[] = {99};
    graph_add_output(g, graph_add_const(g, "a", ISA_F32, 1, dims, many));
    graph_add_output(g, graph_add_const(g, "b", ISA_I8, 1, odd, many + 100));
    graph_add_output(g, graph_add_const(g, "c", ISA_F32, 1, dims, many + 200)); // lies unaligned
    char path[128];
    (void)snprintf(path, sizeof path, "%s/g.npt", folder);
    cr_assert_null(graph_save(g, path));
    struct span text;
    cr_assert_null(file_map_in(a, path, &text));
    npu_status st = text_graph_parse(a, text, path, &back);
    cr_assert_null(st, "%s", npu_status_message(st));
    for (int k = 0; k < 3; k++)
        cr_expect_arr_eq(back->outputs[k]->data, g->outputs[k]->data,
                         (size_t)graph_value_bytes(g->outputs[k]));
    struct str out = {0};
    graph_print(back, &out);
    cr_expect_eq(out.len, text.size);
    cr_expect_arr_eq(str_text(&out), text.data, text.size);
    str_free(&out);
    arena_free(a);
}

// A large constant of a file in the text's folder is referred to; one of another file is copied.
Test(text_files, saved_graphs_refer_to_files_beside_them) {
    struct arena *a = arena_new();
    struct graph *g = graph_new(a, "saved"), *back = NULL;
    static uint8_t bytes[300];
    for (int k = 0; k < 300; k++)
        bytes[k] = (uint8_t)(k * 7);
    put("w.bin", bytes, sizeof bytes);
    int64_t dims[] = {100};
    struct graph_value *v[3];
    for (int k = 0; k < 3; k++) {
        v[k] = graph_add_const(g, "c", ISA_U8, 1, dims, bytes + 100 * k);
        v[k]->source_offset = 100 * k;
        graph_add_output(g, v[k]);
    }
    v[0]->source = arena_printf(a, "%s/w.bin", folder);
    v[1]->source = "elsewhere/w.bin";
    v[2]->source = arena_printf(a, "%s/../w.bin", folder);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/g.npt", folder);
    cr_assert_null(graph_save(g, path));
    struct span text;
    cr_assert_null(file_map_in(a, path, &text));
    npu_status st = text_graph_parse(a, text, path, &back);
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_expect_str_eq(back->outputs[0]->source, "w.bin");
    cr_expect_str_eq(back->outputs[1]->source, "g.npt.bin");
    cr_expect_str_eq(back->outputs[2]->source, "g.npt.bin");
    for (int k = 0; k < 3; k++)
        cr_expect_arr_eq(back->outputs[k]->data, bytes + 100 * k, 100);
    arena_free(a);
}

Test(text_files, faults_of_files) {
    put("w.bin", "abcdefghijkl", 12);
    file_refused(".incbin \"w.bin\", 4, 8, 0", "g.npt:2:44: \"w.bin\" has changed: its bytes have "
                                               "CRC-32 0x");
    file_refused(".incbin \"w.bin\", 5, 8, 0", "has 12 bytes, fewer than 8 from 5 on");
    file_refused(".incbin \"w.bin\", 9223372036854775807, 8, 0", "fewer than");
    file_refused(".incbin \"w.bin\", 0, 7, 0", "7 bytes, but the type takes 8");
    file_refused(".incbin \"../w.bin\", 0, 8, 0", "leaves the folder");
    file_refused(".incbin \"a/../../w.bin\", 0, 8, 0", "leaves the folder");
    file_refused(".incbin \"/etc/passwd\", 0, 8, 0", "leaves the folder");
    file_refused(".incbin \"..\", 0, 8, 0", "leaves the folder");
    file_refused(".incbin \"\", 0, 8, 0", "leaves the folder");
    file_refused(".incbin \"none.bin\", 0, 8, 0", "none.bin");
    file_refused(".incbin \"w.bin\", 0, 8", "expected ',', found the end of the line");
    file_refused("crc(0x12345678)", "printed without the data");
    file_refused("w.bin", "expected { elements } or .incbin");
}
