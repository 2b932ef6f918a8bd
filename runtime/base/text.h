// SPDX-License-Identifier: Apache-2.0
//
// What users write and read: numbers with units, and near misses of words. Nothing depends on the
// locale.
#ifndef RUNTIME_BASE_TEXT_H
#define RUNTIME_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/// Whole text as an integer: decimal, or hexadecimal with 0x; an optional sign, no blanks, `_`
/// between digits allowed. false when it is something else or out of range.
bool text_parse_i64(const char *text, int64_t *out);
bool text_parse_u64(const char *text, uint64_t *out);

/// Whole text as a decimal number (digits, point, exponent), inf or nan; false when it is something
/// else.
bool text_parse_f64(const char *text, double *out);

/// A number in `unit`, which is one of
///   bytes  B KB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)
///   bits   bit kbit Mbit Gbit
///   Hz kHz MHz GHz      s ms us ns ps      V mV      W mW uW      J mJ uJ nJ pJ fJ
///   B/s KB/s MB/s GB/s TB/s KiB/s MiB/s GiB/s TiB/s
///   % (also written as a ratio is not accepted)
/// or any other word, which then takes no prefix (cycles, lanes, rows/cycle) and may be "".
/// The text is a number alone (taken in `unit`), or a number and a unit of the same kind: "16 MiB"
/// for bytes is 16777216, "1.2 GHz" for MHz is 1200. Hexadecimal integers take no unit. The result
/// is the correctly rounded one whenever the digits fit 53 bits. BAD_INPUT names the text and what
/// is accepted.
NPU_MUST_USE npu_status text_parse_quantity(const char *text, const char *unit, double *out);

/// Shortest decimal text that reads back as the same double, as "16", "0.1", "1.5e-07".
/// `text` has room for TEXT_NUMBER_BYTES. Returns `text`.
enum { TEXT_NUMBER_BYTES = 40 };
char *text_format_f64(char *text, double value);

/// A size for people: "0 B", "768 B", "16 MiB", "1.25 GiB"; powers of 1024, at most 3 digits after
/// the point, and exact bytes when that would lie ("1025 B"). Returns `text` (TEXT_NUMBER_BYTES).
char *text_format_bytes(char *text, uint64_t bytes);

/// 1234567 as "1,234,567". Returns `text` (TEXT_NUMBER_BYTES).
char *text_format_grouped(char *text, uint64_t n);

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other, ignoring case;
/// words longer than 64 bytes count as far apart (SIZE_MAX).
size_t text_edit_distance(const char *a, const char *b);

/// The nearest word when it is near enough to be what was meant (at most a third of its length
/// away), else NULL. The first of equals. `words` has `count` entries.
const char *text_did_you_mean(const char *word, const char *const *words, size_t count);

#endif
