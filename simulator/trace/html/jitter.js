// SPDX-License-Identifier: Apache-2.0
// Distributions of the time over several runs.
"use strict";

const jitter = (() => {
  function start() { }
  return { start };
})();
