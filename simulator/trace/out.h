// SPDX-License-Identifier: Apache-2.0
//
// Text on its way into a file that is complete or absent, through gzip when the path ends in .gz.
#ifndef SIMULATOR_TRACE_OUT_H
#define SIMULATOR_TRACE_OUT_H

#include "runtime/base/file.h"
#include "runtime/base/str.h"

struct trace_out;

/// Opens; the buffer of trace_out_text is then what to append to.
NPU_MUST_USE npu_status trace_out_open(const char *path, struct trace_out **out);
struct str *trace_out_text(struct trace_out *o);

/// Passes the text on when there is enough of it. Call it between rows; failures are kept for the
/// end.
void trace_out_flush(struct trace_out *o);

/// Notes a failure beside those of writing; trace_out_close gives it back. NULL is none.
void trace_out_fail(struct trace_out *o, npu_status status);

/// Ends the file and frees o. The first failure, or NULL.
NPU_MUST_USE npu_status trace_out_close(struct trace_out *o);

#endif
