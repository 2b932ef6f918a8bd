// SPDX-License-Identifier: Apache-2.0
//
// The range allocator against a map of bytes, and opening through a table.

#include <criterion/criterion.h>
#include <string.h>

#include "runtime/api.h"
#include "tests/unit/runtime/fake_device.h"
#include "tests/unit/runtime/sample_image.h"

Test(ranges, first_fit_and_joining) {
    struct npu_ranges r;
    uint64_t a, b, c, d;
    npu_ranges_init(&r, 1000);
    expect_ok(npu_ranges_alloc(&r, 100, 1, &a));
    expect_ok(npu_ranges_alloc(&r, 100, 64, &b));
    expect_ok(npu_ranges_alloc(&r, 0, 1, &c)); // counts as one byte, in the gap
    cr_expect_eq(a, 0);
    cr_expect_eq(b, 128);
    cr_expect_eq(c, 100);
    expect_failure(npu_ranges_alloc(&r, 773, 1, &d), NPU_NO_FIT, "773 bytes of device memory");
    expect_ok(npu_ranges_alloc(&r, 772, 1, &d));
    cr_expect_eq(d, 228);
    npu_ranges_release(&r, a);
    npu_ranges_release(&r, c);
    npu_ranges_release(&r, 55); // unknown: nothing happens
    expect_ok(npu_ranges_alloc(&r, 128, 128, &a));
    cr_expect_eq(a, 0);
    npu_ranges_deinit(&r);
}

Test(ranges, absurd_sizes) {
    struct npu_ranges r;
    uint64_t a;
    npu_ranges_init(&r, 1000);
    expect_failure(npu_ranges_alloc(&r, UINT64_MAX, 1, &a), NPU_NO_FIT, "it has 1000");
    expect_ok(npu_ranges_alloc(&r, 10, 1, &a));
    expect_failure(npu_ranges_alloc(&r, 1, UINT64_C(1) << 63, &a), NPU_NO_FIT, "1 bytes");
    cr_expect_eq(npu_ranges_find(&r, 0, UINT64_MAX), 0);
    cr_expect_eq(npu_ranges_find(&r, UINT64_MAX, 1), 0);
    cr_expect_eq(npu_ranges_find(&r, 10, 0), 10);
    cr_expect_eq(npu_ranges_find(&r, 11, 0), 0);
    npu_ranges_deinit(&r);
}

Test(ranges, random_against_a_map) {
    enum { BYTES = 4096, SLOTS = 64 };
    static uint8_t owner[BYTES];
    struct {
        uint64_t start, bytes;
        bool used;
    } slots[SLOTS] = {{0}};
    struct npu_ranges r;
    npu_ranges_init(&r, BYTES);
    uint64_t state = 1;
    for (int step = 0; step < 20000; step++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        size_t k = state >> 58;
        uint64_t bytes = (state >> 40) % 200 + 1, alignment = UINT64_C(1) << ((state >> 33) % 8);
        if (slots[k].used) {
            npu_ranges_release(&r, slots[k].start);
            memset(owner + slots[k].start, 0, slots[k].bytes);
            slots[k].used = false;
            continue;
        }
        npu_status st = npu_ranges_alloc(&r, bytes, alignment, &slots[k].start);
        if (st) {
            cr_assert_eq(npu_status_code(st), NPU_NO_FIT);
            npu_status_free(st);
            continue;
        }
        cr_assert_eq(slots[k].start % alignment, 0);
        cr_assert(slots[k].start + bytes <= BYTES);
        for (uint64_t i = 0; i < bytes; i++)
            cr_assert_eq(owner[slots[k].start + i], 0);
        memset(owner + slots[k].start, 1, bytes);
        slots[k].bytes = bytes;
        slots[k].used = true;
    }
    npu_ranges_deinit(&r);
}

Test(device, open_close_and_counters) {
    struct fake_config config = {.dram_bytes = 1000};
    struct npu_device *device;
    expect_ok(npu_device_open(&fake_ops, &config, &device));
    cr_expect_str_eq(npu_device_name(device), "fake");
    struct npu_counter counters[3];
    cr_expect_eq(npu_device_counters(device, NULL, 0), 2);
    cr_expect_eq(npu_device_counters(device, counters, 1), 2);
    cr_expect_eq(npu_device_counters(device, counters, 3), 2);
    cr_expect_str_eq(counters[1].name, "submissions");
    npu_device_close(device);
    cr_expect_eq(config.closed, 1);
    npu_device_close(NULL);
}

Test(device, refusals) {
    struct fake_config config = {.fail_open = true};
    struct npu_device *device;
    expect_failure(npu_device_open(&fake_ops, &config, &device), NPU_IO, "opening device 'fake'");
    cr_expect_null(device);
    expect_failure(npu_device_open(NULL, NULL, &device), NPU_USAGE, "no device table");
    struct npu_device_ops ops = fake_ops;
    ops.version = 99;
    expect_failure(npu_device_open(&ops, &config, &device), NPU_USAGE, "version 99");
    ops = fake_ops;
    ops.submit = NULL;
    expect_failure(npu_device_open(&ops, &config, &device), NPU_USAGE, "no entry 'submit'");
}
