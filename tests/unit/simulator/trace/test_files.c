// SPDX-License-Identifier: Apache-2.0
//
// Tables and waveforms of a made-up run, read back.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/file.h"
#include "simulator/trace/counters.h"
#include "simulator/trace/vcd_out.h"
#include "tests/unit/simulator/trace/made_up.h"

// Each of the texts is in the file, which is removed then.
static void expect_file(const char *path, const char *const *want, size_t n) {
    struct span s;
    struct str t = {0};
    cr_assert_null(file_map(path, &s));
    str_append(&t, s.data, s.size);
    for (size_t i = 0; i < n; i++)
        cr_expect(strstr(str_text(&t), want[i]), "'%s' in\n%s", want[i], str_text(&t));
    str_free(&t);
    file_unmap(s);
    remove(path);
}

Test(files, csv_has_a_row_per_instruction) {
    struct fixture f;
    fixture_init(&f);
    const char *path = temporary("t.csv");
    cr_assert_null(trace_write(&f.run, &f.log, path));
    struct span s;
    cr_assert_null(file_map(path, &s));
    int lines = 0;
    for (size_t i = 0; i < s.size; i++)
        lines += s.data[i] == '\n';
    cr_expect_eq(lines, 1 + 5);
    struct str t = {0};
    str_append(&t, s.data, s.size);
    cr_expect(
        strstr(str_text(&t),
               "1,mxu,mm,0,embed,\"/m/MatMul,1\",0,0,100,400,400,400,100,wait_dma,dma0,0,0,0,0\n"),
        "%s", str_text(&t));
    cr_expect(strstr(str_text(&t), "\"block \"\"0\"\", attention\""));
    str_free(&t);
    file_unmap(s);
    remove(path);
    trace_log_free(&f.log);
}

Test(files, layers_are_a_table) {
    struct fixture f;
    fixture_init(&f);
    const char *path = temporary("t.layers.csv");
    cr_assert_null(trace_write(&f.run, &f.log, path));
    const char *const want[] = {
        "tag,layer,op,kernel,node,start,end,cycles,",
        ("\n0,embed,matmul,mm_fused,\"/m/MatMul,1\",100,400,400,0.400,4915200,0,300,0,0,3,0,0,0,"
         "0.750000,mxu\n"),
        "\n10,\"block \"\"0\"\", attention\",",
    };
    expect_file(path, want, sizeof want / sizeof *want);
    trace_log_free(&f.log);
}

static bool formulas(void *ctx, uint32_t tag, struct trace_name *out) {
    (void)ctx;
    static const char *const name[] = {"=1+1", "+a", "-b", "@c\"d", "\t=e"};
    *out = (struct trace_name){.layer = (int)tag, .name = name[tag / 10], .node = "a=b"};
    return tag / 10 < 5;
}

Test(files, names_are_no_formulas) {
    struct fixture f;
    fixture_init(&f);
    f.run.lookup = formulas;
    for (uint32_t i = 0; i < 5; i++)
        f.tag[i] = (struct trace_tag){.tag = i * 10, .last = i + 1, .instructions = 1};
    const char *path = temporary("f.layers.csv");
    cr_assert_null(trace_write(&f.run, &f.log, path));
    const char *const want[] = {"\n0,\"'=1+1\",,,a=b,", "\n10,\"'+a\",", "\n20,\"'-b\",",
                                "\n30,\"'@c\"\"d\",", "\n40,\"'\t=e\","};
    expect_file(path, want, sizeof want / sizeof *want);
    trace_log_free(&f.log);
}

Test(files, waveforms_begin_with_a_dump_and_end_with_the_run) {
    struct fixture f;
    fixture_init(&f);
    f.run.target = "a $end b";
    const char *path = temporary("t.vcd");
    cr_assert_null(trace_write(&f.run, &f.log, path));
    // mxu: busy is variable 10 of the file ('+'), after the ten of dma0.
    const char *const want[] = {
        "target a _end b, 1000 MHz",
        ("$timescale 1 ps $end\n$scope module npu $end\n$scope module dma0 $end\n"
         "$var wire 1 ! busy $end\n"),
        "$var wire 1 + busy $end\n$var wire 5 , state [4:0] $end\n",
        "$scope module dram $end\n$var real 64 5 read $end\n",
        "$scope module semaphores $end\n$var wire 16 7 s7 [15:0] $end\n",
        "#0\n$dumpvars\n0!\nb1110 \"\n",
        "\n#96000\n",
        "\n#100000\n",
        "\n1+\nb0 ,\n",
        "\n#1000000\n",
    };
    expect_file(path, want, sizeof want / sizeof *want);
    trace_log_free(&f.log);
}

Test(files, of_changes_at_one_cycle_the_last_counts) {
    struct vcd v = {0};
    vcd_scope(&v, "a");
    const size_t bit = vcd_bits(&v, "bit", 1), word = vcd_bits(&v, "word", 8),
                 text = vcd_text(&v, "text"), real = vcd_real(&v, "real");
    vcd_set(&v, 5, bit, 1);
    vcd_set(&v, 5, bit, 0);
    vcd_set(&v, 7, bit, 0); // no change
    vcd_set(&v, 7, word, 5);
    vcd_set_text(&v, 8, text, "AB");
    vcd_set_text(&v, 9, text, "");
    vcd_set_real(&v, 8, real, 0.5);
    vcd_set_unknown(&v, 9, word);
    vcd_set(&v, 11, bit, 1); // after the end
    const char *path = temporary("c.vcd");
    struct trace_out *o;
    cr_assert_null(trace_out_open(path, &o));
    vcd_write(&v, o, "", 2000, 10);
    cr_assert_null(trace_out_close(o));
    vcd_deinit(&v);
    const char *const want[] = {
        "$var wire 16 # text [15:0] $end\n",
        ("#0\n$dumpvars\nx!\nbx \"\nbx #\nr0 $\n$end\n#2500\n0!\n#3500\nb101 \"\n#4000\n"
         "b100000101000010 #\nr0.5 $\n#4500\nbx \"\nb0 #\n#5000\n"),
    };
    expect_file(path, want, sizeof want / sizeof *want);
}

Test(files, counters_add_up) {
    struct fixture f;
    fixture_init(&f);
    struct trace_counter *c;
    size_t n;
    cr_assert_null(trace_counters(&f.run, &f.log, &c, &n));
    cr_assert_eq(n, 2 * 2 + 2); // queue and under way of dma0 and mxu; read, write
    double bytes = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < c[i].n; k++) {
            if (k) cr_expect(c[i].point[k].cycle > c[i].point[k - 1].cycle);
            cr_expect(c[i].point[k].value >= 0);
            const uint64_t until = k + 1 < c[i].n ? c[i].point[k + 1].cycle : f.run.cycles;
            if (c[i].kind == TRACE_COUNTER_READ)
                bytes += c[i].point[k].value * (double)(until - c[i].point[k].cycle);
        }
    cr_expect_float_eq(bytes, 2 * 6400, 1e-3);
    // The MXU's second product starts at once, the third one too; the first waits from 0 to 100.
    cr_expect_eq(c[2].kind, TRACE_COUNTER_QUEUE);
    cr_expect_eq(c[2].engine, ISA_ENGINE_MXU);
    cr_expect_eq(c[2].n, 2);
    cr_expect_float_eq(c[2].point[0].value, 1, 0);
    cr_expect_eq(c[2].point[1].cycle, 100);
    trace_counters_free(c, n);
    trace_log_free(&f.log);
}

// What is written lives from the writer's start to its last reader's read; written again before
// anybody read it, it is still the same.
Test(files, the_scratchpad_holds_what_will_be_read) {
    struct fixture f;
    fixture_init(&f);
    const struct trace_touch touch[] = {
        {.seq = 0, .lo = 0, .hi = 1024, .write = true},          // dma0, 0 .. 96
        {.seq = 1, .lo = 0, .hi = 512},                          // mxu, read at 400
        {.seq = 1, .lo = 8192, .hi = 8192 + 256, .write = true}, // from 100
        {.seq = 2, .lo = 512, .hi = 1024},                       // mxu, read at 600
        {.seq = 3, .lo = 8192, .hi = 8192 + 256},                // mxu, read at 900
        {.seq = 4, .lo = 0, .hi = 256, .write = true},           // dma0, 900 .. 1000, never read
    };
    for (size_t i = 0; i < sizeof touch / sizeof *touch; i++)
        trace_log_touch(&f.log, &touch[i]);
    struct trace_counter *c;
    size_t n;
    cr_assert_null(trace_counters(&f.run, &f.log, &c, &n));
    cr_assert_eq(c[n - 1].kind, TRACE_COUNTER_SPM);
    // 16 MiB: lines of 256 bytes.
    const struct trace_point want[] = {{0, 1024},  {100, 1280}, {400, 768},
                                       {600, 256}, {900, 256},  {1000, 0}};
    size_t at = 0;
    for (size_t i = 0; i < c[n - 1].n; i++) {
        while (at < 6 && want[at].cycle < c[n - 1].point[i].cycle)
            at++;
        cr_assert(at < 6 && want[at].cycle == c[n - 1].point[i].cycle, "cycle %d",
                  (int)c[n - 1].point[i].cycle);
        cr_expect_float_eq(c[n - 1].point[i].value, want[at].value, 0, "cycle %d: %g",
                           (int)want[at].cycle, c[n - 1].point[i].value);
    }
    cr_expect_eq(c[n - 1].n, 5); // at 900 one begins as another ends
    trace_counters_free(c, n);
    trace_log_free(&f.log);
}
