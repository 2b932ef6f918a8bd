// SPDX-License-Identifier: Apache-2.0
// The command line, by argp over options.def.
#define _GNU_SOURCE
#include "simulator/npusim/options.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/base/text.h"
#include "simulator/noise/noise.h"
#include "simulator/npusim/break.h"
#include "simulator/npusim/dump.h"
#include "simulator/npusim/whatif.h"
#include "simulator/trace/trace.h"

#ifndef NPU_VERSION
#define NPU_VERSION "0.1.0"
#endif

enum {
#define NPUSIM_OPTION(N, name, key, arg, optional, many, help) KEY_##N = (key),
#define NPUSIM_GROUP(title)
#include "simulator/npusim/options.def"
};

static const struct argp_option table[] = {
#define NPUSIM_OPTION(N, name, key, arg, optional, many, help) \
    {name, key, arg, (optional) ? OPTION_ARG_OPTIONAL : 0, help, 0},
#define NPUSIM_GROUP(title) {0, 0, 0, 0, title, 0},
#include "simulator/npusim/options.def"
    {0},
};

// What argp has no column for: whether a second value adds to the first. Else one would be lost.
static const struct {
    int key;
    bool many;
    const char *name, *arg;
} extra[] = {
#define NPUSIM_OPTION(N, name, key, arg, optional, many, help) {key, many, name, arg},
#define NPUSIM_GROUP(title)
#include "simulator/npusim/options.def"
};
enum { ROWS = sizeof extra / sizeof *extra };

// A time of each run is kept; and numbers of runs do not start over.
#define MOST_RUNS UINT64_C(1000000000)

struct parse {
    struct arena *a;
    struct npusim_options *o;
    npu_status failed;
    bool given[ROWS];
    bool all_noise;      // --noise all, not a list
    const char *of_runs; // an option that is about running a program, NULL: none given
};

static void fail(struct parse *p, npu_status st) {
    p->failed = npu_status_join(p->failed, st);
}

static void append(struct parse *p, struct npusim_list *l, const char *name, const char *value) {
    struct npusim_pair *grown = ARENA_ARRAY(p->a, struct npusim_pair, (size_t)l->n + 1);
    if (l->n) memcpy(grown, l->item, (size_t)l->n * sizeof *grown);
    grown[l->n++] = (struct npusim_pair){name, value};
    l->item = grown;
}

// "NAME=VALUE": the last '=' parts them, since a tensor's name may contain one and a path rarely
// does.
static void append_pair(struct parse *p, struct npusim_list *l, const char *option,
                        const char *arg) {
    const char *equals = strrchr(arg, '=');
    if (!equals || equals == arg || !equals[1]) {
        fail(p, npu_fail(USAGE, "--%s %s: expected NAME=VALUE", option, arg));
        return;
    }
    append(p, l, arena_strndup(p->a, arg, (size_t)(equals - arg)), equals + 1);
}

static void number(struct parse *p, const char *option, const char *arg, double least, double most,
                   double *out) {
    if (text_parse_f64(arg, out) && *out >= least && *out <= most && !isinf(*out)) return;
    if (isinf(most))
        fail(p, npu_fail(USAGE, "--%s %s: expected a number from %g on", option, arg, least));
    else
        fail(p,
             npu_fail(USAGE, "--%s %s: expected a number from %g to %g", option, arg, least, most));
}

static void integer(struct parse *p, const char *option, const char *arg, uint64_t least,
                    uint64_t most, uint64_t *out) {
    if (!text_parse_u64(arg, out) || *out < least || *out > most)
        fail(p, npu_fail(USAGE, "--%s %s: expected an integer from %" PRIu64 " to %" PRIu64, option,
                         arg, least, most));
}

static void trace_option(struct parse *p, const char *arg) {
    p->o->trace = true;
    if (!arg) return;
    if (!trace_path_known(arg))
        fail(p, npu_fail(USAGE, "--trace=%s: the ending names the format, one of %s", arg,
                         trace_endings()));
    append(p, &p->o->trace_file, "trace", arg);
}

// Remembers an option that says nothing to --diff.
static void note_for_diff(struct parse *p, int key) {
    if (key == KEY_DIFF || key == KEY_REPORT || key == KEY_QUIET || key == KEY_VERBOSE) return;
    for (size_t i = 0; i + 1 < sizeof table / sizeof *table; i++)
        if (table[i].name && table[i].key == key) p->of_runs = table[i].name;
}

static npu_status check_diff(const struct parse *p) {
    if (!p->o->second)
        return npu_fail(USAGE, "--diff compares two files, reports or traces of npusim");
    if (p->of_runs) return npu_fail(USAGE, "--diff runs nothing: it excludes --%s", p->of_runs);
    return NULL;
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
    struct npusim_options *o = p->o;
    note_for_diff(p, key);
    check_once(p, key, arg);
    switch (key) {
    case KEY_INPUT: append_pair(p, &o->input, "input", arg); break;
    case KEY_INPUTS: o->inputs = arg; break;
    case KEY_OUTPUT: append_pair(p, &o->output, "output", arg); break;
    case KEY_OUTPUTS: o->outputs = arg; break;
    case KEY_EXPECT: append_pair(p, &o->expect, "expect", arg); break;
    case KEY_EXPECTS: o->expects = arg; break;
    case KEY_TAG: o->tag = arg; break;
    case KEY_RTOL:
        number(p, "rtol", arg, 0, HUGE_VAL, &o->rtol);
        o->tolerance = true;
        break;
    case KEY_ATOL:
        number(p, "atol", arg, 0, HUGE_VAL, &o->atol);
        o->tolerance = true;
        break;
    case KEY_MIN_COSINE:
        number(p, "min-cosine", arg, -1, 1, &o->min_cosine);
        o->cosine = true;
        break;
    case KEY_CHECK_LAYERS:
        o->check_layers = true;
        o->model = arg;
        break;
    case KEY_CRC: o->crc = arg; break;
    case KEY_CRC_AGAINST: o->crc_against = arg; break;
    case KEY_NO_DATA: o->no_data = true; break;
    case KEY_SET: append(p, &o->set, "", arg); break;
    case KEY_SCALAR: append_pair(p, &o->scalar, "scalar", arg); break;
    case KEY_BREAK:
        append(p, &o->stop, "", arg);
        fail(p, break_check(arg));
        break;
    case KEY_DUMP: {
        struct dump parsed;
        append(p, &o->dump, "", arg);
        fail(p, dump_parse(p->a, arg, NULL, &parsed));
        break;
    }
    case KEY_ENTRY: o->entry = arg; break;
    case KEY_RUNS: integer(p, "runs", arg, 1, MOST_RUNS, &o->runs); break;
    case KEY_SEED: integer(p, "seed", arg, 0, UINT64_MAX, &o->seed); break;
    case KEY_THREADS: integer(p, "threads", arg, 1, UINT64_MAX, &o->threads); break;
    case KEY_NOISE:
        fail(p, noise_parse(arg, &o->noise));
        p->all_noise = !strcmp(arg, "all");
        break;
    case KEY_BY_SOURCE:
        integer(p, "by-source", arg, 0, MOST_RUNS, &o->by_source);
        o->by_source_given = true;
        break;
    case KEY_FIRST_RUN:
        integer(p, "first-run", arg, 0, UINT64_MAX - MOST_RUNS, &o->first_run);
        o->first_run_given = true;
        break;
    case KEY_VERSUS: o->versus = arg; break;
    case KEY_HOST: o->host = arg; break;
    case KEY_TRACE: trace_option(p, arg); break;
    case KEY_WHAT_IF: {
        unsigned rows;
        npu_status st = npusim_whatif_parse(o->what_if = arg ? arg : "all", &rows);
        if (st) fail(p, st);
        break;
    }
    case KEY_REPORT: o->report = arg; break;
    case KEY_DIFF: o->diff = true; break;
    case KEY_QUIET: o->quiet = true; break;
    case KEY_VERBOSE: o->verbose = true; break;
    case ARGP_KEY_ARG:
        if (o->second)
            fail(p, npu_fail(USAGE, "more than two files: '%s', '%s' and '%s'", o->program,
                             o->second, arg));
        else if (o->program)
            o->second = arg;
        else
            o->program = arg;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

// Noise that is asked for and cannot be there.
static npu_status check_noise(const struct parse *p) {
    struct npusim_options *o = p->o;
    const unsigned host = 1U << NOISE_HOST;
    if (o->host && !strcmp(o->host, "none") && o->noise & host) {
        if (!p->all_noise)
            return npu_fail(USAGE, "--noise names the host, and --host none takes it away");
        o->noise &= ~host;
    }
    if (o->first_run_given && !o->noise)
        return npu_fail(USAGE,
                        "--first-run %" PRIu64 ": without --noise every run is the same, whatever "
                        "its number",
                        o->first_run);
    return NULL;
}

static npu_status check(const struct parse *p) {
    const struct npusim_options *o = p->o;
    if (!o->program)
        return npu_fail(USAGE, "no program given; npusim --help says what is accepted");
    if (o->second)
        return npu_fail(USAGE, "more than one program: '%s' and '%s'", o->program, o->second);
    NPU_TRY(check_noise(p));
    const bool wants_values = o->output.n || o->outputs || o->expect.n || o->expects;
    if (o->no_data && wants_values)
        return npu_fail(USAGE, "--no-data computes no outputs: it excludes --output, --outputs, "
                               "--expect and --expects");
    if (o->by_source && !(o->noise & (o->noise - 1)))
        return npu_fail(USAGE,
                        "--by-source %" PRIu64
                        ": shares of the variance need two sources of --noise at least",
                        o->by_source);
    if (o->by_source && (o->by_source < 2 || o->by_source > o->runs))
        return npu_fail(USAGE,
                        "--by-source %" PRIu64 ": expected 0, or 2 to --runs, which is %" PRIu64,
                        o->by_source, o->runs);
    if (o->no_data && o->check_layers)
        return npu_fail(USAGE, "--no-data computes no values, which --check-layers compares");
    if (o->no_data && (o->crc || o->crc_against))
        return npu_fail(USAGE, "--no-data computes no values: it excludes --crc and --crc-against");
    if (o->no_data && o->dump.n)
        return npu_fail(USAGE, "--no-data computes no values, which --dump shows");
    if (o->stop.n &&
        (o->check_layers || o->crc_against || o->runs > 1 || o->noise || o->versus || o->what_if))
        return npu_fail(USAGE, "--break stops one run without noise: it excludes --check-layers, "
                               "--crc-against, --runs, --noise, --versus and --what-if");
    return NULL;
}

npu_status npusim_options_parse(int argc, char **argv, struct arena *a, struct npusim_options *o) {
    static const char doc[] =
        "Runs a compiled program on the machine it was compiled for: values, cycles, faults.\v"
        "Exit status: 0 done; 1 results differ from what is expected; 2 wrong usage; 3 bad or "
        "unsupported input; "
        "4 does not fit the machine; 5 the program broke a rule of the machine; 6 system error.";
    static const struct argp argp = {.options = table,
                                     .parser = on_option,
                                     .args_doc = "PROGRAM.npu\n--diff A.json B.json",
                                     .doc = doc};
    struct parse p = {.a = a, .o = o};
    *o = (struct npusim_options){.tag = "ort_fp32", .runs = 1};
    argp_program_version = "npusim " NPU_VERSION;
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, &p) == ENOMEM)
        return npu_fail(NO_MEMORY, "out of memory");
    if (p.failed) return p.failed;
    return o->diff ? check_diff(&p) : check(&p);
}
