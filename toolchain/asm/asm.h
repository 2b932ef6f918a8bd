// SPDX-License-Identifier: Apache-2.0
//
// Program text (.nps): an instruction per line, labels, and directives for everything else that a
// .npu holds. Disassembling and assembling again gives the same bytes.
//
//   // comment                          to the end of the line, outside strings
//   NAME:                               label, a line of its own or before an instruction
//   mm init=1 a=spm:f16+0x0[...] ...    isa/insn_text.h; br and call take offset=NAME
//   .granule 0xLOW 0xHIGH               16 bytes that are no instruction
//   .program "NAME"  .producer "NAME"  .dtype "MODE"
//   .target "NAME"                      the machine: a preset, or a description's file
//   .set "GROUP.NAME=VALUE"             changes a parameter of it
//   .yaml "TEXT"                        the description itself, line by line (instead of a preset)
//   .hash program=N timing=N            where it is not the description's own
//   .input|.output|.state "NAME" DTYPE[D,...] at=BYTES [model=DTYPE] [limit=N]
//   .segment KIND at=BYTES [bytes=N] [align=N] [offset=N]
//   .dram BYTES                         room that a run needs; default: to the last segment's end
//   .peak spm=N psum=N
//   .entry "NAME" at=LABEL|BYTES [tensors=N,...]
//   .launch at=LABEL|BYTES [tag=N] [views=N]              of the entry before
//   .tag N layer="" op="" kernel="" text="" group=N macs=N elems=N weights=N inputs=N outputs=N
//        m=N n=N k=N batch=N type=CODE nodes="",...
//   .span N "NAME"   .stat "NAME" VALUE
//   .buffer "NAME" DTYPE[D,...] at=BYTES bytes=N [tag=N]
//   .model "FILE" bytes=N crc=N graph=N                   what the program was compiled from
//   .option "NAME" "VALUE"                                with which options
//   .result "NAME" dram|spm DTYPE[D,...] [STRIDE,...] at=BYTES first=TAG last=TAG
//   .weights BYTES                      where in the constants the next bytes go
//   .hex 00 ff ...
//   .incbin "FILE", OFFSET, SIZE, CRC   bytes of a file, beside the text's file or the current
//                                       folder; CRC-32 of them
// Without .entry there is one, "main", at the first instruction. Without .segment the tensors get
// one each role (io, state) and the code stands behind them.
#ifndef TOOLCHAIN_ASM_ASM_H
#define TOOLCHAIN_ASM_ASM_H

#include "isa/hw.h"
#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/str.h"
#include "runtime/container.h"

/// A machine that the caller insists on, whatever the text says.
struct asm_machine {
    const struct hw *hw;
    const char *name; // target
};

/// Whole program text. `where` starts the messages ("FILE:LINE:COLUMN: ...") and is where .incbin
/// looks first. `machine` NULL: as the text says, or preset server. The image lives in the arena
/// and passes container_check. BAD_INPUT with every fault, IO.
NPU_MUST_USE npu_status asm_assemble(struct arena *a, struct span text, const char *where,
                                     const struct asm_machine *machine,
                                     struct npu_program_image **out);

/// Instructions, labels and .granule only; into bytes of the arena.
NPU_MUST_USE npu_status asm_parse_code(struct arena *a, struct span text, const char *where,
                                       struct span *code);

/// The image as text. Constants over 4 KiB: referenced by .incbin when `program` is a .npu that
/// holds them, or when `file`, where the text goes, ends in .nps (then they are written beside it,
/// as FILE.weights); else, and for NULL, spelt out. IO, NO_MEMORY.
NPU_MUST_USE npu_status asm_print_image(const struct npu_program_image *image, const char *program,
                                        const char *file, struct str *out);

/// FILE.weights for such a file, in the arena; NULL for any other.
const char *asm_side_file(struct arena *a, const char *file);

/// Instructions as lines, targets of branches and calls as labels L<granule>. What does not decode
/// becomes .granule.
NPU_MUST_USE npu_status asm_print_code(struct span code, struct str *out);

#endif
