// SPDX-License-Identifier: Apache-2.0
//
// The firmware of the device: the command loop, for ever.

#include "firmware/port_rv32/port.h"

static struct fw state;

void rv32_main(void) {
    fw_init(&state, &rv32_port);
    fw_run(&state);
}
