// SPDX-License-Identifier: BSD-3-Clause
// The handlers that general.def names, declared.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_GENERAL_HANDLERS_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_GENERAL_HANDLERS_H

#include "firmware-stub/command.h"

namespace hcasim::fw {

Syndrome create_sched_object(Firmware&, Command&);
Syndrome modify_sched_object(Firmware&, Command&);
Syndrome query_sched_object(Firmware&, Command&);
Syndrome destroy_sched_object(Firmware&, Command&);
Syndrome create_ipsec(Firmware&, Command&);
Syndrome modify_ipsec(Firmware&, Command&);
Syndrome query_ipsec(Firmware&, Command&);
Syndrome destroy_ipsec(Firmware&, Command&);
Syndrome create_macsec(Firmware&, Command&);
Syndrome modify_macsec(Firmware&, Command&);
Syndrome query_macsec(Firmware&, Command&);
Syndrome destroy_macsec(Firmware&, Command&);
Syndrome create_encryption_key(Firmware&, Command&);
Syndrome query_encryption_key(Firmware&, Command&);
Syndrome destroy_encryption_key(Firmware&, Command&);
Syndrome create_geneve_option(Firmware&, Command&);
Syndrome query_geneve_option(Firmware&, Command&);
Syndrome destroy_geneve_option(Firmware&, Command&);
Syndrome create_header_arguments(Firmware&, Command&);
Syndrome destroy_header_arguments(Firmware&, Command&);
Syndrome create_flow_meter(Firmware&, Command&);
Syndrome query_flow_meter(Firmware&, Command&);
Syndrome destroy_flow_meter(Firmware&, Command&);
Syndrome create_match_definer(Firmware&, Command&);
Syndrome query_match_definer(Firmware&, Command&);
Syndrome destroy_match_definer(Firmware&, Command&);
Syndrome create_page_track(Firmware&, Command&);
Syndrome modify_page_track(Firmware&, Command&);
Syndrome query_page_track(Firmware&, Command&);
Syndrome destroy_page_track(Firmware&, Command&);
Syndrome create_reserved_qpns(Firmware&, Command&);
Syndrome destroy_reserved_qpns(Firmware&, Command&);

}  // namespace hcasim::fw
#endif
