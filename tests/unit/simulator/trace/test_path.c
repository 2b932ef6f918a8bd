// SPDX-License-Identifier: Apache-2.0
//
// Longest paths against every path of small random graphs; the critical path of a program of a few
// instructions by hand.
#include <criterion/criterion.h>
#include <string.h>

#include "isa/insn.h"
#include "simulator/trace/critical.h"
#include "simulator/trace/path.h"

#define NODES 12

static uint64_t state = 1;

static uint64_t draw(uint64_t below) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (state >> 33) % below;
}

struct graph {
    size_t n;
    int64_t lag[NODES][NODES]; // -1: no edge
    int64_t rest[NODES];
};

// Time of a node by trying every path to it.
static int64_t longest(const struct graph *g, size_t j) {
    int64_t best = 0;
    for (size_t i = 0; i < j; i++)
        if (g->lag[i][j] >= 0) {
            const int64_t t = longest(g, i) + g->lag[i][j];
            if (t > best) best = t;
        }
    return best + g->rest[j];
}

// A random graph whose last node follows all others.
static void random_graph(struct graph *g) {
    g->n = 2 + draw(NODES - 1);
    for (size_t j = 0; j < g->n; j++) {
        g->rest[j] = (int64_t)draw(3) * (int64_t)draw(20);
        for (size_t i = 0; i < j; i++)
            g->lag[i][j] = draw(3) == 0 ? (int64_t)draw(30) : -1;
        if (j + 1 == g->n)
            for (size_t i = 0; i < j; i++)
                if (g->lag[i][j] < 0) g->lag[i][j] = 0;
    }
}

static void make(struct graph *g, struct path_graph *p) {
    uint64_t at[NODES];
    for (size_t j = 0; j < g->n; j++)
        at[j] = (uint64_t)longest(g, j);
    cr_assert_null(path_init(p, g->n, at));
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = i + 1; j < g->n; j++)
            if (g->lag[i][j] >= 0) path_edge_add(p, i, j, g->lag[i][j], 0);
    cr_assert_null(path_settle(p));
}

Test(path, rests_slack_and_path_are_those_of_every_path_tried) {
    for (int round = 0; round < 400; round++) {
        struct graph g;
        struct path_graph p;
        int64_t slack[NODES], when[NODES], lag[NODES * NODES];
        size_t step[NODES], count;
        random_graph(&g);
        make(&g, &p);
        cr_assert_eq(p.cut, 0);
        const size_t last = g.n - 1;
        const int64_t end = longest(&g, last);
        path_slack(&p, slack);
        for (size_t j = 0; j < g.n; j++) {
            cr_assert_eq(p.rest[j], g.rest[j], "round %d, node %zu", round, j);
            g.rest[j] += slack[j];
            cr_assert_eq(longest(&g, last), end, "round %d, node %zu may come later", round, j);
            g.rest[j] += 1;
            cr_assert_eq(longest(&g, last), end + 1, "round %d, node %zu no later", round, j);
            g.rest[j] -= slack[j] + 1;
        }
        path_trace(&p, last, step, &count);
        int64_t at = end;
        for (size_t k = 0; k < count; k++) { // the path explains the end, back to a first node
            const struct path_edge *e = &p.edge[step[k]];
            cr_assert_eq(slack[e->to], 0);
            at -= g.rest[e->to] + e->lag;
            cr_assert_eq(at, p.at[e->from]);
        }
        // Other lags: the times of a graph that has them.
        for (size_t e = 0; e < p.edges; e++) {
            lag[e] = (int64_t)draw(40);
            g.lag[p.edge[e].from][p.edge[e].to] = lag[e];
        }
        path_forward(&p, lag, when);
        for (size_t j = 0; j < g.n; j++)
            cr_assert_eq(when[j], longest(&g, j), "round %d, node %zu", round, j);
        path_deinit(&p);
    }
}

Test(path, an_edge_that_says_too_much_is_cut) {
    const uint64_t at[] = {0, 5, 9};
    struct path_graph p;
    cr_assert_null(path_init(&p, 3, at));
    path_edge_add(&p, 0, 1, 7, 0);
    path_edge_add(&p, 1, 2, 3, 0);
    path_edge_add(&p, 2, 1, 3, 0); // backwards
    cr_assert_null(path_settle(&p));
    cr_expect_eq(p.cut, 1);
    cr_expect_eq(p.edges, 2);
    cr_expect_eq(p.rest[1], 0);
    cr_expect_eq(p.rest[2], 1);
    path_deinit(&p);
}

// ---- a program ---------------------------------------------------------------------------------

struct program {
    uint8_t code[64 * ISA_GRANULE_BYTES];
    size_t granules;
    struct hw hw;
    struct trace_log log;
    struct trace_run run;
};

static uint32_t put(struct program *p, enum isa_op op, int engine, int wait, int signal) {
    struct isa_insn in;
    const char *field;
    isa_init(&in, op);
    in.h.engine = engine;
    if (wait) in.h.wait0_sem = wait, in.h.wait0_value = 1, in.h.acquire = 1;
    if (signal) in.h.sig0_sem = signal, in.h.sig0_inc = 1, in.h.sig0_when = ISA_AT_DONE;
    const size_t pc = p->granules;
    const int n = isa_encode(&in, p->code + pc * ISA_GRANULE_BYTES, &field);
    cr_assert_gt(n, 0, "%s", field);
    p->granules += (size_t)n;
    return (uint32_t)pc;
}

static void ran(struct program *p, enum isa_op op, int engine, uint32_t pc, uint64_t dispatched,
                uint64_t start, uint64_t done) {
    trace_log_add(&p->log, &(struct trace_event){.opcode = (int)op,
                                                 .engine = engine,
                                                 .pc = pc,
                                                 .seq = p->log.count,
                                                 .dispatched = dispatched,
                                                 .ready = dispatched,
                                                 .start = start,
                                                 .read = done,
                                                 .issued = done,
                                                 .done = done,
                                                 .wait_engine = -1,
                                                 .cause_seq = TRACE_NO_SEQ});
}

// A load of 400 cycles lets a SYNC of the matrix engine start, which takes 600; a vector SYNC of
// 100 cycles depends on nothing.
static void program_init(struct program *p) {
    memset(p, 0, sizeof *p);
    hw_defaults(&p->hw);
    p->hw.cp_semaphore = 4;
    const uint32_t load = put(p, ISA_OP_SYNC, ISA_ENGINE_DMA0, 0, 1);
    const uint32_t product = put(p, ISA_OP_SYNC, ISA_ENGINE_MXU, 1, 0);
    const uint32_t other = put(p, ISA_OP_SYNC, ISA_ENGINE_VEC, 0, 0);
    const uint32_t halt = put(p, ISA_OP_HALT, ISA_ENGINE_CP, 0, 0);
    ran(p, ISA_OP_SYNC, ISA_ENGINE_DMA0, load, 50, 50, 450);
    ran(p, ISA_OP_SYNC, ISA_ENGINE_MXU, product, 51, 454, 1054);
    ran(p, ISA_OP_SYNC, ISA_ENGINE_VEC, other, 52, 52, 152);
    ran(p, ISA_OP_HALT, ISA_ENGINE_CP, halt, 52, 52, 1055);
    p->run = (struct trace_run){.hw = &p->hw,
                                .cycles = 1055,
                                .code = {p->code, p->granules * ISA_GRANULE_BYTES}};
    cr_assert_null(trace_log_finish(&p->log));
}

Test(critical, the_path_of_a_program_by_hand) {
    struct program p;
    struct critical *c;
    size_t n;
    program_init(&p);
    cr_assert_null(critical_new(&p.run, &p.log, &c));
    cr_assert_not_null(c);
    cr_expect_eq(critical_contradictions(c), 0);
    const struct critical_step *s = critical_steps(c, &n);
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(s[i].from, at);
        cr_expect_eq(s[i].work + s[i].latency + s[i].other, s[i].to - s[i].from);
        at = s[i].to;
    }
    cr_expect_eq(at, p.run.cycles);
    cr_assert_geq(n, 3);
    // Of the load (number 0) 400 cycles and its signal, then of the product, then the end.
    cr_expect_eq(s[n - 2].kind, CRITICAL_SIGNAL);
    cr_expect_eq(s[n - 2].insn, 0);
    cr_expect_eq(s[n - 2].work, 400);
    cr_expect_eq(s[n - 2].latency, 4);
    cr_expect_eq(s[n - 1].kind, CRITICAL_BARRIER);
    cr_expect_eq(s[n - 1].work, 600);
    cr_expect_eq(s[n - 1].other, 1);
    // In order of start: load, vector, halt, product.
    cr_expect_eq(critical_slack(c, 0), 0);
    cr_expect_eq(critical_slack(c, 1), 1054 - 152);
    cr_expect_eq(critical_slack(c, 3), 0);
    critical_free(c);
    trace_log_free(&p.log);
}

Test(critical, changes_move_the_end) {
    struct program p;
    struct critical *c;
    double cycles;
    program_init(&p);
    cr_assert_null(critical_new(&p.run, &p.log, &c));
    cr_assert_null(critical_predict(c, &(struct critical_change){0}, &cycles));
    cr_expect_eq((uint64_t)cycles, 1055);
    cr_assert_null(critical_predict(c, &(struct critical_change){.compute = 0.5}, &cycles));
    cr_expect_eq((uint64_t)cycles, 755);
    cr_assert_null(critical_predict(c, &(struct critical_change){.no_latency = true}, &cycles));
    cr_expect_eq((uint64_t)cycles, 1051);
    // The load is gone from the path: what remains is dispatching.
    cr_assert_null(critical_predict(c, &(struct critical_change){.link = 0.5}, &cycles));
    cr_expect_eq((uint64_t)cycles, 855);
    critical_free(c);
    trace_log_free(&p.log);
}

Test(critical, nothing_without_code) {
    struct program p;
    struct critical *c;
    program_init(&p);
    p.run.code.size = 0;
    cr_assert_null(critical_new(&p.run, &p.log, &c));
    cr_expect_null(c);
    critical_free(c);
    trace_log_free(&p.log);
}

// A launch of an eager program: a SYNC of the matrix engine and a HALT. The host makes it from
// `begin` to `made`, the device is at it from `from` to `to`, 10 cycles of which are not the SYNC.
static void launch(struct program *p, uint64_t begin, uint64_t made, uint64_t from, uint64_t to) {
    trace_log_add(&p->log, &(struct trace_event){.kind = TRACE_EVENT_DISPATCH,
                                                 .engine = ISA_ENGINE_CP,
                                                 .seq = p->log.count + 1,
                                                 .start = begin,
                                                 .done = made,
                                                 .issued = from,
                                                 .wait_engine = -1,
                                                 .cause_seq = TRACE_NO_SEQ});
    const uint32_t product = put(p, ISA_OP_SYNC, ISA_ENGINE_MXU, 0, 0);
    const uint32_t halt = put(p, ISA_OP_HALT, ISA_ENGINE_CP, 0, 0);
    ran(p, ISA_OP_SYNC, ISA_ENGINE_MXU, product, from + 5, from + 5, to - 5);
    ran(p, ISA_OP_HALT, ISA_ENGINE_CP, halt, from + 6, from + 6, to);
    p->run.cycles = to;
}

static void launches_init(struct program *p) {
    memset(p, 0, sizeof *p);
    hw_defaults(&p->hw);
}

static struct critical *launches_path(struct program *p) {
    struct critical *c;
    p->run.hw = &p->hw;
    p->run.code = (struct span){p->code, p->granules * ISA_GRANULE_BYTES};
    cr_assert_null(trace_log_finish(&p->log));
    cr_assert_null(critical_new(&p->run, &p->log, &c));
    cr_assert_not_null(c);
    cr_expect_eq(critical_contradictions(c), 0);
    return c;
}

static void expect_cycles(const struct critical *c, struct critical_change change,
                          uint64_t wanted) {
    double cycles;
    cr_assert_null(critical_predict(c, &change, &cycles));
    cr_expect_eq((uint64_t)cycles, wanted, "%g cycles, expected %llu", cycles,
                 (unsigned long long)wanted);
}

Test(critical, work_of_the_device_hides_behind_the_host) {
    struct program p;
    size_t n;
    launches_init(&p);
    launch(&p, 100, 1000, 1000, 1110);
    launch(&p, 1200, 3000, 3000, 3110);
    launch(&p, 3000, 3050, 3110, 3620);
    struct critical *c = launches_path(&p);
    const struct critical_step *s = critical_steps(c, &n);
    uint64_t at = 0, host = 0;
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(s[i].from, at);
        cr_expect_eq(s[i].work + s[i].latency + s[i].other, s[i].to - s[i].from);
        if (s[i].kind == CRITICAL_HOST) host += s[i].work;
        at = s[i].to;
    }
    cr_expect_eq(at, 3620);
    cr_expect_eq(host, 3000);
    cr_assert_geq(n, 2);
    cr_expect_eq(s[0].insn, 0);
    cr_expect_eq(s[1].kind, CRITICAL_HOST);
    cr_expect_eq(s[1].insn, 2, "the first instruction of the second launch");
    // In order of start: product and halt of each launch. The second one starts at 3000.
    cr_expect_eq(critical_slack(c, 0), 3000 - 1110);
    cr_expect_eq(critical_slack(c, 1), 3000 - 1110);
    cr_expect_eq(critical_slack(c, 2), 0);
    cr_expect_eq(critical_slack(c, 4), 0);
    expect_cycles(c, (struct critical_change){0}, 3620);
    // Products of 100 and of 500 cycles; the third launch is made at 3050.
    expect_cycles(c, (struct critical_change){.compute = 0.5}, 3060 + 260);
    expect_cycles(c, (struct critical_change){.compute = 0.1}, 3050 + 60);
    expect_cycles(c, (struct critical_change){.host = 0.5}, 1610 + 510);
    critical_free(c);
    trace_log_free(&p.log);
}

// Stopped before the first instruction, or before the first one of the second launch.
Test(critical, launches_without_instructions) {
    for (size_t ran = 0; ran < 2; ran++) {
        struct program p;
        size_t n;
        launches_init(&p);
        for (size_t i = 0; i <= ran; i++)
            launch(&p, i * 1000, i * 1000 + 100, i * 1000 + 100, i * 1000 + 210);
        p.log.count -= 2; // the last launch's
        struct critical *c = launches_path(&p);
        const struct critical_step *s = critical_steps(c, &n);
        cr_expect_eq(n ? s[n - 1].to : 0, ran * 1100);
        critical_free(c);
        trace_log_free(&p.log);
    }
}

// A queue of one place: a launch is made when the one before has started. The host works for 10
// cycles on each.
Test(critical, a_host_that_waits_for_its_queue) {
    struct program p;
    launches_init(&p);
    launch(&p, 0, 10, 10, 110);
    launch(&p, 10, 20, 110, 210);
    launch(&p, 20, 110, 210, 310);
    launch(&p, 110, 210, 310, 410);
    p.run.launches.full_us = (80 + 90) / (double)p.hw.clock_npu_mhz;
    struct critical *c = launches_path(&p);
    expect_cycles(c, (struct critical_change){0}, 410);
    expect_cycles(c, (struct critical_change){.compute = 1.0 / 9}, 10 + 4 * 20);
    expect_cycles(c, (struct critical_change){.host = 20}, 4 * 200 + 100);
    critical_free(c);
    trace_log_free(&p.log);
}
