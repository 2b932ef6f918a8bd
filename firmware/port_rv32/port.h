// SPDX-License-Identifier: Apache-2.0
//
// The firmware's port on the RV32 management core, and what start.S calls.
#ifndef FIRMWARE_PORT_RV32_PORT_H
#define FIRMWARE_PORT_RV32_PORT_H

#include "firmware/fw.h"

/// Registers at __npu_mmio; host memory through the copy registers.
extern const struct fw_port rv32_port;

/// What start.S jumps to: the command loop, or the self-test in its stead.
void rv32_main(void);

/// Records a trap where the host can read it.
void rv32_trapped(uint32_t cause, uint32_t pc);

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);

#endif
