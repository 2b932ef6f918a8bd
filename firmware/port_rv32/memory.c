// SPDX-License-Identifier: Apache-2.0
//
// The functions that the compiler calls on its own. The loops are kept from being turned back into
// calls of themselves by -fno-tree-loop-distribute-patterns.

#include "firmware/port_rv32/port.h"

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *t = to;
    const unsigned char *f = from;
    for (; size > 0; size--)
        *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *t = to;
    const unsigned char *f = from;
    if ((uintptr_t)t - (uintptr_t)f >= size) return memcpy(to, from, size);
    while (size > 0) {
        size--;
        t[size] = f[size];
    }
    return to;
}

void *memset(void *to, int value, size_t size) {
    unsigned char *t = to;
    for (; size > 0; size--)
        *t++ = (unsigned char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t size) {
    const unsigned char *x = a, *y = b;
    for (; size > 0; size--, x++, y++)
        if (*x != *y) return *x < *y ? -1 : 1;
    return 0;
}
