// SPDX-License-Identifier: Apache-2.0
// The command line, by argp over options.def.
#define _GNU_SOURCE
#include "toolchain/npuc/options.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/hw_yaml.h"
#include "runtime/base/text.h"

#ifndef NPU_VERSION
#define NPU_VERSION "0.1.0"
#endif

const char *const npuc_emit_names[NPUC_EMITS] = {"graph", "tiles", "plan", "asm", "layers"};

enum {
#define NPUC_OPTION(N, name, key, arg, optional, many, help) KEY_##N = (key),
#define NPUC_GROUP(title)
#include "toolchain/npuc/options.def"
};

static const struct argp_option table[] = {
#define NPUC_OPTION(N, name, key, arg, optional, many, help) \
    {name, key, arg, (optional) ? OPTION_ARG_OPTIONAL : 0, help, 0},
#define NPUC_GROUP(title) {0, 0, 0, 0, title, 0},
#include "toolchain/npuc/options.def"
    {0},
};

// What argp has no column for: whether a second value adds to the first. Else one would be lost.
static const struct {
    int key;
    bool many;
    const char *name, *arg;
} extra[] = {
#define NPUC_OPTION(N, name, key, arg, optional, many, help) {key, many, name, arg},
#define NPUC_GROUP(title)
#include "toolchain/npuc/options.def"
};
enum { ROWS = sizeof extra / sizeof *extra };

struct parse {
    struct arena *a;
    struct npuc_options *o;
    npu_status failed;
    bool given[ROWS];
    bool replace; // a later value replaces an earlier one
    int next;     // the word behind what has been understood
};

void npuc_list_add(struct arena *a, struct npuc_list *l, const char *text) {
    const char **grown = ARENA_ARRAY(a, const char *, (size_t)l->n + 1);
    if (l->n) memcpy(grown, l->item, (size_t)l->n * sizeof *grown);
    grown[l->n++] = text;
    l->item = grown;
}

static void fail(struct parse *p, npu_status st) {
    p->failed = npu_status_join(p->failed, st);
}

static npu_status unknown_pass(const char *option, const char *name) {
    const char *names[PASS_COUNT + STEP_COUNT];
    size_t n = 0;
    for (int i = 0; i < PASS_COUNT; i++)
        names[n++] = passes[i].name;
    for (int i = 0; i < STEP_COUNT && !strcmp(option, "skip"); i++)
        names[n++] = steps[i].name;
    const char *near = text_did_you_mean(name, names, n);
    return npu_fail(USAGE, "--%s %s: no such pass%s%s%s%s; --list passes names them", option, name,
                    strcmp(option, "skip") ? "" : " or step", near ? "; did you mean '" : "",
                    near ? near : "", near ? "'" : "");
}

npu_status npuc_options_skip(struct npuc_options *o, const char *name) {
    int pass = pass_find(name), step = step_find(name);
    if (step >= 0) {
        o->skip_step[step] = true;
        return NULL;
    }
    if (pass < 0) return unknown_pass("skip", name);
    if (!passes[pass].skippable)
        return npu_fail(USAGE, "--skip %s: this pass is needed for any program", name);
    o->pass.skip[pass] = true;
    return NULL;
}

static void pass_option(struct parse *p, int key, const char *arg) {
    struct pass_options *o = &p->o->pass;
    int id = pass_find(arg);
    if (key == KEY_DUMP_AFTER && !strcmp(arg, "all")) {
        for (int i = 0; i < PASS_COUNT; i++)
            o->dump[i] = true;
    } else if (id < 0) {
        fail(p, unknown_pass(key == KEY_STOP_AFTER ? "stop-after" : "dump-after", arg));
    } else if (key == KEY_STOP_AFTER) {
        o->stop_after = id;
    } else {
        o->dump[id] = true;
    }
}

static void add_emission(struct parse *p, enum npuc_emit kind, const char *file) {
    struct npuc_options *o = p->o;
    struct npuc_emission *grown = ARENA_ARRAY(p->a, struct npuc_emission, (size_t)o->nemit + 1);
    if (o->nemit) memcpy(grown, o->emit, (size_t)o->nemit * sizeof *grown);
    grown[o->nemit++] = (struct npuc_emission){kind, file};
    o->emit = grown;
}

static void emit_option(struct parse *p, const char *arg) {
    size_t len = strcspn(arg, "=");
    for (int i = 0; i < NPUC_EMITS; i++)
        if (strlen(npuc_emit_names[i]) == len && !memcmp(npuc_emit_names[i], arg, len)) {
            add_emission(p, (enum npuc_emit)i, arg[len] ? arg + len + 1 : NULL);
            if (arg[len] && !arg[len + 1])
                fail(p, npu_fail(USAGE, "--emit %s: a file name is missing after '='", arg));
            return;
        }
    fail(p, npu_fail(USAGE,
                     "--emit %s: expected graph, tiles, plan, asm or layers, perhaps with =FILE",
                     arg));
}

npu_status npuc_options_level(struct npuc_options *o, const char *text) {
    if (strlen(text) != 1 || text[0] < '0' || text[0] > '3')
        return npu_fail(USAGE, "-O%s: expected -O0, -O1, -O2 or -O3", text);
    o->pass.level = text[0] - '0';
    return NULL;
}

npu_status npuc_options_dtype(struct npuc_options *o, const char *text) {
    static const struct {
        const char *name;
        enum isa_dtype t;
    } rows[] = {{"auto", ISA_DTYPE_NONE}, {"f32", ISA_F32}, {"f16", ISA_F16}, {"bf16", ISA_BF16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, text)) {
            o->dtype = text;
            o->pass.dtype = rows[i].t;
            return NULL;
        }
    return npu_fail(USAGE, "--dtype %s: expected auto, f32, f16 or bf16", text);
}

static void check_once(struct parse *p, int key, const char *arg) {
    for (int i = 0; i < ROWS; i++) {
        if (extra[i].key != key || extra[i].many || !extra[i].arg) continue;
        if (p->given[i])
            fail(p, npu_fail(USAGE, "--%s%s%s: given twice, but it takes one value", extra[i].name,
                             arg ? " " : "", arg ? arg : ""));
        p->given[i] = true;
    }
}

static error_t on_option(int key, char *arg, struct argp_state *state) {
    struct parse *p = state->input;
    struct npuc_options *o = p->o;
    if (key != ARGP_KEY_ERROR && key != ARGP_KEY_FINI) p->next = state->next;
    if (!p->replace) check_once(p, key, arg);
    switch (key) {
    case KEY_OUTPUT: o->output = arg; break;
    case KEY_REPORT: o->report = arg; break;
    case KEY_EMIT: emit_option(p, arg); break;
    case KEY_TARGET:
        o->target = arg;
        o->target_given = true;
        break;
    case KEY_SET: npuc_list_add(p->a, &o->set, arg); break;
    case KEY_DTYPE: fail(p, npuc_options_dtype(o, arg)); break;
    case KEY_SHAPE: npuc_list_add(p->a, &o->shape, arg); break;
    case KEY_DIM: npuc_list_add(p->a, &o->dim, arg); break;
    case KEY_CONST: npuc_list_add(p->a, &o->constant, arg); break;
    case KEY_LEVEL: fail(p, npuc_options_level(o, arg)); break;
    case KEY_EAGER: o->pass.eager = true; break;
    case KEY_SKIP: fail(p, npuc_options_skip(o, arg)); break;
    case KEY_STOP_AFTER:
    case KEY_DUMP_AFTER: pass_option(p, key, arg); break;
    case KEY_STATS: o->pass.stats = true; break;
    case KEY_INFO: o->info = true; break;
    case KEY_DISASSEMBLE: o->disassemble = true; break;
    case KEY_LIST: o->list = arg; break;
    case KEY_QUIET: o->quiet = true; break;
    case KEY_VERBOSE: o->verbose = true; break;
    case ARGP_KEY_ARG:
        if (o->input) fail(p, npu_fail(USAGE, "more than one input: '%s' and '%s'", o->input, arg));
        o->input = arg;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

// Passes over each call alone have no graph of the whole model to stop at or to show.
static npu_status check_eager(const struct npuc_options *o) {
    if (!o->pass.eager) return NULL;
    if (o->pass.stop_after >= 0 && passes[o->pass.stop_after].scope == PASS_SCOPE_CALL)
        return npu_fail(USAGE, "--stop-after %s: with --eager this pass sees one call at a time",
                        passes[o->pass.stop_after].name);
    bool all = true;
    for (int i = 0; i < PASS_COUNT; i++)
        all &= o->pass.dump[i];
    for (int i = 0; i < PASS_COUNT && !all; i++)
        if (o->pass.dump[i] && passes[i].scope == PASS_SCOPE_CALL)
            return npu_fail(USAGE,
                            "--dump-after %s: with --eager this pass sees one call at a time",
                            passes[i].name);
    for (int i = 0; i < STEP_COUNT; i++)
        if (o->skip_step[i] && !steps[i].eager)
            return npu_fail(USAGE, "--skip %s: --eager leaves this step out by itself",
                            steps[i].name);
    return NULL;
}

static npu_status check(const struct npuc_options *o) {
    if (o->list) return NULL;
    NPU_TRY(check_eager(o));
    if (!o->input) return npu_fail(USAGE, "no input given; npuc --help says what is accepted");
    if (o->info && o->disassemble)
        return npu_fail(USAGE, "--info and --disassemble exclude each other");
    if (o->output && o->pass.stop_after >= 0)
        return npu_fail(USAGE, "--stop-after writes no program, so -o has no meaning");
    return NULL;
}

void npuc_options_init(struct npuc_options *o) {
    *o = (struct npuc_options){.target = "server", .dtype = "auto"};
    pass_options_init(&o->pass);
}

npu_status npuc_options_parse(int argc, char **argv, struct arena *a, struct npuc_options *o) {
    static const char doc[] =
        "Compiles a neural network (ONNX, .pt2) to a .npu program for a described NPU, or inspects "
        "one.\v"
        "INPUT is recognised by content: ONNX, torch.export .pt2, graph text .npt, assembly .nps, "
        "or a .npu for --info and --disassemble.\n\n"
        "Exit status: 0 done; 2 wrong usage; 3 bad or unsupported input; 4 does not fit the "
        "target; 6 system error.";
    static const struct argp argp = {.options = table,
                                     .parser = on_option,
                                     .args_doc = "INPUT",
                                     .doc = doc};
    struct parse p = {.a = a, .o = o};
    npuc_options_init(o);
    o->pass.dump_to = stdout;
    argp_program_version = "npuc " NPU_VERSION;
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, &p) == ENOMEM)
        return npu_fail(NO_MEMORY, "out of memory");
    return p.failed ? p.failed : check(o);
}

// What only a program on a terminal can be asked for.
static npu_status no_printing(const struct npuc_options *o) {
    const char *asked = o->list                   ? "--list"
                        : o->info                 ? "--info"
                        : o->disassemble          ? "--disassemble"
                        : o->pass.stats           ? "--stats"
                        : o->pass.stop_after >= 0 ? "--stop-after"
                                                  : NULL;
    for (int i = 0; i < PASS_COUNT; i++)
        if (o->pass.dump[i]) asked = "--dump-after";
    if (asked) return npu_fail(USAGE, "%s is for the program npuc, not for a call", asked);
    for (int i = 0; i < o->nemit; i++)
        if (!o->emit[i].file)
            return npu_fail(USAGE, "--emit %s: a call has no standard output; give =FILE",
                            npuc_emit_names[o->emit[i].kind]);
    if (o->input) return npu_fail(USAGE, "'%s' is no option", o->input);
    if (o->output) return npu_fail(USAGE, "-o %s: the output is an argument of its own", o->output);
    return NULL;
}

npu_status npuc_options_words(size_t count, const char *const *words, struct arena *a,
                              struct npuc_options *o) {
    static const struct argp argp = {.options = table, .parser = on_option};
    struct parse p = {.a = a, .o = o, .replace = true};
    char **argv = ARENA_ARRAY(a, char *, count + 2);
    npuc_options_init(o);
    if (count > INT_MAX - 1) return npu_fail(USAGE, "%zu options are too many", count);
    argv[0] = arena_strdup(a, "npuc");
    for (size_t i = 0; i < count; i++)
        argv[i + 1] = arena_strdup(a, words[i]);
    const error_t e =
        argp_parse(&argp, (int)count + 1, argv,
                   ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, &p);
    if (p.failed) return p.failed;
    if (e == ENOMEM) return npu_fail(NO_MEMORY, "out of memory");
    if (e)
        return npu_fail(USAGE, "option '%s': unknown, ambiguous, or its value is missing",
                        argv[p.next > 0 && p.next <= (int)count ? p.next : 1]);
    NPU_TRY(check_eager(o));
    return no_printing(o);
}

npu_status npuc_hardware(const struct npuc_options *o, struct hw *hw) {
    NPU_TRY_NOTE(hw_load(o->target, hw), "--target %s", o->target);
    for (int i = 0; i < o->set.n; i++)
        NPU_TRY(hw_set_text(hw, o->set.item[i], HW_SET_ALL));
    return NULL;
}
