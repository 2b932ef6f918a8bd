// SPDX-License-Identifier: Apache-2.0
//
// Wire forms of isa/mmio.h.

#include "isa/mmio.h"

#include <criterion/criterion.h>
#include <string.h>

Test(mmio, descriptor_bytes) {
    struct ring_desc d = {
        .version = 1, .size = 192, .flags = 1, .cookie = 0x1122334455667788, .dram_base = 64};
    d.doorbell[15] = 0xff00000000000001;
    uint8_t wire[RING_DESC_BYTES];
    memset(wire, 0xee, sizeof wire);
    ring_desc_encode(&d, wire);
    static const uint8_t start[] = {1,    0,    192,  0,    1,    0,    0,    0, 0x88,
                                    0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 64};
    cr_expect_eq(memcmp(wire, start, sizeof start), 0);
    cr_expect(wire[184] == 1 && wire[191] == 0xff);
    struct ring_desc back;
    ring_desc_decode(wire, &back);
    cr_expect_eq(memcmp(&back, &d, sizeof d), 0);
}

Test(mmio, completion_bytes) {
    struct ring_done d = {0};
    uint8_t wire[RING_DONE_BYTES];
    d.status = RING_STATUS_FAULT;
    d.fault_tag = 0xdeadbeef;
    d.sequence = 0x1234567890; // cut to 4 bytes
    ring_done_encode(&d, wire);
    cr_expect(wire[4] == 2 && wire[60] == 0x90 && wire[63] == 0x34);
    struct ring_done back;
    ring_done_decode(wire, &back);
    cr_expect_eq(back.fault_tag, 0xdeadbeef);
    cr_expect_eq(back.sequence, 0x34567890);
}

Test(mmio, statuses_have_meanings) {
    cr_expect_str_eq(ring_status_meaning(RING_STATUS_DONE), "the program halted");
    cr_expect_str_eq(ring_status_meaning(0), "unknown status");
}
