# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's test of its mlx5 VFIO driver on a virtual function of an InfiniBand card, which shares the port's LID: its packets have
to name it by its GID. Loaded beside the tests of that suite (tests/pyverbs/suite.py)."""
import os
import subprocess

import tests.mlx5_base as base
import tests.utils
from tests import mlx5_prm_structs as prm
from tests import test_mlx5_vfio as vfio
from tests.mlx5_prm_structs import (CreateQpOut, DevxOps, ModifyQpIn, ModifyQpOut, QueryHcaVportGidIn,
                                    QueryHcaVportGidOut, SwQpc)


class WholeEqe(prm.SwEqe):
    """The suite reads 8 of an EQE's 64 bytes, and scapy takes nothing less than all of a packet any more."""

    def __init__(self, _pkt=b"", **fields):
        super().__init__(_pkt.ljust(64, b"\0") if _pkt else _pkt, **fields)


prm.SwEqe = WholeEqe


class VfResources(vfio.Mlx5VfioResources):
    def query_lid(self):
        super().query_lid()
        out = QueryHcaVportGidOut(self.ctx.devx_general_cmd(QueryHcaVportGidIn(), len(QueryHcaVportGidOut())))
        assert out.status == 0, f"QUERY_HCA_VPORT_GID: syndrome {out.syndrome:#x}"
        words = (out.gid0.prefix << 64) | out.gid0.guid
        self.gid = [words >> shift & 0xffffffff for shift in (96, 64, 32, 0)]

    def to_rts(self):
        def step(opcode, qpc):
            qpc.primary_address_path.vhca_port_num = self.ib_port
            self.qp.modify(ModifyQpIn(opcode=opcode, qpn=CreateQpOut(self.qp.out_view).qpn, sw_qpc=qpc), len(ModifyQpOut()))

        step(DevxOps.MLX5_CMD_OP_RST2INIT_QP, SwQpc(rre=1, rwe=1))
        qpc = SwQpc(mtu=base.PATH_MTU, log_msg_max=20, remote_qpn=self.rqpn, min_rnr_nak=base.MIN_RNR_TIMER,
                    next_rcv_psn=self.rpsn)
        path = qpc.primary_address_path
        path.rlid, path.grh, path.rgid_rip, path.hop_limit = self.rlid, 1, self.rgid, tests.utils.PacketConsts.TTL_HOP_LIMIT
        step(DevxOps.MLX5_CMD_OP_INIT2RTR_QP, qpc)
        qpc = SwQpc(retry_count=base.RETRY_CNT, rnr_retry=base.RNR_RETRY, next_send_psn=self.psn, log_sra_max=base.MAX_RDMA_ATOMIC)
        qpc.primary_address_path.ack_timeout = base.TIMEOUT
        step(DevxOps.MLX5_CMD_OP_RTR2RTS_QP, qpc)


class VfioEqResources(vfio.Mlx5VfioEqResources):
    """The suite sets the port up by its own register, where it is up already: TOGGLE_PORT is a command that has it go down and up, run now
    that events are listened for."""

    def change_port_state_with_registers(self, state):
        super().change_port_state_with_registers(state)
        subprocess.run(["bash", "-c", os.environ["TOGGLE_PORT"]], check=True)


class VfVfioTest(vfio.Mlx5VfioTrafficTest):
    def create_players(self):
        self.server = VfResources(ib_port=self.ib_port, pci_name=self.pci_dev, activate_port_state=True)
        self.client = VfResources(ib_port=self.ib_port, pci_name=self.pci_dev, ctx=self.server.ctx)

    def create_async_players(self):
        self.server = VfioEqResources(ib_port=self.ib_port, pci_name=self.pci_dev)
        self.client = vfio.Mlx5VfioResources(ib_port=self.ib_port, pci_name=self.pci_dev, ctx=self.server.ctx)
