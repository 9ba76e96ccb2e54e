# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G --append clearcpuid=141 -cpu max,la57=off
# disk: package-disk openmpi openmpi-bin python3-mpi4py ibverbs-providers dash
# Open MPI of Debian 12 (4.1) and 13 (5.0), four ranks in this guest, which talk by the HCA alone: latency, bandwidth, allreduce and
# alltoall, all results compared. By itself over UCX, of Debian 13; openmpi:all: both, over libfabric and each of UCX's
# transports, and on InfiniBand (openmpi-ib) the openib of 4.1 too.
# Open MPI 5 is compiled with cmpxchg16b, which tools/boot.sh hides from guests of QEMU before 8.0, as it breaks their kernel: here
# the kernel alone goes without (clearcpuid).
mark_kernel_log
ends_up 4200
package_roots

ranks=4
mpi_program() {
  cat >"$1/tmp/collectives.py" <<'PYTHON'
import array, sys, time
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
assert ranks == int(sys.argv[1]), ranks


def pattern(seed, size):
    return bytes((seed * 31 + i * 7) & 0xFF for i in range(min(size, 4096))) * (-(-size // 4096))


def told(what, size, seconds):
    if rank == 0:
        print(f"{what} {size} B: {seconds * 1e6:.1f} us", flush=True)


# There and back, between each neighbours, the payload compared.
for size, times in ((8, 50), (8192, 20), (100000, 10), (1 << 20, 4)):
    peer = rank ^ 1
    mine, theirs = bytearray(pattern(rank, size)[:size]), bytearray(size)
    start = time.perf_counter()
    for _ in range(times):
        if rank & 1:
            world.Recv([theirs, MPI.BYTE], peer, 1)
            world.Send([mine, MPI.BYTE], peer, 2)
        else:
            world.Send([mine, MPI.BYTE], peer, 1)
            world.Recv([theirs, MPI.BYTE], peer, 2)
    took = (time.perf_counter() - start) / times / 2
    assert theirs == pattern(peer, size)[:size], f"latency {size}: wrong data from {peer}"
    told("latency", size, took)

# A window of messages under way at once, to the next of the ring.
for size, window in ((4096, 64), (65536, 16), (1 << 20, 4)):
    to, of = (rank + 1) % ranks, (rank - 1) % ranks
    mine = bytearray(pattern(rank, size)[:size])
    theirs = [bytearray(size) for _ in range(window)]
    start = time.perf_counter()
    requests = [world.Irecv([b, MPI.BYTE], of, 3) for b in theirs]
    requests += [world.Isend([mine, MPI.BYTE], to, 3) for _ in range(window)]
    MPI.Request.Waitall(requests)
    took = (time.perf_counter() - start) / window
    for b in theirs:
        assert b == pattern(of, size)[:size], f"bandwidth {size}: wrong data"
    told("bandwidth", size, took)

for count in (1, 1000, 50000):
    mine = array.array("q", [rank * 1000003 + i for i in range(count)])
    total = array.array("q", [0] * count)
    start = time.perf_counter()
    world.Allreduce([mine, MPI.INT64_T], [total, MPI.INT64_T], MPI.SUM)
    told("allreduce", count * 8, time.perf_counter() - start)
    base = 1000003 * ranks * (ranks - 1) // 2
    assert all(v == base + ranks * i for i, v in enumerate(total)), f"allreduce {count}"

for size in (8, 4096, 65536):
    mine = bytearray(b"".join(pattern(rank * ranks + to, size)[:size] for to in range(ranks)))
    theirs = bytearray(size * ranks)
    start = time.perf_counter()
    world.Alltoall([mine, size, MPI.BYTE], [theirs, size, MPI.BYTE])
    told("alltoall", size, time.perf_counter() - start)
    for of in range(ranks):
        assert theirs[of * size:(of + 1) * size] == pattern(of * ranks + rank, size)[:size], f"alltoall {size} of {of}"
world.Barrier()
if rank == 0:
    print("all compared", flush=True)
PYTHON
}

packets() { cat /sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets; }

failed=()
# mpi DEBIAN WHAT OPTIONS...: of mpirun.
mpi() {
  local debian=$1 what=$2 root=/tmp/roots/$1 start=$SECONDS status=0 before
  shift 2
  mpi_program "$root"
  before=$(packets)
  HOME=/tmp SHELL=/bin/sh OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_NET_DEVICES=mlx5_0:1 \
    timeout -k 5 120 chroot "$root" /usr/bin/mpirun.openmpi -n "$ranks" --oversubscribe --bind-to none "$@" \
    /usr/bin/python3 /tmp/collectives.py "$ranks" >/tmp/mpi.out 2>&1 </dev/null || status=$?
  if ((status != 0)) || ! grep -q '^all compared' /tmp/mpi.out || grep -iE 'error|abort|failed' /tmp/mpi.out; then
    tail -n 60 /tmp/mpi.out
    failed+=("Debian $debian, $what")
    note "FAILED, $((SECONDS - start)) s, status $status: Debian $debian, $what"
    return
  fi
  grep -E ' us$' /tmp/mpi.out
  (($(packets) > before + 500)) || failed+=("Debian $debian, $what: it does not go by the HCA")
  note "ok, $((SECONDS - start)) s, $(($(packets) - before)) packets: Debian $debian, $what"
}

# Instead of ssh, which has no keys here: the first guest's mpirun sends what it wants run to the second one, whose listener runs it.
listen_for_mpirun() {
  cat >/tmp/listener.py <<'PYTHON'
import os, socket, subprocess

listener = socket.create_server(("", 7800))
while True:
    client, _ = listener.accept()
    command = client.makefile().readline()
    print(command, flush=True)
    out = client.fileno()
    subprocess.Popen(["/bin/dash", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, "HOME": "/tmp", "PATH": "/usr/bin:/bin"})
    client.close()
PYTHON
  cp /tmp/listener.py "$1/tmp/" || fail "no place for the listener"
  chroot "$1" /usr/bin/python3 /tmp/listener.py >/tmp/listener 2>&1 </dev/null &
  listener=$!
  until_listens 7800 "$listener" || fail "no listener: $(</tmp/listener)"
}
send_to_listener() {
  cat >"$1/tmp/agent" <<'PYTHON'
#!/usr/bin/python3
import socket, sys

peer = socket.create_connection((sys.argv[1], 7800))
peer.sendall((" ".join(sys.argv[2:]) + "\n").encode())
while data := peer.recv(4096):
    sys.stdout.buffer.write(data)
PYTHON
  chmod +x "$1/tmp/agent"
}

# Both guests: all of it is run by the first one.
over_both() {
  local debian=$1 root=/tmp/roots/$1 launcher=plm_rsh_agent
  mpi_program "$root"
  send_to_listener "$root"  # the second one's daemon wants to be able to as well
  if [[ $side == b ]]; then
    listen_for_mpirun "$root"
    barrier "mpi $debian ready"
    barrier "mpi $debian done" 400
    kill "$listener" || fail "the listener has ended: $(</tmp/listener)"
    wait "$listener"
    return
  fi
  barrier "mpi $debian ready"
  [[ $debian != 13 ]] || launcher=plm_ssh_agent
  mpi "$debian" "ucx, two guests" --host "$mine:2,$theirs:2" --map-by node "--$([[ $debian == 13 ]] && echo prtemca || echo mca)" $launcher /tmp/agent \
    --mca pml ucx --mca osc ^sm --mca coll ^hcoll -x UCX_NET_DEVICES -x UCX_TLS=rc_x,ud_x,self
  barrier "mpi $debian done" 400
}

# Without shared memory and TCP.
# Without libfabric's cache of registrations: that of Debian 13 does not notice when Python's memory is given back and mapped anew, and results
# are wrong (they are right with the cache when malloc never gives memory back).
over_ofi() {
  mpi "$1" libfabric --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' --mca osc ^sm,ucx --mca coll ^hcoll \
    -x LD_LIBRARY_PATH=/tmp/lib -x FI_MR_CACHE_MAX_COUNT=0
}
over_ucx() { mpi "$1" "ucx ($2)" --mca pml ucx --mca osc ^sm --mca coll ^hcoll -x UCX_NET_DEVICES -x "UCX_TLS=$2,self"; }
if [[ -n $side ]]; then
  # Ranks on hosts of one name are taken to share memory.
  hostname "hcasim-$side"
  for debian in ${test_argument:-12 13}; do over_both "$debian"; done
elif [[ $test_argument == all ]]; then
  for transports in rc_x,ud_x rc_v,ud_v dc_x ud_x; do
    over_ucx 12 $transports
    over_ucx 13 $transports
  done
  [[ -z $gid ]] || for debian in 12 13; do over_ofi $debian; done
  # Debian's openib connects by UD alone (udcm), which goes on InfiniBand only.
  [[ -n $gid ]] || mpi 12 openib --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1
else
  over_ucx 13 rc_x,ud_x
fi
((${#failed[@]} == 0)) || fail "$(printf '%s\n' "" "${failed[@]}")"
no_complaints "Open MPI"
