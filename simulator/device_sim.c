// SPDX-License-Identifier: Apache-2.0
//
// The runtime's device table over the simulated machine. A submission becomes a descriptor in a
// ring in (simulated) host memory; the same firmware files that run on the device's management core
// take it from there, program the registers and start the job; the machine runs it; the firmware
// writes the completion record. Everything happens inside submit: the caller's thread plays host,
// management core and machine in turn, so a run is the same every time.
#include <inttypes.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/hw_yaml.h"
#include "runtime/include/npu/simulator.h"
#include "simulator/device_state.h"
#include "simulator/kernel/kernel.h"
#include "simulator/touches.h"

// ---- totals ------------------------------------------------------------------------------------

static npu_status no_memory(void) {
    return npu_fail(NO_MEMORY, "the simulated device: out of memory");
}

static void log_event(void *ctx, const struct trace_event *e) {
    struct sim_device *d = ctx;
    struct trace_event moved = *e;
    const uint64_t by = d->log_offset;
    moved.dispatched += by;
    moved.ready += by;
    moved.start += by;
    moved.read += by;
    moved.issued += by;
    moved.done += by;
    moved.cause_cycle += by;
    moved.seq += d->log_seq;
    if (moved.cause_seq != TRACE_NO_SEQ) moved.cause_seq += d->log_seq;
    trace_log_add(d->log, &moved);
}

static bool add_result(struct sim_device *d, const struct core_result *r, uint64_t gap) {
    d->all_jobs++;
    d->all_instructions += r->timing.instructions;
    d->all_read_bytes += r->timing.dram.read_bytes;
    d->all_write_bytes += r->timing.dram.write_bytes;
    return sim_totals_add(&d->totals, r, gap);
}

// What an instruction touches of the scratchpad, for the map over time.
static npu_status log_touches(void *ctx, const struct exec_dyn *dyn) {
    struct sim_device *d = ctx;
    sim_touches_add(d->log, d->log_seq + dyn->seq, dyn);
    return NULL;
}

// The launch that is about to start at cycle `begin`, as the host makes it.
static void log_dispatch(struct sim_device *d, const struct sim_job *job, uint64_t begin) {
    const struct npu_image_launch *l = &job->entry->launches[job->launch];
    const struct sim_line *line = &d->launches.line;
    const uint64_t made = kernel_clock_cycle(&line->clock, line->made_ps),
                   from = kernel_clock_cycle(&line->clock, line->begin_ps);
    trace_log_add(d->log, &(struct trace_event){.kind = TRACE_EVENT_DISPATCH,
                                                .engine = ISA_ENGINE_CP,
                                                .tag = l->tag,
                                                .id = (uint32_t)job->launch,
                                                .change = (int32_t)l->views,
                                                .seq = d->totals.instructions,
                                                .start = from,
                                                .done = made,
                                                .issued = begin,
                                                .wait_engine = -1,
                                                .cause_seq = TRACE_NO_SEQ});
}

// All engines wait for the host.
static void log_gap(struct sim_device *d, const struct core_result *r, uint64_t from, uint64_t to) {
    for (size_t i = 0; i < r->timing.nengine; i++)
        trace_log_add(d->log, &(struct trace_event){.kind = TRACE_EVENT_STATE,
                                                    .engine = r->timing.engine[i].engine,
                                                    .start = from,
                                                    .done = to,
                                                    .wait_class = TRACE_HOST,
                                                    .wait_engine = -1});
}

// ---- the machine's side ------------------------------------------------------------------------

// Cycles per engine into the register block.
static void set_engine_registers(struct sim_device *d, const struct units_result *r) {
    for (size_t i = 0; i < r->nengine; i++) {
        const struct trace_engine *e = &r->engine[i];
        uint64_t busy = 0, wait = 0, stall = 0;
        for (int c = 0; c < TRACE_CLASSES; c++) {
            if (c == TRACE_BUSY || c == TRACE_BUSY_PARTIAL)
                busy += e->cycles[c];
            else if (c == TRACE_WAIT_SEMAPHORE || c == TRACE_WAIT_DMA)
                wait += e->cycles[c];
            else
                stall += e->cycles[c];
        }
        fw_host_set_engine(&d->port, (uint32_t)e->engine, e->instructions, busy, wait, stall);
    }
}

// Runs the job that the registers describe, to its end.
static void run_job(struct sim_device *d) {
    const struct fw_host_job *s = &d->started;
    struct sim_job *job = d->current;
    struct core_result r = {0};
    struct exec_dram_at code;
    d->pending = false;
    if (d->stopped.stopped) { // the run ended in a job before
        fw_host_job_done(&d->port, d->clock, d->clock);
        return;
    }
    const int64_t code_lo = (int64_t)s->code_base,
                  code_bytes = (int64_t)s->code_size * ISA_GRANULE_BYTES;
    if (!exec_dram_find(&d->dram, code_lo, code_lo + code_bytes, &code)) {
        job->fault =
            npu_fail(BAD_INPUT,
                     "code of %" PRId64 " bytes at device address 0x%" PRIx64 ": not in memory",
                     code_bytes, s->code_base);
        fw_host_job_fault(&d->port, d->clock, d->clock, 0, s->entry, ISA_ENGINE_CP, 0);
        return;
    }
    uint64_t gap = 0;
    if (job->entry)
        job->fault = sim_launches_next(&d->launches, d->model, job->entry, job->launch,
                                       (uint64_t)d->hw.clock_npu_mhz, &gap);
    if (job->fault) {
        fw_host_job_fault(&d->port, d->clock, d->clock, 0, s->entry, ISA_ENGINE_CP, 0);
        return;
    }
    const uint64_t begin = d->totals.cycles + gap;
    if (d->log && d->model && job->entry) log_dispatch(d, job, begin);
    struct core_job run = {
        .start_ps = job->entry ? sim_device_ps(d, begin) : 0,
        .exec = {.code = {code.const_bytes, (size_t)code_bytes},
                 .code_version = code.bytes ? 0 : d->dram.version, // constants: nobody writes there
                 .entry_bytes = (uint64_t)s->entry * ISA_GRANULE_BYTES,
                 .dram = &d->dram,
                 .dram_base = (int64_t)s->dram_base,
                 .dram_bytes = (int64_t)s->dram_bytes,
                 .values = d->values,
                 .written = d->written,
                 .written_ctx = d->written_ctx},
        .code_address = s->code_base - s->dram_base,
        .image = job->image,
        .events = d->log ? log_event : NULL,
        .events_ctx = d,
        .seen = d->log ? log_touches : NULL,
        .seen_ctx = d,
        .stop = d->stop.n ? &d->stop : NULL,
    };
    d->stop.cycles = begin;
    d->stop.instructions = d->totals.instructions;
    for (int i = 0; i < EXEC_DOORBELLS; i++)
        run.exec.doorbell[i] = (int64_t)s->doorbell[i];
    d->log_offset = begin;
    d->log_seq = d->totals.instructions;
    job->fault = core_run(d->core, &run, &r);
    d->stopped = r.stopped;
    d->stopped.cycle += begin;
    if (r.stopped.seq != TRACE_NO_SEQ) d->stopped.seq += d->totals.instructions;
    const uint64_t start = d->clock + gap;
    d->clock = start + r.timing.cycles;
    if (d->log && gap) log_gap(d, &r, begin - gap, begin);
    if (r.timing.nengine && !add_result(d, &r, gap)) { // totals without it must not be reported
        npu_status_free(job->fault);
        job->fault = no_memory();
    }
    set_engine_registers(d, &r.timing);
    if (job->entry && !job->fault && !r.stopped.stopped)
        job->fault = sim_launches_ran(&d->launches, d->counting ? d->core : NULL, r.timing.cycles);
    if (r.exec.irq_status) fw_host_program_irq(&d->port);
    if (!job->fault)
        fw_host_job_done(&d->port, start, d->clock);
    else if (r.fault)
        fw_host_job_fault(&d->port, start, d->clock, (uint32_t)r.fault->kind,
                          r.fault->at.pc_granule, (uint32_t)r.fault->at.engine, r.fault->at.tag);
    else
        fw_host_job_fault(&d->port, start, d->clock, 0, s->entry, ISA_ENGINE_CP, 0);
}

static void owner_start(void *ctx, const struct fw_host_job *job) {
    struct sim_device *d = ctx;
    d->started = *job;
    d->pending = true;
}

static void owner_reset(void *ctx) {
    struct sim_device *d = ctx;
    d->pending = false;
}

static bool host_range(uint64_t address, uint64_t bytes) {
    return address >= HOST_RING && address <= HOST_END && bytes <= HOST_END - address;
}

static bool owner_read(void *ctx, uint64_t address, void *out, uint32_t bytes) {
    const struct sim_device *d = ctx;
    if (!host_range(address, bytes)) return false;
    memcpy(out, d->host + (address - HOST_RING), bytes);
    return true;
}

static bool owner_write(void *ctx, uint64_t address, const void *bytes, uint32_t size) {
    struct sim_device *d = ctx;
    if (!host_range(address, size)) return false;
    memcpy(d->host + (address - HOST_RING), bytes, size);
    return true;
}

static uint64_t owner_cycles(void *ctx) {
    const struct sim_device *d = ctx;
    return d->clock;
}

static void owner_wait(void *ctx) {
    (void)ctx;
}

// Lets the firmware and the machine run until both rest.
static void pump(struct sim_device *d) {
    for (;;) {
        const bool idle = fw_step(&d->fw);
        if (d->pending)
            run_job(d);
        else if (idle)
            return;
    }
}

// ---- the runtime's table -----------------------------------------------------------------------

static void device_close(void *device) {
    struct sim_device *d = device;
    if (!d) return;
    for (size_t i = 0; i < d->njobs; i++)
        npu_status_free(d->jobs[i].fault);
    core_free(d->core);
    exec_dram_deinit(&d->dram);
    npu_ranges_deinit(&d->ranges);
    base_free(d->jobs);
    sim_totals_deinit(&d->totals);
    sim_launches_deinit(&d->launches);
    base_free(d);
}

static void start_firmware(struct sim_device *d) {
    const struct fw_host_owner owner = {.context = d,
                                        .read = owner_read,
                                        .write = owner_write,
                                        .cycles = owner_cycles,
                                        .start = owner_start,
                                        .reset = owner_reset,
                                        .wait = owner_wait};
    fw_host_init(&d->port, &owner);
    fw_init(&d->fw, &d->port.port);
    fw_host_write(&d->port, MMIO_RING_BASE_LO, HOST_RING);
    fw_host_write(&d->port, MMIO_RING_SIZE, RING_SLOTS);
    fw_host_write(&d->port, MMIO_COMPLETION_BASE_LO, HOST_DONE);
    fw_host_write(&d->port, MMIO_RING_CONTROL, MMIO_RING_CONTROL_ENABLE);
    pump(d);
}

static npu_status device_open(const void *config, void **device) {
    const struct npu_simulator_config *c = config;
    struct hw hw;
    if (c && c->machine)
        NPU_TRY(hw_parse(c->machine, strlen(c->machine), "machine", &hw));
    else
        NPU_TRY(hw_load("server", &hw));
    struct sim_device *d = base_alloc(sizeof *d);
    if (!d) return no_memory();
    d->hw = hw;
    d->values = !(c && c->no_data);
    exec_dram_init(&d->dram);
    npu_ranges_init(&d->ranges, (uint64_t)hw.dram_bytes);
    npu_status st = core_new(&hw, &d->core);
    if (st) {
        device_close(d);
        return st;
    }
    start_firmware(d);
    *device = d;
    return NULL;
}

static void device_describe(void *device, struct hw *out) {
    *out = ((struct sim_device *)device)->hw;
}

static npu_status device_alloc(void *device, uint64_t bytes, uint64_t alignment,
                               uint64_t *address) {
    struct sim_device *d = device;
    if (alignment < DRAM_ALIGNMENT) alignment = DRAM_ALIGNMENT;
    if (bytes == 0) bytes = 1;
    NPU_TRY(npu_ranges_alloc(&d->ranges, bytes, alignment, address));
    npu_status st = exec_dram_add(&d->dram, (int64_t)*address, (int64_t)bytes);
    if (st) npu_ranges_release(&d->ranges, *address);
    return st;
}

static void device_release(void *device, uint64_t address) {
    struct sim_device *d = device;
    npu_ranges_release(&d->ranges, address);
    exec_dram_remove(&d->dram, (int64_t)address);
}

static npu_status device_write(void *device, uint64_t address, struct span bytes) {
    return exec_dram_write(&((struct sim_device *)device)->dram, (int64_t)address, bytes);
}

static npu_status device_map_const(void *device, uint64_t address, struct span bytes) {
    return exec_dram_map(&((struct sim_device *)device)->dram, (int64_t)address, bytes);
}

static npu_status device_discard(void *device, uint64_t address, uint64_t bytes) {
    return exec_dram_discard(&((struct sim_device *)device)->dram, (int64_t)address,
                             (int64_t)bytes);
}

// The host reading what no one wrote is the program's fault: an output that it left out.
static npu_status device_read(void *device, uint64_t address, void *out, size_t bytes) {
    const struct sim_device *d = device;
    const int64_t lo = (int64_t)address,
                  hole = exec_dram_first_unwritten(&d->dram, lo, lo + (int64_t)bytes);
    NPU_TRY(exec_dram_read(&d->dram, lo, out, (int64_t)bytes));
    if (hole < 0) return NULL;
    return npu_fail(FAULT,
                    "unwritten-read: the host reads byte %" PRId64
                    " of %zu at device address 0x%" PRIx64 ", which the program has not written",
                    hole - lo, bytes, address);
}

static npu_status device_submit(void *device, const struct npu_submission *s, uint64_t *ticket) {
    struct sim_device *d = device;
    if (d->njobs == d->jobs_cap) {
        size_t cap = d->jobs_cap ? d->jobs_cap * 2 : 16;
        struct sim_job *grown = base_realloc(d->jobs, cap * sizeof *grown);
        if (!grown) return no_memory();
        d->jobs = grown;
        d->jobs_cap = cap;
    }
    struct sim_job *job = d->current = &d->jobs[d->njobs++];
    *job = (struct sim_job){.ticket = ++d->last_ticket,
                            .image = s->image,
                            .entry = s->entry && s->entry->nlaunches ? s->entry : NULL,
                            .launch = s->launch};
    struct ring_desc desc = {.version = RING_DESC_VERSION,
                             .size = RING_DESC_BYTES,
                             .cookie = job->ticket,
                             .dram_base = s->dram_base,
                             .dram_bytes = s->dram_bytes,
                             .code_base = s->code_base,
                             .code_bytes = s->code_bytes,
                             .code_offset = s->code_offset};
    memcpy(desc.doorbell, s->doorbell, sizeof desc.doorbell);
    const uint32_t slot = d->tail % RING_SLOTS;
    ring_desc_encode(&desc, d->host + (size_t)slot * RING_DESC_BYTES);
    fw_host_write(&d->port, MMIO_RING_TAIL, ++d->tail);
    pump(d);
    ring_done_decode(d->host + (HOST_DONE - HOST_RING) + (size_t)slot * RING_DONE_BYTES,
                     &job->done);
    *ticket = job->ticket;
    return NULL;
}

static npu_status device_wait(void *device, uint64_t ticket, struct npu_completion *out) {
    struct sim_device *d = device;
    size_t i = 0;
    while (i < d->njobs && d->jobs[i].ticket != ticket)
        i++;
    if (i == d->njobs) return npu_fail(USAGE, "no submission has ticket %" PRIu64, ticket);
    const struct sim_job job = d->jobs[i];
    memmove(d->jobs + i, d->jobs + i + 1, (--d->njobs - i) * sizeof *d->jobs);
    *out = (struct npu_completion){job.ticket, job.done.start_cycle, job.done.end_cycle};
    if (job.fault) return job.fault;
    if (job.done.cookie != ticket || job.done.sequence == 0)
        return npu_fail(IO, "the device wrote no completion record (ring error %u)",
                        (unsigned)fw_host_read(&d->port, MMIO_RING_ERROR));
    if (job.done.status != RING_STATUS_DONE)
        return npu_fail(BAD_INPUT, "the device refused the job: %s (descriptor byte %u)",
                        ring_status_meaning((uint32_t)job.done.status), (unsigned)job.done.detail);
    return NULL;
}

static npu_status device_mmio_read(void *device, uint32_t offset, uint32_t *value) {
    *value = fw_host_read(&((struct sim_device *)device)->port, offset);
    return NULL;
}

static npu_status device_mmio_write(void *device, uint32_t offset, uint32_t value) {
    struct sim_device *d = device;
    fw_host_write(&d->port, offset, value);
    pump(d);
    return NULL;
}

static size_t device_counters(void *device, struct npu_device_counter *out, size_t capacity) {
    const struct sim_device *d = device;
    const struct npu_device_counter all[] = {
        {"cycles", d->clock},
        {"jobs", d->all_jobs},
        {"instructions", d->all_instructions},
        {"dram.read_bytes", d->all_read_bytes},
        {"dram.write_bytes", d->all_write_bytes},
    };
    const size_t count = sizeof all / sizeof *all;
    for (size_t i = 0; i < count && i < capacity; i++)
        out[i] = all[i];
    return count;
}

const struct npu_device_ops *npu_simulator_ops(void) {
    static const struct npu_device_ops ops = {
        .version = NPU_DEVICE_OPS_VERSION,
        .name = "simulator",
        .open = device_open,
        .close = device_close,
        .describe = device_describe,
        .alloc = device_alloc,
        .release = device_release,
        .write = device_write,
        .map_const = device_map_const,
        .discard = device_discard,
        .read = device_read,
        .submit = device_submit,
        .wait = device_wait,
        .mmio_read = device_mmio_read,
        .mmio_write = device_mmio_write,
        .read_counters = device_counters,
    };
    return &ops;
}
