/* Ports and parameters that the fake modules of lib/pipe's tests share. */
#ifndef FAKE_ROWS_H
#define FAKE_ROWS_H

#include "recon/kernel.h"

#ifndef FAKE_ABI
#define FAKE_ABI RECON_KERNEL_ABI
#endif

static const struct recon_port no_ports[] = { { 0 } };
static const struct recon_port points_port[] = { { "points", RECON_POINTS, 0, "some points" }, { 0 } };
static const struct recon_param no_params[] = { { 0 } };

#endif
