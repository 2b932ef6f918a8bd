// SPDX-License-Identifier: Apache-2.0
//
// The map of the scratchpad: data live from the write that brings them to their last read.
#include "simulator/trace/spm_map.h"

#include <criterion/criterion.h>
#include <string.h>

struct fixture {
    struct hw hw;
    struct trace_tag tag[2];
    struct trace_run run;
    struct trace_log log;
    int layer[2];
};

static void fixture_init(struct fixture *f) {
    memset(f, 0, sizeof *f);
    hw_defaults(&f->hw);
    f->hw.spm_bytes = 256 * 16; // a row is 16 bytes
    f->tag[0].tag = 7;
    f->tag[1].tag = 9;
    f->layer[0] = 0;
    f->layer[1] = 1;
    f->run = (struct trace_run){.hw = &f->hw, .cycles = 1024, .tag = f->tag, .ntag = 2};
}

// An instruction over [start, done) that reads or writes bytes [lo, hi).
static void touch(struct fixture *f, uint32_t tag, uint64_t start, uint64_t done, bool write,
                  uint32_t lo, uint32_t hi) {
    const uint64_t seq = f->log.count;
    trace_log_add(&f->log, &(struct trace_event){.seq = seq,
                                                 .tag = tag,
                                                 .start = start,
                                                 .read = done,
                                                 .issued = done,
                                                 .done = done});
    trace_log_touch(&f->log, &(struct trace_touch){.seq = seq, .lo = lo, .hi = hi, .write = write});
}

static uint32_t cell(const struct spm_map *m, uint32_t row, uint32_t column) {
    return m->cell[(size_t)row * m->columns + column];
}

Test(spm_map, from_write_to_last_read) {
    struct fixture f;
    struct spm_map m;
    fixture_init(&f);
    touch(&f, 7, 100, 110, true, 0, 32);    // rows 0, 1
    touch(&f, 7, 111, 120, true, 32, 40);   // part of row 2
    touch(&f, 9, 200, 300, false, 0, 16);   // row 0 lives till 300
    touch(&f, 9, 400, 500, true, 0, 16);    // then another layer's
    touch(&f, 9, 600, 650, false, 0, 16);   // till 650
    touch(&f, 9, 700, 800, false, 64, 128); // nobody wrote it
    cr_assert_null(trace_log_finish(&f.log));
    cr_assert_null(spm_map_init(&m, &f.run, &f.log, f.layer));
    cr_assert_eq(m.rows, 256);
    cr_assert_eq(m.columns, 1024);
    cr_assert_eq(m.row_bytes, 16);
    for (uint32_t c = 0; c < m.columns; c++) {
        cr_expect_eq(cell(&m, 0, c),
                     c >= 100 && c <= 300   ? 1U
                     : c >= 400 && c <= 650 ? 2U
                                            : 0U,
                     "column %u", c);
        cr_expect_eq(cell(&m, 1, c), c >= 100 && c <= 110 ? 1U : 0U, "column %u", c);
        cr_expect_eq(cell(&m, 2, c), c >= 111 && c <= 120 ? 1U : 0U, "column %u", c);
        for (uint32_t r = 3; r < m.rows; r++)
            cr_assert_eq(cell(&m, r, c), 0);
    }
    cr_expect_eq(m.peak_bytes, 32);
    cr_expect_eq(m.peak_column, 100);
    spm_map_deinit(&m);
    trace_log_free(&f.log);
}

Test(spm_map, writing_in_parts_goes_on) {
    struct fixture f;
    struct spm_map m;
    fixture_init(&f);
    touch(&f, 7, 10, 20, true, 0, 8);
    touch(&f, 7, 500, 520, true, 8, 16); // the same row, nobody has read
    cr_assert_null(trace_log_finish(&f.log));
    cr_assert_null(spm_map_init(&m, &f.run, &f.log, f.layer));
    for (uint32_t c = 0; c < m.columns; c++)
        cr_expect_eq(cell(&m, 0, c), c >= 10 && c <= 520 ? 1U : 0U);
    spm_map_deinit(&m);
    trace_log_free(&f.log);
}

Test(spm_map, none_without_touches) {
    struct fixture f;
    struct spm_map m;
    fixture_init(&f);
    cr_assert_null(spm_map_init(&m, &f.run, &f.log, f.layer));
    cr_expect_eq(m.rows, 0);
    spm_map_deinit(&m);
}
