"""Prints a module with every example of the kgpu dialect's documentation, each in a kernel that gives it operands.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from op_examples import print_examples

PROLOGUE = """\
#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128 rep 1x1">
#half = #kgpu.layout<"reg 1:1 lane 1:4-64 warp 1:2 rep 1x1">
#narrow = #kgpu.layout<"reg 1:64-128 lane 1:1-16 warp 1:32 rep 1x1">
#part = #kgpu.layout<"lane *5 warp 1:1 rep 1x1">
#all = #kgpu.layout<"lane 1:1 *4 warp * rep 1x1">
#one = #kgpu.layout<"lane *5 warp * rep 1x1">
#each = #kgpu.layout<"lane *5 warp * rep 1x1">
#sum = #kgpu.layout<"reg 1:1 0:8 lane 1:2-4 0:1-4 rep 1x1">
#left = #kgpu.layout<"reg 1:1 0:8 1:8 lane 1:2-4 0:1-4 rep 1x1">
#right = #kgpu.layout<"reg 0:1 0:8 lane 0:2-4 1:1-4 rep 1x1">
tile.kernel @example{number}(%x: !tile.view<2xf32>, %r: index, %c: index, %inside: i1)
    attributes {{kgpu.launch = #kgpu.launch<threads = 64>, kgpu.target = #kgpu.target<"sm_90a">}} {{
  %zero = arith.constant 0.0 : f32
  %row = arith.constant dense<1.0> : tensor<1x256xf32, #wide>
  %grows = arith.constant dense<true> : tensor<1x256xi1, #wide>
  %part = arith.constant dense<1.0> : tensor<1x128xf32, #half>
  %partial = arith.constant dense<1.0> : tensor<1x2xf32, #part>
  %gathered = arith.constant dense<1.0> : tensor<1x2xf32, #all>
  %before = arith.constant dense<1.0> : tensor<1x1xf32, #each>
  %buffer = kgpu.alloc : !kgpu.smem<1x2xf32>
  %ring = kgpu.alloc : !kgpu.smem<3x1x256xf32>
  %matrix = kgpu.alloc : !kgpu.smem<4x12xf32>
  %a = arith.constant dense<1.0> : tensor<16x16xbf16, #left>
  %w = arith.constant dense<1.0> : tensor<16x8xbf16, #right>
  %acc = arith.constant dense<1.0> : tensor<16x8xf32, #sum>
"""

PANEL = "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64"
CLUSTER_PROLOGUE = """\
#part = #kgpu.layout<"lane *5 warp 1:1 block 1:2 rep 1x1">
tile.kernel @example{number}()
    attributes {{kgpu.launch = #kgpu.launch<threads = 64, cluster = 2>, kgpu.target = #kgpu.target<"sm_90a">}} {{
  %partial = arith.constant dense<1.0> : tensor<1x4xf32, #part>
  %slot = kgpu.alloc : !kgpu.smem<1x4xf32>
  %barriers = kgpu.alloc : !kgpu.smem<2xi64>
  %use = arith.constant 0 : i32
"""

FETCH_PROLOGUE = """\
#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4>
tile.kernel @example{number}(%x: !in, %r: index, %c: index, %inside: i1)
    attributes {{kgpu.launch = #kgpu.launch<threads = 64>, kgpu.target = #kgpu.target<"sm_90a">}} {{
  %zero = arith.constant 0.0 : f32
  %buffer = kgpu.alloc : !kgpu.smem<1024xi8>
"""
TOUCH_PROLOGUE = """\
!in = !tile.view<1xf32, unit = 0>
tile.kernel @example{number}(%x: !in, %r: index, %inside: i1)
    attributes {{kgpu.launch = #kgpu.launch<threads = 64>, kgpu.target = #kgpu.target<"sm_90a">}} {{
"""
GATHER_PROLOGUE = """\
#rows = #kgpu.layout<"reg 1:1-4 lane 1:8 0:1-8 rep 1x1">
!table = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @example{number}(%table: !table, %inside: i1)
    attributes {{kgpu.launch = #kgpu.launch<threads = 32>, kgpu.target = #kgpu.target<"sm_90a">}} {{
  %rows = arith.constant dense<3> : tensor<16x16xindex, #rows>
  %columns = arith.constant dense<0> : tensor<16x16xindex, #rows>
  %buffer = kgpu.alloc : !kgpu.smem<16x16xf16>
"""
PROLOGUES = {
    "async_gather": GATHER_PROLOGUE,
    "touch": TOUCH_PROLOGUE,
    "exchange": CLUSTER_PROLOGUE,
    "exchange_init": CLUSTER_PROLOGUE,
    "fetch": FETCH_PROLOGUE,
    "fetched": FETCH_PROLOGUE,
    "slice_buffer": PROLOGUE + "  %m = kgpu.alloc : !kgpu.smem<4x8xf32>\n",
}

ASYNC_PROLOGUE = f"""\
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!in = !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>
!out = !tile.view<3xbf16, mut, unit = 2, align = 16, divisible = 8, index = 32>
!left = !kgpu.smem<64x64xbf16, "{PANEL} rep 1x1">
!right = !kgpu.smem<64x128xbf16, "{PANEL} rep 1x2 stride 0,8192">
!buffers = !kgpu.smem<1x2x64x64xbf16, "2B 2:144,288,576,1024,2048,4096 3:2,4,8,16,32,64 rep 1x2x1x1 stride 0,8192,0,0">
tile.kernel @example{{number}}(%x: !in, %y: !out, %batch: index, %m: index, %k: index, %n: index, %count: index)
    attributes {{{{kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>,
                   kgpu.target = #kgpu.target<"sm_90a">}}}} {{{{
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  %place = kgpu.alloc : !kgpu.smem<3x4xi64>
  %channel = kgpu.ring channel %place : !kgpu.smem<3x4xi64> -> !kgpu.ring<4>
  %tiles = kgpu.ring published %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  %use = arith.constant 0 : i32
  %some = arith.constant true
  %a = kgpu.alloc : !left
  %b = kgpu.alloc : !right
  %staging = kgpu.alloc : !buffers
  %c = arith.constant dense<0.0> : tensor<64x128xf32, #acc>
  %d = arith.constant dense<0.0> : tensor<64x128xf32, #acc>
  %tile = arith.constant dense<0.0> : tensor<64x128xbf16, #acc>
"""
PUBLISH_PROLOGUE = ASYNC_PROLOGUE + "  %next = arith.constant 1 : index\n"


def kernel(op: str, file: str, number: int, example: str) -> str:
    others = {"publish_index": PUBLISH_PROLOGUE}.get(op, ASYNC_PROLOGUE)
    prologue = others if file == "AsyncOps.td" else PROLOGUES.get(op, PROLOGUE)
    return prologue.format(number=number) + example + "  tile.return\n}"


if __name__ == "__main__":
    sys.exit(print_examples("kgpu", Path(sys.argv[1]), 11, kernel))
