;; Scores its area without latency below zero.
(func $run (param $target i32) (result i32)
  (call $score 'hostile' (f64.const 50) (i32.const 1) (f64.const -1))
  (call $finish))
