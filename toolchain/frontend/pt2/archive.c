// SPDX-License-Identifier: Apache-2.0
//
// The zip archive of torch.export.save, read by minizip out of the mapped file:
//
//   from the last end-of-central-directory record: every entry's name, size, method, checksum
//   each local header once, for where the stored bytes begin
//
// torch stores entries, so they are spans of the map; what somebody packed anew by deflate is
// unpacked when it is asked for. Local headers carry no sizes, and an entry may itself be an
// archive (sample_inputs), so only the directory counts.

#include "toolchain/frontend/pt2/archive.h"

#include <inttypes.h>
#include <minizip/unzip.h>
#include <string.h>
#include <zlib.h>

#include "toolchain/frontend/pt2/pt2.h"

enum { ENTRIES_MAX = 1 << 20, NAME_MAX_BYTES = 4096 };

// ---- the map as a file -----------------------------------------------------------------------

struct cursor {
    struct span bytes;
    uint64_t at;
    bool ended; // something behind the end was asked for
};

static voidpf cursor_open(voidpf opaque, const void *name, int mode) {
    (void)name;
    (void)mode;
    return opaque;
}

static uLong cursor_read(voidpf opaque, voidpf stream, void *buffer, uLong size) {
    struct cursor *c = stream;
    (void)opaque;
    uLong left = (uLong)(c->bytes.size - c->at);
    if (size > left) {
        c->ended = true;
        size = left;
    }
    memcpy(buffer, c->bytes.data + c->at, size);
    c->at += size;
    return size;
}

static uLong cursor_write(voidpf opaque, voidpf stream, const void *buffer, uLong size) {
    (void)opaque;
    (void)stream;
    (void)buffer;
    (void)size;
    return 0;
}

static ZPOS64_T cursor_tell(voidpf opaque, voidpf stream) {
    (void)opaque;
    return ((struct cursor *)stream)->at;
}

static long cursor_seek(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin) {
    struct cursor *c = stream;
    (void)opaque;
    uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? c->at
                    : origin == ZLIB_FILEFUNC_SEEK_END ? c->bytes.size
                                                       : 0;
    if (offset > c->bytes.size || base + offset > c->bytes.size) return -1;
    c->at = base + offset;
    return 0;
}

static int cursor_end(voidpf opaque, voidpf stream) {
    (void)opaque;
    (void)stream;
    return 0;
}

static int cursor_error(voidpf opaque, voidpf stream) {
    (void)opaque;
    return ((struct cursor *)stream)->ended;
}

// ---- the directory ---------------------------------------------------------------------------

// "root/a/b": plain relative parts. What leads elsewhere is not torch's.
static npu_status check_name(const char *name, size_t length) {
    if (strlen(name) != length || !length)
        return npu_fail(BAD_INPUT, "entry '%s': a name with a zero byte, or none", name);
    bool plain = *name != '/' && !strchr(name, '\\');
    for (const char *part = name; plain && part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t n = strcspn(part, "/");
        plain = !(n == 1 && part[0] == '.') && !(n == 2 && part[0] == '.' && part[1] == '.');
    }
    if (plain) return NULL;
    return npu_fail(BAD_INPUT, "entry '%s' leads out of the archive", name);
}

static npu_status add_entry(struct archive *a, const char *name, const unz_file_info64 *info,
                            uint64_t offset) {
    size_t root = strcspn(name, "/");
    if (!name[root]) return NULL; // a file beside the root folder is nobody's
    if (!a->root) a->root = arena_strndup(a->arena, name, root);
    if (strlen(a->root) != root || strncmp(a->root, name, root) != 0)
        return npu_fail(BAD_INPUT, "entry '%s' is not in the folder '%s' of the others", name,
                        a->root);
    if (!name[root + 1]) return NULL; // the folder itself
    struct archive_entry *e = ARENA_NEW(a->arena, struct archive_entry);
    e->name = arena_strdup(a->arena, name + root + 1);
    e->method = (int)info->compression_method;
    e->encrypted = info->flag & 1;
    e->crc = (uint32_t)info->crc;
    e->size = info->uncompressed_size;
    uint64_t size = info->compressed_size;
    if (!e->method && !e->encrypted && e->size != size)
        return npu_fail(BAD_INPUT, "entry '%s': %" PRIu64 " bytes stored, %" PRIu64 " declared",
                        name, size, e->size);
    if (offset > a->bytes.size || size > a->bytes.size - offset)
        return npu_fail(BAD_INPUT,
                        "entry '%s': %" PRIu64 " bytes at %" PRIu64 ", the file has %zu (cut off?)",
                        name, size, offset, a->bytes.size);
    e->data = (struct span){a->bytes.data + offset, (size_t)size};
    if (map_put(&a->entries, e->name, e))
        return npu_fail(BAD_INPUT, "entry '%s' stands twice", name);
    return NULL;
}

static npu_status read_entry(struct archive *a, unzFile zip) {
    unz_file_info64 info;
    char name[NAME_MAX_BYTES + 1];
    if (unzGetCurrentFileInfo64(zip, &info, name, NAME_MAX_BYTES, NULL, 0, NULL, 0) != UNZ_OK)
        return npu_fail(BAD_INPUT, "the directory is damaged");
    if (info.size_filename > NAME_MAX_BYTES)
        return npu_fail(BAD_INPUT, "an entry with a name of %lu bytes, at most %d",
                        (unsigned long)info.size_filename, NAME_MAX_BYTES);
    name[info.size_filename] = 0;
    NPU_TRY(check_name(name, info.size_filename));
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED)
        return add_entry(a, name, &info, 0); // fails when it is asked for
    int method, level, failed = unzOpenCurrentFile2(zip, &method, &level, 1);
    if (failed == UNZ_INTERNALERROR) return npu_fail(NO_MEMORY, "entry '%s'", name);
    if (failed != UNZ_OK)
        return npu_fail(BAD_INPUT, "entry '%s': its header does not fit the directory", name);
    uint64_t offset = unzGetCurrentFileZStreamPos64(zip);
    unzCloseCurrentFile(zip);
    return add_entry(a, name, &info, offset);
}

static npu_status read_directory(struct archive *a, unzFile zip) {
    int count = 0, failed = unzGoToFirstFile(zip);
    for (; failed == UNZ_OK; failed = unzGoToNextFile(zip)) {
        if (++count > ENTRIES_MAX)
            return npu_fail(UNSUPPORTED, "more than %d entries", ENTRIES_MAX);
        NPU_TRY(read_entry(a, zip));
    }
    if (failed != UNZ_END_OF_LIST_OF_FILE)
        return npu_fail(BAD_INPUT, "the directory is damaged behind its entry %d", count);
    return NULL;
}

// ---- what kind of archive it is --------------------------------------------------------------

static npu_status expect_text(struct archive *a, const char *name, const char *expected,
                              const char *otherwise) {
    struct span text;
    NPU_TRY(archive_get(a, name, &text));
    size_t size = text.size;
    while (size && (text.data[size - 1] == '\n' || text.data[size - 1] == '\r'))
        size--;
    if (size == strlen(expected) && !memcmp(text.data, expected, size)) return NULL;
    return npu_fail(UNSUPPORTED, "%s is '%.*s', expected '%s'%s", name,
                    (int)(size > 40 ? 40 : size), (const char *)text.data, expected, otherwise);
}

static npu_status check_kind(struct archive *a) {
    if (!a->root) return npu_fail(BAD_INPUT, "the archive is empty");
    if (!map_get(&a->entries, "archive_format")) {
        if (map_get(&a->entries, "serialized_exported_program.json"))
            return npu_fail(UNSUPPORTED, "an archive of an older torch; export it again with "
                                         "torch 2.8 or newer");
        return npu_fail(BAD_INPUT, "the zip archive has no entry archive_format, as "
                                   "torch.export.save writes it");
    }
    NPU_TRY(expect_text(a, "archive_format", "pt2", ""));
    NPU_TRY(expect_text(a, "archive_version", "0", ""));
    return expect_text(a, "byteorder", "little", ": a big-endian host wrote it");
}

npu_status archive_open(struct archive *a, struct span bytes, const char *path,
                        struct arena *arena) {
    bool trusting = a->trusting;
    *a = (struct archive){.arena = arena, .path = path, .bytes = bytes, .trusting = trusting};
    map_init(&a->entries, arena);
    struct cursor cursor = {bytes, 0, false};
    zlib_filefunc64_def access = {cursor_open, cursor_read, cursor_write, cursor_tell,
                                  cursor_seek, cursor_end,  cursor_error, &cursor};
    unzFile zip = unzOpen2_64("", &access);
    if (!zip) return npu_fail(BAD_INPUT, "no end of a zip directory in its last 64 KiB (cut off?)");
    npu_status failed = read_directory(a, zip);
    unzClose(zip);
    NPU_TRY(failed);
    return check_kind(a);
}

static const char *method_name(int method) {
    switch (method) {
    case 9: return "Deflate64";
    case 12: return "bzip2";
    case 14: return "LZMA";
    case 93: return "Zstandard";
    case 95: return "XZ";
    default: return "something unknown";
    }
}

// Once; the entry is a stored one from then on.
static npu_status unpack(struct archive *a, struct archive_entry *e) {
    enum { RATIO_MAX = 1032, SHORTEST = 1 << 10 }; // deflate packs no better
    z_stream z = {.next_in = (Bytef *)(uintptr_t)e->data.data};
    if (e->size > (uint64_t)e->data.size * RATIO_MAX + SHORTEST || e->data.size > UINT32_MAX ||
        e->size > UINT32_MAX)
        return npu_fail(BAD_INPUT, "%zu deflated bytes declare %" PRIu64, e->data.size, e->size);
    uint8_t *out = arena_alloc(a->arena, (size_t)e->size + 1);
    z.avail_in = (uInt)e->data.size;
    z.next_out = out;
    z.avail_out = (uInt)e->size;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return npu_fail(NO_MEMORY, "inflating it");
    int ended = inflate(&z, Z_FINISH);
    uint64_t size = z.total_out;
    inflateEnd(&z);
    if (ended != Z_STREAM_END || size != e->size)
        return npu_fail(BAD_INPUT, "its deflated bytes are damaged");
    e->data = (struct span){out, (size_t)size};
    e->method = 0;
    return NULL;
}

npu_status archive_get(struct archive *a, const char *name, struct span *out) {
    struct archive_entry *e = map_get(&a->entries, name);
    if (!e) return npu_fail(BAD_INPUT, "the archive has no entry '%s/%s'", a->root, name);
    if (e->encrypted) return npu_fail(UNSUPPORTED, "entry '%s/%s' is encrypted", a->root, name);
    if (e->method == Z_DEFLATED)
        NPU_TRY_NOTE(unpack(a, e), "entry '%s/%s'", a->root, name);
    else if (e->method)
        return npu_fail(UNSUPPORTED,
                        "entry '%s/%s' is compressed by %s (method %d), expected stored, as "
                        "torch.export.save writes it, or deflated",
                        a->root, name, method_name(e->method), e->method);
    if (!e->checked && !a->trusting &&
        crc32_z(0, e->data.size ? e->data.data : (const uint8_t *)"", e->data.size) != e->crc)
        return npu_fail(BAD_INPUT, "entry '%s/%s' is damaged: its checksum differs", a->root, name);
    e->checked = true;
    *out = e->data;
    return NULL;
}

npu_status archive_get_below(struct archive *a, const char *name, uint64_t limit,
                             struct span *out) {
    const struct archive_entry *e = map_get(&a->entries, name);
    if (e && e->size > limit)
        return npu_fail(BAD_INPUT, "entry '%s/%s' has %" PRIu64 " bytes unpacked, at most %" PRIu64,
                        a->root, name, e->size, limit);
    return archive_get(a, name, out);
}

int64_t archive_offset(const struct archive *a, struct span data) {
    uintptr_t at = (uintptr_t)data.data, first = (uintptr_t)a->bytes.data;
    return at >= first && at - first <= a->bytes.size ? (int64_t)(at - first) : -1;
}

bool pt2_probe(struct span bytes) {
    return bytes.size >= 4 && !memcmp(bytes.data, "PK\x03\x04", 4);
}
