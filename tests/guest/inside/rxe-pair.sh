# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth --peer rxe --smp 2
# program: rdma_pair
# capture: --min roce-rc=1000 --min roce-uc=100 --min roce-ud=100 --min tcp=100
# The HCA against Linux's software RoCE (rdma_rxe), each as client and as server: every transport with data compared, every
# operation in sizes up to 1 MiB, connections made by RDMA CM.
#
# Not here, because rdma_rxe cannot do it (Linux 6.1 and 6.12, read in drivers/infiniband/sw/rxe and seen with rxe at both ends):
#   RoCE v1          it listens on UDP port 4791 only
#   ECN, CNP         it neither marks nor heeds; a CNP is an opcode that it does not know
#   path MTU 4096    its virtio interface has 1500 bytes, so 1024 is the largest; more would need a jumbo MTU on both ends
#   fences           a fenced request behind a read is at times never woken (rdma_pair: --no-fence)
#   loss             an atomic whose response was lost is completed without its result when a later packet is acknowledged; so
#                    traffic under loss is tested between HCAs (roce-loss)
#   XRC, DC, memory registration by UMR from the peer: not offered by it
ends_up
mark_kernel_log
note "software RoCE: $(uname -r), path MTU $(ibv_devinfo -d "$device" | awk '/active_mtu/ {print $2}')"

for client in a b; do
  pingpong_ends ibv_rc_pingpong -c -n 200
  pingpong_ends ibv_rc_pingpong -c -s 65536 -n 20
  pingpong_ends ibv_rc_pingpong -e -n 50
  pingpong_ends ibv_uc_pingpong -c -n 100
  pingpong_ends ibv_ud_pingpong -c -s 1024 -n 100
  pingpong_ends ibv_srq_pingpong -c -n 50
done

# rdma_rxe at times loses a response by itself, and serves a request that is sent again only after all that it has begun: a
# second's patience (-u 18).
perftest_rxe() { perftest_ends "$@" -u 18; }
for client in a b; do
  for tool in ib_send ib_write ib_read; do
    # perftest asks its own device for as many outstanding reads as the other end's has: 128 in rdma_rxe.
    outstanding=()
    [[ $tool != ib_read ]] || outstanding=(-o 8)
    for size in 2 65536; do perftest_rxe "${tool}_lat" -s $size -n 10 "${outstanding[@]}"; done
    for size in 1024 1048576; do perftest_rxe "${tool}_bw" -s $size -n 20 "${outstanding[@]}"; done
  done
  perftest_rxe ib_atomic_lat -n 20 -o 8
  perftest_rxe ib_atomic_bw -n 20 -o 8
  perftest_rxe ib_send_bw -c UC -s 4096 -n 50
  perftest_rxe ib_write_bw -c UC -s 65536 -n 20
  perftest_rxe ib_send_lat -c UD -s 1024 -n 50
done

for client in a b; do
  # Random writes, reads, atomics and sends, byte by byte.
  ends 60 tcp:18600 rdma_pair "$device" "$gid" --ops 500 --no-fence -- rdma_pair "$device" "$gid" --ops 500 --no-fence "$theirs"
  ends 60 cm rping -s -a 0.0.0.0 -v -V -C 20 -S 1000 -- rping -c -a "$theirs" -v -V -C 20 -S 1000
done
no_complaints "software RoCE and the HCA"
