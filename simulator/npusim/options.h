// SPDX-License-Identifier: Apache-2.0
// What the user asked npusim for.
#ifndef NPUSIM_OPTIONS_H
#define NPUSIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

// Arguments of one repeatable option "NAME=VALUE", taken apart (--set: whole in value).
struct npusim_pair {
    const char *name, *value;
};

struct npusim_list {
    struct npusim_pair *item;
    int n;
};

struct npusim_options {
    const char *program;
    struct npusim_list input, output, expect, set, scalar, stop, dump; // stop: --break
    struct npusim_list trace_file;
    const char *inputs, *outputs, *expects; // folders, NULL: not given
    const char *tag;
    double rtol, atol, min_cosine;
    bool tolerance, cosine; // --rtol or --atol given; --min-cosine given
    bool check_layers;
    const char *model;             // --check-layers=MODEL; NULL: where the record says
    const char *crc, *crc_against; // files of instructions' CRCs, NULL: none
    const char *entry, *report;
    bool trace;          // cycle report on standard output
    const char *what_if; // --what-if; NULL: not given
    const char *host;    // --host; NULL: not given
    uint64_t runs, seed, first_run;
    uint64_t threads;     // 0: as many as there are processors
    unsigned noise;       // bit per enum noise_source
    bool by_source_given; // --by-source
    bool first_run_given; // --first-run
    uint64_t by_source;   // runs for shares of the variance; 0: none
    const char *versus;   // another program, NULL: none
    bool diff;            // compare `program` and `second`, two reports or traces
    const char *second;   // the second file given, NULL: none
    bool no_data, quiet, verbose;
};

// Parses the command line; lists live in the arena. USAGE, or argp ends the program: status 2 for
// an unknown option, 0 for --help and --version.
NPU_MUST_USE npu_status npusim_options_parse(int argc, char **argv, struct arena *a,
                                             struct npusim_options *o);

#endif
