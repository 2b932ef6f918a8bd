// SPDX-License-Identifier: Apache-2.0
// Rates derived from the hardware parameters, as people quote them. Apart from hw.c because of the
// floating point, which the command processor's firmware does not want.
#include "isa/hw.h"
#include "isa/timing.h"

double hw_peak_macs_per_s(const struct hw *hw, int dtype) {
    const double per_cycle =
        (double)(hw->mxu_rows * hw->mxu_cols) * 2.0 / (double)isa_time_row_half_cycles(hw, dtype);
    return per_cycle * (double)hw->clock_npu_mhz * 1e6;
}

double hw_dram_bytes_per_s(const struct hw *hw) {
    return (double)(hw_dram_mega_transfers(hw) * hw->dram_channel_bits * hw->dram_channels) * 1e6 /
           8.0;
}

double hw_dram_bytes_per_cycle(const struct hw *hw) {
    return hw_dram_bytes_per_s(hw) / ((double)hw->clock_npu_mhz * 1e6);
}

double hw_ridge_macs_per_byte(const struct hw *hw, int dtype) {
    const double bytes = hw_dram_bytes_per_s(hw);
    return bytes > 0.0 ? hw_peak_macs_per_s(hw, dtype) / bytes : 0.0;
}
