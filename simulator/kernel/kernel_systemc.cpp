// SPDX-License-Identifier: Apache-2.0
//
// SystemC behind kernel.h: translation only, no model code here.
//
// A process is an SC_METHOD that is sensitive to one event of its own; waking it is a timed
// notification, of which SystemC keeps the earliest. Runs end by starvation or sc_pause, never by
// sc_stop, so the same context runs again: a reset cancels what is pending and moves the origin of
// time to where SystemC stands. After an exception the context is unusable: kernels made before it
// stay failed, the next one gets a new context. Contexts are never deleted, because a static event
// inside the library outlives them. SystemC keeps the names of its objects for good, so processes
// of a freed kernel wait for the next one that wants such: any number of kernels, one after the
// other, takes the memory of one. No exception leaves this file: C code does not let it pass.
#define SC_INCLUDE_DYNAMIC_PROCESSES
#include <systemc>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "simulator/kernel/kernel.h"

using namespace sc_core;

// libsystemc refers to it; programs have their own main.
int sc_main(int, char **) {
    return 0;
}

struct kernel_process {
    kernel *owner;
    std::string name; // as kernel_spawn was given it
    sc_event wake;
    kernel_step *step;
    void *self;
    sc_process_handle handle;
    explicit kernel_process(const char *of)
        : owner(nullptr), name(of), wake(sc_gen_unique_name(of)), step(nullptr), self(nullptr) {}
};

struct kernel {
    std::vector<kernel_process *> processes;
    uint64_t origin_ps = 0; // SystemC's time at this kernel's time 0
    uint64_t steps = 0;
    bool stopping = false;
    bool failed = false;  // an exception was caught outside of kernel_run
    unsigned context = 0; // which context it lives in
    std::string error;
};

static struct {
    unsigned number = 0; // of the context in use
    bool ready = false;
    bool broken = false; // an exception passed through it
    std::string error;
    std::vector<sc_simcontext *> retired;
    std::vector<kernel_process *> idle; // of freed kernels in the context in use
} context;

// Keeps the reason of a failure, which may itself be that memory ran out.
static void keep(std::string &error, const char *what) noexcept {
    try {
        error = what;
    } catch (const std::exception &) {
        error = "out of memory"; // short enough to need none
    }
}

// Ends processes, whose context may be out of use.
static void discard(std::vector<kernel_process *> &processes) {
    while (!processes.empty()) {
        kernel_process *p = processes.back();
        processes.pop_back();
        p->handle.kill();
        delete p;
    }
}

static void context_make() {
    if (setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0)) throw std::bad_alloc();
    if (!sc_curr_simcontext || context.broken) {
        if (sc_curr_simcontext) context.retired.push_back(sc_curr_simcontext);
        discard(context.idle);
        sc_default_global_context = sc_curr_simcontext = new sc_simcontext;
    }
    sc_report_handler::set_actions(SC_INFO, SC_DO_NOTHING);
    sc_report_handler::set_actions(SC_WARNING, SC_DO_NOTHING);
    sc_report_handler::set_actions(SC_ERROR, SC_THROW);
    sc_report_handler::set_actions(SC_FATAL, SC_THROW);
    sc_set_time_resolution(1, SC_PS);
    sc_start(SC_ZERO_TIME); // ends elaboration: processes are added while it runs
    context.ready = true;
    context.broken = false;
    context.number++;
}

static uint64_t systemc_now() {
    return sc_time_stamp().value();
}

static bool usable(const kernel *k) {
    return k->context == context.number && !context.broken;
}

extern "C" kernel *kernel_new(void) {
    try {
        if (!context.ready || context.broken) context_make();
        kernel *k = new kernel;
        k->origin_ps = systemc_now();
        k->context = context.number;
        return k;
    } catch (const std::exception &x) {
        keep(context.error, x.what());
        return nullptr;
    }
}

extern "C" void kernel_free(kernel *k) {
    if (!k) return;
    try {
        for (kernel_process *p : k->processes)
            p->wake.cancel();
        if (usable(k))
            context.idle.insert(context.idle.end(), k->processes.begin(), k->processes.end());
        else
            discard(k->processes);
    } catch (const std::exception &x) {
        context.broken = true;
    }
    delete k;
}

// An idle one of that name, or a new one.
static kernel_process *process_of(const char *name) {
    for (size_t i = context.idle.size(); i-- > 0;) {
        kernel_process *p = context.idle[i];
        if (p->name != name) continue;
        context.idle.erase(context.idle.begin() + static_cast<std::ptrdiff_t>(i));
        return p;
    }
    std::unique_ptr<kernel_process> holder(new kernel_process(name));
    kernel_process *p = holder.get();
    sc_spawn_options options;
    options.spawn_method();
    options.dont_initialize();
    options.set_sensitivity(&p->wake);
    p->handle = sc_spawn(
        [p] {
            p->owner->steps++;
            p->step(p->self);
        },
        sc_gen_unique_name(name), &options);
    return holder.release();
}

extern "C" kernel_process *kernel_spawn(kernel *k, const char *name, kernel_step *step,
                                        void *self) {
    try {
        k->processes.reserve(k->processes.size() + 1);
        kernel_process *p = process_of(name);
        p->owner = k;
        p->step = step;
        p->self = self;
        k->processes.push_back(p);
        return p;
    } catch (const std::exception &x) {
        keep(k->error, x.what());
        context.broken = true;
        return nullptr;
    }
}

extern "C" void kernel_wake(kernel_process *p, uint64_t at_ps) {
    if (at_ps == KERNEL_NEVER) return;
    kernel *k = p->owner;
    const uint64_t now = systemc_now(), at = at_ps + k->origin_ps;
    if (k->failed) return;
    try {
        p->wake.notify(sc_time::from_value(at > now ? at - now : 0));
    } catch (const std::exception &x) {
        keep(k->error, x.what());
        k->failed = context.broken = true;
        sc_pause();
    }
}

extern "C" void kernel_wake_only(kernel_process *p, uint64_t at_ps) {
    p->wake.cancel();
    kernel_wake(p, at_ps);
}

extern "C" uint64_t kernel_now(const kernel *k) {
    return systemc_now() - k->origin_ps;
}

extern "C" uint64_t kernel_next(const kernel *k) {
    const sc_simcontext *c = sc_get_curr_simcontext();
    if (sc_pending_activity_at_current_time(c)) return kernel_now(k);
    // The difference to the end of time when nothing is pending.
    const uint64_t at = (sc_time_stamp() + sc_time_to_pending_activity(c)).value();
    return at == sc_max_time().value() ? KERNEL_NEVER : at - k->origin_ps;
}

extern "C" void kernel_stop(kernel *k) {
    if (k->stopping) return;
    k->stopping = true;
    sc_pause();
}

extern "C" kernel_end kernel_run(kernel *k) {
    if (k->failed) return KERNEL_FAILED;
    if (!usable(k)) {
        keep(k->error, "an earlier failure ended this kernel");
        return KERNEL_FAILED;
    }
    k->stopping = false;
    k->error.clear();
    try {
        if (sc_pending_activity()) sc_start();
    } catch (const std::exception &x) {
        keep(k->error, x.what());
        context.broken = true;
        return KERNEL_FAILED;
    }
    if (k->failed) return KERNEL_FAILED;
    return k->stopping ? KERNEL_STOPPED : KERNEL_QUIET;
}

extern "C" void kernel_reset(kernel *k) {
    for (kernel_process *p : k->processes)
        p->wake.cancel();
    k->origin_ps = systemc_now();
    k->stopping = false;
}

extern "C" uint64_t kernel_steps(const kernel *k) {
    return k->steps;
}

extern "C" const char *kernel_error(const kernel *k) {
    return k ? k->error.c_str() : context.error.c_str();
}
