// SPDX-License-Identifier: Apache-2.0
//
// Host model files: the built-in one, what may be left out, and damage of every kind.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/noise/host.h"
#include "simulator/noise/host_model.h"

// Every part of a small file; a case replaces one.
static const char *const parts[][2] = {
    {"FORMAT", "\"npu-host-model\""},
    {"VERSION", "1"},
    {"QUEUE", "8"},
    {"TIMER", "0.1"},
    {"PLACE", "{\"device\":\"d\",\"framework\":\"f\",\"host\":\"h\"}"},
    {"ADD", "{\"quantiles_us\":[1,2,9]}"},
    {"MORE", ""},
    {"VIEW", "{\"quantiles_us\":[0.5,1]}"},
    {"LEVEL", "1.5"},
    {"FACTOR", "[0.5,1,2]"},
    {"PARTS", "[{\"weight\":0.5,\"phi\":0.9}]"},
    {"SUBMIT", "[10,12]"},
    {"SHARE", "0.25"},
    {"RUNS", "[]"},
};
enum { NPARTS = sizeof parts / sizeof *parts };

static const char frame[] =
    "{\"format\":FORMAT,\"version\":VERSION,\"queue\":QUEUE,\"timer_us\":TIMER,"
    "\"provenance\":PLACE,\"dispatch\":{\"add\":ADD,MORE\"reshape_view\":VIEW},"
    "\"slow\":{\"level\":LEVEL,\"quantiles\":FACTOR,\"components\":PARTS},"
    "\"compiled\":{\"quantiles_us\":SUBMIT,\"submit_share\":SHARE,\"components\":PARTS},"
    "\"runs\":RUNS}";

// The frame with its words replaced; `word` (may be NULL) by `text`. Owned.
static char *file_with(const char *word, const char *text) {
    size_t room = 1 << 16, n = 0;
    char *out = calloc(room, 1);
    for (const char *at = frame; *at;) {
        int k = 0;
        while (k < NPARTS && strncmp(at, parts[k][0], strlen(parts[k][0])) != 0)
            k++;
        if (k == NPARTS) {
            out[n++] = *at++;
            continue;
        }
        const char *by = word && strcmp(word, parts[k][0]) == 0 ? text : parts[k][1];
        n += (size_t)snprintf(out + n, room - n, "%s", by);
        at += strlen(parts[k][0]);
    }
    return out;
}

static npu_status parse(const char *text, struct host_model **m) {
    return host_model_parse(text, strlen(text), "h.json", m);
}

Test(host_file, what_a_small_file_says) {
    struct host_model *m;
    char *text = file_with(NULL, NULL);
    npu_status st = parse(text, &m);
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_expect_eq(host_model_queue(m), 8);
    cr_expect_str_eq(host_model_source(m), "d, f, h");
    struct host_run run;
    host_run_begin(m, (struct noise){0}, 0, &run);
    cr_expect_eq(host_launch_ps(&run, HOST_ADD, 0), 2850000, "1.5 x (2 - 0.1) us");
    // classes that the file does not have are their nearest kin
    cr_expect_eq(host_launch_ps(&run, HOST_CONV, 0), 2850000);
    cr_expect_eq(host_view_ps(&run, 0), 975000, "1.5 x (0.75 - 0.1) us");
    cr_expect_eq(host_submit_ps(&run), 2750000);
    cr_expect_eq(host_finish_ps(&run), 8250000);
    host_model_free(m);
    free(text);
    text = file_with("MORE", "\"linear\":{\"quantiles_us\":[5,7]},");
    cr_assert_null(parse(text, &m));
    host_run_begin(m, (struct noise){0}, 0, &run);
    cr_expect_eq(host_launch_ps(&run, HOST_CONV, 0), 8850000, "conv2d is kin of linear");
    cr_expect_eq(host_launch_ps(&run, HOST_MATMUL, 0), 2850000, "matmul is not");
    host_model_free(m);
    free(text);
}

Test(host_file, the_999_quantile_shapes_the_tail) {
    struct host_model *m;
    char *text = file_with("ADD", "{\"quantiles_us\":[1.1,1.1,16.1],\"p999_us\":1.2}");
    cr_assert_null(parse(text, &m));
    cr_expect_float_eq(host_table_at(&m->fast[HOST_ADD], 0.999), 1.1, 1e-9);
    cr_expect_float_eq(host_table_at(&m->fast[HOST_ADD], 0.75), 1 + 0.1 * 0.25 / 0.499, 1e-9);
    cr_expect_float_eq(host_table_at(&m->fast[HOST_ADD], 1), 16, 1e-9);
    // above it straight in the logarithm: half way between 1.1 and 16 is their geometric mean
    cr_expect_float_eq(host_table_at(&m->fast[HOST_ADD], 0.9995), 4.195235392680606, 1e-6);
    host_model_free(m);
    free(text);
}

Test(host_file, built_in_model) {
    struct host_model *m;
    cr_assert_null(host_model_default(&m));
    cr_expect_eq(host_model_nmeasured(m), 6);
    bool found = false;
    for (int i = 0; i < host_model_nmeasured(m); i++) {
        struct host_measured r = host_model_measured(m, i);
        if (strcmp(r.model, "resnet50") != 0 || strcmp(r.mode, "eager") != 0) continue;
        found = true;
        cr_expect_float_eq(r.mean_us, 9518.604, 1e-6);
        cr_expect_float_eq(r.cv, 0.24716, 1e-5);
        cr_expect_eq(r.nquantiles, 201);
    }
    cr_expect(found);
    host_model_free(m);
}

struct damage {
    const char *word, *text, *says;
};

Test(host_file, damage_is_named) {
    static const struct damage all[] = {
        {"FORMAT", "\"other\"", "h.json: format is 'other', expected 'npu-host-model'"},
        {"FORMAT", "3", "h.json: format is a number, expected a string"},
        {"VERSION", "2", "version is 2, expected 1"},
        {"QUEUE", "0", "queue is 0, expected 1 to 1048576"},
        {"QUEUE", "1.5", "queue is 1.5, expected a whole number"},
        {"QUEUE", "null", "queue is null, expected a number"},
        {"TIMER", "-1", "timer_us is -1, expected 0 to"},
        {"TIMER", "1", "dispatch.add.quantiles_us[0] is 1, expected more than 1"},
        {"PLACE", "{\"device\":\"d\"}", "provenance has no key 'framework'"},
        {"PLACE", "[]", "provenance is a list, expected an object"},
        {"ADD", "{\"quantiles_us\":[1]}", "dispatch.add.quantiles_us has 1 values, expected 2 to"},
        {"ADD", "{\"quantiles_us\":[1,3,2]}", "dispatch.add.quantiles_us[2] is 2, below the one"},
        {"ADD", "{\"quantiles_us\":[1,\"3\"]}", "quantiles_us[1] is a string, expected a number"},
        {"ADD", "{\"quantiles_us\":[1,1e30]}", "quantiles_us[1] is 1e+30, expected 0 to 1000000"},
        {"ADD", "{\"quantiles\":[1,2]}", "dispatch.add has an unknown key 'quantiles'; known are:"},
        {"ADD", "{\"quantiles_us\":[1,2,4],\"p999_us\":5}", "p999_us is 5, expected 2 to 4"},
        {"MORE", "\"convolution\":{},", "dispatch has an unknown key 'convolution'; known are:"},
        {"MORE", "\"add\":{},", "duplicate object key"},
        {"LEVEL", "0", "slow.level is 0, expected 0.01 to 100"},
        {"FACTOR", "{}", "slow.quantiles is an object, expected a list of quantiles"},
        {"PARTS", "[{\"weight\":0.5}]", "slow.components[0] has no key 'phi'"},
        {"PARTS", "[{\"weight\":0.5,\"phi\":1}]", "slow.components[0].phi is 1, expected 0 to"},
        {"PARTS", "[{\"weight\":0.6,\"phi\":0},{\"weight\":0.6,\"phi\":0}]", "add up to 1.2"},
        {"PARTS", "[1,2,3,4,5]", "slow.components has 5 entries, at most 4"},
        {"PARTS", "[1]", "slow.components[0] is a number, expected an object"},
        {"SHARE", "1.5", "compiled.submit_share is 1.5, expected 0 to 1"},
        {"RUNS", "[{\"model\":\"m\"}]", "runs[0] has no key 'mode'"},
        {"RUNS", "{}", "runs is an object, expected a list"},
        {"RUNS", "[", "h.json:1:"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct host_model *m;
        char *text = file_with(all[i].word, all[i].text);
        npu_status st = parse(text, &m);
        cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT, "%s %s", all[i].word, all[i].text);
        cr_expect_null(m);
        cr_expect(strstr(npu_status_message(st), all[i].says), "'%s' says '%s'", all[i].says,
                  npu_status_message(st));
        npu_status_free(st);
        free(text);
    }
}

// Each in its range, and yet a launch of longer than 10 s.
Test(host_file, products_have_an_end) {
    struct host_model *m;
    char *text = file_with("ADD", "{\"quantiles_us\":[1,2,1000000]}"), *factor;
    npu_status st = parse(text, &m);
    cr_expect_null(st);
    host_model_free(m);
    factor = strstr(text, "[0.5,1,2]");
    factor[7] = '9';
    st = parse(text, &m);
    cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT);
    cr_expect(st && strstr(npu_status_message(st),
                           "h.json: the last of dispatch.add.quantiles_us x slow.level x the last "
                           "of slow.quantiles is a launch of 13499998.65 us, expected at most "
                           "10000000"),
              "%s", st ? npu_status_message(st) : "read");
    npu_status_free(st);
    free(text);
}

static void expect_said(const char *text, const char *const *says, size_t n) {
    struct host_model *m;
    struct str all = {0};
    npu_status st = parse(text, &m);
    cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT, "%s", text);
    cr_expect_null(m);
    npu_status_print(st, "npusim", &all);
    for (size_t i = 0; i < n; i++)
        cr_expect(strstr(str_text(&all), says[i]), "%s: '%s' says '%s'", text, says[i],
                  str_text(&all));
    npu_status_free(st);
    str_free(&all);
}

// What is no model is told what one is: every key of the file, and what it holds.
Test(host_file, what_is_no_model_is_told_what_one_is) {
    static const char *const texts[] = {"", " \t\r\n", "[1]", "null", "\"npu-host-model\""};
    static const char *const keys[] = {
        "expected a",
        "object of format (the string 'npu-host-model'), version (the number 1), provenance (",
        "queue (a whole number, 1 to 1048576)",
        "timer_us (a number, 0 to 1e6; may be missing)",
        "dispatch (an object with add, reshape_view and",
        "slow (",
        "compiled (",
        "runs (a list of measured inferences; may be missing)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_said(texts[i], keys, sizeof keys / sizeof *keys);
    static const char *const empty[] = {"h.json is empty; expected a host model"};
    expect_said("", empty, 1);
    expect_said(" \n ", empty, 1);
    // Of a slip in the writing, the place and nothing else.
    static const char *const slips[] = {"{", "abc", "\x01\x02\xff", "[[[[", "{\"a\":1}}"};
    static const char *const place[] = {"h.json:1:", ": no JSON: "};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        struct host_model *m;
        expect_said(slips[i], place, 2);
        npu_status st = parse(slips[i], &m);
        cr_expect(!strstr(npu_status_message(st), "provenance"), "%s", npu_status_message(st));
        npu_status_free(st);
    }
}

// All of them, each with what it holds.
Test(host_file, missing_keys_are_listed) {
    static const char *const root[] = {"the file has no key 'format', the string 'npu-host-model'",
                                       "the file has no key 'version', the number 1",
                                       "the file has no key 'provenance', an object",
                                       "the file has no key 'queue', a whole number, 1 to 1048576",
                                       "the file has no key 'dispatch', an object with add, ",
                                       "the file has no key 'slow', an object with level, ",
                                       "the file has no key 'compiled', an object with quantiles"};
    expect_said("{}", root, sizeof root / sizeof *root);
    static const char *const class[] = {"dispatch.add has no key 'quantiles_us', a list of 2 to "
                                        "2001 numbers, none below the one before, above timer_us "
                                        "and up to 1e6"};
    char *text = file_with("ADD", "{}");
    expect_said(text, class, 1);
    free(text);
    static const char *const both[] = {"dispatch has an unknown key 'one'",
                                       "dispatch has an unknown key 'two'"};
    text = file_with("MORE", "\"one\":1,\"two\":2,");
    expect_said(text, both, 2);
    free(text);
    static const char *const component[] = {
        "slow.components[0] has no key 'weight', a number, 0 to 1",
        "slow.components[0] has no key 'phi', a number, 0 to 0.999"};
    text = file_with("PARTS", "[{}]");
    expect_said(text, component, 2);
    free(text);
}

// Cut anywhere, the file is refused.
Test(host_file, no_prefix_is_a_file) {
    char *text = file_with(NULL, NULL);
    for (size_t n = 0; n < strlen(text); n++) {
        struct host_model *m;
        npu_status st = host_model_parse(text, n, "cut", &m);
        cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT);
        npu_status_free(st);
    }
    free(text);
}

Test(host_file, missing_file) {
    struct host_model *m;
    npu_status st = host_model_load("no/such/file.json", &m);
    cr_expect_eq(npu_status_code(st), NPU_IO);
    npu_status_free(st);
}
