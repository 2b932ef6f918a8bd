// SPDX-License-Identifier: Apache-2.0
//
// Hardware descriptions: any bytes are refused or give a machine whose print gives it again.
//
// links: npu_base

#include <stdlib.h>
#include <string.h>

#include "runtime/base/hw_yaml.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct hw hw, back;
    npu_status st = hw_parse((const char *)data, size, "fuzz.yaml", &hw);
    if (!st) {
        struct str text = {0};
        hw_print_yaml(&hw, &text);
        st = hw_parse(text.data, text.len, "again", &back);
        if (st || memcmp(&hw, &back, sizeof hw) != 0) abort();
        str_free(&text);
    }
    npu_status_free(st);
    return 0;
}
