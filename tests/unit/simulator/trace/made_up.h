// SPDX-License-Identifier: Apache-2.0
//
// A made-up run for the tests of views.
#ifndef TESTS_TRACE_MADE_UP_H
#define TESTS_TRACE_MADE_UP_H

#include "simulator/trace/trace.h"

/// A run of 1000 cycles: MXU 0..400 under tag 0, 400..900 under tags 10 and 11, a store under tag
/// 20 to 1000.
struct fixture {
    struct hw hw;
    struct trace_engine engine[2];
    struct trace_tag tag[5];
    struct trace_run run;
    struct trace_log log;
};

/// Fills it; the log is finished. Undo with trace_log_free.
void fixture_init(struct fixture *f);

/// Path of a file of this process in the current folder; valid until the next call.
char *temporary(const char *name);

#endif
