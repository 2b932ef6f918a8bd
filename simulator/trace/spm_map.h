// SPDX-License-Identifier: Apache-2.0
//
// The scratchpad over time: which layer's data lies where and when. Data live from the write that
// brings them to their last read.
#ifndef SIMULATOR_TRACE_SPM_MAP_H
#define SIMULATOR_TRACE_SPM_MAP_H

#include "simulator/trace/trace.h"

enum { SPM_MAP_ROWS = 256, SPM_MAP_COLUMNS = 1024 };

struct spm_map {
    uint32_t rows, columns;
    uint64_t row_bytes;  ///< bytes of the scratchpad per row; the rows cover what the run uses
    uint32_t *cell;      ///< owned: [rows][columns], index of a layer + 1; 0: nothing lives
    uint64_t *live;      ///< owned, per column: bytes that live at most in it, whole rows
    uint64_t peak_bytes; ///< most of them
    uint32_t peak_column;
};

/// From a finished log and the layer (index, -1: none) of each tag of the run. A map without rows
/// when the log has no touches. NO_MEMORY. Release with spm_map_deinit.
NPU_MUST_USE npu_status spm_map_init(struct spm_map *m, const struct trace_run *run,
                                     const struct trace_log *log, const int *layer_of_tag);
void spm_map_deinit(struct spm_map *m);

#endif
