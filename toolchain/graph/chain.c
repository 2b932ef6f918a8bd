// SPDX-License-Identifier: Apache-2.0
//
// Rules of elementwise chains. A chain runs on integers when its output and all its inputs are
// integers, else on f32; the check walks the stages once, keeping whether TMP was saved and how
// many special functions were met.

#include <string.h>

#include "toolchain/graph/graph.h"
#include "toolchain/graph/shape.h"

// float_and_int of vop.def: 1 both, 0 f32 only, 2 integers only. Rows that do not exist are 0 and
// have no name.
static const struct {
    const char *name;
    int operands, types;
    bool special;
} vops[] = {
#define ISA_VOP_ALU false
#define ISA_VOP_SF true
#define ISA_VOP(N, text, code, operands, kind, types, doc) \
    [code] = {text, operands, types, ISA_VOP_##kind},
#include "isa/vop.def"
};

enum isa_dtype graph_own_dtype(const struct graph_node *n) {
    enum isa_dtype t = n->nown > 0 ? n->inputs[0]->dtype : ISA_DTYPE_NONE;
    if (n->op == GRAPH_MAP) return t;
    if (n->op == GRAPH_REDUCE && !strcmp(graph_word(n, GRAPH_ATTR_MODE, ""), "argmax"))
        return ISA_I64;
    if (n->op != GRAPH_MATMUL && n->op != GRAPH_CONV && n->op != GRAPH_CONVT) return t;
    t = shape_promote(t, n->inputs[1]->dtype);
    return isa_dtype_is_int(t) && isa_dtype_bits(t) <= 16 ? ISA_I32 : t;
}

bool graph_chain_is_int(const struct graph_node *n) {
    int64_t out = graph_int(n, GRAPH_ATTR_DTYPE, ISA_DTYPE_NONE);
    if (out == ISA_DTYPE_NONE && n->nout) out = n->outputs[0]->dtype;
    if (!isa_dtype_is_int((int)out)) return false;
    if (n->op != GRAPH_MAP && !isa_dtype_is_int(graph_own_dtype(n))) return false;
    for (int k = 0; k < 3; k++)
        if (n->chain_in[k] >= 0 && !isa_dtype_is_int(n->inputs[n->chain_in[k]]->dtype))
            return false;
    return true;
}

static npu_status check_source(const struct graph_node *n, int stage, int64_t src, bool have_tmp) {
    if (src == ISA_SRC_ACC) return NULL;
    if (src >= ISA_SRC_IN0 && src <= ISA_SRC_IN2) {
        int k = (int)(src - ISA_SRC_IN0);
        if (k == 0 && n->op != GRAPH_MAP) return NULL;
        if (n->chain_in[k] >= 0 && n->chain_in[k] < n->nin) return NULL;
        return npu_fail(BAD_INPUT, "stage %d of the chain reads in%d, which the node does not have",
                        stage, k);
    }
    if (src == ISA_SRC_TMP) {
        if (have_tmp) return NULL;
        return npu_fail(BAD_INPUT, "stage %d of the chain reads tmp, which no stage before saves",
                        stage);
    }
    if (src >= ISA_SRC_IMM0 && src <= ISA_SRC_IMM3) return NULL;
    return npu_fail(BAD_INPUT,
                    "stage %d of the chain has operand code %lld; a graph's chain takes acc, "
                    "in0..in2, tmp, imm0..imm3",
                    stage, (long long)src);
}

npu_status graph_chain_check(const struct graph_node *n) {
    bool ints = graph_chain_is_int(n), have_tmp = false;
    int special = 0;
    for (int s = 0; s < ISA_STAGES; s++) {
        const struct isa_stage *st = &n->chain.st[s];
        int64_t op = st->op;
        if (op < 0 || op >= (int64_t)(sizeof vops / sizeof *vops) || !vops[op].name)
            return npu_fail(BAD_INPUT, "stage %d of the chain has the unknown operation %lld", s,
                            (long long)op);
        if (op == ISA_VOP_APRED)
            return npu_fail(BAD_INPUT, "stage %d: apred belongs to instructions, not to graphs", s);
        if (vops[op].operands > 0) NPU_TRY(check_source(n, s, st->a, have_tmp));
        if (vops[op].operands > 1) NPU_TRY(check_source(n, s, st->b, have_tmp));
        if (vops[op].types == (ints ? 0 : 2))
            return npu_fail(BAD_INPUT, "stage %d: %s does not exist for %s", s, vops[op].name,
                            ints ? "integers" : "f32");
        if (vops[op].special && ++special > 1)
            return npu_fail(BAD_INPUT,
                            "stage %d: %s is the chain's second special function, one "
                            "is possible",
                            s, vops[op].name);
        have_tmp |= st->save != 0;
    }
    return NULL;
}
