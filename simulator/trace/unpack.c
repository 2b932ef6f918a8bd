// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/unpack.h"

#include <limits.h>
#include <zlib.h>

#include "runtime/base/alloc.h"

#define MOST_BYTES (INT64_C(1) << 31) // of a file unpacked

npu_status trace_unpack(struct span packed, const char *name, uint8_t **out, size_t *size) {
    z_stream z = {0};
    if (packed.size > UINT_MAX || inflateInit2(&z, 15 + 16) != Z_OK)
        return npu_fail(NO_MEMORY, "%s: cannot be unpacked", name);
    z.next_in = (Bytef *)(uintptr_t)packed.data;
    z.avail_in = (uInt)packed.size;
    size_t cap = 0;
    int result = Z_OK;
    npu_status st = NULL;
    while (!st && result == Z_OK) {
        if (*size == cap) {
            const size_t wanted = cap ? cap * 2 : 65536;
            uint8_t *grown = wanted > MOST_BYTES ? NULL : base_realloc(*out, wanted);
            if (!grown) {
                st = wanted > MOST_BYTES ? npu_fail(BAD_INPUT, "%s: unpacks to over 2 GiB", name)
                                         : npu_fail(NO_MEMORY, "%s: no memory to unpack it", name);
                break;
            }
            *out = grown;
            cap = wanted;
        }
        z.next_out = *out + *size;
        z.avail_out = (uInt)(cap - *size);
        result = inflate(&z, Z_NO_FLUSH);
        *size = cap - z.avail_out;
    }
    inflateEnd(&z);
    if (!st && result != Z_STREAM_END)
        st = npu_fail(BAD_INPUT, "%s: damaged: the packed data is broken or cut off", name);
    return st;
}
