// SPDX-License-Identifier: Apache-2.0
// The fused attention kernel: its problem, its tiles, and how a tile of scores becomes
// probabilities.
//
// A query row is one row of one query head. Query heads that share a key head are `g` and stand
// beside each other, so that all views have the same dimensions: (batch..., g, row, column), the
// last batch dimension being the key heads. "row" is m of queries, mask and result, and s of keys
// and values; "column" is d of queries and keys, s of the mask, dv of values and result.
#ifndef NPU_LOWER_ATTENTION_H
#define NPU_LOWER_ATTENTION_H

#include "toolchain/lower/internal.h"

struct attn {
    int nb; // batch dimensions, at least 1
    int64_t batch[LOWER_DIMS], g, m, s, d, dv;
    struct lower_view q, k, v, mask, out;
    bool has_mask, keep; // keep: an integer mask, 0 hides the key
    enum isa_dtype dtype;
    float scale, cap, fill; // cap 0: none; fill: score of a hidden key
    bool zero_rows;
    bool low_on, high_on; // query i sees key j when i + low <= j (low_on), j <= i + high (high_on)
    int64_t low, high;
    bool all_keys; // hidden keys have a finite score: none may be left out
    bool mean;     // but a row that sees a key has next to nothing of them: they are left out, and
                   // a row that sees none gives the mean of all values
};

// True when every query sees the same keys.
bool attn_even(const struct attn *a);
// Keys that some of the query rows m0 .. m0 + rows - 1 sees, at least one; all when all_keys.
struct lower_range attn_keys(const struct attn *a, int64_t m0, int64_t rows);
// Pairs of query row and key within the window, of one query head.
int64_t attn_pairs(const struct attn *a);

// ---- attention_score.c: chains between the two products
// Which limits of the window cross a tile of scores; *_base: constant of the predicate over the
// tile's own row and column.
struct attn_edge {
    bool low, high;
    int64_t low_base, high_base; // col - row + low_base >= 0, row - col + high_base >= 0
};
struct attn_edge attn_edge_of(const struct attn *a, int64_t m0, int64_t rows, struct lower_range k);

struct attn_pass { // one V.MAP or V.RED: in0 the scores, in1 the mask, in2 the row's largest score
    struct isa_chain chain;
    int stages, imms;
    bool special, mask, pred;
    int64_t pred_base, pred_row, pred_col;
};
#define ATTN_PASSES 4
// The chain from raw products to final scores, cut into passes. When one pass does it and has room
// for the exponential, the scores are computed twice: for their maximum (a reduction) and for the
// probabilities (`power` from raw products). Otherwise they are stored back (`stored`), and `power`
// starts from final scores.
struct attn_scores {
    struct attn_pass pass[ATTN_PASSES], power;
    int n;
    bool stored;
};
void attn_scores_of(const struct attn *a, const struct attn_edge *e, struct attn_scores *out);

// ---- attention_plan.c
struct attn_tile {
    int64_t tb, tg, tm;   // key heads, query heads per key head, query rows
    int64_t tn, tv;       // keys; columns of the result that pass through PSUM at once
    bool split;           // blocks of keys of the second product go to PSUM rows of their own
    int lead;             // tiles by which scores run ahead of the second product: 0, 1, 2
    int heads;            // slots for all keys and values of a head; 0: they come tile by tile
    bool whole_mask;      // the mask is loaded once, as a whole
    double cycles, score; // score: cycles, and a charge for transfers
    int64_t bytes;        // scratchpad
};
struct attn_streams {
    struct lower_stream q, k, v, mask, out;
    int64_t score_row, out_row; // elements of a PSUM row of scores, of results
    int64_t parts;              // PSUM results of the second product per tile: 1 unless split
    int64_t pitch;              // elements between rows of probabilities
    int64_t score_bytes, out_bytes, power_bytes, stat_bytes, sum_bytes; // of one slot
};
// Slots of probabilities and of results in PSUM; scores have lead + 1.
int attn_pair(const struct attn_tile *t);
// True when a query row's keys may take several tiles.
bool attn_streaming(const struct attn *a, const struct attn_tile *t);
void attn_streams_init(const struct lower *L, const struct attn *a, const struct attn_tile *t,
                       struct attn_streams *s);
npu_status attn_choose(const struct lower *L, const struct attn *a, struct attn_tile *out);

// ---- attention_keys.c: the operands of an item
struct attn_item {
    int64_t number, tile;               // of all items; of all tiles of query rows
    int64_t at[LOWER_DIMS], tb, tg, tm; // batch..., g, m
    struct lower_range keys;
    bool first, last; // keys of these rows
    int64_t before;   // items of these rows before this one
    struct attn_scores scores;
    struct lower_view mask, mean;
};
// Start and size of the item's part of an operand whose row is a key (keys) or a query row.
void attn_part(const struct attn *a, const struct attn_item *it, bool keys, int64_t columns,
               int64_t *start, int64_t *size);
// Keys or values. Those of a head (or of tb heads) are held while its query rows pass: rows come as
// they are asked for, and those of the next head a part with each item.
struct attn_held {
    struct lower_stream *s;
    int64_t columns, tb;
    bool whole_heads;        // else every item loads its own rows
    struct lower_range rows; // that some query sees
    int64_t chunk;           // rows of the next head per item
    int slot;                // of the head that the items are at
    int64_t begun;           // that head's first item
    int64_t done, ahead;     // rows of this head, of the next one, are there up to these
};
void attn_hold(const struct lower *L, const struct attn *a, const struct attn_tile *t,
               struct lower_stream *s, int64_t columns, struct attn_held *h);
// The item's keys on chip.
struct lower_view attn_fetch(struct lower *L, const struct attn *a, struct attn_held *h,
                             const struct attn_item *it);
// Loads part of the next head's; nothing of the head before is used any more.
void attn_fetch_ahead(struct lower *L, const struct attn *a, struct attn_held *h,
                      const struct attn_item *it);

// True for the first item of a head, or of heads that are held together.
bool attn_begins_head(const struct attn *a, const struct attn_item *it);
// All rows of the item's heads, or of all heads from the first on when they are on chip.
struct lower_view attn_fetch_all(struct lower *L, const struct attn *a, struct attn_held *h,
                                 const struct attn_item *it, bool all_heads);

// ---- attention_mean.c: the mean of all values; parts 0: not needed
struct attn_mean {
    int64_t heads, block, parts; // key heads at once, keys of a product, products
    bool merged;                 // all heads are columns of one product
    int64_t row, part_elems;     // PSUM elements of a product's result, of a block of keys
    int ones, mean, sums;        // buffers
    int64_t count;               // means begun
    int64_t now, item;           // key heads of the one that is not ended, its first item
};
void attn_mean_plan(const struct lower *L, const struct attn *a, const struct attn_tile *t,
                    struct attn_mean *m);
int64_t attn_mean_psum_bytes(const struct attn_mean *m);
int64_t attn_mean_spm_bytes(const struct attn *a, const struct attn_mean *m);
// Of the whole kernel, on the matrix engine.
double attn_mean_cycles(const struct lower *L, const struct attn *a, const struct attn_mean *m);
void attn_mean_open(struct lower *L, const struct attn *a, struct attn_mean *m);
// The products. values: all rows of `heads` key heads; item: the first that needs the mean.
void attn_mean_begin(struct lower *L, const struct attn *a, struct attn_mean *m,
                     const struct lower_view *values, int64_t heads, int64_t item);
// The reduction, when that item or a later one asks.
void attn_mean_end(struct lower *L, const struct attn *a, struct attn_mean *m, int64_t item);
// The last mean begun, of key heads from `head` on: dimensions (batch..., g, row, column).
struct lower_view attn_mean_view(const struct attn *a, const struct attn_mean *m, int64_t head);

// ---- attention_run.c
void attn_run(struct lower *L, const struct attn *a, const struct attn_tile *t);

#endif
