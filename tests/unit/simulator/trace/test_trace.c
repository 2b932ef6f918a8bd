// SPDX-License-Identifier: Apache-2.0
//
// Views of a made-up run: layers and bounds by hand, files read back.
#include "tests/unit/simulator/trace/made_up.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/base/alloc.h"
#include "runtime/base/file.h"

Test(trace, the_log_is_sorted_by_start) {
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 1; i < f.log.count; i++)
        cr_expect(f.log.event[i - 1].start <= f.log.event[i].start);
    cr_expect_eq(f.log.event[0].seq, 0);
    trace_log_free(&f.log);
}

Test(trace, layers_add_up_to_the_run) {
    struct fixture f;
    fixture_init(&f);
    struct trace_layer *l;
    size_t n;
    cr_assert_null(trace_layers(&f.run, &l, &n));
    cr_assert_eq(n, 3);
    cr_expect_str_eq(l[0].name.name, "embed");
    cr_expect_eq(l[0].cycles, 400);
    cr_expect_eq(l[1].cycles, 500); // 400..900, two tags
    cr_expect_eq(l[1].total.macs, 300 * 16384);
    cr_expect_eq(l[1].total.instructions, 3);
    cr_expect_eq(l[1].total.start, 400);
    cr_expect_eq(l[1].total.end, 900);
    cr_expect_eq(l[2].cycles, 100);
    cr_expect_float_eq(l[0].utilization, 0.75, 1e-9);
    cr_expect_str_eq(l[0].bound, "mxu");
    cr_expect_str_eq(l[2].bound, "dram"); // 25,600 bytes at 256 a cycle are all of its 100 cycles
    base_free(l);
    f.run.lookup = NULL; // then every tag is a layer
    cr_assert_null(trace_layers(&f.run, &l, &n));
    cr_expect_eq(n, 4);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += l[i].cycles;
    cr_expect_eq(sum, 1000);
    base_free(l);
    trace_log_free(&f.log);
}

Test(trace, bounds_by_hand) {
    struct fixture f;
    fixture_init(&f);
    f.hw.dram_refresh = 0;
    struct trace_work w[3] = {
        {.macs = 16384 * 100, .dtype = ISA_F16, .weight_bytes = 25600, .io_bytes = 2560},
        {.macs = 16384 * 50, .dtype = ISA_F32, .elems = 512 * 1000},
        {.macs = 0, .elems = 512 * 10, .weight_bytes = 256 * 4000, .dtype = ISA_F16},
    };
    f.run.work = w;
    f.run.nwork = 3;
    struct trace_bounds b;
    cr_assert_null(trace_bounds(&f.run, &b));
    cr_expect_float_eq(b.mac_cycles, 100 + 200, 1e-6); // f32 at a quarter of the rate
    cr_expect_float_eq(b.vector_cycles, 1010, 1e-6);
    cr_expect_float_eq(b.dram_cycles, 100 + 10 + 4000, 1e-6);
    cr_expect_float_eq(b.ideal_cycles, 4110, 1e-6);
    // The last layer's constants arrive at 4110; its own work is hidden behind that.
    cr_expect_float_eq(b.mapped_cycles, 4110, 1e-6);
    // With a shape the array's fit counts: 64 of 128 columns in use.
    w[0] = (struct trace_work){.macs = UINT64_C(1000) * 64 * 128,
                               .m = 1000,
                               .n = 64,
                               .k = 128,
                               .batch = 1,
                               .dtype = ISA_F16};
    f.run.nwork = 1;
    cr_assert_null(trace_bounds(&f.run, &b));
    cr_expect_float_eq(b.mac_cycles, 500, 1e-6);
    cr_expect_float_eq(b.mapped_cycles, 1000, 1e-6);
    f.hw.dram_refresh = 1;
    w[0] = (struct trace_work){.weight_bytes = 256 * 1000, .dtype = ISA_F16};
    cr_assert_null(trace_bounds(&f.run, &b));
    cr_expect_float_eq(b.mapped_cycles, 1000 / (1 - 260.0 / 3900), 1e-3);
    trace_log_free(&f.log);
}

// The work list is the whole program's; a part of a run is held against nothing.
Test(trace, a_part_of_a_run_has_no_bounds_and_nothing_behind_its_end) {
    const struct trace_work w = {.macs = 16384 * 100, .dtype = ISA_F16, .weight_bytes = 25600};
    for (int stopped = 0; stopped < 2; stopped++) {
        struct fixture f;
        fixture_init(&f);
        f.run.work = &w;
        f.run.nwork = 1;
        f.run.cycles = 850; // tag 11 is at work from 600 to 900, tag 20 would begin at 900
        if (stopped)
            f.run.stopped = "cycle 850, --break cycle:850";
        else
            f.run.fault = "a fault";
        struct trace_bounds b;
        cr_assert_null(trace_bounds(&f.run, &b));
        cr_expect_eq(b.mac_cycles + b.dram_cycles + b.vector_cycles, 0);
        cr_expect_eq(b.ideal_cycles + b.mapped_cycles, 0);
        struct str s = {0};
        cr_assert_null(trace_text(&f.run, &s));
        cr_expect(!strstr(str_text(&s), "bounds"), "%s", str_text(&s));
        str_free(&s);
        struct trace_layer *l;
        size_t n;
        uint64_t sum = 0;
        cr_assert_null(trace_layers(&f.run, &l, &n));
        for (size_t i = 0; i < n; i++) {
            cr_expect_leq(trace_tag_start(&l[i].total), trace_tag_end(&l[i].total));
            cr_expect_leq(trace_tag_end(&l[i].total), 850);
            cr_expect_leq(l[i].total.last, 850);
            sum += l[i].cycles;
        }
        cr_expect_eq(sum, 850);
        base_free(l);
        trace_log_free(&f.log);
    }
}

Test(trace, constants_larger_than_the_window_wait_for_room) {
    struct fixture f;
    fixture_init(&f);
    f.hw.dram_refresh = 0;
    f.hw.spm_bytes = 256 * 4000; // window: 3000 cycles of memory
    struct trace_work w[3] = {
        {.macs = 16384 * 10000, .dtype = ISA_F16, .weight_bytes = 256 * 2000},
        {.macs = 16384 * 100, .dtype = ISA_F16, .weight_bytes = 256 * 2000},
        {.macs = 16384 * 100, .dtype = ISA_F16, .weight_bytes = 256 * 500},
    };
    f.run.work = w;
    f.run.nwork = 3;
    struct trace_bounds b;
    cr_assert_null(trace_bounds(&f.run, &b));
    // Layer 0 ends at 10000; only then the second one's 2000 cycles of bytes may come; the third's
    // 500 overlap.
    cr_expect_float_eq(b.mapped_cycles, 12000 + 500, 200.0);
    cr_expect(b.mapped_cycles >= 12000);
    trace_log_free(&f.log);
}

Test(trace, text_names_engines_layers_and_losses) {
    struct fixture f;
    fixture_init(&f);
    struct str s = {0};
    cr_assert_null(trace_text(&f.run, &s));
    const char *want[] = {"1,000 cycles",  "1.00 us",       "mxu",
                          "embed",         "mm_fused",      "/m/MatMul,1",
                          "wait-dma",      "(dma0 20.0 %)", "32.0 B/cycle of 256.0",
                          "what keeps mxu"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_expect(strstr(str_text(&s), want[i]) != NULL, "'%s' in\n%s", want[i], str_text(&s));
    str_free(&s);
    trace_log_free(&f.log);
}

Test(trace, report_has_the_keys_and_the_sums) {
    struct fixture f;
    fixture_init(&f);
    const double times[] = {3, 1, 2, 4};
    f.run.runs = (struct trace_runs){.n = 4, .seed = 7, .noise = "refresh", .time_us = times};
    const int64_t shape[] = {1, 2};
    const struct trace_output out = {
        .name = "logits", .dtype = "f16", .rank = 2, .shape = shape, .crc32 = 0xab};
    f.run.output = &out;
    f.run.noutput = 1;
    const char *path = temporary("report.json");
    cr_assert_null(trace_report_write(&f.run, path));
    json_error_t error;
    json_t *r = json_load_file(path, 0, &error);
    cr_assert(r, "%s", error.text);
    const char *keys[] = {"schema",    "program", "target",  "hardware_hash",
                          "clock_mhz", "cycles",  "time_us", "instructions",
                          "engines",   "layers",  "dram",    "spm",
                          "bounds",    "runs",    "host",    "outputs"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cr_expect(json_object_get(r, keys[i]), "%s", keys[i]);
    size_t i;
    json_t *e;
    json_array_foreach(json_object_get(r, "engines"), i, e) {
        json_int_t sum = json_integer_value(json_object_get(e, "busy_cycles"));
        const char *key;
        json_t *v;
        json_object_foreach(json_object_get(e, "stalls"), key, v) sum += json_integer_value(v);
        cr_expect_eq(sum, 1000);
    }
    json_t *runs = json_object_get(r, "runs");
    cr_expect_float_eq(json_real_value(json_object_get(runs, "mean_us")), 2.5, 1e-9);
    cr_expect_float_eq(json_real_value(json_object_get(runs, "p50_us")), 2.5, 1e-9);
    cr_expect_float_eq(json_real_value(json_object_get(runs, "max_us")), 4, 1e-9);
    cr_expect_float_eq(json_real_value(json_object_get(runs, "std_us")), 1.2909944487, 1e-6);
    cr_expect_str_eq(json_string_value(json_object_get(r, "program")), "a \"quoted\" name.npu");
    json_decref(r);
    remove(path);
    trace_log_free(&f.log);
}

static json_t *load_trace(const char *path) {
    struct str s = {0};
    gzFile g = gzopen(path, "rb"); // reads plain files as well
    cr_assert(g);
    char buffer[4096];
    int n;
    while ((n = gzread(g, buffer, sizeof buffer)) > 0)
        str_append(&s, buffer, (size_t)n);
    gzclose(g);
    json_error_t error;
    json_t *t = json_loads(str_text(&s), 0, &error);
    cr_assert(t, "%s at line %d", error.text, error.line);
    str_free(&s);
    return t;
}

Test(trace, chrome_events_are_well_formed_plain_and_packed) {
    struct fixture f;
    fixture_init(&f);
    const char *names[] = {"t.json", "t.json.gz"};
    json_t *first = NULL;
    for (int k = 0; k < 2; k++) {
        const char *path = temporary(names[k]);
        cr_assert_null(trace_write(&f.run, &f.log, path));
        json_t *t = load_trace(path);
        int slices = 0, starts = 0, finishes = 0, counters = 0, begins = 0, ends = 0;
        struct {
            json_int_t tid;
            double end;
        } last[32] = {0};
        size_t threads = 0;
        size_t i;
        json_t *e;
        json_array_foreach(json_object_get(t, "traceEvents"), i, e) {
            const char *ph = json_string_value(json_object_get(e, "ph"));
            cr_assert(ph && json_object_get(e, "pid"));
            if (*ph != 'M') cr_assert(json_is_real(json_object_get(e, "ts")));
            const double ts = json_number_value(json_object_get(e, "ts"));
            if (*ph == 'X') {
                // Slices of one thread must not overlap.
                const json_int_t tid = json_integer_value(json_object_get(e, "tid"));
                size_t at = 0;
                while (at < threads && last[at].tid != tid)
                    at++;
                if (at == threads) last[threads++].tid = tid;
                cr_assert(threads < sizeof last / sizeof *last);
                cr_expect(ts >= last[at].end - 1e-9);
                last[at].end = ts + json_number_value(json_object_get(e, "dur"));
                slices++;
            }
            starts += *ph == 's';
            finishes += *ph == 'f';
            counters += *ph == 'C';
            begins += *ph == 'b';
            ends += *ph == 'e';
        }
        cr_expect_eq(slices, 5 + 3 + 3); // instructions, layers, states
        cr_expect_eq(starts, 2);
        cr_expect_eq(finishes, starts);
        cr_expect_eq(begins, 1);
        cr_expect_eq(ends, begins);
        cr_expect(counters > 10);
        if (k == 0)
            first = t;
        else {
            cr_expect(json_equal(first, t));
            json_decref(first);
            json_decref(t);
        }
        remove(path);
    }
    trace_log_free(&f.log);
}

Test(trace, only_known_endings_are_written) {
    struct fixture f;
    fixture_init(&f);
    cr_expect(trace_path_known("a.json") && trace_path_known("a.json.gz") &&
              trace_path_known("x/a.csv"));
    cr_expect_not(trace_path_known("a.xyz") || trace_path_known(".json") ||
                  trace_path_known("json"));
    npu_status st = trace_write(&f.run, &f.log, "a.xyz");
    cr_expect_eq(npu_status_code(st), NPU_UNSUPPORTED);
    npu_status_free(st);
    st = trace_write(&f.run, &f.log, "/nonexistent/dir/a.json.gz");
    cr_expect_eq(npu_status_code(st), NPU_IO);
    npu_status_free(st);
    trace_log_free(&f.log);
}

Test(trace, every_class_has_its_own_key) {
    for (int a = 0; a < TRACE_CLASSES; a++)
        for (int b = 0; b < a; b++)
            cr_expect(strcmp(trace_class_key((enum trace_class)a),
                             trace_class_key((enum trace_class)b)) != 0);
}

// Every allocation fails once: out of memory, and no file then.
static void expect_all_or_nothing(struct fixture *f, const char *path,
                                  npu_status (*write)(struct fixture *, const char *)) {
    for (size_t n = 1;; n++) {
        (void)remove(path);
        base_alloc_fail_at(n, 0);
        npu_status st = write(f, path);
        const bool reached = base_alloc_count() >= n;
        base_alloc_fail_at(0, 0);
        const bool there = access(path, F_OK) == 0;
        if (!reached) {
            cr_expect(n > 4);
            cr_expect_null(st);
            cr_expect(there);
            break;
        }
        cr_expect_eq(npu_status_code(st), NPU_NO_MEMORY, "%s, allocation %zu", path, n);
        cr_expect(!there, "%s, allocation %zu", path, n);
        npu_status_free(st);
    }
    (void)remove(path);
}

static npu_status write_trace(struct fixture *f, const char *path) {
    return trace_write(&f->run, &f->log, path);
}

static npu_status write_report(struct fixture *f, const char *path) {
    return trace_report_write(&f->run, path);
}

Test(trace, out_of_memory_leaves_no_file) {
    struct fixture f;
    fixture_init(&f);
    expect_all_or_nothing(&f, temporary("oom.json"), write_trace);
    expect_all_or_nothing(&f, temporary("oom.vcd.gz"), write_trace);
    expect_all_or_nothing(&f, temporary("oom.layers.csv"), write_trace);
    expect_all_or_nothing(&f, temporary("oom.json.gz"), write_trace);
    expect_all_or_nothing(&f, temporary("oom.csv"), write_trace);
    expect_all_or_nothing(&f, temporary("oom.html"), write_trace);
    expect_all_or_nothing(&f, temporary("oom_report.json"), write_report);
    trace_log_free(&f.log);
}
