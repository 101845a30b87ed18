// Tests errors of the verifiers.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{argument 0 has no `plan.name`}}
plan.func @unnamed(%x: i64) { plan.return }

// -----
// expected-error @+1 {{argument 0 has type 'i32', which no plan value has}}
plan.func @wrong_type(%x: i32 {plan.name = "x"}) { plan.return }

// -----
// expected-error @+1 {{argument 0 is `plan.mut` but no tensor}}
plan.func @mut_scalar(%x: i64 {plan.name = "x", plan.mut}) { plan.return }

// -----
// expected-error @+1 {{result 0 of an op with a schema must be a tensor, got 'i64'}}
plan.func @scalar_result(%x: i64 {plan.name = "x"}) -> i64 attributes {schema = "f(int x) -> int"} { plan.return %x : i64 }

// -----
plan.func @wrong_return(%x: i64 {plan.name = "x"}) -> !plan.tensor {
  // expected-error @+1 {{returns 'i64' but the function's results are '!plan.tensor'}}
  plan.return %x : i64
}

// -----
plan.func @unknown_callee() {
  // expected-error @+1 {{@nowhere is no plan.func}}
  plan.call @nowhere() : () -> ()
  plan.return
}

// -----
plan.func @callee(%x: i64 {plan.name = "x"}) { plan.return }
plan.func @wrong_call(%x: f64 {plan.name = "x"}) {
  // expected-error @+1 {{does not fit @callee, which has type '(i64) -> ()'}}
  plan.call @callee(%x) : (f64) -> ()
  plan.return
}

// -----
plan.func @placeholders(%x: i64 {plan.name = "x"}) {
  // expected-error @+1 {{message has 2 placeholders but 1 values follow}}
  plan.raise "{} and {}" (%x) : i64
  plan.return
}

// -----
plan.func @brace(%x: i64 {plan.name = "x"}) {
  // expected-error @+1 {{message has an unbalanced brace}}
  plan.raise "{0}" (%x) : i64
  plan.return
}

// -----
plan.func @dtype() {
  // expected-error @+1 {{unknown dtype "float12"}}
  %t = plan.dtype "float12"
  plan.return
}

// -----
plan.func @drop_count(%x: !plan.tensor {plan.name = "x"}, %i: i64 {plan.name = "i"}) {
  // expected-error @+1 {{has 2 dimensions but 1 indices}}
  %0 = plan.drop %x [0, 1] at (%i)
  plan.return
}

// -----
plan.func @drop_twice(%x: !plan.tensor {plan.name = "x"}, %i: i64 {plan.name = "i"}) {
  // expected-error @+1 {{drops dimension 1 twice}}
  %0 = plan.drop %x [1, 1] at (%i, %i)
  plan.return
}

// -----
plan.func @drop_mixed(%x: !plan.tensor {plan.name = "x"}, %i: i64 {plan.name = "i"}) {
  // expected-error @+1 {{counts some dimensions from the front and some from the end}}
  %0 = plan.drop %x [0, -1] at (%i, %i)
  plan.return
}

// -----
plan.func @at_least_dtype(%t: !plan.dtype {plan.name = "t"}) {
  // expected-error @+1 {{parameter "T" is `at_least` a value of type '!plan.dtype', expected i64}}
  plan.launch "k" [T at_least %t : !plan.dtype] ()
  plan.return
}

// -----
plan.func @mut_argument(%i: i64 {plan.name = "i"}) {
  // expected-error @+1 {{argument 0 is `mut` but has type 'i64'}}
  plan.launch "k" (mut %i : i64)
  plan.return
}

// -----
plan.func @grid(%i: i64 {plan.name = "i"}) {
  // expected-error @+1 {{has a grid of 4 extents, at most 3 are possible}}
  plan.launch "k" (%i : i64) grid (%i, %i, %i, %i)
  plan.return
}
