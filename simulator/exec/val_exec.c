// SPDX-License-Identifier: Apache-2.0
//
// One instruction's values, by opcode.

#include "simulator/exec/val.h"

#include <stdio.h>

bool val_exec(const struct val_mem *mem, const struct isa_insn *in, struct val_fault *fault) {
    switch (in->h.opcode) {
    case ISA_OP_SYNC: return true;
    case ISA_OP_COPY: val_copy(mem, in); return true;
    case ISA_OP_GATHER: return val_gather(mem, in, fault);
    case ISA_OP_FILL: val_fill(mem, in); return true;
    case ISA_OP_MM: val_mm(mem, in); return true;
    case ISA_OP_MMCONV: val_mmconv(mem, in); return true;
    case ISA_OP_VMAP: val_vmap(mem, in); return true;
    case ISA_OP_VRED: val_vred(mem, in); return true;
    case ISA_OP_VDW: val_vdw(mem, in); return true;
    case ISA_OP_VPOOL: return val_vpool(mem, in, fault);
    default: break;
    }
    const struct isa_insn_desc *desc = isa_find((unsigned)in->h.opcode);
    snprintf(fault->text, sizeof fault->text, "%s has no values on this revision",
             desc ? desc->text : "this opcode");
    fault->element = 0;
    fault->value = in->h.opcode;
    return false;
}
