// SPDX-License-Identifier: Apache-2.0
// Hardware descriptions: presets, strictness, --set, round trip.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/hw_yaml.h"

static npu_status parse(const char *text, struct hw *hw) {
    return hw_parse(text, strlen(text), "my.yaml", hw);
}

// Expects BAD_INPUT whose message holds `part`.
static void refused(const char *text, const char *part) {
    struct hw hw;
    npu_status st = parse(text, &hw);
    cr_assert(npu_status_code(st) == NPU_BAD_INPUT, "accepted: %s", text);
    cr_expect(strstr(npu_status_message(st), part) != NULL, "%s\n  lacks: %s",
              npu_status_message(st), part);
    npu_status_free(st);
}

Test(hw_yaml, server_is_the_defaults) {
    struct hw a, b;
    hw_defaults(&a);
    cr_assert(hw_load("server", &b) == NULL);
    cr_expect(memcmp(&a, &b, sizeof a) == 0);
}

Test(hw_yaml, nothing_is_the_defaults) {
    struct hw a, b;
    hw_defaults(&a);
    cr_assert(hw_parse(NULL, 0, "an empty file", &b) == NULL);
    cr_expect(memcmp(&a, &b, sizeof a) == 0);
    cr_assert(parse("# only a comment\n", &b) == NULL);
    cr_expect(memcmp(&a, &b, sizeof a) == 0);
}

Test(hw_yaml, presets_have_the_documented_numbers) {
    struct hw hw;
    cr_assert(hw_load("tiny", &hw) == NULL);
    cr_expect(hw.mxu_rows == 8 && hw.clock_npu_mhz == 500 && hw_psum_bytes(&hw) == 8192);
    cr_expect(hw_dram_bytes_per_s(&hw) > 4.799e9 && hw_dram_bytes_per_s(&hw) < 4.801e9);
    cr_assert(hw_load("edge", &hw) == NULL);
    cr_expect(hw_psum_bytes(&hw) == 128 * 1024 && hw_dram_bytes_per_kcycle(&hw) == 24000);
    cr_assert(hw_load("mid", &hw) == NULL);
    cr_expect(hw_psum_bytes(&hw) == 512 * 1024 && hw_dram_bytes_per_kcycle(&hw) == 51200);
    cr_assert(hw_load("server", &hw) == NULL);
    cr_expect(hw_psum_bytes(&hw) == 2 * 1024 * 1024 && hw_dram_bytes_per_kcycle(&hw) == 256000);
    cr_expect(hw_peak_macs_per_s(&hw, 2) > 16.3e12 && hw_peak_macs_per_s(&hw, 2) < 16.5e12);
    cr_assert(hw_load("like-scalesim-os-16", &hw) == NULL);
    cr_expect(hw.mxu_cols == 16 && hw.mxu_dataflow == HW_OS && hw.mxu_overlap == 0 &&
              hw.mxu_pipeline == 0 && hw.dram_standard == HW_IDEAL);
}

Test(hw_yaml, every_preset_loads_and_round_trips) {
    for (int i = 0; i < hw_npreset; i++) {
        struct hw a, b;
        cr_assert(hw_load(hw_presets[i].name, &a) == NULL, "%s", hw_presets[i].name);
        struct str text = {0};
        hw_print_yaml(&a, &text);
        cr_assert(hw_parse(text.data, text.len, "again", &b) == NULL, "%s", text.data);
        cr_expect(memcmp(&a, &b, sizeof a) == 0, "%s", hw_presets[i].name);
        cr_expect(hw_hash(&a, HW_PROGRAM) == hw_hash(&b, HW_PROGRAM));
        str_clear(&text);
        cr_expect(hw_diff(&a, &b, HW_SET_ALL, &text) == 0 && text.len == 0);
        str_free(&text);
    }
}

Test(hw_yaml, random_values_round_trip) {
    uint64_t x = 88172645463325252u;
    for (int n = 0; n < 500; n++) {
        struct hw a, b;
        for (int i = 0; i < hw_nparam; i++) {
            const struct hw_param_desc *p = &hw_params[i];
            int64_t v;
            do {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                v = p->lo + (int64_t)(x % (uint64_t)(p->hi - p->lo + 1));
            } while (!hw_in_range(p, v));
            hw_set(&a, p, v);
        }
        struct str text = {0};
        hw_print_yaml(&a, &text);
        cr_assert(hw_parse(text.data, text.len, "x", &b) == NULL);
        cr_assert(memcmp(&a, &b, sizeof a) == 0);
        str_free(&text);
    }
}

Test(hw_yaml, units_are_exact) {
    struct hw hw;
    cr_assert(parse("clock: {npu_mhz: 1.2 GHz}\nspm: {bytes: 1.5 MiB}\n"
                    "dram: {latency_ps: 0.5 ns, bytes: 64KiB}\n",
                    &hw) == NULL);
    cr_expect(hw.clock_npu_mhz == 1200 && hw.spm_bytes == 1536 * 1024 &&
              hw.dram_latency_ps == 500 && hw.dram_bytes == 65536);
}

Test(hw_yaml, empty_and_base) {
    struct hw hw, tiny;
    cr_assert(parse("", &hw) == NULL);
    cr_assert(parse("# nothing\n", &hw) == NULL);
    cr_assert(parse("base: tiny\nmxu: {rows: 9}\n", &hw) == NULL);
    cr_assert(hw_load("tiny", &tiny) == NULL);
    cr_expect(hw.mxu_rows == 9 && hw.mxu_cols == tiny.mxu_cols && hw.spm_bytes == tiny.spm_bytes);
}

Test(hw_yaml, faults_name_file_line_and_remedy) {
    refused("mxu:\n  rows: 64\n  clos: 64\n", "my.yaml:3: there is no parameter 'mxu.clos'");
    refused("mxu:\n  clos: 64\n", "did you mean 'mxu.cols'?");
    refused("mux: {rows: 1}\n", "my.yaml:1: there is no group 'mux'; there are clock mxu");
    refused("mxu:\n  rows: 64\n  rows: 32\n", "my.yaml:3: mxu.rows is already set in line 2");
    refused("mxu: {rows: 1}\nvec: {lanes: 8}\nmxu: {rows: 2}\n", "my.yaml:3: mxu.rows is already");
    refused("spm: {bytes: 16}\n", "spm.bytes: '16' lacks its unit; accepted: B, KiB, MiB, GiB");
    refused("clock: {npu_mhz: 1000}\n", "lacks its unit");
    refused("spm: {bytes: 16 MB}\n", "unit 'MB' in '16 MB' does not fit");
    refused("mxu: {rows: 16 MiB}\n", "takes a number alone");
    refused("mxu: {rows: 1.5}\n", "'1.5' is not a whole number");
    refused("mxu: {rows: 010}\n", "no leading zero");
    refused("mxu: {rows: -1}\n", "not a whole number");
    refused("mxu: {rows: 0x10}\n", "does not fit");
    refused("mxu: {rows: 0}\n", "'0' is out of range: 1 to 1024");
    refused("mxu: {rows: 99999999999999999999999}\n", "not a whole number");
    refused("spm: {bytes: 9000000000 GiB}\n", "out of range");
    refused("mxu: {rows: }\n", "not a whole number");
    refused("mxu: {dataflow: xs}\n", "'xs' is not one of ws|os|is|dot");
    refused("mxu: {overlap: yes}\n", "neither true nor false");
    refused("mxu: [1, 2]\n", "found a list where a mapping of parameters belongs");
    refused("- 1\n", "found a list");
    refused("mxu: {rows: {a: 1}}\n", "found a mapping where a value belongs");
    refused("mxu: {rows: &a 1}\n", "my.yaml:1");
    refused("mxu: {rows: !!int 1}\n", "my.yaml:1");
    refused("a: &x {rows: 1}\nmxu: *x\n", "my.yaml:1");
    refused("mxu: {rows: 1}\n---\nmxu: {rows: 1}\n", "found a second document");
    refused("mxu: {rows: 1}\nbase: tiny\n", "base stands first");
    refused("base: tinny\n", "base 'tinny' is not a preset");
    refused("mxu: {rows: 1\n", "not YAML");
    refused("mxu:\n\trows: 1\n", "not YAML");
}

Test(hw_yaml, truncated_and_mutated_text_is_survived) {
    struct str text = {0};
    struct hw hw;
    hw_defaults(&hw);
    hw_print_yaml(&hw, &text);
    for (size_t n = 0; n < text.len; n += 7)
        npu_status_free(hw_parse(text.data, n, "cut", &hw));
    uint32_t x = 5;
    for (int i = 0; i < 3000; i++) {
        x = x * 1664525u + 1013904223u;
        char *at = &text.data[(x >> 8) % text.len];
        const char old = *at;
        *at = (char)(x >> 3);
        npu_status_free(hw_parse(text.data, text.len, "mutated", &hw));
        *at = old;
    }
    str_free(&text);
}

Test(hw_yaml, set) {
    struct hw hw;
    hw_defaults(&hw);
    cr_assert(hw_set_text(&hw, "mxu.load_rows=4", HW_SET_TIMING) == NULL);
    cr_assert(hw_set_text(&hw, "clock.npu_mhz=1.5 GHz", HW_SET_TIMING) == NULL);
    cr_assert(hw_set_text(&hw, "dram.standard=ideal", HW_SET_TIMING) == NULL);
    cr_expect(hw.mxu_load_rows == 4 && hw.clock_npu_mhz == 1500 && hw.dram_standard == HW_IDEAL);
    static const char *const bad[][2] = {
        {"spm.bytes=1 MiB", "recompile"},
        {"mxu.load_rows", "GROUP.NAME=VALUE"},
        {"mxu.loadrows=1", "did you mean 'mxu.load_rows'?"},
        {"load_rows=1", "did you mean 'mxu.load_rows'?"},
        {"mxu.load_rows=x", "not a whole number"},
        {"mxu.load_rows=", "not a whole number"},
        {"=1", "no parameter"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        npu_status st = hw_set_text(&hw, bad[i][0], HW_SET_TIMING);
        cr_assert(npu_status_code(st) == NPU_USAGE, "%s", bad[i][0]);
        cr_expect(strstr(npu_status_message(st), bad[i][1]) != NULL, "%s", npu_status_message(st));
        npu_status_free(st);
    }
    cr_assert(hw_set_text(&hw, "spm.bytes=1 MiB", HW_SET_ALL) == NULL);
}

Test(hw_yaml, names_and_files) {
    struct hw hw;
    npu_status st = hw_load("serverr", &hw);
    cr_assert(npu_status_code(st) == NPU_BAD_INPUT);
    cr_expect(strstr(npu_status_message(st), "did you mean 'server'?") != NULL);
    npu_status_free(st);
    st = hw_load("./does-not-exist.yaml", &hw);
    cr_expect(npu_status_code(st) == NPU_IO);
    npu_status_free(st);
    FILE *f = fopen("hw_test.yaml", "w");
    cr_assert(f != NULL);
    fputs("base: edge\nvec: {lanes: 32}\n", f);
    fclose(f);
    cr_assert(hw_load("hw_test.yaml", &hw) == NULL);
    cr_expect(hw.vec_lanes == 32 && hw.mxu_rows == 32);
    remove("hw_test.yaml");
}

Test(hw_yaml, printers) {
    struct hw a, b;
    hw_defaults(&a);
    struct str s = {0};
    hw_print_derived(&a, &s);
    cr_expect(strstr(s.data, "32.77 TFLOPS") != NULL, "%s", s.data);
    cr_expect(strstr(s.data, "256 GB/s") != NULL);
    str_clear(&s);
    hw_print_parameters(&s);
    cr_expect(strstr(s.data, "mxu.dataflow") != NULL && strstr(s.data, "ws|os|is|dot") != NULL);
    str_clear(&s);
    hw_print_presets(&s);
    cr_expect(strstr(s.data, "tiny                    8 x 8 array") != NULL, "%s", s.data);
    str_clear(&s);
    b = a;
    b.spm_bytes = 1 << 20;
    b.vec_lanes = 1;
    cr_expect(hw_diff(&a, &b, HW_SET_PROGRAM, &s) == 1);
    cr_expect(strcmp(s.data, "spm.bytes: 16 MiB, not 1 MiB\n") == 0, "%s", s.data);
    cr_expect(hw_diff(&a, &b, HW_SET_ALL, &s) == 2);
    str_free(&s);
}
