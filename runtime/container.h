// SPDX-License-Identifier: Apache-2.0
//
// The compiled program: `struct npu_program_image` in memory, a .npu file on disk. The compiler and
// the assembler fill an image and write it; the runtime, the inspectors and the simulator read one
// back.
//
// Addresses: a program sees one DRAM space that starts at 0 (its DRAM_BASE); code, constants,
// inputs, outputs and scratch are segments in it. Offsets into the code count bytes from the first
// instruction.
//
// Memory: everything an image points at lives in the arena it was made in, or is lent by whoever
// put it there (constants: never copied, neither in writing nor in reading). Strings are never NULL
// in an image that was read; in one to be written NULL counts as "".
//
// The bytes written depend on nothing but the image.
#ifndef RUNTIME_CONTAINER_H
#define RUNTIME_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"

enum { CONTAINER_MAX_RANK = 8, CONTAINER_MAX_VIEWS = 1 << 20 };

enum container_section {
#define CONTAINER_SECTION(NAME, text, code, zlib, required, alignment, limit, meaning) \
    CONTAINER_##NAME = (code),
#include "isa/container.def"
};

enum container_segment_kind {
#define CONTAINER_SEGMENT(NAME, text, code, meaning) CONTAINER_SEGMENT_##NAME = (code),
#include "isa/container.def"
};

enum container_role {
#define CONTAINER_ROLE(NAME, text, code, meaning) CONTAINER_ROLE_##NAME = (code),
#include "isa/container.def"
};

/// A tensor that the host sees. Contiguous in C order (4-bit types: two to a byte) at dram_offset,
/// inside an io segment (a state tensor: a state segment). Names are unique within a role. An input
/// and an output may share their bytes; two inputs may not; two outputs only when they share all of
/// them.
struct npu_image_tensor {
    const char *name;
    int dtype;       // enum isa_dtype
    int model_dtype; // as the model declares it; equal to dtype unless the compiler changed it
    int rank;        // 0..CONTAINER_MAX_RANK
    int64_t dims[CONTAINER_MAX_RANK]; // 1 and up; rank 0 is one element
    enum container_role role;
    uint64_t dram_offset; // bytes
    uint64_t bytes;       // product of dims * bits / 8, rounded up
    int64_t
        index_limit; // integer input that indexes something: values 0..limit-1 are valid; else 0
};

/// A range of the program's DRAM. Segments stand in ascending order and do not overlap.
struct npu_image_segment {
    enum container_segment_kind kind;
    uint64_t dram_offset;    // bytes, a multiple of alignment
    uint64_t bytes;          // at least 1
    uint64_t alignment;      // power of two, at most 1 GiB
    uint64_t section_offset; // code, weights: where its bytes start in section CODE or WEIGHTS;
                             // state: in section WEIGHTS, where initial_bytes is not 0
    uint64_t initial_bytes;  // state: that many of its bytes have a first value, the rest is zero
};

/// One submission of an entry point that takes several (eager mode).
struct npu_image_launch {
    uint64_t code_offset; // bytes
    uint32_t tag;         // what it runs
    uint32_t views;       // calls on the host before it that launch nothing, at most
                          // CONTAINER_MAX_VIEWS
    const char *op;       // what the host calls: the model's own operator, "linear", "Gemm"; or ""
    const char *graph_op; // the graph's op of its first layer: "matmul"; or ""
};

/// Where a run starts. The first entry is the default. With launches, a run submits them in order,
/// and code_offset is that of the first.
struct npu_image_entry {
    const char *name;        // unique
    uint64_t code_offset;    // bytes, a multiple of 16
    const uint32_t *tensors; // indices of the tensors it uses; ntensors 0: all
    size_t ntensors;
    const struct npu_image_launch *launches;
    size_t nlaunches;
    uint32_t views; // calls on the host behind the last launch that launch nothing
};

/// Consecutive bytes of section WEIGHTS; between chunks the section is zero. A chunk without data
/// is made when it is needed: make() writes all of its bytes, the same ones each time.
struct npu_image_weights {
    uint64_t offset; // in the section; chunks stand in ascending order and do not overlap
    struct span bytes;
    void (*make)(const void *of, uint8_t *to);
    const void *of;
};

/// What a debug tag stands for. Tags are unique; 0 means "no tag".
struct npu_image_tag {
    uint32_t tag;
    const char *layer;  // "layers.0.attn"
    const char *op;     // graph op: "sdpa_attention"
    const char *kernel; // "attn_fused"
    const char *text;   // the line of `npuc --info`: "%a0 = sdpa_attention %h0, mask=%m"; may be ""
    const char *const *nodes; // the model's own node names
    size_t nnodes;
    uint32_t group; // fused group
    uint64_t macs, vector_elems;
    // Its matrix product: batch of [m, k] x [k, n], and their type; a convolution's m are
    // positions, k its window. 0: it has none, or several.
    uint32_t m, n, k, batch;
    int dtype; // enum isa_dtype
    uint64_t weight_bytes, input_bytes, output_bytes;
};

/// Name of a span that MARK instructions begin and end.
struct npu_image_span {
    uint32_t id; // unique
    const char *name;
};

/// A named buffer in DRAM that no host sees: a constant or an intermediate result. Informs
/// debugging only.
struct npu_image_buffer {
    const char *name;
    int dtype, rank;
    int64_t dims[CONTAINER_MAX_RANK];
    uint64_t dram_offset, bytes;
    uint32_t tag; // of the layer that writes it; 0: a constant
};

/// A number about the plan, for reports: "spm.peak_bytes", "estimated_cycles".
struct npu_image_stat {
    const char *name; // unique
    int64_t value;
};

/// One option that the program was compiled with: "level" "2", "skip" "fuse_map", "shape"
/// "x=1,512". Names may repeat. A file is named without its folder.
struct npu_image_option {
    const char *name, *value;
};

/// A value of the compiled graph that layers store: element (i0, i1, ...) lies at address + (sum of
/// i_d * strides[d]) elements of dtype when the last of its layers is over. It may lie there for a
/// short time only.
struct npu_image_result {
    const char *name;                    // of the graph's value
    uint32_t first_tag, last_tag;        // of the layers that store it
    int space;                           // enum isa_space: ISA_DRAM or ISA_SPM
    int dtype;                           // enum isa_dtype, of 8 bits and more
    int rank;                            // 0..CONTAINER_MAX_RANK
    int64_t dims[CONTAINER_MAX_RANK];    // 1 and up
    int64_t strides[CONTAINER_MAX_RANK]; // elements, 0 and up
    uint64_t address;                    // bytes, in DRAM relative to the program's own
};

/// What it takes to make the program's graph again and to compare its layers with it
/// (npusim --check-layers).
struct npu_image_record {
    const char *model; // the model's file name, without its folder
    uint64_t model_bytes;
    uint32_t model_crc;  // CRC-32 of the file
    uint64_t graph_hash; // of the graph behind the last pass
    const struct npu_image_option *options;
    size_t noptions;
    const struct npu_image_result *results;
    size_t nresults;
};

struct npu_program_image {
    // META
    const char *name;       // program
    const char *producer;   // "npuc 0.1.0"
    const char *target;     // preset, or the description's file
    const char *dtype_mode; // "auto", "f16", ...
    const struct npu_image_tensor *tensors;
    size_t ntensors;
    const struct npu_image_segment *segments;
    size_t nsegments;
    const struct npu_image_entry *entries; // at least one
    size_t nentries;
    uint64_t dram_bytes; // room that a run needs
    uint64_t spm_peak_bytes, psum_peak_bytes;
    // HW
    const char *hw_yaml;
    uint64_t hw_program_hash, hw_timing_hash;
    // CODE
    struct span code; // whole granules, at least one
    // DEBUG
    const struct npu_image_tag *tags; // ascending
    size_t ntags;
    const struct npu_image_span *spans;
    size_t nspans;
    const struct npu_image_buffer *buffers;
    size_t nbuffers;
    const struct npu_image_stat *stats;
    size_t nstats;
    // RECORD
    const struct npu_image_record *record; // NULL: the program was not compiled from a model
    // WEIGHTS
    const struct npu_image_weights *weights; // an image that was read has one chunk, or none
    size_t nweights;
};

/// Checks everything that is said above about an image. `where` starts the messages
/// ("program.npu"). BAD_INPUT with every fault listed. Writer and reader call it.
NPU_MUST_USE npu_status container_check(const struct npu_program_image *image, const char *where);

/// Writes a .npu file, complete under its name or not at all. Weights are streamed from their
/// chunks. BAD_INPUT when the image does not pass container_check, IO, NO_MEMORY.
NPU_MUST_USE npu_status container_write(const struct npu_program_image *image, const char *path);

/// The same into memory of the arena.
NPU_MUST_USE npu_status container_write_memory(const struct npu_program_image *image,
                                               struct arena *a, struct span *out);

enum container_read_flags {
    CONTAINER_SKIP_WEIGHTS_CRC = 1, // leave the pages of the constants untouched (inspection)
};

/// Whether the bytes start as a .npu does.
bool container_probe(struct span file);

/// Reads an image from bytes, which are lent for the life of the image (8-byte aligned or not).
/// Accepts any bytes: what is wrong is BAD_INPUT naming the section; `where` starts the messages.
NPU_MUST_USE npu_status container_read(struct arena *a, struct span file, const char *where,
                                       unsigned flags, struct npu_program_image **out);

/// Maps a file into the arena and reads it. IO, or as container_read.
NPU_MUST_USE npu_status container_open(struct arena *a, const char *path, unsigned flags,
                                       struct npu_program_image **out);

/// One row of a file's section table, for inspectors.
struct container_section_info {
    const char *name; // "CODE"; "" when unknown
    uint32_t code, flags, crc;
    uint64_t offset, stored_bytes, raw_bytes;
};

enum { CONTAINER_MAX_SECTIONS = 64 };

/// The section table alone, checked. `count` sections are stored.
NPU_MUST_USE npu_status
container_sections(struct span file, const char *where,
                   struct container_section_info out[CONTAINER_MAX_SECTIONS], size_t *count);

/// Tag of the table, NULL when it is not there.
const struct npu_image_tag *container_find_tag(const struct npu_program_image *image, uint32_t tag);

/// Index of a tensor of a role by name, or -1.
int container_find_tensor(const struct npu_program_image *image, enum container_role role,
                          const char *name);

/// Index of an entry point by name, or -1. NULL is the first.
int container_find_entry(const struct npu_program_image *image, const char *name);

/// The segment of DRAM that holds this address, or NULL.
const struct npu_image_segment *container_find_segment(const struct npu_program_image *image,
                                                       uint64_t dram_offset);

/// Initial bytes of a code, weights or state segment of an image that was read (from its code and
/// its one chunk of constants; of a state its initial_bytes); an empty span for the other kinds.
struct span container_segment_bytes(const struct npu_program_image *image,
                                    const struct npu_image_segment *segment);

/// CRC-32 (zlib's) continued over `bytes`; start with 0.
uint32_t container_crc(uint32_t crc, struct span bytes);

/// Bytes of a chunk: lent, or made in memory of the arena.
struct span container_chunk(const struct npu_image_weights *chunk, struct arena *a);

/// Words of container.def; "?" when unknown.
const char *container_role_name(enum container_role role);
const char *container_segment_name(enum container_segment_kind kind);

#endif
