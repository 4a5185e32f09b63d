;; Gives the host 40 MiB in one call.
(func $run (param $target i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 700)) (i32.const -1)) (then unreachable))
  (call $log (i32.const 1) (i32.const 0) (i32.const 41943040))
  (call $score 'hostile' (f64.const 100) (i32.const 0) (f64.const 0))
  (call $finish))
