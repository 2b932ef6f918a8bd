// SPDX-License-Identifier: Apache-2.0
//
// Numbers and bytes on their way into a text file: deflate, then base64, as a stream. What is
// written is one zlib stream (RFC 1950) in base64 (RFC 4648) without line breaks.
//
//     struct trace_pack *p;
//     NPU_TRY(trace_pack_open(out, &p));
//     trace_pack_number(p, 300);          // as many as there are
//     NPU_TRY(trace_pack_close(p));
//
// A number takes 7 bits a byte, the lowest first; the top bit of a byte says that more follow
// (LEB128). Signed numbers go zigzag: 0, -1, 1, -2 are 0, 1, 2, 3.
#ifndef SIMULATOR_TRACE_PACK_H
#define SIMULATOR_TRACE_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "simulator/trace/out.h"

struct trace_pack;

/// Starts a stream that goes into `out`, which must not be written to meanwhile. NO_MEMORY.
NPU_MUST_USE npu_status trace_pack_open(struct trace_out *out, struct trace_pack **p);

void trace_pack_bytes(struct trace_pack *p, const void *bytes, size_t size);
void trace_pack_number(struct trace_pack *p, uint64_t value);
void trace_pack_signed(struct trace_pack *p, int64_t value);

/// Ends the stream and frees p; failures of writing stay with `out`.
void trace_pack_close(struct trace_pack *p);

#endif
