// SPDX-License-Identifier: Apache-2.0
//
// The host's and the device's time against a simulation of the queue that is written another way:
// step by step in time, with a list of what waits.
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/base/str.h"
#include "simulator/line.h"

enum { LAUNCHES = 200 };

static struct host_model *model_of(unsigned queue) {
    struct host_model *m = NULL;
    struct str s = {0};
    str_printf(&s,
               "{\"format\": \"npu-host-model\", \"version\": 1, \"queue\": %u, "
               "\"provenance\": {\"device\": \"d\", \"framework\": \"f\", \"host\": "
               "\"h\"}, \"dispatch\": {\"add\": {\"quantiles_us\": [1, 2, 40]}, "
               "\"reshape_view\": {\"quantiles_us\": [0.5, 1, 3]}}, \"slow\": {\"level\": 1, "
               "\"quantiles\": [0.5, 1, 2], \"components\": []}, \"compiled\": "
               "{\"quantiles_us\": [5, 10, 20], \"submit_share\": 0.5, \"components\": []}}",
               queue);
    npu_status st = host_model_parse(str_text(&s), s.len, "model", &m);
    cr_assert_null(st, "%s", npu_status_message(st));
    str_free(&s);
    return m;
}

struct load {
    uint32_t views[LAUNCHES], at_end;
    uint64_t cycles[LAUNCHES];
};

static void draw(struct load *l, uint64_t seed, uint64_t longest) {
    for (int i = 0; i < LAUNCHES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        l->views[i] = (uint32_t)(seed >> 60) % 5;
        l->cycles[i] = 1 + (seed >> 30) % longest;
    }
    l->at_end = 3;
}

// Launches are made one after another; each enters the queue in the first moment in which fewer
// than `places` of those made before it have not started. 1000 MHz: a cycle is 1000 ps.
static void simulate(const struct load *l, const struct host_run *host, uint64_t places,
                     uint64_t start[LAUNCHES], uint64_t *latency_ps, uint64_t *full_ps) {
    uint64_t now = 0, event = 0, end = 0;
    *full_ps = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        for (uint32_t v = 0; v < l->views[i]; v++)
            now += host_view_ps(host, event++);
        now += host_launch_ps(host, HOST_ADD, event++);
        const uint64_t made = now;
        for (;;) {
            uint64_t waiting = 0, first = UINT64_MAX;
            for (int j = 0; j < i; j++)
                if (start[j] * 1000 > now) {
                    waiting++;
                    if (start[j] * 1000 < first) first = start[j] * 1000;
                }
            if (waiting < places) break;
            now = first;
        }
        *full_ps += now - made;
        const uint64_t edge = (now + 999) / 1000;
        start[i] = edge > end ? edge : end;
        end = start[i] + l->cycles[i];
    }
    for (uint32_t v = 0; v < l->at_end; v++)
        now += host_view_ps(host, event++);
    *latency_ps = (end * 1000 > now ? end * 1000 : now) + host_finish_ps(host);
}

static void compare(unsigned queue, const struct noise *noise, uint64_t run, uint64_t longest) {
    struct host_model *m = model_of(queue);
    struct load l;
    struct sim_line line;
    struct host_run host;
    uint64_t start[LAUNCHES], latency, full, busy = 0, bubbles = 0, bubble;
    draw(&l, 7 + run, longest);
    host_run_begin(m, noise ? *noise : (struct noise){0}, run, &host);
    simulate(&l, &host, queue, start, &latency, &full);
    cr_assert_null(sim_line_begin(&line, m, noise, run, 1000));
    for (int i = 0; i < LAUNCHES; i++) {
        cr_assert_eq(sim_line_launch(&line, HOST_ADD, l.views[i], &bubble), start[i],
                     "queue %u, launch %d", queue, i);
        sim_line_ran(&line, l.cycles[i]);
        busy += l.cycles[i];
        bubbles += bubble;
    }
    cr_expect_eq(busy + bubbles, line.free);
    cr_expect_eq(line.sum.bubble_cycles, bubbles);
    cr_expect_eq(line.sum.full_ps, full);
    cr_expect_eq(line.sum.launches, LAUNCHES);
    cr_expect_eq(sim_line_latency_ps(&line, l.at_end), latency);
    sim_line_deinit(&line);
    host_model_free(m);
}

Test(line, equals_a_simulation_of_the_queue) {
    static const unsigned queues[] = {1, 2, 3, 7, 50, 199, 200, 1000};
    static const uint64_t longest[] = {2, 2000, 6000, 100000};
    const struct noise noise = {.sources = 1U << NOISE_HOST, .seed = 5};
    for (size_t q = 0; q < sizeof queues / sizeof *queues; q++)
        for (size_t k = 0; k < sizeof longest / sizeof *longest; k++)
            for (uint64_t run = 0; run < 3; run++)
                compare(queues[q], run ? &noise : NULL, run, longest[k]);
}

// A short queue makes the host wait, never the device: it can only start later.
Test(line, a_longer_queue_is_never_slower) {
    uint64_t before = UINT64_MAX;
    static const unsigned queues[] = {1, 2, 8, 64, 512};
    for (size_t q = 0; q < sizeof queues / sizeof *queues; q++) {
        struct host_model *m = model_of(queues[q]);
        struct sim_line line;
        struct load l;
        draw(&l, 3, 6000);
        cr_assert_null(sim_line_begin(&line, m, NULL, 0, 1000));
        for (int i = 0; i < LAUNCHES; i++) {
            sim_line_launch(&line, HOST_ADD, l.views[i], NULL);
            sim_line_ran(&line, l.cycles[i]);
        }
        cr_expect_leq(line.free, before);
        before = line.free;
        sim_line_deinit(&line);
        host_model_free(m);
    }
}

Test(line, without_a_host_launches_follow_each_other) {
    struct sim_line line;
    cr_assert_null(sim_line_begin(&line, NULL, NULL, 0, 700));
    for (uint64_t i = 0; i < 10; i++) {
        cr_expect_eq(sim_line_launch(&line, 0, 5, NULL), 100 * i);
        sim_line_ran(&line, 100);
    }
    cr_expect_eq(sim_line_latency_ps(&line, 2), (1000 * 1000000ull + 699) / 700);
    cr_expect_eq(line.sum.views, 52);
    cr_expect_eq(line.sum.bubble_cycles, 0);
    sim_line_deinit(&line);
}

Test(line, classes_of_launches) {
    struct host_model *m = model_of(4);
    int own, by_graph, none;
    const struct npu_image_launch a = {.op = "gelu", .graph_op = "map"},
                                  b = {.op = "no such operator", .graph_op = "matmul"},
                                  c = {.op = "no such operator", .graph_op = "neither"};
    cr_assert_null(sim_line_class(m, &a, &own));
    cr_expect_eq(own, host_model_class(m, "gelu", NULL));
    cr_assert_null(sim_line_class(m, &b, &by_graph));
    cr_expect_eq(by_graph, host_model_class(m, "matmul", NULL));
    npu_status st = sim_line_class(m, &c, &none);
    cr_expect_eq(npu_status_code(st), NPU_BAD_INPUT);
    cr_expect(strstr(npu_status_message(st), "no such operator"));
    npu_status_free(st);
    host_model_free(m);
}
