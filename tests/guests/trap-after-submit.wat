;; Finds something, finishes its area, and traps.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.holds' 'find_item' 'acme.broken' (i32.const -1))
  (call $score 'hostile' (f64.const 50) (i32.const 0) (f64.const 0))
  unreachable)
