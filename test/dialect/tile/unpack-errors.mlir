// Tests errors of the verifier of unpack.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics

tile.kernel @bits(%v: i32) {
  %a = tile.splat %v : i32 -> tensor<4xi32>
  // expected-error @+1 {{takes 1, 2 or 4 bits out of words of 8 or more, not 3 out of 'i32'}}
  %t = tile.unpack %a bits 3 : tensor<4xi32> -> tensor<40xi8>
  tile.return
}

// -----

tile.kernel @words(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4xf32>
  // expected-error @+1 {{takes 1, 2 or 4 bits out of words of 8 or more, not 4 out of 'f32'}}
  %t = tile.unpack %a bits 4 : tensor<4xf32> -> tensor<32xi8>
  tile.return
}

// -----

tile.kernel @numbers(%v: i32) {
  %a = tile.splat %v : i32 -> tensor<4xi32>
  // expected-error @+1 {{gives numbers as i8, f16, bf16 or f32, not as 'f64'}}
  %t = tile.unpack %a bits 4 : tensor<4xi32> -> tensor<32xf64>
  tile.return
}

// -----

tile.kernel @floats(%v: i32) {
  %a = tile.splat %v : i32 -> tensor<4xi32>
  // expected-error @+1 {{takes floats of 4 bits, which have a sign of their own, as f16, bf16 or f32}}
  %t = tile.unpack %a float bits 4 : tensor<4xi32> -> tensor<32xi8>
  tile.return
}

// -----

tile.kernel @float_bits(%v: i32) {
  %a = tile.splat %v : i32 -> tensor<4xi32>
  // expected-error @+1 {{takes floats of 4 bits, which have a sign of their own, as f16, bf16 or f32}}
  %t = tile.unpack %a float bits 2 : tensor<4xi32> -> tensor<64xf16>
  tile.return
}

// -----

tile.kernel @shape(%v: i16) {
  %a = tile.splat %v : i16 -> tensor<4xi16>
  // expected-error @+1 {{gives 4 fields of each word, not 'tensor<32xi8>' of 'tensor<4xi16>'}}
  %t = tile.unpack %a bits 4 : tensor<4xi16> -> tensor<32xi8>
  tile.return
}
