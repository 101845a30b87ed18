#target = #kgpu.target<"sm_90a">
!half = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!halves = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!ends = !tile.view<1xindex, unit = 0, index = 32>

tile.kernel @from_memory(%x: !half, %w: !half, %ends: !ends, %y: !halves) attributes {kgpu.target = #target} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %element = tile.drop %ends [0] at (%c0) : !ends -> !tile.view<0xindex, index = 32>
  %n = tile.load %element[] fill %c0 : !tile.view<0xindex, index = 32> -> index
  %d = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %zeros) -> (tensor<64x64xf32>) {
    %a = tile.load %x[%c0, %k] fill %zero : !half -> tensor<64x64xbf16>
    %b = tile.load %w[%k, %c0] fill %zero : !half -> tensor<64x64xbf16>
    %next = tile.dot %a, %b, %sum : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
  tile.store %r, %y[%c0, %c0] : tensor<64x64xbf16>, !halves
  tile.return
}

// -----

#target = #kgpu.target<"sm_90a">
!half = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!halves = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!ends = !tile.view<1xindex, unit = 0, index = 32>

tile.kernel @from_tile(%x: !half, %w: !half, %ends: !ends, %y: !halves) attributes {kgpu.target = #target} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %e = tile.load %ends[%c0] fill %c0 : !ends -> tensor<64xindex>
  %m = tile.reduce max %e axis 0 : tensor<64xindex> -> tensor<1xindex>
  %n = tile.scalar %m : tensor<1xindex> -> index
  %d = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %zeros) -> (tensor<64x64xf32>) {
    %a = tile.load %x[%c0, %k] fill %zero : !half -> tensor<64x64xbf16>
    %b = tile.load %w[%k, %c0] fill %zero : !half -> tensor<64x64xbf16>
    %next = tile.dot %a, %b, %sum : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
  tile.store %r, %y[%c0, %c0] : tensor<64x64xbf16>, !halves
  tile.return
}
