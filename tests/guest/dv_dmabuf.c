// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that comes as a DMA buffer's file descriptor (ibv_reg_dmabuf_mr) instead of an address: of the
// kernel's heap, and of a memory file (udmabuf). What the card writes is looked at through a mapping of the
// buffer, which the card knows nothing of.
#define _GNU_SOURCE
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>

#include "dv_common.h"

enum { kBuffer = 1 << 20, kIova = 0x7000000 };

struct buffer {
  int fd, file;  // file: what it is made of, or -1
  uint8_t* at;   // kBuffer bytes of it, mapped
};

static struct buffer of_heap(void) {
  struct buffer b = {.file = -1};
  const int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
  WANT(heap >= 0);
  struct dma_heap_allocation_data d = {.len = kBuffer, .fd_flags = O_RDWR | O_CLOEXEC};
  WANT(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &d) == 0);
  close(heap);
  b.fd = (int)d.fd;
  b.at = mmap(NULL, kBuffer, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
  WANT(b.at != MAP_FAILED);
  return b;
}

// The upper half of a file of twice the size.
static struct buffer of_file(void) {
  struct buffer b;
  b.file = memfd_create("dv_dmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  WANT(b.file >= 0);
  SAME(ftruncate(b.file, 2 * kBuffer), 0);
  SAME(fcntl(b.file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const int maker = open("/dev/udmabuf", O_RDWR);
  WANT(maker >= 0);
  struct udmabuf_create c = {
      .memfd = (uint32_t)b.file, .flags = UDMABUF_FLAGS_CLOEXEC, .offset = kBuffer, .size = kBuffer};
  b.fd = ioctl(maker, UDMABUF_CREATE, &c);
  WANT(b.fd >= 0);
  close(maker);
  b.at = mmap(NULL, kBuffer, PROT_READ | PROT_WRITE, MAP_SHARED, b.file, kBuffer);
  WANT(b.at != MAP_FAILED);
  return b;
}

static void sync_for(const struct buffer* b, uint64_t how) {
  struct dma_buf_sync s = {.flags = how | DMA_BUF_SYNC_RW};
  SAME(ioctl(b->fd, DMA_BUF_IOCTL_SYNC, &s), 0);
}

static struct ibv_qp *qp, *peer;
static struct ibv_cq *scq, *rcq;

static void connected(void) {
  scq = make_cq(64), rcq = make_cq(64);
  qp = make_qp(IBV_QPT_RC, scq, scq, NULL), peer = make_qp(IBV_QPT_RC, rcq, rcq, NULL);
  ready(qp, peer->qp_num);
  ready(peer, qp->qp_num);
}

static void one(enum ibv_wr_opcode opcode, const struct region* own, const struct ibv_mr* mr, uint64_t there,
                uint32_t size, enum ibv_wc_status wanted) {
  struct ibv_sge sge = sge_of(own, 0, size);
  struct ibv_send_wr wr = {.wr_id = there,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = opcode,
                           .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  wr.wr.rdma.remote_addr = there;
  wr.wr.rdma.rkey = mr->rkey;
  SAME(ibv_post_send(qp, &wr, &bad), 0);
  SAME(wait_wc(qp->send_cq, "a message").status, wanted);
}

static int more;  // rights that regions get as well

static void traffic(struct buffer b) {
  connected();
  struct region own = make_region(kBuffer);
  // All of it, and a part from the middle of a page to the middle of another.
  static const struct { uint64_t offset, length; } kParts[] = {{0, kBuffer}, {4096 + 512, 300000}};
  for (unsigned i = 0; i < sizeof kParts / sizeof kParts[0]; i++) {
    const uint64_t offset = kParts[i].offset, length = kParts[i].length, iova = kIova + offset % 4096;
    struct ibv_mr* mr = ibv_reg_dmabuf_mr(pd, offset, length, iova, b.fd, kAll | more);
    if (mr == NULL) fail("ibv_reg_dmabuf_mr");
    SAME(mr->length, length);
    for (unsigned round = 0; round < 20; round++) {
      const uint32_t size = 1 + (uint32_t)(rnd() % (length - 1));
      const uint64_t at = rnd() % (length - size + 1);
      randomize(own.at, size);
      one(IBV_WR_RDMA_WRITE, &own, mr, iova + at, size, IBV_WC_SUCCESS);
      sync_for(&b, DMA_BUF_SYNC_START);
      same_bytes(b.at + offset + at, own.at, size, "what the card wrote");
      randomize(b.at + offset + at, size);
      sync_for(&b, DMA_BUF_SYNC_END);
      one(IBV_WR_RDMA_READ, &own, mr, iova + at, size, IBV_WC_SUCCESS);
      same_bytes(own.at, b.at + offset + at, size, "what the card read");
      // As local memory: received into, sent from.
      struct region part = {.at = (uint8_t*)(uintptr_t)(iova + at), .size = size, .mr = mr};
      randomize(own.at, size);
      post_recv(peer, 1, sge_of(&part, 0, size));
      post_send(qp, 2, IBV_WR_SEND, sge_of(&own, 0, size), NULL, 0);
      good_wc(scq, IBV_WC_SEND, "a send");
      SAME(good_wc(rcq, IBV_WC_RECV, "its receive").byte_len, size);
      same_bytes(b.at + offset + at, own.at, size, "what was received");
    }
    // Its ends hold.
    one(IBV_WR_RDMA_WRITE, &own, mr, iova + length - 64, 64, IBV_WC_SUCCESS);
    one(IBV_WR_RDMA_WRITE, &own, mr, iova + length - 63, 64, IBV_WC_REM_ACCESS_ERR);
    connected();   // anew, as these have failed
    if (i == 1) {  // what is registered stays when everybody else has let go of it
      close(b.fd);
      randomize(own.at, 4096);
      one(IBV_WR_RDMA_WRITE, &own, mr, iova, 4096, IBV_WC_SUCCESS);
      same_bytes(b.at + offset, own.at, 4096, "what the card wrote behind the closing");
    }
    SAME(ibv_dereg_mr(mr), 0);
  }
}

static void heap(void) {
  open_device();
  traffic(of_heap());
}

static void file(void) {
  open_device();
  traffic(of_file());
}

// With the right to reorder, by which mlx5_ib asks for translation by the HCA (ATS) if the card has it.
static void reordered(void) {
  open_device();
  more = IBV_ACCESS_RELAXED_ORDERING;
  traffic(of_file());
}

// Each asks for what cannot be had.
static void refused(void) {
  open_device();
  const struct buffer b = of_file();
  WANT(ibv_reg_dmabuf_mr(pd, 0, 2 * kBuffer, 0, b.fd, kAll) == NULL);
  WANT(ibv_reg_dmabuf_mr(pd, kBuffer - 4096, 8192, 0, b.fd, kAll) == NULL);
  WANT(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, b.file, kAll) == NULL);
  // Rights are kept.
  connected();
  struct region own = make_region(4096);
  struct ibv_mr* mr = ibv_reg_dmabuf_mr(pd, 0, 4096, kIova, b.fd, IBV_ACCESS_REMOTE_READ);
  WANT(mr != NULL);
  one(IBV_WR_RDMA_READ, &own, mr, kIova, 4096, IBV_WC_SUCCESS);
  one(IBV_WR_RDMA_WRITE, &own, mr, kIova, 4096, IBV_WC_REM_ACCESS_ERR);
}

int main(int argc, char** argv) {
  static const struct test kTests[] = {
      {"heap", heap}, {"file", file}, {"reordered", reordered}, {"refused", refused}};
  return run_tests(kTests, sizeof kTests / sizeof kTests[0], argc, argv);
}
