// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: places of values, strided views, streams of tiles, the cost
// model, kernel cores.
//
// Dimensions are counted outermost first here, as in the graph; tile patterns count innermost
// first, and only block.c turns one into the other.
#ifndef NPU_LOWER_INTERNAL_H
#define NPU_LOWER_INTERNAL_H

#include "toolchain/lower/lower.h"

#define LOWER_DIMS 16

// A strided block of a buffer: element (i0, i1, ...) lies at offset bytes + sum(i_d * stride[d])
// elements of dtype.
struct lower_view {
    bool chip;     // a value that stays in the scratchpad: no loads, no stores
    int buf, slot; // buf -1 (in prices only): slot is the space
    enum isa_dtype dtype;
    int64_t offset;             // bytes inside the slot
    int64_t stride[LOWER_DIMS]; // elements, one per dimension of the kernel's iteration space; 0
                                // repeats
};

struct lower {
    const struct graph *g;
    const struct hw *hw;
    struct lower_options opt;
    struct tile_program *p;
    struct arena *a;
    struct lower_view
        *place; // by value id: where the value lies in DRAM, one stride per logical dimension
    bool *placed;
    bool texts;         // kernels get op and text for people
    const char **label; // by value id: its name for people; NULL where no kernel makes it
    const struct graph_node *node;
    struct tile_kernel *kernel;
    int slots;               // of a streamed buffer
    struct lower_memo *memo; // choices of tile sizes, of this and other lowerings
    int64_t resident_bytes;  // of values in the scratchpad while the current node runs
};

// ---- block.c: instructions over blocks of any rank
struct lower_use {
    const struct lower_view *view;
    int pat;    // pattern number in the instruction
    bool outer; // its pattern has no inner dimensions (result of a reduction)
};
struct lower_block {
    const struct isa_insn *proto; // payload fields that are no patterns
    enum tile_phase phase;
    int rank;
    int64_t size[LOWER_DIMS];
    int inner; // the last `inner` dimensions are reduced; 0: none
    struct lower_use use[TILE_OPERANDS];
    int nuse;
    double *price; // not NULL: nothing is emitted, the instructions' cycles are added here
};
// Emits the instruction over the block, as several where the pattern has too few dimensions.
// Reductions: sets red_dims.
void lower_block_emit(struct lower *L, const struct lower_block *b);
// dst[i] = convert(src[i]).
void lower_copy(struct lower *L, enum tile_phase phase, int rank, const int64_t *size,
                const struct lower_view *src, const struct lower_view *dst);
void lower_fill(struct lower *L, enum tile_phase phase, int rank, const int64_t *size,
                const struct lower_view *dst, float value);
// out = chain(in0, in1, in2); absent inputs NULL.
void lower_map(struct lower *L, int rank, const int64_t *size, const struct isa_chain *chain,
               const struct lower_view *const in[3], const struct lower_view *out);
// Cycles of that on the vector engine. Views without a buffer have their space in slot.
double lower_map_cycles(const struct lower *L, int rank, const int64_t *size,
                        const struct isa_chain *chain, const struct lower_view *const in[3],
                        const struct lower_view *out);
// out[outer] = reduction over the last `inner` dimensions of chain(in0, in1, in2); accumulate:
// combined with out's value.
struct lower_red {
    enum isa_red red;
    bool accumulate;
    int inner;
    const struct isa_chain *chain; // NULL: none
};
void lower_reduce_block(struct lower *L, const struct lower_red *red, int rank, const int64_t *size,
                        const struct lower_view *const in[3], const struct lower_view *out);
// The same over the last dimension only, without a chain, as a tree of V.MAPs along the others.
// temp: an on-chip view of half that dimension.
void lower_reduce_tree(struct lower *L, const struct lower_red *red, int rank, const int64_t *size,
                       const struct lower_view *x, const struct lower_view *temp,
                       const struct lower_view *result);
// lower_map, and the reduction of the unrounded result into red_out.
void lower_map_reduce(struct lower *L, const struct lower_red *red, int rank, const int64_t *size,
                      const struct lower_view *const in[3], const struct lower_view *out,
                      const struct lower_view *red_out);

// Notes the matrix product of the current kernel, for its report; of several products none is kept.
void lower_product(struct lower *L, int64_t batch, int64_t m, int64_t n, int64_t k,
                   enum isa_dtype dtype);

// ---- memo.c: choices by what they depend on
struct lower_memo *lower_memo_new(struct arena *a); // everything in it lies in that arena
// Room for the choice that belongs to a key (compared byte by byte: clear it, padding too, before
// filling it); *known: it was made before. Otherwise it is zero, and the caller fills it.
void *lower_memo_at(const struct lower *L, const void *key, size_t key_bytes, size_t choice_bytes,
                    bool *known);

// ---- text.c: kernels as people read them
// Gives values short names, once they are placed: L->label.
void lower_label(struct lower *L);
// Op and text of the kernels from `first` on, which n became.
void lower_describe(struct lower *L, const struct graph_node *n, int first);

// Indices lo .. hi - 1.
struct lower_range {
    int64_t lo, hi;
};

// ---- view.c
int64_t lower_ceil(int64_t a, int64_t b);
int64_t lower_min(int64_t a, int64_t b);
int64_t lower_max(int64_t a, int64_t b);
int64_t lower_elems(int rank, const int64_t *size);
int64_t lower_dtype_bytes(enum isa_dtype t);
// The view moved to an index.
struct lower_view lower_at(const struct lower_view *v, int rank, const int64_t *index);
// The place of a value broadcast to `rank` dimensions of sizes `size` (aligned at the last one).
struct lower_view lower_broadcast(const struct lower *L, const struct graph_value *v, int rank,
                                  const int64_t *size);
// Strides of a packed block in the storage order of `v`: dimensions of stride 0 take no room.
// Returns its elements.
int64_t lower_pack(const struct lower_view *v, int rank, const int64_t *block, int64_t *pack);
// Dimensions of stride other than 0, outermost in memory first. Returns their number.
int lower_by_stride(const struct lower_view *v, int rank, int *order);
// New dimension d is old dimension order[d].
void lower_permute(struct lower_view *v, int rank, const int *order);
// Next tile of the grid, innermost dimension fastest; false after the last, `at` is then all zero.
bool lower_next(int rank, const int64_t *size, const int64_t *tile, int64_t *at);
// Swaps dimensions d and d + 1.
void lower_permute_last(struct lower_view *v, int d);
// Merges neighbouring dimensions that are contiguous in every view, drops dimensions of size 1.
// Returns the new rank.
int lower_merge(int rank, int64_t *size, int nview, struct lower_view *const *views);

// ---- stream.c: tiles of an operand
// --------------------------------------------------------------------------------------- An
// operand of a kernel, in DRAM, fetched block by block into slots taken in turn. A block that a
// slot still holds is not loaded again. `whole`: there is room for all of it, and each part is
// loaded once. An operand on chip is used where it lies.
struct lower_held {
    bool valid;
    int64_t start[LOWER_DIMS], size[LOWER_DIMS];
};
struct lower_stream {
    const char *name;
    struct lower_view src;
    enum isa_dtype dtype; // on chip
    int rank;
    int64_t full[LOWER_DIMS], block[LOWER_DIMS], pack[LOWER_DIMS];
    int64_t bytes; // of one slot
    int slots, buf, next;
    bool whole, present;
    int64_t first[LOWER_DIMS]; // what the first load brings: the block as asked for, or a cell of a
                               // whole operand
    struct lower_held held[8];
    bool *loaded; // of a whole operand: by cell
};
// Prepares a stream and sets bytes; nothing is allocated before lower_stream_open(). full: sizes of
// the iteration space; block: the largest block.
struct lower_grid {
    int rank;
    const int64_t *full, *block;
};
void lower_stream_init(struct lower_stream *s, const char *name, const struct lower_view *src,
                       struct lower_grid grid, int slots, bool whole);
// Loads that bring a whole operand in once, in blocks as asked for.
double lower_whole_loads(const struct lower_stream *s);
// Makes neighbours in dimension `dim`, which the engines will walk innermost though it is not
// contiguous, lie an odd number of scratchpad words apart: then they are in different banks.
void lower_stream_spread(const struct lower *L, struct lower_stream *s, int dim);
int64_t lower_stream_bytes(const struct lower_stream *s); // all slots; 0 when absent
// Adds what a stream's transfers take to a step's cost: `loads` distinct blocks, or a whole operand
// once; first: the step waits for the first of them before it computes. Nothing when absent.
struct lower_step;
void lower_stream_cost(const struct lower *L, const struct lower_stream *s, double loads,
                       bool first, struct lower_step *sum);
void lower_stream_open(struct lower *L, struct lower_stream *s);
// The block [start, start + size) on chip, loaded if no slot holds it.
struct lower_view lower_stream_fetch(struct lower *L, struct lower_stream *s, const int64_t *start,
                                     const int64_t *size);
// The other way: a slot to write a block of the result into, and its store.
struct lower_view lower_sink_tile(struct lower_stream *s, const int64_t *start);
void lower_sink_store(struct lower *L, struct lower_stream *s, const struct lower_view *tile,
                      const int64_t *start, const int64_t *size);

// ---- cost.c
// DMA cycles of moving a block of a DRAM view, alone on one engine, and its bytes in whole bursts.
double lower_dma_cycles(const struct lower *L, const struct lower_view *dram, int rank,
                        const int64_t *size);
double lower_dma_bytes(const struct lower *L, const struct lower_view *dram, int rank,
                       const int64_t *size);
int lower_chain_stages(const struct isa_chain *chain, bool *special);
double lower_vec_cycles(const struct lower *L, int64_t elems, int inputs,
                        const struct isa_chain *chain);
// Cycles that the scratchpad's banks need to give `elems` elements of a pattern (sizes and strides
// innermost first).
double lower_bank_cycles(const struct lower *L, enum isa_dtype t, int ndim, const int64_t *size,
                         const int64_t *stride, double elems);
// Cycles of n equal steps of that much loading (one engine's cycles), computing and storing.
struct lower_step {
    double dma_cycles, dma_bytes, mxu_cycles, vec_cycles;
    int64_t spm_bytes;                // of all buffers
    double first_cycles, first_bytes; // loaded before the first computing; 0: as dma_*
};
double lower_steps_cycles(const struct lower *L, double nstep, const struct lower_step *s);
// The same where each of `tiles` results passes through one of `slots` PSUM buffers, which it holds
// from its first product (whose results take `latency` cycles more) until the vector engine has
// read it.
double lower_psum_cycles(const struct lower *L, double nstep, const struct lower_step *s,
                         double tiles, double latency, int slots);
int64_t lower_spm(
    const struct lower *L,
    bool all); // what values leave to a kernel: its share (opt.spm_percent), or everything
int64_t lower_psum_rows(const struct lower *L); // rows of 4 C bytes
npu_status lower_no_fit(const struct lower *L, int n, const char *const *names,
                        const int64_t *bytes);

// ---- stat.c: statistics of rows, which are the last `inner` of `rank` dimensions
// Strides of one value per row of a tile, 0 along the row. Returns how many there are.
int64_t lower_stat_strides(int rank, int inner, const int64_t *tile, int64_t *stride);
bool lower_whole_rows(int rank, int inner, const int64_t *size, const int64_t *tile);

// ---- climb.c: tile sizes by hill climbing
struct lower_found {
    int64_t tile[LOWER_DIMS];
    double cycles;
    int64_t bytes; // scratchpad
};
struct lower_climb {
    int rank;
    const int64_t *size;
    const int64_t *from;                             // the smallest tile; NULL: all 1
    void (*price)(void *ctx, struct lower_found *t); // sets cycles and bytes from tile
    void *ctx;
};
// The cheapest tile found; its bytes exceed the scratchpad when nothing fits.
struct lower_found lower_climb_run(const struct lower *L, const struct lower_climb *c);

// ---- cores
// out[i] = chain(in0[i], in1[i], in2[i]) over a space of DRAM views.
struct lower_affine {
    int rank;
    int64_t size[LOWER_DIMS];
    const struct isa_chain *chain; // NULL: copy
    bool has[3];
    struct lower_view in[3], out;
};
npu_status lower_affine_run(struct lower *L, const struct lower_affine *given);

// out[pre, i, post] = x[pre, index[i], post]: x over `rank` dimensions of sizes dims, index a
// vector of `count` in DRAM, out over the same dimensions with `axis` of size count.
struct lower_pick {
    int rank, axis;
    int64_t dims[LOWER_DIMS];
    struct lower_view x, out;
    int64_t count;
    struct lower_view index; // one dimension
};
npu_status lower_pick_run(struct lower *L, const struct lower_pick *g);

// Chain with one stage before all others; false when it has no room.
bool lower_chain_prepend(struct isa_chain *chain, enum isa_vop op, float imm);
// Reorders dimensions so that those marked stand last, each group by the first view's storage, and
// merges within the groups. Returns the rank; *inner is the number of marked dimensions left (at
// least 1, of size 1 if there were none).
int lower_group(int rank, int64_t *size, const bool *marked, int nview,
                struct lower_view *const *views, int *inner);

// The chain that follows the op's own result (IN0), its operands as DRAM views over the output's
// logical dimensions.
struct lower_epilogue {
    struct isa_chain chain; // all NOP when the node has none
    bool has[3];            // [0] never
    struct lower_view in[3];
};
struct lower_epilogue lower_epilogue_of(const struct lower *L, const struct graph_node *n);

// Starts the node's kernel; `kernel` is its name unless a pass gave one. Fills byte counts.
void lower_kernel(struct lower *L, const struct graph_node *n, const char *kernel);

// ---- resident.c: values that stay in the scratchpad between kernels
// ----------------------------------------------------------- Moves some scratch values from DRAM
// to the scratchpad; live[i]: their bytes while the i-th node of the graph runs. Returns the most
// of live[].
int64_t lower_reside(struct lower *L, int percent, int64_t *live);

// ---- storage.c
npu_status lower_storage(struct lower *L);
// True when the node's result is its input as a view, or contains all its inputs: no kernel.
bool lower_is_alias(const struct lower *L, const struct graph_node *n);
// True when input k of a concat already lies in its part of the result.
bool lower_is_part(const struct lower *L, const struct graph_node *n, int k);

// One function per row of lower.def.
#define LOWER_OP(N, fn) npu_status lower_##fn(struct lower *L, const struct graph_node *n);
#include "toolchain/lower/lower.def"

#endif
