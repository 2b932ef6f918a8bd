// SPDX-License-Identifier: Apache-2.0
// Statistics of rows: one value per row, laid out beside the tile that it belongs to.
#include "toolchain/lower/internal.h"

int64_t lower_stat_strides(int rank, int inner, const int64_t *tile, int64_t *stride) {
    int64_t n = 1;
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = d < rank - inner ? n : 0;
        if (d < rank - inner) n *= tile[d];
    }
    return n;
}

bool lower_whole_rows(int rank, int inner, const int64_t *size, const int64_t *tile) {
    for (int d = rank - inner; d < rank; d++)
        if (tile[d] != size[d]) return false;
    return true;
}
