// SPDX-License-Identifier: Apache-2.0
//
// Reset entry of the RV32 management core: traps, stack and global pointer, zeroed .bss, then C. A trap is
// a mistake of the firmware: it is recorded in registers that the host can read, and the core sleeps.

    .option arch, +zicsr        // control registers are an extension of their own for the assembler
    .section .text.start, "ax"
    .globl _start
_start:
    csrw    mie, zero
    la      t0, trap
    csrw    mtvec, t0
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    la      sp, __stack_top
    la      t0, __bss_start
    la      t1, __bss_end
1:  bgeu    t0, t1, 2f
    sw      zero, 0(t0)
    addi    t0, t0, 4
    j       1b
2:  li      t0, 0x800           // external interrupts end wfi; mstatus.MIE stays 0, so they do not trap
    csrw    mie, t0
    call    rv32_main
    j       sleep

    .balign 4
trap:
    csrr    a0, mcause
    csrr    a1, mepc
    call    rv32_trapped
sleep:
    csrw    mie, zero
    wfi
    j       sleep
