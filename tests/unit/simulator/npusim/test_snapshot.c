// SPDX-License-Identifier: Apache-2.0
// Catching what layers store: strides, several writes, neighbours and other layers, what is
// missing.
#include <criterion/criterion.h>

#include <string.h>

#include "simulator/npusim/snapshot.h"

// A [2,3] f16 result in the scratchpad, columns innermost-but-transposed: element (i, j) lies at
// 100 + 2 (i + 2 j).
static const struct npu_image_result turned = {.name = "r",
                                               .first_tag = 3,
                                               .last_tag = 4,
                                               .space = ISA_SPM,
                                               .dtype = ISA_F16,
                                               .rank = 2,
                                               .dims = {2, 3},
                                               .strides = {1, 2},
                                               .address = 100};

struct rig {
    struct hw hw;
    struct npu_image_result results[2];
    struct npu_image_record record;
    struct snapshots s;
};

static void init(struct rig *r) {
    memset(r, 0, sizeof *r);
    hw_defaults(&r->hw);
    r->results[0] = (struct npu_image_result){.name = "other",
                                              .first_tag = 9,
                                              .last_tag = 9,
                                              .space = ISA_DRAM,
                                              .dtype = ISA_I32,
                                              .rank = 0,
                                              .address = 100};
    r->results[1] = turned;
    r->record = (struct npu_image_record){.results = r->results, .nresults = 2};
    npu_status st = snapshots_init(&r->s, &r->record, &r->hw);
    cr_assert(!st);
}

// n elements of a vector with that distance in bytes.
static void put(struct rig *r, uint32_t tag, int space, int64_t at, int64_t n, int64_t step,
                uint16_t first) {
    uint8_t memory[64] = {0};
    struct exec_foot f = {.lo = at, .hi = at + (n - 1) * step + 2, .run = 2, .dims = n > 1};
    f.size[0] = n;
    f.stride[0] = step;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t v = (uint16_t)(first + i);
        memcpy(memory + i * step, &v, 2);
    }
    snapshots_write(&r->s, &(struct exec_place){.tag = tag}, space, &f, memory);
}

static void expect(struct rig *r, const uint16_t want[6], uint64_t missing) {
    uint16_t got[6] = {0};
    cr_assert_str_eq(r->s.item[0].result->name, "r");
    cr_expect_eq(snapshot_unpack(&r->s.item[0], got), missing);
    for (int i = 0; i < 6; i++)
        cr_expect(got[i] == want[i], "element %d is %d, expected %d", i, got[i], want[i]);
}

Test(snapshot, elements_come_out_row_major) {
    struct rig r;
    init(&r);
    put(&r, 3, ISA_SPM, 100, 3, 4, 10); // (0, 0..2)
    put(&r, 4, ISA_SPM, 102, 3, 4, 20); // (1, 0..2)
    expect(&r, (const uint16_t[]){10, 11, 12, 20, 21, 22}, 0);
    put(&r, 3, ISA_SPM, 104, 1, 2, 77); // the last write counts
    expect(&r, (const uint16_t[]){10, 77, 12, 20, 21, 22}, 0);
    snapshots_deinit(&r.s);
}

Test(snapshot, others_do_not_count) {
    struct rig r;
    init(&r);
    put(&r, 3, ISA_SPM, 96, 8, 2, 1);    // from before it to behind it: 3..8 fall on it
    put(&r, 5, ISA_SPM, 100, 6, 2, 50);  // a later layer in its place
    put(&r, 2, ISA_SPM, 100, 6, 2, 60);  // an earlier one
    put(&r, 3, ISA_DRAM, 100, 6, 2, 70); // the same address elsewhere
    expect(&r, (const uint16_t[]){3, 5, 7, 4, 6, 8}, 0);
    uint32_t scalar = 5;
    cr_expect_eq(snapshot_unpack(&r.s.item[1], &scalar), 1);
    cr_expect_eq(scalar, 0);
    snapshots_deinit(&r.s);
}

Test(snapshot, what_is_missing_is_counted) {
    struct rig r;
    init(&r);
    expect(&r, (const uint16_t[]){0, 0, 0, 0, 0, 0}, 6);
    put(&r, 3, ISA_SPM, 104, 2, 2, 8); // (0, 1), (1, 1)
    expect(&r, (const uint16_t[]){0, 8, 0, 0, 9, 0}, 4);
    snapshot_drop(&r.s.item[0]);
    put(&r, 3, ISA_SPM, 104, 2, 2, 8); // nobody asks any more
    snapshots_deinit(&r.s);
}

Test(snapshot, a_result_outside_the_scratchpad_is_refused) {
    struct rig r;
    init(&r);
    snapshots_deinit(&r.s);
    r.results[1].address = (uint64_t)r.hw.spm_bytes - 11;
    npu_status st = snapshots_init(&r.s, &r.record, &r.hw);
    cr_assert_eq(npu_status_code(st), NPU_BAD_INPUT);
    cr_expect(strstr(npu_status_message(st), "result 'r' ends at 0x") != NULL);
    npu_status_free(st);
    snapshots_deinit(&r.s);
}
