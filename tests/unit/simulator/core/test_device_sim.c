// SPDX-License-Identifier: Apache-2.0
// The simulated device through the runtime's own API, as any program uses it.
#include <criterion/criterion.h>

#include <string.h>

#include "isa/mmio.h"
#include "runtime/api.h"
#include "runtime/include/npu/simulator.h"
#include "simulator/device.h"
#include "simulator/exec/fault.h"
#include "simulator/line.h"
#include "toolchain/asm/asm.h"

struct rig {
    struct arena *a;
    struct npu_program *program;
    struct npu_device *device;
    struct npu_session *session;
};

static void init(struct rig *r, const char *text) {
    struct arena *a = arena_new();
    *r = (struct rig){.a = a};
    struct npu_program_image *image;
    npu_status st =
        asm_assemble(a, (struct span){(const uint8_t *)text, strlen(text)}, "test", NULL, &image);
    cr_assert_null(st, "%s", npu_status_message(st));
    // Constants and code are found as in a file that was read.
    struct span file;
    cr_assert_null(container_write_memory(image, a, &file));
    cr_assert_null(npu_program_load_memory(file.data, file.size, &r->program));
    const struct npu_simulator_config config = {.machine = npu_program_machine(r->program)};
    cr_assert_null(npu_device_open(npu_simulator_ops(), &config, &r->device));
    st = npu_session_new(r->device, r->program, &r->session);
    cr_assert_null(st, "%s", npu_status_message(st));
    // The file's bytes must outlive the session: the arena is left to the end of the test's
    // process.
}

static void deinit(struct rig *r) {
    npu_session_free(r->session);
    npu_device_close(r->device);
    npu_program_free(r->program);
    arena_free(r->a); // the file's bytes
}

static const char doubler[] =
    ".program \"doubler\"\n.target \"tiny\"\n"
    ".input \"x\" f16[64] at=0\n.output \"y\" f16[64] at=0x100\n"
    "dma.copy @dma0 src=dram:f16+0x0[64:1] dst=spm:f16+0x0[64:1] signal=1:1:done\n"
    "v.map out=spm:f16+0x400[64:1] in0=spm:f16+0x0[64:1] chain=(mul imm0) imm0=2 "
    "wait=1:1 signal=2:1:done tag=4\n"
    "dma.copy @dma0 src=spm:f16+0x400[64:1] dst=dram:f16+0x100[64:1] wait=2:1\nhalt\n";

static void run_doubler(struct rig *r, float x0, struct npu_run_info *info) {
    float x[64], y[64];
    for (int i = 0; i < 64; i++)
        x[i] = x0 + (float)i;
    cr_assert_null(npu_session_write(r->session, NPU_INPUT, 0, NPU_F32, x, sizeof x));
    npu_status st = npu_session_run(r->session, info);
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_assert_null(npu_session_read(r->session, NPU_OUTPUT, 0, NPU_F32, y, sizeof y));
    for (int i = 0; i < 64; i++)
        cr_assert_eq(y[i], 2 * x[i]);
}

Test(device_sim, runs_many_jobs_through_the_ring) {
    struct rig r;
    struct npu_run_info info, before = {0};
    init(&r, doubler);
    for (int i = 0; i < 50; i++) { // three times around the ring
        run_doubler(&r, (float)i, &info);
        cr_assert_eq(info.submissions, 1);
        cr_assert_eq(info.start_cycle, before.end_cycle);
        if (i > 0)
            cr_assert_eq(info.end_cycle - info.start_cycle, before.end_cycle - before.start_cycle);
        before = info;
    }
    struct npu_counter counters[8];
    cr_assert_eq(npu_device_counters(r.device, counters, 8), 5);
    cr_assert_str_eq(counters[0].name, "cycles");
    cr_assert_eq(counters[0].value, info.end_cycle);
    cr_assert_eq(counters[1].value, 50);
    deinit(&r);
}

Test(device_sim, totals_add_up_over_jobs) {
    struct rig r;
    struct npu_run_info info;
    struct trace_log log = {0};
    init(&r, doubler);
    struct sim_device *d = sim_device_of(r.device);
    run_doubler(&r, 1, &info);
    const uint64_t one = info.end_cycle;
    sim_device_begin(d, &log);
    for (int i = 0; i < 3; i++)
        run_doubler(&r, 0, &info);
    const struct sim_totals *t = sim_device_totals(d);
    cr_assert_eq(t->jobs, 3);
    cr_assert_eq(t->cycles, 3 * one);
    cr_assert_eq(t->instructions, 12);
    for (size_t i = 0; i < t->nengine; i++) {
        uint64_t sum = 0;
        for (int c = 0; c < TRACE_CLASSES; c++)
            sum += t->engine[i].cycles[c];
        cr_assert_eq(sum, t->cycles);
    }
    bool found = false;
    for (size_t i = 0; i < t->ntag; i++)
        if (t->tag[i].tag == 4) {
            found = true;
            cr_assert_eq(t->tag[i].elems, 3 * 64);
            cr_assert_gt(t->tag[i].last, 2 * one);
        }
    cr_assert(found);
    cr_assert_null(trace_log_finish(&log));
    cr_assert_eq(log.count, 12);
    cr_assert_gt(log.event[log.count - 1].start, 2 * one);
    struct sim_repeat again;
    npu_status st = sim_device_repeat(d, NULL, 0, &again);
    cr_assert_eq(npu_status_code(st), NPU_USAGE); // three jobs
    npu_status_free(st);
    sim_device_begin(d, NULL);
    run_doubler(&r, 0, &info);
    cr_assert_null(sim_device_repeat(d, NULL, 1, &again));
    cr_assert_eq(again.cycles, one);
    trace_log_free(&log);
    deinit(&r);
}

static const char launches[] =
    ".program \"two\"\n.target \"tiny\"\n.input \"x\" f32[64] at=0x0\n"
    ".output \"y\" f32[64] at=0x100\n.segment io at=0x0 bytes=512 align=64\n"
    ".segment scratch at=0x200 bytes=256 align=64\n.segment code at=0x300 align=64\n.dram 8192\n"
    ".entry \"main\" at=A views=2\n.launch at=A tag=1 views=3 op=\"relu\" graph=\"map\"\n"
    ".launch at=B tag=2 op=\"add\" graph=\"map\"\n"
    "A:\n  dma.copy @dma0 src=dram:f32+0x0[64:1] dst=dram:f32+0x200[64:1] tag=1\n  halt tag=1\n"
    "B:\n  dma.copy @dma0 src=dram:f32+0x200[64:1] dst=spm:f32+0x0[64:1] signal=1:1:done tag=2\n"
    "  v.map out=spm:f32+0x100[64:1] in0=spm:f32+0x0[64:1] in1=spm:f32+0x0[64:1] chain=(add in1) "
    "wait=1:1 signal=2:1:done tag=2\n"
    "  dma.copy @dma0 src=spm:f32+0x100[64:1] dst=dram:f32+0x100[64:1] wait=2:1 tag=2\n"
    "  halt tag=2\n";

// Launches of an eager run: they wait for the host, which is counted, and are timed again.
Test(device_sim, launches_with_a_host) {
    struct rig r;
    struct npu_run_info info;
    struct trace_log log = {0};
    struct host_model *host = NULL;
    init(&r, launches);
    struct sim_device *d = sim_device_of(r.device);
    sim_device_begin(d, NULL);
    run_doubler(&r, 1, &info);
    const struct sim_totals *t = sim_device_totals(d);
    const uint64_t alone = t->cycles;
    cr_assert_eq(t->jobs, 2);
    cr_assert_not_null(sim_device_host(d));
    cr_expect_eq(sim_device_host(d)->views, 3);
    cr_assert_null(host_model_default(&host));
    sim_device_set_host(d, host);
    sim_device_begin(d, &log);
    run_doubler(&r, 2, &info);
    const struct sim_host *h = sim_device_host(d);
    cr_expect_gt(h->bubble_cycles, 0);
    for (size_t i = 0; i < t->nengine; i++) {
        uint64_t sum = 0;
        for (int c = 0; c < TRACE_CLASSES; c++)
            sum += t->engine[i].cycles[c];
        cr_expect_eq(sum, t->cycles);
        cr_expect_eq(t->engine[i].cycles[TRACE_HOST], h->bubble_cycles);
    }
    cr_expect_gt(t->cycles, alone);
    cr_assert_null(trace_log_finish(&log));
    for (size_t i = 0; i < log.states; i++) // no hole between the states of an engine
        cr_expect_eq(log.state[i].from,
                     i && log.state[i - 1].engine == log.state[i].engine ? log.state[i - 1].to : 0);
    size_t made = 0;
    for (size_t i = 0; i < log.count; i++) {
        const struct trace_event *e = &log.event[i];
        if (e->kind != TRACE_EVENT_DISPATCH) continue;
        cr_expect_eq(e->id, made++);
        cr_expect_lt(e->start, e->done);
        cr_expect_leq(e->done, e->issued);
        cr_expect_eq(e->change, e->id ? 0 : 3);
    }
    cr_expect_eq(made, 2);
    struct sim_repeat again, noisy;
    for (uint64_t run = 0; run < 3; run++) {
        cr_assert_null(sim_device_repeat(d, NULL, run, &again));
        cr_expect_eq(again.cycles, t->cycles);
        cr_expect_eq(again.latency_ps, sim_device_latency_ps(d, t->cycles));
    }
    const struct noise all = {.sources = NOISE_ALL, .seed = 1};
    cr_assert_null(sim_device_repeat(d, &all, 4, &noisy));
    cr_assert_null(sim_device_repeat(d, &all, 4, &again));
    cr_expect_eq(again.latency_ps, noisy.latency_ps);
    cr_expect_neq(noisy.latency_ps, sim_device_latency_ps(d, t->cycles));
    trace_log_free(&log);
    deinit(&r);
    host_model_free(host);
}

Test(device_sim, a_fault_ends_its_job_and_the_next_one_runs) {
    struct rig r;
    init(&r, ".program \"p\"\n.target \"tiny\"\n.output \"y\" f32[8] at=0x100\n"
             "lddb rd=r1 index=0\nassert cond=eq rs1=r1 imm=7 tag=3\n"
             "dma.fill @dma0 value=1 dst=dram:f32+0x100[8:1]\nhalt\n");
    npu_status st = npu_session_run(r.session, NULL);
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    cr_assert(strstr(npu_status_message(st), "assert-failed"));
    npu_status_free(st);
    uint32_t code, tag;
    cr_assert_null(r.device->ops->mmio_read(r.device->handle, MMIO_FAULT_CODE, &code));
    cr_assert_null(r.device->ops->mmio_read(r.device->handle, MMIO_FAULT_TAG, &tag));
    cr_assert_eq(code, (uint32_t)EXEC_FAULT_ASSERT);
    cr_assert_eq(tag, 3u);
    cr_assert_null(npu_session_set_scalar(r.session, 0, 7));
    cr_assert_null(npu_session_run(r.session, NULL));
    float y[8];
    cr_assert_null(npu_session_read(r.session, NPU_OUTPUT, 0, NPU_F32, y, sizeof y));
    cr_assert_eq(y[7], 1.0f);
    deinit(&r);
}

Test(device_sim, scratch_is_unwritten_in_every_run) {
    struct rig r;
    init(&r, ".program \"p\"\n.target \"tiny\"\n.segment code at=0\n.segment scratch at=0x1000 "
             "bytes=64\n"
             "lddb rd=r1 index=0\nbr cond=eq rs1=r1 rs2=r0 offset=L\n"
             "dma.fill @dma0 value=1 dst=dram:f32+0x1000[16:1]\nL:\n"
             "dma.copy @dma0 fence=1 src=dram:f32+0x1000[16:1] dst=spm:f32+0x0[16:1]\nhalt\n");
    cr_assert_null(npu_session_set_scalar(r.session, 0, 1));
    cr_assert_null(npu_session_run(r.session, NULL));
    cr_assert_null(npu_session_set_scalar(r.session, 0, 0));
    npu_status st = npu_session_run(r.session, NULL);
    cr_assert_eq(npu_status_code(st), NPU_FAULT);
    cr_assert(strstr(npu_status_message(st), "unwritten-read"));
    npu_status_free(st);
    deinit(&r);
}

Test(device_sim, state_stays_from_run_to_run) {
    struct rig r;
    init(&r, ".program \"p\"\n.target \"tiny\"\n.state \"n\" i32[1] at=0\n"
             "lds rd=r1 space=dram width=4 offset=0\nalu rd=r1 func=add rs1=r1 imm=1\n"
             "sts rs2=r1 space=dram width=4 offset=0\nhalt\n");
    for (int32_t i = 1; i < 4; i++) {
        int32_t n;
        cr_assert_null(npu_session_run(r.session, NULL));
        cr_assert_null(npu_session_read(r.session, NPU_STATE, 0, NPU_I32, &n, sizeof n));
        cr_assert_eq(n, i);
    }
    deinit(&r);
}

Test(device_sim, counting_without_values_leaves_state_as_values_do) {
    struct rig r;
    init(&r, ".program \"p\"\n.target \"tiny\"\n.state \"n\" i32[1] at=0\n"
             "lds rd=r1 space=dram width=4 offset=0\nalu rd=r1 func=add rs1=r1 imm=1\n"
             "sts rs2=r1 space=dram width=4 offset=0\nhalt\n");
    npu_session_free(r.session);
    npu_device_close(r.device);
    const struct npu_simulator_config config = {.machine = npu_program_machine(r.program),
                                                .no_data = 1};
    cr_assert_null(npu_device_open(npu_simulator_ops(), &config, &r.device));
    cr_assert_null(npu_session_new(r.device, r.program, &r.session));
    for (int32_t i = 1; i < 4; i++) {
        int32_t n;
        cr_assert_null(npu_session_run(r.session, NULL));
        cr_assert_null(npu_session_read(r.session, NPU_STATE, 0, NPU_I32, &n, sizeof n));
        cr_assert_eq(n, i); // passes that look for what must be computed leave no trace
    }
    deinit(&r);
}
