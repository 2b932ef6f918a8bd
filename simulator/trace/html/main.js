// SPDX-License-Identifier: Apache-2.0
// Starts the page. `npusim` is what tests and the console may look at.
"use strict";

const npusim = { ready: false, model: null, error: null };

(async () => {
  const began = performance.now();
  try {
    theme.start();
    const m = await model.make();
    npusim.model = m;
    view.start(m.cycles);
    critical.start(m);
    jitter.start(m);
    overview.start(m);
    timeline.start(m);
    input.start(m);
    stalls.start(m);
    layers.start(m);
    roofline.start(m);
    memory.start(m);
    view.changed();
    await m.d.assembly;
  } catch (error) {
    npusim.error = String(error && error.stack || error);
    $("fault").hidden = false;
    $("fault").textContent = `This report cannot be shown: ${error && error.message || error}`;
    throw error;
  } finally {
    $("main").removeAttribute("aria-busy");
    npusim.milliseconds = performance.now() - began;
    npusim.ready = true;
  }
})();
