// SPDX-License-Identifier: GPL-2.0-or-later OR BSD-3-Clause
/*
 * Work for an RDMA driver that only users in the kernel give it: memory that is registered by a WQE
 * (IB_WR_REG_MR), used, and invalidated by one (IB_WR_LOCAL_INV), in few pages and in many; and more WQEs
 * than a send queue holds, to a peer that does not answer. All of it is done when the module is loaded, and
 * takes a second at most; what does not work is said.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

enum { kPages = 24, kDepth = 32, kNobody = 0xabcd };

struct work {
  struct ib_device* dev;
  struct ib_pd* pd;
  struct ib_cq* cq;
  struct page* pages[kPages];
  struct scatterlist sg[kPages];
  int mapped;
};

static struct ib_qp* connected(struct work* w, u32 peer) {
  struct ib_qp_init_attr init = {
      .send_cq = w->cq,
      .recv_cq = w->cq,
      .qp_type = IB_QPT_RC,
      .sq_sig_type = IB_SIGNAL_REQ_WR,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
  };
  struct ib_qp_attr attr = {
      .qp_state = IB_QPS_INIT,
      .port_num = 1,
      .qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
  };
  struct ib_port_attr port;
  struct ib_qp* qp = ib_create_qp(w->pd, &init);

  if (IS_ERR(qp)) return NULL;
  if (ib_query_port(w->dev, 1, &port) ||
      ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS))
    goto failed;
  attr.qp_state = IB_QPS_RTR;
  attr.path_mtu = IB_MTU_1024;
  attr.dest_qp_num = peer ? peer : qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr.type = rdma_ah_find_type(w->dev, 1);
  rdma_ah_set_dlid(&attr.ah_attr, port.lid);
  rdma_ah_set_port_num(&attr.ah_attr, 1);
  if (ib_modify_qp(qp, &attr,
                   IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
                       IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER))
    goto failed;
  attr.qp_state = IB_QPS_RTS;
  attr.timeout = 17;
  attr.retry_cnt = 7;
  attr.max_rd_atomic = 1;
  if (!ib_modify_qp(qp, &attr,
                    IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
                        IB_QP_MAX_QP_RD_ATOMIC))
    return qp;
failed:
  pr_info("reg_work: no connected QP\n");
  ib_destroy_qp(qp);
  return NULL;
}

/* Posts it, signaled, and waits for it. */
static int done(struct work* w, struct ib_qp* qp, struct ib_send_wr* wr, const char* what) {
  struct ib_wc wc;
  int i;

  wr->send_flags = IB_SEND_SIGNALED;
  if (ib_post_send(qp, wr, NULL)) {
    pr_info("reg_work: %s cannot be posted\n", what);
    return -1;
  }
  for (i = 0; i < 200; i++) {
    if (ib_poll_cq(w->cq, 1, &wc) == 1) {
      if (wc.status != IB_WC_SUCCESS) pr_info("reg_work: %s: %s\n", what, ib_wc_status_msg(wc.status));
      return wc.status == IB_WC_SUCCESS ? 0 : -1;
    }
    usleep_range(500, 1000);
  }
  pr_info("reg_work: %s does not end\n", what);
  return -1;
}

static void registrations(struct work* w, int pages) {
  struct ib_qp* qp = connected(w, 0);
  struct ib_mr* mr = qp ? ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, kPages) : NULL;
  int i;

  if (IS_ERR_OR_NULL(mr)) goto out;
  for (i = 0; i < 3; i++) {
    struct ib_sge sge = {.addr = sg_dma_address(&w->sg[0]), .length = 64, .lkey = w->pd->local_dma_lkey};
    struct ib_reg_wr reg = {
        .wr.opcode = IB_WR_REG_MR, .mr = mr, .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE};
    struct ib_rdma_wr write = {.wr.opcode = IB_WR_RDMA_WRITE, .wr.sg_list = &sge, .wr.num_sge = 1};
    struct ib_send_wr invalidate = {.opcode = IB_WR_LOCAL_INV};

    if (ib_map_mr_sg(mr, w->sg, pages, NULL, PAGE_SIZE) != pages) {
      pr_info("reg_work: the pages are not taken\n");
      break;
    }
    ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
    reg.key = mr->rkey;
    write.remote_addr = mr->iova + mr->length - 64;
    write.rkey = mr->rkey;
    invalidate.ex.invalidate_rkey = mr->rkey;
    if (done(w, qp, &reg.wr, "registration") || done(w, qp, &write.wr, "write") ||
        done(w, qp, &invalidate, "invalidation"))
      break;
  }
  ib_dereg_mr(mr);
out:
  if (qp) ib_destroy_qp(qp);
}

/* The driver has to say when the queue is full. */
static void fill(struct work* w) {
  struct ib_qp* qp = connected(w, kNobody);
  struct ib_sge sge = {.addr = sg_dma_address(&w->sg[0]), .length = 64, .lkey = w->pd->local_dma_lkey};
  struct ib_rdma_wr write = {.wr.opcode = IB_WR_RDMA_WRITE, .wr.sg_list = &sge, .wr.num_sge = 1};
  int i;

  if (!qp) return;
  for (i = 0; i < 16 * kDepth; i++)
    if (ib_post_send(qp, &write.wr, NULL)) break;
  ib_destroy_qp(qp);
}

static int add(struct ib_device* dev) {
  struct work w = {.dev = dev};
  int i;

  w.pd = ib_alloc_pd(dev, 0);
  if (IS_ERR(w.pd)) return PTR_ERR(w.pd);
  w.cq = ib_alloc_cq(dev, NULL, 4 * kDepth, 0, IB_POLL_DIRECT);
  if (IS_ERR(w.cq)) goto no_cq;
  sg_init_table(w.sg, kPages);
  for (i = 0; i < kPages; i++) {
    w.pages[i] = alloc_page(GFP_KERNEL);
    if (!w.pages[i]) goto no_pages;
    sg_set_page(&w.sg[i], w.pages[i], PAGE_SIZE, 0);
  }
  w.mapped = ib_dma_map_sg(dev, w.sg, kPages, DMA_BIDIRECTIONAL);
  if (w.mapped == kPages) {
    registrations(&w, 2);
    registrations(&w, kPages);
    fill(&w);
  } else {
    pr_info("reg_work: pages are mapped together\n");
  }
  if (w.mapped) ib_dma_unmap_sg(dev, w.sg, kPages, DMA_BIDIRECTIONAL);
no_pages:
  for (i = 0; i < kPages; i++)
    if (w.pages[i]) __free_page(w.pages[i]);
  ib_free_cq(w.cq);
no_cq:
  ib_dealloc_pd(w.pd);
  pr_info("reg_work: done\n");
  return -EOPNOTSUPP; /* nothing is left of it */
}

static struct ib_client client = {.name = "reg_work", .add = add};

static int __init begin(void) { return ib_register_client(&client); }

static void __exit end(void) { ib_unregister_client(&client); }

module_init(begin);
module_exit(end);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("Registers memory by WQEs, and fills a send queue");
