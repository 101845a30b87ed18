// Tests the shadows of a plan's tensors: allocated tensors have them, views correspond, control flow passes them on.
// RUN: kpkg-opt %s --plan-add-shadows="written fill=fill_shadow" --canonicalize | FileCheck --check-prefix=WRITTEN %s
// RUN: kpkg-opt %s --plan-add-shadows="accesses fill=fill_shadow" --canonicalize | FileCheck --check-prefix=CELLS %s

// Tensors of callers have been written. What another op may write is written after the call.
// WRITTEN-LABEL: plan.func @straight
// WRITTEN: %[[NONE:.*]] = plan.none
// WRITTEN: %[[Y:.*]] = plan.empty_like %arg0
// WRITTEN: %[[S:.*]] = plan.empty %{{.*}}, %{{.*}}
// WRITTEN: %[[FLAT:.*]] = plan.reshape %[[S]]
// WRITTEN: plan.launch "fill_shadow" (%c0_i64 : i64, mut %[[FLAT]] : !plan.tensor) grid
// WRITTEN: %[[T:.*]] = plan.transpose %[[Y]]
// WRITTEN: %[[ST:.*]] = plan.transpose %[[S]]
// WRITTEN: plan.launch "a" (%arg0 : !plan.tensor, %arg1 : i64, mut %[[T]] : !plan.tensor, %[[NONE]] : !plan.tensor, mut %[[ST]] : !plan.tensor)
// WRITTEN: plan.call @fills(%[[Y]])
// WRITTEN: plan.launch "fill_shadow" (%c1_i64 : i64
// WRITTEN: plan.launch "a" (%[[Y]] : !plan.tensor, %arg1 : i64, mut %[[T]] : !plan.tensor, %[[S]] : !plan.tensor, mut %[[ST]] : !plan.tensor)

// Each launch has new cells, which views of a tensor share. An absent tensor has none.
// CELLS-LABEL: plan.func @straight
// CELLS: %[[Y:.*]] = plan.empty_like %arg0
// CELLS: %[[T:.*]] = plan.transpose %[[Y]]
// CELLS: %[[IS_NONE:.*]] = plan.is_none %arg0
// CELLS: %[[CX:.*]] = scf.if %[[IS_NONE]]
// CELLS: plan.launch "fill_shadow"
// CELLS: %[[CY:.*]] = plan.empty
// CELLS: plan.launch "fill_shadow"
// CELLS: %[[CT:.*]] = plan.transpose %[[CY]]
// CELLS: plan.launch "a" (%arg0 : !plan.tensor, %arg1 : i64, mut %[[T]] : !plan.tensor, %[[CX]] : !plan.tensor, mut %[[CT]] : !plan.tensor)
// CELLS: %[[CY2:.*]] = plan.empty
// CELLS: plan.launch "fill_shadow"
// CELLS: %[[CT2:.*]] = plan.transpose %[[CY2]]
// CELLS: plan.launch "a" (%[[Y]] : !plan.tensor, %arg1 : i64, mut %[[T]] : !plan.tensor, %[[CY2]] : !plan.tensor, mut %[[CT2]] : !plan.tensor)
plan.func @straight(%x: !plan.tensor {plan.name = "x"}, %n: i64 {plan.name = "n"}) -> !plan.tensor {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %y = plan.empty_like %x
  %t = plan.transpose %y, %c0, %c1
  plan.launch "a" (%x : !plan.tensor, %n : i64, mut %t : !plan.tensor) grid (%n)
  plan.call @fills(%y) : (!plan.tensor) -> ()
  plan.launch "a" (%y : !plan.tensor, %n : i64, mut %t : !plan.tensor) grid (%n)
  plan.return %y : !plan.tensor
}

plan.func @fills(%x: !plan.tensor {plan.name = "x", plan.mut}) {
  plan.return
}

// Branches and loops pass shadows on. One that may be null is not viewed where it is.
// WRITTEN-LABEL: plan.func @flow
// WRITTEN: %[[NONE:.*]] = plan.none
// WRITTEN: %[[S:.*]] = plan.empty %
// WRITTEN: %[[IF:.*]] = arith.select %{{.*}}, %{{.*}}, %arg0
// WRITTEN: %[[SIF:.*]] = arith.select %{{.*}}, %[[S]], %[[NONE]]
// WRITTEN: %[[FOR:.*]]:2 = scf.for {{.*}} iter_args(%[[V:.*]] = %[[IF]], %[[SV:.*]] = %[[SIF]])
// WRITTEN: plan.launch "b" (%[[V]] : !plan.tensor, mut %[[NEXT:.*]] : !plan.tensor, %[[SV]] : !plan.tensor, mut %[[SNEXT:.*]] : !plan.tensor)
// WRITTEN: scf.yield %[[NEXT]], %[[SNEXT]]
// WRITTEN: %[[NULL:.*]] = plan.is_none %[[FOR]]#1
// WRITTEN: %[[SL:.*]] = scf.if %[[NULL]]
// WRITTEN: plan.slice %[[FOR]]#1
// WRITTEN: plan.launch "b" (%{{.*}} : !plan.tensor, mut %{{.*}} : !plan.tensor, %[[SL]] : !plan.tensor, mut %{{.*}} : !plan.tensor)
plan.func @flow(%x: !plan.tensor {plan.name = "x"}, %n: i64 {plan.name = "n"}) -> !plan.tensor {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %made = plan.empty_like %x
  %many = arith.cmpi sgt, %n, %c1 : i64
  %first = scf.if %many -> !plan.tensor {
    scf.yield %made : !plan.tensor
  } else {
    scf.yield %x : !plan.tensor
  }
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%v = %first) -> !plan.tensor : i64 {
    %next = plan.empty_like %v
    plan.launch "b" (%v : !plan.tensor, mut %next : !plan.tensor) grid (%n)
    scf.yield %next : !plan.tensor
  }
  %part = plan.slice %last, %c0 from %c0 to %n step %c1
  %y = plan.empty_like %part
  plan.launch "b" (%part : !plan.tensor, mut %y : !plan.tensor) grid (%n)
  plan.return %y : !plan.tensor
}

// A loop with a condition.
// WRITTEN-LABEL: plan.func @until
// WRITTEN: scf.while (%{{.*}} = %{{.*}}, %[[A:.*]] = %{{.*}}, %[[S:.*]] = %{{.*}}) : (i64, !plan.tensor, !plan.tensor)
// WRITTEN: scf.condition(%{{.*}}) %{{.*}}, %[[A]], %[[S]]
plan.func @until(%x: !plan.tensor {plan.name = "x"}, %n: i64 {plan.name = "n"}) -> !plan.tensor {
  %c1 = arith.constant 1 : i64
  %made = plan.empty_like %x
  %end:2 = scf.while (%i = %n, %v = %made) : (i64, !plan.tensor) -> (i64, !plan.tensor) {
    %goes = arith.cmpi sgt, %i, %c1 : i64
    scf.condition(%goes) %i, %v : i64, !plan.tensor
  } do {
  ^bb0(%i: i64, %v: !plan.tensor):
    %less = arith.subi %i, %c1 : i64
    %next = plan.empty_like %v
    plan.launch "b" (%v : !plan.tensor, mut %next : !plan.tensor) grid (%n)
    scf.yield %less, %next : i64, !plan.tensor
  }
  plan.return %end#1 : !plan.tensor
}
