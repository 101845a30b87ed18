// Checks the Hopper instructions of a sum over windows: one step of either role.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_90a})' | kpkg-opt --lower-nvvm --canonicalize --cse | FileCheck %s

// CHECK-LABEL: llvm.func @windows
// CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(24576 : i32) : i32
// One thread copies a column of 128 pixels, moved by two taps, and the weights of a tap. Its loop has no division.
// CHECK: mbarrier.try_wait.parity.shared::cta.b64
// CHECK-NOT: {{ll[vm]*.[su]div}}
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] im2col[%{{.*}}, %{{.*}}] {mode = #nvvm.tma_load_mode<im2col>}
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] :
// CHECK-NOT: {{cp.async.bulk.tensor|[su]div}}
// CHECK: llvm.br
// Two warpgroups multiply, with 64 rows each.
// CHECK: mbarrier.try_wait.parity.shared::cta.b64
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: wgmma.mma_async{{.*(m64n64k16.f32.bf16.bf16|n = 64, k = 16)}}
// CHECK-NOT: wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: mbarrier.arrive.shared::cta.b64
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
!in = !tile.view<4xbf16, unit = 3, align = 16, divisible = 8, index = 32>
!tap = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @windows(%x: !in, %w: !in, %y: !out, %height: index, %width: index, %sh: index, %sw: index, %ph: index, %pw: index, %th: index, %tw: index)
    attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %y, 0 : !out
  %columns = tile.dim %y, 1 : !out
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %cells = tile.dim %w, 0 : !in
  %taps = tile.dim %w, 1 : !in
  %channels = tile.dim %w, 2 : !in
  %blocks = arith.ceildivsi %channels, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %m32 = arith.index_cast %m : index to i32
    %iota = tile.iota : tensor<128xindex>
    %iota32 = arith.index_cast %iota : tensor<128xindex> to tensor<128xi32>
    %column = tile.reshape %iota32 : tensor<128xi32> -> tensor<128x1xi32>
    %first = tile.splat %m32 : i32 -> tensor<128x1xi32>
    %pixel = arith.addi %first, %column : tensor<128x1xi32>
    %width32 = arith.index_cast %width : index to i32
    %wide = tile.splat %width32 : i32 -> tensor<128x1xi32>
    %line = arith.floordivsi %pixel, %wide : tensor<128x1xi32>
    %height32 = arith.index_cast %height : index to i32
    %high = tile.splat %height32 : i32 -> tensor<128x1xi32>
    %image = arith.floordivsi %line, %high : tensor<128x1xi32>
    %lines = arith.muli %image, %high : tensor<128x1xi32>
    %oh = arith.subi %line, %lines : tensor<128x1xi32>
    %pixels = arith.muli %line, %wide : tensor<128x1xi32>
    %ow = arith.subi %pixel, %pixels : tensor<128x1xi32>
    %sh32 = arith.index_cast %sh : index to i32
    %sht = tile.splat %sh32 : i32 -> tensor<128x1xi32>
    %hs = arith.muli %oh, %sht : tensor<128x1xi32>
    %ph32 = arith.index_cast %ph : index to i32
    %pht = tile.splat %ph32 : i32 -> tensor<128x1xi32>
    %h0 = arith.addi %hs, %pht : tensor<128x1xi32>
    %sw32 = arith.index_cast %sw : index to i32
    %swt = tile.splat %sw32 : i32 -> tensor<128x1xi32>
    %ws = arith.muli %ow, %swt : tensor<128x1xi32>
    %pw32 = arith.index_cast %pw : index to i32
    %pwt = tile.splat %pw32 : i32 -> tensor<128x1xi32>
    %w0 = arith.addi %ws, %pwt : tensor<128x1xi32>
    %sum = scf.for %a = %c0 to %cells step %c1 iter_args(%s0 = %zeros) -> tensor<128x64xf32> {
      %ha = arith.muli %a, %th : index
      %ha32 = arith.index_cast %ha : index to i32
      %hat = tile.splat %ha32 : i32 -> tensor<128x1xi32>
      %h32 = arith.addi %h0, %hat : tensor<128x1xi32>
      %s1 = scf.for %b = %c0 to %taps step %c1 iter_args(%s2 = %s0) -> tensor<128x64xf32> {
        %wb = arith.muli %b, %tw : index
        %wb32 = arith.index_cast %wb : index to i32
        %wbt = tile.splat %wb32 : i32 -> tensor<128x1xi32>
        %w32 = arith.addi %w0, %wbt : tensor<128x1xi32>
        %s3 = scf.for %c = %c0 to %blocks step %c1 iter_args(%acc = %s2) -> tensor<128x64xf32> {
          %k = arith.muli %c, %c64 : index
          %iotac = tile.iota : tensor<64xindex>
          %rowc = tile.reshape %iotac : tensor<64xindex> -> tensor<1x64xindex>
          %kt = tile.splat %k : index -> tensor<1x64xindex>
          %ct = arith.addi %kt, %rowc : tensor<1x64xindex>
          %ii = arith.index_cast %image : tensor<128x1xi32> to tensor<128x1xindex>
          %hi = arith.index_cast %h32 : tensor<128x1xi32> to tensor<128x1xindex>
          %wi = arith.index_cast %w32 : tensor<128x1xi32> to tensor<128x1xindex>
          %ib = tile.broadcast %ii : tensor<128x1xindex> -> tensor<128x64xindex>
          %hb = tile.broadcast %hi : tensor<128x1xindex> -> tensor<128x64xindex>
          %wbr = tile.broadcast %wi : tensor<128x1xindex> -> tensor<128x64xindex>
          %cb = tile.broadcast %ct : tensor<1x64xindex> -> tensor<128x64xindex>
          %left = tile.gather %x[%ib, %hb, %wbr, %cb] fill %zero : !in, tensor<128x64xindex> -> tensor<128x64xbf16>
          %tap = tile.drop %w [0, 1] at (%a, %b) : !in -> !tap
          %right = tile.load %tap[%k, %n] fill %zero : !tap -> tensor<64x64xbf16>
          %p = tile.dot %left, %right, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
          scf.yield %p : tensor<128x64xf32>
        }
        scf.yield %s3 : tensor<128x64xf32>
      }
      scf.yield %s1 : tensor<128x64xf32>
    }
    %r = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %y[%m, %n] : tensor<128x64xbf16>, !out
  }
  tile.return
}
