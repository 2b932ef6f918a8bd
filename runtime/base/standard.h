// SPDX-License-Identifier: Apache-2.0
//
// Standard input, output and error of a program: a closed one must not be taken for a file that is
// opened later, and text that did not get out must not look like success, also when --help or
// --version ends the program.
//
//     int main(int argc, char **argv) {
//         standard_init("npuc");
//         npu_status st = run(argc, argv);
//         return npu_status_report(standard_finish(st), "npuc");
//     }
#ifndef RUNTIME_BASE_STANDARD_H
#define RUNTIME_BASE_STANDARD_H

#include "runtime/base/status.h"

/// First in main. Descriptors 0 to 2 that are closed are opened so that using them fails; a file
/// that outgrows the process's limit fails its writer instead of ending the program. When the
/// program ends without standard_finish and its output could not be written, it says so under this
/// name (lent) and ends with exit status 6.
void standard_init(const char *program);

/// Writes out what is left of standard output: IO when any of it could not be written and `st` is
/// success, else `st`.
NPU_MUST_USE npu_status standard_finish(npu_status st);

#endif
