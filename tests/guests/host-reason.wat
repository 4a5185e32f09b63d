;; Fails a check with a reason that belongs to the host.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.holds' '' 'evaluation-budget-exceeded' (i32.const -1))
  (call $finish))
