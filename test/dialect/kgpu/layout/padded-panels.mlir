// Checks operands of 96 columns: they lie in two panels of 64, half of the second is padding, and products read 96
// columns.
// RUN: kpkg-opt --kgpu-tensor-stores --kgpu-specialise-warps --cse --kgpu-verify-schedule %s | FileCheck %s
// RUN: kpkg-opt --kgpu-tensor-stores --kgpu-specialise-warps --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify --lower-nvvm %s | FileCheck %s --check-prefix=CODE

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x3">
#any = #kgpu.layout<"reg 1:1-64 lane 0:1-16 warp 0:32 * rep 1x1">
#rows = #kgpu.layout<"reg 1:1-64 lane 0:1-16 warp 0:32 * rep 2x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: tile.kernel @product
// CHECK: kgpu.acquire {{.*}} bytes 40960
// CHECK: kgpu.tensor_load %arg0{{.*}} plus 0 signals
// CHECK: kgpu.tensor_load %arg0{{.*}} plus 8192 signals
// CHECK: kgpu.tensor_load %arg1{{.*}} plus 0 signals
// CHECK: kgpu.tensor_load %arg1{{.*}} plus 12288 signals
// CHECK-NOT: kgpu.tensor_load
// CHECK: kgpu.wgmma {{.*}} tensor<64x96xf32
// Six steps along K: four in the first panel, two in the second.
// CODE-COUNT-6: wgmma.mma_async{{.*(m64n96k16|n = 96, k = 16)}}
// CODE-NOT: wgmma.mma_async
tile.kernel @product(%x: !in, %y: !in, %z: !out, %m: index, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x96xf32, #acc>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zeros) -> (tensor<64x96xf32, #acc>) {
    %k = arith.muli %i, %c96 : index
    %a = tile.load %x[%m, %k] fill %zero : !in -> tensor<64x96xbf16, #any>
    %b = tile.load %y[%k, %c0] fill %zero : !in -> tensor<96x96xbf16, #rows>
    %s = tile.dot %a, %b, %t : tensor<64x96xbf16, #any>, tensor<96x96xbf16, #rows>, tensor<64x96xf32, #acc>
    scf.yield %s : tensor<64x96xf32, #acc>
  }
  %d = arith.truncf %sum : tensor<64x96xf32, #acc> to tensor<64x96xbf16, #acc>
  tile.store %d, %z[%m, %c0] : tensor<64x96xbf16, #acc>, !out
  tile.return
}
