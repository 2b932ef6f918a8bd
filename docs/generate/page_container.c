// SPDX-License-Identifier: Apache-2.0
//
// The .npu file's tables.

#include "docs/generate/pages.h"

npu_status page_container(const char *source, struct str *out) {
    (void)source;
    put_head(out, "The .npu file", "isa/container.def");
    str_puts(
        out,
        "Little-endian. A header of 32 bytes (magic 8, u16 major, u16 minor, u32 sections, u64 "
        "file size, u32 CRC-32 of the table,\nu32 CRC-32 of the header so far), the section "
        "table (40 bytes an entry: u32 code, u32 flags, u64 offset, u64 stored size,\nu64 raw "
        "size, u32 CRC-32 of the stored bytes, u32 zero), then the sections in ascending "
        "order. Flags: 1 zlib, 2 required.\nAn unknown section is skipped unless it is "
        "required; a higher major version is refused.\n\n");
#define CONTAINER_VERSION(major, minor) \
    str_printf(out, "Version %d.%d.\n\n## Sections\n\n", major, minor);
#include "isa/container.def"
    str_puts(out, "| code | name | stored | required | alignment | largest, MiB | meaning |\n"
                  "|---|---|---|---|---|---|---|\n");
#define CONTAINER_SECTION(NAME, text, code, zlib, required, alignment, limit, meaning)       \
    str_printf(out, "| %d | %s | %s | %s | %d | %d | ", code, text, (zlib) ? "zlib" : "raw", \
               (required) ? "yes" : "no", alignment, limit);                                 \
    put_cell(out, meaning);                                                                  \
    str_puts(out, " |\n");
#include "isa/container.def"
    str_puts(out,
             "\n## Segments of a program's DRAM\n\n| code | name | meaning |\n|---|---|---|\n");
#define CONTAINER_SEGMENT(NAME, text, code, meaning) \
    str_printf(out, "| %d | `%s` | %s |\n", code, text, meaning);
#include "isa/container.def"
    str_puts(out, "\n## Roles of tensors\n\n| code | name | meaning |\n|---|---|---|\n");
#define CONTAINER_ROLE(NAME, text, code, meaning) \
    str_printf(out, "| %d | `%s` | %s |\n", code, text, meaning);
#include "isa/container.def"
    return NULL;
}
