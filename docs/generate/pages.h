// SPDX-License-Identifier: Apache-2.0
//
// Reference pages: each function appends one Markdown page, read from the .def tables.
#ifndef DOCS_GENERATE_PAGES_H
#define DOCS_GENERATE_PAGES_H

#include "runtime/base/file.h"
#include "runtime/base/str.h"

/// Header, operand patterns, chain, and the list of instructions.
npu_status page_isa(const char *source, struct str *out);

/// The instructions of one class: syntax, encoding, operands, semantics, timing, faults, example.
npu_status page_isa_cp(const char *source, struct str *out);
npu_status page_isa_dma(const char *source, struct str *out);
npu_status page_isa_mxu(const char *source, struct str *out);
npu_status page_isa_vec(const char *source, struct str *out);

/// Every hardware parameter with the presets beside each other, derived rates, memory standards.
npu_status page_hardware(const char *source, struct str *out);

/// Element types, chain operations, engines, memories, and other small tables.
npu_status page_types(const char *source, struct str *out);

/// The closed forms, quoted from isa/timing.h under the root `source`, and costs of examples.
npu_status page_timing(const char *source, struct str *out);

/// The .npu file and the command processor's registers.
npu_status page_container(const char *source, struct str *out);

/// Passes and steps of the compiler; the fields of its report.
npu_status page_passes(const char *source, struct str *out);
npu_status page_compile_report(const char *source, struct str *out);

/// Operators of graphs, and of each kind of model.
npu_status page_ops(const char *source, struct str *out);

/// A table cell's text: '|' escaped.
void put_cell(struct str *out, const char *text);

/// First line of every page: where it comes from.
void put_head(struct str *out, const char *title, const char *tables);

#endif
