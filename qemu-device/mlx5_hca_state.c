/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * savevm, loadvm, migrate: of a physical function QEMU's part (configuration space, MSI-X), and as one piece of
 * bytes all that the model has of the card, its virtual functions and sub-functions with it (card/state of the
 * model). A state that the model cannot give, or does not take, fails the command with the reason; the source
 * goes on in both cases.
 */
#include "mlx5_hca.h"

static void forget_bytes(Mlx5Hca* dev) {
  g_free(dev->saved);
  dev->saved = NULL;
  dev->saved_len = 0;
}

static int pre_save(void* opaque) {
  Mlx5Hca* dev = opaque;
  char why[512] = "";
  size_t len = 0;
  const void* bytes;

  if (!dev->link) {
    return -ENODEV;
  }
  bytes = mlx5_hca_save(dev->link, &len, why, sizeof(why));
  if (!bytes || len > UINT32_MAX) {
    error_report(TYPE_MLX5_HCA ": the card cannot be saved: %s", bytes ? "its state is too large" : why);
    return -EINVAL;
  }
  forget_bytes(dev);
  dev->saved = g_malloc(len);
  memcpy(dev->saved, bytes, len);
  dev->saved_len = len;
  hca_state_release(dev->link->hca);
  dev->saved_lost = mlx5_hca_lost();
  return 0;
}

static int post_save(void* opaque) {
  forget_bytes(opaque);
  return 0;
}

static int pre_load(void* opaque) {
  forget_bytes(opaque);
  return 0;
}

static int post_load(void* opaque, int version G_GNUC_UNUSED) {
  Mlx5Hca* dev = opaque;
  char why[512] = "";
  int rc;

  if (!dev->link) {
    return -ENODEV;
  }
  rc = mlx5_hca_load(dev->link, dev->saved, dev->saved_len, dev->saved_lost, why, sizeof(why));
  forget_bytes(dev);
  if (rc) {
    error_report(TYPE_MLX5_HCA ": the card cannot be loaded: %s", why);
    return -EINVAL;
  }
  mlx5_hca_pcie_loaded(dev);
  return 0;
}

const VMStateDescription mlx5_hca_vmstate = {
    .name = TYPE_MLX5_HCA,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = pre_load,
    .post_load = post_load,
    .pre_save = pre_save,
    .post_save = post_save,
    .fields = (QCOMPAT_VMSTATE_CONST VMStateField[]){
        VMSTATE_PCI_DEVICE(parent_obj, Mlx5Hca), VMSTATE_MSIX(parent_obj, Mlx5Hca), VMSTATE_BOOL(removed, Mlx5Hca),
        VMSTATE_INT64(saved_lost, Mlx5Hca), VMSTATE_UINT32(saved_len, Mlx5Hca),
        VMSTATE_VBUFFER_ALLOC_UINT32(saved, Mlx5Hca, 1, NULL, saved_len), VMSTATE_END_OF_LIST()}};
