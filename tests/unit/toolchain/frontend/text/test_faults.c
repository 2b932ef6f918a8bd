// SPDX-License-Identifier: Apache-2.0
//
// Reading graph text: every kind of fault is told with its place.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/str.h"
#include "tests/unit/toolchain/frontend/text/cases.h"

// The text is refused and the report has `message`.
static void refused(const char *text, const char *message) {
    struct arena *a = arena_new();
    struct graph *g = NULL;
    npu_status st = cases_parse(a, text, &g);
    struct str out = {0};
    npu_status_print(st, NULL, &out);
    cr_assert_not_null(st, "accepted: %s", text);
    cr_expect(strstr(str_text(&out), message), "expected \"%s\" in\n%s", message, str_text(&out));
    str_free(&out);
    npu_status_free(st);
    arena_free(a);
}

// Inside a graph with an input %x, f32[2,3], a constant %c, f32[3], and an output %x.
static void line_refused(const char *line, const char *message) {
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "graph \"g\"\nin %%x : f32[2,3]\nconst %%c : f32[3] = {1, 2, 3}\n%s\nout %%x\n",
                   line);
    refused(text, message);
}

Test(text_graph, faults_of_the_text) {
    refused("", "g.npt:1:1: no graph");
    refused("# nothing\n", "g.npt:2:1: no graph");
    refused("graph \"g\"\n", "no line out %NAME");
    refused("in %x : f32[]\n", "g.npt:1:1: expected graph \"NAME\" as the first line");
    refused("graph g\n", "g.npt:1:7: expected text in double quotes, found 'g'");
    refused("graph \"g\" x\n", "g.npt:1:11: expected the end of the line, found 'x'");
    refused("graph \"g\n", "does not end in its line");
    refused("graph \"\\n\"\n", "g.npt:1:8: in quotes");
    refused("graph \"\\x00\"\n", "g.npt:1:8: in quotes");
    line_refused("graph \"h\"", "g.npt:4:1: a second graph");
    line_refused("input %y : f32[]", "g.npt:4:1: a line starts with in, const, out or %NAME");
    line_refused("\x01", "found the byte 0x01");
    line_refused("=", "expected in, const, out or %NAME, found '='");
}

Test(text_graph, faults_of_values) {
    line_refused("in x : f32[]", "g.npt:4:4: expected a value's name, %NAME, found 'x'");
    line_refused("in % : f32[]", "g.npt:4:6: expected a name of letters");
    line_refused("in %\"\" : f32[]", "a name that is empty");
    line_refused("in %x : f32[]", "g.npt:4:4: %x is defined again, first in line 2");
    line_refused("in %y f32[]", "g.npt:4:7: expected ':', found 'f32'");
    line_refused("in %y : f23[]", "g.npt:4:9: 'f23' is no type; there are f32 f16");
    line_refused("in %y : none[]", "'none' is no type");
    line_refused("in %y : f32", "expected dimensions as [2,3]; a scalar has []");
    line_refused("in %y : f32[2", "expected ',' or ']', found 'out'");
    line_refused("in %y : f32[2,]", "g.npt:4:15: expected an integer");
    line_refused("in %y : f32[-1]", "dimension 0 is -1, expected 0 or more");
    line_refused("in %y : f32[1.5]", "found '1.5'");
    line_refused("in %y : f32[1,1,1,1,1,1,1,1,1]", "9 dimensions, at most 8");
    line_refused("in %y : f32[4294967296,4294967296]", "more than 2^43 elements");
    line_refused("in %y : f32[2,3] order=[0,0]", "g.npt:4:24: order is no permutation");
    line_refused("in %y : f32[2,3] order=[0]", "order is no permutation");
    line_refused("in %y : f32[2,3] limit=-1", "expected an integer from 0");
    line_refused("in %y : f32[2,3] size=1", "expected file=DTYPE, limit=N or the end of the line");
    line_refused("out %z", "g.npt:4:5: there is no value %z before this line");
    line_refused("in %longname : f32[]\nout %longnme", "did you mean %longname?");
    line_refused("out %x\nout %x", "g.npt:5:5: %x is an output already");
    line_refused("out %c file=9", "'9' is no type");
    line_refused("out %c 9",
                 "expected file=DTYPE, name=\"NAME\", state=%NAME or the end of the line");
}

Test(text_graph, faults_of_constants) {
    line_refused("const %d : f32[2]", "g.npt:4:18: expected '=', found the end of the line");
    line_refused("const %d : f32[2] = {1}", "g.npt:4:21: 1 elements, expected 2");
    line_refused("const %d : f32[2] = {1, 2, 3}", "g.npt:4:28: more than the 2 elements");
    line_refused("const %d : f32[2] = {1 2}", "expected ',' or '}', found '2'");
    line_refused("const %d : f32[2] = {...}", "expected a number, inf or nan, found '...'");
    line_refused("const %d : f32[2] = {1, ..., 2}", "expected '}' behind ...");
    line_refused("const %d : f32[99999999] = {1, ...}", "too many to repeat");
    line_refused("const %d : f32[1] = {abc}", "expected a number, inf or nan, found 'abc'");
    line_refused("const %d : f32[1] = {1e39}", "1e+39 is too large for f32");
    line_refused("const %d : f16[1] = {65520}", "65520 is too large for f16");
    line_refused("const %d : i8[1] = {128}", "expected an integer from -128 to 127, found '128'");
    line_refused("const %d : i8[1] = {1.0}", "found '1.0'");
    line_refused("const %d : u4[1] = {16}", "expected an integer from 0 to 15");
    line_refused("const %d : bool[1] = {2}", "expected an integer from 0 to 1");
    line_refused("const %d : u64[1] = {-1}", "expected an integer from 0 to 2^64 - 1");
    line_refused("const %d : i64[1] = {9223372036854775808}", "expected an integer from");
    line_refused("const %d : f32[1] = {1} x", "expected the end of the line, found 'x'");
    line_refused("const %x : f32[1] = {1}", "%x is defined again");
}

Test(text_graph, faults_of_nodes) {
    line_refused("%y : f32[2,3] = mapp %x", "g.npt:4:17: there is no op 'mapp'; did you mean map?");
    line_refused("%y = dance %x", "there is no op 'dance'");
    line_refused("%y", "expected ': TYPE' or '=', found the end of the line");
    line_refused("%y, %z = copy %x", "a node has one result");
    line_refused("%x = copy %c", "g.npt:4:1: %x is defined again, first in line 2");
    line_refused("%y = copy %q", "g.npt:4:11: there is no value %q before this line");
    line_refused("%y = copy %x,", "expected an input, %NAME");
    line_refused("%y = copy %x, %c", "2 inputs, expected 1 to 1");
    line_refused("%y = copy", "0 inputs, expected 1 to 1");
    line_refused("%y : f32[3,2] = copy %x", "g.npt:4:6: %y is declared otherwise than its copy "
                                            "gives: f32[2,3]");
    line_refused("%y : f16[2,3] = copy %x", "gives: f32[2,3]");
    line_refused("%y : f32[2,3] order=[1,1] = copy %x", "order is no permutation");
    line_refused("%y = transpose %x perm=[0,2]", "perm");
    line_refused("%y = transpose %x perms=[0,1]",
                 "there is no attribute 'perms'; did you mean perm?");
    line_refused("%y = transpose %x perm=[0,1] perm=[0,1]", "g.npt:4:30: perm stands twice");
    line_refused("%y = transpose %x perm=1", "expected '[', found '1'");
    line_refused("%y = reduce %x mode=sum axes=[0] keepdims=no", "expected an integer");
    line_refused("%y = reduce %x mode=zum axes=[0]", "mode is 'zum', expected sum|mean");
    line_refused("%y = softmax %x axis=2", "axis is 2, expected 0 to 1");
    line_refused("%y = copy %x node=y", "expected text in double quotes");
    line_refused("%y = copy %x node=\"a\" node=\"b\"", "node stands twice");
    line_refused("%y = copy %x from=[\"a\" \"b\"]", "expected ',' or ']'");
    line_refused("%y = copy %x kernel=\"a\" kernel=\"b\"", "kernel stands twice");
    line_refused("%y = copy %x =", "expected KEY=VALUE, found '='");
    line_refused("%y = copy %x axis", "expected '=', found the end of the line");
}

Test(text_graph, faults_of_chains) {
    refused("graph \"g\"\nin %x : i64[2]\n%y = map %x chain=(add imm0) imm0=1.5\nout %y\n",
            "g.npt:3:35: '1.5' is no immediate of an integer chain");
    line_refused("%y = map %x", "a map needs a chain");
    line_refused("%y = copy %x chain=(neg)", "a copy takes no chain");
    line_refused("%y = map %x chain=neg", "expected '(', found 'neg'");
    line_refused("%y = map %x chain=(negg)",
                 "'negg' is no operation of a chain; did you mean neg?");
    line_refused("%y = map %x chain=(add)", "expected an operand: acc, in0..in2, tmp, imm0..imm3");
    line_refused("%y = map %x chain=(add in3)", "g.npt:4:24: 'in3' is no operand");
    line_refused("%y = map %x chain=(add row)", "has operand code");
    line_refused("%y = map %x chain=(add in1)", "reads in1, which the node does not have");
    line_refused("%y = map %x chain=(add tmp)", "reads tmp, which no stage before saves");
    line_refused("%y = map %x chain=(neg neg)", "expected ';', '=tmp' or ')', found 'neg'");
    line_refused("%y = map %x chain=(neg =acc)", "expected =tmp");
    line_refused("%y = map %x chain=(neg;neg;neg;neg;neg;neg;neg;neg;neg)", "at most 8 stages");
    line_refused("%y = map %x chain=(exp; log)", "second special function");
    line_refused("%y = map %x chain=(add imm0)", "reads imm0, which is not given");
    line_refused("%y = map %x chain=(neg) imm0=1", "g.npt:4:30: no stage of the chain reads imm0");
    line_refused("%y = map %x chain=(add imm0) imm0=1 imm0=2", "imm0 stands twice");
    line_refused("%y = map %x chain=(add imm0) imm0=one", "'one' is no number");
    line_refused("%y = map %x chain=(neg) chain=(neg)", "chain stands twice");
    line_refused("%y = map %x imm0=1", "need a chain=(...)");
    line_refused("%y = map %x chain=(add in1) in1=%c", "the inputs of a map stand behind its op");
    line_refused("%y = reduce %x mode=sum axes=[0] chain=(add in1) in1=%x", "does not broadcast");
    line_refused("%y = reduce %x mode=sum axes=[0] in1=%c", "need a chain=(...)");
    line_refused("%y = map %x, %c chain=(and in1)", "and does not exist for f32");
    line_refused("%y = map %x chain=(neg", "expected ';', '=tmp' or ')'");
}

// Each wrong line is reported once, what depends on it is not; at most 20 are.
Test(text_graph, faults_are_gathered) {
    struct arena *a = arena_new();
    struct graph *g = NULL;
    npu_status st =
        cases_parse(a,
                    "graph \"g\"\nin %x : f32[2\nin %y : f32[2]\n%z = map %x chain=(neg)\n"
                    "%u = map %z chain=(neg)\n%v = map %y chain=(nog)\nout %u\nout %w\n",
                    &g);
    struct str out = {0};
    npu_status_print(st, NULL, &out);
    int lines = 0;
    for (const char *at = str_text(&out); (at = strchr(at, '\n')); at++)
        lines++;
    cr_expect_eq(lines, 3, "%s", str_text(&out));
    npu_status_free(st);
    str_clear(&out);
    str_puts(&out, "graph \"g\"\n");
    for (int k = 0; k < 100; k++)
        str_puts(&out, "out %nothing\n");
    st = cases_parse(a, str_text(&out), &g);
    str_clear(&out);
    npu_status_print(st, NULL, &out);
    lines = 0;
    for (const char *at = str_text(&out); (at = strchr(at, '\n')); at++)
        lines++;
    cr_expect_eq(lines, 20);
    npu_status_free(st);
    str_free(&out);
    arena_free(a);
}
